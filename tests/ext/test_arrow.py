"""Tests of Arrow: pyarrow, Polars, pandas, NumPy and DuckDB read every Array as a column."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mintage import column, sno, snowflake, uuid
from mintage.errors import MintError
from mintage.formats.kinds import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKED = {name: kind for name, kind in KINDS.items() if kind.size and not kind.layout}
each = pytest.mark.parametrize("kind", PACKED.values(), ids=list(PACKED))
COUNTS = pytest.mark.parametrize("count", [0, 1, 3, 1000])
BINARY = {"binary": pa.binary(), "large_binary": pa.large_binary(), "binary_view": pa.binary_view()}
TEXT = {"string": pa.string(), "large_string": pa.large_string(), "string_view": pa.string_view()}


def batch(kind: Kind, count: int) -> Any:
    with kind.module.Generator() as generator:
        return generator.batch(count)


def checked(made: Any) -> Any:
    """Return the array of pyarrow after a check of every value."""
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
def test_every_binary_type_is_available_on_request(kind: Kind, count: int, type: Any) -> None:
    ids = batch(kind, count)
    read = checked(pa.array(ids, type=type))
    assert read.type == type
    assert read.to_pylist() == [bytes(one) for one in ids]


@each
@COUNTS
@pytest.mark.parametrize("type", TEXT.values(), ids=list(TEXT))
def test_every_text_type_is_available_on_request(kind: Kind, count: int, type: Any) -> None:
    ids = batch(kind, count)
    read = checked(pa.array(ids, type=type))
    assert read.type == type
    assert read.to_pylist() == [str(one) for one in ids]


@each
def test_slices_are_independent_columns(kind: Kind) -> None:
    ids = batch(kind, 10)
    for part in (ids[3:7], ids[::-1], ids[::3], ids[5:5], ids[-1:]):
        assert checked(pa.array(part)).to_pylist() == [bytes(one) for one in part]


class OnlyStream:
    """An object with only the stream interface, the only one that some consumers use."""

    def __init__(self, ids: Any) -> None:
        self.__arrow_c_stream__ = ids.__arrow_c_stream__


@each
def test_arrow_37797_array_is_a_stream_of_one_chunk(kind: Kind) -> None:
    ids = batch(kind, 3)
    read = pa.chunked_array(OnlyStream(ids))
    assert read.num_chunks == 1
    assert read.to_pylist() == [bytes(one) for one in ids]


@each
def test_polars_and_pandas_read_columns(kind: Kind) -> None:
    ids = batch(kind, 3)
    expected = [bytes(one) for one in ids]
    assert pl.Series(ids).to_list() == expected
    assert pd.Series.from_arrow(ids).tolist() == expected


@each
def test_chdb_core_193_extension_type_only_on_request(kind: Kind) -> None:
    ids = batch(kind, 1)
    for wanted in (None, pa.binary(kind.size), pa.binary(), pa.string()):
        schema, _ = ids.__arrow_c_array__(wanted and wanted.__arrow_c_schema__())
        assert pa.Field._import_from_c_capsule(schema).metadata is None


@each
def test_column_has_a_name_everywhere(kind: Kind) -> None:
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
def test_column_tells_its_arrow_type(kind: Kind, name: Any) -> None:
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
def test_invalid_column_is_refused(arguments: dict[str, Any]) -> None:
    given: dict[str, Any] = {"ids": sno.Array(), "name": "id"} | arguments
    with pytest.raises(MintError):
        column(**given)


LAYOUTS = {"default": snowflake.DEFAULT, "js_safe": snowflake.JS_SAFE, "discord": snowflake.DISCORD}
NUMBERS = [0, 7, 10**11, 10**12 - 1, 10**12, 2**53 - 1]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@COUNTS
def test_snowflakes_up_to_63_bits_are_signed_and_not_copied(layout: snowflake.Layout, count: int) -> None:
    with snowflake.Generator(1, layout=layout) as generator:
        ids = generator.batch(count)
    read = checked(pa.array(ids))
    assert read.type == (pa.int64() if layout.bits < 64 else pa.uint64())
    assert read.to_pylist() == list(ids)
    assert np.asarray(ids).tolist() == pl.Series(ids).to_list() == pd.Series.from_arrow(ids).tolist() == list(ids)
    if count:
        assert read.buffers()[1].address == np.asarray(ids).ctypes.data
        assert pl.Series(ids).to_numpy().ctypes.data == np.asarray(ids).ctypes.data


def test_other_signedness_is_available_if_lossless() -> None:
    top = snowflake.Array(array("Q", [1, 2**64 - 1]), snowflake.DISCORD)
    low = snowflake.Array(array("Q", [1, 2**63 - 1]))
    assert checked(pa.array(low, type=pa.uint64())).to_pylist() == list(low)
    schema, data = top.__arrow_c_array__(pa.int64().__arrow_c_schema__())
    assert pa.Array._import_from_c_capsule(schema, data).to_pylist() == list(top)
    with pytest.raises(pa.ArrowInvalid):
        pa.array(top).cast(pa.int64())


@pytest.mark.parametrize("name", TEXT)
def test_snowflakes_are_decimal_text_on_request(name: Any) -> None:
    for numbers, layout in (
        (NUMBERS, snowflake.JS_SAFE),
        ([2**64 - 1, *NUMBERS], snowflake.DISCORD),
        ([], snowflake.DEFAULT),
    ):
        ids = snowflake.Array(array("Q", numbers), layout)
        read = checked(pa.array(ids, type=TEXT[name]))
        assert read.type == TEXT[name]
        assert read.to_pylist() == list(map(str, numbers))
        assert pa.table(column(ids, type=name))["id"].to_pylist() == list(map(str, numbers))


# What NumPy makes of 10 bytes.


def test_numpy_drops_zero_bytes_of_strings_but_not_of_void() -> None:
    ids: Any = sno.Array(b"\1" + bytes(9) + b"\2" + bytes(9))
    expected = [bytes(one) for one in ids]
    assert np.frombuffer(ids, "S10").tolist() == [b"\1", b"\2"]
    assert [one.tobytes() for one in np.frombuffer(ids, "V10")] == expected
    assert pa.array(ids).to_pylist() == expected
    assert pl.DataFrame(column(ids))["id"].to_list() == expected


# Requests.


class Wanted(pa.ExtensionType):  # type: ignore[misc]
    """An extension type with any name."""

    def __init__(self, name: str, storage: pa.DataType) -> None:
        super().__init__(storage, name)

    def __arrow_ext_serialize__(self) -> bytes:
        return b"its own"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Wanted:
        raise NotImplementedError


def named(ids: Any, wanted: pa.DataType) -> tuple[pa.DataType, dict[bytes, bytes] | None]:
    """Return the type and the metadata that an Array exports."""
    schema, data = ids.__arrow_c_array__(wanted.__arrow_c_schema__())
    storage = Schema.of(schema)
    imported = pa.Field._import_from_c_capsule(schema)
    assert data
    return storage, imported.metadata


@each
def test_extension_name_is_exported_on_request(kind: Kind) -> None:
    ids = batch(kind, 2)
    name = f"mintage.{kind.name}"
    metadata = {b"ARROW:extension:name": name.encode(), b"ARROW:extension:metadata": b"its own"}
    for storage, code in ((pa.binary(kind.size), f"w:{kind.size}"), (pa.binary_view(), "vz"), (pa.binary(), "z")):
        assert named(ids, Wanted(name, storage)) == (code, metadata)
        assert named(ids, Wanted("mintage.other", storage)) == (code, None)
    assert named(ids, Wanted(name, pa.string())) == ("u", None)
    assert named(ids, Wanted(name, pa.int64())) == (f"w:{kind.size}", None)
    assert named(ids, Wanted(name, pa.binary(5))) == (f"w:{kind.size}", None)


@each
def test_uuid_extension_needs_16_bytes_and_a_request(kind: Kind) -> None:
    schema, data = batch(kind, 2).__arrow_c_array__(pa.uuid().__arrow_c_schema__())
    read = checked(pa.Array._import_from_c_capsule(schema, data))
    assert read.type == (pa.uuid() if kind.size == 16 else pa.binary(kind.size))


def test_snowflakes_have_an_extension_name_too() -> None:
    ids = snowflake.Generator(1).batch(2)
    assert named(ids, Wanted("mintage.snowflake", pa.int64()))[1]
    assert not named(ids, Wanted("mintage.sno", pa.int64()))[1]
    assert named(ids, pa.binary()) == ("l", None)


@pytest.mark.parametrize(
    "wanted",
    [
        pa.int32(),
        pa.float64(),
        pa.list_(pa.binary()),
        pa.struct([]),
        pa.binary(3),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
def test_unsupported_requested_schema_falls_back_to_the_default(wanted: pa.DataType) -> None:
    for ids in (sno.Generator(1).batch(2), snowflake.Generator(1).batch(2)):
        schema, data = ids.__arrow_c_array__(wanted.__arrow_c_schema__())
        assert pa.Array._import_from_c_capsule(schema, data).equals(pa.array(ids))


def test_column_forwards_one_request_and_refuses_two() -> None:
    ids = column(sno.Generator(1).batch(3), "a")
    for wanted in (pa.binary_view(), pa.string()):
        read = pa.RecordBatchReader.from_stream(ids, pa.schema([("a", wanted)])).read_all()
        assert read.schema.types == [wanted]
        read.validate(full=True)
    two = pa.schema([("a", pa.binary()), ("b", pa.binary())])
    for wrong in (two, pa.binary()):
        with pytest.raises(ValueError, match="no struct of one field"):
            ids.__arrow_c_stream__(wrong.__arrow_c_schema__())


def test_invalid_schema_capsule_is_refused() -> None:
    ids = sno.Generator(1).batch(3)
    schema, data = ids.__arrow_c_array__()
    for wrong in (1, "w:10", object(), data, pa.binary(10)):
        for export in (ids.__arrow_c_array__, ids.__arrow_c_stream__, column(ids).__arrow_c_array__):
            with pytest.raises(MintError, match="arrow_schema"):
                export(wrong)
    pa.Field._import_from_c_capsule(schema)
    with pytest.raises(ValueError, match="released"):
        ids.__arrow_c_array__(schema)


def test_column_accepts_exports_of_others() -> None:
    strings = pa.array(["a", None, "ccc"])
    assert pa.table(column(strings, "x")).to_pydict() == {"x": ["a", None, "ccc"]}
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    assert pa.table(column(words, "x")).schema.types == [words.type]
    assert pa.table(column(words[1:], "x")).to_pydict() == {"x": ["b", "a"]}
    inner = column(column(sno.Array(bytes(10)), "a"), "b")
    assert pa.table(inner).to_pydict() == {"b": [{"a": bytes(10)}]}


class Once:
    """An object that exports the same capsules each time."""

    def __init__(self, exported: Any) -> None:
        self.exported = exported

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.exported


def test_column_refuses_released_arrays() -> None:
    once = column(Once(sno.Array(bytes(10)).__arrow_c_array__()))
    once.__arrow_c_array__()
    with pytest.raises(ValueError, match="released"):
        once.__arrow_c_array__()
    for wrong in (None, (), (1, 2), (1, 2, 3)):
        with pytest.raises((TypeError, ValueError)):
            column(Once(wrong)).__arrow_c_array__()


# Whose memory it is.


class Schema(ctypes.Structure):
    """The beginning of the structure ArrowSchema."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p))

    @staticmethod
    def of(capsule: object) -> str:
        """Return the format string of a type."""
        code: bytes = Schema.from_address(address(capsule, b"arrow_schema")).format
        return code.decode()


