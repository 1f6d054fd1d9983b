"""mintage.tables, used as a library: columns are verified and tables are backfilled without the command line."""

from __future__ import annotations

import io
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from mintage import open_store, sno, snowflake, uuid
from mintage.errors import ConfigError, FieldError, ParseError, StoreError
from mintage.tables import InputError
from mintage.tables.backfill import DATED_SCHEMES, NODE_SCHEMES, Dated, Filled, SequenceIntegers, Table, backfill
from mintage.tables.duplicates import DuplicateFinder
from mintage.tables.keys import Reader, kind_of
from mintage.tables.sources import connect, open_csv, open_parquet, open_table, open_text
from mintage.tables.verify import Check, verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEGIN = datetime(2020, 1, 1, 12, tzinfo=UTC)
NODE = 1023


@pytest.fixture
def connection() -> Iterator[Any]:
    with connect("sqlite://") as connection:
        yield connection


def orders(connection: Any, times: list[datetime | None], **options: Any) -> Table:
    """A table with a row for each time."""
    table = sa.Table(
        "orders",
        sa.MetaData(),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("made", sa.DateTime),
        sa.Column("id", sa.BigInteger, unique=True),
    )
    with connection.begin():
        table.create(connection)
        rows = [{"number": number, "made": time and time.replace(tzinfo=None)} for number, time in enumerate(times)]
        connection.execute(table.insert(), rows)
    return Table(connection, "orders", **{"time_column": "made", "id_column": "id", **options})


def ids_of(connection: Any) -> list[int | None]:
    with connection.begin():
        return list(connection.execute(sa.text("SELECT id FROM orders ORDER BY number")).scalars())


