"""Tests of every store: who minted an ID, after numbers have changed hands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mintage import ulid
from mintage.rules import MIN_SPAN_MS
from mintage.testing import ManualClock
from mintage.who import who
from tests.contract.every_store.stores import new_pool

if TYPE_CHECKING:
    from mintage.rules import Lease
    from mintage.store import Store


def acquire(store: Store, now_ms: int, holder: str) -> Lease:
    return store.acquire("ulid", nodes=range(1), layout="ulid", holder=holder, now_ms=now_ms, span_ms=MIN_SPAN_MS)


def holders(store: Store, node: int, *times_ms: int) -> list[tuple[str, str | None]]:
    """Return state and holder for IDs of a node number at some times."""
    minted = [ulid.Generator(node, clock=ManualClock(ms * 10**6)).new() for ms in times_ms]
    found = [who(each, store)[0] for each in minted]
    assert not any("lost data" in each.sentence for each in found)
    return [(each.state, each.holder.text if each.holder else None) for each in found]


def test_each_holder_of_a_number_is_named(store: Store) -> None:
    new_pool(store, "ulid", layout="ulid")
    now = store.now_ms()
    first = acquire(store, now, "first")
    store.release(first, used_until_ms=now - 1_000)
    second = acquire(store, now, "second")
    store.release(second, used_until_ms=second.floor_ms)
    third = acquire(store, now, "third")
    store.release(third, used_until_ms=now - 500)
    acquire(store, now, "fourth")
    assert holders(store, 0, now - 1_001, now - 1_000, now - 501, now - 500, now + MIN_SPAN_MS) == [
        ("held", "first"),
        ("held", "third"),
        ("held", "third"),
        ("held", "fourth"),
        ("free", None),
    ]
    assert holders(store, 1, now) == [("free", None)]
