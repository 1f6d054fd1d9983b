"""Tests of the keeper: failures of a store, a clock or a callback affect only their own task."""

from __future__ import annotations

import gc
import logging
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from queue import Queue
from typing import TYPE_CHECKING, Any

import pytest

from mintage import Sequence, snowflake
from mintage._core import monotonic_s, start_generation
from mintage._core.sequence import Buffer
from mintage.errors import ConfigError, GenerationError, LeaseError, MintError, StoreError
from mintage.lease import keeper
from mintage.lease.segment_client import SegmentClient
from mintage.process.restore import Verdict
from mintage.rules import LATEST_MS, MAX_INTEGER, MAX_STRIDE
from mintage.store import open_store
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock
from tests.helpers.keepers import keeper_in_place
from tests.helpers.outcomes import code_of
from tests.helpers.processes import Child, in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mintage.rules import Lease, Segment

BOUND = 60
"""Seconds after which something counts as stuck; never waited for otherwise."""
NOW_MS = 1_700_000_000_000
MS = 1_000_000


@pytest.fixture(params=["thread", "inline"])
def any_keeper(request: pytest.FixtureRequest) -> Iterator[keeper.Keeper]:
    with keeper_in_place(keeper.Keeper(inline=request.param == "inline")) as mine:
        yield mine
        mine.close()


