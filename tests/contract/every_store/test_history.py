"""Tests of every store: the past grants of node numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mintage.rules import HISTORY_MS, MAX_HISTORY_MS, PRUNED, GrantRecord, history_begin
from mintage.store import Store, open_store
from mintage.store.memory import MemoryStore
from tests.contract.every_store.stores import LAYOUT, SPAN_MS, acquire, extend, new_pool
from tests.helpers.outcomes import refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def use(store: Store, now_ms: int, ends: Iterable[int], pool: str = "p", node: int = 0) -> None:
    """Lease and release a node number once for each end of a window, which is relative to now."""
    for end in ends:
        lease = acquire(store, now_ms, pool, nodes=range(node, node + 1), holder=f"until {end}")
        store.release(lease, used_until_ms=now_ms + end)


def holders(grants: Sequence[GrantRecord]) -> list[str]:
    return [grant.holder for grant in grants]


def test_next_grant_of_a_number_keeps_the_one_before(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    first = extend(store, acquire(store, now, holder="größe 🐙"), now_ms=now + 1)
    assert list(store.list_grants("p", 0)) == []
    store.release(first, used_until_ms=now - 3)
    assert list(store.list_grants("p", 0)) == []
    second = acquire(store, now + 2, holder="next")
    assert list(store.list_grants("p", 0)) == [GrantRecord("p", 0, first.floor_ms, now - 3, now, "größe 🐙")]
    [record] = store.list_leases("p")
    assert (record.holder, record.floor_ms, record.since_ms) == ("next", second.floor_ms, now + 2)


def test_past_grants_are_those_of_one_number_of_one_pool(store: Store) -> None:
    now = store.now_ms()
    for pool in ("p", "p2", "P"):
        new_pool(store, pool)
        for node in (1, 10, 11):
            use(store, now, [-9 - node, -8], pool, node)
    assert holders(store.list_grants("p", 1)) == ["until -10"]
    assert holders(store.list_grants("P", 11)) == ["until -20"]
    assert list(store.list_grants("p", 0)) == []
    assert list(store.list_grants("nobody", 0)) == []


def test_grants_at_a_time_and_before_are_listed_latest_first(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    use(store, now, [-50, -40, -30, -20, -10])
    assert holders(store.list_grants("p", 0)) == ["until -20", "until -30", "until -40", "until -50"]
    assert holders(store.list_grants("p", 0, limit=2)) == ["until -20", "until -30"]
    assert holders(store.list_grants("p", 0, now - 30, 1)) == ["until -20"]
    assert holders(store.list_grants("p", 0, now - 31, 1)) == ["until -30"]
    assert holders(store.list_grants("p", 0, now - 51)) == ["until -50"]
    assert holders(store.list_grants("p", 0, 0)) == ["until -50"]


def test_grant_that_nobody_could_mint_under_is_not_kept(store: Store) -> None:
    new_pool(store)
    use(store, store.now_ms(), [-20, -30, -10])  # the second window is empty
    assert holders(store.list_grants("p", 0)) == ["until -20"]


def test_new_pool_keeps_past_grants_for_seven_days(store: Store) -> None:
    before = store.now_ms()
    new_pool(store)
    acquire(store, store.now_ms())
    pool = store.get_pool("p")
    assert pool is not None
    assert pool.history_ms == HISTORY_MS
    assert before <= pool.history_from_ms <= store.now_ms()
    assert history_begin(pool, store.now_ms()) == pool.history_from_ms


def test_history_of_a_pool_can_be_switched_off_and_on(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    use(store, now, [-50, -40])
    assert len(store.list_grants("p", 0)) == 1
    off = store.create_pool("p", layout=LAYOUT, history_ms=0)
    assert (off.history_ms, off.history_from_ms, history_begin(off, now)) == (0, 0, None)
    assert list(store.list_grants("p", 0)) == []
    use(store, now, [-30])
    assert list(store.list_grants("p", 0)) == []
    kept = store.create_pool("p", layout=LAYOUT)
    assert kept == off
    on = store.create_pool("p", layout=LAYOUT, history_ms=MAX_HISTORY_MS)
    assert (on.history_ms, on.history_from_ms >= now) == (MAX_HISTORY_MS, True)
    use(store, now, [-20])
    assert holders(store.list_grants("p", 0)) == ["until -30"]
    assert store.get_pool("p") == on


def test_pool_can_be_created_without_a_history(store: Store) -> None:
    store.create_pool("p", layout=LAYOUT, never_used=True, history_ms=0)
    use(store, store.now_ms(), [-50, -40])
    assert list(store.list_grants("p", 0)) == []
    with refused("field.range"):
        store.create_pool("p", layout=LAYOUT, history_ms=MAX_HISTORY_MS + 1)


def test_each_grant_removes_a_few_that_ended_too_long_ago(store: Store) -> None:
    if store.url.scheme == "etcd":
        pytest.skip("etcd itself removes them: see test_etcd.py")
    new_pool(store)
    now = store.now_ms()
    ends = range(-9_000, -9_000 + 100 * (PRUNED + 3), 100)
    use(store, now, ends)
    assert len(store.list_grants("p", 0)) == PRUNED + 2
    store.create_pool("p", layout=LAYOUT, history_ms=1)
    assert len(store.list_grants("p", 0)) == PRUNED + 2
    use(store, now, [-10])
    assert holders(store.list_grants("p", 0)) == [f"until {end}" for end in reversed(ends[PRUNED:])]
    use(store, now, [0])
    assert holders(store.list_grants("p", 0)) == ["until -10"]


def test_history_outlives_the_client(url: str) -> None:
    if url.startswith("memory"):
        pytest.skip("it has the lifetime of the process")
    with open_store(url) as store:
        new_pool(store)
        now = store.now_ms()
        use(store, now, [-50, -40])
    with open_store(url) as store:
        assert holders(store.list_grants("p", 0)) == ["until -50"]
        assert acquire(store, now).until_ms == now + SPAN_MS


def test_grant_of_a_memory_store_reads_few_of_the_past_ones() -> None:
    class Unread(dict[Any, Any]):
        def values(self) -> Any:
            raise AssertionError("a grant reads all past grants")

        __iter__ = items = values

    now = 1_700_000_000_000
    store = MemoryStore(clock=lambda: now)
    new_pool(store)
    store._records.tables[GrantRecord] = kept = Unread()
    use(store, now, range(-40, -10))
    assert len(kept) == 29
    now += HISTORY_MS
    use(store, now, [-8])
    assert len(kept) == 29 + 1 - PRUNED
    use(store, now, [-7])
    assert len(kept) == 29 + 2 - 2 * PRUNED
