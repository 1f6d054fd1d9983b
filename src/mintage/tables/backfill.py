"""Give existing rows of a database IDs of their own time, or integers in the order of it.

A :class:`Table` has the rows, and :class:`Dated` or :class:`SequenceIntegers` their IDs; :func:`backfill` writes
them. Nothing is recorded outside the table: a run that was stopped at any moment goes on with the rows whose ID is
NULL.

The constants are the values that a job can take as arguments:

>>> from argparse import ArgumentParser
>>> from mintage.tables.backfill import DATED_SCHEMES, NODE_SCHEMES, TIME_UNITS
>>> job = ArgumentParser()
>>> scheme = job.add_argument("scheme", choices=DATED_SCHEMES)
>>> unit = job.add_argument("--time-unit", choices=TIME_UNITS)
>>> arguments = job.parse_args(["sno", "--time-unit", "s"])
>>> arguments.scheme in NODE_SCHEMES  # else the job needs a store, which leases a node number
True
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain, islice
from math import inf, isfinite
from time import sleep
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from mintage.errors import ConfigError, FieldError, LeaseError, StoreError
from mintage.formats.kinds import KINDS, Kind, listed
from mintage.formats.times import unix_ns
from mintage.process import jitter
from mintage.tables import InputError
from mintage.tables.columns import Target, ignores_case
from mintage.tables.display import shorten
from mintage.tables.keys import kind_of
from mintage.tables.sources import find_column, reflect

if TYPE_CHECKING:
    from mintage import snowflake
    from mintage.store import Store

__all__ = ["DATED_SCHEMES", "NODE_SCHEMES", "TIME_UNITS", "Dated", "Filled", "SequenceIntegers", "Table", "backfill"]

TIME_UNITS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds of each unit that a time column of numbers can have."""
DATED_SCHEMES: Final = tuple(name for name, kind in KINDS.items() if not kind.is_text)
"""The schemes of :class:`Dated`: their IDs have a node number, so that IDs of any time can be minted under it."""
NODE_SCHEMES: Final = tuple(name for name in DATED_SCHEMES if (KINDS[name].format.nodes or 0) < 2**32)
"""The schemes of which you can name the node number. A second run with the same node number gives IDs of deleted rows
again, unless random bits keep them apart. The other schemes have so many node numbers that each run can lease one."""
_QUERY_VALUES: Final = 1000
"""Values in one query; SQLite takes 32,766."""
_MAX_TICKS: Final = 100_000
"""Ticks whose next number is kept in memory. For any other tick, the table is asked again."""
_DEADLOCKS: Final = (1213, "40P01", "40001")
"""The codes with which a database undoes a transaction that stands in the way of another."""
_REPEATS: Final = 100
"""The most repeats of a batch: a trigger may raise such a code each time."""


# --- the table ----------------------------------------------------------------------------------------------------


