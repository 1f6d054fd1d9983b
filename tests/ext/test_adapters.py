"""Tests of all adapters: ``import mintage`` imports none, and each says what installs its framework."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mintage

ROOT = Path(__file__).parents[2]
ADAPTERS = sorted(
    path.stem if path.is_file() else path.name
    for path in (ROOT / "src/mintage/ext").iterdir()
    if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()
)
NEEDS_NOTHING = {"_columns", "_drivers", "columns", "json", "kinds", "pymysql", "sqlite3"}
FRAMEWORKS = {"pydantic": "pydantic_core", "pymongo": "bson", "spark": "pyspark"}
"""The package of an adapter with another name."""


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.strip()


def test_library_imports_no_third_party_package_or_adapter() -> None:
    script = "import sys; before = set(sys.modules); import mintage; print(*sorted(set(sys.modules) - before))"
    loaded = run(script).split()
    foreign = {name.split(".")[0] for name in loaded} - sys.stdlib_module_names - {"mintage"}
    assert foreign == set()
    assert [name for name in loaded if name == "mintage.ext" or name.startswith("mintage.ext.")] == []


@pytest.mark.parametrize("adapter", [name for name in ADAPTERS if name not in NEEDS_NOTHING])
def test_adapter_without_its_framework_says_what_installs_it(adapter: str) -> None:
    package = FRAMEWORKS.get(adapter, adapter)
    script = f"""
import sys
sys.modules[{package!r}] = None
try:
    import mintage.ext.{adapter}
except ModuleNotFoundError as error:
    print(error)
"""
    said = run(script)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert said.startswith("this needs the package ")
    [extra] = [extra for extra in extras if f"[{extra}]'" in said]
    assert "pip install '" in said
    assert any(adapter in requirement.lower() for requirement in extras[extra])


@pytest.mark.parametrize("adapter", sorted(NEEDS_NOTHING))
def test_modules_without_requirements_import_alone(adapter: str) -> None:
    script = f"import sys, mintage.ext.{adapter}; print(*sorted(sys.modules))"
    foreign = {name.split(".")[0] for name in run(script).split()} - sys.stdlib_module_names - {"mintage"}
    assert not foreign & {"sqlalchemy", "pydantic", "pyarrow", "numpy", "pandas", "polars", "django"}
    assert mintage.__version__


def test_registration_for_all_connections_needs_pymysql() -> None:
    script = """
import sys
sys.modules["pymysql"] = None
from mintage.ext.pymysql import register
try:
    register()
except ModuleNotFoundError as error:
    print(error)
"""
    assert "[pymysql]'" in run(script)
