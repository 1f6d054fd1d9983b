"""Tests of every store: servers that take over, come back, or forget their last writes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mintage.errors import LeaseError
from mintage.rules import CLOCK_LIMIT_MS, CLOCK_MARGIN_MS, Lease
from mintage.store import ledger
from mintage.store.memory import MemoryStore
from tests.contract.every_store.stores import LAYOUT, SPAN_MS, acquire, extend, new_pool
from tests.helpers.outcomes import code_of, refusal

if TYPE_CHECKING:
    import pytest


class Switched(MemoryStore):
    """A store on one of two servers; the previous one may have lost its last writes."""

    def __init__(self, now_ms: int) -> None:
        self.time_ms = now_ms
        super().__init__(clock=lambda: self.time_ms)

    def tables(self) -> dict[Any, Any]:
        return {kind: dict(table) for kind, table in self._records.tables.items()}

    def switch(self, identity: str, tables: dict[Any, Any] | None = None) -> None:
        self._records.identity = identity
        if tables is not None:
            self._records.tables = tables


def test_first_verb_after_a_failover_records_it_even_if_refused() -> None:
    now = 1_700_000_000_000
    store = Switched(now)
    store.clock_limit_ms = 60_000
    store.switch("A")
    new_pool(store)
    held, segment = acquire(store, now), store.reserve("n", 7)
    assert [(record.largest, record.identity) for record in store.list_namespaces()] == [(7, "A")]
    store.switch("B")
    assert not store.give_back(segment, segment.first)
    assert code_of(lambda: acquire(store, now)) == "lease.none_free"
    [pool] = store.list_pools()
    # Forgotten windows may end as late as the fastest clock allowed.
    assert (pool.identity, pool.quarantine_until_ms) == ("B", now + SPAN_MS + 60_000 + CLOCK_MARGIN_MS)
    held = Lease("p", 0, held.floor_ms, now + 10**6, held.token)
    extend(store, held, now_ms=now)
    assert [record.identity for record in store.list_leases()] == ["B"]
    store.switch("C")
    again = store.create_pool("p", layout=LAYOUT)
    assert (again.identity, again.changes) == ("C", 2)
    assert again.quarantine_until_ms == again.floor_ms > pool.floor_ms
    assert store.reserve("n", 3).first > segment.last + 7
    assert [(record.largest, record.identity) for record in store.list_namespaces()] == [(7, "C")]


def test_granted_numbers_are_not_accepted_as_never_used_after_a_failover() -> None:
    now = 1_700_000_000_000
    store = Switched(now)
    new_pool(store)
    acquire(store, now)
    store.switch("B")
    error = refusal(lambda: store.create_pool("p", layout=LAYOUT, never_used=True))
    assert error.code == "config.pool"
    assert "has granted node numbers, so they were used" in str(error)
    assert code_of(lambda: acquire(store, now)) == "lease.none_free"


def test_clock_limit_of_a_store_applies_to_every_verb() -> None:
    now, limit = 1_700_000_000_000, 60_000
    store = Switched(now)
    store.clock_limit_ms = limit
    new_pool(store)
    held = extend(store, acquire(store, now - limit), now_ms=now + limit)
    assert held.until_ms == now + limit + SPAN_MS
    for off in (-limit - 1, limit + 1):
        assert code_of(lambda: acquire(store, now + off)) == "lease.clock"  # noqa: B023
        assert code_of(lambda: extend(store, held, now_ms=now + off)) == "lease.clock"  # noqa: B023
    store.switch("B")
    claimed = replace(held, until_ms=now + 10**6)
    assert extend(store, claimed, now_ms=now).until_ms == now + limit + CLOCK_MARGIN_MS + SPAN_MS
    store.switch("C")
    [pool] = store.list_pools()
    again = store.create_pool("p", layout=LAYOUT)
    assert again.floor_ms == pool.floor_ms + SPAN_MS + limit + CLOCK_MARGIN_MS


def test_forgotten_window_ends_in_time_on_servers_a_second_apart() -> None:
    now = 1_700_000_000_000
    store = Switched(now + CLOCK_MARGIN_MS)
    store.switch("A")
    new_pool(store)
    known = store.tables()
    # The caller's clock is as far ahead of the first server's as it may be, which is ahead of the second one's.
    forgotten = acquire(store, now + CLOCK_MARGIN_MS + CLOCK_LIMIT_MS)
    store.switch("B", known)
    store.time_ms = now
    assert code_of(lambda: acquire(store, now)) == "lease.none_free"
    assert store.list_pools()[0].floor_ms >= forgotten.until_ms


def test_copy_of_a_holder_is_recorded_after_a_failover_too() -> None:
    now = 1_700_000_000_000
    store = Switched(now)
    new_pool(store)
    held = acquire(store, now)
    store.switch("B")
    extend(store, held, now_ms=now)
    assert [record.cloned_ms for record in store.list_leases()] == [0]
    assert code_of(lambda: extend(store, held, now_ms=now)) == "lease.lost"
    assert [record.cloned_ms for record in store.list_leases()] == [now]


def test_colliding_verb_backs_off_and_then_reports_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Colliding(MemoryStore):
        def _begin(self) -> Any:
            raise ledger.ConflictError

    bounds: list[float] = []

    def uniform(least: float, most: float) -> float:
        bounds.append(most)
        return least

    monkeypatch.setattr("mintage.process.jitter.uniform", uniform)
    assert code_of(lambda: Colliding().reserve("n", 1)) == "store.unavailable"
    assert bounds == [0.002, 0.004, 0.008, 0.016, 0.032, 0.064, *[0.128] * (ledger.ATTEMPTS - 6)]


def test_failover_that_loses_writes_grants_no_node_again_too_early() -> None:
    now = 1_700_000_000_000
    store = Switched(now)
    store.switch("A")
    new_pool(store)
    held = acquire(store, now, nodes=range(1))
    store.switch("B")
    # The first request to B is an extension, which A receives; the next extension is lost.
    held = extend(store, held, now_ms=now)
    arrived = store.tables()
    store.time_ms = now + 8_000
    held = extend(store, held, now_ms=store.time_ms)
    store.switch("A", arrived)
    store.time_ms = now + 11_000
    assert code_of(lambda: acquire(store, store.time_ms)) == "lease.none_free"
    assert store.list_pools()[0].quarantine_until_ms >= held.until_ms
    # Its holder continues by the previous token.
    assert extend(store, held, now_ms=store.time_ms).until_ms == store.time_ms + SPAN_MS


def test_holder_that_slept_through_a_failover_has_lost_its_lease() -> None:
    now = 1_700_000_000_000
    store = Switched(now)
    store.switch("A")
    new_pool(store)
    slept = acquire(store, now)
    store.switch("B")
    with suppress(LeaseError):
        acquire(store, now)
    arrived = store.tables()
    store.time_ms = store.list_pools()[0].quarantine_until_ms
    taken = acquire(store, store.time_ms)
    # That grant is lost on the way back to A, whose own record of the node number is as it was.
    store.switch("A", arrived)
    assert code_of(lambda: extend(store, slept, now_ms=store.time_ms)) == "lease.lost"
    assert store.list_pools()[0].floor_ms >= taken.until_ms
