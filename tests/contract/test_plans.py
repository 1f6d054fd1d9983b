"""Tests of the plans of SQL statements: none of a verb that clients wait for reads a whole table."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from mintage.protocol.records import columns
from mintage.rules import PRUNED, NamespaceRecord, NodeRecord, PoolRecord
from mintage.store import open_store
from mintage.store.sql.statements import driver_statements, statements
from tests.helpers.sql_servers import administer
from tests.helpers.stores import patient
from tests.servers import MariaDB, PostgreSQL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.helpers.sql_servers import Server

ROWS: Final = 10_000
MEANT_TO_SCAN: Final = {
    "lose_history",
    "accept_history",
    *(f"take_over_{kind}" for kind in ("pool", "node", "namespace")),
}
"""The statements of the restoration of a store, and of an upgrade of its tables."""
WITHOUT_RECORDS: Final = {
    *("missing", "schemas", "describe", "lock_schema", "has_history", "keep_history", "create_schema"),
    *("create_grant", "create_grant_index", "create_run", "cluster", "member", "join"),
}
"""The statements that use the catalogue of the database only, or create tables."""
SMALL: Final = {"mintage_schema", "mintage_life", "mintage_count"}
"""The tables whose number of rows does not depend on what the store has."""
OWN: Final = ("mintage_", "used", "after", "next")
"""The beginnings of the names of tables of mintage, and of their aliases."""

FILL: Final = f"""
    INSERT INTO mintage_pool SELECT 'p' || n, 'test', 'x', 30000, 0, 0, false, 0, 1000, 1, 0, 9 FROM numbers;
    INSERT INTO mintage_node SELECT 'p' || n % 10, n, 0, n, 30000, 'x', 't', 'h', 0, 0, 1 FROM numbers;
    INSERT INTO mintage_grant SELECT 'p' || n % 10, n, 1, n, 1, 'h' FROM numbers;
    INSERT INTO mintage_namespace ({", ".join(columns(NamespaceRecord))})
    SELECT 'n' || n, 10, 1000000, 1, 10, 'x', 0, 1, 0, false, 1, 'h', 1, 10, 1, 1 FROM numbers;
    INSERT INTO mintage_run SELECT 'n' || n % 10, n, n, 'h', 1, n FROM numbers;
"""
NAMES: Final = """
    INSERT INTO mintage_name SELECT 'pool', 'p' || n, n FROM numbers;
    INSERT INTO mintage_name SELECT 'namespace', 'n' || n, n FROM numbers;
