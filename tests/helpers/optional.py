"""Modules whose packages are optional."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType


def is_missing(error: BaseException) -> bool:
    """Return True if an import failed because a package other than mintage is not installed."""
    return isinstance(error, ModuleNotFoundError) and not (error.name or "mintage").startswith("mintage")


def module_or_skip(name: str) -> ModuleType:
    """Import a module, or skip the test if a package that the module needs is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not is_missing(error):
            raise
        pytest.skip(str(error))


def mysqlclient() -> ModuleType:
    """Return mysqlclient's module, or skip the test: it is built from C, and PyMySQL may stand in its place.

    An example in the documentation of Django calls ``pymysql.install_as_MySQLdb``.
    """
    module = module_or_skip("MySQLdb")
    if module.__name__ != "MySQLdb":
        pytest.skip(f"{module.__name__} stands in the place of MySQLdb")
    return module
