"""Instants: nanoseconds since the Unix epoch, aware datetimes, and RFC 3339 text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from mintage.errors import ArgumentError, FieldError

MS: Final = 1_000_000
"""Nanoseconds in a millisecond."""
SECOND: Final = 1_000 * MS
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def utc(unix_ns: int) -> datetime | None:
    """Return an instant, floored to microseconds, or ``None`` if it is outside the years 1 to 9999."""
    try:
        return _UNIX + timedelta(microseconds=unix_ns // 1000)
    except OverflowError:
        return None


def unix_ns(time: datetime | int, name: str) -> int:
    """Return the nanoseconds since 1970 of an aware datetime, or an int as it is.

    :param time: the instant.
    :param name: the name of the argument, for the message.
    :raises ArgumentError: ``argument.type``: it is neither.
    :raises FieldError: ``time.naive``: the datetime has no time zone.
    """
    if isinstance(time, datetime):
        if time.utcoffset() is None:
            raise FieldError(f"{name} {time.isoformat()} has no time zone", code="time.naive")
        return (time - _UNIX) // _MICROSECOND * 1000
    if not isinstance(time, int) or isinstance(time, bool):
        message = f"{name} must be a datetime or an int of nanoseconds, not {type(time).__name__}"
        raise ArgumentError(message, code="argument.type")
    return time


def stamp(time: datetime) -> str:
    """Return RFC 3339 in UTC with no more digits than needed: ``2031-05-08T23:03:34.976Z``."""
    timespec = "microseconds" if time.microsecond % 1000 else "milliseconds" if time.microsecond else "seconds"
    return time.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"
