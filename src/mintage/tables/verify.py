"""Verify a column of IDs: duplicates, values that are no IDs, and IDs outside a layout, a window or an order.

A process with little memory can still verify any number of rows:

>>> from mintage.tables.verify import MIN_MEMORY_BYTES, verify
>>> verify([["17", "18"], ["19"]], "snowflake", memory_bytes=MIN_MEMORY_BYTES)
<Report of 3 rows: 0 duplicates, 0 unreadable, 0 outside their layout, 0 outside the window, 0 out of order>
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from struct import iter_unpack
from typing import TYPE_CHECKING, Any, Final, Self

from mintage.errors import FieldError, MintError
from mintage.formats.times import stamp
from mintage.tables import InputError
from mintage.tables.display import shorten
from mintage.tables.duplicates import MAX_EXAMPLES, DuplicateFinder
from mintage.tables.keys import Reader, kind_of
from mintage.tables.sources import Source

if TYPE_CHECKING:
    from mintage import snowflake

__all__ = ["MIN_MEMORY_BYTES", "Check", "Finding", "Report", "verify"]

MEMORY_BYTES: Final = 256 << 20
MIN_MEMORY_BYTES: Final = 128 << 20
_AHEAD: Final = timedelta(minutes=1)
"""The most by which the clock of the host that minted an ID may be ahead of this one."""


class Finding:
    """One kind of mistake: the number of rows that have it, and the first of them.

    >>> finding = verify([["17", "ORD-17"]], "snowflake").unreadable
    >>> finding, finding.examples[0]["row"]
    (<Finding unreadable: 1>, 2)

    :param name: ``duplicates``, ``unreadable``, ``outside their layout``, ``outside the window`` or ``out of order``.
    :param is_mistake: False if such rows are counted, and are no mistake.
    :param is_checked: False if the IDs cannot have it, because they do not sort by time.
    """

    def __init__(self, name: str, *, is_mistake: bool = True, is_checked: bool = True) -> None:
        self.name, self.is_mistake, self.is_checked = name, is_mistake, is_checked
        self.count = 0
        """The number of rows."""
        self.examples: list[dict[str, Any]] = []
        """The first rows, at most ten, each as a dict with ``row`` (from 1) or ``rows``, and ``id`` or ``value``."""

    def add(self, **example: Any) -> None:
        """Count a row, and keep it if it is one of the first."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(example)

    def __repr__(self) -> str:
        return f"<Finding {self.name}: {self.count}>"


class Report:
    """The result of a verification.

    >>> report = verify([["17", "", "17"]], "snowflake")
    >>> report.is_wrong, report.rows, report.ids, report.empty
    (True, 3, 2, 1)
    >>> [finding for finding in report.findings if finding.count]
    [<Finding duplicates: 1>]
    """

    def __init__(self, *, is_sorted: bool, has_time: bool) -> None:
        self.rows = 0
        """The number of rows that were read."""
        self.ids = 0
        """The number of rows with an ID."""
        self.empty = 0
        """The number of rows without a value: ``None`` or empty text."""
        self.duplicates = Finding("duplicates")
        self.unreadable = Finding("unreadable")
        self.layout = Finding("outside their layout")
        self.window = Finding("outside the window", is_checked=has_time)
        self.disorder = Finding("out of order", is_mistake=is_sorted, is_checked=has_time)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The five findings: duplicates, unreadable, outside their layout, outside the window, out of order."""
        return self.duplicates, self.unreadable, self.layout, self.window, self.disorder

    @property
    def is_wrong(self) -> bool:
        """True if a row has a mistake."""
        return any(each.count for each in self.findings if each.is_mistake)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON, as ``mintage verify --json`` prints it; a finding is ``None`` if not checked."""
        findings = {
            each.name.replace(" ", "_"): {"count": each.count, "examples": each.examples} if each.is_checked else None
            for each in self.findings
        }
        return {"rows": self.rows, "ids": self.ids, "empty": self.empty, "found": self.is_wrong, **findings}

    def __repr__(self) -> str:
        return f"<Report of {self.rows} rows: {', '.join(f'{each.count} {each.name}' for each in self.findings)}>"


