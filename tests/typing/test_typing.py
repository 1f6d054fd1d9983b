"""Tests of the types of mintage: stubs and annotations match the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run(*command: str) -> str:
    """Return the complaints of a module of mypy; empty if there are none."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=250, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_public_names_have_the_documented_types() -> None:
    assert run("mypy", "--strict", str(HERE / "surface.py"), str(HERE / "test_typing.py")) == ""


def test_type_checkers_refuse_misuse() -> None:
    assert run("mypy", "--strict", str(HERE / "misuse.py")) == ""


def test_stubs_match_the_extension() -> None:
    allowlist = HERE / "stubtest-allowlist.txt"
    assert run("mypy.stubtest", "mintage._core", "--allowlist", str(allowlist)) == ""
