"""Tests of PyInstaller bundles and zip archives: a bundle is complete, or an error gives the reason."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import sysconfig
import zipapp
from importlib.metadata import entry_points
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

import mintage
from mintage import _pyinstaller
from mintage.cli import COMMANDS, load
from mintage.formats.kinds import NAMES
from mintage.store import STORE_KINDS

CRATES = Path(__file__).parents[2] / "crates"
PACKAGE = Path(mintage.__file__).parent

HIDDEN = set(_pyinstaller.hidden_imports())
OTHERS = {"atexit", "bson", "mintage.ext.sqlalchemy", "sys"}
"""Modules that an application has imported before their objects are passed, and those of every interpreter."""


def test_bundle_has_every_module_that_the_extension_imports() -> None:
    sources = "\n".join(path.read_text("utf-8") for path in sorted((CRATES / "py" / "src").rglob("*.rs")))
    by_name = re.compile(r"""(?:\.import\((?:[\w().]+,)?|call_method1\("load",\()"([\w.]+)\"""")
    adapters = re.findall(r'id::(?:adapter|attribute)\([^"]+(?:"__\w+__", )?"(\w+)"', sources)
    imported = {*by_name.findall(re.sub(r"\s+", "", sources)), *(f"mintage.ext.{name}" for name in adapters)}
    assert {"mintage.lease.request", "mintage.formats.values", "mintage.ext.pydantic", "array", "uuid"} <= imported
    assert imported - OTHERS <= HIDDEN


def test_bundle_has_every_module_with_classes_of_the_extension() -> None:
    # Pickles name them.
    sources = "\n".join(path.read_text("utf-8") for path in sorted((CRATES / "py" / "src").rglob("*.rs")))
    modules = set(re.findall(r'(?:module = |in )"(mintage\.[\w.]+)"', sources))
    assert len(modules) > 10
    assert {name for name in modules if not name.startswith("mintage._core")} <= HIDDEN


def test_bundle_has_every_store_and_every_scheme() -> None:
    assert {module for module, _, _ in STORE_KINDS.values()} <= HIDDEN
    assert {f"mintage.{name}" for name in NAMES} <= HIDDEN
    assert set(mintage._ELSEWHERE.values()) <= HIDDEN


def test_bundle_of_the_command_has_every_command() -> None:
    assert {each.run.__module__ for each in map(load, COMMANDS) if each.run} <= set(_pyinstaller.command_modules())


def test_bundle_has_every_file_read_at_run_time() -> None:
    others = {".py", ".pyc", ".pyi", ".so", ".pyd", ".typed", ".txt"}
    read = {path for path in PACKAGE.rglob("*.*") if path.is_file() and path.suffix not in others}
    assert {Path(path) for path, _ in _pyinstaller.data_files()} == read
    assert {"mintage/store/lua", "mintage/store/sql/dialects/sqlite"} < {
        folder for _, folder in _pyinstaller.data_files()
    }


def test_pyinstaller_finds_the_hook_by_itself() -> None:
    (entry,) = (entry for entry in entry_points(group="pyinstaller40") if entry.value.startswith("mintage."))
    (directory,) = entry.load()()
    read = runpy.run_path(str(Path(directory) / "hook-mintage.py"))
    assert entry.name == "hook-dirs"
    assert set(read["hiddenimports"]) == HIDDEN
    assert read["datas"] == _pyinstaller.data_files()


# --------------------------------------------------------------------------------- where the extension cannot be loaded


def last_line(*command: object) -> str:
    """Return the last line of the output of a failing process."""
    words = [sys.executable, "-I", *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="of interpreters without the GIL")
def test_import_leaves_the_gil_of_a_free_threaded_interpreter_off() -> None:
    source = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import mintage; mintage.sno.new()"
    words = [sys.executable, "-I", "-W", "ignore", "-c", f"{source}; sys.exit(sys._is_gil_enabled())"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    assert subprocess.run(words, check=False, timeout=60, env=environment).returncode == 0


@pytest.mark.parametrize("leave_out", [(), ("_core",)], ids=["with the stubs", "without them"])
def test_zip_archive_is_refused_in_one_sentence(tmp_path: Path, leave_out: tuple[str, ...]) -> None:
    copytree(PACKAGE, tmp_path / "app" / "mintage", ignore=ignore_patterns("__pycache__", *leave_out))
    (tmp_path / "app" / "__main__.py").write_text("import mintage\n", "utf-8")
    zipapp.create_archive(tmp_path / "app", tmp_path / "app.pyz")
    line = last_line(tmp_path / "app.pyz")
    assert line.startswith("ImportError: mintage has an extension, which cannot be loaded from within a zip archive")
    assert "shiv" in line


@pytest.mark.parametrize("leave_out", [(), ("_core",)], ids=["with the stubs", "without them"])
def test_build_for_another_interpreter_is_refused_in_one_sentence(tmp_path: Path, leave_out: tuple[str, ...]) -> None:
    copytree(PACKAGE, tmp_path / "mintage", ignore=ignore_patterns("__pycache__", "*.so", "*.pyd", *leave_out))
    line = last_line("-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mintage")
    assert line.startswith(f"ImportError: mintage in {tmp_path}/mintage was not built for this interpreter")
    assert sys.executable in line
