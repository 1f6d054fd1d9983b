"""Tests of every store: who reserved which integers of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mintage.errors import FieldError
from mintage.process.holder import holder as this_process
from mintage.rules import MAX_INTEGER, PRUNED, RunRecord
from mintage.store import open_store
from mintage.store.cached import CachedStore
from mintage.store.memory import MemoryStore
from mintage.who import who_reserved
from tests.contract.every_store.stores import PAIRS, STORES, url_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mintage.store import Store


@pytest.fixture(params=[each for each in STORES if each not in PAIRS])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request, tmp_path, request.param)


@pytest.fixture
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with open_store(url_of(request, tmp_path, "sqlite+redis")) as opened:
        yield opened


def runs(store: Store, name: str = "n", **options: int) -> list[tuple[int, int, str]]:
    return [(run.first, run.last, run.holder) for run in store.list_runs(name, **options)]


def named(store: Store, *integers: int) -> list[str]:
    """Return the holder of each integer, or else the state."""
    found = [who_reserved("n", integer, store) for integer in integers]
    return [each.holder.text if each.holder else each.state for each in found]


def test_run_ends_when_another_holder_reserves(store: Store) -> None:
    before = store.now_ms()
    for holder in ("one", "one", "größe 🐙", "one"):
        store.reserve("n", 10, holder=holder)
    after = store.now_ms()
    [second, first] = store.list_runs("n")
    assert (first.namespace, first.first, first.last, first.holder) == ("n", 1, 20, "one")
    assert (second.first, second.last, second.holder) == (21, 30, "größe 🐙")
    # The clock of a store may be that of an HTTP date, to the second.
    assert before - 1_000 <= first.since_ms <= first.until_ms <= second.since_ms <= after + 1_000
    record = store.get_namespace("n")
    assert record is not None
    assert (record.run_holder, record.run_first, record.run_last, record.high_water) == ("one", 31, 40, 40)
    assert named(store, 1, 20, 21, 30, 31, 40, 41) == ["one", "one", "größe 🐙", "größe 🐙", "one", "one", "free"]


def test_reservation_without_a_holder_names_this_process(store: Store) -> None:
    store.reserve("n", 10)
    assert named(store, 1) == [this_process()]


def test_holder_that_told_no_name_is_not_the_one_before(store: Store) -> None:
    for name in ("one", "", "one"):
        store.reserve("n", 10, holder=name)
    assert named(store, 10, 11, 20, 21) == ["one", "unknown", "unknown", "one"]


def test_longest_holder_is_kept_whole(store: Store) -> None:
    for name in ("🐙" * 200, "one"):
        store.reserve("n", 1, holder=name)
    assert named(store, 1, 2) == ["🐙" * 200, "one"]
    with pytest.raises(FieldError):
        store.reserve("n", 1, holder="x" * 201)


def test_runs_at_an_integer_and_below_are_listed_highest_first(store: Store) -> None:
    for at in range(5):
        store.reserve("n", 10, holder=f"host {at}")
        store.reserve("n2", 1, holder=f"host {at}")
    assert [first for first, _, _ in runs(store)] == [31, 21, 11, 1]
    assert [first for first, _, _ in runs(store, limit=2)] == [31, 21]
    assert [first for first, _, _ in runs(store, before=21, limit=1)] == [21]
    assert [first for first, _, _ in runs(store, before=20)] == [11, 1]
    assert runs(store, before=0) == []
    assert [first for first, _, _ in runs(store, "n2")] == [4, 3, 2, 1]
    assert runs(store, "N") == []


def test_tail_that_was_given_back_is_of_who_reserves_it_next(store: Store) -> None:
    store.reserve("n", 10, holder="one")
    second = store.reserve("n", 10, holder="two")
    assert store.give_back(second, 15)
    assert named(store, 10, 11, 14, 15) == ["one", "two", "two", "free"]
    store.reserve("n", 10, holder="three")
    assert named(store, 10, 11, 14, 15, 24, 25) == ["one", "two", "two", "three", "three", "free"]


def test_tail_below_the_last_run_can_be_given_back(store: Store) -> None:
    first, second = store.reserve("n", 10, holder="one"), store.reserve("n", 10, holder="two")
    assert store.give_back(second, 11)
    assert named(store, 10, 11) == ["one", "free"]
    assert store.give_back(first, 5)
    assert named(store, 4, 5, 10, 11) == ["one", "free", "free", "free"]
    store.raise_floor("n", 9)
    store.reserve("n", 3, holder="three")
    assert named(store, 4, 5, 8, 9, 11) == ["one", "free", "free", "three", "three"]
    store.reserve("n", 3, holder="four")
    assert named(store, 4, 5, 8, 9, 11, 12) == ["one", "free", "free", "three", "three", "four"]


def test_skipped_integers_are_nobodys(store: Store) -> None:
    store.create_namespace("n", start=100, maximum=1_000, stride=5)
    assert named(store, 95, 100, 101) == ["free"] * 3
    store.reserve("n", 2, holder="one")
    store.raise_floor("n", 200)
    store.reserve("n", 2, holder="one")
    assert named(store, 95, 100, 105, 110, 195, 200, 205, 210) == [
        *("free", "one", "one", "free", "free", "one", "one", "free"),
    ]
    assert named(store, 101, 1_005, MAX_INTEGER) == ["free"] * 3


def test_retired_namespace_keeps_its_history(store: Store) -> None:
    assert who_reserved("n", 1, store).state == "unknown namespace"
    for name in ("one", "two"):
        store.reserve("n", 1, holder=name)
    store.retire("n")
    assert named(store, 1, 2, 3) == ["one", "two", "free"]


def test_history_of_a_namespace_outlives_the_client(url: str) -> None:
    if url.startswith("memory"):
        pytest.skip("it has the lifetime of the process")
    with open_store(url) as store:
        for name in ("one", "two"):
            store.reserve("n", 1, holder=name)
    with open_store(url) as store:
        assert named(store, 1, 2) == ["one", "two"]


def test_large_integers_have_a_history(store: Store) -> None:
    store.create_namespace("n", start=2**53 + 1)
    for name in ("one", "two", "three"):
        store.reserve("n", 1, holder=name)
    assert named(store, 2**53 + 1, 2**53 + 2, 2**53 + 3) == ["one", "two", "three"]
    store.create_namespace("end", start=MAX_INTEGER - 1)
    for name in ("one", "two"):
        store.reserve("end", 1, holder=name)
    assert runs(store, "end") == [(MAX_INTEGER - 1, MAX_INTEGER - 1, "one")]


def test_pair_names_its_cache(pair: Store) -> None:
    assert isinstance(pair, CachedStore)
    for name in ("one", "two"):
        pair.reserve("n", 10, holder=name)
    [one] = set(named(pair, 1, 20))
    assert one.startswith("a client of the cache redis://127.0.0.1:")


def test_reservation_removes_a_few_runs_that_ended_too_long_ago() -> None:
    now = 1_700_000_000_000
    store = MemoryStore(clock=lambda: now)
    for at in range(PRUNED + 5):
        store.reserve("n", 1, holder=f"host {at}")
    now += 7 * 86_400_000
    store.reserve("n", 1, holder="next")
    assert len(store.list_runs("n")) == PRUNED + 5
    now += 1
    store.reserve("n", 1, holder="last")
    assert [run.first for run in store.list_runs("n")] == [16, 15, 14, 13, 12, 11]
    assert who_reserved("n", 10, store).state == "forgotten"
    assert isinstance(store.list_runs("n")[0], RunRecord)
