"""Tests of columns of IDs in every engine and format: filling, decoding, and search by time."""

from __future__ import annotations

import ctypes
import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, MetaData, Table, create_engine, select
from sqlalchemy import text as sql_text

from mintage import Sequence, sno, snowflake, typeid
from mintage.errors import ArgumentError, ConfigError, FieldError, MintError, ParseError
from mintage.ext import columns
from mintage.ext import duckdb as in_duckdb
from mintage.ext import pandas as in_pandas
from mintage.ext import polars as in_polars
from mintage.ext import pyarrow as in_pyarrow
from mintage.ext.pyarrow import _filling
from mintage.ext.sqlalchemy import SnoType, SnowflakeType
from mintage.formats import sql
from mintage.formats.catalogue import FORMATS, LAYOUTS, Format
from mintage.formats.kinds import KINDS, Kind, snowflakes
from mintage.testing import freeze

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import MariaDB, PostgreSQL

MS = 1_000_000
NOON = 1_750_000_000_000 * MS
"""An instant, in nanoseconds."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SORTED = [name for name, kind in KINDS.items() if kind.has_time]

each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


class Engine:
    """Operations of an engine for tests: frames of plain values, and columns as lists."""

    name: str
    module: Any

    def frame(self, **columns: list[Any]) -> Any:
        raise NotImplementedError

    def names(self, frame: Any) -> list[str]:
        return list(frame.columns)

    def values(self, frame: Any, name: str) -> list[Any]:
        return list(self.plain(frame[name]))

    def plain(self, column: Any) -> list[Any]:
        return list(column.to_list())

    def kinds(self, frame: Any) -> dict[str, str]:
        raise NotImplementedError

    def of(self, function: str, frame: Any, *arguments: Any, **options: Any) -> list[Any]:
        """Return the result of one of the four column functions on the column ``id``."""
        return self.plain(getattr(self.module, function)(frame["id"], *arguments, **options))

    def select(self, frame: Any, expression: Any) -> list[Any]:
        """Return the values of an expression."""
        raise NotImplementedError

    def filter(self, frame: Any, condition: Any) -> list[Any]:
        """Return the IDs that satisfy a condition."""
        raise NotImplementedError


class PyArrow(Engine):
    name, module = "pyarrow", in_pyarrow

    def frame(self, **columns: list[Any]) -> Any:
        return pa.table(columns)

    def names(self, frame: Any) -> list[str]:
        return list(frame.column_names)

    def plain(self, column: Any) -> list[Any]:
        return list(column.to_pylist())

    def kinds(self, frame: Any) -> dict[str, str]:
        return {field.name: str(field.type) for field in frame.schema}

    def select(self, frame: Any, expression: Any) -> list[Any]:
        return list(ds.dataset(frame).to_table(columns={"made": expression})["made"].to_pylist())

    def filter(self, frame: Any, condition: Any) -> list[Any]:
        return list(ds.dataset(frame).to_table(filter=condition)["id"].to_pylist())


class RecordBatches(PyArrow):
    name = "record-batch"

    def frame(self, **columns: list[Any]) -> Any:
        return pa.record_batch(columns)

    def names(self, frame: Any) -> list[str]:
        return list(frame.schema.names)

    def select(self, frame: Any, expression: Any) -> list[Any]:
        return super().select(pa.table(frame), expression)

    def filter(self, frame: Any, condition: Any) -> list[Any]:
        return super().filter(pa.table(frame), condition)


class Pandas(Engine):
    name, module = "pandas", in_pandas

    def frame(self, **columns: list[Any]) -> Any:
        binary = {key for key, values in columns.items() if values and isinstance(values[0], bytes)}
        return pd.DataFrame(
            {
                key: pd.Series(values, dtype=pd.ArrowDtype(pa.binary())) if key in binary else values
                for key, values in columns.items()
            }
        )

    def kinds(self, frame: Any) -> dict[str, str]:
        return {key: str(kind) for key, kind in frame.dtypes.items()}

    def select(self, frame: Any, expression: Any) -> list[Any]:
        return list(frame.assign(made=expression)["made"])

    def filter(self, frame: Any, condition: Any) -> list[Any]:
        return list(frame.loc[condition]["id"])


class Polars(Engine):
    name, module = "polars", in_polars

    def frame(self, **columns: list[Any]) -> Any:
        return pl.DataFrame(columns)

    def kinds(self, frame: Any) -> dict[str, str]:
        return {key: str(kind) for key, kind in frame.schema.items()}

    def select(self, frame: Any, expression: Any) -> list[Any]:
        return list(frame.lazy().select(expression.alias("made")).collect()["made"])

    def filter(self, frame: Any, condition: Any) -> list[Any]:
        return list(frame.lazy().filter(condition).collect()["id"])


class DuckDB(Engine):
    name, module = "duckdb", in_duckdb

    def __init__(self) -> None:
        self.connection = duckdb.connect()

    def frame(self, **columns: list[Any]) -> Any:
        return self.connection.from_arrow(pa.table(columns))

    def values(self, frame: Any, name: str) -> list[Any]:
        return [row[0] for row in frame.select(name).fetchall()]

    def kinds(self, frame: Any) -> dict[str, str]:
        return {key: str(kind) for key, kind in zip(frame.columns, frame.types, strict=True)}

    def of(self, function: str, frame: Any, *arguments: Any, **options: Any) -> list[Any]:
        made = getattr(self.module, function)(frame, "id", *arguments, name="made", **options)
        return self.values(made, "made")

    def select(self, frame: Any, expression: Any) -> list[Any]:
        return [row[0] for row in frame.select(expression).fetchall()]

    def filter(self, frame: Any, condition: Any) -> list[Any]:
        return self.values(frame.filter(condition), "id")


ENGINES = (PyArrow, RecordBatches, Pandas, Polars, DuckDB)


@pytest.fixture(params=ENGINES, ids=[engine.name for engine in ENGINES])
def engine(request: pytest.FixtureRequest) -> Engine:
    made: Engine = request.param()
    return made


def of(kind: Kind, **options: Any) -> Any:
    """Return a generator that needs no store."""
    if kind.name == "sno":
        options = {"partition": 7, **options}
    return kind.generator({} if kind.name in ("sno", "snowflake") else {"store": "memory:"}, **options)


def of_the_past(kind: Kind) -> Any:
    """Return a generator that mints IDs of any time."""
    if kind.name in ("sno", "snowflake"):
        return of(kind, **({"node": 3} if kind.layout else {}))
    return kind.generator({"store": "memory:", "never_used": True})


@pytest.fixture
def generator(kind: Kind) -> Iterator[Any]:
    options: dict[str, Any] = {"node": 3} if kind.name == "snowflake" else {}
    made = of(kind, **options)
    yield made
    if hasattr(made, "close"):
        made.close()


def plain(kind: Kind, id: Any) -> Any:
    """Return an ID as columns store it."""
    return id if kind.layout or kind.is_text else bytes(id)


def number(kind: Kind, id: Any) -> int:
    """Return the number from which the core takes fields."""
    return int.from_bytes(id.encode(), "big") if isinstance(id, str) else int(id)


def format_of(kind: Kind, id: Any) -> Format:
    if isinstance(id, str):
        return next((each for each in FORMATS if each.scheme == kind.name and len(id) in each.lengths), kind.format)
    return kind.format


# Filling.


@each_kind
def test_frame_gets_as_many_new_ids_as_rows(engine: Engine, kind: Kind, generator: Any) -> None:
    frame = engine.frame(item=["pen", "ink", None], count=[1, 2, 3])
    made = engine.module.with_id(frame, generator)
    assert engine.names(made) == ["id", "item", "count"]
    assert engine.names(frame) == ["item", "count"]
    assert engine.values(made, "count") == [1, 2, 3]
    ids = [kind.read(each) for each in engine.values(made, "id")]
    assert len(set(ids)) == 3
    if kind.has_time and kind.name != "cuid":
        assert ids == sorted(ids)
    last = engine.module.with_id(made, generator, "again", first=False)
    assert engine.names(last) == ["id", "item", "count", "again"]
    assert not {*ids} & {kind.read(each) for each in engine.values(last, "again")}


@each_kind
def test_ids_are_text_on_request(engine: Engine, kind: Kind, generator: Any) -> None:
    made = engine.module.with_id(engine.frame(item=["pen", "ink"]), generator, as_text=True)
    for value in engine.values(made, "id"):
        assert isinstance(value, str)
        assert str(kind.read(value)) == value


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_named_generator_is_looked_up_at_each_call(kind: Kind) -> None:
    first, second = (frozen_column(kind) for _ in range(2))
    assert first == second
    assert not set(in_pyarrow.new_ids_column(kind.name, 5).to_pylist()) & set(first)


def frozen_column(kind: Kind) -> list[object]:
    with freeze("2027-01-01"):
        ids: list[object] = in_pyarrow.new_ids_column(kind.name, 5).to_pylist()
    return ids


@each_kind
def test_name_or_module_means_the_default_generator(engine: Engine, kind: Kind) -> None:
    frame = engine.frame(item=["pen", "ink"])
    ids = engine.values(engine.module.with_id(frame, kind.name), "id")
    ids += engine.values(engine.module.with_id(frame, kind.module), "id")
    assert len({kind.read(each) for each in ids}) == 4


def test_names_of_schemes_that_nothing_imported_fill_columns() -> None:
    script = (
        "import pyarrow, sys\n"
        "from mintage.ext.pyarrow import with_id\n"
        "for name in sys.argv[1:]:\n"
        "    assert with_id(pyarrow.table({'n': [1, 2]}), name).num_rows == 2"
    )
    subprocess.run([sys.executable, "-c", script, *KINDS], check=True, timeout=60)


@each_kind
def test_frame_without_rows_gets_a_column_of_the_same_type(engine: Engine, kind: Kind, generator: Any) -> None:
    one, none = engine.frame(count=[1]), engine.frame(count=pa.array([], pa.int64()).to_pylist())
    made = engine.module.with_id(none, generator)
    assert engine.values(made, "id") == []
    assert engine.kinds(made)["id"] == engine.kinds(engine.module.with_id(one, generator))["id"]


def test_sequence_and_a_typeid_fill_columns_too(engine: Engine) -> None:
    frame = engine.frame(item=["pen", "ink", "nib"])
    with Sequence("orders", store="memory:") as sequence:
        ids = engine.values(engine.module.with_id(frame, sequence), "id")
        assert ids == [*range(ids[0], ids[0] + 3)]
    with typeid.Generator("order") as source:
        ids = engine.values(engine.module.with_id(frame, source), "id")
    assert [typeid.ID.parse(each).prefix for each in ids] == ["order"] * 3


def test_existing_column_is_not_replaced(engine: Engine) -> None:
    frame = engine.frame(id=[1], item=["pen"])
    with pytest.raises(FieldError, match="there is a column 'id' already") as caught:
        engine.module.with_id(frame, "uuid")
    assert caught.value.code == "field.format"
    with pytest.raises(ArgumentError, match="name must be str, not int"):
        engine.module.with_id(frame, "uuid", 5)


def test_duckdb_column_names_ignore_case() -> None:
    with pytest.raises(FieldError, match="already"):
        in_duckdb.with_id(duckdb.connect().sql("SELECT 1 AS ID"), "uuid")


@pytest.mark.parametrize("wrong", [None, 5, object(), sno.new, lambda: 1, iter(()), np.random.default_rng()])
def test_invalid_generator_is_refused(engine: Engine, wrong: object) -> None:
    with pytest.raises(ArgumentError, match="generator must be one of mintage's"):
        engine.module.with_id(engine.frame(item=["pen"]), wrong)


@pytest.mark.parametrize("wrong", ["", "snow", "store", "x" * 5000])
def test_name_of_no_scheme_is_refused(engine: Engine, wrong: str) -> None:
    with pytest.raises(ConfigError, match="is not one of sno, snowflake") as caught:
        engine.module.with_id(engine.frame(item=["pen"]), wrong)
    assert len(str(caught.value)) < 300


class Liar:
    """An exporter of an array of two IDs with one field of the Arrow structure changed."""

    def __init__(self, place: int, value: int) -> None:
        self.place, self.value = place, value

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        schema, data = pa.array([1, 2], pa.int64()).__arrow_c_array__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        fields = (ctypes.c_int64 * 4).from_address(pointer(data, b"arrow_array"))
        fields[self.place] = self.value
        return schema, data


LENGTH, NULLS, OFFSET, BUFFERS = range(4)


@pytest.mark.parametrize(
    ("place", "value"), [(LENGTH, -1), (LENGTH, 1 << 62), (NULLS, 9), (OFFSET, -5), (BUFFERS, 0), (BUFFERS, 1)]
)
def test_contradictory_column_options_are_refused(place: int, value: int) -> None:
    assert len(in_pyarrow.time_of(Liar(OFFSET, 0), "snowflake")) == 2
    with pytest.raises(ArgumentError, match="column of Liar is no array that Arrow can import"):
        in_pyarrow.time_of(Liar(place, value), "snowflake")


def test_invalid_frame_is_refused(engine: Engine) -> None:
    for wrong in (None, [1, 2], {"item": ["pen"]}, pl.Series([1]), pa.array([1]), pd.Series([1])):
        with pytest.raises(ArgumentError, match="frame must be"):
            engine.module.with_id(wrong, "uuid")


def test_failed_minting_leaves_no_column(engine: Engine) -> None:
    closed = sno.Generator(partition=1)
    closed.close()
    frame = engine.frame(item=["pen"])
    with pytest.raises(MintError):
        engine.module.with_id(frame, closed)
    assert engine.names(frame) == ["item"]


def test_pandas_keeps_its_index() -> None:
    frame = pd.DataFrame({"item": ["pen", "ink"]}, index=["b", "b"])
    made = in_pandas.with_id(frame, "snowflake")
    assert list(made.index) == ["b", "b"]
    assert list(in_pandas.time_of(made["id"], "snowflake").index) == ["b", "b"]


def test_frame_with_rows_and_no_columns_gets_ids() -> None:
    made = in_pandas.with_id(pd.DataFrame(index=range(3)), "snowflake")
    assert made["id"].nunique() == 3


def test_many_rows_are_one_batch_of_different_ids() -> None:
    made = in_polars.with_id(pl.DataFrame({"item": range(200_000)}), sno.Generator(partition=1))
    assert made["id"].n_unique() == 200_000
    assert made["id"].is_sorted()


# Decoding.


def some(kind: Kind) -> list[Any]:
    """Return IDs of several times, if possible, and the smallest and the largest."""
    with_at = of_the_past(kind)
    ids = [kind.new() for _ in range(20)]
    if hasattr(with_at, "new_at"):
        ids += [with_at.new_at(NOON + hour * 3_600_123 * MS) for hour in range(50)]
    if kind.has_time:
        ids += [kind.min_at(NOON), kind.max_at(NOON)]
    return ids


@each_kind
def test_times_of_a_column_are_those_of_its_ids(engine: Engine, kind: Kind) -> None:
    ids = some(kind)
    frame = engine.frame(id=[plain(kind, each) for each in ids])
    if format_of(kind, ids[0]).clock is None:
        with pytest.raises(FieldError, match="holds no time"):
            engine.of("time_of", frame, kind.name)
        return
    told = [format_of(kind, each).time_ns(number(kind, each)) for each in ids]
    assert engine.of("time_of", frame, kind.name) == [
        EPOCH + timedelta(milliseconds=(each or 0) // MS) for each in told
    ]
    if hasattr(ids[0], "time"):
        assert engine.of("time_of", frame, kind.name) == [each.time for each in ids]


@each_kind
def test_nodes_of_a_column_are_those_of_its_ids(engine: Engine, kind: Kind) -> None:
    ids = some(kind)
    frame = engine.frame(id=[plain(kind, each) for each in ids])
    parts = [part for part in kind.format.parts if part.role == "node"]
    if not parts or kind.is_text:
        with pytest.raises(FieldError, match="holds no node number"):
            engine.of("node_of", frame, kind.name)
        return
    wanted = []
    for each in ids:
        fields = {name: (value, high - low + 1) for name, _, (high, low), value, _ in kind.format.fields(int(each))}
        node = 0
        for part in parts:
            value, _ = fields[part.name]
            node = node << part.bits | (int(value, 16) if isinstance(value, str) else value)
        wanted.append(node)
    assert engine.of("node_of", frame, kind.name) == wanted


@each_kind
def test_fields_of_a_column_are_those_of_its_ids(engine: Engine, kind: Kind) -> None:
    ids = some(kind)
    frame = engine.frame(id=[plain(kind, each) for each in ids])
    if kind.is_text:
        with pytest.raises(FieldError, match="is text without fields") as caught:
            engine.of("field_of", frame, kind.name, "random")
        assert caught.value.code == "field.format"
        return
    for part in kind.format.parts:
        if part.bits > 57:
            with pytest.raises(FieldError, match="is not one of its fields of at most 57 bits") as caught:
                engine.of("field_of", frame, kind.name, part.name)
            assert caught.value.code == "field.format"
            continue
        wanted = []
        for each in ids:
            (value,) = (found for name, _, _, found, _ in kind.format.fields(int(each)) if name == part.name)
            wanted.append(int(value, 16) if isinstance(value, str) else value)
        assert engine.of("field_of", frame, kind.name, part.name) == wanted, part.name


def test_metabyte_of_a_column_is_that_of_its_ids(engine: Engine) -> None:
    ids = [sno.new(meta) for meta in (0, 7, 255)]
    assert engine.of("field_of", engine.frame(id=[bytes(each) for each in ids]), "sno", "meta") == [0, 7, 255]


def test_duckdb_uuids_have_times_and_texts() -> None:
    connection = duckdb.connect()
    uuids = [of(KINDS["uuid"]).new() for _ in range(3)]
    rows = ", ".join(f"({at}, '{each}'::UUID)" for at, each in enumerate(uuids))
    for is_lossless in (False, True):
        connection.execute(f"SET arrow_lossless_conversion = {is_lossless}")
        ids = connection.sql(f"FROM (VALUES {rows}, (3, NULL)) AS ids(nr, id) ORDER BY nr")
        times = in_duckdb.time_of(ids, "id", "uuid v7").select("time").fetchall()
        assert times == [*((each.time,) for each in uuids), (None,)]
        texts = in_duckdb.text(ids, "id", "uuid").select("text").fetchall()
        assert texts == [*((str(each),) for each in uuids), (None,)]


@pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT", "NUMERIC(20, 0)", "DECIMAL(38, 0)", "UBIGINT", "BIGINT"])
def test_duckdb_integers_of_each_type_have_times(kind: str) -> None:
    connection = duckdb.connect()
    first = snowflake.DEFAULT.min_at(NOON)
    ids = connection.sql(f"SELECT unnest([{first}, NULL])::{kind} AS id")
    assert in_duckdb.time_of(ids, "id", "snowflake").select("epoch_ms(time)").fetchall() == [(NOON // MS,), (None,)]
    assert in_duckdb.text(ids, "id", "snowflake").select("text").fetchall() == [(str(first),), (None,)]


def test_decimals_and_small_integers_are_read_and_checked(engine: Engine) -> None:
    frame = engine.frame(id=[Decimal(0), Decimal(snowflake.DEFAULT.min_at(NOON))])
    assert engine.of("text", frame, "snowflake") == ["0", str(snowflake.DEFAULT.min_at(NOON))]
    for bad in (Decimal(-1), Decimal(1 << 64)):
        with pytest.raises(FieldError, match=f"row 1: {bad} is outside") as caught:
            engine.of("time_of", engine.frame(id=[Decimal(0), bad]), "discord")
        assert caught.value.code == "field.range"
    assert in_pyarrow.text(pa.array([17], pa.int32()), "snowflake").to_pylist() == ["17"]


def test_refused_column_is_told_what_makes_it_ids(engine: Engine) -> None:
    for scheme in ("sno", "snowflake", "uuid v7"):
        with pytest.raises(ArgumentError, match=": read a column of text with parse first"):
            engine.of("time_of", engine.frame(id=["2222222222222222"]), scheme)
    with pytest.raises(ArgumentError, match="cast it to a type without decimal places"):
        engine.of("time_of", engine.frame(id=[Decimal("1.5")]), "snowflake")


def test_polars_column_that_arrow_lacks_is_told_its_remedy() -> None:
    for column, remedy in (
        (pl.Series([17], dtype=pl.Int128), r"must not be Int128, .* call cast\(pl.Int64\) first"),
        (pl.Series([sno.new()]), "must not be Object, .* make a column of the bytes"),
    ):
        with pytest.raises(ArgumentError, match=remedy):
            in_polars.time_of(column, "snowflake")


def test_field_that_ids_lack_is_refused(engine: Engine) -> None:
    frame = engine.frame(id=[bytes(sno.new())])
    with pytest.raises(FieldError, match=r"field 'node' of sno is not one of its fields .* which are time, tick, meta"):
        engine.of("field_of", frame, "sno", "node")


def test_node_is_that_of_the_generator() -> None:
    for source in (sno.Generator(partition=999), snowflake.Generator(node=999)):
        name = type(source).__module__.removeprefix("mintage.")
        column = in_pyarrow.new_ids_column(source, 3)
        assert in_pyarrow.node_of(column, name).to_pylist() == [999] * 3


@each_kind
def test_text_and_parse_work_for_each_id(engine: Engine, kind: Kind) -> None:
    ids = some(kind)
    frame = engine.frame(id=[plain(kind, each) for each in ids])
    texts = engine.of("text", frame, kind.name)
    assert texts == [str(each) for each in ids]
    assert engine.of("parse", engine.frame(id=texts), kind.name) == [plain(kind, each) for each in ids]


@pytest.mark.parametrize("version", [1, 6, 7])
def test_uuids_of_each_time_based_version_have_a_time(engine: Engine, version: int) -> None:
    kind = KINDS["uuid"]
    ids = [of(kind, version=version).new() for _ in range(5)]
    frame = engine.frame(id=[bytes(each) for each in ids])
    found = engine.of("time_of", frame, f"uuid v{version}")
    assert [_micros(each) for each in found] == [each.timestamp_ns // 1000 for each in ids]
    other = "uuid v7" if version != 7 else "uuid v6"
    with pytest.raises(ParseError, match=f"row 0: .* is no {other}") as caught:
        engine.of("time_of", frame, other)
    assert caught.value.code == "parse.unknown"


def _micros(time: Any) -> int:
    return int((time - EPOCH) // timedelta(microseconds=1))


def test_time_outside_int64_nanoseconds_is_refused() -> None:
    kind = KINDS["uuid"]
    first, last = (kind.read(text) for text in ("00000000-0000-1000-8000-000000000000", str(of(kind, version=1).new())))
    column = pa.array([bytes(last), bytes(first)], pa.binary(16))
    with pytest.raises(FieldError, match=r"row 1: .* before 1677 or after 2262") as caught:
        in_pyarrow.time_of(column, "uuid v1")
    assert caught.value.code == "time.range"
    assert in_pyarrow.time_of(column[:1], "uuid v1").to_pylist()[0] is not None


LAYOUT_NAMES = {
    **LAYOUTS,
    "js-safe": snowflake.JS_SAFE,
    "node first": snowflake.Layout("node:10 time:41 sequence:12", epoch_ms=1_000, unit_ms=1),
    "ticks of 10 ms": snowflake.Layout("time:39 sequence:8 node:16", epoch_ms=1_409_529_600_000, unit_ms=10),
    "nodes apart": snowflake.Layout("time:41 datacenter:5 sequence:12 worker:5", epoch_ms=1_409_529_600_000),
}


@pytest.mark.parametrize("name", LAYOUT_NAMES)
def test_integer_expressions_match_the_layout(engine: Engine, name: str) -> None:
    layout = LAYOUT_NAMES[name]
    start = max(layout.epoch_ms, 0)
    ids = [
        layout.compose(timestamp_ms=start + at * 86_400_123, node=at * 7 % layout.nodes, sequence=at)
        for at in range(40)
    ]
    frame = engine.frame(id=ids)
    parts = [layout.parse(each) for each in ids]
    assert engine.select(frame, engine.module.time_expr(layout, "id")) == [each.time for each in parts]
    assert engine.of("time_of", frame, layout) == [each.time for each in parts]
    assert engine.select(frame, engine.module.node_expr(layout, "id")) == [each.node for each in parts]
    assert engine.of("node_of", frame, layout) == [each.node for each in parts]


@pytest.mark.parametrize("layout", [snowflake.DISCORD, snowflake.INSTAGRAM], ids=["discord", "instagram"])
def test_signed_64_bit_ids_have_a_time_or_are_refused(engine: Engine, layout: snowflake.Layout) -> None:
    late = (1 << 63) + 5
    frame = engine.frame(id=[late - (1 << 64), 5])
    wanted = [layout.parse(each).time for each in (late, 5)]
    assert engine.select(frame, engine.module.time_expr(layout, "id")) == wanted
    assert engine.of("time_of", frame, layout) == wanted
    assert engine.of("text", frame, layout) == [str(late), "5"]
    with pytest.raises(FieldError, match="a signed integer holds IDs up to 9223372036854775807") as caught:
        engine.module.minted_between(layout, "id", NOON, layout.parse(late).time + timedelta(days=1))
    assert caught.value.code == "time.range"
    with pytest.raises(ParseError, match=f"row 0: '{late}'"):
        engine.of("parse", engine.frame(id=[str(late)]), layout)


def test_column_of_ids_beyond_63_bits_is_not_filled() -> None:
    ids = snowflake.Generator(node=1, layout=snowflake.DISCORD)
    late = ids.new_at(snowflake.DISCORD.parse(1 << 63).time)
    with pytest.raises(FieldError, match=f"snowflake {late} has 64 bits"):
        _filling._signed(np.array([late], np.uint64))


@each_kind
def test_missing_ids_stay_missing(kind: Kind) -> None:
    one = plain(kind, kind.new())
    column = pa.array([None, one, None], in_pyarrow.new_ids_column(kind.name, 0).type)
    texts = in_pyarrow.text(column, kind.name)
    assert texts.is_null().to_pylist() == [True, False, True]
    assert in_pyarrow.parse(texts, kind.name).equals(column)
    if kind.format.clock:
        assert in_pyarrow.time_of(column, kind.name).is_null().to_pylist() == [True, False, True]
    series = pd.Series([None, one, None], dtype="Int64") if kind.layout else pd.Series(column.to_pandas())
    for module, made in ((in_pandas, series), (in_polars, pl.Series(column))):
        texts = module.text(made, kind.name)
        assert list(texts.isna() if module is in_pandas else texts.is_null()) == [True, False, True]
        back = module.parse(texts, kind.name)
        assert back[1] == one


@each_kind
def test_column_without_a_value_is_read(engine: Engine, kind: Kind) -> None:
    frame = engine.frame(id=[None, None])
    functions = ["text", "parse", "time_of"] if kind.format.clock else ["text", "parse"]
    for function in functions:
        assert [bool(pd.isna(each)) for each in engine.of(function, frame, kind.name)] == [True, True]


def test_column_of_pandas_without_a_value_is_read() -> None:
    for series in (pd.Series([np.nan, np.nan]), pd.Series([], dtype=object), pd.Series([], dtype=float)):
        times = in_pandas.time_of(series, "sno")
        assert (len(times), str(times.dtype)) == (len(series), "datetime64[ms, UTC]")


@each_kind
def test_slices_chunks_and_other_arrow_types_are_read(kind: Kind) -> None:
    ids = [plain(kind, kind.new()) for _ in range(9)]
    plain_column = pa.array(ids, in_pyarrow.new_ids_column(kind.name, 0).type)
    texts = [str(kind.read(each)) for each in ids]
    columns = [
        (plain_column[2:7], texts[2:7]),
        (pa.chunked_array([plain_column[:3], plain_column[3:3], plain_column[5:]]), texts[:3] + texts[5:]),
        (pa.chunked_array([], plain_column.type), []),
        (plain_column.dictionary_encode(), texts),
    ]
    if not kind.layout:
        wider = [pa.large_string(), pa.string_view()] if kind.is_text else []
        wider = wider or [pa.binary(), pa.large_binary(), pa.binary_view()]
        columns += [(pa.array(ids, each)[1:], texts[1:]) for each in wider]
    for column, wanted in columns:
        assert in_pyarrow.text(column, kind.name).to_pylist() == wanted
        if kind.format.clock:
            assert len(in_pyarrow.time_of(column, kind.name)) == len(wanted)
    for each in (pa.large_string(), pa.string_view(), pa.string()):
        assert in_pyarrow.parse(pa.array(texts, each)[4:], kind.name).to_pylist() == ids[4:]


@each_kind
def test_first_bad_text_is_named_with_its_row(engine: Engine, kind: Kind) -> None:
    good = str(kind.new())
    for bad in ("", "no id", good[:-1] + "!", good + "0" * 20, "é" * (len(good) // 2), good + "\n"):
        frame = engine.frame(id=[good, good, bad, good, "worse"])
        with pytest.raises(ParseError, match=r"^row 2: ") as caught:
            engine.of("parse", frame, kind.name)
        assert len(str(caught.value)) < 200
        found = engine.of("parse", frame, kind.name, errors="null")
        missing = [bool(pd.isna(each)) for each in found]
        assert missing == [False, False, True, False, True]
        assert found[3] == plain(kind, kind.read(good))


def test_many_invalid_texts_are_found() -> None:
    ids = [str(sno.new()) for _ in range(2_000)]
    texts = [None if at % 11 == 0 else "x" * 16 if at % 7 == 0 else "!" + each[1:] if at % 5 == 0 else each
             for at, each in enumerate(ids)]  # fmt: skip
    found = in_pyarrow.parse(pa.array(texts), "sno", errors="null").to_pylist()
    for text, each in zip(texts, found, strict=True):
        assert each == (None if text is None or text.startswith("!") else bytes(sno.ID.parse(text)))


def test_errors_option_has_two_values(engine: Engine) -> None:
    with pytest.raises(ConfigError, match="errors must be 'raise' or 'null', not 'coerce'"):
        engine.of("parse", engine.frame(id=["x"]), "sno", errors="coerce")


@pytest.mark.parametrize("function", ["time_of", "node_of", "text", "parse"])
def test_column_of_another_type_is_refused(engine: Engine, function: str) -> None:
    wrong: list[list[Any]] = [[1.5], [True], [datetime(2024, 5, 1)]]  # noqa: DTZ001
    for values in [*wrong, [1] if function == "parse" else ["x"]]:
        for name in ("sno", "snowflake"):
            with pytest.raises(ArgumentError, match=f"a column of {name}.* must be") as caught:
                engine.of(function, engine.frame(id=values), name)
            assert len(str(caught.value)) < 250


@pytest.mark.parametrize("function", ["time_of", "node_of", "text"])
def test_bytes_of_another_length_are_refused_with_their_row(engine: Engine, function: str) -> None:
    frame = engine.frame(id=[bytes(sno.new()), b"short"])
    with pytest.raises(ParseError, match="row 1: sno has 10 bytes, not 5") as caught:
        engine.of(function, frame, "sno")
    assert caught.value.code == "parse.length"


def test_integer_outside_its_layout_is_refused_with_its_row(engine: Engine) -> None:
    for bad in (-1, 1 << 53):
        with pytest.raises(FieldError, match=f"row 1: {bad} is outside 0..9007199254740991") as caught:
            engine.of("time_of", engine.frame(id=[5, bad]), snowflake.JS_SAFE)
        assert caught.value.code == "field.range"


@pytest.mark.parametrize("wrong", [None, 5, sno])
def test_scheme_is_a_name_or_a_layout(engine: Engine, wrong: Any) -> None:
    frame = engine.frame(id=[5])
    with pytest.raises(ArgumentError, match="scheme must be the name of one or a Layout"):
        engine.of("time_of", frame, wrong)
    with pytest.raises(ArgumentError, match="scheme must be the name of one or a Layout"):
        engine.module.minted_between(wrong, "id", 0, 1)
    with pytest.raises(ConfigError, match="is not one of sno, snowflake"):
        engine.of("time_of", frame, "no scheme")


def test_expressions_accept_only_integer_schemes(engine: Engine) -> None:
    with pytest.raises(ConfigError, match="sno is no integer: decode its columns with time_of"):
        engine.module.time_expr("sno", "id")


# By time.


def hours(kind: Kind) -> list[Any]:
    """Return the first ID of each of 24 hours, and the last before it."""
    step = 3_600_000 * MS
    start = NOON - NOON % step
    return [
        each
        for hour in range(24)
        for each in (kind.max_at(start + hour * step - 1_000 * MS), kind.min_at(start + hour * step))
    ]


@each_kind
def test_rows_between_two_instants_are_found(engine: Engine, kind: Kind) -> None:
    step = 3_600_000 * MS
    start = NOON - NOON % step
    if not kind.has_time:
        with pytest.raises(FieldError, match="does not sort by time"):
            engine.module.minted_between(kind.name, "id", start, start + step)
        return
    ids = [plain(kind, each) for each in hours(kind)]
    condition = engine.module.minted_between(kind.name, "id", start + 5 * step, start + 7 * step)
    assert engine.filter(engine.frame(id=ids), condition) == ids[11:15]
    aware = EPOCH + timedelta(microseconds=start // 1000)
    condition = engine.module.minted_between(kind.name, "id", aware, aware + timedelta(hours=1))
    assert engine.filter(engine.frame(id=ids), condition) == ids[1:3]


TIMED = [*(KINDS[name] for name in SORTED), *(snowflakes(each) for each in LAYOUTS.values())]


def near(kind: Kind, time_ns: int) -> list[Any]:
    """Return the first and the last ID of ticks around an instant."""
    times = [time_ns + at * step for step in (MS, 10 * MS, 1000 * MS) for at in range(-3, 4)]
    return sorted({bound(time) for time in times for bound in (kind.min_at, kind.max_at)})


@pytest.mark.parametrize("kind", TIMED, ids=lambda kind: f"{kind.name} {kind.format.name}")
@given(data=st.data())
def test_range_holds_exactly_the_ids_of_its_ticks(kind: Kind, data: st.DataObject) -> None:
    times = {each: format_of(kind, each).time_ns(number(kind, each)) or 0 for each in near(kind, NOON)}
    instants = st.sampled_from(sorted(times.values())).flatmap(
        lambda time: st.sampled_from([time, time + 1, time - 1]) | st.integers(time - 1000 * MS, time + 1000 * MS)
    )
    start, end = sorted((data.draw(instants), data.draw(instants)))
    low, high = columns.bounds(kind.layout or kind.name, start, end)
    found = [each for each in times if low <= plain(kind, each) < high]
    first, last = (_tick_of(kind, each) for each in (start, end))
    assert found == [each for each, time in times.items() if first <= time < last]


def _tick_of(kind: Kind, time_ns: int) -> int:
    """Return the beginning of the tick that contains an instant."""
    first = kind.min_at(time_ns)
    return format_of(kind, first).time_ns(number(kind, first)) or 0


@each_kind
def test_filter_by_ids_equals_a_filter_by_ticks(engine: Engine, kind: Kind) -> None:
    if not kind.has_time:
        return
    frame = engine.frame(id=[plain(kind, each) for each in near(kind, NOON)])
    ids, times = engine.values(frame, "id"), engine.of("time_of", frame, kind.name)
    seen = 0
    for at in range(12):
        start = NOON + at * 311_111_000 - 2_000 * MS
        end = start + at * 100_003_000
        found = engine.filter(frame, engine.module.minted_between(kind.name, "id", start, end))
        first, last = (EPOCH + timedelta(milliseconds=_tick_of(kind, each) // MS) for each in (start, end))
        assert found == [each for each, time in zip(ids, times, strict=True) if first <= time < last]
        seen += len(found)
    assert seen


def test_pandas_timestamp_keeps_its_nanoseconds() -> None:
    last = pd.Timestamp(NOON - 1, unit="ns", tz="UTC")
    assert columns.bounds("snowflake", last, last + pd.Timedelta(1, "ns")) == columns.bounds(
        "snowflake", NOON - MS, NOON
    )


@pytest.mark.parametrize("scheme", ["sno", "snowflake"])
def test_range_within_a_tick_has_one_meaning_in_sqlalchemy_and_sql(scheme: str) -> None:
    kind = KINDS[scheme]
    types: dict[str, Any] = {"sno": SnoType, "snowflake": SnowflakeType}
    begins, within = (_tick_of(kind, NOON), _tick_of(kind, NOON) + MS // 2)
    ids = [bound(time) for time in (begins - 1, begins, begins + 1_000 * MS) for bound in (kind.min_at, kind.max_at)]
    table = Table("ids", MetaData(), Column("id", types[scheme](), primary_key=True))
    start, end = within, within + 1_000 * MS
    with create_engine("sqlite://").begin() as connection:
        table.create(connection)
        connection.execute(table.insert(), [{"id": each} for each in ids])
        by_type = select(table.c.id).where(table.c.id.minted_between(start, end))
        by_text = select(table.c.id).where(sql_text(columns.sql_minted_between(scheme, "id", start, end, "sqlite")))
        assert [*connection.scalars(by_type)] == [*connection.scalars(by_text)] == ids[2:4]


def test_scheme_without_time_order_has_no_range(engine: Engine) -> None:
    for scheme in ("locality", "uuid v4", "uuid v1", "nanoid", LAYOUT_NAMES["node first"]):
        name = scheme if isinstance(scheme, str) else "snowflake"
        with pytest.raises(FieldError, match=f"^{name} does not sort by time") as caught:
            engine.module.minted_between(scheme, "id", NOON, NOON + 1)
        assert caught.value.code == "field.format"
    with pytest.raises(FieldError, match="is before start"):
        engine.module.minted_between("sno", "id", NOON, NOON - 3_600_000 * MS)
    with pytest.raises(FieldError, match="has no time zone"):
        engine.module.minted_between("sno", "id", datetime(2024, 5, 1), NOON)  # noqa: DTZ001


GROUPS, GROUP = 10, 100
BETWEEN = (NOON + 250_000 * MS, NOON + 350_000 * MS)


def write_seconds(name: str, directory: Path) -> Path:
    """Write a Parquet file with one ID for each of 1,000 seconds, in ten row groups."""
    kind, path = KINDS[name], directory / f"{name}.parquet"
    ids = [plain(kind, kind.min_at(NOON + at * 1_000 * MS)) for at in range(GROUPS * GROUP)]
    column = pa.array(ids, in_pyarrow.new_ids_column(name, 0).type)
    pq.write_table(pa.table({"id": column, "row": range(len(ids))}), path, row_group_size=GROUP)
    return path


@pytest.mark.parametrize("name", SORTED)
def test_duckdb_reads_only_the_matching_row_groups(name: str, tmp_path: Path) -> None:
    path = write_seconds(name, tmp_path)
    connection = duckdb.connect()
    condition = columns.sql_minted_between(name, "id", *BETWEEN, "duckdb")
    connection.execute("PRAGMA enable_profiling = 'json'")
    connection.execute(f"SET profiling_output = '{tmp_path}/profile.json'")
    found = connection.execute(f"SELECT row FROM '{path}' WHERE {condition}").fetchall()
    connection.execute("PRAGMA disable_profiling")
    assert [row for (row,) in found] == list(range(250, 350))
    (scan,) = _scans(json.loads((tmp_path / "profile.json").read_text())["operator"])
    assert (scan["row_groups_scanned"], scan["total_row_groups_to_scan"]) == (2, GROUPS)


def _scans(operators: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [each for each in operators if "total_row_groups_to_scan" in each]
    return found + [scan for each in operators for scan in _scans(each.get("children", []))]


def test_polars_reads_only_the_matching_row_groups(tmp_path: Path) -> None:
    script = """if True:
        import sys
        import polars as pl
        from mintage.ext.polars import minted_between
        directory, start, end, *names = sys.argv[1:]
        for name in names:
            rows = pl.scan_parquet(f"{directory}/{name}.parquet")
            print(rows.filter(minted_between(name, "id", int(start), int(end))).collect()["row"].to_list())
    """
    for name in SORTED:
        write_seconds(name, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), *map(str, BETWEEN), *SORTED],
        env={**os.environ, "POLARS_VERBOSE": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [list(range(250, 350))] * len(SORTED)
    # Polars reports omitted row groups only in its verbose log.
    assert done.stderr.count("reading 2 / 10 row groups") == len(SORTED)


@pytest.mark.parametrize("name", SORTED)
def test_pyarrow_reads_only_the_matching_row_groups(name: str, tmp_path: Path) -> None:
    dataset, kind = ds.dataset(write_seconds(name, tmp_path)), KINDS[name]
    condition = in_pyarrow.minted_between(name, "id", *BETWEEN)
    assert dataset.to_table(filter=condition)["row"].to_pylist() == list(range(250, 350))
    (fragment,) = dataset.get_fragments()
    # Arrow does not compare fixed-size binary with a row group's bounds. The page says so.
    is_pruned = kind.layout is not None or kind.is_text
    assert len(fragment.subset(condition).row_groups) == (2 if is_pruned else GROUPS)


# In databases.


def some_integers(layout: snowflake.Layout) -> list[int]:
    start = max(layout.epoch_ms, 0)
    last = layout.compose(timestamp_ms=int((layout.expires - EPOCH) / timedelta(milliseconds=1)) - layout.unit_ms)
    return [
        last - (1 << 64) if last >= 1 << 63 else last,
        *(layout.compose(timestamp_ms=start + at * 86_400_123, node=at * 7 % layout.nodes) for at in range(1, 30)),
    ]


def told(layout: snowflake.Layout, ids: list[int]) -> list[tuple[int, int]]:
    """Return the milliseconds and node of each ID."""
    parts = [layout.parse(each % (1 << 64)) for each in ids]
    return [(each.timestamp_ms, each.node) for each in parts]


SQL_LAYOUTS = pytest.mark.parametrize("name", LAYOUT_NAMES)


def _queries(layout: snowflake.Layout, dialect: Any) -> tuple[str, str]:
    return columns.sql_time(layout, "ids.Id", dialect), columns.sql_node(layout, "Id", dialect)


@SQL_LAYOUTS
def test_postgresql_computes_time_and_node(postgresql: PostgreSQL, name: str) -> None:
    layout = LAYOUT_NAMES[name]
    ids = some_integers(layout)
    time, node = _queries(layout, "postgresql")
    rows = ", ".join(f"({at}, {each})" for at, each in enumerate(ids))
    answer = postgresql.sql(
        f'CREATE TABLE ids (nr int, "Id" bigint); INSERT INTO ids VALUES {rows}; '
        f"SELECT round(extract(epoch FROM {time}) * 1000)::bigint, extract(epoch FROM {time}) * 1000, {node} "
        "FROM ids ORDER BY nr;"
    )
    found = [line.split("|") for line in answer.split()]
    assert [(int(ms), int(node)) for ms, _, node in found] == told(layout, ids)
    assert all(float(ms) == float(exact) for ms, exact, _ in found)


@SQL_LAYOUTS
def test_mariadb_computes_time_and_node(mariadb: MariaDB, name: str) -> None:
    _mysql(mariadb, "mariadb", name)


@SQL_LAYOUTS
def test_mysql_computes_time_and_node(mysql: MariaDB, name: str) -> None:
    _mysql(mysql, "mysql", name)


def _mysql(server: MariaDB, dialect: str, name: str) -> None:
    layout = LAYOUT_NAMES[name]
    ids = some_integers(layout)
    time, node = _queries(layout, dialect)
    rows = ", ".join(f"({at}, {each})" for at, each in enumerate(ids))
    answer = server.sql(
        "USE mintage; SET time_zone = '+05:00';"
        f"CREATE TABLE ids (nr int, `Id` bigint); INSERT INTO ids VALUES {rows}; "
        f"SELECT DATE_FORMAT({time}, '%Y-%m-%dT%H:%i:%s.%fZ'), {node} FROM ids ORDER BY nr;"
    )
    found = [line.split("\t") for line in answer.splitlines()]
    assert [(_ms(time), int(node)) for time, node in found] == told(layout, ids)


def _ms(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


@SQL_LAYOUTS
def test_sqlite_computes_time_and_node(name: str) -> None:
    layout = LAYOUT_NAMES[name]
    ids = some_integers(layout)
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE ids ("Id" INTEGER)')
    connection.executemany("INSERT INTO ids VALUES (?)", [(each,) for each in ids])
    time, node = _queries(layout, "sqlite")
    found = connection.execute(f"SELECT {time}, {node} FROM ids ORDER BY rowid").fetchall()
    connection.close()
    assert [(_ms(time), node) for time, node in found] == told(layout, ids)


@SQL_LAYOUTS
def test_duckdb_reads_every_field(name: str) -> None:
    layout = LAYOUT_NAMES[name]
    ids = some_integers(layout)
    rows = ", ".join(f"({at}, {(each + (1 << 63)) % (1 << 64) - (1 << 63)})" for at, each in enumerate(ids))
    connection = duckdb.connect()
    for field, _, _ in layout.fields:
        expression = columns.sql_field(layout, "ids.Id", field, "duckdb")
        found = connection.sql(f'SELECT {expression} FROM (VALUES {rows}) AS ids(nr, "Id") ORDER BY nr').fetchall()
        assert [value for (value,) in found] == [layout.parse(each % (1 << 64)).fields[field] for each in ids], field


@SQL_LAYOUTS
def test_duckdb_computes_time_and_node(name: str) -> None:
    layout = LAYOUT_NAMES[name]
    integers = some_integers(layout)
    ids = pa.table({"nr": range(len(integers)), "Id": integers})
    time, node = _queries(layout, "duckdb")
    connection = duckdb.connect()
    assert ids.num_rows
    found = connection.sql(f"SELECT epoch_ms({time}), {node} FROM ids ORDER BY nr").fetchall()
    assert found == told(layout, integers)


def test_duckdb_times_are_instants_in_any_time_zone() -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    first, uuid = snowflake.DEFAULT.min_at(NOON), of(KINDS["uuid"], version=1).new()
    integers, uuids = (connection.from_arrow(pa.table({"id": [each]})) for each in (first, bytes(uuid)))
    for made, wanted_ns in (
        (integers.select(in_duckdb.time_expr("snowflake")), NOON),
        (in_duckdb.time_of(integers, "id", "snowflake").select("time"), NOON),
        (in_duckdb.time_of(uuids, "id", "uuid v1").select("time"), uuid.timestamp_ns),
    ):
        assert str(made.types[0]) in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
        ((time,),) = made.fetchall()
        assert _micros(time) == wanted_ns // 1000
        assert time.utcoffset() < timedelta(0)


@pytest.mark.parametrize("scheme", SORTED)
@pytest.mark.parametrize("dialect", ["postgresql", "mariadb", "sqlite", "duckdb"])
def test_databases_find_ids_minted_in_a_range(request: pytest.FixtureRequest, dialect: Any, scheme: str) -> None:
    kind = KINDS[scheme]
    step = 3_600_000 * MS
    start = NOON - NOON % step
    condition = columns.sql_minted_between(scheme, "id", start + 5 * step, start + 7 * step, dialect)
    types = {
        "postgresql": ("bigint", 'text COLLATE "C"', "bytea"),
        "mariadb": ("bigint", "varchar(40) CHARACTER SET ascii COLLATE ascii_bin", f"binary({kind.size})"),
        "sqlite": ("INTEGER", "TEXT", "BLOB"),
        "duckdb": ("BIGINT", "VARCHAR", "BLOB"),
    }[dialect]
    column = types[0] if kind.layout else types[1] if kind.is_text else types[2]
    words = sql._DIALECTS[dialect]
    rows = ", ".join(f"({at}, {sql._literal(plain(kind, each), words)})" for at, each in enumerate(hours(kind)))
    script = f"CREATE TABLE ids (nr int, id {column}); INSERT INTO ids VALUES {rows};"
    query = f"SELECT nr FROM ids WHERE {condition} ORDER BY nr"
    if dialect == "sqlite":
        connection = sqlite3.connect(":memory:")
        connection.executescript(script)
        found = [at for (at,) in connection.execute(query)]
        connection.close()
    elif dialect == "duckdb":
        memory = duckdb.connect()
        memory.execute(script)
        found = [at for (at,) in memory.execute(query).fetchall()]
    else:
        use = "USE mintage; " if dialect == "mariadb" else ""
        found = [int(at) for at in request.getfixturevalue(dialect).sql(f"{use}{script} {query};").split()]
    assert found == [11, 12, 13, 14]


@pytest.mark.parametrize("dialect", columns.DIALECTS)
def test_column_name_is_quoted(dialect: Any) -> None:
    quote = "`" if dialect in ("mysql", "mariadb", "spark") else '"'
    made = columns.sql_node("snowflake", f"a{quote}; DROP TABLE ids --", dialect)
    assert f"{quote}a{quote}{quote}; DROP TABLE ids --{quote}" in made
    for wrong in ("", "a\0b"):
        with pytest.raises(FieldError, match="is no name"):
            columns.sql_time("snowflake", wrong, dialect)
    with pytest.raises(ArgumentError, match="column must be str"):
        columns.sql_time("snowflake", 5, dialect)  # type: ignore[arg-type]


def test_unknown_dialect_is_refused() -> None:
    for wrong in ("oracle", None, 5):
        with pytest.raises(ConfigError, match="is not one of postgresql, mysql"):
            columns.sql_time("snowflake", "id", wrong)  # type: ignore[arg-type]


# What went wrong elsewhere.


def test_polars_28733_and_29165_lazy_frame_or_expression_is_refused() -> None:
    lazy = pl.LazyFrame({"item": ["pen", "ink"]})
    for wrong in (lazy, pl.col("item")):
        with pytest.raises(ArgumentError, match=r"it is a plan, .*call collect\(\) first"):
            in_polars.with_id(wrong, "uuid")  # type: ignore[arg-type]
    frame = lazy.collect()
    for mapped in (pl.col("item").map_elements(lambda _: str(sno.new()), pl.String), lambda _: sno.new()):
        with pytest.raises(ArgumentError, match="not a function that is called for each row"):
            in_polars.with_id(frame, mapped)
    # Two uses of one plan have the same IDs.
    twice = pl.concat([in_polars.with_id(frame, "sno"), in_polars.with_id(frame, "sno")]).lazy()
    assert pl.concat([twice, twice]).collect()["id"].n_unique() == 4


def test_polars_28733_plan_over_ids_gives_the_same_ids_each_time() -> None:
    plan = in_polars.with_id(pl.DataFrame({"item": range(1000)}), "sno").lazy().filter(pl.col("item") > 10)
    assert plan.collect().equals(plan.collect())


def test_arrow_reader_is_refused() -> None:
    reader = pa.table({"item": [1]}).to_reader()
    for wrong in (reader, ds.dataset(pa.table({"item": [1]}))):
        with pytest.raises(ArgumentError, match=r"it is a plan, .*read_all\(\) or to_table\(\)"):
            in_pyarrow.with_id(wrong, "uuid")


@pytest.mark.parametrize("as_text", [False, True])
def test_clickhouse_118976_equal_rows_get_different_ids(engine: Engine, as_text: bool) -> None:
    frame = engine.frame(item=["pen"] * 10_000)
    if isinstance(engine, Pandas):
        frame["item"] = frame["item"].astype("category")
    made = engine.module.with_id(frame, sno.Generator(partition=1), as_text=as_text)
    assert len({*engine.values(made, "id")}) == 10_000


def test_ray_63974_two_columns_of_one_generator_differ(engine: Engine) -> None:
    source = sno.Generator(partition=1)
    frame = engine.module.with_id(engine.frame(item=["pen"] * 100), source, "first")
    frame = engine.module.with_id(frame, source, "second")
    assert not {*engine.values(frame, "first")} & {*engine.values(frame, "second")}


def test_doris_48103_and_clickhouse_37366_equal_calls_differ(engine: Engine) -> None:
    frame = engine.frame(item=["pen"] * 100)
    one, other = (engine.values(engine.module.with_id(frame, "sno"), "id") for _ in range(2))
    assert not {*one} & {*other}


def test_each_use_of_a_relation_sees_the_same_ids() -> None:
    connection = duckdb.connect()
    orders = in_duckdb.with_id(connection.sql("SELECT range AS item, random() AS price FROM range(100)"), "sno")
    first = orders.fetchall()
    assert orders.fetchall() == first
    joined = connection.sql("SELECT count(*) FROM orders AS a JOIN orders AS b ON a.id = b.id AND a.price = b.price")
    assert joined.fetchall() == [(100,)]


def test_duckdb_7773_and_9921_no_function_is_registered() -> None:
    connection = duckdb.connect()
    count = "SELECT count(*) FROM duckdb_functions()"
    before = connection.sql(count).fetchall()
    made = in_duckdb.with_id(connection.sql("SELECT 1 FROM range(1000)"), "sno")
    assert connection.sql(count).fetchall() == before
    assert made.aggregate("count(DISTINCT id)").fetchall() == [(1000,)]
    assert connection.sql("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchall() == [(0,)]


def test_duckdb_relations_stay_in_their_connection() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE items AS SELECT range AS item FROM range(3)")
    made = in_duckdb.with_id(connection.table("items"), "snowflake")
    made.to_table("orders")
    assert connection.sql("SELECT count(*) FROM orders JOIN items USING (item)").fetchall() == [(3,)]


ZEROS = sno.ID.from_int(int(sno.min_at(NOON)))
"""An ID that ends in zero bytes."""


def test_numpy_s10_drops_zero_bytes_and_our_columns_do_not(engine: Engine) -> None:
    assert bytes(ZEROS).endswith(b"\0\0")
    assert np.array([bytes(ZEROS)], "S10")[0] != bytes(ZEROS)
    frame = engine.frame(id=[bytes(ZEROS)])
    assert engine.of("text", frame, "sno") == [str(ZEROS)]
    assert engine.of("parse", engine.frame(id=[str(ZEROS)]), "sno") == [bytes(ZEROS)]
    made = Pandas().module.parse(pd.Series([str(ZEROS)]), "sno")
    assert made.dtype == pd.ArrowDtype(pa.binary())


def test_numpy_s10_shortened_column_is_refused() -> None:
    cut = pd.Series(np.array([bytes(sno.ID.MAX), bytes(ZEROS)], "S10").tolist())
    with pytest.raises(ParseError, match="row 1: sno has 10 bytes, not "):
        in_pandas.text(cut, "sno")


@each_kind
def test_chdb_core_193_no_extension_type_is_used(kind: Kind) -> None:
    field = in_pyarrow.with_id(pa.table({"item": [1]}), kind.name).schema.field("id")
    assert not isinstance(field.type, pa.BaseExtensionType)
    assert field.metadata is None


def test_spark_snowflakes_are_int64(engine: Engine) -> None:
    made = engine.module.with_id(engine.frame(item=["pen"]), "snowflake")
    assert engine.kinds(made)["id"].lower() in ("int64", "bigint")


def test_pandas_missing_values_elsewhere_keep_integers_exact() -> None:
    frame = pd.DataFrame({"item": ["pen", None, "ink"], "count": [1, None, 3]})
    made = in_pandas.with_id(frame, snowflake.Generator(node=1))
    assert made["id"].dtype == np.int64
    ids = made["id"].tolist()
    # An outer join would make floats of them; parse and Int64 do not.
    assert in_pandas.parse(pd.Series([str(ids[0]), None], dtype="str"), "snowflake").dtype == "Int64"
    joined = made.merge(pd.DataFrame({"count": [1.0, 9.0]}), how="outer", on="count")
    with pytest.raises(ArgumentError, match=r"must be int64, not double .*beyond 2\^53 are rounded; use Int64"):
        in_pandas.time_of(joined["id"], "snowflake")


def test_pandas_text_with_a_missing_value_stays_text() -> None:
    found = in_pandas.text(pd.Series([5, None], dtype="Int64"), "snowflake")
    assert found.dtype == "str"
    assert found[0] == "5"


def test_ids_of_a_frame_sort_in_row_order(engine: Engine) -> None:
    made = engine.module.with_id(engine.frame(row=list(range(1000))), sno.Generator(partition=1))
    ids = engine.values(made, "id")
    assert all(a < b for a, b in pairwise(ids))


def test_spark_computes_time_and_node_of_each_layout() -> None:
    script = """if True:
        import json, sys
        from pyspark.sql import SparkSession
        spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
                 .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
                 .config("spark.sql.session.timeZone", "Asia/Tokyo").getOrCreate())
        for job in json.load(sys.stdin):
            rows = f"FROM VALUES {', '.join(f'({each}L)' for each in job['ids'])} AS ids(Id)"
            made = spark.sql(f"SELECT unix_millis({job['time']}), {job['node']} {rows}").collect()
            ((between,),) = spark.sql(f"SELECT count(*) {rows} WHERE {job['between']}").collect()
            print("made", json.dumps([[list(row) for row in made], between]))
        spark.stop()
    """
    jobs, wanted = [], []
    for layout in LAYOUT_NAMES.values():
        ids = some_integers(layout)
        is_timed = layout.fields[0][0] == "time"
        start, end = (layout.parse(each % (1 << 64)).time for each in (ids[3], ids[7]))
        between = columns.sql_minted_between(layout, "Id", start, end, "spark") if is_timed else "true"
        jobs.append(
            {
                "ids": ids,
                "time": columns.sql_time(layout, "Id", "spark"),
                "node": columns.sql_node(layout, "Id", "spark"),
                "between": between,
            }
        )
        wanted.append([[list(each) for each in told(layout, ids)], 4 if is_timed else len(ids)])
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(jobs), check=True, capture_output=True, text=True
    )
    found = [json.loads(line.removeprefix("made ")) for line in done.stdout.splitlines() if line.startswith("made ")]
    assert found == wanted


def filled(name: str) -> pd.DataFrame:
    """Return a frame with a column of IDs of a scheme, and another with one ID missing."""
    frame = in_pandas.with_id(pd.DataFrame({"item": range(40)}), name)
    texts = frame["id"] if KINDS[name].is_text else in_pandas.text(frame["id"], name)
    other = in_pandas.parse(texts.mask(frame["item"] == 7), name, errors="null")
    return frame.assign(other=other)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_pandas_reads_back_the_file_that_it_wrote(name: str, kind: str, tmp_path: Path) -> None:
    frame = filled(name)
    getattr(frame, f"to_{kind}")(tmp_path / "file")
    again = getattr(pd, f"read_{kind}")(tmp_path / "file")
    pd.testing.assert_frame_equal(again, frame)
    assert again["other"].isna().sum() == 1
    if not KINDS[name].is_text:
        assert list(in_pandas.text(again["id"], name)) == list(in_pandas.text(frame["id"], name))


@pytest.mark.parametrize("name", KINDS)
def test_pandas_reads_back_the_texts_of_a_csv_file(name: str, tmp_path: Path) -> None:
    frame = filled(name)
    texts = (
        frame
        if KINDS[name].is_text
        else frame.assign(**{column: in_pandas.text(frame[column], name) for column in ("id", "other")})
    )
    texts.to_csv(tmp_path / "file.csv", index=False)
    again = pd.read_csv(tmp_path / "file.csv", dtype={"id": "str", "other": "str"})
    pd.testing.assert_frame_equal(again, texts)
    read = again.assign(**{column: in_pandas.parse(again[column], name) for column in ("id", "other")})
    pd.testing.assert_frame_equal(read, frame)


def test_text_of_only_digits_stays_text_in_csv(tmp_path: Path) -> None:
    """Without its dtype such a column is read as numbers, so the page sets it."""
    zero = str(sno.ID.ZERO)
    pd.DataFrame({"id": [zero]}).to_csv(tmp_path / "file.csv", index=False)
    assert pd.read_csv(tmp_path / "file.csv")["id"].dtype == "int64"
    again = pd.read_csv(tmp_path / "file.csv", dtype={"id": "str"})
    assert list(in_pandas.text(in_pandas.parse(again["id"], "sno"), "sno")) == [zero]


def test_pandas_integers_survive_csv_unchanged(tmp_path: Path) -> None:
    frame = filled("snowflake")
    frame.to_csv(tmp_path / "file.csv", index=False)
    again = pd.read_csv(tmp_path / "file.csv", dtype={"id": "int64", "other": "Int64"})
    pd.testing.assert_frame_equal(again, frame)


def test_pandas_writes_a_fixed_size_column_after_a_cast(tmp_path: Path) -> None:
    table = in_pyarrow.with_id(pa.table({"item": [1, 2]}), "sno")
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    assert frame["id"].dtype == pd.ArrowDtype(pa.binary(10))
    made = frame.assign(id=frame["id"].astype("binary[pyarrow]"))
    made.to_parquet(tmp_path / "file")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "file"), made)
