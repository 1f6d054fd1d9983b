"""Tests of the command ``mintage``, run as people and scripts run it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mintage
from mintage import locality, sno, snowflake, typeid, uuid
from mintage.cli import COMMANDS, load, main
from mintage.cli.screen import ago
from mintage.formats.kinds import KINDS, NAMES
from mintage.store import open_store
from tests.helpers.processes import HEEDING_CTRL_C

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MINTAGE = [sys.executable, "-m", "mintage"]
WITHOUT_RICH = "import sys; sys.modules['rich'] = None; from mintage.cli import main; sys.exit(main(sys.argv[1:]))"
CLEAN = {
    key: value
    for key, value in os.environ.items()
    if key not in {"PYTHONUNBUFFERED", "NO_COLOR", "COLUMNS", "MINTAGE_STORE"}
}
CLEAN["TERM"] = "xterm-256color"
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
SNO = "6kxa9cupxwf2m63l"
# Of a day and a half ago as Twitter's; in the layouts that count from 2014 or 2015, it is of years ahead.
TWEET = str(snowflake.TWITTER.compose(timestamp_ms=time.time_ns() // 10**6 - 129_600_000, node=786))
XID = "9m4e2mr0ui3e8a215n4g"
CUID = "ch72gsb320000udocl363eofy"

needs_rich = pytest.mark.skipif(find_spec("rich") is None, reason="colours need rich")
needs_terminals = pytest.mark.skipif(os.name != "posix", reason="opens a terminal of its own")


@pytest.fixture(autouse=True, scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a temporary registry for commands, instead of that of the user."""
    CLEAN["MINTAGE_HOME"] = str(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINTAGE_HOME", CLEAN["MINTAGE_HOME"])
        patch.delenv("MINTAGE_STORE", raising=False)
        yield


def run(
    *args: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*MINTAGE, *args], input=stdin, capture_output=True, env={**CLEAN, **(env or {})}, timeout=60, check=False
    )


