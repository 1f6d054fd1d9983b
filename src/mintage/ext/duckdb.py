"""Columns of IDs in DuckDB.

>>> import duckdb
>>> from mintage import snowflake
>>> from mintage.ext.duckdb import node_expr, with_id
>>> orders = with_id(duckdb.sql("SELECT unnest(['pen', 'ink']) AS item"), snowflake.Generator(node=786))
>>> orders.columns, orders.select(node_expr("snowflake", "id")).fetchall()
(['id', 'item'], [(786,), (786,)])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mintage.errors import ArgumentError, FieldError
from mintage.formats.sql import sql_minted_between, sql_node, sql_time
from mintage.installation import missing

try:
    import duckdb
    import pyarrow as pa

    from mintage.ext import pyarrow as arrow
except ModuleNotFoundError as error:
    raise missing(error, "duckdb") from None

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from mintage.formats.bits import Scheme

__all__ = ["minted_between", "node_expr", "node_of", "parse", "text", "time_expr", "time_of", "with_id"]


def _relation(frame: Any) -> Any:
    if not isinstance(frame, duckdb.DuckDBPyRelation):
        raise arrow.refused(frame, "duckdb.DuckDBPyRelation, such as connection.sql(…) returns")
    return frame


def _scanned(relation: Any, __mintage_rows: Any) -> duckdb.DuckDBPyRelation:
    """Return a relation of a table, in the connection of another."""
    made: duckdb.DuckDBPyRelation = relation.query("__mintage_relation", "FROM __mintage_rows")
    return made


def with_id(
    frame: duckdb.DuckDBPyRelation, generator: object, name: str = "id", *, first: bool = True, as_text: bool = False
) -> duckdb.DuckDBPyRelation:
    """Return a relation with a column of new IDs, as many as it has rows, of one ``batch``.

    The relation is run once, here, and what it returns is kept in memory as Arrow: a relation is a query, and each use
    of one runs it again. No function is registered, since DuckDB may call one once for all rows.

    :param frame: a ``duckdb.DuckDBPyRelation``, as ``connection.sql(…)`` returns; the result is of the same connection.
    :param generator: one of mintage's, a :class:`~mintage.Sequence` among them; or the name or module of a scheme.
    :param name: the new column's.
    :param first: whether it comes before the others, or behind them.
    :param as_text: whether the IDs are ``VARCHAR``; otherwise integers are ``BIGINT``, and IDs of bytes ``BLOB``.
    :raises ArgumentError: ``frame`` is none, ``generator`` is none, or ``name`` is not str.
    :raises FieldError: ``field.format``: there is a column of that name, in either case of its letters.
    :raises MintError: as ``batch``.
    """
    _check_name(name, _relation(frame))
    table = frame.to_arrow_table()
    return _scanned(frame, arrow.with_id(table, generator, name, first=first, as_text=as_text))


def _check_name(name: str, relation: Any) -> None:
    # DuckDB's names are the same in either case.
    arrow.check_name(name.lower() if isinstance(name, str) else name, [each.lower() for each in relation.columns])


def _decoded(
    relation: Any, column: str, name: str, function: Callable[..., Any], *arguments: Any, **options: Any
) -> duckdb.DuckDBPyRelation:
    _check_name(name, _relation(relation))
    if column not in relation.columns:
        message = f"there is no column {column!a:.40}" if isinstance(column, str) else "column must be str"
        kind = FieldError if isinstance(column, str) else ArgumentError
        raise kind(message, code="field.format" if isinstance(column, str) else "argument.type")
    table = relation.to_arrow_table()
    made = function(table.column(column), *arguments, **options)
    if pa.types.is_timestamp(made.type):
        made = made.cast(pa.timestamp(made.type.unit))
    return _scanned(relation, table.append_column(name, made))


def time_of(
    relation: duckdb.DuckDBPyRelation, column: str, scheme: Scheme, name: str = "time"
) -> duckdb.DuckDBPyRelation:
    """Return the relation with one more column: when the IDs of one were minted, a ``TIMESTAMP`` in UTC.

    It is run once, here, as in :func:`with_id`. Of integers, :func:`time_expr` runs nothing.

    :param column: the name of a column of ``BIGINT``, ``BLOB`` or ``VARCHAR``, as the IDs are.
    :param scheme: a scheme's name, a format's such as ``"uuid v6"``, a layout's, or a layout.
    :param name: the new column's.
    :raises FieldError: ``field.format``: there is no such column, or one of the new name already.
    :raises MintError: as :func:`mintage.ext.pyarrow.time_of`.
    """
    return _decoded(relation, column, name, arrow.time_of, scheme)


def node_of(
    relation: duckdb.DuckDBPyRelation, column: str, scheme: Scheme, name: str = "node"
) -> duckdb.DuckDBPyRelation:
    """Return the relation with one more column: which node minted the IDs of one, a ``BIGINT``.

    :raises MintError: as :func:`time_of`.
    """
    return _decoded(relation, column, name, arrow.node_of, scheme)


def text(relation: duckdb.DuckDBPyRelation, column: str, scheme: Scheme, name: str = "text") -> duckdb.DuckDBPyRelation:
    """Return the relation with one more column: the texts of the IDs of one, ``VARCHAR``.

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
    """Return the relation with one more column: the IDs of one of text, as :func:`with_id` has them.

    :raises MintError: as :func:`time_of`, and as :func:`mintage.ext.pyarrow.parse`.
    """
    return _decoded(relation, column, name, arrow.parse, scheme, errors=errors)


def time_expr(layout: Scheme, column: str = "id") -> duckdb.Expression:
    """Return when the integers of a column were minted, as an expression of DuckDB's own: a ``TIMESTAMP`` in UTC.

    The text of it is :func:`mintage.formats.sql.sql_time`'s, for ``"duckdb"``.

    :raises ConfigError: ``config.policy``: no such layout of integers.
    """
    return duckdb.SQLExpression(sql_time(layout, column, "duckdb"))


def node_expr(layout: Scheme, column: str = "id") -> duckdb.Expression:
    """Return which node minted the integers of a column, as an expression of DuckDB's own.

    :raises ConfigError: as :func:`time_expr`.
    :raises FieldError: ``field.format``: the layout has no node number.
    """
    return duckdb.SQLExpression(sql_node(layout, column, "duckdb"))


def minted_between(scheme: Scheme, column: str, start: datetime | int, end: datetime | int) -> duckdb.Expression:
    """Return a condition on a column of IDs, for ``relation.filter``: minted at ``start`` or later, and before ``end``.

    It compares the column with two IDs, so the row groups of a table or Parquet file that are outside are not read.

    :raises FieldError: as :func:`mintage.formats.sql.bounds`.
    """
    return duckdb.SQLExpression(sql_minted_between(scheme, column, start, end, "duckdb"))