class Check:
    """A verification that takes the values of a column in batches.

    >>> with Check("snowflake", is_sorted=True) as check:
    ...     check.add([17, 18])
    ...     check.add(["18", None, "ORD-17", "5"])
    ...     report = check.finish()
    >>> report
    <Report of 6 rows: 1 duplicates, 1 unreadable, 0 outside their layout, 0 outside the window, 1 out of order>
    >>> report.duplicates.examples
    [{'id': '18', 'rows': [2, 3], 'times': 2}]

    The parameters are those of :func:`verify`.

    :raises InputError: an argument has no such value.
    :raises FieldError: the IDs do not sort by time, and a time or an order is given; or the layout does not have the
        time.
    :raises OSError: there is no such directory.
    """

    def __init__(
        self,
        scheme: str,
        *,
        layout: snowflake.Layout | None = None,
        earliest: datetime | None = None,
        latest: datetime | None = None,
        is_sorted: bool = False,
        memory_bytes: int = MEMORY_BYTES,
        directory: str | None = None,
    ) -> None:
        import os

        if memory_bytes < MIN_MEMORY_BYTES:
            raise InputError(f"memory_bytes is {memory_bytes}; it must be {MIN_MEMORY_BYTES} (128 MB) or more")
        if directory and not os.path.isdir(directory):
            raise OSError(f"{directory[:200]}: is not a directory")
        self._reader = reader = Reader(kind_of(scheme, layout))
        self._low, self._high = _window(reader, earliest, latest, is_sorted=is_sorted)
        self._finder = DuplicateFinder(reader.width, DuplicateFinder.limit(memory_bytes, reader.width), directory)
        self._previous = b""
        self.report = Report(is_sorted=is_sorted, has_time=reader.kind.has_time)
        """The report so far, without the duplicates."""

    @property
    def row_bytes(self) -> int:
        """Bytes that a row takes in the temporary directory."""
        return self._finder.row_bytes

    def add(self, values: Sequence[object]) -> None:
        """Read the next rows. ``None`` and empty text are rows without an ID."""
        rows: Sequence[int] = range(self.report.rows + 1, self.report.rows + len(values) + 1)
        self.report.rows += len(values)
        if None in values or "" in values:
            present = [(row, value) for row, value in zip(rows, values, strict=True) if value not in (None, "")]
            self.report.empty += len(values) - len(present)
            rows, values = [row for row, _ in present], [value for _, value in present]
        if not values:
            return
        keys = self._reader.keys(values)
        if keys is None:
            read = [(row, key) for row, value in zip(rows, values, strict=True) if (key := self._read(row, value))]
            rows, keys = [row for row, _ in read], b"".join(key for _, key in read)
        if not keys:
            return
        self.report.ids += len(rows)
        self._finder.add(keys, rows)
        if self._reader.kind.has_time:
            self._check_times(keys, rows)

    def _read(self, row: int, value: object) -> bytes | None:
        try:
            return self._reader.key(value)
        except MintError as error:
            finding = self.report.layout if isinstance(error, FieldError) else self.report.unreadable
            finding.add(row=row, value=shorten(value), error=str(error))
        return None

    def _check_times(self, keys: bytes, rows: Sequence[int]) -> None:
        reader, low, high = self._reader, self._low, self._high
        each = [key for (key,) in iter_unpack(f"{reader.width}s", keys)]
        if reader.has_unsorted_ids and not all(map(reader.sorts_by_time, each)):
            rows = [row for row, key in zip(rows, each, strict=True) if reader.sorts_by_time(key)]
            each = [key for key in each if reader.sorts_by_time(key)]
            if not each:
                return
        in_order = sorted(each)
        if each != in_order or each[0] < self._previous:
            for row, before, key in zip(rows, (self._previous, *each[:-1]), each, strict=True):
                if key < before:
                    self.report.disorder.add(row=row, id=reader.text(key), after=reader.text(before))
        self._previous = each[-1]
        if in_order[0] < low or in_order[-1] > high:
            for row, key in zip(rows, each, strict=True):
                if not low <= key <= high:
                    self.report.window.add(row=row, id=reader.text(key))

    def finish(self, report: Callable[[int], None] | None = None) -> Report:
        """Find the duplicates and return the report. The check is closed afterwards.

        :param report: a function that is called with the number of IDs that are compared so far.
        """
        found = self.report.duplicates
        found.count, first = self._finder.find(report)
        text = self._reader.text
        found.examples = [{"id": text(each.key), "rows": each.rows, "times": each.times} for each in first]
        return self.report

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._finder.__exit__()