class Values(ctypes.Structure):
    """The structure ArrowArray."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        *((name, ctypes.c_void_p) for name in ("children", "dictionary", "release", "private_data")),
    )


def address(capsule: object, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    found: int = get(capsule, name)
    return found


@contextmanager
def all_given_back(ids: Any) -> Iterator[None]:
    """Assert that the block leaves no new reference to the bytes of an array."""
    before = sys.getrefcount(ids.tobytes())
    yield
    gc.collect()
    after = sys.getrefcount(ids.tobytes())  # within the assertion pytest would hold them as well
    assert after == before


EXPORTS = pytest.mark.parametrize("wanted", [None, pa.binary(), pa.binary_view(), pa.string_view()], ids=str)
ARRAYS = pytest.mark.parametrize("ids", [sno.Generator(1).batch(5), uuid.Generator().batch(5)], ids=["10", "16"])


@ARRAYS
@EXPORTS
def test_unused_capsules_are_released(ids: Any, wanted: Any) -> None:
    def request() -> Any:
        return wanted and wanted.__arrow_c_schema__()

    with all_given_back(ids):
        for _ in range(100):
            ids.__arrow_c_schema__(), ids.__arrow_c_array__(request()), ids.__arrow_c_stream__(request())
            column(ids).__arrow_c_schema__(), column(ids).__arrow_c_array__(), column(ids).__arrow_c_stream__()


@ARRAYS
@EXPORTS
def test_exported_array_lives_as_long_as_its_consumer(ids: Any, wanted: Any) -> None:
    def consume() -> None:  # in a frame of its own, as DuckDB looks at the frame's names, which then keeps them
        whole = pa.array(ids[:], type=wanted)
        part = whole[1:3]
        expected = whole[1].as_py()
        del whole
        gc.collect()
        assert checked(part)[0].as_py() == expected
        arrow = pa.table(column(ids))
        frame = pl.DataFrame(column(ids, type="binary_view"))
        rows: Any = duckdb.sql("from arrow")
        assert [arrow["id"][1].as_py(), frame["id"][1], rows.fetchall()[1][0]] == [bytes(ids[1])] * 3

    with all_given_back(ids):
        consume()


def test_release_works_in_a_thread_without_the_gil() -> None:
    ids = sno.Generator(1).batch(5)
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # a call of one gives the lock away meanwhile

    def let_go() -> None:
        capsules = [ids.__arrow_c_array__()[1] for _ in range(100)]
        for capsule in capsules:
            at = address(capsule, b"arrow_array")
            release(Values.from_address(at).release)(at)
            assert not Values.from_address(at).release

    before = sys.getrefcount(ids.tobytes())
    threads = [threading.Thread(target=let_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    let_go()
    for _ in range(1000):  # where the interpreter checks for pending requests
        pass
    after = sys.getrefcount(ids.tobytes())
    assert after == before


def test_polars_copies_fixed_size_binary_but_not_views() -> None:
    ids = sno.Generator(1).batch(1000)

    def exported(wanted: Any) -> tuple[Any, int]:
        schema, data = ids.__arrow_c_array__(wanted and wanted.__arrow_c_schema__())
        return (schema, data), Values.from_address(address(data, b"arrow_array")).buffers[1]

    for wanted, is_copied in ((None, True), (pa.binary_view(), False)):
        capsules, at = exported(wanted)
        series = pl.Series(Once(capsules))
        found = series.to_arrow(compat_level=pl.CompatLevel.newest()).buffers()[1].address
        assert (found != at) == is_copied
        assert series.to_list() == [bytes(one) for one in ids]


def test_many_exports_leak_no_memory() -> None:
    resource = pytest.importorskip("resource")
    ids = uuid.Generator().batch(50_000)

    def largest() -> int:
        size: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size

    def turn() -> None:
        for name in (None, *BINARY, *TEXT):
            pa.table(column(ids, type=name))  # type: ignore[arg-type]
            column(ids, type=name).__arrow_c_stream__()  # type: ignore[arg-type]

    turn()
    before = largest()
    for _ in range(50):
        turn()  # 15 MB each
    assert largest() - before < 64 * 1024


def test_forked_child_can_release_columns() -> None:
    ids = sno.Generator(1).batch(1000)
    read, capsules = pa.array(ids), ids.__arrow_c_array__()
    child = os.fork()
    if not child:
        status = 1
        try:
            assert read.to_pylist() == pa.Array._import_from_c_capsule(*capsules).to_pylist() == [bytes(i) for i in ids]
            del read
            gc.collect()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert pa.Array._import_from_c_capsule(*capsules).equals(read)


def test_columns_that_outlive_the_interpreter_are_harmless() -> None:
    script = """
import threading, time
import polars as pl, pyarrow as pa
from mintage import column, sno
ids = sno.Generator(1).batch(100_000)
kept = pa.array(ids), pa.table(column(ids)), pl.Series(ids), ids.__arrow_c_stream__(), column(ids).__arrow_c_array__()
class Late:
    def __del__(self, held=pa.array(ids, type=pa.binary())):
        assert held[0].as_py()
late = Late(); late.itself = late

def churn():
    while True:
        pa.array(ids), pl.DataFrame(column(ids, type="binary_view"))
threading.Thread(target=churn, daemon=True).start()
time.sleep(0.05)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
