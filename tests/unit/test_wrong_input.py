"""Tests of wrong arguments that not every scheme has: the documented error. ``test_laws`` has those that each has."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

import mintage
from mintage import errors, testing
from tests.helpers.cases import each_case
from tests.helpers.outcomes import documented_refusal

# Every call below is wrong on purpose, so types are left out of it.
sno: Any = mintage.sno
snowflake: Any = mintage.snowflake
locality: Any = mintage.locality
ManualClock: Any = testing.ManualClock

NOW_MS = 1_600_000_000_000
NOW = NOW_MS * 1_000_000
HUGE = 10**5000
NOT_INTS: list[Any] = [1.0, 1.5, float("nan"), "1", b"1", None, [1], 1 + 0j, object]


def test_json_is_text_or_none() -> None:
    assert documented_refusal(sno.ID.from_json, 5).code == "argument.type"


# ----------------------------------------------------------------------------------------------- texts, bytes and UUIDs


def test_snowflakes_are_written_as_lines_from_contiguous_buffers_only() -> None:
    for value in (None, 5, 1.5, "0123456789", [0] * 10, object()):
        assert documented_refusal(snowflake.to_lines, value).code == "argument.type"
    assert documented_refusal(snowflake.to_lines, memoryview(bytes(160))[::16]).code == "config.buffer"


def test_uuid_without_sno_text_is_refused_with_the_position() -> None:
    error = documented_refusal(sno.ID.from_uuid, UUID(bytes=b"brpk4Q72xwf2m63l"))
    assert isinstance(error, errors.ParseError)
    assert (error.code, error.position) == ("parse.character", 5)


# --------------------------------------------------------------------------------------------------------------- times

PLUS_2 = timezone(timedelta(hours=2))


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


@each_case("name", TIMES)
def test_time_outside_the_layout_is_refused_with_both_limits(name: str) -> None:
    call, first, last = TIMES[name]
    before = datetime.fromisoformat(first).replace(tzinfo=UTC) - timedelta(seconds=1)
    after = datetime.fromisoformat(last).replace(tzinfo=UTC) + timedelta(seconds=1)
    wrong = [before, after, after.astimezone(PLUS_2), datetime.min.replace(tzinfo=UTC)]
    for time in [*wrong, datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=PLUS_2)]:
        error = documented_refusal(call, time)
        assert (error.code, first in str(error), last in str(error)) == ("time.range", True, True)


@each_case("name", [*TIMES, *COUNTED])
def test_count_outside_the_layout_is_refused_at_any_size(name: str) -> None:
    call = TIMES[name][0] if name in TIMES else COUNTED[name]
    for bits in (0, 1, 63, 64, 127, 128, 200, 16_610):
        for count in (2**bits, -(2**bits), 2**bits - 1):
            assert documented_refusal(call, count).code == "time.range"


@pytest.mark.parametrize("time", [1.5, "2020-01-01T00:00:00Z", None, date(2020, 1, 1), timedelta(1)], ids=repr)
@each_case("name", [*TIMES, *COUNTED])
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


@each_case("name", NUMBERS)
def test_number_out_of_range_is_refused_with_the_limit(name: str) -> None:
    call, code, largest = NUMBERS[name]
    for number in (-1, largest + 1, -(2**63), 2**130, HUGE, -HUGE):
        error = documented_refusal(call, number)
        assert (error.code, f"..{largest}" in str(error)) == (code, True)


@each_case("name", NUMBERS)
def test_small_number_out_of_range_is_shown_in_the_message(name: str) -> None:
    call, _, largest = NUMBERS[name]
    for number in (-1, largest + 1):
        assert re.search(rf"(?<!\d){number} is outside", str(documented_refusal(call, number)))


@each_case("name", NUMBERS)
def test_non_int_is_no_number(name: str) -> None:
    call, _, _ = NUMBERS[name]
    for value in NOT_INTS:
        if value is not None:
            error = documented_refusal(call, value)
            assert (error.code, "must be an int" in str(error)) == ("argument.type", True)


@each_case("name", [name for name in NUMBERS if not NONE_HAS_A_MEANING.search(name)])
def test_none_is_refused_as_a_number(name: str) -> None:
    assert documented_refusal(NUMBERS[name][0], None).code == "argument.type"


class Index:
    def __index__(self) -> int:
        return 1


@pytest.mark.parametrize("value", [True, Index()], ids=["bool", "__index__"])
@each_case("name", NUMBERS)
def test_bools_and_objects_with_index_are_numbers(name: str, value: Any) -> None:
    if value is True and name.endswith((".parse", ".from_int")):
        assert documented_refusal(NUMBERS[name][0], value).code == "argument.type"  # no ID is a bool
    else:
        NUMBERS[name][0](value)


@each_case("name", NUMBERS)
def test_exception_of_an_index_method_reaches_the_caller(name: str) -> None:
    class Broken:
        def __index__(self) -> int:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        NUMBERS[name][0](Broken())


@pytest.mark.parametrize("number", [2**55 + 1, -(2**55) - 1, HUGE, -HUGE], ids=int.bit_length)
def test_epoch_beyond_a_million_years_is_refused(number: int) -> None:
    error = documented_refusal(lambda: snowflake.Layout("time:41", epoch_ms=number))
    assert error.code == "config.layout"


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
        assert (error.code, "12" in str(error)) == ("field.format", True)


@pytest.mark.parametrize("mac", [5, b"0000000", None], ids=repr)
def test_mac_that_is_not_text_is_refused(mac: Any) -> None:
    assert documented_refusal(lambda: locality_parts(mac=mac)).code == "argument.type"


# ------------------------------------------------------------------------------------------------------- configuration

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


@pytest.mark.parametrize("word", [1, True, b"wait", ["wait"]], ids=repr)
@pytest.mark.parametrize("name", POLICIES)
def test_policy_that_is_not_text_is_refused(name: str, word: Any) -> None:
    assert documented_refusal(POLICIES[name][0], word).code == "argument.type"


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


def test_closed_generator_has_no_state_to_show_or_change() -> None:
    sno_closed, locality_closed = sno.Generator(1), locality.Generator()
    for call in (sno_closed.close, locality_closed.close, locality_closed.close):
        call()
    for call in (sno_closed.snapshot, lambda: locality_closed.use_mode("sequential")):
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