def output(*args: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> str:
    """Return the output of a successful command."""
    done = run(*args, stdin=stdin, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def on_terminal(*args: str, env: dict[str, str] | None = None, python: list[str] | None = None) -> str:
    """Return the output of a command whose standard output is a terminal."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*(python or MINTAGE), *args], stdin=subprocess.DEVNULL, stdout=theirs, env={**CLEAN, **(env or {})}
    )
    os.close(theirs)
    shown = _read_terminal(ours)
    assert process.wait(60) == 0
    return shown


def _read_terminal(ours: int) -> str:
    """Return everything that a terminal shows until its writers close it."""
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # how Linux says that the last writer is gone
        pass
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def without_colors(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


# --- new --------------------------------------------------------------------------------------------------------------


def test_new_prints_one_id_by_default() -> None:
    assert sno.ID.parse(output("new", "sno").removesuffix("\n")).timestamp_ns <= time.time_ns()
    assert int(output("new", "snowflake")) > 0
    assert locality.ID.parse(output("new", "locality").strip()).version == "b"


@pytest.mark.parametrize("scheme", NAMES)
@pytest.mark.parametrize("count", [1, 2, 65_536, 65_537, 200_000])
def test_new_prints_the_requested_number_of_different_ids(scheme: str, count: int) -> None:
    printed = output("new", scheme, "-n", str(count))
    assert printed.endswith("\n")
    lines = printed.splitlines()
    assert len(lines) == len(set(lines)) == count
    if scheme == "snowflake":
        assert all(earlier < later for earlier, later in pairwise(map(int, lines)))
    elif scheme != "locality" and not KINDS[scheme].is_text:
        assert lines == sorted(lines)


def test_options_of_new_set_the_fields_of_ids() -> None:
    for line in output("new", "sno", "-n", "3", "--meta", "7", "--partition", "0x9a0a").split():
        assert (sno.ID.parse(line).meta, sno.ID.parse(line).partition) == (7, 0x9A0A)
    for name, layout in (("twitter", snowflake.TWITTER), ("instagram", snowflake.INSTAGRAM)):
        line = output("new", "snowflake", "--node", "786", "--layout", name)
        assert layout.parse(int(line)).node == 786
        assert abs(layout.parse(int(line)).time.timestamp() - time.time()) < 60
    first, second = output("new", "locality", "-n", "2", "--mode", "sequential").split()
    assert locality.ID.parse(second).sequential_counter == locality.ID.parse(first).sequential_counter + 1


def test_options_of_new_set_size_and_alphabet_of_text_ids() -> None:
    [pin] = output("new", "nanoid", "--size", "6", "--alphabet", "0123456789").split()
    assert len(pin) == 6
    assert pin.isdigit()
    assert set(output("new", "nanoid", "--size", "40", "--alphabet", "äöü").strip()) <= set("äöü")
    assert len(output("new", "cuid2", "--length", "8").strip()) == 8
    [said] = output("new", "nanoid", "--size", "5", "--json").splitlines()
    assert json.loads(said) == {**json.loads(said), "scheme": "nanoid", "time": None, "fields": {}}


def test_new_mints_typeids_with_a_prefix() -> None:
    lines = output("new", "typeid", "--prefix", "user", "-n", "70000").splitlines()
    assert lines == sorted(set(lines))
    assert len(lines) == 70_000
    assert {typeid.ID.parse(line, "user").as_uuid().version for line in lines[:100]} == {7}
    assert "_" not in output("new", "typeid", "--prefix", "")
    shown = json.loads(output("new", "typeid", "--prefix", "user", "--json"))
    assert (shown["scheme"], shown["layout"]) == ("typeid", "v7")
    assert typeid.ID.parse(shown["id"]).prefix == "user"
    assert datetime.fromisoformat(shown["time"]) == uuid.ID(bytes(typeid.ID.parse(shown["id"]))).time


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["typeid"], "typeid needs --prefix"),
        (["typeid", "--prefix", "User"], "up to 63 characters of a-z"),
        (["uuid", "--prefix", "user"], "--prefix belongs to typeid, not to uuid"),
        (["typeid", "--prefix", "user", "--node", "1"], "not to typeid"),
    ],
)
def test_new_reports_an_invalid_prefix(args: list[str], said: str) -> None:
    done = run("new", *args)
    assert done.returncode != 0
    assert said in done.stderr.decode()


def test_new_mints_with_a_declared_layout() -> None:
    fields, epoch_ms = "time:38 region:4 node:10 sequence:8", 1_735_689_600_000
    args = ["--layout", fields, "--epoch-ms", str(epoch_ms), "--unit-ms", "10", "--node", "300"]
    parts = snowflake.Layout(fields, epoch_ms=epoch_ms, unit_ms=10).parse(int(output("new", "snowflake", *args)))
    assert (parts.node, parts.fields["region"], parts.fields["node"]) == (300, 0, 300)
    assert abs(parts.time.timestamp() - time.time()) < 60


def test_new_waits_for_ticks_of_any_length() -> None:
    now = str(time.time_ns() // 10**6)  # so that the wait for the second tick is longer than generators wait by default
    slow = ["--layout", "time:31 node:4 sequence:1", "--epoch-ms", now, "--unit-ms", "1500"]
    assert len(set(output("new", "snowflake", "-n", "3", *slow).split())) == 3


class Outlet(io.TextIOWrapper):
    """A standard output that accepts ``most`` bytes at a time, and records each write."""

    def __init__(self, most: int | None = None) -> None:
        self.taken: list[bytes] = []

        class Raw(io.RawIOBase):
            def write(raw, data: Any) -> int:  # noqa: N805
                self.taken.append(bytes(data[:most]))
                return len(self.taken[-1])

            def writable(raw) -> bool:  # noqa: N805
                return True

        super().__init__(Raw())  # type: ignore[arg-type]


def test_new_writes_everything_to_a_pipe_with_short_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    outlet = Outlet(most=7)
    monkeypatch.setattr(sys, "stdout", outlet)
    assert main(["new", "sno", "-n", "100"]) == 0
    assert len(set(b"".join(outlet.taken).split())) == 100


@pytest.mark.parametrize(
    ("args", "most"),
    [
        (["sno", "-n", "100000"], 65_536),
        (["sno", "-n", "3000", "--json"], 1_024),
        (["snowflake", "--layout", "sonyflake", "-n", "6000"], 2_560),  # of 25,600 a second
    ],
)
def test_new_flushes_often_enough(args: list[str], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    outlet = Outlet()
    monkeypatch.setattr(sys, "stdout", outlet)
    assert main(["new", *args]) == 0
    assert {taken.count(b"\n") for taken in outlet.taken[:-1]} == {most}


def test_new_prints_the_fields_of_each_id_as_json() -> None:
    lines = output("new", "sno", "-n", "3", "--meta", "7", "--partition", "9", "--json").splitlines()
    assert len(lines) == 3
    for line in lines:
        shown = json.loads(line)
        one = sno.ID.parse(shown["id"])
        assert (shown["scheme"], shown["layout"]) == ("sno", None)
        assert datetime.fromisoformat(shown["time"]) == one.time
        assert shown["fields"] == {
            "time": str((one.timestamp_ns - 1_262_304_000 * 10**9) // 4_000_000),
            "tick": one.tick,
            "meta": 7,
            "partition": 9,
            "sequence": one.sequence,
        }


def test_json_of_snowflake_and_locality_has_all_fields() -> None:
    shown = json.loads(output("new", "snowflake", "--layout", "discord", "--node", "33", "--json"))
    parts = snowflake.DISCORD.parse(int(shown["id"]))
    assert shown["layout"] == "discord"
    assert shown["fields"] == {**parts.fields, "time": str(parts.fields["time"])}
    shown = json.loads(output("new", "locality", "--json"))
    one = locality.ID.parse(shown["id"])
    assert shown["fields"] == {
        "counter": one.counter,
        "pid": one.pid,
        "mac": one.mac,
        "time": str(one.timestamp_ms),
    }


def test_new_loses_nothing_without_python_buffering() -> None:
    lines = output("new", "sno", "-n", "300000", env={"PYTHONUNBUFFERED": "1"}).splitlines()
    assert len(set(lines)) == 300_000


# --- inspect ----------------------------------------------------------------------------------------------------------

DRAWN = """\
6kxa9cupxwf2m63l

  sno  2020-01-02 03:04:05.676 UTC, 6 years ago  the only match
  Canonical text; time between 2005 and now.
  hex 24be83ab97ff9a0a1033

  00100100 10111110 10000011 10101011 10010111
  [------------------ time -----------------]|
  11111111 10011010 00001010 00010000 00110011
  [ meta ] [-- partition --] [--- sequence --]

  field      bits   value        meaning
  time       79-41  78907561419  ticks of 4 ms since 2010-01-01
  tick       40     1            timeline 1, after the clock went back
  meta       39-32  255          the user's byte
  partition  31-16  39434        where it was minted
  sequence   15-0   4147         counts within a tick

ch72gsb320000udocl363eofy

  cuid  2012-09-13 23:03:12.926 UTC, 14 years ago  the only match
  Canonical text; prefix and time fit; time between 2005 and now.

  c h72gsb32 0000 udoc l363eofy
  | [ time ] [--] [--] [random]

  field        chars  value          meaning
  prefix       1      c              always c
  time         2-9    1347577392926  milliseconds since 1970-01-01
  counter      10-13  0              counts modulo 1,679,616
  fingerprint  14-17  udoc           of process id and host name
  random       18-25  l363eofy       random
"""


def test_inspect_draws_and_explains_every_field() -> None:
    varying = re.compile(r"in \d+ years?|\d+ years? ago")
    assert varying.sub("AGE", output("inspect", SNO, CUID)) == varying.sub("AGE", DRAWN)


def test_inspect_draws_only_the_likely_readings() -> None:
    shown = output("inspect", TWEET)
    assert re.search(r"^  snowflake twitter  .* UTC, 1 day ago  likely$", shown, re.MULTILINE)
    assert shown.index("snowflake twitter") < shown.index("snowflake instagram") < shown.index("  unlikely  snowflake")
    assert "[--- machine ---]" not in shown
    assert "[--- machine ---]" in output("inspect", "--all", TWEET)


@pytest.mark.parametrize("flag", ["-1", "--best"])
def test_best_shows_only_the_likeliest_reading(flag: str) -> None:
    shown = output("inspect", flag, TWEET)
    assert "snowflake twitter" in shown
    assert "instagram" not in shown
    assert "the only match" not in shown
    assert len(json.loads(output("inspect", flag, "--json", TWEET))["anatomies"]) == 1


def test_inspect_prints_the_canonical_text() -> None:
    assert f"canonical text {ULID}\n" in output("inspect", ULID.lower())
    assert "canonical text" not in output("inspect", ULID)


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (timedelta(seconds=0.5), "just now"),
        (timedelta(seconds=1.5), "1 second ago"),
        (timedelta(seconds=59), "59 seconds ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(days=3), "3 days ago"),
        (timedelta(days=70), "2 months ago"),
        (timedelta(days=800), "2 years ago"),
        (timedelta(days=-5 * 365.2425), "in 5 years"),
        (timedelta(minutes=-2.5), "in 2 minutes"),
    ],
)
def test_age_is_told_in_the_largest_unit_that_fits(age: timedelta, expected: str) -> None:
    assert ago(age.total_seconds()) == expected


def test_inspect_prints_the_age_of_an_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(sno.min_at(datetime.now(UTC) - timedelta(hours=5, minutes=1)))]) == 0
    assert "UTC, 5 hours ago  " in capsys.readouterr().out


def test_inspect_prints_json_of_the_library_result() -> None:
    for line, value in zip(output("inspect", "--json", SNO, ULID).splitlines(), [SNO, ULID], strict=True):
        assert json.loads(line) == {"input": value, "anatomies": [each.as_dict() for each in mintage.inspect(value)]}


def test_inspect_reads_ids_from_standard_input_one_a_line() -> None:
    as_arguments = output("inspect", SNO, XID)
    assert output("inspect", stdin=f"{SNO}\n{XID}\n".encode()) == as_arguments
    assert output("inspect", stdin=f"\r\n  {SNO}\t\r\n\n{XID}".encode()) == as_arguments
    assert output("inspect", stdin=b"") == ""


def test_inspect_answers_each_line_before_it_reads_the_next() -> None:
    process = subprocess.Popen(
        [*MINTAGE, "inspect", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=CLEAN
    )
    assert process.stdin
    assert process.stdout
    for text in (SNO, XID, ULID):
        process.stdin.write(f"{text}\n".encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["input"] == text
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


def test_inspect_explains_what_new_prints() -> None:
    minted = output("new", "sno", "-n", "500").encode()
    shown = [json.loads(line) for line in output("inspect", "--json", "-1", stdin=minted).splitlines()]
    assert [each["anatomies"][0]["scheme"] for each in shown] == ["sno"] * 500


def test_each_unknown_id_is_one_line_and_others_are_inspected() -> None:
    done = run("inspect", "--json", stdin=f"frob\n{SNO}\n\x1b[31m\n{XID}\n".encode())
    assert done.returncode == 65
    assert done.stderr.decode() == (
        "mintage: 'frob' is not an ID of any known scheme\nmintage: '\\x1b[31m' is not an ID of any known scheme\n"
    )
    first, second, third, fourth = (json.loads(line) for line in done.stdout.splitlines())
    assert first == {
        "input": "frob",
        "anatomies": [],
        "error": {"code": "parse.unknown", "message": "'frob' is not an ID of any known scheme"},
    }
    assert (second["input"], third["anatomies"], fourth["input"]) == (SNO, [], XID)


@pytest.mark.parametrize(
    "stdin", [b"\x00" * 3_000_000, b"x" * 3_000_000 + b"\n" + SNO.encode(), b"\xff\xfe\x80", "\u0661\u0662".encode()]
)
def test_inspect_handles_any_input(stdin: bytes) -> None:
    done = run("inspect", stdin=stdin)
    assert done.returncode == 65
    assert re.fullmatch(rb"mintage: [ -~]{1,500} is not an ID of any known scheme\n", done.stderr)
    assert done.stdout.startswith(SNO.encode()) == stdin.endswith(SNO.encode())


@pytest.mark.skipif(os.name != "posix", reason="arguments are text elsewhere")
def test_arguments_that_are_not_unicode_are_no_ids() -> None:
    done = run("inspect", b"\xff\xfe")
    assert (done.returncode, done.stderr) == (65, b"mintage: '\\udcff\\udcfe' is not an ID of any known scheme\n")


# --- colours ----------------------------------------------------------------------------------------------------------


@needs_rich
@needs_terminals
def test_terminal_gets_colours_unless_switched_off() -> None:
    assert "\x1b[" in on_terminal("inspect", SNO)
    assert "\x1b[" in on_terminal("schemes")
    assert "\x1b[" in on_terminal("inspect", SNO, env={"NO_COLOR": ""})
    plain = output("inspect", SNO)
    assert on_terminal("inspect", SNO, env={"NO_COLOR": "1"}) == plain
    assert on_terminal("inspect", SNO, env={"TERM": "dumb"}) == plain
    assert on_terminal("inspect", SNO, "--color", "never") == plain


@needs_rich
def test_colours_change_only_escapes_and_brackets() -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    for args in (["inspect", SNO, CUID, TWEET], ["schemes"]):
        colored = output(*args, "--color", "always", env={**ascii_only, "NO_COLOR": "1", "COLUMNS": "120"})
        assert "\x1b[" in colored
        lines = [line.rstrip() for line in without_colors(colored).splitlines()]
        assert lines == output(*args).splitlines()


@needs_rich
def test_brackets_are_drawn_with_lines_on_a_capable_terminal() -> None:
    shown = output("inspect", SNO, "--color", "always", env={"PYTHONIOENCODING": "utf-8"})
    assert "\u2570 meta \u256f" in without_colors(shown)


@needs_rich
def test_picture_fits_a_narrow_terminal() -> None:
    shown = without_colors(output("inspect", "-1", ULID, "--color", "always", env={"COLUMNS": "40"}))
    bits = [line for line in shown.splitlines() if re.fullmatch(r"[ 01]+", line)]
    assert len(bits) == 4
    assert all(len(line.rstrip()) <= 40 for line in bits)


def test_plain_output_is_ascii_without_escapes() -> None:
    for args in (["inspect", SNO, ULID, CUID, TWEET], ["schemes"], ["--help"], ["new", "--help"]):
        printed = output(*args, env={"PYTHONIOENCODING": "ascii"})
        assert printed.isascii()
        assert "\x1b" not in printed


@needs_terminals
def test_without_rich_a_terminal_gets_plain_output() -> None:
    assert on_terminal("inspect", SNO, python=[sys.executable, "-c", WITHOUT_RICH]) == output("inspect", SNO)


def test_colours_without_rich_are_refused_when_forced() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RICH, "schemes", "--color", "always"],
        capture_output=True,
        env=CLEAN,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, b"mintage: colours need rich: pip install 'mintage[cli]'\n")


# --- progress ---------------------------------------------------------------------------------------------------------

TWO_SECONDS = ["new", "snowflake", "--layout", "sonyflake", "-n", "51200"]  # at 25,600 a second


def progress_of(*args: str, python: list[str] | None = None) -> str:
    """Return what standard error shows as a terminal, while standard output goes elsewhere."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*(python or MINTAGE), *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs, env=CLEAN
    )
    os.close(theirs)
    shown = _read_terminal(ours)
    assert process.wait(60) == 0
    return shown


@needs_terminals
def test_progress_is_shown_after_some_time() -> None:
    assert "of 51,200 IDs" in progress_of(*TWO_SECONDS)
    assert progress_of("new", "sno", "-n", "1000") == ""


@needs_terminals
def test_progress_without_rich_is_one_line_erased_at_the_end() -> None:
    shown = progress_of(*TWO_SECONDS, python=[sys.executable, "-c", WITHOUT_RICH])
    assert re.fullmatch(r"(\r[\d,]+ of 51,200 IDs, [\d,]+/s *)+\r +\r", shown)


def test_progress_is_not_shown_to_files() -> None:
    assert run(*TWO_SECONDS).stderr == b""


# --- schemes ----------------------------------------------------------------------------------------------------------


def test_schemes_lists_fields_capacity_and_end_of_every_layout() -> None:
    lines = output("schemes").splitlines()
    assert lines[0].split() == ["scheme", "bits", "nodes", "IDs/s", "per", "node", "runs", "out"]
    assert lines[1].split() == ["sno", "80", "65,536", "16,384,000", "2079-09-07"]
    assert lines[2] == "  time:39 tick:1 meta:8 partition:16 sequence:16"
    assert lines[3].split() == ["snowflake", "default", "63", "1,024", "4,096,000", "2084-09-06"]
    assert lines[13].split() == ["locality", "128", "17.6", "trillion", "4.3", "trillion", "after", "9999"]
    ulid = next(at for at, line in enumerate(lines) if line.startswith("ulid"))
    assert lines[ulid].split() == ["ulid", "128", "-", "-", "after", "9999"]
    assert lines[ulid + 1] == "  time:48 random:80"
    assert lines[-3:] == ["'mintage inspect' also explains", "  uuid v2 v3 v5 v8 nil max other", "  tsid, randflake"]
    assert all(len(line) <= 80 for line in lines)


def test_schemes_as_json_lists_every_layout() -> None:
    listed = [json.loads(line) for line in output("schemes", "--json").splitlines()]
    assert {each["name"] for each in listed if each["mints"]} == {
        *(f"snowflake {layout}" for layout in ("default", "twitter", "discord", "instagram", "sonyflake")),
        *(f"uuid v{version}" for version in (1, 4, 6, 7)),
        *NAMES,
    } - {"snowflake", "uuid"}
    known = {each["name"]: each for each in listed}
    assert len(known) == len(listed)
    assert {"uuid v7", "ulid", "ksuid", "xid", "objectid", "cuid", "nanoid"} < set(known)
    twitter = known["snowflake twitter"]
    assert twitter["fields"][1] == {"name": "datacenter", "bits": 5, "role": "node"}
    assert (twitter["nodes"], twitter["ids_per_second_per_node"]) == ("1024", "4096000")
    assert twitter["expires"] == "2080-07-10T17:30:30.209Z"
    assert known["locality"]["expires"] is None


# --- the command itself -----------------------------------------------------------------------------------------------


def test_no_arguments_print_the_help() -> None:
    assert output() == output("--help")
    for name in COMMANDS:
        assert re.search(rf"^    {name} ", output(), re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_has_examples(name: str) -> None:
    printed = output(name, "--help")
    assert f"\nexamples:\n  mintage {name}" in printed
    assert (load(name).about or "missing") in printed


EXAMPLES = [line.strip() for each in map(load, COMMANDS) for line in each.examples.strip().splitlines()]


@pytest.mark.skipif(shutil.which("bash") is None, reason="the examples are for a shell")
@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_of_the_help_works(line: str, tmp_path: Path) -> None:
    if "jq " in line and shutil.which("jq") is None:
        pytest.skip("the example needs jq")
    if "@db/" in line:
        pytest.skip("the example needs a database: tests/contract/test_sql.py runs it with a real one")
    if line.startswith("mintage serve"):
        pytest.skip("the example runs until it is stopped: tests/unit/test_settings.py reads its settings")
    (tmp_path / "ids.txt").write_text(f"{SNO}\n{ULID}\n")
    (tmp_path / "snos.txt").write_text(f"{SNO}\n")
    if "parquet" in line:
        ids = snowflake.Generator(1, layout=snowflake.TWITTER).batch(9)
        pq.write_table(pa.table({"id": ids.tolist()}), tmp_path / "orders.parquet")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.execute(
            "CREATE TABLE orders (number INTEGER PRIMARY KEY, made DATETIME, id BLOB UNIQUE, bill BIGINT UNIQUE)"
        )
    env = {**CLEAN, "MINTAGE_HOME": str(tmp_path), "MINTAGE_STORE": f"sqlite:///{tmp_path}/ids.db"}
    with open_store(env["MINTAGE_STORE"]) as store:
        now_ms = time.time_ns() // 10**6
        store.acquire("sno", nodes=range(9), layout="sno/1", holder="host:1", now_ms=now_ms, span_ms=10_000)
    script = f'set -eo pipefail; mintage() {{ "{sys.executable}" -m mintage "$@"; }}; {line}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, cwd=tmp_path, env=env, timeout=60, check=False)
    # Verify first prints the memory and disk that it will use.
    assert (done.returncode, re.sub(rb"^uses at most .*\n", b"", done.stderr)) == (0, b"")


def test_version_is_printed() -> None:
    assert output("--version") == f"mintage {mintage.__version__}\n"


def test_main_can_be_called_with_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "snowflake", "--node", "5"]) == 0
    assert snowflake.DEFAULT.parse(int(capsys.readouterr().out)).node == 5
    assert main(["--help"]) == 0
    assert main(["frob"]) == 2


