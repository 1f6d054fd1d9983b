"""Build the last tagged version, and install it into an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / ".cache" / "versions"


def run(*command: object, cwd: Path = ROOT, **variables: str) -> str:
    """Run a command, and return its output.

    :raises RuntimeError: it failed.
    """
    words = [str(word) for word in command]
    environment = {**os.environ, **variables}
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def last_tag() -> str | None:
    """Return the newest tag of a version before this commit, or None."""
    try:
        return run("git", "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")
    except RuntimeError:
        return None


def installed(tag: str) -> Path:
    """Build the wheel of a tag once; return the Python of the environment that it is installed in.

    Its dependencies are those of this environment, behind its own packages: a ``.pth`` file adds their directory, and
    Python does not read the ``.pth`` files in there, one of which leads to the working tree.
    """
    commit = run("git", "rev-parse", f"{tag}^{{commit}}")
    folder = CACHE / commit
    python = folder / "venv" / "bin" / "python"
    if (folder / "complete").exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    source.mkdir(parents=True)
    archive = folder / "commit.tar"
    run("git", "archive", "--output", archive, commit)
    shutil.unpack_archive(archive, source, filter="data")
    maturin = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--quiet", "--compatibility", "linux"]
    words = ["--interpreter", sys.executable, "--target-dir", ROOT / "target" / "versions", "--out", folder / "wheels"]
    run(*maturin, *words, cwd=source, RUSTFLAGS=run(sys.executable, "crates/py/backend.py", cwd=source))
    (wheel,) = (folder / "wheels").glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")
    shutil.rmtree(source)
    archive.unlink()
    (folder / "complete").touch()
    return python
