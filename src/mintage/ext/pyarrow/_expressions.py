"""Expressions of Arrow that read the fields of integers, and conditions on the time of IDs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from mintage.formats.bits import Scheme, TimeBits, bounds, layout_of, node_bits, numbers, time_bits


def _added(layout: Scheme, column: str, which: Literal["time", "node"]) -> tuple[Any, TimeBits]:
    found = layout_of(layout)
    time = time_bits(found.format) if which == "time" else TimeBits("ms", 0, node_bits(found.format))
    made = None
    for low, mask, weight in numbers(found, time.runs):
        term = pc.shift_right(pc.field(column), low) if low else pc.field(column)
        term = term if mask is None else pc.bit_wise_and(term, pa.scalar(mask, pa.int64()))
        term = term if weight == 1 else pc.multiply(term, weight)
        made = term if made is None else pc.add(made, term)
    return (pc.add(made, time.base) if time.base else made), time


def time_expr(layout: Scheme, column: str = "id") -> Any:
    """Return an Arrow expression of the times of integers, for a dataset's scanner and filters.

    >>> import pyarrow as pa
    >>> import pyarrow.dataset as ds
    >>> from mintage.ext.pyarrow import time_expr
    >>> orders = ds.dataset(pa.table({"id": [175928847299117063]}))
    >>> orders.to_table(columns={"time": time_expr("discord")})["time"][0].as_py().isoformat()
    '2016-04-30T11:18:25.796000+00:00'

    :param layout: ``"snowflake"``, the name of a layout, or a :class:`~mintage.snowflake.Layout`.
    :param column: the name of a column of ``int64``.
    :returns: a ``pyarrow.compute.Expression`` of ``timestamp("ms", "UTC")``.
    :raises ConfigError: ``config.policy``: the IDs are no integers, or there is no such layout.
    """
    made, time = _added(layout, column, "time")
    return made.cast(pa.timestamp(time.unit, "UTC"))


def node_expr(layout: Scheme, column: str = "id") -> Any:
    """Return an Arrow expression of the node numbers of integers.

    >>> import pyarrow as pa
    >>> from mintage.ext.pyarrow import node_expr
    >>> pa.table({"id": [175928847299117063, 17]}).filter(node_expr("twitter") == 32)["id"].to_pylist()
    [175928847299117063]

    :raises ConfigError: as :func:`time_expr`.
    :raises FieldError: ``field.format``: the layout has no node number.
    """
    return _added(layout, column, "node")[0]


def minted_between(scheme: Scheme, column: str, start: datetime | int, end: datetime | int) -> Any:
    """Return a condition for ``filter``: IDs minted at ``start`` or later, and before ``end``.

    It compares the column with two IDs, so that a dataset skips files, row groups and partitions outside the range.

    >>> import pyarrow as pa
    >>> from datetime import datetime, timezone
    >>> from mintage.ext.pyarrow import minted_between
    >>> april, may = datetime(2016, 4, 1, tzinfo=timezone.utc), datetime(2016, 5, 1, tzinfo=timezone.utc)
    >>> pa.table({"id": [175928847299117063, 17]}).filter(minted_between("discord", "id", april, may))["id"].to_pylist()
    [175928847299117063]

    :param scheme: a name, or a layout; the column has integers, binary or text, as the scheme's IDs are.
    :param column: the name of the column.
    :param start: an aware datetime, or nanoseconds since 1970.
    :param end: the same.
    :returns: a ``pyarrow.compute.Expression``.
    :raises FieldError: as :func:`mintage.ext.columns.bounds`.
    """
    low, high = bounds(scheme, start, end)
    return (pc.field(column) >= low) & (pc.field(column) < high)
