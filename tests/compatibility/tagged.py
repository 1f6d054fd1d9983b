"""Build the last tagged version, and install it into an environment of its own."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tests.helpers.wheel import build_wheel, unpack_commit

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / ".cache" / "versions"


def git(*words: str) -> str | None:
    """Return the output of git, or None if it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout.strip()


def last_version() -> str | None:
    """Return the commit of the newest version that was tagged before this commit, or None."""
    tag = git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")
    return tag and git("rev-parse", f"{tag}^{{commit}}")


def installed(commit: str) -> Path:
    """Build the wheel of a commit once; return the Python of the environment that it is installed in.

    Its dependencies are those of this environment, behind its own packages: a ``.pth`` file adds their directory, and
    Python does not read the ``.pth`` files in there, one of which leads to the working tree.

    :raises BuildError: it does not compile.
    """
    folder = CACHE / commit
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # pytest's processes ask for it at the same time
        if not (folder / "complete").exists():
            _install(commit, folder)
    return folder / "venv" / "bin" / "python"


def _install(commit: str, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    source.mkdir(parents=True)
    unpack_commit(ROOT, commit, source)
    wheel = build_wheel(source, sys.executable, folder / "wheels", target=ROOT / "target" / "versions")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder / "venv"),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*pip, str(wheel)], check=True)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")
    shutil.rmtree(source)
    (folder / "complete").touch()
