"""``mintage backfill``: gives old rows of a table IDs of their own time."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mintage import sno, snowflake
from mintage.cli.command import UsageError, command, count, option, whole
from mintage.cli.screen import progress
from mintage.errors import ConfigError, FieldError, StoreError
from mintage.extras import missing
from mintage.formats import LAYOUTS, unix_ns

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

__all__ = ["backfill", "connected"]

_UNITS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_FEW: Final = 10
"""So many IDs in the range of a batch, for each of its rows, are read at once; beyond that each tick is asked for."""


class Block(NamedTuple):
    """The IDs of one tick under one node number, as numbers that are a stride apart."""

    first: int
    room: int
    stride: int
    ends_ns: int
    """When the next tick begins."""

    @property
    def last(self) -> int:
        """The largest of them."""
        return self.first + (self.room - 1) * self.stride

    def place(self, number: int) -> int | None:
        """Which of them a number is."""
        place, rest = divmod(number - self.first, self.stride)
        return place if rest == 0 and 0 <= place < self.room else None


class Snowflakes:
    """Integers of a layout."""

    def __init__(self, layout: snowflake.Layout, node: int) -> None:
        layout.compose(timestamp_ms=layout.epoch_ms, node=node)  # which says whether the node number fits
        bits, low = next((bits, low) for name, bits, low in layout.fields if name == "sequence")
        self._layout, self._node, self._room, self._stride = layout, node, 1 << bits, 1 << low

    def block(self, ns: int) -> Block:
        first = self._layout.compose(timestamp_ms=ns // 10**6, node=self._node)
        ends_ms = self._layout.parse(first).timestamp_ms + self._layout.unit_ms
        return Block(first, self._room, self._stride, ends_ms * 10**6)

    def stored(self, number: int) -> Any:
        return number

    def number(self, stored: Any) -> int:
        return int(stored)


class Snos:
    """10 bytes, or their 16 characters: both sort as the numbers do."""

    def __init__(self, node: int, *, is_text: bool) -> None:
        sno.ID.from_parts(timestamp_ns=1_800_000_000 * 10**9, partition=node)
        self._node, self._is_text = node, is_text

    def block(self, ns: int) -> Block:
        first = sno.ID.from_parts(timestamp_ns=ns, partition=self._node)
        return Block(int.from_bytes(bytes(first), "big"), 1 << 16, 1, first.timestamp_ns + 4 * 10**6)

    def stored(self, number: int) -> Any:
        made = sno.ID(number.to_bytes(10, "big"))
        return str(made) if self._is_text else bytes(made)

    def number(self, stored: Any) -> int:
        read = sno.ID.parse(stored) if isinstance(stored, str) else sno.ID(bytes(stored))
        return int.from_bytes(bytes(read), "big")


class Table:
    """The rows that are left, and the IDs that are there. It keeps nothing: what is not in the table is not known."""

    def __init__(self, connection: Any, args: argparse.Namespace) -> None:
        import sqlalchemy as sa

        self._sa, self._connection, self._unit = sa, connection, _UNITS[args.time_unit]
        try:
            self._table = sa.Table(args.table, sa.MetaData(), schema=args.schema, autoload_with=connection)
        except sa.exc.NoSuchTableError:
            raise UsageError(f"there is no table {args.table!a}") from None
        primary = [column.name for column in self._table.primary_key]
        if args.key is None and len(primary) != 1:
            raise UsageError(f"table {args.table!a} has no primary key of one column: name a unique one with --key")
        self.key = self._column(args.key or primary[0])
        self.time = self._column(args.time_column)
        self.id = self._column(args.id_column)
        self._check_unique(args)

    def _column(self, name: str) -> Any:
        if name not in self._table.c:
            raise UsageError(
                f"table {self._table.name!a} has no column {name!a}: it has {', '.join(self._table.c.keys())}"
            )
        return self._table.c[name]

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

    @property
    def is_text(self) -> bool:
        return isinstance(self.id.type, self._sa.String)

    def left(self) -> int:
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

    def check(self, mint: Snowflakes | Snos) -> None:
        """That every row's time is one that IDs can have, before anything is written."""
        todo = self._sa.select(self.key, self.time).where(self.id.is_(None)).limit(1)
        timeless = self._connection.execute(todo.where(self.time.is_(None)))
        first, last = (self._connection.execute(todo.order_by(each)) for each in (self.time, self.time.desc()))
        for key, value in [*timeless, *first, *last]:
            ns = self.ns(key, value)
            try:
                mint.block(ns)
            except FieldError as error:
                raise FieldError(f"row {key!a:.80}: {error}", code=error.code) from None

    def batch(self, after: Any, size: int) -> list[tuple[Any, Any]]:
        """The next rows in the order of their keys, which nobody else changes until the transaction ends."""
        todo = self._sa.select(self.key, self.time).where(self.id.is_(None)).order_by(self.key).limit(size)
        if after is not None:
            todo = todo.where(self.key > after)
        return [(key, value) for key, value in self._connection.execute(todo.with_for_update())]

    def ids(self, low: Any, high: Any, most: int) -> list[Any] | None:
        """The IDs of a range; ``None`` where there are more than that."""
        found = self._connection.scalars(
            self._sa.select(self.id).where(self.id.between(low, high)).limit(most + 1)
        ).all()
        return None if len(found) > most else list(found)

    def write(self, rows: list[dict[str, Any]]) -> None:
        sa = self._sa
        # Whoever gave a row an ID meanwhile is right.
        update = sa.update(self._table).where(self.key == sa.bindparam("its_key"), self.id.is_(None))
        self._connection.execute(update.values({self.id.name: sa.bindparam("its_id")}), rows)


