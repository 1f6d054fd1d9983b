"""``mintage backfill``: gives old rows of a table IDs of their own time, or integers in the order of it."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, time
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mintage.cli.command import UsageError, command, count, option, whole
from mintage.cli.schemes import LAYOUT, layout_of
from mintage.cli.screen import is_watched, progress
from mintage.cli.stores import STORE, advised, opened
from mintage.errors import ConfigError, FieldError, LeaseError, StoreError
from mintage.formats.catalogue import of_scheme
from mintage.formats.rows import SCHEMES, listed
from mintage.formats.times import unix_ns
from mintage.installation import missing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterator

    from mintage.formats.kinds import Kind

__all__ = ["backfill", "connected"]

_UNITS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DATED: Final = tuple(name for name, scheme in SCHEMES.items() if not scheme.is_text)
"""The schemes whose IDs have a node number, in whose name those of any time can be minted."""
_NUMBERED: Final = tuple(name for name in _DATED if (of_scheme(name).nodes or 0) < 2**32)
"""The schemes that take ``--node``: runs with one node number give IDs of deleted rows again, unless random bits keep
them apart, and the others have so many node numbers that each run can lease one."""
_STORE_HELP: Final = (
    "which store leases a node number that was never used, or has the sequence (default: MINTAGE_STORE; "
    "of a sequence, else this machine's registry)"
)
_LINES: Final = 100
"""Lines of progress in a log, at most: one for each percent, where one for each batch would be thousands."""
_ASKED: Final = 1000
"""How many values a query asks for at once: SQLite takes 32,766."""
_REMEMBERED: Final = 100_000
"""Ticks whose next number is kept in memory; of any other it is asked for again."""


# --- the table ----------------------------------------------------------------------------------------------------


class Table:
    """The rows that are left, and the IDs that are there. It keeps nothing: what is not in the table is not known."""

    def __init__(self, connection: Any, args: argparse.Namespace) -> None:
        import sqlalchemy as sa

        self._sa, self._connection, self._unit = sa, connection, _UNITS[args.time_unit]
        try:
            self._table = sa.Table(args.table, sa.MetaData(), schema=args.schema, autoload_with=connection)
        except sa.exc.NoSuchTableError:
            raise UsageError(f"there is no table {args.table!a:.80}") from None
        primary = [column.name for column in self._table.primary_key]
        if args.key is None and len(primary) != 1:
            raise UsageError(f"table {args.table!a:.80} has no primary key of one column: name a unique one with --key")
        self.key = self._column(args.key or primary[0])
        self.time = self._column(args.time_column)
        self.id = self._column(args.id_column)
        self._check_key()
        self._check_unique(args)

    def _column(self, name: str) -> Any:
        if name not in self._table.c:
            has = ", ".join(self._table.c.keys())
            raise UsageError(f"table {self._table.name!a:.80} has no column {name!a:.80}: it has {has:.200}")
        return self._table.c[name]

    def _check_key(self) -> None:
        """Refuse a key that does not name a row: a float is not found again by its text, and NULL equals nothing."""
        name, kind = self.key.name, self.key.type
        if isinstance(kind, self._sa.Float):
            raise UsageError(f"column {name!a:.80} is {kind!s:.40}, by which no row is found again: name another --key")
        without = self._sa.select(self._sa.literal(1)).where(self.key.is_(None), self.id.is_(None)).limit(1)
        if self.key.nullable and self._connection.scalar(without) is not None:
            raise UsageError(f"column {name!a:.80} is NULL in a row without an ID: fill it, or name another --key")

    def _check_unique(self, args: argparse.Namespace) -> None:
        inspector = self._sa.inspect(self._connection)
        unique = [list(self._table.primary_key.columns.keys())]
        unique += [each["column_names"] for each in inspector.get_indexes(args.table, args.schema) if each["unique"]]
        unique += [each["column_names"] for each in inspector.get_unique_constraints(args.table, args.schema)]
        for column in (self.id, self.key):
            if [column.name] not in unique:
                raise UsageError(
                    f"column {column.name!a} has no unique index, by which IDs are found and kept apart: "
                    f"CREATE UNIQUE INDEX {args.table}_{column.name} ON {args.table} ({column.name})"
                )

    def writer(self, kind: Kind | None) -> Callable[[Any], Any]:
        """Return what makes of an ID what the column is given; of integers where ``kind`` is ``None``.

        :raises UsageError: the column is of a type that has no form of them.
        """
        from decimal import Decimal
        from uuid import UUID

        from mintage.formats.storage import WRITERS, forms

        try:
            python = self.id.type.python_type
        except NotImplementedError:  # of no type, as SQLite has them
            python = bytes if kind and kind.size and not kind.layout else int
        found: dict[type, Callable[[Any], Any]]
        if kind is None:
            found = {int: int, Decimal: int}
        elif kind.layout:
            found = {int: int, Decimal: int, str: str}
        else:
            types = {"bytes": bytes, "uuid": UUID, "text": str}
            found = {types[form]: WRITERS[form] for form in forms(kind)}
        if python not in found:
            kinds = listed((each.__name__ for each in found if each is not Decimal), "or")
            what = f"{kind.name} IDs are" if kind else "integers are"
            raise UsageError(f"column {self.id.name!a:.80} is {self.id.type!s:.40}, and {what} {kinds}")
        return found[python]

    def left(self) -> int:
        """Return how many rows have no ID."""
        found: int = self._connection.scalar(
            self._sa.select(self._sa.func.count()).select_from(self._table).where(self.id.is_(None))
        )
        return found

    def ns(self, key: Any, value: Any) -> int:
        """Nanoseconds since the Unix epoch of a row's time; without a time zone it is UTC."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return int(value * self._unit)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time())
        if not isinstance(value, datetime):
            kind = "NULL" if value is None else type(value).__name__
            raise FieldError(f"row {key!a:.80}: its time is {kind}, and no ID can be made of that", code="time.range")
        return unix_ns(value if value.tzinfo else value.replace(tzinfo=UTC), "time")

    def extremes(self) -> Iterator[tuple[Any, Any]]:
        """Of the rows without an ID one that has no time, the first one and the last, with their times."""
        todo = self._sa.select(self.key, self.time).where(self.id.is_(None)).limit(1)
        for each in (todo.where(self.time.is_(None)), todo.order_by(self.time), todo.order_by(self.time.desc())):
            yield from self._connection.execute(each)

    def batch(self, after: Any, size: int) -> list[tuple[Any, Any]]:
        """Return the next rows in the order of their keys, which nobody else changes until the transaction ends."""
        todo = self._sa.select(self.key, self.time).where(self.id.is_(None)).order_by(self.key).limit(size)
        if after is not None:
            todo = todo.where(self.key > after)
        return [(key, value) for key, value in self._connection.execute(todo.with_for_update())]

    def keys_by_time(self) -> Iterator[Any]:
        """Return the keys of all rows without an ID, the earliest first."""
        todo = self._sa.select(self.key).where(self.id.is_(None)).order_by(self.time, self.key)
        return iter(self._connection.scalars(todo, execution_options={"yield_per": _ASKED}))

    def without_id(self, keys: Collection[Any]) -> set[Any]:
        """Those of some keys whose rows have none, and which nobody else changes until the transaction ends."""
        todo = self._sa.select(self.key).where(self.id.is_(None)).with_for_update()
        return self._among(todo, self.key, keys)

    def taken(self, ids: Collection[Any]) -> set[Any]:
        """Those of some IDs that rows have."""
        # As the driver has it: SQLAlchemy would round numbers of SQLite.
        return self._among(self._sa.select(self._sa.type_coerce(self.id, self._sa.types.NullType())), self.id, ids)

    def _among(self, select: Any, column: Any, values: Collection[Any]) -> set[Any]:
        wanted, found = list(values), set[Any]()
        for at in range(0, len(wanted), _ASKED):
            found.update(self._connection.scalars(select.where(column.in_(wanted[at : at + _ASKED]))))
        return found

    def largest(self, first: int, last: int) -> int | None:
        """Return the largest ID from one integer to another."""
        found = self._sa.select(self._sa.func.max(self.id)).where(self.id.between(first, last))
        return self._connection.scalar(found)  # type: ignore[no-any-return]

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Give rows their IDs."""
        sa = self._sa
        # An ID that another program gave a row meanwhile stays.
        update = sa.update(self._table).where(self.key == sa.bindparam("its_key"), self.id.is_(None))
        self._connection.execute(update.values({self.id.name: sa.bindparam("its_id")}), rows)


# --- what rows are given ------------------------------------------------------------------------------------------


class Dated:
    """IDs of the rows' own times, of one generator whose node number nobody else ever minted with.

    Within a run, no two have the same tick and number. What earlier runs gave is asked for in the table.
    """

    def __init__(self, table: Table, generator: Any, stored: Callable[[Any], Any]) -> None:
        self._table, self._generator, self._stored = table, generator, stored
        self._next: dict[Any, int] = {}
        """The number to go on with, by the first ID of the tick."""
        self._moved = 0

    def check(self) -> None:
        """That IDs can have every row's time, before anything is written."""
        for key, value in self._table.extremes():
            self._nth(key, self._table.ns(key, value), 0)

    def _nth(self, key: Any, ns: int, n: int) -> Any:
        try:
            return self._generator.nth_at(ns, n)
        except (FieldError, LeaseError) as error:
            raise type(error)(f"row {key!a:.80}: {error}", code=error.code) from None

    def batches(self, connection: Any, size: int) -> Iterator[int]:
        """Give all rows their IDs, and tell how many after each batch."""
        after = None
        while True:
            with connection.begin():
                if rows := self._table.batch(after, size):
                    self._table.write(self._ids(rows))
            if not rows:
                return
            after = rows[-1][0]
            yield len(rows)

    def _ids(self, rows: list[tuple[Any, Any]]) -> list[dict[str, Any]]:
        """Return an ID for each row: the next number of its tick, and of the ticks after it where that has no more."""
        if len(self._next) > _REMEMBERED:
            self._next.clear()
        given: dict[Any, Any] = {}
        times = [(key, self._table.ns(key, value)) for key, value in rows]
        todo = [(key, ns, self._nth(key, ns, 0)) for key, ns in times]
        while todo:
            self._find({first: (key, ns) for key, ns, first in todo if first not in self._next}, given)
            wanted: dict[Any, tuple[Any, int, Any, int]] = {}
            for key, ns, first in todo:
                while (its := self._stored(self._nth(key, ns, self._next[first]))) in given or its in wanted:
                    self._next[first] += 1
                wanted[its] = key, ns, first, self._next[first]
                self._next[first] += 1
            taken, todo = self._table.taken(wanted), []
            for its, (key, ns, first, n) in wanted.items():
                if its in taken:
                    self._next.pop(first, None)
                    todo.append((key, ns, first))
                else:
                    given[its] = key
                    self._moved += n >= self._generator.capacity
        return [{"its_key": key, "its_id": its} for its, key in given.items()]

    def _find(self, ticks: dict[Any, tuple[Any, int]], given: Collection[Any]) -> None:
        """A number of each tick that is free, after one that is not: doubling, then halving, for all ticks at once."""
        bounds: dict[Any, tuple[int, int | None]] = dict.fromkeys(ticks, (-1, None))
        while bounds:
            probes = {
                first: 2 * taken + 2 if free is None else (taken + free) // 2 for first, (taken, free) in bounds.items()
            }
            ids = {first: self._stored(self._nth(*ticks[first], n)) for first, n in probes.items()}
            there = self._table.taken(ids.values())
            for first, n in probes.items():
                taken, free = bounds[first]
                is_taken = ids[first] in there or ids[first] in given
                bounds[first] = taken, free = (n, free) if is_taken else (taken, n)
                if free == taken + 1:
                    self._next[first] = free
                    del bounds[first]

    @property
    def summary(self) -> str:
        """What else there is to say."""
        return f"; {self._moved:,} of a later tick, as theirs was full" if self._moved else ""


