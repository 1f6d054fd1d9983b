"""Tests of ``mintage backfill`` on real databases: killed at any moment, it completes rows with unique IDs."""

from __future__ import annotations

import os
import pty
import random
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
import sqlalchemy as sa

import mintage
from mintage import sno, snowflake, ulid
from mintage.errors import CATALOGUE
from mintage.formats.catalogue import read_layout, write_layout
from mintage.formats.kinds import KINDS
from mintage.tables.backfill import Table
from mintage.tables.sources import connect
from tests.helpers.databases import DATABASES, engine_of
from tests.servers.server import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

BEGIN = datetime(2020, 1, 1, 12, tzinfo=UTC)
SINCE = datetime(2025, 6, 1, tzinfo=UTC)
"""All layouts have begun."""
NODE = 1023
SNOWFLAKE = ("--scheme", "snowflake", "--node", str(NODE))
TWICE = 4_096 + 500
"""Rows of one millisecond: more than it has numbers."""


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    with engine_of(request.param, request, tmp_path) as made:
        yield made


@pytest.fixture
def url(engine: sa.Engine) -> str:
    """Return the URL as users write it, without a driver."""
    return engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)


on_sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


def make_table(engine: sa.Engine, kind: Any, times: Sequence[datetime | None], *, is_unique: bool = True) -> sa.Table:
    precise: Any = sa.DateTime()
    if engine.dialect.name in {"mysql", "mariadb"}:
        from sqlalchemy.dialects.mysql import DATETIME

        precise = DATETIME(fsp=6)
    table = sa.Table(
        "orders",
        sa.MetaData(),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("made", precise),
        sa.Column("id", kind, unique=is_unique),
    )
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS orders"))
        table.create(connection)
        rows = [{"number": n, "made": time and time.replace(tzinfo=None)} for n, time in enumerate(times)]
        connection.execute(table.insert(), rows)
    return table


def started(url: str, *options: str) -> subprocess.Popen[str]:
    words = ["--table", "orders", "--time-column", "made", "--id-column", "id", *options]
    command = [sys.executable, "-m", "mintage", "backfill", url, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(url: str, *options: str) -> tuple[int, str, str]:
    process = started(url, *options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def rows_of(engine: sa.Engine, table: sa.Table) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(sa.select(table).order_by(table.c.number)))


def finish_however_often_it_is_killed(
    url: str, chance: random.Random, *options: str, between: Callable[[], None]
) -> int:
    """Kill it at random lines and moments until it completes; return how often it was killed.

    The first three times at its first line: a busy machine may notice a later line only when all rows are done.
    """
    kills = 0
    while True:
        with started(url, *options, "--batch", "97") as process:
            lines = 1 if kills < 3 else chance.randrange(1, 25)
            assert process.stdout
            seen = [line for line, _ in zip(process.stdout, range(lines), strict=False)]
            if len(seen) < lines:
                assert process.wait(60) == 0, process.stderr and process.stderr.read()
                return kills
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.random() / 50)
            process.send_signal(signal.SIGKILL)
        kills += 1
        between()


@pytest.mark.parametrize("mode", ["snowflake", "ulid", "sequence"])
def test_killed_and_restarted_run_gives_each_row_one_id(url: str, engine: sa.Engine, mode: str, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'store.db'}"
    kind, kept, options = {
        "snowflake": (sa.BigInteger(), snowflake.Generator(node=5).new(), SNOWFLAKE),
        "ulid": (sa.String(26), str(ulid.Generator(node=5).new()), ("--scheme", "ulid", "--node", "77")),
        "sequence": (sa.BigInteger(), 1 << 60, ("--sequence", "orders", "--store", store)),
    }[mode]
    chance = random.Random(7)
    times = [BEGIN + timedelta(milliseconds=chance.randrange(2_000)) for _ in range(3_000)] + [BEGIN] * TWICE
    chance.shuffle(times)
    table = make_table(engine, kind, times)
    with engine.begin() as connection:
        connection.execute(table.update().where(table.c.number == 17).values(id=kept))
    late = iter((len(times), len(times) + 1))

    def insert() -> None:  # others go on inserting, old rows too
        if (number := next(late, None)) is not None:
            with engine.begin() as connection:
                connection.execute(table.insert(), [{"number": number, "made": BEGIN.replace(tzinfo=None)}])

    assert finish_however_often_it_is_killed(url, chance, *options, between=insert) > 2
    rows = rows_of(engine, table)
    assert len({row.id for row in rows}) == len(rows) == len(times) + 2
    assert None not in {row.id for row in rows}
    assert rows.pop(17).id == kept
    {"snowflake": are_snowflakes, "ulid": are_ulids, "sequence": are_in_order}[mode](rows)
    code, out, err = finished(url, *options)
    assert (code, out, err) == (0, "done: 0 rows have an ID now\n", "")


def are_snowflakes(rows: list[Any]) -> None:
    late = 0
    for row in rows:
        parts = snowflake.DEFAULT.parse(row.id)
        assert parts.node == NODE
        off = parts.time - row.made.replace(tzinfo=UTC)
        assert timedelta(0) <= off <= timedelta(milliseconds=3)
        late += off > timedelta(0)
    assert late >= TWICE - 4_096


def are_ulids(rows: list[Any]) -> None:
    for row in rows:
        one = ulid.ID.parse(row.id)
        assert one.time == row.made.replace(tzinfo=UTC)
        assert int(one) >> 56 & 0xFFFFFF == 77


def are_in_order(rows: list[Any]) -> None:
    there_from_the_start = rows[:-2]
    by_time = sorted(there_from_the_start, key=lambda row: (row.made, row.number))
    assert [row.id for row in by_time] == sorted(row.id for row in there_from_the_start)


