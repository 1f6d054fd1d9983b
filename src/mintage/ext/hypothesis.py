"""Hypothesis strategies for the IDs of every scheme, built from the fields that its format declares.

Examples shrink towards the first instant and 0 in every field. Hypothesis knows the classes of IDs without an import of
this module, so ``st.from_type(sno.ID)`` works, and ``st.builds`` of a class with such a field.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mintage import snowflake, text, typeid
from mintage._core.typeid import check_prefix
from mintage.errors import ArgumentError, FieldError
from mintage.formats.bits import BitRange, fixed_bits, time_bits
from mintage.formats.kinds import KINDS, NAMES, Kind, listed
from mintage.formats.times import MS, stamp, unix_ns, utc
from mintage.installation import missing


def register() -> None:
    """Register a strategy for each class of IDs with ``st.from_type``. Hypothesis calls it."""
    from hypothesis import strategies

    for name, kind in KINDS.items():
        if kind.size and not kind.layout:
            strategies.register_type_strategy(kind.python, partial(_usual, name))
    strategies.register_type_strategy(typeid.ID, lambda _: typeids())


def _usual(name: str, _: type) -> SearchStrategy[Any]:
    return ids(name)


# Below `register`, which Hypothesis calls while it is imported.
try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise missing(error, "hypothesis") from None

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["ids", "snowflakes", "texts", "typeids"]

_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def ids(
    scheme: str,
    *,
    min_time: datetime | int | None = None,
    max_time: datetime | int | None = None,
    **fields: Any,
) -> SearchStrategy[Any]:
    """Return a strategy for IDs of a scheme: of its class, ``int`` for snowflake, ``str`` if IDs are text.

    >>> from hypothesis import find
    >>> find(ids("sno", meta=7), lambda id: id.sequence > 1000).sequence
    1001

    :param scheme: the name of a scheme; a snowflake has the default layout.
    :param min_time: an aware datetime, or nanoseconds since 1970; the default is the first time of the format.
    :param max_time: the same; the default is the last time of the format, at most the end of the year 9999.
    :param fields: by the name of a field, a number or a strategy of numbers; the default is all numbers that fit.
    :raises ArgumentError: ``argument.type``: there is no such scheme or field, or a time has another type.
    :raises FieldError: ``time.naive``, ``time.range``, ``field.range``.
    """
    if scheme not in KINDS:
        raise ArgumentError(f"scheme {scheme!a:.40} is none of {listed(NAMES, 'and')}", code="argument.type")
    kind = KINDS[scheme]
    if kind.is_text:
        return _text_ids(kind, min_time, max_time, fields)
    return _numbers(kind, min_time, max_time, fields)


def snowflakes(
    layout: snowflake.Layout = snowflake.DEFAULT,
    *,
    min_time: datetime | int | None = None,
    max_time: datetime | int | None = None,
    **fields: Any,
) -> SearchStrategy[int]:
    """Return a strategy for the integers of a layout.

    >>> from hypothesis import find
    >>> from mintage import snowflake
    >>> snowflake.DISCORD.parse(find(snowflakes(snowflake.DISCORD, increment=6), lambda id: True)).sequence
    6

    :param layout: the layout.
    :param min_time: as for :func:`ids`.
    :param max_time: as for :func:`ids`.
    :param fields: as for :func:`ids`, by the names of the layout.
    :raises MintError: as :func:`ids`.
    """
    return _numbers(replace(KINDS["snowflake"], layout=layout), min_time, max_time, fields)


def typeids(
    prefix: str | SearchStrategy[str] | None = None,
    *,
    min_time: datetime | int | None = None,
    max_time: datetime | int | None = None,
) -> SearchStrategy[typeid.ID]:
    """Return a strategy for TypeIDs over UUIDs of version 7, as :func:`mintage.typeid.new` mints them.

    >>> from hypothesis import find
    >>> str(find(typeids("user"), lambda id: True))
    'user_0000000000e008000000000000'

    :param prefix: a prefix or a strategy of prefixes; the default is any prefix, and shrinks towards the empty one.
    :param min_time: as for :func:`ids`.
    :param max_time: as for :func:`ids`.
    :raises ArgumentError: an argument of another type.
    :raises FieldError: ``field.format``: the text cannot be a prefix; ``time.naive``, ``time.range``.
    """
    if prefix is None:
        prefixes: SearchStrategy[str] = st.from_regex(r"([a-z]([a-z_]{0,61}[a-z])?)?", fullmatch=True)
    elif isinstance(prefix, st.SearchStrategy):
        prefixes = prefix
    else:
        check_prefix(prefix)
        prefixes = st.just(prefix)
    return st.builds(typeid.ID, prefixes, ids("uuid", min_time=min_time, max_time=max_time))


def texts(scheme: str, **options: Any) -> SearchStrategy[str]:
    """Return a strategy for the usual texts of IDs of a scheme.

    >>> from hypothesis import find
    >>> find(texts("ulid"), lambda text: True)
    '00000000000000000000000000'

    :param scheme: the name of a scheme.
    :param options: as for :func:`ids`.
    """
    return ids(scheme, **options).map(str)


def _numbers(kind: Kind, min_time: Any, max_time: Any, fields: dict[str, Any]) -> SearchStrategy[Any]:
    chosen = [part for part in kind.format.parts if part.role not in ("fixed", "time")]
    _check_names(kind, {part.name for part in chosen}, fields)
    fixed = sum(value << run.low for run, value in fixed_bits(kind.format))
    values = [_values(kind, part.name, (1 << part.bits) - 1, fields.get(part.name)) for part in chosen]

    def of_values(time: int, *values: int) -> Any:
        number = fixed + time + sum(value << part.low for value, part in zip(values, chosen, strict=True))
        return number if kind.layout else kind.python.from_int(number)

    return st.builds(of_values, _times(kind, min_time, max_time), *values)


def _check_names(kind: Kind, known: set[str], fields: dict[str, Any]) -> None:
    for name in fields:
        if name not in known:
            has = f"its fields are {listed(sorted(known), 'and')}" if known else "it has none"
            raise ArgumentError(f"{kind.name} has no field {name[:40]!a} to choose: {has}", code="argument.type")


def _values(kind: Kind, name: str, most: int, given: Any) -> SearchStrategy[int]:
    if given is None:
        return st.integers(0, most)
    if isinstance(given, int):
        return st.just(_checked(kind, name, most, given))
    if not isinstance(given, st.SearchStrategy):
        raise ArgumentError(f"{name} must be an int or a strategy, not {type(given).__name__}", code="argument.type")
    return given.map(partial(_checked, kind, name, most))


def _checked(kind: Kind, name: str, most: int, value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise FieldError(f"{name} {value!a:.40} of {kind.name} is outside 0..{most}", code="field.range")
    return value


def _times(kind: Kind, min_time: Any, max_time: Any) -> SearchStrategy[int]:
    """Return a strategy for the bits of times in a range."""
    time = time_bits(kind.format)
    longest, tick = time.runs[0], time.runs[-1].weight
    most = (longest.weight << longest.bits) // tick - 1
    unit = MS if time.unit == "ms" else 1
    return st.integers(*_bounds(kind, time.base * unit, tick * unit, most, min_time, max_time)).map(
        partial(_split, time.runs)
    )


def _split(runs: tuple[BitRange, ...], ticks: int) -> int:
    """Return the bits of a time, whose parts count different units."""
    number, rest = 0, ticks * runs[-1].weight
    for run in runs:
        count, rest = divmod(rest, run.weight)
        number |= count << run.low
    return number


def _bounds(kind: Kind, first: int, unit: int, most: int, min_time: Any, max_time: Any) -> tuple[int, int]:
    most = min(most, (unix_ns(_LAST, "the last") - first) // unit)
    chosen = []
    for name, time, usual in (("min_time", min_time, 0), ("max_time", max_time, most)):
        tick = usual if time is None else (unix_ns(time, name) - first) // unit
        if not 0 <= tick <= most:
            begins, ends = utc(first), utc(first + most * unit)
            known = f"{stamp(begins)}..{stamp(ends)}" if begins and ends else "its own"
            raise FieldError(f"{name} {time} is outside the times of {kind.name}, {known}", code="time.range")
        chosen.append(tick)
    if chosen[0] > chosen[1]:
        raise FieldError(f"min_time {min_time} is after max_time {max_time}", code="time.range")
    return chosen[0], chosen[1]


def _text_ids(kind: Kind, min_time: Any, max_time: Any, fields: dict[str, Any]) -> SearchStrategy[str]:
    """Return a strategy for IDs that are text. They have no fields: each part is a time, fixed, or any characters."""
    _check_names(kind, set(), fields)
    generator = kind.module.Generator()
    digits = getattr(generator, "alphabet", text.BASES["base36"])
    sample, parts = generator.new(), []
    has_time = any(part.role == "time" for part in kind.format.parts)
    if not has_time and (min_time, max_time) != (None, None):
        raise ArgumentError(f"{kind.name} has no time", code="argument.type")
    for part in kind.format.parts:
        length = part.bits // 8
        if part.role == "fixed":
            parts.append(st.just(sample[:length]))
        elif part.role == "time":
            # Times of 8 digits only: from 2059 on they have a ninth, and IDs no longer sort.
            low, high = _bounds(kind, 36**7 * 1_000_000, 1_000_000, 36**8 - 36**7 - 1, min_time, max_time)
            parts.append(st.integers(low + 36**7, high + 36**7).map(partial(text.encode, base="base36")))
        else:
            letters = [digit for digit in digits if digit.isalpha()] if part.is_checked else sorted(digits)
            parts.append(st.text(letters, min_size=length, max_size=length))
    return st.tuples(*parts).map("".join)