class Numbered:
    """Integers of one reservation, in the order of the rows' times."""

    def __init__(self, table: Table, args: argparse.Namespace, stored: Callable[[Any], Any]) -> None:
        self._table, self._args, self._stored = table, args, stored
        self._unused = 0

    def check(self) -> None:
        """That every row has a time."""
        for key, value in self._table.extremes():
            if value is None:
                raise FieldError(
                    f"row {key!a:.80}: its time is NULL, so it has no place in the order", code="time.range"
                )

    def batches(self, connection: Any, size: int) -> Iterator[int]:
        """Give all rows their integers, and tell how many after each batch."""
        import pickle
        from tempfile import TemporaryFile

        # Asked for once: without an index on the time, each answer would cost a look at the whole table.
        with TemporaryFile() as order:
            total = 0
            with connection.begin():
                found = self._table.keys_by_time()
                while keys := list(islice(found, size)):
                    pickle.dump(keys, order)
                    total += len(keys)
            if not total:
                return
            numbers = iter(self._reserve(connection, total))
            self._unused = total
            order.seek(0)
            for _ in range(0, total, size):
                keys = pickle.load(order)  # noqa: S301 - nobody else can write to this file
                with connection.begin():
                    left = self._table.without_id(keys)
                    pairs = zip((key for key in keys if key in left), numbers, strict=False)
                    if rows := [{"its_key": key, "its_id": self._stored(number)} for key, number in pairs]:
                        self._table.write(rows)
                self._unused -= len(rows)
                yield len(rows)

    def _reserve(self, connection: Any, count: int) -> range:
        """So many integers in one piece, none of which a row has."""
        from mintage.store import all_or_nothing

        name = self._args.sequence
        with opened(self._args) as store:
            found = all_or_nothing(store, store.reserve(name, count), count).as_range()
        with connection.begin():
            largest = self._table.largest(found[0], found[-1])
        if largest is not None:
            raise UsageError(
                f"{found[0]}..{found[-1]} was reserved, and a row has {largest}: raise the floor above all integers of "
                f"the column, with 'mintage namespaces raise-floor {name} N'"
            )
        print(f"reserved {found[0]}..{found[-1]} of {name}", flush=True)
        return found

    @property
    def summary(self) -> str:
        """What else there is to say."""
        return f"; {self._unused:,} integers are skipped, as others gave rows theirs" if self._unused else ""