@pytest.mark.parametrize("kind", [sa.LargeBinary(10), sa.String(16)], ids=["bytes", "text"])
def test_sno_ids_have_the_times_of_their_rows(url: str, engine: sa.Engine, kind: Any) -> None:
    if engine.dialect.name in {"mysql", "mariadb"} and isinstance(kind, sa.LargeBinary):
        kind = sa.BINARY(10)
    times: list[datetime | None] = [BEGIN + timedelta(milliseconds=n // 3) for n in range(500)]
    table = make_table(engine, kind, times)
    code, out, err = finished(url, "--scheme", "sno", "--node", str(NODE), "--batch", "60")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "done: 500 rows have an ID now"
    rows = rows_of(engine, table)
    read = [sno.ID.parse(row.id) if isinstance(row.id, str) else sno.ID(bytes(row.id)) for row in rows]
    assert len(set(read)) == 500
    for row, one in zip(rows, read, strict=True):
        assert timedelta(0) <= row.made.replace(tzinfo=UTC) - one.time < timedelta(milliseconds=4)
        assert one.partition == NODE


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (None, "row 3: its time is NULL"),
        (datetime(1999, 1, 1, tzinfo=UTC), "row 3: "),
        (datetime(2200, 1, 1, tzinfo=UTC), "row 3: "),
    ],
    ids=["none", "before", "after"],
)
def test_time_outside_the_layout_is_reported_before_any_write(
    url: str, engine: sa.Engine, time: datetime | None, said: str
) -> None:
    table = make_table(engine, sa.BigInteger(), [BEGIN, BEGIN, BEGIN, time, BEGIN])
    code, out, err = finished(url, *SNOWFLAKE, "--batch", "1")
    assert code == 65
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert all(row.id is None for row in rows_of(engine, table))


@on_sqlite
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--table", "nothing"], "there is no table 'nothing'"),
        (["--time-column", "born"], "has no column 'born': it has number, made, id"),
        (["--id-column", "number_2"], "has no column 'number_2'"),
        (["--node", "1024"], "1024"),
        (["--layout", "nothing"], "is not a layout; use default, "),
        (["--layout", "time:41 node:10"], "'time:41 node:10' is not a layout"),
        (["--layout", "time:60 node:10 sequence:12 @0 1ms"], "layout"),
        (["--scheme", "nanoid"], "invalid choice: 'nanoid'"),
        (["--scheme", "ulid"], "is BIGINT, and ulid IDs are bytes, UUID or str"),
        (["--store", "sqlite:ids.db"], "give one of the two"),
        (["--sequence", "orders"], "--scheme, --layout, --node and --meta belong to IDs of a time"),
        (["--batch", "0"], "'0' is outside 1.."),
        (["--scheme", "sno", "--layout", "twitter"], "belongs to snowflake"),
        (["--id-column", "made"], "has no unique index"),
        (["--table", "\udcff"], "there is no table '\\udcff'"),
    ],
)
def test_wrong_arguments_are_one_line(url: str, engine: sa.Engine, options: list[str], said: str) -> None:
    make_table(engine, sa.BigInteger(), [BEGIN])
    code, out, err = finished(url, *SNOWFLAKE, *options)
    assert code in {2, 64, 65, 78}
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_missing_unique_index_is_reported_with_its_statement(url: str, engine: sa.Engine) -> None:
    make_table(engine, sa.BigInteger(), [BEGIN], is_unique=False)
    code, _, err = finished(url, *SNOWFLAKE)
    assert code == 2
    with engine.begin() as connection:
        connection.execute(sa.text(err.partition(": CREATE")[1].lstrip(": ") + err.partition(": CREATE")[2]))
    assert finished(url, *SNOWFLAKE)[0] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        "nothing",
        "oracle://x",
        "sqlite:////nowhere/at/all.db",
        "postgresql://127.0.0.1:1/x",
        "postgresql://me:geheim@db:geheim/x",
        "postgresql+asyncpg://me:geheim@127.0.0.1:1/x",
        "mysql://me:geheim@127.0.0.1:1/x?frob=1",
        "mysql://me:geheim@127.0.0.1:1/x?connect_timeout=soon",
        "mysql://me:geheim@127.0.0.1:1/x?charset=abc",
        "mysql://me:geheim@127.0.0.1:1/x?SET%20x=1",
        "mysql://me:geheim@127.0.0.1:1/x?ssl_ca=/nowhere",
        "mssql+pyodbc://me:geheim@127.0.0.1:1/x",
        "postgresql://me:geheim\udcff@127.0.0.1:1/x",
    ],
)
def test_invalid_database_is_reported_in_one_line(wrong: str) -> None:
    code, out, err = finished(wrong, *SNOWFLAKE)
    assert code
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert "geheim" not in err
    assert err != "mintage: No such file or directory\n"


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+pysqlite"])
def test_mistyped_file_is_not_created(tmp_path: Path, scheme: str) -> None:
    code, _, err = finished(f"{scheme}:///{tmp_path}/typo.db", *SNOWFLAKE)
    assert (code, err) == (74, f"mintage: {tmp_path}/typo.db: No such file or directory\n")
    assert not list(tmp_path.iterdir())
    assert finished(f"sqlite:///file:{tmp_path}/typo.db?mode=ro&uri=true", *SNOWFLAKE)[0] == 69


@on_sqlite
def test_batches_are_lines_only_without_a_progress_bar(url: str, engine: sa.Engine) -> None:
    make_table(engine, sa.BigInteger(), [BEGIN] * 4)
    words = ["--table", "orders", "--time-column", "made", "--id-column", "id", "--batch", "2", *SNOWFLAKE]
    command = [sys.executable, "-m", "mintage", "backfill", url, *words]
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, timeout=60, check=True)
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.stdout == "done: 4 rows have an ID now\n"
    make_table(engine, sa.BigInteger(), [BEGIN] * 4)
    assert finished(url, *SNOWFLAKE, "--batch", "2")[1].splitlines()[:2] == ["2 of 4 rows", "4 of 4 rows"]


