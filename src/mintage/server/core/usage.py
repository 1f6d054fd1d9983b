"""The use of each namespace, scheme and key in the last hour and day, over all workers.

A worker counts in a file of its own, in the directory that the workers' metrics share, and maps it into memory. So any
worker reads the counts of all, and a worker that is killed loses none: its successor continues its file. A process
without such a directory, or whose directory is full, counts in its own memory. The memory of each worker is bounded:
the file has its 3 MB from the start, of which only the used part is in memory.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import add
from pathlib import Path
from struct import Struct
from typing import Final, Literal, NamedTuple

from mintage.platform import files

MINUTES_5_S: Final = 300
HOUR_S: Final = 3_600
HOUR_POINTS: Final = 12
"""The points of the last hour: five minutes each, of which the last one is not over."""
DAY_POINTS: Final = 24
"""The points of the last day: an hour each, of which the last one is not over."""
MIN_OBSERVED_S: Final = 30.0
"""The shortest time over which a rate is measured, in seconds."""
_MARKS_S: Final = 30
SLOTS: Final = 4_096
"""The most series of a worker; further ones count together."""

_PERIODS: Final = ((MINUTES_5_S, HOUR_POINTS), (HOUR_S, DAY_POINTS))
_CELLS: Final = HOUR_POINTS + DAY_POINTS
# A kind, a namespace of at most 128 characters and a key of at most 64, with spaces between them.
_TITLE_BYTES: Final = 208
_WORDS: Final = _TITLE_BYTES // 8
"""The words of 8 bytes before the cells of a slot: first the time at which each value began, then the values."""
_SLOT_WORDS: Final = _WORDS + 2 * _CELLS
_ROW: Final = Struct(f"{2 * _CELLS}q")
_NUMBER: Final = Struct("q")
# The first slot has the number of slots that were ever used: the others are never touched, so they take no memory.
_BYTES: Final = (1 + SLOTS) * _SLOT_WORDS * 8
#: Slots that are free for the series of all others: one for integers, one for IDs.
_KEPT: Final = 2


class Used(NamedTuple):
    """The counts of a series, the oldest point first."""

    hour: tuple[int, ...] = (0,) * HOUR_POINTS
    day: tuple[int, ...] = (0,) * DAY_POINTS

    def plus(self, other: Used) -> Used:
        """Return the sum of both."""
        return Used(tuple(map(add, self.hour, other.hour)), tuple(map(add, self.day, other.day)))


class Mark(NamedTuple):
    """A high-water mark of a namespace, and the time of its observation, in seconds since the Unix epoch."""

    at_s: int
    high_water: int


class Usage:
    """The counts of a worker, and how it reads those of all.

    Call :meth:`add` and :meth:`mark` from one thread.

    :param file: ``usage-`` and the name of the worker, in the directory that all share; ``None``: there is one worker.
    :param clock: the function that returns the time, in seconds since the Unix epoch.
    :raises OSError: the file cannot have its size, as on a full disk.
    """

    def __init__(self, file: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._memory = mmap.mmap(-1, _BYTES) if file is None else _map(file)
        self._words = memoryview(self._memory).cast("q")
        slots = [*_slots(self._memory, self._words[0])]
        self._slots = {title: at for at, title in slots if title}
        """The first word of each slot in use, by its title."""
        self._freed = [at for at, title in slots if not title]
        """The slots that were in use before."""
        self._swept_s = self._read_s = 0
        self._marks: dict[str, tuple[list[Mark], list[Mark]]] = {}
        """The marks that were read last."""

    def add(self, kind: Literal["integers", "ids"], name: str, n: int, key: str = "") -> None:
        """Count integers of a namespace, or IDs of a scheme, by the name of a key."""
        at = self._find(f"{kind} {name} {key}", _KEPT)
        if at is None and (at := self._find(f"{kind}  ", 0)) is None:
            return
        self._note(at, 0, n)

    def mark(self, namespace: str, high_water: int) -> None:
        """Note the high-water mark of a namespace, of which the first one of each period is kept."""
        # Counts come first: a store may have more namespaces than this service hands out integers of.
        if (at := self._find(f"mark {namespace} ", SLOTS // 2)) is not None:
            self._note(at, high_water, 0)

    def _note(self, at: int, value: int, more: int) -> None:
        """Begin the present points of a slot with a value if they are new, and add ``more`` to them."""
        words, now_s, first = self._words, int(self._clock()), at + _WORDS
        for seconds, points in _PERIODS:
            here = first + now_s // seconds % points
            if words[here] // seconds != now_s // seconds:
                # In this order, as another process may be reading.
                words[here + _CELLS] = value
                words[here] = now_s
            words[here + _CELLS] += more
            first += points

    def read(self, kind: Literal["integers", "ids"], name: str = "") -> dict[tuple[str, str], Used]:
        """Return the counts of all workers, by name and key. The name ``""`` is that of all others.

        :param name: read only those of this name.
        """
        found: dict[tuple[str, str], Used] = {}
        for series, periods in self._each(f"{kind} {name} " if name else f"{kind} ", int(self._clock())):
            used = Used(*(tuple(n for _, n in points) for points in periods))
            found[series] = found[series].plus(used) if series in found else used
        return found

    def marks(self) -> dict[str, tuple[list[Mark], list[Mark]]]:
        """Return the high-water marks that all workers noted in the last hour and in the last day, the oldest first.

        They are read again after half a minute: a mark seldom changes.
        """
        now_s = int(self._clock())
        if 0 <= now_s - self._read_s < _MARKS_S:
            return self._marks
        found: dict[str, tuple[list[Mark], list[Mark]]] = {}
        for (name, _), periods in self._each("mark ", now_s):
            for marks, points in zip(found.setdefault(name, ([], [])), periods, strict=True):
                marks[:] = sorted({*marks, *(Mark(*point) for point in points if point[0])})
        self._read_s, self._marks = now_s, found
        return found

    def rate(self, high_water: int, floor: int, marks: Sequence[Mark]) -> float | None:
        """Return by how much use moves a high-water mark a second; ``None`` within half a minute of the first mark.

        Nobody used what the floor skipped: the integers from the last mark below it on.
        """
        seconds = self._clock() - marks[0].at_s if marks else 0.0
        if seconds < MIN_OBSERVED_S:
            return None
        skipped = floor - 1 - max((each.high_water for each in marks if each.high_water < floor), default=floor - 1)
        return max(0, high_water - marks[0].high_water - skipped) / seconds

    # --- slots ------------------------------------------------------------------------------------------------------

    def _find(self, title: str, kept: int) -> int | None:
        """Return the slot of a series; a free one, unless only ``kept`` are free; else ``None``."""
        at = self._slots.get(title)
        if at is not None:
            return at
        if len(self._slots) >= SLOTS - kept:
            self._sweep()
        if len(self._slots) >= SLOTS - kept:
            return None
        is_new = not self._freed
        at = (self._words[0] + 1) * _SLOT_WORDS if is_new else self._freed.pop()
        self._memory[at * 8 : (at + _SLOT_WORDS) * 8] = title.encode().ljust(_SLOT_WORDS * 8, b"\0")
        self._words[0] += is_new
        self._slots[title] = at
        return at

    def _sweep(self) -> None:
        """Free the slots of series that were not used for a day. It looks at most once in five minutes."""
        now_s = int(self._clock())
        if 0 <= now_s - self._swept_s < MINUTES_5_S:
            return
        self._swept_s = now_s
        for title, at in list(self._slots.items()):
            if max(self._words[at + _WORDS + HOUR_POINTS : at + _WORDS + _CELLS]) < now_s - DAY_POINTS * HOUR_S:
                del self._slots[title]
                self._memory[at * 8 : at * 8 + _TITLE_BYTES] = bytes(_TITLE_BYTES)
                self._freed.append(at)

    def _each(self, beginning: str, now_s: int) -> Iterator[tuple[tuple[str, str], list[list[tuple[int, int]]]]]:
        """Yield name and key, and the points of the last hour and day, of all series whose titles begin so."""
        for content in self._contents():
            (used,) = _NUMBER.unpack_from(content)
            for at, title in _slots(content, used, beginning):
                name, _, key = title.partition(" ")[2].partition(" ")
                yield (name, key), _points(_ROW.unpack_from(content, (at + _WORDS) * 8), now_s)

    def _contents(self) -> Iterator[mmap.mmap]:
        if self._file is None:
            yield self._memory
            return
        for each in self._file.parent.glob("usage-*"):
            # A worker may be creating its file, or a cleaner of temporary files have removed one.
            with (
                suppress(OSError, ValueError),
                each.open("rb") as file,
                mmap.mmap(file.fileno(), _BYTES, access=mmap.ACCESS_READ) as content,
            ):
                yield content


def _map(path: Path) -> mmap.mmap:
    files.create_full(str(path), _BYTES)
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), _BYTES)


def _slots(content: mmap.mmap, used: int, beginning: str = "") -> Iterator[tuple[int, str]]:
    """Yield the first word and the title of each slot whose title begins so; a slot that was freed has none."""
    wanted = beginning.encode()
    for at in range(_SLOT_WORDS, (used + 1) * _SLOT_WORDS, _SLOT_WORDS):
        if content[at * 8 : at * 8 + len(wanted)] == wanted:
            # Another process may be writing it.
            yield at, content[at * 8 : at * 8 + _TITLE_BYTES].rstrip(b"\0").decode("ascii", "replace")


def _points(row: tuple[int, ...], now_s: int) -> list[list[tuple[int, int]]]:
    """Return the time and the value of each point of the periods, the oldest first; zeros for one before its period."""
    found, first = [], 0
    for seconds, points in _PERIODS:
        end = now_s // seconds + 1
        turn, last = first + end % points, first + points
        times, values = (row[turn + at : last + at] + row[first + at : turn + at] for at in (0, _CELLS))
        recent = range((end - points) * seconds, end * seconds)
        found.append([each if each[0] in recent else (0, 0) for each in zip(times, values, strict=True)])
        first = last
    return found
