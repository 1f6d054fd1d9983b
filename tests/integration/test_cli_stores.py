"""Tests of the commands that administer a store, on an SQLite file."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mintage import __version__, sno, snowflake, ulid
from mintage.cli import main
from mintage.cli.stores import advice
from mintage.errors import CATALOGUE, LeaseError
from mintage.formats.catalogue import known_pool_layout, read_pool_layout
from mintage.lease.registry import locks
from mintage.protocol.url import StoreUrl
from mintage.rules import MAX_INTEGER, MIN_SPAN_MS, SPAN_MS, Lease, NodeRecord, PoolRecord
from mintage.store import new_token, open_store
from mintage.store.memory import MemoryStore
from mintage.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from mintage.store import Store

MINTAGE = [sys.executable, "-m", "mintage"]
CLEAN = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "COLUMNS", "MINTAGE_STORE"}}
HERE = f"{socket.gethostname()}:4711"

needs_rich = pytest.mark.skipif(find_spec("rich") is None, reason="colours need rich")


class Shell:
    """A runner of commands with a store and a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.url = f"sqlite:///{home / 'ids.db'}"
        self.env = {**CLEAN, "MINTAGE_STORE": self.url, "MINTAGE_HOME": str(home / "home")}

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*MINTAGE, *args],
            capture_output=True,
            cwd=self.home,
            env={**self.env, **env},
            timeout=60,
            check=False,
            encoding="utf-8",
        )

    def output(self, *args: str, **env: str) -> str:
        """Return the output of a successful command."""
        done = self.run(*args, **env)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def facts(self, *args: str, **env: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output(*args, "--json", **env).splitlines()]

    def findings(self, *args: str, status: int = 0, **env: str) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the findings of the doctor, by topic and subject."""
        done = self.run("doctor", "--json", *args, **env)
        assert done.returncode == status, done.stderr
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return {(each["topic"], each["about"]): each for each in found}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def lease(
    store: Store, *, pool: str = "sno", layout: str = "sno/1", holder: str = HERE, span_ms: int = 60_000
) -> Lease:
    return store.acquire(
        pool, nodes=range(8), layout=layout, holder=holder, now_ms=time.time_ns() // 10**6, span_ms=span_ms
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a directory in use cannot be removed")
def test_removed_working_directory_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *MINTAGE, "next", "orders", "--store", "sqlite:ids.db"]
    done = subprocess.run(command, capture_output=True, cwd=gone, env=CLEAN, timeout=60, check=False, encoding="utf-8")
    assert done.returncode == 74
    assert done.stderr.endswith("mintage: ids.db: the working directory was removed: change to another one\n")


# --- next, reserve ----------------------------------------------------------------------------------------------------


def test_next_continues_where_the_last_command_stopped(shell: Shell) -> None:
    assert shell.output("next", "orders") == "1\n"
    assert shell.output("next", "orders", "-n", "3") == "2\n3\n4\n"
    assert shell.output("next", "refunds") == "1\n"
    assert shell.facts("next", "orders", "-n", "2") == [
        {"namespace": "orders", "integer": "5"},
        {"namespace": "orders", "integer": "6"},
    ]


def test_next_prints_more_than_one_reservation(shell: Shell) -> None:
    printed = shell.output("next", "orders", "-n", "200000").split()
    assert [int(each) for each in printed] == list(range(1, 200_001))


def test_next_records_integers_before_it_prints_them(shell: Shell) -> None:
    process = subprocess.Popen(
        [*MINTAGE, "next", "orders", "-n", "1000000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=shell.env
    )
    assert process.stdout
    last = int([process.stdout.readline() for _ in range(1000)][-1])
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 141
    assert int(shell.output("next", "orders")) > last


def test_next_prints_the_remaining_integers_and_then_exhaustion(shell: Shell) -> None:
    shell.output("namespaces", "create", "few", "--start", "8", "--maximum", "10")
    done = shell.run("next", "few", "-n", "5")
    assert (done.stdout, done.returncode) == ("8\n9\n10\n", CATALOGUE["namespace.exhausted"].exit)
    assert done.stderr.startswith(
        "mintage: namespace 'few' is used up: its last integer is 10, its maximum 10; create another namespace\n"
    )


def test_reserve_prints_the_first_and_the_last_integer(shell: Shell) -> None:
    assert shell.output("reserve", "orders", "1000") == "1 1000\n"
    assert shell.output("reserve", "orders", "1") == "1001 1001\n"
    shell.output("namespaces", "create", "odd", "--stride", "2", "--offset", "1")
    assert shell.facts("reserve", "odd", "3") == [
        {"namespace": "odd", "first": "1", "last": "5", "stride": "2", "count": "3"}
    ]


def test_reserve_takes_nothing_if_too_few_are_left(shell: Shell) -> None:
    shell.output("namespaces", "create", "few", "--maximum", "10")
    done = shell.run("reserve", "few", "11")
    assert (done.stdout, done.returncode) == ("", CATALOGUE["namespace.exhausted"].exit)
    assert done.stderr.startswith("mintage: namespace 'few' has 10 integers left, not 11\n")
    assert shell.output("reserve", "few", "10") == "1 10\n"


# --- new --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "pool"),
    [(["sno"], "sno"), (["snowflake"], "snowflake"), (["snowflake", "--layout", "default"], "snowflake")],
)
def test_new_leases_and_releases_its_node_number(args: list[str], pool: str, shell: Shell) -> None:
    with open_store(shell.url) as store:
        layout = known_pool_layout(args[-1])
        assert layout is not None
        taken = lease(store, pool=pool, layout=layout.text)
    minted = shell.output("new", *args, "-n", "1000", "--store", shell.url, MINTAGE_STORE="").split()
    assert len(set(minted)) == 1000
    first, second = shell.facts("leases", "list", pool)
    assert (first["node"], first["state"]) == (str(taken.node), "held")
    assert (second["node"], second["state"]) == (str(taken.node + 1), "released")
    if pool == "sno":
        assert {sno.ID.parse(each).partition for each in minted} == {taken.node + 1}


def test_new_prints_the_remedy_for_an_unusable_store(shell: Shell) -> None:
    done = shell.run("new", "sno", "--store", "sqlite:////nowhere/at/all/ids.db")
    assert (done.returncode, done.stdout) == (CATALOGUE["store.refused"].exit, "")
    assert re.fullmatch(r"mintage: [^\n]*unable to open[^\n]*\n  [A-Z][^\n]*\n", done.stderr)
    assert "this user finds no directory /nowhere/at/all: create it" in done.stderr


def test_new_warns_in_one_line_when_uniqueness_depends_on_a_lock(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = shell.run("new", "sno", MINTAGE_STORE="", MINTAGE_HOME=str(tmp_path / "file" / "home"))
    assert (done.returncode, len(done.stdout)) == (0, 17)
    assert re.fullmatch(r"mintage: warning: mintage cannot write its registry[^\n]*\n", done.stderr)


# --- namespaces -------------------------------------------------------------------------------------------------------


def test_namespaces_list_shows_the_remaining_integers(shell: Shell) -> None:
    assert shell.output("namespaces", "list").startswith("no namespaces yet")
    assert shell.facts("namespaces", "list") == []
    shell.output("namespaces", "create", "invoices", "--start", "100", "--maximum", "1000", "--stride", "10")
    shell.output("next", "orders", "-n", "7")
    invoices, orders = shell.facts("namespaces", "list")
    assert (invoices["namespace"], invoices["next"], invoices["left"]) == ("invoices", "100", "91")
    assert (orders["next"], orders["left"], orders["largest_count"]) == ("8", str(MAX_INTEGER - 7), "7")
    header, first, _ = shell.output("namespaces", "list").splitlines()
    assert header.split() == ["namespace", "next", "used", "left", "maximum", "stride"]
    assert first.split() == ["invoices", "100", "9.0%", "91", "1,000", "10"]


def test_raising_the_floor_of_a_new_namespace_is_announced(shell: Shell) -> None:
    shell.output("next", "orders")
    assert "is new" not in shell.output("namespaces", "raise-floor", "orders", "5000")
    assert "ordres is new: there was no namespace with this name" in shell.output(
        "namespaces", "raise-floor", "ordres", "5000"
    )
    assert [shell.facts("namespaces", "raise-floor", name, "9000")[0]["new"] for name in ("orders", "odrers")] == [
        False,
        True,
    ]


def test_floor_is_raised_and_never_lowered(shell: Shell) -> None:
    assert shell.facts("namespaces", "raise-floor", "orders", "5000")[0]["next"] == "5000"
    assert shell.facts("namespaces", "raise-floor", "orders", "10")[0]["next"] == "5000"
    assert shell.output("next", "orders") == "5000\n"


def test_retiring_a_namespace_needs_its_name_typed_out(shell: Shell) -> None:
    shell.output("next", "orders", "-n", "7")
    refused = shell.run("namespaces", "retire", "orders", "--for-good", "order")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--for-good is 'order', not 'orders', so nothing was retired" in refused.stderr
    assert shell.run("namespaces", "retire", "orders").returncode == 2
    assert shell.output("next", "orders") == "8\n"
    [retired] = shell.facts("namespaces", "retire", "orders", "--for-good", "orders")
    assert (retired["retired"], retired["next"], retired["left"]) == (True, None, "0")
    assert shell.facts("namespaces", "retire", "orders", "--for-good", "orders") == [retired]
    assert shell.facts("namespaces", "list") == [retired]
    assert shell.output("namespaces", "list").splitlines()[1].split()[:2] == ["orders", "retired"]
    done = shell.run("next", "orders")
    assert (done.returncode, done.stdout) == (65, "")
    assert "namespace 'orders' was retired for good" in done.stderr
    assert "Use another name" in done.stderr


def test_exhausted_namespace_has_no_next_integer(shell: Shell) -> None:
    shell.output("namespaces", "create", "one", "--maximum", "1")
    shell.output("next", "one")
    assert (shell.facts("namespaces", "list")[0]["next"], shell.facts("namespaces", "list")[0]["left"]) == (None, "0")
    assert shell.output("namespaces", "list").splitlines()[1].split() == ["one", "-", "100.0%", "0", "1", "1"]


# --- pools ------------------------------------------------------------------------------------------------------------

TWITTER = "snowflake time:41 datacenter:5 worker:5 sequence:12 @1288834974657 1ms"


@pytest.mark.parametrize(
    ("text", "written", "nodes"),
    [
        ("sno", "sno/1", 65_536),
        ("sno/8", "sno/8", 524_288),
        ("snowflake", "snowflake time:41 node:10 sequence:12 @1420070400000 1ms", 1_024),
        ("twitter", TWITTER, 1_024),
        (TWITTER, TWITTER, 1_024),
        ("snowflake time:38 region:4 node:10 sequence:8 @0 10ms", None, 16_384),
        ("locality", "locality", 2**44),
    ],
)
def test_layout_is_written_as_generators_write_it(text: str, written: str | None, nodes: int) -> None:
    layout = known_pool_layout(text)
    assert layout is not None
    assert (layout.text, layout.nodes) == (written or text, nodes)
    assert known_pool_layout(layout.text) == layout


def test_layouts_expire_with_their_generators() -> None:
    years = {}
    for name in ("sno", "snowflake", "locality"):
        layout = known_pool_layout(name)
        assert layout is not None
        assert layout.ends is not None
        years[name] = layout.ends.year
    assert years == {"sno": 2079, "snowflake": snowflake.DEFAULT.expires.year, "locality": 2248}


@pytest.mark.parametrize(
    "text",
    ["", "sno/0", "sno/3", "sno/16384", "sno/10923", "sno/08", "sno/-1", "snowflake time:41", "nanoid", "LOCALITY"],
)
def test_invalid_layout_is_refused(text: str, shell: Shell) -> None:
    assert known_pool_layout(text) is None
    done = shell.run("pools", "create", "mine", f"--layout={text}")
    assert (done.returncode, done.stdout) == (78, "")
    assert shell.facts("pools", "list") == []


@pytest.mark.parametrize("shards", [1 << bits for bits in range(14)])
def test_generators_accept_every_sno_layout_of_a_pool(shards: int) -> None:
    layout = known_pool_layout(f"sno/{shards}")
    assert layout is not None
    with open_store("memory:") as store:
        store.create_pool(f"of-{shards}", layout=layout.text)
        with sno.Generator(store=store, pool=f"of-{shards}", shards=shards) as generator:
            generator.new()
        (taken,) = store.list_leases(f"of-{shards}")
        assert taken.node < layout.nodes


def test_pools_create_uses_the_span_of_the_first_generator(shell: Shell) -> None:
    (made,) = shell.facts("pools", "create", "sno")
    assert made["span_ms"] == SPAN_MS
    assert "(default, and least: that of generators)" in " ".join(shell.output("pools", "create", "--help").split())
    assert shell.facts("pools", "create", "short", "--layout", "sno", "--span-ms", "10000")[0]["span_ms"] == SPAN_MS
    assert shell.facts("pools", "create", "long", "--layout", "sno", "--span-ms", "60000")[0]["span_ms"] == 60_000


def test_history_of_a_pool_is_set_and_shown(shell: Shell) -> None:
    assert shell.facts("pools", "create", "sno")[0]["history_ms"] == 7 * 86_400_000
    assert "kept for 7 days, since " in shell.output("pools", "show", "sno")
    (made,) = shell.facts("pools", "create", "sno", "--history", "12h")
    assert (made["history_ms"], made["history_from"] is not None) == (12 * 3_600_000, True)
    assert "kept for 43,200 s, since " in shell.output("pools", "show", "sno")
    (off,) = shell.facts("pools", "create", "sno", "--history", "off")
    assert (off["history_ms"], off["history_from"]) == (0, None)
    assert re.search("past grants +not kept", shell.output("pools", "show", "sno"))
    assert shell.facts("pools", "list") == [off]


@pytest.mark.parametrize("text", ["", "7", "0d", "-1d", "d", "1w", "1.5d", "1e3s", " 1d", "OFF", "９d", "9" * 16 + "d"])
def test_history_that_is_no_duration_is_refused(shell: Shell, text: str) -> None:
    done = shell.run("pools", "create", "sno", f"--history={text}")
    assert (done.returncode, "write 30d, 12h, 90m, 10s, or off" in done.stderr) == (2, True)
    done = shell.run("pools", "create", "sno", "--history=3651d")
    assert done.returncode == CATALOGUE["field.range"].exit
    assert shell.facts("pools", "list") == []


def test_share_of_a_pool_is_set_and_shown(shell: Shell) -> None:
    assert shell.facts("pools", "create", "sno", "--span-ms", "3600000")[0]["share"] is None
    with open_store(shell.url) as store:
        outside = lease(store, span_ms=3_600_000)
        (made,) = shell.facts("pools", "create", "sno", "--nodes", "5-32767")
        assert (made["share"], made["nodes"], made["floor"]) == ("5-32767", "65536", None)
        # No window outside the share ends later: neither this one, nor one whose extension is on its way.
        assert datetime.fromisoformat(made["free_from"]).timestamp() * 1000 > outside.until_ms
        with pytest.raises(LeaseError):
            store.extend(outside, now_ms=store.now_ms(), next_token="next")
    shown = shell.output("pools", "show", "sno")
    assert re.search("share +5-32767", shown)
    assert "another store" not in shown
    assert "5-32767 of 65,536" in shell.output("pools", "list")
    found = shell.findings()["pools", "sno"]
    # The number outside the share takes none of the share's.
    assert "0 of 32,763 node numbers, its share 5-32767, held" in found["text"]
    assert "; 0 outside the share, whose last window ends in " in found["text"]
    assert (found["facts"]["share"], found["facts"]["next_here"]) == ("5-32767", "5")
    (unused,) = shell.facts("pools", "create", "fresh", "--layout", "sno", "--nodes", "0-9")
    assert datetime.fromisoformat(unused["free_from"]).timestamp() - time.time() < 2


def test_share_is_widened_only_with_a_time_that_has_come(shell: Shell) -> None:
    shell.output("pools", "create", "sno", "--nodes", "0-9")
    wide = ("pools", "create", "sno", "--nodes", "0-65535")
    done = shell.run(*wide)
    assert (done.returncode, "--wider-from TIME" in done.stderr) == (CATALOGUE["config.node"].exit, True)
    done = shell.run(*wide, "--wider-from", "2100-01-01")
    assert (done.returncode, "ahead of the store's clock" in done.stderr) == (CATALOGUE["config.node"].exit, True)
    assert shell.facts("pools", "list")[0]["share"] == "0-9"
    done = shell.run(*wide, "--wider-from", "2026-01-31")
    assert (done.returncode, "ms ago; the limit" in done.stderr) == (CATALOGUE["config.node"].exit, True)
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
    (wider,) = shell.facts(*wide, "--wider-from", f"{now}.0001Z")
    assert (wider["share"], wider["floor"], wider["history_lost"]) == (None, f"{now}.001Z", True)
    assert "free_from" not in wider


@pytest.mark.parametrize(
    "text", ["", "7", "5-2", "-1-5", "-", "0-", "-9", "a-b", "0..9", "0-65536", "0-99999999999999999", "٣-٤", "1e3-2e3"]
)
def test_share_that_is_no_range_of_the_layout_is_refused(shell: Shell, text: str) -> None:
    done = shell.run("pools", "create", "sno", f"--nodes={text}")
    assert done.returncode == CATALOGUE["config.node"].exit
    assert done.stderr.startswith("mintage: nodes ")
    assert shell.facts("pools", "list") == []


@pytest.mark.parametrize("words", [["--wider-from=2026-01-01"], ["--nodes=0-5", "--wider-from=soon"]])
def test_time_of_a_wider_share_needs_a_share_and_a_time(shell: Shell, words: list[str]) -> None:
    assert shell.run("pools", "create", "sno", *words).returncode == 2


def test_recommended_wait_of_fleets_outlasts_a_window(shell: Shell) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/fleets.md").read_text(encoding="utf-8")
    named_ms = int(re.findall(r"`max_wait_ms=([0-9_]+)`", page)[0])
    assert named_ms > SPAN_MS
    taken_ms, is_still = time.time_ns() // 10**6, True
    with MemoryStore(clock=lambda: taken_ms if is_still else time.time_ns() // 10**6) as store:
        seven: dict[str, Any] = {"nodes": range(7, 8), "layout": "sno/1", "holder": HERE, "span_ms": MIN_SPAN_MS}
        store.acquire("sno", now_ms=taken_ms, **seven)
        # The holder was killed: its window goes on for a second.
        with pytest.raises(LeaseError) as refused:
            store.acquire("sno", now_ms=taken_ms + 1, **seven)
        assert 0 < (refused.value.retry_after_ms or 0) <= MIN_SPAN_MS
        is_still = False
        with closing(sno.Generator(partition=7, store=store, max_wait_ms=named_ms)) as generator:
            assert generator.new().partition == 7


def test_pools_are_created_by_name_or_with_a_layout(shell: Shell) -> None:
    assert shell.facts("pools", "create", "sno")[0]["layout"] == "sno/1"
    assert shell.facts("pools", "create", "eu", "--layout", "twitter")[0]["layout"] == TWITTER
    assert [each["pool"] for each in shell.facts("pools", "list")] == ["eu", "sno"]
    done = shell.run("pools", "create", "eu", "--layout", "sno")
    assert done.returncode == CATALOGUE["config.pool"].exit


@pytest.mark.parametrize(
    ("words", "fault", "exit_code"),
    [(["uuid"], "a new pool called 'uuid' needs --layout: ", 2), (["eu", "--layout", "uuid"], "", 78)],
)
def test_each_layout_that_a_refusal_names_makes_a_pool(
    shell: Shell, words: list[str], fault: str, exit_code: int
) -> None:
    done = shell.run("pools", "create", *words)
    assert done.returncode == exit_code
    assert done.stderr.startswith(f"mintage: {fault}'uuid' is not a layout; use sno, ")
    names = done.stderr.partition("; use ")[2].partition(", sno/N")[0].split(", ")
    assert {"uuid.v7", "twitter"} < set(names)
    assert all(read_pool_layout(name) for name in names)


def test_pool_is_shown_in_quarantine_once_a_server_took_over(shell: Shell) -> None:
    shell.run("pools", "create", "sno")
    with open_store(shell.url) as store:
        assert isinstance(store, SqliteStore)
        with store._begin() as transaction:
            record = transaction.get(PoolRecord, "sno")
            assert record is not None
            transaction.put(replace(record, identity="another server"))
    assert shell.facts("pools", "list")[0]["quarantine_until"] is not None
    assert re.search(r"quarantine +for \d", shell.output("pools", "show", "sno"))


def test_span_of_a_pool_that_exists_is_said_to_stay(shell: Shell) -> None:
    for words, is_said in (([], False), (["--span-ms", "300000"], True), (["--span-ms", "30000"], False)):
        assert ("--span-ms 300000 had no effect" in shell.output("pools", "create", "sno", *words)) == is_said


def test_only_a_typed_statement_ends_the_quarantine_of_a_pool(shell: Shell) -> None:
    now_ms = time.time_ns() // 10**6
    with open_store(shell.url) as store:
        store.create_pool("eu", layout=TWITTER)
        assert isinstance(store, SqliteStore)
        with store._begin() as transaction:
            record = transaction.get(PoolRecord, "eu")
            assert record is not None
            transaction.put(replace(record, quarantine_until_ms=now_ms + 3_600_000, history_lost=True))
    (listed,) = shell.facts("pools", "list")
    assert listed["quarantine_until"] is not None
    assert listed["history_lost"]
    assert re.search(r"quarantine +for 3,[56]\d\d\.?\d* s, until ", shell.output("pools", "show", "eu"))
    assert shell.findings(status=1)["pools", "eu"]["level"] == "attention"
    (same,) = shell.facts("pools", "create", "eu")
    assert (same["quarantine_until"], same["history_lost"]) == (listed["quarantine_until"], True)
    (freed,) = shell.facts("pools", "create", "eu", "--never-used")
    assert (freed["quarantine_until"], freed["layout"]) == (None, TWITTER)


def test_pools_list_shows_granted_and_held_nodes(shell: Shell) -> None:
    assert shell.output("pools", "list").startswith("no pools yet")
    with open_store(shell.url) as store:
        first = lease(store)
        lease(store)
        store.release(first, used_until_ms=0)
    (listed,) = shell.facts("pools", "show", "sno")
    assert (listed["granted"], listed["held"], listed["nodes"], listed["span_ms"]) == (2, 1, "65536", 60_000)
    header, line = shell.output("pools", "list").splitlines()
    assert header.split() == ["pool", "nodes", "granted", "held", "span", "quarantine", "layout"]
    assert line.split() == ["sno", "65,536", "2", "1", "60", "s", "-", "sno/1"]


@pytest.mark.parametrize("args", [["pools", "show", "nix"], ["leases", "list", "nix"]])
def test_missing_pool_is_named(args: list[str], shell: Shell) -> None:
    done = shell.run(*args)
    assert (done.returncode, done.stderr) == (2, "mintage: there is no pool 'nix': see 'mintage pools list'\n")


# --- lists of more than a page ----------------------------------------------------------------------------------------

MANY = range(1, 1_003)
FILL = """
    INSERT INTO mintage_pool SELECT 'p' || n, 'sno/1', 'x', 30000, 0, 0, 0, 0, 1000, 1, 0, 9 FROM numbers;
    INSERT INTO mintage_node SELECT 'p7', n, 0, 9e15, 30000, 'x', NULL, 'h', 0, 0, 1 FROM numbers;
    INSERT INTO mintage_namespace
    SELECT 'n' || n, 10, 1000000, 1, 10, 'x', 0, 1, 0, 0, 1, 'h', 1, 10, 1, 1 FROM numbers;
