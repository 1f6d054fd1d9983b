"""Tests of stores that answer but refuse writes: the service reports them before the first request."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mintage.store import open_store
from tests.servers.server import until
from tests.service.running import Running, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.mariadb import MariaDB
    from tests.servers.postgresql import PostgreSQL
    from tests.servers.redis import RedisWithoutAOF


def next_of(service: Running) -> tuple[int, Any]:
    """Return the status and the code of the answer to a request for an integer."""
    with service.serving.http() as line:
        answer = line.http("/v1/sequences/orders:next", method="POST")
        return answer.status, json.loads(answer.body).get("code")


def is_unfit(service: Running, status: int, code: str) -> None:
    assert service.serving.get("/readyz").status == 503
    assert service.serving.metric("mintage_store_up") == 0
    assert [event["code"] for event in service.events() if event["event"] == "store away"] == [code]
    assert next_of(service) == (status, code)


def ends(home: Path, store: str | None, *options: str, **environment: str) -> tuple[int, str]:
    """Return the exit code of a service that does not start, and its output."""
    words = ["serve", "--http", "127.0.0.1:0", "--redis", "off", "--log-format", "json", *options]
    if store is not None:
        words += ["--store", store]
    command = [sys.executable, "-m", "mintage", *words]
    variables = {**os.environ, "MINTAGE_HOME": str(home / "home"), **environment}
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.returncode, ended.stderr


def test_forgetful_redis_is_refused_at_startup(tmp_path: Path, redis_without_aof: RedisWithoutAOF) -> None:
    code, said = ends(tmp_path, redis_without_aof.url)
    assert (code, "append-only file" in said) == (78, True)


def test_read_only_account_is_refused_at_startup(tmp_path: Path, mariadb: MariaDB) -> None:
    with open_store(mariadb.url) as store:
        store.reserve("orders", 1)
    mariadb.sql("CREATE USER reader IDENTIFIED BY 'x'; GRANT SELECT ON mintage.* TO reader")
    try:
        code, said = ends(tmp_path, f"mariadb://reader:x@{mariadb.url.rpartition('@')[2]}")
        assert (code, "denied" in said) == (78, True)
    finally:
        mariadb.sql("DROP USER reader")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_wrong_password_is_refused_at_startup(tmp_path: Path, mariadb: MariaDB, workers: str) -> None:
    url = f"mariadb://nobody:s3cret@{mariadb.url.rpartition('@')[2]}"
    code, said = ends(tmp_path, url, "--workers", workers)
    assert (code, "check user and password" in said, "s3cret" in said) == (78, True, False)


def test_unwritable_file_is_refused_at_startup(tmp_path: Path) -> None:
    file = tmp_path / "ids.db"
    file.write_bytes(b"no database at all" * 100)
    code, said = ends(tmp_path, f"sqlite:///{file}")
    assert (code, "use another file" in said) == (78, True)
    code, said = ends(tmp_path, "sqlite:////proc/nowhere/ids.db")
    assert (code, "this user finds no directory /proc/nowhere: create it" in said) == (78, True)


def test_lack_of_a_directory_is_refused_at_startup(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    code, said = ends(tmp_path, f"sqlite:///{file}/ids.db")
    assert (code, f"this user finds no directory {file}: create it" in said) == (78, True)
    for home in (file, file / "home"):
        code, said = ends(tmp_path, None, MINTAGE_HOME=str(home))
        assert (code, "set MINTAGE_HOME to a directory that can be written" in said) == (78, True)


def test_server_that_becomes_read_only_makes_the_service_unready(tmp_path: Path, mariadb: MariaDB) -> None:
    with running(tmp_path, store=mariadb.url) as service:
        mariadb.sql("SET GLOBAL read_only = ON")
        try:
            until(lambda: service.serving.get("/readyz").status == 503, "it is seen")
            is_unfit(service, 500, "store.refused")
        finally:
            mariadb.sql("SET GLOBAL read_only = OFF")
        until(lambda: service.serving.get("/readyz").status == 200, "it recovers by itself")


def test_service_on_an_empty_database_creates_its_tables(tmp_path: Path, postgresql: PostgreSQL) -> None:
    with running(tmp_path, store=postgresql.url) as service:
        until(lambda: service.serving.get("/readyz").status == 200, "it is ready")
        assert next_of(service)[0] == 200
    assert "public" in postgresql.sql("SELECT schemaname FROM pg_tables WHERE tablename = 'mintage_pool'")


def test_service_whose_url_means_two_stores_does_not_start(tmp_path: Path, postgresql: PostgreSQL) -> None:
    postgresql.sql("CREATE SCHEMA mintage AUTHORIZATION mintage")
    try:
        for schema in ("public", "mintage"):
            with open_store(f"{postgresql.url}?schema={schema}") as store:
                store.reserve("orders", 1)
        code, said = ends(tmp_path, postgresql.url)
        assert (code, "mintage and public" in said) == (78, True)
    finally:
        postgresql.sql("DROP SCHEMA mintage CASCADE")
