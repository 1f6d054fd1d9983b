"""cuids, version 1: ``c`` and 24 characters of ``0-9a-z``, which sort by time until 2059-05-25.

They are ``str``; :func:`parse` returns their fields. **Anyone can read from a cuid when, by which process and on which
host it was minted**: its fingerprint is made of the process id and the host name. For that reason the authors of the
format advise against it; this module is for programs that have cuids already. From a :mod:`mintage.cuid2` nobody can
read anything.

>>> from mintage import cuid
>>> fields = cuid.parse("ch72gsb320000udocl363eofy")
>>> fields.time.isoformat(), fields.counter, fields.fingerprint
('2012-09-13T23:03:12.926000+00:00', 0, 'udoc')

:func:`min_at` and :func:`max_at` return the first and the last cuid of an instant; a :class:`Generator` mints a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mintage._core import as_function
from mintage._core.cuid import Generator, max_at, min_at
from mintage.errors import ArgumentError, ParseError

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Fields", "Generator", "max_at", "min_at", "new", "parse"]

new = as_function(Generator().new, __name__)

_DIGITS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")


class Fields(NamedTuple):
    """The fields of a cuid.

    >>> fields = Fields(timestamp_ms=1_347_577_392_926, counter=0, fingerprint="udoc", random="l363eofy")
    >>> fields.time.isoformat(), fields == parse("ch72gsb320000udocl363eofy")
    ('2012-09-13T23:03:12.926000+00:00', True)
    """

    timestamp_ms: int
    """The time of minting, in milliseconds since 1970."""
    counter: int
    """The number of the ID in its process, 0 to 1,679,615."""
    fingerprint: str
    """4 characters: the last two base-36 digits of the process id, and of a sum over the host name."""
    random: str
    """8 characters."""

    @property
    def time(self) -> datetime:
        """The time of minting, an aware UTC datetime."""
        from datetime import UTC, datetime, timedelta

        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.timestamp_ms)


def parse(text: str, /) -> Fields:
    """Return the fields of a cuid: ``c`` and 24 characters of ``0-9a-z``, or 25 from 2059-05-25 on.

    >>> from mintage import cuid
    >>> fields = cuid.parse("ch72gsb320000udocl363eofy")
    >>> fields.time.year, fields.random
    (2012, 'l363eofy')

    :raises ArgumentError: ``text`` is not str.
    :raises ParseError: ``parse.length``, or ``parse.character`` with its ``position``.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"text must be str, not {type(text).__name__}", code="argument.type")
    if len(text) not in (25, 26):
        raise ParseError(f"cuid text has {len(text)} characters, needs 25 or 26", code="parse.length")
    for position, found in enumerate(text):
        # A time has 8 or 9 digits and does not begin with 0.
        if found not in ("c" if position == 0 else _DIGITS) or (position == 1 and found == "0"):
            expected = "c" if position == 0 else "one of 0-9a-z, the first of its time not 0"
            message = f"cuid text: {found!a} at position {position} is not {expected}"
            raise ParseError(message, code="parse.character", position=position)
    return Fields(int(text[1:-16], 36), int(text[-16:-12], 36), text[-12:-8], text[-8:])
