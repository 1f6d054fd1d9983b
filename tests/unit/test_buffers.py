"""Tests of buffer arguments: the item type decides which memory is accepted."""

from __future__ import annotations

import ctypes
import sys
from array import array
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mintage import locality, sno, snowflake
from mintage.errors import MintError
from tests.helpers.cases import each_case
from tests.helpers.outcomes import code_or_ok

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

np: Any = pytest.importorskip("numpy")

COUNT = 80
"""Items of each buffer: whole IDs and texts of every scheme, whatever the size of an item."""

NATIVE, FOREIGN = ("<", ">") if sys.byteorder == "little" else (">", "<")


CHARACTERS: Any = "w" if sys.version_info >= (3, 13) else "u"
"""Python 3.13 has the first, and warns of the second."""


def of_numpy() -> Iterator[tuple[str, Callable[[], Any]]]:
    kinds = dict.fromkeys(np.dtype(code) for code in np.typecodes["All"] if code not in "SUV")
    for kind in [*kinds, *(kind.newbyteorder(FOREIGN) for kind in kinds)]:
        yield kind.str, partial(np.zeros, COUNT, kind)
    for kind in ("S1", "S8", "S10", "S16", "U1", "V1", "V8", "V10", "V16"):
        yield kind, partial(np.zeros, COUNT, kind)
    for kind in ("u8", "O", "u1"):
        yield f"struct of {kind}", partial(np.zeros, COUNT, [("a", kind)])
    for kind in ("u8", "u1"):
        yield f"grid of {kind}", partial(np.zeros, (COUNT, 80), kind)


class Pair(ctypes.Structure):
    _fields_ = (("high", ctypes.c_uint32), ("low", ctypes.c_uint32))


def of_ctypes() -> Iterator[tuple[str, Callable[[], Any]]]:
    simple = "bool byte ubyte char short ushort int uint long ulong longlong ulonglong size_t float double void_p wchar"
    for name in simple.split():
        yield name, getattr(ctypes, f"c_{name}") * COUNT
    yield "py_object", ctypes.py_object * COUNT
    yield "pointer", ctypes.POINTER(ctypes.c_int) * COUNT
    yield "struct", Pair * COUNT
    yield "foreign uint64", (ctypes.c_uint64.__ctype_be__ if NATIVE == "<" else ctypes.c_uint64.__ctype_le__) * COUNT
    yield "grid of char", ctypes.c_char * 80 * COUNT


BUFFERS: dict[str, Callable[[], Any]] = {
    "bytearray": lambda: bytearray(COUNT * 80),
    **{f"numpy {name}": make for name, make in of_numpy()},
    **{f"ctypes {name}": make for name, make in of_ctypes()},
    **{f"array {code}": partial(array, code, [0] * COUNT) for code in "bBhHiIlLqQfd"},
    "array of characters": partial(array, CHARACTERS, "x" * COUNT),
    **{f"cast {code}": partial(memoryview(bytearray(COUNT * 80)).cast, code) for code in "cbB?hHiIlLqQnNfdP"},
}

BYTES = {
    *("bytearray", "array b", "array B", "cast c", "cast b", "cast B", "numpy |i1", "numpy |u1", "numpy grid of u1"),
    *("ctypes byte", "ctypes ubyte", "ctypes char", "ctypes grid of char"),
}
UNSIGNED = {
    *("array Q", "cast Q", "cast N", "ctypes ulonglong", "ctypes size_t", f"numpy {NATIVE}u8", "numpy grid of u8"),
    *(("array L", "cast L", "ctypes ulong") if ctypes.sizeof(ctypes.c_long) == 8 else ()),
}
SIGNED = {
    *("array q", "cast q", "cast n", "ctypes longlong", f"numpy {NATIVE}i8"),
    *(("array l", "cast l", "ctypes long") if ctypes.sizeof(ctypes.c_long) == 8 else ()),
}


def narrow(buffer: Any) -> object:
    return snowflake.Generator(1, on_exhausted="advance").fill(buffer)


def wide(buffer: Any) -> object:
    return snowflake.Generator(1, layout=snowflake.DISCORD, on_exhausted="advance").fill(buffer)


def fill_sno(buffer: Any) -> object:
    return sno.Generator(1).fill(buffer)


def fill_locality(buffer: Any) -> object:
    return locality.Generator(pid=1).fill(buffer)


