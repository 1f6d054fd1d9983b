"""Tests of Redis: lost writes, replaced servers, replicas, and integers that are exact only up to 2^53."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis as Client
from redis import ResponseError

from mintage import rules, ulid
from mintage.errors import ConfigError, GenerationError, LeaseError, MintError, StoreError
from mintage.protocol.records import KEYS, columns
from mintage.protocol.url import StoreUrl
from mintage.rules import (
    GAP,
    MAX_COUNT,
    MAX_INTEGER,
    MAX_STRIDE,
    Lease,
    NamespaceRecord,
    NodeRecord,
    PoolRecord,
    RunRecord,
    Segment,
)
from mintage.store import Store, new_token, open_store
from mintage.store.memory import MemoryStore
from mintage.store.redis import RedisStore
from mintage.testing import ManualClock
from mintage.who import who
from tests.helpers import stores
from tests.helpers.outcomes import eventually, refusal
from tests.helpers.redis_replicas import follow, forgetting
from tests.helpers.stores import LONG_MS, extend, patient
from tests.servers import Proxy, Redis, RedisCluster, RedisSentinel, RedisWithoutAOF
from tests.servers.server import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mintage.store.ledger import ServerIdentity, Transaction

SPAN_MS = rules.SPAN_MS
FAR_MS = rules.CLOCK_LIMIT_MS + 3_000
QUARANTINE_MS = SPAN_MS + rules.CLOCK_LIMIT_MS + rules.CLOCK_MARGIN_MS


@pytest.fixture
def store(redis: Redis) -> Iterator[Store]:
    with open_store(patient(redis.url)) as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Redis]:
    """Return a second server."""
    server = Redis(tmp_path / "other")
    server.start()
    yield server
    server.kill()


def acquire(store: Store, *, ahead_ms: int = 0, **options: Any) -> Lease:
    # By the clock of this machine: a proxy would count the question for that of the store.
    return stores.on_time(lambda: stores.acquire(store, now_ms=time.time_ns() // 1_000_000 + ahead_ms, **options))


def hold(store: Store) -> Lease:
    """Return a lease of a pool for spans that outlast a failover."""
    assert refusal(lambda: acquire(store, span_ms=LONG_MS)).code == "lease.none_free"
    store.create_pool("p", layout="test", never_used=True)
    return acquire(store, span_ms=LONG_MS)


# --- lost writes --------------------------------------------------------------------------------------------------


def test_missing_pool_grants_nothing_for_a_span(store: Store) -> None:
    error = refusal(lambda: acquire(store))
    assert isinstance(error, LeaseError)
    assert error.code == "lease.none_free"
    assert QUARANTINE_MS - 1_000 < (error.retry_after_ms or 0) <= QUARANTINE_MS
    assert "mintage pools create p --never-used" in str(error)
    [pool] = store.list_pools()
    assert pool.history_lost
    assert pool.floor_ms == pool.quarantine_until_ms
    assert store.list_leases() == []


def test_pool_whose_numbers_were_never_used_grants_at_once(store: Store) -> None:
    store.create_pool("p", layout="test", never_used=True)
    assert acquire(store, never_used=True).floor_ms == 0


def test_quarantine_ends_by_the_clock_of_the_server(store: Store, redis: Redis) -> None:
    store.clock_limit_ms = 600_000
    store.create_pool("p", layout="test", never_used=True)
    kept, now = json.loads(redis.ask("HGET", "mintage:{pool:p}", "pool")), store.now_ms()

    def end_at(time_ms: int) -> None:
        redis.ask("HSET", "mintage:{pool:p}", "pool", json.dumps(kept | {"quarantine_until_ms": str(time_ms)}))

    end_at(now + 300_000)
    assert refusal(lambda: acquire(store, ahead_ms=500_000)).code == "lease.none_free"
    end_at(now)
    assert acquire(store, ahead_ms=-500_000).node == 0


def test_request_with_another_layout_lifts_no_quarantine(store: Store) -> None:
    assert refusal(lambda: acquire(store)).code == "lease.none_free"
    before = store.list_pools()
    assert refusal(lambda: store.create_pool("p", layout="other")).code == "config.pool"
    assert store.list_pools() == before


def test_leases_are_listed_without_their_index(store: Store, redis: Redis) -> None:
    store.create_pool("p", layout="test", never_used=True)
    for node in (3, 11, 7):
        acquire(store, nodes=range(node, node + 1))
    redis.ask("DEL", "mintage:{pool:p}:numbers")
    assert [record.node for record in store.list_leases("p")] == [3, 7, 11]
    assert [record.node for record in store.list_leases("p", 3, 1)] == [7]
    assert not store.list_leases("p", 11)


def test_leases_of_a_lost_pool_are_listed_by_half_an_index(store: Store, redis: Redis) -> None:
    store.create_pool("p", layout="test", never_used=True)
    for node in (3, 7):
        acquire(store, nodes=range(node, node + 1))
    redis.ask("HDEL", "mintage:{pool:p}", "pool")
    redis.ask("ZPOPMAX", "mintage:{pool:p}:numbers")
    assert [record.node for record in store.list_leases("p")] == [3, 7]


def test_windows_after_a_flush_begin_after_all_forgotten_ones(store: Store, redis: Redis) -> None:
    store.create_pool("p", layout="test", never_used=True)
    forgotten = acquire(store)
    store.reserve("n", 10)
    redis.ask("FLUSHALL")
    assert store.reserve("n", 10).first == 1
    assert refusal(lambda: acquire(store)).code == "lease.none_free"
    assert refusal(lambda: extend(store, forgotten)).code == "lease.lost"
    [pool] = store.list_pools()
    assert pool.floor_ms >= forgotten.until_ms


def test_pool_created_after_a_flush_is_in_quarantine(store: Store, redis: Redis) -> None:
    store.create_pool("p", layout="test", never_used=True)
    forgotten = acquire(store)
    redis.ask("FLUSHALL")
    pool = store.create_pool("p", layout="test")
    assert pool.history_lost
    assert pool.floor_ms == pool.quarantine_until_ms >= forgotten.until_ms
    for never_used in (False, True):
        error = refusal(lambda: acquire(store, never_used=never_used))  # noqa: B023
        assert error.code == "lease.none_free"
        assert "mintage pools create p --never-used" in str(error)


def test_lost_history_stays_lost_after_the_quarantine(store: Store, redis: Redis) -> None:
    store.create_pool("p", layout="test")
    record = json.loads(redis.ask("HGET", "mintage:{pool:p}", "pool"))
    redis.ask("HSET", "mintage:{pool:p}", "pool", json.dumps(record | {"quarantine_until_ms": "1", "floor_ms": "1"}))
    error = refusal(lambda: acquire(store, never_used=True))
    assert error.code == "lease.none_free"
    assert "cannot know which node numbers were never used" in str(error)
    acquire(store)
    assert refusal(lambda: store.create_pool("p", layout="test", never_used=True)).code == "config.pool"


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_only_holders_go_on_after_a_restart(store: Store, redis: Redis, end: str) -> None:
    held = hold(store)
    getattr(redis, end)()
    assert refusal(lambda: store.extend(held, now_ms=0, next_token=new_token())).code == "store.unavailable"
    redis.start()
    assert refusal(lambda: acquire(store)).code == "lease.none_free"
    assert extend(store, held).node == held.node


def test_pool_created_after_a_restart_stays_in_quarantine(store: Store, redis: Redis) -> None:
    held = hold(store)
    redis.kill()
    redis.start()
    assert store.create_pool("p", layout="test").floor_ms >= held.until_ms
    assert refusal(lambda: store.create_pool("p", layout="test", never_used=True)).code == "config.pool"
    assert refusal(lambda: acquire(store)).code == "lease.none_free"


def test_forgotten_extension_is_accepted_only_after_a_restart(store: Store, redis: Redis) -> None:
    held = hold(store)
    record = "mintage:{pool:p}", f"{held.node:014}"
    kept = redis.ask("HGET", *record)

    extended = extend(store, held)
    redis.ask("HSET", *record, kept)
    assert refusal(lambda: extend(store, extended)).code == "lease.lost"
    redis.kill()
    redis.start()
    for before in ("", "another"):
        assert refusal(partial(extend, store, replace(extended, previous=before))).code == "lease.lost"
    going_on = extend(store, extended)
    for late in (held, extended):
        assert refusal(partial(extend, store, late)).code == "lease.lost"
    assert extend(store, going_on).until_ms >= extended.until_ms


def test_expired_lease_is_lost_after_a_restart(store: Store, redis: Redis) -> None:
    held = hold(store)
    redis.kill()
    redis.start()
    store.clock_limit_ms = 600_000
    now = store.now_ms()
    ending = replace(held, until_ms=now + store.clock_limit_ms + rules.CLOCK_MARGIN_MS)
    lost = refusal(lambda: store.extend(ending, now_ms=now - 300_000, next_token=new_token()))
    assert lost.code == "lease.lost"
    assert "its window ran out" in str(lost)


def test_restart_keeps_a_lease_up_to_what_could_have_been_granted(store: Store, redis: Redis) -> None:
    span_ms = 3_600_000
    store.create_pool("p", layout="test", span_ms=span_ms, never_used=True)
    held = acquire(store, span_ms=span_ms)
    redis.kill()
    redis.start()
    store.clock_limit_ms = span_ms
    now = store.now_ms()
    earliest = now + store.clock_limit_ms + rules.CLOCK_MARGIN_MS
    forgotten = replace(held, until_ms=earliest + span_ms - 300_000)
    extended = store.extend(forgotten, now_ms=now - 600_000, next_token=new_token())
    assert extended.until_ms == forgotten.until_ms > held.until_ms
    claiming = replace(extended, until_ms=now + 10**9)
    until_ms = store.extend(claiming, now_ms=now - 600_000, next_token=new_token()).until_ms
    assert earliest + span_ms <= until_ms <= earliest + span_ms + store.now_ms() - now


def test_id_of_a_forgotten_grant_is_not_called_foreign(store: Store, redis: Redis) -> None:
    store.create_pool("ulid", layout="ulid", never_used=True)
    lease = partial(store.acquire, "ulid", nodes=range(1), layout="ulid", holder="me", span_ms=SPAN_MS)
    now = store.now_ms()
    store.release(lease(now_ms=now), used_until_ms=now)
    with Client.from_url(redis.url) as client:
        known = client.dump("mintage:{pool:ulid}")
        lease(now_ms=now)
        client.restore("mintage:{pool:ulid}", 0, known, replace=True)
    redis.kill()
    redis.start()
    one = ulid.Generator(0, clock=ManualClock((now + 1) * 10**6)).new()
    [found] = who(one, store)
    assert (found.state, "changed or lost data" in found.sentence) == ("forgotten", True)


def test_namespace_skips_possibly_forgotten_integers_after_a_restart(store: Store, redis: Redis) -> None:
    store.reserve("n", 7)
    last = store.reserve("n", 3)
    redis.kill()
    redis.start()
    assert store.give_back(last, 8) is False
    assert store.reserve("n", 1).first == 10 + GAP * 7 + 1
    assert store.reserve("n", 1).first == 10 + GAP * 7 + 2


def test_promoted_replica_counts_as_a_server_that_may_have_forgotten(store: Store, redis: Redis, other: Redis) -> None:
    follow(other, redis)
    store.create_pool("p", layout="test", never_used=True)
    store.reserve("n", 10)
    run = redis.info("server")["run_id"]
    with forgetting(redis, other):
        acquire(store)
        store.reserve("n", 10)
    assert redis.info("server")["run_id"] == run
    assert store.list_leases() == []
    assert refusal(lambda: acquire(store)).code == "lease.none_free"
    assert store.reserve("n", 1).first > 20


def test_first_replica_of_a_server_makes_it_another_one(store: Store, redis: Redis, other: Redis) -> None:
    redis.restart()  # it has no backlog then of the replicas of other tests
    last = eventually(lambda: store.reserve("n", 10)).last
    identity = store.describe().identity
    follow(other, redis)
    assert store.describe().identity != identity
    assert store.reserve("n", 1).first == last + 1 + GAP * 10


def test_server_whose_last_replica_left_becomes_another_one(store: Store, redis: Redis, other: Redis) -> None:
    follow(other, redis)
    store.reserve("n", 10)
    identity = store.describe().identity
    redis.ask("CONFIG", "SET", "repl-backlog-ttl", "1")
    try:
        other.ask("REPLICAOF", "NO", "ONE")
        until(lambda: store.describe().identity != identity, "its backlog is freed")
    finally:
        redis.ask("CONFIG", "SET", "repl-backlog-ttl", "3600")
    assert store.reserve("n", 1).first == 11 + GAP * 10


def test_failover_that_forgets_repeats_nothing(redis_sentinel: RedisSentinel) -> None:
    with open_store(patient(redis_sentinel.url)) as store:
        store.create_pool("p", layout="test", never_used=True)
        store.reserve("n", 10)
        with redis_sentinel.failover_that_forgets():
            forgotten = acquire(store)
            last = store.reserve("n", 10).last
        assert store.reserve("n", 1).first > last
        assert refusal(lambda: acquire(store)).code == "lease.none_free"
        assert store.list_pools()[0].floor_ms >= forgotten.until_ms


def test_holders_do_not_notice_a_failover_without_losses(redis_sentinel: RedisSentinel) -> None:
    with open_store(patient(redis_sentinel.url)) as store:
        held = hold(store)
        redis_sentinel.failover()
        assert extend(store, held).until_ms >= held.until_ms


def test_server_without_an_append_only_file_is_refused_by_default(
    redis_without_aof: RedisWithoutAOF,
) -> None:
    store = open_store(patient(redis_without_aof.url))
    for verb in (lambda: acquire(store), lambda: store.reserve("n", 1), lambda: store.create_pool("p", layout="test")):
        error = refusal(verb)
        assert isinstance(error, ConfigError)
        assert error.code == "config.volatile"
        assert "volatile=1" in str(error)
    assert store.list_pools() == []
    volatile = open_store(f"{patient(redis_without_aof.url)}&volatile=1")
    assert volatile.reserve("n", 1).first == 1
    assert any("volatile=1" in warning for warning in volatile.describe().warnings)


def test_volatile_server_repeats_integers_after_a_restart(redis_without_aof: RedisWithoutAOF) -> None:
    with open_store(f"{patient(redis_without_aof.url)}&volatile=1") as store:
        store.create_pool("p", layout="test", never_used=True)
        acquire(store)
        assert store.reserve("n", 10).first == 1
        redis_without_aof.restart()
        assert eventually(lambda: store.reserve("n", 10)).first == 1
        assert refusal(lambda: acquire(store)).code == "lease.none_free"


def test_server_that_evicts_keys_is_refused(store: Store, redis: Redis) -> None:
    try:
        redis.ask("CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru")
        error = refusal(lambda: store.reserve("n", 1))
        assert error.code == "config.volatile"
        assert "it drops keys when memory is short (maxmemory-policy allkeys-lru)" in str(error)
    finally:
        redis.ask("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction")
    assert store.reserve("n", 1).first == 1


def test_fsync_once_a_second_is_a_warning(store: Store, redis: Redis) -> None:
    assert store.describe().warnings == ()
    try:
        redis.ask("CONFIG", "SET", "appendfsync", "everysec")
        assert any("appendfsync is everysec" in warning for warning in store.describe().warnings)
    finally:
        redis.ask("CONFIG", "SET", "appendfsync", "always")


# --- replicas -----------------------------------------------------------------------------------------------------


def test_replica_is_not_used_as_the_master(redis: Redis, other: Redis) -> None:
    follow(other, redis)
    with open_store(patient(other.url)) as store:
        assert refusal(lambda: store.reserve("n", 1)).code == "store.unavailable"
        other.ask("CONFIG", "SET", "replica-read-only", "no")
        assert refusal(lambda: store.reserve("n", 1)).code == "store.unavailable"
        other.ask("REPLICAOF", "NO", "ONE")
        assert store.reserve("n", 1).first == 1


def test_master_cut_off_from_its_replicas_grants_nothing_with_wait(
    redis_sentinel: RedisSentinel,
) -> None:
    url = f"{redis_sentinel.url}?wait_replicas=1"
    with open_store(patient(url)) as store:
        held = hold(store)
        assert store.describe().warnings == ()
    with open_store(f"{url}&timeout_ms=2500") as store:
        redis_sentinel.replica.kill()
        token = new_token()
        lost = refusal(lambda: store.extend(held, now_ms=store.now_ms(), next_token=token))
        assert lost.code == "store.unavailable"
        assert refusal(lambda: store.reserve("n", 1)).code == "store.unavailable"
        redis_sentinel.start()
        # The effect is unknown, so the same token is requested again.
        again = eventually(lambda: store.extend(held, now_ms=store.now_ms(), next_token=token))
        assert again.token == token
    with open_store(patient(redis_sentinel.url)) as store:
        assert any("wait_replicas" in warning for warning in store.describe().warnings)


# --- connections --------------------------------------------------------------------------------------------------


def test_verb_whose_reply_was_lost_is_not_sent_again(redis: Redis) -> None:
    with Proxy(redis) as proxy, open_store(patient(proxy.url)) as store:
        store.reserve("n", 10)
        proxy.cut()
        assert refusal(lambda: store.reserve("n", 10)).code == "store.unavailable"
        assert store.reserve("n", 10).first == 21


def test_answer_to_another_request_is_refused(store: RedisStore) -> None:
    assert store.reserve("n", 1).first == 1
    [client] = store._scripts._idle.get()
    assert isinstance(client, Client)
    pool = client.connection_pool
    connection = pool.get_connection()
    # As a thread that was interrupted after it had sent a command and before it read the answer.
    connection.send_command("BLPOP", "missing", "0.2")  # type: ignore[no-untyped-call]
    pool.release(connection)
    refused = refusal(lambda: store.reserve("n", 1))
    assert (refused.code, "another request" in str(refused)) == ("store.unavailable", True)
    assert [store.reserve("n", 1).first for _ in range(2)] == [3, 4]


def test_server_that_does_not_answer_is_unavailable(redis: Redis) -> None:
    with Proxy(redis) as proxy, open_store(proxy.url + "?timeout_ms=50") as store:
        eventually(lambda: store.reserve("n", 1))
        proxy.blackhole()
        assert refusal(lambda: store.reserve("n", 1)).code == "store.unavailable"
        proxy.heal()
        assert eventually(lambda: store.reserve("n", 1)).first >= 2


def test_scripts_are_loaded_again_into_a_server_that_forgot_them(store: Store, redis: Redis) -> None:
    store.reserve("n", 1)
    redis.ask("SCRIPT", "FLUSH")
    assert store.reserve("n", 1).first == 2


def test_wrong_password_is_refused_and_never_shown(redis: Redis) -> None:
    redis.ask("ACL", "SETUSER", "mint", "on", ">open:sesame", "~*", "+@all")
    try:
        address = redis.url.removeprefix("redis://")
        with open_store(patient(f"redis://mint:open%3Asesame@{address}")) as store:
            assert store.reserve("n", 1).first == 1
        for scheme, rest in (("redis", address), ("redis+cluster", address.removesuffix("/0"))):
            store = open_store(f"{scheme}://mint:wr0ng@{rest}")
            error = refusal(lambda store=store: store.reserve("n", 1))
            assert error.code in {"store.refused", "store.unavailable"}
            assert "wr0ng" not in f"{error}{error.__cause__!r}{store!r}{store.url!r}"
        assert refusal(open_store(patient(f"redis://mint:wr0ng@{address}")).now_ms).code == "store.refused"
    finally:
        redis.ask("ACL", "DELUSER", "mint")


def test_user_without_the_right_to_run_scripts_is_refused(redis: Redis) -> None:
    redis.ask("ACL", "SETUSER", "mint", "on", ">sesame", "~*", "+@all", "-@scripting")
    try:
        with open_store(patient(redis.url.replace("://", "://mint:sesame@"))) as store:
            assert refusal(lambda: store.reserve("n", 1)).code == "store.refused"
    finally:
        redis.ask("ACL", "DELUSER", "mint")


RIGHTS = "+@read +@write +eval +evalsha +info +time +wait"
"""The rights that the documentation names."""


@pytest.mark.parametrize(
    ("rights", "named"),
    [
        ("~* +@all -@dangerous", "INFO"),
        ("~* +@all -time", "TIME"),
        ("~* +@all -hset", "HSET"),
        ("~* +@all -evalsha", "evalsha"),
        ("~other:* +@all", "key"),
    ],
)
def test_missing_right_of_a_user_is_named_with_its_remedy(redis: Redis, rights: str, named: str) -> None:
    redis.ask("ACL", "SETUSER", "mint", "reset", "on", ">sesame", *rights.split())
    try:
        with open_store(patient(redis.url.replace("://", "://mint:sesame@"))) as store:
            for verb in (lambda: store.reserve("n", 1), lambda: acquire(store)):
                error = refusal(verb)
                assert error.code == "store.refused"
                assert named in str(error)
                assert f"ACL SETUSER NAME ~mintage:* {RIGHTS}" in str(error)
                assert "script: " not in str(error)
    finally:
        redis.ask("ACL", "DELUSER", "mint")


def test_documented_rights_of_a_user_suffice(redis: Redis) -> None:
    redis.ask("ACL", "SETUSER", "mint", "reset", "on", ">sesame", "~mintage:*", *RIGHTS.split())
    try:
        with open_store(patient(redis.url.replace("://", "://mint:sesame@"))) as store:
            store.create_pool("p", layout="test", never_used=True)
            lease = extend(store, acquire(store))
            store.release(lease, used_until_ms=0)
            store.give_back(store.reserve("n", 10), 5)
            assert store.describe().warnings == ()
            assert [len(each) for each in (store.list_pools(), store.list_leases(), store.list_namespaces())] == [1] * 3
    finally:
        redis.ask("ACL", "DELUSER", "mint")


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:6379/zero",
        "redis://127.0.0.1:6379/-1",
        "redis://127.0.0.1:6379,127.0.0.1:6380/0",
        "redis://127.0.0.1:6379/0?prefix={a}",
        "redis://127.0.0.1:6379/0?timeout_ms=0",
        "redis://127.0.0.1:6379/0?tls=yes",
        "redis://127.0.0.1:6379/0?database=1",
        "redis+sentinel://127.0.0.1:26379/",
        "redis+sentinel://127.0.0.1:26379/mymaster/first",
        "redis+cluster://127.0.0.1:6379/0",
        "redis+cluster://127.0.0.1:6379?wait_replicas=1",
    ],
)
def test_url_that_cannot_work_is_refused(url: str) -> None:
    assert refusal(lambda: open_store(url)).code in {"config.store", "config.name"}


def test_stores_with_different_prefixes_share_nothing(redis: Redis) -> None:
    first, second = (open_store(f"{patient(redis.url)}&prefix={prefix}") for prefix in ("one", "two"))
    assert first.reserve("n", 5).first == second.reserve("n", 5).first == 1
    assert [record.name for record in first.list_namespaces()] == ["n"]


def test_tls_is_an_option_of_the_url_too(redis: Redis) -> None:
    with open_store(patient(f"{redis.tls_url.replace('rediss:', 'redis:')}&tls=1")) as store:
        assert store.reserve("n", 1).first == 1


def test_sentinel_may_have_a_password(redis_sentinel: RedisSentinel) -> None:
    sentinel = redis_sentinel.sentinel
    sentinel.ask("ACL", "SETUSER", "default", "resetpass", ">sesame")
    try:
        for options, is_open in (("", False), ("&sentinel_password=sesame", True)):
            with open_store(patient(redis_sentinel.url) + options) as store:
                if is_open:
                    assert store.reserve("n", 1).first == 1
                else:
                    assert refusal(partial(store.reserve, "n", 1)).code in {"store.refused", "store.unavailable"}
    finally:
        ask = ("redis-cli", "-p", str(sentinel.port), "--no-auth-warning", "--pass", "sesame")
        sentinel.run(*ask, "ACL", "SETUSER", "default", "nopass")


@pytest.mark.parametrize("name", ["redis", "redis_cluster"])
def test_store_without_its_list_of_names_lists_all_again(request: pytest.FixtureRequest, name: str) -> None:
    server = request.getfixturevalue(name)
    with open_store(patient(server.url)) as store:
        assert isinstance(store, RedisStore)
        for each in ("b", "a", "c"):
            store.reserve(each, 1)
            store.create_pool(each, layout="test")
        for kind in ("namespace", "pool"):
            # As a version left it that had no list.
            store._scripts.ask(("DEL", f"mintage:names:{kind}"))
        assert [each.name for each in store.list_namespaces()] == ["a", "b", "c"]
        assert [each.name for each in store.list_namespaces("a", 1)] == ["b"]
        assert [each.name for each in store.list_pools()] == ["a", "b", "c"]
        assert store.count_namespaces() == 3
        store.retire("d")
        assert store.count_namespaces() == 4


def test_name_without_a_record_is_not_listed(store: RedisStore) -> None:
    store.reserve("m", 1)
    # As a client left them that ended before it created the records.
    for kind in ("namespace", "pool"):
        store._names[kind].add("a", "b", "z")
    assert [each.name for each in store.list_namespaces("", 1)] == ["m"]
    assert [each.name for each in store.each_namespace()] == ["m"]
    assert store.list_namespaces("m", 1) == []
    assert store.list_pools() == []


def test_refused_verb_on_a_missing_name_lists_nothing(store: RedisStore) -> None:
    assert not store.give_back(Segment("n", 1, 10, 1, serial=7), 2)
    assert store.count_namespaces() == 0


def test_sentinel_that_does_not_know_the_service_is_unavailable(redis_sentinel: RedisSentinel) -> None:
    with open_store(redis_sentinel.url.replace("mymaster", "nobody")) as store:
        error = refusal(lambda: store.reserve("n", 1))
        assert isinstance(error, StoreError)
        assert error.code == "store.unavailable"


def test_cluster_spreads_pools_and_namespaces_over_its_members(redis_cluster: RedisCluster) -> None:
    names = [f"n{number}" for number in range(20)]
    with open_store(patient(redis_cluster.url)) as store:
        for name in names:
            store.create_pool(name, layout="test", never_used=True)
            store.reserve(name, 1)
        assert [pool.name for pool in store.list_pools()] == sorted(names)
        assert [namespace.name for namespace in store.list_namespaces()] == sorted(names)
        assert len({namespace.identity for namespace in store.list_namespaces()}) == 3


# --- past grants --------------------------------------------------------------------------------------------------


def use(store: Store, *holders: str) -> None:
    """Lease and release a node number once for each holder."""
    now = store.now_ms()
    for holder in holders:
        lease = stores.acquire(store, nodes=range(1), holder=holder, now_ms=now)
        store.release(lease, used_until_ms=max(lease.floor_ms, now - 1_000) + 1)


@pytest.mark.parametrize("lost", [["grants"], ["ended"], ["grants", "ended"]], ids="+".join)
def test_history_begins_anew_when_an_index_is_lost(store: Store, redis: Redis, lost: list[str]) -> None:
    store.create_pool("p", layout="test", never_used=True)
    use(store, "one", "two", "three")
    before = store.get_pool("p")
    redis.ask("DEL", *(f"mintage:{{pool:p}}:{part}" for part in lost))
    use(store, "four", "five")
    after = store.get_pool("p")
    assert before is not None
    assert after is not None
    assert after.history_from_ms > before.history_from_ms or len(lost) == 2
    assert [grant.holder for grant in store.list_grants("p", 0)] == ["four", "three"]


def test_pool_of_an_older_version_begins_a_history(store: Store, redis: Redis) -> None:
    store.create_pool("p", layout="test", never_used=True)
    use(store, "one")
    key, new = "mintage:{pool:p}", {"history_ms", "history_from_ms", "since_ms"}
    for field in ("pool", f"{0:014}"):
        older = {name: text for name, text in json.loads(redis.ask("HGET", key, field)).items() if name not in new}
        redis.ask("HSET", key, field, json.dumps(older))
    [record] = store.list_leases("p")
    assert record.since_ms == 0
    use(store, "two")
    [grant] = store.list_grants("p", 0)
    assert (grant.holder, grant.since_ms) == ("one", 0)
    pool = store.get_pool("p")
    assert pool is not None
    assert (pool.history_ms, pool.history_from_ms > 0) == (rules.HISTORY_MS, True)


# --- shares -------------------------------------------------------------------------------------------------------

DECODE_BEFORE_SHARES = """
local record = cjson.decode(redis.call('HGET', KEYS[1], 'pool'))
for name, value in pairs(record) do
  if string.match(name, '_ms$') or name == 'changes' then
    record[name] = string.match(tostring(value), '^%d+$') and tonumber(value)
      or error('damaged: ' .. name .. ' is no whole number')
  end
