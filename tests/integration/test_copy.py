"""Tests of ``mintage copy``: counters and pools that move to a store of another kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mintage import open_store, rules
from mintage.errors import CATALOGUE, ConfigError, MintError
from mintage.rules import MAX_INTEGER
from mintage.store import Forwarding
from mintage.store.copying import check_apart, copy_namespaces, copy_pools
from mintage.store.memory import MemoryStore
from tests.helpers.sql_servers import account
from tests.helpers.stores import acquire

if TYPE_CHECKING:
    from pathlib import Path

    from mintage.rules import Lease, NamespaceRecord
    from mintage.store import Store
    from tests.servers import Etcd, MariaDB, PostgreSQL, Redis

CLEAN = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "COLUMNS", "MINTAGE_STORE"}}


def copy(source: str, target: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mintage", "copy", "--from", source, "--to", target, *options]
    return subprocess.run(command, capture_output=True, env=CLEAN, timeout=120, check=False, encoding="utf-8")


def output(source: str, target: str, *options: str) -> str:
    """Return the output of a copy that succeeds."""
    done = copy(source, target, *options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ids.db'}"


class Manual:
    """A clock of memory stores."""

    def __init__(self) -> None:
        self.now_ms = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def pair() -> tuple[MemoryStore, MemoryStore, Manual]:
    clock = Manual()
    return (MemoryStore(clock=clock), MemoryStore(clock=clock), clock)


def reserved(store: Store, name: str, *counts: int) -> list[int]:
    return [each for count in counts for each in store.reserve(name, count).as_range()]


def check_move(source_url: str, target_url: str) -> None:
    """Assert that no integer and no window of the source comes again from the target."""
    with open_store(source_url) as source, open_store(target_url) as target:
        source.create_namespace("odd", stride=2, offset=1, maximum=10**6)
        source.create_pool("p", layout="test", never_used=True, history_ms=1000)
        before = {name: set(reserved(source, name, 1000, 1, 70)) for name in ("orders", "odd")}
        lease = acquire(source)
        source.release(lease, used_until_ms=source.now_ms())
        source.retire("old")
        output(source_url, target_url, "--dry-run")
        assert target.list_namespaces() == []
        assert "namespaces: 3 created" in output(source_url, target_url)
        # Somebody reserves in the source until the switch.
        for name, integers in before.items():
            integers.update(reserved(source, name, 500))
        assert "0 created, 2 raised, 0 retired, 1 as they were" in output(source_url, target_url)
        assert "0 created, 0 raised, 0 retired, 3 as they were" in output(source_url, target_url)
        for name, integers in before.items():
            after = reserved(target, name, 1000)
            assert not integers & set(after)
            assert after[0] == max(integers) + (2 if name == "odd" else 1)
        assert [each.name for each in target.list_namespaces() if each.retired] == ["old"]
        [pool] = target.list_pools()
        assert (pool.layout, pool.span_ms, pool.history_ms) == ("test", source.list_pools()[0].span_ms, 1000)
        [window] = source.list_leases("p")
        if pool.history_lost:
            assert pool.floor_ms >= window.until_ms
        else:
            assert [each.until_ms for each in target.list_leases("p")] == [window.until_ms]
            assert acquire(target, never_used=True).node != window.node


def test_store_moves_from_sqlite_to_postgresql(tmp_path: Path, postgresql: PostgreSQL) -> None:
    check_move(sqlite(tmp_path), postgresql.url)


def test_store_moves_from_redis_to_mariadb(redis: Redis, mariadb: MariaDB) -> None:
    check_move(redis.url, mariadb.url)


def test_store_moves_from_postgresql_to_sqlite(tmp_path: Path, postgresql: PostgreSQL) -> None:
    check_move(postgresql.url, sqlite(tmp_path))


def test_store_moves_from_sqlite_to_redis(tmp_path: Path, redis: Redis) -> None:
    check_move(sqlite(tmp_path), redis.url)


def test_store_moves_from_mariadb_to_etcd(mariadb: MariaDB, etcd: Etcd) -> None:
    check_move(mariadb.url, etcd.url)


# --- namespaces -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stride", [1, 2, 7])
@pytest.mark.parametrize("maximum", [3, 99, 100, MAX_INTEGER - 1, MAX_INTEGER])
@pytest.mark.parametrize("is_known", [False, True])
def test_used_up_namespace_is_used_up_in_the_target(
    pair: tuple[Store, Store, Manual], stride: int, maximum: int, is_known: bool
) -> None:
    source, target, _ = pair
    limits = {"stride": stride, "offset": stride // 2, "maximum": maximum}
    source.create_namespace("full", **limits)
    if is_known:
        target.create_namespace("full", **limits)
    source.raise_floor("full", max(0, maximum - 20))
    reserved(source, "full", 100)
    for action in ("raise" if is_known else "create", "keep"):
        assert [(each.action, each.next) for each in copy_namespaces(source, target)] == [(action, None)]
        with pytest.raises(MintError, match="used up"):
            target.reserve("full", 1)


@pytest.mark.parametrize("start", [0, 1, 5, 6])
def test_unused_namespace_begins_at_the_same_integer(pair: tuple[Store, Store, Manual], start: int) -> None:
    source, target, _ = pair
    source.create_namespace("new", start=start, stride=2, offset=1, maximum=50)
    list(copy_namespaces(source, target))
    assert reserved(target, "new", 100) == reserved(source, "new", 100)


def test_floor_above_the_high_water_mark_is_kept(pair: tuple[Store, Store, Manual]) -> None:
    source, target, _ = pair
    reserved(source, "orders", 5)
    record = replace(source.list_namespaces()[0], floor=1000)  # as an older version left it

    class Older(Forwarding):
        def list_namespaces(self, after: str = "", limit: int = 9) -> list[NamespaceRecord]:
            return [] if after else [record]

    assert [each.next for each in copy_namespaces(Older(source), target)] == [1000]
    assert reserved(target, "orders", 1) == [1000]


def test_integers_that_a_server_may_have_forgotten_are_skipped(pair: tuple[MemoryStore, Store, Manual]) -> None:
    source, target, _ = pair
    reserved(source, "orders", 100)
    record = replace(source.list_namespaces()[0], identity="the server before")

    class Replica(Forwarding):
        def list_namespaces(self, after: str = "", limit: int = 9) -> list[NamespaceRecord]:
            return [] if after else [record]

    list(copy_namespaces(Replica(source), target))
    assert reserved(target, "orders", 1) == [100 + rules.GAP * 100 + 1]


def test_namespace_that_is_ahead_in_the_target_is_not_lowered(pair: tuple[Store, Store, Manual]) -> None:
    source, target, _ = pair
    reserved(source, "orders", 5)
    reserved(target, "orders", 50)
    assert [each.action for each in copy_namespaces(source, target)] == ["keep"]
    assert reserved(target, "orders", 1) == [51]


@pytest.mark.parametrize("limits", [{"stride": 2}, {"stride": 2, "offset": 1}, {"maximum": 99}])
def test_namespace_with_other_limits_in_the_target_is_refused(
    pair: tuple[Store, Store, Manual], limits: dict[str, int]
) -> None:
    source, target, _ = pair
    source.create_namespace("orders", stride=1 if limits.get("offset") is None and "stride" in limits else 2)
    target.create_namespace("orders", **limits)
    with pytest.raises(ConfigError, match=r"namespace 'orders' is maximum .* cannot change") as caught:
        list(copy_namespaces(source, target))
    assert caught.value.code == "config.namespace"


def test_namespace_in_use_but_retired_in_the_target_is_refused(pair: tuple[Store, Store, Manual]) -> None:
    source, target, _ = pair
    reserved(source, "orders", 5)
    target.retire("orders")
    with pytest.raises(ConfigError, match="in use in the source, but retired"):
        list(copy_namespaces(source, target))


def test_namespace_retired_in_the_source_is_retired_in_the_target(pair: tuple[Store, Store, Manual]) -> None:
    source, target, _ = pair
    for name in ("a", "b"):
        source.create_namespace(name, stride=3, offset=2, maximum=60)
        source.retire(name)
    reserved(target, "b", 5)
    assert [each.action for each in copy_namespaces(source, target)] == ["create", "retire"]
    assert [(each.retired, each.stride) for each in target.list_namespaces()] == [(True, 3), (True, 1)]
    assert [each.action for each in copy_namespaces(source, target)] == ["keep", "keep"]


def test_interrupted_copy_of_many_namespaces_goes_on(tmp_path: Path) -> None:
    source, target = MemoryStore(), MemoryStore()
    for number in range(2500):
        source.reserve(f"n{number:04}", 1 + number % 7)

    class Broken(Forwarding):
        left = 1700

        def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
            self.left -= verb == "create_namespace"
            if not self.left:
                raise KeyboardInterrupt
            return super().forward(verb, *args, **kwargs)

    with pytest.raises(KeyboardInterrupt):
        list(copy_namespaces(source, Broken(target)))
    actions = [each.action for each in copy_namespaces(source, target)]
    assert (actions.count("keep"), actions.count("create")) == (1699, 801)
    assert [each.high_water for each in target.list_namespaces()] == [1 + number % 7 for number in range(2500)]


# --- pools ------------------------------------------------------------------------------------------------------------


def windows(store: Store) -> list[tuple[int, int]]:
    return [(each.node, each.until_ms) for each in store.list_leases("p")]


def test_windows_of_the_target_begin_after_those_of_the_source(pair: tuple[Store, Store, Manual]) -> None:
    source, target, clock = pair
    leases: list[Lease] = [acquire(source) for _ in range(4)]
    clock.now_ms += 30_001
    [copied] = copy_pools(source, target)
    assert (copied.windows, copied.waits) == (4, ())
    assert windows(target) == windows(source)
    clock.now_ms -= 5_000  # a server with a slower clock grants from the end of the window, too
    for lease in leases:
        clock.now_ms += 30_000
        assert acquire(target, nodes=range(lease.node, lease.node + 1)).floor_ms >= lease.until_ms


def test_window_that_may_grow_is_reported_until_the_holder_stopped(pair: tuple[Store, Store, Manual]) -> None:
    source, target, clock = pair
    lease = acquire(source)
    [copied] = copy_pools(source, target)
    [wait] = copied.waits
    assert (wait.node, wait.holder, wait.left_ms) == (lease.node, "me", 30_000)
    clock.now_ms += 20_000
    source.extend(lease, now_ms=clock.now_ms, next_token="a")
    clock.now_ms += 20_000
    [copied] = copy_pools(source, target)
    assert copied.waits
    assert windows(target) == []
    [copied] = copy_pools(source, target, leases_ended=True)
    assert (copied.windows, copied.waits) == (1, ())
    assert windows(target) == windows(source)
    assert acquire(target, nodes=range(2)).node != lease.node
    clock.now_ms += 10_000
    [copied] = copy_pools(source, target)
    assert (copied.windows, copied.waits) == (0, ())


def test_number_in_use_in_both_stores_is_reported(pair: tuple[Store, Store, Manual]) -> None:
    source, target, clock = pair
    acquire(target)
    clock.now_ms += 10_000
    acquire(source)
    [copied] = copy_pools(source, target, leases_ended=True)
    assert [wait.node for wait in copied.waits] == [0]


def test_pool_with_another_layout_or_shorter_span_is_refused(pair: tuple[Store, Store, Manual]) -> None:
    source, target, _ = pair
    source.create_pool("p", layout="test", span_ms=60_000)
    target.create_pool("p", layout="test")
    with pytest.raises(ConfigError, match="spans of 60000 ms"):
        list(copy_pools(source, target))
    source.create_pool("q", layout="test")
    other = MemoryStore()
    other.create_pool("q", layout="other")
    with pytest.raises(ConfigError, match="layout 'other'"):
        list(copy_pools(source, other))


def test_copied_pool_has_the_share_of_the_source(pair: tuple[Store, Store, Manual]) -> None:
    source, target, clock = pair
    outside = acquire(source, nodes=range(1))
    source.create_pool("p", layout="test", nodes=range(2, 4))
    source.release(acquire(source), used_until_ms=clock())
    [copied] = copy_pools(source, target)
    assert (copied.windows, copied.waits) == (1, ())
    [pool] = target.list_pools()
    assert (pool.share, [each.node for each in target.list_leases("p")]) == (range(2, 4), [2])
    assert source.get_lease("p", outside.node) is not None


def test_pool_of_the_target_keeps_its_share(pair: tuple[Store, Store, Manual]) -> None:
    source, target, clock = pair
    for node in (1, 2):
        source.release(acquire(source, nodes=range(node, node + 1)), used_until_ms=clock())
    target.create_pool("p", layout="test", nodes=range(2, 9))
    [copied] = copy_pools(source, target)
    assert (copied.action, copied.windows, target.list_pools()[0].share) == ("keep", 1, range(2, 9))
    source.create_pool("p", layout="test", nodes=range(2))
    with pytest.raises(ConfigError) as caught:
        list(copy_pools(source, target))
    assert caught.value.code == "config.node"


def test_pool_whose_history_only_the_source_lost_is_reported(redis: Redis, tmp_path: Path) -> None:
    with open_store(redis.url) as source, open_store(sqlite(tmp_path)) as target:
        source.create_pool("p", layout="test")
        [copied] = copy_pools(source, target, leases_ended=True)
        assert copied.is_forgotten
        [copied] = copy_pools(source, target)
        assert [wait.node for wait in copied.waits] == [None]


def test_command_fails_and_says_how_long_to_wait_for_leases(tmp_path: Path) -> None:
    source_url, target_url = sqlite(tmp_path), f"sqlite:///{tmp_path / 'other.db'}"
    with open_store(source_url) as source:
        acquire(source, holder="host:7")
    done = copy(source_url, target_url)
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert "pool 'p': node 0, host:7, may mint for" in first
    assert second.endswith("if all have stopped, say so by --leases-ended")
    done = copy(source_url, target_url, "--json")
    [facts] = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, facts["waits"][0]["node"]) == (1, 0)
    output(source_url, target_url, "--leases-ended")


# --- wrong commands ---------------------------------------------------------------------------------------------------


def refused(source: str, target: str, code: str, said: str) -> None:
    done = copy(source, target)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (CATALOGUE[code].exit, "")


def test_one_store_under_two_names_is_refused(tmp_path: Path, redis: Redis, postgresql: PostgreSQL) -> None:
    for url, alias in (
        (sqlite(tmp_path), f"sqlite:///{tmp_path}/../{tmp_path.name}/ids.db"),
        (redis.url, redis.url.replace("127.0.0.1", "localhost")),
        (postgresql.url, postgresql.url.replace("127.0.0.1", "localhost")),
    ):
        with open_store(url) as store:
            store.reserve("orders", 1)
        refused(url, url, "config.store", "are one store")
        refused(url, alias, "config.store", "are one store")
    check_apart(open_store(redis.url), open_store(f"{redis.url}?prefix=other"))


def test_source_that_lost_namespaces_is_refused(tmp_path: Path, postgresql: PostgreSQL) -> None:
    with open_store(postgresql.url) as source, open_store(sqlite(tmp_path)) as target:
        source.reserve("orders", 100)
        postgresql.sql("DELETE FROM mintage_namespace")
        done = copy(postgresql.url, sqlite(tmp_path))
        assert done.returncode == CATALOGUE["store.refused"].exit
        assert "mintage namespaces create NAME --start N" in done.stderr
        # The target would begin it at 1.
        assert target.list_namespaces() == []
        source.create_namespace("orders", start=101)
        assert source.describe().warnings == ()
        output(postgresql.url, sqlite(tmp_path))
        assert target.reserve("orders", 1).first == 101


def test_source_without_tables_is_refused(tmp_path: Path, postgresql: PostgreSQL) -> None:
    target = f"sqlite:///{tmp_path / 'other.db'}"
    refused(sqlite(tmp_path), target, "store.refused", "nothing to copy")
    refused(postgresql.url, target, "store.refused", "nothing to copy")


def test_unreachable_store_is_one_sentence(tmp_path: Path) -> None:
    with open_store(sqlite(tmp_path)) as store:
        store.reserve("orders", 1)
    refused(sqlite(tmp_path), "redis://127.0.0.1:1/0", "store.unavailable", "127.0.0.1:1")
    refused("nosql://h", sqlite(tmp_path), "config.store", "no store is called 'nosql'")


def test_store_in_memory_is_refused(tmp_path: Path) -> None:
    done = copy("memory:", sqlite(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "ends with its process" in done.stderr


def test_account_without_rights_is_one_sentence(tmp_path: Path, postgresql: PostgreSQL) -> None:
    with open_store(sqlite(tmp_path)) as store:
        store.reserve("orders", 1)
    with open_store(postgresql.url) as store:
        store.reserve("others", 1)
    with account(postgresql) as url:
        postgresql.sql("REVOKE INSERT ON mintage_namespace FROM clerk")
        refused(sqlite(tmp_path), url, "store.refused", "permission denied")
