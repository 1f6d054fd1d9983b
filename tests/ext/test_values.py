"""Tests of the table of IDs by value in docs/reference/storage.md, cell by cell, on the real packages.

A row is a path through a tool, and a column an ID of one kind. ``yes`` works as it is; ``register`` and ``recipe`` fail
without the call or the recipe of the linked section, and work with it; the name of an error is raised. The rows of
Django run in a process of their own, ``django_project/by_value.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import io
import json
import logging
import pickle
import re
import sqlite3
import sys
from contextlib import closing, suppress
from functools import cache, partial
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, NewType
from unittest import SkipTest
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid4

import asyncpg
import attrs
import bson
import cattrs
import click
import duckdb
import elasticsearch
import fastapi
import fastavro
import httpx
import kombu.utils.json
import marshmallow
import msgspec
import orjson
import pandas as pd
import polars as pl
import psycopg
import psycopg2
import psycopg2.extras
import pyarrow as pa
import pydantic
import pymysql
import pytest
import redis
import sqlalchemy as sa
import sqlmodel
import strawberry
import structlog
import typer
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from bson.codec_options import CodecOptions
from click.testing import CliRunner
from fastapi import encoders
from psycopg2 import extensions
from strawberry.schema.config import StrawberryConfig
from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser
from typer.testing import CliRunner as TyperRunner

import mintage.ext.asyncpg
import mintage.ext.cattrs
import mintage.ext.click
import mintage.ext.fastapi
import mintage.ext.kombu
import mintage.ext.msgspec
import mintage.ext.psycopg
import mintage.ext.psycopg2
import mintage.ext.pymongo
import mintage.ext.pymysql
import mintage.ext.sqlalchemy as types
import mintage.ext.sqlite3
from mintage import sno, snowflake, ulid, uuid
from mintage.ext.json import default
from mintage.ext.kinds import json_reader, reader
from mintage.formats.storage import CLASSES
from tests.helpers.markdown import STORAGE, values_by_path
from tests.helpers.optional import mysqlclient

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("nothing_is_registered")

MINT: Final[dict[str, tuple[str, Callable[[], Any]]]] = {
    "sno": ("sno, ulid, …", sno.new),
    "ulid": ("sno, ulid, …", ulid.new),
    "uuid": ("uuid", uuid.new),
    "snowflake": ("snowflake", snowflake.new),
    "uuid.UUID": ("uuid.UUID", uuid4),
}
"""The column of an ID, and the function that mints one."""
HOW_TO: Final = STORAGE.parents[1] / "how-to"
COLUMNS: Final = {
    sno.ID: ("bytea", "BINARY(10)", types.SnoType),
    ulid.ID: ("bytea", "BINARY(16)", types.ULIDType),
    uuid.ID: ("uuid", "BINARY(16)", types.UUIDType),
    int: ("bigint", "BIGINT", types.SnowflakeType),
    UUID: ("uuid", "CHAR(36)", sa.Uuid),
}
"""By class of a value, the column in PostgreSQL, in MariaDB and SQLite, and in SQLAlchemy."""


class World(NamedTuple):
    """The servers that paths need beside the value."""

    request: pytest.FixtureRequest

    def psycopg(self) -> psycopg.Connection[Any]:
        """Return a connection of psycopg 3."""
        return psycopg.connect(self.request.getfixturevalue("postgresql").url)

    def mysql(self, driver: Any) -> Any:
        """Return a connection of PyMySQL or mysqlclient."""
        url = urlsplit(self.request.getfixturevalue("mariadb").url)
        where = {"host": url.hostname, "port": url.port, "user": url.username, "database": "mintage"}
        return driver.connect(**where, password=unquote(url.password or ""))

    def engine(self, name: str, **options: Any) -> sa.Engine:
        """Return an engine of SQLAlchemy."""
        if name == "sqlite":
            return sa.create_engine("sqlite://", **options)
        url = sa.make_url(self.request.getfixturevalue(name.partition("+")[0]).url).set(drivername=name)
        return sa.create_engine(url, **options)


PATHS: Final[dict[tuple[str, str], Any]] = {}
"""The function of each row, which raises unless the value passes. If ``helped``, it registers or uses the recipe."""


def path(tool: str, *names: str) -> Callable[[Any], Any]:
    """Make a function that of a row; with several names, it receives the name too."""

    def add(run: Any) -> Any:
        for name in names:
            PATHS[tool, name] = run if len(names) == 1 else partial(run, name)
        return run

    return add


@cache
def recipes(page: str) -> dict[str, Any]:
    """Return what the snippets of a page of how-tos define."""
    document = Sybil([PythonCodeBlockParser(), SkipParser()], path=str(HOW_TO)).parse(HOW_TO / page)
    document.namespace["installed"] = find_spec
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__test__", ModuleType("__test__"))  # where snippets say that they are
        for example in document.examples():
            with suppress(SkipTest):
                example.evaluate()
    return dict(document.namespace)


def same(got: object, expected: object) -> None:
    """Assert that both are equal and of one class."""
    assert (type(got), got) == (type(expected), expected)


# Drivers.


def in_sql(
    connection: Any, declared: str, mark: str, name: str, value: Any, many: Callable[[Any, str, Any], None]
) -> None:
    """Write a value into a table, and find it again, by a cursor of the DB-API."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE by_value (id {declared})")
        insert = f"INSERT INTO by_value VALUES ({mark})"
        if name in ("executemany", "COPY", "execute_values"):
            many(cursor, insert, value)
        else:
            cursor.execute(insert, (value,))
        where = {"IN": (f"id IN {mark}", (value,)), "= ANY": (f"id = ANY({mark})", [value])}
        condition, given = where.get(name, (f"id = {mark}", value))
        cursor.execute(f"SELECT id FROM by_value WHERE {condition}", (given,))
        assert len(cursor.fetchall()) == 1