end
return record.layout
"""
"""The first step of scripts of versions without shares, for all verbs but those that end a lease."""


def test_scripts_of_versions_without_shares_refuse_a_share(store: Store, redis: Redis) -> None:
    def ask() -> Any:
        with Client(port=redis.port, decode_responses=True) as client:
            return client.eval(DECODE_BEFORE_SHARES, 1, "mintage:{pool:p}")

    store.create_pool("p", layout="test", never_used=True)
    assert ask() == "test"
    store.create_pool("p", layout="test", nodes=range(9))
    assert stores.acquire(store, nodes=range(5, 99)).node == 5
    with pytest.raises(ResponseError, match="damaged: upgrade_mintage_ms is no whole number"):
        ask()
    store.create_pool("p", layout="test", nodes=rules.ALL_NODES, wider_from_ms=store.now_ms())
    assert ask() == "test"


@pytest.mark.parametrize("damage", [{"first_node": "x"}, {"last_node": "-1"}, {"last_node": "1e3"}, {"first_node": []}])
def test_damaged_share_is_refused(store: Store, redis: Redis, damage: dict[str, Any]) -> None:
    store.create_pool("p", layout="test", never_used=True, nodes=range(9))
    record = json.loads(redis.ask("HGET", "mintage:{pool:p}", "pool"))
    redis.ask("HSET", "mintage:{pool:p}", "pool", json.dumps(record | damage))
    assert "is damaged" in str(refusal(lambda: acquire(store)))


# --- indexes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [["until"], ["numbers"], ["until", "numbers"]], ids="+".join)
def test_lost_indexes_are_rebuilt(store: Store, redis: Redis, lost: list[str]) -> None:
    store.create_pool("p", layout="test", never_used=True)

    def indexed() -> list[str]:
        return [redis.ask("ZCARD", f"mintage:{{pool:p}}:{index}") for index in ("until", "numbers")]

    held = [acquire(store), acquire(store)]
    redis.ask("DEL", *(f"mintage:{{pool:p}}:{index}" for index in lost))
    assert acquire(store, never_used=True).node == 2
    assert indexed() == ["3", "3"]
    assert [extend(store, lease).node for lease in held] == [0, 1]
    redis.ask("DEL", "mintage:{pool:p}")
    store.create_pool("p", layout="test", never_used=True)
    assert acquire(store).node == 0
    assert indexed() == ["1", "1"]


def test_oldest_node_of_a_range_is_found_among_many_older_ones(store: Store) -> None:
    store.create_pool("p", layout="test", never_used=True)
    leases = [acquire(store, nodes=range(300)) for _ in range(300)]
    # It is neither among the first hundred nor among the last.
    for lease in [*leases[:150], leases[250]]:
        store.release(lease, used_until_ms=0)
    assert acquire(store, nodes=range(210, 300)).node == 250


def test_time_is_that_of_the_server_in_milliseconds(store: Store) -> None:
    before = time.time_ns() // 1_000_000
    told = store.now_ms()
    assert before <= told <= time.time_ns() // 1_000_000


# --- foreign records ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["high_water", "maximum", "stride", "largest", "floor", "serial", "retired"])
@pytest.mark.parametrize("text", ["", "x", "1x", "x1", "1.5", "1e5", "-", "0" * 21])
def test_non_integer_field_of_a_namespace_is_refused_and_unchanged(
    store: Store, redis: Redis, field: str, text: str
) -> None:
    store.reserve("n", 1)
    redis.ask("HSET", "mintage:{namespace:n}", field, text)
    before = redis.ask("HGETALL", "mintage:{namespace:n}")
    error = refusal(lambda: store.reserve("n", 1))
    assert error.code == "store.refused"
    assert f"damaged: {text} is no integer" in str(error)
    assert redis.ask("HGETALL", "mintage:{namespace:n}") == before


def test_namespace_without_a_field_is_refused(store: Store, redis: Redis) -> None:
    store.reserve("n", 1)
    redis.ask("HDEL", "mintage:{namespace:n}", "serial")
    error = refusal(lambda: store.reserve("n", 1))
    assert error.code == "store.refused"
    assert "damaged: nil is no integer" in str(error)


@pytest.mark.parametrize("value", ["soon", "1x", "-1", "1.5", "", True])
@pytest.mark.parametrize("field", ["until_ms", "changes"])
def test_invalid_time_or_count_in_a_lease_is_refused(store: Store, redis: Redis, field: str, value: object) -> None:
    store.create_pool("p", layout="test", never_used=True)
    held = acquire(store)
    kept = json.loads(redis.ask("HGET", "mintage:{pool:p}", f"{0:014}"))
    redis.ask("HSET", "mintage:{pool:p}", f"{0:014}", json.dumps(kept | {field: value}))
    error = refusal(lambda: extend(store, held))
    assert error.code == "store.refused"
    assert "mintage:{pool:p}" in str(error)
    assert f"damaged: {field} is no whole number" in str(error)


def test_large_integers_are_stored_as_text_so_that_json_keeps_them(store: Store, redis: Redis) -> None:
    store.create_pool("p", layout="test", never_used=True)
    held = acquire(store)
    for name in ("pool", f"{held.node:014}"):
        record = json.loads(redis.ask("HGET", "mintage:{pool:p}", name))
        whole = {field: value for field, value in record.items() if field.endswith("_ms") or field == "changes"}
        assert whole
        assert all(type(value) is str and value.isdecimal() for value in whole.values())


def test_tail_of_one_successor_is_not_taken_back_on_another(redis: Redis, other: Redis) -> None:
    with open_store(patient(redis.url)) as store:
        store.reserve("n", 10)
        follow(other, redis)
        other.ask("REPLICAOF", "NO", "ONE")
        segments = []
        for _ in range(2):
            # Another server takes over with the data that the replica had received.
            follow(redis, other)
            redis.ask("REPLICAOF", "NO", "ONE")
            segments.append(store.reserve("n", 2))
            if len(segments) == 1:
                assert store.give_back(segments[0], segments[0].first)
        assert segments[0] == segments[1]
        assert not store.give_back(segments[0], segments[0].first)
        assert store.reserve("n", 1).first > segments[1].last


# --- arithmetic ---------------------------------------------------------------------------------------------------

EDGES = [0, 1, 999_999, 1_000_000, 2**31 - 1, 2**53 - 2, 2**53, 2**53 + 2, 10**18, 2**63 - 2**31, MAX_INTEGER]
WHOLE = st.sampled_from(EDGES) | st.integers(0, MAX_INTEGER)
SMALL = st.sampled_from([1, 2, 1000, 2**20, 2**31 - 1]) | st.integers(1, MAX_COUNT)


@st.composite
def namespaces(draw: st.DrawFn) -> NamespaceRecord:
    stride = draw(SMALL.filter(lambda stride: stride <= MAX_STRIDE))
    start, maximum = sorted((draw(WHOLE), draw(WHOLE)))
    try:
        made = rules.create_namespace("n", "", start=start, maximum=maximum, stride=stride, offset=stride // 2)
    except MintError:
        made = rules.create_namespace("n", "", start=0, stride=stride, offset=stride - 1)
    serial = draw(st.integers(0, 2**40))
    made = replace(made, serial=serial, serial_before=draw(st.integers(0, serial)))
    floor = draw(WHOLE)
    # Foreign records may have a floor above the last integer, which a reservation respects.
    return draw(st.sampled_from([rules.raise_floor(made, floor), replace(made, floor=floor)]))


@given(
    record=namespaces(),
    largest=SMALL | st.just(0),
    counts=st.lists(st.tuples(SMALL, st.booleans()), max_size=3),
    floor=WHOLE,
    moved=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_scripts_compute_segments_as_the_rules_do(
    telling: Telling,
    record: NamespaceRecord,
    largest: int,
    counts: list[tuple[int, bool]],
    floor: int,
    moved: bool,
) -> None:
    store, ask = telling, telling.client.execute_command
    identity = store.describe().identity
    record = replace(record, largest=largest, identity="another" if moved else identity)
    values = {field: getattr(record, field) for field in columns(NamespaceRecord)}
    texts = [
        text for field, value in values.items() for text in (field, f"{value:d}" if field == "retired" else str(value))
    ]
    ask("DEL", "mintage:{namespace:n}", "mintage:{namespace:n}:runs")
    ask("HSET", "mintage:{namespace:n}", *texts)
    record = rules.note_server_of_namespace(record, identity)
    runs: dict[int, RunRecord] = {}

    def timeless(record: NamespaceRecord) -> NamespaceRecord:
        return replace(record, run_since_ms=0, run_until_ms=0)

    def check() -> None:
        assert list(map(timeless, store.list_namespaces())) == [timeless(record)]
        kept = [(run.first, run.last, run.holder) for run in store.list_runs("n")]
        assert kept == [(first, runs[first].last, runs[first].holder) for first in sorted(runs, reverse=True)]

    def give_back(record: NamespaceRecord, segment: Segment, first_unused: int) -> NamespaceRecord:
        given_back = rules.give_back(record, segment, first_unused)
        assert store.give_back(segment, first_unused) is (given_back is not None)
        return record if given_back is None else rules.shorten_run(given_back)

    held = []
    for at, (count, is_held) in enumerate(counts):
        holder = f"host {at // 2}"
        try:
            record, expected = rules.reserve(record, count)
        except GenerationError:
            with pytest.raises(GenerationError):
                store.reserve("n", count)
            break
        assert store.reserve("n", count, holder=holder) == expected
        record, past = rules.note_run(record, expected, holder, 1)
        runs |= {past.first: past} if past is not None else {}
        check()
        if is_held:
            held.append(expected)
        else:
            unused = expected.first + expected.stride * (len(expected) // 2)
            record = give_back(record, expected, unused)
            assert not store.give_back(expected, unused)
    # The second to last segment is known once the last was taken back completely.
    for segment in reversed(held):
        record = give_back(record, segment, segment.first)
        check()
    record = rules.raise_floor(record, floor)
    assert timeless(store.raise_floor("n", floor)) == timeless(record)
    check()


# --- leases, by the server and by the rules -------------------------------------------------------------------------

TOKENS = ["one", "two", "three"]
NODES = range(4)
#: About the store's clock and about the ends of rests, windows and quarantines.
OFFSETS = [-200_000, *[-60_000] * 3, -59_999, -30_000, -6_000, -1, 0, 1, 5_500, 6_500, 30_000, *[61_000] * 2]
ABOUT = st.sampled_from(OFFSETS)
CLOCKS = st.sampled_from([0] * 8 + [-4_000, 4_000, -FAR_MS, FAR_MS])
SPANS = st.sampled_from([rules.MIN_SPAN_MS, SPAN_MS, SPAN_MS, SPAN_MS + 1, 2 * SPAN_MS])


@dataclass(frozen=True)
class Kept:
    """A pool and its node numbers, with times relative to the current time of the store."""

    pool: PoolRecord | None
    nodes: tuple[NodeRecord, ...]

    def at(self, now_ms: int, identity: str) -> tuple[PoolRecord | None, list[NodeRecord]]:
        """Return the records as stored at that time; ``here`` becomes the id of that server."""

        def stable(record: Any) -> Any:
            here = identity if record.identity == "here" else record.identity
            times = [
                name for name in columns(type(record)) if name.endswith("_ms") and name not in {"span_ms", "history_ms"}
            ]
            return replace(record, identity=here, **{name: max(0, now_ms + getattr(record, name)) for name in times})

        return self.pool and stable(self.pool), [stable(node) for node in self.nodes]


@st.composite
def kept(draw: st.DrawFn) -> Kept:
    where, changes = st.sampled_from(["here", "here", "here", "there"]), st.integers(0, 1)
    pool = PoolRecord(
        "p",
        draw(st.sampled_from(["test"] * 19 + ["other"])),
        draw(where),
        draw(st.sampled_from([SPAN_MS, 2 * SPAN_MS])),
        draw(ABOUT),
        draw(st.sampled_from([-SPAN_MS] * 9 + [2_000])),
        draw(st.booleans()),
        draw(changes),
        draw(st.sampled_from([rules.HISTORY_MS, 2_000, 0])),
        draw(ABOUT),
        *draw(st.sampled_from([(0, rules.MAX_NODES - 1)] * 3 + [(0, 1), (1, 2), (2, rules.MAX_NODES - 1), (3, 3)])),
    )
    nodes = []
    for node in sorted(draw(st.sets(st.sampled_from(NODES)))):
        until, token = draw(ABOUT), draw(st.sampled_from([*TOKENS, None]))
        holder = draw(st.sampled_from(["me", "größe", None]))
        floor = until - draw(st.sampled_from([0, 1, SPAN_MS]))
        nodes.append(
            NodeRecord(
                "p",
                node,
                floor,
                until,
                draw(SPANS),
                draw(where),
                token,
                holder,
                draw(ABOUT),
                draw(changes),
                draw(ABOUT),
            )
        )
    return Kept(draw(st.sampled_from([pool] * 9 + [None])), tuple(nodes))


@st.composite
def verbs(draw: st.DrawFn) -> Callable[[Store, int, list[NodeRecord]], object]:
    """Draw a verb of a store, at a time of the store, on its records."""
    node, used, clock, span_ms = draw(st.sampled_from(NODES)), draw(ABOUT), draw(CLOCKS), draw(SPANS)
    nodes = draw(st.sampled_from([NODES, range(2), range(2, 4), range(1)]))
    layout, never_used = draw(st.sampled_from(["test"] * 19 + ["other"])), draw(st.sampled_from([False] * 3 + [True]))
    history_ms = draw(st.sampled_from([None, None, 0, 1, 100_000, rules.MAX_HISTORY_MS]))
    share = draw(st.sampled_from([None, None, rules.ALL_NODES, range(2), range(1, 3), range(5, 9)]))
    wider = draw(st.none() | CLOCKS | ABOUT | st.just(-rules.MAX_SPAN_MS - 1)) if share else None
    own, previous, following = (draw(st.sampled_from([*TOKENS, extra])) for extra in ("of nobody", "", "of-nobody"))
    until, is_known, is_current = draw(ABOUT | st.just(61_000)), draw(st.booleans()), draw(st.booleans())

    def lease(now_ms: int, records: list[NodeRecord]) -> Lease:
        known = next((record for record in records if record.node == node), None)
        floor_ms = known.floor_ms if known is not None and is_known else now_ms - SPAN_MS
        token = known.token if known is not None and is_current and known.token else own
        return Lease("p", node, floor_ms, now_ms + until, token, previous)

    choices: list[Callable[[Store, int, list[NodeRecord]], object]] = [
        lambda store, now_ms, _: store.acquire(
            "p",
            nodes=nodes,
            layout=layout,
            holder="me",
            now_ms=now_ms + clock,
            span_ms=span_ms,
            never_used=never_used,
        ),
        lambda store, now_ms, records: store.extend(
            lease(now_ms, records), now_ms=now_ms + clock, next_token=following
        ),
        lambda store, now_ms, records: store.release(lease(now_ms, records), used_until_ms=now_ms + used),
        lambda store, *_: store.revoke("p", node),
        lambda store, now_ms, _: store.create_pool(
            "p",
            layout=layout,
            span_ms=span_ms,
            never_used=never_used,
            history_ms=history_ms,
            nodes=share,
            wider_from_ms=None if wider is None else now_ms + wider,
        ),
    ]
    return draw(st.sampled_from([*choices[:2] * 2, *choices]))


class Telling(RedisStore):
    """A store that reports the time by which the server decided."""

    decided_ms = 0

    @property
    def client(self) -> Any:
        return self._scripts._connect()

    def _leases(self, verb: str, pool: str, **arguments: Any) -> Any:
        seen = super()._leases(verb, pool, **arguments)
        self.decided_ms = seen.now_ms
        return seen


@pytest.fixture
def telling(redis: Redis) -> Iterator[Telling]:
    with Telling(StoreUrl.parse(patient(redis.url))) as opened:
        yield opened


class ByTheRules(MemoryStore):
    """The same records under rules.py; like Redis it cannot tell a new pool from a lost one."""

    def __init__(
        self, clock: Callable[[], int], identity: str, pool: PoolRecord | None, nodes: list[NodeRecord]
    ) -> None:
        super().__init__(clock=clock)
        self._records.identity = identity
        for record in [pool, *nodes]:
            if record is not None:
                self._records.put(record)

    def _new_pool(self, t: Transaction, name: str, layout: str, span_ms: int, server: ServerIdentity) -> PoolRecord:
        longest_ms = rules.create_pool(name, layout, span_ms, "").span_ms
        end = server.now_ms + longest_ms + rules.CLOCK_LIMIT_MS + rules.CLOCK_MARGIN_MS
        return rules.create_pool(name, layout, span_ms, server.identity, quarantine_until_ms=end)


def outcome(store: Store, verb: Callable[[], object]) -> object:
    """Return the result of a verb and the records after it, without random tokens."""

    def shown(value: Any) -> Any:
        is_drawn = isinstance(value, (Lease, NodeRecord)) and value.token not in {*TOKENS, "of-nobody", None}
        return replace(value, token="drawn") if is_drawn else value

    try:
        came = shown(verb())
    except MintError as error:
        came = type(error), str(error), error.__dict__
    grants = [list(store.list_grants("p", node)) for node in NODES]
    return came, store.list_pools(), [shown(record) for record in store.list_leases("p")], grants


@given(before=kept(), asked=st.lists(verbs(), min_size=1, max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_scripts_lease_as_the_rules_do(
    telling: Telling, before: Kept, asked: list[Callable[[Store, int, list[NodeRecord]], object]]
) -> None:
    store, ask = telling, telling.client.execute_command
    known = store.describe()
    pool, nodes = before.at(known.now_ms, known.identity)
    key = "mintage:{pool:p}"
    ask("DEL", key, *(f"{key}:{part}" for part in ("until", "numbers", "grants", "ended")))
    for field, record in [("pool", pool), *((f"{node.node:014}", node) for node in nodes)]:
        if record is not None:
            values = {name: getattr(record, name) for name in columns(type(record)) if name not in KEYS[type(record)]}
            texts = {name: str(value) if type(value) is int else value for name, value in values.items()}
            ask("HSET", key, field, json.dumps({name: text for name, text in texts.items() if text is not None}))
    rule = ByTheRules(lambda: store.decided_ms, known.identity, pool, nodes)
    for verb in asked:
        by_the_server = outcome(store, partial(verb, store, known.now_ms, nodes))
        assert by_the_server == outcome(rule, partial(verb, rule, known.now_ms, nodes))


def test_no_cluster_and_no_connection_give_different_errors(redis: Redis) -> None:
    with open_store(patient(f"redis+cluster://127.0.0.1:{redis.port}")) as store:
        refused = refusal(lambda: store.reserve("n", 1))
    assert refused.code == "store.refused"
    assert "begin the URL with redis:" in str(refused)


def test_error_suspects_a_plain_port_when_a_tls_handshake_fails(redis: Redis) -> None:
    with open_store(f"{redis.url.replace('redis:', 'rediss:', 1)}?timeout_ms=300") as store:
        refused = refusal(lambda: store.reserve("n", 1))
    assert refused.code == "store.unavailable"
    assert "is this its TLS port?" in str(refused)