def _window(
    reader: Reader, earliest: datetime | None, latest: datetime | None, *, is_sorted: bool
) -> tuple[bytes, bytes]:
    """Return the smallest and the largest key of the window."""
    endless = b"\xff" * reader.width
    if not reader.kind.has_time:
        if earliest or latest or is_sorted:
            reader.bound(earliest or latest or datetime.now(UTC), is_last=False)  # raises: there is no order
        return b"", endless
    low = reader.bound(earliest, is_last=False) if earliest else b""
    if latest:
        high = reader.bound(latest, is_last=True)
        if earliest and earliest > latest:
            begin, end = stamp(earliest.astimezone(UTC)), stamp(latest.astimezone(UTC))
            raise InputError(f"the window begins at {begin}, after its end, {end}; swap the two times")
        return low, high
    try:
        return low, reader.bound(datetime.now(UTC) + _AHEAD, is_last=True)
    except FieldError:  # the layout has run out
        return low, endless


def verify(
    source: Source | Iterable[Sequence[object]],
    scheme: str,
    *,
    layout: snowflake.Layout | None = None,
    earliest: datetime | None = None,
    latest: datetime | None = None,
    is_sorted: bool = False,
    memory_bytes: int = MEMORY_BYTES,
    directory: str | None = None,
) -> Report:
    """Return what is wrong with a column of IDs.

    The column is read once. Duplicates are found exactly, for any number of rows: IDs that do not fit into memory go to
    temporary files, which disappear with the process.

    >>> report = verify([["661901436522590208", "ORD-17"], ["661901436522590208"]], "snowflake")
    >>> report.is_wrong, report.duplicates.examples
    (True, [{'id': '661901436522590208', 'rows': [1, 3], 'times': 2}])
    >>> report.unreadable.examples[0]["value"]
    'ORD-17'

    :param source: a :class:`~mintage.tables.sources.Source`, or any iterable of batches of values: text, bytes, UUIDs
        or integers, as the scheme allows. A batch is a sequence of 10,000 values or so.
    :param scheme: the name of a scheme, such as ``"sno"``.
    :param layout: of snowflake; ``None`` for its default layout.
    :param earliest: the earliest time that an ID may have, aware; ``None`` for the epoch of the scheme.
    :param latest: the latest time that an ID may have, aware; ``None`` for a minute from now.
    :param is_sorted: True if an ID that is smaller than the one before is a mistake.
    :param memory_bytes: the most memory that the process may take, 128 MB or more; a driver needs its own on top.
    :param directory: the directory of the temporary files, which take the bytes of an ID and 8 more for each row;
        ``None`` for the system's usual one.
    :raises InputError: an argument has no such value.
    :raises FieldError: the IDs do not sort by time, and a time or an order is given; or the layout does not have the
        time.
    :raises OSError: there is no such directory, or it is full.
    :raises MintError: the source cannot be read.
    """
    with Check(
        scheme,
        layout=layout,
        earliest=earliest,
        latest=latest,
        is_sorted=is_sorted,
        memory_bytes=memory_bytes,
        directory=directory,
    ) as check:
        for values in source.batches if isinstance(source, Source) else source:
            check.add(values)
        return check.finish()
