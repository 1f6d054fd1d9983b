"""Tests of the exceptions that docs/uniqueness.md states: what it says can repeat does repeat, on real servers.

A page that excepts too much is as wrong as one that promises too much. A test that fails here shows a promise that the
page could make.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from mintage import snowflake
from mintage.rules import CLOCK_LIMIT_MS, CLOCK_MARGIN_MS, GAP, SPAN_MS
from mintage.store import open_store
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock
from tests.helpers.outcomes import code_of, eventually
from tests.helpers.redis_replicas import follow, forgetting, offset
from tests.helpers.stores import acquire
from tests.servers import Redis
from tests.servers.postgresql import Backup, Standby
from tests.servers.server import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mintage.store import Store
    from tests.servers import Etcd, MariaDB, PostgreSQL

STEP = 10
SKIP = GAP * STEP
LAYOUT = "snowflake time:41 node:10 sequence:12 @1420070400000 1ms"


@pytest.fixture(scope="module")
def standing_by(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Redis]]:
    """Return two servers that can follow another."""
    with ExitStack() as stack:
        made = [Redis(tmp_path_factory.mktemp(name)) for name in ("first", "second")]
        for server in made:
            server.start()
            stack.callback(server.kill)
        yield made


def integers(store: Store, count: int, name: str = "n") -> list[int]:
    """Return integers of as many reservations of one size."""
    return [each for _ in range(count) for each in store.reserve(name, STEP).as_range()]


def promote(replica: Redis, master: Redis) -> None:
    """Make a replica that has received everything a master of its own."""
    until(lambda: offset(master, "master_repl_offset") == offset(replica, "slave_repl_offset"), "it has heard all")
    replica.ask("REPLICAOF", "NO", "ONE")


# --- Redis ------------------------------------------------------------------------------------------------------------


def test_namespace_unknown_to_a_new_server_begins_again(redis: Redis, standing_by: list[Redis]) -> None:
    follow(standing_by[0], redis)
    with open_store(redis.url) as store:
        with forgetting(redis, standing_by[0]):
            assert integers(store, 1) == list(range(1, 11))
        assert integers(store, 1) == list(range(1, 11))


def test_namespace_that_was_only_created_skips_few_integers(redis: Redis, standing_by: list[Redis]) -> None:
    # No reservation has told the new server how many integers it may have forgotten.
    follow(standing_by[0], redis)
    with open_store(redis.url) as store:
        store.create_namespace("n")
        with forgetting(redis, standing_by[0]):
            lost = store.reserve("n", 1000)
        assert store.reserve("n", 1000).first == GAP + 1 < lost.last


def test_integers_lost_beyond_the_skip_repeat(redis: Redis, standing_by: list[Redis]) -> None:
    follow(standing_by[0], redis)
    with open_store(redis.url) as store:
        before = integers(store, 1)
        with forgetting(redis, standing_by[0]):
            before += integers(store, GAP + 1)
        assert set(integers(store, 1)) <= set(before)


def test_integers_lost_within_the_skip_do_not_repeat(redis: Redis, standing_by: list[Redis]) -> None:
    follow(standing_by[0], redis)
    with open_store(redis.url) as store:
        before = integers(store, 1)
        with forgetting(redis, standing_by[0]):
            before += integers(store, GAP)
        assert not set(integers(store, 1)) & set(before)


def test_two_masters_of_one_store_repeat_integers(redis: Redis, standing_by: list[Redis]) -> None:
    follow(standing_by[0], redis)
    with open_store(redis.url) as one, open_store(standing_by[0].url) as other:
        integers(one, 1)
        promote(standing_by[0], redis)
        assert set(integers(other, 1)) & set(integers(one, GAP + 1))


def test_replaced_server_that_serves_again_repeats_integers(redis: Redis, standing_by: list[Redis]) -> None:
    follow(standing_by[0], redis)
    with open_store(redis.url) as store:
        integers(store, 1)
        promote(standing_by[0], redis)
        with open_store(standing_by[0].url) as successor:
            after = integers(successor, 1)
        assert set(after) & set(integers(store, GAP + 1))


def test_second_failover_that_loses_the_skip_repeats_integers(redis: Redis, standing_by: list[Redis]) -> None:
    with open_store(redis.url) as store:
        integers(store, 1)
    for server in standing_by:
        follow(server, redis)
    after = []
    for server in standing_by:
        server.ask("REPLICAOF", "NO", "ONE")
        with open_store(server.url) as successor:
            after.append(integers(successor, 1))
    assert after[0] == after[1]
    assert after[0][0] == STEP + SKIP + 1


def test_false_statement_of_never_used_numbers_repeats_ids(redis: Redis) -> None:
    clock = ManualClock(time.time_ns(), auto_advance=False)
    minted = []
    for _ in range(2):
        with open_store(redis.url) as store:
            store.create_pool("snowflake", layout=LAYOUT, never_used=True)
            minted.append(snowflake.Generator(store=store, clock=clock).new())
        redis.ask("FLUSHALL")
    assert minted[0] == minted[1]


# --- databases --------------------------------------------------------------------------------------------------------


@pytest.fixture
def backup(postgresql: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backup]:
    made = Backup(open_to_all(tmp_path_factory.mktemp("backup")) / "it", postgresql)
    yield made
    made.kill()


def open_to_all(folder: Path) -> Path:
    """Make a folder that the account of a server can enter."""
    for each in (folder, *folder.parents[:3]):
        each.chmod(0o755)
    return folder


def test_backup_without_a_process_of_before_repeats_integers(postgresql: PostgreSQL, backup: Backup) -> None:
    with open_store(postgresql.url) as store:
        integers(store, 1)
        identity = store.describe().identity
        backup.start()
        before = integers(store, 1)
    with open_store(backup.url) as started:
        assert started.describe().identity == identity
        assert integers(started, 1) == before


def test_backup_recovered_from_an_archive_is_another_server(postgresql: PostgreSQL, backup: Backup) -> None:
    with open_store(postgresql.url) as store:
        integers(store, 1)
        acquire(store)
        identity = store.describe().identity
        backup.start()
        backup.stop()
        before = integers(store, 1)
    backup.recover()
    backup.start()
    with open_store(backup.url) as started:
        assert eventually(started.describe).identity != identity
        assert integers(started, 1)[0] == STEP + SKIP + 1 > before[-1]
        assert code_of(lambda: acquire(started, nodes=range(1, 4))) == "lease.none_free"


def test_two_standbys_promoted_one_after_the_other_have_one_id(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = open_to_all(tmp_path_factory.mktemp("standbys"))
    primary, *standbys = (Standby(folder / name) for name in ("primary", "first", "second"))
    with ExitStack() as stack:
        primary.start()
        stack.callback(primary.kill)
        with open_store(primary.url) as store:
            integers(store, 1)
        for standby in standbys:
            stack.callback(standby.kill)
            standby.follow(primary)
        primary.kill()
        found = []
        for standby in standbys:
            standby.promote()
            with open_store(standby.url) as store:
                found.append((store.describe().identity, integers(store, 1)))
    assert found[0] == found[1]


def test_older_rows_in_a_table_of_mariadb_repeat_integers(mariadb: MariaDB) -> None:
    with open_store(mariadb.url) as store:
        integers(store, 1)
        mariadb.sql("USE mintage; CREATE TABLE kept AS SELECT * FROM mintage_namespace")
        before = integers(store, 1)
        mariadb.sql("USE mintage; DELETE FROM mintage_namespace; INSERT INTO mintage_namespace SELECT * FROM kept")
        assert integers(store, 1) == before
        mariadb.sql("USE mintage; DROP TABLE kept")


def test_deleted_row_of_a_node_number_is_not_noticed(postgresql: PostgreSQL, mariadb: MariaDB) -> None:
    for server, table in ((postgresql, "mintage_node"), (mariadb, "mintage.mintage_node")):
        with open_store(server.url) as store:
            held = acquire(store)
            server.sql(f"DELETE FROM {table}")
            again = acquire(store)
            assert (again.node, again.floor_ms) == (held.node, held.floor_ms)


def test_name_deleted_from_both_tables_begins_again(postgresql: PostgreSQL) -> None:
    with open_store(postgresql.url) as store:
        lost = integers(store, 2, "gone")
        integers(store, 1)
        for table in ("mintage_namespace", "mintage_name"):
            postgresql.sql(f"DELETE FROM {table} WHERE name = 'gone'")
        assert integers(store, 2, "gone") == lost


def test_lost_pool_with_a_shorter_span_has_too_short_a_quarantine(postgresql: PostgreSQL) -> None:
    with open_store(postgresql.url) as store:
        held = acquire(store, span_ms=4 * SPAN_MS)
        postgresql.sql("DELETE FROM mintage_node")
        postgresql.sql("DELETE FROM mintage_pool")
        assert code_of(lambda: acquire(store)) == "lease.none_free"
        assert store.list_pools()[0].floor_ms < held.until_ms


@pytest.fixture
def forgetful(redis: Redis) -> Iterator[Store]:
    """Return a store that has forgotten the share of its pool, the numbers 0 to 511."""
    with open_store(redis.url) as store:
        store.create_pool("snowflake", layout=LAYOUT, never_used=True, nodes=range(512))
        redis.ask("FLUSHALL")
        store.create_pool("snowflake", layout=LAYOUT, never_used=True)  # as the quarantine ends later
        yield store


def test_pool_that_forgot_its_share_repeats_ids_of_another_store(forgetful: Store) -> None:
    clock = ManualClock(time.time_ns())
    with MemoryStore() as other:
        other.create_pool("snowflake", layout=LAYOUT, nodes=range(512, 1024))
        generators = [
            snowflake.Generator(store=store, nodes=nodes, clock=clock)
            for store, nodes in ((forgetful, range(512, 513)), (other, None))
        ]
        assert generators[0].new() == generators[1].new()


def test_chosen_numbers_keep_a_pool_apart_that_forgot_its_share(forgetful: Store) -> None:
    generators = [snowflake.Generator(store=forgetful, nodes=range(510, 512)) for _ in range(2)]
    assert {each.node for each in generators if each.new()} == {510, 511}


def test_keys_deleted_from_etcd_are_not_noticed(etcd: Etcd) -> None:
    with open_store(etcd.url) as store:
        lost = integers(store, 2)
        etcd.reset()
        assert integers(store, 2) == lost


def test_row_of_mariadb_changed_by_hand_is_not_noticed(mariadb: MariaDB) -> None:
    with open_store(mariadb.url) as store:
        before = integers(store, 1)
        mariadb.sql("UPDATE mintage.mintage_namespace SET high_water = 0")
        assert integers(store, 1) == before


# --- servers in memory, whose clocks can differ -----------------------------------------------------------------------


class Switched(MemoryStore):
    """A store on server A, which B takes over without the writes after :meth:`copy`."""

    def __init__(self) -> None:
        self.time_ms = 1_700_000_000_000
        super().__init__(clock=lambda: self.time_ms)
        self._records.identity = "A"

    def copy(self) -> None:
        self.known = {kind: dict(table) for kind, table in self._records.tables.items()}

    def fail_over(self) -> None:
        self._records.identity, self._records.tables = "B", self.known


def test_pool_unknown_to_a_new_server_is_granted_at_once() -> None:
    store = Switched()
    store.copy()
    before = acquire(store)
    store.fail_over()
    after = acquire(store)
    assert (after.node, after.floor_ms) == (before.node, before.floor_ms)


@pytest.mark.parametrize(("behind_ms", "has_ended"), [(CLOCK_MARGIN_MS, True), (CLOCK_MARGIN_MS + 1000, False)])
def test_window_outlasts_a_quarantine_by_a_clock_too_far_behind(behind_ms: int, has_ended: bool) -> None:
    store = Switched()
    store.create_pool("p", layout="test")
    store.copy()
    forgotten = acquire(store, now_ms=store.now_ms() + CLOCK_LIMIT_MS)
    store.fail_over()
    store.time_ms -= behind_ms
    assert code_of(lambda: acquire(store)) == "lease.none_free"
    [pool] = store.list_pools()
    assert (forgotten.until_ms <= pool.floor_ms) == has_ended