def executemany(cursor: Any, insert: str, value: Any) -> None:
    cursor.executemany(insert, [(value,)])


@path("psycopg", "parameter", "executemany", "= ANY", "COPY")
def _(name: str, value: Any, helped: bool, world: World) -> None:
    def copy_in(cursor: Any, _: str, value: Any) -> None:
        with cursor.copy("COPY by_value FROM STDIN") as to:
            to.write_row((value,))

    with world.psycopg() as connection:
        if helped:
            mintage.ext.psycopg.register(connection)
        many = copy_in if name == "COPY" else executemany
        in_sql(connection, COLUMNS[type(value)][0], "%s", name, value, many)
        connection.rollback()


@path("psycopg2", "parameter", "executemany", "IN", "= ANY", "execute_values")
def _(name: str, value: Any, helped: bool, world: World) -> None:
    def values(cursor: Any, _: str, value: Any) -> None:
        psycopg2.extras.execute_values(cursor, "INSERT INTO by_value VALUES %s", [(value,)])

    with closing(psycopg2.connect(world.request.getfixturevalue("postgresql").url)) as connection:
        if helped:
            mintage.ext.psycopg2.register(connection)
        many = values if name == "execute_values" else executemany
        in_sql(connection, COLUMNS[type(value)][0], "%s", name, value, many)


@path("asyncpg", "parameter", "executemany", "= ANY", "COPY")
def _(name: str, value: Any, helped: bool, world: World) -> None:
    declared = COLUMNS[type(value)][0]

    async def use() -> None:
        connection = await asyncpg.connect(world.request.getfixturevalue("postgresql").url)
        try:
            if helped:
                await mintage.ext.asyncpg.register(connection)
            await connection.execute(f"CREATE TEMPORARY TABLE by_value (id {declared})")
            if name == "COPY":
                await connection.copy_records_to_table("by_value", records=[(value,)])
            elif name == "executemany":
                await connection.executemany("INSERT INTO by_value VALUES ($1)", [(value,)])
            else:
                await connection.execute("INSERT INTO by_value VALUES ($1)", value)
            condition, given = ("= ANY($1)", [value]) if name == "= ANY" else ("= $1", value)
            assert len(await connection.fetch(f"SELECT id FROM by_value WHERE id {condition}", given)) == 1
        finally:
            await connection.close()

    asyncio.run(use())


