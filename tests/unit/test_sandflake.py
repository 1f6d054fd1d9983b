"""Tests of Sandflakes against the recorded behaviour of celrenheit/sandflake, and its faults."""

from __future__ import annotations

from typing import Any

import pytest

from mintage import sandflake
from mintage.errors import FieldError, ParseError
from mintage.testing import ManualClock
from tests.helpers.cases import each_case
from tests.helpers.vectors import named, vectors

GO = vectors("sandflake")
MS = 1_000_000
NOW_MS = 1_700_000_000_000

Case = dict[str, Any]


def wraps(case: Case) -> bool:
    given = case["input"]
    return bool(
        given["time_ms"] < 0 or given["sequence"] != case["sequence"] or given["random_hex"] != case["random_hex"]
    )


@each_case("case", [case for case in GO["generate"] if not wraps(case)], ids=named)
def test_time_worker_sequence_and_random_make_the_recorded_id(case: Case) -> None:
    # The original misreads a time beyond 2262; the bits contain the given time.
    time_ms = int(case["hex"][:12], 16)
    fields = {"worker": case["worker_hex"], "sequence": case["sequence"], "random": case["random_hex"]}
    one = sandflake.ID.from_parts(timestamp_ms=time_ms, **fields)
    assert (bytes(one).hex(), str(one)) == (case["hex"], case["text"])


@each_case("case", GO["generate"], ids=named)
def test_text_and_bytes_have_the_recorded_fields(case: Case) -> None:
    one = sandflake.ID.parse(case["text"])
    assert bytes(one).hex() == case["hex"]
    assert (one.worker, one.sequence, one.random) == (case["worker_hex"], case["sequence"], case["random_hex"])
    if 0 <= case["time_ms"] == case["input"]["time_ms"]:
        assert one.timestamp_ms == case["time_ms"]


@pytest.mark.parametrize("case", GO["parse"], ids=named)
def test_only_canonical_text_is_read(case: Case) -> None:
    if not case["error"] and case["reencoded"] == case["input"]:
        assert bytes(sandflake.ID.parse(case["input"])).hex() == case["hex"]
        return
    with pytest.raises(ParseError) as caught:
        sandflake.ID.parse(case["input"])
    assert caught.value.code == ("parse.character" if len(case["input"]) == 26 else "parse.length")


def test_text_is_case_sensitive_and_without_aliases_unlike_ulid() -> None:
    text = GO["parse"][0]["input"]
    assert sandflake.ID.parse(text)
    for wrong in (text.lower(), text.replace("0", "O"), text.replace("1", "I"), text.replace("1", "l")):
        with pytest.raises(ParseError):
            sandflake.ID.parse(wrong)


# --- the faults of the original --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [case for case in GO["parse"] if not case["error"] and case["reencoded"] != case["input"]], ids=named
)
def test_noncanonical_last_character_is_refused_unlike_the_original(case: Case) -> None:
    assert bytes(sandflake.ID.parse(case["reencoded"])).hex() == case["hex"]
    with pytest.raises(ParseError) as caught:
        sandflake.ID.parse(case["input"])
    assert caught.value.position == 25


def test_clock_rollback_repeats_nothing_unlike_the_original() -> None:
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


def test_exhausted_sequence_moves_to_the_next_millisecond() -> None:
    theirs = [(step["time_ms_rel"], step["sequence"]) for step in GO["sequence_overflow_same_ms"]["trace"]]
    assert [sequence for _, sequence in theirs][:2] == [GO["max_sequence"], 0]
    assert {time for time, _ in theirs} == {0}
    generator = sandflake.Generator(7, clock=ManualClock(NOW_MS * MS))
    ids = generator.batch((1 << 21) + 1)
    assert (ids[-2].timestamp_ms, ids[-2].sequence) == (NOW_MS, (1 << 21) - 1)
    assert (ids[-1].timestamp_ms, ids[-1].sequence) == (NOW_MS + 1, 0)


@pytest.mark.parametrize("case", [case for case in GO["generate"] if wraps(case)], ids=named)
def test_values_too_large_are_refused_unlike_the_original(case: Case) -> None:
    given = case["input"]
    with pytest.raises(FieldError) as caught:
        sandflake.ID.from_parts(
            timestamp_ms=given["time_ms"],
            worker=given["worker_hex"],
            sequence=given["sequence"],
            random=given["random_hex"],
        )
    assert caught.value.code in {"time.range", "field.range", "field.format"}


def test_live_ids_of_the_original_count_within_a_millisecond() -> None:
    first, second = (sandflake.ID.parse(one["text"]) for one in GO["live_generator"])
    assert (first.sequence, second.sequence) == (0, 1)
    assert (first.worker, first.timestamp_ms) == (second.worker, second.timestamp_ms)
