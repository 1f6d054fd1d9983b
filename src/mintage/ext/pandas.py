"""Columns of IDs in pandas.

>>> import pandas as pd
>>> from mintage import snowflake
>>> from mintage.ext.pandas import node_of, with_id
>>> orders = with_id(pd.DataFrame({"item": ["pen", "ink"]}), snowflake.Generator(node=786))
>>> orders.dtypes["id"], node_of(orders["id"], "snowflake").tolist()
(dtype('int64'), [786, 786])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mintage.errors import ArgumentError
from mintage.formats.bits import Scheme, bounds, node_sum, time_sum
from mintage.formats.values import type_name
from mintage.installation import missing

try:
    import pandas as pd
    import pyarrow as pa

    from mintage.ext import pyarrow as arrow
except ModuleNotFoundError as error:
    raise missing(error, "pandas") from None

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["minted_between", "node_expr", "node_of", "parse", "text", "time_expr", "time_of", "with_id"]


def _array(column: Any) -> Any:
    """A column as an array of pandas: integers of NumPy where none is missing, text as pandas' own, else Arrow's."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pd.array(column.to_pylist() if column.null_count else column.to_numpy(zero_copy_only=False), dtype="str")
    if pa.types.is_timestamp(kind):
        return column.to_pandas().array
    if pa.types.is_integer(kind):
        # With one missing, NumPy's would be floats.
        return pd.array(column.to_pylist(), dtype="Int64") if column.null_count else column.to_numpy().copy()
    if pa.types.is_fixed_size_binary(kind):
        # pandas writes the name of a fixed size into Parquet and Feather files, and cannot read it.
        small = kind.byte_width * len(column) <= arrow.TEXT_MAX
        column = column.cast(pa.binary() if small else pa.large_binary())
    return pd.arrays.ArrowExtensionArray(column)


def with_id(
    frame: pd.DataFrame, generator: object, name: str = "id", *, first: bool = True, as_text: bool = False
) -> pd.DataFrame:
    """Return a data frame with a column of new IDs, as many as it has rows, of one ``batch``. The index stays as it is.

    :param frame: a ``pandas.DataFrame``, which stays as it is.
    :param generator: one of mintage's, a :class:`~mintage.Sequence` among them; or the name or module of a scheme.
    :param name: the new column's.
    :param first: whether it comes before the others, or behind them.
    :param as_text: whether the IDs are text; otherwise integers are ``int64``, and IDs of bytes ``binary[pyarrow]``,
        which Parquet and Feather files keep. CSV files hold text only. NumPy's own dtype of bytes, ``S``, would cut off
        zero bytes at the end of an ID.
    :raises ArgumentError: ``frame`` is none, ``generator`` is none, or ``name`` is not str.
    :raises FieldError: ``field.format``: there is a column of that name.
    :raises MintError: as ``batch``.
    """
    if not isinstance(frame, pd.DataFrame):
        hint = "compute it first" if type(frame).__module__.partition(".")[0] in ("dask", "modin", "pyspark") else ""
        raise arrow.refused(frame, "pandas.DataFrame", hint)
    arrow.check_name(name, frame.columns)
    column = _array(arrow.minted(generator, len(frame), as_text=as_text))
    made = frame.copy(deep=False)
    made.insert(0 if first else made.shape[1], name, column)
    return made


def _decoded(series: pd.Series, function: Any, *arguments: Any, **options: Any) -> pd.Series:
    if not isinstance(series, pd.Series):
        message = f"column must be a pandas.Series, not {type_name(type(series))}"
        raise ArgumentError(message, code="argument.type")
    try:
        column = pa.array(series, from_pandas=True)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        message = f"column {series.name!a:.40} holds what no column of IDs does: {str(error)[:100]}"
        raise ArgumentError(message, code="argument.type") from None
    made = function(column, *arguments, **options)
    if isinstance(made, pa.ChunkedArray):
        made = made.combine_chunks()
    return pd.Series(_array(made), index=series.index, name=series.name)


def time_of(column: pd.Series, scheme: Scheme) -> pd.Series:
    """When the IDs of a column were minted: ``datetime64[ms, UTC]``, or ``ns`` where ticks are below a millisecond.

    :param column: a ``Series`` of ``int64`` or ``Int64``, of bytes or of text, as the IDs are.
    :param scheme: a scheme's name, a format's such as ``"uuid v6"``, a layout's, or a layout.
    :raises MintError: as :func:`mintage.ext.pyarrow.time_of`; also a column of floats, whose IDs have been rounded.
    """
    return _decoded(column, arrow.time_of, scheme)


def node_of(column: pd.Series, scheme: Scheme) -> pd.Series:
    """Return which node minted the IDs of a column: ``int64``, or ``Int64`` where one is missing.

    :raises MintError: as :func:`mintage.ext.pyarrow.node_of`.
    """
    return _decoded(column, arrow.node_of, scheme)


def text(column: pd.Series, scheme: Scheme) -> pd.Series:
    """Return the text of each ID of a column: ``str``.

    :raises MintError: as :func:`mintage.ext.pyarrow.text`.
    """
    return _decoded(column, arrow.text, scheme)


def parse(column: pd.Series, scheme: Scheme, *, errors: Literal["raise", "null"] = "raise") -> pd.Series:
    """Return the IDs of a column of text: as :func:`with_id` has them, or ``Int64`` where one is missing.

    :raises MintError: as :func:`mintage.ext.pyarrow.parse`.
    """
    return _decoded(column, arrow.parse, scheme, errors=errors)


def time_expr(layout: Scheme, column: str = "id") -> Any:
    """When the integers of a column were minted, as an expression of pandas' own: ``frame.assign(time=time_expr(…))``.

    :param layout: ``"snowflake"``, the name of a layout, or a :class:`~mintage.snowflake.Layout`.
    :param column: the name of a column of ``int64``, or ``Int64``.
    :raises ConfigError: ``config.policy``: no such layout of integers.
    """
    made, clock = time_sum(layout, pd.col(column))
    return made.astype(f"datetime64[{clock.unit}, UTC]")


def node_expr(layout: Scheme, column: str = "id") -> Any:
    """Return which node minted the integers of a column, as an expression of pandas' own.

    :raises ConfigError: as :func:`time_expr`.
    :raises FieldError: ``field.format``: the layout has no node number.
    """
    return node_sum(layout, pd.col(column))


def minted_between(scheme: Scheme, column: str, start: datetime | int, end: datetime | int) -> Any:
    """A condition on a column of IDs, minted at ``start`` or later and before ``end``: ``frame[minted_between(…)]``.

    To leave parts of a Parquet file unread, give ``pandas.read_parquet`` the filter of
    :func:`mintage.ext.pyarrow.minted_between`.

    :raises FieldError: as :func:`mintage.formats.sql.bounds`.
    """
    low, high = bounds(scheme, start, end)
    return (pd.col(column) >= low) & (pd.col(column) < high)