@path("PyMySQL", "parameter", "executemany", "IN")
def _(name: str, value: Any, helped: bool, world: World, driver: Any = pymysql) -> None:
    with closing(world.mysql(driver)) as connection:
        if helped:
            mintage.ext.pymysql.register(connection)
        in_sql(connection, COLUMNS[type(value)][1], "%s", name, value, executemany)


@path("mysqlclient", "parameter", "executemany", "IN")
def _(name: str, value: Any, helped: bool, world: World) -> None:
    PATHS["PyMySQL", name](value, helped, world, mysqlclient())


@path("sqlite3", "parameter", "executemany")
def _(name: str, value: Any, helped: bool, world: World) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        if helped:
            mintage.ext.sqlite3.register()
        in_sql(connection, COLUMNS[type(value)][1], "?", name, value, executemany)


@path("DuckDB", "parameter")
def _(value: Any, helped: bool, world: World) -> None:
    declared = {int: "BIGINT", UUID: "UUID", uuid.ID: "UUID"}.get(type(value), "BLOB")
    if helped:
        value = value.as_uuid() if isinstance(value, uuid.ID) else bytes(value)
    with closing(duckdb.connect()) as connection:
        assert connection.execute(f"SELECT ?::{declared} = ?", [value, value]).fetchone() == (True,)


# SQLAlchemy and other ORMs.


@path(
    "SQLAlchemy",
    "column",
    "in_",
    "any_",
    "literal",
    "tuple_",
    "coalesce",
    "case",
    "window function",
    "text",
    "JSON column",
)
def _(name: str, value: Any, helped: bool, world: World) -> None:
    engines = ["postgresql+psycopg"] if name == "any_" else ["sqlite", "postgresql+psycopg", "mariadb+pymysql"]
    for each in engines:
        on_engine(name, value, helped, world, each)


def on_engine(name: str, value: Any, helped: bool, world: World, engine: str) -> None:
    options = {"json_serializer": recipes("sqlalchemy.md")["as_json"]} if helped else {}
    metadata = sa.MetaData()
    key, note = sa.Column("id", COLUMNS[type(value)][2](), primary_key=True), sa.Column("note", sa.JSON)
    table = sa.Table("by_value", metadata, key, note, sa.Column("n", sa.Integer), prefixes=["TEMPORARY"])
    given: Any = [value]
    found: dict[str, Any] = {
        "column": sa.select(key).where(key == value),
        "in_": sa.select(key).where(key.in_([value])),
        "any_": sa.select(key).where(key == sa.any_(given)),
        "literal": sa.select(key).where(key == sa.literal(value)),
        "tuple_": sa.select(key).where(sa.tuple_(table.c.n, key) >= sa.tuple_(1, value)),
        "coalesce": sa.select(key).where(sa.func.coalesce(key, value) == value),
        "case": sa.select(key).where(sa.case((table.c.n == 1, sa.literal(value)), else_=None) == key),
        "window function": sa.select(sa.func.coalesce(sa.func.lag(key, 1, type_=key.type).over(order_by=key), value)),
        "text": sa.text("SELECT id FROM by_value WHERE id = :id").bindparams(id=value).columns(key),
        "JSON column": sa.select(key),
    }
    made = world.engine(engine, **options)
    try:
        with made.connect() as connection:
            table.create(connection)
            noted = {"note": {"id": value}} if name == "JSON column" else {}
            connection.execute(table.insert(), {"id": value, "n": 1, **noted})
            same(connection.scalars(found[name]).one(), value)
            if noted:
                held = value if isinstance(value, int) else str(value)
                assert connection.scalar(sa.select(note)) == {"id": held}
    finally:
        made.dispose()


@path("SQLModel", "field")
def _(value: Any, helped: bool, world: World) -> None:
    key: Any = sqlmodel.Field(sa_type=COLUMNS[type(value)][2], primary_key=True)
    name = f"Row{uuid.new().as_uuid().hex}"
    members = {"__annotations__": {"id": type(value)}, "__module__": __name__, "id": key}
    make: Any = type(sqlmodel.SQLModel)
    row = make(name, (sqlmodel.SQLModel,), members, table=True)
    engine = world.engine("sqlite")
    try:
        row.metadata.create_all(engine, [row.__table__])
        with sqlmodel.Session(engine) as session:
            session.add(row(id=value))
            session.commit()
            same(session.exec(sqlmodel.select(row)).one().id, value)
    finally:
        engine.dispose()
        row.metadata.remove(row.__table__)