class Table:
    """A table of a database, with the rows that have no ID yet. This needs the extra ``tables``.

    >>> from mintage.tables.sources import connect
    >>> with connect("sqlite://") as connection:
    ...     with connection.begin():
    ...         _ = connection.exec_driver_sql("CREATE TABLE orders (n INT PRIMARY KEY, made INT, id BIGINT UNIQUE)")
    ...         _ = connection.exec_driver_sql("INSERT INTO orders (n, made) VALUES (1, 1577880000), (2, 1625040900)")
    ...     orders = Table(connection, "orders", time_column="made", time_unit="s", id_column="id")
    ...     orders.count_without_id(), orders.batch(after=None, size=1000)
    (2, [(1, 1577880000), (2, 1625040900)])

    :param connection: a connection of SQLAlchemy that has no open transaction, such as from
        :func:`mintage.tables.sources.connect`. Without that function, make MySQL answer in UTC yourself.
    :param name: the name of the table.
    :param time_column: the column with the time of a row: an instant, a date, text such as ``2021-06-30 08:15:00`` or
        ``2021-06-30T10:15:00+02:00``, or a number. A time without a time zone is UTC.
    :param id_column: the column that gets the IDs where it is NULL. It has a unique index.
    :param schema: the schema of the table, or ``None`` for the default one.
    :param key: a unique column that identifies a row, or ``None`` for the primary key.
    :param time_unit: the unit of a time column of numbers since 1970: ``s``, ``ms``, ``us`` or ``ns``.
    :raises InputError: there is no such table or column, or a column has no unique index.
    """

    def __init__(
        self,
        connection: Any,
        name: str,
        *,
        time_column: str,
        id_column: str,
        schema: str | None = None,
        key: str | None = None,
        time_unit: str = "ms",
    ) -> None:
        import sqlalchemy as sa

        if time_unit not in TIME_UNITS:
            raise InputError(f"time_unit is {time_unit!a:.80}; it must be {listed(TIME_UNITS, 'or')}")
        self.connection = connection
        self._sa, self._unit_ns = sa, TIME_UNITS[time_unit]
        with connection.begin():
            self._table = reflect(connection, name, schema)
            primary = [column.name for column in self._table.primary_key]
            if key is None and len(primary) != 1:
                raise InputError(
                    f"table {name!a:.80} has no primary key of one column; name a unique column as its key"
                )
            self.key = find_column(self._table, key or primary[0])
            self.time = find_column(self._table, time_column)
            self.id = find_column(self._table, id_column)
            self._check_key()
            self._check_unique(name, schema)
            self._ignores_case = ignores_case(connection, self._table, self.id.name)
        self._keep_values()

    def _keep_values(self) -> None:
        """Note the types of the columns. Then leave floats, and all of SQLite, as the driver returns and takes them.

        SQLAlchemy's types would round numbers of SQLite, fail at texts that are no times, and add digits to floats.
        """
        sa, declared = self._sa, self.time.type
        is_sqlite = self.connection.dialect.name == "sqlite"
        self._is_calendar = isinstance(declared, (sa.Date, sa.DateTime))
        is_number = isinstance(declared, (sa.Integer, sa.Numeric))
        self._is_any_time = isinstance(declared, sa.String) or (is_sqlite and not is_number)
        self._id_type = self.id.type
        for each in (self.key, self.time, self.id):
            if is_sqlite or isinstance(each.type, sa.Float):
                each.type = sa.types.NullType()
        # Keep the driver's values: SQLAlchemy would round numbers of SQLite.
        self._raw_id = sa.type_coerce(self.id, sa.types.NullType())

    def _check_key(self) -> None:
        """Refuse a key that does not identify a row: a float is not exact, a list has no hash, NULL equals nothing."""
        name, kind = self.key.name, self.key.type
        if isinstance(kind, (self._sa.Float, self._sa.ARRAY, self._sa.JSON)):
            raise InputError(f"column {name!a:.80} is {kind!s:.40}, which does not identify a row; name another key")
        without = self._sa.select(self._sa.literal(1)).where(self.key.is_(None), self.id.is_(None)).limit(1)
        if self.key.nullable and self.connection.scalar(without) is not None:
            raise InputError(f"column {name!a:.80} is NULL in a row without an ID; fill it, or name another key")

    def _check_unique(self, name: str, schema: str | None) -> None:
        inspector = self._sa.inspect(self.connection)
        unique = [list(self._table.primary_key.columns.keys())]
        # SQLAlchemy leaves out the indexes of SQLite's constraints unless it is asked for them.
        indexes = inspector.get_indexes(name, schema, include_auto_indexes=True)
        whole = (each for each in indexes if each["unique"] and _covers_all(each))
        unique += [each["column_names"] for each in whole]
        unique += [each["column_names"] for each in inspector.get_unique_constraints(name, schema)]
        words = self.connection.dialect.identifier_preparer
        for column in (self.id, self.key):
            if [column.name] not in unique:
                index, quoted = words.quote(f"{name}_{column.name}"), words.quote(column.name)
                statement = f"CREATE UNIQUE INDEX {index} ON {words.format_table(self._table)} ({quoted})"
                raise InputError(
                    f"column {column.name!a} has no unique index, which finds IDs and refuses duplicates; create one: "
                    + statement.replace("%%", "%")  # drivers double it
                )
        if self.id.computed is not None:
            raise InputError(f"column {self.id.name!a} is generated by the database; name one that can be written")

    def writer(self, kind: Kind | None) -> Callable[[Any], Any]:
        """Return a function that converts an ID of a kind to the type of the ID column; integers if ``None``.

        :raises InputError: the column's type or collation cannot store them. The function raises it for an integer that
            is too large for the column.
        """
        return Target(self.id.name, self._id_type, self.connection.dialect.name, kind).writer(
            ignores_case=self._ignores_case
        )

    def count_without_id(self) -> int:
        """Return the number of rows without an ID."""
        count: int = self.connection.scalar(
            self._sa.select(self._sa.func.count()).select_from(self._table).where(self.id.is_(None))
        )
        return count

    def unix_ns(self, key: Any, value: Any) -> int:
        """Return the time of a row in nanoseconds since the Unix epoch.

        :param key: the key of the row, for the message of an error.
        :param value: what its time column holds.
        :raises FieldError: ``time.range``: the value is NULL, or no time.
        """
        is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
        if is_number and isfinite(value) and not self._is_calendar:
            return int(Fraction(str(value)) * self._unit_ns)  # the digits of a float, as 0.29 * 100 is less than 29
        found = _read_text(value) if isinstance(value, str) else value
        if isinstance(found, date) and not isinstance(found, datetime):
            found = datetime.combine(found, time())
        if not isinstance(found, datetime):
            shown = "NULL" if value is None else repr(shorten(value))
            beside = ", a number in a column of times" if is_number and self._is_calendar else ""
            raise FieldError(
                f"row {key!a:.80}: its time is {shown}{beside}, and an ID needs a time such as 2021-06-30T08:15:00Z",
                code="time.range",
            )
        return unix_ns(found if found.tzinfo else found.replace(tzinfo=UTC), "time")

    def extremes(self) -> Iterator[tuple[Any, Any]]:
        """Yield key and time of rows without an ID, in the order of the times that the database has.

        They are a row that has no time, the earliest one and the latest one. If the column can have texts that are no
        times, they are all rows.
        """
        rows = self._sa.select(self.key, self.time).where(self.id.is_(None))
        if self._is_any_time:
            by_time = rows.order_by(self.time, self.key)
            yield from self.connection.execute(by_time, execution_options={"yield_per": _QUERY_VALUES})
            return
        one = rows.limit(1)
        for each in (one.where(self.time.is_(None)), one.order_by(self.time), one.order_by(self.time.desc())):
            yield from self.connection.execute(each)

    def batch(self, after: Any, size: int) -> list[tuple[Any, Any]]:
        """Return keys and times of the next rows without an ID, in the order of their keys.

        They are locked until the transaction ends.
        """
        todo = self._sa.select(self.key, self.time).where(self.id.is_(None)).order_by(self.key).limit(size)
        if after is not None:
            todo = todo.where(self.key > after)
        return [(key, value) for key, value in self.connection.execute(todo.with_for_update())]

    def transact(self, work: Callable[[], Any]) -> Any:
        """Return what ``work`` does in a transaction; repeat it if the database undoes all of it for a deadlock."""
        left = _REPEATS
        while True:
            try:
                with self.connection.begin():
                    return work()
            except self._sa.exc.DBAPIError as error:
                # The first argument is a number of MySQL's drivers, and a dict of pg8000.
                codes = [getattr(error.orig, name, None) for name in ("sqlstate", "pgcode")]
                codes += getattr(error.orig, "args", ())[:1]
                if not left or not any(code in _DEADLOCKS for code in codes):
                    raise
            left -= 1
            sleep(jitter.uniform(0, 0.1))

    def keys_by_time(self) -> Iterator[Any]:
        """Return the keys of all rows without an ID, the earliest first."""
        todo = self._sa.select(self.key).where(self.id.is_(None)).order_by(self.time, self.key)
        return iter(self.connection.scalars(todo, execution_options={"yield_per": _QUERY_VALUES}))

    def without_id(self, keys: Collection[Any]) -> set[Any]:
        """Return those of some keys whose rows have no ID, and lock these rows until the transaction ends."""
        todo = self._sa.select(self.key).where(self.id.is_(None)).with_for_update()
        return {key for (key,) in self._among(todo, self.key, keys)}

    def taken(self, ids: Collection[Any]) -> set[Any]:
        """Return those of some IDs that rows have."""
        return {its for (its,) in self._among(self._sa.select(self._raw_id), self.id, ids)}

    def _among(self, select: Any, column: Any, values: Collection[Any]) -> Iterator[Any]:
        """Yield the rows of a query in which a column has one of some values."""
        wanted = list(values)
        for at in range(0, len(wanted), _QUERY_VALUES):
            yield from self.connection.execute(select.where(column.in_(wanted[at : at + _QUERY_VALUES])))

    def largest(self, first: int, last: int) -> int | None:
        """Return the largest ID of a row from ``first`` to ``last``, or ``None`` if there is none."""
        found = self._sa.select(self._sa.func.max(self.id)).where(self.id.between(first, last))
        return self.connection.scalar(found)  # type: ignore[no-any-return]

    def write(self, ids: Collection[tuple[Any, Any]]) -> None:
        """Write IDs, given as pairs of a row's key and its ID, and read them back. A row with an ID by now keeps it.

        :raises StoreError: ``store.refused``: a row has not its ID afterwards, as after a trigger that changes it.
        """
        sa = self._sa
        update = sa.update(self._table).where(self.key == sa.bindparam("its_key"), self.id.is_(None))
        rows = [{"its_key": key, "its_id": its} for key, its in ids]
        # On SQLite, others can give a row an ID between the query for it and this statement.
        kept = len(rows) - self.connection.execute(update.values({self.id.name: sa.bindparam("its_id")}), rows).rowcount
        if self.connection.dialect.name == "postgresql":
            self.connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")  # deferred triggers act now
        written = self._among(sa.select(self.key, self._raw_id), self.key, [key for key, _ in ids])
        there = dict(written)
        for key, its in ids:
            has = there.get(key)
            if has == its:
                continue
            if has is None or kept <= 0:
                shown = "no ID" if has is None else shorten(has)
                raise StoreError(
                    f"row {key!a:.80}: {shorten(its)} was written, and the row has {shown} afterwards: a trigger, a "
                    f"policy or the type of column {self.id.name!a:.80} changes what is written; this batch is undone",
                    code="store.refused",
                )
            kept -= 1


