"""Tests of every store: extensions, copies of a holder, releases and revocations of leases."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from mintage.errors import LeaseError
from mintage.rules import MIN_SPAN_MS, Lease
from mintage.store import Store, new_token
from tests.contract.every_store.stores import PAST_MS, SPAN_MS, acquire, extend, new_pool
from tests.helpers.outcomes import code_of, refused


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