def size_of(buffer: object) -> int:
    try:
        return memoryview(buffer).nbytes  # type: ignore[arg-type]
    except ValueError:  # numpy lends no times
        return 0


CALLS: dict[str, tuple[Callable[[Any], object], set[str], str]] = {
    # The call, what it takes, and how it ends with a buffer of zeros that it takes.
    "sno.Generator.fill": (fill_sno, BYTES | {"numpy V10"}, "ok"),
    "locality.Generator.fill": (fill_locality, BYTES | {"numpy V16"}, "ok"),
    "snowflake.Generator.fill": (narrow, BYTES | UNSIGNED | SIGNED, "ok"),
    "snowflake.Generator.fill of 64 bits": (wide, BYTES | UNSIGNED, "ok"),
    "encode_into": (lambda b: sno.encode_into(bytes(size_of(b) // 16 * 10), b), BYTES | {"numpy S16"}, "ok"),
    "parse_into": (lambda b: sno.parse_into(b"2" * (size_of(b) // 10 * 16), b), BYTES | {"numpy V10"}, "ok"),
    "encode_into's IDs": (lambda b: sno.encode_into(b, bytearray(size_of(b) // 10 * 16)), BYTES | {"numpy V10"}, "ok"),
    "parse_into's text": (
        lambda b: sno.parse_into(b, bytearray(size_of(b) // 16 * 10)),
        BYTES | {"numpy S16"},
        "parse.character",
    ),
    "sno.Array": (sno.Array, BYTES | {"numpy V10"}, "ok"),
    "sno.Array.parse": (sno.Array.parse, BYTES | {"numpy S16"}, "parse.character"),
    "sno.ID": (sno.ID, BYTES | {"numpy V10"}, "parse.length"),
    "locality.Array": (locality.Array, BYTES | {"numpy V16"}, "ok"),
    "locality.ID": (locality.ID, BYTES | {"numpy V16"}, "parse.length"),
    "to_lines": (snowflake.to_lines, BYTES | UNSIGNED | SIGNED, "ok"),
}


@each_case("buffer", BUFFERS)
@each_case("name", CALLS)
def test_only_buffers_with_matching_items_are_used(name: str, buffer: str) -> None:
    call, takes, ends = CALLS[name]
    lent = BUFFERS[buffer]()
    before = b"" if buffer in takes or not size_of(lent) else memoryview(lent).tobytes()
    assert code_or_ok(call, lent) == (ends if buffer in takes else "config.buffer")
    if before:
        assert memoryview(lent).tobytes() == before


def test_error_names_the_actual_and_the_required_buffer() -> None:
    said = {
        wide: "buffer has items of format 'd', 8 bytes each, must have unsigned 64-bit integers in native byte"
        " order, or bytes",
        narrow: "buffer has items of format 'd', 8 bytes each, must have 64-bit integers in native byte order, or"
        " bytes",
        fill_sno: "buffer has items of format 'd', 8 bytes each, must have bytes, or void items of 10",
    }
    for call, message in said.items():
        with pytest.raises(MintError) as refused:
            call(np.zeros(80))
        assert str(refused.value).startswith(message)


@pytest.mark.parametrize("kind", ["u8", "i8", "V8"])
def test_non_contiguous_memory_is_refused_by_every_fill(kind: str) -> None:
    gaps, rows = np.zeros(160, kind)[::2], np.zeros((80, 80), kind, order="F")
    sealed, alone = np.zeros(80, kind), np.zeros((), kind)
    sealed.flags.writeable = False
    for call in (narrow, fill_sno, fill_locality):
        for lent in (gaps, rows, sealed, alone):
            assert code_or_ok(call, lent) == "config.buffer"


def test_filled_numbers_equal_those_of_a_batch() -> None:
    for kind in ("u8", "i8"):
        ids = np.zeros(5000, kind)
        assert narrow(ids) == 5000
        assert (np.diff(ids) > 0).all()
        assert snowflake.DEFAULT.parse(int(ids[0])).node == 1


def test_void_items_and_strings_hold_one_id_each() -> None:
    ids = np.zeros(100, "V10")
    assert fill_sno(ids) == 100
    texts = np.zeros(100, "S16")
    assert sno.encode_into(ids, texts) == 100
    assert [text.decode() for text in texts] == [str(one) for one in sno.Array(ids)]
    again = np.zeros(100, "V10")
    assert sno.parse_into(texts, again) == 100
    assert (again == ids).all()
