"""Tests of xids against the recorded behaviour of rs/xid and xid-js, and their faults."""

from __future__ import annotations

from typing import Any

import pytest

from mintage import xid
from mintage.errors import FieldError, ParseError
from mintage.testing import ManualClock
from tests.helpers.cases import each_case
from tests.helpers.processes import Child
from tests.helpers.vectors import named, vectors

RECORDED = vectors("xid")
GO, JS = RECORDED["rs_xid"], RECORDED["npm_xid_js_live"]
SECOND = 1_000_000_000
MAX_COUNTER = 2**24 - 1

Case = dict[str, Any]


def parts(one: xid.ID) -> tuple[int, str, int, int]:
    return one.timestamp_ms // 1000, one.machine, one.pid, one.counter


def wraps(case: Case) -> bool:
    return any(case["input"][name] != case[name] for name in ("time_unix", "pid", "counter"))


@each_case("case", [case for case in GO["generate"] if not wraps(case)], ids=named)
def test_time_machine_pid_and_counter_make_the_recorded_id(case: Case) -> None:
    fields = {"machine": case["machine_hex"], "pid": case["pid"], "counter": case["counter"]}
    one = xid.ID.from_parts(timestamp_ms=case["time_unix"] * 1000, **fields)
    assert (bytes(one).hex(), str(one)) == (case["hex"], case["text"])
    assert one.replace(**fields) == one


@each_case("case", GO["generate"] + GO["raw"], ids=named)
def test_text_and_bytes_have_the_recorded_fields(case: Case) -> None:
    one = xid.ID.parse(case["text"])
    assert bytes(one).hex() == case["hex"]
    assert one == xid.ID.from_bytes(bytes.fromhex(case["hex"]))
    assert parts(one) == (case["time_unix"], case["machine_hex"], case["pid"], case["counter"])


@pytest.mark.parametrize("case", GO["from_bytes"], ids=lambda case: str(case["len"]))
def test_bytes_of_another_length_are_no_id(case: Case) -> None:
    if case["error"] is None:
        assert bytes(xid.ID.from_bytes(bytes(case["len"]))) == bytes(12)
    else:
        with pytest.raises(ParseError):
            xid.ID.from_bytes(bytes(case["len"]))


@pytest.mark.parametrize("case", GO["invalid"], ids=named)
def test_text_refused_by_rs_xid_is_refused(case: Case) -> None:
    if case["FromString_error"] is None:
        assert bytes(xid.ID.parse(case["input"])).hex() == case["FromString_hex"]
        return
    with pytest.raises(ParseError) as caught:
        xid.ID.parse(case["input"])
    assert caught.value.code == ("parse.character" if len(case["input"]) == 20 else "parse.length")


@each_case("last", "123456789abcdefhijklmnopqrstuv")
def test_last_character_with_extra_bits_is_refused(
    last: str,
) -> None:
    with pytest.raises(ParseError) as caught:
        xid.ID.parse("9m4e2mr0ui3e8a215n4" + last)
    assert caught.value.position == 19


def test_ids_sort_as_recorded() -> None:
    ids = [xid.ID.parse(text) for text in GO["sort"]["input"]]
    assert [str(one) for one in sorted(ids)] == GO["sort"]["sorted"] == sorted(GO["sort"]["input"])


# --- faults of other libraries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [case for case in GO["generate"] if wraps(case)], ids=named)
def test_values_too_large_for_their_field_are_refused_unlike_rs_xid(case: Case) -> None:
    given = case["input"]
    with pytest.raises(FieldError) as caught:
        xid.ID.from_parts(
            timestamp_ms=given["time_unix"] * 1000,
            machine=given["machine_hex"],
            pid=given["pid"],
            counter=given["counter"],
        )
    assert caught.value.code in {"time.range", "field.range"}


def test_forked_child_chooses_another_machine_and_pid() -> None:
    generator = xid.Generator()
    own = (generator.new().machine, generator.new().pid)
    child = Child(lambda: [generator.new().machine, generator.new().pid])
    assert tuple(child.result()) != own


def test_exhausted_counter_waits_for_the_next_second_unlike_rs_xid() -> None:
    clock = ManualClock(1_700_000_000 * SECOND)
    generator = xid.Generator(7, clock=clock, max_wait_ms=2_000)
    ids = generator.batch(MAX_COUNTER + 2)
    first, last, after = ids[0], ids[MAX_COUNTER], ids[MAX_COUNTER + 1]
    assert first.timestamp_ms == last.timestamp_ms < after.timestamp_ms
    assert (last.counter - first.counter) % (MAX_COUNTER + 1) == MAX_COUNTER


def test_text_is_written_as_specified_unlike_xid_js() -> None:
    ids = [xid.ID.parse(text) for text in JS["ids"]]
    assert {one.pid for one in ids} == {JS["pid"] % 2**16}
    assert [one.counter - ids[0].counter for one in ids] == [0, 1, 2]
    assert JS["unix_now"] not in {parts(one)[0] for one in ids}
    assert JS["hostname_md5_3"] not in {one.machine for one in ids}