def test_the_library_imports_neither_argparse_nor_the_command_line() -> None:
    script = (
        "import sys, mintage.tables.verify, mintage.tables.backfill\n"
        "sys.exit(any(name in sys.modules for name in ('argparse', 'mintage.cli', 'rich', 'sqlalchemy', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0


# --- verify -------------------------------------------------------------------------------------------------------


def test_verify_reports_each_kind_of_mistake() -> None:
    ids = [snowflake.DEFAULT.min_at(BEGIN + timedelta(seconds=n)) for n in range(4)]
    batches: list[list[object]] = [[ids[1], ids[0], None], [ids[1], "ORD-17", -1], [str(ids[3])]]
    report = verify(batches, "snowflake", latest=BEGIN + timedelta(seconds=2), is_sorted=True)
    assert (report.rows, report.ids, report.empty, report.is_wrong) == (7, 4, 1, True)
    assert report.duplicates.examples == [{"id": str(ids[1]), "rows": [1, 4], "times": 2}]
    assert [each["value"] for each in report.unreadable.examples] == ["ORD-17"]
    assert [each["row"] for each in report.layout.examples] == [6]
    assert report.window.examples == [{"row": 7, "id": str(ids[3])}]
    assert report.disorder.examples == [{"row": 2, "id": str(ids[0]), "after": str(ids[1])}]
    assert report.as_dict()["outside_their_layout"]["count"] == 1


def test_disorder_is_counted_and_no_mistake_by_default() -> None:
    report = verify([[300, 200]], "snowflake")
    assert (report.disorder.count, report.disorder.is_mistake, report.is_wrong) == (1, False, False)


def test_ids_without_a_time_have_no_window_to_check() -> None:
    report = verify([["V1StGXR8_Z5jdHi6B-myT"]], "nanoid")
    assert not report.window.is_checked
    assert report.as_dict()["outside_the_window"] is None


def test_verify_reads_every_kind_of_source(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    ids = [str(each) for each in sno.Generator(partition=1).batch(50)]
    ids.append(ids[7])
    text, csv, parquet, database = (tmp_path / name for name in ("a.txt", "a.csv", "a.parquet", "a.db"))
    text.write_text("\n".join(ids))
    csv.write_text("\n".join(["number,id", *(f"{n},{each}" for n, each in enumerate(ids))]))
    pq.write_table(pa.table({"id": ids}), parquet)
    database.touch()
    with connect(f"sqlite:///{database}") as connection, connection.begin():
        connection.execute(sa.text("CREATE TABLE t (n INTEGER PRIMARY KEY, id TEXT)"))
        connection.execute(sa.text("INSERT INTO t (id) VALUES (:id)"), [{"id": each} for each in ids])
    for opened in (
        open_text(str(text)),
        open_text(io.BytesIO(text.read_bytes())),
        open_csv(str(csv), "id"),
        open_parquet(str(parquet), "id"),
        open_table(f"sqlite:///{database}", "t", "id", order_by="n"),
    ):
        with opened as source:
            report = verify(source, "sno")
        assert (report.rows, report.ids) == (51, 51)
        assert [each["rows"] for each in report.duplicates.examples] == [[8, 51]]


def test_a_source_knows_its_size_if_its_stream_does(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_bytes(b"17\n18\n")
    with open_text(str(path)) as source:
        assert (source.total, source.unit) == (6, "bytes")
        assert list(source.batches) == [["17", "18"]]
        assert source.position
        assert source.position() == 6
    with open_text(io.BytesIO(b"17\n")) as source:
        assert (source.total, source.unit, source.position) == (0, "rows", None)


def test_a_count_of_the_rows_is_asked_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    (tmp_path / "a.db").touch()
    with connect(url) as connection, connection.begin():
        connection.execute(sa.text("CREATE TABLE t (id TEXT)"))
        connection.execute(sa.text("INSERT INTO t VALUES ('1'), ('2')"))
    with open_table(url, "t", "id", is_counted=True) as source:
        assert source.total == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scheme": "frob"}, "the scheme is 'frob'; it must be sno, "),
        ({"scheme": "sno", "layout": snowflake.TWITTER}, "a layout belongs to snowflake, not to sno"),
        ({"scheme": "sno", "memory_bytes": 1 << 20}, "memory_bytes is 1048576; it must be 134217728"),
        (
            {"scheme": "sno", "earliest": BEGIN, "latest": BEGIN - timedelta(days=1)},
            "the window begins at 2020-01-01T12:00:00Z, after its end, 2019-12-31T12:00:00Z",
        ),
    ],
)
def test_wrong_arguments_of_a_check_are_input_errors(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Check(**arguments)


def test_a_window_without_a_time_zone_is_refused() -> None:
    with pytest.raises(FieldError, match="has no time zone"):
        verify([], "sno", earliest=BEGIN.replace(tzinfo=None))


def test_an_order_of_ids_without_a_time_is_refused() -> None:
    with pytest.raises(FieldError, match="do not sort by time"):
        verify([], "nanoid", is_sorted=True)


def test_a_missing_column_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no column 'id': it has 'a, b'"), open_csv(io.BytesIO(b"a,b"), "id"):
        pass
    with pytest.raises(OSError, match="No such file"), open_table(f"sqlite:///{tmp_path}/no.db", "t", "id"):
        pass


def test_a_file_that_is_not_parquet_is_refused() -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(ParseError, match="not a Parquet file"), open_parquet(io.BytesIO(b"PAR0"), "id"):
        pass


# --- keys and repeats ---------------------------------------------------------------------------------------------


def test_keys_are_equal_if_the_ids_are_equal() -> None:
    reader = Reader(kind_of("uuid"))
    one = uuid.Generator(node=5).new()
    forms = [str(one), bytes(one), one.as_uuid()]
    assert {reader.key(form) for form in forms} == {bytes(one)}
    assert reader.keys([bytes(one)] * 2) == reader.keys([str(one)] * 2) == bytes(one) * 2
    assert reader.keys([str(one), "no"]) is None
    assert reader.text(reader.key(one.as_uuid())) == str(one)


def test_repeats_list_at_most_ten_keys_and_ten_rows_of_each() -> None:
    with DuplicateFinder(width=1, limit=100) as finder:
        finder.add(bytes(range(20)) * 12, range(240))
        count, first = finder.find()
    assert count == 220
    assert [(each.row, each.key[0], len(each.rows), each.times) for each in first] == [
        (20 + n, n, 10, 12) for n in range(10)
    ]


# --- backfill -----------------------------------------------------------------------------------------------------


def test_backfill_gives_rows_ids_of_their_time(connection: Any) -> None:
    times: list[datetime | None] = [BEGIN + timedelta(seconds=n // 2) for n in range(10)]
    seen: list[tuple[int, int]] = []
    with Dated.open(orders(connection, times), "snowflake", node=NODE) as ids:
        assert backfill(ids, batch_rows=4, report=lambda *each: seen.append(each)) == Filled(10)
    assert seen == [(0, 10), (4, 10), (8, 10), (10, 10)]
    parts = [snowflake.DEFAULT.parse(each or 0) for each in ids_of(connection)]
    assert [each.time for each in parts] == times
    assert {each.node for each in parts} == {NODE}


def test_backfill_counts_ids_of_a_later_tick(connection: Any) -> None:
    layout = snowflake.Layout("time:32 sequence:2 node:6", epoch_ms=1_262_304_000_000, unit_ms=1000)
    with Dated.open(orders(connection, [BEGIN] * 10), "snowflake", layout=layout, node=33) as ids:
        assert backfill(ids) == Filled(10, late=6)


def test_a_second_run_fills_only_rows_without_an_id(connection: Any) -> None:
    table = orders(connection, [BEGIN] * 3)
    with Dated.open(table, "snowflake", node=NODE) as ids:
        backfill(ids)
    before = ids_of(connection)
    with Dated.open(table, "snowflake", node=NODE) as ids:
        assert backfill(ids) == Filled(0)
    assert ids_of(connection) == before


def test_a_store_leases_another_node_number_for_each_run(connection: Any, tmp_path: Path) -> None:
    table = orders(connection, [BEGIN])
    nodes: set[int] = set()
    for _ in range(2):
        with Dated.open(table, "snowflake", store=f"sqlite:{tmp_path / 'ids.db'}") as ids:
            assert backfill(ids) == Filled(1)
        nodes.update(snowflake.DEFAULT.parse(each or 0).node for each in ids_of(connection))
        with connection.begin():
            connection.execute(sa.text("UPDATE orders SET id = NULL"))
    assert len(nodes) == 2


def test_integers_follow_the_order_of_the_times(connection: Any, tmp_path: Path) -> None:
    table = orders(connection, [BEGIN, BEGIN - timedelta(days=2), BEGIN - timedelta(days=1)])
    reserved: list[range] = []
    ids = SequenceIntegers(table, "bills", partial(open_store, f"sqlite:{tmp_path / 'ids.db'}"), reserved.append)
    assert backfill(ids, batch_rows=2) == Filled(3)
    assert reserved == [range(1, 4)]
    assert ids_of(connection) == [3, 1, 2]


def test_a_row_without_a_time_is_refused_before_anything_is_written(connection: Any) -> None:
    table = orders(connection, [BEGIN, None])
    with Dated.open(table, "snowflake", node=NODE) as ids, pytest.raises(FieldError, match="row 1: its time is NULL"):
        backfill(ids)
    assert ids_of(connection) == [None, None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id_column": "nothing"}, "has no column 'nothing': it has number, made, id"),
        ({"id_column": "made"}, "column 'made' has no unique index.*CREATE UNIQUE INDEX orders_made ON orders"),
        ({"time_unit": "h"}, "time_unit is 'h'; it must be s, ms, us or ns"),
    ],
)
def test_wrong_arguments_of_a_table_are_input_errors(connection: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        orders(connection, [BEGIN], **options)


@pytest.mark.parametrize(
    ("scheme", "options", "message"),
    [
        ("nanoid", {"node": 1}, "nanoid IDs have no node number"),
        ("sno", {"node": 1}, "column 'id' is BIGINT, and sno IDs are bytes, UUID or str"),
        ("snowflake", {}, "no node number is given"),
        ("snowflake", {"node": 1, "store": "memory:"}, "give one of the two"),
    ],
)
def test_wrong_arguments_of_dated_ids_are_input_errors(
    connection: Any, scheme: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MINTAGE_STORE", raising=False)
    table = orders(connection, [BEGIN])
    with pytest.raises(InputError, match=message), Dated.open(table, scheme, **options):
        pass


def test_every_scheme_that_takes_a_node_number_can_be_backfilled() -> None:
    assert {"sno", "snowflake", "ulid"} <= set(NODE_SCHEMES) < set(DATED_SCHEMES)
    assert not {"nanoid", "cuid", "cuid2"} & set(DATED_SCHEMES)


def test_missing_driver_of_the_url_is_named_without_our_extra() -> None:
    with pytest.raises(ConfigError) as caught, connect("mysql+mysqlconnector://h/db"):
        pass
    # The package mysql is another driver.
    assert str(caught.value) == "mysql+mysqlconnector needs the module mysql: install its driver, or write mysql://…"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("file:c.db", "file:c.db: No such file or directory: add ?mode=rw&uri=true, or write a plain path"),
        ("c.db?uri=true", "c.db: No such file or directory"),
        ("file:c.db?mode=rw&uri=true", "the database: unable to open database file"),
    ],
)
def test_missing_file_of_sqlite_is_not_made(
    name: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((OSError, StoreError)) as caught, connect(f"sqlite:///{name}"):
        pass
    assert str(caught.value) == fault
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_fails_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the database: "), connect(f"sqlite:///{tmp_path}"):
        pass
    with pytest.raises(InputError, match="the URL does not name a database"), connect("nothing"):
        pass
