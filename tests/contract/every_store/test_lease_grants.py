"""Tests of every store: which node numbers leases grant, and to whom."""

from __future__ import annotations

import pytest

from mintage.errors import LeaseError
from mintage.rules import COOLDOWN_MS, MAX_SPAN_MS, MIN_SPAN_MS
from mintage.store import Store, new_token
from tests.contract.every_store.stores import FAR_MS, PAST_MS, SPAN_MS, acquire, extend, new_pool
from tests.helpers.outcomes import code_of, refused


def test_lease_grants_a_node_number_for_a_span_from_now(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now, nodes=range(5, 9))
    assert (lease.pool, lease.node, lease.until_ms) == ("p", 5, now + SPAN_MS)
    assert lease.floor_ms <= now
    assert lease.token


def test_concurrent_holders_have_different_node_numbers(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    leases = [acquire(store, now, nodes=range(4)) for _ in range(4)]
    assert sorted(lease.node for lease in leases) == [0, 1, 2, 3]
    assert len({lease.token for lease in leases}) == 4


def test_last_node_number_of_the_largest_pool_can_be_leased(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    assert acquire(store, now, nodes=range(2**44 - 1, 2**44)).node == 2**44 - 1
    assert acquire(store, now, nodes=range(2**44)).node == 0
    assert acquire(store, now, nodes=range(2**44)).node == 1
    assert [record.node for record in store.list_leases("p")] == [0, 1, 2**44 - 1]


def test_node_ranges_keep_data_centres_apart(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    nodes = [acquire(store, now, nodes=nodes).node for nodes in (range(2, 4), range(2), range(2, 4), range(2))]
    assert nodes == [2, 0, 3, 1]
    assert code_of(lambda: acquire(store, now, nodes=range(2, 4))) == "lease.none_free"


def test_pools_are_independent(store: Store) -> None:
    now = store.now_ms()
    names = ["p", "P", "p.", "p_", "q"]
    for name in names:
        new_pool(store, name)
    assert [acquire(store, now, name).node for name in names] == [0] * len(names)
    first, *others = (record for name in names for record in store.list_leases(name))
    store.revoke(first.pool, first.node)
    assert all(record.token is not None for name in names[1:] for record in store.list_leases(name))
    assert len(others) == len(names) - 1


def test_exhausted_pool_tells_when_a_node_number_comes_free(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    for span in (9_000, 6_000, 8_000):
        acquire(store, now, nodes=range(3), span_ms=span)
    with pytest.raises(LeaseError) as caught:
        acquire(store, now + 1_000, nodes=range(3))
    assert (caught.value.code, caught.value.retry_after_ms) == ("lease.none_free", 5_000)


def test_node_number_of_a_crashed_holder_is_granted_after_its_window(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    crashed = acquire(store, now - PAST_MS, span_ms=MIN_SPAN_MS)
    lease = acquire(store, now)
    assert (lease.node, lease.floor_ms) == (crashed.node, crashed.until_ms)
    assert lease.until_ms == now + SPAN_MS


def test_free_node_number_is_granted_from_its_floor_to_a_slow_clock(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    ahead = acquire(store, now + PAST_MS, span_ms=MIN_SPAN_MS)
    assert code_of(lambda: acquire(store, now)) == "lease.none_free"
    store.release(ahead, used_until_ms=now)
    behind = acquire(store, now)
    assert behind.floor_ms == now
    assert behind.until_ms == now + SPAN_MS


def test_node_number_that_came_free_first_is_granted_first(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    leases = [acquire(store, now, nodes=range(3)) for _ in range(3)]
    for lease, used in zip(leases, (2, 1, 3), strict=True):
        store.release(lease, used_until_ms=now - 1_000 + used)
    assert [acquire(store, now, nodes=range(3)).node for _ in range(3)] == [1, 0, 2]


def test_lowest_node_number_is_granted_among_equally_old_ones(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    for lease in [acquire(store, now, nodes=range(12)) for _ in range(12)]:
        store.release(lease, used_until_ms=now - 1_000)
    assert [acquire(store, now, nodes=range(12)).node for _ in range(12)] == list(range(12))


def test_cooled_down_nodes_come_before_unused_and_just_freed_ones(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    rested, fresh = (acquire(store, now, nodes=range(4)) for _ in range(2))
    store.release(rested, used_until_ms=0)
    store.release(fresh, used_until_ms=now)
    assert [acquire(store, now, nodes=range(4)).node for _ in range(4)] == [rested.node, 2, 3, fresh.node]


def test_cool_down_is_measured_by_the_clock_of_the_client(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    store.release(acquire(store, now, nodes=range(3)), used_until_ms=now - COOLDOWN_MS)
    assert [acquire(store, asked, nodes=range(3)).node for asked in (now - 1, now)] == [1, 0]


def test_gap_among_the_used_node_numbers_is_found(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    used = [0, 1, 2, 4, 5, 7]
    for node in used:
        acquire(store, now, nodes=range(node, node + 1))
    assert [acquire(store, now, nodes=range(9)).node for _ in range(3)] == [3, 6, 8]
    assert code_of(lambda: acquire(store, now, nodes=range(9))) == "lease.none_free"


def test_never_used_node_number_can_be_requested(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    store.release(acquire(store, now, nodes=range(2)), used_until_ms=0)
    assert acquire(store, now, nodes=range(2), never_used=True).node == 1
    with pytest.raises(LeaseError) as caught:
        acquire(store, now, nodes=range(2), never_used=True)
    assert (caught.value.code, caught.value.retry_after_ms) == ("lease.none_free", None)
    assert acquire(store, now, nodes=range(2)).node == 0


@pytest.mark.parametrize("by", [-FAR_MS, FAR_MS])
def test_clock_far_from_that_of_the_store_is_refused(store: Store, by: int) -> None:
    new_pool(store)
    assert code_of(lambda: acquire(store, store.now_ms() + by)) == "lease.clock"
    assert not store.list_leases()
    lease = acquire(store, store.now_ms())
    assert code_of(lambda: extend(store, lease, now_ms=store.now_ms() + by)) == "lease.clock"
    assert [record.until_ms for record in store.list_leases()] == [lease.until_ms]


@pytest.mark.parametrize("by", [-PAST_MS, PAST_MS])
def test_clock_slightly_off_that_of_the_store_is_accepted(store: Store, by: int) -> None:
    new_pool(store)
    now = store.now_ms() + by
    assert store.extend(acquire(store, now), now_ms=now + 1, next_token=new_token()).until_ms == now + 1 + SPAN_MS


def test_node_numbers_of_another_layout_are_refused(store: Store) -> None:
    new_pool(store, layout="sno")
    assert code_of(lambda: acquire(store, store.now_ms())) == "config.pool"
    assert code_of(lambda: store.create_pool("p", layout="snow")) == "config.pool"
    assert [pool.layout for pool in store.list_pools()] == ["sno"]


def test_span_outside_its_limits_is_refused(store: Store, subtests: pytest.Subtests) -> None:
    for span_ms in (-1, 0, MIN_SPAN_MS - 1, MAX_SPAN_MS + 1, 2**70):
        with subtests.test(span_ms=span_ms), refused("config.span"):
            acquire(store, store.now_ms(), span_ms=span_ms)


def test_invalid_node_numbers_are_refused(store: Store, subtests: pytest.Subtests) -> None:
    for nodes in (range(0), range(-1, 5), range(5, 1), range(0, 8, 2), range(2**44 + 1), range(2**70)):
        with subtests.test(nodes=nodes), refused("config.node"):
            acquire(store, store.now_ms(), nodes=nodes)