WRONG = [
    (["frob"], 2, "invalid choice: 'frob'"),
    (["--frob"], 2, "unrecognized arguments: --frob"),
    (["new"], 2, "the following arguments are required: SCHEME"),
    (["new", "frob"], 2, "invalid choice: 'frob'"),
    (["new", "snow"], 2, "; did you mean snowflake?"),
    (["inspct", SNO], 2, "; did you mean inspect?"),
    (["new", "sno", "-n", "0"], 2, "'0' is outside 1..2147483647"),
    (["new", "sno", "-n", "-5"], 2, "'-5' is outside 1..2147483647"),
    (["new", "sno", "-n", str(2**31)], 2, "'2147483648' is outside 1..2147483647"),
    (["new", "sno", "-n", "9" * 44], 2, f"'{'9' * 44}' is outside 1..2147483647"),
    (["new", "sno", "-n", "9" * 100], 2, f"{'9' * 39}\u2026 is outside 1..2147483647"),
    (["new", "sno", "-n", "many"], 2, "'many' is not a whole number"),
    (["new", "sno", "-n", "1e6"], 2, "'1e6' is not a whole number"),
    (["new", "sno", "-n", "1_000"], 2, "'1_000' is not a whole number"),
    (["new", "sno", "-n", "\u0663"], 2, r"'\u0663' is not a whole number"),
    (["new", "sno", "-n", "9" * 5000], 2, f"{'9' * 39}\u2026 is not a whole number"),
    (["new", "x" * 5000], 2, f"{'x' * 39}\u2026"),
    (["new", "sno", "-n"], 2, "expected one argument"),
    (["inspect", "-Zq0"], 2, "unrecognized arguments: -Zq0; a value that begins with - comes after --"),
    (["inspect", "-1q0"], 2, "a value that begins with - comes after --"),
    (["new", "snowflake", "--layout", ""], 2, "'' is not a layout"),
    (["new", "sno", "extra\nline"], 2, r"unrecognized arguments: extra\nline"),
    (["new", "sno", "--node", "5"], 2, "--node belongs to snowflake, uuid, ulid, ksuid, ksuid_ms and xid, not to sno"),
    (["new", "sandflake", "--process", "5"], 2, "--process belongs to objectid, not to sandflake"),
    (["new", "sno", "--epoch-ms", "0"], 2, "--epoch-ms belongs to snowflake, not to sno"),
    (["new", "snowflake", "--meta", "0"], 2, "--meta belongs to sno, not to snowflake"),
    (["new", "locality", "--partition", "0"], 2, "--partition belongs to sno, not to locality"),
    (["new", "snowflake", "--mode", "variable"], 2, "--mode belongs to locality, not to snowflake"),
    (["new", "locality", "--mode", "odd"], 2, "invalid choice: 'odd'"),
    (["new", "sno", "--meta", "256"], 65, "meta 256 is outside 0..255"),
    (["new", "sno", "--meta", "-1"], 65, "meta -1 is outside 0..255"),
    (["new", "sno", "--meta", "9" * 40], 65, "is outside 0..255"),
    (["new", "sno", "--partition", "65536"], 78, "partition 65536 is outside 0..65535"),
    (["new", "snowflake", "--node", "1024"], 78, "node 1024 is outside 0..1023"),
    (["new", "snowflake", "--node", "9" * 40], 78, "is outside 0..1023"),
    (["new", "snowflake", "--layout", "facebook"], 2, "'facebook' is not a layout; use default, twitter, discord"),
    (["new", "snowflake", "--layout", "time:41 sequence:12"], 2, "a declared layout needs --epoch-ms"),
    (["new", "snowflake", "--layout", "discord", "--unit-ms", "1"], 2, "belong to a declared layout"),
    (["new", "snowflake", "--epoch-ms", "1"], 2, "belong to a declared layout"),
    (["new", "snowflake", "--layout", "time:99 sequence:1", "--epoch-ms", "0"], 78, "time:99"),
    (["new", "snowflake", "--layout", "node:9 sequence:1", "--epoch-ms", "0"], 78, "node:9"),
    (["new", "snowflake", "--layout", "time:41 sequence:1", "--epoch-ms", "9" * 30], 78, "epoch_ms"),
    (["new", "snowflake", "--layout", "time:41 sequence:1", "--epoch-ms", "0", "--unit-ms", "0"], 78, "unit_ms 0"),
    (["new", "snowflake", "--layout", "time:41 sequence:9", "--epoch-ms", "9999999999999"], 70, "before the layout"),
    (["new", "snowflake", "--layout", "time:10 sequence:9", "--epoch-ms", "0"], 70, "1970"),
    (["inspect", "--color", "sometimes", SNO], 2, "invalid choice: 'sometimes'"),
    (["inspect", "frob"], 65, "'frob' is not an ID of any known scheme"),
    (["inspect", ""], 65, "'' is not an ID of any known scheme"),
    (["inspect", "x" * 5000], 65, "(5,000 characters) is not an ID of any known scheme"),
    (["inspect", "-5"], 2, "unrecognized arguments: -5"),
    (["schemes", "sno"], 2, "unrecognized arguments: sno"),
]


