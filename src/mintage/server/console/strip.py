"""The strip of a node number: its windows along time. Times are milliseconds since the Unix epoch, lengths pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mintage.rules import COOLDOWN_MS, GrantRecord, NodeRecord, PoolRecord
from mintage.server.console.text import duration, utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


WIDTH: Final = 960
MARGIN: Final = 12
_LEAST: Final = 3
"""The least width of a window, so that a short one is seen among long ones."""
_LETTER: Final = 7.5
"""The width of a character of a label, rounded up."""
_MOST_TICKS: Final = 8
_MINUTE_S: Final = 60
_DAY_S: Final = 86_400
_STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(each * _MINUTE_S for each in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(each * _DAY_S for each in (1, 2, 7, 14, 28, 91, 365)),
)
"""The distances of ticks to choose from, in seconds."""


class Window(NamedTuple):
    """One grant of a node number: ``holder`` could mint IDs of the times from ``starts_ms`` to ``until_ms``."""

    letter: str
    """The name of the holder in the picture: the same for all grants to it."""
    holder: str
    floor_ms: int
    until_ms: int
    since_ms: int
    """The holder's clock at the grant; 0 if it is not known."""
    is_current: bool
    """True for the last grant, whose window may still be extended."""

    @property
    def starts_ms(self) -> int:
        """The first time that the holder can have used: no earlier than the floor and the grant."""
        return max(self.floor_ms, self.since_ms)


def windows_of(record: NodeRecord | None, grants: Iterable[GrantRecord]) -> list[Window]:
    """Return the windows of a node number, the latest first; holders have letters by the time of their first window.

    :param record: its record; ``None`` to leave the last grant out.
    :param grants: the past grants.
    """
    found: list[NodeRecord | GrantRecord] = [*grants, *([record] if record else [])]
    found.sort(key=lambda each: (each.floor_ms, each.until_ms))
    numbers: dict[str, int] = {}
    windows = []
    for each in found:
        number = numbers.setdefault(each.holder or "", len(numbers))
        letter = f"{chr(ord('A') + number % 26)}{number // 26 or ''}"
        windows.append(Window(letter, each.holder or "", each.floor_ms, each.until_ms, each.since_ms, each is record))
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
    """A vertical line at a time, with its label above the strip."""

    kind: str
    """``now``, ``fence``, ``floor`` or ``at``."""
    x: float
    label: str
    anchor: str
    """The ``text-anchor`` of its label, so that it stays inside of the picture."""


class Tick(NamedTuple):
    """A tick of the axis, with the time, and the date below where it changes."""

    x: float
    label: str
    date: str
    anchor: str


class Strip(NamedTuple):
    """The picture of a node number's windows."""

    bars: list[Bar]
    marks: list[Mark]
    ticks: list[Tick]


class Scale(NamedTuple):
    """The linear map from times to pixels."""

    first_ms: int
    last_ms: int

    def x(self, ms: int) -> float:
        """Return the place of a time, cut to the picture."""
        part = (min(max(ms, self.first_ms), self.last_ms) - self.first_ms) / (self.last_ms - self.first_ms)
        return round(MARGIN + part * (WIDTH - 2 * MARGIN), 1)

    def bar(self, kind: str, first_ms: int, last_ms: int, title: str, *labels: str) -> Iterator[Bar]:
        """Yield the bar of a period, with the first label that has room, if a part of it is in the picture."""
        if max(first_ms, self.first_ms) < min(last_ms, self.last_ms):
            x = self.x(first_ms)
            width = max(_LEAST, round(self.x(last_ms) - x, 1))
            label = next((each for each in labels if len(each) * _LETTER + 10 <= width), "")
            start = clock(first_ms) if first_ms else "an unknown time"
            words = f"{title} from {start} to {clock(last_ms)}"
            yield Bar(kind, x, width, label, words, first_ms, last_ms)


