"""Tests of SQLite: a file that others open, replace, fill with other data or make read-only."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mintage._core import sha3_256
from mintage.errors import ConfigError, LeaseError, StoreError
from mintage.rules import GAP, PoolRecord
from mintage.store import open_store
from mintage.store.sql.statements import migrations
from mintage.store.sqlite import marks
from mintage.store.sqlite.store import SqliteStore
from mintage.who import who_reserved
from tests.contract.clients import NAMESPACE, POOL, overlaps
from tests.helpers import file_copies
from tests.helpers.outcomes import code_of, eventually
from tests.helpers.processes import closed_directory
from tests.helpers.stores import RUN_COLUMNS, acquire, extend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import FileIO


ROOT = Path(__file__).parents[2]
BOUND_S = 240
"""Seconds after which a process counts as stuck; never waited for otherwise."""
SPAN_MS = 10_000


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    # A directory of this run alone: the machine remembers the paths of stores, and pytest uses its names again.
    own = tmp_path / os.urandom(4).hex()
    own.mkdir()
    return own


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


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


# --- the file -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [":memory:", "/:memory:", "file:ids.db", "file::memory:"])
def test_name_that_is_special_in_sqlite_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="use memory:") as refused:
        open_store(f"sqlite:///{name}")
    assert refused.value.code == "config.store"


def test_store_opens_no_file_before_the_first_verb(path: Path) -> None:
    with opened(path) as store:
        assert str(store.path) == str(path)
    assert not path.exists()


def test_relative_path_is_resolved_when_the_store_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///ids.db") as store:
        monkeypatch.chdir("/")
        store.reserve("n", 1)
    assert (tmp_path / "ids.db").is_file()


@pytest.mark.parametrize("name", ["with space.db", "größe.db", "100%25.db", "what%3F.db", "a%23b.db", "it's.db"])
def test_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    with open_store(f"sqlite:///{tmp_path}/{name}") as store:
        store.reserve("n", 1)
        assert [str(file.name) for file in tmp_path.glob("*.db")] == [Path(str(store.url)).name]


def test_committed_records_survive_a_power_failure(store: SqliteStore) -> None:
    store.reserve("n", 1)
    with closing(store._connect()) as connection:
        store._open(connection, writes=True)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        assert synchronous >= 2


def test_verb_is_on_the_disk_when_it_returns(store: SqliteStore, path: Path) -> None:
    # A reader keeps the write-ahead log beside the file.
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        store.reserve("n", 1)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM mintage_namespace").fetchall()
        segment = store.reserve("n", 10)
        # Copy the files as after a crash.
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{path}.copy{suffix}")
    with opened(Path(f"{path}.copy")) as crashed:
        (namespace,) = crashed.list_namespaces()
    assert namespace.high_water == segment.last


def test_closed_store_leaves_its_file_and_the_guard(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 1)
    store.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["ids.db", "ids.db-guard"]


def test_replaced_file_is_noticed_and_forgotten_numbers_are_withheld(store: SqliteStore, path: Path) -> None:
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
    assert code_of(lambda: extend(store, forgotten)) == "lease.lost"
    # A holder with an unbroken window continues.
    assert extend(store, kept, 4_000).until_ms > kept.until_ms
    # The lost integers, and ten times the largest count.
    assert store.reserve("n", 100).first == segment.last + 100 + 10 * 100 + 1
    with opened(path) as other:
        assert code_of(lambda: acquire(other)) == "lease.none_free"


def test_removed_file_is_created_again(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 10)
    for file in path.parent.iterdir():
        file.unlink()
    store.reserve("other", 1)
    with opened(path) as other:
        assert [namespace.name for namespace in other.list_namespaces()] == ["other"]


@pytest.mark.parametrize("content", [b"no database, just text " * 100, b"SQLite format 3\0" + b"\xff" * 5_000])
def test_file_that_is_no_database_is_refused_and_left_alone(store: SqliteStore, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"ids\.db") as caught:
        store.reserve("n", 1)
    assert caught.value.code == "store.refused"
    assert path.read_bytes() == content


def test_directory_is_refused_as_a_file(store: SqliteStore, path: Path) -> None:
    path.mkdir()
    assert code_of(lambda: store.reserve("n", 1)) == "store.refused"


def test_missing_directory_is_not_created(tmp_path: Path) -> None:
    with opened(tmp_path / "missing" / "ids.db") as store:
        assert code_of(lambda: store.reserve("n", 1)) == "store.refused"
    assert not (tmp_path / "missing").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_directory_that_cannot_be_written_is_refused(store: SqliteStore, path: Path) -> None:
    path.parent.chmod(0o555)
    try:
        assert code_of(lambda: store.reserve("n", 1)) == "store.refused"
    finally:
        path.parent.chmod(0o755)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_file_that_cannot_be_written_is_refused(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 1)
    store.close()
    path.chmod(0o444)
    assert code_of(lambda: store.reserve("n", 1)) == "store.refused"


def test_database_in_read_only_mode_is_refused() -> None:
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


def test_database_of_an_application_can_hold_the_records(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    assert store.reserve("n", 1).first == 1
    with closing(sqlite3.connect(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {
        "orders",
        *(f"mintage_{name}" for name in ("pool", "node", "grant", "namespace", "run", "life", "count")),
    }


def test_file_locked_by_another_is_unavailable_after_the_timeout(path: Path) -> None:
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
def test_url_without_a_file_or_with_unknown_options_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert caught.value.code == "config.store"


# --- processes ------------------------------------------------------------------------------------------------------


def test_eight_processes_create_the_file_and_reserve_at_once(path: Path) -> None:
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


def test_process_killed_after_reserving_loses_only_its_segment(store: SqliteStore, path: Path) -> None:
    process = python(
        "import sys, time; from mintage.store import open_store; store = open_store(sys.argv[1]);"
        "segment = store.reserve('n', 10);"
        "store.acquire('p', nodes=range(1), layout='test', holder='it', now_ms=store.now_ms(), span_ms=600_000);"
        "print(segment.last, flush=True); time.sleep(600)",
        f"sqlite:///{path}",
    )
    assert process.stdout is not None
    last = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=BOUND_S)
    assert store.reserve("n", 10).first == last + 1
    assert code_of(lambda: acquire(store, nodes=range(1))) == "lease.none_free"


def test_process_killed_during_a_verb_has_written_nothing(store: SqliteStore, path: Path) -> None:
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
def test_exit_of_a_forked_child_leaves_the_store_of_its_parent_intact(store: SqliteStore, path: Path) -> None:
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


def test_table_of_another_program_is_not_reported_as_a_full_disk(path: Path, store: SqliteStore) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE mintage_namespace (name TEXT)")
    with pytest.raises(StoreError, match="its tables are not those that this mintage makes") as caught:
        store.reserve("n", 1)
    assert caught.value.code == "store.refused"


def test_corrupt_file_and_unwritable_file_give_different_errors(path: Path, store: SqliteStore) -> None:
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match="is no SQLite database or a damaged one"):
        store.reserve("n", 1)


def test_directory_that_is_closed_to_this_user_is_not_called_missing(tmp_path: Path) -> None:
    with (
        closed_directory(tmp_path) as closed,
        opened(closed / "data" / "ids.db") as store,
        pytest.raises(StoreError, match="give access to it"),
    ):
        store.reserve("n", 1)


def test_verb_locks_the_file_before_its_first_read(store: SqliteStore, path: Path) -> None:
    # A transaction that reads first and finds another writer would fail without waiting.
    store.reserve("n", 1)
    with (
        store._begin(),
        closing(sqlite3.connect(path, timeout=0)) as other,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("BEGIN IMMEDIATE")


# --- one file, one name -----------------------------------------------------------------------------------------------


def test_file_with_two_names_is_refused(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    assert store.reserve("n", 10).first == 1
    other = tmp_path / "other.db"
    other.hardlink_to(path)
    for name in (path, other):
        with opened(name) as refused:
            assert code_of(lambda refused=refused: refused.reserve("n", 10)) == "store.refused"  # type: ignore[misc]
    other.unlink()
    assert store.reserve("n", 10).first == 11


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_bind_mounted_file_is_refused(store: SqliteStore, path: Path, tmp_path: Path) -> None:
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


def test_recreated_file_in_the_same_place_is_another_store(store: SqliteStore, path: Path) -> None:
    def made() -> str:
        store.reserve("n", 1)
        return store.describe().identity

    before, inode = made(), path.stat().st_ino
    for file in path.parent.glob("ids.db*"):
        os.truncate(file, 0)
    assert (made() != before, path.stat().st_ino) == (True, inode)


@pytest.mark.parametrize(("times", "is_opened"), [(2, True), (3, False)])
@pytest.mark.parametrize("code", [sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY_CANTINIT])
def test_file_closed_for_a_moment_is_tried_three_times(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, code: int, times: int, *, is_opened: bool
) -> None:
    denied = [sqlite3.OperationalError("denied") for _ in range(times)]
    for error in denied:
        error.sqlite_errorcode = code
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def denying(address: object, *args: Any, **options: Any) -> sqlite3.Connection:
        if denied and address == store.path:  # not the file of a keeper
            raise denied.pop()
        return connect(address, *args, **options)

    monkeypatch.setattr(sqlite3, "connect", denying)
    if is_opened:
        assert store.reserve("n", 1).last == 1
    else:
        assert code_of(lambda: store.reserve("n", 1)) == "store.refused"


# --- restored copies ------------------------------------------------------------------------------------------------

FILE_SYSTEMS = ["tmpfs", "disk", "overlay", *file_copies.KINDS]
NUMBERS = count()


@pytest.fixture(scope="module", params=FILE_SYSTEMS)
def file_system(request: pytest.FixtureRequest) -> Iterator[Path]:
    kind = request.param
    with ExitStack() as stack:
        base = "/dev/shm" if kind == "tmpfs" else "/var/tmp"
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mintage-", dir=base)))
            if kind == "overlay":
                folder = stack.enter_context(file_copies.overlaid(folder))
            elif kind in file_copies.KINDS:
                folder = stack.enter_context(file_copies.mounted(folder, kind)).root
        except OSError as error:
            pytest.skip(f"{kind} cannot be had here: {error}")
        yield folder


@pytest.fixture
def anywhere(file_system: Path) -> Path:
    place = file_system / f"store{next(NUMBERS)}"
    place.mkdir()
    return place


def copied(path: Path) -> Path:
    copy = path.parent.with_name(f"{path.parent.name}-copy")
    file_copies.copied(path.parent, copy)
    return copy


def has_attributes(path: Path) -> bool:
    try:
        os.setxattr(path, "user.test", b"")
    except OSError:
        return False
    os.removexattr(path, "user.test")
    return True


def forget(
    *,
    process: bool = False,
    guard: Path | None = None,
    shared: Path | None = None,
    attributes: Path | None = None,
) -> None:
    """Erase the memory of the process, as in another process, and of the machine, as after a restart."""
    if process:
        marks._remembered.clear()
        while marks._used:
            marks._used.popitem()[1].close()
    if attributes is not None and sys.platform == "linux":
        for name in os.listxattr(attributes):
            os.removexattr(attributes, name)
    if guard is not None:
        guard.with_name(f"{guard.name}-guard").unlink(missing_ok=True)
    if shared is not None:
        assert marks._SHARED is not None
        # Of this file alone: other tests run at the same time.
        Path(marks._SHARED, f"mintage-{os.geteuid()}", f"{shared_name(shared)}.marks").unlink()


def shared_name(path: Path) -> str:
    """Return the name, without its ending, of a store's files in shared memory."""
    return sha3_256(os.fsencode(path)).hex()[:32]


