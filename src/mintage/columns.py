"""A named column of IDs, which data frames and databases read without a copy."""

from __future__ import annotations

from typing import Any, Literal

from mintage._core.arrow import Column

__all__ = ["Column", "column"]


def column(
    ids: Any,
    name: str = "id",
    *,
    type: Literal["binary", "large_binary", "binary_view", "string", "large_string", "string_view"] | None = None,
) -> Column:
    """Return a table of one column, which pyarrow, Polars, pandas and DuckDB read through Arrow's PyCapsule interface.

    >>> from mintage import column, sno
    >>> from mintage.columns import Column
    >>> ids = column(sno.Generator(1).batch(1000), "order_id")
    >>> isinstance(ids, Column)
    True

    Then ``pyarrow.table(ids)``, ``polars.DataFrame(ids)``, ``pandas.DataFrame.from_arrow(ids)`` and
    ``duckdb.sql("from ids")`` are that table. Each of them can read it any number of times.

    :param ids: an Array of any scheme, or another object with ``__arrow_c_array__``. It is not copied.
    :param name: the name of the column.
    :param type: Arrow's name of the column's type: ``"binary"``, ``"large_binary"`` or ``"binary_view"``; or, for the
        text of the IDs, ``"string"``, ``"large_string"`` or ``"string_view"``. The default is the type of ``ids``,
        which for an Array is binary of fixed size. An object that is no Array may ignore it.
    :raises ArgumentError: an argument of the wrong type.
    :raises FieldError: ``field.format``: a zero character in ``name``.
    :raises ConfigError: ``config.policy``: another ``type``.
    """
    return Column(ids, name, type)
