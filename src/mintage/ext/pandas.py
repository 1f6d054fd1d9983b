"""Columns of IDs in pandas.

>>> import pandas as pd
>>> from mintage import snowflake
>>> from mintage.ext.pandas import node_of, with_id
>>> orders = with_id(pd.DataFrame({"item": ["pen", "ink"]}), snowflake.Generator(node=786))
>>> orders.dtypes["id"], node_of(orders["id"], "snowflake").tolist()
(dtype('int64'), [786, 786])

The functions read each ID of a column. The expressions are pandas' own, for ``frame.assign`` and ``frame[…]``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

from mintage.errors import ArgumentError, ConfigError
from mintage.ext._columns import check_name, refused
from mintage.formats.bits import Scheme, bounds, node_sum, time_sum
from mintage.formats.values import type_name
from mintage.installation import missing

try:
    import pandas as pd
    import pyarrow as pa

    from mintage.ext import pyarrow as arrow
    from mintage.ext.pyarrow._filling import TEXT_MAX
except ModuleNotFoundError as error:
    raise missing(error, "pandas") from None

__all__ = ["field_of", "minted_between", "node_expr", "node_of", "parse", "text", "time_expr", "time_of", "with_id"]


_TEXT: Final = "str" if hasattr(pd, "col") else "string"
"""The type of text: pandas 2 makes NumPy's text of "str", in which a missing value becomes "None"."""


def _col(name: str) -> Any:
    if not hasattr(pd, "col"):
        message = f"pandas {pd.__version__} has no expressions: use pandas 3, or time_of and node_of on a column"
        raise ConfigError(message, code="config.policy")
    return pd.col(name)