"""


def test_lists_of_several_pages_show_each_record_once(shell: Shell) -> None:
    with open_store(shell.url) as store:
        store.reserve("n0", 1)
    with closing(sqlite3.connect(shell.home / "ids.db")) as database, database:
        database.execute("CREATE TEMPORARY TABLE numbers (n INTEGER)")
        database.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in MANY))
        for step in FILL.split(";"):
            database.execute(step)
    names = sorted(f"n{n}" for n in (0, *MANY))
    assert [each["namespace"] for each in shell.facts("namespaces", "list")] == names
    pools = shell.facts("pools", "list")
    assert [each["pool"] for each in pools] == sorted(f"p{n}" for n in MANY)
    assert [(each["granted"], each["held"]) for each in pools if each["granted"]] == [(len(MANY), len(MANY))]
    for args in (("leases", "list"), ("leases", "list", "p7")):
        assert [int(each["node"]) for each in shell.facts(*args)] == list(MANY)


# --- leases -----------------------------------------------------------------------------------------------------------


def test_leases_list_shows_their_state(shell: Shell) -> None:
    assert shell.output("leases", "list") == "no leases yet\n"
    with open_store(shell.url) as store:
        held, revoked, released = lease(store), lease(store), lease(store)
        lease(store, pool="eu", holder="far:1")
        store.revoke("sno", revoked.node)
        store.release(released, used_until_ms=0)
        assert isinstance(store, SqliteStore)
        with store._begin() as transaction:
            record = transaction.get(NodeRecord, "sno", held.node)
            assert record is not None
            transaction.put(replace(record, node=7, until_ms=1_000_000_000_000, token="x"))
    states = {(each["pool"], each["node"]): each["state"] for each in shell.facts("leases", "list")}
    assert states == {
        ("eu", "0"): "held",
        ("sno", "0"): "held",
        ("sno", "1"): "revoked",
        ("sno", "2"): "released",
        ("sno", "7"): "ended",
    }
    assert {each["pool"] for each in shell.facts("leases", "list", "eu")} == {"eu"}
    lines = shell.output("leases", "list", "sno").splitlines()
    assert lines[0].split() == ["pool", "node", "state", "floor", "until", "left", "holder"]
    assert lines[1].endswith(HERE)
    assert "2001-09-09 01:46:40" in lines[-1]


def test_tokens_are_never_shown(shell: Shell) -> None:
    with open_store(shell.url) as store:
        token = lease(store).token
    for args in (["leases", "list"], ["leases", "release", "sno", "0"], ["pools", "list"], ["doctor"]):
        for json_too in ([], ["--json"]):
            assert token not in shell.run(*args, *json_too).stdout


def test_releasing_a_lease_revokes_it_at_the_end_of_its_window(shell: Shell) -> None:
    with open_store(shell.url) as store:
        held = lease(store)
        printed = shell.output("leases", "release", "sno", "0")
        assert "node 0 of pool sno: revoked" in printed
        assert HERE in printed
        with pytest.raises(RuntimeError, match="is lost"):
            store.extend(held, now_ms=time.time_ns() // 10**6, next_token=new_token())
        assert lease(store).node != held.node  # not before the window ends
    (first, _) = shell.facts("leases", "list")
    assert (first["state"], first["left_ms"] > 0) == ("revoked", True)


def test_never_leased_node_number_cannot_be_released(shell: Shell) -> None:
    done = shell.run("leases", "release", "sno", "3")
    assert done.returncode == CATALOGUE["lease.unknown"].exit
    assert done.stderr == "mintage: node 3 of pool 'sno' was never leased\n  See 'mintage leases list'.\n"


def test_stored_text_cannot_control_the_terminal(shell: Shell) -> None:
    with open_store(shell.url) as store:
        lease(store, holder="\x1b[31mred\nnext line")
    printed = shell.output("leases", "list")
    assert r"\x1b[31mred\nnext line" in printed
    assert "\x1b" not in printed


# --- who --------------------------------------------------------------------------------------------------------------


def old_id(node: int = 0) -> str:
    """Return the text of an ID of a node number, minted now."""
    return str(ulid.Generator(node).new())


def test_who_names_the_process_that_minted_an_id(shell: Shell) -> None:
    with open_store(shell.url) as store:
        lease(store, pool="ulid", layout="ulid", holder="far:4711:1700000000:1:0.1.0")
    minted = old_id()
    printed = shell.output("who", minted)
    assert printed.startswith(f"{minted}\n")
    assert "Minted by process 4711 on far, started 2023-11-14 22:13:20 UTC, mintage 0.1.0. It has node 0 of" in printed
    assert re.search(r"(?m)^  version +0\.1\.0$", printed)
    [report] = shell.facts("who", minted)
    assert report["input"] == minted
    assert (report["findings"][0]["state"], report["findings"][0]["holder"]["host"]) == ("held", "far")


def test_who_shows_layouts_without_a_pool_in_one_line(shell: Shell) -> None:
    with open_store(shell.url) as store:
        lease(store, pool="sno")
    printed = shell.output("who", str(snowflake.Generator(7).new()))
    assert len(re.findall("the store has no pool for snowflake default, ", printed)) == 1
    assert "pool sno" not in printed


def test_who_goes_on_after_a_text_that_is_no_id(shell: Shell) -> None:
    done = shell.run("who", "\x1b[31m", old_id(), "--json")
    assert done.returncode == CATALOGUE["parse.unknown"].exit
    assert "\x1b" not in done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert reports[0]["error"]["code"] == "parse.unknown"
    assert reports[1]["findings"][0]["state"] == "unknown pool"


def test_who_shows_a_hostile_holder_as_text(shell: Shell) -> None:
    with open_store(shell.url) as store:
        lease(store, pool="ulid", layout="ulid", holder="\x1b[31mred\nnext line")
    printed = shell.output("who", old_id())
    assert r"\x1b[31mred" in printed
    assert "\x1b" not in printed


def test_who_reads_ids_from_standard_input(shell: Shell) -> None:
    lines = "".join(f"{old_id()}\n" for _ in range(3))
    done = subprocess.run(
        [*MINTAGE, "who", "--json"], input=lines, capture_output=True, text=True, env=shell.env, timeout=60, check=True
    )
    assert [json.loads(line)["input"] for line in done.stdout.splitlines()] == lines.split()


def test_who_reports_a_store_that_is_away(shell: Shell) -> None:
    done = shell.run("who", old_id(), "--store", "redis://127.0.0.1:1/0?timeout_ms=200")
    assert done.returncode == CATALOGUE["store.unavailable"].exit
    assert done.stdout == ""


def test_who_names_the_process_that_reserved_an_integer(shell: Shell) -> None:
    with open_store(shell.url) as store:
        for name in ("far:4711:1700000000:1:0.1.0", "", "\x1b[31mred"):
            store.reserve("orders", 10, holder=name)
    printed = shell.output("who", "orders", "7")
    assert printed.startswith("orders 7\n")
    assert "Reserved by process 4711 on far, started 2023-11-14 22:13:20 UTC, mintage 0.1.0, at 2" in printed
    assert re.search(r"(?m)^  integers +1 to 10$", printed)
    [report] = shell.facts("who", "orders", "7")
    assert (report["state"], report["integer"], report["holder"]["host"]) == ("held", "7", "far")
    assert "by a client that did not name itself" in shell.output("who", "orders", "11")
    assert "\x1b" not in shell.output("who", "orders", "21")
    assert "Its next reservation begins above 30." in shell.output("who", "orders", "31")


def test_who_takes_a_word_that_is_no_id_for_a_namespace(shell: Shell) -> None:
    assert "The store has no namespace invoices." in shell.output("who", "invoices", "7")
    with open_store(shell.url) as store:
        store.reserve("2024", 1, holder="one")
    assert "Reserved by one" in shell.output("who", "2024", "1")
    printed = shell.output("who", "2025", "175928847299117063")
    assert printed.startswith("2025\n")
    assert "175928847299117063\n" in printed


def test_who_of_a_namespace_and_no_integer_is_one_error(shell: Shell) -> None:
    with open_store(shell.url) as store:
        store.reserve("orders", 1)
    for words in (("orders", "x"), ("orders", "1.5"), ("orders", "-1"), ("none", "\x1b[31m")):
        done = shell.run("who", "--", *words)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert f"neither '{words[0]}' nor {words[1]!a} is an ID" in done.stderr
        assert done.stderr.endswith("write: mintage who NAMESPACE INTEGER\n")


def test_who_without_a_store_asks_the_registry_of_the_machine(shell: Shell) -> None:
    script = "from mintage import snowflake; print(snowflake.new())"
    env = {key: value for key, value in shell.env.items() if key != "MINTAGE_STORE"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, check=True)
    printed = shell.output("who", done.stdout.strip(), MINTAGE_STORE="")
    assert f"on {socket.gethostname()}, started" in printed
    assert f"mintage {__version__}" in printed


def test_leases_list_names_a_process_in_words(shell: Shell) -> None:
    with open_store(shell.url) as store:
        lease(store, holder=f"{socket.gethostname()}:4711:1700000000:1:0.1.0")
    assert "process 4711 on " in shell.output("leases", "list")
    assert shell.facts("leases", "list")[0]["holder"].endswith(":4711:1700000000:1:0.1.0")
    assert shell.findings()["pools", "sno"]["facts"]["held_here"] == ["0"]


# --- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_reports_no_problem_of_a_new_store(shell: Shell) -> None:
    found = shell.findings()
    assert {each["level"] for each in found.values()} == {"ok"}
    assert found["store", "url"]["facts"] == {"url": shell.url, "from": "MINTAGE_STORE"}
    assert found["store", "promise"]["facts"] == {"promise": "host"}
    assert found["clock", "offset"]["facts"]["limit_ms"] == 5_000
    assert found["layouts", "locality"]["facts"]["expires"].startswith("2248-")
    assert found["layouts", "sno"]["facts"]["expires"].startswith("2079-")
    assert found["installation", "build"]["text"] == "release" or "MINTAGE_DEBUG_BUILD" in os.environ
    assert shell.output("doctor").endswith("\nnothing needs attention\n")


def test_doctor_shows_problems_first_and_fits_a_screen(shell: Shell) -> None:
    with open_store(shell.url) as store:
        for name in "abcdefgh":
            store.create_pool(name, layout="sno/1")
            store.reserve(name, 1)
        store.create_pool("new", layout="of a later version")
    brief, whole = (shell.run("doctor", *args).stdout.splitlines() for args in ([], ["-v"]))
    assert len(brief) <= 24
    for lines in (brief, whole):
        assert lines[0] == "pools"
        assert lines[1].split()[:2] == ["!!", "new"]
    assert len([line for line in whole if line.split()[:1] == ["ok"]]) > 24
    assert "  ok  pools         8 are fine" in brief
    assert "rest (doctor -v shows it in full)" in brief


def test_doctor_changes_nothing(shell: Shell) -> None:
    with open_store(shell.url) as store:
        lease(store)
        store.reserve("orders", 5)
        before = store.list_pools(), store.list_leases(), store.list_namespaces()
        shell.output("doctor")
        assert (store.list_pools(), store.list_leases(), store.list_namespaces()) == before


def test_doctor_predicts_the_next_node_number(shell: Shell) -> None:
    with open_store(shell.url) as store:
        for _ in range(3):
            lease(store)
            finding = shell.findings()["pools", "sno"]
            granted = lease(store)
            assert finding["facts"]["next_here"] == str(granted.node)
        assert finding["facts"]["held_here"] == ["0", "1", "2", "3", "4"]


def test_doctor_reports_an_exhausted_pool(shell: Shell) -> None:
    layout = "snowflake time:41 node:1 sequence:12 @1420070400000 1ms"
    with open_store(shell.url) as store:
        for _ in range(2):
            lease(store, pool="two", layout=layout)
    finding = shell.findings(status=1)["pools", "two"]
    assert finding["level"] == "attention"
    assert "all 2 node numbers of pool 'two' (0..1) are leased" in finding["text"]
    assert finding["todo"]


def test_numbers_held_outside_a_share_do_not_use_it_up(shell: Shell) -> None:
    with open_store(shell.url) as store:
        for _ in range(6):
            lease(store, span_ms=3_600_000)
    shell.facts("pools", "create", "sno", "--nodes", "6-11")
    finding = shell.findings()["pools", "sno"]
    assert finding["text"].startswith(
        "0 of 6 node numbers, its share 6-11, held; this host holds 0, 1, 2, 3, 4 and 1 more"
    )
    assert finding["level"] == "ok"


def test_doctor_reports_a_namespace_that_runs_out(shell: Shell) -> None:
    shell.output("namespaces", "create", "short", "--maximum", "100")
    shell.output("next", "short", "-n", "90")
    assert shell.findings()["namespaces", "short"]["facts"] == {"maximum": "100", "left": "10", "used": "90.0%"}
    shell.output("next", "short", "-n", "1")
    assert shell.findings(status=1)["namespaces", "short"]["level"] == "attention"
    shell.output("next", "short", "-n", "9")
    assert shell.findings(status=1)["namespaces", "short"]["text"] == (
        "all reserved up to its maximum, 100; processes may have some left"
    )


def test_doctor_warns_of_a_store_in_memory(shell: Shell) -> None:
    done = shell.run("doctor", "--store", "memory:")
    assert done.returncode == 1
    assert "!!  promise" in done.stdout
    assert done.stdout.endswith("\n1 thing needs attention\n")


def test_doctor_reports_a_clock_far_from_that_of_the_store(shell: Shell) -> None:
    from mintage.server.core.findings import clock_of

    store = SqliteStore(StoreUrl.parse(shell.url))
    levels = [
        clock_of(store, ahead_ms, 0).level for ahead_ms in (0, 2_500, -2_500, 2_501, -2_501, 5_000, 5_001, -90_000)
    ]
    assert levels == ["ok"] * 3 + ["attention"] * 5
    assert "90,000 ms behind the store's" in clock_of(store, -90_000, 0).text
    assert "no lease is granted" in clock_of(store, 5_001, 0).text


def test_doctor_blames_no_clock_for_a_pause_while_it_looks(shell: Shell) -> None:
    from mintage.server.core.findings import clock_of

    # It was paused for 13 seconds between its two readings of its own clock.
    store = SqliteStore(StoreUrl.parse(shell.url))
    assert clock_of(store, 6_500, 6_500).level == "ok"
    assert clock_of(store, -15_000, 6_500).level == "attention"


def test_doctor_reports_an_unusable_store_and_everything_else(shell: Shell) -> None:
    url = "sqlite:////nowhere/at/all/ids.db"
    found = shell.findings(status=CATALOGUE["store.refused"].exit, MINTAGE_STORE=url)
    assert found["store", "url"]["level"] == "unusable"
    assert found["store", "url"]["facts"] == {"code": "store.refused"}
    assert found["layouts", "sno"]["level"] == "ok"
    done = shell.run("doctor", MINTAGE_STORE=url)
    assert "XX  url" in done.stdout
    assert re.fullmatch(r"mintage: [^\n]*unable to open[^\n]*\n  [A-Z][^\n]*\n", done.stderr)


def test_every_problem_has_a_remedy(shell: Shell) -> None:
    shell.output("namespaces", "create", "one", "--maximum", "1")
    shell.output("next", "one")
    with open_store(shell.url) as store:
        store.create_pool("new", layout="of a later version")
    found = shell.findings(status=1)
    assert found["pools", "new"]["level"] == "attention"
    assert all(each["todo"] for each in found.values() if each["level"] != "ok")


def test_doctor_fits_eighty_columns(shell: Shell) -> None:
    short = {"MINTAGE_STORE": "sqlite:///ids.db", "MINTAGE_HOME": ""}
    shell.output("next", "orders")
    with open_store(shell.url) as store:
        lease(store)
        store.create_pool("old", layout="snowflake time:36 node:10 sequence:12 @0 1ms")
    lines = shell.run("doctor", **short).stdout.splitlines()
    assert any("runs out 1972-03-06" in line for line in lines)
    lines += shell.run("doctor", **{**short, "MINTAGE_STORE": "sqlite:////nowhere/at/all/ids.db"}).stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []


# --- which store ------------------------------------------------------------------------------------------------------


def test_store_comes_from_option_then_environment_then_registry(shell: Shell, tmp_path: Path) -> None:
    named = f"sqlite:///{tmp_path / 'named.db'}"
    assert shell.output("next", "orders", "--store", named) == "1\n"
    assert shell.output("next", "orders", "-n", "2") == "1\n2\n"
    assert shell.output("next", "orders", "-n", "3", MINTAGE_STORE="") == "1\n2\n3\n"
    assert shell.output("next", "orders", "--store", named) == "2\n"
    assert shell.output("next", "orders", MINTAGE_STORE="") == "4\n"
    assert {each["facts"].get("from") for each in shell.findings(MINTAGE_STORE="").values()} >= {
        "this machine's registry"
    }
    assert list((tmp_path / "home").iterdir())


def test_doctor_explains_the_reach_and_leases_of_the_registry(shell: Shell) -> None:
    shell.output("new", "sno", MINTAGE_STORE="")
    found = shell.findings(MINTAGE_STORE="")
    assert "of this user of this host; IDs of other users differ only by chance" in found["store", "promise"]["text"]
    assert "0 of 57,344 node numbers held" in found["pools", "sno"]["text"]
    assert "of this host that name this store" in shell.findings()["store", "promise"]["text"]


def test_relative_home_is_refused(shell: Shell) -> None:
    done = shell.run("new", "sno", MINTAGE_STORE="", MINTAGE_HOME="state")
    assert (done.returncode, done.stdout) == (CATALOGUE["config.home"].exit, "")
    assert "MINTAGE_HOME 'state' is not an absolute path" in done.stderr


def test_doctor_shows_a_home_of_spaces(shell: Shell) -> None:
    done = shell.run("doctor", "-v", MINTAGE_HOME=" ")
    assert (done.returncode, done.stderr) == (0, "")


def test_home_that_cannot_be_created_is_reported_in_one_line(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = {"MINTAGE_STORE": "", "MINTAGE_HOME": str(tmp_path / "file" / "home")}
    done = shell.run("next", "orders", **home)
    assert (done.returncode, done.stdout) == (CATALOGUE["store.refused"].exit, "")
    assert "set MINTAGE_HOME to a directory" in done.stderr


@pytest.mark.parametrize("args", [["doctor"], ["namespaces", "list"], ["pools", "list"], ["leases", "list"]])
def test_commands_that_read_create_no_registry(args: list[str], shell: Shell) -> None:
    assert shell.run(*args, MINTAGE_STORE="").returncode == 0
    assert list(shell.home.iterdir()) == []
    (shell.home / "home").mkdir()
    assert shell.run(*args, MINTAGE_STORE="").returncode == 0
    assert list((shell.home / "home").iterdir()) == []


@pytest.mark.parametrize("can_lock", [True, False])
def test_doctor_takes_no_lock(
    can_lock: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "locks").mkdir()
    monkeypatch.delenv("MINTAGE_STORE", raising=False)
    monkeypatch.setenv("MINTAGE_HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setattr(locks, "_FOLDERS", (str(tmp_path / ("locks" if can_lock else "file")),))
    assert main(["doctor"]) == 1
    assert list((tmp_path / "locks").iterdir()) == []
    shown = " ".join(capsys.readouterr().out.split())
    assert ("unique only among the processes that share these locks" in shown) is can_lock
    assert ("unique in this process only" in shown) is not can_lock


def test_doctor_warns_of_locks_where_the_registry_cannot_be_made(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = {"MINTAGE_STORE": "", "MINTAGE_HOME": str(tmp_path / "file" / "home")}
    done = shell.run("new", "sno", **home)
    assert done.returncode == 0
    assert "held by a lock instead" in done.stderr
    found = shell.findings(status=1, **home)
    assert found["store", "url"]["level"] == found["store", "promise"]["level"] == "attention"
    assert "held by a lock instead" in found["store", "url"]["text"]
    assert "share these locks" in found["store", "promise"]["text"]
    assert found["store", "url"]["todo"].startswith("Set MINTAGE_HOME to a directory")
    assert shell.run("doctor", **home).stderr == ""


def test_passwords_are_never_shown(shell: Shell) -> None:
    url = "mysql://user:geheim@127.0.0.1:1/ids?frob=geheim"
    for args in (
        ["next", "orders", "--store", url],
        ["next", "orders", "--sotre", url],
        ["doctor", "--store", url],
        ["doctor", "--json", "--store", url],
        ["doctor", url],
        ["pools", url],
        ["doctor", "postgresql://127.0.0.1:1/ids?password=geheim&sslpassword=geheim"],
        ["namespaces", "list", "--store", "geheim"],
    ):
        done = shell.run(*args)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert "geheim" not in done.stdout + done.stderr.replace("?frob=geheim", "")
    for extra in ([], ["--json"]):
        done = shell.run("doctor", "-v", *extra, MINTAGE_STORE=url)
        assert "geheim" not in done.stdout + done.stderr
        assert "mysql://user:***@127.0.0.1:1/ids" in done.stdout


WRONG = [
    (["next"], 2, "the following arguments are required: NAMESPACE"),
    (["next", "orders", "-n", "0"], 2, "'0' is outside 1..2147483647"),
    (["next", "orders", "-n", str(2**31)], 2, "'2147483648' is outside 1..2147483647"),
    (["next", "orders", "-n", "9" * 44], 2, "is outside 1..2147483647"),
    (["next", "a b"], 78, "namespace 'a b' is not 1 to 128 letters"),
    (["next", ""], 78, "namespace '' is not 1 to 128 letters"),
    (["next", "x" * 9999], 78, "is not 1 to 128 letters"),
    (["next", "\x1b[31m"], 78, r"is not 1 to 128 letters"),
    (["next", "orders", "--store", ""], 78, "begins with its kind"),
    (["next", "orders", "--store", "frob:"], 78, "no store is called 'frob'"),
    (["next", "orders", "--store", "sqlite:"], 78, "needs a file"),
    (["next", "orders", "--store", "sqlite:////tmp/%00"], 78, "zero byte"),
    (["reserve", "orders"], 2, "the following arguments are required: COUNT"),
    (["reserve", "orders", "many"], 2, "'many' is not a whole number"),
    (["reserve", "orders", str(2**31)], 2, "'2147483648' is outside 1..2147483647"),
    (["reserve", "orders", "9" * 40], 2, "is outside 1.."),
    (["namespaces", "frob"], 2, "invalid choice: 'frob'"),
    (["namespaces", "create", "x", "--start", "9", "--maximum", "8"], 65, "maximum 8 is below the first integer 9"),
    (["namespaces", "create", "x", "--stride", "0"], 65, "stride 0 is outside"),
    (["namespaces", "create", "x", "--stride", "2", "--offset", "2"], 65, "offset 2 is outside 0..1"),
    (["namespaces", "create", "x", "--maximum", str(2**63)], 65, "is outside 0.."),
    (["namespaces", "raise-floor", "x", str(2**64)], 65, "is outside 0.."),
    (["namespaces", "raise-floor", "x y", "1"], 78, "is not 1 to 128 letters"),
    (["pools", "create", "x y", "--layout", "sno"], 78, "pool 'x y' is not 1 to 128 letters"),
    (["pools", "create", "x", "--layout", "snowflake time:99 node:1 @0 1ms"], 78, "time:99"),
    (["leases", "release", "sno", "first"], 2, "'first' is not a whole number"),
    (["leases", "release", "sno", "9" * 40], 65, "was never leased"),
    (["leases", "release", "\udcff", "1"], 78, "is not 1 to 128 letters"),
    (["next", "\udcff"], 78, "is not 1 to 128 letters"),
    (["namespaces", "raise-floor", "\udcff", "1"], 78, "is not 1 to 128 letters"),
    (["leases", "release", "sno"], 2, "the following arguments are required: NODE"),
    (["doctor", "me"], 2, "unrecognized arguments: me"),
]


@pytest.mark.parametrize(("args", "status", "sentence"), WRONG, ids=lambda each: str(each)[:60])
def test_wrong_input_is_one_line_with_the_remedy(args: list[str], status: int, sentence: str, shell: Shell) -> None:
    done = shell.run(*args)
    assert (done.stdout, done.returncode) == ("", status)
    first, *rest = done.stderr.splitlines()
    assert first.startswith("mintage: ")
    assert sentence in first
    assert len(rest) == (0 if status == 2 else 1)
    assert all(line.startswith("  ") for line in rest)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", [b"this is no database, " * 99, b"", None])
def test_file_that_is_no_store_is_reported_in_one_line(content: bytes | None, shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "ids.db"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    done = shell.run("next", "orders")
    if content == b"":  # an empty file is an empty database
        assert done.stdout == "1\n"
    else:
        assert (done.returncode, done.stdout) == (CATALOGUE["store.refused"].exit, "")
        assert "Traceback" not in done.stderr


def test_store_of_a_newer_mintage_is_refused(shell: Shell, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ids.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for args in (["next", "orders"], ["doctor"], ["leases", "list"]):
        done = shell.run(*args)
        assert done.returncode == CATALOGUE["store.schema"].exit
        assert done.stderr.endswith(f"\n  {CATALOGUE['store.schema'].remedy}\n")


# --- output -----------------------------------------------------------------------------------------------------------


NARROW = [["pools", "list"], ["leases", "list"], ["namespaces", "list"], ["doctor"]]


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("args", NARROW, ids=" ".join)
def test_only_long_words_exceed_a_narrow_terminal(shell: Shell, args: list[str], columns: int) -> None:
    shell.output("next", "orders")
    with open_store(shell.url) as store:
        for pool in ("sno", "p" * 100):
            lease(store, pool=pool, span_ms=3_600_000)
    shown = shell.run(*args, COLUMNS=str(columns)).stdout.splitlines()
    assert not [line for line in shown if len(line) > columns and len(line.split()[-1]) < 20]
    # A long name does not push what is beside others to the right.
    assert len([line for line in shown if line.startswith(" " * 50)]) == 0
    # A file has all the room that a row needs.
    if args != ["doctor"]:
        assert len(shell.output(*args).splitlines()) == (2 if args[0] == "namespaces" else 3)


def test_lease_lost_to_a_copy_of_its_holder_is_shown(shell: Shell) -> None:
    with open_store(shell.url) as store:
        held = lease(store, span_ms=3_600_000)
        now_ms = store.now_ms()
        store.extend(held, now_ms=now_ms, next_token="a" * len(held.token))
        with pytest.raises(LeaseError):
            store.extend(held, now_ms=now_ms, next_token="b" * len(held.token))
    assert ", and a copy of it " in shell.output("leases", "list")
    assert shell.facts("leases", "list")[0]["cloned"] is not None
    finding = shell.findings(status=1)["pools", "sno"]
    assert finding["level"] == "attention"
    assert "a copy of a holder lost its lease, of node number 0" in finding["text"]
    assert "after_restore" in finding["todo"]


@pytest.mark.parametrize("code", CATALOGUE)
def test_remedies_at_a_terminal_mention_no_python(code: str) -> None:
    if not code.startswith(
        ("generator", "fork", "config.snapshot", "config.clock", "time", "field", "parse", "argument")
    ):
        assert not re.search(
            r"`|retry_after_ms|open_store|on_lease_lost|never_used|ManualClock|a new generator", advice(code)
        )


@pytest.mark.parametrize("code", CATALOGUE)
def test_no_remedy_sends_back_to_the_message(code: str) -> None:
    assert "ollow the message" not in CATALOGUE[code].remedy


def test_remedy_for_a_name_differs_from_the_message(shell: Shell) -> None:
    message, remedy = shell.run("namespaces", "create", "a b").stderr.splitlines()
    assert not set(re.findall(r"[a-z]{4,}", remedy)) <= set(re.findall(r"[a-z]{4,}", message))


@needs_rich
def test_colours_change_only_escapes_and_marks(shell: Shell) -> None:
    shell.output("next", "orders")
    with open_store(shell.url) as store:
        lease(store, span_ms=3_600_000)
        store.revoke("sno", 0)
    for args in (["namespaces", "list"], ["pools", "list"], ["pools", "show", "sno"], ["doctor"]):
        colored = shell.output(*args, "--color", "always", PYTHONIOENCODING="ascii", COLUMNS="80")
        assert "\x1b[" in colored
        plain = re.sub(r"\x1b\[[0-9;]*m", "", colored)
        assert timeless(plain) == timeless(shell.output(*args))


def timeless(printed: str) -> list[str]:
    """Return the lines without the measured difference of two clocks and its accuracy."""

    def near(offset: re.Match[str]) -> str:
        # Where the sentence breaks depends on how long its numbers are.
        words = " ".join(offset[0].split())
        words = re.sub(r"(the same as|[0-9]+ ms (behind|ahead of)) the store's", "near the store's", words)
        return re.sub(r"to within [0-9,]+ ms", "to within some ms", words)

    return [line.rstrip() for line in re.sub(r"ok  offset .*(\n {20}.*)*", near, printed).splitlines()]


def test_plain_output_is_ascii(shell: Shell) -> None:
    for args in (
        ["doctor"],
        ["doctor", "--help"],
        ["pools", "create", "--help"],
        ["namespaces"],
        ["leases", "release", "-h"],
    ):
        assert shell.output(*args).isascii()


def test_group_without_a_command_prints_its_help(shell: Shell) -> None:
    for name in ("namespaces", "pools", "leases"):
        assert shell.output(name) == shell.output(name, "--help")
