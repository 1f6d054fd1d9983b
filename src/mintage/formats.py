"""What IDs look like: the formats that the core declares, from which :mod:`mintage.anatomy` can take any ID apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Final

from mintage._core.formats import (
    FORMATS,
    LAST_RESORTS,
    Format,
    Part,
    of_layout,
    read_layout,
    read_pool_layout,
    write_layout,
)
from mintage.errors import ArgumentError, FieldError
from mintage.schemes import SCHEMES

if TYPE_CHECKING:
    from mintage import snowflake

__all__ = [
    "FORMATS",
    "LAST_RESORTS",
    "LAYOUTS",
    "MINTED",
    "MS",
    "SECOND",
    "Format",
    "Part",
    "of_layout",
    "of_scheme",
    "read_layout",
    "read_pool_layout",
    "stamp",
    "unix_ns",
    "utc",
    "write_layout",
]

MS: Final = 1_000_000
SECOND: Final = 1_000 * MS
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

MINTED: Final = tuple(
    {
        each.name: each
        for each in (*FORMATS, *LAST_RESORTS)
        if (row := SCHEMES.get(each.scheme)) and (not row.layouts or each.layout in row.layouts)
    }.values()
)
"""The formats of the schemes that mintage mints; of a cuid, which grows with its time, the last of its widths."""

LAYOUTS: Final[dict[str, snowflake.Layout]] = {
    each.layout: layout
    for each in FORMATS
    if each.scheme == "snowflake" and each.layout and (layout := read_layout(each.layout))
}
"""The named layouts of 64-bit integers."""


@cache
def of_scheme(name: str) -> Format:
    """Return the usual format of a scheme that mintage mints."""
    usual = SCHEMES[name].layouts[:1]
    return next(each for each in MINTED if each.scheme == name and (not usual or each.layout in usual))


def utc(unix_ns: int) -> datetime | None:
    """Return an instant, floored to microseconds, or ``None`` where it is outside the years 1 to 9999."""
    try:
        return _UNIX + timedelta(microseconds=unix_ns // 1000)
    except OverflowError:
        return None


def unix_ns(time: datetime | int, name: str) -> int:
    """Nanoseconds since the Unix epoch, of an aware datetime or of themselves.

    :param name: how the error calls the argument that it is.
    :raises ArgumentError: ``argument.type``: it is neither.
    :raises FieldError: ``time.naive``.
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
    """RFC 3339 in UTC with no more digits than needed: ``2031-05-08T23:03:34.976Z``."""
    timespec = "microseconds" if time.microsecond % 1000 else "milliseconds" if time.microsecond else "seconds"
    return time.replace(tzinfo=None).isoformat(timespec=timespec) + "Z"
