"""Tests of the tables of docs/reference/storage.md, cell by cell.

Each cell is compared with what every adapter writes: columns of SQLAlchemy and Django, parameters of drivers, columns
of frames.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, get_args
from uuid import UUID

import asyncpg
import duckdb
import pandas as pd
import polars as pl
import psycopg
import psycopg2
import pyarrow as pa
import pytest
from psycopg.adapt import AdaptersMap, PyFormat
from pymysql import converters
from sqlalchemy import Column, Dialect, MetaData, Table
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateTable

import mintage.ext.asyncpg
import mintage.ext.psycopg
import mintage.ext.psycopg2
import mintage.ext.pymysql
import mintage.ext.sqlite3
from mintage import locality, snowflake, typeid
from mintage.ext import duckdb as in_duckdb
from mintage.ext import pandas as in_pandas
from mintage.ext import polars as in_polars
from mintage.ext import pyarrow as in_arrow
from mintage.ext import sqlalchemy as types
from mintage.formats.annotations import TypeIDs
from mintage.formats.kinds import KINDS, Kind, snowflakes
from mintage.formats.storage import CLASSES, WRITERS, StorageForm, chosen, storage_form, storage_forms
from tests.helpers.markdown import STORAGE, read_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import PostgreSQL

pytestmark = pytest.mark.usefixtures("registrations_end")

django = pytest.importorskip("mintage.ext.django")

SQL: Final = {"PostgreSQL": "postgresql", "MySQL, MariaDB": "mysql", "SQLite": "sqlite"}
FRAMES: Final = ("pyarrow", "pandas", "Polars", "DuckDB")
DIALECTS: Final[dict[str, list[Dialect]]] = {
    "postgresql": [postgresql.dialect()],  # type: ignore[no-untyped-call]
    "mysql": [mysql.dialect(), mysql.dialect(is_mariadb=True)],
    "sqlite": [sqlite.dialect()],
}
ALL: Final[dict[str, Kind]] = {
    **KINDS,
    "snowflake of 64 bits": snowflakes(snowflake.DISCORD),
    "typeid": TypeIDs("user"),
}


@pytest.fixture(scope="module")
def cells() -> dict[tuple[str, str], dict[str, str]]:
    """Return the table of columns, by format and form; a default form is bold."""
    (head, rows), *_ = read_tables()
    return {(row[0], row[1].strip("*")): dict(zip(head, row, strict=True)) for row in rows}


def each_form() -> Iterator[Any]:
    for name, kind in ALL.items():
        for form in storage_forms(kind):
            yield pytest.param(name, form, id=f"{name}-{form}")


each = pytest.mark.parametrize(("name", "form"), list(each_form()))


def type_of(name: str, form: StorageForm) -> Any:
    kind = ALL[name]
    if kind.layout:
        return types.SnowflakeType(kind.layout)
    if kind.size is None:
        return getattr(types, f"{kind.title}Type")()
    return getattr(types, f"{kind.title}Type")(*([kind.prefix] if isinstance(kind, TypeIDs) else []), form=form)


def field_of(name: str, form: StorageForm) -> Any:
    kind, made = ALL[name], getattr(django, f"{ALL[name].title}Field")
    if kind.layout:
        return made(layout=kind.layout)
    return made(form=form, **({"prefix": kind.prefix} if isinstance(kind, TypeIDs) else {}))


def sample(name: str) -> Any:
    kind = ALL[name]
    if isinstance(kind, TypeIDs):
        return typeid.new(str(kind.prefix))
    return kind.max if kind.layout else kind.new()


def plain(sql: str, vendor: str, size: int | None) -> str:
    """Return a column in the words of the table, if it has the collation and the check that the page promises."""
    text = sql.lower().replace("character varying", "varchar").replace("character(", "char(").replace(", 0)", ")")
    found = text.split(" check ")[0]
    if found.startswith(("char", "varchar")):
        collation = {"postgresql": ' collate "c"', "mysql": " character set ascii collate ascii_bin"}.get(vendor, "")
        assert found.endswith(collation), sql
        return found.removesuffix(collation)
    if found in ("bytea", "blob"):
        assert text.endswith((f"= {size}", f"= {size})")), sql
    return found


def test_formats_and_storage_rows_match(cells: dict[tuple[str, str], Any]) -> None:
    assert list(cells) == [(name, form) for name, kind in ALL.items() for form in storage_forms(kind)]
    assert set(CLASSES) == {kind.python for kind in ALL.values()} - {int, str}


def test_default_form_is_the_same_in_all_adapters(cells: dict[tuple[str, str], dict[str, str]]) -> None:
    drivers = chosen(None)
    for name, kind in ALL.items():
        [default] = [form for (each, form), row in cells.items() if each == name and row["form"] == f"**{form}**"]
        assert storage_form(kind, None) == default
        stored = type_of(name, default)
        assert stored.form == default
        assert "form=" not in repr(stored)
        options: Any = {"layout": kind.layout} if kind.layout else {}
        options |= {"prefix": kind.prefix} if isinstance(kind, TypeIDs) else {}
        assert getattr(django, f"{kind.title}Field")(**options).form == default
        if kind.python in drivers:
            assert drivers[kind.python] == default


@each
@pytest.mark.parametrize("database", SQL)
def test_column_types_equal_the_documented_ones(
    name: str, form: StorageForm, database: str, cells: dict[tuple[str, str], dict[str, str]]
) -> None:
    vendor, kind = SQL[database], ALL[name]
    size = 16 if form == "uuid" else kind.size
    expected = cells[name, form][database]
    for dialect in DIALECTS[vendor]:
        table = Table("t", MetaData(), Column("id", type_of(name, form)))
        statement = str(CreateTable(table).compile(dialect=dialect))
        assert plain(statement.split("id ", 1)[1].strip().removesuffix("\n)"), vendor, size) == expected
    connection = SimpleNamespace(vendor=vendor, ops=SimpleNamespace(quote_name=str))
    field = field_of(name, form)
    field.column = "id"
    check = field.db_check(connection)
    sql = field.db_type(connection) + (f" CHECK ({check})" if check else "")
    assert plain(sql, vendor, size) == expected
    assert field.rel_db_type(connection) == field.db_type(connection)


@each
@pytest.mark.parametrize("vendor", DIALECTS)
def test_two_adapters_give_a_driver_one_value(name: str, form: StorageForm, vendor: str) -> None:
    one = sample(name)
    [dialect, *_] = DIALECTS[vendor]
    bound = forms_written(type_of(name, form), dialect, one)
    connection = SimpleNamespace(vendor=vendor, Database=SimpleNamespace(Binary=bytes))
    assert field_of(name, form).get_db_prep_value(one, connection) == bound
    assert type(bound) is {"bytes": bytes, "text": str, "uuid": UUID if vendor == "postgresql" else bytes}.get(
        form, str if (name, vendor) == ("snowflake of 64 bits", "sqlite") else int
    )
    read: Any = type_of(name, form).result_processor(dialect, None)
    assert read(bound) == field_of(name, form).from_db_value(bound, None, connection) == one


def forms_written(stored: Any, dialect: Dialect, one: Any) -> Any:
    """Return the value before the processing of SQLAlchemy, which wraps bytes for some drivers."""
    from mintage.formats.storage import writer_of

    return writer_of(stored.kind, stored.form, dialect.name)(stored._checked(one))


def test_migration_of_a_column_to_uuids_keeps_its_ids(postgresql: PostgreSQL) -> None:
    [statement] = re.findall(r'"(ALTER .*?)"\s+"(.*?)"', STORAGE.read_text("utf-8"))
    minted = [locality.new() for _ in range(20)]
    with psycopg.connect(postgresql.url) as connection:
        connection.execute("CREATE TABLE shop_order (place bytea CHECK (octet_length(place) = 16))")
        mintage.ext.psycopg.register(connection, forms={locality.ID: "bytes"})
        connection.cursor().executemany("INSERT INTO shop_order VALUES (%s)", [(one,) for one in minted])
        connection.execute("".join(statement))
        mintage.ext.psycopg.register(connection, load={"uuid": locality.ID})
        assert {row[0] for row in connection.execute("SELECT place FROM shop_order")} == set(minted)
        connection.execute("INSERT INTO shop_order VALUES (%s)", (locality.new(),))


# Drivers.


@pytest.fixture(scope="module")
def sent() -> dict[str, dict[str, str]]:
    """Return the table of parameters, by adapter."""
    _, (head, rows), *_ = read_tables()
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def of_bytes() -> Iterator[Any]:
    for name, kind in ALL.items():
        for form in storage_forms(kind):
            if kind.python in CLASSES:
                yield pytest.param(name, form, id=f"{name}-{form}")


def binary(form: StorageForm, one: Any) -> bytes:
    """Return the bytes of a form, if it has some."""
    written = WRITERS[form](one)
    return written.bytes if isinstance(written, UUID) else bytes(written)


def as_psycopg(python: type[Any], form: StorageForm, one: Any) -> str:
    context: Any = SimpleNamespace(adapters=AdaptersMap(psycopg.adapters), connection=None)
    mintage.ext.psycopg.register(context, forms={python: form})
    dumper = context.adapters.get_dumper(python, PyFormat.BINARY)(python, context)
    assert dumper.dump(one) == (str(one).encode() if form == "text" else binary(form, one))
    return str(psycopg.adapters.types[dumper.oid].name)


def as_psycopg2(python: type[Any], form: StorageForm, one: Any) -> str:
    mintage.ext.psycopg2.register(forms={python: form})
    adapt: Any = psycopg2.extensions.adapt
    quoted = adapt(one).getquoted().decode()
    assert form == "bytes" or str(WRITERS[form](one)) in quoted
    return "bytea" if quoted.endswith("::bytea") else "uuid" if quoted.endswith("::uuid") else "text"


def as_pymysql(python: type[Any], form: StorageForm, one: Any) -> str:
    connection: Any = SimpleNamespace(encoders={})
    mintage.ext.pymysql.register(connection, forms={python: form})
    quoted = converters.escape_item(one, "utf8mb4", connection.encoders)
    assert quoted == (f"'{one}'" if form == "text" else f"X'{binary(form, one).hex()}'")
    return "bytes" if quoted.startswith("X") else "text"


def as_sqlite3(python: type[Any], form: StorageForm, one: Any) -> str:
    mintage.ext.sqlite3.register(forms={python: form})
    database = sqlite3.connect(":memory:")
    value, name = database.execute("SELECT ?1, typeof(?1)", (one,)).fetchone()
    database.close()
    assert value == (str(one) if form == "text" else binary(form, one))
    return str(name)


def as_asyncpg(_: type[Any], form: StorageForm, one: Any) -> str:
    name = {"bytes": "bytea", "uuid": "uuid", "text": "text"}[form]
    codecs = {}

    class Connection:
        async def set_type_codec(self, name: str, **how: Any) -> None:
            codecs[name] = how["encoder"]

    asyncio.run(mintage.ext.asyncpg.register(Connection(), types=[name]))
    assert codecs[name](one) == (str(one) if form == "text" else binary(form, one))
    return name


DRIVERS: Final = {
    "psycopg": as_psycopg,
    "psycopg2": as_psycopg2,
    "asyncpg": as_asyncpg,
    "PyMySQL": as_pymysql,
    "sqlite3": as_sqlite3,
}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("name", "form"), list(of_bytes()))
def test_driver_values_equal_the_documented_ones(
    driver: str, name: str, form: StorageForm, sent: dict[str, dict[str, str]]
) -> None:
    assert asyncpg
    assert list(sent) == list(DRIVERS)
    one = sample(name)
    assert DRIVERS[driver](ALL[name].python, form, one) == sent[driver][form]


# Frames.


@pytest.mark.parametrize("name", [name for name in ALL if name != "snowflake of 64 bits"])
def test_frame_column_types_equal_the_documented_ones(name: str, cells: dict[tuple[str, str], dict[str, str]]) -> None:
    generator: Any = typeid.Generator("user") if name == "typeid" else name
    for form in get_args(StorageForm):
        if (name, form) not in cells:
            continue
        row = {frame: cells[name, form][frame] for frame in FRAMES}
        if form == "uuid" or (name == "typeid" and form != "text"):
            assert set(row.values()) == {"–"}
            continue
        as_text = form == "text"
        table = in_arrow.with_id(pa.table({"x": [1, 2]}), generator, as_text=as_text)
        frame = in_pandas.with_id(pd.DataFrame({"x": [1, 2]}), generator, as_text=as_text)
        polars = in_polars.with_id(pl.DataFrame({"x": [1, 2]}), generator, as_text=as_text)
        rows: Any = duckdb.sql("SELECT unnest([1, 2]) AS x")
        relation = in_duckdb.with_id(rows, generator, as_text=as_text)
        found = [table.schema.field("id").type, frame["id"].dtype, polars.schema["id"], relation.types[0]]
        assert list(map(str, found)) == list(row.values())
