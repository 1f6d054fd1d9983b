"""Tests of database drivers: they take IDs as parameters and, on request, return them."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid4

import asyncpg
import psycopg
import psycopg2
import pymysql
import pytest
from psycopg import pq, sql
from psycopg2 import extensions
from pymysql import converters

import mintage.ext.asyncpg
import mintage.ext.psycopg
import mintage.ext.psycopg2
import mintage.ext.pymysql
import mintage.ext.sqlite3
from mintage import sno, snowflake, typeid, ulid, uuid, xid
from mintage.errors import ArgumentError, ConfigError, ParseError
from mintage.formats.annotations import BY_CLASS, TypeID, TypeIDs
from mintage.formats.cast import cast
from mintage.formats.kinds import KINDS, Kind
from mintage.formats.storage import WRITERS, StorageForm, column_of, storage_forms

if TYPE_CHECKING:
    from tests.servers import MariaDB, PostgreSQL

pytestmark = pytest.mark.usefixtures("registrations_end")

EVERY: list[tuple[type[Any], StorageForm]] = [
    (python, form) for python, kind in BY_CLASS.items() for form in storage_forms(kind)
]
POSTGRESQL = {"bytes": "bytea", "uuid": "uuid", "text": "text"}
DECLARED = {"bytes": "", "uuid": "BLOB", "text": "TEXT"}
MARIADB = {"bytes": "VARBINARY(20)", "uuid": "BINARY(16)", "text": "CHAR(40) CHARACTER SET ascii COLLATE ascii_bin"}


def some(python: type[Any], count: int = 20) -> list[Any]:
    kind = BY_CLASS[python]
    return [python.from_int(0), python.from_int(kind.max), *(kind.new() for _ in range(count))]


def mariadb_connection(mariadb: MariaDB) -> Any:
    url = urlsplit(mariadb.url)
    return pymysql.connect(
        host=url.hostname,
        port=url.port or 0,
        user=url.username,
        password=unquote(url.password or ""),
        database="mintage",
    )


def test_driver_classes_equal_the_list_of_kinds() -> None:
    assert set(BY_CLASS) == {kind.python for kind in KINDS.values()} - {int, str}


# ----------------------------------------------------------------------------------------------------------- psycopg 3


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg_sends_and_reads_every_form(binary: bool, postgresql: PostgreSQL) -> None:
    marker = "%b" if binary else "%t"
    with psycopg.connect(postgresql.url) as connection:
        for python, form in EVERY:
            type_, minted = POSTGRESQL[form], some(python)
            connection.execute(f"CREATE TEMPORARY TABLE t (id {type_} PRIMARY KEY) ON COMMIT DROP")
            mintage.ext.psycopg.register(connection, forms={python: form})
            cursor = connection.cursor(binary=binary)
            cursor.executemany(f"INSERT INTO t VALUES ({marker})", [(one,) for one in minted])
            stored = cursor.execute(
                'SELECT id FROM t ORDER BY id COLLATE "C"' if form == "text" else "SELECT id FROM t ORDER BY id"
            )
            assert [row[0] for row in stored] == [WRITERS[form](one) for one in sorted(minted)]
            mintage.ext.psycopg.register(cursor, forms={python: form}, load={type_: python})
            cursor.execute(f"SELECT id, NULL::{type_} FROM t WHERE id = {marker}", (minted[3],))
            assert cursor.fetchall() == [(minted[3], None)]
            quoted = sql.SQL("SELECT id FROM t WHERE id = {}").format(minted[4])
            assert cursor.execute(quoted).fetchall() == [(minted[4],)]
            assert cursor.execute("SELECT count(*) FROM t WHERE id = ANY(%s)", (minted[:3],)).fetchone() == (3,)
            connection.rollback()


def test_psycopg_reads_a_domain_as_its_base_type(postgresql: PostgreSQL) -> None:
    with psycopg.connect(postgresql.url, autocommit=True) as connection:
        connection.execute("CREATE DOMAIN sno AS bytea CHECK (octet_length(value) = 10)")
        connection.execute("CREATE TABLE t (id sno PRIMARY KEY)")
        mintage.ext.psycopg.register(connection, load={"bytea": sno.ID})
        one = sno.new()
        connection.execute("INSERT INTO t VALUES (%s)", (one,))
        assert connection.execute("SELECT id FROM t").fetchall() == [(one,)]
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute("INSERT INTO t VALUES (%s)", (ulid.new(),))
        with pytest.raises(ParseError):
            connection.execute(r"SELECT '\x00'::bytea").fetchall()


def test_psycopg_copies_ids_in(postgresql: PostgreSQL) -> None:
    with psycopg.connect(postgresql.url) as connection:
        mintage.ext.psycopg.register(connection)
        connection.execute("CREATE TEMPORARY TABLE t (id bytea, key uuid)")
        rows = [(sno.new(), uuid.ID.from_uuid(uuid4())) for _ in range(50)]
        for how in ("COPY t FROM STDIN", "COPY t FROM STDIN (FORMAT BINARY)"):
            with connection.cursor() as cursor, cursor.copy(how) as copy:
                if "BINARY" in how:
                    copy.set_types(["bytea", "uuid"])
                for row in rows:
                    copy.write_row(row)
        found = connection.execute("SELECT id, key FROM t").fetchall()
        assert found == [(bytes(one), key.as_uuid()) for one, key in rows] * 2


def test_psycopg_asyncio_is_configured_alike(postgresql: PostgreSQL) -> None:
    async def use() -> None:
        async with await psycopg.AsyncConnection.connect(postgresql.url) as connection:
            mintage.ext.psycopg.register(connection, load={"bytea": xid.ID})
            one = xid.new()
            cursor = await connection.execute("SELECT %s", (one,))
            assert await cursor.fetchone() == (one,)

    asyncio.run(use())


def test_django_ulid_61_psycopg_adapts_ids(postgresql: PostgreSQL) -> None:
    one = ulid.new()
    with psycopg.connect(postgresql.url) as connection:
        with pytest.raises(psycopg.ProgrammingError, match="cannot adapt type"):
            connection.execute("SELECT %s", (one,))
        mintage.ext.psycopg.register(connection)
        assert connection.execute("SELECT %s", (one,)).fetchone() == (bytes(one),)
        assert connection.execute("SELECT %s", (snowflake.new(),)).fetchone()


# ------------------------------------------------------------------------------------------------------------ psycopg2


@pytest.mark.usefixtures("registrations_end")
def test_psycopg_refuses_a_class_without_a_form_at_any_level(postgresql: PostgreSQL) -> None:
    with psycopg.connect(postgresql.url) as connection:
        mintage.ext.psycopg.register(connection)
        with connection.cursor() as cursor:
            mintage.ext.psycopg.register(cursor, forms={sno.ID: None})
            for placeholder in ("%s", "%b", "%t"):
                with pytest.raises(ArgumentError, match="has several storage forms here"):
                    cursor.execute(f"SELECT {placeholder}", [sno.ID.ZERO])


def test_psycopg2_sends_and_reads_every_form(postgresql: PostgreSQL) -> None:
    with closing(psycopg2.connect(postgresql.url)) as connection:
        for python, form in EVERY:
            type_, minted = POSTGRESQL[form], some(python)
            mintage.ext.psycopg2.register(forms={python: form})
            cursor = connection.cursor()
            cursor.execute(f"CREATE TEMPORARY TABLE t (id {type_} PRIMARY KEY)")
            cursor.executemany("INSERT INTO t VALUES (%s)", [(one,) for one in minted])
            cursor.execute("SELECT id FROM t")
            stored = {bytes(row[0]) if form == "bytes" else row[0] for row in cursor}
            assert stored == {str(WRITERS[form](one)) if form != "bytes" else bytes(one) for one in minted}
            mintage.ext.psycopg2.register(cursor, forms={python: form}, load={type_: python})
            cursor.execute(f"SELECT id, NULL::{type_} FROM t WHERE id = %s", (minted[3],))
            assert cursor.fetchall() == [(minted[3], None)]
            cursor.execute("SELECT count(*) FROM t WHERE id IN %s", (tuple(minted[:3]),))
            assert cursor.fetchone() == (3,)
            connection.rollback()


def test_django_ulid_61_psycopg2_adapts_ids(postgresql: PostgreSQL) -> None:
    one = ulid.new()
    with closing(psycopg2.connect(postgresql.url)) as connection, connection.cursor() as cursor:
        with pytest.raises(psycopg2.ProgrammingError, match="can't adapt type"):
            cursor.execute("SELECT %s", (one,))
        connection.rollback()
        mintage.ext.psycopg2.register()
        cursor.execute("SELECT %s", (one,))
        assert bytes(cursor.fetchone()[0]) == bytes(one)


def documented(of: Kind, form: StorageForm) -> str:
    """Return the column that the page of storage forms names, with the check of a length."""
    column = column_of(of, form, "postgresql")
    if column.type == "bytea":
        return f"bytea CHECK (octet_length(id) = {column.size})"
    return f"char({column.size})" if column.type == "char" else column.type


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_postgresql_refuses_an_id_in_a_documented_column_of_another_form(driver: str, postgresql: PostgreSQL) -> None:
    """It assigns each type to text. So the lengths of the documented columns must refuse bytes and UUIDs."""
    library: Any = {"psycopg": psycopg, "psycopg2": psycopg2}[driver]
    kinds: list[Kind] = [*BY_CLASS.values(), TypeIDs("user")]
    stored_wrongly = set()
    with closing(library.connect(postgresql.url)) as connection:
        for kind in kinds:
            for sent, form in product(storage_forms(kind), repeat=2):
                mintage.ext.psycopg2.register(forms={kind.python: sent})
                if driver == "psycopg":
                    mintage.ext.psycopg.register(connection, forms={kind.python: sent})
                cursor, one = connection.cursor(), kind.new()
                cursor.execute(f"CREATE TEMPORARY TABLE t (id {documented(kind, form)})")
                try:
                    cursor.execute("INSERT INTO t VALUES (%s)", (one,))
                except library.Error:
                    assert sent != form
                else:
                    cursor.execute("SELECT id FROM t")
                    plain: Any = bytes if form == "bytes" else str
                    if plain(cursor.fetchone()[0]) != plain(WRITERS[form](one)):
                        stored_wrongly.add((kind.name, sent, form))
                connection.rollback()
    # `\x` and 32 digits fit in the 36 characters of a UUID.
    assert stored_wrongly == {("uuid", "bytes", "text"), ("locality", "bytes", "text")}


# ------------------------------------------------------------------------------------------------------------- asyncpg


def test_asyncpg_sends_ids_in_the_form_of_their_column(postgresql: PostgreSQL) -> None:
    async def use() -> None:
        connection = await asyncpg.connect(postgresql.url)
        try:
            await mintage.ext.asyncpg.register(connection, types=("bytea", "uuid", "text", "bpchar"))
            for python, form in EVERY:
                minted = some(python)
                name = f"{BY_CLASS[python].name}_{form}"
                await connection.execute(f"CREATE TEMPORARY TABLE {name} (id {POSTGRESQL[form]} PRIMARY KEY)")
                await connection.executemany(f"INSERT INTO {name} VALUES ($1)", [(one,) for one in minted])
                found = await connection.fetch(f"SELECT id FROM {name}")
                assert {row["id"] for row in found} == {WRITERS[form](one) for one in minted}
                assert await connection.fetchval(f"SELECT id FROM {name} WHERE id = $1", minted[2]) == WRITERS[form](
                    minted[2]
                )
                if form != "text":  # asyncpg has a codec of its own for text[]
                    found = await connection.fetchval(f"SELECT count(*) FROM {name} WHERE id = ANY($1)", minted[:3])
                    assert found == 3
            await mintage.ext.asyncpg.register(connection, load={"bytea": sno.ID, "uuid": uuid.ID})
            one, key = sno.new(), uuid.new()
            row = await connection.fetchrow("SELECT $1::bytea AS a, $2::uuid AS b, NULL::uuid AS c", one, key)
            assert tuple(row) == (one, key, None)
        finally:
            await connection.close()

    asyncio.run(use())


def test_asyncpg_sends_other_values_as_before(postgresql: PostgreSQL) -> None:
    async def use() -> None:
        async with asyncpg.create_pool(postgresql.url, init=mintage.ext.asyncpg.register, min_size=1) as pool:
            key = uuid4()
            row = await pool.fetchrow("SELECT $1::bytea, $2::uuid, $3::uuid, $4::text", b"x", key, str(key), "y")
            assert tuple(row) == (b"x", key, key, "y")
            # `bytes(5)` would be five zeros.
            for type_, wrong in (("bytea", 5), ("bytea", "x"), ("uuid", 5), ("uuid", "x")):
                with pytest.raises((asyncpg.DataError, TypeError)):
                    await pool.fetchval(f"SELECT $1::{type_}", wrong)

    asyncio.run(use())


def test_asyncpg_sends_text_only_to_text_columns(postgresql: PostgreSQL) -> None:
    async def use() -> None:
        connection = await asyncpg.connect(postgresql.url)
        try:
            await mintage.ext.asyncpg.register(connection, types=["varchar"])
            assert await connection.fetchval("SELECT $1::varchar", ulid.ID.from_int(0)) == "0" * 26
            with pytest.raises(asyncpg.DataError):
                await connection.fetchval("SELECT $1::varchar", 5)
        finally:
            await connection.close()

    asyncio.run(use())


def test_asyncpg_writes_a_domain_and_django_ulid_61_ids_are_encoded(postgresql: PostgreSQL) -> None:
    async def use() -> None:
        connection = await asyncpg.connect(postgresql.url)
        try:
            await connection.execute("CREATE DOMAIN sno AS bytea CHECK (octet_length(value) = 10)")
            await connection.execute("CREATE TABLE t (id sno PRIMARY KEY)")
            one = sno.new()
            with pytest.raises(asyncpg.DataError):
                await connection.execute("INSERT INTO t VALUES ($1)", one)
            await mintage.ext.asyncpg.register(connection)
            await connection.execute("INSERT INTO t VALUES ($1)", one)
            assert await connection.fetchval("SELECT id FROM t") == bytes(one)
            with pytest.raises(asyncpg.CheckViolationError):
                await connection.execute("INSERT INTO t VALUES ($1)", bytes(9))
        finally:
            await connection.close()

    asyncio.run(use())


# ------------------------------------------------------------------------------------------------------------- PyMySQL


def test_pymysql_sends_every_form(mariadb: MariaDB) -> None:
    with closing(mariadb_connection(mariadb)) as connection, connection.cursor() as cursor:
        for python, form in EVERY:
            minted = some(python)
            mintage.ext.pymysql.register(connection, forms={python: form})
            cursor.execute(f"CREATE TEMPORARY TABLE t (id {MARIADB[form]} PRIMARY KEY)")
            cursor.executemany("INSERT INTO t VALUES (%s)", [(one,) for one in minted])
            cursor.execute("SELECT id FROM t ORDER BY id")
            stored = [row[0] for row in cursor.fetchall()]
            expected = [WRITERS[form](one) for one in sorted(minted)]
            assert stored == [each.bytes if isinstance(each, UUID) else each for each in expected]
            cursor.execute("SELECT count(*) FROM t WHERE id IN %s", (minted[:3],))
            assert cursor.fetchone() == (3,)
            cursor.execute("DROP TABLE t")


def test_django_ulid_61_pymysql_adapts_ids_of_later_connections(mariadb: MariaDB) -> None:
    one = ulid.new()

    def sent() -> Any:
        with closing(mariadb_connection(mariadb)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT %s", (one,))
            return cursor.fetchone()[0]

    # Nothing is raised: it would be cut where 16 bytes fit.
    assert sent() == str(one)
    mintage.ext.pymysql.register()
    assert sent() == bytes(one)


# ------------------------------------------------------------------------------------------------------------- sqlite3


@pytest.mark.parametrize(
    ("python", "form"), EVERY, ids=lambda value: value if isinstance(value, str) else value.__module__
)
def test_sqlite3_sends_and_reads_every_form(python: type[Any], form: StorageForm) -> None:
    mintage.ext.sqlite3.register(forms={python: form})
    minted = some(python)
    with closing(sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)) as database:
        database.execute(f"CREATE TABLE t (id {BY_CLASS[python].title} {DECLARED[form]} PRIMARY KEY)")
        database.executemany("INSERT INTO t VALUES (?)", [(one,) for one in minted])
        assert [row[0] for row in database.execute("SELECT id FROM t ORDER BY id")] == sorted(minted)
        assert database.execute("SELECT typeof(id) FROM t LIMIT 1").fetchone() == (
            "text" if form == "text" else "blob",
        )
        assert database.execute("SELECT id FROM t WHERE id = ?", (minted[3],)).fetchone() == (minted[3],)
        database.execute("DELETE FROM t")
        database.execute("INSERT INTO t VALUES (?)", (b"\xff",))
        with pytest.raises((ParseError, ValueError)):
            database.execute("SELECT id FROM t").fetchall()


def test_django_ulid_61_sqlite3_adapts_ids() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        with pytest.raises((sqlite3.ProgrammingError, sqlite3.InterfaceError)):
            database.execute("SELECT ?", (xid.new(),))
        mintage.ext.sqlite3.register()
        one = xid.new()
        assert database.execute("SELECT ?", (one,)).fetchone() == (bytes(one),)


# ------------------------------------------------------------------------------------------------------------- TypeIDs


def test_drivers_send_typeids_and_read_those_of_a_prefix(postgresql: PostgreSQL, mariadb: MariaDB) -> None:
    one = typeid.new("user")
    with psycopg.connect(postgresql.url) as connection:
        mintage.ext.psycopg.register(connection, load={"uuid": TypeID("user"), "text": typeid.ID})
        assert connection.execute("SELECT %s, %s::text", (one, str(one))).fetchone() == (one, one)
    with closing(psycopg2.connect(postgresql.url)) as old, old.cursor() as cursor:
        mintage.ext.psycopg2.register(cursor, load={"uuid": TypeID("user")})
        cursor.execute("SELECT %s", (one,))
        assert cursor.fetchone() == (one,)
    with closing(mariadb_connection(mariadb)) as connection, connection.cursor() as cursor:
        mintage.ext.pymysql.register(connection)
        cursor.execute("SELECT %s", (one,))
        assert cursor.fetchone() == (bytes(one),)

    async def use() -> None:
        connection = await asyncpg.connect(postgresql.url)
        await mintage.ext.asyncpg.register(connection, load={"uuid": TypeID("user")})
        assert await connection.fetchval("SELECT $1::uuid", one) == one
        await connection.close()

    asyncio.run(use())
    mintage.ext.sqlite3.register(forms={typeid.ID: "text"})
    with closing(sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)) as database:
        database.execute("CREATE TABLE t (id TYPEID TEXT)")
        database.execute("INSERT INTO t VALUES (?)", (one,))
        assert database.execute("SELECT id FROM t").fetchone() == (one,)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_typeid_is_not_loaded_without_its_prefix(driver: str) -> None:
    register: Any = getattr(mintage.ext, driver).register
    for name in ("uuid", "bytea"):
        with pytest.raises(ArgumentError, match="holds no prefix"):
            register(load={name: typeid.ID})


# --------------------------------------------------------------------------------------------------------------- wrong


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pymysql", "sqlite3"])
def test_invalid_form_is_refused_and_registers_nothing(driver: str) -> None:
    register: Any = getattr(mintage.ext, driver).register
    before = [dict(each) for each in (extensions.adapters, sqlite3.adapters, converters.encoders)]
    for wrong in ({xid.ID: "uuid"}, {sno.ID: "hex"}, {sno.ID: 3}):
        with pytest.raises(ConfigError) as caught:
            register(forms=wrong)
        assert caught.value.code == "config.form"
    for other in (int, str, UUID, "sno", None):
        with pytest.raises(ArgumentError):
            register(forms={other: "bytes"})
    assert [extensions.adapters, sqlite3.adapters, converters.encoders] == before
    with pytest.raises(psycopg.ProgrammingError):
        psycopg.adapters.get_dumper(xid.ID, psycopg.adapt.PyFormat.from_pq(pq.Format.TEXT))


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_invalid_load_option_is_refused(driver: str) -> None:
    register: Any = getattr(mintage.ext, driver).register
    for wrong in ({"int8": sno.ID}, {"bytea": int}, {"sno": sno.ID}, {"bytea": None}):
        with pytest.raises(ArgumentError) as caught:
            register(load=wrong)
        assert caught.value.code == "argument.type"


def test_cast_value_equals_the_stored_value() -> None:
    assert WRITERS["uuid"](ulid.ID.from_int(5)) == cast(ulid.ID.from_int(5), UUID) == UUID(int=5)


# ---------------------------------------------------------------------------------------------------------------- docs


def snippet(marker: str) -> str:
    """Return the block of the documentation that contains these words."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "databases.md").read_text(encoding="utf-8")
    [found] = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if marker in block]
    return str(found)


@pytest.mark.parametrize("marker", ["psycopg.connect", "psycopg2.connect", "asyncpg.create_pool"])
def test_documentation_of_a_driver_runs(marker: str, postgresql: PostgreSQL) -> None:
    source = snippet(marker).replace("postgresql://localhost/shop", postgresql.url)
    assert postgresql.url in source
    exec(source, {})


def test_documentation_of_pymysql_runs(mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = mariadb_connection(mariadb)
    monkeypatch.setattr(pymysql, "connect", lambda **_: ready)
    exec(snippet("pymysql.connect"), {})
