"""Texts of values on pages: names that others chose, times and numbers."""

from __future__ import annotations

import re
import time
import unicodedata
from datetime import UTC, datetime
from typing import Final

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from mintage.formats import times

_UNITS: Final = (("year", 31_536_000), ("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def visible(text: str) -> str:
    """Return a text in which no character is invisible or changes the order of others: those are escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or unicodedata.category(each) == "Zs" else ascii(each)[1:-1] for each in text
    )


def finalize(value: object) -> object:
    """Return a value as templates write it, unless it is Markup: a text is visible, and ``None`` is a dash."""
    if value is None:
        return "–"
    return value if isinstance(value, (Markup, int, float)) else visible(str(value))


def prose(text: str) -> Markup:
    """Return a sentence as a template writes it: what it has in backticks is code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(visible(text)))))  # noqa: S704 - it is escaped


def utc(value: datetime | int) -> datetime | None:
    """Return an instant, given as such or in milliseconds since the Unix epoch; ``None`` after the year 9999."""
    return times.utc(value * times.MS) if isinstance(value, int) else value.astimezone(UTC)


def iso(at: datetime) -> str:
    """Return an instant in RFC 3339, to the millisecond."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(n: int, noun: str) -> str:
    """Return a number of things: ``1 node number``, ``1,024 node numbers``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def relative(seconds: float) -> str:
    """Return the time since a moment, or until it if negative, in the largest unit that fits."""
    for unit, length in _UNITS:
        if count := int(abs(seconds) // length):
            amount = counted(count, unit)
            return f"{amount} ago" if seconds > 0 else f"in {amount}"
    return "now"


def duration(seconds: float) -> str:
    """Return a length of time in its largest unit that fits: ``3 days``."""
    return relative(-seconds).removeprefix("in ").replace("now", "less than a second")


def setting(ms: int) -> str:
    """Return a length of time that somebody set, in the largest unit of which it is a whole number: ``90 seconds``."""
    unit, size = next(((unit, 1000 * s) for unit, s in _UNITS if ms % (1000 * s) == 0), ("millisecond", 1))
    return counted(ms // size, unit)


@pass_context
def moment(page: Context, value: datetime | int | None) -> Markup:
    """Return an instant as HTML: in UTC, and relative to the page's ``now_ms``, or to now."""
    at = None if value is None else utc(value)
    if at is None:
        return Markup("–")
    return Markup('<time datetime="{}">{:%Y-%m-%d %H:%M:%S}Z</time> <span class="ago">{}</span>').format(
        iso(at), at, relative(page.get("now_ms", time.time() * 1000) / 1000 - at.timestamp())
    )


def number(value: float) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