def _array(column: Any) -> Any:
    """Return a column as an array of pandas: of NumPy's integers if none is missing, of pandas' text, or of Arrow."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pd.array(column.to_pylist() if column.null_count else column.to_numpy(zero_copy_only=False), dtype=_TEXT)
    if pa.types.is_timestamp(kind):
        return column.to_pandas().array
    if pa.types.is_integer(kind):
        # NumPy's integers would become floats if one were missing.
        return pd.array(column.to_pylist(), dtype="Int64") if column.null_count else column.to_numpy().copy()
    if pa.types.is_fixed_size_binary(kind):
        # pandas writes the type of fixed size into Parquet and Feather files, and cannot read it.
        small = kind.byte_width * len(column) <= TEXT_MAX
        column = column.cast(pa.binary() if small else pa.large_binary())
    return pd.arrays.ArrowExtensionArray(column)


def with_id(
    frame: pd.DataFrame, generator: object, name: str = "id", *, first: bool = True, as_text: bool = False
) -> pd.DataFrame:
    """Return a data frame with a column of new IDs, one for each row, of one ``batch``, and with the same index.

    >>> from mintage.ext.pandas import with_id
    >>> orders = with_id(pd.DataFrame({"item": ["pen", "ink"]}), "ulid", "order", first=False, as_text=True)
    >>> list(orders.columns), orders["order"].is_monotonic_increasing
    (['item', 'order'], True)

    :param frame: a ``pandas.DataFrame``, which does not change.
    :param generator: a generator of mintage, a :class:`~mintage.Sequence`, or the name or module of a scheme.
    :param name: the name of the new column.
    :param first: True for a column before the others, False for one after them.
    :param as_text: True for text; otherwise integers are ``int64``, and IDs of bytes are ``binary[pyarrow]``, which
        Parquet and Feather files keep. Write text to CSV files. NumPy's dtype of bytes, ``S``, would remove zero bytes
        from the end of an ID.
    :raises ArgumentError: ``frame`` or ``generator`` is something else, or ``name`` is not str.
    :raises FieldError: ``field.format``: the frame has a column of that name.
    :raises MintError: as ``batch``.
    """
    if not isinstance(frame, pd.DataFrame):
        hint = "compute it first" if type(frame).__module__.partition(".")[0] in ("dask", "modin", "pyspark") else ""
        raise refused(frame, "pandas.DataFrame", hint)
    check_name(name, frame.columns)
    column = _array(arrow.new_ids_column(generator, len(frame), as_text=as_text))
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
        message = f"column {series.name!a:.40} is no column of IDs: {str(error)[:100]}"
        raise ArgumentError(message, code="argument.type") from None
    made = function(column, *arguments, **options)
    if isinstance(made, pa.ChunkedArray):
        made = made.combine_chunks()
    return pd.Series(_array(made), index=series.index, name=series.name)


def time_of(column: pd.Series, scheme: Scheme) -> pd.Series:
    """Return the times of the IDs of a column: ``datetime64[ms, UTC]``, or ``ns`` if a tick is below 1 ms.

    >>> from mintage.ext.pandas import time_of
    >>> time_of(pd.Series([175928847299117063]), "discord").dt.year.tolist()
    [2016]

    :param column: a ``Series`` of ``int64`` or ``Int64``, of bytes or of text, as the IDs are.
    :param scheme: the name of a scheme, a format such as ``"uuid v6"`` or a layout, or a layout.
    :raises MintError: as :func:`mintage.ext.pyarrow.time_of`; also for a column of floats, whose IDs are rounded.
    """
    return _decoded(column, arrow.time_of, scheme)


def node_of(column: pd.Series, scheme: Scheme) -> pd.Series:
    """Return the node numbers of the IDs of a column: ``int64``, or ``Int64`` if one is missing.

    >>> from mintage.ext.pandas import node_of
    >>> node_of(pd.Series([175928847299117063]), "twitter").tolist()
    [32]

    :raises MintError: as :func:`mintage.ext.pyarrow.node_of`.
    """
    return _decoded(column, arrow.node_of, scheme)


def field_of(column: pd.Series, scheme: Scheme, field: str) -> pd.Series:
    """Return a field of the IDs of a column by its name: ``int64``, or ``Int64`` if one is missing.

    >>> from mintage.ext.pandas import field_of
    >>> field_of(pd.Series([175928847299117063]), "discord", "worker").tolist()
    [1]

    :raises MintError: as :func:`mintage.ext.pyarrow.field_of`.
    """
    return _decoded(column, arrow.field_of, scheme, field)


def text(column: pd.Series, scheme: Scheme) -> pd.Series:
    """Return the text of each ID of a column: ``str``.

    >>> from mintage import sno
    >>> from mintage.ext.pandas import text
    >>> text(pd.Series([bytes(sno.ID.parse("brpk4q72xwf2m63l"))]), "sno").tolist()
    ['brpk4q72xwf2m63l']

    :raises MintError: as :func:`mintage.ext.pyarrow.text`.
    """
    return _decoded(column, arrow.text, scheme)


def parse(column: pd.Series, scheme: Scheme, *, errors: Literal["raise", "null"] = "raise") -> pd.Series:
    """Return the IDs of a column of text, of the type that :func:`with_id` returns, or ``Int64`` if one is missing.

    >>> from mintage.ext.pandas import parse
    >>> parse(pd.Series(["175928847299117063", "ORD-17"]), "discord", errors="null").isna().tolist()
    [False, True]

    :raises MintError: as :func:`mintage.ext.pyarrow.parse`.
    """
    return _decoded(column, arrow.parse, scheme, errors=errors)


def time_expr(layout: Scheme, column: str = "id") -> Any:
    """Return a pandas expression of the times of integers: ``frame.assign(time=time_expr(…))``.

    >>> from mintage.ext.pandas import time_expr
    >>> orders = pd.DataFrame({"id": [175928847299117063]})
    >>> if hasattr(pd, "col"):  # since pandas 3
    ...     assert orders.assign(time=time_expr("discord"))["time"].dt.year.tolist() == [2016]

    :param layout: ``"snowflake"``, the name of a layout, or a :class:`~mintage.snowflake.Layout`.
    :param column: the name of a column of ``int64``, or ``Int64``.
    :raises ConfigError: ``config.policy``: the IDs are no integers, or there is no such layout.
    """
    made, clock = time_sum(layout, _col(column))
    return made.astype(f"datetime64[{clock.unit}, UTC]")


def node_expr(layout: Scheme, column: str = "id") -> Any:
    """Return a pandas expression of the node numbers of integers.

    >>> from mintage.ext.pandas import node_expr
    >>> orders = pd.DataFrame({"id": [175928847299117063, 17]})
    >>> if hasattr(pd, "col"):  # since pandas 3
    ...     assert len(orders[node_expr("twitter") == 32]) == 1

    :raises ConfigError: as :func:`time_expr`.
    :raises FieldError: ``field.format``: the layout has no node number.
    """
    return node_sum(layout, _col(column))


def minted_between(scheme: Scheme, column: str, start: datetime | int, end: datetime | int) -> Any:
    """Return a condition for ``frame[…]``: IDs minted at ``start`` or later, and before ``end``.

    To skip parts of a Parquet file, pass the filter of :func:`mintage.ext.pyarrow.minted_between` to
    ``pandas.read_parquet``.

    >>> from datetime import datetime, timezone
    >>> from mintage.ext.pandas import minted_between
    >>> april, may = datetime(2016, 4, 1, tzinfo=timezone.utc), datetime(2016, 5, 1, tzinfo=timezone.utc)
    >>> orders = pd.DataFrame({"id": [175928847299117063, 17]})
    >>> if hasattr(pd, "col"):  # since pandas 3
    ...     assert len(orders[minted_between("discord", "id", april, may)]) == 1

    :raises FieldError: as :func:`mintage.ext.columns.bounds`.
    """
    low, high = bounds(scheme, start, end)
    return (_col(column) >= low) & (_col(column) < high)
