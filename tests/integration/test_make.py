"""Tests of ``make``: interrupted steps are repeated, and a missing tool is one sentence. Covers the Makefile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
STAMPS = Path(".venv/stamps")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="runs make")


def run(*command: str | Path, at: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        list(map(str, command)),
        cwd=at,
        env=inherited | environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout whose only requirement is a package of its own, with its environment made."""
    pytest.importorskip("ensurepip")
    place = tmp_path_factory.mktemp("a checkout")
    shutil.copy(ROOT / "Makefile", place)
    (place / "crates").mkdir()
    (place / "requirements.txt").write_text("thing==1\n", encoding="utf-8")
    with zipfile.ZipFile(place / "thing-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("thing.py", "")
        wheel.writestr("thing-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1\n")
        wheel.writestr("thing-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("thing-1.dist-info/RECORD", "")
    made(place, STAMPS / "tools")
    return place


def made(place: Path, target: Path, **environment: str) -> None:
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": place.as_uri()}
    done = run("make", f"PYTHON={sys.executable}", target, at=place, **variables, **environment)
    assert done.returncode == 0, done.stderr


def missing(place: Path, names: Iterable[str]) -> None:
    """Remove files, as if the run that makes them had been interrupted before."""
    for name in names:
        [found] = (place / ".venv").glob(name)
        found.unlink()


def test_half_installed_package_is_installed_again(checkout: Path) -> None:
    # Installations are marked until complete, as pip accepts half an installation that has a version.
    missing(checkout, ["stamps/tools", "lib/python*/site-packages/thing.py", "lib/python*/site-packages/thing*/RECORD"])
    (checkout / STAMPS / "tools.begun").touch()
    made(checkout, STAMPS / "tools")
    assert run(".venv/bin/python", "-c", "import thing", at=checkout).returncode == 0
    assert not (checkout / STAMPS / "tools.begun").exists()


def test_half_created_environment_is_created_again(checkout: Path) -> None:
    missing(checkout, ["stamps/venv", "stamps/tools", "bin/pip"])
    made(checkout, STAMPS / "tools")
    assert run(".venv/bin/pip", "--version", at=checkout).returncode == 0
    assert run(".venv/bin/python", "-c", "import thing", at=checkout).returncode == 0


def test_directories_with_a_space_are_built_in(checkout: Path, tmp_path: Path) -> None:
    (checkout / "crates" / "py").mkdir()
    for name in ("Cargo.toml", "Cargo.lock", "pyproject.toml", "crates/py/backend.py"):
        shutil.copy(ROOT / name, checkout / name)
    programs = {
        checkout / ".venv/bin/maturin": 'echo "$VIRTUAL_ENV:$RUSTFLAGS" > said',
        tmp_path / "cargo": "echo cargo 2.0.0",
    }
    for program, code in programs.items():
        program.write_text(f"#!/bin/sh\n{code}\n", encoding="utf-8")
        program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    made(checkout, STAMPS / "build", PATH=path, RUSTFLAGS="", CARGO_HOME="/home/a user/.cargo")
    assert (checkout / "said").read_text(encoding="utf-8") == f"{checkout}/.venv:\n"


@pytest.mark.parametrize(
    ("version", "is_enough"), [("1.84.1", False), ("1.85.0", True), ("2.0.1-nightly", True), ("", False)]
)
def test_too_old_rust_is_detected(tmp_path: Path, version: str, is_enough: bool) -> None:
    cargo = tmp_path / "cargo"
    cargo.write_text(f"#!/bin/sh\n{f'echo cargo {version} 2025' if version else 'exit 1'}\n", encoding="utf-8")
    cargo.chmod(0o755)
    done = run("make", "toolchain", at=ROOT, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode == 0) is is_enough
    if not is_enough:
        found = f"cargo {version} 2025" if version else "none"
        needed = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["rust-version"]
        assert done.stderr.startswith(f"mintage needs Rust {needed} or newer, and this is {found}: install it")


def test_servers_are_not_installed_if_switched_off(tmp_path: Path) -> None:
    # A PATH with nothing but shell builtins and a root user.
    for name, code in {"id": "echo 0", "apt-get": "touch ran"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{code}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    script = ROOT / "tests" / "servers" / "install.sh"
    done = run("/bin/sh", script, at=tmp_path, PATH=str(tmp_path), MINTAGE_INSTALL_SERVERS="0")
    assert done.returncode == 0
    assert "redis-server" in done.stderr
    assert "MINTAGE_INSTALL_SERVERS is 0" in done.stderr
    assert not (tmp_path / "ran").exists()