@pytest.mark.parametrize(("args", "status", "sentence"), WRONG, ids=lambda each: str(each)[:60])
def test_wrong_input_is_one_line_and_its_exit_code(args: list[str], status: int, sentence: str) -> None:
    done = run(*args)
    assert done.stdout == b""
    message = done.stderr.decode()
    assert message.startswith("mintage: ")
    assert message.count("\n") == 1
    assert message.endswith("\n")
    assert sentence in message
    assert done.returncode == status


# --- pipes, signals, full disks ---------------------------------------------------------------------------------------

ENDLESS = [
    ["new", "sno", "-n", "2147483647"],
    ["new", "snowflake", "-n", "2147483647"],
    ["new", "locality", "-n", "2147483647", "--json"],
]


@pytest.mark.parametrize("args", ENDLESS, ids=" ".join)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_closed_pipe_ends_the_command_silently(args: list[str], unbuffered: str) -> None:
    env = {**CLEAN, "PYTHONUNBUFFERED": unbuffered}
    process = subprocess.Popen([*MINTAGE, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    assert process.stdout
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 141


@pytest.mark.parametrize("args", [["new", "sno"], ["inspect", SNO], ["schemes"], ["schemes", "--json"]], ids=" ".join)
def test_unread_pipe_ends_the_command_silently(args: list[str]) -> None:
    process = subprocess.Popen([*MINTAGE, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN)
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 141


@pytest.mark.skipif(os.name != "posix", reason="sends the signal of Ctrl-C")
@pytest.mark.parametrize(
    "args", [*ENDLESS, ["inspect"], ["new", "snowflake", "--layout", "sonyflake", "-n", "999999"]], ids=" ".join
)
def test_ctrl_c_ends_the_command_silently_on_an_unread_pipe(args: list[str]) -> None:
    import fcntl
    import termios

    pipe = subprocess.PIPE
    with subprocess.Popen([*HEEDING_CTRL_C, *args], stdin=pipe, stdout=pipe, stderr=pipe, env=CLEAN) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdin
        process.stdin.write(f"{SNO}\n".encode() * 2000)
        process.stdin.close()
        unread = bytearray(4)
        while int.from_bytes(unread, sys.byteorder) < 32_768:  # until it waits for a reader, or soon will
            assert process.poll() is None
            time.sleep(0.01)
            fcntl.ioctl(process.stdout.fileno(), termios.FIONREAD, unread)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize(
    "args", [["new", "sno"], ["new", "sno", "-n", "1000000"], ["inspect", SNO], ["schemes"]], ids=" ".join
)
def test_full_disk_is_reported_in_one_line(args: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*MINTAGE, *args], stdout=full, stderr=subprocess.PIPE, env=CLEAN, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (74, b"mintage: No space left on device\n")


@pytest.mark.skipif(shutil.which("bash") is None, reason="closes descriptors in a shell")
@pytest.mark.parametrize(
    ("redirection", "args", "status", "stderr"),
    [
        (">&-", "new sno", 74, b"mintage: standard output is closed\n"),
        (">&- 2>&-", "new sno", 74, b""),
        ("<&-", "inspect", 74, b"mintage: standard input is closed\n"),
        ("2>&-", "inspect frob", 65, b""),
    ],
)
def test_closed_standard_streams_are_handled(redirection: str, args: str, status: int, stderr: bytes) -> None:
    script = f'"{sys.executable}" -m mintage {args} {redirection}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, env=CLEAN, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", stderr)


@pytest.mark.skipif(shutil.which("bash") is None, reason="closes descriptors in a shell")
def test_json_is_alone_where_standard_error_is_closed(tmp_path: Path) -> None:
    (tmp_path / "ids").write_text(SNO)
    script = f'"{sys.executable}" -m mintage verify "{tmp_path}/ids" --scheme sno --json 2>&-'
    done = subprocess.run(["bash", "-c", script], capture_output=True, env=CLEAN, timeout=60, check=False)
    assert (done.returncode, json.loads(done.stdout)["rows"]) == (0, 1)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_characters_that_an_encoding_lacks_are_escaped(encoding: str, tmp_path: Path) -> None:
    env = {"PYTHONIOENCODING": encoding}
    (tmp_path / "ids").write_text("\u20ac", encoding="utf-8")
    assert "postgresql://\\u2026" in output("backfill", "--help", env=env)
    done = run("verify", str(tmp_path / "ids"), "--scheme", "sno", env=env)
    assert (done.returncode, b"row 1: \\u20ac (" in done.stdout, b"Traceback" in done.stderr) == (1, True, False)


def test_command_does_not_import_unneeded_modules() -> None:
    needless = ("rich", "uuid", "sqlite3", "mintage.store", "mintage.lease", "mintage.lease.registry")
    script = f"import sys; import mintage.cli; sys.exit(any(name in sys.modules for name in {needless}))"
    assert subprocess.run([sys.executable, "-c", script], env=CLEAN, timeout=60, check=False).returncode == 0
