"""Tests of tables that are dropped, emptied, or restored from a dump: nothing is handed out again.

A database that is managed by the tools of an application loses tables: migrations drop tables that no model declares,
test suites truncate every table, and administrators restore single tables.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mintage.cli import main
from mintage.errors import CATALOGUE, LeaseError
from mintage.rules import CLOCK_LIMIT_MS, CLOCK_MARGIN_MS, GAP, HISTORY_MS, MIN_SPAN_MS, SPAN_MS
from mintage.store import open_store
from mintage.store.sql.base import Database
from mintage.store.sql.statements import migrations
from mintage.who import who_reserved
from tests.helpers.outcomes import eventually
from tests.helpers.sql_servers import Server, account, administer, refusal_text
from tests.helpers.stores import LONG_MS, RUN_COLUMNS, acquire, extend, patient, prepare
from tests.servers import MariaDB, MySQL, PostgreSQL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mintage.store import Store

RECORDS = ["pool", "node", "namespace"]
RUNS_AWAY = (
    "DROP TABLE mintage_run",
    f"ALTER TABLE mintage_namespace {', '.join(f'DROP COLUMN {column}' for column in RUN_COLUMNS)}",
)
"""The steps that take away the tables and columns of the last version of the schema."""
QUARANTINE_MS = SPAN_MS + CLOCK_LIMIT_MS + CLOCK_MARGIN_MS


@pytest.fixture(params=["mariadb", "mysql", "postgresql"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def store(server: Server) -> Iterator[Database]:
    with open_store(patient(server.url)) as opened:
        assert isinstance(opened, Database)
        yield opened


def tables(server: Server) -> list[str]:
    """Return the tables that mintage created."""
    named = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'mintage' AND table_type = 'BASE TABLE'"
        if isinstance(server, MariaDB)
        else "SELECT tablename FROM pg_tables WHERE tablename LIKE 'mintage_%'"
    )
    return administer(server, named).split()


def drop(server: Server) -> None:
    """Drop the tables, as a migration does that was generated without ``include_name``."""
    administer(server, "".join(f"DROP TABLE {table};" for table in tables(server)))


def waited(server: Server) -> None:
    """Wait until new tables have another creation time than the existing ones."""
    if isinstance(server, MariaDB):
        server.await_new_second()


def warnings(store: Store) -> str:
    return "\n".join(store.describe().warnings)


def waits(store: Store, pool: str = "p") -> int:
    """Return for how long a pool grants nothing."""
    with pytest.raises(LeaseError) as caught:
        acquire(store, pool, nodes=range(9))
    assert caught.value.code == "lease.none_free"
    return caught.value.retry_after_ms or 0


# --- all of them ------------------------------------------------------------------------------------------------------


def test_namespace_of_dropped_tables_does_not_begin_again(server: Server, store: Database) -> None:
    assert store.reserve("invoice", 100).last == 100
    drop(server)
    for _ in range(2):
        assert "namespaces create invoice --start N" in refusal_text(lambda: store.reserve("invoice", 1))
    assert store.list_namespaces() == []
    # Nor does a new one, as nobody knows that it is new.
    assert "has lost namespaces" in refusal_text(lambda: store.reserve("other", 1))
    store.create_namespace("invoice", start=101)
    assert store.reserve("invoice", 1).first == 101
    store.raise_floor("other", 500)
    assert store.reserve("other", 1).first == 500
    store.retire("third")
    refusal_text(lambda: store.reserve("fourth", 1))


def test_namespace_created_after_a_loss_needs_a_start(server: Server, store: Database) -> None:
    store.reserve("invoice", 100)
    drop(server)
    said = refusal_text(lambda: store.create_namespace("invoice"))
    assert "namespaces create invoice --start N" in said
    refusal_text(lambda: store.create_namespace("invoice", maximum=10**9, stride=2))
    assert store.list_namespaces() == []
    assert store.create_namespace("invoice", start=101).high_water == 100
    assert store.create_namespace("other", start=1).high_water == 0


def test_command_that_creates_a_namespace_after_a_loss_needs_start(
    server: Server, store: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    store.reserve("invoice", 100)
    drop(server)
    create = ["namespaces", "create", "invoice", "--store", patient(server.url)]
    assert main(create) == CATALOGUE["store.refused"].exit
    assert "has lost namespaces" in capsys.readouterr().err
    assert main([*create, "--start", "101"]) == 0
    assert store.reserve("invoice", 1).first == 101


def test_pool_of_dropped_tables_begins_in_quarantine(server: Server, store: Database) -> None:
    held = acquire(store, nodes=range(9))
    drop(server)
    with pytest.raises(LeaseError) as caught:
        extend(store, held)
    assert caught.value.code == "lease.lost"
    assert 0 < waits(store) <= QUARANTINE_MS
    [pool] = store.list_pools()
    assert pool.history_lost
    assert pool.floor_ms >= held.until_ms
    store.create_pool("p", layout="test")
    assert 0 < waits(store) <= QUARANTINE_MS


def test_pool_created_after_its_table_was_dropped_is_in_quarantine(server: Server, store: Database) -> None:
    held = acquire(store, nodes=range(9))
    drop(server)
    pool = store.create_pool("p", layout="test")
    assert pool.history_lost
    assert pool.floor_ms == pool.quarantine_until_ms >= held.until_ms
    assert 0 < waits(store) <= QUARANTINE_MS
    with pytest.raises(LeaseError, match="cannot know which node numbers were never used"):
        acquire(store, nodes=range(9), never_used=True)
    store.create_pool("p", layout="test", never_used=True)
    assert acquire(store, nodes=range(9), never_used=True).floor_ms == 0


def test_quarantine_outlasts_the_windows_of_longer_spans(server: Server, store: Database) -> None:
    acquire(store, nodes=range(9))
    drop(server)
    now_ms, store.span_ms = store.now_ms(), MIN_SPAN_MS
    pool = store.create_pool("p", layout="test", span_ms=MIN_SPAN_MS)
    assert pool.quarantine_until_ms >= now_ms + SPAN_MS + store.clock_limit_ms


def test_lost_history_is_reported_until_it_is_accepted(server: Server, store: Database) -> None:
    store.reserve("invoice", 100)
    acquire(store)
    assert store.describe().warnings == ()
    drop(server)
    said = warnings(store)
    assert "records of pools and namespaces are gone" in said
    store.create_namespace("invoice", start=101)
    assert "history was lost" in warnings(store)
    administer(server, said.partition("then run: ")[2])
    assert store.describe().warnings == ()
    assert store.reserve("new", 1).first == 1
    assert acquire(store, "q").node == 0


def test_doctor_reports_lost_history(server: Server, store: Database) -> None:
    def doctor() -> list[dict[str, str]]:
        command = [sys.executable, "-m", "mintage", "doctor", "--json"]
        environment = {**os.environ, "MINTAGE_STORE": patient(server.url)}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        findings = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == int(any(each["level"] != "ok" for each in findings))
        return [each for each in findings if each["topic"] == "store" and each["level"] != "ok"]

    store.reserve("invoice", 100)
    assert doctor() == []
    drop(server)
    for _ in range(2):
        assert "history was lost" in "".join(finding["text"] for finding in doctor())
        assert tables(server) == []


def test_tables_dropped_with_the_view_begin_anew(server: Server, store: Database) -> None:
    store.reserve("invoice", 100)
    drop(server)
    administer(server, "DROP VIEW mintage_existed")
    assert store.reserve("invoice", 1).first == 1
    assert store.describe().warnings == ()
    # The acceptance is stored too.
    drop(server)
    refusal_text(lambda: store.reserve("invoice", 1))


def test_nothing_repeats_however_often_tables_are_dropped(server: Server, store: Database) -> None:
    handed_out = list(store.reserve("invoice", 10).as_range())
    for _ in range(5):
        drop(server)
        refusal_text(lambda: store.reserve("invoice", 10))
        store.create_namespace("invoice", start=handed_out[-1] + 1)
        handed_out += store.reserve("invoice", 10).as_range()
    assert handed_out == list(range(1, 61))


# --- some of them -----------------------------------------------------------------------------------------------------


def test_table_that_is_missing_is_refused(server: Server, store: Database) -> None:
    for kind in RECORDS:
        store.reserve("n", 1)
        kept = server.dump(f"mintage_{kind}")
        administer(server, f"DROP TABLE mintage_{kind}")
        for _ in range(2):
            said = refusal_text(lambda: store.reserve("n", 1))
            assert f"mintage_{kind}" in said
            assert "mintage_existed" in said
        administer(server, kept)
    assert store.reserve("n", 1).first > len(RECORDS)


def test_loss_of_the_version_table_alone_is_handled(server: Server, store: Database) -> None:
    store.reserve("n", 10)
    administer(server, "DROP TABLE mintage_schema")
    if isinstance(server, MariaDB):
        assert store.reserve("n", 1).first > 10
        refusal_text(lambda: store.reserve("new", 1))
    else:
        assert "mintage_schema is missing" in refusal_text(lambda: store.reserve("n", 1))


@pytest.mark.parametrize("how", ["TRUNCATE TABLE", "DELETE FROM"])
def test_emptied_table_of_namespaces_is_noticed(server: Server, store: Database, how: str) -> None:
    store.reserve("n", 10)
    administer(server, f"{how} mintage_namespace")
    assert "has lost namespaces" in refusal_text(lambda: store.reserve("n", 1))
    assert "records of namespaces are gone" in warnings(store)


def test_name_that_never_had_a_record_is_created_beside_lost_ones(server: Server, store: Database) -> None:
    for name in ("a", "b"):
        store.reserve(name, 10)
    administer(server, "DELETE FROM mintage_namespace WHERE name = 'a'")
    assert store.reserve("new", 1).first == 1
    assert "has lost namespaces" in refusal_text(lambda: store.reserve("a", 1))
    store.create_namespace("a", start=11)
    assert store.describe().warnings == ()
    assert store.count_namespaces() == 3


def test_loss_among_the_100_newest_names_is_reported(server: Server, store: Database) -> None:
    names = [f"n{number}" for number in range(101)]
    for name in names:
        store.reserve(name, 10)
    administer(server, "DELETE FROM mintage_namespace WHERE name = 'n0'")
    assert "has lost namespaces" in refusal_text(lambda: store.reserve("n0", 1))
    assert store.describe().warnings == ()
    administer(server, "DELETE FROM mintage_namespace WHERE name = 'n1'")
    assert "records of namespaces are gone" in warnings(store)


def test_all_names_count_as_lost_once_the_newest_is(server: Server, store: Database) -> None:
    store.reserve("old", 10)
    kept = server.dump("mintage_namespace", "mintage_name")
    store.reserve("young", 10)
    waited(server)
    administer(server, kept)
    for name in ("young", "other"):
        assert "has lost namespaces" in refusal_text(partial(store.reserve, name, 1))


def test_older_counter_counts_all_names_and_notices_losses(server: Server, store: Database) -> None:
    store.reserve("a", 10)
    kept = server.dump("mintage_schema")
    for name in ("b", "c"):
        store.reserve(name, 10)
    waited(server)
    administer(server, kept)
    assert store.count_namespaces() == 3
    store.reserve("d", 10)
    assert store.count_namespaces() == 4
    administer(server, "DELETE FROM mintage_namespace WHERE name = 'd'")
    administer(server, "DELETE FROM mintage_name WHERE name = 'd'")
    assert "has lost namespaces" in refusal_text(lambda: store.reserve("d", 1))


def test_missing_table_of_names_is_refused(server: Server, store: Database) -> None:
    store.reserve("n", 1)
    administer(server, "DROP TABLE mintage_name")
    for verb in (lambda: store.reserve("new", 1), lambda: acquire(store), store.describe):
        assert "mintage_existed" in refusal_text(verb)


def test_missing_table_of_past_grants_is_created_again(
    server: Server, store: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    for holder in ("one", "two"):
        store.release(acquire(store, nodes=range(1), holder=holder), used_until_ms=store.now_ms() - 10)
    administer(server, "DROP TABLE mintage_grant")
    assert "creates it again" in warnings(store)
    assert main(["doctor", "--json", "--store", patient(server.url)]) == 1
    assert "the table of past grants cannot be used" in capsys.readouterr().out
    assert "creates it again" in refusal_text(lambda: store.list_grants("p", 0))
    assert store.reserve("n", 1).first == 1
    store.release(acquire(store, nodes=range(1), holder="three"), used_until_ms=store.now_ms() - 10)
    assert [grant.holder for grant in store.list_grants("p", 0)] == ["two"]
    assert store.describe().warnings == ()


def test_missing_table_of_past_runs_is_created_again(server: Server, store: Database) -> None:
    for name in ("one", "two"):
        store.reserve("n", 1, holder=name)
    administer(server, "DROP TABLE mintage_run")
    assert "creates it again" in warnings(store)
    assert "creates it again" in refusal_text(lambda: store.list_runs("n"))
    assert [store.reserve("n", 1, holder=name).first for name in ("two", "three", "four")] == [3, 4, 5]
    assert [run.holder for run in store.list_runs("n")] == ["three", "two"]
    assert store.describe().warnings == ()


def test_account_that_may_create_no_table_reserves_without_runs(server: Server, store: Database) -> None:
    store.reserve("n", 1, holder="one")
    with account(server) as url, open_store(patient(url)) as clerk:
        administer(server, "DROP TABLE mintage_run")
        assert [clerk.reserve("n", 1, holder=name).first for name in ("two", "three", "three")] == [2, 3, 4]
        assert "the table of past runs cannot be used" in warnings(clerk)


@pytest.mark.parametrize("how", ["TRUNCATE TABLE", "DELETE FROM"])
def test_emptied_table_of_pools_is_noticed(server: Server, store: Database, how: str) -> None:
    acquire(store, nodes=range(9))
    administer(server, f"{how} mintage_pool")
    assert "records of pools are gone" in warnings(store)
    assert 0 < waits(store) <= QUARANTINE_MS
    assert store.describe().warnings == ()


def test_all_tables_emptied_at_once_are_noticed(server: Server, store: Database) -> None:
    store.reserve("n", 10)
    acquire(store)
    administer(server, "".join(f"TRUNCATE TABLE {table};" for table in tables(server)))
    refusal_text(lambda: store.reserve("n", 1))
    if isinstance(server, MariaDB):
        assert 0 < waits(store) <= QUARANTINE_MS
    else:
        assert "drop all tables of mintage" in refusal_text(lambda: acquire(store))


# --- restored dumps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RECORDS)
def test_table_restored_from_a_dump_is_a_server_that_took_over(
    server: Server,
    store: Database,
    kind: str,
) -> None:
    held = acquire(store, nodes=range(9))
    store.reserve("n", 100)
    before = store.describe().identity
    kept = server.dump(f"mintage_{kind}")
    other = acquire(store, nodes=range(9))
    store.reserve("n", 100)
    waited(server)
    administer(server, kept)
    assert store.describe().identity != before
    assert 0 < waits(store) <= QUARANTINE_MS
    assert store.reserve("n", 1).first > 200
    assert extend(store, held).node == held.node
    with pytest.raises(LeaseError) if kind == "node" else open_store("memory:"):
        assert other.node != held.node
        extend(store, other)


def test_tables_restored_from_a_dump_are_a_server_that_took_over(
    server: Server,
    store: Database,
) -> None:
    held = acquire(store, nodes=range(9))
    store.reserve("n", 100)
    before = store.describe().identity
    kept = server.dump(*tables(server))
    store.reserve("n", 100)
    waited(server)
    drop(server)
    administer(server, kept)
    assert store.describe().identity != before
    assert 0 < waits(store) <= QUARANTINE_MS
    assert store.reserve("n", 1).first > 200
    assert extend(store, held).node == held.node


def test_namespace_missing_from_a_dump_is_refused(server: Server, store: Database) -> None:
    store.reserve("old", 10)
    kept = server.dump("mintage_namespace")
    store.reserve("young", 10)
    waited(server)
    administer(server, kept)
    assert "has lost namespaces" in refusal_text(lambda: store.reserve("young", 1))
    assert store.reserve("old", 1).first > 10


def test_pool_missing_from_a_dump_is_quarantined(server: Server, store: Database) -> None:
    acquire(store, "old")
    kept = server.dump("mintage_pool")
    acquire(store, "young")
    waited(server)
    administer(server, kept)
    assert 0 < waits(store, "young") <= QUARANTINE_MS


def test_rows_restored_into_an_emptied_table_are_noticed(postgresql: PostgreSQL) -> None:
    # Only PostgreSQL reports that a table was emptied.
    with open_store(patient(postgresql.url)) as store:
        store.reserve("n", 100)
        row = postgresql.sql("COPY mintage_namespace TO STDOUT")
        store.reserve("n", 100)
        postgresql.sql(f"TRUNCATE mintage_namespace;\nCOPY mintage_namespace FROM STDIN;\n{row}\\.\n")
        assert store.reserve("n", 1).first == 101 + 100 * GAP


def loaded(server: PostgreSQL, kind: str, rows: str) -> None:
    """Delete the rows of a table, and load older ones into it, as of pg_dump --data-only."""
    server.sql(f"DELETE FROM mintage_{kind};\nCOPY mintage_{kind} FROM STDIN;\n{rows}\\.\n")


def test_older_rows_of_a_namespace_are_noticed_by_any_process(postgresql: PostgreSQL) -> None:
    with open_store(patient(postgresql.url)) as store:
        store.reserve("n", 100)
        older = postgresql.sql("COPY mintage_namespace TO STDOUT")
        store.reserve("n", 100)
        identity = store.describe().identity
    loaded(postgresql, "namespace", older)
    with open_store(patient(postgresql.url)) as store:
        assert store.describe().identity == identity
        # Once, and again after the next load.
        assert store.reserve("n", 1).first == 101 + 100 * GAP
        assert store.reserve("n", 1).first == 102 + 100 * GAP
        loaded(postgresql, "namespace", older)
        assert store.reserve("n", 1).first == 101 + 100 * GAP


@pytest.mark.parametrize("kinds", [["pool", "node"], ["pool"], ["node"]])
def test_older_rows_of_a_pool_put_it_into_quarantine_once(postgresql: PostgreSQL, kinds: list[str]) -> None:
    with open_store(patient(postgresql.url)) as store:
        held = acquire(store, nodes=range(9))
        older = {kind: postgresql.sql(f"COPY mintage_{kind} TO STDOUT") for kind in kinds}
        young = acquire(store, nodes=range(9))
        for kind in kinds:
            loaded(postgresql, kind, older[kind])
        waiting = waits(store)
        assert 0 < waiting <= QUARANTINE_MS
        assert waits(store) <= waiting
        assert extend(store, held).node == held.node
        [pool] = store.list_pools()
        assert pool.floor_ms >= young.until_ms


def test_row_that_was_changed_by_hand_is_noticed(postgresql: PostgreSQL) -> None:
    with open_store(patient(postgresql.url)) as store:
        store.reserve("n", 100)
        postgresql.sql("UPDATE mintage_namespace SET high_water = 10")
        assert store.reserve("n", 1).first == 11 + 100 * GAP


def test_frozen_rows_are_those_that_were_written(postgresql: PostgreSQL) -> None:
    with open_store(patient(postgresql.url)) as store:
        store.reserve("n", 100)
        acquire(store, nodes=range(9))
        postgresql.sql("VACUUM FREEZE mintage_namespace; VACUUM FREEZE mintage_pool; VACUUM FREEZE mintage_node;")
        assert store.reserve("n", 1).first == 101
        assert acquire(store, nodes=range(9)).node == 1


def machine(store: Store) -> str:
    """Return the id of the server without the times of its tables, which in MariaDB are those of the files."""
    assert isinstance(store, Database)
    return store.machine(store.describe().identity)


def test_older_copy_of_the_disk_is_noticed_by_a_running_process(server: Server) -> None:
    data = server.directory / "data"
    with open_store(patient(server.url)) as running, open_store(patient(server.url)) as idle:
        held = acquire(running, nodes=range(9), span_ms=LONG_MS)
        running.reserve("n", 100)
        server.stop()
        subprocess.run(["cp", "-a", data, data.with_name("older")], check=True)
        server.start()
        for store, last in ((running, 150), (running, 200), (idle, 250), (idle, 300)):
            assert eventually(partial(store.reserve, "n", 50)).last == last
        before, machine_before = running.describe().identity, machine(running)
        server.stop()
        shutil.rmtree(data)
        data.with_name("older").rename(data)
        server.start()
        eventually(running.now_ms)
        assert machine(running) == machine_before
        # It counts as another server from then on, for all processes and once.
        assert running.reserve("n", 1).first == 101 + 100 * GAP
        assert eventually(lambda: idle.reserve("n", 1)).first == 102 + 100 * GAP
        assert idle.describe().identity == running.describe().identity != before
        assert 0 < waits(running) <= QUARANTINE_MS - SPAN_MS + LONG_MS
        assert extend(running, held).node == held.node
    with open_store(patient(server.url)) as started:
        assert started.reserve("n", 1).first == 103 + 100 * GAP


@pytest.mark.parametrize("is_first", [True, False])
def test_rewritten_table_counts_as_restored(server: Server, store: Database, is_first: bool) -> None:
    # It looks the same. Holders go on, and nothing is refused.
    of_mysql = ("OPTIMIZE TABLE mintage_pool", "ALTER TABLE mintage_pool ENGINE = InnoDB")
    of_postgresql = ("VACUUM FULL mintage_pool", "CLUSTER mintage_pool USING mintage_pool_pkey")
    held = acquire(store, nodes=range(9))
    store.reserve("n", 1)
    waited(server)
    administer(server, (of_mysql if isinstance(server, MariaDB) else of_postgresql)[not is_first])
    assert 0 < waits(store) <= QUARANTINE_MS
    assert extend(store, held).node == held.node
    assert store.reserve("n", 1).first == 2 + GAP
    assert store.reserve("new", 1).first == 1


def test_table_maintenance_changes_no_server_id(server: Server, store: Database) -> None:
    store.prepare()
    before = store.describe().identity
    waited(server)
    for verb in (
        ("ANALYZE TABLE", "CHECK TABLE") if isinstance(server, MariaDB) else ("VACUUM", "ANALYZE", "REINDEX TABLE")
    ):
        administer(server, f"{verb} mintage_pool")
    server.restart()
    assert store.describe().identity == before


def test_copy_of_a_database_in_its_place_is_noticed(postgresql: PostgreSQL) -> None:
    with open_store(patient(postgresql.url)) as store:
        store.reserve("n", 100)
        acquire(store)
        store.close()
        postgresql.sql("CREATE DATABASE backup TEMPLATE mintage", database="postgres")
        assert store.reserve("n", 50).last == 150
        before = store.describe().identity
        store.close()
        try:
            for step in ("mintage RENAME TO replaced", "backup RENAME TO mintage"):
                postgresql.sql(f"ALTER DATABASE {step}", database="postgres")
            assert store.describe().identity != before
            assert store.reserve("n", 1).first == 101 + 100 * GAP
            assert 0 < waits(store) <= QUARANTINE_MS
        finally:
            store.close()
            for step in ("mintage RENAME TO backup", "replaced RENAME TO mintage"):
                postgresql.sql(f"ALTER DATABASE {step}", database="postgres")
            postgresql.sql("DROP DATABASE backup", database="postgres")


def test_tables_cannot_be_exchanged_within_a_transaction(postgresql: PostgreSQL) -> None:
    with open_store(patient(postgresql.url)) as store:
        assert isinstance(store, Database)
        store.reserve("n", 1)
        with store._begin(), pytest.raises(Exception, match="lock timeout"):
            postgresql.sql("SET lock_timeout = '200ms'; DROP TABLE mintage_node;")


# --- older schemas and rights ---------------------------------------------------------------------------------------


def make_first_version(server: Server) -> None:
    """Create the tables of the first version, with a namespace and a pool."""
    [_, steps] = migrations("mysql" if isinstance(server, MariaDB) else "postgresql")[0]
    made = "CREATE TABLE mintage_schema (version INTEGER NOT NULL PRIMARY KEY); INSERT INTO mintage_schema VALUES (1);"
    owner = "" if isinstance(server, MariaDB) else "SET ROLE mintage;"
    records = """
        INSERT INTO mintage_namespace VALUES ('n', 10, 1000, 1, 10, 'x', 0, 1, 0, false);
        INSERT INTO mintage_pool VALUES ('p', 'test', 'x', 30000, 0, 0, false, 0);"""
    administer(server, f"{owner} {'; '.join(steps)}; {made} {records}")


def test_tables_of_an_older_version_are_upgraded(server: Server, store: Database) -> None:
    make_first_version(server)
    assert store.reserve("n", 1).first == 11 + 10 * GAP
    assert store.reserve("new", 1).first == 1
    assert store.describe().warnings == ()
    drop(server)
    refusal_text(lambda: store.reserve("new", 1))


def test_upgrade_of_the_tables_skips_nothing(postgresql: PostgreSQL) -> None:
    with open_store(patient(postgresql.url)) as store:
        lease = acquire(store, nodes=range(9))
        store.reserve("n", 100)
        # As the second version left them.
        postgresql.sql(
            "DELETE FROM mintage_schema WHERE version > 2; DROP TABLE mintage_name, mintage_grant, mintage_run;"
            "ALTER TABLE mintage_schema DROP life;"
            "ALTER TABLE mintage_pool DROP history_ms, DROP history_from_ms, DROP first_node, DROP last_node;"
            "ALTER TABLE mintage_node DROP since_ms;"
            f"{RUNS_AWAY[1]};" + "".join(f"ALTER TABLE mintage_{kind} DROP xact;" for kind in RECORDS)
        )
        identity = store.describe().identity
        assert "older version" in warnings(store)
        assert [len(each) for each in (store.list_pools(), store.list_leases("p"), store.list_namespaces())] == [1] * 3
        assert list(store.list_grants("p", 0)) == []
        assert postgresql.sql("SELECT MAX(version) FROM mintage_schema").strip() == "2"
        assert store.reserve("n", 1).first == 101
        assert extend(store, lease).node == lease.node
        assert acquire(store, nodes=range(9)).node == 1
        assert (store.describe().identity, warnings(store)) == (identity, "")


SHARES_AWAY = (*RUNS_AWAY, "ALTER TABLE mintage_pool DROP COLUMN first_node, DROP COLUMN last_node")
HISTORY_AWAY = (
    *SHARES_AWAY,
    "DROP TABLE mintage_grant",
    "ALTER TABLE mintage_pool DROP COLUMN history_ms, DROP COLUMN history_from_ms",
    "ALTER TABLE mintage_node DROP COLUMN since_ms",
)


def take_away(server: Server, versions: int, steps: Iterable[str]) -> None:
    """Take away what the last versions of the schema added."""
    newest = int(administer(server, "SELECT MAX(version) FROM mintage_schema"))
    for step in (f"DELETE FROM mintage_schema WHERE version > {newest - versions}", *steps):
        administer(server, step)
    if isinstance(server, MariaDB):
        # The rows are those of the server as it is now.
        waited(server)
        with open_store(patient(server.url)) as store:
            identity = store.describe().identity
        for kind in RECORDS:
            administer(server, f"UPDATE mintage_{kind} SET identity = '{identity}'")


def take_history_away(server: Server) -> None:
    take_away(server, 3, HISTORY_AWAY)


def test_upgrade_to_shares_keeps_the_server_and_the_history(server: Server) -> None:
    with open_store(patient(server.url)) as older:
        older.create_pool("p", layout="test", history_ms=HISTORY_MS + 1)
        older.release(acquire(older, nodes=range(1)), used_until_ms=older.now_ms() - 10)
        acquire(older, nodes=range(1), holder="you")
        lease = acquire(older, nodes=range(1, 2))
        [known] = older.list_pools()
    take_away(server, 2, SHARES_AWAY)
    with open_store(patient(server.url)) as store:
        assert "older version" in warnings(store)
        assert replace(store.list_pools()[0], identity=known.identity) == known
        assert [grant.holder for grant in store.list_grants("p", 0)] == ["me"]
        assert store.list_leases("p")[0].since_ms > 0
        assert extend(store, lease).node == lease.node
        pool = store.create_pool("p", layout="test", nodes=range(2, 9))
        assert (pool.changes, pool.share, pool.history_ms) == (0, range(2, 9), HISTORY_MS + 1)
        assert acquire(store, nodes=range(9)).node == 2
        assert warnings(store) == ""


def test_upgrade_to_runs_keeps_the_server_and_skips_nothing(server: Server) -> None:
    with open_store(patient(server.url)) as older:
        for name in ("one", "two"):
            older.reserve("n", 10, holder=name)
    take_away(server, 1, RUNS_AWAY)
    with open_store(patient(server.url)) as store:
        assert "older version" in warnings(store)
        assert (list(store.list_runs("n")), who_reserved("n", 20, store).state) == ([], "forgotten")
        assert store.reserve("n", 10, holder="three").first == 21
        assert store.reserve("n", 10, holder="four").first == 31
        assert [run.holder for run in store.list_runs("n")] == ["three"]
        assert who_reserved("n", 20, store).state == "forgotten"
        assert warnings(store) == ""


def test_upgrade_to_a_history_keeps_the_server(server: Server) -> None:
    with open_store(patient(server.url)) as older:
        lease = acquire(older, nodes=range(9))
        older.reserve("n", 100)
    take_history_away(server)
    with open_store(patient(server.url)) as store:
        assert "older version" in warnings(store)
        [pool], [record] = store.list_pools(), store.list_leases("p")
        assert (pool.history_ms, pool.history_from_ms, record.since_ms) == (HISTORY_MS, 0, 0)
        assert (store.get_pool("p"), list(store.list_grants("p", 0))) == (pool, [])
        assert store.reserve("n", 1).first == 101
        assert extend(store, lease).node == lease.node
        assert acquire(store, nodes=range(9)).node == 1
        [pool] = store.list_pools()
        assert (pool.changes, pool.history_from_ms > 0) == (0, True)
        assert warnings(store) == ""


@pytest.mark.parametrize("is_upgraded_by_another", [False, True])
@pytest.mark.parametrize("name", ["mariadb", "mysql"])
def test_upgrade_of_an_older_copy_of_the_disk_is_noticed(
    request: pytest.FixtureRequest, name: str, is_upgraded_by_another: bool
) -> None:
    server: MariaDB = request.getfixturevalue(name)
    data = server.directory / "data"
    with open_store(patient(server.url)) as older:
        acquire(older, nodes=range(9))
        older.reserve("n", 100)
    take_history_away(server)
    server.stop()
    subprocess.run(["cp", "-a", data, data.with_name("older")], check=True)
    server.start()
    with open_store(patient(server.url)) as running:
        assert eventually(partial(running.reserve, "n", 50)).last == 150
        young = acquire(running, nodes=range(9))
        server.stop()
        shutil.rmtree(data)
        data.with_name("older").rename(data)
        server.start()
        if is_upgraded_by_another:
            with open_store(patient(server.url)) as started:
                eventually(partial(prepare, started))
        assert eventually(lambda: running.reserve("n", 1)).first == 101 + 100 * GAP
        assert running.reserve("n", 1).first == 102 + 100 * GAP
        assert 0 < waits(running) <= QUARANTINE_MS
        [pool] = running.list_pools()
        assert pool.floor_ms >= young.until_ms


def test_upgrade_that_could_not_create_a_table_skips_nothing(mysql: MySQL) -> None:
    with open_store(patient(mysql.url)) as older:
        lease = acquire(older, nodes=range(9))
        older.reserve("n", 100)
    take_history_away(mysql)
    with open_store(patient(mysql.url)) as interrupted:
        assert isinstance(interrupted, Database)
        interrupted._sql = {**interrupted._sql, "create_grant": "DROP TABLE mintage_of_another"}
        refusal_text(lambda: interrupted.reserve("n", 1))
    with open_store(patient(mysql.url)) as store:
        assert store.reserve("n", 1).first == 101
        assert extend(store, lease).node == lease.node
        assert acquire(store, nodes=range(9)).node == 1


def test_write_only_account_waits_for_the_new_schema(server: Server, store: Database) -> None:
    make_first_version(server)
    with account(server) as url, open_store(patient(url)) as clerk:
        assert "bring them up to date" in refusal_text(lambda: clerk.reserve("n", 1))
        store.prepare()
        assert clerk.reserve("n", 1).first == 11 + 10 * GAP
        if not isinstance(server, MariaDB):
            # Rights on the tables of a schema do not extend to new ones.
            assert "mintage_name" in refusal_text(lambda: clerk.reserve("new", 1))
            administer(server, "GRANT SELECT, INSERT, UPDATE ON mintage_name, mintage_grant, mintage_run TO clerk")
        assert "DELETE on mintage_grant" in warnings(clerk)
        for table in ("grant", "run"):
            administer(server, f"GRANT DELETE ON mintage_{table} TO clerk")
        assert clerk.reserve("new", 1).first == 1
        assert acquire(clerk, "q").node == 0
        assert clerk.describe().warnings == ()


def test_half_upgraded_schema_is_completed(mariadb: MariaDB) -> None:
    make_first_version(mariadb)
    administer(mariadb, migrations("mysql")[1][1][0])
    with open_store(patient(mariadb.url)) as store:
        assert store.reserve("new", 1).first == 1
        assert store.describe().warnings == ()


@pytest.mark.parametrize("name", ["mariadb", "mysql"])
def test_account_that_cannot_create_a_view_gets_the_remedy(request: pytest.FixtureRequest, name: str) -> None:
    maker: MariaDB = request.getfixturevalue(name)
    maker.sql("REVOKE CREATE VIEW ON mintage.* FROM mintage")
    try:
        with open_store(patient(maker.url)) as store:
            assert store.reserve("n", 1).first == 1
            said = warnings(store)
            assert "view mintage_existed is missing" in said
            administer(maker, said.partition("run ")[2])
            assert store.describe().warnings == ()
            drop(maker)
            refusal_text(lambda: store.reserve("n", 1))
    finally:
        maker.sql("GRANT CREATE VIEW ON mintage.* TO mintage")


def test_creation_times_of_tables_do_not_depend_on_the_time_zone(mariadb: MariaDB) -> None:
    with open_store(patient(mariadb.url)) as store:
        before = store.describe().identity
        mariadb.sql("SET GLOBAL time_zone = '+05:00'")
        try:
            store.close()
            assert store.describe().identity == before
        finally:
            mariadb.sql("SET GLOBAL time_zone = 'SYSTEM'")