@path("peewee", "field")
def _(value: Any, helped: bool, world: World) -> None:
    import peewee

    database: Any = peewee.SqliteDatabase(":memory:")
    usual = {int: peewee.BigIntegerField, UUID: peewee.UUIDField}.get(type(value), peewee.BlobField)
    key = recipes("libraries.md")["IDField"](type(value), primary_key=True) if helped else usual(primary_key=True)
    row: Any = type("Row", (peewee.Model,), {"id": key, "Meta": type("Meta", (), {"database": database})})
    with closing(database):
        row.create_table()
        row.create(id=value)
        same(row.get(row.id == value).id, value)
        same(row.get(row.id.in_([value])).id, value)


@path("Tortoise ORM", "field")
def _(value: Any, helped: bool, world: World) -> None:
    from tortoise import Tortoise, fields, models

    usual = {int: fields.BigIntField, UUID: fields.UUIDField}.get(type(value), fields.CharField)
    options = {"max_length": 40} if usual is fields.CharField else {}
    key = (
        recipes("libraries.md")["IDColumn"](type(value), primary_key=True)
        if helped
        else usual(primary_key=True, **options)
    )
    module: Any = ModuleType("rows")
    row: Any = type("Row", (models.Model,), {"id": key, "__module__": "rows"})
    module.Row = row

    async def use() -> None:
        await Tortoise.init(db_url="sqlite://:memory:", modules={"models": ["rows"]})
        await Tortoise.generate_schemas()
        await row.create(id=value)
        same((await row.get(id=value)).id, value)
        same((await row.get(id__in=[value])).id, value)

    async def ended() -> None:
        try:
            await use()
        finally:
            await Tortoise.close_connections()

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "rows", module)
        asyncio.run(ended())


# Frames.


@path("pandas", "== and isin")
def _(value: Any, helped: bool, world: World) -> None:
    column = pd.Series([value])
    assert (column == value).all()
    assert column.isin([value]).all()


@path("Polars", "lit")
def _(value: Any, helped: bool, world: World) -> None:
    value = bytes(value) if helped else value
    assert pl.DataFrame({"id": [value]}).filter(pl.col("id") == pl.lit(value)).height == 1


@path("pyarrow", "array")
def _(value: Any, helped: bool, world: World) -> None:
    value = bytes(value) if helped else value
    assert pa.array([value]).to_pylist() == [value]


# JSON and other wires.


@path("json", "dumps")
def _(value: Any, helped: bool, world: World) -> None:
    written = json.loads(json.dumps([value], default=default if helped else None))
    assert written == [value if isinstance(value, int) else str(value)]


@path("orjson", "dumps")
def _(value: Any, helped: bool, world: World) -> None:
    written = json.loads(orjson.dumps([value], default=default if helped else None))
    assert written == [value if isinstance(value, int) else str(value)]


@path("msgspec", "JSON", "MessagePack")
def _(name: str, value: Any, helped: bool, world: World) -> None:
    by: Any = msgspec.json if name == "JSON" else msgspec.msgpack
    enc, dec = (mintage.ext.msgspec.enc_hook, mintage.ext.msgspec.dec_hook) if helped else (None, None)
    same(by.decode(by.encode([value], enc_hook=enc), type=list[type(value)], dec_hook=dec), [value])  # type: ignore[misc]


@path("pickle, copy", "any protocol")
def _(value: Any, helped: bool, world: World) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        same(pickle.loads(pickle.dumps(value, protocol)), value)
    same(copy.deepcopy([value, copy.copy(value)]), [value, value])


@path("logging", "message")
def _(value: Any, helped: bool, world: World) -> None:
    assert logging.makeLogRecord({"msg": "paid %s", "args": (value,)}).getMessage() == f"paid {value}"