@contextmanager
def _filler(args: argparse.Namespace, table: Table) -> Iterator[Dated | Numbered]:
    """What the rows are given, as the words say."""
    if args.sequence is not None:
        if args.scheme or args.layout or args.node is not None:
            raise UsageError("--sequence gives integers: --scheme, --layout and --node belong to IDs of a time")
        yield Numbered(table, args, table.writer(None))
        return
    if args.scheme is None:
        raise UsageError("name the IDs with --scheme, or with --sequence where they are to be integers in a row")
    import logging

    from mintage.formats.kinds import KINDS, Kind

    # What the keeper logs of a store that fails, the error says.
    logging.getLogger("mintage").addHandler(logging.NullHandler())
    layout, scheme = layout_of(args), SCHEMES[args.scheme]
    kind = Kind(scheme, layout) if layout else KINDS[scheme.name]
    options = {"layout": kind.layout} if kind.layout else {}
    term = scheme.node or "node"
    if args.node is not None:
        if args.store is not None:
            raise UsageError("--node is a number of your own, --store leases one: give one of the two")
        if scheme.name not in _NUMBERED:
            raise ConfigError(
                f"--node {args.node} of {scheme.name}: a second run with one node number gives IDs of deleted rows "
                "again. Node numbers of this scheme do not run out: have a store lease one for each run, such as "
                "--store sqlite:ids.db",
                code="config.node",
            )
        lease, options[term] = {}, args.node
    elif args.store is not None or os.environ.get("MINTAGE_STORE"):
        lease = {"store": args.store, "never_used": True}
    else:
        raise UsageError(
            "name a node number that nobody ever minted with, with --node, or a store of such with --store"
        )
    stored = table.writer(kind)
    generator: Any = scheme.generator(lease, **options)
    with closing(generator):
        with advised(StoreError, LeaseError):
            getattr(generator, term)  # which leases it
        yield Dated(table, generator, stored)


