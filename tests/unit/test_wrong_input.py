"""Tests of wrong input: the documented error, with the value and the limit in the message."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

import mintage
from mintage import errors, testing
from tests.helpers.outcomes import refusal

# Every call below is wrong on purpose, so types are left out of it.
sno: Any = mintage.sno
snowflake: Any = mintage.snowflake
locality: Any = mintage.locality
ManualClock: Any = testing.ManualClock

NOW_MS = 1_600_000_000_000
NOW = NOW_MS * 1_000_000
HUGE = 10**5000
NOT_INTS: list[Any] = [1.0, 1.5, float("nan"), "1", b"1", None, [1], 1 + 0j, object]


def documented_refusal(call: Any, *arguments: Any) -> errors.MintError:
    """Return the error of a call, after a check that it has the class of its code."""
    error = refusal(call, *arguments)
    assert type(error) is errors.CATALOGUE[error.code].error
    return error


def fits_on_a_screen(error: errors.MintError) -> bool:
    return 0 < len(str(error).encode()) < 400


# ------------------------------------------------------------------------------------------------------ malformed text

HYPHENS = (8, 13, 18, 23)
SCHEMES = {
    "sno": SimpleNamespace(
        parse=sno.ID.parse,
        good="brpk4q72xwf2m63l",
        allowed=["23456789abcdefghijklmnopqrstuvwx"] * 16,
        array=sno.Array,
    ),
    "locality": SimpleNamespace(
        parse=locality.ID.parse,
        good="20be0ffc-314a-bd53-7a50-013a65ca76d2",
        allowed=["-" if at in HYPHENS else "0123456789abcdefABCDEF" for at in range(36)],
        array=locality.Array,
    ),
}
ODD_CHARACTERS = [
    *("0", "1", "y", "z", "A", "X", "G", "O", "l", "I", "g", "-", "_", "+", "=", "/", "\\", '"', "'", "%", "{", "?"),
    *(" ", "\t", "\n", "\r", "\v", "\0", "\x1f", "\x7f", "\x80", "\xa0", "\xff"),
    *("é", "ß", "İ", "ı", "ſ", "K"),  # some fold to ASCII letters
    *("２", "ａ", "а", "٣", "²", "①"),  # full-width, Cyrillic, Arabic, superscript, circled
    *("\u200b", "\u2028", "\u202e", "\u0301", "\ufeff", "\ufffd", "\uffff"),
    *("\ud800", "\udbff", "\udc00", "\udfff", "😀", "𝟚", "\U0010ffff"),
]


def malformed(good: str) -> list[str]:
    last = len(good) - 1
    swapped = [good[:at] + odd + good[at + 1 :] for odd in ODD_CHARACTERS for at in (0, 8, last)]
    longer = [text for odd in ODD_CHARACTERS for text in (good + odd, odd + good, good[:-1] + odd + odd)]
    shorter = [good[:size] for size in range(len(good))]
    shouted = [good[:at] + good[at:].upper() for at in range(len(good))]
    padded = [
        f" {good}",
        f"{good}\n",
        f"{good}\0",
        f'"{good}"',
        f"{{{good}}}",
        f"urn:uuid:{good}",
        good * 2,
        good * 1000,
    ]
    unlike = ["null", "None", "-" * len(good), "2" * 10**6, "😀" * len(good), "\ud83d\ude00" * (len(good) // 2)]
    return [*swapped, *longer, *shorter, *shouted, *padded, *unlike, good.replace("-", "")[:32], good[::-1]]


def fault(text: str, allowed: list[str]) -> tuple[str, int | None] | None:
    """Return the code and position of the error in a text, by a check of one character at a time."""
    if len(text) != len(allowed):
        return "parse.length", None
    at = next((at for at, (character, fit) in enumerate(zip(text, allowed, strict=True)) if character not in fit), None)
    return None if at is None else ("parse.character", at)


MALFORMED = [
    pytest.param(name, text, id=f"{name}-{ascii(text)[:50]}")
    for name, scheme in SCHEMES.items()
    for text in dict.fromkeys(malformed(scheme.good))
    if fault(text, scheme.allowed)
]


def test_there_are_at_least_200_malformed_texts_for_each_parser() -> None:
    assert all(sum(case.values[0] == name for case in MALFORMED) >= 200 for name in SCHEMES)


@pytest.mark.parametrize(("name", "text"), MALFORMED)
def test_malformed_text_is_refused_with_the_position(name: str, text: str) -> None:
    scheme = SCHEMES[name]
    error = documented_refusal(scheme.parse, text)
    assert isinstance(error, errors.ParseError)
    assert (error.code, error.position) == fault(text, scheme.allowed)
    assert fits_on_a_screen(error)


def check_packed(name: str, text: str) -> None:
    """Check that an array reads this text behind good text, or refuses it with its own error."""
    scheme = SCHEMES[name]
    packed = scheme.good * 3 + text
    expected = fault(packed, scheme.allowed * (len(packed) // len(scheme.good)))
    if expected is None:
        assert len(scheme.array.parse(packed)) == len(packed) // len(scheme.good)
        return
    error = documented_refusal(scheme.array.parse, packed)
    assert isinstance(error, errors.ParseError)
    assert (error.code, error.position) == expected
    assert fits_on_a_screen(error)


@pytest.mark.parametrize(("name", "text"), [case for case in MALFORMED if str(case.values[1]).isascii()])
def test_array_error_has_the_position_in_the_whole_text(name: str, text: str) -> None:
    check_packed(name, text)


@pytest.mark.parametrize("odd", ["é", "２", "😀", "\ud800"], ids=ascii)
@pytest.mark.parametrize("name", SCHEMES)
def test_array_positions_count_characters_not_bytes(name: str, odd: str) -> None:
    good = SCHEMES[name].good
    for text in (odd + good[1:], good[:-1] + odd, odd + good, good[:-2] + odd, good[:-4] + odd):
        check_packed(name, text)


@pytest.mark.parametrize("name", SCHEMES)
def test_wrong_length_error_has_both_lengths(name: str) -> None:
    scheme = SCHEMES[name]
    assert re.search(rf"7 characters, needs {len(scheme.good)}", str(documented_refusal(scheme.parse, "x" * 7)))


@pytest.mark.parametrize("name", SCHEMES)
def test_wrong_character_error_has_character_and_position(name: str) -> None:
    scheme = SCHEMES[name]
    assert "'!' at position 5" in str(documented_refusal(scheme.parse, scheme.good[:5] + "!" + scheme.good[6:]))


@pytest.mark.parametrize("value", [None, 5, 1.5, b"brpk4q72xwf2m63l", bytearray(16), ["brpk4q72xwf2m63l"], object()])
@pytest.mark.parametrize("name", SCHEMES)
def test_non_str_is_no_text(name: str, value: Any) -> None:
    error = documented_refusal(SCHEMES[name].parse, value)
    assert (error.code, str(error)) == ("argument.type", f"text must be str, not {type(value).__name__}")


def test_json_is_text_or_none() -> None:
    assert documented_refusal(sno.ID.from_json, 5).code == "argument.type"


# ------------------------------------------------------------------------------------------------------ bytes and UUIDs

SIZES = {"sno": (sno, 10), "locality": (locality, 16)}


@pytest.mark.parametrize("size", range(65))
@pytest.mark.parametrize("name", SIZES)
def test_bytes_of_a_wrong_length_are_no_id(name: str, size: int) -> None:
    module, right = SIZES[name]
    for read in (module.ID, module.ID.from_bytes):
        if size != right:
            error = documented_refusal(read, bytes(size))
            assert (error.code, f"{size} bytes, needs {right}" in str(error)) == ("parse.length", True)


@pytest.mark.parametrize("size", range(65))
@pytest.mark.parametrize("name", SIZES)
def test_partial_id_in_bytes_is_refused_by_an_array(name: str, size: int) -> None:
    module, right = SIZES[name]
    if size % right:
        assert documented_refusal(module.Array, bytes(size)).code == "parse.length"
    else:
        assert len(module.Array(bytes(size))) == size // right


@pytest.mark.parametrize(
    "read", [sno.ID.from_bytes, sno.Array, locality.ID.from_bytes, locality.Array, snowflake.to_lines]
)
@pytest.mark.parametrize("value", [None, 5, 1.5, "0123456789", [0] * 10, object()], ids=type)
def test_object_without_a_buffer_is_refused(read: Any, value: Any) -> None:
    assert documented_refusal(read, value).code == "argument.type"


@pytest.mark.parametrize("read", [sno.ID, sno.Array, locality.ID, locality.Array, snowflake.to_lines])
def test_non_contiguous_buffer_is_refused(read: Any) -> None:
    with_gaps = memoryview(bytes(160))[:: 160 // 16 if "locality" in repr(read) else 16]
    assert not with_gaps.contiguous
    assert documented_refusal(read, with_gaps).code in {"argument.type", "config.buffer"}


@pytest.mark.parametrize("read", [sno.ID.from_uuid, locality.ID.from_uuid])
@pytest.mark.parametrize("value", [None, 5, "20be0ffc-314a-bd53-7a50-013a65ca76d2", bytes(16), UUID], ids=str)
def test_non_uuid_is_refused(read: Any, value: Any) -> None:
    assert documented_refusal(read, value).code == "argument.type"


def test_uuid_without_sno_text_is_refused_with_the_position() -> None:
    error = documented_refusal(sno.ID.from_uuid, UUID(bytes=b"brpk4Q72xwf2m63l"))
    assert isinstance(error, errors.ParseError)
    assert (error.code, error.position) == ("parse.character", 5)


# --------------------------------------------------------------------------------------------------------------- times

PLUS_2 = timezone(timedelta(hours=2))
NAIVE = datetime(2020, 1, 1)  # noqa: DTZ001


class Zoneless(tzinfo):
    """A time zone without an offset: Python calls such a datetime naive too."""

    def __repr__(self) -> str:
        return "Zoneless()"

    def utcoffset(self, when: datetime | None) -> None:
        return None

    def tzname(self, when: datetime | None) -> str:
        return "?"

    def dst(self, when: datetime | None) -> None:
        return None


TIMES = {
    "sno.min_at": (sno.min_at, "2010-01-01T00:00:00", "2079-09-07T15:47:35"),
    "sno.max_at": (sno.max_at, "2010-01-01T00:00:00", "2079-09-07T15:47:35"),
    "sno.new_at": (sno.new_at, "2010-01-01T00:00:00", "2079-09-07T15:47:35"),
    "DEFAULT.min_at": (snowflake.DEFAULT.min_at, "2015-01-01T00:00:00", "2084-09-06T15:47:35"),
    "DEFAULT.max_at": (snowflake.DEFAULT.max_at, "2015-01-01T00:00:00", "2084-09-06T15:47:35"),
    "TWITTER.min_at": (snowflake.TWITTER.min_at, "2010-11-04T01:42:54", "2080-07-10T17:30:30"),
    "DISCORD.min_at": (snowflake.DISCORD.min_at, "2015-01-01T00:00:00", "2154-05-15T07:35:11"),
    "INSTAGRAM.min_at": (snowflake.INSTAGRAM.min_at, "2011-08-24T21:07:01", "2081-04-30T12:54:37"),
    "SONYFLAKE.min_at": (snowflake.SONYFLAKE.min_at, "2014-09-01T00:00:00", "2188-11-16T03:28:58"),
}
COUNTED = {
    "sno.ID.from_parts": lambda ns: sno.ID.from_parts(timestamp_ns=ns),
    "DEFAULT.compose": lambda ms: snowflake.DEFAULT.compose(timestamp_ms=ms),
}


@pytest.mark.parametrize("name", TIMES)
def test_time_outside_the_layout_is_refused_with_both_limits(name: str) -> None:
    call, first, last = TIMES[name]
    before = datetime.fromisoformat(first).replace(tzinfo=UTC) - timedelta(seconds=1)
    after = datetime.fromisoformat(last).replace(tzinfo=UTC) + timedelta(seconds=1)
    wrong = [before, after, after.astimezone(PLUS_2), datetime.min.replace(tzinfo=UTC)]
    for time in [*wrong, datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=PLUS_2)]:
        error = documented_refusal(call, time)
        assert (error.code, first in str(error), last in str(error)) == ("time.range", True, True)


@pytest.mark.parametrize("name", [*TIMES, *COUNTED])
def test_count_outside_the_layout_is_refused_at_any_size(name: str) -> None:
    call = TIMES[name][0] if name in TIMES else COUNTED[name]
    for bits in (0, 1, 63, 64, 127, 128, 200, 16_610):
        for count in (2**bits, -(2**bits), 2**bits - 1):
            error = documented_refusal(call, count)
            assert (error.code, fits_on_a_screen(error)) == ("time.range", True)


@pytest.mark.parametrize(
    "time", [NAIVE, NAIVE.replace(year=1), NAIVE.replace(year=9999), NAIVE.replace(tzinfo=Zoneless())], ids=repr
)
@pytest.mark.parametrize("name", TIMES)
def test_datetime_without_a_time_zone_is_refused(name: str, time: datetime) -> None:
    error = documented_refusal(TIMES[name][0], time)
    assert (error.code, "no time zone" in str(error)) == ("time.naive", True)


@pytest.mark.parametrize("time", [1.5, "2020-01-01T00:00:00Z", None, date(2020, 1, 1), timedelta(1)], ids=repr)
@pytest.mark.parametrize("name", [*TIMES, *COUNTED])
def test_invalid_time_is_refused(name: str, time: Any) -> None:
    assert documented_refusal(TIMES[name][0] if name in TIMES else COUNTED[name], time).code == "argument.type"


# ------------------------------------------------------------------------------------------------------------- numbers

SNO = sno.Generator(1, clock=ManualClock(NOW))
SNOWFLAKE = snowflake.Generator(1, clock=ManualClock(NOW))
LOCALITY = locality.Generator(clock=ManualClock(NOW))
COUNT = 2**31 - 1


def locality_parts(**fields: Any) -> Any:
    return locality.ID.from_parts(**{"counter": 0, "pid": 0, "mac": "0000000", "timestamp_ms": 0, **fields})


#: What takes a number: the call, the code of a number out of range, and the largest number.
NUMBERS: dict[str, tuple[Any, str, int]] = {
    "sno.ID.from_int": (sno.ID.from_int, "field.range", 2**80 - 1),
    "sno.ID.from_parts tick": (lambda n: sno.ID.from_parts(timestamp_ns=NOW, tick=n), "field.range", 1),
    "sno.ID.from_parts meta": (lambda n: sno.ID.from_parts(timestamp_ns=NOW, meta=n), "field.range", 255),
    "sno.ID.from_parts partition": (lambda n: sno.ID.from_parts(timestamp_ns=NOW, partition=n), "field.range", 65535),
    "sno.ID.from_parts sequence": (lambda n: sno.ID.from_parts(timestamp_ns=NOW, sequence=n), "field.range", 65535),
    "sno.ID.replace tick": (lambda n: sno.ID.ZERO.replace(tick=n), "field.range", 1),
    "sno.ID.replace meta": (lambda n: sno.ID.ZERO.replace(meta=n), "field.range", 255),
    "sno.ID.replace partition": (lambda n: sno.ID.ZERO.replace(partition=n), "field.range", 65535),
    "sno.ID.replace sequence": (lambda n: sno.ID.ZERO.replace(sequence=n), "field.range", 65535),
    "sno.Generator partition": (sno.Generator, "config.node", 65535),
    "sno.Generator meta": (lambda n: sno.Generator(1, meta=n), "field.range", 255),
    "sno.Generator sequence_min": (lambda n: sno.Generator(1, sequence_min=n), "field.range", 65535),
    "sno.Generator sequence_max": (
        lambda n: sno.Generator(1, sequence_min=65535, sequence_max=n),
        "field.range",
        65535,
    ),
    "sno.Generator max_wait_ms": (lambda n: sno.Generator(1, max_wait_ms=n), "config.wait", 2**32 - 1),
    "sno.Generator.restore max_wait_ms": (
        lambda n: sno.Generator.restore(sno.Snapshot(1), max_wait_ms=n),
        "config.wait",
        2**32 - 1,
    ),
    "sno.Generator.new": (SNO.new, "field.range", 255),
    "sno.Generator.new meta": (lambda n: SNO.new(meta=n), "field.range", 255),
    "sno.Generator.new_at": (lambda n: SNO.new_at(NOW, n), "field.range", 255),
    "sno.Generator.batch": (SNO.batch, "field.range", COUNT),
    "sno.Generator.batch meta": (lambda n: SNO.batch(1, n), "field.range", 255),
    "sno.Generator.fill meta": (lambda n: SNO.fill(bytearray(10), n), "field.range", 255),
    "sno.Snapshot partition": (sno.Snapshot, "field.range", 65535),
    "sno.Snapshot sequence_min": (lambda n: sno.Snapshot(1, sequence_min=n), "field.range", 65535),
    "sno.Snapshot sequence_max": (lambda n: sno.Snapshot(1, sequence_max=n), "field.range", 65535),
    "sno.Snapshot now": (lambda n: sno.Snapshot(1, now=n), "field.range", 2**39 - 1),
    "sno.Snapshot wall_hi": (lambda n: sno.Snapshot(1, wall_hi=n), "field.range", 2**39 - 1),
    "sno.Snapshot wall_safe": (lambda n: sno.Snapshot(1, wall_safe=n), "field.range", 2**39 - 1),
    "sno.Snapshot drifts": (lambda n: sno.Snapshot(1, drifts=n), "field.range", 2**32 - 1),
    "snowflake.Generator node": (snowflake.Generator, "config.node", 1023),
    "snowflake.Generator max_wait_ms": (lambda n: snowflake.Generator(1, max_wait_ms=n), "config.wait", 2**32 - 1),
    "snowflake.Generator.batch": (SNOWFLAKE.batch, "field.range", COUNT),
    "snowflake.Layout unit_ms": (
        lambda n: snowflake.Layout("time:41", epoch_ms=0, unit_ms=n),
        "config.layout",
        2**32 - 1,
    ),
    "snowflake.Layout.parse": (snowflake.DEFAULT.parse, "field.range", 2**63 - 1),
    "snowflake.Layout.compose node": (
        lambda n: snowflake.DEFAULT.compose(timestamp_ms=NOW_MS, node=n),
        "field.range",
        1023,
    ),
    "snowflake.Layout.compose sequence": (
        lambda n: snowflake.DEFAULT.compose(timestamp_ms=NOW_MS, sequence=n),
        "field.range",
        4095,
    ),
    "locality.ID.from_int": (locality.ID.from_int, "field.range", 2**128 - 1),
    "locality.ID.from_parts counter": (lambda n: locality_parts(counter=n), "field.range", 2**32 - 1),
    "locality.ID.from_parts pid": (lambda n: locality_parts(pid=n), "field.range", 65535),
    "locality.Generator pid": (lambda n: locality.Generator(pid=n), "config.node", 65535),
    "locality.Generator counter": (lambda n: locality.Generator(counter=n), "field.range", 2**32 - 1),
    "locality.Generator.batch": (LOCALITY.batch, "field.range", COUNT),
}
#: Where None means what the documentation says of it, not a wrong number.
NONE_HAS_A_MEANING = re.compile(r"Generator (partition|node|pid|counter)$")


@pytest.mark.parametrize("name", NUMBERS)
def test_number_out_of_range_is_refused_with_the_limit(name: str) -> None:
    call, code, largest = NUMBERS[name]
    for number in (-1, largest + 1, -(2**63), 2**130, HUGE, -HUGE):
        error = documented_refusal(call, number)
        assert (error.code, f"..{largest}" in str(error)) == (code, True)
        assert fits_on_a_screen(error)


@pytest.mark.parametrize("name", NUMBERS)
def test_small_number_out_of_range_is_shown_in_the_message(name: str) -> None:
    call, _, largest = NUMBERS[name]
    for number in (-1, largest + 1):
        assert re.search(rf"(?<!\d){number} is outside", str(documented_refusal(call, number)))


@pytest.mark.parametrize("name", NUMBERS)
def test_non_int_is_no_number(name: str) -> None:
    call, _, _ = NUMBERS[name]
    for value in NOT_INTS:
        if value is not None:
            error = documented_refusal(call, value)
            assert (error.code, "must be an int" in str(error)) == ("argument.type", True)


@pytest.mark.parametrize("name", [name for name in NUMBERS if not NONE_HAS_A_MEANING.search(name)])
def test_none_is_refused_as_a_number(name: str) -> None:
    assert documented_refusal(NUMBERS[name][0], None).code == "argument.type"


class Index:
    def __index__(self) -> int:
        return 1


@pytest.mark.parametrize("value", [True, Index()], ids=["bool", "__index__"])
@pytest.mark.parametrize("name", NUMBERS)
def test_bools_and_objects_with_index_are_numbers(name: str, value: Any) -> None:
    if value is True and name.endswith((".parse", ".from_int")):
        assert documented_refusal(NUMBERS[name][0], value).code == "argument.type"  # no ID is a bool
    else:
        NUMBERS[name][0](value)


@pytest.mark.parametrize("name", NUMBERS)
def test_exception_of_an_index_method_reaches_the_caller(name: str) -> None:
    class Broken:
        def __index__(self) -> int:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        NUMBERS[name][0](Broken())


@pytest.mark.parametrize("number", [2**55 + 1, -(2**55) - 1, HUGE, -HUGE], ids=int.bit_length)
def test_epoch_beyond_a_million_years_is_refused(number: int) -> None:
    error = documented_refusal(lambda: snowflake.Layout("time:41", epoch_ms=number))
    assert (error.code, fits_on_a_screen(error)) == ("config.layout", True)


def test_tick_of_length_0_is_refused() -> None:
    assert documented_refusal(lambda: snowflake.Layout("time:41", epoch_ms=0, unit_ms=0)).code == "config.layout"


@pytest.mark.parametrize("fields", [None, 5, b"time:41", ["time:41"]], ids=repr)
def test_declaration_that_is_not_text_is_refused(fields: Any) -> None:
    assert documented_refusal(lambda: snowflake.Layout(fields, epoch_ms=0)).code == "argument.type"


@pytest.mark.parametrize(
    "macs", ["0242AC110003", 5, None, [5], [None], [b"0242AC110003"], ["0242AC110003", 5]], ids=repr
)
def test_macs_are_an_iterable_of_text(macs: Any) -> None:
    assert documented_refusal(snowflake.node_from_macs, macs).code == "argument.type"


MALFORMED_MACS = [
    *("", "0", "0242AC11000", "0242AC1100033", "0242AC11000G", "0x42AC110003", "0242 AC110003", "02:42:AC:11:00:0"),
    *("02:42-AC:11:00:03", "024:2A:C1:10:00:3", "02:42:AC:11:00:03:", ":02:42:AC:11:00:0", "０242AC110003", "é" * 6),
    *("\ud800" * 12, "0242ac11\0003", "0" * 10**6, "-" * 17, ":" * 17),
]


@pytest.mark.parametrize("mac", MALFORMED_MACS, ids=lambda mac: ascii(mac)[:30])
def test_malformed_mac_is_refused(mac: str) -> None:
    for call in (
        lambda: snowflake.node_from_macs([mac]),
        lambda: locality_parts(mac=mac),
        lambda: locality.Generator(mac=mac),
    ):
        error = documented_refusal(call)
        assert (error.code, "12" in str(error), fits_on_a_screen(error)) == ("field.format", True, True)


@pytest.mark.parametrize("mac", [5, b"0000000", None], ids=repr)
def test_mac_that_is_not_text_is_refused(mac: Any) -> None:
    assert documented_refusal(lambda: locality_parts(mac=mac)).code == "argument.type"


# ------------------------------------------------------------------------------------------------------- configuration

GENERATORS = [sno.Generator, snowflake.Generator, locality.Generator]
POLICIES = {
    "on_rollback": (lambda word: snowflake.Generator(1, on_rollback=word), ["advance", "wait", "raise"]),
    "on_exhausted": (lambda word: snowflake.Generator(1, on_exhausted=word), ["wait", "advance", "raise"]),
    "mode": (locality.Generator, ["variable", "sequential"]),
    "mode of from_parts": (lambda word: locality_parts(mode=word), ["variable", "sequential"]),
    "use_mode": (LOCALITY.use_mode, ["variable", "sequential"]),
}


@pytest.mark.parametrize(
    "word", ["", "Wait", "wait ", "WAIT", "ignore", "wait\0", "\ud800", "😀", "x" * 10**6], ids=lambda w: w[:9]
)
@pytest.mark.parametrize("name", POLICIES)
def test_unknown_policy_is_refused_with_the_known_ones(name: str, word: str) -> None:
    call, known = POLICIES[name]
    error = documented_refusal(call, word)
    assert (error.code, [policy for policy in known if f"'{policy}'" in str(error)]) == ("config.policy", known)
    assert fits_on_a_screen(error)


@pytest.mark.parametrize("word", [1, True, b"wait", ["wait"]], ids=repr)
@pytest.mark.parametrize("name", POLICIES)
def test_policy_that_is_not_text_is_refused(name: str, word: Any) -> None:
    assert documented_refusal(POLICIES[name][0], word).code == "argument.type"


@pytest.mark.parametrize("store", ["", "?", "nowhere://host", "redis", "memory:?x=1", "sqlite:", "memory:#"], ids=repr)
@pytest.mark.parametrize("make", GENERATORS)
def test_url_of_no_known_store_is_refused(make: Any, store: str) -> None:
    assert documented_refusal(lambda: make(store=store)).code == "config.store"


@pytest.mark.parametrize("store", [0, False, object(), b"memory:"], ids=["0", "False", "object", "bytes"])
@pytest.mark.parametrize("make", GENERATORS)
def test_store_argument_is_a_url_or_a_store(make: Any, store: Any) -> None:
    assert documented_refusal(lambda: make(store=store)).code == "argument.type"


@pytest.mark.parametrize("make", GENERATORS)
def test_password_of_a_store_url_is_never_repeated(make: Any) -> None:
    for url in ["nowhere://root:hunter2@host/ids", "sqlite://root:hunter2@host/ids", "redis://:hunter2@host:port/"]:
        error = documented_refusal(lambda url=url: make(store=url))
        assert error.code == "config.store"
        assert "hunter2" not in str(error)


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize(
    ("argument", "code"),
    [
        ({"nodes": [1, 2]}, "argument.type"),
        ({"nodes": range(0)}, "config.node"),
        ({"nodes": range(0, 10, 2)}, "config.node"),
        ({"nodes": range(-1, 5)}, "config.node"),
        ({"nodes": range(2**60)}, "config.node"),
        ({"span_ms": 999}, "config.span"),
        ({"span_ms": 86_400_001}, "config.span"),
        ({"span_ms": "10"}, "argument.type"),
        ({"pool": ""}, "config.name"),
        ({"pool": "a\nb"}, "config.name"),
        ({"pool": "x" * 129}, "config.name"),
        ({"pool": 5}, "argument.type"),
        ({"on_lease_lost": "ignore"}, "config.policy"),
        ({"on_lease_lost": 1}, "argument.type"),
    ],
    ids=repr,
)
def test_invalid_lease_arguments_are_refused_before_any_store_is_asked(make: Any, argument: Any, code: str) -> None:
    assert documented_refusal(lambda: make(store="memory:", **argument)).code == code


@pytest.mark.parametrize("clock", [5, "now", 1.5, object()], ids=type)
@pytest.mark.parametrize("make", GENERATORS)
def test_uncallable_clock_is_refused(make: Any, clock: Any) -> None:
    assert documented_refusal(lambda: make(clock=clock)).code == "argument.type"


@pytest.mark.parametrize("reading", [None, 1.5e18, "now", datetime.now(UTC)], ids=type)
@pytest.mark.parametrize("make", GENERATORS)
def test_clock_that_returns_no_int_is_refused(make: Any, reading: Any) -> None:
    error = documented_refusal(lambda: make(clock=lambda: reading).new())
    assert (error.code, type(reading).__name__ in str(error)) == ("config.clock", True)


@pytest.mark.parametrize("make", GENERATORS)
def test_clock_with_absurd_readings_is_refused(make: Any) -> None:
    for reading in (-1, 2**126, 2**127, 2**200, HUGE, -HUGE):
        error = documented_refusal(lambda: make(clock=lambda: reading).new())  # noqa: B023
        assert error.code in {"clock.range", "config.clock"}


@pytest.mark.parametrize("make", GENERATORS)
def test_exception_of_a_clock_reaches_the_caller(make: Any) -> None:
    def broken() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make(clock=broken).new()


@pytest.mark.parametrize("value", ["1", 1.5, None, b"1"], ids=type)
def test_manual_clock_accepts_only_ints(value: Any) -> None:
    clock = ManualClock(0)
    assert [documented_refusal(call, value).code for call in (ManualClock, clock.set, clock.advance)] == [
        "argument.type"
    ] * 3


def test_manual_clock_is_limited_to_127_bits() -> None:
    assert documented_refusal(ManualClock, HUGE).code == "field.range"


def test_on_overflow_must_be_callable() -> None:
    assert documented_refusal(lambda: sno.Generator(1, on_overflow=5)).code == "argument.type"


def test_layout_must_be_a_layout() -> None:
    assert documented_refusal(lambda: snowflake.Generator(1, layout="time:41 node:10")).code == "argument.type"


@pytest.mark.parametrize("snapshot", [None, 5, "{}", {}], ids=repr)
def test_generator_is_restored_only_from_a_snapshot(snapshot: Any) -> None:
    assert documented_refusal(sno.Generator.restore, snapshot).code == "argument.type"


@pytest.mark.parametrize("text", [None, 5, b"{}", {}], ids=repr)
def test_json_of_a_snapshot_must_be_text(text: Any) -> None:
    assert documented_refusal(sno.Snapshot.from_json, text).code == "argument.type"


# ------------------------------------------------------------------------------------------------------------- buffers

FILLS = {"sno": (SNO.fill, 10), "snowflake": (SNOWFLAKE.fill, 8), "locality": (LOCALITY.fill, 16)}


@pytest.mark.parametrize("name", FILLS)
def test_read_only_buffer_is_not_filled(name: str) -> None:
    fill, size = FILLS[name]
    for buffer in (bytes(size), memoryview(bytearray(size)).toreadonly()):
        error = documented_refusal(fill, buffer)
        assert (error.code, "read-only" in str(error)) == ("config.buffer", True)


@pytest.mark.parametrize("name", FILLS)
def test_non_contiguous_buffer_is_not_filled(name: str) -> None:
    fill, size = FILLS[name]
    error = documented_refusal(fill, memoryview(bytearray(4 * size))[::2])
    assert (error.code, "contiguous" in str(error)) == ("config.buffer", True)


@pytest.mark.parametrize("name", FILLS)
def test_buffer_with_a_partial_id_is_not_filled(name: str) -> None:
    fill, size = FILLS[name]
    for short in range(1, size):
        error = documented_refusal(fill, bytearray(3 * size + short))
        message = str(error)
        assert (error.code, f"{3 * size + short}" in message, f"{size}" in message) == ("config.buffer", True, True)


@pytest.mark.parametrize("value", [None, 5, "x" * 80, [0] * 80], ids=type)
@pytest.mark.parametrize("name", FILLS)
def test_object_without_a_buffer_is_not_filled(name: str, value: Any) -> None:
    assert documented_refusal(FILLS[name][0], value).code == "argument.type"


@pytest.mark.parametrize("name", FILLS)
def test_empty_buffer_holds_no_ids(name: str) -> None:
    assert FILLS[name][0](bytearray()) == 0


@pytest.mark.parametrize("size", [0, 15, 17, 31, 33, 48])
def test_text_is_encoded_into_a_buffer_of_exactly_its_size(size: int) -> None:
    error = documented_refusal(sno.encode_into, bytes(20), bytearray(size))
    assert (error.code, f"{size} bytes, needs 32" in str(error)) == ("config.buffer", True)


@pytest.mark.parametrize("size", [0, 9, 11, 19, 21, 30])
def test_text_is_parsed_into_a_buffer_of_exactly_its_size(size: int) -> None:
    error = documented_refusal(sno.parse_into, b"2" * 32, bytearray(size))
    assert (error.code, f"{size} bytes, needs 20" in str(error)) == ("config.buffer", True)


def test_partial_id_in_bytes_is_not_encoded() -> None:
    assert documented_refusal(sno.encode_into, bytes(11), bytearray(16)).code == "parse.length"


def test_partial_id_in_text_is_not_parsed() -> None:
    assert documented_refusal(sno.parse_into, b"2" * 17, bytearray(10)).code == "parse.length"


def test_bulk_parse_positions_count_from_the_beginning() -> None:
    error = documented_refusal(sno.parse_into, b"2" * 16 * 100 + b"2222222222222y22", bytearray(10 * 101))
    assert isinstance(error, errors.ParseError)
    assert (error.code, error.position) == ("parse.character", 16 * 100 + 13)


@pytest.mark.parametrize("value", [None, 5, "2" * 16], ids=type)
def test_bulk_codecs_accept_only_buffers(value: Any) -> None:
    calls = (
        lambda: sno.encode_into(value, bytearray(16)),
        lambda: sno.encode_into(bytes(10), value),
        lambda: sno.parse_into(value, bytearray(10)),
        lambda: sno.parse_into(b"2" * 16, value),
    )
    assert [documented_refusal(call).code for call in calls] == ["argument.type"] * 4


def test_bulk_codecs_refuse_read_only_targets_and_gaps() -> None:
    calls = (
        lambda: sno.encode_into(bytes(10), bytes(16)),
        lambda: sno.parse_into(b"2" * 16, bytes(10)),
        lambda: sno.encode_into(memoryview(bytes(20))[::2], bytearray(16)),
        lambda: sno.encode_into(bytes(10), memoryview(bytearray(32))[::2]),
    )
    assert [documented_refusal(call).code for call in calls] == ["config.buffer"] * 4


# --------------------------------------------------------------------------------------------------- closed, misspelled


def test_closed_generator_refuses_to_mint() -> None:
    sno_closed, snowflake_closed, locality_closed = sno.Generator(1), snowflake.Generator(1), locality.Generator()
    for closed in (sno_closed, snowflake_closed, locality_closed):
        closed.close()
        closed.close()
        for call in (closed.new, lambda: next(closed), lambda: closed.batch(1), lambda: closed.fill(bytearray(80))):  # noqa: B023
            assert documented_refusal(call).code == "generator.closed"
    for call in (sno_closed.snapshot, lambda: sno_closed.new_at(NOW), lambda: locality_closed.use_mode("sequential")):
        assert documented_refusal(call).code == "generator.closed"


@pytest.mark.parametrize(
    "call",
    [
        sno.ID,
        lambda: sno.ID(bytes(10), bytes(10)),
        sno.ID.parse,
        lambda: sno.ID.parse("a", "b"),
        sno.ID.from_parts,
        lambda: sno.ID.ZERO.replace(5),
        lambda: sno.ID.ZERO.replace(node=5),
        lambda: sno.new(1, 2),
        lambda: sno.new(1, meta=1),
        lambda: sno.new(sequence=1),
        lambda: snowflake.new(1),
        lambda: snowflake.new(meta=1),
        lambda: locality.new(1),
        lambda: sno.Generator(1, 2),
        lambda: sno.Generator(node=1),
        lambda: snowflake.Generator(partition=1),
        lambda: snowflake.Layout("time:41"),
        lambda: snowflake.DEFAULT.compose(NOW_MS),
        lambda: locality.Generator("variable", 5),
    ],
)
def test_wrong_call_signature_is_a_plain_type_error(call: Any) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert type(caught.value) is TypeError
