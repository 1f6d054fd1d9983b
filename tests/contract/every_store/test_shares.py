"""Tests of every store: the share of a pool, for stores that know nothing of each other."""

from __future__ import annotations

from typing import Any

import pytest

from mintage.rules import ALL_NODES, LATEST_MS, MAX_NODES, MAX_SPAN_MS
from mintage.store import Store, open_store
from tests.contract.every_store.stores import LAYOUT, acquire, extend, new_pool
from tests.helpers.outcomes import code_of, refusal
from tests.helpers.stores import LIMIT_MS


def share_of(store: Store, pool: str = "p") -> range:
    found = store.get_pool(pool)
    assert found is not None
    return found.share


def test_pool_has_all_numbers_of_its_layout(store: Store) -> None:
    new_pool(store)
    assert share_of(store) == ALL_NODES
    assert acquire(store, store.now_ms(), nodes=range(MAX_NODES - 1, MAX_NODES)).node == MAX_NODES - 1


def test_pool_grants_the_numbers_of_its_share_alone(store: Store, url: str) -> None:
    made = store.create_pool("p", layout=LAYOUT, never_used=True, nodes=range(2, 4))
    assert made.share == range(2, 4)
    now = store.now_ms()
    with open_store(url) as other:
        assert share_of(other) == range(2, 4)
        assert [acquire(each, now, nodes=range(100)).node for each in (store, other)] == [2, 3]
        error = refusal(lambda: acquire(other, now, nodes=range(3)))
    assert (error.code, "(2..2)" in str(error) or "number 2 of" in str(error)) == ("lease.none_free", True)
    assert code_of(lambda: acquire(store, now, nodes=range(2))) == "config.node"
    assert code_of(lambda: acquire(store, now, nodes=range(4, MAX_NODES))) == "config.node"
    error = refusal(lambda: acquire(store, now, nodes=range(700, 701)))
    assert "number 700 is outside the share 2..3 of pool 'p'" in str(error)
    assert [record.node for record in store.list_leases("p")] == [2, 3]


def test_numbers_that_were_never_used_are_those_of_the_share(store: Store) -> None:
    store.create_pool("p", layout=LAYOUT, never_used=True, nodes=range(2, 3))
    assert acquire(store, store.now_ms(), nodes=range(9), never_used=True).node == 2
    assert code_of(lambda: acquire(store, store.now_ms(), nodes=range(9), never_used=True)) == "lease.none_free"


def test_narrower_share_ends_the_extensions_of_other_numbers(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    inside, outside = (acquire(store, now, nodes=range(node, node + 1)) for node in (1, 2))
    pool = store.create_pool("p", layout=LAYOUT, nodes=range(2))
    assert (pool.share, pool.floor_ms, pool.history_lost) == (range(2), 0, False)
    assert extend(store, inside, now_ms=now + 5).until_ms == inside.until_ms + 5
    error = refusal(lambda: extend(store, outside, now_ms=now + 5))
    assert (error.code, "outside the share 0..1" in str(error)) == ("lease.lost", True)
    held = store.get_lease("p", 2)
    assert held is not None
    assert (held.until_ms, held.cloned_ms) == (outside.until_ms, 0)


def test_number_outside_the_share_is_released_and_revoked_as_ever(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    leases = [acquire(store, now, nodes=range(node, node + 1), holder="me") for node in (2, 3)]
    store.create_pool("p", layout=LAYOUT, nodes=range(2))
    store.release(leases[0], used_until_ms=now + 1)
    store.revoke("p", 3)
    records = store.list_leases("p")
    assert [(each.node, each.token, each.holder) for each in records] == [(2, None, "me"), (3, None, "me")]
    assert records[0].until_ms == max(leases[0].floor_ms, now + 1)


def test_answer_to_an_extension_before_the_share_was_narrowed_is_repeated(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now, nodes=range(5, 6))
    extended = store.extend(lease, now_ms=now + 5, next_token="next")
    store.create_pool("p", layout=LAYOUT, nodes=range(2))
    assert store.extend(lease, now_ms=now + 9, next_token="next") == extended


def test_wider_share_needs_the_time_from_which_nobody_mints(store: Store) -> None:
    store.create_pool("p", layout=LAYOUT, never_used=True, nodes=range(2, 4))
    before = store.get_pool("p")
    for nodes in (range(1, 4), range(2, 5), range(5, 6), ALL_NODES):
        error = refusal(lambda: store.create_pool("p", layout=LAYOUT, nodes=nodes))  # noqa: B023
        assert (error.code, "--wider-from TIME" in str(error)) == ("config.node", True)
    late_ms = store.now_ms() + LIMIT_MS + 60_000
    assert code_of(lambda: widened(store, range(5), late_ms)) == "config.node"
    assert code_of(lambda: widened(store, range(5), LATEST_MS)) == "config.node"
    assert code_of(lambda: widened(store, range(5), store.now_ms() - MAX_SPAN_MS - 60_000)) == "config.node"
    assert store.get_pool("p") == before


def widened(store: Store, nodes: range, wider_from_ms: int) -> Any:
    return store.create_pool("p", layout=LAYOUT, nodes=nodes, wider_from_ms=wider_from_ms)


def test_wider_share_grants_no_window_before_that_time(store: Store) -> None:
    store.create_pool("p", layout=LAYOUT, never_used=True, nodes=range(2, 4))
    now = store.now_ms()
    held = acquire(store, now, nodes=range(9))
    pool = widened(store, range(5), now + 1_000)
    assert (pool.share, pool.floor_ms, pool.history_lost) == (range(5), now + 1_000, True)
    lease = acquire(store, now, nodes=range(9))
    assert (lease.node, lease.floor_ms) == (0, now + 1_000)
    assert extend(store, held, now_ms=now + 5).floor_ms == held.floor_ms
    assert code_of(lambda: acquire(store, now, nodes=range(9), never_used=True)) == "lease.none_free"
    assert widened(store, range(5), 0).floor_ms == now + 1_000


def test_share_outlives_the_other_changes_of_its_pool(store: Store) -> None:
    store.create_pool("p", layout=LAYOUT, never_used=True, nodes=range(2, 4))
    store.create_pool("p", layout=LAYOUT, history_ms=5)
    acquire(store, store.now_ms(), nodes=range(9))
    assert share_of(store) == range(2, 4)


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"nodes": range(0)}, "config.node"),
        ({"nodes": range(5, 2)}, "config.node"),
        ({"nodes": range(-1, 2)}, "config.node"),
        ({"nodes": range(0, 9, 2)}, "config.node"),
        ({"nodes": range(MAX_NODES + 1)}, "config.node"),
        ({"nodes": range(2**70)}, "config.node"),
        ({"nodes": "0-5"}, "config.node"),
        ({"nodes": [1, 2]}, "config.node"),
        ({"wider_from_ms": 5}, "config.node"),
        ({"nodes": range(5), "wider_from_ms": -1}, "field.range"),
        ({"nodes": range(5), "wider_from_ms": 2**53}, "field.range"),
        ({"nodes": range(5), "wider_from_ms": "now"}, "argument.type"),
        ({"nodes": range(5), "wider_from_ms": 1.5}, "argument.type"),
        ({"nodes": range(5), "wider_from_ms": True}, "argument.type"),
    ],
    ids=str,
)
def test_share_that_is_none_is_refused(terms: dict[str, Any], code: str) -> None:
    with open_store("memory:") as store:
        assert code_of(lambda: store.create_pool("p", layout=LAYOUT, **terms)) == code
        assert store.get_pool("p") is None