def test_progress_in_a_log_is_a_line_for_each_percent(url: str, engine: sa.Engine) -> None:
    make_table(engine, sa.BigInteger(), [BEGIN] * 400)
    lines = finished(url, *SNOWFLAKE, "--batch", "1")[1].splitlines()
    assert (len(lines), lines[0], lines[1]) == (101, "1 of 400 rows", "5 of 400 rows")


@pytest.mark.parametrize(
    ("kind", "keys", "says"),
    [
        (sa.Float(), [1.5, 0.1], ", which does not identify a row; name another key"),
        (sa.Integer(), [1, None], " is NULL in a row without an ID; fill it, or name another key"),
    ],
    ids=["a float", "NULL"],
)
def test_key_that_identifies_no_row_is_refused(
    url: str, engine: sa.Engine, kind: Any, keys: list[Any], says: str
) -> None:
    table = sa.Table(
        "orders",
        sa.MetaData(),
        sa.Column("number", kind, unique=True),
        sa.Column("made", sa.DateTime()),
        sa.Column("id", sa.BigInteger(), unique=True),
    )
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS orders"))
        table.create(connection)
        made = BEGIN.replace(tzinfo=None, microsecond=0)
        connection.execute(table.insert(), [{"number": key, "made": made} for key in keys])
    code, out, err = finished(url, *SNOWFLAKE, "--key", "number")
    assert (code, out) == (2, "")
    assert says in err
    assert [row.id for row in rows_of(engine, table)] == [None, None]


# --- time zones ---------------------------------------------------------------------------------------------------

INSTANTS = [BEGIN, datetime(2024, 7, 1, 3, tzinfo=UTC), datetime(2024, 11, 3, 5, 30, tzinfo=UTC), SINCE]
"""One of them in summer, one in an hour that New York has twice."""
ZONES = {
    # The zone of new sessions, and the types of an instant and of a time without a zone.
    "mariadb": ("SET GLOBAL time_zone = '{}'", "-05:00", "SYSTEM", "TIMESTAMP(3)", "DATETIME(3)"),
    "mysql": ("SET GLOBAL time_zone = '{}'", "-05:00", "SYSTEM", "TIMESTAMP(3)", "DATETIME(3)"),
    "postgresql": ("ALTER ROLE mintage SET timezone TO '{}'", "America/New_York", "UTC", "timestamptz", "timestamp"),
}


@pytest.mark.parametrize("name", ZONES)
def test_times_are_read_as_utc_in_any_session_time_zone(request: pytest.FixtureRequest, name: str) -> None:
    statement, zone, usual, instant, naive = ZONES[name]
    server = request.getfixturevalue(name)
    values = ", ".join(f"({n}, '{time:%Y-%m-%d %H:%M:%S}')" for n, time in enumerate(INSTANTS))
    offset = "SET timezone TO 'UTC'" if name == "postgresql" else "SET time_zone = '+00:00'"
    server.sql(statement.format(zone))
    try:
        for kind in (instant, naive):
            insert = f"INSERT INTO orders (number, made) VALUES {values}"
            table = f"number INTEGER PRIMARY KEY, made {kind} NULL, id BIGINT UNIQUE"
            made = f"DROP TABLE IF EXISTS orders; CREATE TABLE orders ({table}); {insert};"
            where = "" if name == "postgresql" else "USE mintage; "
            grant = "ALTER TABLE orders OWNER TO mintage;" if name == "postgresql" else ""
            server.sql(f"{where}{offset}; {made} {grant}")
            assert finished(server.url, *SNOWFLAKE)[::2] == (0, "")
            ids = server.sql(f"{where}SELECT id FROM orders ORDER BY number").split()
            assert [snowflake.DEFAULT.parse(int(each)).time for each in ids] == INSTANTS, kind
            words = ["--table", "orders", "--column", "id", "--scheme", "snowflake", "--order-by", "made", "--sorted"]
            verify = [sys.executable, "-m", "mintage", "verify", server.url, *words]
            assert subprocess.run(verify, capture_output=True, check=False, timeout=60).returncode == 0
    finally:
        server.sql(statement.format(usual))


# --- any scheme, any layout ---------------------------------------------------------------------------------------

SCHEMES = [name for name, kind in KINDS.items() if not kind.is_text]


PLENTY = ["locality", "xid", "objectid", "sandflake"]
"""They have 2^32 node numbers and more."""


