"""Tests of stores in a database: concurrent first writers, locks, rights, settings, schemas, and idalloc."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
import traceback
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest

from mintage import rules
from mintage.errors import ConfigError, LeaseError, MintError, StoreError
from mintage.rules import CLOCK_LIMIT_MS, GAP, PRUNED, SPAN_MS, Lease, NamespaceRecord, NodeRecord, PoolRecord, Segment
from mintage.store import Store, new_token, open_store
from mintage.store.idalloc import MARGIN, import_idalloc, read_idalloc_hashes, read_idalloc_table
from mintage.store.ledger import FORGOTTEN
from mintage.store.sql.base import CONNECTIONS, Database, Records
from mintage.store.sql.statements import migrations
from tests.helpers.outcomes import eventually
from tests.helpers.sql_servers import Server, account, administer, refusal_text, setting
from tests.helpers.stores import acquire, extend, patient, prepare
from tests.servers import MariaDB, MySQL, PostgreSQL, Redis
from tests.servers.server import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mintage.protocol.records import Record
    from mintage.store.ledger import Transaction

THREADS = 16


@pytest.fixture(params=["mariadb", "mysql", "postgresql"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def store(server: Server) -> Iterator[Database]:
    with open_store(patient(server.url)) as opened:
        assert isinstance(opened, Database)
        yield opened


def at_once(calls: list[Callable[[], object]]) -> list[Any]:
    """Start all functions together; return what they return or raise."""
    barrier = threading.Barrier(len(calls))
    outcomes: list[Any] = [None] * len(calls)

    def run(at: int) -> None:
        barrier.wait()
        try:
            outcomes[at] = calls[at]()
        except Exception as error:  # noqa: BLE001 (it is the outcome)
            outcomes[at] = error

    threads = [threading.Thread(target=run, args=[at]) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def is_now(store: Store) -> bool:
    """Return True if the store's clock is this machine's, within the exactness of both."""
    before_ms, told_ms = time.time_ns() // 1_000_000, store.now_ms()
    return before_ms - 1_000 <= told_ms <= time.time_ns() // 1_000_000 + 1_000


@contextmanager
def stores(url: str, count: int) -> Iterator[list[Store]]:
    """Return several stores, which wait for each other without a limit."""
    with ExitStack() as stack:
        yield [stack.enter_context(open_store(patient(url))) for _ in range(count)]


# --- first writers and locks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_concurrent_first_users_of_a_name_lose_nothing(server: Server, name: str) -> None:
    with stores(server.url, THREADS) as clients:
        prepare(clients[0])
        segments = at_once([partial(client.reserve, name, 10) for client in clients])
        assert sorted(segment.first for segment in segments) == list(range(1, 10 * THREADS, 10))
        assert {len(segment) for segment in segments} == {10}
        leases = at_once([partial(acquire, client, name, nodes=range(20)) for client in clients])
        assert sorted(lease.node for lease in leases) == list(range(THREADS))


def test_extension_on_its_way_ends_before_the_number_is_free(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    noted, free = Database._noted, list[int]()
    with open_store(patient(server.url)) as store, open_store(patient(server.url)) as operator:
        lease = acquire(store, nodes=range(7, 8))

        def narrow(self: Database, *args: Any) -> PoolRecord | None:
            found = noted(self, *args)
            if not free:
                pool = operator.create_pool("p", layout="test", nodes=range(4))
                free.append(rules.end_of_windows(pool, operator.now_ms()))
            return found

        monkeypatch.setattr(Database, "_noted", narrow)
        # The transaction has read the pool before its share is narrowed; the caller's clock is as fast as it may be.
        fast_ms = store.now_ms() + CLOCK_LIMIT_MS - 100
        extended = store.extend(lease, now_ms=fast_ms, next_token=new_token())
        assert lease.until_ms < extended.until_ms <= free[0]
        with pytest.raises(LeaseError):
            store.extend(extended, now_ms=fast_ms, next_token=new_token())


@pytest.mark.parametrize("kind", [NamespaceRecord, PoolRecord])
def test_name_that_another_transaction_created_meanwhile_is_not_lost(
    server: Server, store: Database, kind: Any
) -> None:
    prepare(store)
    with open_store(patient(server.url)) as other, store._begin() as transaction:
        assert transaction.get(kind, "a") is None
        other.create_namespace("a")
        other.create_pool("a", layout="test")
        assert not store._has_lost(transaction, kind, "a")


@pytest.mark.parametrize("what", ["pool", "namespace", "node"])
def test_second_creator_of_a_record_retries(store: Database, what: str) -> None:
    both_looked = threading.Barrier(2)

    def write() -> list[str]:
        """Return the rows that were found in each attempt."""
        found: list[str] = []

        def verb(t: Transaction) -> None:
            key, new = {
                "pool": (("p",), rules.create_pool("p", "test", SPAN_MS, "x")),
                "namespace": (("p",), rules.create_namespace("p", "x")),
                "node": (("p", 0), NodeRecord("p", 0, 0, 1, SPAN_MS, "x", "token", "me")),
            }[what]
            record = t.get(cast("Any", type(new)), *key)
            found.append("nothing" if record is None else "the other's")
            if len(found) == 1:
                both_looked.wait()
            t.put(cast("Record", record or new))

        store._run(verb)
        return found

    store.prepare()
    assert sorted(at_once([write, write])) == [["nothing"], ["nothing", "the other's"]]


def test_verbs_that_read_create_no_tables(server: Server, store: Database) -> None:
    def tables() -> str:
        where = "mintage" if isinstance(server, MariaDB) else "public"
        return administer(server, f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{where}'")

    assert [*store.list_pools(), *store.list_leases(), *store.list_leases("p"), *store.list_namespaces()] == []
    assert is_now(store)
    described = store.describe()
    assert (described.is_new, described.warnings) == (True, ())
    assert tables() == ""
    assert store.reserve("n", 1).first == 1
    assert store.describe().is_new is False
    assert tables() != ""


@pytest.mark.parametrize("command", ["doctor", "pools list", "leases list", "namespaces list", "inspect 17"])
def test_command_that_reads_says_that_tables_are_missing(postgresql: PostgreSQL, command: str) -> None:
    with open_store(patient(postgresql.url)) as used:
        used.reserve("n", 5000)
        environment = {**os.environ, "MINTAGE_STORE": f"{patient(postgresql.url)}&schema=mintage"}
        line = [sys.executable, "-m", "mintage", *command.split()]
        done = subprocess.run(line, check=False, capture_output=True, text=True, env=environment)
        if "inspect" not in command:
            assert done.returncode
            assert "has no tables of mintage" in done.stdout + done.stderr
        assert postgresql.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'mintage'") == ""
        with open_store(patient(postgresql.url)) as started:
            assert [store.reserve("n", 1).first for store in (used, started)] == [5001, 5002]


def test_concurrent_starts_create_one_schema(server: Server) -> None:
    with stores(server.url, THREADS) as clients:
        segments = at_once([partial(client.reserve, "n", 1) for client in clients])
    assert sorted(segment.first for segment in segments) == list(range(1, THREADS + 1))
    assert administer(server, "SELECT version FROM mintage_schema ORDER BY version").split() == [
        str(number) for number, _ in migrations("mysql" if isinstance(server, MariaDB) else "postgresql")
    ]


def test_schema_is_created_by_one_client_at_a_time(server: Server) -> None:
    with open_store(patient(server.url)) as maker, open_store(f"{server.url}?timeout_ms=500") as other:
        assert isinstance(maker, Database)
        with maker.transaction(maker._sql["lock_schema"]):
            refusal_text(lambda: other.reserve("n", 1), "store.unavailable")
        maker.close()
        eventually(partial(prepare, other))
        assert maker.reserve("n", 1).first == 1


def test_reader_of_a_schema_that_is_being_created_tries_again(mariadb: MariaDB) -> None:
    [_, steps] = migrations("mysql")[0]
    with open_store(patient(mariadb.url)) as maker, open_store(mariadb.url) as reader:
        assert isinstance(maker, Database)
        with maker.transaction(maker._sql["lock_schema"]):
            administer(mariadb, "; ".join(steps[:2]))
            refusal_text(reader.list_namespaces, "store.unavailable")
        maker.close()
    with open_store(patient(mariadb.url)) as maker, open_store(patient(mariadb.url)) as reader:
        assert "restore it" in refusal_text(reader.list_namespaces)
        prepare(maker)
        assert reader.list_namespaces() == []


def test_incomplete_schema_is_completed(mariadb: MariaDB) -> None:
    [_, steps] = migrations("mysql")[0]
    administer(mariadb, "; ".join([*steps[:2], "CREATE TABLE mintage_schema (version INTEGER NOT NULL PRIMARY KEY)"]))
    with open_store(patient(mariadb.url)) as store:
        assert store.reserve("n", 1).first == 1
        assert acquire(store).node == 0


def test_deadlocked_transactions_both_succeed(server: Server) -> None:
    # PostgreSQL detects a deadlock after a second; on a busy machine the rest may exceed the timeout of a verb.
    store = open_store(patient(server.url))
    assert isinstance(store, Database)
    for name in ("a", "b"):
        store.reserve(name, 1)
    first_locks = threading.Barrier(2)
    attempts: list[str] = []

    def both(first: str, second: str) -> Callable[[], object]:
        def verb(t: Transaction) -> bool:
            attempts.append(first)
            record = t.get(NamespaceRecord, first)
            if attempts.count(first) == 1:
                first_locks.wait()
            assert t.get(NamespaceRecord, second) is not None
            assert record is not None
            t.put(record)
            return True

        return lambda: store._run(verb)

    assert at_once([both("a", "b"), both("b", "a")]) == [True, True]
    assert len(attempts) > 2, "nobody met anybody"
    store.close()


def test_oldest_node_number_is_looked_for_again_after_a_change(store: Database) -> None:
    for _ in range(2):
        acquire(store, nodes=range(2))
    attempts: list[Any] = []

    def verb(t: Any) -> object:
        attempts.append(t)
        rows = t.rows

        def rows_then_a_rival(statement: str, **values: object) -> object:
            found = rows(statement, **values)
            if statement == "oldest" and len(attempts) == 1:
                with store._begin() as rival:
                    record = rival.get(NodeRecord, "p", found[0][1])
                    assert record is not None
                    rival.put(replace(record, until_ms=record.until_ms + SPAN_MS))
            return found

        t.rows = rows_then_a_rival
        return t.oldest("p", range(2))

    assert store._run(verb) == min(store.list_leases(), key=lambda record: record.until_ms)
    assert len(attempts) == 2


def test_client_stopped_in_a_transaction_blocks_others_only_briefly(server: Server) -> None:
    with open_store(f"{server.url}?timeout_ms=1000") as stopped, open_store(patient(server.url)) as other:
        assert isinstance(stopped, Database)
        assert other.reserve("n", 1) == Segment("n", 1, 1)
        segments: list[Segment] = []

        def stop_in_the_middle(t: Transaction) -> None:
            record = t.get(NamespaceRecord, "n")
            assert record is not None
            segments.append(other.reserve("n", 10))
            t.put(record)

        while not segments:  # a machine may stall before it is in the middle
            refusal_text(lambda: stopped._run(stop_in_the_middle), "store.unavailable")
        assert [segment.first for segment in (*segments, other.reserve("n", 1))] == [2, 12]
        assert eventually(lambda: stopped.reserve("n", 1)).first > 12


def test_lock_that_stays_taken_is_unavailable(server: Server) -> None:
    with open_store(patient(server.url)) as holder, open_store(f"{server.url}?timeout_ms=500") as other:
        assert isinstance(holder, Database)
        holder.reserve("n", 1)
        acquire(holder, nodes=range(2))
        with holder._begin() as transaction:
            transaction.get(NamespaceRecord, "n")
            transaction.get(PoolRecord, "p")
            refusal_text(lambda: other.reserve("n", 1), "store.unavailable")
            refusal_text(lambda: acquire(other, nodes=range(2)), "store.unavailable")
        assert holder.reserve("n", 1).first == 2
        assert acquire(holder, nodes=range(2)).node == 1


def test_more_threads_than_connections_take_turns(store: Database) -> None:
    segments = at_once([lambda: store.reserve("n", 1)] * (4 * CONNECTIONS))
    assert sorted(segment.first for segment in segments) == list(range(1, 4 * CONNECTIONS + 1))


def test_threads_without_a_free_connection_get_an_error(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as busy:
        for _ in range(CONNECTIONS):
            busy.enter_context(store._connections.get().begin())
        monkeypatch.setattr(store._connections.get(), "_wait_s", 0.5)
        assert "busy" in refusal_text(store.now_ms, "store.unavailable")


def test_store_that_closes_connections_holds_none_between_verbs(server: Server) -> None:
    is_mariadb = isinstance(server, MariaDB)
    which = (
        "id FROM information_schema.processlist WHERE user" if is_mariadb else "pid FROM pg_stat_activity WHERE usename"
    )

    def connected() -> set[str]:
        return {*administer(server, f"SELECT {which} = 'mintage'").split()}

    others = connected()
    with open_store(f"{patient(server.url)}&connections=close") as store, open_store(patient(server.url)) as keeping:
        lease = acquire(store, nodes=range(4))
        extend(store, lease)
        assert keeping.now_ms() > 0
        until(lambda: len(connected() - others) == 1, "only the other store has a connection")


def test_server_without_a_free_connection_is_away_with_the_remedy(server: Server) -> None:
    with account(server) as url:
        limit = "ALTER USER clerk WITH MAX_USER_CONNECTIONS 1"
        if isinstance(server, PostgreSQL):
            limit = "ALTER ROLE clerk CONNECTION LIMIT 1"
        administer(server, limit)
        closing = f"{patient(url)}&connections=close"
        with open_store(patient(url)) as first, open_store(patient(url)) as second:
            first.now_ms()
            with pytest.raises(StoreError) as caught:
                second.now_ms()
            assert (caught.value.code, caught.value.retry_after_ms) == ("store.unavailable", 10_000)
            assert all(words in str(caught.value) for words in ("connections=close", "PgBouncer", "mintage serve"))
        with open_store(closing) as third, open_store(closing) as fourth:
            # The server notices a moment later that a connection has ended.
            assert eventually(third.now_ms) > 0
            assert eventually(fourth.now_ms) > 0


# --- past grants ------------------------------------------------------------------------------------------------------


def kept(store: Database, kind: str) -> list[str]:
    """Return the statements that keep a past record."""
    return [f"prune_and_keep_{kind}"] if store.dialect == "postgresql" else [f"prune_{kind}", f"keep_{kind}"]


def test_grant_of_a_used_number_writes_one_row_more_and_nothing_else_does(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    rows = Records.rows

    def counted(self: Records, statement: str, /, **values: object) -> Sequence[Any]:
        asked.append(statement)
        return rows(self, statement, **values)

    def writes(verb: Callable[[], object]) -> list[str]:
        asked.clear()
        verb()
        return [each for each in asked if each.startswith(("insert", "update")) or "grant" in each]

    def grant() -> None:
        held.append(acquire(store, nodes=range(1)))

    def release() -> None:
        store.release(held[-1], used_until_ms=store.now_ms() - 10)

    monkeypatch.setattr(Records, "rows", counted)
    held: list[Lease] = []
    assert writes(grant) == ["insert_pool", "insert_node"]
    assert writes(release) == ["update_node"]
    assert writes(grant) == ["update_node", *kept(store, "grant")]
    extended = partial(store.extend, held[-1], now_ms=store.now_ms() + 1, next_token=new_token())
    assert writes(lambda: held.append(extended())) == ["update_node"]
    assert writes(release) == ["update_node"]
    store.create_pool("p", layout="test", history_ms=0)
    assert writes(grant) == ["update_node"]


def test_only_a_change_of_the_holder_writes_a_row_of_history(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    rows = Records.rows

    def counted(self: Records, statement: str, /, **values: object) -> Sequence[Any]:
        asked.append(statement)
        return rows(self, statement, **values)

    def statements(holder: str) -> list[str]:
        asked.clear()
        store.reserve("n", 1, holder=holder)
        return asked

    store.reserve("n", 1, holder="one")
    monkeypatch.setattr(Records, "rows", counted)
    before = ["get_namespace", "update_namespace"]
    assert statements("one") == before
    assert statements("two") == before + kept(store, "run")
    assert statements("two") == before


def test_old_runs_are_removed_a_few_at_a_time(server: Server, store: Database) -> None:
    store.reserve("n", 1_000, holder="one")
    rows = ", ".join(f"('n', {first}, {first}, 'x', 0, 0)" for first in range(100, 100 + PRUNED + 3))
    administer(server, f"INSERT INTO mintage_run VALUES {rows}")
    for count, name in ((3 + 1, "two"), (2, "three"), (3, "four")):
        store.reserve("n", 1, holder=name)
        assert len(store.list_runs("n")) == count


def test_runs_of_a_clock_that_was_ahead_protect_no_later_ones(server: Server, store: Database) -> None:
    store.reserve("n", 1_000, holder="one")
    year_ms = store.now_ms() + 365 * 86_400_000
    ahead = ", ".join(f"('n', {first}, {first}, 'x', {year_ms}, {year_ms})" for first in range(100, 100 + PRUNED))
    later = ", ".join(f"('n', {first}, {first}, 'x', 0, 0)" for first in range(200, 200 + PRUNED))
    administer(server, f"INSERT INTO mintage_run VALUES {ahead}, {later}")
    for name in ("two", "three", "four"):
        store.reserve("n", 1, holder=name)
    assert [run.holder for run in store.list_runs("n")] == ["three", "two", "one"]


def test_long_history_is_removed_in_steps(server: Server, store: Database) -> None:
    for _ in range(2):
        store.release(acquire(store, nodes=range(1)), used_until_ms=store.now_ms() - 10)
    count = 2 * FORGOTTEN + 1
    for first in range(0, count, 100):
        rows = ", ".join(f"('p', 1, {floor}, {floor + 1}, 0, 'x')" for floor in range(first, min(first + 100, count)))
        administer(server, f"INSERT INTO mintage_grant VALUES {rows}")
    assert len(store.list_grants("p", 1)) == count
    store.create_pool("q", layout="test", history_ms=0)
    assert len(store.list_grants("p", 1)) == count
    store.create_pool("p", layout="test", history_ms=0)
    assert administer(server, "SELECT COUNT(*) FROM mintage_grant").strip() == "0"


# --- lost connections -----------------------------------------------------------------------------------------------


def test_server_killed_during_a_verb_has_written_nothing(server: Server, store: Database) -> None:
    assert store.reserve("n", 10).last == 10

    def verb(t: Transaction) -> None:
        record = t.get(NamespaceRecord, "n")
        assert record is not None
        t.put(replace(record, high_water=1_000))
        server.kill()

    with pytest.raises(StoreError) as caught:
        store._run(verb)
    assert caught.value.code == "store.unavailable"
    assert caught.value.__cause__ is not None
    refusal_text(lambda: store.reserve("n", 1), "store.unavailable")
    server.start()
    assert store.reserve("n", 1).first == 11


def test_verbs_at_once_log_in_once_for_each_connection(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    store.prepare()
    store.close()
    connect, logins = store.connect, list[Any]()

    def counted() -> Any:
        logins.append(connect())
        return logins[-1]

    monkeypatch.setattr(store, "connect", counted)
    for _ in range(3):
        with ExitStack() as transactions:
            for _ in range(CONNECTIONS):
                transactions.enter_context(store._look())
    assert len(logins) == CONNECTIONS


def test_idle_connection_closed_by_the_server_is_reopened(server: Server, store: Database) -> None:
    at_once([lambda: store.reserve("n", 1)] * CONNECTIONS)
    if isinstance(server, MariaDB):
        kill = "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE user = 'mintage'"
        administer(server, administer(server, kill))
    else:
        administer(server, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'mintage'")
    assert store.reserve("n", 1).first == CONNECTIONS + 1


def test_frozen_server_cannot_be_connected_to(server: Server) -> None:
    with open_store(f"{server.url}?timeout_ms=500") as store:
        server.pause()
        refusal_text(store.now_ms, "store.unavailable")
        server.resume()
        eventually(store.now_ms)


# --- failover ---------------------------------------------------------------------------------------------------------


def test_server_has_a_stable_id_of_its_own(server: Server, store: Database) -> None:
    identity = store.describe().identity
    if isinstance(server, MySQL):
        assert identity.startswith(server.sql("SELECT @@server_uuid").strip())
    elif isinstance(server, MariaDB):
        with setting(server, "SET GLOBAL server_id = 77", "SET GLOBAL server_id = 1"):
            store.close()
            assert store.describe().identity not in {"", identity}
        store.close()
    else:
        system = server.sql("SELECT system_identifier FROM pg_control_system()").strip()
        assert identity.startswith(f"{system}:00000001:")
    server.restart()
    assert store.describe().identity == identity


def test_repmgr_475_failover_quarantines_nodes_and_skips_integers(server: Server, store: Database) -> None:
    held = acquire(store, nodes=range(4))
    store.reserve("n", 100)
    for table in ("pool", "node", "namespace"):
        administer(server, f"UPDATE mintage_{table} SET identity = 'the one before'")
    with pytest.raises(LeaseError) as caught:
        acquire(store, nodes=range(4))
    assert caught.value.code == "lease.none_free"
    assert 0 < (caught.value.retry_after_ms or 0) <= SPAN_MS + 2 * CLOCK_LIMIT_MS
    # The quarantine is stored: the next request has to wait too.
    [pool] = store.list_pools()
    assert (pool.identity, pool.history_lost) == (store.describe().identity, True)
    assert extend(store, held).node == held.node
    assert store.reserve("n", 1).first == 101 + 100 * GAP


# --- rights and settings ----------------------------------------------------------------------------------------------


def test_account_with_only_read_and_write_rights_is_enough(server: Server, store: Database) -> None:
    store.prepare()
    with account(server) as url, open_store(patient(url)) as clerk:
        assert clerk.reserve("n", 1).first == 1
        lease = acquire(clerk)
        clerk.release(extend(clerk, lease), used_until_ms=0)
        clerk.create_pool("q", layout="test", history_ms=0)
        for _ in range(2):
            clerk.release(acquire(clerk, nodes=range(1, 2)), used_until_ms=clerk.now_ms() - 10)
        assert len(clerk.list_grants("p", 1)) == 1
        assert clerk.describe().identity == store.describe().identity
        assert clerk.describe().server == store.describe().server
        assert len(clerk.list_leases()) == 2


def test_account_that_cannot_create_tables_gets_the_remedy(server: Server) -> None:
    with account(server) as url, open_store(patient(url)) as clerk:
        assert "connect once with an account that may create tables" in refusal_text(lambda: clerk.reserve("n", 1))


def test_read_only_account_is_refused(server: Server, store: Database) -> None:
    store.prepare()
    right = "INSERT, UPDATE ON {} {} clerk"
    tables = "mintage.*" if isinstance(server, MariaDB) else "ALL TABLES IN SCHEMA public"
    with account(server) as url, open_store(patient(url)) as clerk:
        administer(server, f"REVOKE {right.format(tables, 'FROM')}")
        for verb in (lambda: clerk.reserve("n", 1), clerk.describe):
            assert "SELECT, INSERT and UPDATE" in refusal_text(verb)
        assert store.list_namespaces() == []


@pytest.mark.parametrize(("table", "right"), [*itertools.product(["pool", "node", "namespace"], ["INSERT", "UPDATE"])])
def test_missing_right_is_reported_at_once(postgresql: PostgreSQL, table: str, right: str) -> None:
    with open_store(patient(postgresql.url)) as store:
        prepare(store)
    with account(postgresql) as url, open_store(patient(url)) as clerk:
        clerk.describe()
        administer(postgresql, f"REVOKE {right} ON mintage_{table} FROM clerk")
        assert "SELECT, INSERT and UPDATE" in refusal_text(clerk.describe)


@pytest.mark.parametrize("right", ["INSERT", "UPDATE", "DELETE"])
@pytest.mark.parametrize("kind", ["grant", "run"])
def test_missing_right_for_the_history_is_a_warning(
    server: Server, store: Database, kind: str, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause_s = 0.5
    monkeypatch.setattr("mintage.store.sql.base.NO_RUNS_S", pause_s)
    store.prepare()
    with account(server) as url, open_store(patient(url)) as clerk:
        assert clerk.describe().warnings == ()
        if isinstance(server, MariaDB):
            administer(server, "REVOKE SELECT, INSERT, UPDATE ON mintage.* FROM clerk")
            for table in ("pool", "node", "namespace", "schema", "life", "name", "existed"):
                administer(server, f"GRANT SELECT, INSERT, UPDATE ON mintage_{table} TO clerk")
            for table in ("grant", "run"):
                administer(server, f"GRANT SELECT, INSERT, UPDATE ON mintage_{table} TO clerk")
        administer(server, f"REVOKE {right} ON mintage_{kind} FROM clerk")
        clerk.close()
        [said] = clerk.describe().warnings
        assert said.startswith(f"the table of past {kind}s cannot be used")
        assert "DELETE on mintage_grant" in said
        assert [clerk.reserve("n", 1, holder=name).first for name in ("one", "two", "three")] == [1, 2, 3]
        assert len(store.list_runs("n")) == (0 if kind == "run" else 2)
        administer(server, f"GRANT {right} ON mintage_{kind} TO clerk")
        clerk.close()
        with open_store(patient(url)) as doctor:
            assert doctor.describe().warnings == ()
        time.sleep(pause_s)
        clerk.reserve("n", 1, holder="four")
        assert [run.holder for run in store.list_runs("n")][:1] == ["three"]


def test_two_roles_with_a_schema_each_have_separate_stores(postgresql: PostgreSQL) -> None:
    for role in ("red", "blue"):
        administer(postgresql, f"CREATE ROLE {role} LOGIN PASSWORD 'x'; CREATE SCHEMA {role} AUTHORIZATION {role};")
    try:
        scheme, _, rest = postgresql.url.partition("://")
        with ExitStack() as stack:
            red, blue = (
                stack.enter_context(open_store(f"{scheme}://{role}:x@{rest.rpartition('@')[2]}?timeout_ms=60000"))
                for role in ("red", "blue")
            )
            assert acquire(red).node == acquire(blue).node == 0
            assert red.describe().server.endswith(", schema red")
            assert blue.describe().server.endswith(", schema blue")
            assert red.describe().identity != blue.describe().identity
    finally:
        administer(postgresql, "DROP OWNED BY red, blue; DROP ROLE red, blue;")


def test_recreated_tables_are_another_store(server: Server, store: Database) -> None:
    store.prepare()
    before = store.describe().identity
    assert store.describe().identity == before
    server.reset()
    eventually(store.prepare)
    assert store.describe().identity != before


def test_missing_database_is_refused(server: Server) -> None:
    with open_store(patient(f"{server.url}_not")) as store:
        said = refusal_text(store.now_ms)
        assert "create the database" in said or "rights on the database" in said


def test_unknown_account_is_refused(server: Server) -> None:
    with open_store(patient(server.url.replace("//mintage:", "//nobody:"))) as store:
        assert "check user" in refusal_text(store.now_ms)


def test_read_only_server_is_refused(server: Server, store: Database) -> None:
    store.reserve("n", 1)
    if isinstance(server, MariaDB):
        # An administrator's account could write to a replica.
        right = "CONNECTION_ADMIN" if isinstance(server, MySQL) else "READ_ONLY ADMIN"
        change = f"GRANT {right} ON *.* TO mintage; SET GLOBAL read_only = 1"
        undo = f"SET GLOBAL read_only = 0; REVOKE {right} ON *.* FROM mintage"
    else:
        change = "ALTER ROLE mintage SET default_transaction_read_only = on"
        undo = "ALTER ROLE mintage RESET default_transaction_read_only"
    with setting(server, change, undo):
        store.close()
        for verb in (lambda: store.reserve("n", 1), store.describe, store.now_ms, lambda: acquire(store)):
            assert "name the primary" in refusal_text(verb)
    store.close()
    assert store.reserve("n", 1).first == 2


def test_mysql_account_logs_in_with_and_without_the_servers_cache(mysql: MySQL) -> None:
    assert mysql.sql("SELECT plugin FROM mysql.user WHERE user = 'mintage'") == "caching_sha2_password\n"

    def logs_in_twice(url: str) -> None:
        mysql.sql("FLUSH PRIVILEGES")
        for _ in range(2):
            with open_store(patient(url)) as store:
                store.now_ms()

    logs_in_twice(mysql.tls_url)
    logs_in_twice(mysql.url)
    with mysql.without_tls():
        logs_in_twice(mysql.url)


def test_mysql_account_without_tls_needs_a_library(mysql: MySQL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pymysql._auth._have_cryptography", False)
    mysql.sql("FLUSH PRIVILEGES")
    with mysql.without_tls(), open_store(patient(mysql.url)) as store:
        assert "mintage[mysql]" in refusal_text(store.now_ms, "config.driver")
    with open_store(patient(mysql.url)) as store:
        store.now_ms()


def test_schema_made_by_a_newer_mintage_is_refused(server: Server, store: Database) -> None:
    store.reserve("n", 1)
    administer(server, "INSERT INTO mintage_schema (version) VALUES (999)")
    assert "upgrade mintage" in refusal_text(lambda: store.reserve("n", 1), "store.schema")
    administer(server, "DELETE FROM mintage_schema WHERE version = 999")
    assert store.reserve("n", 1).first == 2


def test_missing_table_is_named(server: Server, store: Database) -> None:
    store.reserve("n", 1)
    administer(server, "DROP TABLE mintage_namespace")
    assert "mintage_namespace" in refusal_text(lambda: store.reserve("n", 1))


def test_tables_that_were_all_dropped_are_created_again(server: Server, store: Database) -> None:
    store.reserve("n", 1)
    server.reset()
    assert eventually(lambda: store.reserve("n", 1)).first == 1


def test_server_error_shows_no_token(server: Server, store: Database) -> None:
    lease = acquire(store)
    # A server shows the whole content of a row that violates a constraint.
    administer(server, f"ALTER TABLE mintage_node ADD CONSTRAINT enough CHECK (until_ms <= {lease.until_ms})")
    with pytest.raises(StoreError) as caught:
        extend(store, lease, 1)
    assert caught.value.code == "store.refused"
    assert lease.token not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "option", ["timeout_ms=0", "timeout_ms=2s", "timeout=5", "sslmode=yes", "ssl_ca=/no/such/file", "connections=no"]
)
@pytest.mark.parametrize("scheme", ["mysql", "mariadb", "postgresql"])
def test_wrong_option_is_refused(scheme: str, option: str) -> None:
    with pytest.raises(MintError) as caught, open_store(f"{scheme}://u:secret@127.0.0.1:1/d?{option}") as store:
        prepare(store)
    file = option.startswith("ssl_ca") and scheme != "postgresql"
    assert caught.value.code == ("store.refused" if file else "config.store")
    assert option.partition("=")[0] in str(caught.value)


@pytest.mark.parametrize("url", ["mysql://h", "postgresql://h/", "mariadb://a,b/d", "postgresql://a,b/d"])
def test_url_without_one_host_and_a_database_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert caught.value.code == "config.store"


def test_settings_that_lose_commits_are_warned_of(mariadb: MariaDB) -> None:
    def warning(store: Store) -> str:
        [only] = store.describe().warnings
        return only

    with open_store(patient(mariadb.url)) as store:
        assert isinstance(store, Database)
        store.prepare()
        assert store.describe().warnings == ()
        flush = "SET GLOBAL innodb_flush_log_at_trx_commit = "
        with setting(mariadb, flush + "2", flush + "1"):
            assert "innodb_flush_log_at_trx_commit" in warning(store)


def test_binary_log_that_is_not_synced_is_warned_of(mysql: MySQL) -> None:
    sync = "SET GLOBAL sync_binlog = "
    with open_store(patient(mysql.url)) as store:
        prepare(store)
        assert store.describe().warnings == ()
        with setting(mysql, sync + "0", sync + "1"):
            assert any("sync_binlog is 0" in warning for warning in store.describe().warnings)


@pytest.mark.parametrize("kind", ["pool", "node", "namespace"])
@pytest.mark.parametrize("name", ["mariadb", "mysql"])
def test_tables_without_transactions_are_refused(request: pytest.FixtureRequest, name: str, kind: str) -> None:
    server: MariaDB = request.getfixturevalue(name)
    for more in ("", "&volatile=1"):
        with open_store(f"{patient(server.url)}{more}") as store:
            store.reserve("n", 1)
            lease = acquire(store, f"p{more[1:2]}")
            administer(server, f"ALTER TABLE mintage_{kind} ENGINE = MyISAM")
            for verb in (
                lambda store=store: store.reserve("n", 1),
                lambda store=store: acquire(store),
                lambda store=store, lease=lease: extend(store, lease),
                lambda store=store: store.create_namespace("m"),
            ):
                assert "ENGINE = InnoDB" in refusal_text(verb, "config.volatile")
            assert any("ENGINE = InnoDB" in warning for warning in store.describe().warnings)
            administer(server, f"ALTER TABLE mintage_{kind} ENGINE = InnoDB")
            assert store.reserve("n", 1).first > 1


@pytest.mark.parametrize("name", ["mariadb", "mysql"])
def test_server_that_loses_commits_is_refused(request: pytest.FixtureRequest, name: str) -> None:
    server: MariaDB = request.getfixturevalue(name)
    flush = "SET GLOBAL innodb_flush_log_at_trx_commit = "
    with open_store(patient(server.url)) as store, open_store(f"{patient(server.url)}&volatile=1") as allowed:
        with setting(server, flush + "0", flush + "1"):
            for verb in (lambda: store.reserve("n", 1), lambda: acquire(store), store.describe, store.now_ms):
                assert "volatile=1" in refusal_text(verb, "config.volatile")
            assert allowed.reserve("n", 1).first == 1
            assert any("volatile=1" in warning for warning in allowed.describe().warnings)
        assert store.reserve("n", 1).first == 2


def test_settings_that_damage_commits_are_warned_of(postgresql: PostgreSQL) -> None:
    alter = "ALTER SYSTEM {} full_page_writes {};\nSELECT pg_reload_conf();"
    with open_store(patient(postgresql.url)) as store:
        assert store.describe().warnings == ()
        with setting(postgresql, alter.format("SET", "= off"), alter.format("RESET", "")):
            until(lambda: any("full_page_writes" in text for text in store.describe().warnings), "it is warned of")
        until(lambda: not store.describe().warnings, "it is not any more")


def test_commit_waits_for_the_disk_despite_the_accounts_setting(postgresql: PostgreSQL) -> None:
    role = "ALTER ROLE mintage {} synchronous_commit {}"
    with (
        setting(postgresql, role.format("SET", "= off"), role.format("RESET", "")),
        open_store(patient(postgresql.url)) as store,
    ):
        assert isinstance(store, Database)
        store.prepare()
        with store._begin() as transaction:
            shown = cast("Any", transaction)._transaction.rows("SHOW synchronous_commit")
        assert list(shown) == [("on",)]


def test_clock_is_the_same_in_every_time_zone(mariadb: MariaDB) -> None:
    zone = "SET GLOBAL time_zone = "
    with setting(mariadb, zone + "'+05:00'", zone + "'SYSTEM'"), open_store(patient(mariadb.url)) as store:
        assert is_now(store)


def test_value_too_long_for_its_column_is_refused(mariadb: MariaDB) -> None:
    mode = "SET GLOBAL sql_mode = "
    with setting(mariadb, mode + "''", mode + "DEFAULT"), open_store(patient(mariadb.url)) as store:
        long = PoolRecord("p", "x" * 70_000, "here", 1000)
        assert "layout" in refusal_text(lambda: cast("Any", store)._run(lambda transaction: transaction.put(long)))
        assert store.list_pools() == []


@pytest.mark.parametrize("name", ["mariadb", "mysql"])
def test_server_in_safe_mode_prunes_its_history(request: pytest.FixtureRequest, name: str) -> None:
    server: MariaDB = request.getfixturevalue(name)
    safe = "SET GLOBAL sql_safe_updates = "
    with setting(server, safe + "ON", safe + "OFF"), open_store(patient(server.url)) as store:
        for holder, ago_ms in (("one", 2_000), ("two", 1_000), ("three", 0)):
            lease = acquire(store, nodes=range(1), holder=holder)
            store.release(lease, used_until_ms=store.now_ms() - ago_ms)
            store.reserve("n", 1, holder=holder)
        assert [each.holder for each in store.list_grants("p", 0)] == ["two", "one"]
        assert [each.holder for each in store.list_runs("n")] == ["two", "one"]


@pytest.mark.parametrize("holder", ["a\udc80", "a\0b", "x" * 201])
def test_text_that_no_column_can_hold_is_refused(store: Database, holder: str) -> None:
    assert "holder" in refusal_text(lambda: acquire(store, holder=holder), "field.range")
    assert store.list_leases() == []


# --- idalloc ----------------------------------------------------------------------------------------------------------

TABLE = """
CREATE TABLE IF NOT EXISTS tbl_alloc_info (
  service_name VARCHAR(64) NOT NULL PRIMARY KEY,
  last_alloc_value BIGINT UNSIGNED NOT NULL DEFAULT '0',
  data_version BIGINT UNSIGNED NOT NULL DEFAULT '0'
) ENGINE = InnoDB CHARACTER SET = utf8mb4;
"""


def test_integers_of_an_idalloc_are_never_reserved(mariadb: MariaDB, redis: Redis) -> None:
    administer(
        mariadb, TABLE + "INSERT INTO tbl_alloc_info VALUES ('orders', 10000, 1), ('gone', 700000, 70), ('a b', 5, 1)"
    )
    for service, value in (("orders", 90_000), ("young", 10_000), ("größe", 20_000)):
        redis.ask("HSET", f"idalloc:alloc_info_{service}", "lastAllocValue", str(value), "dataVersion", "9")
    redis.ask("SET", "idalloc:lock_orders", "1")
    table, hashes = read_idalloc_table(mariadb.url), read_idalloc_hashes(redis.url)
    assert table == {"orders": 10_000, "gone": 700_000, "a b": 5}
    assert hashes == {"orders": 90_000, "young": 10_000, "größe": 20_000}
    with open_store("memory:") as store:
        store.raise_floor("young", 5_000_000)
        done = import_idalloc(store, table, hashes)
        assert done.floors == {"gone": 700_001 + MARGIN, "orders": 90_001 + MARGIN, "young": 10_001 + MARGIN}
        assert sorted(done.refused) == ["a b", "größe"]
        assert all("letters, digits" in why for why in done.refused.values())
        assert store.reserve("orders", 1).first == 90_001 + MARGIN
        assert store.reserve("gone", 1).first == 700_001 + MARGIN
        assert store.reserve("young", 1).first == 5_000_000


def test_command_line_takes_over_an_idalloc(mariadb: MariaDB, redis: Redis, tmp_path: Path) -> None:
    administer(mariadb, TABLE + "INSERT INTO tbl_alloc_info VALUES ('orders', 10000, 1), ('a b', 5, 1)")
    redis.ask("HSET", "idalloc:alloc_info_orders", "lastAllocValue", "90000", "dataVersion", "9")
    store = f"sqlite:///{tmp_path}/ids.db"
    command = [sys.executable, "-m", "mintage", "namespaces", "import-idalloc", "--store", store, "--margin", "1000"]
    done = subprocess.run(
        [*command, "--mysql", mariadb.url, "--redis", redis.url], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "'a b' was not imported" in done.stderr
    assert open_store(store).reserve("orders", 1).first == 91_001


def test_counter_without_room_for_the_margin_is_reported() -> None:
    with open_store("memory:") as store:
        done = import_idalloc(store, {"full": 2**63 - 1, "fine": 1}, margin=0)
        assert (list(done.floors), list(done.refused)) == (["fine"], ["full"])
        refusal_text(lambda: import_idalloc(store, {}, margin=-1), "field.range")


def test_database_without_idalloc_tables_is_reported(mariadb: MariaDB, redis: Redis) -> None:
    assert "tbl_alloc_info" in refusal_text(lambda: read_idalloc_table(mariadb.url))
    assert administer(mariadb, "SHOW TABLES") == ""
    redis.ask("HSET", "idalloc:alloc_info_x", "lastAllocValue", "1e5")
    assert "whole number" in refusal_text(lambda: read_idalloc_hashes(redis.url))
    assert read_idalloc_hashes(redis.url, prefix="other:") == {}
    refusal_text(lambda: read_idalloc_hashes(redis.url, prefix="*"), "config.name")
    refusal_text(lambda: read_idalloc_hashes("mysql://h/d"), "config.store")
    refusal_text(lambda: read_idalloc_table("redis://h"), "config.store")
