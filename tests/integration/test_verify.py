"""Tests of ``mintage verify``: errors in a column of any size and source are found exactly."""

from __future__ import annotations

import io
import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from mintage import inspect, sno, snowflake, ulid, uuid
from mintage.cli import main, screen
from mintage.errors import ParseError
from mintage.formats.catalogue import write_layout
from mintage.formats.kinds import KINDS
from mintage.tables.duplicates import MAX_EXAMPLES, DuplicateFinder
from mintage.tables.sources import BATCH_ROWS, MAX_LINE_CHARACTERS, read_lines
from tests.helpers.databases import DATABASES, engine_of
from tests.helpers.processes import HEEDING_CTRL_C

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mintage.formats.kinds import Kind

Verified = tuple[int, dict[str, Any]]


@pytest.fixture
def found(capsys: pytest.CaptureFixture[str]) -> Callable[..., Verified]:
    """Return the exit code of a command line, and its findings."""

    def run(*words: object) -> Verified:
        code = main(["verify", *map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, json.loads(out) if out else {"error": err}

    return run


def texts(kind: Kind, count: int) -> list[str]:
    """Return different IDs; those of schemes that sort by time increase."""
    if kind.is_text:
        made = [str(kind.new()) for _ in range(count)]
    else:
        module = kind.module
        with module.Generator() as generator:
            made = [str(each) for each in generator.batch(count)]
    return sorted(set(made), key=lambda text: (len(text), text))


def written(directory: Path, lines: Sequence[str], name: str = "ids.txt") -> Path:
    path = directory / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_column_of_new_ids_has_no_findings(kind: Kind, tmp_path: Path, found: Callable[..., Verified]) -> None:
    ids = texts(kind, 1000)
    code, report = found(written(tmp_path, ids), "--scheme", kind.name, *(["--sorted"] if kind.has_time else []))
    assert (code, report["rows"], report["ids"], report["found"]) == (0, len(ids), len(ids), False)
    assert report["duplicates"] == {"count": 0, "examples": []}
    assert (report["outside_the_window"] is None) == (not kind.has_time)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_each_finding_names_its_row(kind: Kind, tmp_path: Path, found: Callable[..., Verified]) -> None:
    ids = texts(kind, 1000)
    lines = [*ids, "", ids[6], "bogus?", ids[0], ids[6]]
    code, report = found(written(tmp_path, lines), "--scheme", kind.name)
    size = len(ids)
    assert (code, report["rows"], report["ids"], report["empty"]) == (1, size + 5, size + 3, 1)
    assert report["duplicates"] == {
        "count": 3,
        "examples": [
            {"id": ids[6], "rows": [7, size + 2, size + 5], "times": 3},
            {"id": ids[0], "rows": [1, size + 4], "times": 2},
        ],
    }
    assert report["unreadable"]["count"] == 1
    assert report["unreadable"]["examples"][0] | {"error": ""} == {"row": size + 3, "value": "bogus?", "error": ""}
    if kind.has_time:
        assert [each["row"] for each in report["out_of_order"]["examples"]] == [size + 2, size + 4]


def test_duplicates_in_distant_batches_are_found(tmp_path: Path, found: Callable[..., Verified]) -> None:
    with sno.Generator() as generator:
        ids = [str(each) for each in generator.batch(5 * BATCH_ROWS // 2)]
    last = len(ids) - 1
    ids[last], ids[last - 1], ids[BATCH_ROWS] = ids[0], ids[BATCH_ROWS - 1], ids[BATCH_ROWS - 1]
    code, report = found(written(tmp_path, ids), "--scheme", "sno")
    assert code == 1
    assert report["duplicates"] == {
        "count": 3,
        "examples": [
            {"id": ids[BATCH_ROWS], "rows": [BATCH_ROWS, BATCH_ROWS + 1, last], "times": 3},
            {"id": ids[0], "rows": [1, last + 1], "times": 2},
        ],
    }


@pytest.mark.parametrize("limit", [10**9, 120])
def test_result_does_not_depend_on_the_memory_limit(limit: int) -> None:
    chance = random.Random(5)
    numbers = [chance.randrange(30_000) for _ in range(20_000)]
    numbers[500:3_000] = [7] * 2_500  # more of one ID than are held at once
    with DuplicateFinder(8, limit) as finder:
        for at in range(0, len(numbers), 6_000):
            part = numbers[at : at + 6_000]
            finder.add(b"".join(each.to_bytes(8, "big") for each in part), range(at + 1, at + len(part) + 1))
        count, first = finder.find()
    times = Counter(numbers)
    assert count == len(numbers) - len(times)
    seen: set[int] = set()
    again: dict[int, int] = {}
    for row, number in enumerate(numbers, 1):
        if number in seen:
            again.setdefault(number, row)
        seen.add(number)
    assert [(each.row, int.from_bytes(each.key, "big")) for each in first] == [
        (row, number) for number, row in again.items()
    ][:MAX_EXAMPLES]
    for each in first:
        number = int.from_bytes(each.key, "big")
        assert each.times == times[number]
        assert each.rows == [row for row, one in enumerate(numbers, 1) if one == number][:MAX_EXAMPLES]


def test_lower_memory_limit_means_more_files(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = tempfile.TemporaryFile

    def counted(**options: Any) -> Any:
        made.append(1)
        return real(**options)

    monkeypatch.setattr(tempfile, "TemporaryFile", counted)
    for limit, least, most in ((10**6, 128, 128), (100, 500, 14_000)):
        made.clear()
        with DuplicateFinder(8, limit) as finder:
            finder.add(b"".join(each.to_bytes(8, "big") for each in range(12_000)), range(12_000))
            assert finder.find() == (0, [])
        assert least <= len(made) <= most


_FULL = """
from mintage.tables import duplicates as module
from mintage.tables.duplicates import DuplicateFinder
module.HASH_BITS = 0  # one file for all
limit, width = DuplicateFinder.limit(128 << 20, WIDTH), WIDTH
with DuplicateFinder(width, limit) as finder:
    for at in range(0, limit, 50_000):
        rows = range(at, min(at + 50_000, limit))
        finder.add(b"".join(row.to_bytes(width, "big") for row in rows), rows)
    assert finder.find() == (0, [])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(limit, int(peak.split()[1]) >> 10)
"""


@pytest.mark.parametrize("width", [8, 10, 16, 26])
def test_buffered_ids_fit_into_the_memory_limit(width: int) -> None:
    script = _FULL.replace("WIDTH", str(width))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    limit, peak = map(int, done.stdout.split())
    assert limit > 300_000
    assert peak < 128


def test_verify_prints_the_memory_and_disk_it_uses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [str(sno.new())])
    assert main(["verify", str(path), "--scheme", "sno", "--memory", "1GB", "--directory", str(tmp_path)]) == 0
    assert capsys.readouterr().err == f"uses at most 1,024 MB of memory, and 18 bytes a row in {tmp_path}\n"


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL, "error"])
def test_no_temporary_file_remains(way: object, tmp_path: Path) -> None:
    with sno.Generator() as generator:
        lines = generator.batch(2 * BATCH_ROWS).to_lines()
    words = ["verify", "-", "--scheme", "sno", "--directory", str(tmp_path), "--format"]
    command = [*HEEDING_CTRL_C, *words, "csv" if way == "error" else "text", "--column", "id"]
    command = command if way == "error" else command[:-2]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin
    assert process.stderr
    process.stdin.write(b"id\n" + lines)
    process.stdin.flush()
    assert process.stderr.readline().startswith(b"uses at most 256 MB")
    while way != "error" and not _holds_files(process.pid, tmp_path):
        assert process.poll() is None
    if isinstance(way, signal.Signals):
        process.send_signal(way)
    else:
        process.stdin.write(b'"' + b"x" * 200_000 + b'"\n')
    _, err = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGKILL: -9}.get(way, 65)  # type: ignore[call-overload]
    assert b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def _holds_files(pid: int, directory: Path) -> bool:
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            if os.readlink(each).startswith(str(directory)):
                return True
    return False


# --- order, layout, window ----------------------------------------------------------------------------------------


def test_disorder_is_a_finding_only_if_order_is_requested(tmp_path: Path, found: Callable[..., Verified]) -> None:
    path = written(tmp_path, ["100", "300", "200", "200", "400", "1"])
    code, report = found(path, "--scheme", "snowflake")
    assert (code, report["duplicates"]["count"]) == (1, 1)
    path = written(tmp_path, ["100", "300", "200", "400", "1"])
    disorder = {
        "count": 2,
        "examples": [{"row": 3, "id": "200", "after": "300"}, {"row": 5, "id": "1", "after": "400"}],
    }
    assert found(path, "--scheme", "snowflake")[1]["out_of_order"] == disorder
    assert found(path, "--scheme", "snowflake")[0] == 0
    code, report = found(path, "--scheme", "snowflake", "--sorted")
    assert (code, report["out_of_order"]) == (1, disorder)


def test_disorder_between_two_batches_is_seen(tmp_path: Path, found: Callable[..., Verified]) -> None:
    lines = [f"{number:07}" for number in range(5_000_000, 5_000_000 + BATCH_ROWS)]
    code, report = found(written(tmp_path, [*lines, "1", "2"]), "--scheme", "snowflake", "--sorted")
    assert (code, report["ids"]) == (1, BATCH_ROWS + 2)
    assert [each["row"] for each in report["out_of_order"]["examples"]] == [BATCH_ROWS + 1]
    assert report["out_of_order"]["count"] == 1


@pytest.mark.parametrize(("layout", "bits"), [("twitter", 63), ("discord", 64)])
def test_integers_beyond_a_layout_are_reported(
    layout: str, bits: int, tmp_path: Path, found: Callable[..., Verified]
) -> None:
    path = tmp_path / "ids.parquet"
    for numbers, kind in (([5, 1 << 63, 6], pa.uint64()), ([5, -1, 6], pa.int64())):
        pq.write_table(pa.table({"id": pa.array(numbers, kind)}), path)
        until = ("--column", "id", "--until", "2080-01-01")
        code, report = found(path, "--scheme", "snowflake", "--layout", layout, *until)
        is_within = numbers[1] == 1 << 63 and bits == 64
        assert code == 1
        outside = report["outside_the_window" if is_within else "outside_their_layout"]
        assert [each["row"] for each in outside["examples"]] == [2]


def test_layout_is_written_as_for_pools(tmp_path: Path, found: Callable[..., Verified]) -> None:
    layout = snowflake.Layout("time:33 node:8 sequence:12", epoch_ms=1_700_000_000_000, unit_ms=10)
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    ids = [layout.min_at(begin), layout.max_at(begin + timedelta(days=1)), 1 << 53]
    words = ("--scheme", "snowflake", "--layout", write_layout(layout), "--until", "2024-01-02")
    code, report = found(written(tmp_path, list(map(str, ids))), *words)
    assert code == 1
    assert [each["row"] for each in report["outside_their_layout"]["examples"]] == [3]
    assert report["outside_the_window"]["count"] == 0


@pytest.mark.parametrize("kind", [each for each in KINDS.values() if each.has_time], ids=lambda each: each.name)
def test_id_outside_the_window_is_reported(kind: Kind, tmp_path: Path, found: Callable[..., Verified]) -> None:
    begin, end = datetime(2020, 3, 1, tzinfo=UTC), datetime(2020, 3, 2, tzinfo=UTC)
    second = timedelta(seconds=1)
    inside = [kind.min_at(begin), kind.max_at(end)]
    outside = [kind.max_at(begin - second), kind.min_at(end + second)]
    tomorrow = kind.min_at(datetime.now(UTC) + timedelta(days=1))
    path = written(tmp_path, list(map(str, [*inside, *outside])))
    words = (path, "--scheme", kind.name)
    code, report = found(*words, "--from", "2020-03-01", "--until", "2020-03-02T00:00:00Z")
    assert code == 1
    assert [each["row"] for each in report["outside_the_window"]["examples"]] == [3, 4]
    assert found(*words)[0] == 0
    path.write_text(f"{inside[0]}\n{tomorrow}\n")
    code, report = found(*words)
    assert code == 1
    assert report["outside_the_window"] == {"count": 1, "examples": [{"row": 2, "id": str(tomorrow)}]}


def test_uuids_of_other_versions_are_exempt_from_time_checks(tmp_path: Path, found: Callable[..., Verified]) -> None:
    with uuid.Generator(version=4) as of_4, uuid.Generator(version=7) as of_7:
        ids = [str(each) for _ in range(50) for each in (of_4.new(), of_7.new())]
    code, report = found(written(tmp_path, ids), "--scheme", "uuid", "--sorted", "--from", "2024-01-01")
    assert (code, report["ids"], report["out_of_order"]["count"]) == (0, 100, 0)


# --- sources of columns -------------------------------------------------------------------------------------------


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    with engine_of(request.param, request, tmp_path) as made:
        yield made


def _forms(dialect: str) -> list[tuple[str, Any, list[Any]]]:
    """Return IDs of many schemes, and columns in which they are stored."""
    with sno.Generator() as of_sno, snowflake.Generator(node=3) as of_snowflake:
        snos, numbers = of_sno.batch(3_000).tolist(), of_snowflake.batch(3_000).tolist()
    with ulid.Generator() as of_ulid, uuid.Generator() as of_uuid:
        ulids, uuids = of_ulid.batch(3_000).tolist(), [UUID(str(each)) for each in of_uuid.batch(3_000)]
    binary = sa.BINARY(10) if dialect in {"mysql", "mariadb"} else sa.LargeBinary(10)
    return [
        ("snowflake", sa.BigInteger(), numbers),
        ("sno", binary, [bytes(each) for each in snos]),
        ("ulid", sa.String(26), list(map(str, ulids))),
        *([("uuid", sa.Uuid(), uuids)] if dialect == "postgresql" else []),
        *([("snowflake", sa.Numeric(20), numbers)] if dialect != "sqlite" else []),  # which it would round
    ]


def test_database_column_of_any_storage_form_is_read(engine: sa.Engine, found: Callable[..., Verified]) -> None:
    url = engine.url.render_as_string(hide_password=False)
    for scheme, kind, ids in _forms(engine.dialect.name):
        table = sa.Table(
            "verified",
            sa.MetaData(),
            sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("id", kind),
        )
        engine.dispose()  # statements that are prepared for the column before
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE IF EXISTS verified"))
            table.create(connection)
            rows = [{"number": at, "id": each} for at, each in enumerate([*ids, None])]
            connection.execute(table.insert(), rows)
        words = (url, "--table", "verified", "--column", "id", "--scheme", scheme, "--order-by", "number", "--sorted")
        code, report = found(*words)
        assert (code, report["rows"], report["ids"], report["empty"]) == (0, 3_001, 3_000, 1), (scheme, report)
        with engine.begin() as connection:
            connection.execute(table.insert(), [{"number": 3_001, "id": ids[1]}])
        code, report = found(*words)
        assert (code, report["out_of_order"]["count"]) == (1, 1), scheme
        assert [each["rows"] for each in report["duplicates"]["examples"]] == [[2, 3_002]], scheme


@pytest.mark.parametrize("scheme", ["uuid", "ulid"])
@pytest.mark.parametrize("form", [lambda one: one.hex, str, lambda one: str(one).upper()], ids=["32", "36", "upper"])
def test_uuids_in_the_text_of_other_libraries_are_read(
    scheme: str, form: Callable[[UUID], str], tmp_path: Path, found: Callable[..., Verified]
) -> None:
    ids = [UUID(bytes=bytes(KINDS[scheme].new())) for _ in range(50)]
    code, report = found(written(tmp_path, [*map(form, ids), form(ids[3])]), "--scheme", scheme)
    assert (code, report["ids"], report["unreadable"]["count"]) == (1, 51, 0)
    assert [(each["id"], each["rows"]) for each in report["duplicates"]["examples"]] == [
        (str(KINDS[scheme].read(ids[3])), [4, 51])
    ]


def test_rows_of_equal_times_are_read_in_the_order_of_their_keys(
    engine: sa.Engine, found: Callable[..., Verified]
) -> None:
    shop = sa.Column("shop", sa.Integer)
    made, number = sa.Column("made", sa.Integer), sa.Column("number", sa.Integer, primary_key=True, autoincrement=False)
    table = sa.Table("verified", sa.MetaData(), shop, made, number, sa.Column("id", sa.BigInteger))
    keys = list(range(200))
    random.Random(5).shuffle(keys)
    rows = [{"shop": key // 100, "made": key // 50, "number": key, "id": 2**60 + key} for key in keys]
    engine.dispose()
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS verified"))
        table.create(connection)
        connection.execute(table.insert(), rows)
    url = engine.url.render_as_string(hide_password=False)
    for order in ("made", "shop,made", "made,number"):
        words = ("--table", "verified", "--column", "id", "--scheme", "snowflake", "--sorted", "--order-by", order)
        assert found(url, *words)[0] == 0, order
    assert "has no column 'nothing'" in found(url, *words[:-1], "made,nothing")[1]["error"]


def test_large_integers_of_sqlite_are_not_rounded(tmp_path: Path, found: Callable[..., Verified]) -> None:
    import sqlite3

    path = tmp_path / "large.db"
    with sqlite3.connect(path) as large:
        large.execute("CREATE TABLE t (id NUMERIC(20, 0))")
        large.executemany("INSERT INTO t VALUES (?)", [(1 << 60 | at,) for at in range(100)])
    large.close()
    words = (f"sqlite:///{path}", "--table", "t", "--column", "id", "--scheme", "snowflake")
    code, report = found(*words)
    assert (code, report["ids"], report["duplicates"]["count"]) == (0, 100, 0)


def test_invalid_text_in_a_database_is_a_finding(tmp_path: Path, found: Callable[..., Verified]) -> None:
    import sqlite3

    path = tmp_path / "odd.db"
    with sqlite3.connect(path) as odd:
        odd.execute("CREATE TABLE t (id TEXT)")
        odd.execute("INSERT INTO t VALUES (CAST(x'fffe41' AS TEXT)), (1.5), (x'00'), (-3), (7)")
    odd.close()
    code, report = found(f"sqlite:///{path}", "--table", "t", "--column", "id", "--scheme", "snowflake")
    assert (code, report["unreadable"]["count"], report["ids"]) == (1, 4, 1)


def test_parquet_column_named_like_a_part_of_another_is_read(tmp_path: Path, found: Callable[..., Verified]) -> None:
    path = tmp_path / "ids.parquet"
    pq.write_table(pa.table({"shop": [{"id": 17}, {"id": 18}], "shop.id": [19, 19]}), path)
    assert found(path, "--column", "shop.id", "--scheme", "snowflake")[1]["duplicates"]["count"] == 1


@pytest.mark.parametrize(
    ("scheme", "column"),
    [
        ("sno", lambda ids: pa.array(map(str, ids))),
        ("sno", lambda ids: pa.array([bytes(each) for each in ids], pa.binary(10))),
        ("sno", lambda ids: pa.array(list(map(str, ids))).dictionary_encode()),
        ("snowflake", lambda ids: pa.array(ids, pa.int64())),
        ("snowflake", lambda ids: pa.array(ids, pa.uint64())),
    ],
    ids=["text", "bytes", "dictionary", "int64", "uint64"],
)
def test_parquet_column_of_any_storage_form_is_read(
    scheme: str, column: Callable[[Any], pa.Array], tmp_path: Path, found: Callable[..., Verified]
) -> None:
    with KINDS[scheme].module.Generator() as generator:
        ids = generator.batch(40_000).tolist()
    path = tmp_path / "ids.parquet"
    pq.write_table(pa.table({"other": [None] * 40_001, "id": column([*ids, ids[17]])}), path)
    code, report = found(path, "--column", "id", "--scheme", scheme)
    assert (code, report["rows"], report["unreadable"]["count"]) == (1, 40_001, 0)
    assert [each["rows"] for each in report["duplicates"]["examples"]] == [[18, 40_001]]


def test_byte_order_mark_is_no_part_of_the_first_id(tmp_path: Path, found: Callable[..., Verified]) -> None:
    path = tmp_path / "ids.txt"
    path.write_bytes(b"\xef\xbb\xbf661901436522590208\r\n859708588036190208\r\n")
    assert found(path, "--scheme", "snowflake")[0] == 0
    path.write_text("661901436522590208\n", encoding="utf-16")
    assert "the text is in UTF-16; save it in UTF-8" in found(path, "--scheme", "snowflake")[1]["error"]


@pytest.mark.parametrize("text", ["6.61901E+17", "6,61901E+17", "661901436522590208.0"])
def test_rounded_integer_is_reported_as_one(text: str, tmp_path: Path, found: Callable[..., Verified]) -> None:
    code, report = found(written(tmp_path, [text]), "--scheme", "snowflake")
    assert code == 1
    assert "its last digits are lost" in report["unreadable"]["examples"][0]["error"]
    with pytest.raises(ParseError, match="its last digits are lost"):
        inspect(text)


def test_csv_column_is_found_by_name(tmp_path: Path, found: Callable[..., Verified]) -> None:
    ids = texts(KINDS["xid"], 30_000)
    lines = ["\ufeffname,id", *(f'"a, ""b""\n{at}",{each}' for at, each in enumerate(ids)), f"again,{ids[2]}", "short"]
    code, report = found(written(tmp_path, lines, "ids.csv"), "--column", "id", "--scheme", "xid")
    assert (code, report["rows"], report["empty"]) == (1, len(ids) + 2, 1)
    assert [each["rows"] for each in report["duplicates"]["examples"]] == [[3, len(ids) + 1]]


@pytest.mark.parametrize(
    ("rows", "code", "said"),
    [
        (["1,{0}", '"2,{0}', "3,{0}"], 65, "the row that begins in line 3 is not CSV: unexpected end of data"),
        (["1,{0}", r'"a\"b",{0}', "3,{0}"], 65, "the row that begins in line 3 is not CSV: ',' expected"),
        (["1,{0}", "a, b,{0}"], 65, "row 2 has 3 fields, and the header 2"),
        (["1,{0},", "2,{0},,"], 1, ""),
    ],
    ids=["unclosed", "escaped", "comma", "trailing"],
)
def test_csv_with_hidden_rows_is_an_error(
    rows: list[str], code: int, said: str, tmp_path: Path, found: Callable[..., Verified]
) -> None:
    path = written(tmp_path, ["n,id", *(row.format(sno.new()) for row in rows)], "ids.csv")
    path.write_text(path.read_text() + f"9,{sno.new()}\n" * (4000 if code == 65 else 2))
    status, report = found(path, "--column", "id", "--scheme", "sno")
    assert status == code
    assert said in report.get("error", "")


def test_duplicate_column_names_are_refused(tmp_path: Path, found: Callable[..., Verified]) -> None:
    csv = written(tmp_path, ["id,n,id", f"{sno.new()},1,{sno.new()}"], "ids.csv")
    parquet = tmp_path / "ids.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([str(sno.new())])] * 2, ["id", "id"]), parquet)
    for path in (csv, parquet):
        code, report = found(path, "--column", "id", "--scheme", "sno")
        assert code == 2
        assert "there are 2 columns 'id'" in report["error"]


def test_standard_input_is_a_source(monkeypatch: pytest.MonkeyPatch, found: Callable[..., Verified]) -> None:
    lines = b"5\r\n  6 \n\n5"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines)))
    code, report = found("-", "--scheme", "snowflake")
    assert (code, report["rows"], report["ids"], report["empty"]) == (1, 4, 3, 1)
    assert [each["rows"] for each in report["duplicates"]["examples"]] == [[1, 4]]