@pytest.mark.parametrize("is_another", [False, True], ids=["this process", "another"])
@pytest.mark.parametrize("way", file_copies.WAYS)
def test_copy_in_place_of_the_file_is_a_server_that_took_over(anywhere: Path, way: str, *, is_another: bool) -> None:
    if reason := file_copies.lacks(way):
        pytest.skip(reason)
    path = anywhere / "ids.db"
    with opened(path) as store:
        kept = acquire(store)
        store.reserve("n", 100)
        copy, before = copied(path), store.describe().identity
        forgotten, lost = acquire(store), store.reserve("n", 100)
        file_copies.WAYS[way](anywhere, copy)
        if is_another:
            forget(process=True)
        assert code_of(lambda: acquire(store)) == "lease.none_free"
        assert code_of(lambda: extend(store, forgotten)) == "lease.lost"
        assert extend(store, kept).node == kept.node
        assert store.reserve("n", 100).first == lost.last + GAP * 100 + 1
        after = store.describe().identity
        assert after != before
        # It is noticed once.
        assert store.reserve("n", 100).first == lost.last + GAP * 100 + 101
        assert store.describe().identity == after


RESERVING = """
import sys
from mintage import open_store
from mintage.errors import StoreError
try:
    print(*open_store(sys.argv[1]).reserve("n", 100).as_range())
except StoreError as error:
    assert error.code == "store.unavailable"  # The verb has locked the file.
"""