def _covers_all(index: Mapping[str, Any]) -> bool:
    """Return True if an index has all rows with an ID: it has no condition, or only that its column is not NULL."""
    conditions = [each for name, each in index.get("dialect_options", {}).items() if name.endswith("_where")]
    column = "|".join(re.escape(each) for each in index["column_names"] if each)
    return all(re.fullmatch(rf'\(?"?({column})"? IS NOT NULL\)?', str(each), re.IGNORECASE) for each in conditions)


def _read_text(text: str) -> datetime | None:
    """Return the time of a text in ISO 8601 that begins with a date such as 2021-06-30, or ``None``."""
    # Without the hyphens, digits such as 1625040900 can be read as a date.
    if re.match(r"\d{4}-\d\d-\d\d(?:[ T]|\Z)", text, re.ASCII):
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    return None


# --- the IDs ------------------------------------------------------------------------------------------------------


class Dated:
    """IDs of the rows' own times, from a generator whose node number nothing else mints with; see :meth:`open`.

    Within a run, no two IDs have the same tick and number. The table says which numbers earlier runs used.

    >>> from mintage.tables.sources import connect
    >>> with connect("sqlite://") as connection:
    ...     with connection.begin():
    ...         _ = connection.exec_driver_sql("CREATE TABLE orders (n INT PRIMARY KEY, made INT, id BIGINT UNIQUE)")
    ...         _ = connection.exec_driver_sql("INSERT INTO orders (n, made) VALUES (1, 1577880000), (2, 1625040900)")
    ...     orders = Table(connection, "orders", time_column="made", time_unit="s", id_column="id")
    ...     with Dated.open(orders, "snowflake", store="memory:Dated") as ids:
    ...         with connection.begin():
    ...             ids.check()
    ...         list(ids.batches(1)), ids.late
    ([1, 1], 0)

    :param table: the rows.
    :param generator: a generator of one of ``DATED_SCHEMES``.
    :param writer: what the table's ``writer`` returns.
    """

    def __init__(self, table: Table, generator: Any, writer: Callable[[Any], Any]) -> None:
        self.table = table
        self.late = 0
        """The number of IDs of a later tick than their rows, because the tick of the row had no number left."""
        self.unused = 0
        self._generator, self._writer = generator, writer
        self._next: dict[Any, int] = {}
        """The next number of a tick, by the first ID of the tick."""

    @classmethod
    @contextmanager
    def open(
        cls,
        table: Table,
        scheme: str,
        *,
        layout: snowflake.Layout | None = None,
        node: int | None = None,
        store: Store | str | None = None,
        meta: int | None = None,
    ) -> Iterator[Self]:
        """Open the IDs of a scheme, with a node number of their own.

        :param table: the rows.
        :param scheme: one of ``DATED_SCHEMES``.
        :param layout: of snowflake; ``None`` for its default layout.
        :param node: a node number that nothing else mints with, before or after; of ``NODE_SCHEMES``.
        :param store: in place of ``node`` the store, or its URL, that leases a number which was never used. ``None`` is
            the store that ``MINTAGE_STORE`` names.
        :param meta: the metabyte of the IDs, of sno, 0 to 255.
        :raises InputError: the ID column cannot store the IDs; node and store are both given, or both missing; the
            scheme has no ``meta``.
        :raises ConfigError: the scheme does not take ``node``, or has no such node number.
        :raises LeaseError: no node number is left that was never used.
        :raises StoreError: the store cannot be used.
        """
        kind = kind_of(scheme, layout)
        if scheme not in DATED_SCHEMES:
            raise InputError(f"{scheme} IDs have no node number; use {listed(DATED_SCHEMES, 'or')}")
        term = kind.node or "node"
        options: dict[str, object] = {"layout": kind.layout} if kind.layout else {}
        if meta is not None:
            if scheme != "sno":
                raise InputError(f"meta belongs to sno, not to {scheme}")
            options["meta"] = meta
        if node is not None:
            if store is not None:
                raise InputError(f"node {node} is a number of your own, and a store leases one; give one of the two")
            if scheme not in NODE_SCHEMES:
                raise ConfigError(
                    f"node {node} of {scheme}: a second run with one node number gives IDs of deleted rows again. Node "
                    "numbers of this scheme do not run out: have a store lease one for each run, such as the store "
                    "sqlite:ids.db",
                    code="config.node",
                )
            options[term], lease = node, dict[str, object]()
        elif store is not None or os.environ.get("MINTAGE_STORE"):
            lease = {"store": store, "never_used": True, "max_wait_ms": 10_000}  # a long job can wait for a busy store
        else:
            raise InputError("no node number is given; name one that nothing else mints with, or a store to lease one")
        writer = table.writer(kind)
        with closing(kind.generator(lease, **options)) as generator:
            getattr(generator, term)  # leases it
            yield cls(table, generator, writer)

    def check(self) -> None:
        """Raise if the IDs cannot have the time of a row.

        :raises FieldError: the layout does not have the time, or a row has none.
        :raises LeaseError: ``lease.history``: the time of a row is after the lease began.
        """
        for key, value in self.table.extremes():
            self._writer(self._nth(key, self.table.unix_ns(key, value), 0))

    def _nth(self, key: Any, ns: int, n: int) -> Any:
        try:
            return self._generator.nth_at(ns, n)
        except (FieldError, LeaseError) as error:
            raise type(error)(f"row {key!a:.80}: {error}", code=error.code) from None

    def batches(self, size: int) -> Iterator[int]:
        """Give all rows their IDs, each batch in one transaction, and yield the number of rows of each batch."""
        before = inf
        while True:
            yield from self._pass(size)
            with self.table.connection.begin():
                left = self.table.count_without_id()
            # Rows may be left before the last key: new ones, and on MySQL those of an ENUM, sorted by number. A pass
            # that leaves as many as the one before does not outrun those who add them.
            if not 0 < left < before:
                return
            before = left

    def _pass(self, size: int) -> Iterator[int]:
        after = None
        while rows := self.table.transact(partial(self._write, after, size, self.late)):
            after = rows[-1][0]
            yield len(rows)

    def _write(self, after: Any, size: int, late: int) -> list[tuple[Any, Any]]:
        """Write the IDs of a batch. One that was undone before leaves its numbers unused."""
        if rows := self.table.batch(after, size):
            self.late = late
            self.table.write(self._ids(rows))
        return rows

    def _ids(self, rows: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Return the key and the ID of each row: the next number of its tick, or of a tick after it that has one."""
        if len(self._next) > _MAX_TICKS:
            self._next.clear()
        given: dict[Any, Any] = {}
        times = [(key, self.table.unix_ns(key, value)) for key, value in rows]
        todo = [(key, ns, self._nth(key, ns, 0)) for key, ns in times]
        while todo:
            self._find_free({first: (key, ns) for key, ns, first in todo if first not in self._next}, given)
            wanted: dict[Any, tuple[Any, int, Any, int]] = {}
            for key, ns, first in todo:
                while (its := self._writer(self._nth(key, ns, self._next[first]))) in given or its in wanted:
                    self._next[first] += 1
                wanted[its] = key, ns, first, self._next[first]
                self._next[first] += 1
            taken, todo = self.table.taken(wanted), []
            for its, (key, ns, first, n) in wanted.items():
                if its in taken:
                    self._next.pop(first, None)
                    todo.append((key, ns, first))
                else:
                    given[its] = key
                    self.late += n >= self._generator.capacity
        return [(key, its) for its, key in given.items()]

    def _find_free(self, ticks: dict[Any, tuple[Any, int]], given: Collection[Any]) -> None:
        """Find a free number of each tick, after one that is taken: by doubling, then halving, of all ticks at once."""
        bounds: dict[Any, tuple[int, int | None]] = dict.fromkeys(ticks, (-1, None))
        while bounds:
            probes = {
                first: 2 * taken + 2 if free is None else (taken + free) // 2 for first, (taken, free) in bounds.items()
            }
            ids = {first: self._writer(self._nth(*ticks[first], n)) for first, n in probes.items()}
            there = self.table.taken(ids.values())
            for first, n in probes.items():
                taken, free = bounds[first]
                is_taken = ids[first] in there or ids[first] in given
                bounds[first] = taken, free = (n, free) if is_taken else (taken, n)
                if free == taken + 1:
                    self._next[first] = free
                    del bounds[first]


class SequenceIntegers:
    """Integers of one reservation, in the order of the rows' times.

    >>> from functools import partial
    >>> from mintage import open_store
    >>> from mintage.tables.sources import connect
    >>> with connect("sqlite://") as connection:
    ...     with connection.begin():
    ...         _ = connection.exec_driver_sql("CREATE TABLE orders (n INT PRIMARY KEY, made INT, bill BIGINT UNIQUE)")
    ...         _ = connection.exec_driver_sql("INSERT INTO orders (n, made) VALUES (1, 1625040900), (2, 1577880000)")
    ...     orders = Table(connection, "orders", time_column="made", time_unit="s", id_column="bill")
    ...     _ = backfill(SequenceIntegers(orders, "bills", partial(open_store, "memory:")))
    ...     connection.exec_driver_sql("SELECT bill FROM orders ORDER BY n").scalars().all()
    [2, 1]

    :param table: the rows.
    :param namespace: the namespace of the integers.
    :param open_store: a function that opens its store, such as ``lambda: mintage.open_store("sqlite:ids.db")``. It is
        called when the number of rows is known.
    :param on_reserve: a function that is called with the reserved integers before any is written.
    :raises InputError: the ID column cannot store integers.
    """

    def __init__(
        self,
        table: Table,
        namespace: str,
        open_store: Callable[[], AbstractContextManager[Store]],
        on_reserve: Callable[[range], None] | None = None,
    ) -> None:
        self.table = table
        self.late = 0
        self.unused = 0
        """The number of reserved integers that no row got, because others gave these rows an ID."""
        self._namespace, self._open_store, self._on_reserve = namespace, open_store, on_reserve
        self._writer = table.writer(None)

    def check(self) -> None:
        """Raise if a row has no time, or if texts of times have another order than the times.

        :raises FieldError: ``time.range``.
        """
        before = None
        for key, value in self.table.extremes():
            ns = self.table.unix_ns(key, value)
            if before is not None and ns < before:
                message = (
                    f"row {key!a:.80}: its time is {shorten(value)!a}, which the database sorts after a later time; "
                    "write all times of the column in one form"
                )
                raise FieldError(message, code="time.range")
            before = ns

    def batches(self, size: int) -> Iterator[int]:
        """Give all rows their integers, each batch in one transaction, and yield the number of rows of each batch.

        :raises InputError: a row has one of the reserved integers.
        :raises MintError: the store cannot be used, or the namespace has too few integers left.
        """
        import pickle
        from tempfile import TemporaryFile

        connection = self.table.connection
        # The order is read once: without an index on the time, each query for it would read the whole table.
        with TemporaryFile() as order:
            total = 0
            with connection.begin():
                found = self.table.keys_by_time()
                while keys := list(islice(found, size)):
                    pickle.dump(keys, order)
                    total += len(keys)
            if not total:
                return
            numbers = self._reserve(total)
            order.seek(0)
            for _ in range(0, total, size):
                keys = pickle.load(order)  # noqa: S301 - no other process can write to this file
                done = self.table.transact(partial(self._write, keys, numbers))
                numbers = numbers[done:]
                self.unused = len(numbers)
                yield done

    def _write(self, keys: Sequence[Any], numbers: range) -> int:
        left = self.table.without_id(keys)
        pairs = zip((key for key in keys if key in left), numbers, strict=False)
        if rows := [(key, self._writer(number)) for key, number in pairs]:
            self.table.write(rows)
        return len(rows)

    def _reserve(self, count: int) -> range:
        """Reserve consecutive integers that no row has."""
        from mintage.store import all_or_nothing

        with self._open_store() as store:
            reserved = all_or_nothing(store, store.reserve(self._namespace, count), count).as_range()
        self._writer(reserved[-1])
        with self.table.connection.begin():
            largest = self.table.largest(reserved[0], reserved[-1])
        if largest is not None:
            raise InputError(
                f"{reserved[0]}..{reserved[-1]} was reserved, and a row has {largest}; raise the floor above all "
                f"integers of the column, with 'mintage namespaces raise-floor {self._namespace} N'"
            )
        if self._on_reserve:
            self._on_reserve(reserved)
        return reserved


# --- the run ------------------------------------------------------------------------------------------------------


class Filled(NamedTuple):
    """The result of a backfill.

    >>> filled = Filled(rows=5000, late=3)
    >>> f"{filled.rows} rows have an ID, and {filled.late / filled.rows:.2%} of these have a later time than the row"
    '5000 rows have an ID, and 0.06% of these have a later time than the row'
    """

    rows: int
    """The number of rows that got an ID."""
    late: int = 0
    """Of these, the number whose ID has a later tick than the row."""
    unused: int = 0
    """The number of reserved integers that no row got, because others gave these rows an ID."""


def backfill(
    ids: Dated | SequenceIntegers, *, batch_rows: int = 1000, report: Callable[[int, int], None] | None = None
) -> Filled:
    """Give the rows of a table that have no ID one of their own time.

    It can be stopped at any moment and called again: each batch is a transaction, and a later run reads from the table
    which rows are left. IDs are unique as long as nothing else mints with the node number, and the unique index of the
    column refuses a duplicate otherwise. Rows that share a tick with more rows than it has numbers get IDs of the ticks
    after it. Integers are recorded as spent before any is written, so a run that is stopped leaves a gap.

    >>> from mintage import snowflake
    >>> from mintage.tables.sources import connect
    >>> with connect("sqlite://") as connection:
    ...     with connection.begin():
    ...         _ = connection.exec_driver_sql("CREATE TABLE orders (n INT PRIMARY KEY, made INT, id BIGINT UNIQUE)")
    ...         _ = connection.exec_driver_sql("INSERT INTO orders (n, made) VALUES (1, 1577880000), (2, 1625040900)")
    ...     orders = Table(connection, "orders", time_column="made", time_unit="s", id_column="id")
    ...     with Dated.open(orders, "snowflake", node=1023) as ids:
    ...         filled = backfill(ids)
    ...     written = connection.exec_driver_sql("SELECT id FROM orders ORDER BY n").scalars().all()
    >>> filled
    Filled(rows=2, late=0, unused=0)
    >>> [str(snowflake.DEFAULT.parse(id).time) for id in written]
    ['2020-01-01 12:00:00+00:00', '2021-06-30 08:15:00+00:00']

    :param ids: the table with its IDs.
    :param batch_rows: rows of a transaction, 1 or more.
    :param report: a function that is called with the number of rows that are done and the number of all, once before
        the first batch and after each.
    :raises InputError: a row has one of the reserved integers.
    :raises FieldError: an ID cannot have the time of a row, or a row has no time; nothing is written then.
    :raises LeaseError: ``lease.history``: a row has a time after the lease of the node number began.
    :raises StoreError: the database or the store answers with an error, or a row has not the ID that was written.
    """
    with ids.table.connection.begin():
        total = ids.table.count_without_id()
        ids.check()
    done = 0
    for rows in chain([0], ids.batches(batch_rows)):
        done += rows
        if report:
            report(done, total)
    return Filled(done, ids.late, ids.unused)