class Faulty(MemoryStore):
    """A store whose verbs can be replaced; namespace "well" is not affected."""

    def __init__(self, clock: ManualClock | None = None, **faults: Callable[..., Any]) -> None:
        super().__init__(clock=None if clock is None else lambda: clock.now_ns // MS)
        self.faults = faults

    def _do(self, verb: str, answer: Callable[[], Any]) -> Any:
        fault = self.faults.get(verb)
        return answer() if fault is None else fault(answer)

    def acquire(self, *args: Any, **options: Any) -> Lease:
        lease: Lease = self._do("acquire", lambda: super(Faulty, self).acquire(*args, **options))
        return lease

    def extend(self, *args: Any, **options: Any) -> Lease:
        lease: Lease = self._do("extend", lambda: super(Faulty, self).extend(*args, **options))
        return lease

    def release(self, *args: Any, **options: Any) -> None:
        self._do("release", lambda: super(Faulty, self).release(*args, **options))

    def reserve(self, *args: Any, **options: Any) -> Segment:
        verb = "" if args[0] == "well" else "reserve"
        segment: Segment = self._do(verb, lambda: super(Faulty, self).reserve(*args, **options))
        return segment


def raising(error: BaseException) -> Callable[..., Any]:
    def fault(_: Any) -> Any:
        raise error

    return fault


def changing(**fields: Any) -> Callable[..., Any]:
    return lambda answer: replace(answer(), **fields)


def one_more(answer: Callable[[], Segment]) -> Segment:
    segment = answer()
    return replace(segment, last=segment.last + segment.stride)


class OwnError(StoreError):
    """An error class of a store of a user."""

    def __init__(self) -> None:
        super().__init__("mine", code="store.refused")


class UnshowableError(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


FAULTS: dict[str, Callable[..., Any]] = {
    "TypeError": raising(TypeError("an int is required")),
    "SystemExit": raising(SystemExit(1)),
    "GeneratorExit": raising(GeneratorExit()),
    "no repr": raising(UnshowableError()),
    "own error": raising(OwnError()),
    "nothing": lambda _: None,
    "a tuple": lambda _: (1, 2, 3),
}
SEGMENTS: dict[str, Callable[..., Any]] = {
    "a float": changing(first=1.0),
    "a float at the end": changing(last=100.0),
    "a float as the stride": changing(stride=1.0),
    "a bool": changing(first=True),
    "text": changing(first="1"),
    "nothing in it": changing(last=0),
    "below 0": changing(first=-1, last=-1),
    "above 2^63": changing(first=2**63, last=2**63),
    "no stride": changing(stride=0),
    "a stride too long": changing(stride=2**31, last=1),
    "an end between": changing(stride=2, last=4),
    "too many": changing(last=10**6),
    "one too many": one_more,
    "another namespace": changing(namespace="others"),
    "a float as the floor": changing(floor=1.0),
    "a floor below 0": changing(floor=-1),
    "a floor above 2^63": changing(floor=2**63),
    "text as the serial": changing(serial="1"),
    "a serial below 0": changing(serial=-1),
    "a serial above all times": changing(serial=LATEST_MS + 1),
}
EXTREMES: list[dict[str, int]] = [
    {"last": 1, "stride": MAX_STRIDE},
    {"first": MAX_INTEGER, "last": MAX_INTEGER, "floor": MAX_INTEGER},
    {"serial": 0},
    {"serial": LATEST_MS},
]
LEASES: dict[str, Callable[..., Any]] = {
    "a float": changing(node=1.5),
    "a bool": changing(node=True),
    "text": changing(until_ms="tomorrow"),
    "no token": changing(token=""),
    "bytes as the token": changing(token=b"token"),
    "a number that was not asked for": changing(node=999),
    "another pool": changing(pool="others"),
    "no window": changing(floor_ms=10**15, until_ms=10**15),
    "a window before the epoch": changing(floor_ms=-1),
    "a window past 2^63": changing(until_ms=2**63),
}


def in_the_end(call: Callable[[], Any]) -> Any:
    """Repeat a call until the keeper has waited after a failure; return the result."""
    deadline = time.monotonic() + BOUND
    while True:
        try:
            return call()
        except StoreError:
            if time.monotonic() > deadline:
                raise


@pytest.mark.parametrize("fault", [*FAULTS, *SEGMENTS])
def test_invalid_segment_refuses_only_its_own_sequence(any_keeper: keeper.Keeper, fault: str) -> None:
    if any_keeper.inline and fault in {"SystemExit", "GeneratorExit"}:
        pytest.skip("the caller's own thread: that is the caller's")
    store = Faulty()
    well, ill = Sequence("well", store, step=5), Sequence("ill", store, step=5)
    assert well.next() == 1
    store.faults["reserve"] = {**FAULTS, **SEGMENTS}[fault]
    assert code_of(ill.next) == "store.refused"
    assert ill.buffered == 0
    del store.faults["reserve"]
    # It continues with the next valid answer.
    assert in_the_end(ill.next) > 0
    assert [*range(2, 30)] == [well.next() for _ in range(2, 30)]


@pytest.mark.parametrize("fault", [*SEGMENTS])
def test_invalid_segment_for_a_reservation_is_refused_to_its_caller(fault: str) -> None:
    store = Faulty(reserve=SEGMENTS[fault])
    assert code_of(lambda: Sequence("ill", store, step=5).reserve(100)) == "store.refused"


@pytest.mark.parametrize("fault", [*FAULTS, *LEASES])
def test_invalid_lease_refuses_only_its_own_generator(any_keeper: keeper.Keeper, fault: str) -> None:
    if any_keeper.inline and fault in {"SystemExit", "GeneratorExit"}:
        pytest.skip("the caller's own thread: that is the caller's")
    store = Faulty()
    orders = Sequence("well", store, step=5)
    orders.next()
    store.faults["acquire"] = {**FAULTS, **LEASES}[fault]
    generator = snowflake.Generator(store=store, nodes=range(5, 10))
    assert code_of(generator.new) == "store.refused"
    del store.faults["acquire"]
    in_the_end(generator.new)
    assert [*range(2, 30)] == [orders.next() for _ in range(2, 30)]


@pytest.mark.parametrize(
    "fault",
    [
        *(fault for fault in FAULTS if "Exit" not in fault),
        *LEASES,
        pytest.param(changing(until_ms=NOW_MS), id="an earlier end"),
        pytest.param(changing(floor_ms=5), id="another floor"),
        pytest.param(changing(token="another"), id="another token"),
    ],
)
def test_invalid_extension_leaves_the_window_unchanged(inline: keeper.Keeper, fault: Any) -> None:
    clock = ManualClock(NOW_MS * MS)
    store = Faulty(clock)
    generator = snowflake.Generator(store=store, clock=clock, nodes=range(1), span_ms=1_000, max_wait_ms=0)
    first = generator.new()
    (before,) = store.list_leases()
    store.faults["extend"] = LEASES.get(fault) or FAULTS.get(fault) or fault
    clock.advance(900 * MS)
    assert inline.step() == 0
    assert generator.new() > first
    clock.advance(200 * MS)
    assert code_of(generator.new) == "store.refused"
    del store.faults["extend"]
    # Whatever the effect of the invalid answers, the holder repeats the same proposal.
    assert snowflake.DEFAULT.parse(generator.new()).timestamp_ms >= before.until_ms
    assert [record.node for record in store.list_leases()] == [0]


def test_refusal_after_a_lost_answer_keeps_the_proposed_token(inline: keeper.Keeper) -> None:
    clock = ManualClock(NOW_MS * MS)
    store = Faulty(clock)
    generator = snowflake.Generator(store=store, clock=clock, nodes=range(1), span_ms=1_000, max_wait_ms=0)
    generator.new()
    (before,) = store.list_leases()

    def done_and_lost(answer: Callable[[], Any]) -> Any:
        answer()
        raise StoreError("away", code="store.unavailable")

    clock.advance(900 * MS)
    for fault in (done_and_lost, raising(StoreError("not now", code="store.refused"))):
        store.faults["extend"] = fault
        assert inline.step() == 0
    (extended,) = store.list_leases()
    assert extended.token != before.token
    del store.faults["extend"]
    clock.advance(200 * MS)
    # With a token other than that of the store, the lease would count as lost.
    assert snowflake.DEFAULT.parse(generator.new()).timestamp_ms >= before.until_ms
    assert [record.node for record in store.list_leases()] == [0]


def test_refused_extension_proposes_a_new_token_next_time(inline: keeper.Keeper) -> None:
    proposed: list[str] = []

    class Refusing(MemoryStore):
        def extend(self, lease: Lease, *, next_token: str, **_: Any) -> Lease:
            proposed.append(next_token)
            raise StoreError("not now", code="store.refused")

    clock = ManualClock(NOW_MS * MS)
    generator = snowflake.Generator(store=Refusing(clock=lambda: clock.now_ns // MS), clock=clock, span_ms=1_000)
    generator.new()
    clock.advance(900 * MS)
    for _ in range(3):
        assert inline.step() == 0
    assert len(set(proposed)) == 3


def test_refusal_other_than_lease_lost_keeps_the_lease(inline: keeper.Keeper) -> None:
    clock = ManualClock(NOW_MS * MS)
    store = Faulty(clock, extend=raising(LeaseError("the clock is off", code="lease.clock")))
    generator = snowflake.Generator(store=store, clock=clock, nodes=range(1), span_ms=1_000, max_wait_ms=0)
    generator.new()
    clock.advance(900 * MS)
    assert inline.step() == 0
    del store.faults["extend"]
    clock.advance(200 * MS)
    assert snowflake.DEFAULT.parse(generator.new()).node == 0


def test_extension_to_the_current_end_is_accepted(inline: keeper.Keeper, caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock(NOW_MS * MS)
    store = Faulty(clock)
    generator = snowflake.Generator(store=store, clock=clock, span_ms=1_000)
    generator.new()
    (before,) = store.list_leases()
    store.faults["extend"] = changing(until_ms=before.until_ms)
    clock.advance(900 * MS)
    assert inline.step() == 0
    assert caplog.messages == []


def test_error_for_an_invalid_answer_shows_the_request(inline: keeper.Keeper) -> None:
    clock = ManualClock(NOW_MS * MS)
    store = Faulty(clock, acquire=changing(node=999))
    generator = snowflake.Generator(store=store, clock=clock, nodes=range(5, 10), span_ms=1_000, max_wait_ms=0)
    with pytest.raises(StoreError, match=r"invalid answer to acquire\(nodes=range\(5, 10\)\): Lease\("):
        generator.new()
    del store.faults["acquire"]
    generator.new()
    store.faults["extend"] = changing(node=999)
    clock.advance(2_000 * MS)
    with pytest.raises(StoreError, match=r"invalid answer to extend\(Lease\(.*\)\): Lease\("):
        generator.new()


def test_lease_is_extended_after_a_third_of_its_span(inline: keeper.Keeper) -> None:
    clock = ManualClock(NOW_MS * MS)
    store = Faulty(clock)
    generator = snowflake.Generator(store=store, clock=clock, span_ms=3_000)
    generator.new()
    clock.advance(999 * MS)
    assert inline.step() == pytest.approx(0.001)
    clock.advance(1 * MS)
    assert inline.step() == 0
    assert [record.until_ms for record in store.list_leases()] == [NOW_MS + 4_000]


def test_longer_span_than_asked_is_extended_after_its_third(inline: keeper.Keeper) -> None:
    clock = ManualClock(NOW_MS * MS)
    store = Faulty(clock)
    generator = snowflake.Generator(store=store, clock=clock, nodes=range(300, 301), span_ms=3_000)
    generator.new()
    assert [record.until_ms for record in store.list_leases()] == [NOW_MS + 9_000]
    clock.advance(2_999 * MS)
    assert inline.step() == pytest.approx(0.001)
    clock.advance(1 * MS)
    assert inline.step() == 0
    assert [record.until_ms for record in store.list_leases()] == [NOW_MS + 12_000]


def test_lease_is_taken_again_only_on_demand_after_release_all(inline: keeper.Keeper) -> None:
    given: list[str] = []

    def noted(answer: Callable[[], Any]) -> None:
        given.append("back")
        answer()

    clock = ManualClock(NOW_MS * MS)
    store = Faulty(clock, release=noted)
    generator = snowflake.Generator(store=store, clock=clock, nodes=range(1), span_ms=1_000, max_wait_ms=0)
    minted = snowflake.DEFAULT.parse(generator.new()).timestamp_ms
    assert any(task.has_resources() for task in inline._kept())
    for _ in range(2):
        inline.release_all()
        assert inline.step() > 0
        assert not any(task.has_resources() for task in inline._kept())
    assert given == ["back"]
    (record,) = store.list_leases()
    # The next holder starts after the minted IDs.
    assert (record.token, record.until_ms) == (None, minted + 1)


def test_generator_closes_even_if_its_lease_cannot_be_released(inline: keeper.Keeper) -> None:
    asked: list[str] = []

    def away(_: Any) -> None:
        asked.append("release")
        raise StoreError("away", code="store.unavailable")

    generator = snowflake.Generator(store=Faulty(release=away))
    generator.new()
    generator.close()
    assert asked == ["release"]
    assert inline.step() > 0


@pytest.mark.parametrize("end", ["closed", "at rest"])
@pytest.mark.parametrize("why", ["its lease is lost", "the store is away"])
def test_generator_with_nothing_to_release_closes_without_the_store(
    inline: keeper.Keeper, monkeypatch: pytest.MonkeyPatch, why: str, end: str
) -> None:
    asked: list[str] = []
    clock = ManualClock(NOW_MS * MS)
    store = Faulty(clock, release=lambda _: asked.append("release"))
    generator = snowflake.Generator(store=store, clock=clock, nodes=range(1), span_ms=1_000)
    generator.new()
    clock.advance(900 * MS)
    if why == "its lease is lost":
        store.revoke("snowflake", 0)
        assert inline.step() == 0
        assert inline.step() > 0, "what is lost is not asked for again"
    else:
        store.faults["extend"] = raising(StoreError("away", code="store.unavailable"))
        # The pause after it lasts until the generator ends, however slow the machine is.
        now_s = monotonic_s()
        monkeypatch.setattr("mintage.lease.keeper.monotonic_s", lambda: now_s)
        assert inline.step() == 0
    if end == "closed":
        generator.close()
    else:
        inline.release_all()
    assert asked == []


def test_caller_waiting_for_a_lease_is_told_of_the_close(any_keeper: keeper.Keeper) -> None:
    if any_keeper.inline:
        pytest.skip("one thread does all")
    asked, released = threading.Event(), threading.Event()

    def none_free(_: Any) -> Any:
        asked.set()
        raise LeaseError("all are held", code="lease.none_free", retry_after_ms=1)

    store = Faulty(acquire=none_free, release=lambda _: released.set())
    generator = snowflake.Generator(store=store, max_wait_ms=BOUND * 1000)
    with ThreadPoolExecutor(1) as pool:
        minted = pool.submit(generator.new)
        assert asked.wait(BOUND)
        generator.close()
        del store.faults["acquire"]
        with pytest.raises(GenerationError) as caught:
            minted.result(BOUND)
    assert caught.value.code == "generator.closed"
    assert store.list_leases() == []
    assert not released.is_set()


def test_failing_callback_does_not_stop_the_others(any_keeper: keeper.Keeper, caplog: pytest.LogCaptureFixture) -> None:
    store = Faulty()
    supply = SegmentClient(store, "orders", Buffer(), min_step=5, max_step=5, target_ms=1000)
    told = threading.Event()

    def fail() -> None:
        raise SystemExit

    supply._callbacks += [fail, fail]
    supply.request(1, told.set)
    while any_keeper.inline and not told.is_set():
        any_keeper.step()
    assert told.wait(BOUND)
    assert Sequence("orders", store).next() == 6
    (record,) = caplog.records
    assert (record.getMessage(), record.exc_info and record.exc_info[0]) == (
        "mintage: a callback about a segment failed",
        SystemExit,
    )


@pytest.mark.parametrize(
    "failure",
    [
        OwnError(),
        LeaseError("later", code="lease.none_free", retry_after_ms=7),
        ConfigError("no", code="config.pool"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_each_caller_gets_its_own_error_object(failure: MintError) -> None:
    failure.__cause__ = OSError("the driver's")
    one, other = keeper.as_fresh_error(failure, 1.0), keeper.as_fresh_error(failure, 1.0)
    assert len({id(failure), id(one), id(other)}) == 3
    for error in (one, other):
        assert (type(error), error.args, error.__dict__) == (type(failure), failure.args, failure.__dict__)
        assert error.__cause__ is failure.__cause__


@pytest.mark.parametrize(("pause_s", "wait_ms"), [(0.0, 1), (0.0001, 1), (0.25, 250)])
def test_unavailable_store_is_tried_again_after_the_pause(pause_s: float, wait_ms: int) -> None:
    error = keeper.as_fresh_error(StoreError("away", code="store.unavailable", retry_after_ms=9), pause_s)
    assert isinstance(error, StoreError)
    assert error.retry_after_ms == wait_ms


def test_brief_outage_is_invisible_to_a_caller_that_may_wait(inline: keeper.Keeper) -> None:
    answers = [StoreError("away", code="store.unavailable")]

    def away_once(answer: Callable[[], Any]) -> Any:
        if answers:
            raise answers.pop()
        return answer()

    assert Sequence("orders", Faulty(reserve=away_once), max_wait_ms=BOUND * 1000).next() == 1
    assert not answers


def test_caller_during_a_refused_task_back_off_gets_the_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with keeper_in_place(keeper.Keeper()), monkeypatch.context() as patch:
        patch.setattr("mintage.lease.keeper.monotonic_s", lambda: 1000.0)
        supply = SegmentClient(
            Faulty(reserve=raising(OwnError())), "orders", Buffer(), min_step=5, max_step=5, target_ms=1000
        )
        for max_wait_ms in (BOUND * 1000, 0):
            assert code_of(partial(supply.wait, max_wait_ms)) == "store.refused"


def test_caller_during_a_store_back_off_gets_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with keeper_in_place(keeper.Keeper()), monkeypatch.context() as patch:
        patch.setattr("mintage.lease.keeper.monotonic_s", lambda: 1000.0)
        store = Faulty(reserve=raising(StoreError("it is away", code="store.unavailable")))
        supply = SegmentClient(store, "orders", Buffer(), min_step=5, max_step=5, target_ms=1000)
        told = threading.Event()
        supply.request(1, told.set)
        assert told.wait(BOUND)
        with pytest.raises(StoreError, match=r"^it is away$") as caught:
            supply.wait(0)
        assert caught.value.retry_after_ms in range(25, 51)


@pytest.mark.parametrize(
    ("max_wait_ms", "patience_ms", "wait_s"), [(0, 0, 0.0), (1000, 0, 1.0), (1000, 5000, 5.0), (5000, 1000, 5.0)]
)
def test_silent_store_is_waited_for_up_to_the_timeout(
    monkeypatch: pytest.MonkeyPatch, max_wait_ms: int, patience_ms: int, wait_s: float
) -> None:
    mine, now_s = keeper.Keeper(), 1000.0

    def wait(_: object, timeout_s: float) -> None:
        nonlocal now_s
        assert timeout_s > 0
        now_s += max(timeout_s, 1e-6)

    monkeypatch.setattr("mintage.lease.keeper.monotonic_s", lambda: now_s)
    monkeypatch.setattr(mine, "wake", lambda: None)
    monkeypatch.setattr(mine, "wait", wait)
    with keeper_in_place(mine):
        supply = SegmentClient(MemoryStore(), "orders", Buffer(), min_step=5, max_step=5, target_ms=1000)
        with pytest.raises(StoreError, match=f"no answer in {max_wait_ms} ms") as caught:
            supply._wait(lambda: None, max_wait_ms, patience_ms)
        assert (caught.value.code, caught.value.retry_after_ms) == ("store.unavailable", 1000)
        assert now_s - 1000.0 == pytest.approx(wait_s, abs=1e-5)


@pytest.mark.parametrize(("code", "is_away"), [("store.unavailable", True), ("store.refused", False)])
def test_outage_pauses_all_tasks_and_a_refusal_only_its_own(
    inline: keeper.Keeper, monkeypatch: pytest.MonkeyPatch, code: str, *, is_away: bool
) -> None:
    monkeypatch.setattr("mintage.lease.keeper.monotonic_s", lambda: 1000.0)
    store = Faulty(reserve=raising(StoreError("not now", code=code)))
    supply = SegmentClient(store, "orders", Buffer(), min_step=5, max_step=5, target_ms=1000)
    supply.request(1, lambda: None)
    inline.step()
    assert (inline.pause_s(store) > 0, inline.pause_s(supply) > 0) == (is_away, not is_away)


def test_unknown_failure_of_a_store_is_named(inline: keeper.Keeper, caplog: pytest.LogCaptureFixture) -> None:
    fault = TypeError("an int is required")
    with pytest.raises(StoreError, match=r"^memory:.*: TypeError\('an int is required'\)$") as caught:
        Sequence("orders", Faulty(reserve=raising(fault)), max_wait_ms=0).next()
    assert (caught.value.code, caught.value.__cause__) == ("store.refused", fault)
    assert [(record.getMessage(), record.exc_info and record.exc_info[1]) for record in caplog.records] == [
        ("mintage: a store failed in an unknown way", fault)
    ]


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "answered"])
def test_child_ignores_answers_and_errors_of_its_parent(*, is_refused: bool) -> None:
    supply = SegmentClient(MemoryStore(), "orders", Buffer(), min_step=5, max_step=5, target_ms=1000)
    epochs: list[int] = []

    def ready() -> str:
        if epochs:
            return "the child's"
        # As a fork in the middle of this call does in the child.
        epochs.append(start_generation())
        if is_refused:
            raise LeaseError("the parent's", code="lease.lost")
        return "the parent's"

    assert Child(lambda: supply._wait(ready, 0)).result() == "the child's"


def test_unused_sequence_fetches_nothing(inline: keeper.Keeper) -> None:
    supply = SegmentClient(MemoryStore(), "orders", Buffer(), min_step=5, max_step=5, target_ms=1000)
    supply.attach()
    assert inline.step() > 0


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("fields", EXTREMES, ids=str)
def test_smallest_and_largest_valid_integers_are_handed_out(fields: dict[str, int]) -> None:
    orders = Sequence("orders", Faulty(reserve=changing(**fields)), step=1)
    assert orders.next() == fields.get("first", 1)


@pytest.mark.usefixtures("any_keeper")
def test_non_blocking_caller_finds_what_was_fetched_meanwhile() -> None:
    assert in_the_end(Sequence("orders", MemoryStore(), max_wait_ms=0).next) == 1


def test_child_has_no_keeper_of_its_parent() -> None:
    keeper.current()

    def keepers() -> int:
        keeper.current()
        return len(keeper._keepers)

    assert in_child(keepers) == 1


@pytest.mark.usefixtures("inline")
def test_permanent_error_is_not_retried() -> None:
    asked: list[str] = []

    def none_at_all(_: Any) -> None:
        asked.append("reserve")
        raise ConfigError("no such namespace", code="config.name")

    orders = Sequence("orders", Faulty(reserve=none_at_all), max_wait_ms=BOUND * 1000)
    assert code_of(orders.next) == "config.name"
    assert asked == ["reserve"]


@pytest.mark.usefixtures("inline")
def test_longest_valid_window_is_minted_in() -> None:
    assert snowflake.Generator(store=Faulty(acquire=changing(until_ms=MAX_INTEGER))).new() > 0


def test_exhausted_namespace_is_asked_once(inline: keeper.Keeper) -> None:
    asked: list[str] = []

    def none_left(_: Any) -> None:
        asked.append("reserve")
        raise GenerationError("none is left", code="namespace.exhausted")

    orders = Sequence("orders", Faulty(reserve=none_left))
    assert [code_of(orders.next) for _ in range(3)] == ["namespace.exhausted"] * 3
    assert asked == ["reserve"]


def test_retry_leaves_the_random_numbers_of_the_program_as_they_are(inline: keeper.Keeper) -> None:
    # Hypothesis warns of a thread that draws from them while it draws itself.
    before = random.getstate()
    store = Faulty(reserve=raising(StoreError("away", code="store.unavailable")))
    with pytest.raises(StoreError):
        Sequence("orders", store, max_wait_ms=0).next()
    assert inline.pause_s(store) > 0
    assert random.getstate() == before


@pytest.mark.parametrize(("drawn", "share"), [(min, 0.5), (max, 1.0)])
def test_processes_that_failed_together_retry_at_different_times(
    inline: keeper.Keeper, monkeypatch: pytest.MonkeyPatch, drawn: Callable[..., float], share: float
) -> None:
    monkeypatch.setattr("mintage.lease.keeper.monotonic_s", lambda: 1000.0)
    monkeypatch.setattr("mintage.process.jitter.uniform", lambda *bounds: drawn(bounds))
    monkeypatch.setattr(keeper, "FIRST_PAUSE_S", 1.0)
    store = Faulty(reserve=raising(StoreError("away", code="store.unavailable")))
    with pytest.raises(StoreError) as caught:
        Sequence("orders", store, max_wait_ms=0).next()
    assert (caught.value.retry_after_ms, inline.pause_s(store)) == (1000 * share, share)


def test_exception_raised_in_the_callers_thread_reaches_it(inline: keeper.Keeper) -> None:
    with pytest.raises(KeyboardInterrupt):
        Sequence("orders", Faulty(reserve=raising(KeyboardInterrupt())), step=3).next()


@pytest.mark.parametrize(("retry_after_ms", "tries"), [(0, 2), (1000, 2), (1001, 1), (None, 1)])
def test_refusal_shorter_than_the_callers_wait_is_waited_out(
    inline: keeper.Keeper, monkeypatch: pytest.MonkeyPatch, retry_after_ms: int | None, tries: int
) -> None:
    monkeypatch.setattr("mintage.lease.keeper.monotonic_s", lambda: 1000.0)
    asked: list[str] = []

    def none_free_once(answer: Callable[[], Any]) -> Any:
        asked.append("acquire")
        if len(asked) == 1:
            raise LeaseError("all are held", code="lease.none_free", retry_after_ms=retry_after_ms)
        return answer()

    generator = snowflake.Generator(store=Faulty(acquire=none_free_once), max_wait_ms=1000)
    with suppress(LeaseError):
        generator.new()
    assert len(asked) == tries


@pytest.mark.parametrize("is_sure", [False, True])
def test_non_blocking_caller_learns_that_its_buffer_was_discarded(*, is_sure: bool) -> None:
    def use() -> list[str]:
        here = keeper.Keeper(inline=True)
        keeper.use(here)
        supply = SegmentClient(MemoryStore(), "orders", Buffer(), min_step=5, max_step=5, target_ms=1000)
        told: list[str] = []
        supply.request(1, lambda: told.append("told"))
        here.start_over(is_sure=is_sure)
        here.step()
        return told

    assert in_child(use) == ["told"]


def test_child_requests_nothing_that_only_its_parent_waits_for(inline: keeper.Keeper) -> None:
    asked: list[str] = []

    def noted(answer: Callable[[], Any]) -> Any:
        asked.append("reserve")
        return answer()

    supply = SegmentClient(Faulty(reserve=noted), "orders", Buffer(), min_step=5, max_step=5, target_ms=1000)
    supply.request(1, lambda: None)

    def live() -> list[str]:
        mine = keeper.Keeper(inline=True)
        keeper.use(mine)
        supply.attach()
        mine.step()
        return asked

    assert in_child(live) == []
    inline.step()
    assert asked == ["reserve"]


def test_keeper_keeps_no_reference_to_dead_tasks_and_stores(inline: keeper.Keeper) -> None:
    for _ in range(5):
        away = Faulty(reserve=raising(StoreError("away", code="store.unavailable")))
        supply = SegmentClient(away, "orders", Buffer(), min_step=5, max_step=5, target_ms=1000)
        assert code_of(partial(supply.wait, 0)) == "store.unavailable"
        del away, supply
        gc.collect()
        assert not inline._kept()
    assert (len(inline._tasks), len(inline._pauses)) == (0, 1)


@pytest.mark.parametrize("verb", ["acquire", "extend"])
@pytest.mark.parametrize(("taken_s", "outcome"), [(0.9, "lease.clock"), (6.0, "an ID")])
def test_clock_is_compared_with_the_store_only_by_fast_answers(
    inline: keeper.Keeper, monkeypatch: pytest.MonkeyPatch, verb: str, taken_s: float, outcome: str
) -> None:
    now_s, clock = 1000.0, ManualClock(NOW_MS * MS)
    monkeypatch.setattr("mintage.lease.lease_client.monotonic_s", lambda: now_s)

    def paused(answer: Callable[[], Lease]) -> Lease:
        nonlocal now_s
        now_s += taken_s
        store.faults.clear()
        clock.advance(6_000 * MS)
        return answer()

    store = Faulty(clock)
    generator = snowflake.Generator(store=store, clock=clock, span_ms=10_000, max_wait_ms=30_000)
    if verb == "extend":
        generator.new()
        clock.advance(10_000 * MS)
    store.faults[verb] = paused
    if outcome == "an ID":
        assert generator.new()
    else:
        with pytest.raises(LeaseError) as caught:
            generator.new()
        assert caught.value.code == outcome


def test_failing_clock_affects_only_its_own_generator(any_keeper: keeper.Keeper) -> None:
    is_broken = False

    def broken() -> int:
        if is_broken:
            raise SystemExit
        return NOW_MS * MS

    clock = ManualClock(NOW_MS * MS)
    store = Faulty(clock)
    ill = snowflake.Generator(store=store, clock=broken)
    ill.new()
    is_broken = True
    well = snowflake.Generator(store=store, clock=clock, span_ms=1_000)
    first = well.new()
    clock.advance(3600 * 1000 * MS)
    assert well.new() > first
    with pytest.raises(SystemExit):
        ill.new()


def test_failure_of_the_log_does_not_stop_the_keeper(any_keeper: keeper.Keeper) -> None:
    class Broken(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            raise RuntimeError("the disk is full")

    log, handler = logging.getLogger("mintage"), Broken()
    log.addHandler(handler)
    try:
        store = Faulty(reserve=raising(StoreError("no", code="store.refused")))
        orders = Sequence("orders", store)
        assert code_of(orders.next) == "store.refused"
        store.faults.clear()
        assert in_the_end(orders.next) == 1
    finally:
        log.removeHandler(handler)


def test_unhashable_store_is_accepted(any_keeper: keeper.Keeper) -> None:
    class Equal(Faulty):
        def __eq__(self, _: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    away = StoreError("it is away", code="store.unavailable")
    store = Equal(reserve=raising(away))
    orders = Sequence("orders", store, max_wait_ms=0)
    assert code_of(orders.next) == "store.unavailable"
    store.faults.clear()
    patient = Sequence("orders", store, max_wait_ms=BOUND * 1000)
    assert patient.next() > 0


def test_failed_release_of_one_generator_affects_no_other(any_keeper: keeper.Keeper) -> None:
    class Ill(Faulty):
        def release(self, *_: Any, **__: Any) -> None:
            raise SystemExit

    store = Ill()
    snowflake.Generator(store=store).new()
    if not any_keeper.inline:
        any_keeper.wake()
    orders = Sequence("orders", store, step=3, max_wait_ms=BOUND * 1000)
    if any_keeper.inline:
        with pytest.raises(SystemExit):
            orders.next()
    assert [orders.next() for _ in range(29)] == [*range(1, 30)]


def test_closed_keeper_releases_leases_and_segments(any_keeper: keeper.Keeper) -> None:
    store = MemoryStore()
    generator, orders = snowflake.Generator(store=store), Sequence("orders", store, step=10)
    generator.new()
    assert orders.next() == 1
    any_keeper.close()
    assert [record.token for record in store.list_leases()] == [None]
    assert [record.high_water for record in store.list_namespaces()] == [1]


GREENLETS = """
import sys
from concurrent.futures import ThreadPoolExecutor
library, moment, store = sys.argv[1:]
if library == "gevent":
    from gevent import monkey, pool
    patch, Pool = monkey.patch_all, pool.Pool
else:
    import eventlet
    patch, Pool = eventlet.monkey_patch, eventlet.GreenPool
if moment == "before":
    patch()
from mintage import Sequence, sno
from mintage.lease import request
from mintage.platform import vm_generation
from pathlib import Path
# As where the kernel has a driver for its virtual machine's generations.
vm_generation._DRIVER = Path("/")
if moment == "after":
    patch()
generator = sno.Generator(store=store or None, max_wait_ms=60_000)
orders = Sequence("orders", store or None, step=50, max_wait_ms=60_000)
def mint(_):
    return generator.new(), orders.next()
minted = list(Pool(200).imap(mint, range(200)))
assert len({each for pair in minted for each in pair}) == 400
print("done", len(minted))
"""


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("library", ["gevent", "eventlet"])
@pytest.mark.parametrize("where", ["registry", "memory:", "sqlite"])
def test_greenlets_mint_together(tmp_path: Path, library: str, moment: str, where: str) -> None:
    # Not imported here: they change how the whole process forks.
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    store = {"registry": "", "sqlite": f"sqlite:///{tmp_path}/ids.db"}.get(where, where)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GREENLETS, library, moment, store],
        env={**os.environ, "MINTAGE_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        check=True,
        timeout=BOUND,
    )
    assert done.stdout == b"done 200\n"


FORK_IN_A_VERB = """
import os, sys
from gevent import monkey, spawn
monkey.patch_all()
import time
from mintage import snowflake
from mintage.store.memory import MemoryStore

class Slow(MemoryStore):
    asked = []  # the process of each verb that began
    is_asked = False

    def extend(self, *args, **options):
        self.asked.append(os.getpid())
        self.is_asked = True
        time.sleep(0.2)  # the other greenlets run, as where a socket is waited for
        self.is_asked = False
        return super().extend(*args, **options)

store, parent = Slow(), os.getpid()
generator = snowflake.Generator(store=store, span_ms=1_000, max_wait_ms=60_000)
def mint_on():
    while os.getpid() == parent and len(store.asked) < 3:  # greenlets go on in a child
        generator.new()
        time.sleep(0.01)
minting = spawn(mint_on)
while not store.is_asked:
    time.sleep(0.001)
pid = os.fork()
if pid == 0:
    was_asked = store.is_asked
    time.sleep(1.5)  # the parent's keeper would extend again
    os._exit(1 if was_asked else 2 if set(store.asked) != {parent} else 0)
minting.join()
print("done", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_forking_greenlet_waits_for_the_verb_of_another(tmp_path: Path) -> None:
    if find_spec("gevent") is None:
        pytest.skip("gevent is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK_IN_A_VERB],
        env={**os.environ, "MINTAGE_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        check=True,
        timeout=BOUND,
    )
    assert done.stdout == b"done 0\n"


def test_restore_check_runs_without_the_condition(any_keeper: keeper.Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    looking, go = threading.Event(), threading.Event()

    def look() -> Verdict:
        looking.set()
        assert go.wait(BOUND)
        return Verdict.SAME

    monkeypatch.setattr(any_keeper.detector, "check", look)
    with ThreadPoolExecutor(1) as pool:
        looked = pool.submit(any_keeper.check_restored)
        assert looking.wait(BOUND)
        assert any_keeper.condition.hold(0)
        go.set()
        looked.result(BOUND)


def test_wait_for_a_condition_held_by_another_thread_times_out(
    any_keeper: keeper.Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator, orders = snowflake.Generator(store=MemoryStore()), Sequence("orders", MemoryStore())
    taken, go = threading.Event(), threading.Event()

    def keep() -> None:
        with any_keeper.hold():
            taken.set()
            assert go.wait(BOUND)

    with ThreadPoolExecutor(1) as pool:
        kept = pool.submit(keep)
        assert taken.wait(BOUND)
        monkeypatch.setattr(keeper, "LOCK_S", 0.01)
        for call in (generator.new, orders.next, any_keeper.release_all, any_keeper.wake):
            with pytest.raises(StoreError, match="a thread of this process has been stuck for 0 s") as caught:
                call()
            assert (caught.value.code, caught.value.retry_after_ms) == ("store.unavailable", 1000)
        go.set()
        kept.result(BOUND)
    monkeypatch.undo()
    assert orders.next() == 1


def test_wait_that_cannot_reacquire_the_condition_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = keeper.Keeper()
    taken, go = threading.Event(), threading.Event()

    def keep() -> None:
        with mine.hold():
            # Not before it is held: a slow machine may take longer to come here.
            monkeypatch.setattr(keeper, "LOCK_S", 0.01)
            mine.condition.notify_all()
            taken.set()
            assert go.wait(BOUND)

    with ThreadPoolExecutor(1) as pool:
        with mine.hold():
            kept = pool.submit(keep)
            with pytest.raises(StoreError, match="has been stuck"):
                mine.wait(mine.condition, BOUND)
        assert taken.wait(BOUND)
        go.set()
        kept.result(BOUND)
    with mine.hold():
        pass


@pytest.mark.parametrize("what", ["generator", "sequence", "keeper"])
def test_hanging_store_does_not_delay_shutdown(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(keeper, "SHUTDOWN_TIMEOUT_S", 0.01)
    asked, go = threading.Event(), threading.Event()

    def hang(answer: Callable[[], Any]) -> Any:
        asked.set()
        assert go.wait(BOUND)
        return answer()

    store = Faulty(acquire=hang, reserve=hang)
    generator = snowflake.Generator(store=store, max_wait_ms=BOUND * 1000)
    orders = Sequence("orders", store, max_wait_ms=BOUND * 1000)
    with keeper_in_place(keeper.Keeper()) as mine:
        try:
            with ThreadPoolExecutor(1) as pool:
                minted = pool.submit(orders.next if what == "sequence" else generator.new)
                assert asked.wait(BOUND)
                {"generator": generator.close, "sequence": orders.close, "keeper": mine.release_all}[what]()
                assert not minted.done()
                go.set()
                assert (minted.exception(BOUND) is None) == (what == "keeper")
            if what == "generator":
                # The keeper releases the late grant.
                deadline = time.monotonic() + BOUND
                while [record.token for record in store.list_leases()] != [None]:
                    assert time.monotonic() < deadline
        finally:
            go.set()


PROCESS = """
import sys, threading
from mintage import Sequence, snowflake
generator = snowflake.Generator(store=sys.argv[1])
orders = Sequence("orders", sys.argv[1], step=10)
generator.new()
orders.next()
if sys.argv[2] == "beside a thread":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


@pytest.mark.parametrize("how", ["alone", "beside a thread"])
def test_ending_process_releases_everything(tmp_path: Path, how: str) -> None:
    url = f"sqlite:///{tmp_path}/ids.db"
    subprocess.run([sys.executable, "-c", PROCESS, url, how], check=True, timeout=BOUND)
    store = open_store(url)
    assert [record.token for record in store.list_leases()] == [None]
    assert [record.high_water for record in store.list_namespaces()] == [1]
    store.close()


BUSY = """
import sys, threading
from mintage import snowflake
from mintage.errors import GenerationError
generator = snowflake.Generator(store=sys.argv[1])
last = [generator.new()]
def mint():
    try:
        while True:
            last[0] = generator.new()
    except GenerationError:
        pass
threading.Thread(target=mint, daemon=True).start()
"""


def test_process_ending_beside_a_minting_thread_releases_all(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ids.db"
    for _ in range(5):
        subprocess.run([sys.executable, "-c", BUSY, url], check=True, timeout=BOUND)
    with open_store(url) as store:
        assert {record.token for record in store.list_leases()} == {None}


CHILDREN = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from mintage import snowflake

def mint(url):
    return snowflake.Generator(store=url).new()

if __name__ == "__main__":
    url, how = sys.argv[1:]
    context = multiprocessing.get_context(how)
    children = [context.Process(target=mint, args=(url,)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(len(set(pool.map(mint, [url] * 8))), [child.exitcode for child in children])
"""


@pytest.mark.parametrize("how", ["fork", "forkserver", "spawn"])
def test_multiprocessing_children_release_their_leases(tmp_path: Path, how: str) -> None:
    script, url = tmp_path / "children.py", f"sqlite:///{tmp_path}/ids.db"
    script.write_text(CHILDREN)
    command = [sys.executable, "-W", "ignore", str(script), url, how]
    done = subprocess.run(command, check=True, timeout=BOUND, stdout=subprocess.PIPE, text=True)
    assert done.stdout == "8 [0, 0, 0]\n"
    with open_store(url) as store:
        assert {record.token for record in store.list_leases()} == {None}


def test_log_handler_that_mints_does_not_deadlock(inline: keeper.Keeper) -> None:
    away = Faulty(acquire=raising(StoreError("away", code="store.unavailable")))
    codes: Queue[str] = Queue()

    class Minting(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            codes.put(code_of(lambda: snowflake.Generator(store=MemoryStore(), max_wait_ms=BOUND * 1000).new()))

    handler = Minting()
    with keeper_in_place(keeper.Keeper()):
        logging.getLogger("mintage").addHandler(handler)
        try:
            assert code_of(lambda: snowflake.Generator(store=away, max_wait_ms=100).new()) == "store.unavailable"
            assert codes.get(timeout=BOUND / 2) == "store.unavailable"
            assert snowflake.Generator(store=MemoryStore(), max_wait_ms=BOUND * 1000).new()
        finally:
            logging.getLogger("mintage").removeHandler(handler)


class InAChild(BaseException):
    """An exception that ends a keeper in a child, which would sleep for ever otherwise."""


@pytest.mark.parametrize("forks", ["before its turn", "before its verb"])
def test_keeper_running_in_a_forked_child_requests_nothing(monkeypatch: pytest.MonkeyPatch, forks: str) -> None:
    """A greenlet that waited in the parent, for its turn or for the lock, goes on in a child forked by another."""
    here, sleep = threading.current_thread(), time.sleep
    mine, asked = keeper.Keeper(), list[str]()

    class Forked(Eager):
        def due_s(self) -> float:
            mine._generation = mine._generation._replace(fork=-1)
            return super().due_s()

    def raise_in_a_child(seconds: float) -> None:
        # The keepers of other tests sleep as well.
        if threading.current_thread() is here:
            raise InAChild
        sleep(seconds)

    task = Forked("a", asked)
    mine.add(task)
    if forks == "before its turn":
        mine._generation = mine._generation._replace(fork=-1)
    monkeypatch.setattr("mintage.lease.keeper.time.sleep", raise_in_a_child)
    with pytest.raises(InAChild):
        mine._run()
    assert asked == []


def test_keeper_whose_thread_ended_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with keeper_in_place(keeper.Keeper()) as mine:
        store = Faulty()
        orders = Sequence("orders", store, step=2, max_wait_ms=BOUND * 1000)
        with monkeypatch.context() as patch:
            patch.setattr(mine, "_run", lambda: None)
            mine.wake()
            assert mine._thread is not None
            mine._thread.join(BOUND)
        assert [orders.next() for _ in range(20)] == [*range(1, 21)]


def test_keeper_whose_start_was_interrupted_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, started = threading.Thread.start, []

    def start_and_raise(thread: threading.Thread) -> None:
        started.append(thread)
        begin(thread)
        if len(started) == 1:
            monkeypatch.setattr(threading.Thread, "is_alive", lambda _: False)  # as one that has not begun yet
            raise KeyboardInterrupt

    with keeper_in_place(keeper.Keeper()) as mine:
        monkeypatch.setattr(threading.Thread, "start", start_and_raise)
        with pytest.raises(KeyboardInterrupt):
            mine.wake()
        mine.wake()
        monkeypatch.undo()
        started[0].join(BOUND)
        assert [each.is_alive() for each in started] == [False, True]


def test_failure_to_start_a_thread_is_reported_and_may_be_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    with keeper_in_place(keeper.Keeper()):
        orders = Sequence("orders", Faulty(), max_wait_ms=BOUND * 1000)

        def fail(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fail)
            with pytest.raises(StoreError, match=r"no thread can be started .*: can't start new thread$") as caught:
                orders.next()
        assert (caught.value.code, caught.value.retry_after_ms) == ("store.unavailable", 1000)
        assert orders.next() == 1


def test_concurrent_threads_get_one_keeper() -> None:
    with keeper_in_place():
        for _ in range(100):
            keeper._keepers.clear()
            start = threading.Barrier(8)
            found: list[keeper.Keeper] = []

            def find(start: threading.Barrier = start, found: list[keeper.Keeper] = found) -> None:
                start.wait(BOUND)
                found.append(keeper.current())

            threads = [threading.Thread(target=find) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(BOUND)
            assert len({id(each) for each in found}) == 1


@pytest.mark.parametrize("end", ["closed", "at rest"])
def test_lease_is_released_after_the_extension_in_flight(
    any_keeper: keeper.Keeper, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    if any_keeper.inline:
        pytest.skip("one thread does all")
    clock, asked, go = ManualClock(NOW_MS * MS), threading.Event(), threading.Event()
    said: list[str] = []

    class Slow(Faulty):
        def extend(self, *args: Any, **options: Any) -> Lease:
            asked.set()
            assert go.wait(BOUND)
            lease = super().extend(*args, **options)
            said.append("extended")
            return lease

        def release(self, *args: Any, **options: Any) -> None:
            said.append("released")
            super().release(*args, **options)

    store = Slow(clock)
    generator = snowflake.Generator(store=store, clock=clock, span_ms=3_000, max_wait_ms=BOUND * 1000)
    generator.new()
    clock.advance(2_000 * MS)
    any_keeper.wake()
    assert asked.wait(BOUND)
    closing = threading.Thread(target=generator.close if end == "closed" else any_keeper.release_all)
    waiting, wait = threading.Event(), any_keeper.wait

    def note(*arguments: Any) -> None:
        waiting.set()
        wait(*arguments)

    monkeypatch.setattr(any_keeper, "wait", note)
    closing.start()
    # It either waits for the keeper now, or is done already.
    while closing.is_alive() and not waiting.wait(0.01):
        pass
    go.set()
    closing.join(BOUND)
    assert said == ["extended", "released"]
    assert [record.token for record in store.list_leases()] == [None]


class Eager(keeper.Task):
    """A task that always has work, and records its calls."""

    def __init__(self, name: str, asked: list[str]) -> None:
        super().__init__(MemoryStore())
        self.name, self.asked = name, asked

    def due_s(self) -> float:
        return 0.0

    def plan(self) -> Callable[[], Callable[[], None]]:
        self.asked.append(self.name)
        return lambda: lambda: None

    def refused(self, error: BaseException) -> None:
        raise AssertionError(error)

    def has_resources(self) -> bool:
        return True

    def begin_release(self) -> Callable[[], None]:
        return lambda: None

    def reset(self) -> None:
        pass


def test_inline_keeper_leaves_its_tasks_to_other_threads_afterwards(inline: keeper.Keeper) -> None:
    def finds_it_free() -> bool:
        return inline.condition.hold(0) is not None

    assert Sequence("orders", MemoryStore()).next() == 1
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(finds_it_free).result(BOUND)


def test_busy_task_starves_no_other(inline: keeper.Keeper) -> None:
    asked: list[str] = []
    tasks = [Eager(name, asked) for name in "abc"]
    for task in tasks:
        inline.add(task)
    for _ in range(7):
        assert inline.step() == 0
    assert "".join(asked) == "abcabca"


@pytest.mark.parametrize("end", [keeper.Keeper.close, keeper.Keeper.release_all])
def test_slow_or_failing_releases_delay_shutdown_two_seconds_at_most(
    inline: keeper.Keeper, monkeypatch: pytest.MonkeyPatch, end: Callable[[keeper.Keeper], None]
) -> None:
    now_s = 1000.0
    monkeypatch.setattr("mintage.lease.keeper.monotonic_s", lambda: now_s)

    class Slow(Eager):
        def close(self) -> None:
            nonlocal now_s
            now_s += 1.0
            self.asked.append(self.name)
            raise StoreError("away", code="store.unavailable")

        def begin_release(self) -> Callable[[], None]:
            return self.close

    asked: list[str] = []
    tasks = [Slow(name, asked) for name in "abc"]
    for task in tasks:
        inline.add(task)
    end(inline)
    assert "".join(asked) == "ab"


class Simulated(keeper.Keeper):
    """A keeper that a test runs in its own thread: time passes only while it sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.seen: list[str] = []
        self._readings = 0
        monkeypatch.setattr("mintage.lease.keeper.monotonic_s", self._read)
        monkeypatch.setattr("mintage.process.jitter.uniform", lambda _, most: most)
        monkeypatch.setattr(self, "wait", self._sleep)
        monkeypatch.setattr(self.detector, "check", self._look)

    def _read(self) -> float:
        self._readings += 1
        # A keeper that never sleeps would never end.
        self._closing |= self._readings > 1000
        return self.now_s

    def _sleep(self, _: object, timeout_s: float) -> None:
        self.seen.append(f"sleep {timeout_s}")
        self.now_s += timeout_s

    def _look(self) -> Verdict:
        self.seen.append("look")
        return Verdict.SAME

    def end(self) -> None:
        self._closing = True


@pytest.mark.parametrize(
    ("holds", "due_s", "seen"),
    [
        (False, 2.5, ["sleep 2.25", "look", "ask"]),
        (True, 0.5, ["look", "sleep 0.25", "ask"]),
        (True, 2.5, ["look", "sleep 1.0", "look", "sleep 1.0", "look", "sleep 0.25", "ask"]),
    ],
)
def test_thread_sleeps_until_due_and_checks_each_second_while_holding(
    monkeypatch: pytest.MonkeyPatch, due_s: float, seen: list[str], *, holds: bool
) -> None:
    mine = Simulated(monkeypatch)

    class Later(Eager):
        def due_s(self) -> float:
            return 1000.0 + due_s - mine.now_s

        def has_resources(self) -> bool:
            return holds

        def plan(self) -> Callable[[], Callable[[], None]]:
            mine.end()
            return super().plan()

    task = Later("ask", mine.seen)
    mine.add(task)
    mine._run()
    assert mine.seen == seen


def test_task_that_is_not_due_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, looks = Simulated(monkeypatch), 0

    class Often(Eager):
        def due_s(self) -> float:
            return 1001.0 + self.asked.count("ask") - mine.now_s

        def plan(self) -> Callable[[], Callable[[], None]]:
            if self.asked.count("ask") == 10:
                mine.end()
            return super().plan()

    class Seldom(Eager):
        def due_s(self) -> float:
            nonlocal looks
            looks += 1
            return 9000.0 - mine.now_s

    tasks = [Often("ask", mine.seen), *(Seldom("seldom", mine.seen) for _ in range(50))]
    for task in tasks:
        mine.add(task)
    mine._run()
    assert (mine.seen.count("ask"), looks) == (11, 50)


def test_task_is_looked_at_again_after_its_clock_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Simulated(monkeypatch)
    readings: Iterator[ZeroDivisionError | float] = iter([ZeroDivisionError(), 0.0])

    class Failing(Eager):
        def due_s(self) -> float:
            reading = next(readings)
            if isinstance(reading, Exception):
                raise reading
            return reading

        def plan(self) -> Callable[[], Callable[[], None]]:
            mine.end()
            return super().plan()

    task = Failing("ask", mine.seen)
    mine.add(task)
    mine._run()
    assert "ask" in mine.seen


def test_tasks_that_are_gone_do_not_add_up() -> None:
    mine = keeper.Keeper()
    for _ in range(1_000):
        mine.add(Eager("gone", []))
    gc.collect()
    assert len(mine._tasks) < 200


@pytest.mark.parametrize("code", ["store.unavailable", "store.refused"])
def test_back_off_doubles_up_to_a_second_until_a_success(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    monkeypatch.setattr(keeper, "FIRST_PAUSE_S", 0.125)
    mine = Simulated(monkeypatch)
    outcomes = iter(["fails"] * 5 + ["succeeds", "fails"])

    class Failing(Eager):
        def plan(self) -> Callable[[], Callable[[], None]]:
            outcome = next(outcomes, "ends")
            self.asked.append(outcome)
            if outcome == "fails":
                raise StoreError("not now", code=code)
            if outcome == "ends":
                mine.end()
            return lambda: lambda: None

        def refused(self, error: BaseException) -> None:
            pass

        def has_resources(self) -> bool:
            return False

    task = Failing("ill", mine.seen)
    mine.add(task)
    mine._run()
    pauses = ["fails", 0.125, "fails", 0.25, "fails", 0.5, "fails", 1.0, "fails", 1.0, "succeeds", "fails", 0.125]
    slept = [float(each.removeprefix("sleep ")) if "sleep" in each else each for each in mine.seen if each != "look"]
    assert slept == [*pauses, "ends"]
    # The first of consecutive failures is logged.
    assert caplog.messages == [f"mintage: not now ({code}); trying again"] * 2


@pytest.mark.parametrize(("asked_ms", "pauses"), [(10_000, [2.5, 5.0, 10.0, 10.0]), (10**9, [2.5, 5.0])])
def test_store_that_is_full_is_left_alone_for_longer(
    monkeypatch: pytest.MonkeyPatch, asked_ms: int, pauses: list[float]
) -> None:
    mine = Simulated(monkeypatch)

    class Full(Eager):
        def plan(self) -> Callable[[], Callable[[], None]]:
            if len([each for each in self.asked if "sleep" in each]) == len(pauses):
                mine.end()
            raise StoreError("no connection is free", code="store.unavailable", retry_after_ms=asked_ms)

        def refused(self, error: BaseException) -> None:
            pass

        def has_resources(self) -> bool:
            return False

    task = Full("full", mine.seen)
    mine.add(task)
    mine._run()
    assert [float(each.removeprefix("sleep ")) for each in mine.seen if "sleep" in each] == pauses


@pytest.mark.parametrize(("error", "is_raised"), [(ValueError(), False), (SystemExit(), False), (SystemExit(), True)])
def test_failed_release_is_logged_and_delays_no_other(
    caplog: pytest.LogCaptureFixture, *, error: BaseException, is_raised: bool
) -> None:
    released: list[int] = []
    # Without a thread of its own, it belongs to the thread that is to end.
    mine = keeper.Keeper(inline=is_raised or isinstance(error, Exception))
    mine.abandoned += [partial(raising(error), 1), partial(released.append, 2)]
    if is_raised:
        with pytest.raises(SystemExit):
            mine.step()
    mine.step()
    assert released == [2]
    assert [(record.getMessage(), record.exc_info and record.exc_info[1]) for record in caplog.records] == [
        ("mintage: a lease could not be released", error)
    ] * (not is_raised)


def test_task_that_fails_unexpectedly_does_not_end_the_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("mintage.lease.keeper.time.sleep", slept.append)
    failed, served = threading.Event(), threading.Event()

    class Ill(Eager):
        def has_resources(self) -> bool:
            if failed.is_set():
                return True
            failed.set()
            raise SystemExit

        def plan(self) -> Callable[[], Callable[[], None]]:
            served.set()
            self.closed = True
            return super().plan()

    mine, task = keeper.Keeper(), Ill("ill", [])
    mine.add(task)
    mine.wake()
    thread = mine._thread
    assert served.wait(BOUND)
    assert thread is not None
    assert thread.is_alive()
    mine.close()
    assert keeper.LONGEST_PAUSE_S in slept
    assert [(record.getMessage(), record.exc_info and record.exc_info[0]) for record in caplog.records] == [
        ("mintage: the keeper failed, and goes on", SystemExit)
    ]


def test_keeper_that_is_closed_ends_its_thread() -> None:
    asked = threading.Event()

    class Idle(Eager):
        def due_s(self) -> float:
            # The thread holds the condition until it sleeps.
            asked.set()
            return 3600.0

        def has_resources(self) -> bool:
            return False

    mine, task = keeper.Keeper(), Idle("idle", [])
    mine.add(task)
    mine.wake()
    thread = mine._thread
    assert thread is not None
    assert asked.wait(BOUND)
    mine.close()
    thread.join(BOUND)
    assert not thread.is_alive()


def test_no_task_runs_before_it_is_due(inline: keeper.Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    task = Eager("early", asked)
    monkeypatch.setattr(task, "due_s", lambda: 0.5)
    inline.add(task)
    assert (inline.step(), asked) == (0.5, [])


def test_task_of_an_earlier_generation_has_no_work_until_reattached(inline: keeper.Keeper) -> None:
    asked: list[str] = []
    left, present = Eager("left", asked), Eager("present", asked)
    for task in (left, present):
        inline.add(task)
    left.generation = left.generation._replace(number=left.generation.number - 1)
    inline.step()
    inline.step()
    assert asked == ["present", "present"]
    left.attach()
    inline.step()
    assert asked[-1] == "left"


CONTEXT_OF_A_CALLER = """
from contextvars import ContextVar
from mintage import Sequence
from mintage.store.memory import MemoryStore

trace = ContextVar("trace", default="none")

class Seen(MemoryStore):
    def reserve(self, namespace, count, **more):
        print(trace.get())
        return super().reserve(namespace, count, **more)

trace.set("of the first caller")
Sequence("orders", store=Seen()).next()
"""


def test_keeper_has_no_context_of_the_caller_that_started_it() -> None:
    # CPython before 3.14 ignores the option.
    command = [sys.executable, "-X", "thread_inherit_context=1", "-c", CONTEXT_OF_A_CALLER]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=BOUND)
    assert set(done.stdout.split()) == {"none"}  # the keeper may reserve the next segment before the process ends