@pytest.mark.parametrize("has_shared_memory", [True, False], ids=["shared memory", "none"])
@pytest.mark.parametrize("way", ["rm all, cp", "cp aside, mv", "rm -r, cp -r of all", "cp -r of all"])
def test_copy_placed_before_the_marks_are_kept_repeats_no_integer(
    anywhere: Path, way: str, monkeypatch: pytest.MonkeyPatch, *, has_shared_memory: bool
) -> None:
    path = anywhere / "ids.db"
    keep = marks.Witness.write_marks
    during: list[int] = []

    def reserve_in_another_process() -> list[int]:
        with python(RESERVING, f"sqlite:///{path}?timeout_ms=100") as another:
            assert another.stdout
            return [int(word) for word in another.stdout.read().split()]

    def late(kept_by: marks.Witness, kept: marks.Marks) -> None:
        if kept_by._path == str(path):  # The keeper of another test may extend its leases now.
            monkeypatch.setattr(marks.Witness, "write_marks", keep)
            file_copies.WAYS[way](anywhere, copy)
            during.extend(reserve_in_another_process())
        keep(kept_by, kept)

    with opened(path) as store:
        store.reserve("n", 1)  # After a takeover a namespace skips ten times as many.
        copy = copied(path)
        monkeypatch.setattr(marks.Witness, "write_marks", late)
        if not has_shared_memory:
            monkeypatch.setattr(marks, "_open_shared", lambda *_: None)
        ours = store.reserve("n", 100).as_range()
        monkeypatch.undo()
        after = reserve_in_another_process()
    if has_shared_memory:
        assert not during
    assert len(after) == 100
    assert len({*ours, *during, *after}) == len(ours) + len(during) + len(after)


@pytest.mark.parametrize("is_another", [False, True], ids=["this process", "another"])
@pytest.mark.parametrize("kind", file_copies.KINDS)
def test_restored_volume_is_a_server_that_took_over(tmp_path: Path, kind: str, *, is_another: bool) -> None:
    with ExitStack() as stack:
        try:
            volume = stack.enter_context(file_copies.mounted(tmp_path, kind))
        except OSError as error:
            pytest.skip(f"{kind} cannot be had here: {error}")
        with opened(volume.root / "ids.db") as store:
            acquire(store)
            segment = store.reserve("n", 100)
            volume.save(tmp_path / "snapshot")
            store.reserve("n", 100)
            volume.restore(tmp_path / "snapshot")
            if is_another:
                forget(process=True)
            assert store.reserve("n", 100).first == segment.last + 100 + GAP * 100 + 1
            assert code_of(lambda: acquire(store)) == "lease.none_free"


@pytest.mark.parametrize("is_another", [False, True], ids=["this process", "another"])
def test_volume_restored_to_an_earlier_device_took_over(tmp_path: Path, *, is_another: bool) -> None:
    with ExitStack() as stack:
        try:
            volume = stack.enter_context(file_copies.mounted(tmp_path, "ext4"))
        except OSError as error:
            pytest.skip(f"ext4 cannot be had here: {error}")
        volume.attach()
        with opened(volume.root / "ids.db") as store:
            store.reserve("n", 100)
            volume.save(tmp_path / "snapshot", device=1)
            lost = store.reserve("n", 100)
            volume.restore(tmp_path / "snapshot")
            if is_another:
                forget(process=True)
            assert store.reserve("n", 100).first > lost.last


@pytest.mark.parametrize("only", ["process", "guard", "shared", "attributes"])
def test_each_process_notices_an_older_copy_by_itself(store: SqliteStore, path: Path, only: str) -> None:
    segment = store.reserve("n", 100)
    copy = copied(path)
    store.reserve("n", 100)
    file_copies.WAYS["cp over it"](path.parent, copy)
    if only == "attributes" and not has_attributes(path):
        pytest.skip("this file system has no attributes of files")
    forget(
        process=only != "process",
        guard=None if only == "guard" else path,
        shared=None if only == "shared" else path,
        attributes=None if only == "attributes" else path,
    )
    assert store.reserve("n", 100).first == segment.last + 100 + GAP * 100 + 1


@pytest.mark.parametrize("way", file_copies.OVER_ALL)
def test_copy_over_file_and_guard_is_noticed_without_shared_memory(anywhere: Path, way: str) -> None:
    if reason := file_copies.lacks(way):
        pytest.skip(reason)
    path = anywhere / "ids.db"
    path.touch()
    if not has_attributes(path):
        pytest.skip("this file system has no attributes of files")
    with opened(path) as store:
        store.reserve("n", 100)
        copy = copied(path)
        store.reserve("n", 50)
        lost = store.reserve("n", 50)
        file_copies.WAYS[way](anywhere, copy)
        forget(process=True, shared=path)  # as in another container, for another user, or after 1,000 other stores
        assert store.reserve("n", 100).first == lost.last + GAP * 100 + 1
        assert code_of(lambda: acquire(store)) == "lease.none_free"
        before = store.describe().identity
        forget(process=True, shared=path)
        assert store.describe().identity == before


