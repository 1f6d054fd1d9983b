"""Sandflakes against the recorded behaviour of celrenheit/sandflake, and its faults by name."""

from __future__ import annotations

from typing import Any

import pytest

from mintage import sandflake
from mintage.errors import FieldError, ParseError
from mintage.testing import ManualClock
from tests.conftest import vectors

GO = vectors("sandflake")
MS = 1_000_000
NOW_MS = 1_700_000_000_000

Case = dict[str, Any]


def named(case: Case) -> str:
    return ascii(case.get("text") or case.get("input"))


def wraps(case: Case) -> bool:
    given = case["input"]
    return bool(
        given["time_ms"] < 0 or given["sequence"] != case["sequence"] or given["random_hex"] != case["random_hex"]
    )


@pytest.mark.parametrize("case", [case for case in GO["generate"] if not wraps(case)], ids=named)
def test_time_worker_sequence_and_random_make_the_recorded_id(case: Case) -> None:
    # The original reads a time beyond 2262 wrongly; what was given is what the bits say.
    time_ms = int(case["hex"][:12], 16)
    fields = {"worker": case["worker_hex"], "sequence": case["sequence"], "random": case["random_hex"]}
    one = sandflake.ID.from_parts(timestamp_ms=time_ms, **fields)
    assert (bytes(one).hex(), str(one)) == (case["hex"], case["text"])


@pytest.mark.parametrize("case", GO["generate"], ids=named)
def test_text_and_bytes_are_taken_apart_as_recorded(case: Case) -> None:
    one = sandflake.ID.parse(case["text"])
    assert bytes(one).hex() == case["hex"]
    assert (one.worker, one.sequence, one.random) == (case["worker_hex"], case["sequence"], case["random_hex"])
    if 0 <= case["time_ms"] == case["input"]["time_ms"]:
        assert one.timestamp_ms == case["time_ms"]


@pytest.mark.parametrize("case", GO["parse"], ids=named)
def test_text_is_read_as_recorded_where_it_is_what_the_id_is_written_as(case: Case) -> None:
    if not case["error"] and case["reencoded"] == case["input"]:
        assert bytes(sandflake.ID.parse(case["input"])).hex() == case["hex"]
        return
    with pytest.raises(ParseError) as caught:
        sandflake.ID.parse(case["input"])
    assert caught.value.code == ("parse.character" if len(case["input"]) == 26 else "parse.length")


def test_it_is_no_ulids_text_the_case_counts_and_no_letter_stands_for_a_digit() -> None:
    text = GO["parse"][0]["input"]
    assert sandflake.ID.parse(text)
    for wrong in (text.lower(), text.replace("0", "O"), text.replace("1", "I"), text.replace("1", "l")):
        with pytest.raises(ParseError):
            sandflake.ID.parse(wrong)


# --- the faults of the original --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [case for case in GO["parse"] if not case["error"] and case["reencoded"] != case["input"]], ids=named
)
def test_four_last_characters_are_one_id_to_the_original_and_only_one_of_them_is_to_us(case: Case) -> None:
    assert bytes(sandflake.ID.parse(case["reencoded"])).hex() == case["hex"]
    with pytest.raises(ParseError) as caught:
        sandflake.ID.parse(case["input"])
    assert caught.value.position == 25


def test_a_clock_that_goes_back_repeats_time_and_sequence_of_the_original_and_ours_never() -> None:
    trace = GO["clock_trace"]["trace"]
    theirs = [(step["time_ms_rel"], step["sequence"]) for step in trace]
    assert len(set(theirs)) < len(theirs)
    clock = ManualClock(NOW_MS * MS)
    generator = sandflake.Generator(7, clock=clock)
    ours = []
    for step in trace:
        clock.set(NOW_MS * MS + step["clock_us"] * 1000)
        one = generator.new()
        ours.append((one.timestamp_ms, one.sequence))
    assert ours == sorted(set(ours))


def test_a_sequence_that_is_used_up_begins_anew_in_the_originals_millisecond_and_ours_in_the_next() -> None:
    theirs = [(step["time_ms_rel"], step["sequence"]) for step in GO["sequence_overflow_same_ms"]["trace"]]
    assert [sequence for _, sequence in theirs][:2] == [GO["max_sequence"], 0]
    assert {time for time, _ in theirs} == {0}
    generator = sandflake.Generator(7, clock=ManualClock(NOW_MS * MS))
    ids = generator.batch((1 << 21) + 1)
    assert (ids[-2].timestamp_ms, ids[-2].sequence) == (NOW_MS, (1 << 21) - 1)
    assert (ids[-1].timestamp_ms, ids[-1].sequence) == (NOW_MS + 1, 0)


@pytest.mark.parametrize("case", [case for case in GO["generate"] if wraps(case)], ids=named)
def test_the_original_cuts_what_is_too_large_for_its_field_and_we_refuse_it(case: Case) -> None:
    given = case["input"]
    with pytest.raises(FieldError) as caught:
        sandflake.ID.from_parts(
            timestamp_ms=given["time_ms"],
            worker=given["worker_hex"],
            sequence=given["sequence"],
            random=given["random_hex"],
        )
    assert caught.value.code in {"time.range", "field.range", "field.format"}


def test_live_ids_of_the_original_count_within_their_millisecond() -> None:
    first, second = (sandflake.ID.parse(one["text"]) for one in GO["live_generator"])
    assert (first.sequence, second.sequence) == (0, 1)
    assert (first.worker, first.timestamp_ms) == (second.worker, second.timestamp_ms)