@path("structlog", "JSONRenderer")
def _(value: Any, helped: bool, world: World) -> None:
    render = recipes("json.md")["render"] if helped else structlog.processors.JSONRenderer()
    written = json.loads(render(None, "info", {"event": "paid", "id": value}))
    assert written["id"] == (value if isinstance(value, int) else str(value))


@path("cattrs", "class")
def _(value: Any, helped: bool, world: World) -> None:
    converter = mintage.ext.cattrs.register(cattrs.Converter()) if helped else cattrs.Converter()
    row: Any = attrs.make_class("Row", {"id": attrs.field(type=type(value))})
    written = converter.unstructure(row(value))
    assert written == {"id": value if isinstance(value, int) else str(value)}
    assert converter.structure(written, row) == row(value)


@path("attrs", "asdict")
def _(value: Any, helped: bool, world: World) -> None:
    same(attrs.asdict(attrs.make_class("Row", ["id"])(value)), {"id": value})


@path("marshmallow", "field")
def _(value: Any, helped: bool, world: World) -> None:
    usual = {int: marshmallow.fields.Integer(strict=True), UUID: marshmallow.fields.UUID()}
    of: Any = snowflake.Str() if isinstance(value, int) else type(value)
    usual_field = usual.get(type(value), marshmallow.fields.Raw())
    fields: dict[str, Any] = {"id": recipes("json.md")["IDField"](of) if helped else usual_field}
    schema = marshmallow.Schema.from_dict(fields)()
    written = json.loads(schema.dumps({"id": value}))
    same(schema.load(written), {"id": value})
    if isinstance(value, int):
        assert written == {"id": str(value)}
    wrongs: list[Any] = ["no", True, 1.5, 4.549477662752229e17, [], "9" * 24]
    for wrong in wrongs:
        with pytest.raises(marshmallow.ValidationError):
            schema.load({"id": wrong})


@path("Pydantic", "declared", "Any", "example of a schema")
def _(name: str, value: Any, helped: bool, world: World) -> None:
    of: Any = Annotated[int, snowflake.Str()] if isinstance(value, int) else type(value)
    field = pydantic.Field(examples=[value]) if name.startswith("example") else pydantic.Field()
    model: Any = pydantic.create_model("Model", id=(Any if name == "Any" else of, field))
    if name.startswith("example"):
        shown = json.loads(json.dumps(model.model_json_schema()))["properties"]["id"]["examples"]
        assert shown == [value if isinstance(value, int) else str(value)]
        return
    written = model(id=value).model_dump_json()
    assert json.loads(written) == {"id": value if (isinstance(value, int) and name == "Any") else str(value)}
    if name == "declared":
        same(model.model_validate_json(written).id, value)


@path("FastAPI", "parameter", "response without a type", "jsonable_encoder", "detail of an HTTPException")
def _(name: str, value: Any, helped: bool, world: World) -> None:
    if helped:
        mintage.ext.fastapi.register()
    plain: Any = value if isinstance(value, int) else str(value)
    if name == "jsonable_encoder":
        assert encoders.jsonable_encoder({"id": value}) == {"id": plain}
        return
    app = fastapi.FastAPI()

    def get(id: Any) -> Any:
        if name.startswith("detail"):
            raise fastapi.HTTPException(400, {"id": value})
        if name == "parameter":
            same(id, value)
            return {"id": plain}
        return {"id": value}

    get.__annotations__ = {"id": type(value)} if name == "parameter" else {"id": str}
    app.get("/{id}")(get)

    async def ask() -> Any:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return (await client.get(f"/{value}")).json()

    answer = asyncio.run(ask())
    assert answer == ({"detail": {"id": plain}} if name.startswith("detail") else {"id": plain})


@path("Litestar", "parameter and response")
def _(value: Any, helped: bool, world: World) -> None:
    import litestar
    import litestar.params
    from litestar.testing import TestClient as Client

    def get(id: Any) -> Any:
        same(id, value)
        return {"id": id}

    get.__annotations__ = {"id": litestar.params.FromPath[type(value)], "return": dict[str, object]}  # type: ignore[misc]
    handler = litestar.get("/{id:str}", sync_to_thread=False)(get)
    known = {type(value): str}
    options: Any = {"type_encoders": known, "type_decoders": [(known.__contains__, mintage.ext.msgspec.dec_hook)]}
    with Client(litestar.Litestar([handler], **(options if helped else {}))) as client:
        assert client.get(f"/{value}").json() == {"id": value if isinstance(value, int) else str(value)}