# --- the command --------------------------------------------------------------------------------------------------


def _use_utc(connection: Any, _: object) -> None:
    """Have MySQL and MariaDB answer in UTC. They convert a ``TIMESTAMP`` to the session's zone, and do not name it."""
    with closing(connection.cursor()) as cursor:
        cursor.execute("SET time_zone = '+00:00'")


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """Open a connection to a database; its errors are of one sentence, and times that it reads are aware or in UTC."""
    try:
        import sqlalchemy as sa
    except ModuleNotFoundError as error:
        raise ConfigError(str(missing(error, "tables")), code="config.driver") from None
    try:
        parsed = sa.make_url(url)
        drivers = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
        parsed = parsed.set(drivername=drivers.get(parsed.drivername, parsed.drivername))
        engine = sa.create_engine(parsed, hide_parameters=True)
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError):
        raise UsageError(
            "the URL is none of a database: sqlite:///FILE, postgresql://…, mysql://…, mariadb://…"
        ) from None
    except ModuleNotFoundError as error:
        raise ConfigError(str(missing(error, parsed.drivername.partition("+")[0])), code="config.driver") from None
    if engine.dialect.name in {"mysql", "mariadb"}:
        sa.event.listen(engine, "connect", _use_utc)
    try:
        with engine.connect() as connection:
            yield connection
    except sa.exc.DBAPIError as error:
        said = str(error.orig).partition("\n")[0]
        code = "store.unavailable" if error.connection_invalidated else "store.refused"
        raise StoreError(f"the database: {said:.300}", code=code) from None
    finally:
        engine.dispose()


