"""The strip of a node number: its windows along time. Times are milliseconds since the Unix epoch, lengths pixels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from mintage.lease.holder import Holder
from mintage.rules import COOLDOWN_MS, LATEST_MS, GrantRecord, NodeRecord, PoolRecord
from mintage.server.console.text import duration, utc

WIDTH: Final = 960
MARGIN: Final = 12
_LEAST: Final = 3
"""The least width of a window, so that a short one is seen among long ones."""
_LETTER: Final = 7.5
"""The width of a character of a label, rounded up."""
_MOST_TICKS: Final = 8
_DAY_S: Final = 86_400
_STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(each * 60 for each in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(each * _DAY_S for each in (1, 2, 7, 14, 28, 91, 365)),
)
"""The distances of ticks to choose from, in seconds."""


@dataclass(frozen=True)
class Window:
    """One grant of a node number, and the period of which its holder could mint IDs."""

    record: NodeRecord | GrantRecord
    state: str
    """``held`` or ``revoked`` while it runs."""
    letter: str = ""
    """The name of the holder in the picture: the same for all grants to it."""

    @cached_property
    def holder(self) -> Holder:
        """The process that has it, or had it."""
        return Holder.parse(self.record.holder or "")

    @property
    def is_current(self) -> bool:
        """True for the last grant, whose window may still be extended."""
        return isinstance(self.record, NodeRecord)

    @property
    def starts_ms(self) -> int:
        """The first time that the holder can have used: no earlier than the floor and the grant."""
        return max(self.record.floor_ms, self.record.since_ms)


def windows_of(record: NodeRecord | None, grants: Iterable[GrantRecord], state: str = "held") -> list[Window]:
    """Return the windows of a node number, the latest first; holders have letters by the time of their first window.

    :param record: its record; ``None`` to leave the last grant out.
    :param grants: the past grants.
    :param state: the state of the number.
    """
    found: list[NodeRecord | GrantRecord] = [*grants, *([record] if record else [])]
    found.sort(key=lambda each: (each.floor_ms, each.until_ms))
    numbers: dict[str, int] = {}
    windows = []
    for each in found:
        number = numbers.setdefault(each.holder or "", len(numbers))
        letter = f"{chr(ord('A') + number % 26)}{number // 26 or ''}"
        runs = each is record and state in {"held", "revoked"}
        windows.append(Window(each, state if runs else "ended", letter))
    return windows[::-1]


# --- the picture --------------------------------------------------------------------------------------------------


class Bar(NamedTuple):
    """A rectangle of the strip."""

    kind: str
    """``window``, ``unused``, ``cooling``, ``free``, ``unknown`` or ``quarantined``."""
    x: float
    width: float
    label: str
    """The text inside, empty if it has no room."""
    title: str
    """The text for readers and for the pointer."""
    first_ms: int
    last_ms: int
    letter: str = ""
    """The letter of the holder, of a window."""

    @property
    def shade(self) -> int:
        """The colour of a window, by its holder: 0 to 3."""
        return ord(self.letter[0]) % 4


class Mark(NamedTuple):
    """A time with its label: a vertical line, or a tick of the axis."""

    kind: str
    """``now``, ``fence``, ``floor``, ``at`` or ``tick``."""
    x: float
    label: str
    anchor: str
    """The ``text-anchor`` of its label, so that it stays inside of the picture."""
    date: str = ""
    """The date below the label of a tick, where it changes."""


def whole_range(pool: PoolRecord, windows: Sequence[Window], now_ms: int) -> tuple[int, int]:
    """Return the first and the last time of a picture of all these windows, with room at both ends.

    The picture has now, unless the last window ended so long ago that the windows had less than half of the width.
    """
    first_ms = min((*(each.starts_ms or each.record.until_ms - pool.span_ms for each in windows), now_ms))
    until_ms = max((each.record.until_ms for each in windows), default=first_ms)
    last_ms = max(now_ms, pool.quarantine_until_ms, until_ms)
    if windows:
        last_ms = min(last_ms, until_ms + max(until_ms - first_ms, 2 * COOLDOWN_MS))
    room = max((last_ms - first_ms) // 25, 2_000)
    return max(0, first_ms - room), last_ms + room


@dataclass(frozen=True)
class Strip:
    """The picture of a node number's windows in a range of time, from ``first_ms`` to a later ``last_ms``."""

    pool: PoolRecord
    windows: Sequence[Window]
    """The latest first, as :func:`windows_of` returns them."""
    first_ms: int
    last_ms: int
    now_ms: int
    """The store's clock."""
    known_ms: int = 0
    """The time from which all windows are known; a time before it without a window is not free."""
    at_ms: int = 0
    """A time to mark, such as that of an ID; 0 for none."""
    listed_ms: int = LATEST_MS + 1
    """The time from which on there may be windows beside these."""

    def _x(self, ms: int) -> float:
        """Return the place of a time, cut to the picture."""
        part = (min(max(ms, self.first_ms), self.last_ms) - self.first_ms) / (self.last_ms - self.first_ms)
        return round(MARGIN + part * (WIDTH - 2 * MARGIN), 1)

    def _bar(self, kind: str, first_ms: int, last_ms: int, title: str, *labels: str, letter: str = "") -> Iterator[Bar]:
        """Yield the bar of a period, with the first label that has room, if a part of it is in the picture."""
        if max(first_ms, self.first_ms) < min(last_ms, self.last_ms):
            x = self._x(first_ms)
            width = max(_LEAST, round(self._x(last_ms) - x, 1))
            label = next((each for each in labels if len(each) * _LETTER + 10 <= width), "")
            start = clock(first_ms) if first_ms else "an unknown time"
            words = f"{title} from {start} to {clock(last_ms)}"
            yield Bar(kind, x, width, label, words, first_ms, last_ms, letter)

    @property
    def bars(self) -> Iterator[Bar]:
        """The times in which nobody could mint, and then the windows."""
        now_ms, known_ms, next_ms = self.now_ms, self.known_ms, min(self.last_ms, self.listed_ms)
        yield from self._bar("unknown", self.first_ms, known_ms, "not recorded", "not recorded")
        yield from self._bar("unknown", self.listed_ms, self.last_ms, "not listed", "not listed")
        for each in self.windows:
            until_ms = each.record.until_ms
            if until_ms <= now_ms:
                ends_ms = min(until_ms + COOLDOWN_MS, next_ms)
                yield from self._bar("cooling", until_ms, ends_ms, "cool-down", "cool-down")
                yield from self._bar("free", max(ends_ms, known_ms), min(next_ms, now_ms), "free", "free")
            next_ms = min(next_ms, each.starts_ms)
        if not self.windows:
            yield from self._bar("free", known_ms, min(next_ms, now_ms), "free", "free")
        yield from self._bar("quarantined", now_ms, self.pool.quarantine_until_ms, "quarantine", "quarantine")
        for each in reversed(self.windows):
            letter, holder, floor_ms = each.letter, each.record.holder or "", each.record.floor_ms
            title = f"{letter}, {holder or 'unknown'}:"
            if floor_ms:
                yield from self._bar("unused", floor_ms, each.starts_ms, f"{title} the window before its grant,")
            labels = (f"{letter} {holder.partition(':')[0]}", letter)
            yield from self._bar("window", each.starts_ms, each.record.until_ms, title, *labels, letter=letter)

    @cached_property
    def marks(self) -> list[Mark]:
        """The lines: now, the fence, the floor of the pool, and the time to mark."""
        current = self.windows[0] if self.windows and self.windows[0].is_current else None
        fence_ms = current.record.until_ms if current and current.record.until_ms > self.now_ms else 0
        found = []
        for kind, ms, words, more in (
            ("now", self.now_ms, "now", ""),
            ("fence", fence_ms, "fence", f", in {duration((fence_ms - self.now_ms) / 1000)}"),
            ("floor", self.pool.floor_ms, "floor of the pool", ""),
            ("at", self.at_ms, "the ID", ""),
        ):
            if ms and self.first_ms <= ms <= self.last_ms:
                x, label = self._x(ms), f"{words} {clock(ms, '%H:%M:%S')}{more}"
                anchor = "start" if x + len(label) * _LETTER < WIDTH - MARGIN else "end"
                found.append(Mark(kind, x, label, anchor))
        return found

    @cached_property
    def ticks(self) -> list[Mark]:
        """The ticks of the axis, at most nine."""
        span_s = (self.last_ms - self.first_ms) / 1000
        step = next((each for each in _STEPS_S if span_s <= each * _MOST_TICKS), _STEPS_S[-1])
        step_ms = step * 1000 * max(1, int(-(-span_s // (step * _MOST_TICKS))))
        form, day = "%Y-%m-%d" if step >= _DAY_S else "%H:%M:%S" if step < 60 else "%H:%M", ""
        found = []
        for ms in range(-(-self.first_ms // step_ms) * step_ms, self.last_ms + 1, step_ms):
            x, date = self._x(ms), clock(ms, "%Y-%m-%d")
            anchor = "start" if x < 4 * MARGIN else "end" if x > WIDTH - 4 * MARGIN else "middle"
            found.append(Mark("tick", x, clock(ms, form), anchor, date if date != day and step < _DAY_S else ""))
            day = date
        return found


def clock(ms: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time in UTC as text."""
    time = utc(ms)
    return f"{time:{form}}" if time else "after 9999"