@path("Strawberry", "scalar")
def _(value: Any, helped: bool, world: World) -> None:
    of: Any = NewType("RowID", int) if isinstance(value, int) else type(value)
    read = json_reader(snowflake.Str() if isinstance(value, int) else of) if helped else None
    known = {of: strawberry.scalar(name="RowID", serialize=str, parse_value=read)} if read else {}
    if isinstance(value, int) and not helped:
        of = int

    class Query:
        def one(self, id: Any) -> Any:
            same(id, value)
            return id

    Query.one.__annotations__ = {"id": of, "return": of}
    setattr(Query, "one", strawberry.field(Query.one))  # noqa: B010
    schema = strawberry.Schema(strawberry.type(Query), config=StrawberryConfig(scalar_map=known))
    answer = schema.execute_sync(f'{{ one(id: "{value}") }}')
    assert answer.data == {"one": str(value)}, answer.errors


@path("Celery, kombu", "JSON")
def _(value: Any, helped: bool, world: World) -> None:
    if helped:
        mintage.ext.kombu.register()
    carried: Any = kombu.utils.json
    same(carried.loads(carried.dumps([value])), [value])


@path("PyMongo", "BSON")
def _(value: Any, helped: bool, world: World) -> None:
    options: Any = CodecOptions(type_registry=mintage.ext.pymongo.type_registry()) if helped else CodecOptions()
    held = bson.decode(bson.encode({"_id": value}, codec_options=options))["_id"]
    if isinstance(held, bson.Binary):
        held = held.as_uuid()
    expected = value.as_uuid() if isinstance(value, uuid.ID) else value if isinstance(value, int) else bytes(value)
    assert held == expected


@path("boto3", "DynamoDB")
def _(value: Any, helped: bool, world: World) -> None:
    item = TypeSerializer().serialize(bytes(value) if helped else value)
    held = TypeDeserializer().deserialize(item)
    assert held == (bytes(value) if helped else value)
    same(reader(snowflake.Str() if isinstance(value, int) else type(value))(getattr(held, "value", held)), value)


@path("Elasticsearch", "document")
def _(value: Any, helped: bool, world: World) -> None:
    by = recipes("libraries.md")["Serializer"]() if helped else elasticsearch.JsonSerializer()
    assert json.loads(by.dumps({"id": value})) == {"id": value if isinstance(value, int) else str(value)}


@path("redis-py", "argument")
def _(value: Any, helped: bool, world: World) -> None:
    connection: Any = redis.Connection
    packed = connection().pack_command("SET", bytes(value) if helped else value, 1)
    assert (str(value).encode() if isinstance(value, int) else bytes(value)) in b"".join(packed)


@path("fastavro", "logical type")
def _(value: Any, helped: bool, world: World) -> None:
    name, size = "sno" if helped else "decimal", len(bytes(value)) if not isinstance(value, (int, UUID)) else 16
    usual = {int: "long", UUID: {"type": "string", "logicalType": "uuid"}}
    fixed = {"type": "fixed", "name": "Fixed", "size": size, "logicalType": name}
    kind: Any = usual.get(type(value), fixed)
    with pytest.MonkeyPatch.context() as patch:
        if helped:
            patch.setitem(fastavro.write.LOGICAL_WRITERS, "fixed-sno", lambda value, _: bytes(value))
            patch.setitem(fastavro.read.LOGICAL_READERS, "fixed-sno", lambda data, *_: type(value)(data))
        schema: Any = fastavro.parse_schema({"type": "record", "name": "Row", "fields": [{"name": "id", "type": kind}]})
        file = io.BytesIO()
        fastavro.schemaless_writer(file, schema, {"id": value})
        file.seek(0)
        same(fastavro.schemaless_reader(file, schema, None), {"id": value})


# Command lines.


