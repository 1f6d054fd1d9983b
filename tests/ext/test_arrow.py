"""Every Array is a column of Arrow: what pyarrow, Polars, pandas, NumPy and DuckDB read is what it holds."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mintage
from mintage import column
from mintage.errors import MintError
from mintage.ext.kinds import KINDS, Kind

PACKED = {name: kind for name, kind in KINDS.items() if kind.size and not kind.layout}
each = pytest.mark.parametrize("kind", PACKED.values(), ids=list(PACKED))
COUNTS = pytest.mark.parametrize("count", [0, 1, 3, 1000])
BINARY = {"binary": pa.binary(), "large_binary": pa.large_binary(), "binary_view": pa.binary_view()}
TEXT = {"string": pa.string(), "large_string": pa.large_string(), "string_view": pa.string_view()}


def batch(kind: Kind, count: int) -> Any:
    with kind.scheme.module.Generator() as generator:
        return generator.batch(count)


def checked(made: Any) -> Any:
    """What pyarrow made, after it looked at every value."""
    made.validate(full=True)
    assert made.null_count == 0
    return made


@each
@COUNTS
def test_pyarrow_reads_fixed_size_binary_in_place(kind: Kind, count: int) -> None:
    ids = batch(kind, count)
    read = checked(pa.array(ids))
    assert read.type == pa.binary(kind.size)
    assert read.to_pylist() == [bytes(one) for one in ids]
    if count:
        assert read.buffers()[1].address == np.frombuffer(ids, np.uint8).ctypes.data


@each
@COUNTS
@pytest.mark.parametrize("type", BINARY.values(), ids=list(BINARY))
def test_binary_of_any_kind_is_there_for_the_asking(kind: Kind, count: int, type: Any) -> None:
    ids = batch(kind, count)
    read = checked(pa.array(ids, type=type))
    assert read.type == type
    assert read.to_pylist() == [bytes(one) for one in ids]


@each
@COUNTS
@pytest.mark.parametrize("type", TEXT.values(), ids=list(TEXT))
def test_text_of_any_kind_is_there_for_the_asking(kind: Kind, count: int, type: Any) -> None:
    ids = batch(kind, count)
    read = checked(pa.array(ids, type=type))
    assert read.type == type
    assert read.to_pylist() == [str(one) for one in ids]


@each
def test_slices_are_columns_of_their_own(kind: Kind) -> None:
    ids = batch(kind, 10)
    for part in (ids[3:7], ids[::-1], ids[::3], ids[5:5], ids[-1:]):
        assert checked(pa.array(part)).to_pylist() == [bytes(one) for one in part]


@each
def test_a_stream_is_one_piece(kind: Kind) -> None:
    ids = batch(kind, 3)
    read = pa.chunked_array(ids)
    assert read.num_chunks == 1
    assert read.to_pylist() == [bytes(one) for one in ids]


@each
def test_polars_and_pandas_read_it(kind: Kind) -> None:
    ids = batch(kind, 3)
    expected = [bytes(one) for one in ids]
    assert pl.Series(ids).to_list() == expected
    assert pd.Series.from_arrow(ids).tolist() == expected


@each
def test_chdb_core_193_no_extension_unless_it_is_asked_for(kind: Kind) -> None:
    ids = batch(kind, 1)
    for wanted in (None, pa.binary(kind.size), pa.binary(), pa.string()):
        schema, _ = ids.__arrow_c_array__(wanted and wanted.__arrow_c_schema__())
        assert pa.Field._import_from_c_capsule(schema).metadata is None


@each
def test_a_column_has_a_name_everywhere(kind: Kind) -> None:
    ids = batch(kind, 3)
    expected = [bytes(one) for one in ids]
    named = column(ids, "order_id")
    for _ in range(2):
        assert checked_table(pa.table(named)).to_pydict() == {"order_id": expected}
        assert pl.DataFrame(named).to_dict(as_series=False) == {"order_id": expected}
        assert pd.DataFrame.from_arrow(named).to_dict("list") == {"order_id": expected}
        rows: Any = duckdb.sql("select order_id from named")
        assert rows.fetchall() == [(one,) for one in expected]


def checked_table(table: pa.Table) -> pa.Table:
    table.validate(full=True)
    return table


@each
@pytest.mark.parametrize("name", [*BINARY, *TEXT])
def test_a_column_says_its_type_by_arrows_name(kind: Kind, name: Any) -> None:
    ids = batch(kind, 3)
    table = checked_table(pa.table(column(ids, type=name)))
    assert table.schema.names == ["id"]
    assert table.schema.types == [{**BINARY, **TEXT}[name]]
    assert table["id"].to_pylist() == [(str if name in TEXT else bytes)(one) for one in ids]


@pytest.mark.parametrize(
    "arguments",
    [
        {"ids": []},
        {"ids": b""},
        {"name": 1},
        {"name": None},
        {"name": "\0"},
        {"type": 1},
        {"type": "utf8"},
        {"type": ""},
    ],
    ids=str,
)
def test_what_is_no_column_is_refused(arguments: dict[str, Any]) -> None:
    given: dict[str, Any] = {"ids": mintage.sno.Array(), "name": "id"} | arguments
    with pytest.raises(MintError):
        column(**given)