def whole_range(pool: PoolRecord, windows: Sequence[Window], now_ms: int) -> tuple[int, int]:
    """Return the first and the last time of a picture of all these windows, with room at both ends.

    The picture has now, unless the last window ended so long ago that the windows had less than half of the width.
    """
    first_ms = min((*(each.starts_ms or each.until_ms - pool.span_ms for each in windows), now_ms))
    until_ms = max((each.until_ms for each in windows), default=first_ms)
    last_ms = max(now_ms, pool.quarantine_until_ms, until_ms)
    if windows:
        last_ms = min(last_ms, until_ms + max(until_ms - first_ms, 2 * COOLDOWN_MS))
    room = max((last_ms - first_ms) // 25, 2_000)
    return max(0, first_ms - room), last_ms + room


def strip(
    pool: PoolRecord,
    windows: Sequence[Window],
    first_ms: int,
    last_ms: int,
    now_ms: int,
    *,
    known_ms: int = 0,
    at_ms: int = 0,
) -> Strip:
    """Return the picture of windows in a range of time.

    :param windows: the latest first, as :func:`windows_of` returns them.
    :param now_ms: the store's clock.
    :param known_ms: the time from which all windows are known; a time before it without a window is not free.
    :param at_ms: a time to mark, such as that of an ID; 0 for none.
    """
    scale = Scale(first_ms, max(last_ms, first_ms + 1))
    bars = [*_others(pool, windows, scale, known_ms, now_ms)]
    for each in reversed(windows):
        title = f"{each.letter}, {each.holder or 'unknown'}:"
        if each.floor_ms:
            bars += scale.bar("unused", each.floor_ms, each.starts_ms, f"{title} the window before its grant,")
        labels = (f"{each.letter} {each.holder.partition(':')[0]}", each.letter)
        drawn = scale.bar("window", each.starts_ms, each.until_ms, title, *labels)
        bars += [bar._replace(letter=each.letter) for bar in drawn]
    return Strip(bars, [*_marks(pool, windows, scale, now_ms, at_ms)], [*_ticks(scale)])


def _others(pool: PoolRecord, windows: Sequence[Window], scale: Scale, known_ms: int, now_ms: int) -> Iterator[Bar]:
    """Yield the times in which nobody could mint."""
    yield from scale.bar("unknown", scale.first_ms, known_ms, "not recorded", "not recorded")
    next_ms = scale.last_ms
    for each in windows:
        if each.until_ms <= now_ms:
            ends_ms = min(each.until_ms + COOLDOWN_MS, next_ms)
            yield from scale.bar("cooling", each.until_ms, ends_ms, "cool-down", "cool-down")
            yield from scale.bar("free", max(ends_ms, known_ms), min(next_ms, now_ms), "free", "free")
        next_ms = min(next_ms, each.starts_ms)
    if not windows:
        yield from scale.bar("free", known_ms, min(next_ms, now_ms), "free", "free")
    yield from scale.bar("quarantined", now_ms, pool.quarantine_until_ms, "quarantine", "quarantine")


def _marks(pool: PoolRecord, windows: Sequence[Window], scale: Scale, now_ms: int, at_ms: int) -> Iterator[Mark]:
    fence_ms = windows[0].until_ms if windows and windows[0].is_current and windows[0].until_ms > now_ms else 0
    for kind, ms, words, more in (
        ("now", now_ms, "now", ""),
        ("fence", fence_ms, "fence", f", in {duration((fence_ms - now_ms) / 1000)}"),
        ("floor", pool.floor_ms, "floor of the pool", ""),
        ("at", at_ms, "the ID", ""),
    ):
        if ms and scale.first_ms <= ms <= scale.last_ms:
            x, label = scale.x(ms), f"{words} {clock(ms, '%H:%M:%S')}{more}"
            yield Mark(kind, x, label, "start" if x + len(label) * _LETTER < WIDTH - MARGIN else "end")


def _ticks(scale: Scale) -> Iterator[Tick]:
    span_s = (scale.last_ms - scale.first_ms) / 1000
    step = next((each for each in _STEPS_S if span_s <= each * _MOST_TICKS), _STEPS_S[-1])
    step_ms = step * 1000 * max(1, int(-(-span_s // (step * _MOST_TICKS))))
    form, day = "%Y-%m-%d" if step >= _DAY_S else "%H:%M:%S" if step < _MINUTE_S else "%H:%M", ""
    for ms in range(-(-scale.first_ms // step_ms) * step_ms, scale.last_ms + 1, step_ms):
        x, date = scale.x(ms), clock(ms, "%Y-%m-%d")
        anchor = "start" if x < 4 * MARGIN else "end" if x > WIDTH - 4 * MARGIN else "middle"
        yield Tick(x, clock(ms, form), date if date != day and step < _DAY_S else "", anchor)
        day = date


def clock(ms: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time in UTC as text."""
    time = utc(ms)
    return f"{time:{form}}" if time else "after 9999"
