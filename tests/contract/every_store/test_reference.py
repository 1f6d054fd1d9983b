"""Tests of every store: random calls have the same results as in the store in memory."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mintage.errors import GenerationError, LeaseError, MintError
from mintage.rules import HISTORY_MS, MAX_COUNT, MAX_INTEGER, MAX_STRIDE, Lease, Segment
from mintage.store.cached import CachedStore
from mintage.store.memory import MemoryStore
from mintage.who import who_reserved
from tests.contract.every_store.stores import PAST_MS, acquire, extend, new_pool
from tests.helpers.stores import LIMIT_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mintage.store import Store

nodes = st.builds(lambda start, size: range(start, start + size), st.integers(0, 4), st.integers(1, 4))
offsets = st.integers(-PAST_MS, PAST_MS)
lease_verbs = st.one_of(
    st.tuples(st.just("acquire"), nodes, offsets, st.sampled_from([1_000, 1_500, 5_000]), st.booleans()),
    st.tuples(st.just("extend"), st.integers(0, 9), offsets),
    st.tuples(st.just("release"), st.integers(0, 9), st.one_of(offsets, st.just(-(10**9)))),
    st.tuples(st.just("revoke"), st.integers(0, 8)),
)
segment_verbs = st.one_of(
    st.tuples(st.just("reserve"), st.one_of(st.integers(1, 5), st.integers(1, MAX_COUNT))),
    st.tuples(st.just("give_back"), st.integers(0, 9), st.integers(0, 5)),
    st.tuples(st.just("raise_floor"), st.one_of(st.integers(0, 50), st.integers(0, MAX_INTEGER))),
)
tails = st.tuples(st.just("give_back"), st.integers(0, 3), st.integers(0, 5))
few = st.tuples(st.just("reserve"), st.integers(1, 5))
names = count()


class Differential:
    """A store and its history of calls, with outcomes that can be compared between two stores."""

    def __init__(self, store: Store, name: str, base_ms: int) -> None:
        self.store = store
        self.name = name
        self.base_ms = base_ms
        self.leases: list[Lease] = []
        self.segments: list[Segment] = []

    def lease_verb(self, verb: tuple[Any, ...]) -> object:
        match verb:
            case ("acquire", nodes, offset, span_ms, never_used):
                now = self.base_ms + offset
                self.leases.append(
                    acquire(self.store, now, self.name, nodes=nodes, span_ms=span_ms, never_used=never_used)
                )
                return self.seen(self.leases[-1])
            case ("extend", at, offset) if self.leases:
                held = self.leases[at % len(self.leases)]
                # Keep the outdated lease in the list.
                self.leases.append(extend(self.store, held, now_ms=self.base_ms + offset))
                return self.seen(self.leases[-1])
            case ("release", at, offset) if self.leases:
                self.store.release(self.leases[at % len(self.leases)], used_until_ms=self.base_ms + offset)
            case ("revoke", node):
                return self.store.revoke(self.name, node).until_ms - self.base_ms
        return None

    def create_namespace(self, start: int, maximum: int, stride: int) -> object:
        self.store.create_namespace(self.name, start=start, maximum=maximum, stride=stride, offset=start % stride)
        return None

    def segment_verb(self, verb: tuple[Any, ...]) -> object:
        match verb:
            case ("reserve", n):
                self.segments.append(self.store.reserve(self.name, n, holder=f"host {n % 3}"))
                return self.segments[-1].as_range()
            case ("give_back", at, used) if self.segments:
                # Any segment, any number of times: most repeated deliveries are of recent ones.
                segment = self.segments[-1 - at % len(self.segments)]
                return self.store.give_back(segment, segment.first + used * segment.stride)
            case ("raise_floor", value):
                self.store.raise_floor(self.name, value)
            case ("retire",):
                return self.store.retire(self.name).retired
        return None

    def seen(self, lease: Lease) -> tuple[int, int, int]:
        return lease.node, max(lease.floor_ms - self.base_ms, -(10**9)), lease.until_ms - self.base_ms

    def records(self) -> object:
        records = self.store.list_leases(self.name)
        return [
            (*self.seen(record.as_lease()), record.span_ms, record.token is not None, record.since_ms - self.base_ms)
            for record in records
        ], [
            (self.seen(Lease(each.pool, each.node, each.floor_ms, each.until_ms, "")), each.since_ms - self.base_ms)
            for record in records
            for each in self.store.list_grants(self.name, record.node)
            # Stores differ in when they remove those that are older than the history.
            if each.until_ms >= self.base_ms - HISTORY_MS
        ]

    def reserved(self) -> object:
        """Return who reserved what, and when, of the store's clock."""
        record = self.store.get_namespace(self.name)
        assert record is not None
        runs = [(each.first, each.last, each.holder) for each in self.store.list_runs(self.name)]
        ends = [integer for first, last, _ in runs for integer in (first, last, last + record.stride)]
        asked = {integer for integer in (*ends, record.run_first, record.high_water) if 0 <= integer <= MAX_INTEGER}
        found = {integer: who_reserved(self.name, integer, self.store) for integer in sorted(asked)}
        named = {integer: (each.state, each.holder and each.holder.text) for integer, each in found.items()}
        return (record.start, record.run_holder, record.run_first, record.run_last), runs, named


