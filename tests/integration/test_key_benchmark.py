"""Tests of the benchmark of keys: small runs, what they leave behind, and their record. Covers benchmarks/keys."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pytest
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from benchmarks.keys import report
from benchmarks.keys.__main__ import schema, selected
from benchmarks.keys.databases import NAME, PostgreSQL, SQLite, database_of
from benchmarks.keys.kinds import KEYS, Key
from benchmarks.keys.record import DIRECTORY, KeyRecord, Run
from benchmarks.keys.run import WRITERS, Plan, measure, seconds_of, sizes_of
from tests.helpers.sql_servers import account, administer
from tests.servers.server import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import MariaDB
    from tests.servers import PostgreSQL as Server

THREE: Final = "^(auto-increment|uuid7 text|snowflake)$"
SCHEMAS: Final = f"SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE '{NAME}%'"
MARIADB_RIGHTS: Final = rf"GRANT ALL ON `{NAME.replace('_', chr(92) + '_')}%`.* TO mintage"


def small(rows: int) -> Plan:
    return Plan(rows, minutes=1, batch=50, parts=2, ranges=2, say=lambda _: None)


def run_on(url: str, pattern: str, rows: int = 1000) -> Run:
    database = database_of(url)
    with schema(database):
        return measure(database, selected(pattern, database), small(rows))


def command(url: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.keys", "--url", url, *options]


def check(run: Run) -> None:
    """Assert what holds of each run of 3 keys."""
    assert len(run.results) == 3
    for result in run.results:
        assert (result.rows, len(result.parts)) == (run.rows, 2)
        assert result.log_bytes > 100
        assert result.table_bytes > 100 * result.rows
        # A range is a second of a part, and a busy machine may insert nothing in one second of many.
        assert result.range.rows > 0 or max(part.seconds for part in result.parts) > 1
    assert {result.key for result in run.results if result.time_index_bytes} == {"auto-increment"}


def test_small_run_on_sqlite_measures_three_keys_and_leaves_no_file(tmp_path: Path) -> None:
    run = run_on(f"sqlite:///{tmp_path / 'keys.db'}", THREE)
    check(run)
    assert not list(tmp_path.iterdir())
    assert [line.split()[0] for line in report.text(run).splitlines()[2:]] == ["auto-increment", "snowflake", "uuid7"]


@pytest.mark.parametrize("key", [key for key in KEYS if "sqlite" in key.databases], ids=lambda key: key.label)
def test_range_by_time_finds_all_rows_of_the_time(key: Key, tmp_path: Path) -> None:
    database = SQLite(make_url(f"sqlite:///{tmp_path / 'keys.db'}"))
    with schema(database):
        database.create_table(key)
        mint = key.minter("sqlite") if key.writer else None
        with closing(database.open()) as connection:
            database.insert(connection, key, mint(100) if mint else None, 100, 1)
        if key.kind:
            low, high = (key.bound(at_ms, "sqlite") for at_ms in (1_577_836_800_000, 2_524_608_000_000))
            with database.engine.connect() as reader:
                within = f"SELECT COUNT(*) FROM {key.table} WHERE id >= ? AND id < ?"
                assert reader.exec_driver_sql(within, (low, high)).scalar() == 100
        assert database.query(f"SELECT COUNT(*) FROM {key.table}") == [(100,)]


def test_interrupted_plan_ends_a_run_and_leaves_no_file(tmp_path: Path) -> None:
    database, plan = database_of(f"sqlite:///{tmp_path / 'keys.db'}"), small(1000)
    plan.is_interrupted.set()
    with pytest.raises(KeyboardInterrupt), schema(database):
        measure(database, selected(THREE, database), plan)
    assert not list(tmp_path.iterdir())


def test_batches_add_up_and_are_the_same_for_each_key() -> None:
    sizes = sizes_of(200_000, 500, seed=3)
    assert sizes == sizes_of(200_000, 500, seed=3)
    assert sum(sizes) == 200_000
    assert 0 < min(sizes) < max(sizes) < 1000


def test_range_covers_whole_seconds_of_one_part() -> None:
    assert seconds_of([(10.5, 13.2), (20.1, 20.9)]) == [(11_000, 12_000), (12_000, 13_000)]
    assert seconds_of([(10.1, 10.9), (20.1, 21.2)]) == [(10_000, 11_000), (20_000, 22_000)]


def test_file_that_exists_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.db"
    mine.write_bytes(b"precious")
    with pytest.raises(SystemExit, match=r"mine\.db: name a file that does not exist yet"):
        database_of(f"sqlite:///{mine}")
    assert mine.read_bytes() == b"precious"


@pytest.mark.parametrize("name", [":memory:", "file:keys.db?uri=true"])
def test_database_without_a_file_that_can_be_removed_is_refused(name: str) -> None:
    with pytest.raises(SystemExit, match="name a file that does not exist yet"):
        database_of(f"sqlite:///{name}")


@pytest.mark.parametrize("url", ["ids", "postgresql://h:port/ids"])
def test_malformed_url_of_a_database_is_refused(url: str) -> None:
    with pytest.raises(SystemExit, match="the URL is not one such as"):
        database_of(url)


def test_schema_that_exists_is_left_as_it_is(postgresql: Server) -> None:
    database = database_of(postgresql.url)
    database.create()
    with pytest.raises(DBAPIError, match="already exists"), schema(database):
        pytest.fail("the run began")
    assert postgresql.sql(SCHEMAS).strip() == database.schema
    database.drop()


def test_schema_whose_creation_is_interrupted_is_removed(postgresql: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    database = database_of(postgresql.url)
    create = database.create

    def create_and_interrupt() -> None:
        create()
        raise KeyboardInterrupt

    monkeypatch.setattr(database, "create", create_and_interrupt)
    with pytest.raises(KeyboardInterrupt), schema(database):
        pytest.fail("the run began")
    assert postgresql.sql(SCHEMAS) == ""


def test_part_of_one_row_on_a_fast_disk_has_a_rate() -> None:
    plan = Plan(200, minutes=1, parts=200, ranges=1, say=lambda _: None)
    with TemporaryDirectory(dir="/dev/shm") as directory:
        database = database_of(f"sqlite:///{directory}/keys.db")
        with schema(database):
            run = measure(database, selected("^snowflake$", database), plan)
    assert all(part.seconds > 0 for part in run.results[0].parts)


def test_writer_that_loses_its_connection_ends_the_run_with_one_error(postgresql: Server) -> None:
    with subprocess.Popen(command(postgresql.url, "--keys", "^sno"), stderr=subprocess.PIPE, text=True) as process:
        writers = f"FROM pg_stat_activity WHERE application_name LIKE '{NAME}%'"
        until(lambda: int(postgresql.sql(f"SELECT COUNT(*) {writers}")) == WRITERS, "the writers are connected")
        postgresql.sql(f"SELECT pg_terminate_backend(pid) {writers}")
        _, said = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in said) == (1, False), said
    assert "terminating connection" in said
    assert postgresql.sql(SCHEMAS) == ""


def test_run_on_postgresql_touches_its_own_schema_alone(postgresql: Server) -> None:
    postgresql.sql("CREATE TABLE mine AS SELECT 1 AS one")
    run = run_on(postgresql.url, THREE)
    check(run)
    assert "checkpoint" in run.checkpoints
    assert all(result.hit_ratio for result in run.results)
    assert postgresql.sql(SCHEMAS) == ""
    assert postgresql.sql("SELECT one FROM mine") == "1\n"
    assert postgresql.sql("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'") == "1\n"


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_run_on_mariadb_or_mysql_touches_its_own_schema_alone(server: str, request: pytest.FixtureRequest) -> None:
    running: MariaDB = request.getfixturevalue(server)
    running.sql(f"{MARIADB_RIGHTS}; CREATE TABLE mintage.mine AS SELECT 1 AS one")
    run = run_on(running.url, THREE)
    check(run)
    assert all(result.hit_ratio for result in run.results)
    assert running.sql(SCHEMAS) == ""
    assert running.sql("SELECT one FROM mintage.mine") == "1\n"


def test_mysql_has_no_native_uuids() -> None:
    labels = {
        name: {key.label for key in selected("", database_of(f"{name}://nobody@127.0.0.1:1/none"))}
        for name in ("mysql", "mariadb")
    }
    assert labels["mariadb"] - labels["mysql"] == {"uuid4 native", "uuid7 native"}


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_removes_its_schema(server: str, way: signal.Signals, request: pytest.FixtureRequest) -> None:
    running: MariaDB | Server = request.getfixturevalue(server)
    if server == "mariadb":
        administer(running, MARIADB_RIGHTS)
    with subprocess.Popen(command(running.url, "--keys", THREE), stderr=subprocess.DEVNULL) as process:
        written = f"SELECT table_name FROM information_schema.tables WHERE table_schema LIKE '{NAME}%'"
        until(lambda: "uuid7_text" in administer(running, written), "the tables are there")
        process.send_signal(way)
        assert process.wait(60) == 130
    assert administer(running, SCHEMAS).strip() == ""


def test_impatient_person_interrupts_no_removal(postgresql: Server) -> None:
    with subprocess.Popen(command(postgresql.url, "--keys", THREE), stderr=subprocess.PIPE, text=True) as process:
        until(lambda: NAME in postgresql.sql(SCHEMAS), "the schema is there")
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        _, said = process.communicate()
    # CPython ends by the signal if the exception passed through exec(text), as of SQLAlchemy; a shell sees 130 in both.
    assert process.returncode in {130, -signal.SIGINT}
    assert "Ctrl-\\ ends the run now" in said
    assert postgresql.sql(SCHEMAS) == ""


def test_second_interrupt_waits_for_the_removal(postgresql: Server) -> None:
    waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'DROP SCHEMA%' AND wait_event_type = 'Lock'"
    with subprocess.Popen(command(postgresql.url, "--keys", "^sno"), stderr=subprocess.DEVNULL) as process:
        written = f"SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname LIKE '{NAME}%'"
        until(lambda: NAME in postgresql.sql(written), "the table is there")
        table = postgresql.sql(written).split()[0]
        with subprocess.Popen(["psql", "--quiet", postgresql.url], stdin=subprocess.PIPE, text=True) as other:
            assert other.stdin is not None
            other.stdin.write(f"BEGIN; LOCK {table} IN ROW SHARE MODE;\n")
            other.stdin.flush()
            held = f"SELECT COUNT(*) FROM pg_locks WHERE mode = 'RowShareLock' AND relation = '{table}'::regclass"
            until(lambda: int(postgresql.sql(held)) > 0, "the table is locked")
            process.send_signal(signal.SIGINT)
            until(lambda: int(postgresql.sql(waits)) == 1, "the run waits for its removal")
            process.send_signal(signal.SIGINT)
            other.stdin.close()
        assert process.wait(60) == 130
    assert postgresql.sql(SCHEMAS) == ""


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_account_without_the_right_to_create_gets_one_error(server: str, request: pytest.FixtureRequest) -> None:
    with account(request.getfixturevalue(server)) as url:
        done = subprocess.run(command(url, "--rows", "1000"), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search("permission denied|Access denied", done.stderr)
    assert "Traceback" not in done.stderr


def test_keys_have_the_columns_that_adapters_create() -> None:
    database = PostgreSQL(make_url("postgresql://nobody@127.0.0.1:1/none"))
    assert [database.column(key) for key in KEYS if key.name in {"snowflake", "uuid7", "ulid", "sno"}] == [
        "bigint", "uuid", "bytea", "char(36)", "bytea", "char(26)", "bytea", "char(16)",
    ]  # fmt: skip


@pytest.mark.parametrize("path", sorted(DIRECTORY.glob("*.json")), ids=lambda path: path.stem)
def test_record_has_one_line_for_each_fact_and_key(path: Path) -> None:
    text, record = path.read_text(encoding="utf-8"), KeyRecord.load(path)
    assert record.as_json() == text
    assert len(text.splitlines()) == 7 + len(record.facts) + sum(2 + len(run.results) for run in record.runs)
