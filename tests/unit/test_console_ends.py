"""Tests of what the console says about ends and use, from records and counts: order, states, and words."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from mintage.rules import MAX_INTEGER, NamespaceRecord, PoolRecord, raise_floor
from mintage.server.console.pages import ends, use
from mintage.server.console.pages.ends import (
    NamespaceEnd,
    Numbers,
    count_numbers,
    days_in_words,
    ends_soon,
    pool_ends,
    read_pools,
)
from mintage.server.core.usage import Usage, Used
from mintage.store.memory import MemoryStore
from tests.helpers.clocks import StandingClock
from tests.helpers.stores import acquire

NOW = datetime(2026, 11, 27, tzinfo=UTC)
DAY_S = 86_400
RECORD = NamespaceRecord("codes", 100, 86_500, 1, 10, "server 1")
POOL = PoolRecord("sno", "sno/1", "server 1", 30_000)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(NOW.timestamp())


@pytest.fixture
def usage(clock: StandingClock) -> Usage:
    return Usage(clock=clock)


# --- namespaces ---------------------------------------------------------------------------------------------------


def test_days_left_are_those_at_the_higher_rate() -> None:
    assert NamespaceEnd(RECORD, hour=1.0, day=0.5).days == 1.0
    assert NamespaceEnd(RECORD, hour=0.0, day=0.5).days == 2.0
    assert NamespaceEnd(RECORD, hour=None, day=0.5).days == 2.0


@pytest.mark.parametrize(
    ("end", "state", "soon"),
    [
        (NamespaceEnd(RECORD, 1.0, 1.0), "ends soon", True),
        (NamespaceEnd(RECORD, 0.001, 0.001), "in use", False),
        (NamespaceEnd(RECORD, 0.0, 0.0), "not in use", False),
        (NamespaceEnd(RECORD, None, None), "rate not known", False),
        (NamespaceEnd(replace(RECORD, high_water=86_500), None, None), "used up", True),
        (NamespaceEnd(replace(RECORD, retired=True), 1.0, 1.0), "retired", False),
    ],
)
def test_state_of_a_namespace_is_a_word(end: NamespaceEnd, state: str, soon: bool) -> None:
    assert (end.state, end.is_soon) == (state, soon)


def test_namespace_whose_rate_is_not_known_does_not_end_soon() -> None:
    assert NamespaceEnd(RECORD, None, None).days is None


def test_first_end_is_first_and_retired_ones_are_last(usage: Usage, clock: StandingClock) -> None:
    names = {"slow": 1, "fast": 100, "idle": 0, "gone": 50}
    before = [replace(RECORD, name=name, maximum=10**6) for name in names]
    for each in before:
        usage.mark(each.name, each.high_water)
    clock.now_s += 60
    after = [replace(each, high_water=100 + 60 * names[each.name], retired=each.name == "gone") for each in before]
    after.append(replace(RECORD, name="full", high_water=86_500))
    found = ends.namespace_ends(after, usage)
    assert [each.record.name for each in found] == ["full", "fast", "slow", "idle", "gone"]
    assert [each.hour for each in found] == [None, 100.0, 1.0, 0.0, 50.0]


def test_raised_floor_counts_for_no_rate(usage: Usage, clock: StandingClock) -> None:
    before = replace(RECORD, maximum=10**7)
    usage.mark(before.name, before.high_water)
    clock.now_s += 60
    raised = raise_floor(before, 1_000_000)
    assert [each.hour for each in ends.namespace_ends([raised], usage)] == [0.0]
    after = replace(raised, high_water=raised.high_water + 120)
    assert [each.hour for each in ends.namespace_ends([after], usage)] == [2.0]


def test_rate_of_a_new_namespace_is_not_known_at_once(usage: Usage, clock: StandingClock) -> None:
    usage.mark(RECORD.name, RECORD.high_water)
    clock.now_s += 29
    assert ends.namespace_ends([RECORD], usage)[0].hour is None


def test_share_used_has_no_limit_of_digits() -> None:
    assert NamespaceEnd(replace(RECORD, high_water=MAX_INTEGER, maximum=MAX_INTEGER), None, None).used == 1.0
    assert NamespaceEnd(replace(RECORD, high_water=-1, maximum=0), None, None).used == 0.0


# --- pools and layouts --------------------------------------------------------------------------------------------


def test_held_numbers_are_counted_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mintage.store.PAGE", 3)
    store = MemoryStore()
    for _ in range(7):
        lease = acquire(store, nodes=range(100))
    acquire(store, "other", nodes=range(4))
    store.release(lease, used_until_ms=0)
    assert count_numbers(store) == {"p": Numbers(granted=7, held=6), "other": Numbers(granted=1, held=1)}


def test_pools_beyond_the_limit_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mintage.store.PAGE", 2)
    monkeypatch.setattr(ends, "MOST_LEASES", 4)
    store = MemoryStore()
    acquire(store, "a")
    for _ in range(6):
        acquire(store, "b", nodes=range(100))
    acquire(store, "c")
    assert count_numbers(store) == {"a": Numbers(1, 1)}


def test_fullest_pool_is_first_and_unknown_layouts_have_no_share() -> None:
    pools = [POOL, replace(POOL, name="twitter", layout="twitter"), replace(POOL, name="new", layout="of 2050")]
    numbers = {"sno": Numbers(100, 50), "twitter": Numbers(1_000, 1_000), "new": Numbers(1, 1)}
    found = pool_ends(pools, numbers, 0)
    assert [each.record.name for each in found] == ["twitter", "sno", "new"]
    assert [each.is_full for each in found] == [True, False, False]
    assert [each.share for each in found][2] is None


def test_pool_is_listed_in_quarantine_once_a_server_took_over() -> None:
    store = MemoryStore()
    acquire(store)
    pools, now_ms = read_pools(store)
    assert [each.waits_until_ms for each in pool_ends(pools, {}, now_ms)] == [None]
    store._records.identity = "another server"
    pools, now_ms = read_pools(store)
    [found] = pool_ends(pools, {}, now_ms)
    assert found.waits_until_ms is not None
    assert found.waits_until_ms > now_ms


def test_pools_of_one_server_ask_once_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    for name in "abc":
        store.create_pool(name, layout="test")
    identify = Mock(wraps=store.identify)
    monkeypatch.setattr(store, "identify", identify)
    assert [each.name for each in read_pools(store)[0]] == ["a", "b", "c"]
    identify.assert_called_once()


def test_pool_whose_share_is_held_is_full() -> None:
    store = MemoryStore()
    for nodes in (range(512, 513), range(8), range(8)):
        acquire(store, nodes=nodes)
    store.create_pool("p", layout="test", nodes=range(2))
    numbers = count_numbers(store)["p"]
    assert numbers == Numbers(3, 2)
    [found] = pool_ends([replace(POOL, layout="twitter", last_node=1)], {"sno": numbers}, 0)
    assert (found.nodes, found.share, found.is_full) == (2, 1.0, True)


def test_pool_whose_share_is_beyond_its_layout_grants_nothing() -> None:
    [found] = pool_ends([replace(POOL, layout="twitter", first_node=2_000)], {"sno": Numbers(0, 0)}, 0)
    assert (found.nodes, found.share, found.is_full) == (0, 0.0, False)


def test_pool_with_2_to_the_44_numbers_has_a_share() -> None:
    [found] = pool_ends([replace(POOL, layout="locality")], {"sno": Numbers(1_000, 1_000)}, 0)
    assert found.nodes == 2**44
    assert found.share == 1_000 / 2**44


def test_what_ends_within_90_days_is_listed_by_its_end() -> None:
    namespaces = [NamespaceEnd(RECORD, 0.02, None), NamespaceEnd(replace(RECORD, name="other"), 0.0001, None)]
    pools = pool_ends([replace(POOL, layout="twitter")], {"sno": Numbers(1_000, 1_000)}, 0)
    layouts = {"snowflake": NOW + timedelta(days=80), "sno": NOW + timedelta(days=91), "locality": None}
    found = ends_soon(namespaces, pools, layouts, NOW)
    assert [(each.kind, each.name) for each in found] == [
        ("pool", "sno"),
        ("namespace", "codes"),
        ("layout", "snowflake"),
    ]


def test_last_integer_that_is_left_is_one() -> None:
    [found] = ends_soon([NamespaceEnd(replace(RECORD, high_water=RECORD.maximum - 1), 0.02)], [], {}, NOW)
    assert found.why == "integers left: 1; use a new namespace"


def test_layout_that_has_ended_has_no_days_left() -> None:
    [found] = ends_soon([], [], {"sno": NOW - timedelta(days=5)}, NOW)
    assert found.days == 0.0


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (None, "not known"),
        (0.0, "none"),
        (0.01, "less than an hour"),
        (0.5, "12 hours"),
        (1.0, "1 day"),
        (89.9, "89 days"),
        (731.0, "2 years"),
        (10.0**9, "over 100 years"),
        (math.inf, "not in use"),
    ],
)
def test_days_left_are_words(days: float | None, words: str) -> None:
    assert days_in_words(days) == words


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (0, "0"),
        (1_234, "1,234"),
        (10**15 - 1, "999,999,999,999,999"),
        (2**62, "4.6 × 10¹⁸"),
        (MAX_INTEGER, "2⁶³ - 1"),
    ],
)
def test_number_of_more_than_15_digits_is_rounded(n: int, words: str) -> None:
    assert ends.amount(n) == words


# --- use ----------------------------------------------------------------------------------------------------------


def used(hour: int, day: int) -> Used:
    return Used((*[0] * 11, hour), (*[0] * 23, day))


def test_largest_use_of_the_hour_is_first() -> None:
    integers = {("a", ""): used(1, 9), ("b", ""): used(2, 2), ("c", ""): used(1, 1)}
    found = use.rows(0, integers=integers, ids={("d", ""): used(3, 3)})
    assert [row.name for row in found] == ["d", "b", "a", "c"]


def test_counts_of_keys_and_namespaces_add_up() -> None:
    counts = {("orders", "web"): used(1, 2), ("orders", "batch"): used(3, 4), ("users", "web"): used(5, 6)}
    found = [{row.name: row.counts["integers"] for row in use.rows(by, integers=counts)} for by in (0, 1)]
    assert found[0] == {"orders": used(4, 6), "users": used(5, 6)}
    assert found[1] == {"web": used(6, 8), "batch": used(3, 4)}


def test_line_of_a_use_says_its_points_in_words() -> None:
    [row] = use.rows(0, integers={("orders", ""): used(1_234, 5)})
    drawn = row.drawn("integers", "hour")
    assert drawn.startswith("1,234 <svg")
    assert 'aria-label="Integers of orders, last hour in steps of five minutes, the oldest first: 0, ' in drawn
