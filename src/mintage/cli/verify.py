"""``mintage verify``: says whether a column of IDs is what it should be."""

from __future__ import annotations

import os
import re
import sys
from array import array
from collections import Counter
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain
from struct import iter_unpack
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from mintage.cli.command import UsageError, command, option
from mintage.cli.schemes import LAYOUT, layout_of
from mintage.cli.screen import is_watched, printable, progress
from mintage.errors import ConfigError, FieldError, MintError, ParseError
from mintage.formats.rows import NAMES, listed
from mintage.formats.times import stamp
from mintage.installation import missing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    from mintage.formats.kinds import Kind

__all__ = ["Repeats", "verify"]

EXIT_FOUND: Final = 1
EXAMPLES: Final = 10
BATCH: Final = 65_536
CHUNK: Final = 1 << 19
LONGEST_LINE: Final = 4096
SHOWN: Final = 40
"""Characters of a value that is no ID."""

BASE_BYTES: Final = 64 << 20
"""What the program itself needs, with a batch in hand."""
BITS: Final = 7
"""Of a hash, those that choose one of the files that IDs are parted into."""


# --- what repeats -------------------------------------------------------------------------------------------------


class Repeat(NamedTuple):
    """An ID that comes again."""

    row: int
    """Where it does first."""
    key: bytes
    rows: list[int]
    """Where it is at all, as far as they are listed."""
    times: int
    """How often it comes."""


