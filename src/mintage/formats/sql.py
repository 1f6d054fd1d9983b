"""SQL expressions that read the time and the node number from a column of IDs. They need no package."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from mintage.errors import ArgumentError, ConfigError, FieldError
from mintage.formats.bits import BitRange, Scheme, bounds, field_bits, layout_of, node_bits, numbers, time_bits
from mintage.formats.kinds import Kind
from mintage.formats.values import type_name

Dialect: TypeAlias = Literal["postgresql", "mysql", "mariadb", "sqlite", "duckdb", "spark"]


class _Dialect(NamedTuple):
    quote: str
    time: str
    """The expression of an instant, from milliseconds since 1970."""
    binary: str
    """A literal of bytes, from hexadecimal digits."""
    shift: str = "({0} >> {1})"


_MYSQL: Final = _Dialect(
    "`", "(TIMESTAMP('1970-01-01 00:00:00') + INTERVAL (CAST({0} AS SIGNED) * 1000) MICROSECOND)", "X'{0}'"
)
_DIALECTS: Final[dict[str, _Dialect]] = {
    "postgresql": _Dialect('"', "to_timestamp({0} / 1000.0)", "'\\x{0}'::bytea"),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlite": _Dialect('"', "strftime('%Y-%m-%dT%H:%M:%fZ', {0} / 1000.0, 'unixepoch')", "X'{0}'"),
    "duckdb": _Dialect('"', "(epoch_ms({0}) AT TIME ZONE 'UTC')", "unhex('{0}')"),
    "spark": _Dialect("`", "timestamp_millis({0})", "X'{0}'", "shiftright({0}, {1})"),
}
DIALECTS: Final = tuple(_DIALECTS)
"""The names of the databases for which there is SQL."""


def _dialect(name: str) -> _Dialect:
    found = _DIALECTS.get(name) if isinstance(name, str) else None
    if found is None:
        raise ConfigError(f"dialect {name!a:.40} is not one of {', '.join(DIALECTS)}", code="config.policy")
    return found


def _quoted(column: str, dialect: _Dialect) -> str:
    if not isinstance(column, str):
        raise ArgumentError(f"column must be str, not {type_name(type(column))}", code="argument.type")
    if not column or "\0" in column:
        raise FieldError(f"column {column!a:.40} is no name of a column", code="field.format")
    quote = dialect.quote
    return ".".join(f"{quote}{name.replace(quote, quote * 2)}{quote}" for name in column.split("."))


def _sum(kind: Kind, runs: tuple[BitRange, ...], base: int, column: str, dialect: _Dialect) -> str:
    terms = []
    for low, mask, weight in numbers(kind, runs):
        term = dialect.shift.format(column, low) if low else column
        if mask is not None:
            term = f"({term} & {mask})"
        terms.append(term if weight == 1 else f"{term} * {weight}")
    if base:
        terms.append(str(base))
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"


def sql_time(layout: Scheme, column: str, dialect: Dialect) -> str:
    """Return the SQL expression of the times at which the integers of a column were minted.

    Its type is ``timestamptz`` in PostgreSQL, ``DATETIME(6)`` in UTC in MySQL and MariaDB, ``TIMESTAMPTZ`` in DuckDB,
    ``TIMESTAMP`` in Spark (for ``selectExpr``, or ``pyspark.sql.functions.expr``), and in SQLite text such as
    ``2031-05-08T23:03:34.976Z``.

    >>> from mintage.ext.columns import sql_time
    >>> print(sql_time("twitter", "tweet.id", "duckdb"))
    (epoch_ms((("tweet"."id" >> 22) + 1288834974657)) AT TIME ZONE 'UTC')

    :param layout: ``"snowflake"``, the name of a layout, or a :class:`~mintage.snowflake.Layout`.
    :param column: the name of a column of signed 64-bit integers, which this quotes; a dot follows the table's name.
    :param dialect: one of ``DIALECTS``.
    :raises ConfigError: ``config.policy``: the dialect is unknown, or the IDs are no integers.
    :raises FieldError: ``field.format``: the layout has no time, or the column has no name.
    """
    words, found = _dialect(dialect), layout_of(layout)
    time = time_bits(found.format)
    return words.time.format(_sum(found, time.runs, time.base, _quoted(column, words), words))


def sql_node(layout: Scheme, column: str, dialect: Dialect) -> str:
    """Return the SQL expression of the node numbers in the integers of a column: all fields of that role as one number.

    >>> from mintage.ext.columns import sql_node
    >>> sql_node("twitter", "id", "postgresql")
    '(("id" >> 12) & 1023)'

    :param layout: as for :func:`sql_time`.
    :param column: as for :func:`sql_time`.
    :param dialect: as for :func:`sql_time`.
    :raises ConfigError: as :func:`sql_time`.
    :raises FieldError: as :func:`sql_time`.
    """
    words, found = _dialect(dialect), layout_of(layout)
    return _sum(found, node_bits(found.format), 0, _quoted(column, words), words)


def sql_field(layout: Scheme, column: str, field: str, dialect: Dialect) -> str:
    """Return the SQL expression of a field in the integers of a column, by its name in the layout.

    >>> from mintage.ext.columns import sql_field
    >>> sql_field("discord", "id", "worker", "postgresql")
    '(("id" >> 17) & 31)'

    :param layout: as for :func:`sql_time`.
    :param column: as for :func:`sql_time`.
    :param field: the name of a field, such as ``"sequence"``.
    :param dialect: as for :func:`sql_time`.
    :raises ConfigError: as :func:`sql_time`.
    :raises FieldError: ``field.format``: the layout has no such field, or the column has no name.
    """
    words, found = _dialect(dialect), layout_of(layout)
    return _sum(found, field_bits(found.format, field), 0, _quoted(column, words), words)


def sql_minted_between(
    scheme: Scheme, column: str, start: datetime | int, end: datetime | int, dialect: Dialect
) -> str:
    """Return the SQL condition that IDs were minted at ``start`` or later, and before ``end``. It can use an index.

    >>> from datetime import datetime, timezone
    >>> from mintage.ext.columns import sql_minted_between
    >>> may, june = datetime(2024, 5, 1, tzinfo=timezone.utc), datetime(2024, 6, 1, tzinfo=timezone.utc)
    >>> sql_minted_between("twitter", "id", may, june, "mysql")
    '(`id` >= 1785459115422646272 AND `id` < 1796693139256246272)'

    :param scheme: a name, or a layout; the column has signed integers, bytes or text, as the scheme's IDs are.
    :param column: as for :func:`sql_time`.
    :param start: an aware datetime, or nanoseconds since 1970.
    :param end: the same.
    :param dialect: as for :func:`sql_time`.
    :raises ConfigError: as :func:`sql_time`.
    :raises FieldError: as :func:`bounds`.
    """
    words = _dialect(dialect)
    low, high = (_literal(bound, words) for bound in bounds(scheme, start, end))
    name = _quoted(column, words)
    return f"({name} >= {low} AND {name} < {high})"


def _literal(bound: int | bytes | str, dialect: _Dialect) -> str:
    if isinstance(bound, bytes):
        return dialect.binary.format(bound.hex())
    # The text of an ID has letters and digits only, so it needs no escape.
    return f"'{bound}'" if isinstance(bound, str) else str(bound)