def outcome(call: Callable[..., object], *arguments: object) -> object:
    try:
        return call(*arguments)
    except (LeaseError, GenerationError) as error:
        return error.code, error.retry_after_ms
    except MintError as error:
        return error.code


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much])
@given(verbs=st.lists(lease_verbs, min_size=5, max_size=25))
def test_every_store_grants_as_the_reference_store_does(store: Store, verbs: list[tuple[Any, ...]]) -> None:
    name = f"d{next(names)}"
    now = store.now_ms()
    pair = Differential(store, name, now), Differential(MemoryStore(clock=lambda: now), name, now)
    for one in pair:
        new_pool(one.store, name)
    seen = [[outcome(one.lease_verb, verb) for one in pair] for verb in verbs]
    seen.append([one.records() for one in pair])
    # The reference clock stands still. Ignore calls so slow that a clock may count as wrong.
    assume(store.now_ms() - now < LIMIT_MS - PAST_MS)
    for (mine, simplest), verb in zip(seen, [*verbs, "records"], strict=True):
        assert mine == simplest, verb


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.one_of(st.integers(0, 30), st.integers(MAX_INTEGER - 2**33, MAX_INTEGER)),
    size=st.one_of(st.integers(0, 40), st.integers(0, MAX_INTEGER)),
    stride=st.one_of(st.integers(1, 5), st.integers(1, MAX_STRIDE)),
    verbs=st.one_of(
        st.lists(segment_verbs, min_size=5, max_size=25),
        # Small segments end where others did.
        st.lists(st.one_of(few, tails), min_size=5, max_size=25),
    ),
    end=st.lists(st.one_of(st.just(("retire",)), segment_verbs), max_size=3),
)
def test_every_store_reserves_as_the_reference_store_does(
    store: Store,
    start: int,
    size: int,
    stride: int,
    verbs: list[tuple[Any, ...]],
    end: list[tuple[Any, ...]],
) -> None:
    name = f"d{next(names)}"
    pair = Differential(store, name, 0), Differential(MemoryStore(), name, 0)
    maximum = min(start + size, MAX_INTEGER)
    made = [outcome(one.create_namespace, start, maximum, stride) for one in pair]
    assert made[0] == made[1]
    for verb in [*verbs, *end]:
        mine, simplest = (outcome(one.segment_verb, verb) for one in pair)
        assert mine == simplest, verb
    if made[0] is None and not isinstance(store, CachedStore):  # nobody knows who cuts the blocks of a cache
        assert pair[0].reserved() == pair[1].reserved()
