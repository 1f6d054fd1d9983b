"""Tests of ULIDs against the recorded behaviour of oklog/ulid, npm ulid and python-ulid, and their faults."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from mintage import ulid
from mintage.errors import FieldError, GenerationError, ParseError
from mintage.testing import ManualClock
from tests.helpers.cases import each_case
from tests.helpers.outcomes import refusal
from tests.helpers.vectors import named, vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDED = vectors("ulid")
GO, NPM, PYTHON = RECORDED["oklog"], RECORDED["npm_ulid"], RECORDED["python_ulid"]
MS = 1_000_000
NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000

Case = dict[str, Any]


def parse_error(text: str) -> ParseError:
    error = refusal(ulid.ID.parse, text)
    assert isinstance(error, ParseError)
    return error


# --- as recorded -----------------------------------------------------------------------------------------------------


@each_case("case", [case for case in GO["generate"] if "text" in case], ids=named)
def test_time_and_entropy_make_the_recorded_id(case: Case) -> None:
    one = ulid.ID.from_parts(timestamp_ms=case["time_ms"], random=case["entropy_hex"])
    assert (bytes(one).hex(), str(one)) == (case["hex"], case["text"])
    assert ulid.ID.parse(case["text"]) == ulid.ID.from_bytes(bytes.fromhex(case["hex"])) == one
    assert (one.timestamp_ms, one.random) == (case["time_ms"], case["entropy_hex"])


@pytest.mark.parametrize("time_ms", [GO["max_time_ms"] + 1, 2**64 - 1, -1])
def test_time_of_other_than_48_bits_is_refused(time_ms: int | str) -> None:
    with pytest.raises(FieldError) as caught:
        ulid.ID.from_parts(timestamp_ms=int(time_ms))
    assert caught.value.code == "time.range"


def test_entropy_of_other_than_10_bytes_is_refused() -> None:
    for entropy in ("00" * 9, "00" * 11):
        with pytest.raises(FieldError) as caught:
            ulid.ID.from_parts(timestamp_ms=5, random=entropy)
        assert caught.value.code == "field.format"


@pytest.mark.parametrize("case", NPM["encode_time"], ids=lambda case: case["time_ms"])
def test_times_are_written_as_recorded(case: Case) -> None:
    if "ok" in case:
        assert str(ulid.ID.from_parts(timestamp_ms=int(case["time_ms"])))[:10] == case["ok"]
    elif case["time_ms"].lstrip("-").isdigit():
        with pytest.raises(FieldError):
            ulid.ID.from_parts(timestamp_ms=int(case["time_ms"]))


@pytest.mark.parametrize("case", GO["parse"], ids=named)
def test_text_is_read_as_in_the_strict_parser_of_oklog(case: Case) -> None:
    if case["ParseStrict_error"] is None:
        assert bytes(ulid.ID.parse(case["input"])).hex() == case["ParseStrict_hex"]


@pytest.mark.parametrize("case", PYTHON["decode"] + NPM["decode"], ids=named)
def test_text_is_read_as_in_other_libraries(case: Case) -> None:
    if "ok" in case:
        one = ulid.ID.parse(case["input"])
        known = case["ok"]
        assert (bytes(one).hex(), str(int(one))) == (known["hex"], known["int"])
        assert (str(one), one.timestamp_ms) == (known["text"], known["milliseconds"])
        assert UUID(bytes=bytes(one)) == UUID(known["uuid"])
    elif "ok" in case.get("ulidToUUID", {}):
        one = ulid.ID.parse(case["input"])
        assert one.timestamp_ms == case["decodeTime"]["ok"]
        assert UUID(bytes=bytes(one)) == UUID(case["ulidToUUID"]["ok"])


@pytest.mark.parametrize("case", NPM["uuid_to_ulid"], ids=named)
def test_bytes_of_a_uuid_give_the_recorded_ulid(case: Case) -> None:
    assert str(ulid.ID(UUID(case["input"]).bytes)) == case["uuidToULID"]["ok"]


@pytest.mark.parametrize("case", [case for case in PYTHON["timestamps"] if case["type"] == "int"], ids=str)
def test_times_in_milliseconds_equal_those_of_python_ulid(case: Case) -> None:
    if "ok" in case:
        assert str(ulid.ID.from_parts(timestamp_ms=case["value"]))[:10] == case["ok"][:10]


def test_smallest_and_largest_are_the_constants_of_npm() -> None:
    assert str(ulid.min_at(0)) == NPM["constants"]["MIN"]
    assert str(ulid.max_at(NPM["constants"]["TIME_MAX"] * MS)) == NPM["constants"]["MAX"]


def steps() -> Iterator[tuple[str, str]]:
    """Return each ID of a recorded millisecond with the next."""
    for case in GO["monotonic"]:
        for last, one in pairwise(case["trace"]):
            # oklog answers a clock rollback and an overflow with other entropy: see the faults below.
            if "text" in last and "text" in one and one["time_ms"] == last["time_ms"] and case["inc"] == 1:
                yield last["text"], one["text"]


@pytest.mark.parametrize(("last", "one"), [step for step in steps() if step[0] < step[1]])
def test_next_id_of_a_millisecond_is_1_more_with_carry(last: str, one: str) -> None:
    assert int(ulid.ID.parse(one)) == int(ulid.ID.parse(last)) + 1


@pytest.mark.parametrize("case", [case for case in NPM["increment_base32"] if "ok" in case], ids=named)
def test_text_increments_as_in_npm(case: Case) -> None:
    low, high = (ulid.ID.parse(text.rjust(26, "0")) for text in (case["input"], case["ok"]))
    assert int(high) == int(low) + 1


# --- parsing of answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["oiarz3ndektsv4rrffq69g5fal", "OLARZ3NDEKTSV4RRFFQ69G5FAI", "01aRz3nDeKtSv4rRfFq69g5fA1"]
)
def test_lower_case_and_crockford_aliases_are_read_as_canonical(text: str) -> None:
    assert str(ulid.ID.parse(text)) == "01ARZ3NDEKTSV4RRFFQ69G5FA1"


@pytest.mark.parametrize("text", ["01ARZ3NDEKTSV4RRFFQ69G5FAU", "u1arz3ndektsv4rrffq69g5fav"])
def test_u_is_never_a_digit(text: str) -> None:
    assert (parse_error(text).code, parse_error(text).position) == ("parse.character", text.lower().index("u"))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("notavalidulidnotavalidulid", 0),
        ("DHCKWI*$HF$%MCNSKDW(#@_SCK", 0),
        ("0HCKWI*$HF$%MCNSKDW(#@_SCK", 6),
        ("Z" * 26, 0),
    ],
)
def test_python_ulid_26_invalid_text_of_26_characters_is_refused(text: str, wrong: int) -> None:
    """It read them all, some as the text of another ID, and the last as of the year 10889."""
    error = parse_error(text)
    assert (error.code, error.position) == ("parse.character", wrong)


@each_case("first", "89ABCDEFGHJKMNPQRSTVWXYZ")
def test_first_character_above_7_is_no_ulid(first: str) -> None:
    assert (parse_error(first + "0" * 25).code, parse_error(first + "0" * 25).position) == ("parse.character", 0)


# --- faults of other libraries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [case for case in GO["parse"] if case["Parse_error"] is None and case["ParseStrict_error"]], ids=named
)
def test_invalid_bytes_are_refused_unlike_oklog(case: Case) -> None:
    meant = case["input"].replace("L", "1")
    if set(meant) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ"):
        assert str(ulid.ID.parse(case["input"])) == meant != case["Parse_text"]
    else:
        assert parse_error(case["input"]).code == "parse.character"


@pytest.mark.parametrize("case", [case for case in NPM["decode"] if case["input"].startswith("8")], ids=named)
def test_time_too_large_is_refused_unlike_npm_is_valid(case: Case) -> None:
    assert case["isValid"]
    assert "error" in case["decodeTime"]
    assert parse_error(case["input"]).position == 0


def test_clock_rollback_stays_in_the_last_millisecond_unlike_oklog() -> None:
    trace = GO["monotonic"][0]["trace"]
    assert [one["time_ms"] for one in trace] != sorted(one["time_ms"] for one in trace)
    clock = ManualClock(NOW_MS * MS)
    generator = ulid.Generator(clock=clock)
    last = generator.new()
    for back_ms in (0, 1, HOUR_MS):
        clock.advance(-back_ms * MS)
        one = generator.new()
        assert int(one) == int(last) + 1
        last = one


def test_millisecond_holds_2_to_the_21_ids_unlike_others() -> None:
    assert "overflow" in GO["monotonic"][2]["trace"][1]["error"]
    clock = ManualClock(NOW_MS * MS, auto_advance=False)
    for _ in range(20):
        one = ulid.Generator(clock=clock).new()
        # The top counter bit of the first is 0, so that an increment never carries into the time.
        assert int(one.random, 16) >> 79 == 0
    generator = ulid.Generator(clock=clock, max_wait_ms=0)
    ids = generator.batch(1 << 21)
    assert {one.timestamp_ms for one in (ids[0], ids[-1])} == {NOW_MS}
    assert int(ids[-1]) - int(ids[0]) == (1 << 21) - 1
    with pytest.raises(GenerationError) as caught:
        generator.new()
    assert caught.value.code == "sequence.exhausted"


def test_ids_of_1970_are_random_unlike_python_ulid() -> None:
    assert PYTHON["timestamps"][0]["ok"] == "0" * 25 + "1"
    generator = ulid.Generator()
    assert len({generator.new_at(0) for _ in range(50)}) == 50
