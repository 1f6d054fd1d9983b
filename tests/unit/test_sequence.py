"""Tests of sequences: each integer of a segment once, in order, and the next segment in advance."""

from __future__ import annotations

import os
import re
import threading
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mintage
from mintage import Sequence
from mintage._core import monotonic_s, start_generation
from mintage._core.sequence import Buffer
from mintage.errors import FieldError, GenerationError, StoreError
from mintage.lease import keeper
from mintage.lease.segment_client import SegmentClient, above, next_step
from mintage.rules import NamespaceRecord
from mintage.store import Forwarding, open_store
from mintage.store.memory import MemoryStore
from tests.helpers.outcomes import code_of, refusal
from tests.helpers.processes import in_child

if TYPE_CHECKING:
    from pathlib import Path

    from mintage.rules import Segment
    from mintage.store import Store


pytestmark = pytest.mark.usefixtures("inline")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def high_water(store: MemoryStore, namespace: str = "orders") -> int:
    return {record.name: record.high_water for record in store.list_namespaces()}[namespace]


def test_integers_start_at_1_and_follow_each_other(store: MemoryStore) -> None:
    with Sequence("orders", store) as orders:
        assert [orders.next() for _ in range(500)] == list(range(1, 501))
        assert list(islice(orders, 3)) == [501, 502, 503]


class Small(Forwarding):
    """A service that gives at most 300 integers at a time, and lists no namespaces to some."""

    def __init__(self, inner: Store, *, lists: bool = True) -> None:
        super().__init__(inner)
        self.lists = lists

    def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        if verb == "reserve" and args[1] > 300:
            raise FieldError("count is at most 300", code="field.range")
        if verb == "get_namespace" and not self.lists:
            raise StoreError("the key has no right to it", code="store.refused")
        return super().forward(verb, *args, **kwargs)


@pytest.mark.parametrize("lists", [True, False])
def test_large_requests_are_ranges_of_one_size(store: MemoryStore, lists: bool) -> None:
    with Sequence("orders", Small(store, lists=lists)) as orders:
        found = orders._reserve_all(1100)
    assert [len(each) for each in found] == [275] * 4
    assert [each for part in found for each in part] == list(range(1, 1101))


def test_request_above_the_limit_reserves_nothing(store: MemoryStore) -> None:
    store.create_namespace("orders", maximum=1000)
    with Sequence("orders", Small(store)) as orders:
        with pytest.raises(GenerationError, match="has 1000 integers left, not 1001") as caught:
            orders._reserve_all(1001)
        assert caught.value.code == "namespace.exhausted"
        assert orders._reserve_all(1000)[-1][-1] == 1000


def test_integer_is_counted_before_it_is_handed_out(store: MemoryStore) -> None:
    with Sequence("orders", store, step=3) as orders:
        for _ in range(20):
            assert orders.next() <= high_water(store)


def test_sequences_of_one_namespace_repeat_nothing(store: MemoryStore) -> None:
    with Sequence("orders", store, step=3) as one, Sequence("orders", store, step=5) as other:
        handed = [sequence.next() for _ in range(50) for sequence in (one, other)]
    assert len(set(handed)) == 100


def test_batch_has_as_few_ranges_as_possible(store: MemoryStore) -> None:
    with Sequence("orders", store, step=10) as orders:
        assert orders.batch(35) == [range(1, 36)]
        store.reserve("orders", 100)
        assert sum(map(len, orders.batch(30))) == 30
        assert orders.batch(0) == []


def test_integers_of_one_reservation_are_consecutive(store: MemoryStore) -> None:
    with Sequence("orders", store, step=10) as orders:
        orders.next()
        assert orders.reserve(9) == range(2, 11)
        row = orders.reserve(1000)
        assert (len(row), row.step) == (1000, 1)
        assert orders.next() not in row


def copy_of_namespaces(store: MemoryStore) -> dict[tuple[Any, ...], Any]:
    return dict(store._records.tables[NamespaceRecord])


