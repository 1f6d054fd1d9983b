"""The bit ranges of the fields of an ID, for columns of IDs, as the formats declare them."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import gcd
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from mintage.errors import ArgumentError, ConfigError, FieldError
from mintage.formats.catalogue import FORMATS, LAYOUTS, MINTED, Format
from mintage.formats.kinds import KINDS, Kind
from mintage.formats.times import MS
from mintage.formats.values import type_name
from mintage.snowflake import Layout

if TYPE_CHECKING:
    from datetime import datetime

SchemeName: TypeAlias = "str | Layout"
"""The IDs of a column: the name of a scheme (``"ulid"``), a format (``"uuid v6"``) or a layout (``"twitter"``), or
a :class:`~mintage.snowflake.Layout`."""

FIELD_BITS: Final = 57
"""The most bits of a field that can be read: wherever it begins, 8 bytes contain all of it."""


class BitRange(NamedTuple):
    """Adjacent bits of an ID that are a number, and the weight of 1 of it."""

    low: int
    """The lowest bit; bit 0 is the least significant of the ID."""
    bits: int
    weight: int


class TimeBits(NamedTuple):
    """The bit ranges of the time of an ID: ``base`` plus the sum of each number times its weight, since 1970."""

    unit: Literal["ms", "ns"]
    base: int
    runs: tuple[BitRange, ...]


class Shape(NamedTuple):
    """The IDs of a column: of a kind, in one of its formats."""

    kind: Kind
    format: Format

    @property
    def name(self) -> str:
        """The name of the IDs in messages."""
        return self.kind.name if self.is_integer else self.format.name

    @property
    def is_integer(self) -> bool:
        """True if its columns are of 64-bit integers."""
        return self.kind.layout is not None

    @property
    def is_text(self) -> bool:
        """True if its IDs are text, and have no bytes."""
        return self.kind.scheme.is_text

    def _placed(self) -> list[tuple[Any, int]]:
        low = self.format.bits
        placed = []
        for part in self.format.parts:
            low -= part.bits
            placed.append((part, low))
        return placed

    def of_length(self, length: int) -> Shape:
        """Return the scheme's format with texts of a length, or itself: the time of a cuid has 8 digits, later 9."""
        formats = (each for each in FORMATS if each.scheme == self.kind.name and length in each.lengths)
        return self._replace(format=next(formats, self.format))

    def time_bits(self) -> TimeBits:
        """Return the bit ranges of the time.

        :raises FieldError: ``field.format``: the IDs have no time.
        """
        # The zero of text is the digit "0" in each character.
        zero = int.from_bytes(b"0" * (self.format.bits // 8), "big") if self.is_text else 0
        base = self.format.time_ns(zero)
        if base is None:
            raise FieldError(f"{self.name} holds no time", code="field.format")
        # The weight of a bit is the difference that it makes to the time of an ID.
        runs = [
            BitRange(at, width, (self.format.time_ns(zero + (1 << at)) or 0) - base)
            for part, low in self._placed()
            if part.role == "time"
            for at, width in (
                [(bit, 8) for bit in range(low, low + part.bits, 8)] if self.is_text else [(low, part.bits)]
            )
        ]
        whole = gcd(base, *(run.weight for run in runs)) % MS == 0
        scale = MS if whole else 1
        return TimeBits(
            "ms" if whole else "ns", base // scale, tuple(run._replace(weight=run.weight // scale) for run in runs)
        )

    def nodes(self) -> tuple[BitRange, ...]:
        """Return the bit ranges of the node number: all fields of that role, the most significant first, as one number.

        :raises FieldError: ``field.format``: the IDs have no node number, or are text.
        """
        found = [(low, part.bits) for part, low in self._placed() if part.role == "node"]
        if not found or self.is_text:
            raise FieldError(f"{self.name} holds no node number", code="field.format")
        runs: list[BitRange] = []
        below = 0
        for low, width in reversed(found):
            if runs and runs[0].low + runs[0].bits == low:
                runs[0] = runs[0]._replace(bits=runs[0].bits + width)
            else:
                runs.insert(0, BitRange(low, width, 1 << below))
            below += width
        return tuple(runs)

    def field(self, name: str) -> tuple[BitRange, ...]:
        """Return the bit ranges of a field by its name: several if its digits are not in order, as locality's counter.

        :raises ArgumentError: ``name`` is not str.
        :raises FieldError: ``field.format``: the IDs have no such field, it is too wide for a column, or they are text.
        """
        if not isinstance(name, str):
            raise ArgumentError(f"field must be str, not {type_name(type(name))}", code="argument.type")
        if self.is_text:
            raise FieldError(f"{self.name} is text without fields that are numbers", code="field.format")
        fields = {part.name: (low, part.bits) for part, low in self._placed() if part.bits <= FIELD_BITS}
        if name not in fields:
            has = f"one of its fields of at most {FIELD_BITS} bits, which are {', '.join(fields)}"
            raise FieldError(f"field {name!a:.40} of {self.name} is not {has}", code="field.format")
        low, width = fields[name]
        runs: list[BitRange] = []
        for bit in range(low, low + width):
            weight = self._value(1 << bit, name)
            if runs and weight == runs[-1].weight << runs[-1].bits:
                runs[-1] = runs[-1]._replace(bits=runs[-1].bits + 1)
            else:
                runs.append(BitRange(bit, 1, weight))
        return tuple(runs)

    def _value(self, number: int, field: str) -> int:
        """Return the value of a field of an ID."""
        value = next(value for name, _, _, value, _ in self.format.fields(number) if name == field)
        return int(value, 16) if isinstance(value, str) else value

    def fixed(self) -> tuple[tuple[BitRange, int], ...]:
        """Return the bit ranges that tell the format of an ID, such as the version of a UUID, and their values."""
        if self.is_integer:
            return ()
        # The other characters of text are "1", as some must be digits.
        others = int.from_bytes(b"1" * (self.format.bits // 8), "big") if self.is_text else 0
        runs = [BitRange(low, part.bits, 1) for part, low in self._placed() if part.role == "fixed" and part.is_checked]
        for values in product(*(range(1 << run.bits) for run in runs)):
            number = others
            for value, run in zip(values, runs, strict=True):
                number = number & ~(((1 << run.bits) - 1) << run.low) | value << run.low
            if self.format.fits(number):
                return tuple(zip(runs, values, strict=True))
        raise AssertionError(f"no ID is a {self.name}")


def shape(scheme: SchemeName) -> Shape:
    """Return the IDs of a column by the name of their scheme, format or layout, or by their layout.

    :raises ArgumentError: it is neither a name nor a layout.
    :raises ConfigError: ``config.policy``: no such name.
    """
    if not isinstance(scheme, (str, Layout)):
        message = f"scheme must be the name of one or a Layout, not {type_name(type(scheme))}"
        raise ArgumentError(message, code="argument.type")
    return _shape(scheme)


@cache
def _shape(scheme: SchemeName) -> Shape:
    if isinstance(scheme, Layout):
        kind = Kind(KINDS["snowflake"].scheme, scheme)
    elif scheme in KINDS:
        kind = KINDS[scheme]
    elif scheme in LAYOUTS:
        kind = Kind(KINDS["snowflake"].scheme, LAYOUTS[scheme])
    else:
        for each in MINTED:
            if each.name == scheme and each.scheme != "snowflake":
                return Shape(KINDS[each.scheme], each)
        names = ", ".join(dict.fromkeys((*KINDS, *LAYOUTS, *(each.name for each in MINTED if " " in each.name))))
        raise ConfigError(f"scheme {scheme!a:.40} is not one of {names}", code="config.policy")
    return Shape(kind, kind.format)


def layout_of(layout: SchemeName) -> Shape:
    """Return the IDs of a column of integers by the name of their layout, or by their layout.

    :raises ConfigError: ``config.policy``: the IDs are no integers.
    """
    found = shape(layout)
    if not found.is_integer:
        message = f"{found.name} is no integer: decode its columns with time_of and node_of"
        raise ConfigError(message, code="config.policy")
    return found


def bounds(scheme: SchemeName, start: datetime | int, end: datetime | int) -> tuple[Any, Any]:
    """Return two IDs, so that ``low <= id < high`` selects the IDs minted at ``start`` or later and before ``end``.

    They are the ``min_at`` of ``start`` and ``end``. So if one of them lies within a tick, all IDs of that tick count
    as minted after it: two ranges that meet there hold each ID once.

    >>> from datetime import datetime, timezone
    >>> from mintage.ext.columns import bounds
    >>> may, june = datetime(2024, 5, 1, tzinfo=timezone.utc), datetime(2024, 6, 1, tzinfo=timezone.utc)
    >>> bounds("twitter", may, june)
    (1785459115422646272, 1796693139256246272)

    :param scheme: a name, or a layout.
    :param start: an aware datetime, or nanoseconds since 1970.
    :param end: the same.
    :returns: two ints, ``bytes`` or ``str``, as the column has.
    :raises FieldError: ``field.format``: the IDs do not sort by time; ``time.range``: the end is before the start, or
        an instant that a layout or a signed integer of 64 bits cannot hold; ``time.naive``.
    """
    found = shape(scheme)
    if not found.kind.has_time or found.format.name != found.kind.format.name:
        raise FieldError(f"{found.name} does not sort by time, so no range of IDs is one of time", code="field.format")
    low, high = found.kind.min_at(start), found.kind.min_at(end)
    if low > high:
        raise FieldError(f"end {end} is before start {start}", code="time.range")
    if found.is_integer and high >= 1 << 63:
        message = f"{found.name} of that time has 64 bits: a signed integer holds IDs up to {(1 << 63) - 1}"
        raise FieldError(message, code="time.range")
    if found.is_integer or found.is_text:
        return low, high
    return bytes(low), bytes(high)


class Number(NamedTuple):
    """A number in the bits of a signed integer: ``((id >> low) & mask) * weight``."""

    low: int
    mask: int | None
    """``None`` if no bits lie above these."""
    weight: int


def numbers(layout: Shape, runs: tuple[BitRange, ...]) -> list[Number]:
    """Return the numbers that an expression of integers adds. The sign of 64 bits is masked, as it is a bit."""
    top = layout.kind.max.bit_length()
    return [
        Number(run.low, None if run.low + run.bits == top < 64 else (1 << run.bits) - 1, run.weight) for run in runs
    ]


def time_sum(layout: SchemeName, column: Any) -> tuple[Any, TimeBits]:
    """Return an expression of the time of a column's integers, and the bit ranges that it adds.

    :param layout: the name of a layout, or a layout.
    :param column: a column or an expression of an engine, with the operators ``//``, ``&``, ``*`` and ``+``.
    :raises ConfigError: ``config.policy``: no such layout of integers.
    """
    found = layout_of(layout)
    time = found.time_bits()
    return _added(found, time.runs, time.base, column), time


def node_sum(layout: SchemeName, column: Any) -> Any:
    """Return an expression of the node number of a column's integers.

    :param layout: as for :func:`time_sum`.
    :param column: as for :func:`time_sum`.
    :raises ConfigError: as :func:`time_sum`.
    :raises FieldError: ``field.format``: the layout has no node number.
    """
    found = layout_of(layout)
    return _added(found, found.nodes(), 0, column)


def _added(layout: Shape, runs: tuple[BitRange, ...], base: int, column: Any) -> Any:
    made: Any = None
    for low, mask, weight in numbers(layout, runs):
        # Expressions of columns have no shift; a division that rounds down is the same.
        term = column // (1 << low) if low else column
        term = term if mask is None else term & mask
        term = term if weight == 1 else term * weight
        made = term if made is None else made + term
    return made + base if base else made
