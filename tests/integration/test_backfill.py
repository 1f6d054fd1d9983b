"""``mintage backfill`` on real databases: killed at any moment, it leaves nothing half done, and no ID comes twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from mintage import sno, snowflake

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

BEGIN = datetime(2020, 1, 1, 12, tzinfo=UTC)
NODE = 1023
TWICE = 4_096 + 500
"""Rows of one millisecond: more than it has numbers."""


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database with nothing in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shop.db'}"
    server = request.getfixturevalue(request.param)
    return (
        sa.make_url(server.url if hasattr(server, "url") else server)
        .set(query={})
        .render_as_string(hide_password=False)
    )


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    drivers = {"postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql", "mysql": "mysql+pymysql"}
    parsed = sa.make_url(url)
    made = sa.create_engine(parsed.set(drivername=drivers.get(parsed.drivername, parsed.drivername)))
    yield made
    with made.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS orders"))
    made.dispose()


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
    words = ["--table", "orders", "--time-column", "made", "--id-column", "id", "--node", str(NODE), *options]
    command = [sys.executable, "-m", "mintage", "backfill", url, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(url: str, *options: str) -> tuple[int, str, str]:
    process = started(url, *options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def rows_of(engine: sa.Engine, table: sa.Table) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(sa.select(table).order_by(table.c.number)))


def test_killed_again_and_again_it_gives_each_row_one_id_of_its_time(url: str, engine: sa.Engine) -> None:
    chance = random.Random(7)
    times = [BEGIN + timedelta(milliseconds=chance.randrange(2_000)) for _ in range(3_000)] + [BEGIN] * TWICE
    chance.shuffle(times)
    table = make_table(engine, sa.BigInteger(), times)
    kept = snowflake.Generator(node=5).new()
    with engine.begin() as connection:
        connection.execute(table.update().where(table.c.number == 17).values(id=kept))
    kills, extra = 0, len(times)
    while True:
        with started(url, "--scheme", "snowflake", "--batch", "97") as process:
            lines = chance.randrange(1, 25)
            assert process.stdout
            seen = [line for line, _ in zip(process.stdout, range(lines), strict=False)]
            if len(seen) < lines:
                assert process.wait(60) == 0
                break
            process.send_signal(signal.SIGKILL)
        kills += 1
        if kills < 3:  # others go on inserting, old rows too
            with engine.begin() as connection:
                connection.execute(table.insert(), [{"number": extra, "made": BEGIN.replace(tzinfo=None)}])
            extra += 1
    assert kills > 2
    rows = rows_of(engine, table)
    assert len({row.id for row in rows}) == len(rows) == len(times) + 2
    assert rows[17].id == kept
    late = 0
    for row in rows:
        if row.number != 17:
            parts = snowflake.DEFAULT.parse(row.id)
            assert parts.node == NODE
            off = parts.time - row.made.replace(tzinfo=UTC)
            assert timedelta(0) <= off <= timedelta(milliseconds=3)
            late += off > timedelta(0)
    assert late >= TWICE - 4_096
    assert finished(url, "--scheme", "snowflake") == (0, "done: 0 rows have an ID now\n", "")


@pytest.mark.parametrize("kind", [sa.LargeBinary(10), sa.String(16)], ids=["bytes", "text"])
def test_sno_ids_are_of_the_time_of_their_rows(url: str, engine: sa.Engine, kind: Any) -> None:
    if engine.dialect.name in {"mysql", "mariadb"} and isinstance(kind, sa.LargeBinary):
        kind = sa.BINARY(10)
    times: list[datetime | None] = [BEGIN + timedelta(milliseconds=n // 3) for n in range(500)]
    table = make_table(engine, kind, times)
    code, out, err = finished(url, "--scheme", "sno", "--batch", "60")
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
def test_a_time_that_no_id_can_have_is_said_before_anything_is_written(
    url: str, engine: sa.Engine, time: datetime | None, said: str
) -> None:
    table = make_table(engine, sa.BigInteger(), [BEGIN, BEGIN, BEGIN, time, BEGIN])
    code, out, err = finished(url, "--scheme", "snowflake", "--batch", "1")
    assert code == 65
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert all(row.id is None for row in rows_of(engine, table))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--table", "nothing"], "there is no table 'nothing'"),
        (["--time-column", "born"], "has no column 'born': it has number, made, id"),
        (["--id-column", "number_2"], "has no column 'number_2'"),
        (["--node", "1024"], "1024"),
        (["--layout", "nothing"], "is no layout"),
        (["--scheme", "sno", "--layout", "twitter"], "belongs to snowflake"),
        (["--id-column", "made"], "has no unique index"),
    ],
)
def test_wrong_words_are_one_sentence(url: str, engine: sa.Engine, options: list[str], said: str) -> None:
    make_table(engine, sa.BigInteger(), [BEGIN])
    code, out, err = finished(url, "--scheme", "snowflake", *options)
    assert code in {2, 64, 65, 78}
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_without_a_unique_index_it_says_how_to_make_one(url: str, engine: sa.Engine) -> None:
    make_table(engine, sa.BigInteger(), [BEGIN], is_unique=False)
    code, _, err = finished(url, "--scheme", "snowflake")
    assert code == 2
    with engine.begin() as connection:
        connection.execute(sa.text(err.partition(": CREATE")[1].lstrip(": ") + err.partition(": CREATE")[2]))
    assert finished(url, "--scheme", "snowflake")[0] == 0


@pytest.mark.parametrize(
    "wrong", ["nothing", "oracle://x", "sqlite:////nowhere/at/all.db", "postgresql://127.0.0.1:1/x"]
)
def test_a_database_that_is_none_is_one_sentence(wrong: str) -> None:
    code, out, err = finished(wrong, "--scheme", "snowflake")
    assert code
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
