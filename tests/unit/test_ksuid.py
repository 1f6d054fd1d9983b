"""Tests of KSUIDs against the recorded behaviour of segmentio/ksuid, npm, svix-ksuid and cyksuid."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mintage import ksuid
from mintage.errors import FieldError, ParseError
from tests.helpers.cases import each_case
from tests.helpers.vectors import named, vectors

RECORDED = vectors("ksuid")
GO, NPM = RECORDED["segmentio"], RECORDED["npm_ksuid"]
SVIX, CY = RECORDED["svix_ksuid"], RECORDED["cyksuid"]
SECOND = 1_000_000_000
FIRST_S, LAST_S = 1_400_000_000, 1_400_000_000 + 2**32 - 1
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

Case = dict[str, Any]


def is_ksuid(text: str) -> bool:
    """Return True if the text is a KSUID, by an independent definition."""
    return len(text) == 27 and set(text) <= set(BASE62) and text <= GO["max"]


def composed(time_s: int, payload: str) -> ksuid.ID:
    return ksuid.ID.from_parts(timestamp_ms=time_s * 1000, payload=payload)


# --- as recorded -----------------------------------------------------------------------------------------------------


@each_case("case", [case for case in GO["generate"] if not case["error"]], ids=named)
def test_time_and_a_payload_make_the_recorded_id(case: Case) -> None:
    one = ksuid.ID.parse(case["text"])
    assert bytes(one).hex() == case["hex"]
    assert (one.timestamp_ms, one.payload) == (case["time_unix"] * 1000, case["payload_hex"])
    assert composed(case["time_unix"], case["payload_hex"]) == one == ksuid.ID(bytes.fromhex(case["hex"]))


@pytest.mark.parametrize("case", NPM["generate"], ids=lambda case: str(case["time_ms"]))
def test_ids_of_a_time_equal_those_of_npm(case: Case) -> None:
    fits = FIRST_S * 1000 <= case["time_ms"] < (LAST_S + 1) * 1000
    if not fits:
        with pytest.raises(FieldError) as caught:
            ksuid.ID.from_parts(timestamp_ms=case["time_ms"], payload=case["payload_hex"])
        assert (caught.value.code, "error" in case) == ("time.range", True)
        return
    one = ksuid.ID.from_parts(timestamp_ms=case["time_ms"], payload=case["payload_hex"])
    # npm refuses the last second but for its first millisecond, though the format has all of it.
    assert one.timestamp_ms == case["time_ms"] // 1000 * 1000
    if "ok" in case:
        assert (str(one), bytes(one).hex()) == (case["ok"]["string"], case["ok"]["raw"])


@pytest.mark.parametrize("case", [case for case in SVIX["generate"] if case["class"] == "Ksuid"], ids=str)
def test_ids_of_a_time_equal_those_of_svix(case: Case) -> None:
    one = ksuid.ID.from_parts(timestamp_ms=case["time_ms"], payload=case["payload_hex"])
    assert (str(one), bytes(one).hex()) == (case["ok"]["text"], case["ok"]["hex"])
    assert one.timestamp_ms == case["ok"]["timestamp"] * 1000


@each_case("case", SVIX["decode"] + CY["decode"] + NPM["parse"] + GO["parse"], ids=named)
def test_text_is_read_as_in_every_library_or_refused(case: Case) -> None:
    text = case["input"]
    if not is_ksuid(text):
        with pytest.raises(ParseError) as caught:
            ksuid.ID.parse(text)
        assert caught.value.code == ("parse.character" if len(text) == 27 else "parse.length")
        return
    known: Any = case["ok"] if "ok" in case else case["hex"]
    one = ksuid.ID.parse(text)
    assert bytes(one).hex() == (known if isinstance(known, str) else known["hex"])
    assert str(one) == text


def test_smallest_and_largest_ids_are_the_recorded_ones() -> None:
    assert GO["nil"] == NPM["min"] == str(ksuid.min_at(FIRST_S * SECOND))
    assert GO["max"] == NPM["max"] == str(ksuid.max_at(LAST_S * SECOND))
    assert GO["epoch"] == FIRST_S


def test_ids_sort_as_recorded() -> None:
    ids = [ksuid.ID.parse(text) for text in GO["sort"]["input"]]
    assert [str(one) for one in sorted(ids)] == GO["sort"]["sorted"]


@pytest.mark.parametrize("case", [case for case in GO["next_prev"] if "next_hex" in case], ids=lambda case: case["id"])
def test_neighbours_of_an_id_differ_by_1_and_end_at_the_limits(case: Case) -> None:
    number = int(ksuid.ID.parse(case["id"]))
    for step, neighbour in ((1, case["next"]), (-1, case["prev"])):
        if 0 <= number + step < 2**160:
            assert str(ksuid.ID.from_int(number + step)) == neighbour
        else:
            # The reference wraps around.
            assert neighbour in {GO["nil"], GO["max"]}
            with pytest.raises(FieldError):
                ksuid.ID.from_int(number + step)


def test_exhausted_payload_carries_into_the_time_as_recorded() -> None:
    case = next(case for case in GO["next_prev"] if "note" in case)
    one = ksuid.ID.parse(case["id"])
    following = ksuid.ID.from_int(int(one) + 1)
    assert one.payload == "f" * 32
    assert str(following) == case["next"]
    assert following.timestamp_ms - one.timestamp_ms == 1000


def test_sequence_is_the_65536_ids_of_its_seed() -> None:
    known = GO["sequence"]
    ids = ksuid.sequence(ksuid.ID.parse(known["seed"]))
    assert [str(one) for one in ids[:3]] == known["first3"]
    assert [str(ids[3]), str(ids[-1])] == known["bounds_after_3"]
    assert (len(ids), str(ids[-1])) == (known["count_until_error"], known["last"])
    assert all(int(one) + 1 == int(following) for one, following in pairwise(ids))
    assert {one.timestamp_ms for one in ids} == {ksuid.ID.parse(known["seed"]).timestamp_ms}


# --- faults of other libraries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in GO["parse"] + NPM["parse"] + CY["decode"]
        if not is_ksuid(case["input"]) and not case.get("error")
    ],
    ids=named,
)
def test_foreign_character_is_refused_where_others_return_garbage(
    case: Case,
) -> None:
    with pytest.raises(ParseError) as caught:
        ksuid.ID.parse(case["input"])
    assert case["input"][caught.value.position or 0] not in BASE62


@pytest.mark.parametrize(
    "text", ["aWgEPTl1tmebfsQzFP4bxwgy80W", "aWgEPTl1tmebfsQzFP4bxwgy80z", "b" + "0" * 26, "z" * 27]
)
def test_text_above_the_maximum_is_refused_at_its_position(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        ksuid.ID.parse(text)
    at = next(at for at, (wrong, most) in enumerate(zip(text, GO["max"], strict=True)) if wrong > most)
    assert (caught.value.code, caught.value.position) == ("parse.character", at)


def test_text_of_26_characters_is_refused_unlike_svix() -> None:
    case = next(case for case in SVIX["decode"] if len(case["input"]) == 26)
    assert case["ok"]
    with pytest.raises(ParseError) as caught:
        ksuid.ID.parse(case["input"])
    assert caught.value.code == "parse.length"


@pytest.mark.parametrize("time_s", [LAST_S + 1, FIRST_S - 1, 0])
def test_time_outside_2014_to_2150_is_refused_unlike_segmentio(time_s: int) -> None:
    wrapped = [case for case in GO["generate"] if not case["error"] and case["input"]["time_unix"] != case["time_unix"]]
    assert wrapped
    with pytest.raises(FieldError) as caught:
        composed(time_s, "0" * 32)
    assert caught.value.code == "time.range"
