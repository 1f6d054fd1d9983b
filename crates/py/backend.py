"""Builds wheels by maturin, with flags for rustc; run as a script, prints the flags.

Messages of panics name source files, and would name the directory of whoever built the extension.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def flags() -> str:
    """``RUSTFLAGS`` as it is, and cargo's directory called ``cargo``."""
    cargo = os.environ.get("CARGO_HOME") or Path.home() / ".cargo"
    return f"{os.environ.get('RUSTFLAGS', '')} --remap-path-prefix={cargo}=cargo".strip()


if __name__ == "__main__":
    sys.stdout.write(flags())
else:
    from maturin import *  # noqa: F403 (what a build backend is)

    os.environ["RUSTFLAGS"] = flags()
