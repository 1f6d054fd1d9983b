"""Tests of Redis in front of a database: no integer is reserved twice, whatever happens to either of them."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mintage.errors import ConfigError, StoreError
from mintage.rules import Segment
from mintage.store import Store, cached, open_store
from tests.helpers.outcomes import refusal
from tests.helpers.redis_replicas import follow, forgetting
from tests.helpers.sql_servers import administer
from tests.helpers.stores import patient
from tests.servers import MariaDB, PostgreSQL, Proxy, Redis, RedisSentinel, RedisWithoutAOF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Pair = Any
"""A cached store; tests inspect the database behind it."""


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ids.db?timeout_ms=50"


@pytest.fixture
def store(database: str, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    # A cache that came back is used at once.
    monkeypatch.setattr(cached, "PAUSE_S", 0.0)
    with open_store(f"{database}&cache={patient(redis.url)}") as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Redis]:
    """Return a second server."""
    server = Redis(tmp_path / "other")
    server.start()
    yield server
    server.kill()


class Reserved:
    """All integers that any client reserved so far."""

    def __init__(self) -> None:
        self.integers: set[int] = set()

    def take(self, store: Store, count: int = 10, times: int = 1) -> Segment:
        """Reserve a segment, and fail if it contains an integer that was reserved before."""
        for _ in range(times):
            segment = store.reserve("n", count)
            integers = set(segment.as_range())
            assert len(integers) == count
            assert not integers & self.integers, f"{segment} was reserved before"
            self.integers |= integers
        return segment


def high_water(store: Store) -> int:
    [namespace] = store.list_namespaces()
    return namespace.high_water


def block(redis: Redis) -> dict[str, str]:
    words = redis.ask("HGETALL", "mintage:{block:n}").splitlines()
    return dict(zip(words[::2], words[1::2], strict=True))


# --- normal operation ---------------------------------------------------------------------------------------------


def test_database_is_asked_once_a_block_and_no_integer_is_skipped(store: Pair, redis: Redis) -> None:
    segments = [store.reserve("n", 10) for _ in range(250)]
    assert [segment.first for segment in segments] == list(range(1, 2500, 10))
    assert high_water(store) == 3000
    assert (block(redis)["next"], block(redis)["last"]) == ("2501", "3000")


def test_block_has_as_many_segments_as_the_url_says(database: str, redis: Redis) -> None:
    with open_store(f"{database}&block=3&cache={patient(redis.url)}") as store:
        store.reserve("n", 10)
        assert high_water(store) == 30


@pytest.mark.parametrize("name", ["mariadb", "postgresql"])
def test_pair_reserves_without_the_table_of_past_grants(
    request: pytest.FixtureRequest, redis: Redis, name: str
) -> None:
    server: MariaDB | PostgreSQL = request.getfixturevalue(name)
    with open_store(f"{patient(server.url)}&block=1&cache={patient(redis.url)}") as store:
        store.reserve("n", 10)
        administer(server, "DROP TABLE mintage_grant")
        assert [store.reserve("n", 10).first for _ in range(3)] == [11, 21, 31]


def test_clients_with_different_steps_share_a_block(store: Pair) -> None:
    reserved = Reserved()
    for count in (1, 1000, 3, 100_000, 7, 1):
        reserved.take(store, count)
    # Blocks that follow each other are one.
    assert reserved.integers == set(range(1, len(reserved.integers) + 1))


def test_namespace_is_used_up_to_its_last_integer(store: Pair) -> None:
    store.create_namespace("n", start=5, maximum=1000, stride=7, offset=3)
    segments = [store.reserve("n", 30) for _ in range(5)]
    assert [integer for segment in segments for integer in segment.as_range()] == list(range(10, 1001, 7))
    assert refusal(lambda: store.reserve("n", 30)).code == "namespace.exhausted"


def test_block_of_one_integer_is_used_once(store: Pair) -> None:
    store.create_namespace("n", maximum=1)
    assert store.reserve("n", 10).as_range() == range(1, 2)
    assert refusal(lambda: store.reserve("n", 10)).code == "namespace.exhausted"


def test_integers_near_the_end_are_exact(store: Pair) -> None:
    store.create_namespace("n", start=2**63 - 25)
    assert [store.reserve("n", 10).last for _ in range(3)] == [2**63 - 16, 2**63 - 6, 2**63 - 1]


def test_tail_is_taken_back_from_the_last_segment_only(store: Pair) -> None:
    first, second = store.reserve("n", 10), store.reserve("n", 10)
    assert store.give_back(first, 5) is False
    assert store.give_back(second, 15) is True
    assert store.reserve("n", 10).first == 15


@pytest.mark.parametrize("serial", [0, 1], ids=["none", "the database's"])
def test_tail_not_cut_by_the_cache_is_not_taken_back(store: Pair, serial: int) -> None:
    first, second = store.reserve("n", 10), store.reserve("n", 10)
    assert store.give_back(second, 11)
    assert store.give_back(first, 4)
    assert not store.give_back(Segment("n", 1, 3, serial=serial), 2)


def test_databases_that_share_a_cache_have_separate_blocks(tmp_path: Path, redis: Redis) -> None:
    stores = [open_store(f"sqlite:///{tmp_path}/{name}.db?cache={patient(redis.url)}") for name in ("one", "two")]
    both = [Reserved(), Reserved()]
    for _ in range(3):
        for store, reserved in zip(stores, both, strict=True):
            reserved.take(store)
    assert 1 in both[0].integers
    assert 1 in both[1].integers


def test_schemas_that_share_a_cache_have_separate_blocks(postgresql: PostgreSQL, redis: Redis) -> None:
    roles = ("red", "blue")
    for role in roles:
        postgresql.sql(f"CREATE ROLE {role} LOGIN PASSWORD 'x'; CREATE SCHEMA {role} AUTHORIZATION {role};")
    try:
        rest = postgresql.url.rpartition("@")[2]
        urls = [f"postgresql://{role}:x@{rest}?timeout_ms=60000&cache={patient(redis.url)}" for role in roles]
        with open_store(urls[0]) as red, open_store(urls[1]) as blue:
            both = [(red, Reserved()), (blue, Reserved())]
            for _ in range(50):
                for store, reserved in both:
                    reserved.take(store)
    finally:
        postgresql.sql("DROP OWNED BY red, blue; DROP ROLE red, blue;")


def test_block_of_dropped_tables_is_not_used(mariadb: MariaDB, redis: Redis) -> None:
    url = f"{patient(mariadb.url)}&cache={patient(redis.url)}"
    with open_store(url) as store:
        assert store.reserve("n", 10).first == 1
    mariadb.reset()
    with open_store(url) as store:
        reserved = Reserved()
        assert reserved.take(store).first == 1
        reserved.take(store, times=300)


def test_cache_needs_no_append_only_file(database: str, redis_without_aof: RedisWithoutAOF) -> None:
    with open_store(f"{database}&cache={patient(redis_without_aof.url)}") as store:
        reserved = Reserved()
        reserved.take(store)
        redis_without_aof.kill()
        redis_without_aof.start()
        reserved.take(store, times=3)


@pytest.mark.parametrize(
    "url",
    [
        "memory:?cache=redis://127.0.0.1",
        "sqlite:///ids.db?cache=mysql://127.0.0.1/ids",
        "sqlite:///ids.db?cache=sqlite:///cache.db",
        "sqlite:///ids.db?cache=nonsense",
        "sqlite:///ids.db?block=0&cache=redis://127.0.0.1",
        "sqlite:///ids.db?cache=redis://127.0.0.1?volatile=1",
        "redis://127.0.0.1/0?cache=redis://127.0.0.1",
        "sqlite:///ids.db?cache=redis://127.0.0.1?cache=redis://127.0.0.1",
        "sqlite:///ids.db" + "?cache=sqlite:///ids.db" * 10_000,
    ],
)
def test_unsuitable_cache_or_database_is_refused(url: str) -> None:
    error = refusal(lambda: open_store(url))
    assert isinstance(error, ConfigError)
    assert error.code == "config.store"


def test_passwords_of_cache_and_database_are_not_shown(database: str, redis: Redis) -> None:
    store: Pair = open_store(f"{database}&cache={redis.url.replace('://', '://:s3same@')}")
    shown = f"{store!r}{store.url!r}{store.describe()!r}"
    assert "s3same" not in shown


# --- lost and outdated data in Redis ------------------------------------------------------------------------------


def flushed(redis: Redis, dump: Path, go_on: Callable[[], object]) -> None:
    redis.ask("FLUSHALL")


def killed(redis: Redis, dump: Path, go_on: Callable[[], object]) -> None:
    redis.kill()
    redis.start()


def stopped(redis: Redis, dump: Path, go_on: Callable[[], object]) -> None:
    redis.restart()


def started_from_an_older_dump(redis: Redis, dump: Path, go_on: Callable[[], object]) -> None:
    files = redis.directory / "appendonlydir"
    redis.stop()
    shutil.copytree(files, dump)
    redis.start()
    go_on()
    redis.kill()
    shutil.rmtree(files)
    shutil.copytree(dump, files)
    redis.start()


def killed_and_started_from_the_same_older_dump_twice(redis: Redis, dump: Path, go_on: Callable[[], object]) -> None:
    started_from_an_older_dump(redis, dump, go_on)
    go_on()
    redis.kill()
    shutil.rmtree(redis.directory / "appendonlydir")
    shutil.copytree(dump, redis.directory / "appendonlydir")
    redis.start()


@pytest.mark.parametrize(
    "fault",
    [flushed, killed, stopped, started_from_an_older_dump, killed_and_started_from_the_same_older_dump_twice],
)
def test_nothing_is_reserved_twice_after(
    store: Pair, redis: Redis, tmp_path: Path, fault: Callable[[Redis, Path, Callable[[], object]], None]
) -> None:
    reserved = Reserved()
    reserved.take(store, times=5)
    fault(redis, tmp_path / "dump", lambda: reserved.take(store, times=5))
    reserved.take(store, times=150)


def test_nothing_is_reserved_twice_after_following_a_stale_replica(store: Pair, redis: Redis, other: Redis) -> None:
    reserved = Reserved()
    follow(other, redis)
    reserved.take(store, times=5)
    run = redis.info("server")["run_id"]
    with forgetting(redis, other):
        reserved.take(store, times=5)
    assert redis.info("server")["run_id"] == run
    reserved.take(store, times=150)


def test_nothing_is_reserved_twice_by_two_masters_at_once(
    store: Pair, database: str, redis: Redis, other: Redis
) -> None:
    reserved = Reserved()
    follow(other, redis)
    reserved.take(store, times=5)
    other.ask("REPLICAOF", "NO", "ONE")
    with open_store(f"{database}&cache={patient(other.url)}") as elsewhere:
        for _ in range(30):
            reserved.take(store, times=5)
            reserved.take(elsewhere, times=5)


def test_nothing_is_reserved_twice_after_a_failover_that_forgets(database: str, redis_sentinel: RedisSentinel) -> None:
    reserved = Reserved()
    with open_store(f"{database}&cache={patient(redis_sentinel.url)}") as store:
        reserved.take(store, times=5)
        with redis_sentinel.failover_that_forgets():
            reserved.take(store, times=5)
        reserved.take(store, times=150)


def test_nothing_is_reserved_twice_by_many_clients_of_a_cache_that_forgets(database: str, redis: Redis) -> None:
    url = f"{database.replace('=50', '=60000')}&block=5&cache={patient(redis.url)}"
    found: list[Segment] = []
    failed: list[BaseException] = []
    going = threading.Event()

    def client() -> None:
        try:
            with open_store(url) as store:
                for number in range(200):
                    segment = store.reserve("n", 1 + number % 7)
                    found.append(segment)
                    if number == 20:
                        going.set()
        except BaseException as error:  # noqa: BLE001 - the test reports it
            failed.append(error)
            going.set()

    threads = [threading.Thread(target=client) for _ in range(6)]
    for thread in threads:
        thread.start()
    going.wait()
    while any(thread.is_alive() for thread in threads):
        redis.ask("FLUSHALL")
    for thread in threads:
        thread.join()
    assert not failed
    integers = [integer for segment in found for integer in segment.as_range()]
    assert len(found) == 1200
    assert len(integers) == len(set(integers))


def test_block_of_unknown_arrival_is_not_used(database: str, redis: Redis) -> None:
    reserved = Reserved()
    with Proxy(redis) as proxy, open_store(f"{database}&cache={patient(proxy.url)}") as store:
        pair: Pair = store
        reserved.take(pair)
        redis.ask("DEL", "mintage:{block:n}")
        reserve = pair.inner.reserve

        def reserve_and_lose_the_reply(namespace: str, count: int, **options: str | None) -> Segment:
            segment: Segment = reserve(namespace, count, **options)
            if count > 10:
                proxy.cut()
            return segment

        pair.inner.reserve = reserve_and_lose_the_reply
        reserved.take(pair)
        pair.inner.reserve = reserve
        assert block(redis)["next"] == "1011"
        # Directly from the database, beside the block that arrived, which others use.
        assert max(reserved.integers) == 2010
        with open_store(f"{database}&cache={patient(redis.url)}") as neighbour:
            reserved.take(neighbour, times=150)
            reserved.take(pair, times=150)


# --- unavailable cache or database --------------------------------------------------------------------------------


def test_database_goes_on_alone_without_its_cache(store: Pair, redis: Redis) -> None:
    reserved = Reserved()
    reserved.take(store, times=3)
    redis.kill()
    assert reserved.take(store).first == 1001
    assert high_water(store) == 1010
    assert any("cache does not answer" in warning for warning in store.describe().warnings)
    redis.start()
    reserved.take(store, times=150)
    assert high_water(store) > 2000


def test_cache_that_did_not_answer_is_skipped_for_a_while(
    store: Pair, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached, "PAUSE_S", 3600.0)
    store.reserve("n", 10)
    redis.kill()
    store.reserve("n", 10)
    redis.start()
    redis.ask("FLUSHALL")
    store.reserve("n", 10)
    assert block(redis) == {}


def test_block_is_used_to_its_end_without_the_database(store: Pair, tmp_path: Path) -> None:
    reserved = Reserved()
    reserved.take(store)
    away = sqlite3.connect(tmp_path / "ids.db", isolation_level=None)
    away.execute("BEGIN EXCLUSIVE")
    reserved.take(store, times=99)
    assert refusal(lambda: store.reserve("n", 10)).code == "store.unavailable"
    away.execute("ROLLBACK")
    away.close()
    assert reserved.take(store).first == 1001


def test_killed_database_is_not_needed_within_a_block(mariadb: MariaDB, redis: Redis) -> None:
    reserved = Reserved()
    with open_store(f"{patient(mariadb.url)}&cache={patient(redis.url)}") as store:
        reserved.take(store)
        mariadb.kill()
        reserved.take(store, times=99)
        assert refusal(lambda: store.reserve("n", 10)).code == "store.unavailable"
        mariadb.start()
        assert reserved.take(store).first == 1001


def test_process_that_never_reached_the_database_uses_no_block(
    store: Pair, database: str, redis: Redis, tmp_path: Path
) -> None:
    store.reserve("n", 10)
    away = sqlite3.connect(tmp_path / "ids.db", isolation_level=None)
    away.execute("BEGIN EXCLUSIVE")
    with open_store(f"{database}&cache={patient(redis.url)}") as newcomer:
        assert refusal(lambda: newcomer.reserve("n", 10)).code == "store.unavailable"
        away.execute("ROLLBACK")
        away.close()
        assert newcomer.reserve("n", 10).first == 11


def test_database_that_took_over_is_identified_again(store: Pair, database: str, redis: Redis, tmp_path: Path) -> None:
    store.reserve("n", 10)
    for file in tmp_path.glob("ids.db*"):
        file.rename(tmp_path / f"former-{file.name}")
    redis.ask("FLUSHALL")
    store.reserve("n", 10)
    store.reserve("n", 10)
    reserved = high_water(store)
    with open_store(f"{database}&cache={patient(redis.url)}") as newcomer:
        newcomer.reserve("n", 10)
        assert high_water(newcomer) == reserved


# --- raised floors ------------------------------------------------------------------------------------------------


def test_raised_floor_applies_within_a_block_and_after_it(store: Pair, database: str, redis: Redis) -> None:
    store.reserve("n", 10)
    with open_store(f"{database}&cache={patient(redis.url)}") as neighbour:
        neighbour.raise_floor("n", 500)
        assert store.reserve("n", 10).first == 500
        neighbour.raise_floor("n", 5000)
        assert store.reserve("n", 10).first == 5000
        assert store.raise_floor("n", 7).high_water > 5000
        assert store.reserve("n", 10).first == 5010


def test_floor_above_a_block_discards_the_block(store: Pair) -> None:
    store.reserve("n", 10)
    store.raise_floor("n", 5000)
    assert store.reserve("n", 1).first == 5000


def test_lower_floor_does_not_replace_that_of_a_block(store: Pair) -> None:
    store.reserve("n", 10)
    store.raise_floor("n", 500)
    store.raise_floor("n", 7)
    assert store.reserve("n", 10).floor == 500


def test_forgotten_floor_is_read_from_the_database_again(store: Pair, redis: Redis) -> None:
    store.raise_floor("n", 500)
    redis.ask("FLUSHALL")
    assert store.reserve("n", 10).floor == 500


def test_floor_cannot_be_raised_while_the_cache_is_away(store: Pair, redis: Redis) -> None:
    store.reserve("n", 10)
    redis.kill()
    error = refusal(lambda: store.raise_floor("n", 5000))
    assert isinstance(error, StoreError)
    assert error.code == "store.unavailable"
    redis.start()
    store.raise_floor("n", 5000)
    assert store.reserve("n", 10).first == 5000


@pytest.mark.parametrize("forgets", [False, True])
def test_block_from_before_a_raised_floor_does_not_arrive_late(
    store: Pair, database: str, redis: Redis, forgets: bool
) -> None:
    reserve = store.inner.reserve

    def reserve_and_dawdle(namespace: str, count: int, **options: str | None) -> Segment:
        segment: Segment = reserve(namespace, count, **options)
        with open_store(f"{database}&cache={patient(redis.url)}") as neighbour:
            neighbour.raise_floor("n", 5000)
        if forgets:
            redis.ask("FLUSHALL")
        return segment

    store.inner.reserve = reserve_and_dawdle
    # Reserved before the floor was raised.
    assert store.reserve("n", 10).first == 1
    store.inner.reserve = reserve
    assert store.reserve("n", 10).first >= 5000
