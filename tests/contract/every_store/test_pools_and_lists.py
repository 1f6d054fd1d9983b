"""Tests of every store: pools, names, and lists of pools, namespaces and leases."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mintage.errors import LeaseError
from mintage.rules import NodeRecord
from tests.contract.every_store.stores import LAYOUT, SPAN_MS, acquire, extend, new_pool, shown
from tests.helpers.outcomes import code_of, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from mintage.store import Store

HOSTILE_NAMES = [
    "",
    "n" * 129,
    "two\nlines",
    "line\n",
    "nul\0",
    "it's",
    'a"b',
    "a`b",
    "a;b",
    "a b",
    "a/b",
    "a\\b",
    "%",
    "a*b",
    "{a}b",
    "größe",
    "١٢",
    "-a",
    ".a",
    "__a",
    "\udcff",
]


def test_pool_is_created_once_and_kept(store: Store) -> None:
    made = store.create_pool("p", layout=LAYOUT, never_used=True)
    assert (made.name, made.layout, made.quarantine_until_ms) == ("p", LAYOUT, 0)
    now = store.now_ms()
    lease = acquire(store, now)
    assert store.create_pool("p", layout=LAYOUT, never_used=True) == made
    again = store.create_pool("p", layout=LAYOUT)
    assert (again.name, again.layout, again.quarantine_until_ms) == ("p", LAYOUT, 0)
    assert again.span_ms == made.span_ms == store.span_ms
    assert list(store.list_pools()) == [again]
    assert code_of(lambda: acquire(store, now)) == "lease.none_free"
    assert extend(store, lease, now_ms=now + 1).until_ms == now + 1 + SPAN_MS


def test_created_pool_waits_as_one_that_a_lease_creates(store: Store) -> None:
    with suppress(LeaseError):
        acquire(store, store.now_ms(), pool="p")
    store.create_pool("q", layout=LAYOUT)
    leased, created = store.list_pools()
    assert created.history_lost == leased.history_lost
    assert bool(created.quarantine_until_ms) == bool(created.floor_ms) == bool(leased.quarantine_until_ms)


def test_statement_that_numbers_were_never_used_ends_a_quarantine(store: Store) -> None:
    store.create_pool("p", layout=LAYOUT)
    stated = store.create_pool("p", layout=LAYOUT, never_used=True)
    assert (stated.floor_ms, stated.quarantine_until_ms, stated.history_lost) == (0, 0, False)
    assert acquire(store, store.now_ms(), never_used=True).floor_ms == 0


def test_pool_grants_at_most_its_own_span(store: Store) -> None:
    new_pool(store)
    assert code_of(lambda: acquire(store, store.now_ms(), span_ms=store.span_ms + 1)) == "config.span"
    assert not store.list_leases()
    # The first acquire creates the pool, which Redis quarantines as possibly lost.
    with suppress(LeaseError):
        acquire(store, store.now_ms(), "long", span_ms=5 * SPAN_MS)
    new_pool(store, "long")
    now = store.now_ms()
    assert acquire(store, now, "long", nodes=range(1, 2), span_ms=5 * SPAN_MS).until_ms >= now + 5 * SPAN_MS
    assert [pool.span_ms for pool in store.list_pools()] == [5 * SPAN_MS, store.span_ms]


def test_high_number_has_a_longer_span_up_to_that_of_the_pool(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    for node, span_ms in ((100, 6_000), (250, 15_000), (2**44 - 1, store.span_ms)):
        lease = acquire(store, now, nodes=range(node, node + 1), span_ms=6_000)
        later = extend(store, lease, now_ms=now + 1_000)
        assert (lease.until_ms, later.until_ms) == (now + span_ms, now + 1_000 + span_ms)


def test_leases_are_listed_with_all_fields(store: Store) -> None:
    now = store.now_ms()
    for pool in ("q", "p"):
        new_pool(store, pool)
    late, early = (acquire(store, now, "p", nodes=range(node, node + 1), holder=f"h{node}") for node in (11, 2))
    store.release(early, used_until_ms=now)
    acquire(store, now, "q")
    identity = store.list_leases("p")[0].identity
    expected = [
        NodeRecord("p", 2, early.floor_ms, now, SPAN_MS, identity, None, "h2", since_ms=now),
        NodeRecord("p", 11, late.floor_ms, late.until_ms, SPAN_MS, identity, shown(store, late), "h11", since_ms=now),
    ]
    assert list(store.list_leases("p")) == expected
    assert [(record.pool, record.node) for record in store.list_leases()] == [("p", 2), ("p", 11), ("q", 0)]
    assert not store.list_leases("nobody")


def test_pools_and_namespaces_are_sorted_by_the_bytes_of_their_names(store: Store) -> None:
    names = ["B", "a", "A", "a.b", "a-b", "a1", "a10", "a2", "a:b", "a@b", "a_b", "a" * 128]
    for name in names:
        new_pool(store, name)
        acquire(store, store.now_ms(), name)
        store.reserve(name, 1)
    assert [pool.name for pool in store.list_pools()] == sorted(names)
    assert [record.pool for record in store.list_leases()] == sorted(names)
    assert [namespace.name for namespace in store.list_namespaces()] == sorted(names)
    assert store.count_namespaces() == len(names)
    assert list(store.each_pool()) == list(store.list_pools())
    assert list(store.each_namespace()) == list(store.list_namespaces())
    assert list(store.each_lease()) == list(store.list_leases())
    assert all(store.get_namespace(record.name) == record for record in store.list_namespaces())
    assert store.get_namespace("absent") is None
    assert all(store.get_pool(record.name) == record for record in store.list_pools())
    assert store.get_pool("absent") is None


def test_lists_are_read_in_pages_of_any_size(store: Store, subtests: pytest.Subtests) -> None:
    for name in ("p", "p.2", "p2", "P"):
        new_pool(store, name)
        store.reserve(name, 1)
    for node in (7, 0, 2**43, 10, 9):
        acquire(store, store.now_ms(), "p", nodes=range(node, node + 1))
    acquire(store, store.now_ms(), "p2", nodes=range(8, 9))
    lists: dict[str, tuple[Callable[..., Any], str, Any]] = {
        "pools": (store.list_pools, "name", ""),
        "namespaces": (store.list_namespaces, "name", ""),
        "leases": (partial(store.list_leases, "p"), "node", -1),
    }
    for what, (read, key, first) in lists.items():
        for size in (1, 2, 4, 5, 6, 2**31 - 1):
            with subtests.test(what, size=size):
                found, after = [], first
                while page := read(after, size):
                    assert len(page) <= size
                    found += page
                    after = getattr(page[-1], key)
                assert found == list(read())
                assert len(found) == (5 if what == "leases" else 4)
    assert [record.node for record in store.list_leases("p", 9, 2)] == [10, 2**43]
    assert [(record.pool, record.node) for record in store.list_leases(limit=3)] == [("p", 0), ("p", 7), ("p", 9)]
    with refused("field.range"):
        store.list_leases(None, 7)


def test_page_begins_after_a_name_that_nothing_has(store: Store) -> None:
    for name in ("a", "c"):
        new_pool(store, name)
        store.reserve(name, 1)
    assert [record.name for record in store.list_pools("b")] == ["c"]
    assert [record.name for record in store.list_namespaces("b")] == ["c"]
    assert not store.list_leases("b", 3)
    assert not store.list_pools("c")


def test_empty_store_lists_nothing(store: Store) -> None:
    assert [*store.list_pools(), *store.list_leases(), *store.list_leases("p"), *store.list_namespaces()] == []


def test_token_is_never_shown(store: Store) -> None:
    new_pool(store)
    lease = acquire(store, store.now_ms())
    assert lease.token not in f"{lease} {store.list_leases()}"


def test_name_of_a_holder_is_returned_unchanged(store: Store) -> None:
    holders = ['it\'s "me"; DROP TABLE x --', "{0} %s :name $1 ?", "größe 🐙 中", "a\nb\t", ""]
    new_pool(store)
    for holder in holders:
        acquire(store, store.now_ms(), nodes=range(len(holders)), holder=holder)
    assert {record.holder for record in store.list_leases()} == set(holders)


def test_malformed_name_is_refused_and_leaves_nothing(store: Store, subtests: pytest.Subtests) -> None:
    verbs: list[Callable[[str], object]] = [
        lambda name: acquire(store, store.now_ms(), name),
        lambda name: store.create_pool(name, layout=LAYOUT),
        lambda name: store.reserve(name, 1),
        store.create_namespace,
        lambda name: store.raise_floor(name, 5),
    ]
    for name in HOSTILE_NAMES:
        with subtests.test(name=ascii(name)):
            for verb in verbs:
                with refused("config.name"):
                    verb(name)
            assert code_of(partial(store.revoke, name, 0)) in {"lease.unknown", "config.name"}
            assert [*store.list_pools(), *store.list_leases(), *store.list_namespaces()] == []


def test_name_of_letters_digits_and_punctuation_is_accepted(store: Store, subtests: pytest.Subtests) -> None:
    for name in ("a", "7", "n" * 128, "a.b_c:d@e-f", "A" * 64):
        with subtests.test(name=name):
            new_pool(store, name)
            assert acquire(store, store.now_ms(), name).pool == name
            assert store.reserve(name, 1).namespace == name
            assert [record.pool for record in store.list_leases(name)] == [name]
