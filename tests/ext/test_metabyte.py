"""Tests of the SQL in ``docs/how-to/metabyte.md``, on the databases that it names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from sqlalchemy import text

from mintage import sno
from tests.helpers.databases import engine_of, on_each_database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import PostgreSQL

psycopg = pytest.importorskip("psycopg")

PAGE: Final = (Path(__file__).parents[2] / "docs" / "how-to" / "metabyte.md").read_text(encoding="utf-8")
SQL: Final = dict(re.findall(r"(?ms)^## ([^\n]+)\n(?:(?!^## ).)*?^```sql\n(.*?)^```$", PAGE))
EXPRESSIONS: Final = dict(re.findall(r"^\| (PostgreSQL|MySQL, MariaDB|SQLite) \| `([^`]+)` ", PAGE, re.MULTILINE))


@pytest.fixture
def ids() -> sno.Generator:
    return sno.Generator(7)


@pytest.fixture
def connection(postgresql: PostgreSQL) -> Iterator[Any]:
    """Return a connection whose tables go away with it."""
    with psycopg.connect(postgresql.url) as connection:
        yield connection
        connection.rollback()


class Recipe:
    """The SQL of a section: the statements that make its tables, and its query."""

    def __init__(self, connection: Any, section: str) -> None:
        *tables, self.query = (part for part in SQL[section].split(";") if part.strip())
        self.connection = connection
        for statement in tables:
            connection.execute(statement)

    def insert(self, statement: str, *rows: tuple[object, ...]) -> None:
        self.connection.cursor().executemany(statement, rows)

    def ask(self, **values: object) -> list[tuple[Any, ...]]:
        answer: list[tuple[Any, ...]] = self.connection.execute(self.query, values or None).fetchall()
        return answer


def hour_of(id: sno.ID) -> dict[str, bytes]:
    return {
        name: bytes(sno.min_at(id.timestamp_ns + sign * 1_800 * 10**9)) for name, sign in (("begin", -1), ("end", 1))
    }


def test_failures_of_an_hour_are_selected_by_the_metabyte(connection: Any, ids: sno.Generator) -> None:
    recipe = Recipe(connection, "Status codes")
    minted = [ids.new(status << 2 | method) for method in range(4) for status in range(20)]
    recipe.insert("INSERT INTO requests VALUES (%s, 'a')", *[(bytes(each),) for each in minted])
    failed = [bytes(each) for each in minted if each.meta >> 2 in {12, 13, 14, 15}]
    assert [found for found, _ in recipe.ask(**hour_of(minted[0]))] == sorted(failed)
    assert recipe.ask(begin=b"", end=bytes(minted[0])) == []


def test_flags_are_selected_by_a_mask(connection: Any, ids: sno.Generator) -> None:
    recipe = Recipe(connection, "Bit masks")
    recipe.insert("INSERT INTO orders VALUES (%s)", *[(bytes(ids.new(meta)),) for meta in range(256)])
    assert recipe.ask() == [(128,)]


def test_last_version_is_found_among_other_documents(connection: Any, ids: sno.Generator) -> None:
    recipe = Recipe(connection, "Versions")
    documents = [ids.new() for _ in range(50)]  # of one or two ticks
    for number, first in enumerate(documents):
        versions = [(bytes(first.replace(meta=meta)), f"{number}.{meta}") for meta in range(number + 1)]
        recipe.insert("INSERT INTO pages VALUES (%s, %s)", *versions)
    for number, first in enumerate(documents):
        found = recipe.ask(first=bytes(first), last=bytes(first.replace(meta=255)))
        assert found == [(f"{number}.{number}",)]


def test_results_of_an_hour_are_counted(connection: Any, ids: sno.Generator) -> None:
    recipe = Recipe(connection, "Event logs")
    minted = [ids.new(meta) for meta in (0, 0, 1, 2, 0)]
    recipe.insert("INSERT INTO runs VALUES (%s)", *[(bytes(each),) for each in minted])
    assert recipe.ask(**hour_of(minted[0])) == [(0, 3), (1, 1), (2, 1)]


@on_each_database
def test_metabyte_is_read_by_the_expression_of_a_database(
    driver: str, request: pytest.FixtureRequest, tmp_path: Path, ids: sno.Generator
) -> None:
    (expression,) = (each for name, each in EXPRESSIONS.items() if driver.partition("+")[0] in name.lower())
    kind = "bytea" if driver.startswith("postgresql") else "binary(10)"
    with engine_of(driver, request, tmp_path) as engine, engine.connect() as opened:
        opened.execute(text(f"CREATE TEMPORARY TABLE metabytes (id {kind} PRIMARY KEY)"))
        minted = [{"id": bytes(ids.new(meta))} for meta in (0, 7, 10, 128, 255)]
        opened.execute(text("INSERT INTO metabytes VALUES (:id)"), minted)
        found = [value for (value,) in opened.execute(text(f"SELECT {expression} FROM metabytes ORDER BY id"))]
    assert [int(each, 16) if isinstance(each, str) else each for each in found] == [0, 7, 10, 128, 255]