# --- progress -----------------------------------------------------------------------------------------------------


@pytest.fixture
def terminal() -> Iterator[tuple[int, Callable[[], str]]]:
    """Return a terminal, and its current content."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def show() -> str:
        while select.select([ours], [], [], 0)[0]:
            shown.extend(os.read(ours, 1 << 16))
        return shown.decode()

    yield theirs, show
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("has_rich", [True, False], ids=["rich", "plain"])
@pytest.mark.parametrize("total", [1000, 0], ids=["known", "unknown"])
def test_terminal_shows_count_and_rate(
    has_rich: bool, total: int, terminal: tuple[int, Callable[[], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, show = terminal
    clock = iter((100.0, 100.5, 102.0, 102.01))
    monkeypatch.setattr(screen, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    with os.fdopen(os.dup(theirs), "w") as stderr, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        with screen.progress(total, "rows", on_output=False) as report:
            report(10)
            assert show() == ""
            report(500)
            report(501)
        stderr.flush()
    assert ("500 of 1,000 rows, 250/s" if total else "500 rows, 250/s") in show()
    assert "501" not in show()


def test_rows_printed_beside_the_bar_reach_standard_output(
    terminal: tuple[int, Callable[[], str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter((100.0, 102.0))
    monkeypatch.setattr(screen, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with os.fdopen(os.dup(terminal[0]), "w") as stderr, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        with screen.progress(0, "namespaces") as report:
            report(10)
            print("orders")
    assert capsys.readouterr().out == "orders\n"


def test_terminal_shows_the_rows_read_from_a_pipe(terminal: tuple[int, Callable[[], str]], tmp_path: Path) -> None:
    theirs, show = terminal
    with sno.Generator() as generator:
        lines = generator.batch(30_000).to_lines()
    command = [sys.executable, "-m", "mintage", "verify", "-", "--scheme", "sno", "--directory", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs) as process:
        assert process.stdin
        is_shown = False
        for _ in range(150):  # of 30,000 rows each: seconds
            process.stdin.write(lines)
            if is_shown := " rows, " in show():
                break
        process.stdin.close()
    assert is_shown
    assert "rows; something is wrong" in show()
    done = subprocess.run([*command[:4], os.devnull, *command[5:]], capture_output=True, check=True)
    assert done.stderr.count(b"\n") == 1  # what it uses


# --- hostile input ------------------------------------------------------------------------------------------------


def test_empty_file_has_no_findings(tmp_path: Path, found: Callable[..., Verified]) -> None:
    code, report = found(written(tmp_path, []), "--scheme", "sno")
    assert (code, report["rows"], report["found"]) == (0, 0, False)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_garbage_is_reported_and_shortened(kind: Kind, tmp_path: Path, found: Callable[..., Verified]) -> None:
    good = texts(kind, 1)[0]
    path = tmp_path / "garbage"
    garbage = random.Random(3).randbytes(200_000).replace(b"\n", b"")
    path.write_bytes(
        b"x" * 10_000_000 + b"\n" + good.encode() + b"\n" + garbage + b"\n\0\n\x1b[31m\n" + b"9" * 5_000_000
    )
    code, report = found(path, "--scheme", kind.name)
    assert (code, report["ids"], report["rows"]) == (1, 1, 6)
    assert [each["row"] for each in report["unreadable"]["examples"]] == [1, 3, 4, 5, 6]
    assert all(len(each["value"]) <= 43 and len(each["error"]) < 200 for each in report["unreadable"]["examples"])
    assert all(each["value"].isprintable() for each in report["unreadable"]["examples"])


def test_only_the_start_of_an_overlong_line_is_kept() -> None:
    stream = io.BytesIO(b"1\n" + b"x" * 10_000_000 + b"\n2\n" + b"y" * 10_000_000)
    lines = [line for batch in read_lines(stream) for line in batch]
    assert [line[:1] for line in lines] == ["1", "x", "2", "y"]
    assert max(map(len, lines)) <= MAX_LINE_CHARACTERS


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere.txt"], 74, "nowhere.txt: No such file or directory"),
        (["."], 74, ".: Is a directory"),
        (["\0"], 74, "is not the name of a file"),
        (["ids.txt", "--layout", "twitter"], 2, "--layout belongs to snowflake"),
        (["ids.txt", "--column", "id"], 2, "--column belongs to CSV"),
        (["ids.txt", "--table", "id"], 2, "belong to a database"),
        (["ids.txt", "--memory", "1MB"], 2, "at least 128MB"),
        (["ids.txt", "--memory", "lots"], 2, "is not a size"),
        (["ids.txt", "--from", "yesterday"], 2, "is not a time"),
        (["ids.txt", "--from", "2024-01-02", "--until", "2024-01-01"], 2, "after its end"),
        (["ids.txt", "--from", "1999-01-01"], 65, "1999-01-01"),
        (["ids.txt", "--directory", "/nowhere"], 74, "/nowhere: is not a directory"),
        (["ids.csv"], 2, "name the column"),
        (["ids.csv", "--column", "nothing"], 2, "there is no column 'nothing'"),
        (["ids.txt", "--format", "parquet", "--column", "id"], 65, "this is not a Parquet file"),
        (["-", "--format", "parquet", "--column", "id"], 2, "is read from a file"),
        (["sqlite:///nowhere.db", "--table", "t", "--column", "id"], 74, "nowhere.db: No such file"),
        (["sqlite:///ids.db", "--column", "id"], 2, "needs --table"),
        (["sqlite:///ids.db", "--table", "t", "--column", "id"], 2, "there is no table 't'"),
        (["nothing://x/y", "--table", "t", "--column", "id"], 2, "the URL does not name a database"),
        pytest.param(
            ["postgresql://127.0.0.1:1/x", "--table", "t", "--column", "id"],
            69,
            "the database: ",
            marks=pytest.mark.skipif(find_spec("psycopg") is None, reason="psycopg"),
        ),
    ],
)
def test_wrong_arguments_are_one_line(
    words: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, [str(sno.new())])
    written(tmp_path, ["number,id", f"1,{sno.new()}"], "ids.csv")
    written(tmp_path, [], "ids.db")
    before = sorted(tmp_path.iterdir())
    assert main(["verify", *words, "--scheme", "sno"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if not line.startswith("uses at most")]
    assert len(lines) == 1
    assert said in lines[0]
    assert sorted(tmp_path.iterdir()) == before


def test_order_of_ids_without_a_time_is_refused(tmp_path: Path, capsys: Any) -> None:
    assert main(["verify", str(written(tmp_path, ["x"])), "--scheme", "nanoid", "--sorted"]) == 65
    assert "do not sort by time" in capsys.readouterr().err
