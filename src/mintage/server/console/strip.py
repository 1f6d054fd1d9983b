"""The strip of a node number: its windows along time, as a picture and as rows of a table.

All times are milliseconds since the Unix epoch. Lengths are pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from mintage.formats import times
from mintage.rules import COOLDOWN_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from mintage.rules import GrantRecord, NodeRecord, PoolRecord

WIDTH: Final = 960
MARGIN: Final = 12
BAR: Final = 40
LINE: Final = 18
"""The height of a line of labels."""
_LEAST: Final = 3
"""The least width of a window, so that a short one is seen among long ones."""
_LETTER: Final = 7.5
"""The width of a character of a label, rounded up."""
_MOST_TICKS: Final = 8
_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_STEPS: Final = (
    *(each * _SECOND for each in (1, 2, 5, 10, 15, 30)),
    *(each * _MINUTE for each in (1, 2, 5, 10, 15, 30)),
    *(each * _HOUR for each in (1, 2, 3, 6, 12)),
    *(each * _DAY for each in (1, 2, 7, 14, 28, 91, 365)),
)
"""The distances of ticks to choose from, in milliseconds."""


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
    found = [(each.holder or "", each.floor_ms, each.until_ms, each.since_ms, False) for each in grants]
    if record is not None:
        found.append((record.holder or "", record.floor_ms, record.until_ms, record.since_ms, True))
    found.sort(key=lambda each: (each[1], each[2]))
    letters: dict[str, str] = {}
    for holder, *_ in found:
        letters.setdefault(holder, letters_of(len(letters)))
    return [Window(letters[each[0]], *each) for each in reversed(found)]


def letters_of(number: int) -> str:
    """Return A to Z for 0 to 25, then AA, AB and so on."""
    letters = ""
    number += 1
    while number:
        number, at = divmod(number - 1, 26)
        letters = chr(ord("A") + at) + letters
    return letters


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
    shade: str = ""
    """The style of a window: one of four, by its holder."""


class Mark(NamedTuple):
    """A vertical line at a time, with its label above the strip."""

    kind: str
    """``now``, ``fence``, ``floor`` or ``at``."""
    x: float
    label: str
    row: int
    """The line of its label, from 0 at the top."""
    anchor: str
    """The ``text-anchor`` of its label, so that it stays inside of the picture."""


class Tick(NamedTuple):
    """A tick of the axis, with the time and, where the day begins or the axis does, the date below."""

    x: float
    label: str
    date: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The picture of a node number's windows in the times ``first_ms`` to ``last_ms``."""

    first_ms: int
    last_ms: int
    bars: list[Bar]
    letters: list[tuple[float, str]]
    """The holders of windows that are too short for a label, below the strip."""
    marks: list[Mark]
    ticks: list[Tick]
    width: int = WIDTH
    margin: int = MARGIN
    bar: int = BAR
    """The height of the windows."""

    @property
    def top(self) -> int:
        """The upper side of the windows, below the labels of the marks."""
        return len(self.marks) * LINE + 6

    @property
    def has_now(self) -> bool:
        """True if the present is in the picture."""
        return any(each.kind == "now" for each in self.marks)

    @property
    def middle(self) -> int:
        """The baseline of the labels of windows."""
        return self.top + BAR // 2 + 5

    @property
    def axis(self) -> int:
        """The place of the axis."""
        return self.top + BAR + LINE + 2

    @property
    def height(self) -> int:
        """The height of the picture."""
        return self.axis + 2 * LINE + 6


class Scale(NamedTuple):
    """The linear map from times to pixels."""

    first_ms: int
    last_ms: int

    def x(self, ms: int) -> float:
        """Return the place of a time, cut to the picture."""
        part = (min(max(ms, self.first_ms), self.last_ms) - self.first_ms) / (self.last_ms - self.first_ms)
        return round(MARGIN + part * (WIDTH - 2 * MARGIN), 1)

    def has(self, first_ms: int, last_ms: int) -> bool:
        """Return True if a part of the times from ``first_ms`` to ``last_ms`` is in the picture."""
        return first_ms < self.last_ms and last_ms > self.first_ms and first_ms < last_ms


