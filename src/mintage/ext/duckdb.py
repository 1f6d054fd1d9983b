"""Columns of IDs in DuckDB.

>>> import duckdb
>>> from mintage import snowflake
>>> from mintage.ext.duckdb import node_expr, with_id
>>> orders = with_id(duckdb.sql("SELECT unnest(['pen', 'ink']) AS item"), snowflake.Generator(node=786))
>>> orders.columns, orders.select(node_expr("snowflake", "id")).fetchall()
(['id', 'item'], [(786,), (786,)])

The functions on relations read each ID of a column, and append what they find as a column. The expressions are
DuckDB's own, so they also work on tables and files.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

from mintage.errors import ArgumentError, FieldError
from mintage.ext._columns import check_name, refused
from mintage.formats.bits import Scheme
from mintage.formats.sql import sql_minted_between, sql_node, sql_time
from mintage.installation import missing

try:
    import duckdb

    from mintage.ext import pyarrow as arrow
except ModuleNotFoundError as error:
    raise missing(error, "duckdb") from None

__all__ = ["field_of", "minted_between", "node_expr", "node_of", "parse", "text", "time_expr", "time_of", "with_id"]


def _scanned(relation: Any, __mintage_rows: Any) -> duckdb.DuckDBPyRelation:
    """Return a table as a relation, in the connection of another relation."""
    made: duckdb.DuckDBPyRelation = relation.query("__mintage_relation", "FROM __mintage_rows")
    return made


def with_id(
    frame: duckdb.DuckDBPyRelation, generator: object, name: str = "id", *, first: bool = True, as_text: bool = False
) -> duckdb.DuckDBPyRelation:
    """Return a relation with a column of new IDs, one for each row, of one ``batch``.

    A relation is a query, which DuckDB runs again at each use. So this runs it once and keeps the rows in memory as
    Arrow. It registers no function, as DuckDB may call a function only once for all rows.

    >>> from mintage.ext.duckdb import with_id
    >>> items = duckdb.sql("SELECT unnest(['pen', 'ink']) AS item")
    >>> orders = with_id(items, "ulid", "order_id", first=False, as_text=True)
    >>> orders.columns, orders.aggregate("count(DISTINCT order_id)").fetchall()
    (['item', 'order_id'], [(2,)])

    :param frame: a ``duckdb.DuckDBPyRelation``, which ``connection.sql(…)`` returns. The result has the same
        connection.
    :param generator: a generator of mintage, a :class:`~mintage.Sequence`, or the name or module of a scheme.
    :param name: the name of the new column.
    :param first: True for a column before the others, False for one after them.
    :param as_text: True for ``VARCHAR``; otherwise integers are ``BIGINT``, and IDs of bytes are ``BLOB``.
    :raises ArgumentError: ``frame`` or ``generator`` is something else, or ``name`` is not str.
    :raises FieldError: ``field.format``: the relation has a column of that name, in upper or lower case.
    :raises MintError: as ``batch``.
    """
    _check_name(name, frame)
    table = frame.to_arrow_table()
    return _scanned(frame, arrow.with_id(table, generator, name, first=first, as_text=as_text))


def _check_name(name: str, relation: Any) -> None:
    if not isinstance(relation, duckdb.DuckDBPyRelation):
        raise refused(relation, "duckdb.DuckDBPyRelation, such as connection.sql(…) returns")
    # DuckDB does not tell upper and lower case apart in names.
    check_name(name.lower() if isinstance(name, str) else name, [each.lower() for each in relation.columns])


def _decoded(
    relation: Any, column: str, name: str, function: Callable[..., Any], *arguments: Any, **options: Any
) -> duckdb.DuckDBPyRelation:
    _check_name(name, relation)
    if column not in relation.columns:
        message = f"there is no column {column!a:.40}" if isinstance(column, str) else "column must be str"
        kind = FieldError if isinstance(column, str) else ArgumentError
        raise kind(message, code="field.format" if isinstance(column, str) else "argument.type")
    table = relation.to_arrow_table()
    ids = table.column(column)
    if str(relation.types[relation.columns.index(column)]) == "UUID" and function is not arrow.parse:
        # It is text in Arrow unless ``arrow_lossless_conversion`` is set.
        ids = arrow.parse(ids, "uuid") if ids.type == "string" else ids
    made = function(ids, *arguments, **options)
    return _scanned(relation, table.append_column(name, made))


def time_of(
    relation: duckdb.DuckDBPyRelation, column: str, scheme: Scheme, name: str = "time"
) -> duckdb.DuckDBPyRelation:
    """Return the relation with another column: the times of IDs, ``TIMESTAMPTZ``.

    DuckDB needs the package ``pytz`` to return such a time to Python, in the zone of the setting ``TimeZone``.

    It runs the relation, as :func:`with_id` does. For integers, :func:`time_expr` runs nothing.

    >>> from mintage.ext.duckdb import time_of
    >>> time_of(duckdb.sql("SELECT 175928847299117063 AS id"), "id", "discord").select("year(time)").fetchall()
    [(2016,)]

    :param relation: a relation.
    :param column: the name of a column of ``BIGINT``, ``HUGEINT``, ``DECIMAL(n, 0)``, ``BLOB``, ``UUID`` or
        ``VARCHAR``, as the IDs are.
    :param scheme: the name of a scheme, a format such as ``"uuid v6"`` or a layout, or a layout.
    :param name: the name of the new column.
    :raises FieldError: ``field.format``: there is no such column, or one with the new name.
    :raises MintError: as :func:`mintage.ext.pyarrow.time_of`.
    """
    return _decoded(relation, column, name, arrow.time_of, scheme)


def node_of(
    relation: duckdb.DuckDBPyRelation, column: str, scheme: Scheme, name: str = "node"
) -> duckdb.DuckDBPyRelation:
    """Return the relation with another column: the node numbers of IDs, ``BIGINT``.

    >>> from mintage.ext.duckdb import node_of
    >>> node_of(duckdb.sql("SELECT 175928847299117063 AS id"), "id", "twitter").fetchall()
    [(175928847299117063, 32)]

    :raises MintError: as :func:`time_of`.
    """
    return _decoded(relation, column, name, arrow.node_of, scheme)


def field_of(
    relation: duckdb.DuckDBPyRelation, column: str, scheme: Scheme, field: str, name: str | None = None
) -> duckdb.DuckDBPyRelation:
    """Return the relation with another column: a field of IDs, ``BIGINT``.

    >>> from mintage.ext.duckdb import field_of
    >>> field_of(duckdb.sql("SELECT 175928847299117063 AS id"), "id", "discord", "worker").fetchall()
    [(175928847299117063, 1)]

    :param field: the name of the field.
    :param name: the name of the new column; the default is that of the field.
    :raises MintError: as :func:`time_of` and :func:`mintage.ext.pyarrow.field_of`.
    """
    return _decoded(relation, column, field if name is None else name, arrow.field_of, scheme, field)


def text(relation: duckdb.DuckDBPyRelation, column: str, scheme: Scheme, name: str = "text") -> duckdb.DuckDBPyRelation:
    """Return the relation with another column: the texts of IDs, ``VARCHAR``.

    >>> from mintage import sno
    >>> from mintage.ext.duckdb import text
    >>> ids = duckdb.sql("SELECT ? AS id", params=[bytes(sno.ID.parse("brpk4q72xwf2m63l"))])
    >>> text(ids, "id", "sno").select("text").fetchall()
    [('brpk4q72xwf2m63l',)]

    :raises MintError: as :func:`time_of`.
    """
    return _decoded(relation, column, name, arrow.text, scheme)


def parse(
    relation: duckdb.DuckDBPyRelation,
    column: str,
    scheme: Scheme,
    name: str = "id",
    *,
    errors: Literal["raise", "null"] = "raise",
) -> duckdb.DuckDBPyRelation:
    """Return the relation with another column: the IDs of a column of text, of the type that :func:`with_id` returns.

    >>> from mintage.ext.duckdb import parse
    >>> texts = duckdb.sql("SELECT unnest(['175928847299117063', 'ORD-17']) AS text")
    >>> parse(texts, "text", "discord", errors="null").select("id").fetchall()
    [(175928847299117063,), (None,)]

    :raises MintError: as :func:`time_of`, and as :func:`mintage.ext.pyarrow.parse`.
    """
    return _decoded(relation, column, name, arrow.parse, scheme, errors=errors)


def time_expr(layout: Scheme, column: str = "id") -> duckdb.Expression:
    """Return a DuckDB expression of the times of integers: ``TIMESTAMPTZ``.

    Its text is that of :func:`mintage.ext.columns.sql_time` for ``"duckdb"``.

    >>> from datetime import datetime, timezone
    >>> from mintage.ext.duckdb import time_expr
    >>> ids = duckdb.sql("SELECT 175928847299117063 AS id")
    >>> ids.filter(time_expr("discord") == datetime(2016, 4, 30, 11, 18, 25, 796_000, timezone.utc)).fetchall()
    [(175928847299117063,)]

    :raises ConfigError: ``config.policy``: the IDs are no integers, or there is no such layout.
    """
    return duckdb.SQLExpression(sql_time(layout, column, "duckdb"))


def node_expr(layout: Scheme, column: str = "id") -> duckdb.Expression:
    """Return a DuckDB expression of the node numbers of integers.

    >>> from mintage.ext.duckdb import node_expr
    >>> duckdb.sql("SELECT unnest([175928847299117063, 17]) AS id").filter(node_expr("twitter") == 32).fetchall()
    [(175928847299117063,)]

    :raises ConfigError: as :func:`time_expr`.
    :raises FieldError: ``field.format``: the layout has no node number.
    """
    return duckdb.SQLExpression(sql_node(layout, column, "duckdb"))


def minted_between(scheme: Scheme, column: str, start: datetime | int, end: datetime | int) -> duckdb.Expression:
    """Return a condition for ``relation.filter``: IDs minted at ``start`` or later, and before ``end``.

    It compares the column with two IDs, so that DuckDB skips row groups of a table or Parquet file outside the range.

    >>> from datetime import datetime, timezone
    >>> from mintage.ext.duckdb import minted_between
    >>> april, may = datetime(2016, 4, 1, tzinfo=timezone.utc), datetime(2016, 5, 1, tzinfo=timezone.utc)
    >>> orders = duckdb.sql("SELECT unnest([175928847299117063, 17]) AS id")
    >>> orders.filter(minted_between("discord", "id", april, may)).fetchall()
    [(175928847299117063,)]

    :raises FieldError: as :func:`mintage.ext.columns.bounds`.
    """
    return duckdb.SQLExpression(sql_minted_between(scheme, column, start, end, "duckdb"))