def test_copy_over_file_guard_and_attribute_can_stay_unnoticed(anywhere: Path) -> None:
    path = anywhere / "ids.db"
    path.touch()
    if not has_attributes(path):
        pytest.skip("this file system has no attributes of files")
    with opened(path) as store:
        first = store.reserve("n", 100)
        copy = copied(path)
        lost = store.reserve("n", 100)
        file_copies.WAYS["cat over all"](anywhere, copy)
        forget(attributes=path)
        for name in os.listxattr(copy / path.name):
            os.setxattr(path, name, os.getxattr(copy / path.name, name))  # as rsync -X does
        forget(process=True, shared=path)
        assert store.reserve("n", 100).first == lost.first == first.last + 1


def test_path_that_leads_to_another_directory_is_another_store(tmp_path: Path) -> None:
    for name in ("r1", "r2"):
        (tmp_path / name).mkdir()
        (tmp_path / "current").unlink(missing_ok=True)
        (tmp_path / "current").symlink_to(name)
        with opened(tmp_path / "current" / "ids.db") as store:
            assert store.reserve("n", 1).first == 1


def test_file_has_one_attribute_however_often_it_is_written(store: SqliteStore, path: Path) -> None:
    path.touch()
    if not has_attributes(path):
        pytest.skip("this file system has no attributes of files")
    for _ in range(3):
        store.reserve("n", 1)
        assert len(os.listxattr(path)) == 1


@pytest.mark.parametrize("value", [b"", b"\xff" * 100, b"0 1"])
def test_invalid_attribute_is_ignored_and_removed(store: SqliteStore, path: Path, value: bytes) -> None:
    path.touch()
    if not has_attributes(path):
        pytest.skip("this file system has no attributes of files")
    os.setxattr(path, "user.mintage.7", value)
    assert store.reserve("n", 1).first == 1
    assert os.listxattr(path) != ["user.mintage.7"]
    assert len(os.listxattr(path)) == 1


@pytest.mark.parametrize("way", ["rm all, cp", "cp aside, mv", "tar -x", "rsync", "rm -r, cp -r of all"])
def test_copy_at_another_inode_is_noticed_after_a_restart(anywhere: Path, way: str) -> None:
    if reason := file_copies.lacks(way):
        pytest.skip(reason)
    path = anywhere / "ids.db"
    with opened(path) as store:
        segment = store.reserve("n", 100)
        copy = copied(path)
        store.reserve("n", 100)
        file_copies.WAYS[way](anywhere, copy)
        forget(process=True, guard=path, shared=path)
        assert store.reserve("n", 100).first == segment.last + GAP * 100 + 1