class Repeats:
    """Which keys come more than once, exactly, however many there are.

    Keys go to files by some bits of their hash, each with its row. Those of one file then fit into memory; where they
    do not, the file is parted in the same way by the next bits. The files have no name: they are gone when the program
    is, however it ends.

    :param width: bytes of a key.
    :param limit: how many different keys to hold in memory.
    :param directory: where the files are; the system's usual one where it is ``None``.
    """

    def __init__(self, width: int, limit: int, directory: str | None = None, *, depth: int = 0) -> None:
        self._width, self._limit, self._directory, self._depth = width, limit, directory, depth
        self._files: list[Any] = []
        self._stack = ExitStack()
        self.rows = 0

    @staticmethod
    def limit(memory: int, width: int) -> int:
        """How many keys so many bytes of memory hold, beside the program: each is an object in a set that grows."""
        return max(1, (memory - BASE_BYTES) // (80 + (34 + width + 15) // 16 * 16 + 8))

    @property
    def row_bytes(self) -> int:
        """Bytes that a row takes on disk."""
        return self._width + 8

    def add(self, keys: bytes, rows: Iterable[int]) -> None:
        """Keys, one after the other, and their rows, which only ever rise."""
        numbers = array("Q", rows)
        if sys.byteorder == "little":
            numbers.byteswap()
        places, size = numbers.tobytes(), self.row_bytes
        records = bytearray(len(numbers) * size)
        for at in range(self._width):
            records[at::size] = keys[at :: self._width]
        for at in range(8):
            records[self._width + at :: size] = places[at::8]
        self._part(records)

    def _part(self, records: bytes | bytearray) -> None:
        if not self._files:
            from tempfile import TemporaryFile

            for _ in range(1 << BITS):
                self._files.append(self._stack.enter_context(TemporaryFile(dir=self._directory)))  # noqa: SIM115
        shift, mask = self._depth * BITS, (1 << BITS) - 1
        parts: list[list[bytes]] = [[] for _ in self._files]
        # Python's hash of bytes is keyed anew in each process, so nobody can aim at one file.
        for (key,), (record,) in zip(
            iter_unpack(f"{self._width}s8x", records), iter_unpack(f"{self.row_bytes}s", records), strict=True
        ):
            parts[(hash(key) >> shift) & mask].append(record)
        for file, part in zip(self._files, parts, strict=True):
            file.write(b"".join(part))
        self.rows += len(records) // self.row_bytes

    def found(self, report: Callable[[int], None] = lambda _: None) -> tuple[int, list[Repeat]]:
        """Return how many rows have a key that an earlier row has, and the first of them. It closes this."""
        total, first, done = 0, list[Repeat](), 0
        with self:
            for file in self._files:
                count, some = self._in_file(file)
                done += file.tell() // self.row_bytes
                file.close()
                total += count
                first = sorted((*first, *some))[:EXAMPLES]
                report(done)
        return total, first

    def _in_file(self, file: BinaryIO) -> tuple[int, list[Repeat]]:
        seen: set[bytes] = set()
        rows = 0
        for records in self._read(file):
            seen.update(chain.from_iterable(iter_unpack(f"{self._width}s8x", records)))
            rows += len(records) // self.row_bytes
            # Beyond the last bits of a hash, all keys are the same one.
            if len(seen) > self._limit and (self._depth + 1) * BITS < 64:
                seen.clear()
                return self._in_parts(file)
        return (rows - len(seen), self._first(file, seen)) if len(seen) < rows else (0, [])

    def _in_parts(self, file: BinaryIO) -> tuple[int, list[Repeat]]:
        with Repeats(self._width, self._limit, self._directory, depth=self._depth + 1) as parts:
            for records in self._read(file):
                parts._part(records)
            return parts.found()

    def _first(self, file: BinaryIO, seen: set[bytes]) -> list[Repeat]:
        """Return the first keys that come again, of a file whose keys are these."""
        again: dict[bytes, int] = {}
        for key, row in self._pairs(file):
            if key in seen:
                seen.remove(key)
            elif key not in again:
                again[key] = row
                if len(again) == EXAMPLES:
                    break
        rows: dict[bytes, list[int]] = {key: [] for key in again}
        counts = Counter[bytes]()
        for key, row in self._pairs(file):
            if key in again:
                counts[key] += 1
                if len(rows[key]) < EXAMPLES:
                    rows[key].append(row)
        return [Repeat(row, key, rows[key], counts[key]) for key, row in again.items()]

    def _pairs(self, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
        for records in self._read(file):
            yield from iter_unpack(f">{self._width}sQ", records)

    def _read(self, file: BinaryIO) -> Iterator[bytes]:
        file.seek(0)
        size = CHUNK // self.row_bytes * self.row_bytes
        while records := file.read(size):
            yield records

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


# --- what a value is ----------------------------------------------------------------------------------------------


class Reader:
    """Makes keys of values: bytes of one width, which are equal where IDs are, and sort as they do."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.width = kind.size or kind.lengths[1]
        # A scheme's whole text, and nothing but it.
        self._match = re.compile(kind.pattern.removesuffix("$") + r"\Z").match if kind.size is None else None

    def keys(self, values: Sequence[object]) -> bytes | None:
        """Those of many values, one after the other; ``None`` where any of them is none, or they differ in type."""
        kinds = set(map(type, values))
        try:
            if kinds == {str}:
                return self._of_texts(values)  # type: ignore[arg-type]
            if kinds == {int} and self.kind.layout:
                return self._of_integers(values)  # type: ignore[arg-type]
            if kinds == {bytes} and self.kind.size and not self.kind.layout:
                is_whole = set(map(len, values)) == {self.width}  # type: ignore[arg-type]
                return b"".join(values) if is_whole else None  # type: ignore[arg-type]
        except (MintError, UnicodeError):
            pass
        return None

    def _of_texts(self, texts: Sequence[str]) -> bytes | None:
        if self._match:
            return b"".join(self._padded(text) for text in texts) if all(map(self._match, texts)) else None
        joined = "".join(texts)
        if self.kind.layout:
            longest = max(map(len, texts))
            if not (joined.isascii() and joined.isdigit() and longest <= self.kind.length):
                return None
            return self._of_integers(list(map(int, texts)))
        if set(map(len, texts)) != {self.kind.length}:
            return None
        found: bytes = self.kind.scheme.module.Array.parse(joined).tobytes()
        return found

    def _of_integers(self, numbers: Sequence[int]) -> bytes | None:
        if min(numbers) < 0 or max(numbers) > self.kind.max:
            return None
        items = array("Q", numbers)
        if sys.byteorder == "little":
            items.byteswap()
        return items.tobytes()

    def _padded(self, text: str) -> bytes:
        # On the left: a cuid that is longer is later.
        return text.encode().rjust(self.width, b"\0")

    def key(self, value: object) -> bytes:
        """Return the key of one value.

        :raises MintError: it is no ID.
        """
        if not isinstance(value, (str, bytes, int)):
            value = _whole(value)
        if isinstance(value, str) and not value.isascii():
            raise ParseError(f"{value[:SHOWN]!a} is no {self.kind.name}", code="parse.character")
        read = self.kind.read(value)
        if self.kind.layout:
            return int(read).to_bytes(8, "big")
        return bytes(read) if self.kind.size else self._padded(read)

    def text(self, key: bytes) -> str:
        """Return the ID of a key."""
        if self.kind.layout:
            return str(int.from_bytes(key, "big"))
        return str(self.kind.python.from_bytes(key)) if self.kind.size else key.lstrip(b"\0").decode()

    def bound(self, time: datetime, *, is_last: bool) -> bytes:
        """Return the smallest or the largest key of a time.

        :raises FieldError: there is none.
        """
        return self.key(self.kind.max_at(time) if is_last else self.kind.min_at(time))

    @cached_property
    def has_others(self) -> bool:
        """True if some IDs of the scheme do not sort by time: UUIDs of other versions than 7."""
        return self.kind.name == "uuid"

    def sorts(self, key: bytes) -> bool:
        """Return whether it is one of those that sort by time."""
        return not self.has_others or key[6] >> 4 == 7


# --- what is found ------------------------------------------------------------------------------------------------


class Finding:
    """Rows of which something is wrong: how many, and the first of them."""

    def __init__(self, name: str, *, counts: bool = True) -> None:
        self.name, self.counts = name, counts
        self.count = 0
        self.examples: list[dict[str, Any]] = []
        self.is_checked = True

    def add(self, **example: Any) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)


class Check:
    """What a column is found to be, a batch of its values after the other."""

    def __init__(self, reader: Reader, repeats: Repeats, low: bytes | None, high: bytes | None, *, is_sorted: bool):
        self._reader, self._repeats, self._low, self._high = reader, repeats, low, high
        self._previous: bytes | None = None
        self.rows = self.ids = self.empty = 0
        self.duplicates = Finding("duplicates")
        self.unreadable = Finding("unreadable")
        self.layout = Finding("outside their layout")
        self.window = Finding("outside the window")
        self.disorder = Finding("out of order", counts=is_sorted)
        self.window.is_checked = self.disorder.is_checked = reader.kind.has_time

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them."""
        return self.duplicates, self.unreadable, self.layout, self.window, self.disorder

    @property
    def is_found(self) -> bool:
        """True if anything is wrong."""
        return any(each.count for each in self.findings if each.counts)

    def add(self, values: Sequence[object]) -> None:
        """The next rows."""
        rows: Sequence[int] = range(self.rows + 1, self.rows + len(values) + 1)
        self.rows += len(values)
        if None in values or "" in values:
            present = [(row, value) for row, value in zip(rows, values, strict=True) if value not in (None, "")]
            self.empty += len(values) - len(present)
            rows, values = [row for row, _ in present], [value for _, value in present]
        if not values:
            return
        keys = self._reader.keys(values)
        if keys is None:
            read = [(row, key) for row, value in zip(rows, values, strict=True) if (key := self._read(row, value))]
            rows, keys = [row for row, _ in read], b"".join(key for _, key in read)
        if not keys:
            return
        self.ids += len(rows)
        self._repeats.add(keys, rows)
        if self._reader.kind.has_time:
            self._check_times(keys, rows)

    def _read(self, row: int, value: object) -> bytes | None:
        try:
            return self._reader.key(value)
        except MintError as error:
            finding = self.layout if isinstance(error, FieldError) else self.unreadable
            finding.add(row=row, value=_shortened(value), error=str(error))
        return None

    def _check_times(self, keys: bytes, rows: Sequence[int]) -> None:
        each = [key for (key,) in iter_unpack(f"{self._reader.width}s", keys)]
        if self._reader.has_others and not all(map(self._reader.sorts, each)):
            rows = [row for row, key in zip(rows, each, strict=True) if self._reader.sorts(key)]
            each = [key for key in each if self._reader.sorts(key)]
            if not each:
                return
        in_order = sorted(each)
        low, high = in_order[0], in_order[-1]
        if each != in_order or (self._previous is not None and each[0] < self._previous):
            self._check_order(each, rows)
        self._previous = each[-1]
        if (self._low is not None and low < self._low) or (self._high is not None and high > self._high):
            for row, key in zip(rows, each, strict=True):
                if (self._low is not None and key < self._low) or (self._high is not None and key > self._high):
                    self.window.add(row=row, id=self._reader.text(key))

    def _check_order(self, each: Sequence[bytes], rows: Sequence[int]) -> None:
        before = self._previous
        for row, key in zip(rows, each, strict=True):
            if before is not None and key < before:
                self.disorder.add(row=row, id=self._reader.text(key), after=self._reader.text(before))
            before = key

    def finish(self, report: Callable[[int], None]) -> None:
        """Look for what repeats, when all rows are known."""
        self.duplicates.count, first = self._repeats.found(report)
        for each in first:
            example = {"id": self._reader.text(each.key), "rows": each.rows, "times": each.times}
            self.duplicates.examples.append(example)


def _whole(value: object) -> object:
    """Return a database's number without a fraction as an integer; anything else as it is."""
    from decimal import Decimal

    is_whole = isinstance(value, Decimal) and value.is_finite() and abs(value) < 2**64 and value == int(value)
    return int(value) if is_whole else value  # type: ignore[call-overload]


def _shortened(value: object) -> str:
    text = value if isinstance(value, str) else value.hex() if isinstance(value, bytes) else str(value)
    text = text[: SHOWN + 1]
    shown = printable(text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
    return shown if len(text) <= SHOWN else f"{shown[:SHOWN]}..."


# --- where columns are --------------------------------------------------------------------------------------------


class Source(NamedTuple):
    """A column: its values in batches, and how far it is read."""

    batches: Iterator[Sequence[object]]
    total: int = 0
    """Of what :attr:`done` counts, or 0 where nobody knows."""
    noun: str = "rows"
    done: Callable[[], int] | None = None
    """How far it is read; rows where it is ``None``."""


def _opened(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:
        raise OSError(f"{path[:200]}: {getattr(error, 'strerror', None) or 'is no name of a file'}") from None


@contextmanager
def _text(args: argparse.Namespace) -> Iterator[Source]:
    if args.column:
        raise UsageError("--column belongs to CSV, Parquet and databases; a text has one ID a line")
    with _stream(args.source) as stream:
        yield Source(_lines(stream), *_size(stream))


@contextmanager
def _stream(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        if sys.stdin is None:
            raise OSError("standard input is closed")
        yield sys.stdin.buffer
    else:
        with _opened(path) as file:
            yield file


def _size(stream: BinaryIO) -> tuple[int, str, Callable[[], int] | None]:
    """Return what of a :class:`Source` is known of a stream: of a pipe, nothing."""
    try:
        size = os.fstat(stream.fileno()).st_size
    except OSError:
        size = 0
    return (size, "bytes", stream.tell) if size else (0, "rows", None)


def _lines(stream: BinaryIO) -> Iterator[list[str]]:
    """Every line without the space around it; of one that is too long for any ID, the start."""
    rest, is_cut = b"", False
    while chunk := stream.read(CHUNK):
        if is_cut:
            _, end, chunk = chunk.partition(b"\n")
            if not end:
                continue
            rest, is_cut = rest + end, False
        whole, end, rest = (rest + chunk).rpartition(b"\n")
        if len(rest) > LONGEST_LINE:
            rest, is_cut = rest[:LONGEST_LINE], True
        if end:
            yield from _batches(whole)
    if rest:
        yield from _batches(rest)


def _batches(whole: bytes) -> Iterator[list[str]]:
    lines = whole.decode("utf-8", "surrogateescape").split("\n")
    for at in range(0, len(lines), BATCH):
        yield [line.strip() for line in lines[at : at + BATCH]]


@contextmanager
def _csv(args: argparse.Namespace) -> Iterator[Source]:
    import csv
    import io

    name = _column_name(args)
    with _stream(args.source) as stream:
        size = _size(stream)
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        # Not strict, it would take all that follows a quote that is not closed for one field.
        reader = csv.reader(text, strict=True)
        try:
            rows = _rows(reader)
            header = next(rows, [])
            at = header.index(_only(name, header))
            yield Source(_cells(rows, at, len(header)), *size)
        finally:
            text.detach()


def _rows(reader: Any) -> Iterator[list[str]]:
    """Yield the rows of a CSV.

    :raises ParseError: ``parse.unknown``: there is one that is none.
    """
    from csv import Error

    line = 0
    try:
        for row in reader:
            yield row
            line = reader.line_num
    except Error as error:
        raise ParseError(f"the row that begins in line {line + 1} is no CSV: {error}", code="parse.unknown") from None


def _cells(rows: Iterator[list[str]], at: int, width: int) -> Iterator[list[str]]:
    """Yield the cells of a column. One that is not there is empty.

    :raises ParseError: ``parse.unknown``: a row has more cells than the header, so it is unclear which one is meant.
    """
    from itertools import count, islice

    for first in count(0, BATCH // 4):
        cells: list[str] = []
        for row in islice(rows, BATCH // 4):
            if len(row) > width and any(row[width:]):
                message = f"row {first + len(cells) + 1} has {len(row)} fields, and the header {width}"
                raise ParseError(message, code="parse.unknown")
            cells.append(row[at] if at < len(row) else "")
        if not cells:
            return
        yield cells


def _only(name: str, names: Sequence[str]) -> str:
    """Return the name of a column, if just one has it."""
    if (times := names.count(name)) != 1:
        has = f"are {times} columns" if times else "is no column"
        raise UsageError(f"there {has} {name!a:.80}: it has {', '.join(names)!a:.200}")
    return name


@contextmanager
def _parquet(args: argparse.Namespace) -> Iterator[Source]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise ConfigError(str(missing(error, "arrow")), code="config.driver") from None
    name = _column_name(args)
    if args.source == "-":
        raise UsageError("Parquet is read from a file, not from standard input: its contents are listed at its end")
    with _opened(args.source) as stream:
        try:
            file = pq.ParquetFile(stream)
            _only(name, file.schema_arrow.names)
            parts = file.iter_batches(BATCH // 2, columns=[name], use_threads=False)
            yield Source((_listed(part.column(0)) for part in parts), file.metadata.num_rows)
        except pa.ArrowException as error:
            raise ParseError(f"this is no Parquet file: {error!s:.200}", code="parse.unknown") from None


def _listed(column: Any) -> list[object]:
    try:
        found: list[object] = column.to_pylist()
    except UnicodeDecodeError:
        values = column.cast("binary").to_pylist()
        found = [value and value.decode("utf-8", "surrogateescape") for value in values]
    return found


@contextmanager
def _table(args: argparse.Namespace) -> Iterator[Source]:
    from mintage.cli.backfill import connected

    if not args.table:
        raise UsageError("a database needs --table and --column")
    name = _column_name(args)
    with connected(args.source) as connection:
        import sqlalchemy as sa

        try:
            table = sa.Table(args.table, sa.MetaData(), schema=args.schema, autoload_with=connection)
        except sa.exc.NoSuchTableError:
            raise UsageError(f"there is no table {args.table!a:.80}") from None
        for each in (name, args.order_by):
            if each is not None and each not in table.c:
                raise UsageError(
                    f"table {table.name!a} has no column {each!a:.80}: it has {', '.join(table.c.keys()):.200}"
                )
        if connection.dialect.name == "sqlite":
            driver = connection.connection.driver_connection
            driver.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        # As the driver has it: SQLAlchemy would round numbers of SQLite.
        wanted = sa.select(sa.type_coerce(table.c[name], sa.types.NullType()))
        if args.order_by:
            wanted = wanted.order_by(table.c[args.order_by])
        total = 0
        if is_watched():
            total = connection.scalar(sa.select(sa.func.count()).select_from(table))
        found = connection.execution_options(yield_per=BATCH // 4).execute(wanted)
        yield Source(map(list, found.scalars().partitions()), total)


def _column_name(args: argparse.Namespace) -> str:
    if not args.column:
        raise UsageError("name the column of IDs with --column")
    name: str = args.column
    return name


_FORMATS: Final = {"text": _text, "csv": _csv, "parquet": _parquet, "table": _table}


def _format(args: argparse.Namespace) -> str:
    found: str = args.format or ("table" if "://" in args.source else args.source.rpartition(".")[2].lower())
    found = found if found in _FORMATS else "text"
    if found != "table" and (args.table or args.order_by or args.schema):
        raise UsageError("--table, --schema and --order-by belong to a database")
    if found == "table" and args.source.startswith("sqlite:///"):
        # SQLite would make an empty one.
        name = args.source.removeprefix("sqlite:///").partition("?")[0]
        if name not in ("", ":memory:") and not os.path.exists(name):
            raise OSError(f"{name[:200]}: No such file or directory")
    return found


# --- the command --------------------------------------------------------------------------------------------------


def _memory(text: str) -> int:
    import argparse

    sizes = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
    found = re.fullmatch(r"([1-9][0-9]{0,8})(KB|MB|GB)", text)
    size = int(found[1]) * sizes[found[2]] if found else 0
    if size < 2 * BASE_BYTES:
        raise argparse.ArgumentTypeError(f"{text!a} is no size such as 256MB or 2GB, 128MB at least")
    return size


def _instant(text: str) -> datetime:
    import argparse

    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!a} is no time such as 2026-01-31 or 2026-01-31T12:00:00Z") from None


def _kind(args: argparse.Namespace) -> Kind:
    from mintage.formats.kinds import KINDS, Kind

    kind = KINDS[args.scheme]
    layout = layout_of(args)
    return Kind(kind.scheme, layout) if layout else kind


def _window(args: argparse.Namespace, reader: Reader) -> tuple[bytes | None, bytes | None]:
    """Return the smallest and the largest key that may be. Before a scheme's epoch there is none."""
    begin: datetime | None = getattr(args, "from")
    if not reader.kind.has_time:
        if begin or args.until or args.sorted:
            reader.bound(begin or args.until or datetime.now(UTC), is_last=False)  # which says that there is no order
        return None, None
    if begin and args.until and begin > args.until:
        raise UsageError(f"--from is {stamp(begin)}, after --until, {stamp(args.until)}")
    low = reader.bound(begin, is_last=False) if begin else None
    if args.until:
        return low, reader.bound(args.until, is_last=True)
    try:
        return low, reader.bound(datetime.now(UTC) + timedelta(minutes=1), is_last=True)
    except FieldError:  # the layout has ended
        return low, None


@command(
    "verify",
    option(
        "source", metavar="SOURCE", help="a file of text, CSV or Parquet, - for standard input, or a database's URL"
    ),
    option("--scheme", required=True, choices=NAMES, metavar="SCHEME", help=listed(NAMES, "or")),
    LAYOUT,
    option("--format", choices=("text", "csv", "parquet"), help="of a file (default: by the end of its name, or text)"),
    option("--column", metavar="NAME", help="the column of IDs, where there are columns"),
    option("--table", metavar="NAME", help="the table of a database"),
    option("--schema", metavar="NAME", help="the schema that it is in"),
    option("--order-by", metavar="NAME", help="the column of a database that rows are read in the order of"),
    option("--sorted", action="store_true", help="an ID that is smaller than the one before is a mistake"),
    option("--from", type=_instant, metavar="TIME", help="no ID may be of an earlier time"),
    option("--until", type=_instant, metavar="TIME", help="nor of a later one (default: a minute from now)"),
    option("--memory", type=_memory, default="256MB", metavar="SIZE", help="to be used at most (default: 256MB)"),
    option("--directory", metavar="PATH", help="of temporary files (default: the system's)"),
    option("--json", action="store_true", help="print JSON, one object"),
    examples="""
  mintage verify snos.txt --scheme sno
  mintage verify orders.parquet --column id --scheme snowflake --layout twitter --sorted
  mintage verify postgresql://me@db/shop --table orders --column id --scheme ulid
  mintage new sno -n 1000 | mintage verify - --scheme sno""",
)
def verify(args: argparse.Namespace) -> int:
    """Say what is wrong with a column of IDs.

    It reads the column once and looks for duplicates, for values that are no ID of the scheme or outside its layout,
    for times outside a window, and for IDs that are smaller than the one before. Duplicates are found exactly,
    however many rows there are: what does not fit into memory goes to temporary files, which nobody else can see and
    which are gone when it ends. The exit code is 0 where nothing is found, and 1 where something is.
    """
    if args.directory and not os.path.isdir(args.directory):
        raise OSError(f"{args.directory[:200]}: is no directory")
    reader = Reader(_kind(args))
    low, high = _window(args, reader)
    opened = _FORMATS[_format(args)]
    limit = Repeats.limit(args.memory, reader.width)
    with Repeats(reader.width, limit, args.directory) as repeats, opened(args) as source:
        _say_needs(args, repeats)
        check = Check(reader, repeats, low, high, is_sorted=args.sorted)
        with progress(source.total, source.noun, on_output=False) as report:
            for values in source.batches:
                check.add(values)
                report(source.done() if source.done else check.rows)
        with progress(check.ids, "IDs compared", on_output=False) as report:
            check.finish(report)
    _show(args, check)
    return EXIT_FOUND if check.is_found else 0


def _say_needs(args: argparse.Namespace, repeats: Repeats) -> None:
    from tempfile import gettempdir

    place = printable(args.directory or gettempdir())
    needs = f"uses at most {args.memory >> 20:,} MB of memory, and {repeats.row_bytes} bytes a row in {place}"
    print(needs, file=sys.stderr, flush=True)


def _show(args: argparse.Namespace, check: Check) -> None:
    if args.json:
        import json

        found = {
            each.name.replace(" ", "_"): {"count": each.count, "examples": each.examples} if each.is_checked else None
            for each in check.findings
        }
        print(
            json.dumps({"rows": check.rows, "ids": check.ids, "empty": check.empty, "found": check.is_found, **found})
        )
        return
    for each in check.findings:
        if each.is_checked:
            note = " (no mistake without --sorted)" if each.count and not each.counts else ""
            print(f"{each.name}: {each.count:,}{note}" if each.count else f"{each.name}: none")
            for example in each.examples:
                print(f"  {_line(example)}")
            if each.count > len(each.examples):
                print("  ...")
    empty = f", {check.empty:,} without one" if check.empty else ""
    print(f"done: {check.rows:,} rows{empty}; {'something is wrong' if check.is_found else 'nothing is wrong'}")


def _line(example: dict[str, Any]) -> str:
    match example:
        case {"id": id, "rows": rows, "times": times}:
            more = ", ..." if times > len(rows) else ""
            return f"rows {', '.join(map(str, rows))}{more}: {id}"
        case {"row": row, "id": id, "after": after}:
            return f"row {row}: {id} comes after {after}"
        case {"row": row, "value": value, "error": error}:
            return f"row {row}: {value} ({printable(error)})"
        case _:
            return f"row {example['row']}: {example['id']}"
