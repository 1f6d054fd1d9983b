"""Columns of IDs in Polars.

>>> import polars as pl
>>> from mintage import snowflake
>>> from mintage.ext.polars import node_expr, with_id
>>> orders = with_id(pl.DataFrame({"item": ["pen", "ink"]}), snowflake.Generator(node=786))
>>> orders.schema["id"], orders.select(node_expr("snowflake", "id"))["id"].to_list()
(Int64, [786, 786])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mintage.errors import ArgumentError
from mintage.formats.bits import Scheme, bounds, node_sum, time_sum
from mintage.formats.values import type_name
from mintage.installation import missing

try:
    import polars as pl

    from mintage.ext import pyarrow as arrow
except ModuleNotFoundError as error:
    raise missing(error, "polars") from None

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

__all__ = ["minted_between", "node_expr", "node_of", "parse", "text", "time_expr", "time_of", "with_id"]


def with_id(
    frame: pl.DataFrame, generator: object, name: str = "id", *, first: bool = True, as_text: bool = False
) -> pl.DataFrame:
    """Return a data frame with a column of new IDs, as many as it has rows, of one ``batch``.

    A ``LazyFrame`` is refused: it is a plan, of which Polars may run a part once for two uses, or twice for one.

    :param frame: a ``polars.DataFrame``, which stays as it is.
    :param generator: one of mintage's, a :class:`~mintage.Sequence` among them; or the name or module of a scheme.
    :param name: the new column's.
    :param first: whether it comes before the others, or behind them.
    :param as_text: whether the IDs are ``String``; otherwise integers are ``Int64``, and IDs of bytes ``Binary``.
    :raises ArgumentError: ``frame`` is none, ``generator`` is none, or ``name`` is not str.
    :raises FieldError: ``field.format``: there is a column of that name.
    :raises MintError: as ``batch``.
    """
    if not isinstance(frame, pl.DataFrame):
        lazy = isinstance(frame, (pl.LazyFrame, pl.Expr))
        hint = "call collect() first, and with_id on what it returns" if lazy else ""
        raise arrow.refused(frame, "polars.DataFrame", hint)
    arrow.check_name(name, frame.columns)
    column = pl.Series(name, arrow.minted(generator, frame.height, as_text=as_text))
    return _inserted(frame, column, first=first)


def _inserted(frame: pl.DataFrame, column: pl.Series, *, first: bool) -> pl.DataFrame:
    if not frame.width:
        return column.to_frame()
    return frame.clone().insert_column(0 if first else frame.width, column)


def _decoded(series: pl.Series, function: Callable[..., Any], *arguments: Any, **options: Any) -> pl.Series:
    if not isinstance(series, pl.Series):
        hint = ": an Expr of integers is what time_expr and node_expr give" if isinstance(series, pl.Expr) else ""
        message = f"column must be a polars.Series, not {type_name(type(series))}{hint}"
        raise ArgumentError(message, code="argument.type")
    return pl.Series(series.name, function(series.to_arrow(), *arguments, **options))


def time_of(column: pl.Series, scheme: Scheme) -> pl.Series:
    """When the IDs of a column were minted: ``Datetime("ms", "UTC")``, or ``"ns"`` where ticks are below a millisecond.

    :param column: a ``Series`` of ``Int64``, ``Binary`` or ``String``, as the IDs are.
    :param scheme: a scheme's name, a format's such as ``"uuid v6"``, a layout's, or a layout.
    :raises MintError: as :func:`mintage.ext.pyarrow.time_of`.
    """
    return _decoded(column, arrow.time_of, scheme)


def node_of(column: pl.Series, scheme: Scheme) -> pl.Series:
    """Return which node minted the IDs of a column: ``Int64``.

    :raises MintError: as :func:`mintage.ext.pyarrow.node_of`.
    """
    return _decoded(column, arrow.node_of, scheme)


def text(column: pl.Series, scheme: Scheme) -> pl.Series:
    """Return the text of each ID of a column: ``String``.

    :raises MintError: as :func:`mintage.ext.pyarrow.text`.
    """
    return _decoded(column, arrow.text, scheme)


def parse(column: pl.Series, scheme: Scheme, *, errors: Literal["raise", "null"] = "raise") -> pl.Series:
    """Return the IDs of a column of text: as :func:`with_id` has them.

    :raises MintError: as :func:`mintage.ext.pyarrow.parse`.
    """
    return _decoded(column, arrow.parse, scheme, errors=errors)


def time_expr(layout: Scheme, column: str = "id") -> pl.Expr:
    """Return when the integers of a column were minted, as an expression of Polars' own, also of a ``LazyFrame``.

    :param layout: ``"snowflake"``, the name of a layout, or a :class:`~mintage.snowflake.Layout`.
    :param column: the name of a column of ``Int64``.
    :returns: an expression of ``Datetime("ms", "UTC")``.
    :raises ConfigError: ``config.policy``: no such layout of integers.
    """
    made, clock = time_sum(layout, pl.col(column))
    expression: pl.Expr = made.cast(pl.Datetime(clock.unit, "UTC"))
    return expression


def node_expr(layout: Scheme, column: str = "id") -> pl.Expr:
    """Return which node minted the integers of a column, as an expression of Polars' own.

    :raises ConfigError: as :func:`time_expr`.
    :raises FieldError: ``field.format``: the layout has no node number.
    """
    node: pl.Expr = node_sum(layout, pl.col(column))
    return node


def minted_between(scheme: Scheme, column: str, start: datetime | int, end: datetime | int) -> pl.Expr:
    """Return a condition on a column of IDs: minted at ``start`` or later, and before ``end``.

    It compares the column with two IDs, so ``scan_parquet`` leaves out the row groups that are outside.

    :raises FieldError: as :func:`mintage.formats.sql.bounds`.
    """
    low, high = bounds(scheme, start, end)
    return (pl.col(column) >= pl.lit(low)) & (pl.col(column) < pl.lit(high))