@path("argparse", "type")
def _(value: Any, helped: bool, world: World) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("id", type=type(value))
    same(parser.parse_args([str(value)]).id, value)


@path("argparse", "reason of an error")
def _(value: Any, helped: bool, world: World) -> None:
    of: Any = snowflake.Str() if isinstance(value, int) else type(value)
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("id", type=recipes("libraries.md")["id_type"](of) if helped else type(value))
    same(parser.parse_args([str(value)]).id, value)
    with pytest.raises(argparse.ArgumentError, match=r"'no' is no snowflake|2 characters"):
        parser.parse_args(["no"])


REASONS: Final = {
    int: "(is not a valid int|unable to parse string as an int)",
    UUID: "(badly formed|invalid character)",
}
"""Patterns of the message of Click or Typer for the text ``no``."""


@path("Click", "type, with the reason")
def _(value: Any, helped: bool, world: World) -> None:
    got: list[Any] = []

    @click.command()
    @click.argument("id", type=type(value))
    def show(id: Any) -> None:
        got.append(id)

    assert CliRunner().invoke(show, [str(value)]).exit_code == 0
    same(got, [value])
    assert re.search(REASONS.get(type(value), "2 characters"), CliRunner().invoke(show, ["no"]).output)


@path("Typer", "annotation, with the reason")
def _(value: Any, helped: bool, world: World) -> None:
    got: list[Any] = []
    app = typer.Typer()

    def show(id: Any) -> None:
        got.append(id)

    show.__annotations__ = {"id": type(value)}
    app.command()(show)
    assert TyperRunner().invoke(app, [str(value)]).exit_code == 0
    same(got, [value])
    shown = re.sub(r"[\s│]+", " ", TyperRunner().invoke(app, ["no"]).output)
    assert re.search(REASONS.get(type(value), "2 characters"), shown)


# The table.


@pytest.fixture
def nothing_is_registered(registrations_end: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what this process has registered, and the columns that other tests declared, for one test."""
    monkeypatch.setattr(types, "_stored", set())
    tables: list[tuple[Any, list[Any]]] = [
        (encoders.ENCODERS_BY_TYPE, list(CLASSES)),
        (kombu.utils.json._encoders, list(CLASSES)),
        (extensions.adapters, [(UUID, extensions.ISQLQuote)]),
    ]
    for table, keys in tables:
        for key in keys:
            monkeypatch.setitem(table, key, None)  # so that the end of the test restores it
            del table[key]


TABLE: Final = values_by_path()
CELLS: Final = [(*path, name) for path in TABLE if path[0] != "Django" for name in MINT]


def test_table_of_values_has_the_tried_paths_and_kinds() -> None:
    assert [path for path in TABLE if path[0] != "Django"] == list(PATHS)
    assert all(list(cells) == list(dict.fromkeys(kind for kind, _ in MINT.values())) for cells in TABLE.values())


@pytest.mark.parametrize(("tool", "path", "name"), CELLS, ids=map(" ".join, CELLS))
def test_each_path_treats_a_value_as_the_table_says(
    tool: str, path: str, name: str, request: pytest.FixtureRequest
) -> None:
    kind, mint = MINT[name]
    run, cell, world = PATHS[tool, path], TABLE[tool, path][kind], World(request)
    if cell == "yes":
        run(mint(), False, world)
        return
    with pytest.raises(Exception) as caught:  # noqa: PT011
        run(mint(), False, world)
    if cell == "register" or cell.startswith("[recipe]"):
        run(mint(), True, world)
    else:
        error = type(caught.value).__name__
        assert cell == ("no" if error == "AssertionError" else error)


def test_each_recipe_of_the_table_is_a_section_of_a_page() -> None:
    links = {cell for cells in TABLE.values() for cell in cells.values() if "](" in cell}
    for link in links:
        page, _, anchor = link.partition("(")[2].rstrip(")").partition("#")
        headings = re.findall(r"(?m)^#+ (.+)$", (STORAGE.parent / page).read_text("utf-8"))
        assert anchor in [re.sub(r"[^a-z0-9 _-]", "", each.lower()).replace(" ", "-") for each in headings], link
