"""The bit ranges of the fields of an ID, for columns of IDs, as the formats declare them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import product
from math import gcd
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from mintage.errors import ArgumentError, ConfigError, FieldError
from mintage.formats.catalogue import LAYOUTS, MINTED, Format
from mintage.formats.kinds import KINDS, Kind, snowflakes
from mintage.formats.times import MS
from mintage.formats.values import type_name
from mintage.snowflake import Layout

Scheme: TypeAlias = "str | Layout"
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


def of_length(kind: Kind, length: int) -> Format:
    """Return a kind's format with texts of a length, or the usual one: the time of a cuid has 8 digits, later 9."""
    return next((each for each in kind.formats if length in each.lengths), kind.format)


def time_bits(format: Format) -> TimeBits:
    """Return the bit ranges of the time.

    :raises FieldError: ``field.format``: the IDs have no time.
    """
    # The zero of text is the digit "0" in each character.
    zero = 0 if format.raw else int.from_bytes(b"0" * (format.bits // 8), "big")
    base = format.time_ns(zero)
    if base is None:
        raise FieldError(f"{format.name} holds no time", code="field.format")
    # The weight of a bit is the difference that it makes to the time of an ID.
    runs = [
        BitRange(at, width, (format.time_ns(zero + (1 << at)) or 0) - base)
        for part in format.parts
        if part.role == "time"
        for at, width in (
            [(part.low, part.bits)] if format.raw else [(bit, 8) for bit in range(part.low, part.low + part.bits, 8)]
        )
    ]
    whole = gcd(base, *(run.weight for run in runs)) % MS == 0
    scale = MS if whole else 1
    return TimeBits(
        "ms" if whole else "ns", base // scale, tuple(run._replace(weight=run.weight // scale) for run in runs)
    )


def node_bits(format: Format) -> tuple[BitRange, ...]:
    """Return the bit ranges of the node number: all fields of that role, the most significant first, as one number.

    :raises FieldError: ``field.format``: the IDs have no node number, or are text.
    """
    found = [part for part in format.parts if part.role == "node"]
    if not found or not format.raw:
        raise FieldError(f"{format.name} holds no node number", code="field.format")
    runs: list[BitRange] = []
    below = 0
    for part in reversed(found):
        if runs and runs[0].low + runs[0].bits == part.low:
            runs[0] = runs[0]._replace(bits=runs[0].bits + part.bits)
        else:
            runs.insert(0, BitRange(part.low, part.bits, 1 << below))
        below += part.bits
    return tuple(runs)


def field_bits(format: Format, name: str) -> tuple[BitRange, ...]:
    """Return the bit ranges of a field by its name: several if its digits are not in order, as locality's counter.

    :raises ArgumentError: ``name`` is not str.
    :raises FieldError: ``field.format``: the IDs have no such field, it is too wide for a column, or they are text.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"field must be str, not {type_name(type(name))}", code="argument.type")
    if not format.raw:
        raise FieldError(f"{format.name} is text without fields that are numbers", code="field.format")
    fields = {part.name: part for part in format.parts if part.bits <= FIELD_BITS}
    if name not in fields:
        has = f"one of its fields of at most {FIELD_BITS} bits, which are {', '.join(fields)}"
        raise FieldError(f"field {name!a:.40} of {format.name} is not {has}", code="field.format")
    part = fields[name]
    runs: list[BitRange] = []
    for bit in range(part.low, part.low + part.bits):
        value = next(value for field, _, _, value, _ in format.fields(1 << bit) if field == name)
        weight = int(value, 16) if isinstance(value, str) else value
        if runs and weight == runs[-1].weight << runs[-1].bits:
            runs[-1] = runs[-1]._replace(bits=runs[-1].bits + 1)
        else:
            runs.append(BitRange(bit, 1, weight))
    return tuple(runs)


def fixed_bits(format: Format) -> tuple[tuple[BitRange, int], ...]:
    """Return the bit ranges that tell the format of an ID, such as the version of a UUID, and their values."""
    # The other characters of text are "1", as some must be digits.
    others = 0 if format.raw else int.from_bytes(b"1" * (format.bits // 8), "big")
    runs = [BitRange(part.low, part.bits, 1) for part in format.parts if part.role == "fixed" and part.is_checked]
    for values in product(*(range(1 << run.bits) for run in runs)):
        number = others
        for value, run in zip(values, runs, strict=True):
            number = number & ~(((1 << run.bits) - 1) << run.low) | value << run.low
        if format.fits(number):
            return tuple(zip(runs, values, strict=True))
    raise AssertionError(f"no ID is a {format.name}")


def kind_of_column(scheme: Scheme) -> Kind:
    """Return the kind of a column's IDs by the name of their scheme, format or layout, or by their layout.

    The kind of a format, such as ``"uuid v6"``, has that version alone.

    :raises ArgumentError: it is neither a name nor a layout.
    :raises ConfigError: ``config.policy``: no such name.
    """
    if not isinstance(scheme, (str, Layout)):
        message = f"scheme must be the name of one or a Layout, not {type_name(type(scheme))}"
        raise ArgumentError(message, code="argument.type")
    return _kind_of_column(scheme)


@cache
def _kind_of_column(scheme: Scheme) -> Kind:
    if isinstance(scheme, Layout) or scheme in LAYOUTS:
        return snowflakes(scheme)
    if scheme in KINDS:
        return KINDS[scheme]
    for each in MINTED:
        if each.name == scheme and each.layout and each.scheme != "snowflake":
            return replace(KINDS[each.scheme], versions=(each.layout,))
    names = ", ".join(dict.fromkeys((*KINDS, *LAYOUTS, *(each.name for each in MINTED if " " in each.name))))
    raise ConfigError(f"scheme {scheme!a:.40} is not one of {names}", code="config.policy")


def layout_of(layout: Scheme) -> Kind:
    """Return the kind of a column of integers by the name of their layout, or by their layout.

    :raises ConfigError: ``config.policy``: the IDs are no integers.
    """
    found = kind_of_column(layout)
    if found.layout is None:
        message = f"{found.format.name} is no integer: decode its columns with time_of and node_of"
        raise ConfigError(message, code="config.policy")
    return found


def bounds(scheme: Scheme, start: datetime | int, end: datetime | int) -> tuple[Any, Any]:
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
    found = kind_of_column(scheme)
    name = found.format.name
    if not found.has_time or found.versions[:1] != KINDS[found.name].versions[:1]:
        raise FieldError(f"{name} does not sort by time, so no range of IDs is a range of time", code="field.format")
    low, high = found.min_at(start), found.min_at(end)
    if low > high:
        raise FieldError(f"end {end} is before start {start}", code="time.range")
    if found.layout is not None and high >= 1 << 63:
        message = f"{name} of that time has 64 bits: a signed integer holds IDs up to {(1 << 63) - 1}"
        raise FieldError(message, code="time.range")
    return (low, high) if found.layout is not None or found.is_text else (bytes(low), bytes(high))


class Number(NamedTuple):
    """A number in the bits of a signed integer: ``((id >> low) & mask) * weight``."""

    low: int
    mask: int | None
    """``None`` if no bits lie above these."""
    weight: int


def numbers(kind: Kind, runs: tuple[BitRange, ...]) -> list[Number]:
    """Return the numbers that an expression of integers adds. The sign of 64 bits is masked, as it is a bit."""
    top = kind.max.bit_length()
    return [
        Number(run.low, None if run.low + run.bits == top < 64 else (1 << run.bits) - 1, run.weight) for run in runs
    ]


def time_sum(layout: Scheme, column: Any) -> tuple[Any, TimeBits]:
    """Return an expression of the time of a column's integers, and the bit ranges that it adds.

    :param layout: the name of a layout, or a layout.
    :param column: a column or an expression of an engine, with the operators ``//``, ``&``, ``*`` and ``+``.
    :raises ConfigError: ``config.policy``: no such layout of integers.
    """
    found = layout_of(layout)
    time = time_bits(found.format)
    return _added(found, time.runs, time.base, column), time


def node_sum(layout: Scheme, column: Any) -> Any:
    """Return an expression of the node number of a column's integers.

    :param layout: as for :func:`time_sum`.
    :param column: as for :func:`time_sum`.
    :raises ConfigError: as :func:`time_sum`.
    :raises FieldError: ``field.format``: the layout has no node number.
    """
    found = layout_of(layout)
    return _added(found, node_bits(found.format), 0, column)


def _added(kind: Kind, runs: tuple[BitRange, ...], base: int, column: Any) -> Any:
    made: Any = None
    for low, mask, weight in numbers(kind, runs):
        # Expressions of columns have no shift; a division that rounds down is the same.
        term = column // (1 << low) if low else column
        term = term if mask is None else term & mask
        term = term if weight == 1 else term * weight
        made = term if made is None else made + term
    return made + base if base else made
