"""What is special about SQLite: a file, which others open, replace, fill with other things, or forbid to write."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mintage.errors import ConfigError, LeaseError, StoreError
from mintage.store import new_token, open_store
from mintage.store.sqlite import SqliteStore
from tests.contract.clients import NAMESPACE, POOL, overlaps
from tests.outcomes import code_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mintage.lease import Lease

ROOT = Path(__file__).parents[2]
BOUND_S = 60
"""Seconds after which a process counts as stuck; never waited for otherwise."""
SPAN_MS = 10_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ids.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with opened(path) as store:
        yield store


def opened(path: Path, options: str = "") -> SqliteStore:
    store = open_store(f"sqlite:///{path}{options}")
    assert isinstance(store, SqliteStore)
    return store


def acquire(store: SqliteStore, **options: Any) -> Lease:
    chosen = {"nodes": range(4), "now_ms": store.now_ms(), "span_ms": SPAN_MS, **options}
    return store.acquire("p", layout="test", holder="me", **chosen)


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


# --- the file -------------------------------------------------------------------------------------------------------


def test_nothing_is_opened_before_the_first_verb(path: Path) -> None:
    with opened(path) as store:
        assert str(store.path) == str(path)
    assert not path.exists()


def test_a_relative_path_stays_where_it_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///ids.db") as store:
        monkeypatch.chdir("/")
        store.reserve("n", 1)
    assert (tmp_path / "ids.db").is_file()


@pytest.mark.parametrize("name", ["with space.db", "größe.db", "100%25.db", "what%3F.db", "a%23b.db", "it's.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    with open_store(f"sqlite:///{tmp_path}/{name}") as store:
        store.reserve("n", 1)
        assert [str(file.name) for file in tmp_path.glob("*.db")] == [Path(str(store.url)).name]


def test_what_was_committed_survives_a_power_failure(store: SqliteStore) -> None:
    store.reserve("n", 1)
    with closing(store._connect()) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        assert synchronous >= 2


def test_a_verb_is_on_the_disk_when_it_returns(store: SqliteStore, path: Path) -> None:
    # Who reads on keeps the log of what was written beside the file.
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        store.reserve("n", 1)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM mintage_namespace").fetchall()
        segment = store.reserve("n", 10)
        # As after a crash: a copy of what the files hold now.
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{path}.copy{suffix}")
    with opened(Path(f"{path}.copy")) as crashed:
        (namespace,) = crashed.list_namespaces()
    assert namespace.high_water == segment.last


def test_a_closed_store_leaves_one_file(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 1)
    store.close()
    assert [file.name for file in path.parent.iterdir()] == ["ids.db"]


def test_a_file_that_was_replaced_is_noticed_and_nothing_that_may_be_forgotten_is_given(
    store: SqliteStore, path: Path
) -> None:
    kept = acquire(store)
    segment = store.reserve("n", 100)
    shutil.copy(path, f"{path}.backup")
    forgotten = acquire(store)
    store.reserve("n", 100)
    os.replace(f"{path}.backup", path)
    with pytest.raises(LeaseError) as caught:
        acquire(store)
    assert caught.value.code == "lease.none_free"
    assert caught.value.retry_after_ms is not None
    assert caught.value.retry_after_ms > SPAN_MS
    assert code_of(lambda: store.extend(forgotten, now_ms=store.now_ms(), next_token=new_token())) == "lease.lost"
    # Who held on without a break goes on.
    assert store.extend(kept, now_ms=store.now_ms() + 4_000, next_token=new_token()).until_ms > kept.until_ms
    assert store.reserve("n", 100).first == segment.last + 10 * 100 + 1
    with opened(path) as other:
        assert code_of(lambda: acquire(other)) == "lease.none_free"


def test_a_file_that_was_removed_is_made_again(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 10)
    for file in path.parent.iterdir():
        file.unlink()
    store.reserve("other", 1)
    with opened(path) as other:
        assert [namespace.name for namespace in other.list_namespaces()] == ["other"]


@pytest.mark.parametrize("content", [b"no database, just text " * 100, b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(store: SqliteStore, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"ids\.db") as caught:
        store.reserve("n", 1)
    assert caught.value.code == "store.refused"
    assert path.read_bytes() == content


def test_a_directory_is_no_file(store: SqliteStore, path: Path) -> None:
    path.mkdir()
    assert code_of(lambda: store.reserve("n", 1)) == "store.refused"


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with opened(tmp_path / "missing" / "ids.db") as store:
        assert code_of(lambda: store.reserve("n", 1)) == "store.refused"
    assert not (tmp_path / "missing").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_directory_that_cannot_be_written_is_refused(store: SqliteStore, path: Path) -> None:
    path.parent.chmod(0o555)
    try:
        assert code_of(lambda: store.reserve("n", 1)) == "store.refused"
    finally:
        path.parent.chmod(0o755)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_cannot_be_written_is_refused(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 1)
    store.close()
    path.chmod(0o444)
    assert code_of(lambda: store.reserve("n", 1)) == "store.refused"


def test_a_database_that_nobody_may_write_is_refused() -> None:
    with open_store("sqlite:////proc/version") as store:
        assert code_of(lambda: store.reserve("n", 1)) == "store.refused"
    with open_store("sqlite:////proc/ids.db") as store:
        assert code_of(lambda: store.reserve("n", 1)) == "store.refused"


def test_tables_of_a_newer_mintage_are_left_alone(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 10)
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match="999") as caught:
        store.reserve("n", 1)
    assert caught.value.code == "store.schema"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT high_water FROM mintage_namespace").fetchall() == [(10,)]


def test_a_database_of_an_application_can_hold_the_records_too(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    assert store.reserve("n", 1).first == 1
    with closing(sqlite3.connect(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"orders", "mintage_pool", "mintage_node", "mintage_namespace", "mintage_life"}


def test_a_file_that_another_holds_is_unavailable_for_as_long(path: Path) -> None:
    with opened(path, "?timeout_ms=1") as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        store.reserve("n", 10)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="1 ms") as caught:
            store.reserve("n", 10)
        assert caught.value.code == "store.unavailable"
        other.execute("ROLLBACK")
        assert store.reserve("n", 10).first == 11


@pytest.mark.parametrize(
    "url",
    ["sqlite:", "sqlite://", "sqlite:///", "sqlite://ids.db", "sqlite:///a?mode=ro", "sqlite:///a?timeout_ms=0"],
)
def test_a_url_without_a_file_or_with_unknown_options_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert caught.value.code == "config.store"


# --- processes ------------------------------------------------------------------------------------------------------


def test_eight_processes_make_the_file_and_reserve_at_once(path: Path) -> None:
    command = [sys.executable, "-m", "tests.contract.clients", f"sqlite:///{path}", "2", "1"]
    processes = [
        subprocess.Popen([*command, str(seed)], cwd=ROOT, stdout=subprocess.PIPE, text=True) for seed in range(8)
    ]
    history = []
    for process in processes:
        printed, _ = process.communicate(timeout=BOUND_S)
        assert process.returncode == 0
        history += [(whose, first, stop) for whose, first, stop in json.loads(printed)]
    assert overlaps(history) == []
    assert {whose for whose, _, _ in history} >= {NAMESPACE}
    with opened(path) as store:
        assert [pool.name for pool in store.list_pools()] == [POOL]


def test_a_process_killed_between_reserving_and_using_takes_its_segment_along(store: SqliteStore, path: Path) -> None:
    process = python(
        "import sys, time; from mintage.store import open_store; store = open_store(sys.argv[1]);"
        "segment = store.reserve('n', 10);"
        "store.acquire('p', nodes=range(1), layout='test', holder='it', now_ms=store.now_ms(), span_ms=10_000);"
        "print(segment.last, flush=True); time.sleep(600)",
        f"sqlite:///{path}",
    )
    assert process.stdout is not None
    last = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=BOUND_S)
    assert store.reserve("n", 10).first == last + 1
    assert code_of(lambda: acquire(store, nodes=range(1))) == "lease.none_free"


def test_a_process_killed_in_the_middle_has_written_nothing(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 10)
    process = python(
        "import sys, time; from mintage.store import open_store; store = open_store(sys.argv[1]);\n"
        "with store._begin() as t:\n"
        "    from dataclasses import replace\n"
        "    from mintage.lease import NamespaceRecord\n"
        "    t.put(replace(t.get(NamespaceRecord, 'n'), high_water=1_000))\n"
        "    print(flush=True); time.sleep(600)",
        f"sqlite:///{path}",
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=BOUND_S)
    assert store.reserve("n", 10).first == 11


@pytest.mark.skipif(sys.platform != "linux", reason="forks beside threads are Linux's")
def test_a_forked_child_that_ends_leaves_its_parents_store_whole(store: SqliteStore, path: Path) -> None:
    process = python(
        "import os, sys; from mintage.store import open_store; store = open_store(sys.argv[1]);\n"
        "first = store.reserve('n', 10).first\n"
        "if os.fork() == 0:\n"
        "    store.reserve('n', 10)\n"
        "    sys.exit()\n"
        "os.wait()\n"
        "print(first, store.reserve('n', 10).first)\n",
        f"sqlite:///{path}",
    )
    printed, _ = process.communicate(timeout=BOUND_S)
    assert printed.split() == ["1", "21"]
    assert store.reserve("n", 10).first == 31


def test_a_table_of_another_program_is_not_taken_for_a_full_disk(path: Path, store: SqliteStore) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE mintage_namespace (name TEXT)")
    with pytest.raises(StoreError, match="its tables are not those that this mintage makes") as caught:
        store.reserve("n", 1)
    assert caught.value.code == "store.refused"


def test_a_file_that_is_no_database_is_told_from_one_that_cannot_be_written(path: Path, store: SqliteStore) -> None:
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match="is no SQLite database or a damaged one"):
        store.reserve("n", 1)


def test_a_verb_holds_the_file_from_its_first_look_on(store: SqliteStore, path: Path) -> None:
    # Who looked first and then found that another wrote meanwhile would be refused without a wait.
    store.reserve("n", 1)
    with (
        store._begin(),
        closing(sqlite3.connect(path, timeout=0)) as other,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("BEGIN IMMEDIATE")


# --- one file, one name -----------------------------------------------------------------------------------------------


def test_a_file_with_two_names_is_refused(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    assert store.reserve("n", 10).first == 1
    other = tmp_path / "other.db"
    other.hardlink_to(path)
    for name in (path, other):
        with opened(name) as refused:
            assert code_of(lambda refused=refused: refused.reserve("n", 10)) == "store.refused"  # type: ignore[misc]
    other.unlink()
    assert store.reserve("n", 10).first == 11


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_file_that_is_mounted_by_itself_is_refused(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    assert store.reserve("n", 10).first == 1
    other = tmp_path / "in a container" / "ids.db"
    other.parent.mkdir()
    other.touch()
    mounts = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    code = "import sys; from mintage import open_store; open_store(sys.argv[1]).reserve('n', 10)"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounts, "sh", path, other, sys.executable, "-c", code, f"sqlite:///{other}"],
        capture_output=True, text=True, check=False, timeout=BOUND_S,
    )  # fmt: skip
    assert "mount the directory" in done.stderr
    assert store.reserve("n", 10).first == 11


def test_a_file_that_was_made_anew_is_another_one_even_in_the_same_place(store: SqliteStore, path: Path) -> None:
    def made() -> str:
        store.reserve("n", 1)
        return store.describe().identity

    before, inode = made(), path.stat().st_ino
    for file in path.parent.glob("ids.db*"):
        os.truncate(file, 0)
    assert (made() != before, path.stat().st_ino) == (True, inode)


@pytest.mark.parametrize(("times", "is_opened"), [(2, True), (3, False)])
@pytest.mark.parametrize("code", [sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY_CANTINIT])
def test_a_file_that_is_closed_for_a_moment_is_tried_three_times(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, code: int, times: int, *, is_opened: bool
) -> None:
    denied = [sqlite3.OperationalError("denied") for _ in range(times)]
    for error in denied:
        error.sqlite_errorcode = code
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def denying(*args: Any, **options: Any) -> sqlite3.Connection:
        if denied:
            raise denied.pop()
        return connect(*args, **options)

    monkeypatch.setattr(sqlite3, "connect", denying)
    if is_opened:
        assert store.reserve("n", 1).last == 1
    else:
        assert code_of(lambda: store.reserve("n", 1)) == "store.refused"
