"""Tests of every store: its description, closing and reopening, threads, and forks."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

from mintage.rules import Lease, Segment
from mintage.store import Store, open_store
from mintage.store.memory import MemoryStore
from tests.contract.clients import overlaps
from tests.contract.every_store.stores import SPAN_MS, acquire, extend, forked, new_pool
from tests.helpers.outcomes import code_of
from tests.helpers.stores import LIMIT_MS, patient
from tests.servers import Proxy

if TYPE_CHECKING:
    from tests.servers import MariaDB


def test_description_of_a_store_is_complete_and_without_password(store: Store) -> None:
    description = store.describe()
    assert description.promise in {"process", "host", "shared"}
    assert description.promise == store.promise
    assert description.server
    assert description.identity
    assert description.identity == store.describe().identity
    assert abs(description.now_ms - store.now_ms()) < LIMIT_MS
    assert description.url == str(store.url)
    if store.url.password is not None:
        assert store.url.password not in repr((store, store.url, description))


@pytest.mark.parametrize(("name", "most"), [("redis", 1), ("http", 1), ("etcd", 4)])
def test_verb_costs_few_requests(request: pytest.FixtureRequest, name: str, most: int) -> None:
    with Proxy(request.getfixturevalue(name)) as proxy, open_store(patient(proxy.url)) as store:
        new_pool(store)
        now = store.now_ms()
        held = acquire(store, now)
        store.reserve("n", 10)
        for verb in (lambda: store.reserve("n", 10), lambda: extend(store, held, now_ms=now)):
            before = proxy.replies
            verb()
            assert 1 <= proxy.replies - before <= most


def test_closed_store_opens_again_with_its_records(store: Store) -> None:
    def closed() -> Store:
        store.close()
        store.close()
        return store

    new_pool(closed())
    now = closed().now_ms()
    lease = acquire(closed(), now)
    first = closed().reserve("n", 10)
    second = closed().reserve("n", 10)
    assert second.first > first.last
    lease = extend(closed(), lease, now_ms=now + 1)
    assert lease.until_ms == now + 1 + SPAN_MS
    assert closed().give_back(second, second.first + 4)
    assert closed().raise_floor("n", 100).floor == 100
    assert closed().reserve("n", 1).first == 100
    closed().release(lease, used_until_ms=now)
    assert [record.token for record in closed().list_leases()] == [None]
    assert closed().describe().url == str(store.url)


def test_stores_of_one_url_are_one_store(url: str) -> None:
    with open_store(url) as one, open_store(url) as other:
        new_pool(one)
        now = other.now_ms()
        lease = acquire(one, now)
        assert code_of(lambda: acquire(other, now)) == "lease.none_free"
        other.revoke("p", 0)
        assert code_of(lambda: extend(one, lease, now_ms=now)) == "lease.lost"
        segments = [store.reserve("n", 10) for store in (one, other, one, other)]
        assert not overlaps([("n", segment.first, segment.last + 1) for segment in segments])
        assert one.describe().identity == other.describe().identity


def test_mysql_and_mariadb_are_two_names_of_one_kind(mariadb: MariaDB) -> None:
    url = patient(mariadb.url)
    with open_store(url) as one, open_store(url.replace("mariadb:", "mysql:", 1)) as other:
        assert [store.reserve("n", 5).first for store in (one, other, one)] == [1, 6, 11]


def test_threads_may_share_a_store(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    segments: list[Segment] = []
    leases: list[Lease] = []

    def use() -> None:
        leases.append(acquire(store, now, nodes=range(8)))
        segments.extend(store.reserve("n", 3) for _ in range(10))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lease.node for lease in leases) == list(range(8))
    assert len(segments) == 80
    assert not overlaps([("n", segment.first, segment.last + 1) for segment in segments])


@pytest.mark.skipif(sys.platform != "linux", reason="forks beside threads are Linux's")
def test_forked_child_and_its_parent_both_go_on(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now, nodes=range(2))
    mine = store.reserve("n", 10)

    def child() -> list[int]:
        segment = store.reserve("n", 10)
        return [segment.first, segment.last, acquire(store, now, nodes=range(2)).node]

    theirs = forked(child)
    after = store.reserve("n", 10)
    if isinstance(store, MemoryStore):
        assert theirs == "store.refused"
        assert after.first == mine.last + 1
    else:
        first, last, node = theirs
        segments = [mine, Segment("n", first, last), after]
        assert not overlaps([("n", segment.first, segment.last + 1) for segment in segments])
        assert node == 1 - lease.node
    assert extend(store, lease, now_ms=now + 1).until_ms == now + 1 + SPAN_MS
