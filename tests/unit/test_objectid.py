"""Tests of ObjectIds against the recorded behaviour of pymongo and npm bson, and against pymongo itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import bson
import pytest

from mintage import objectid
from mintage.errors import ArgumentError, FieldError, ParseError
from mintage.testing import ManualClock
from tests.helpers.processes import in_child
from tests.helpers.vectors import named, vectors

RECORDED = vectors("objectid")
PY, NPM = RECORDED["pymongo"], RECORDED["npm_bson"]
SECOND = 1_000_000_000

Case = dict[str, Any]


# --- as recorded -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", PY["decode"], ids=named)
def test_text_of_either_case_has_the_fields_of_pymongo(case: Case) -> None:
    one = objectid.ID.parse(case["hex_in"])
    assert (str(one), bytes(one).hex()) == (case["str"], case["binary_hex"])
    assert (one.timestamp_ms, one.process, one.counter) == (
        case["time_unix"] * 1000,
        case["random_hex"],
        case["counter"],
    )
    assert one.time == datetime.fromisoformat(case["generation_time"])


@pytest.mark.parametrize("case", NPM["decode"], ids=named)
def test_text_of_either_case_has_the_fields_of_npm(case: Case) -> None:
    one = objectid.ID.parse(case["hex"])
    assert (str(one), one.timestamp_ms) == (case["toHexString"], case["time_unix"] * 1000)


@pytest.mark.parametrize("case", [case for case in PY["generate"] if "ids" in case], ids=named)
def test_time_process_and_counter_make_the_recorded_ids(case: Case) -> None:
    made = [
        objectid.ID.from_parts(
            timestamp_ms=int(case["time"] * 1000), process=case["random_hex"], counter=(case["counter"] + n) % 2**24
        )
        for n in range(len(case["ids"]))
    ]
    assert [str(one) for one in made] == case["ids"]


@pytest.mark.parametrize("case", PY["from_datetime"], ids=named)
def test_bound_of_a_time_is_that_of_pymongo_or_refused(case: Case) -> None:
    time = datetime.fromisoformat(case["datetime"])
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    if "ok" in case:
        assert str(objectid.min_at(aware)) == case["ok"]
        return
    with pytest.raises(FieldError) as caught:
        objectid.min_at(aware)
    assert caught.value.code == "time.range"


@pytest.mark.parametrize("case", [case for case in PY["generate"] if "error" in case], ids=named)
def test_time_outside_32_bits_is_refused_as_pymongo_does(case: Case) -> None:
    with pytest.raises(FieldError) as caught:
        objectid.ID.from_parts(timestamp_ms=int(case["time"] * 1000))
    assert caught.value.code == "time.range"


@pytest.mark.parametrize(
    "text",
    [text for case in PY["invalid"] if isinstance(text := eval(case["input"]), str)]
    + [case["input"] for case in NPM["isValid"] if isinstance(case["input"], str) and not case["result"]],
    ids=ascii,
)
def test_text_that_either_library_refuses_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        objectid.ID.parse(text)


def test_bytes_of_length_12_are_an_id_and_text_of_12_letters_is_not() -> None:
    known = next(case for case in PY["invalid"] if case["is_valid"])
    assert bytes(objectid.ID(b"foo-bar-quux")).hex() == known["ok"]
    with pytest.raises(ParseError):
        objectid.ID(b"short")


# --- bson ------------------------------------------------------------------------------------------------------------


def test_bson_object_ids_are_converted_both_ways() -> None:
    one = objectid.new()
    known = one.as_bson()
    assert type(known) is bson.ObjectId
    assert (known.binary, str(known), known.generation_time) == (bytes(one), str(one), one.time)
    assert objectid.ID.from_bson(known) == one
    theirs = bson.ObjectId()
    assert str(objectid.ID.from_bson(theirs)) == str(theirs)


@pytest.mark.parametrize("value", [None, b"\0" * 12, "0" * 24, 5], ids=repr)
def test_invalid_bson_object_id_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError):
        objectid.ID.from_bson(value)


@pytest.mark.parametrize("text", ["0123456789abcdef01234567", "FFFFFFFFFFFFFFFFFFFFFFFF"])
def test_ids_sort_as_in_pymongo(text: str) -> None:
    texts = [text, "0" * 24, str(objectid.new())]
    assert [str(one) for one in sorted(map(objectid.ID.parse, texts))] == [
        str(one) for one in sorted(map(bson.ObjectId, texts))
    ]


# --- faults of other libraries ---------------------------------------------------------------------------------------


def test_forked_child_has_its_own_counter_unlike_pymongo() -> None:
    assert PY["fork"]["counter_same_in_child_and_parent_after"]
    # Both go by a clock that stands, so the counter tells its start.
    generator = objectid.Generator(clock=ManualClock(1_700_000_000 * SECOND))
    last = generator.new()
    child = objectid.ID.parse(in_child(lambda: str(generator.new())))
    assert child.process != last.process
    assert child.counter != last.counter + 1
    assert generator.new().counter == last.counter + 1


@pytest.mark.parametrize(
    "case", [case for case in NPM["createFromTime"] if not 0 <= case["time_unix"] < 2**32], ids=named
)
def test_time_outside_32_bits_is_refused_unlike_npm(case: Case) -> None:
    assert "ok" in case
    with pytest.raises(FieldError) as caught:
        objectid.min_at(case["time_unix"] * SECOND)
    assert caught.value.code == "time.range"


@pytest.mark.parametrize("case", [case for case in NPM["createFromTime"] if 0 <= case["time_unix"] < 2**32], ids=named)
def test_bounds_equal_the_ids_of_a_time_of_npm(case: Case) -> None:
    assert str(objectid.min_at(case["time_unix"] * SECOND)) == case["ok"]
