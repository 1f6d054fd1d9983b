"""Columns of IDs in Polars.

>>> import polars as pl
>>> from mintage import snowflake
>>> from mintage.ext.polars import node_expr, with_id
>>> orders = with_id(pl.DataFrame({"item": ["pen", "ink"]}), snowflake.Generator(node=786))
>>> orders.schema["id"], orders.select(node_expr("snowflake", "id"))["id"].to_list()
(Int64, [786, 786])

The functions read each ID of a ``Series``. The expressions are Polars' own, so they also work in a ``LazyFrame``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Literal

from mintage.errors import ArgumentError
from mintage.ext._columns import check_name, refused
from mintage.formats.bits import Scheme, bounds, node_sum, time_sum
from mintage.formats.values import type_name
from mintage.installation import missing

try:
    import polars as pl

    from mintage.ext import pyarrow as arrow
except ModuleNotFoundError as error:
    raise missing(error, "polars") from None

__all__ = ["field_of", "minted_between", "node_expr", "node_of", "parse", "text", "time_expr", "time_of", "with_id"]


def with_id(
    frame: pl.DataFrame, generator: object, name: str = "id", *, first: bool = True, as_text: bool = False
) -> pl.DataFrame:
    """Return a data frame with a column of new IDs, one for each row, of one ``batch``.

    A ``LazyFrame`` is refused: it is a plan, and Polars may run a part of it once for two uses, or twice for one.

    >>> from mintage.ext.polars import with_id
    >>> orders = with_id(pl.DataFrame({"item": ["pen", "ink"]}), "ulid", "order", first=False, as_text=True)
    >>> orders.columns, orders["order"].is_sorted()
    (['item', 'order'], True)

    :param frame: a ``polars.DataFrame``, which does not change.
    :param generator: a generator of mintage, a :class:`~mintage.Sequence`, or the name or module of a scheme.
    :param name: the name of the new column.
    :param first: True for a column before the others, False for one after them.
    :param as_text: True for ``String``; otherwise integers are ``Int64``, and IDs of bytes are ``Binary``.
    :raises ArgumentError: ``frame`` or ``generator`` is something else, or ``name`` is not str.
    :raises FieldError: ``field.format``: the frame has a column of that name.
    :raises MintError: as ``batch``.
    """
    if not isinstance(frame, pl.DataFrame):
        lazy = isinstance(frame, (pl.LazyFrame, pl.Expr))
        hint = "call collect() first, and with_id on what it returns" if lazy else ""
        raise refused(frame, "polars.DataFrame", hint)
    check_name(name, frame.columns)
    column = pl.Series(name, arrow.new_ids_column(generator, frame.height, as_text=as_text))
    return pl.DataFrame([column, *frame] if first else [*frame, column])


_CASTS: Final = {
    "Int128": "call cast(pl.Int64) first",
    "UInt128": "call cast(pl.Int64) first",
    "Object": "make a column of the bytes of its IDs first, or of their text",
}
"""The remedy for a column of each type that Arrow does not have."""


def _decoded(series: pl.Series, function: Callable[..., Any], *arguments: Any, **options: Any) -> pl.Series:
    if not isinstance(series, pl.Series):
        hint = ": for integers, time_expr and node_expr return an Expr" if isinstance(series, pl.Expr) else ""
        message = f"column must be a polars.Series, not {type_name(type(series))}{hint}"
        raise ArgumentError(message, code="argument.type")
    if (cast := _CASTS.get(str(series.dtype))) is not None:
        message = f"a column of IDs must not be {series.dtype}, which Arrow does not have: {cast}"
        raise ArgumentError(message, code="argument.type")
    return pl.Series(series.name, function(series.to_arrow(), *arguments, **options))


def time_of(column: pl.Series, scheme: Scheme) -> pl.Series:
    """Return the times of the IDs of a column: ``Datetime("ms", "UTC")``, or ``"ns"`` if a tick is below 1 ms.

    >>> from mintage.ext.polars import time_of
    >>> time_of(pl.Series([175928847299117063, None]), "discord").dt.year().to_list()
    [2016, None]

    :param column: a ``Series`` of ``Int64``, ``Binary`` or ``String``, as the IDs are.
    :param scheme: the name of a scheme, a format such as ``"uuid v6"`` or a layout, or a layout.
    :raises MintError: as :func:`mintage.ext.pyarrow.time_of`.
    """
    return _decoded(column, arrow.time_of, scheme)


def node_of(column: pl.Series, scheme: Scheme) -> pl.Series:
    """Return the node numbers of the IDs of a column: ``Int64``.

    >>> from mintage.ext.polars import node_of
    >>> node_of(pl.Series([175928847299117063, None]), "twitter").to_list()
    [32, None]

    :raises MintError: as :func:`mintage.ext.pyarrow.node_of`.
    """
    return _decoded(column, arrow.node_of, scheme)


def field_of(column: pl.Series, scheme: Scheme, field: str) -> pl.Series:
    """Return a field of the IDs of a column by its name: ``Int64``.

    >>> from mintage.ext.polars import field_of
    >>> field_of(pl.Series([175928847299117063]), "discord", "worker").to_list()
    [1]

    :raises MintError: as :func:`mintage.ext.pyarrow.field_of`.
    """
    return _decoded(column, arrow.field_of, scheme, field)


def text(column: pl.Series, scheme: Scheme) -> pl.Series:
    """Return the text of each ID of a column: ``String``.

    >>> from mintage import sno
    >>> from mintage.ext.polars import text
    >>> text(pl.Series([bytes(sno.ID.parse("brpk4q72xwf2m63l"))]), "sno").to_list()
    ['brpk4q72xwf2m63l']

    :raises MintError: as :func:`mintage.ext.pyarrow.text`.
    """
    return _decoded(column, arrow.text, scheme)


def parse(column: pl.Series, scheme: Scheme, *, errors: Literal["raise", "null"] = "raise") -> pl.Series:
    """Return the IDs of a column of text, of the type that :func:`with_id` returns.

    >>> from mintage.ext.polars import parse
    >>> parse(pl.Series(["175928847299117063", "ORD-17"]), "discord", errors="null").to_list()
    [175928847299117063, None]

    :raises MintError: as :func:`mintage.ext.pyarrow.parse`.
    """
    return _decoded(column, arrow.parse, scheme, errors=errors)


def time_expr(layout: Scheme, column: str = "id") -> pl.Expr:
    """Return a Polars expression of the times of integers, also for a ``LazyFrame``.

    >>> from mintage.ext.polars import time_expr
    >>> orders = pl.LazyFrame({"id": [175928847299117063]})
    >>> orders.select(time_expr("discord").dt.year()).collect().item()
    2016

    :param layout: ``"snowflake"``, the name of a layout, or a :class:`~mintage.snowflake.Layout`.
    :param column: the name of a column of ``Int64``.
    :returns: an expression of ``Datetime("ms", "UTC")``.
    :raises ConfigError: ``config.policy``: the IDs are no integers, or there is no such layout.
    """
    made, clock = time_sum(layout, pl.col(column))
    expression: pl.Expr = made.cast(pl.Datetime(clock.unit, "UTC"))
    return expression


def node_expr(layout: Scheme, column: str = "id") -> pl.Expr:
    """Return a Polars expression of the node numbers of integers.

    >>> from mintage.ext.polars import node_expr
    >>> orders = pl.LazyFrame({"id": [175928847299117063, 17]})
    >>> orders.filter(node_expr("twitter") == 32).collect()["id"].to_list()
    [175928847299117063]

    :raises ConfigError: as :func:`time_expr`.
    :raises FieldError: ``field.format``: the layout has no node number.
    """
    node: pl.Expr = node_sum(layout, pl.col(column))
    return node


def minted_between(scheme: Scheme, column: str, start: datetime | int, end: datetime | int) -> pl.Expr:
    """Return a condition for ``filter``: IDs minted at ``start`` or later, and before ``end``.

    It compares the column with two IDs, so that ``scan_parquet`` skips row groups outside the range.

    >>> from datetime import datetime, timezone
    >>> from mintage.ext.polars import minted_between
    >>> april, may = datetime(2016, 4, 1, tzinfo=timezone.utc), datetime(2016, 5, 1, tzinfo=timezone.utc)
    >>> orders = pl.LazyFrame({"id": [175928847299117063, 17]})
    >>> orders.filter(minted_between("discord", "id", april, may)).collect()["id"].to_list()
    [175928847299117063]

    :raises FieldError: as :func:`mintage.ext.columns.bounds`.
    """
    low, high = bounds(scheme, start, end)
    return (pl.col(column) >= pl.lit(low)) & (pl.col(column) < pl.lit(high))
