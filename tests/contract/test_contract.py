"""Tests of the contract of every store."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import traceback
import uuid
import warnings
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mintage import Sequence
from mintage._core.formats import read_pool_layout
from mintage.errors import FieldError, GenerationError, LeaseError, MintError, StoreError
from mintage.lease import (
    CLOCK_LIMIT_MS,
    CLOCK_MARGIN_MS,
    MAX_COUNT,
    MAX_INTEGER,
    MAX_SPAN_MS,
    MAX_STRIDE,
    MIN_SPAN_MS,
    REST_MS,
    Lease,
    NodeRecord,
    Segment,
)
from mintage.schemes import NAMES, SCHEMES
from mintage.store import Store, ledger, new_token, open_store
from mintage.store.memory import MemoryStore
from tests.contract.clients import NAMESPACE, NODES, POOL, crowd, overlaps
from tests.helpers.outcomes import code_of, eventually, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers import MariaDB, Server

ROOT = Path(__file__).parents[2]
TURNS = int(os.environ.get("MINTAGE_CONTRACT_TURNS", "10"))
"""How often each of a crowd of clients is given something; ``make deep`` has more."""
BOUND_S = 60
"""Seconds after which a child counts as stuck; never waited for otherwise."""

SERVERS = ["mariadb", "mysql", "postgresql", "redis", "redis_sentinel", "redis_cluster", "valkey", "etcd", "http"]
PAIRS = ["mariadb+redis", "sqlite+redis"]
STORES = ["memory", "sqlite", *SERVERS, *PAIRS]

LAYOUT = "test"
SPAN_MS = 30_000
"""The longest that a pool grants if it was not made for more."""
PAST_MS = 1_500
"""How far from the store's clock a caller's may be here: well within the limit, on a slow machine too."""
FAR_MS = CLOCK_LIMIT_MS + 3_000
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


def server(request: pytest.FixtureRequest, name: str) -> Server:
    found: Server = request.getfixturevalue(name)
    return found


def url_of(request: pytest.FixtureRequest, tmp_path: Path, name: str) -> str:
    if "+" in name:
        front, _, cache = name.partition("+")
        return f"{url_of(request, tmp_path, front)}?cache={url_of(request, tmp_path, cache)}"
    match name:
        case "memory":
            return f"memory:{uuid.uuid4()}"
        case "sqlite":
            return f"sqlite:///{tmp_path}/ids.db"
        case _:
            return server(request, name).url


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request, tmp_path, request.param)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened


def extend(store: Store, lease: Lease, *, now_ms: int) -> Lease:
    return store.extend(lease, now_ms=now_ms, next_token=new_token())


def new_pool(store: Store, pool: str = "p", *, layout: str = LAYOUT) -> None:
    """Create a pool that grants at once, even in a store that quarantines pools it does not know."""
    store.create_pool(pool, layout=layout)


def acquire(
    store: Store,
    now_ms: int,
    pool: str = "p",
    *,
    nodes: range = range(1),
    span_ms: int = SPAN_MS,
    holder: str = "me",
    **options: bool,
) -> Lease:
    return store.acquire(pool, nodes=nodes, layout=LAYOUT, holder=holder, now_ms=now_ms, span_ms=span_ms, **options)


def shown(store: Store, lease: Lease) -> str:
    """Return the token as lists show it; a service keeps it to itself."""
    return "" if store.url.scheme == "http" else lease.token


def forked(run: Callable[[], Any]) -> Any:
    """Return the result of a function in a forked child, or the code of its error."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)

    def child() -> None:
        try:
            sending.send(run())
        except MintError as error:
            sending.send(error.code)

    with warnings.catch_warnings():
        # Python 3.12 warns of forks beside threads, which are the subject of this test.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = context.Process(target=child)
        process.start()
    sending.close()
    try:
        assert receiving.poll(BOUND_S), "the child is stuck"
        return receiving.recv()
    finally:
        process.kill()
        process.join()
        process.close()
        receiving.close()


# --- leases: what is granted --------------------------------------------------------------------------------------


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
    store.release(acquire(store, now, nodes=range(3)), used_until_ms=now - REST_MS)
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


# --- leases: what becomes of them -----------------------------------------------------------------------------------


def test_extension_moves_the_end_and_keeps_the_start_of_a_window(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now - PAST_MS)
    token = new_token()
    extended = store.extend(lease, now_ms=now, next_token=token)
    assert extended == Lease("p", 0, lease.floor_ms, now + SPAN_MS, token, lease.token)
    assert [record.until_ms for record in store.list_leases("p")] == [now + SPAN_MS]


def test_window_never_gets_shorter(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now)
    extended = extend(store, lease, now_ms=now - PAST_MS)
    assert extended.until_ms == lease.until_ms
    # Even if its holder believes it shorter.
    assert extend(store, replace(extended, until_ms=now), now_ms=now - PAST_MS).until_ms == lease.until_ms


def test_ended_window_can_be_extended_if_its_node_is_still_free(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now - PAST_MS, span_ms=MIN_SPAN_MS)
    assert extend(store, lease, now_ms=now).until_ms == now + MIN_SPAN_MS


def test_lease_can_be_extended_any_number_of_times(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now)
    for later in (10, 20, 30):
        lease = extend(store, lease, now_ms=now + later)
        assert lease.until_ms == now + later + SPAN_MS


@pytest.mark.parametrize("turn", [[0, 1], [1, 0]])
def test_one_of_two_copies_of_a_holder_goes_on(store: Store, turn: list[int]) -> None:
    new_pool(store)
    now = store.now_ms()
    copies = [acquire(store, now)] * 2
    first, second = turn
    copies[first] = extend(store, copies[first], now_ms=now + 10)
    for later in (20, 30):
        with pytest.raises(LeaseError, match=r"another copy of its holder goes on .*cloned.*held by me") as caught:
            extend(store, copies[second], now_ms=now + later)
        assert caught.value.code == "lease.lost"
        assert code_of(lambda: store.release(copies[second], used_until_ms=0)) == "lease.lost"
        copies[first] = extend(store, copies[first], now_ms=now + later)
        assert [record.until_ms for record in store.list_leases()] == [now + later + SPAN_MS]
    assert code_of(lambda: acquire(store, now)) == "lease.none_free"
    store.release(copies[first], used_until_ms=now)


