"""Wheels of this source tree or of another commit, by maturin with the flags of a release."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class BuildError(Exception):
    """A command failed; the text is the command and what it printed."""


def _run(*command: object, cwd: Path, **variables: str) -> str:
    words = [str(word) for word in command]
    environment = {**os.environ, **variables}
    done = subprocess.run(
        words, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise BuildError(f"{' '.join(words)}\n{done.stdout}")
    return done.stdout


def build_wheel(source: Path, python: object, out: Path, *words: str, target: Path, **variables: str) -> Path:
    """Build the release wheel of a source tree for an interpreter, and return its path.

    :param out: an empty or missing directory
    :param words: more arguments of maturin
    :param target: cargo's directory, which keeps what was compiled
    :param variables: more variables of the environment
    :raises BuildError: it does not compile.
    """
    flags = _run(sys.executable, "crates/py/backend.py", cwd=source)
    maturin = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--quiet", "--compatibility", "linux"]
    maturin += ["--interpreter", str(python), "--target-dir", str(target), "--out", str(out), *words]
    _run(*maturin, cwd=source, RUSTFLAGS=flags, **variables)
    (wheel,) = out.glob("*.whl")
    return wheel


def unpack_commit(repository: Path, commit: str, folder: Path) -> None:
    """Write the files of a commit into an existing directory.

    :raises BuildError: there is no such commit.
    """
    archive = folder / "commit.tar"
    _run("git", "archive", "--output", archive, commit, cwd=repository)
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    archive.unlink()