"""


def given() -> dict[str, Any]:
    """Return a value for each parameter of the statements."""
    names = {name for kind in (PoolRecord, NodeRecord, NamespaceRecord) for name in columns(kind)}
    texts = {"name": "n777", "pool": "p1", "layout": "test", "identity": "x", "token": "t", "holder": "h", "life": "x"}
    texts |= {"before": "x", "after": "y"}
    numbers = {"node": 777, "first": 0, "stop": 65_536, "limit": 100, "version": 999}
    numbers |= {"before_ms": 999, "ended_ms": 999, "most": 10, "last": 9, "until_ms": 9, "highest": 99}
    texts |= {"namespace": "n1", "run_holder": "h"}
    return {**dict.fromkeys(names, 1), "history_lost": False, "retired": False, **texts, **numbers}


def hot(found: Mapping[str, str]) -> dict[str, str]:
    """Return the statements that must not read a table from its beginning to its end."""
    return {name: sql for name, sql in found.items() if name not in MEANT_TO_SCAN | WITHOUT_RECORDS}


def fill(server: Server, numbers: str) -> None:
    for step in (FILL + NAMES).split(";")[:-1]:
        if isinstance(server, MariaDB):  # it has no || for text
            step = re.sub(r"'(\w)' \|\| (n(?: % 10)?)", r"CONCAT('\1', \2)", step)  # noqa: PLW2901
        administer(server, step.replace("numbers", f"({numbers}) AS numbers"))


def test_postgresql_finds_records_by_an_index(postgresql: PostgreSQL, subtests: pytest.Subtests) -> None:
    import psycopg

    def scanned(node: dict[str, Any]) -> set[str]:
        own = {node["Relation Name"]} if node["Node Type"] == "Seq Scan" else set()
        return own.union(*map(scanned, node.get("Plans", ())))

    with open_store(patient(postgresql.url)) as store:
        store.prepare()  # type: ignore[attr-defined]
    fill(postgresql, f"SELECT generate_series(1, {ROWS}) AS n")
    postgresql.sql("ANALYZE")
    with psycopg.connect(postgresql.url) as connection:
        for name, sql in hot(driver_statements("postgresql")).items():
            with subtests.test(name):
                [(plan,)] = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}", given() | {"timeout": "1"}).fetchall()
                assert {table for table in scanned(plan[0]["Plan"]) if table.startswith(OWN)} <= SMALL


@contextmanager
def filled_mysql(server: MariaDB) -> Iterator[Any]:
    """Yield a connection to a server whose tables have many rows."""
    import pymysql

    with open_store(patient(server.url)) as store:
        store.prepare()  # type: ignore[attr-defined]
        url = store.url
    digit = "SELECT 0 AS d" + "".join(f" UNION ALL SELECT {d}" for d in range(1, 10))
    digits = ", ".join(f"({digit}) AS t{at}" for at in range(4))
    columnar = "SELECT t0.d + 10 * t1.d + 100 * t2.d + 1000 * t3.d + 1 AS n FROM "
    fill(server, columnar + digits)
    tables = ("pool", "node", "grant", "namespace", "name", "run")
    administer(server, f"ANALYZE TABLE {', '.join(f'mintage_{each}' for each in tables)}")
    with closing(
        pymysql.connect(
            host=url.host, port=url.port(3306), user=url.user, password=url.password or "", database=url.path
        )
    ) as connection:
        yield connection


@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_mysql_finds_records_by_an_index(request: pytest.FixtureRequest, kind: str, subtests: pytest.Subtests) -> None:
    import pymysql

    with filled_mysql(request.getfixturevalue(kind)) as connection:
        for name, sql in hot(driver_statements("mysql")).items():
            with subtests.test(name), connection.cursor(pymysql.cursors.DictCursor) as cursor:
                cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL {sql}", given())
                rows = [row for row in cursor.fetchall() if row["select_type"] != "INSERT"]
                whole = {row["table"] for row in rows if row["type"] in {"ALL", "index"}}
                assert {table for table in whole if table.startswith(OWN)} <= SMALL


@pytest.mark.parametrize("past", ["grant", "run"])
@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_mysql_reads_only_the_rows_that_it_prunes(request: pytest.FixtureRequest, kind: str, past: str) -> None:
    with filled_mysql(request.getfixturevalue(kind)) as connection, connection.cursor() as cursor:

        def read() -> int:
            cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read_%'")
            return sum(int(number) for _, number in cursor.fetchall())

        for ended_ms, removed in ((0, 0), (ROWS + 1, PRUNED)):
            before = read()
            values = given() | {"ended_ms": ended_ms, "most": PRUNED}
            assert cursor.execute(driver_statements("mysql")[f"prune_{past}"], values) == removed
            assert read() - before < 100


def test_sqlite_finds_records_by_an_index(tmp_path: Path, subtests: pytest.Subtests) -> None:
    file = tmp_path / "ids.db"
    with open_store(f"sqlite:///{file}") as store:
        store.prepare()  # type: ignore[attr-defined]
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE numbers (n)")
        database.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in range(1, ROWS + 1)))
        database.executescript(FILL + "ANALYZE;")
        values = given() | dict.fromkeys(("moved", "lost", "began_ms", "place", "created_ns"), 0)
        for name, sql in hot(statements("sqlite")).items():
            with subtests.test(name):
                plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
                whole = {step.split()[1] for step in plan if step.startswith("SCAN ")}
                assert {table for table in whole if table.startswith(OWN)} <= SMALL


def test_number_of_namespaces_is_that_of_the_rows(tmp_path: Path) -> None:
    file = tmp_path / "ids.db"
    with open_store(f"sqlite:///{file}") as store:
        for name in ("a", "b", "a", "c"):
            store.reserve(name, 1)
        assert store.count_namespaces() == 3
        with closing(sqlite3.connect(file)) as database, database:
            database.execute("DELETE FROM mintage_namespace WHERE name = 'b'")
        assert store.count_namespaces() == 2
