"""IDs as a column with a name, which frames and databases take as it is."""

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
    """A table of one column, as Arrow's PyCapsule interface describes it: pyarrow, Polars, pandas and DuckDB take it.

    >>> from mintage import column, sno
    >>> ids = column(sno.Generator(1).batch(1000), "order_id")

    Then ``pyarrow.table(ids)``, ``polars.DataFrame(ids)``, ``pandas.DataFrame.from_arrow(ids)`` and
    ``duckdb.sql("from ids")`` are that table. Each of them may read it, and as often as it likes.

    :param ids: an Array of any scheme, or any other object with ``__arrow_c_array__``. Nothing of it is copied.
    :param type: what the column is of, by Arrow's name: ``"binary"``, ``"large_binary"``, ``"binary_view"``; or for the
        text of the IDs ``"string"``, ``"large_string"``, ``"string_view"``. By default what ``ids`` are, which for an
        Array is binary of fixed size. Of another object it is a wish, which that may ignore.
    :raises ArgumentError: an argument of the wrong type.
    :raises FieldError: ``field.format``: a zero character in ``name``.
    :raises ConfigError: ``config.policy``: another ``type``.
    """
    return Column(ids, name, type)