class Filler:
    """Which numbers of which tick are taken, as far as the table says."""

    def __init__(self, table: Table, mint: Snowflakes | Snos) -> None:
        self._table, self._mint = table, mint
        self._next: dict[int, int] = {}
        self.moved = 0

    def ids(self, rows: list[tuple[Any, Any]]) -> list[dict[str, Any]]:
        """An ID for each row: the next number of its tick, or of the first after it that has one left."""
        times = [self._table.ns(key, value) for key, value in rows]
        blocks = [self._mint.block(ns) for ns in times]
        self._next.clear()
        first, last = min(blocks), max(blocks)
        known = self._table.ids(self._mint.stored(first.first), self._mint.stored(last.last), _FEW * len(rows))
        found = None if known is None else sorted(map(self._mint.number, known))
        given = []
        for (key, _), block in zip(rows, blocks, strict=True):
            at, is_moved = block, False
            # Ticks behind the last of the batch were not read with it.
            while (free := self._free(at, found if at.last <= last.last else None)) >= at.room:
                at, is_moved = self._mint.block(at.ends_ns), True
            self._next[at.first] = free + 1
            self.moved += is_moved
            given.append({"its_key": key, "its_id": self._mint.stored(at.first + free * at.stride)})
        return given

    def _free(self, block: Block, found: list[int] | None) -> int:
        if block.first not in self._next:
            if found is None:
                # In ticks of other nodes' IDs, too, each is read: there are as many as a tick can have.
                low, high = self._mint.stored(block.first), self._mint.stored(block.last)
                of_tick = [self._mint.number(each) for each in self._table.ids(low, high, 1 << 40) or ()]
            else:
                from bisect import bisect_left, bisect_right

                of_tick = found[bisect_left(found, block.first) : bisect_right(found, block.last)]
            places = [place for each in of_tick if (place := block.place(each)) is not None]
            self._next[block.first] = max(places, default=-1) + 1
        return self._next[block.first]


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """A connection to a database, whose errors are of one sentence."""
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
    try:
        with engine.connect() as connection:
            yield connection
    except sa.exc.DBAPIError as error:
        said = str(error.orig).partition("\n")[0]
        code = "store.unavailable" if error.connection_invalidated else "store.refused"
        raise StoreError(f"the database: {said:.300}", code=code) from None
    finally:
        engine.dispose()


def _mint(args: argparse.Namespace, table: Table) -> Snowflakes | Snos:
    if args.scheme == "sno":
        if args.layout is not None:
            raise UsageError("--layout belongs to snowflake, not to sno")
        return Snos(args.node, is_text=table.is_text)
    name = args.layout or "default"
    if name not in LAYOUTS:
        raise UsageError(f"{name!a} is no layout: use {', '.join(LAYOUTS)}")
    return Snowflakes(LAYOUTS[name], args.node)


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
    option("--scheme", required=True, choices=("sno", "snowflake"), metavar="SCHEME", help="sno or snowflake"),
    option("--layout", metavar="LAYOUT", help="of snowflake: one of 'mintage schemes'"),
    option(
        "--node", required=True, type=whole, metavar="N", help="a node number that nobody ever minted with, nor will"
    ),
    option("--batch", type=count, default=1000, metavar="N", help="rows of a transaction (default: 1000)"),
    examples="""
  mintage backfill sqlite:///shop.db --table orders --time-column made --id-column id --scheme sno --node 9
  mintage backfill postgresql://me@db/shop --table o --time-column t --id-column id --scheme snowflake --node 9""",
)
def backfill(args: argparse.Namespace) -> int:
    """Give the rows of a table that have no ID one of their own time.

    It can be stopped at any moment, also with kill -9, and started again with the same words: each batch is a
    transaction, and what is done is read from the table itself. IDs are unique as long as nobody else mints with the
    node number, and as the column has a unique index. Rows that share a tick with more others than it has room for get
    IDs of the ticks after it.
    """
    if args.batch < 1:
        raise UsageError("--batch must be 1 at least")
    with connected(args.url) as connection:
        with connection.begin():
            table = Table(connection, args)
        mint = _mint(args, table)
        with connection.begin():
            total = table.left()
            table.check(mint)
        filler, done, after = Filler(table, mint), 0, None
        with progress(total, "rows") as report:
            while True:
                with connection.begin():
                    rows = table.batch(after, args.batch)
                    if rows:
                        table.write(filler.ids(rows))
                if not rows:
                    break
                done, after = done + len(rows), rows[-1][0]
                report(done)
                if not _is_shown():
                    print(f"{done:,} of {total:,} rows", flush=True)
    moved = f"; {filler.moved:,} of a later tick, as theirs was full" if filler.moved else ""
    print(f"done: {done:,} rows have an ID now{moved}")
    return 0


def _is_shown() -> bool:
    import sys

    return sys.stderr is not None and sys.stderr.isatty() and not sys.stdout.isatty()