@pytest.mark.parametrize("way", ["rm all, cp", "cp over it", "cp aside, mv"])
def test_copy_is_noticed_without_a_creation_time(anywhere: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mintage.store.sqlite.file.created_ns", lambda _: None)
    path = anywhere / "ids.db"
    with opened(path) as store:
        segment = store.reserve("n", 100)
        copy = copied(path)
        store.reserve("n", 100)
        file_copies.WAYS[way](anywhere, copy)
        assert store.reserve("n", 100).first == segment.last + 100 + GAP * 100 + 1


def test_verbs_that_read_create_no_file(store: SqliteStore, path: Path) -> None:
    for content in (None, b"", b"SQLite format 3\0" + bytes(84)):
        if content is not None:
            path.write_bytes(content)
        assert [*store.list_pools(), *store.list_leases(), *store.list_leases("p"), *store.list_namespaces()] == []
        assert store.now_ms()
        assert store.describe().is_new
        assert [each.name for each in path.parent.iterdir()] == ([] if content is None else [path.name])
    assert path.read_bytes() == content
    path.unlink()
    assert store.reserve("n", 1).first == 1
    assert store.describe().is_new is False


def test_creation_time_that_only_some_processes_see_changes_nothing(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setattr("mintage.store.sqlite.file.created_ns", lambda _: None)
        assert store.reserve("n", 1).first == 1
        before = store.describe().identity
    assert store.reserve("n", 1).first == 2
    with monkeypatch.context() as without:
        without.setattr("mintage.store.sqlite.file.created_ns", lambda _: None)
        assert store.reserve("n", 1).first == 3
    assert store.describe().identity == before
    # Processes that see it agree from then on.
    copy = copied(path)
    forget(process=True, guard=path, shared=path)
    file_copies.WAYS["cp aside, mv"](path.parent, copy)
    assert store.describe().identity != before


def test_lost_integers_are_skipped_however_many(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 10)
    copy = copied(path)
    found = []
    for _ in range(5):  # the same copy, again and again
        for _ in range(50):
            found += [*store.reserve("n", 10).as_range(), *store.reserve("later", 10).as_range()]
        file_copies.WAYS["cp over it"](path.parent, copy)
    for name in ("n", "later"):
        found += store.reserve(name, 500).as_range()
    by_name = [found[at : at + 10] for at in range(0, 5000, 10)]
    n = [each for ten in by_name[::2] for each in ten] + found[5000:5500]
    later = [each for ten in by_name[1::2] for each in ten] + found[5500:]
    assert len(set(n)) == len(n) == 3000
    assert len(set(later)) == len(later) == 3000


def test_second_restore_of_a_copy_skips_later_integers(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 10)
    copy = copied(path)
    found: list[int] = []
    for _ in range(6):
        found += [each for _ in range(100) for each in store.reserve("n", 10).as_range()]
        file_copies.WAYS["cp over it"](path.parent, copy)
    assert len(set(found)) == len(found)


def test_pool_missing_from_the_copy_is_quarantined(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 1)
    copy = copied(path)
    acquire(store)
    file_copies.WAYS["cp over it"](path.parent, copy)
    assert code_of(lambda: acquire(store)) == "lease.none_free"
    assert (
        code_of(
            lambda: store.acquire(
                "other", nodes=range(1), layout="test", holder="me", now_ms=store.now_ms(), span_ms=SPAN_MS
            )
        )
        == "lease.none_free"
    )


@pytest.mark.parametrize("way", ["rm ids.db", "rm ids.db*", ": > ids.db"])
def test_removed_file_begins_anew_in_another_process(store: SqliteStore, path: Path, way: str) -> None:
    store.reserve("n", 100)
    acquire(store)
    subprocess.run(["sh", "-c", way], cwd=path.parent, check=True)
    forget(process=True)
    assert acquire(store).node == 0
    assert store.reserve("n", 1).first == 1
    assert store.reserve("n", 1).first == 2


@pytest.mark.parametrize("way", ["rm ids.db", "rm ids.db*", ": > ids.db"])
def test_file_removed_from_a_live_process_counts_as_lost(store: SqliteStore, path: Path, way: str) -> None:
    store.reserve("n", 100)
    copy = copied(path)
    lost = store.reserve("n", 100)
    acquire(store)
    subprocess.run(["sh", "-c", way], cwd=path.parent, check=True)
    assert code_of(lambda: acquire(store)) == "lease.none_free"
    assert (after := store.reserve("n", 1)).first > lost.last
    # The copy comes back when others have made the file anew.
    file_copies.WAYS["cp over it"](path.parent, copy)
    assert store.reserve("n", 1).first > after.last


HOLDS = """
import sys, time
from mintage import open_store
store = open_store(sys.argv[1])
lease = store.acquire("p", nodes=range(4), layout="test", holder="it", now_ms=store.now_ms(), span_ms=30_000)
print(lease.until_ms, store.reserve("n", 100).last, flush=True)
time.sleep(3600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has memory that processes share by name")
@pytest.mark.parametrize("way", ["rm ids.db", "rm ids.db*", 'rm -r "$PWD" && mkdir "$PWD"'])
def test_file_removed_beside_a_live_process_counts_as_lost(tmp_path: Path, way: str) -> None:
    path = tmp_path / "it" / "ids.db"
    path.parent.mkdir()
    holder = python(HOLDS, f"sqlite:///{path}")
    try:
        assert holder.stdout is not None
        until_ms, last = map(int, holder.stdout.readline().split())
        subprocess.run(["sh", "-c", way], cwd=path.parent, check=True)
        with opened(path) as store:
            assert code_of(lambda: acquire(store)) == "lease.none_free"
            assert store.list_pools()[0].floor_ms >= until_ms
            assert store.reserve("n", 1).first > last
    finally:
        holder.kill()
        holder.communicate()


def test_process_shows_the_stores_that_it_used_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "_MOST_USED", 2)
    for number in (0, 1, 0, 2):
        with opened(tmp_path / f"{number}.db") as store:
            store.reserve("n", 1)
    assert list(marks._used) == [os.path.realpath(tmp_path / f"{number}.db") for number in (0, 2)]


def test_closed_descriptor_of_a_used_store_is_no_other_file(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 1)
    use = marks._used[os.path.realpath(path)]
    with path.with_name("other").open("wb") as other:
        os.dup2(other.fileno(), use._file)  # as where a daemon closes all descriptors and opens others
        store.reserve("n", 1)
        assert marks._used[os.path.realpath(path)] is not use
        use.close()
        assert os.path.samestat(os.fstat(use._file), os.fstat(other.fileno()))
    os.close(use._file)
    use.close()
    store.reserve("n", 1)


def test_processes_with_different_memories_notice_a_copy_once(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 100)
    copy = copied(path)
    store.reserve("n", 100)
    earlier = dict(marks._remembered)
    store.reserve("n", 100)
    file_copies.WAYS["cp -r of all"](path.parent, copy)
    now = store.describe().identity
    marks._remembered.update(earlier)
    assert store.describe().identity == now
    for _ in range(3):  # another user's process, whose memory of the machine is its own
        store.reserve("n", 100)
        marks._remembered.update(earlier)
    assert store.describe().identity == now


def test_copy_is_noticed_again_only_by_who_remembers_more(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 100)
    copy, early = copied(path), dict(marks._remembered)
    for _ in range(3):
        store.reserve("n", 100)
    late = dict(marks._remembered)
    file_copies.WAYS["cp -r of all"](path.parent, copy)
    forget(shared=path, attributes=path)
    marks._remembered.update(early)
    unnoticed = store.reserve("n", 1)  # as after a restart of the machine, without attributes
    marks._remembered.update(late)
    noticed = store.reserve("n", 1)
    assert noticed.first == unnoticed.last + 299 + GAP * 100 + 1
    after = store.describe().identity
    for old in (early, late):
        marks._remembered.update(old)
        assert store.describe().identity == after


def test_file_of_another_store_in_its_place_is_noticed(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    store.reserve("n", 10)
    with opened(tmp_path / "other.db") as other:
        other.reserve("n", 10)
        before = other.describe().identity
    path.write_bytes((tmp_path / "other.db").read_bytes())
    assert store.reserve("n", 10).first == 10 + GAP * 10 + 1
    assert store.describe().identity != before


def test_file_operations_that_keep_the_content_are_no_replacement(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    segment = store.reserve("n", 10)
    lease = acquire(store)
    before = store.describe().identity
    path.chmod(0o600)
    os.utime(path, (1, 1))
    path.touch()
    assert path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
        connection.execute("VACUUM INTO ?", [str(tmp_path / "copy.db")])
        with closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
            connection.backup(backup)
    (tmp_path / "link.db").symlink_to(path)
    with opened(tmp_path / "link.db") as linked:
        assert linked.describe().identity == before
        assert linked.reserve("n", 10).first == segment.last + 1
    assert store.describe().identity == before
    assert extend(store, lease).node == lease.node
    # The copies that SQLite made are other stores.
    for name in ("copy.db", "backup.db"):
        with opened(tmp_path / name) as other:
            assert other.reserve("n", 10).first == segment.last + GAP * 10 + 1


def test_moved_directory_keeps_its_store(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with opened(tmp_path / "a" / "ids.db") as store:
        store.reserve("n", 10)
        before = store.describe().identity
    (tmp_path / "a").rename(tmp_path / "b")
    with opened(tmp_path / "b" / "ids.db") as store:
        assert store.describe().identity == before
        assert store.reserve("n", 10).first == 11


def test_renamed_file_is_the_same_store(tmp_path: Path) -> None:
    # As in containers that share the memory of the machine, and call two files by one name.
    names = [tmp_path / name / "ids.db" for name in ("one", "two")]
    identities = []
    for name in names:
        name.parent.mkdir()
        with opened(name) as store:
            store.reserve("n", 10)
            identities.append(store.describe().identity)
    names[0].parent.rename(tmp_path / "aside")
    names[1].parent.rename(tmp_path / "one")
    with opened(names[0]) as store:
        assert store.describe().identity == identities[1]
        assert store.reserve("n", 10).first == 11


WORK = """
import os, sys
from mintage.errors import LeaseError, StoreError
from mintage.store import open_store
store = open_store(sys.argv[1])
print(flush=True)
while True:
    try:
        store.reserve("n", 1)
        store.acquire("p", nodes=range(64), layout="test", holder="it", now_ms=store.now_ms(), span_ms=1000)
    except (LeaseError, StoreError):
        pass
"""


@pytest.mark.parametrize(("base", "verbs"), [("/dev/shm", 1000), ("/var/tmp", 200)])
def test_killed_processes_do_not_count_as_a_replacement(base: str, verbs: int) -> None:
    with tempfile.TemporaryDirectory(prefix="mintage-", dir=base) as folder, opened(Path(folder) / "ids.db") as store:
        store.create_namespace("n")
        store.create_pool("p", layout="test")
        before = store.describe().identity
        used = 0
        for _ in range(8):
            with ExitStack() as stack:
                processes = [python(WORK, f"{store.url}?timeout_ms=60000") for _ in range(3)]
                for process in processes:
                    stack.callback(process.communicate, timeout=BOUND_S)
                    stack.callback(process.kill)
                used += verbs // 8
                deadline = time.monotonic() + BOUND_S
                while eventually(store.list_namespaces)[0].serial < used:
                    assert time.monotonic() < deadline
                    time.sleep(0.02)  # otherwise it would lock the file most of the time itself
        [namespace] = store.list_namespaces()
        assert namespace.high_water == namespace.serial >= verbs
        assert store.describe().identity == before
        assert [pool.changes for pool in store.list_pools()] == [0]


def test_file_of_schema_version_1_still_works(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        [(_, steps)] = [each for each in migrations("sqlite") if each[0] == 1]
        for step in steps:
            connection.execute(step)
        connection.execute("PRAGMA user_version = 1")
        [(life,)] = connection.execute("SELECT name FROM mintage_life").fetchall()
        found = path.stat()
        identity = f"{found.st_dev}:{found.st_ino}:{life}"
        connection.execute("INSERT INTO mintage_namespace VALUES ('n', 10, 1000, 1, 10, ?, 0, 1, 0, 0)", [identity])
        connection.execute("INSERT INTO mintage_pool VALUES ('p', 'test', ?, 30000, 0, 0, 0, 0)", [identity])
    with opened(path) as store:
        assert store.reserve("n", 1).first == 11
        lease = acquire(store, nodes=range(1))
        store.release(lease, used_until_ms=store.now_ms() - 10)
        acquire(store, nodes=range(1), holder="you")
        assert [grant.holder for grant in store.list_grants("p", 0)] == ["me"]
        assert store.describe().identity == identity


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_verbs_that_read_leave_a_file_of_an_older_schema_as_it_is(store: SqliteStore, path: Path, version: int) -> None:
    store.reserve("n", 10)
    store.release(acquire(store, nodes=range(1)), used_until_ms=store.now_ms() - 10)
    lease = acquire(store, nodes=range(1))
    expected = list(store.list_pools()), list(store.list_leases("p")), list(store.list_grants("p", 0))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript("DROP TABLE mintage_run;")
        for column in RUN_COLUMNS:
            connection.execute(f"ALTER TABLE mintage_namespace DROP COLUMN {column}")
        if version < 5:
            connection.executescript("""
                ALTER TABLE mintage_pool DROP COLUMN first_node;
                ALTER TABLE mintage_pool DROP COLUMN last_node;
            """)
        if version < 4:
            connection.executescript("""
                DROP TABLE mintage_grant;
                ALTER TABLE mintage_pool DROP COLUMN history_ms;
                ALTER TABLE mintage_pool DROP COLUMN history_from_ms;
                ALTER TABLE mintage_node DROP COLUMN since_ms;
            """)
            [pool], [record], _ = expected
            expected = [replace(pool, history_from_ms=0)], [replace(record, since_ms=0)], []
        if version == 2:
            connection.executescript("""
                DROP TRIGGER mintage_namespace_made; DROP TRIGGER mintage_namespace_gone; DROP TABLE mintage_count;
            """)
        connection.execute(f"PRAGMA user_version = {version}")
        dump = list(connection.iterdump())
    described = store.describe()
    assert (described.is_new, len(described.warnings)) == (False, 1)
    assert "older version" in described.warnings[0]
    [namespace] = store.list_namespaces()
    assert (store.list_pools(), store.list_leases("p"), list(store.list_grants("p", 0))) == expected
    assert (store.get_pool("p"), store.get_namespace("n")) == (expected[0][0], namespace)
    assert (list(store.list_runs("n")), who_reserved("n", 1, store).state) == ([], "forgotten")
    assert store.count_namespaces() == 1
    assert abs(store.now_ms() - time.time_ns() // 1_000_000) < BOUND_S * 1000
    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == dump
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
    assert store.reserve("n", 1, holder="me").first == 11
    assert who_reserved("n", 10, store).state == "forgotten"
    assert who_reserved("n", 11, store).state == "held"
    assert extend(store, lease).node == lease.node
    assert (store.describe().identity, store.describe().warnings) == (described.identity, ())


# --- copies restored during a verb ----------------------------------------------------------------------------------

DIES = """
import os, sys
from mintage.store import open_store
from mintage.store.sqlite.file import File
File.check_place = lambda *_: os._exit(0)  # as killed after the commit, before its log is in the file
open_store(sys.argv[1]).reserve(sys.argv[2], int(sys.argv[3]))
"""


def leave_a_log(path: Path, namespace: str, count: int) -> None:
    process = python(DIES, f"sqlite:///{path}", namespace, count)
    process.communicate(timeout=BOUND_S)
    assert process.returncode == 0
    assert path.with_name("ids.db-wal").stat().st_size


def test_write_ahead_log_of_a_killed_process_is_used(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 10)
    before = store.describe().identity
    leave_a_log(path, "n", 10)
    assert store.reserve("n", 10).first == 21
    assert store.describe().identity == before


@pytest.mark.parametrize("is_another", [False, True], ids=["this process", "another"])
@pytest.mark.parametrize("way", ["cp over it", "rm, cp", "cp aside, mv"])
def test_copy_beside_a_stale_write_ahead_log_is_noticed(
    store: SqliteStore, path: Path, way: str, *, is_another: bool
) -> None:
    store.reserve("n", 100)
    acquire(store)
    copy = copied(path)
    store.reserve("n", 100)
    acquire(store)
    # The log has no page that the copy lacks, but a later counter.
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    process = python(
        "import os, sys, time; from mintage.store import open_store; from mintage.store.sqlite.file import File\n"
        "File.check_place = lambda *_: os._exit(0)\n"
        "store = open_store(sys.argv[1]); store.acquire('q', nodes=range(1), layout='test', holder='it', "
        "now_ms=time.time_ns() // 10**6, span_ms=1000)",
        f"sqlite:///{path}",
    )
    process.communicate(timeout=BOUND_S)
    assert path.with_name("ids.db-wal").stat().st_size
    file_copies.WAYS[way](path.parent, copy)
    if is_another:
        forget(process=True)
    assert store.reserve("n", 100).first == 200 + GAP * 100 + 1
    assert code_of(lambda: acquire(store)) == "lease.none_free"


@pytest.mark.parametrize("way", ["cp over it", "cp aside, mv", "rm, cp", "rm all, cp"])
def test_copy_that_arrives_during_a_verb_is_noticed(store: SqliteStore, path: Path, way: str) -> None:
    store.reserve("n", 100)
    copy, before = copied(path), store.describe().identity
    lost = store.reserve("n", 100)
    times: list[int] = []

    def verb(t: Any) -> None:
        t.put(PoolRecord("p", "test", t.server().identity, 1000))
        if not times:
            file_copies.WAYS[way](path.parent, copy)
        times.append(1)

    store._run(verb)
    assert len(times) == 2
    assert [pool.name for pool in store.list_pools()] == ["p"]
    assert store.describe().identity != before
    assert store.reserve("n", 100).first > lost.last


# --- concurrent users of the file -----------------------------------------------------------------------------------

READS = """
import json, os, sys, threading
from mintage.store import open_store
url, path, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, done = open_store(url), threading.Event()
def read():
    while not done.is_set():
        for ending in ("", "-wal", "-shm", "-guard"):
            try:
                with open(path + ending, "rb") as file:
                    file.read(100)
            except FileNotFoundError:
                pass
threads = [threading.Thread(target=read) for _ in range(3)]
for thread in threads: thread.start()
print(flush=True)
sys.stdin.readline()
found = [each for _ in range(turns) for each in store.reserve("n", 5).as_range()]
done.set()
for thread in threads: thread.join()
print(json.dumps(found))
"""


def test_process_that_reads_the_file_keeps_its_locks(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 1)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", READS, f"sqlite:///{path}?timeout_ms=60000", path, "100"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    integers: list[int] = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        printed, _ = process.communicate(timeout=BOUND_S)
        assert process.returncode == 0
        integers += json.loads(printed)
    assert len(set(integers)) == len(integers) == 4 * 100 * 5


def test_locked_guard_is_waited_for_as_long_as_the_file(path: Path) -> None:
    with opened(path, "?timeout_ms=1") as store:
        store.reserve("n", 10)
        with marks.watched(os.path.realpath(path), 1), pytest.raises(StoreError, match="1 ms") as caught:
            store.reserve("n", 10)
        assert caught.value.code == "store.unavailable"
        assert store.reserve("n", 10).first == 11


def test_removed_guard_is_created_again(store: SqliteStore, path: Path) -> None:
    store.prepare()
    before = store.describe().identity
    guard = path.with_name("ids.db-guard")
    guard.unlink()
    store.reserve("n", 10)
    assert guard.stat().st_size
    assert store.describe().identity == before


def test_process_whose_guard_was_removed_still_keeps_others_out(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 10)
    with marks.watched(os.path.realpath(path), 1), opened(path, "?timeout_ms=1") as another:
        path.with_name("ids.db-guard").unlink()
        assert code_of(lambda: another.reserve("n", 10)) == "store.unavailable"
    assert store.reserve("n", 10).first == 11


def is_open_as(file: int, path: Path) -> bool:
    """Return True if a descriptor is of the file at ``path``, and not of another that a keeper locks meanwhile."""
    return path.exists() and os.path.samestat(os.fstat(file), path.stat())


def test_guard_removed_during_the_wait_keeps_nobody_out(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.reserve("n", 1)
    guard, lock = path.with_name("ids.db-guard"), marks._flock
    taken: list[FileIO] = []

    def flock(file: FileIO) -> bool:
        if not taken and is_open_as(file.fileno(), guard):
            guard.unlink()
            taken.append(file)
        return lock(file)

    monkeypatch.setattr(marks, "_flock", flock)
    with marks.watched(os.path.realpath(path), 1), pytest.raises(TimeoutError), marks.watched(str(path), 1):
        pass


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_guard_has_the_permissions_of_the_file(store: SqliteStore, path: Path, mode: int) -> None:
    store.reserve("n", 1)
    path.chmod(mode)
    store.reserve("n", 1)
    assert path.with_name("ids.db-guard").stat().st_mode & 0o777 == mode


def test_new_guard_has_the_permissions_of_the_file(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.reserve("n", 1)
    path.chmod(0o660)
    guard, lock = path.with_name("ids.db-guard"), marks._flock
    guard.unlink()
    found: list[tuple[int, int]] = []

    def flock(file: FileIO) -> bool:
        if is_open_as(file.fileno(), guard):
            status = guard.stat()
            found.append((status.st_mode & 0o777, status.st_nlink))
        return lock(file)

    monkeypatch.setattr(marks, "_flock", flock)
    store.reserve("n", 1)
    assert found[0] == (0o660, 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_guard_created_by_root_belongs_to_the_owner(store: SqliteStore, path: Path) -> None:
    store.reserve("n", 1)
    os.chown(path, 54_301, 54_302)
    path.with_name("ids.db-guard").unlink()
    store.reserve("n", 1)
    found = path.with_name("ids.db-guard").stat()
    assert (found.st_uid, found.st_gid) == (54_301, 54_302)


@pytest.mark.parametrize(
    "what", ["a link", "a directory", "a pipe", "a hard link", "garbage", "half of it", "two halves"]
)
def test_invalid_guard_is_ignored(store: SqliteStore, path: Path, tmp_path: Path, what: str) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    guard = path.with_name("ids.db-guard")
    segment = store.reserve("n", 10)
    before, marks = store.describe().identity, guard.read_bytes()
    guard.unlink()
    match what:
        case "a link":
            guard.symlink_to(other)
        case "a directory":
            guard.mkdir()
        case "a pipe":
            os.mkfifo(guard)
        case "a hard link":
            guard.hardlink_to(other)
        case "garbage":
            guard.write_bytes(b"\xff" * 512)
        case "half of it":
            guard.write_bytes(marks[:40])
        case _:
            guard.write_bytes(marks.replace(b"\t1\t", b"\t9\t"))
            assert guard.read_bytes() != marks
    assert store.reserve("n", 10).first == segment.last + 1
    assert store.describe().identity == before
    assert other.read_text() == "precious"


def test_memory_of_the_machine_forgets_the_oldest_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "_SHARED", tmp_path)
    monkeypatch.setattr(marks, "_MOST", 4)
    monkeypatch.setattr(marks, "_MOST_USED", 1)
    paths = [tmp_path / f"{number}.db" for number in range(9)]
    for path in paths:
        with opened(path) as store:
            store.reserve("n", 1)
    # By their names: a store of an earlier test that is still open may write its own two files here.
    own = tmp_path / f"mintage-{os.geteuid()}"
    for kind in ("marks", "users"):
        assert 0 < sum((own / f"{shared_name(path)}.{kind}").exists() for path in paths) <= 4
    assert 0 < len(marks._remembered.keys() & {os.path.realpath(path) for path in paths}) <= 4


def test_memory_of_the_machine_keeps_stores_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "_SHARED", tmp_path)
    monkeypatch.setattr(marks, "_MOST", 4)
    paths = [tmp_path / f"{number}.db" for number in range(9)]
    for path in paths:
        with opened(path) as store:
            store.reserve("n", 1)
    # A store of an earlier test that is still open may write its own two files here.
    found = {entry.name for entry in (tmp_path / f"mintage-{os.geteuid()}").iterdir()}
    assert found >= {f"{shared_name(path)}.{kind}" for path in paths for kind in ("marks", "users")}


def test_memory_folder_of_another_user_is_not_used(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / f"mintage-{os.geteuid()}").symlink_to(tmp_path / "theirs")
    monkeypatch.setattr(marks, "_SHARED", tmp_path)
    assert store.reserve("n", 1).first == 1
    assert list((tmp_path / "theirs").iterdir()) == []


# --- a relative path ------------------------------------------------------------------------------------------------

MOVES = """
import os, sys
from mintage import Sequence, snowflake
first, count = sys.argv[1], int(sys.argv[2])
os.chdir(first)
made = [snowflake.Generator(store="sqlite:///rel.db", nodes=range(4))]
ids = made[0].batch(count).tolist()
orders = [Sequence("orders", "sqlite:///rel.db", step=10)]
integers = [orders[0].next()]
os.chdir("..")
made.append(snowflake.Generator(store="sqlite:///rel.db", nodes=range(4)))
for generator in made:
    ids += generator.batch(count).tolist()
orders.append(Sequence("orders", "sqlite:///rel.db", step=10))
integers += [each.next() for each in orders for _ in range(20)]
reading, writing = os.pipe()
if os.fork() == 0:
    os.mkdir("child")
    os.chdir("child")
    child = snowflake.Generator(store="sqlite:///rel.db", nodes=range(4))
    os.write(writing, b"%d" % child.new())
    os._exit(0)
ids.append(int(os.read(reading, 100)))
os.wait()
print(len(ids) - len(set(ids)), len(integers) - len(set(integers)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks beside threads are Linux's")
def test_relative_url_names_one_store_after_chdir(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    process = python(MOVES, tmp_path / "first", 2_000)
    printed, _ = process.communicate(timeout=BOUND_S)
    assert printed.split() == ["0", "0"]
    assert [file.parent.name for file in tmp_path.rglob("rel.db")] == ["first"]