def bring_back(store: MemoryStore, namespaces: dict[tuple[Any, ...], Any]) -> None:
    store._records.tables[NamespaceRecord] = dict(namespaces)


@pytest.mark.parametrize("is_empty", [False, True])
def test_rolled_back_store_repeats_no_integer(
    store: MemoryStore, caplog: pytest.LogCaptureFixture, is_empty: bool
) -> None:
    with Sequence("orders", store, step=10) as orders:
        handed = [orders.next() for _ in range(5)]
        backup = {} if is_empty else copy_of_namespaces(store)
        handed += [orders.next() for _ in range(500)]
        bring_back(store, backup)
        handed += [orders.next() for _ in range(500)]
        handed += [number for part in orders.batch(500) for number in part]
        handed += orders.reserve(500)
    assert len(set(handed)) == len(handed) == 2005
    assert caplog.text.count("namespace 'orders' went back") == 1


def test_contiguous_request_after_a_rollback_is_above_all_others(store: MemoryStore) -> None:
    with Sequence("orders", store, step=10) as orders:
        handed = {orders.next() for _ in range(500)}
        bring_back(store, {})
        assert min(orders.reserve(100)) > max(handed)


def test_returned_tail_is_handed_out_again(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    orders = Sequence("orders", store, step=10)
    assert orders.next() == 1
    keeper.current().release_all()
    assert orders.next() == 2
    assert "went back" not in caplog.text


def test_failed_floor_is_refused_with_the_remedy(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("no right", code="store.refused")

    orders = Sequence("orders", store, step=10)
    for _ in range(500):
        orders.next()
    monkeypatch.setattr(store, "raise_floor", refuse)
    bring_back(store, {})
    caught = refusal(lambda: [orders.next() for _ in range(500)])
    assert caught.code == "store.refused"
    assert re.search(r"mintage namespaces raise-floor orders \d+", str(caught))


def test_stride_of_a_namespace_is_kept(store: MemoryStore) -> None:
    store.create_namespace("thirds", stride=3, offset=2)
    with Sequence("thirds", store, step=5) as thirds:
        assert [thirds.next() for _ in range(7)] == [2, 5, 8, 11, 14, 17, 20]
        assert thirds.batch(3) == [range(23, 32, 3)]
        assert thirds.reserve(50).step == 3


def test_namespace_at_its_maximum_is_exhausted_and_never_wraps(store: MemoryStore) -> None:
    store.create_namespace("few", maximum=5)
    few = Sequence("few", store, step=3)
    assert [few.next() for _ in range(5)] == [1, 2, 3, 4, 5]
    for _ in range(2):
        with pytest.raises(GenerationError) as caught:
            few.next()
        assert (caught.value.code, caught.value.retry_after_ms) == ("namespace.exhausted", None)


def test_contiguous_request_that_does_not_fit_takes_nothing(store: MemoryStore) -> None:
    store.create_namespace("few", maximum=50)
    few = Sequence("few", store, step=3)
    with pytest.raises(GenerationError, match="50 integers left, not 51"):
        few.reserve(51)
    assert few.reserve(50) == range(1, 51)


def test_largest_integer_of_63_bits_is_handed_out(store: MemoryStore) -> None:
    store.create_namespace("last", start=2**63 - 3)
    last = Sequence("last", store, step=2)
    assert [last.next() for _ in range(3)] == [2**63 - 3, 2**63 - 2, 2**63 - 1]
    with pytest.raises(GenerationError):
        last.next()


def away(*_: object) -> None:
    raise StoreError("the store is away", code="store.unavailable")


def test_closed_sequence_gives_its_unused_tail_back(store: MemoryStore) -> None:
    orders = Sequence("orders", store, step=100)
    assert [orders.next() for _ in range(7)] == list(range(1, 8))
    orders.close()
    assert high_water(store) == 7
    orders.close()
    for take in (orders.next, partial(orders.batch, 1), partial(orders.reserve, 1)):
        assert code_of(take) == "generator.closed"
    assert high_water(store) == 7


@pytest.mark.parametrize("fails", ["reserve", "give_back"])
def test_sequence_closes_even_if_its_tail_is_not_given_back(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    asked: list[str] = []

    def fail(*_: object) -> None:
        asked.append(fails)
        raise StoreError("the store is away", code="store.unavailable")

    now_s = monotonic_s()
    monkeypatch.setattr("mintage.lease.keeper.monotonic_s", lambda: now_s)
    orders = Sequence("orders", store, step=10, max_wait_ms=0)
    orders.next()
    monkeypatch.setattr(store, fails, fail)
    if fails == "reserve":
        # The pause after it lasts until the sequence closes.
        keeper.current().step()
        monkeypatch.setattr(store, "give_back", fail)
    orders.close()
    assert asked == [fails]


def test_tail_before_another_reservation_is_not_given_back(store: MemoryStore) -> None:
    with Sequence("orders", store, step=100) as orders:
        orders.next()
        taken = store.reserve("orders", 10)
    assert high_water(store) == taken.last


def test_child_hands_out_no_integer_of_its_parent(tmp_path: Any) -> None:
    orders = Sequence("orders", f"sqlite:///{tmp_path}/ids.db", step=10)
    mine = [orders.next() for _ in range(3)]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            keeper.use(keeper.Keeper(inline=True))
            os.write(writer, " ".join(str(orders.next()) for _ in range(3)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="ascii") as pipe:
        theirs = [int(word) for word in pipe.read().split()]
    os.waitpid(child, 0)
    assert len(theirs) == 3
    assert not set(theirs) & {*mine, *(orders.next() for _ in range(7))}


def test_buffered_integers_are_served_while_the_store_is_away(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = Sequence("orders", store, step=10, max_wait_ms=0)
    orders.next()

    monkeypatch.setattr(store, "reserve", away)
    held = orders.buffered
    assert [orders.next() for _ in range(held)] == list(range(2, held + 2))
    with pytest.raises(StoreError) as caught:
        orders.next()
    assert caught.value.code == "store.unavailable"
    assert caught.value.retry_after_ms
    monkeypatch.undo()
    assert orders.next() == held + 2


def test_keeper_wakes_as_soon_as_a_segment_is_opened(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[int] = []

    def no_thread() -> None:
        woken.append(len(handed))
        raise StoreError("no thread can be started", code="store.unavailable")

    monkeypatch.setattr(keeper.current(), "wake", no_thread)
    orders = Sequence("orders", store, step=3)
    handed: list[int] = []
    for _ in range(9):
        handed.append(orders.next())
        keeper.current().step()
    assert handed == [*range(1, 10)], "what is held is handed out nevertheless"
    assert woken == [0, 3, 6]


def test_non_blocking_caller_is_notified_of_a_segment(store: MemoryStore) -> None:
    supply, pool = supplied(store)
    told: list[bool] = []
    supply.request(1, lambda: told.append(pool.has_next()))
    assert told == []
    keeper.current().step()
    assert told == [True]
    assert supply.refusal() is None
    supply.request(1, lambda: told.append(pool.has_next()))
    assert told == [True, True], "what is there is told of at once"


def test_non_blocking_caller_is_notified_of_a_refusal(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "reserve", away)
    supply, _ = supplied(store)
    told: list[str] = []
    supply.request(1, lambda: told.append("once"))
    keeper.current().step()
    refusal = supply.refusal()
    assert told == ["once"]
    assert isinstance(refusal, StoreError)
    assert refusal.retry_after_ms is not None
    supply.start_over()
    assert supply.refusal() is None, "it was an earlier life's"


def test_refusal_is_forgotten_once_the_store_answers(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    supply, _ = supplied(store)
    with monkeypatch.context() as gone:
        gone.setattr(store, "reserve", away)
        supply.request(1, lambda: None)
        keeper.current().step()
    assert supply.refusal() is not None
    supply.request(1, lambda: None)
    keeper.current().step()
    assert supply.refusal() is None


def test_non_blocking_request_is_limited_by_the_largest_step(store: MemoryStore) -> None:
    for want, step in ((500, 500), (10**6, 1000), (1, 10)):
        supply, pool = supplied(store, min_step=10, max_step=1000)
        supply.request(want, lambda: None)
        keeper.current().step()
        assert pool.level()[1] == step


@pytest.mark.parametrize("least", [1, 2])
def test_store_with_small_segments_is_asked_for_half_each_time(least: int) -> None:
    asked: list[int] = []

    class Sparing(MemoryStore):
        def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
            asked.append(count)
            if count > least:
                raise FieldError(f"{count} is more than {least}", code="field.range")
            return super().reserve(namespace, count, holder=holder)

    supply, pool = supplied(Sparing(), min_step=16)
    supply.request(1, lambda: None)
    keeper.current().step()
    assert (asked.pop(), pool.level()[1]) == (least, least)
    assert asked == [16, 8, 4, 2][: len(asked)]
    asked.clear()
    pool.drain()
    supply.request(100, lambda: None)
    keeper.current().step()
    assert asked == [least]


def test_store_that_gives_nothing_is_finally_asked_for_one(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def none(_: str, count: int) -> None:
        asked.append(count)
        raise FieldError("none at all", code="field.range")

    monkeypatch.setattr(store, "reserve", none)
    supply, _ = supplied(store)
    supply.request(1, lambda: None)
    keeper.current().step()
    assert asked == [10, 5, 2, 1]
    assert isinstance(supply.refusal(), FieldError)


def test_new_generation_starts_empty_with_the_smallest_step(store: MemoryStore) -> None:
    supply, pool = supplied(store)
    supply.request(50, lambda: None)
    keeper.current().step()
    assert (pool.level()[1], supply.has_resources()) == (50, True)
    supply.start_over()
    assert (pool.level()[1], supply.has_resources()) == (0, False)
    supply.request(1, lambda: None)
    keeper.current().step()
    assert pool.level()[1] == 10


def test_caller_is_notified_if_the_sequence_closes_meanwhile(store: MemoryStore) -> None:
    supply, _ = supplied(store)
    told: list[str] = []
    supply.request(1, lambda: told.append("once"))
    # close() does not guarantee their later effects.
    supply.request(1, lambda: told.remove("nobody"))
    supply.close()
    assert told == ["once"]
    for take in (partial(supply.request, 1, lambda: None), partial(supply.reserve, 1)):
        with pytest.raises(GenerationError, match="closed"):
            take()


def test_child_notifies_nobody_of_requests_of_its_parent(tmp_path: Path) -> None:
    supply, _ = supplied(open_store(f"sqlite:///{tmp_path}/ids.db"))
    told: list[int] = []
    supply.request(1, lambda: told.append(os.getpid()))

    def use() -> list[object]:
        supply.wait(60_000)
        return [*told, supply.has_resources()]

    assert in_child(use) == [True]
    keeper.current().step()
    assert told == [os.getpid()]


def supplied(store: Store, *, min_step: int = 10, max_step: int = 100) -> tuple[SegmentClient, Buffer]:
    pool = Buffer()
    return SegmentClient(store, "orders", pool, min_step=min_step, max_step=max_step, target_ms=1000), pool


def test_threads_share_a_sequence(store: MemoryStore) -> None:
    keeper.use(keeper.Keeper())
    orders = Sequence("orders", store, step=50, max_wait_ms=60_000)
    handed: list[int] = []
    threads = [threading.Thread(target=lambda: handed.extend(islice(orders, 2_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(handed)) == len(handed) == 8_000


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"step": 0}, "field.range"),
        ({"step": 2**31}, "field.range"),
        ({"min_step": 10, "max_step": 9}, "field.range"),
        ({"target_ms": 0}, "field.range"),
        ({"max_wait_ms": -1}, "config.wait"),
        ({"step": "5"}, "argument.type"),
    ],
    ids=repr,
)
def test_invalid_steps_are_refused(options: Any, code: str) -> None:
    with pytest.raises(mintage.errors.MintError) as caught:
        Sequence("orders", "memory:", **options)
    assert caught.value.code == code


@pytest.mark.parametrize("n", [0, -1, 2**31, 2**70])
def test_contiguous_request_has_1_to_2147483647_integers(store: MemoryStore, n: int) -> None:
    with pytest.raises(mintage.errors.FieldError):
        Sequence("orders", store).reserve(n)


@given(
    step=st.integers(1, 10**6),
    rate=st.floats(0, 1e12),
    least=st.integers(1, 1000),
    extra=st.integers(0, 10**6),
)
def test_step_stays_between_its_bounds(step: int, rate: float, least: int, extra: int) -> None:
    most = least + extra
    step = min(max(step, least), most)
    assert least <= next_step(step, rate, 10.0, least, most) <= most


def test_step_follows_the_rate() -> None:
    assert next_step(100, 50_000, 10.0, 100, 1_000_000) == 800
    assert next_step(1000, 5, 10.0, 100, 1_000_000) == 500
    step = 100
    for _ in range(20):
        step = next_step(step, 50_000, 10.0, 100, 1_000_000)
    assert step == 500_000
    for _ in range(20):
        step = next_step(step, 5, 10.0, 100, 1_000_000)
    assert step == 100


@pytest.mark.parametrize("ahead", [1, 2])
def test_rate_is_measured_over_the_last_used_segment(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    now_s = 0.0
    monkeypatch.setattr("mintage.lease.segment_client.monotonic_s", lambda: now_s)
    supply, offered = (
        SegmentClient(store, "orders", pool := Offered(), min_step=10, max_step=10_000, target_ms=1000),
        pool.sizes,
    )
    for current in range(10):
        # The next one is fetched while the current one lasts, or after it.
        while len(offered) < current + ahead:
            supply.request(1, lambda: None)
            keeper.current().step()
        if current:
            now_s += offered[current - 1] / 2000
        supply.advanced()
    assert max(offered) == offered[-1] == 2000, "at 2000 a second, for a second"


def test_segment_cut_by_a_floor_does_not_count_for_the_rate(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mintage.lease.segment_client.monotonic_s", lambda: 1000.0)
    store.create_namespace("orders", start=0)
    pool = Offered()
    supply = SegmentClient(store, "orders", pool, min_step=10, max_step=1000, target_ms=1000)
    for want, floor in ((100, 0), (1, 1), (1, 51)):
        store.raise_floor("orders", floor)
        supply.request(want, lambda: None)
        keeper.current().step()
        supply.advanced()
    assert pool.sizes == [100, 99, 100, 49, 100, 100]


@given(floor=st.integers(0, 3000), first=st.integers(0, 2000), count=st.integers(1, 200), stride=st.integers(1, 50))
def test_integers_from_the_floor_on_are_above_it(floor: int, first: int, count: int, stride: int) -> None:
    left = [each for each in range(first, first + count * stride, stride) if each >= floor]
    part = above(floor, first, count, stride)
    assert left == ([] if part is None else [*range(part[0], part[0] + part[1] * part[2], part[2])])


def test_integers_behind_a_floor_are_released_and_reserved_once(store: MemoryStore) -> None:
    orders = Sequence("orders", store, step=10)
    handed = [orders.next()]
    store.raise_floor("orders", 5)
    # Five to ten remain of the first segment, and the second is waiting.
    assert keeper.current().step() == 0
    keeper.current().release_all()
    assert high_water(store) == 4
    handed += [orders.next() for _ in range(30)]
    assert handed == [1, *range(5, 35)]


def test_integers_behind_a_floor_are_used_while_the_store_is_away(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = Sequence("orders", store, step=10)
    assert orders.next() == 1
    store.raise_floor("orders", 5)
    assert keeper.current().step() == 0

    monkeypatch.setattr(store, "reserve", away)
    assert [orders.next() for _ in range(16)] == [*range(5, 21)]


def test_integers_are_reserved_again_only_on_demand_after_a_release(store: MemoryStore) -> None:
    orders = Sequence("orders", store, step=10)
    assert orders.next() == 1
    keeper.current().release_all()
    assert keeper.current().step() > 0
    assert high_water(store) == 1
    assert orders.next() == 2


def test_segment_answered_to_a_parent_is_not_used_by_its_child(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/ids.db")
    supply, _ = supplied(store)
    supply.attach()
    reserve = store.reserve
    asked: list[int] = []

    def forking(namespace: str, count: int) -> Segment:
        assert len(asked) < 2
        asked.append(count)
        segment = reserve(namespace, count)
        if len(asked) == 1:
            # As a fork in the middle of this call does in the child.
            start_generation()
        return segment

    def use() -> list[int]:
        store.reserve = forking  # type: ignore[assignment, method-assign]
        segment = supply.reserve(5)
        return [segment.first, segment.last]

    assert in_child(use) == [6, 10]


@pytest.mark.parametrize("floor", [3, 5, 8, 11, 14, 21, 22, 1000])
@pytest.mark.parametrize("taken", [1, 4, 10])
def test_raised_floor_applies_from_the_next_answer(store: MemoryStore, floor: int, taken: int) -> None:
    orders = Sequence("orders", store, step=10)
    handed = [orders.next() for _ in range(taken)]
    store.raise_floor("orders", floor)
    # The prefetched segment reports the floor, while integers of the previous one remain.
    assert keeper.current().step() == 0
    later = [orders.next() for _ in range(40)]
    assert min(later) >= floor
    assert later == sorted({*later} - {*handed})
    assert {*later} >= {each for each in range(floor, 11) if each not in handed}
    orders.close()
    assert high_water(store) == later[-1]


class Offered:
    """A buffer that is never full."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._parts: list[tuple[int, int, int]] = []

    def offer(self, first: int, count: int, stride: int) -> None:
        self.sizes.append(count)
        self._parts.append((first, count, stride))

    def has_next(self) -> bool:
        return False

    def level(self) -> tuple[int, int]:
        return 0, 0

    def drain(self) -> list[tuple[int, int, int]]:
        parts, self._parts = self._parts, []
        return parts


class Slow(MemoryStore):
    """A store whose second reservation waits for the test."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = threading.Event(), threading.Event()

    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        segment = super().reserve(namespace, count, holder=holder)
        if segment.first > 1:
            self.asked.set()
            assert self.go.wait(60)
        return segment


def test_segment_that_arrives_during_close_is_given_back() -> None:
    keeper.use(keeper.Keeper())
    store = Slow()
    sequence = Sequence("orders", store, min_step=100)
    assert sequence.next() == 1
    assert store.asked.wait(60)
    closing = threading.Thread(target=sequence.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive()
    store.go.set()
    closing.join(60)
    assert [record.high_water for record in store.list_namespaces()] == [1]


@pytest.mark.parametrize(("start", "step"), [(100, -5), (-1, -1), (0, -(2**31)), (7, 3)])
def test_strided_identities_map_to_consecutive_integers(start: int, step: int) -> None:
    store = MemoryStore()
    store.create_namespace("down", start=0)
    taken: list[int] = []
    for _ in range(3):
        row = Sequence("down", store).reserve(4)
        # As a range, so that a block of rows costs no more than its ends.
        mapped = range(start + row.start * step, start + row.stop * step, step)
        assert len(mapped) == 4
        taken += mapped
    assert taken == [start + k * step for k in range(12)]
    assert len(set(taken)) == 12