def test_one_of_many_concurrent_copies_of_a_holder_goes_on(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease, won, lost = acquire(store, now), [], []
    start = threading.Barrier(6)

    def go_on() -> None:
        start.wait()
        try:
            won.append(extend(store, lease, now_ms=now + 1))
        except LeaseError as error:
            lost.append(error.code)

    threads = [threading.Thread(target=go_on) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), lost) == (1, ["lease.lost"] * 5)
    extend(store, won[0], now_ms=now + 2)


def test_record_tells_that_a_copy_of_its_holder_came(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now)
    assert [record.cloned_ms for record in store.list_leases()] == [0]
    held = extend(store, lease, now_ms=now + 1)
    assert [record.cloned_ms for record in store.list_leases()] == [0]
    before = store.now_ms()
    assert code_of(lambda: extend(store, lease, now_ms=now - PAST_MS)) == "lease.lost"
    [record] = store.list_leases()
    assert before <= record.cloned_ms <= store.now_ms()
    extend(store, held, now_ms=now + 3)
    assert [each.cloned_ms for each in store.list_leases()] == [record.cloned_ms]


def test_former_holder_is_not_taken_for_a_copy(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    old = acquire(store, now - PAST_MS, span_ms=MIN_SPAN_MS, holder="old")
    acquire(store, now, holder="new")
    with pytest.raises(LeaseError, match="granted to another, released or revoked; it is held by new"):
        extend(store, old, now_ms=now)
    assert [record.cloned_ms for record in store.list_leases()] == [0]


def test_retried_extension_is_answered_again_and_applied_once(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease, token = acquire(store, now), new_token()
    extended = store.extend(lease, now_ms=now + 10, next_token=token)
    assert store.extend(lease, now_ms=now + 20, next_token=token) == extended
    assert extend(store, extended, now_ms=now + 30).until_ms == now + 30 + SPAN_MS
    # From then on it is an older token.
    assert code_of(lambda: store.extend(lease, now_ms=now + 40, next_token=token)) == "lease.lost"


def test_older_tokens_never_work_again(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    leases = [acquire(store, now)]
    for later in range(1, 5):
        leases.append(extend(store, leases[-1], now_ms=now + later))
    for old in leases[:-1]:
        assert code_of(lambda old=old: extend(store, old, now_ms=now + 9)) == "lease.lost"  # type: ignore[misc]
        assert code_of(lambda old=old: store.release(old, used_until_ms=now)) == "lease.lost"  # type: ignore[misc]
    assert [record.until_ms for record in store.list_leases()] == [now + 4 + SPAN_MS]


def test_invalid_next_token_is_refused_and_changes_nothing(store: Store, subtests: pytest.Subtests) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now)
    tokens: list[Any] = ["", "t" * 65, "a b", "a\n", "ü", "a/b", "a\r\nX: y", None, 7, b"a" * 32]
    for token in tokens:
        with subtests.test(token=token):
            with refused("field.range"):
                store.extend(lease, now_ms=now + 1, next_token=token)
            lease = extend(store, lease, now_ms=now + 2)
            assert lease.until_ms == now + 2 + SPAN_MS


def test_only_the_last_holder_may_extend_or_release(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    old = acquire(store, now - PAST_MS, span_ms=MIN_SPAN_MS, holder="old")
    held = acquire(store, now, holder="the new one")
    forged = Lease("p", 0, held.floor_ms, held.until_ms, "0" * len(held.token))
    unknown = Lease("p", 1, 0, held.until_ms, held.token)
    nowhere = Lease("q", 0, 0, held.until_ms, held.token)
    for lease in (old, forged, unknown, nowhere, Lease("p", 0, 0, now, "")):
        with pytest.raises(LeaseError) as caught:
            extend(store, lease, now_ms=now)
        assert caught.value.code == "lease.lost"
        assert held.token not in str(caught.value)
        assert code_of(lambda lost=lease: store.release(lost, used_until_ms=0)) == "lease.lost"  # type: ignore[misc]
    with pytest.raises(LeaseError, match="the new one"):
        extend(store, old, now_ms=now)
    assert [record.until_ms for record in store.list_leases()] == [held.until_ms]
    assert extend(store, held, now_ms=now + 1).until_ms == now + 1 + SPAN_MS


def test_released_node_number_starts_where_its_holder_stopped(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now)
    store.release(lease, used_until_ms=now - 7)
    assert acquire(store, now).floor_ms == now - 7


def test_release_keeps_the_end_between_floor_and_window(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    first = acquire(store, now - PAST_MS, span_ms=MIN_SPAN_MS)
    store.release(first, used_until_ms=2**62)
    second = acquire(store, now)
    assert second.floor_ms == first.until_ms
    store.release(second, used_until_ms=0)
    assert acquire(store, now).floor_ms == first.until_ms


def test_released_lease_cannot_be_used(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now)
    store.release(lease, used_until_ms=now)
    assert code_of(lambda: store.release(lease, used_until_ms=now)) == "lease.lost"
    assert code_of(lambda: extend(store, lease, now_ms=now)) == "lease.lost"


def test_revoked_lease_ends_with_its_window(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now)
    for _ in range(2):
        record = store.revoke("p", 0)
        assert (record.token, record.until_ms, record.holder) == (None, lease.until_ms, "me")
    assert code_of(lambda: extend(store, lease, now_ms=now)) == "lease.lost"
    assert code_of(lambda: store.release(lease, used_until_ms=now)) == "lease.lost"
    assert code_of(lambda: acquire(store, now)) == "lease.none_free"


def test_node_revoked_after_its_window_is_granted_from_its_end(store: Store) -> None:
    new_pool(store)
    now = store.now_ms()
    lease = acquire(store, now - PAST_MS, span_ms=MIN_SPAN_MS)
    store.revoke("p", 0)
    assert acquire(store, now).floor_ms == lease.until_ms


def test_never_leased_node_number_cannot_be_revoked(store: Store, subtests: pytest.Subtests) -> None:
    new_pool(store)
    acquire(store, store.now_ms())
    for node in (-1, 1, 2**31, 2**44, 2**63 - 1, 2**64, 2**200):
        with subtests.test(node=node), refused("lease.unknown"):
            store.revoke("p", node)
    with refused("lease.unknown"):
        store.revoke("q", 0)


# --- pools and lists ------------------------------------------------------------------------------------------------


def test_pool_is_created_once_and_kept(store: Store) -> None:
    made = store.create_pool("p", layout=LAYOUT)
    assert (made.name, made.layout, made.quarantine_until_ms) == ("p", LAYOUT, 0)
    now = store.now_ms()
    lease = acquire(store, now)
    again = store.create_pool("p", layout=LAYOUT)
    assert (again.name, again.layout, again.quarantine_until_ms) == ("p", LAYOUT, 0)
    assert again.span_ms == made.span_ms == SPAN_MS
    assert list(store.list_pools()) == [again]
    assert code_of(lambda: acquire(store, now)) == "lease.none_free"
    assert extend(store, lease, now_ms=now + 1).until_ms == now + 1 + SPAN_MS


def test_pool_grants_at_most_its_own_span(store: Store) -> None:
    new_pool(store)
    assert code_of(lambda: acquire(store, store.now_ms(), span_ms=SPAN_MS + 1)) == "config.span"
    assert not store.list_leases()
    # The first acquire creates the pool, which Redis quarantines as possibly lost.
    with suppress(LeaseError):
        acquire(store, store.now_ms(), "long", span_ms=3 * SPAN_MS)
    new_pool(store, "long")
    now = store.now_ms()
    assert acquire(store, now, "long", nodes=range(1, 2), span_ms=3 * SPAN_MS).until_ms >= now + 3 * SPAN_MS
    assert [pool.span_ms for pool in store.list_pools()] == [3 * SPAN_MS, SPAN_MS]


def test_leases_are_listed_with_all_fields(store: Store) -> None:
    now = store.now_ms()
    for pool in ("q", "p"):
        new_pool(store, pool)
    late, early = (acquire(store, now, "p", nodes=range(node, node + 1), holder=f"h{node}") for node in (11, 2))
    store.release(early, used_until_ms=now)
    acquire(store, now, "q")
    identity = store.list_leases("p")[0].identity
    expected = [
        NodeRecord("p", 2, early.floor_ms, now, SPAN_MS, identity, None, "h2"),
        NodeRecord("p", 11, late.floor_ms, late.until_ms, SPAN_MS, identity, shown(store, late), "h11"),
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


# --- segments -------------------------------------------------------------------------------------------------------


def test_segments_follow_each_other_from_one(store: Store) -> None:
    segments = [store.reserve("n", n) for n in (1, 5, 10)]
    assert segments == [Segment("n", 1, 1), Segment("n", 2, 6), Segment("n", 7, 16)]
    assert store.reserve("other", 1).first == 1


def test_count_outside_its_limits_is_refused(store: Store, subtests: pytest.Subtests) -> None:
    for n in (-1, 0, MAX_COUNT + 1, 2**70):
        with subtests.test(n=n), refused("field.range"):
            store.reserve("n", n)
    assert not store.list_namespaces()


def test_largest_count_is_reserved_as_one_segment(store: Store) -> None:
    segment = store.reserve("n", MAX_COUNT)
    assert (segment.first, segment.last, len(segment)) == (1, MAX_COUNT, MAX_COUNT)
    assert store.reserve("n", 1).first == MAX_COUNT + 1


def test_namespace_starts_at_its_given_start(store: Store) -> None:
    made = store.create_namespace("n", start=1_000)
    assert (made.name, made.maximum, made.stride) == ("n", MAX_INTEGER, 1)
    assert store.reserve("n", 10) == Segment("n", 1_000, 1_009)


def test_namespace_may_start_at_zero(store: Store) -> None:
    store.create_namespace("n", start=0)
    assert store.reserve("n", 3) == Segment("n", 0, 2)


def test_two_stores_can_hand_out_odd_and_even_numbers(store: Store) -> None:
    for offset in (0, 1):
        store.create_namespace(f"n{offset}", stride=2, offset=offset)
    even, odd = (store.reserve(f"n{offset}", 3) for offset in (0, 1))
    assert (list(even.as_range()), list(odd.as_range())) == ([2, 4, 6], [1, 3, 5])
    assert (len(even), even.stride) == (3, 2)
    assert list(store.reserve("n0", 2).as_range()) == [8, 10]


def test_widest_stride_keeps_its_offset(store: Store, subtests: pytest.Subtests) -> None:
    for start in (0, 1, 5, 2**31):
        with subtests.test(start=start):
            name = f"from{start}"
            store.create_namespace(name, start=start, stride=MAX_STRIDE, offset=3)
            numbers = [*store.reserve(name, 2).as_range(), *store.reserve(name, 2).as_range()]
            assert numbers[0] >= start
            assert {number % MAX_STRIDE for number in numbers} == {3}
            assert {after - before for before, after in pairwise(numbers)} == {MAX_STRIDE}


def test_namespace_gives_its_remaining_integers_and_is_then_exhausted(store: Store) -> None:
    store.create_namespace("n", start=5, maximum=12)
    assert store.reserve("n", 5) == Segment("n", 5, 9)
    assert store.reserve("n", 5) == Segment("n", 10, 12)
    for _ in range(2):
        with pytest.raises(GenerationError) as caught:
            store.reserve("n", 1)
        assert (caught.value.code, caught.value.retry_after_ms) == ("sequence.exhausted", None)


def test_namespace_with_a_stride_ends_at_the_last_number_that_fits(store: Store) -> None:
    store.create_namespace("n", start=1, maximum=20, stride=7, offset=2)
    assert list(store.reserve("n", 100).as_range()) == [2, 9, 16]
    assert code_of(lambda: store.reserve("n", 1)) == "sequence.exhausted"


def test_large_integers_are_exact(store: Store, subtests: pytest.Subtests) -> None:
    for first in (2**31 - 1, 2**32, 2**53 - 2, 2**53 - 1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 4):
        with subtests.test(first=first):
            made, raised = f"made{first}", f"raised{first}"
            store.create_namespace(made, start=first)
            store.raise_floor(raised, first)
            for name in (made, raised):
                segments = [store.reserve(name, 1) for _ in range(3)]
                assert segments == [Segment(name, first + i, first + i) for i in range(3)]


def test_largest_integer_is_the_last(store: Store) -> None:
    store.create_namespace("n", start=MAX_INTEGER - 2)
    assert store.reserve("n", MAX_COUNT) == Segment("n", MAX_INTEGER - 2, MAX_INTEGER)
    assert code_of(lambda: store.reserve("n", 1)) == "sequence.exhausted"


def test_largest_integer_can_be_reached_with_the_widest_stride(store: Store) -> None:
    store.create_namespace("n", start=MAX_INTEGER, stride=MAX_STRIDE, offset=MAX_INTEGER % MAX_STRIDE)
    assert list(store.reserve("n", MAX_COUNT).as_range()) == [MAX_INTEGER]
    assert code_of(lambda: store.reserve("n", MAX_COUNT)) == "sequence.exhausted"


def test_namespace_without_integers_is_refused(store: Store, subtests: pytest.Subtests) -> None:
    everything: list[dict[str, int]] = [
        {"start": -1},
        {"start": MAX_INTEGER + 1},
        {"start": 10, "maximum": 9},
        {"maximum": MAX_INTEGER + 1},
        {"start": 8, "maximum": 10, "stride": 10, "offset": 5},
        {"stride": 0},
        {"stride": MAX_STRIDE + 1},
        {"stride": 2, "offset": 2},
        {"stride": 2, "offset": -1},
    ]
    for options in everything:
        with subtests.test(str(options)), refused("field.range", FieldError):
            store.create_namespace("n", **options)
    assert not store.list_namespaces()


def test_namespace_is_created_once(store: Store) -> None:
    store.create_namespace("n", start=100)
    assert code_of(lambda: store.create_namespace("n", start=1)) == "config.namespace"
    assert store.reserve("n", 1).first == 100
    store.reserve("used", 1)
    assert code_of(lambda: store.create_namespace("used")) == "config.namespace"
    assert store.reserve("used", 1).first == 2


def test_integers_below_a_raised_floor_are_never_reserved(store: Store) -> None:
    store.reserve("n", 10)
    store.raise_floor("n", 1_000)
    assert store.reserve("n", 2) == Segment("n", 1_000, 1_001)


def test_floor_never_moves_back(store: Store) -> None:
    last = store.reserve("n", 10).last
    for value in (0, 1, last, last + 1):
        store.raise_floor("n", value)
    assert store.reserve("n", 1).first == last + 1


def test_floor_creates_a_missing_namespace(store: Store) -> None:
    store.raise_floor("n", 500)
    assert [namespace.name for namespace in store.list_namespaces()] == ["n"]
    assert store.reserve("n", 1).first == 500


def test_floor_keeps_the_offset_of_a_namespace(store: Store) -> None:
    store.create_namespace("n", stride=10, offset=3)
    for value, first in ((20, 23), (33, 33), (44, 53)):
        store.raise_floor("n", value)
        assert store.reserve("n", 1).first == first


def test_floor_above_the_maximum_exhausts_a_namespace(store: Store) -> None:
    store.create_namespace("n", maximum=100, stride=3)
    store.raise_floor("n", MAX_INTEGER)
    assert code_of(lambda: store.reserve("n", 1)) == "sequence.exhausted"


def test_floor_outside_its_limits_is_refused(store: Store, subtests: pytest.Subtests) -> None:
    for value in (-1, MAX_INTEGER + 1, 2**70):
        with subtests.test(value=value), refused("field.range"):
            store.raise_floor("n", value)
    assert not store.list_namespaces()


def test_unused_tail_of_the_last_segment_is_taken_back(store: Store) -> None:
    segment = store.reserve("n", 10)
    assert store.give_back(segment, 4)
    assert store.reserve("n", 1).first == 4
    again = store.reserve("n", 5)
    assert store.give_back(again, again.first)
    assert store.reserve("n", 1).first == again.first


def test_tail_with_a_stride_is_taken_back(store: Store) -> None:
    store.create_namespace("n", stride=5, offset=2)
    segment = store.reserve("n", 4)
    assert store.give_back(segment, 12)
    assert list(store.reserve("n", 2).as_range()) == [12, 17]


def test_integers_between_those_of_a_namespace_are_no_tail(store: Store, subtests: pytest.Subtests) -> None:
    store.create_namespace("n", stride=5, offset=2)
    segment = store.reserve("n", 4)
    for first_unused in (8, 11, 14, 16):
        with subtests.test(first_unused=first_unused):
            assert not store.give_back(segment, first_unused)
            assert not store.give_back(Segment("n", 2, 17, serial=segment.serial), first_unused)
    assert list(store.reserve("n", 2).as_range()) == [22, 27]


def test_tidb_46444_a_tail_is_not_taken_back_after_another_reserved(store: Store) -> None:
    mine = store.reserve("n", 10)
    other = store.reserve("n", 10)
    assert not store.give_back(mine, 4)
    assert store.reserve("n", 1).first == other.last + 1


def test_tail_is_taken_back_once(store: Store) -> None:
    segment = store.reserve("n", 10)
    assert store.give_back(segment, 4)
    assert not store.give_back(segment, 4)
    assert not store.give_back(segment, 2)
    assert store.reserve("n", 1).first == 4


def test_retried_give_back_is_accepted_once(store: Store) -> None:
    mine = store.reserve("n", 10)
    assert store.give_back(mine, 4)
    theirs = store.reserve("n", 7)
    # It ends where the first did, and is in use.
    assert theirs.as_range() == range(4, 11)
    assert not store.give_back(mine, 4)
    assert not store.give_back(mine, 6)
    assert store.give_back(theirs, 9)
    assert store.reserve("n", 2).as_range() == range(9, 11)
    assert not store.give_back(mine, 4)
    assert not store.give_back(theirs, 9)
    assert store.reserve("n", 1).first == 11


def test_give_back_after_another_reservation_is_refused(store: Store) -> None:
    mine = store.reserve("n", 10)
    assert store.give_back(mine, 4)
    theirs = store.reserve("n", 20)
    # The remainder ends where the first segment did.
    assert store.give_back(theirs, 11)
    assert not store.give_back(mine, 4)
    assert store.reserve("n", 1).first == 11


def test_last_two_segments_are_taken_back_in_reverse_order_once(store: Store) -> None:
    current, following = store.reserve("n", 10), store.reserve("n", 10)
    assert not store.give_back(current, 4)
    assert store.give_back(following, 11)
    assert not store.give_back(following, 11)
    assert store.give_back(current, 4)
    assert not store.give_back(current, 4)
    again = store.reserve("n", 7), store.reserve("n", 10)
    assert [each.as_range() for each in again] == [range(4, 11), range(11, 21)]
    for late in (following, current, following):
        assert not store.give_back(late, late.first)
    assert store.reserve("n", 1).first == 21


def test_segment_before_a_partly_used_one_is_not_taken_back(store: Store) -> None:
    current, following = store.reserve("n", 10), store.reserve("n", 10)
    assert store.give_back(following, 15)
    assert not store.give_back(current, 4)
    assert store.reserve("n", 1).first == 15


def test_integers_outside_the_segment_are_not_taken_back(store: Store, subtests: pytest.Subtests) -> None:
    store.reserve("n", 10)
    segment = store.reserve("n", 10)
    for first_unused in (-5, 0, 10, 21, 2**70):
        with subtests.test(first_unused=first_unused):
            assert not store.give_back(segment, first_unused)
    assert store.reserve("n", 1).first == 21


def test_tail_below_a_raised_floor_is_not_taken_back(store: Store) -> None:
    segment = store.reserve("n", 10)
    store.raise_floor("n", 50)
    assert not store.give_back(segment, 4)
    assert store.reserve("n", 1).first == 50


def test_tail_across_a_floor_is_taken_back_only_above_it(store: Store, subtests: pytest.Subtests) -> None:
    for floor, following in ((3, 4), (4, 4), (7, 7), (10, 10), (11, 11)):
        with subtests.test(floor=floor):
            name = f"floor{floor}"
            segment = store.reserve(name, 10)
            store.raise_floor(name, floor)
            # Only a floor above the tail leaves nothing of it.
            assert store.give_back(segment, 4) is (floor <= 10)
            assert store.reserve(name, 1).first == following


def test_raised_floor_applies_to_a_segment_that_another_holds(url: str) -> None:
    with open_store(url) as store, open_store(url) as migrating:
        held = store.reserve("n", 10)
        assert held.floor == 0
        migrating.raise_floor("n", 5_000)
        assert not store.give_back(held, 1)
        segment = store.reserve("n", 10)
        # Its holder drops the integers below.
        assert (segment.first, segment.floor) == (5_000, 5_000)
        assert store.give_back(segment, segment.first)
        assert store.reserve("n", 1).first == 5_000
        assert [record.floor for record in store.list_namespaces()] == [5_000]


def test_floor_keeps_the_offset_of_a_tail(store: Store) -> None:
    store.create_namespace("n", stride=10, offset=3)
    segment = store.reserve("n", 10)
    store.raise_floor("n", 44)
    assert store.give_back(segment, 13)
    assert store.reserve("n", 1).first == 53


def test_largest_floor_is_stored_exactly(store: Store) -> None:
    store.raise_floor("n", MAX_INTEGER)
    assert store.reserve("n", 2) == Segment("n", MAX_INTEGER, MAX_INTEGER)
    assert [record.floor for record in store.list_namespaces()] == [MAX_INTEGER]


def test_segment_without_a_serial_is_not_taken_back(store: Store) -> None:
    segment = store.reserve("n", 10)
    assert not store.give_back(replace(segment, serial=0), 4)
    assert store.reserve("n", 1).first == 11


def test_tail_of_a_missing_namespace_is_not_taken_back(store: Store) -> None:
    assert not store.give_back(Segment("n", 1, 10), 4)
    assert not store.list_namespaces()


def test_exhausted_namespace_takes_a_tail_back(store: Store) -> None:
    store.create_namespace("n", start=MAX_INTEGER - 9)
    segment = store.reserve("n", 10)
    assert store.give_back(segment, MAX_INTEGER)
    assert store.reserve("n", 10) == Segment("n", MAX_INTEGER, MAX_INTEGER)


def test_retired_namespace_never_starts_again(store: Store) -> None:
    held = store.reserve("n", 10)
    assert store.retire("n").retired
    for call in (
        lambda: store.reserve("n", 1),
        lambda: store.give_back(held, 4),
        lambda: store.raise_floor("n", 5_000),
        lambda: store.create_namespace("n"),
        lambda: store.create_namespace("n", start=5_000, stride=2),
    ):
        assert code_of(call) == "namespace.retired"
    [record] = store.list_namespaces()
    assert (record.name, record.retired, record.floor) == ("n", True, 0)
    assert record.high_water >= held.last


def test_second_retirement_changes_nothing(store: Store) -> None:
    store.create_namespace("n", start=7, stride=3)
    assert store.retire("n") == store.retire("n") == store.list_namespaces()[0]


def test_never_used_name_can_be_retired(store: Store) -> None:
    assert store.retire("n").retired
    assert code_of(lambda: store.reserve("n", 1)) == "namespace.retired"
    assert code_of(lambda: store.create_namespace("n")) == "namespace.retired"
    assert [record.name for record in store.list_namespaces()] == ["n"]


def test_retirement_affects_no_other_namespace_or_pool_of_the_name(store: Store) -> None:
    new_pool(store, "n")
    store.reserve("n", 1)
    store.reserve("m", 1)
    store.retire("n")
    assert acquire(store, store.now_ms(), "n").node == 0
    assert store.reserve("m", 1).first == 2
    assert [(record.name, record.retired) for record in store.list_namespaces()] == [("m", False), ("n", True)]


def test_sequence_of_a_retired_namespace_uses_up_its_buffer(url: str) -> None:
    with open_store(url) as store, open_store(url) as operating:
        sequence = Sequence("n", store, step=5)
        taken = [sequence.next()]
        operating.retire("n")
        with pytest.raises(GenerationError) as caught:
            taken.extend(sequence.next() for _ in range(100))
        assert (caught.value.code, caught.value.retry_after_ms) == ("namespace.retired", None)
        assert taken == list(range(1, len(taken) + 1))
        # The buffer may already have two segments.
        assert len(taken) in {5, 10}
        sequence.close()


def test_namespace_stays_retired_after_the_store_reopens(url: str) -> None:
    with open_store(url) as store:
        store.retire("n")
    with open_store(url) as store:
        assert code_of(lambda: store.reserve("n", 1)) == "namespace.retired"
        assert store.list_namespaces()[0].retired


# --- what verbs take ------------------------------------------------------------------------------------------------

LEASE = Lease("p", 0, 0, 1, "t")
SEGMENT = Segment("n", 1, 10)
TERMS: dict[str, Any] = {"nodes": range(1), "layout": LAYOUT, "holder": "me", "now_ms": 1, "span_ms": MIN_SPAN_MS}
TERMS["never_used"] = False
GOOD: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "acquire": (("p",), TERMS),
    "extend": ((LEASE,), {"now_ms": 1, "next_token": "t2"}),
    "release": ((LEASE,), {"used_until_ms": 1}),
    "revoke": (("p", 0), {}),
    "create_pool": (("p",), {"layout": LAYOUT, "span_ms": MIN_SPAN_MS}),
    "reserve": (("n", 1), {}),
    "give_back": ((SEGMENT, 4), {}),
    "create_namespace": (("n",), {"start": 1, "maximum": 9, "stride": 1, "offset": 0}),
    "raise_floor": (("n", 1), {}),
    "retire": (("n",), {}),
    "list_leases": (("p",), {}),
}
BAD_WHOLE: tuple[Any, ...] = (True, 1.0, 2.5, float("nan"), float("inf"), "77", b"1", None, [1], 1j)
BAD_TEXT: tuple[Any, ...] = (None, 7, True, b"x", ["x"], "a\0b", "x" * 10_000, "\udcff")


def wrong_arguments() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield calls of every verb with each argument wrong in each way and the others right."""

    def wrong(value: Any) -> tuple[Any, ...]:
        match value:
            case bool():
                return (1, 0, None, "yes", 1.0)
            case int():
                return BAD_WHOLE
            case str():
                return BAD_TEXT
            case range():
                return (None, 7, [0], "0..1", range(0, 4, 2))
            case Lease() | Segment():
                fields = {
                    name: BAD_WHOLE if isinstance(getattr(value, name), int) else (None, 7, b"x")
                    for name in type(value).__dataclass_fields__
                    if name != "floor"
                }
                return (
                    None,
                    7,
                    ("p", 0),
                    *(replace(value, **{name: bad}) for name, all_bad in fields.items() for bad in all_bad),
                )
        raise AssertionError(value)

    for verb, (positional, named) in GOOD.items():
        for at, value in enumerate(positional):
            for bad in wrong(value):
                if not (verb == "list_leases" and bad is None):
                    yield verb, (*positional[:at], bad, *positional[at + 1 :]), named
        for name, value in named.items():
            for bad in wrong(value):
                yield verb, positional, {**named, name: bad}


def test_invalid_arguments_are_refused_before_the_store_is_asked(store: Store) -> None:
    codes = set()
    for verb, positional, named in wrong_arguments():
        with pytest.raises(MintError) as caught:
            getattr(store, verb)(*positional, **named)
        assert caught.value.code not in {"store.refused", "store.unavailable"}, (verb, positional, named)
        assert len(str(caught.value)) < 300
        codes.add(caught.value.code)
    assert {"argument.type", "field.range", "config.name", "config.node"} <= codes
    assert not store.list_pools()
    assert not store.list_namespaces()


def test_times_beyond_the_limit_of_all_clocks_are_refused(store: Store, subtests: pytest.Subtests) -> None:
    new_pool(store)
    lease = acquire(store, store.now_ms())
    for value in (-1, 2**53, 2**63, 2**70, -(10**5_000), 10**5_000):
        with subtests.test(bits=value.bit_length()):
            with refused("field.range"):
                acquire(store, value, nodes=range(1, 2))
            with refused("field.range"):
                extend(store, lease, now_ms=value)


@pytest.mark.parametrize("value", [10**5_000, -(10**5_000), 2**64], ids=int.bit_length)
def test_refusal_of_a_number_of_any_length_is_one_short_line(store: Store, value: int) -> None:
    for call in (
        lambda: store.reserve("n", value),
        lambda: store.raise_floor("n", value),
        lambda: store.create_namespace("n", start=value),
        lambda: store.create_namespace("n", stride=value),
        lambda: store.create_pool("p", layout=LAYOUT, span_ms=value),
    ):
        with pytest.raises(MintError) as caught:
            call()
        assert len(str(caught.value)) < 200
    assert not store.list_namespaces()


# --- a server that comes back ---------------------------------------------------------------------------------------


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
    freed = store.create_pool("p", layout=LAYOUT)
    assert (freed.identity, freed.quarantine_until_ms, freed.changes) == ("C", 0, 2)
    assert freed.floor_ms > pool.floor_ms
    assert store.reserve("n", 3).first > segment.last + 7
    assert [(record.largest, record.identity) for record in store.list_namespaces()] == [(7, "C")]


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
    freed = store.create_pool("p", layout=LAYOUT)
    assert freed.floor_ms == pool.floor_ms + SPAN_MS + limit + CLOCK_MARGIN_MS


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

    monkeypatch.setattr("random.uniform", uniform)
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


# --- the store itself -----------------------------------------------------------------------------------------------


def test_description_of_a_store_is_complete_and_without_password(store: Store) -> None:
    description = store.describe()
    assert description.promise in {"process", "host", "shared"}
    assert description.promise == store.promise
    assert description.server
    assert description.identity
    assert description.identity == store.describe().identity
    assert abs(description.now_ms - store.now_ms()) < CLOCK_LIMIT_MS
    assert description.url == str(store.url)
    if store.url.password is not None:
        assert store.url.password not in repr((store, store.url, description))


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
    with open_store(mariadb.url) as one, open_store(mariadb.url.replace("mariadb:", "mysql:", 1)) as other:
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


# --- servers that fail ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVERS)
def test_result_of_a_verb_survives_a_kill_of_the_server(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    fails = server(request, name)
    with open_store(url_of(request, tmp_path, name)) as store:
        new_pool(store)
        # The window must outlast a slow start.
        now = store.now_ms() + PAST_MS
        lease = acquire(store, now)
        segment = store.reserve("n", 10)
        fails.kill()
        assert code_of(lambda: store.reserve("n", 1)) == "store.unavailable"
        assert code_of(lambda: acquire(store, now)) == "store.unavailable"
        fails.start()
        # Each closed connection may fail once.
        assert eventually(lambda: store.reserve("n", 10)).first > segment.last
        extended = eventually(lambda: extend(store, lease, now_ms=store.now_ms()))
        assert extended.until_ms >= lease.until_ms
        assert code_of(lambda: acquire(store, store.now_ms())) == "lease.none_free"


@pytest.mark.parametrize("name", SERVERS)
def test_server_that_does_not_answer_is_unavailable_after_the_timeout(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    fails = server(request, name)
    with open_store(f"{url_of(request, tmp_path, name)}?timeout_ms=500") as store:
        segment = eventually(lambda: store.reserve("n", 10))
        fails.pause()
        try:
            assert code_of(lambda: store.reserve("n", 10)) == "store.unavailable"
        finally:
            fails.resume()
        # Requests sent meanwhile may take effect, but nobody gets their results.
        assert eventually(lambda: store.reserve("n", 10)).first > segment.last


@pytest.mark.parametrize("kind", ["mysql", "mariadb", "postgresql", "redis", "redis+cluster", "valkey", "etcd", "http"])
def test_error_never_shows_the_password(kind: str) -> None:
    database = "/ids" if kind in {"mysql", "mariadb", "postgresql"} else ""
    # Port 1 is reserved: nobody listens.
    with open_store(f"{kind}://user:s3cr3t-w0rd@127.0.0.1:1{database}") as store:
        with pytest.raises(StoreError) as caught:
            store.reserve("n", 1)
        assert caught.value.code == "store.unavailable"
        assert "s3cr3t-w0rd" not in "".join(traceback.format_exception(caught.value))
        assert "s3cr3t-w0rd" not in f"{store!r} {store.url} {store.url!r}"


@pytest.mark.parametrize("name", ["mariadb", "postgresql"])
def test_wrong_password_is_refused_and_not_shown(request: pytest.FixtureRequest, tmp_path: Path, name: str) -> None:
    before, _, after = url_of(request, tmp_path, name).rpartition("@")
    with open_store(f"{before}s3cr3t-w0rd@{after}") as store:
        with pytest.raises(StoreError) as caught:
            store.reserve("n", 1)
        assert caught.value.code == "store.refused"
        assert "s3cr3t-w0rd" not in "".join(traceback.format_exception(caught.value))


# --- all at once ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "layout"), [(name, found[0]) for name in NAMES if (found := read_pool_layout(name))]
)
def test_generators_of_every_scheme_have_different_node_numbers(url: str, scheme: str, layout: str) -> None:
    pool = f"every.{scheme}"
    with ExitStack() as stack:
        store = stack.enter_context(open_store(url))
        new_pool(store, pool, layout=layout)
        made = SCHEMES[scheme].module.Generator
        generators = [stack.enter_context(made(store=store, pool=pool, max_wait_ms=30_000)) for _ in range(4)]
        ids = [one for generator in generators for one in generator.batch(500)]
        assert len(set(ids)) == 2000
        assert len({lease.node for lease in store.list_leases(pool)}) == 4


def test_crowd_of_clients_gets_no_value_twice(url: str) -> None:
    with open_store(url) as store, ExitStack() as stack:
        new_pool(store, POOL)
        store.reserve(NAMESPACE, 1)
        command = [sys.executable, "-m", "tests.contract.clients", url, "4", str(TURNS)]
        processes = [
            stack.enter_context(subprocess.Popen([*command, str(seed)], cwd=ROOT, stdout=subprocess.PIPE, text=True))
            for seed in ([] if isinstance(store, MemoryStore) else [1, 2])
        ]
        history = crowd(store, 32 - 4 * len(processes), TURNS, seed=0)
        for process in processes:
            printed, _ = process.communicate()
            assert process.returncode == 0
            history += [(whose, first, stop) for whose, first, stop in json.loads(printed)]
    assert overlaps(history) == []
    # Check that it was a crowd: more leases than numbers, and every client got its share.
    assert len([whose for whose, _, _ in history if whose != NAMESPACE]) >= 32 > len(NODES)
    assert len(history) >= 32 * TURNS


def test_duplicate_in_a_crowd_is_found() -> None:
    assert overlaps([("0", 0, 10), ("0", 10, 20), ("1", 5, 15), ("0", 5, 5)]) == []
    assert overlaps([("0", 0, 10), ("0", 9, 20)])
    assert overlaps([("0", 0, 100), ("0", 20, 30), ("0", 50, 60)])


nodes = st.builds(lambda start, size: range(start, start + size), st.integers(0, 4), st.integers(1, 4))
offsets = st.integers(-PAST_MS, PAST_MS)
lease_verbs = st.one_of(
    st.tuples(st.just("acquire"), nodes, offsets, st.sampled_from([1_000, 1_500, 5_000]), st.booleans()),
    st.tuples(st.just("extend"), st.integers(0, 9), offsets),
    st.tuples(st.just("release"), st.integers(0, 9), st.one_of(offsets, st.just(-(10**9)))),
    st.tuples(st.just("revoke"), st.integers(0, 8)),
)
segment_verbs = st.one_of(
    st.tuples(st.just("reserve"), st.one_of(st.integers(1, 5), st.integers(1, MAX_COUNT))),
    st.tuples(st.just("give_back"), st.integers(0, 9), st.integers(0, 5)),
    st.tuples(st.just("raise_floor"), st.one_of(st.integers(0, 50), st.integers(0, MAX_INTEGER))),
)
tails = st.tuples(st.just("give_back"), st.integers(0, 3), st.integers(0, 5))
few = st.tuples(st.just("reserve"), st.integers(1, 5))
names = count()


class Differential:
    """A store and its history of calls, with outcomes that can be compared between two stores."""

    def __init__(self, store: Store, name: str, base_ms: int) -> None:
        self.store = store
        self.name = name
        self.base_ms = base_ms
        self.leases: list[Lease] = []
        self.segments: list[Segment] = []

    def lease_verb(self, verb: tuple[Any, ...]) -> object:
        match verb:
            case ("acquire", nodes, offset, span_ms, never_used):
                now = self.base_ms + offset
                self.leases.append(
                    acquire(self.store, now, self.name, nodes=nodes, span_ms=span_ms, never_used=never_used)
                )
                return self.seen(self.leases[-1])
            case ("extend", at, offset) if self.leases:
                held = self.leases[at % len(self.leases)]
                # Keep the outdated lease in the list.
                self.leases.append(extend(self.store, held, now_ms=self.base_ms + offset))
                return self.seen(self.leases[-1])
            case ("release", at, offset) if self.leases:
                self.store.release(self.leases[at % len(self.leases)], used_until_ms=self.base_ms + offset)
            case ("revoke", node):
                return self.store.revoke(self.name, node).until_ms - self.base_ms
        return None

    def create_namespace(self, start: int, maximum: int, stride: int) -> object:
        self.store.create_namespace(self.name, start=start, maximum=maximum, stride=stride, offset=start % stride)
        return None

    def segment_verb(self, verb: tuple[Any, ...]) -> object:
        match verb:
            case ("reserve", n):
                self.segments.append(self.store.reserve(self.name, n))
                return self.segments[-1].as_range()
            case ("give_back", at, used) if self.segments:
                # Any segment, any number of times: most repeated deliveries are of recent ones.
                segment = self.segments[-1 - at % len(self.segments)]
                return self.store.give_back(segment, segment.first + used * segment.stride)
            case ("raise_floor", value):
                self.store.raise_floor(self.name, value)
            case ("retire",):
                return self.store.retire(self.name).retired
        return None

    def seen(self, lease: Lease) -> tuple[int, int, int]:
        return lease.node, max(lease.floor_ms - self.base_ms, -(10**9)), lease.until_ms - self.base_ms

    def records(self) -> object:
        return [
            (*self.seen(record.as_lease()), record.span_ms, record.token is not None)
            for record in self.store.list_leases(self.name)
        ]


def outcome(call: Callable[..., object], *arguments: object) -> object:
    try:
        return call(*arguments)
    except (LeaseError, GenerationError) as error:
        return error.code, error.retry_after_ms
    except MintError as error:
        return error.code


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much])
@given(verbs=st.lists(lease_verbs, min_size=5, max_size=25))
def test_every_store_grants_as_the_reference_store_does(store: Store, verbs: list[tuple[Any, ...]]) -> None:
    name = f"d{next(names)}"
    now = store.now_ms()
    pair = Differential(store, name, now), Differential(MemoryStore(clock=lambda: now), name, now)
    for one in pair:
        new_pool(one.store, name)
    seen = [[outcome(one.lease_verb, verb) for one in pair] for verb in verbs]
    seen.append([one.records() for one in pair])
    # The reference clock stands still. Ignore calls so slow that a clock may count as wrong.
    assume(store.now_ms() - now < CLOCK_LIMIT_MS - PAST_MS)
    for (mine, simplest), verb in zip(seen, [*verbs, "records"], strict=True):
        assert mine == simplest, verb


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.one_of(st.integers(0, 30), st.integers(MAX_INTEGER - 2**33, MAX_INTEGER)),
    size=st.one_of(st.integers(0, 40), st.integers(0, MAX_INTEGER)),
    stride=st.one_of(st.integers(1, 5), st.integers(1, MAX_STRIDE)),
    verbs=st.one_of(
        st.lists(segment_verbs, min_size=5, max_size=25),
        # Small segments end where others did.
        st.lists(st.one_of(few, tails), min_size=5, max_size=25),
    ),
    end=st.lists(st.one_of(st.just(("retire",)), segment_verbs), max_size=3),
)
def test_every_store_reserves_as_the_reference_store_does(
    store: Store,
    start: int,
    size: int,
    stride: int,
    verbs: list[tuple[Any, ...]],
    end: list[tuple[Any, ...]],
) -> None:
    name = f"d{next(names)}"
    pair = Differential(store, name, 0), Differential(MemoryStore(), name, 0)
    maximum = min(start + size, MAX_INTEGER)
    made = [outcome(one.create_namespace, start, maximum, stride) for one in pair]
    assert made[0] == made[1]
    for verb in [*verbs, *end]:
        mine, simplest = (outcome(one.segment_verb, verb) for one in pair)
        assert mine == simplest, verb
