"""Tests of what the console reads of pools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mintage.errors import RequestError
from mintage.rules import LATEST_MS
from mintage.server.console.node_map import state_of
from mintage.server.console.pages import pools
from mintage.store import PAGE
from mintage.store.memory import MemoryStore


def filled(numbers: range) -> MemoryStore:
    store = MemoryStore()
    for each in numbers:
        store.acquire(
            "sno", nodes=range(each, each + 1), layout="sno/1", holder="web-1", now_ms=store.now_ms(), span_ms=30_000
        )
    return store


def test_numbers_of_a_pool_are_read_to_the_last() -> None:
    found = pools.read_nodes(filled(range(PAGE + 5)), "sno")
    assert (len(found.records), found.stop, found.size) == (PAGE + 5, None, 65_536)


def test_read_of_many_numbers_says_where_it_stopped() -> None:
    store = filled(range(PAGE + 5))
    found = pools.read_nodes(store, "sno", most=1)
    assert (len(found.records), found.stop) == (PAGE, PAGE)
    later = pools.read_nodes(store, "sno", PAGE)
    assert [each.node for each in later.records] == list(range(PAGE, PAGE + 5))


@pytest.mark.parametrize(
    ("first", "last", "stop", "nodes"),
    [(0, 65_535, 65_536, [3, 4, 5]), (4, 4, 5, [4]), (5, 99_999, 65_536, [5]), (6, 7, 8, [])],
)
def test_part_of_a_pool_has_its_numbers(first: int, last: int, stop: int, nodes: list[int]) -> None:
    found = pools.read_nodes(filled(range(3, 6)), "sno")
    part, records = found.within(first, last)
    assert part == range(first, stop)
    assert [each.node for each in records] == nodes


def test_pool_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RequestError, match="there is no pool 'sno'"):
        pools.read_nodes(MemoryStore(), "sno")
    with pytest.raises(RequestError, match="there is no pool 'sno'"):
        pools.read_windows(MemoryStore(), "sno", 1, 1)


def test_unknown_layout_ends_at_the_last_number_granted() -> None:
    store = MemoryStore()
    store.acquire("x", nodes=range(7, 8), layout="of later", holder="", now_ms=store.now_ms(), span_ms=30_000)
    found = pools.read_nodes(store, "x")
    assert found.size == 8


@pytest.mark.parametrize("history_ms", [0, 604_800_000])
def test_number_is_known_to_be_free_since_its_last_grant(history_ms: int) -> None:
    store = MemoryStore()
    store.create_pool("sno", layout="sno/1", history_ms=history_ms)
    lease = store.acquire("sno", nodes=range(9), layout="sno/1", holder="web-1", now_ms=store.now_ms(), span_ms=30_000)
    found = pools.read_windows(store, "sno", lease.node, LATEST_MS)
    later = found._replace(now_ms=found.now_ms + 3_600_000)
    assert found.record is not None
    assert later.known_ms <= found.record.since_ms
    assert pools.read_windows(store, "sno", 8, LATEST_MS).known_ms == 0


def test_number_is_in_quarantine_once_a_server_took_over() -> None:
    store = filled(range(1))
    assert pools.read_windows(store, "sno", 5, LATEST_MS).known_ms == 0
    store._records.identity = "another server"
    found = pools.read_windows(store, "sno", 5, LATEST_MS)
    assert found.known_ms > found.now_ms
    assert state_of(found.record, found.pool, found.now_ms) == "quarantined"


@pytest.mark.parametrize(("node", "is_free"), [(0, True), (57_343, True), (57_344, False), (65_535, False)])
def test_number_that_is_left_to_locks_is_not_known_to_be_free(
    monkeypatch: pytest.MonkeyPatch, node: int, *, is_free: bool
) -> None:
    store = filled(range(1, 2))
    assert pools.read_windows(store, "sno", node, LATEST_MS).known_ms == 0
    monkeypatch.setattr("mintage.lease.registry.is_registry", lambda _: True)
    found = pools.read_windows(store, "sno", node, LATEST_MS)
    assert found.known_ms == (0 if is_free else found.now_ms)


def test_number_outside_the_share_is_not_known_to_be_free() -> None:
    store = filled(range(1))
    store.create_pool("sno", layout="sno/1", nodes=range(512))
    found = pools.read_windows(store, "sno", 512, LATEST_MS)
    assert found.known_ms == found.now_ms
    assert pools.read_windows(store, "sno", 511, LATEST_MS).known_ms == 0


def test_holders_before_a_loss_are_not_known() -> None:
    store = filled(range(1))
    found = pools.read_windows(store, "sno", 0, LATEST_MS)
    lost = replace(found.pool, history_lost=True, floor_ms=found.now_ms + 30_000)
    assert found._replace(pool=lost).known_ms == lost.floor_ms
