"""The rows of columns: the cost of minting frame columns beside writing the same memory."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

from benchmarks.row import Row, at_most
from benchmarks.timing import Loop, Side, calls, side_by_side

MANY = 10_000_000
IN_CACHE = 1_000
"""As in the bulk rows."""
VIEW = 16
"""Bytes of a view, in which a sno lies itself."""


def ids(count: int, scheme: str = "sno") -> Any:
    return resolve_name(f"mintage.{scheme}:Generator")(1).batch(count)


def once(make: Callable[[], Callable[[], object]], count: int = MANY) -> Side:
    """Return a call that makes a column of many IDs."""
    return Side(lambda: calls(make()), repeats=1, ids=count)


def in_cache(make: Callable[[], Loop]) -> Side:
    return Side(make, repeats=2_000, ids=IN_CACHE)


def _minted_column() -> Callable[[], object]:
    frame, column = resolve_name("polars:DataFrame"), resolve_name("mintage:column")
    batch = resolve_name("mintage.sno:Generator")(1).batch
    return lambda: frame(column(batch(MANY), type="binary_view"))


def _minted_and_filled() -> Callable[[], object]:
    full = resolve_name("numpy:full")
    fill, buffer = resolve_name("mintage.sno:Generator")(1).fill, bytearray(10 * MANY)
    return lambda: (fill(buffer), full(VIEW * MANY, 7, "u1"))


def _column() -> Callable[[], object]:
    frame, column, minted = resolve_name("polars:DataFrame"), resolve_name("mintage:column"), ids(MANY)
    return lambda: frame(column(minted, type="binary_view"))


def _filled() -> Callable[[], object]:
    full = resolve_name("numpy:full")
    return lambda: full(VIEW * MANY, 7, "u1")


def _text() -> Loop:
    return calls(resolve_name("mintage:column")(ids(IN_CACHE), type="string").__arrow_c_array__)


def _views() -> Loop:
    return calls(resolve_name("mintage:column")(ids(IN_CACHE), type="binary_view").__arrow_c_array__)


def _parsed() -> Loop:
    return calls(resolve_name("mintage.sno:Array").parse, ids(IN_CACHE).encode())


def _cast_to_text() -> Loop:
    """Return a call in which pyarrow itself casts a column of numbers to decimal text."""
    cast = resolve_name("pyarrow:array")(ids(IN_CACHE, "snowflake")).cast
    return calls(cast, resolve_name("pyarrow:string")())


def _cast_to_integers() -> Loop:
    pyarrow = resolve_name("pyarrow:array")
    texts = pyarrow(ids(IN_CACHE, "snowflake"), type=resolve_name("pyarrow:string")())
    return calls(texts.cast, resolve_name("pyarrow:int64")())


def _batch() -> Loop:
    return calls(resolve_name("mintage.snowflake:Generator")(1, on_exhausted="advance").batch, 65_536)


def _batch_in_array() -> Loop:
    array = resolve_name("array:array")
    batch = resolve_name("mintage.snowflake:Generator")(1, on_exhausted="advance").batch
    return calls(lambda: array("Q", batch(65_536).tobytes()))


FULL = "numpy.full of as many bytes"

COLUMNS: tuple[Row, ...] = (
    Row(
        "10,000,000 sno IDs, minted, as a Polars column",
        f"sno fill, and {FULL}",
        side_by_side(once(_minted_column), once(_minted_and_filled)),
        at_most(1.3),
        note="Views, in which a sno lies itself: 160 MB. The other mints into memory that is there, and fills as much.",
    ),
    Row(
        "10,000,000 sno IDs as a Polars column",
        FULL,
        side_by_side(once(_column), once(_filled)),
        note="The same from an Array that is there.",
    ),
    Row(
        "text of a column of 1,000 sno IDs",
        "pyarrow's cast of snowflakes to text",
        side_by_side(in_cache(_text), in_cache(_cast_to_text)),
        at_most(10, "figure"),
        note="An ID; the price of the call is in the figure.",
    ),
    Row(
        "views of a column of 1,000 sno IDs",
        "pyarrow's cast of snowflakes to text",
        side_by_side(in_cache(_views), in_cache(_cast_to_text)),
        at_most(10, "figure"),
        note="An ID; the price of the call is in the figure.",
    ),
    Row(
        "sno.Array.parse(), 1,000 IDs",
        "pyarrow's cast of text to integers",
        side_by_side(in_cache(_parsed), in_cache(_cast_to_integers)),
        at_most(10, "figure"),
        note="An ID; the price of the call is in the figure.",
    ),
    Row(
        "snowflake batch of 65,536",
        "the same, copied into an array.array",
        side_by_side(Side(_batch, 20, 65_536), Side(_batch_in_array, 20, 65_536)),
        at_most(1.0),
        note="The copy is what a batch was before it had a class.",
    ),
)