def whole_range(pool: PoolRecord, windows: Sequence[Window], now_ms: int) -> tuple[int, int]:
    """Return the first and the last time of a picture of all these windows, with room at both ends.

    The picture has now, unless the last window ended so long ago that the windows had less than half of the width.
    """
    first_ms = min((*(each.starts_ms or each.until_ms - pool.span_ms for each in windows), now_ms))
    until_ms = max((each.until_ms for each in windows), default=first_ms)
    last_ms = max(now_ms, pool.quarantine_until_ms, until_ms)
    if windows:
        last_ms = min(last_ms, until_ms + max(until_ms - first_ms, 2 * COOLDOWN_MS))
    room = max((last_ms - first_ms) // 25, 2 * _SECOND)
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
    bars = [*_background(pool, windows, scale, known_ms, now_ms)]
    letters: list[tuple[float, str]] = []
    for each in reversed(windows):
        drawn = [*_of_window(each, scale)]
        bars += drawn
        for bar in drawn:
            center = round(bar.x + bar.width / 2, 1)
            if bar.kind == "window" and not bar.label and (not letters or center - letters[-1][0] > 2 * _LETTER):
                letters.append((center, each.letter))
    marks = [*_marks(pool, windows, scale, now_ms, at_ms)]
    return Strip(scale.first_ms, scale.last_ms, bars, letters, marks, [*_ticks(scale)])


def _of_window(window: Window, scale: Scale) -> Iterator[Bar]:
    if window.floor_ms and scale.has(window.floor_ms, window.starts_ms):
        words = f"{_period(window.floor_ms, window.starts_ms)}: in {window.letter}'s window, before its grant"
        yield _bar("unused", window.floor_ms, window.starts_ms, "", words, scale)
    if scale.has(window.starts_ms, window.until_ms):
        words = f"{window.letter}, {window.holder or 'unknown'}: {_period(window.starts_ms, window.until_ms)}"
        bar = _bar("window", window.starts_ms, window.until_ms, "", words, scale)
        labels = (f"{window.letter} {window.holder.partition(':')[0]}", window.letter)
        label = next((each for each in labels if _fits(each, bar.width)), "")
        yield bar._replace(label=label, shade=f"shade-{ord(window.letter[-1]) % 4}")


def _background(pool: PoolRecord, windows: Sequence[Window], scale: Scale, known_ms: int, now_ms: int) -> Iterator[Bar]:
    """Yield the times that belong to no window."""
    if scale.has(scale.first_ms, known_ms):
        words = f"before {moment(known_ms)}: not recorded"
        yield _bar("unknown", scale.first_ms, known_ms, "not recorded", words, scale)
    next_ms = scale.last_ms
    for each in windows:
        if each.until_ms <= now_ms:
            ends_ms = min(each.until_ms + COOLDOWN_MS, next_ms)
            if scale.has(each.until_ms, ends_ms):
                words = f"cool-down {_period(each.until_ms, ends_ms)}"
                yield _bar("cooling", each.until_ms, ends_ms, "cool-down", words, scale)
            yield from _free(max(ends_ms, known_ms), min(next_ms, now_ms), scale)
        next_ms = min(next_ms, each.starts_ms)
    if not windows:
        yield from _free(known_ms, min(next_ms, now_ms), scale)
    if scale.has(now_ms, pool.quarantine_until_ms):
        words = f"quarantine of the pool until {moment(pool.quarantine_until_ms)}"
        yield _bar("quarantined", now_ms, pool.quarantine_until_ms, "quarantine", words, scale)


def _free(first_ms: int, last_ms: int, scale: Scale) -> Iterator[Bar]:
    if scale.has(first_ms, last_ms):
        yield _bar("free", first_ms, last_ms, "free", f"free {_period(first_ms, last_ms)}", scale)


def _bar(kind: str, first_ms: int, last_ms: int, label: str, title: str, scale: Scale) -> Bar:
    x = scale.x(first_ms)
    width = max(_LEAST, round(scale.x(last_ms) - x, 1))
    return Bar(kind, x, width, label if _fits(label, width) else "", title, first_ms, last_ms)


def _fits(label: str, width: float) -> bool:
    return len(label) * _LETTER + 10 <= width


def _marks(pool: PoolRecord, windows: Sequence[Window], scale: Scale, now_ms: int, at_ms: int) -> Iterator[Mark]:
    times_of = [("now", now_ms, f"now {clock(now_ms)}")]
    if windows and windows[0].is_current and windows[0].until_ms > now_ms:
        until_ms = windows[0].until_ms
        times_of.append(("fence", until_ms, f"fence {clock(until_ms)}, in {length(until_ms - now_ms)}"))
    if pool.floor_ms:
        times_of.append(("floor", pool.floor_ms, f"floor of the pool {clock(pool.floor_ms)}"))
    if at_ms:
        times_of.append(("at", at_ms, f"the ID {clock(at_ms)}"))
    drawn = [each for each in times_of if scale.first_ms <= each[1] <= scale.last_ms]
    for row, (kind, ms, label) in enumerate(drawn):
        x = scale.x(ms)
        yield Mark(kind, x, label, row, "start" if x + len(label) * _LETTER < WIDTH - MARGIN else "end")


def _ticks(scale: Scale) -> Iterator[Tick]:
    spans = scale.last_ms - scale.first_ms
    step = next((each for each in _STEPS if spans / each <= _MOST_TICKS), _STEPS[-1])
    step *= -(-spans // (step * _MOST_TICKS))
    day = ""
    for ms in range(-(-scale.first_ms // step) * step, scale.last_ms + 1, step):
        time = utc(ms)
        date = f"{time:%Y-%m-%d}"
        label = date if step >= _DAY else f"{time:%H:%M:%S}" if step < _MINUTE else f"{time:%H:%M}"
        x = scale.x(ms)
        anchor = "start" if x < 4 * MARGIN else "end" if x > WIDTH - 4 * MARGIN else "middle"
        yield Tick(x, label, date if step < _DAY and date != day else "", anchor)
        day = date


# --- words --------------------------------------------------------------------------------------------------------


def utc(ms: int) -> datetime:
    """Return a time as a datetime, the last one of the year 9999 if it is later."""
    return times.utc(min(ms, 253_402_300_799_999) * times.MS)  # type: ignore[return-value]  # within these years


def moment(ms: int) -> str:
    """Return a time as text to the second."""
    return f"{utc(ms):%Y-%m-%d %H:%M:%S}"


def clock(ms: int) -> str:
    """Return the time of day as text to the second."""
    return f"{utc(ms):%H:%M:%S}"


def _period(first_ms: int, last_ms: int) -> str:
    start = moment(first_ms) if first_ms else "an unknown time"
    return f"from {start} to {moment(last_ms)}" + (f", {length(last_ms - first_ms)}" if first_ms else "")


def length(ms: int) -> str:
    """Return a duration in its two largest units: ``2 d 3 h``, ``1 min 30 s``, ``0.4 s``."""
    if ms < 10 * _SECOND:
        return f"{ms / _SECOND:.1f}".removesuffix(".0") + " s"
    units = (("d", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", _SECOND))
    at = next(at for at, (_, unit) in enumerate(units) if ms >= unit)
    parts = []
    for name, unit in units[at : at + 2]:
        count, ms = divmod(ms, unit)
        if count:
            parts.append(f"{count:,} {name}")
    return " ".join(parts)
