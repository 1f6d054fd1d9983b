"""Build wheels by maturin, with flags for rustc; as a script, print the flags.

Without Rust, maturin would download an installer of it; the build says what is missing instead.

Messages of panics name source files, and would name the directory in which the extension was built.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def flags() -> str:
    """``RUSTFLAGS`` as it is, and cargo's directory called ``cargo``, unless it has a space, which ends a flag."""
    cargo = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    renamed = "" if " " in cargo else f"--remap-path-prefix={cargo}=cargo"
    return f"{os.environ.get('RUSTFLAGS', '')} {renamed}".strip()


def check_rust() -> None:
    """Refuse to build without Rust.

    :raises SystemExit: there is no ``cargo`` on the path.
    """
    if shutil.which("cargo") is None:
        sys.exit(
            "mintage is compiled by Rust, and no cargo was found on the PATH: install Rust from your distribution or "
            "from rustup.rs, then try again"
        )


if __name__ == "__main__":
    sys.stdout.write(flags())
else:
    check_rust()
    from maturin import *  # noqa: F403 (what a build backend is)

    os.environ["RUSTFLAGS"] = flags()