@pytest.mark.parametrize("scheme", PLENTY)
@on_sqlite
def test_scheme_with_large_node_numbers_requires_a_lease(url: str, engine: sa.Engine, scheme: str) -> None:
    table = make_table(engine, sa.String(40), [BEGIN])
    code, out, err = finished(url, "--scheme", scheme, "--node", "9")
    assert (code, out, err.count("\n")) == (CATALOGUE["config.node"].exit, "", 1)
    assert "have a store lease one for each run, such as the store sqlite:ids.db" in err
    assert rows_of(engine, table)[0].id is None


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("form", ["text", "bytes"])
@on_sqlite
def test_every_scheme_with_a_node_number_uses_the_rows_times(
    url: str, engine: sa.Engine, scheme: str, form: str, tmp_path: Path
) -> None:
    kind = KINDS[scheme]
    if kind.layout and form == "bytes":
        form = "integer"
    column = {"text": sa.String(40), "bytes": sa.LargeBinary(20), "integer": sa.BigInteger()}[form]
    times = [BEGIN + timedelta(milliseconds=400 * (n // 3)) for n in range(300)]
    table = make_table(engine, column, times)
    node = ("--store", f"sqlite:{tmp_path / 'store.db'}") if scheme in PLENTY else ("--node", "9")
    options = ("--scheme", scheme, *node, "--batch", "70")
    assert finished(url, *options)[::2] == (0, "")
    first = rows_of(engine, table)
    # A second run meets ticks in which the first one gave IDs.
    with engine.begin() as connection:
        new = [{"number": 300 + n, "made": time.replace(tzinfo=None)} for n, time in enumerate(times)]
        connection.execute(table.insert(), new)
    assert finished(url, *options)[::2] == (0, "")
    rows = rows_of(engine, table)
    assert rows[:300] == first
    assert len({row.id for row in rows}) == 600
    for row in rows:
        one = kind.read(row.id)
        time = kind.layout.parse(one).time if kind.layout else one.time
        assert timedelta(0) <= row.made.replace(tzinfo=UTC) - time < timedelta(seconds=1)


def test_uuid_version_7_is_stored_in_the_native_type(url: str, engine: sa.Engine) -> None:
    kind: Any = sa.Uuid()
    if engine.dialect.name != "postgresql":
        kind = sa.BINARY(16) if engine.dialect.name in {"mysql", "mariadb"} else sa.LargeBinary(16)
    table = make_table(engine, kind, [BEGIN] * 50)
    assert finished(url, "--scheme", "uuid", "--node", "9", "--batch", "20")[::2] == (0, "")
    read = [KINDS["uuid"].read(row.id) for row in rows_of(engine, table)]
    assert len(set(read)) == 50
    assert {(one.version, one.time) for one in read} == {(7, BEGIN)}


@pytest.mark.parametrize(
    "layout",
    [write_layout(snowflake.JS_SAFE), "sonyflake", "discord", "time:32 sequence:2 node:6 @1262304000000 1000ms"],
)
@on_sqlite
def test_any_snowflake_layout_is_filled_and_verified(url: str, engine: sa.Engine, layout: str) -> None:
    table = make_table(engine, sa.BigInteger(), [SINCE + timedelta(seconds=n // 10) for n in range(100)])
    options = ("--scheme", "snowflake", "--layout", layout)
    assert finished(url, *options, "--node", "33", "--batch", "30")[::2] == (0, "")
    read = read_layout(layout)
    assert read
    parts = [read.parse(row.id) for row in rows_of(engine, table)]
    assert {each.node for each in parts} == {33}
    assert len({(each.time, each.sequence) for each in parts}) == 100
    verify = [sys.executable, "-m", "mintage", "verify", url, "--table", "orders", "--column", "id", *options]
    assert subprocess.run(verify, capture_output=True, check=False, timeout=60).returncode == 0


@on_sqlite
def test_tick_filled_by_an_earlier_run_continues_in_the_next(url: str, engine: sa.Engine) -> None:
    layout = "time:32 sequence:2 node:6 @1262304000000 1000ms"
    options = ("--scheme", "snowflake", "--layout", layout, "--node", "33", "--batch", "4")
    table = make_table(engine, sa.BigInteger(), [BEGIN] * 10)
    assert finished(url, *options)[1].endswith(
        "done: 10 rows have an ID now; 6 IDs have a later tick, because the tick of their rows was full\n"
    )
    with engine.begin() as connection:
        new = [{"number": 10 + n, "made": (BEGIN + timedelta(seconds=n)).replace(tzinfo=None)} for n in range(8)]
        connection.execute(table.insert(), new)
    assert finished(url, *options)[0] == 0
    read = read_layout(layout)
    assert read
    parts = [read.parse(row.id) for row in rows_of(engine, table)]
    assert len({(each.time, each.sequence) for each in parts}) == 18
    assert {each.sequence for each in parts} == {0, 1, 2, 3}
    assert all(each.time - BEGIN < timedelta(seconds=8) for each in parts)


# --- reservations -------------------------------------------------------------------------------------------------


def test_each_run_leases_a_never_used_node_number(url: str, engine: sa.Engine, tmp_path: Path) -> None:
    table = make_table(engine, sa.BigInteger(), [BEGIN] * 50)
    store = f"sqlite:{tmp_path / 'store.db'}"
    with snowflake.Generator(store=store, max_wait_ms=60_000) as generator:
        nodes = {generator.node}
    for _ in range(2):
        assert finished(url, "--scheme", "snowflake", "--store", store)[::2] == (0, "")
        with engine.begin() as connection:
            connection.execute(table.insert(), [{"number": 50 + len(nodes), "made": BEGIN.replace(tzinfo=None)}])
        nodes.add(snowflake.DEFAULT.parse(rows_of(engine, table)[48 + len(nodes)].id).node)
    assert len(nodes) == 3


@on_sqlite
def test_row_in_the_future_is_reported_before_any_write(url: str, engine: sa.Engine, tmp_path: Path) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    table = make_table(engine, sa.BigInteger(), [BEGIN, tomorrow, BEGIN])
    code, out, err = finished(url, "--scheme", "snowflake", "--store", f"sqlite:{tmp_path / 'store.db'}")
    assert (code, out) == (CATALOGUE["lease.history"].exit, "")
    assert err.startswith("mintage: row 1: time ")
    assert all(row.id is None for row in rows_of(engine, table))


def test_sequence_numbers_the_rows_in_order_of_time(url: str, engine: sa.Engine, tmp_path: Path) -> None:
    days = random.Random(3).sample(range(365), 100)
    table = make_table(engine, sa.BigInteger(), [BEGIN + timedelta(days=day) for day in days])
    options = ("--sequence", "orders", "--store", f"sqlite:{tmp_path / 'store.db'}", "--batch", "30")
    code, out, err = finished(url, *options)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "reserved 1..100 of orders"
    assert out.splitlines()[-1] == "done: 100 rows have an ID now"
    rows = sorted(rows_of(engine, table), key=lambda row: row.made)
    assert [row.id for row in rows] == list(range(1, 101))


@on_sqlite
def test_overlap_of_a_sequence_with_the_column_is_reported_first(url: str, engine: sa.Engine, tmp_path: Path) -> None:
    table = make_table(engine, sa.BigInteger(), [BEGIN] * 5)
    with engine.begin() as connection:
        connection.execute(table.update().where(table.c.number == 0).values(id=3))
    code, out, err = finished(url, "--sequence", "orders", "--store", f"sqlite:{tmp_path / 'store.db'}")
    assert (code, out) == (2, "")
    assert "1..4 was reserved, and a row has 3; raise the floor" in err
    assert [row.id for row in rows_of(engine, table)] == [3, None, None, None, None]


@pytest.mark.parametrize("words", [("--scheme", "ulid"), ("--sequence", "orders")], ids=["scheme", "sequence"])
@on_sqlite
def test_unavailable_store_is_reported_and_nothing_is_written(
    url: str, engine: sa.Engine, words: tuple[str, ...]
) -> None:
    kind = sa.BigInteger() if "--sequence" in words else sa.String(26)
    table = make_table(engine, kind, [BEGIN])
    code, out, err = finished(url, *words, "--store", "redis://127.0.0.1:1")
    assert (code, out) == (CATALOGUE["store.unavailable"].exit, "")
    assert err.count("\n") == 2
    assert "Check that the server runs" in err.splitlines()[1]
    assert rows_of(engine, table)[0].id is None


@on_sqlite
def test_sequence_needs_a_time_of_every_row(url: str, engine: sa.Engine, tmp_path: Path) -> None:
    table = make_table(engine, sa.BigInteger(), [BEGIN, None, BEGIN])
    code, out, err = finished(url, "--sequence", "orders", "--store", f"sqlite:{tmp_path / 'store.db'}")
    assert (code, out) == (CATALOGUE["time.range"].exit, "")
    assert "row 1: its time is NULL" in err
    assert all(row.id is None for row in rows_of(engine, table))


@on_sqlite
def test_missing_node_number_and_store_are_requested(url: str, engine: sa.Engine) -> None:
    make_table(engine, sa.BigInteger(), [BEGIN])
    code, _, err = finished(url, "--scheme", "snowflake")
    assert (code, err.count("\n")) == (2, 1)
    assert "with --node, or a store to lease one, with --store" in err
    assert "--scheme, or with --sequence" in finished(url)[2]


@on_sqlite
def test_table_without_a_primary_key_needs_a_named_key(url: str, engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE orders (name TEXT UNIQUE, made DATETIME, id BIGINT UNIQUE)"))
        connection.execute(sa.text("INSERT INTO orders (name, made) VALUES ('a', '2020-01-01 12:00:00')"))
    code, out, err = finished(url, *SNOWFLAKE)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "has no primary key of one column; name a unique column as its key" in err
    assert finished(url, *SNOWFLAKE, "--key", "name")[0] == 0


def test_times_in_floats_are_exact_to_the_millisecond(url: str, engine: sa.Engine) -> None:
    times = [1_577_880_000_000 + 37 * n for n in range(50)]
    kind = "DOUBLE PRECISION" if engine.dialect.name == "postgresql" else "DOUBLE"
    make_by_hand(engine, f"made {kind}, id BIGINT UNIQUE", *(f"{n}, {ms / 1000!r}" for n, ms in enumerate(times)))
    assert finished(url, *SNOWFLAKE, "--time-unit", "s")[0] == 0
    assert [snowflake.DEFAULT.parse(one).timestamp_ms for one in ids_of(engine)] == times
    make_by_hand(engine, f"made {kind}, id BIGINT UNIQUE", "1, 1e300")
    code, _, err = finished(url, *SNOWFLAKE, "--time-unit", "s")
    assert (code, err.count("\n")) == (CATALOGUE["time.range"].exit, 1)


@on_sqlite
@pytest.mark.parametrize("value", [1_577_880_000_037, 1_577_880_000_037.0, Decimal(1_577_880_000_037)])
def test_decimal_context_of_a_program_rounds_no_time(url: str, engine: sa.Engine, value: Any) -> None:
    make_by_hand(engine, "made INTEGER, id BIGINT UNIQUE")
    with connect(url) as connection, localcontext(prec=6):
        table = Table(connection, "orders", time_column="made", id_column="id")
        assert table.unix_ns(1, value) == 1_577_880_000_037_000_000


@on_sqlite
def test_rows_that_come_before_the_last_key_are_filled(url: str, engine: sa.Engine) -> None:
    make_table(engine, sa.BigInteger(), [None] + [BEGIN] * 3)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE orders SET id = 7 WHERE number = 0"))
        # The second batch frees a row before it, as a program would insert one with a random key.
        connection.execute(
            sa.text(
                "CREATE TRIGGER late AFTER UPDATE ON orders WHEN new.number = 3 "
                "BEGIN UPDATE orders SET id = NULL, made = '2020-01-01 12:00:00' WHERE number = 0; END"
            )
        )
    assert finished(url, *SNOWFLAKE, "--batch", "2")[1].endswith("done: 4 rows have an ID now\n")
    assert None not in ids_of(engine)


@pytest.mark.parametrize("engine", ["mariadb+pymysql"], indirect=True)
@pytest.mark.parametrize("mode", ["snowflake", "sequence"])
def test_run_goes_on_after_a_deadlock(url: str, engine: sa.Engine, mode: str, tmp_path: Path) -> None:
    table = make_table(engine, sa.BigInteger(), [BEGIN + timedelta(seconds=n) for n in range(1000)])
    options = SNOWFLAKE if mode == "snowflake" else ("--sequence", "bills", "--store", f"sqlite:{tmp_path}/ids.db")
    lock = sa.update(table).values(made=BEGIN.replace(tzinfo=None))
    waits = "SELECT variable_value FROM information_schema.global_status WHERE variable_name LIKE '%_current_waits'"
    with engine.connect() as other:
        # InnoDB undoes the smaller transaction.
        other.execute(lock.where(table.c.number >= 500))
        process = started(url, *options)

        def is_waiting() -> bool:
            with engine.connect() as observer:
                return int(observer.scalar(sa.text(waits))) > 0

        until(is_waiting, "the run waits for the rows of the other transaction")
        other.execute(lock.where(table.c.number < 500))
        other.commit()
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert out.endswith("done: 1,000 rows have an ID now\n")
    ids = ids_of(engine)
    assert len(set(ids) - {None}) == 1000
    if mode == "sequence":
        assert sorted(ids) == list(range(1, 1001))


# A sequence counts the batches that are undone as well. A deadlock would undo the run or the other, by their times.
UNDONE = """
    CREATE SEQUENCE tried;
    CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('tried') <= {} THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '{}'; END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER undo AFTER UPDATE ON orders FOR EACH STATEMENT EXECUTE FUNCTION undo()
"""


@pytest.mark.parametrize("engine", ["postgresql+psycopg"], indirect=True)
@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
@pytest.mark.parametrize("code", ["40P01", "40001"])
def test_batch_that_postgresql_undoes_is_repeated(url: str, engine: sa.Engine, driver: str, code: str) -> None:
    make_table(engine, sa.BigInteger(), [BEGIN + timedelta(seconds=n) for n in range(10)])
    with engine.begin() as connection:
        connection.exec_driver_sql(UNDONE.format(3, code))
    status, out, err = finished(url.replace(":", f"+{driver}:", 1), *SNOWFLAKE, "--batch", "4")
    assert (status, err, out.splitlines()[-1]) == (0, "", "done: 10 rows have an ID now")
    assert len(set(ids_of(engine)) - {None}) == 10


@pytest.mark.parametrize("engine", ["postgresql+psycopg"], indirect=True)
def test_batch_that_is_always_undone_ends_the_run(url: str, engine: sa.Engine) -> None:
    make_table(engine, sa.BigInteger(), [BEGIN])
    with engine.begin() as connection:
        connection.exec_driver_sql(UNDONE.format(10**9, "40001"))
    status, _, err = finished(url, *SNOWFLAKE)
    assert (status, err) == (69, "mintage: the database: deadlock detected\n")
    assert ids_of(engine) == [None]


@on_sqlite
def test_run_ends_while_each_row_brings_another(url: str, engine: sa.Engine) -> None:
    make_table(engine, sa.BigInteger(), [BEGIN])
    with engine.begin() as connection:
        connection.execute(
            sa.text(
                "CREATE TRIGGER more AFTER UPDATE ON orders "
                "BEGIN INSERT INTO orders (number, made) VALUES (new.number - 1, new.made); END"
            )
        )
    assert finished(url, *SNOWFLAKE)[1].endswith("done: 2 rows have an ID now\n")


def test_rows_of_an_enum_key_are_all_filled(mariadb: Any) -> None:
    made = sa.create_engine(mariadb.url.replace("mariadb:", "mariadb+pymysql:", 1))
    with made.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS orders"))
        columns = "name ENUM('b', 'a') PRIMARY KEY, made DATETIME, id BIGINT UNIQUE"
        connection.execute(sa.text(f"CREATE TABLE orders ({columns})"))
        connection.execute(sa.text("INSERT INTO orders (name, made) VALUES ('b', '2020-01-01'), ('a', '2020-01-01')"))
    assert finished(mariadb.url, *SNOWFLAKE, "--batch", "1")[1].endswith("done: 2 rows have an ID now\n")
    made.dispose()


def test_list_as_a_key_is_refused(postgresql: Any) -> None:
    made = sa.create_engine(postgresql.url.replace("postgresql:", "postgresql+psycopg:", 1))
    with made.begin() as connection:
        connection.execute(sa.text("CREATE TABLE orders (name INT[] PRIMARY KEY, made TIMESTAMP, id BIGINT UNIQUE)"))
    code, _, err = finished(postgresql.url, *SNOWFLAKE)
    assert (code, "which does not identify a row; name another key" in err) == (2, True)
    made.dispose()


@on_sqlite
def test_foreign_key_to_a_missing_table_is_no_obstacle(url: str, engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE missing (n INT PRIMARY KEY)")
    make_by_hand(engine, "made DATETIME, id BIGINT UNIQUE, other INT REFERENCES missing (n)")
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE missing")
    assert finished(url, *SNOWFLAKE)[0] == 0


# --- columns that cannot hold the IDs -----------------------------------------------------------------------------


def make_by_hand(engine: sa.Engine, columns: str, *rows: str) -> None:
    """Create the table with columns as a database's own SQL declares them."""
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS orders"))
        connection.execute(sa.text(f"CREATE TABLE orders (number INTEGER PRIMARY KEY, {columns})"))
        for row in rows or ("1, '2020-01-01 12:00:00'",):
            connection.execute(sa.text(f"INSERT INTO orders (number, made) VALUES ({row})"))


def ids_of(engine: sa.Engine) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.exec_driver_sql("SELECT id FROM orders ORDER BY number").scalars())


TOO_SMALL = {
    "mariadb+pymysql": [
        ("DOUBLE", "snowflake", "DOUBLE, which rounds large integers; use BIGINT"),
        ("FLOAT", "snowflake", "FLOAT, which rounds large integers; use BIGINT"),
        ("DECIMAL(10)", "snowflake", "DECIMAL(10, 0), which holds integers up to 9999999999, and"),
        ("INT", "snowflake", "holds integers up to 2147483647, and not 9223372036854775807; use BIGINT"),
        ("INT UNSIGNED", "snowflake", "holds integers up to 4294967295, and"),
        ("BINARY(16)", "sno", "BINARY(16), which pads values with zeros, and sno IDs have 10 bytes; use BINARY(10)"),
        ("VARBINARY(8)", "sno", "VARBINARY(8), and sno IDs have 10 bytes; use BINARY(10) or CHAR(16)"),
        ("CHAR(15)", "sno", "CHAR(15), and sno IDs have 16 characters"),
        ("VARCHAR(40) COLLATE utf8mb4_general_ci", "ksuid", "takes upper and lower case for equal"),
        ("ENUM('a', 'b')", "sno", "and sno IDs are bytes, UUID or str"),
        ("UUID", "uuid", "and uuid IDs are UUID, bytes or str"),
    ],
    "postgresql+psycopg": [
        ("DOUBLE PRECISION", "snowflake", "which rounds large integers; use BIGINT"),
        ("NUMERIC(10)", "snowflake", "NUMERIC(10, 0), which holds integers up to 9999999999, and"),
        ("INTEGER", "snowflake", "INTEGER, which holds integers up to 2147483647, and"),
        ("CHAR(40)", "ulid", "CHAR(40), which pads values with spaces; use BYTEA, UUID or CHAR(26)"),
        ("VARCHAR(25)", "ulid", "VARCHAR(25), and ulid IDs have 26 characters"),
        ("TEXT COLLATE blind", "ksuid", "takes upper and lower case for equal"),
    ],
    "sqlite": [
        ("REAL", "snowflake", "which rounds large integers; use BIGINT"),
        ("BLOB(8)", "sno", "and sno IDs have 10 bytes"),
        ("VARCHAR(10)", "sno", "VARCHAR(10), and sno IDs have 16 characters"),
        ("TEXT COLLATE NOCASE", "ksuid", "takes upper and lower case for equal"),
    ],
}
BLIND = "CREATE COLLATION IF NOT EXISTS blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"


@pytest.mark.parametrize(
    ("engine", "kind", "scheme", "says"),
    [(database, *row) for database, rows in TOO_SMALL.items() for row in rows],
    indirect=["engine"],
)
def test_column_that_cannot_hold_the_ids_is_refused(
    url: str, engine: sa.Engine, kind: str, scheme: str, says: str
) -> None:
    if "blind" in kind:
        with engine.begin() as connection:
            connection.exec_driver_sql(BLIND)
    made = "DATETIME" if engine.dialect.name != "postgresql" else "TIMESTAMP"
    make_by_hand(engine, f"made {made}, id {kind} UNIQUE")
    code, out, err = finished(url, "--scheme", scheme, "--node", "7")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert says in err
    assert ids_of(engine) == [None]


def test_column_too_small_for_the_sequence_stays_empty(url: str, engine: sa.Engine, tmp_path: Path) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("its integers all have 64 bits")
    table = make_table(engine, sa.SmallInteger(), [BEGIN])
    store = f"sqlite:{tmp_path / 'store.db'}"
    with mintage.open_store(store) as opened:
        opened.raise_floor("orders", 32_768)
    code, out, err = finished(url, "--sequence", "orders", "--store", store)
    assert (code, out) == (2, ""), err
    assert "which holds integers up to 32767, and not 32768" in err
    assert rows_of(engine, table)[0].id is None


REVERTS = {
    "sqlite": """CREATE TRIGGER reverts AFTER UPDATE ON orders WHEN new.number % 7 = 3
        BEGIN UPDATE orders SET id = NULL WHERE number = new.number; END""",
    "mariadb": """CREATE TRIGGER reverts BEFORE UPDATE ON orders FOR EACH ROW
        SET new.id = IF(mod(new.number, 7) = 3, 5, new.id)""",
    # This one acts when the transaction ends.
    "postgresql": """CREATE OR REPLACE FUNCTION reverts() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN UPDATE orders SET id = NULL WHERE number = new.number AND mod(number, 7) = 3 AND id IS NOT NULL;
        RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER reverts AFTER UPDATE ON orders DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION reverts()""",
}


def test_row_without_the_written_id_is_reported_by_key(url: str, engine: sa.Engine) -> None:
    table = make_table(engine, sa.BigInteger(), [BEGIN] * 5)
    with engine.begin() as connection:
        connection.exec_driver_sql(REVERTS[engine.dialect.name])
    code, out, err = finished(url, *SNOWFLAKE)
    assert (code, out, err.count("\n")) == (CATALOGUE["store.refused"].exit, "", 1)
    assert "row 3: 661901436522590211 was written, and the row has " in err
    assert [row.id for row in rows_of(engine, table)] == [None] * 5


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("DATETIME", "''", "''"),
        ("DATETIME", "'2021-06-30 08:15:00 UTC'", "'2021-06-30 08:15:00 UTC'"),
        ("DATETIME", "1625040900", "'1625040900', a number in a column of times"),
        ("TEXT", "'1625040900'", "'1625040900'"),
        ("TEXT", "'2021-02-30'", "'2021-02-30'"),
        ("DATE", "'yesterday'", "'yesterday'"),
        ("REAL", "9e999", "'inf'"),
        ("BLOB", "x'00ff'", "'00ff'"),
    ],
)
@pytest.mark.parametrize("words", [SNOWFLAKE, ("--sequence", "orders")], ids=["scheme", "sequence"])
@on_sqlite
def test_foreign_time_is_one_error_before_any_write(
    url: str, engine: sa.Engine, kind: str, value: str, shown: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    known = "1577880000" if kind == "REAL" else "'2020-01-01 12:00:00'"
    make_by_hand(engine, f"made {kind}, id BIGINT UNIQUE", f"1, {known}", f"2, {known}", f"3, {value}", f"4, {known}")
    store = ("--store", f"sqlite:{tmp_path / 'store.db'}") if "--sequence" in words else ()
    unit = ("--time-unit", "s")
    code, out, err = finished(url, *words, *store, *unit, "--batch", "1")
    assert (code, out, err.count("\n")) == (CATALOGUE["time.range"].exit, "", 1)
    assert f"row 3: its time is {shown}" in err
    assert ids_of(engine) == [None] * 4


def test_zero_date_of_mariadb_names_its_row(mariadb: Any) -> None:
    engine = sa.create_engine(sa.make_url(mariadb.url).set(drivername="mariadb+pymysql"))
    with engine.begin() as connection:
        connection.exec_driver_sql("SET sql_mode = ''")
        connection.exec_driver_sql("DROP TABLE IF EXISTS orders")
        connection.exec_driver_sql("CREATE TABLE orders (number INT PRIMARY KEY, made DATETIME, id BIGINT UNIQUE)")
        connection.exec_driver_sql("INSERT INTO orders VALUES (7, '0000-00-00', NULL), (8, '2020-01-01', NULL)")
    code, out, err = finished(mariadb.url, *SNOWFLAKE)
    assert (code, out, err.count("\n")) == (CATALOGUE["time.range"].exit, "", 1)
    assert "row 7: its time is '0000-00-00 00:00:00'" in err
    engine.dispose()


def test_times_in_text_are_read_with_their_zone(url: str, engine: sa.Engine) -> None:
    rows = "1, '2020-01-01 12:00:00'", "2, '2020-01-01T14:00:00+02:00'", "3, '2020-01-01T12:00:00Z'"
    make_by_hand(engine, "made VARCHAR(40), id BIGINT UNIQUE", *rows)
    assert finished(url, *SNOWFLAKE)[::2] == (0, "")
    assert {snowflake.DEFAULT.parse(each).time for each in ids_of(engine)} == {BEGIN}


@on_sqlite
def test_sequence_refuses_texts_that_sort_unlike_their_times(url: str, engine: sa.Engine, tmp_path: Path) -> None:
    rows = "1, '2020-01-01T12:00:00+02:00'", "2, '2020-01-01T11:00:00Z'"
    make_by_hand(engine, "made TEXT, id BIGINT UNIQUE", *rows)
    code, out, err = finished(url, "--sequence", "orders", "--store", f"sqlite:{tmp_path / 'store.db'}")
    assert (code, out) == (CATALOGUE["time.range"].exit, "")
    assert "write all times of the column in one form" in err
    assert ids_of(engine) == [None, None]


def test_uuids_fill_the_columns_of_django_and_sqlalchemy(url: str, engine: sa.Engine) -> None:
    kind = "UUID" if engine.dialect.name == "postgresql" else "CHAR(32)"
    made = "TIMESTAMP" if engine.dialect.name == "postgresql" else "DATETIME"
    make_by_hand(engine, f"made {made}, id {kind} NULL UNIQUE")
    assert finished(url, "--scheme", "uuid", "--node", "9")[::2] == (0, "")
    [stored] = ids_of(engine)
    assert len(str(stored)) == (36 if kind == "UUID" else 32)
    assert KINDS["uuid"].read(UUID(str(stored))).time == BEGIN
    with engine.connect() as connection:  # as their fields read it
        assert connection.execute(sa.select(sa.column("id", sa.Uuid())).select_from(sa.text("orders"))).scalar()
    verify = [sys.executable, "-m", "mintage", "verify", url, "--table", "orders", "--column", "id"]
    assert subprocess.run([*verify, "--scheme", "uuid"], capture_output=True, check=False).returncode == 0


@on_sqlite
def test_partial_unique_index_is_not_enough(url: str, engine: sa.Engine) -> None:
    make_by_hand(engine, "made DATETIME, id BIGINT")
    for condition in ("number > 5", "made IS NOT NULL"):
        with engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE UNIQUE INDEX part ON orders (id) WHERE {condition}")
        assert "has no unique index" in finished(url, *SNOWFLAKE)[2]
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP INDEX part")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE UNIQUE INDEX whole ON orders (id) WHERE id IS NOT NULL")
    assert finished(url, *SNOWFLAKE)[0] == 0


def test_names_that_need_quotes_are_filled(url: str, engine: sa.Engine) -> None:
    table = sa.Table(
        "Order % Items",
        sa.MetaData(),
        sa.Column("select", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("Made At", sa.DateTime()),
        sa.Column("order", sa.BigInteger()),
    )
    with engine.begin() as connection:
        table.drop(connection, checkfirst=True)
        table.create(connection)
        connection.execute(table.insert(), {"select": 1, "Made At": BEGIN.replace(tzinfo=None)})
    words = ["--table", "Order % Items", "--time-column", "Made At", "--id-column", "order", *SNOWFLAKE]
    err = finished(url, *words)[2]
    with engine.begin() as connection:
        connection.execute(sa.text(err.partition("create one: ")[2]))
    assert finished(url, *words)[::2] == (0, "")
    with engine.begin() as connection:
        table.drop(connection)


def test_generated_column_and_view_are_refused(url: str, engine: sa.Engine) -> None:
    made = "TIMESTAMP" if engine.dialect.name == "postgresql" else "DATETIME"
    stored = "STORED" if engine.dialect.name != "sqlite" else "VIRTUAL"
    make_by_hand(engine, f"made {made}, plain BIGINT, id BIGINT GENERATED ALWAYS AS (plain) {stored} UNIQUE")
    assert "is generated by the database" in finished(url, *SNOWFLAKE)[2]
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE VIEW recent AS SELECT number, made, plain FROM orders")
    code, _, err = finished(url, *SNOWFLAKE, "--table", "recent", "--id-column", "plain", "--key", "number")
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP VIEW recent")
    assert (code, err.count("\n")) == (2, 1)


@on_sqlite
def test_metabyte_of_sno_is_written(url: str, engine: sa.Engine) -> None:
    table = make_table(engine, sa.String(16), [BEGIN])
    assert finished(url, "--scheme", "sno", "--node", "7", "--meta", "42")[::2] == (0, "")
    assert sno.ID.parse(rows_of(engine, table)[0].id).meta == 42
    assert "meta belongs to sno, not to ulid" in finished(url, "--scheme", "ulid", "--node", "7", "--meta", "1")[2]
    assert finished(url, "--scheme", "sno", "--node", "7", "--meta", "256")[2].count("\n") == 1
