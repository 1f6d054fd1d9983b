"""Read any value as an ID: its possible schemes, likeliest first, with the bits, value and meaning of every field.

The likelihood of a reading is the product of three weights:

- ``catalogue.Format.weight``: a common format, or one with more structure, such as a version, weighs more;
- :data:`SPELLINGS`: the format's canonical text weighs most;
- :data:`TIMES`: a time at which programs mint IDs weighs most.

Readings below :data:`FLOOR` are dropped. The likelihood orders the readings of one value; it is no probability.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from time import time_ns
from typing import Any, Final, NamedTuple

from mintage._core import typeid
from mintage.errors import ArgumentError, ParseError
from mintage.formats import catalogue, times
from mintage.formats.catalogue import Format
from mintage.formats.kinds import KINDS
from mintage.formats.values import MAX_SHOWN_BITS, integer_of, lost_digits

__all__ = ["Anatomy", "Field", "dissect", "inspect"]

SPELLINGS: Final = {
    "text": (1.0, "canonical text"),
    "held": (1.0, "a UUID whose bytes are the text of an ID"),
    "typeid": (1.0, "a TypeID, whose prefix says what the ID is of"),
    "typeid over it": (0.4, "a TypeID may have its bits"),
    "variant": (0.7, "readable text, though not canonical"),
    "bytes": (0.8, "the right number of bytes"),
    "integer": (0.8, "an integer of this size"),
    "borrowed": (0.3, "a UUID may hold its bits"),
}
"""Weight and words for each way in which a value can be written."""

TIMES: Final = {
    "past": (1.0, "time between 2005 and now"),
    "none": (0.8, "no time to judge by"),
    "soon": (0.5, "time less than a year ahead"),
    "epoch": (0.05, "time within a day of the epoch, as of any small number"),
    "ancient": (0.05, "time before 2005"),
    "future": (0.05, "time more than a year ahead"),
}
"""Weight and words for each kind of time that a reading can have."""

FLOOR: Final = 0.015
"""The least likelihood of a reading that is returned. An implausible time in a foreign spelling is below it."""

LIKELY: Final = 0.5
"""The least likelihood of a reading that is shown as likely."""
POSSIBLE: Final = 0.1
"""The least likelihood of a reading that is shown as possible."""

_2005_NS: Final = 1_104_537_600 * times.SECOND
_DAY_NS: Final = 86_400 * times.SECOND
_YEAR_NS: Final = 365 * _DAY_NS


class Field(NamedTuple):
    """One field of an ID.

    >>> time, *_ = inspect("brpk4q72xwf2m63l")[0].fields
    >>> time.name, time.role, time.bits, time.width, time.meaning
    ('time', 'time', (79, 41), 39, 'ticks of 4 ms since 2010-01-01')
    """

    name: str
    role: str
    """Its purpose: ``time``, ``node``, ``sequence``, ``meta``, ``random`` or ``fixed``."""
    bits: tuple[int, int]
    """Its highest and its lowest bit; bit 0 is the least significant of the ID."""
    value: int | str
    """A number; hexadecimal digits if the bits count nothing; characters if the ID is text only."""
    meaning: str

    @property
    def width(self) -> int:
        """The number of its bits."""
        return self.bits[0] - self.bits[1] + 1

    def as_dict(self) -> dict[str, object]:
        """Return a dict for JSON: the number of a field wider than 32 bits is a string, as in the JSON of protobuf."""
        value = str(self.value) if self.width > 32 else self.value
        return {**self._asdict(), "bits": list(self.bits), "value": value}


class Anatomy(NamedTuple):
    """One reading of a value as an ID.

    >>> from mintage import inspect
    >>> for reading in inspect(175928847299117063, now_ns=1_760_000_000_000_000_000)[:2]:
    ...     print(reading.name, reading.likelihood, reading.time)
    snowflake default 0.8 2016-04-30 11:18:25.796000+00:00
    snowflake twitter 0.56 2012-03-03 13:01:20.453000+00:00
    >>> {field.name: field.value for field in reading.fields}
    {'unused': 0, 'time': 41944705796, 'datacenter': 1, 'worker': 0, 'sequence': 7}
    """

    scheme: str
    layout: str | None
    """The layout or version of the scheme; ``None`` if the scheme has only one."""
    text: str
    """The canonical text."""
    bytes: builtins.bytes
    """The bytes of the ID, big-endian; the ASCII text of an ID that has no bytes."""
    int: builtins.int
    """The same bits as an unsigned integer."""
    time: datetime | None
    """The time of minting, in UTC and floored to microseconds; ``None`` if there is none, or after the year 9999."""
    fields: tuple[Field, ...]
    """All fields, the most significant first. Together they have all bits of the ID."""
    likelihood: float
    """A number from 0 to 1, to be compared with that of other readings of the same value."""
    why: str
    """The reasons for and against this reading, in one sentence."""

    @property
    def name(self) -> str:
        """Scheme and layout: ``uuid v7``, ``snowflake discord``, ``sno``."""
        return f"{self.scheme} {self.layout}" if self.layout else self.scheme

    @property
    def verdict(self) -> str:
        """The likelihood in a word: ``likely``, ``possible`` or ``unlikely``."""
        return "likely" if self.likelihood >= LIKELY else "possible" if self.likelihood >= POSSIBLE else "unlikely"

    def as_dict(self) -> dict[str, object]:
        """Return a dict for JSON: bytes in hexadecimal, integers of more than 32 bits as strings, time in RFC 3339."""
        return {
            "scheme": self.scheme,
            "layout": self.layout,
            "text": self.text,
            "bytes": self.bytes.hex(),
            "int": str(self.int),
            "time": times.stamp(self.time) if self.time else None,
            "likelihood": self.likelihood,
            "why": self.why,
            "fields": [field.as_dict() for field in self.fields],
        }

    def _repr_html_(self) -> str:
        """Return a table of the fields, for Jupyter."""
        from html import escape

        cells = [(each.name, f"{each.bits[0]}-{each.bits[1]}", each.value, each.meaning) for each in self.fields]
        rows = ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in cells]
        title = escape(f"{self.name} {self.text}, {self.time or 'no time'}: {self.why}")
        return f"<table><caption>{title}</caption>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def inspect(value: object, *, now_ns: int | None = None) -> list[Anatomy]:
    """Return every reading of a value as an ID, the likeliest first.

    >>> from mintage import inspect
    >>> reading = inspect("brpk4q72xwf2m63l")[0]
    >>> reading.name, reading.time.isoformat(), [field.name for field in reading.fields][:3]
    ('sno', '2031-05-08T23:03:34.976000+00:00', ['time', 'tick', 'meta'])

    :param value: text, bytes (raw, or of the text), an integer, a ``uuid.UUID``, a TypeID, or the ``ID`` of any scheme.
        Text of decimal digits, the first not 0, is an integer.
    :param now_ns: the present time, in nanoseconds since 1970, with which times are compared; the default is the
        system clock's.
    :raises ParseError: ``parse.unknown``: it is no ID of a known scheme.
    :raises ArgumentError: ``argument.type``: it has none of these types.
    """
    now_ns = time_ns() if now_ns is None else now_ns
    for known in (catalogue.FORMATS, catalogue.AMBIGUOUS_FORMATS):
        judged = [(_judge(*reading, now_ns), reading) for reading in _readings(known, value)]
        found = [dissect(fmt, number, *verdict) for verdict, (fmt, number, _) in judged if verdict[0] >= FLOOR]
        if found:
            return sorted(found, key=lambda anatomy: -anatomy.likelihood)
    lost = lost_digits(value) if isinstance(value, str) else ""
    raise ParseError(f"{_shortened(value)} is not an ID of any known scheme{lost}", code="parse.unknown")


def dissect(fmt: Format, number: int, likelihood: float = 1.0, why: str = "Its format is known.") -> Anatomy:
    """Return the fields of an ID of a known format, such as a new one; ``number`` must fit the format.

    >>> from mintage import sno
    >>> from mintage.formats.kinds import KINDS
    >>> anatomy = dissect(KINDS["sno"].format, int(sno.new(meta=7)))
    >>> [field.value for field in anatomy.fields if field.name == "meta"]
    [7]
    """
    when_ns = fmt.time_ns(number)
    return Anatomy(
        scheme=fmt.scheme,
        layout=fmt.layout,
        text=fmt.write(number),
        bytes=number.to_bytes(fmt.bits // 8, "big"),
        int=number,
        time=None if when_ns is None else times.utc(when_ns),
        fields=tuple(Field(*each) for each in fmt.fields(number)),
        likelihood=likelihood,
        why=why,
    )


def _judge(fmt: Format, number: int, spelling: str, now_ns: int) -> tuple[float, str]:
    """Return the likelihood of a reading, and the reasons."""
    spelling_weight, spelling_text = SPELLINGS[spelling]
    time_weight, time_text = TIMES[_kind_of_time(fmt.epoch_ns, fmt.time_ns(number), now_ns)]
    likelihood = round(fmt.weight * spelling_weight * time_weight, 4)
    if fmt in catalogue.AMBIGUOUS_FORMATS and spelling != "typeid":
        return likelihood, "Nothing else fits, though nearly any text of this length would."
    checked = [part.name for part in fmt.parts if part.is_checked and part.name != "unused"]
    structure = f"; {' and '.join(checked)} {'fit' if len(checked) > 1 else 'fits'}" if checked else ""
    return likelihood, f"{spelling_text[0].upper()}{spelling_text[1:]}{structure}; {time_text}."


def _kind_of_time(epoch_ns: int | None, when_ns: int | None, now_ns: int) -> str:
    if epoch_ns is None or when_ns is None:
        return "none"
    if when_ns < epoch_ns + _DAY_NS:
        return "epoch"
    if when_ns < _2005_NS:
        return "ancient"
    if when_ns <= now_ns:
        return "past"
    return "soon" if when_ns <= now_ns + _YEAR_NS else "future"


# --- from a value to its readings ---------------------------------------------------------------------------------


_LONGEST: Final = typeid.pattern(None)[2]
"""More characters than a text of any format has."""

_Formats = tuple[Format, ...]
_Reading = tuple[Format, int, str]


def _readings(known: _Formats, value: object) -> Iterator[_Reading]:
    if isinstance(value, str):
        return _of_text(known, value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _of_bytes(known, value)
    if isinstance(value, typeid.ID):
        return _of_typeid(known, value)
    if (scheme := _scheme_of(value)) is not None:
        return _of_object(known, scheme, value)
    number = integer_of(value)
    if number is not None:
        return _of_integer(known, number)
    from uuid import UUID  # here, because the import takes milliseconds

    if isinstance(value, UUID):
        return _of_text(known, str(value))
    raise ArgumentError(
        f"inspect() takes str, bytes, int, uuid.UUID, a TypeID or a scheme's ID, not {type(value).__name__}",
        code="argument.type",
    )


def _scheme_of(value: object) -> str | None:
    """Return the scheme of an ``ID``, or ``None`` for any other value."""
    _, _, name = type(value).__module__.rpartition(".")
    known = KINDS.get(name)
    return name if known and isinstance(value, getattr(known.module, "ID", ())) else None


def _of_object(known: _Formats, scheme: str, value: Any) -> Iterator[_Reading]:
    """Return the readings of an ``ID``: as a format that mintage mints, or else as its text."""
    number = int(value)
    own = [each for each in catalogue.MINTED if each.scheme == scheme and each.fits(number)]
    return iter([(each, number, "text") for each in own]) if own else _of_text(known, str(value))


def _of_text(known: _Formats, text: str) -> Iterator[_Reading]:
    if len(text) > _LONGEST or not text.isascii():
        return
    if "_" in text:
        with suppress(ParseError):
            yield from _of_typeid(known, typeid.ID.parse(text))
    for fmt in known:
        if found := fmt.read(text):
            yield fmt, *found
    if text.isdigit() and (text[0] != "0" or text == "0"):
        yield from _of_integer(known, int(text))


def _of_typeid(known: _Formats, one: typeid.ID) -> Iterator[_Reading]:
    """Yield the readings of a TypeID, which is another text for the bits of a UUID, a ULID or another ID."""
    number = int(one)
    for fmt in known:
        if fmt.raw and fmt.bits == 128 and fmt.fits(number):
            yield fmt, number, "typeid" if fmt.read(str(one.as_uuid())) == (number, "text") else "typeid over it"


def _of_bytes(known: _Formats, value: bytes | bytearray | memoryview) -> Iterator[_Reading]:
    raw = bytes(value)
    if len(raw) <= _LONGEST and raw.isascii():
        yield from _of_text(known, raw.decode("ascii"))
    for fmt in known:
        if fmt.raw and fmt.bits == len(raw) * 8 and fmt.fits(number := int.from_bytes(raw, "big")):
            yield fmt, number, "bytes"


def _of_integer(known: _Formats, number: int) -> Iterator[_Reading]:
    """Yield the readings of an integer, in the narrowest width: the upper bits of an ID are its time, and not 0."""
    wide = [fmt for fmt in known if fmt.integer and number >> fmt.bits == 0]
    narrowest = min((fmt.bits for fmt in wide), default=0)
    yield from ((fmt, number, "integer") for fmt in wide if fmt.bits == narrowest and fmt.fits(number))


_SHOWN: Final = 40


def _shortened(value: object) -> str:
    """Return text, bytes or an integer of any size on one line of printable ASCII."""
    if isinstance(value, str):
        return ascii(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!a}... ({len(value):,} characters)"
    if isinstance(value, (bytes, bytearray, memoryview)):
        raw = memoryview(value).tobytes()
        shown = raw[: _SHOWN // 2].hex()
        more = "" if len(raw) <= _SHOWN // 2 else f"... ({len(raw):,} bytes)"
        return f"bytes {shown or '(none)'}{more}"
    number = integer_of(value) or 0
    return str(number) if number.bit_length() <= MAX_SHOWN_BITS else f"an integer of {number.bit_length():,} bits"