@command(
    "backfill",
    option("url", metavar="URL", help="the database: sqlite:///FILE, postgresql://…, mysql://… or mariadb://…"),
    option("--table", required=True, metavar="NAME", help="the table"),
    option("--schema", metavar="NAME", help="the schema that it is in"),
    option("--time-column", required=True, metavar="NAME", help="when a row was made; without a time zone it is UTC"),
    option(
        "--time-unit",
        choices=tuple(_UNITS),
        default="ms",
        help="of a time column of numbers since 1970: s, ms, us or ns (default: ms)",
    ),
    option("--id-column", required=True, metavar="NAME", help="rows where it is NULL get an ID; it has a unique index"),
    option("--key", metavar="NAME", help="a unique column that names a row (default: the primary key)"),
    option("--scheme", choices=_DATED, metavar="SCHEME", help=listed(_DATED, "or")),
    LAYOUT,
    option(
        "--node",
        type=whole,
        metavar="N",
        help=f"a node number that nobody ever minted with, nor will; of {listed(_NUMBERED, 'or')}",
    ),
    option("--sequence", metavar="NAMESPACE", help="integers of it, in place of IDs of a scheme"),
    STORE._replace(settings=STORE.settings | {"help": _STORE_HELP}),
    option("--batch", type=count, default=1000, metavar="N", help="rows of a transaction (default: 1000)"),
    examples="""
  mintage backfill sqlite:///shop.db --table orders --time-column made --id-column id --scheme sno --node 9
  mintage backfill postgresql://me@db/shop --table o --time-column t --id-column id --scheme ulid --store redis://cache
  mintage backfill sqlite:///shop.db --table orders --time-column made --id-column bill --sequence bills""",
)
def backfill(args: argparse.Namespace) -> int:
    """Give the rows of a table that have no ID one of their own time.

    It can be stopped at any moment, also with kill -9, and started again with the same words: each batch is a
    transaction, and what is done is read from the table itself. IDs are unique as long as nobody else mints with the
    node number, which a store leases for this run where you give none, and as the column has a unique index. Rows that
    share a tick with more others than it has room for get IDs of the ticks after it.

    With --sequence, rows get the integers of one reservation, the earliest row the first. The store records them as
    spent before any is written, so no integer comes twice, and a run that is stopped leaves a gap.
    """
    with connected(args.url) as connection:
        with connection.begin():
            table = Table(connection, args)
        with _filler(args, table) as filler:
            with connection.begin():
                total = table.left()
                filler.check()
            done = 0
            with progress(total, "rows", on_output=False) as report:
                due = 0
                for rows in filler.batches(connection, args.batch):
                    done += rows
                    report(done)
                    if not is_watched() and done >= due:
                        print(f"{done:,} of {total:,} rows", flush=True)
                        due = done + total // _LINES
    print(f"done: {done:,} rows have an ID now{filler.summary}")
    return 0
