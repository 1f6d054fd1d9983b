"""Tests of ``mintage.ext.django`` on three databases: a copy of ``django_project`` for each, in its own process.

Django is configured once a process, and migrations are files, so the project is copied and its promises run there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest

from mintage.formats.kinds import KINDS
from tests.helpers.markdown import values_by_path

pytest.importorskip("django")
pytest.importorskip("rest_framework")
pytest.importorskip("drf_spectacular")

if TYPE_CHECKING:
    from tests.servers import MariaDB, PostgreSQL

PROJECT = Path(__file__).parent / "django_project"


def promises(directory: Path, database: dict[str, Any], store: str, file: str = "promises.py") -> None:
    shutil.copytree(PROJECT, directory / "project")
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*pytest_, "--rootdir=.", file],
        cwd=directory / "project",
        env={
            **os.environ,
            "DATABASE": json.dumps(database),
            "STORE": store,
            "CELLS": json.dumps({path: cells for (tool, path), cells in values_by_path().items() if tool == "Django"}),
            "MINTAGE_HOME": str(directory),
            "PYTHONPATH": ".",
        }
        | {"DJANGO_SUPERUSER_PASSWORD": "super", "PYTHONWARNINGS": "error::DeprecationWarning:mintage"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def of_url(engine: str, url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "ENGINE": f"django.db.backends.{engine}",
        "NAME": parts.path[1:],
        "USER": parts.username,
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname,
        "PORT": parts.port,
    }


def test_django_promises_hold_on_sqlite(tmp_path: Path) -> None:
    rows = tmp_path / "rows.db"
    promises(tmp_path, {"ENGINE": "django.db.backends.sqlite3", "NAME": str(rows)}, f"sqlite:///{rows}")


def test_django_promises_hold_on_postgresql(tmp_path: Path, postgresql: PostgreSQL) -> None:
    promises(tmp_path, of_url("postgresql", postgresql.url), postgresql.url)


def test_django_promises_hold_on_mariadb(tmp_path: Path, mariadb: MariaDB) -> None:
    promises(tmp_path, of_url("mysql", mariadb.url), mariadb.url)


def test_ids_without_a_field_hold_on_sqlite(tmp_path: Path) -> None:
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "database")}
    promises(tmp_path, database, "", "by_value.py")


def test_ids_without_a_field_hold_on_postgresql(tmp_path: Path, postgresql: PostgreSQL) -> None:
    promises(tmp_path, of_url("postgresql", postgresql.url), "", "by_value.py")


def test_ids_without_a_field_hold_on_mariadb(tmp_path: Path, mariadb: MariaDB) -> None:
    promises(tmp_path, of_url("mysql", mariadb.url), "", "by_value.py")


def test_every_format_has_its_fields() -> None:
    from mintage.ext import django

    assert list(django.FIELDS) == list(KINDS)
    for kind in KINDS.values():
        field = getattr(django, f"{kind.title}Field")
        assert django.FIELDS[kind.name] is field
        assert f"{field.__module__}.{field.__qualname__}" == f"mintage.ext.django.{kind.title}Field"
        assert field.__name__ in django.__all__


def test_missing_package_is_named() -> None:
    script = "import sys; sys.modules['django'] = None; import mintage.ext.django"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "[django]" in done.stderr
