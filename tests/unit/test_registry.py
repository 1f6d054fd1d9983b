"""Tests of the registry of a machine: its place, its leases, and the locks that replace it if it is not writable."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mintage import Sequence, locality, sno, snowflake
from mintage._core import start_generation
from mintage.errors import ConfigError, GenerationError, LeaseError, MintError, StoreError, UniquenessWarning
from mintage.lease import registry, request
from mintage.lease.lease_client import LeaseClient
from mintage.lease.registry.locks import LockedNode
from mintage.platform import files
from mintage.process.restore import RestoreDetector, Verdict
from mintage.store import Forwarding, open_store
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock
from tests.helpers.outcomes import code_of
from tests.helpers.processes import in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MS = 1_000_000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="locks and users are those of Linux here")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary registry."""
    monkeypatch.setenv("MINTAGE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def shared() -> Iterator[Path]:
    """Return a directory that other users see; pytest closes its own directories to others."""
    # The keeper may still write there: it releases what a test did not close.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a registry that can never be written, as there is a file in place of its directory."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINTAGE_HOME", str(tmp_path / "file" / "home"))
    return tmp_path / "file" / "home"


@pytest.fixture
def pool() -> Iterator[str]:
    """Return a name that no other process of this machine locks."""
    name = f"test-{uuid.uuid4().hex}"
    yield name
    for path in [
        path for folder in registry.locks._FOLDERS for path in Path(files.own_directory(folder)).glob(f"{name}*")
    ]:
        path.unlink() if not path.is_dir() else path.rmdir()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """Return the system clock, for locked numbers."""
    clock = ManualClock(1_800_000_000_000 * MS)
    monkeypatch.setattr(registry.locks, "system_ns", clock)
    return clock


def become_another_user() -> None:
    """Become, in a child, a user who is in none of our groups."""
    os.setgroups([])
    os.setgid(54321)
    os.setuid(54321)


def locked_node(pool: str, numbers: range = range(896, 1024), **options: Any) -> LockedNode:
    return LockedNode(pool, lambda: numbers, **options)


def file_of(pool: str, node: int, folder: str = "/tmp") -> Path:
    """Return the file with the time of a number, in an existing folder."""
    own = Path(files.own_directory(folder))
    own.mkdir(mode=0o700, exist_ok=True)
    return own / f"{pool}-{node}.lock"


def times_of(pool: str, node: int | None = None) -> set[int]:
    """Return the times in the files of a number of a pool, or of all."""
    name = f"{pool}-{'*' if node is None else node}.lock"
    found = [path for folder in registry.locks._FOLDERS for path in Path(files.own_directory(folder)).glob(name)]
    return {int(path.read_text()) for path in found}


def window_of(holder: LockedNode, max_wait_ms: int = 0) -> tuple[int, int, int, int, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UniquenessWarning)
        return holder.window(max_wait_ms)


def node_of(holder: LockedNode) -> int:
    return window_of(holder, 60_000)[1]


def opened(what: str) -> int:
    """Return how many descriptors of this process have a path that contains this text."""
    paths = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own, and what another thread closes meanwhile
            paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return sum(what in path for path in paths)


def close_descriptors(pool: str) -> int:
    """Close the files and sockets of a pool's locks, as a program does that becomes a daemon; return their number."""
    closed = 0
    for each in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # the listing's own, and those that are no socket
            name = os.readlink(f"/proc/self/fd/{each}")
            if name.startswith("socket:"):
                with socket.socket(fileno=os.dup(each)) as copy:
                    name = str(copy.getsockname())
            if pool in name:
                os.close(each)
                closed += 1
    return closed


# --- fallback to locks ----------------------------------------------------------------------------------------------


@contextmanager
def closing_number(holder: LockedNode) -> Iterator[LockedNode]:
    """Return a holder that releases its number unused."""
    yield holder
    holder.release(0)


@contextmanager
def busy(place: Path) -> Iterator[sqlite3.Connection]:
    """Hold a transaction open in the registry, as a backup does."""
    snowflake.Generator().new()
    with closing(sqlite3.connect(place / "registry.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


@pytest.mark.usefixtures("place")
def test_wrapped_registry_leaves_numbers_to_locks() -> None:
    """The service wraps its store."""
    with Forwarding(open_store(registry.url())) as store:
        assert registry.is_registry(store)
        assert not registry.is_registry(MemoryStore())
        with pytest.raises(ConfigError, match="leases none of them"):
            snowflake.Generator(store=store, nodes=range(896, 1024))


def test_busy_registry_is_waited_for_and_then_reported(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "_PATIENCE_MS", 1)
    with busy(place) as connection, warnings.catch_warnings():
        warnings.simplefilter("error", UniquenessWarning)
        assert registry.is_writable()
        generator = snowflake.Generator(max_wait_ms=1)
        assert code_of(generator.new) == "store.unavailable"
        connection.execute("ROLLBACK")
        monkeypatch.undo()
        assert snowflake.DEFAULT.parse(snowflake.Generator().new()).node in registry.numbers.leased(1024)


class Trying(MemoryStore):
    """A store whose first verbs fail."""

    def __init__(self, *errors: MintError) -> None:
        super().__init__()
        self.errors = list(errors)

    def acquire(self, *args: Any, **options: Any) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        return super().acquire(*args, **options)


def patient(store: Trying) -> LeaseClient:
    return LeaseClient(
        store,
        pool="ids",
        nodes=lambda: [range(4)],
        layout="sno/1",
        never_used=False,
        span_ms=10_000,
        moves=True,
        clock=time.time_ns,
        patience_ms=120_000,
    )


def test_registry_is_waited_for_longer_than_a_cool_down() -> None:
    away = StoreError("busy", code="store.unavailable")
    assert patient(Trying(away, away)).window(0)[1] == 0
    full = Trying(*(LeaseError("all held", code="lease.none_free", retry_after_ms=1) for _ in range(9)))
    assert code_of(lambda: patient(full).window(0)) == "lease.none_free"
    assert len(full.errors) == 8


def test_registry_of_a_newer_mintage_is_an_error(place: Path) -> None:
    place.mkdir()
    with closing(sqlite3.connect(place / "registry.db")) as connection:
        connection.execute("PRAGMA user_version = 999")
    assert code_of(sno.Generator().new) == "store.schema"


def test_corrupt_registry_is_an_error_that_says_so(place: Path) -> None:
    place.mkdir()
    (place / "registry.db").write_bytes(b"not SQLite's " * 1000)
    with pytest.raises(StoreError, match="not a database"):
        sno.Generator().new()


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT])
def test_missing_descriptors_or_space_are_a_transient_error(
    place: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    def is_asked_to_come_back() -> None:
        with pytest.raises(StoreError, match=os.strerror(error)) as caught:
            registry.is_writable()
        assert caught.value.code == "store.unavailable"

    with monkeypatch.context() as patch:
        patch.setattr(os, "makedirs", refuse)
        is_asked_to_come_back()
    place.mkdir()
    (place / "registry.db").mkdir()
    assert not registry.is_writable()
    monkeypatch.setattr(os, "open", refuse)
    is_asked_to_come_back()


@pytest.mark.parametrize("place_", ["/proc/mintage", "/dev/null/mintage", "{}/link", "{}/file/home", "{}/taken"])
def test_registry_that_cannot_be_made_is_known_without_trying(
    place_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "registry.db").mkdir(parents=True)
    monkeypatch.setenv("MINTAGE_HOME", place_.format(tmp_path))
    assert not registry.can_be_made()
    assert not registry.is_writable()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link", "taken"]


def test_registry_that_can_be_made_is_known_without_making_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setenv("MINTAGE_HOME", str(tmp_path / "one" / "two"))
    assert registry.can_be_made()
    assert list(tmp_path.iterdir()) == []


def test_full_directory_is_no_reason_for_a_lock(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "registry.db").mkdir(parents=True)
    opened, new = os.open, os.O_TMPFILE | os.O_RDWR

    def full(path: Any, flags: int, *mode: int) -> int:
        if Path(path) == place and flags & new == new:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", full)
    assert code_of(registry.is_writable) == "store.unavailable"


@pytest.mark.parametrize("left", range(9))
def test_no_lock_is_taken_for_a_lack_of_descriptors(place: Path, left: int) -> None:
    registry.is_writable()

    def found() -> bool | str:
        most = max(map(int, os.listdir("/proc/self/fd"))) + 16
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        taken = []
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(left):
            os.close(taken.pop())
        try:
            return registry.is_writable()
        except StoreError as error:
            return error.code
        finally:
            for descriptor in taken:
                os.close(descriptor)

    assert in_child(found) in (True, "store.unavailable")


def test_check_for_write_access_leaves_nothing_open(place: Path) -> None:
    (place / "registry.db").mkdir(parents=True)

    def checked() -> list[object]:  # in a process without the threads of earlier tests
        before = opened(os.devnull)
        return [registry.is_writable(), opened(os.devnull) - before, opened(str(place))]

    assert in_child(checked) == [False, 0, 0]


def test_files_of_a_user_are_private_under_any_umask(place: Path, tmp_path: Path) -> None:
    def made() -> list[int]:
        os.umask(0)
        registry.prepare()
        os.close(registry.locks._flocked(str(tmp_path), "name"))
        own = tmp_path / f"mintage-{os.geteuid()}"
        return [stat.S_IMODE(path.stat().st_mode) for path in (place, own, own / "name.lock")]

    assert in_child(made) == [0o700, 0o700, 0o600]


def test_lock_is_kept_despite_a_lack_of_descriptors(pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(registry.locks, "_flocked", refuse)
    holder = locked_node(pool)
    with pytest.raises(StoreError, match=os.strerror(errno.EMFILE)) as caught:
        holder.window(0)
    assert caught.value.code == "store.unavailable"
    monkeypatch.undo()
    assert opened(pool) == 0
    assert node_of(holder) in range(896, 1024)


@pytest.mark.parametrize("kind", ["directory", "no permission", "closed", "no write-ahead log"])
@as_root
def test_unwritable_registry_falls_back_to_a_lock(kind: str, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = shared / "home"
    home.mkdir()
    monkeypatch.setenv("MINTAGE_HOME", str(home))
    if kind == "directory":
        (home / "registry.db").mkdir()
    elif kind == "closed":
        home.chmod(0o700)
    elif kind == "no write-ahead log":
        with sno.Generator() as generator:
            generator.new()
        (home / "registry.db").chmod(0o666)

    def other_user() -> bool:
        become_another_user()
        return registry.is_writable()

    assert in_child(other_user) is False


@as_root
def test_registry_under_creation_is_waited_for(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared.chmod(0o777)
    monkeypatch.setenv("MINTAGE_HOME", str(shared))
    with snowflake.Generator() as generator:
        generator.new()
    (shared / "registry.db").chmod(0o666)

    def other_user() -> Any:
        become_another_user()
        with open_store(registry.url()) as store, pytest.raises(StoreError) as caught:
            store.now_ms()
        return registry.is_writable(), caught.value.code, str(caught.value)

    (shared / "registry.db-shm").touch(0o600)
    is_writable, refusal, message = in_child(other_user)
    assert (is_writable, refusal) == (True, "store.unavailable")
    assert f"{shared}/registry.db-shm is of another user" in message


def test_requested_numbers_are_leased_or_refused(nowhere: Path) -> None:
    for refused in (
        lambda: snowflake.Generator(nodes=range(4)).new(),
        lambda: snowflake.Generator(7, span_ms=5000).new(),
        lambda: sno.Generator(never_used=True).new(),
        lambda: locality.Generator(mac="1234567", span_ms=5000).new(),
    ):
        with pytest.raises(StoreError, match=r"cannot be made: .*: set MINTAGE_HOME") as caught:
            refused()
        assert caught.value.code == "store.refused"


def test_layout_with_few_node_numbers_reserves_none_for_locks(nowhere: Path) -> None:
    few = snowflake.Layout("time:41 node:2 sequence:20", epoch_ms=0)
    assert code_of(snowflake.Generator(layout=few).new) == "store.refused"
    assert registry.numbers.leased(4) == range(4)
    # Every mintage on the host splits them alike.
    assert registry.numbers.leased(1024) == range(896)
    assert (registry.numbers.leased(8), registry.numbers.locked(8)) == (range(7), range(7, 8))
    assert (registry.numbers.leased(65_536), registry.numbers.locked(65_536)) == (range(57_344), range(57_344, 65_536))
    assert registry.numbers.locked(1024) == range(896, 1024)


@pytest.mark.parametrize("store", [None, "registry"])
def test_chosen_number_reserved_for_locks_is_refused(store: str | None, place: Path) -> None:
    named: dict[str, Any] = {"store": registry.url() if store else None, "span_ms": 5000}
    for refused in (
        lambda: snowflake.Generator(1003, **named),
        lambda: snowflake.Generator(nodes=range(896, 1024), **named),
        lambda: snowflake.Generator(nodes={900, 1003}, **named),
        lambda: snowflake.Generator(nodes=range(1003, 1004), never_used=True, **named),
        lambda: sno.Generator(57_344, **named),
        lambda: locality.Generator(mac="ffff000", **named),
        lambda: locality.Generator(pid=3, mac="ff00000", **named),
        lambda: locality.Generator(nodes=range((4 << 28) - 2**20, 4 << 28), **named),
    ):
        with pytest.raises(ConfigError, match="or name a store that is not the registry") as caught:
            refused()
        assert caught.value.code == "config.node"
    assert not place.exists()


def test_numbers_reserved_for_locks_are_excluded_from_a_choice(place: Path) -> None:
    tiny = snowflake.Layout("time:41 node:3 sequence:19", epoch_ms=0)
    holders = [snowflake.Generator(layout=tiny, nodes=range(5, 8)) for _ in range(3)]
    assert {tiny.parse(each.new()).node for each in holders[:2]} == {5, 6}
    assert code_of(snowflake.Generator(layout=tiny, nodes=range(5, 8), max_wait_ms=0).new) == "lease.none_free"
    assert registry.numbers.unlocked(range(2**28 - 2**20 - 1, 3 << 28), 2**28, 2**20) == [
        range(2**28 - 2**20 - 1, 2**28 - 2**20),
        range(1 << 28, (2 << 28) - 2**20),
        range(2 << 28, (3 << 28) - 2**20),
    ]
    few = snowflake.Layout("time:41 node:2 sequence:20", epoch_ms=0)
    assert few.parse(snowflake.Generator(3, layout=few, span_ms=5000).new()).node == 3


def test_chosen_numbers_of_another_store_are_all_leased(tmp_path: Path) -> None:
    with snowflake.Generator(1003, store=f"sqlite:///{tmp_path}/ids.db") as generator:
        assert snowflake.DEFAULT.parse(generator.new()).node == 1003


@pytest.mark.parametrize("size", [1, 7, 8, 31, 32, 33, 64, 1024, 65_536, 2**44])
def test_every_number_of_a_layout_is_either_leased_or_locked(size: int) -> None:
    leased, locked = registry.numbers.leased(size), registry.numbers.locked(size)
    assert (leased.start, leased.stop, locked.stop) == (0, locked.start, size)
    assert all(block.stop <= leased.stop for block in registry.numbers.blocks(size))
    assert registry.numbers.blocks(size)[-1] == leased


@pytest.mark.parametrize("size", [64, 1024, 65_536, 2**44])
def test_registry_prefers_its_own_number_and_then_its_block(size: int) -> None:
    own, block, _ = registry.numbers.blocks(size)
    assert (len(own), len(block), block.start % registry.numbers.BLOCK) == (1, registry.numbers.BLOCK, 0)
    assert own.start in block


def test_leased_and_locked_numbers_never_collide(place: Path, pool: str) -> None:
    tiny = snowflake.Layout("time:41 node:3 sequence:19", epoch_ms=0)
    holders = [snowflake.Generator(layout=tiny, pool=pool) for _ in range(7)]
    leased = {tiny.parse(each.new()).node for each in holders}
    assert leased == set(range(7))
    assert code_of(snowflake.Generator(layout=tiny, pool=pool, max_wait_ms=0).new) == "lease.none_free"
    place.rename(place.with_name("moved"))
    place.write_text("")
    with pytest.warns(UniquenessWarning, match="node 7 is held by a lock"):
        assert tiny.parse(snowflake.Generator(layout=tiny, pool=pool).new()).node == 7


def test_registry_named_by_its_url_leases_as_by_default(place: Path) -> None:
    tiny = snowflake.Layout("time:41 node:3 sequence:19", epoch_ms=0)
    store = request.registry_store()
    holders = [snowflake.Generator(layout=tiny, store=store) for _ in range(7)]
    assert {tiny.parse(each.new()).node for each in holders} == set(range(7))
    assert code_of(snowflake.Generator(layout=tiny, store=registry.url(), max_wait_ms=0).new) == "lease.none_free"


def test_locality_keeps_its_pid_and_reserves_fragments_for_locks(pool: str) -> None:
    own = 4711 << 28 | 12345
    assert registry.numbers.fragments(own) == [range(own, own + 1), range(4711 << 28, (4712 << 28) - 2**20)]
    assert registry.numbers.locked_fragments(own) == range((4712 << 28) - 2**20, 4712 << 28)
    # A host whose own fragment is one of those leases another.
    assert registry.numbers.fragments((4712 << 28) - 1) == [range(4711 << 28, (4712 << 28) - 2**20)]


@pytest.mark.parametrize("make", [sno.Generator, snowflake.Generator, locality.Generator])
def test_generator_without_a_registry_mints_under_a_locked_number(make: Any, nowhere: Path, pool: str) -> None:
    with make(pool=pool) as one, make(pool=pool) as two:
        with pytest.warns(
            UniquenessWarning, match="cannot write its registry in .*/file/home: node .* by a lock"
        ) as caught:
            ids = [one.new(), two.new()]
        assert {each.filename for each in caught} == {__file__}
        if make is locality.Generator:
            nodes = [each.pid << 28 | int(each.mac.replace("-", ""), 16) for each in ids]
            assert all(node in registry.numbers.locked_fragments(os.getpid() % 65536 << 28) for node in nodes)
        else:
            nodes = [each.partition if make is sno.Generator else snowflake.DEFAULT.parse(each).node for each in ids]
            assert all(node in registry.numbers.locked(65_536 if make is sno.Generator else 1024) for node in nodes)
        assert nodes[0] != nodes[1]


def test_first_id_creates_the_registry_with_windows_of_30_s(place: Path) -> None:
    assert not place.exists()
    snowflake.Generator().new()
    assert Sequence("orders").next() == 1
    with open_store(f"sqlite:///{place}/registry.db") as store:
        [lease] = store.list_leases()
        assert lease.span_ms == 30_000
        assert [each.name for each in store.list_namespaces()] == ["orders"]


def test_copy_of_a_registry_grants_nothing_for_36_s(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snowflake.Generator().new()
    shutil.copytree(place, place.with_name("copy"))
    monkeypatch.setenv("MINTAGE_HOME", str(place.with_name("copy")))

    def refused() -> int:
        with pytest.raises(LeaseError) as caught:
            snowflake.Generator(max_wait_ms=0).new()
        return caught.value.retry_after_ms or 0

    assert 30_000 < in_child(refused) <= 36_000


def test_directories_of_one_user_are_separate_registries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for home in ("one", "other"):
        monkeypatch.setenv("MINTAGE_HOME", str(tmp_path / home))
        assert Sequence("orders").next() == 1


# --- locks ----------------------------------------------------------------------------------------------------------


def test_number_is_free_again_after_its_release(pool: str) -> None:
    first, second = locked_node(pool, range(3, 4)), locked_node(pool, range(3, 4))
    assert node_of(first) == 3
    assert code_of(lambda: second.window(0)) == "lease.none_free"
    first.release(0)
    assert node_of(second) == 3
    second.abandon(0)
    assert node_of(locked_node(pool, range(3, 4))) == 3


def test_closed_generator_holds_no_number(pool: str) -> None:
    holder = locked_node(pool, range(3, 4))
    holder.release(0)
    with pytest.raises(GenerationError, match="create a new one") as caught:
        holder.window(0)
    assert caught.value.code == "generator.closed"
    assert node_of(locked_node(pool, range(3, 4))) == 3


def test_threads_that_mint_first_together_have_one_number(pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, go_on = threading.Event(), threading.Event()

    class Slow(LockedNode):
        def _hold(self, node: int) -> Any:
            inside.set()
            go_on.wait(60)
            return super()._hold(node)

    holder, found = Slow(pool, lambda: range(896, 1024)), []
    first, *others = [threading.Thread(target=lambda: found.append(node_of(holder))) for _ in range(8)]
    first.start()
    assert inside.wait(60)
    for each in others:
        each.start()
    go_on.set()
    for each in (first, *others):
        each.join()
    assert found == 8 * found[:1]


def test_child_has_its_own_number_and_releases_none_of_its_parent(pool: str) -> None:
    numbers = range(10, 12)
    parent = locked_node(pool, numbers)
    first = node_of(parent)

    def child() -> tuple[int, int, int]:
        own = node_of(parent)
        inherited = opened(f"{pool}-{first}.lock")
        parent.release(0)
        return own, node_of(locked_node(pool, numbers)), inherited

    own, again, inherited = in_child(child)
    assert own == again == sum(numbers) - first
    assert inherited == 0  # otherwise it would keep the number locked after the parent has released it
    assert in_child(lambda: parent.release(0)) is None
    assert node_of(locked_node(pool, numbers)) == own


def test_new_generation_chooses_a_new_number(pool: str) -> None:
    holder = locked_node(pool, range(10, 30))

    def restored() -> list[int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UniquenessWarning)
            before = holder.window(0)[0]
            start_generation()
            return [before, holder.window(0)[0]]

    node_of(holder)
    before, after = in_child(restored)
    assert after > before


def test_number_is_exclusive_under_any_tmpdir(pool: str, tmp_path: Path) -> None:
    program = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from mintage.lease.registry.locks import LockedNode\n"
        "print(LockedNode(sys.argv[1], lambda: range(100, 108)).window(0)[1], flush=True); input()"
    )
    running = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        command = [sys.executable, "-c", program, pool]
        environment = {**os.environ, "TMPDIR": str(tmp_path / name)}
        running.append(subprocess.Popen(command, stdin=-1, stdout=-1, env=environment, text=True))
    with running[0], running[1]:
        nodes = {each.stdout.readline() for each in running if each.stdout}
        for each in running:
            each.communicate("\n")
    assert len(nodes) == 2


@pytest.mark.parametrize("missing", ["_bound", "_flocked"])
def test_either_kind_of_lock_is_enough(missing: str, pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "a sandbox")

    monkeypatch.setattr(registry.locks, missing, refuse)
    numbers = range(2)
    first, second = locked_node(pool, numbers), locked_node(pool, numbers)
    assert {node_of(first), node_of(second)} == {0, 1}
    assert code_of(lambda: locked_node(pool, numbers).window(0)) == "lease.none_free"


def test_python_without_fcntl_holds_a_number_by_its_socket(pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    first, second = locked_node(pool, range(2)), locked_node(pool, range(2))
    assert {node_of(first), node_of(second)} == {0, 1}


def test_number_locked_in_one_place_is_released_in_the_others(pool: str) -> None:
    elsewhere = registry.locks._flocked("/tmp", f"{pool}-5")
    assert code_of(lambda: locked_node(pool, range(5, 6)).window(0)) == "lease.none_free"
    assert opened(pool) == 1
    os.close(elsewhere)
    assert node_of(locked_node(pool, range(5, 6))) == 5


def test_random_number_without_any_lock_is_warned_of(pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "a sandbox")

    monkeypatch.setattr(registry.locks, "_bound", refuse)
    monkeypatch.setattr(registry.locks, "_flocked", refuse)
    with pytest.warns(UniquenessWarning, match="drawn at random from 128"):
        drawn = {locked_node(pool).window(0)[1] for _ in range(64)}
    assert len(drawn) > 8
    assert drawn <= set(registry.numbers.locked(1024))


def test_warning_raised_as_an_error_leaves_nothing_locked(pool: str) -> None:
    holder = locked_node(pool, range(3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UniquenessWarning)
        for _ in range(2):
            with pytest.raises(UniquenessWarning):
                holder.window(0)
    assert node_of(holder) == 3


@pytest.mark.parametrize("trap", ["a link", "a file", "a stranger's"])
def test_folder_of_another_user_is_not_used(trap: str, tmp_path: Path) -> None:
    own = tmp_path / f"mintage-{os.geteuid()}"
    if trap == "a link":
        (tmp_path / "elsewhere").mkdir()
        own.symlink_to(tmp_path / "elsewhere")
    elif trap == "a file":
        own.write_text("")
    elif os.geteuid() == 0:
        own.mkdir()
        os.chown(own, 54321, 54321)
    else:
        pytest.skip("only root can give a directory away")
    with pytest.raises(OSError, match=r"exists|another user"):
        registry.locks._flocked(str(tmp_path), "name")
    assert not any(own.rglob("*.lock"))


def test_descriptor_reused_after_a_daemon_closed_it_stays_open(pool: str) -> None:
    holder = locked_node(pool, range(3, 4))
    node_of(holder)
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(close_descriptors(pool))]
    holder.release(0)
    for each in others:
        os.close(each)


def test_descriptors_closed_by_a_daemon_are_not_needed(pool: str) -> None:
    holder = locked_node(pool, range(3, 4))
    node_of(holder)
    assert close_descriptors(pool) > 1
    holder.release(0)
    assert node_of(locked_node(pool, range(3, 4))) == 3


def test_long_name_fits_the_path_of_a_socket(pool: str) -> None:
    long = pool + "x" * (128 - len(pool))
    assert (
        node_of(locked_node(long, range(2**44 - 2, 2**44))) == node_of(locked_node(long, range(2**44 - 2, 2**44))) ^ 1
    )
    held = registry.locks._bound(long)
    with pytest.raises(BlockingIOError):
        registry.locks._bound(long)
    os.close(held)


def test_socket_of_another_user_holds_a_number_for_all(pool: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(f"\0mintage/{pool}-0".encode())
        assert node_of(locked_node(pool, range(2))) == 1


def test_restored_process_and_its_children_choose_other_numbers() -> None:
    origin = 4711 << 28 | 12345

    def starts() -> list[int]:
        return [
            registry.numbers.blocks(65_536)[0].start,
            registry.numbers.fragments(origin)[0].start,
            registry.numbers._preferred_index(8192),
        ]

    def restored() -> list[list[int]]:
        start_generation()
        return [starts(), in_child(starts)]

    before = starts()
    assert in_child(starts) == before
    found = [before, *in_child(restored), *in_child(restored)]
    # Three numbers of 2^13 and more: alike by chance less than once in 2^50.
    assert len({tuple(each) for each in found}) == 5
    assert len({fragment for _, fragment, _ in found}) == 5
    assert found[1][1] >> 28 == 4711


# --- recorded times of locked numbers -------------------------------------------------------------------------------


def test_number_begins_where_its_last_window_ended(pool: str, clock: ManualClock) -> None:
    start_ms = clock.now_ns // MS
    first, second = locked_node(pool, range(1)), locked_node(pool, range(1))
    _, _, floor_ms, until_ms, _ = window_of(first)
    assert (floor_ms, until_ms) == (0, start_ms + registry.locks.FIRST_SPAN_MS)
    assert times_of(pool) == {until_ms}
    first.release(start_ms + 7)
    assert times_of(pool) == {start_ms + 7}
    clock.advance(7 * MS)
    assert window_of(second)[2] == start_ms + 7


def test_release_keeps_the_end_between_floor_and_window(pool: str, clock: ManualClock) -> None:
    for used_until_ms, expected_ms in ((0, 0), (2**53, clock.now_ns // MS + registry.locks.FIRST_SPAN_MS)):
        holder = locked_node(pool, range(1))
        window_of(holder)
        holder.release(used_until_ms)
        assert times_of(pool) == {expected_ms}


def test_number_ahead_of_the_clock_is_skipped(pool: str, clock: ManualClock) -> None:
    now_ms = clock.now_ns // MS
    holder = locked_node(pool, range(2))
    first = window_of(holder)[1]
    holder.release(now_ms + 1)
    other = locked_node(pool, range(2))
    assert window_of(other)[1] == 1 - first
    other.release(now_ms + 9)
    with pytest.raises(LeaseError, match="for 1 ms from now or longer") as caught:
        window_of(locked_node(pool, range(2)))
    assert (caught.value.code, caught.value.retry_after_ms) == ("lease.none_free", 1)
    clock.advance(MS)
    assert window_of(locked_node(pool, range(2)))[1] == first


def test_number_that_comes_free_in_time_is_waited_for(pool: str) -> None:
    first, second = locked_node(pool, range(1)), locked_node(pool, range(1))
    until_ms = window_of(first)[3]
    first.release(2**53)
    assert window_of(second, 60_000)[2] == until_ms


def test_stalled_process_gets_a_number_freed_meanwhile(
    pool: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = locked_node(pool, range(1)), locked_node(pool, range(1))
    until_ms, choose, now_s = window_of(first)[3], LockedNode._choose, time.monotonic()
    first.release(2**53)

    def late(holder: LockedNode, now_ms: int) -> Any:
        nonlocal now_s
        now_s += 3600
        clock.set(until_ms * MS)
        return choose(holder, now_ms)

    monkeypatch.setattr(LockedNode, "_choose", late)
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    assert window_of(second, 1000)[2] == until_ms


def test_window_in_use_doubles_with_each_extension(pool: str, clock: ManualClock) -> None:
    holder, spans_ms = locked_node(pool), []
    for _ in range(6):
        serial, _, floor_ms, until_ms, due_ms = window_of(holder)
        assert (serial, floor_ms) == (1, 0)
        assert window_of(holder) == (serial, window_of(holder)[1], floor_ms, until_ms, due_ms)
        spans_ms.append(until_ms - clock.now_ns // MS)
        assert times_of(pool) == {until_ms}
        clock.set(until_ms * MS)
    assert spans_ms == [100, 200, 400, 800, 1000, 1000]


def test_generator_ahead_of_its_clock_stays_within_its_span(pool: str, clock: ManualClock) -> None:
    holder, now_ms = locked_node(pool, span_ms=4000), clock.now_ns // MS
    windows = [window_of(holder)]
    while windows[-1][4] <= now_ms:
        holder.grow(windows[-1][3], 0)
        if len(windows) == 1:
            # Another thread was first.
            holder.grow(windows[-1][3], 0)
        windows.append(window_of(holder))
    assert [until_ms - now_ms for _, _, _, until_ms, _ in windows] == [100, 200, 400, 800, 1600, 3200, 4000]
    holder.grow(windows[0][3], 0)
    assert window_of(holder) == windows[-1]
    assert times_of(pool) == {now_ms + 4000}


@pytest.mark.parametrize("end", ["killed", "closed"])
@pytest.mark.parametrize("back_ms", [0, 3_600_000])
def test_later_process_repeats_nothing_of_an_earlier_one(
    end: str, back_ms: int, pool: str, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = 1_800_000_000_000
    layout = snowflake.Layout("time:41 node:4 sequence:12", epoch_ms=1_700_000_000_000)

    def mint(at_ms: int, numbers: int) -> list[int]:
        clock = ManualClock(at_ms * MS)
        monkeypatch.setattr(registry.locks, "system_ns", clock)
        warnings.simplefilter("ignore", UniquenessWarning)
        # Ahead of its clock by some ticks.
        generator = snowflake.Generator(layout=layout, pool=pool, clock=clock, on_exhausted="advance")
        ids = generator.batch(numbers).tolist()
        if end == "closed":
            generator.close()
        return list(ids)

    minted = in_child(lambda: mint(now_ms, 20_000))
    later_ms = now_ms + 1 - back_ms
    minted += in_child(lambda: mint(later_ms, 20_000))
    assert len(set(minted)) == 40_000
    assert len({layout.parse(each).node for each in minted}) == 2
    only = LockedNode(pool, lambda: range(registry.numbers.locked(16)[0], 16))
    monkeypatch.setattr(registry.locks, "system_ns", ManualClock(later_ms * MS))
    assert code_of(lambda: window_of(only)) == "lease.none_free"


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 17, b"not a time at all", b"0" * 16, b"0" * 16 + b"\n0", b"7" * 2**20]
)
def test_number_whose_file_has_no_time_is_not_used(content: bytes, pool: str) -> None:
    file = file_of(pool, 0)
    file.write_bytes(content)
    assert node_of(locked_node(pool, range(2))) == 1
    assert code_of(lambda: window_of(locked_node(pool, range(1)))) == "lease.none_free"
    assert file.read_bytes() == content
    assert opened(f"{pool}-0") == 0


@pytest.mark.parametrize("kind", ["a directory", "a link", "a pipe", "a stranger's"])
def test_number_whose_file_belongs_to_another_user_is_not_used(kind: str, pool: str) -> None:
    file = file_of(pool, 0)
    if kind == "a directory":
        file.mkdir()
    elif kind == "a link":
        file.symlink_to("/dev/null")
    elif kind == "a pipe":
        os.mkfifo(file)
    elif os.geteuid() == 0:
        file.write_bytes(registry.locks._record(0))
        os.chown(file, 54_321, 54_321)
    else:
        pytest.skip("only root can give a file away")
    assert node_of(locked_node(pool, range(2))) == 1


def test_file_created_by_another_process_meanwhile_wins(pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    linked = os.link

    def late(new: str, path: str) -> None:
        Path(path).write_bytes(registry.locks._record(2**53))
        linked(new, path)

    monkeypatch.setattr(os, "link", late)
    holder = locked_node(pool, range(1))
    with pytest.raises(LeaseError, match="or minted with for"):
        window_of(holder)
    assert times_of(pool) == {2**53}
    assert not list(Path(files.own_directory("/tmp")).glob(f"{pool}*.lock.*"))


@pytest.mark.parametrize("ages_ms", [(5, 3), (3, 5)])
def test_later_time_of_two_files_counts(ages_ms: tuple[int, int], pool: str, clock: ManualClock) -> None:
    now_ms = clock.now_ns // MS
    for folder, age_ms in zip(registry.locks._FOLDERS, ages_ms, strict=True):
        file_of(pool, 0, folder).write_bytes(registry.locks._record(now_ms - age_ms))
    assert window_of(locked_node(pool, range(1)))[2] == now_ms - 3


def test_window_that_cannot_be_recorded_is_not_opened(
    pool: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    holder = locked_node(pool, range(1))
    until_ms = window_of(holder)[3]
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        clock.set(until_ms * MS)
        assert code_of(lambda: window_of(holder)) == "store.unavailable"
        assert code_of(lambda: holder.grow(until_ms, 0)) == "store.unavailable"
    assert window_of(holder)[3] > until_ms


def test_holder_whose_descriptors_were_closed_leases_anew(pool: str, clock: ManualClock) -> None:
    holder = locked_node(pool, range(1))
    serial, _, _, until_ms, _ = window_of(holder)
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(close_descriptors(pool))]
    assert window_of(holder)[0] == serial
    clock.set(until_ms * MS)
    # The process that took the number meanwhile also starts there.
    assert window_of(holder)[:3] == (serial + 1, 0, until_ms)
    for each in others:
        assert os.fstat(each).st_rdev == os.stat(os.devnull).st_rdev
        os.close(each)


def test_fast_holder_whose_descriptors_were_closed_takes_another(pool: str, clock: ManualClock) -> None:
    holder = locked_node(pool, range(2))
    _, node, _, until_ms, _ = window_of(holder)
    assert close_descriptors(pool) > 1
    holder.grow(until_ms, 0)
    assert window_of(holder)[1] == 1 - node
    assert times_of(pool, node) == {until_ms}


def test_child_does_not_write_the_time_of_its_parent(pool: str, clock: ManualClock) -> None:
    holder = locked_node(pool, range(2))
    _, node, _, until_ms, _ = window_of(holder)

    def child() -> list[int]:
        window_of(locked_node(pool, range(2)))
        holder.grow(until_ms, 0)
        holder.abandon(0)
        holder.release(0)
        return list(times_of(pool, node))

    assert in_child(child) == [until_ms]
    assert window_of(holder)[1] == node


def test_number_without_a_file_cools_down_for_the_longest_window(
    pool: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.locks, "_FOLDERS", ())
    now_ms, holder = clock.now_ns // MS, locked_node(pool, range(1))
    with pytest.warns(UniquenessWarning, match="no file remembers its times"), pytest.raises(LeaseError) as caught:
        holder.window(0)
    assert (caught.value.code, caught.value.retry_after_ms) == ("lease.none_free", 500)
    clock.advance(499 * MS)
    assert code_of(lambda: window_of(holder)) == "lease.none_free"
    clock.advance(MS)
    while True:
        _, _, floor_ms, until_ms, due_ms = window_of(holder)
        assert until_ms <= clock.now_ns // MS + 500
        if due_ms > clock.now_ns // MS:
            break
        holder.grow(until_ms, 0)
    assert floor_ms == now_ms + 500


def test_locks_without_their_files_repeat_ids_if_the_clock_goes_back(
    pool: str, nowhere: Path, clock: ManualClock
) -> None:
    layout = snowflake.Layout("time:41 node:3 sequence:10", epoch_ms=1_700_000_000_000)

    def mint() -> int:
        warnings.simplefilter("ignore", UniquenessWarning)
        with snowflake.Generator(layout=layout, pool=pool, clock=clock, max_wait_ms=60_000) as generator:
            return generator.new()

    minted = []
    for _ in range(2):
        minted.append(in_child(mint))
        for folder in registry.locks._FOLDERS:
            for file in Path(files.own_directory(folder)).glob(f"{pool}*"):
                file.unlink()
    # In the second child, the clock is where it was in the first.
    assert minted[0] == minted[1]


def test_unlocked_number_resumes_where_this_process_left_it(
    pool: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.locks, "_places", lambda _: ())
    first, second = locked_node(pool, range(2)), locked_node(pool, range(2))
    nodes = {window_of(first)[1], window_of(second)[1]}
    assert nodes == {0, 1}
    first.release(clock.now_ns // MS + 3)
    assert code_of(lambda: window_of(locked_node(pool, range(2)))) == "lease.none_free"
    clock.advance(3 * MS)
    assert window_of(locked_node(pool, range(2)))[2] == clock.now_ns // MS


def test_release_of_an_inherited_number_keeps_the_childs_own(
    pool: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.locks, "_places", lambda _: ())
    inherited = locked_node(pool, range(1))
    window_of(inherited)
    clock.advance(1000 * MS)

    def child() -> str | None:
        own = locked_node(pool, range(1))
        window_of(own)
        inherited.release(0)
        clock.advance(1000 * MS)
        return code_of(lambda: locked_node(pool, range(1)).window(0))

    assert in_child(child) == "lease.none_free"


def test_file_deleted_while_it_is_written_opens_no_window(
    pool: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = locked_node(pool, range(1))
    until_ms = window_of(holder)[3]
    clock.set(until_ms * MS)
    with monkeypatch.context() as patch:
        # As it was found a moment ago.
        patch.setattr(LockedNode, "_is_lost", lambda *_: False)
        file_of(pool, 0).unlink()
        assert code_of(lambda: holder.window(0)) == "store.unavailable"
    clock.advance(1000 * MS)
    assert window_of(holder)[0] == 2


def test_numbers_with_files_come_first(pool: str, clock: ManualClock) -> None:
    def killed() -> int:
        return window_of(locked_node(pool, range(2**20)))[0]

    for _ in range(20):
        holder = locked_node(pool, range(2**20))
        window_of(holder)
        holder.release(0)
        in_child(killed)
        clock.advance(1000 * MS)
    assert len(registry.locks._known(pool, range(2**20))) == 1


def test_containers_with_the_same_name_begin_apart(pool: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def begin() -> int:
        return next(registry.locks._order(pool, range(2**44)))

    found = set()
    for container in range(4):
        monkeypatch.setattr(registry.locks, "_FOLDERS", (tmp_path / str(container),))
        found.add(in_child(begin))
    # Equal by chance once in 2^41.
    assert len(found) == 4


def test_clock_far_from_the_system_clock_is_refused(pool: str, clock: ManualClock) -> None:
    own = ManualClock(clock.now_ns)
    holder = locked_node(pool, clock=own)
    until_ms = window_of(holder)[3]
    own.advance(3_600_000 * MS)
    assert code_of(lambda: window_of(holder)) == "lease.clock"
    assert code_of(lambda: holder.grow(until_ms, 0)) == "lease.clock"
    assert times_of(pool) == {until_ms}


def test_fork_inside_a_clock_gives_the_child_its_own_number(pool: str, clock: ManualClock) -> None:
    pids: list[int] = []

    def forking() -> int:
        if not pids:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                pids.append(os.fork())
        return clock.now_ns

    holder = locked_node(pool, range(2), clock=forking)
    reading, writing = os.pipe()
    node = window_of(holder)[1]
    if pids == [0]:
        os.write(writing, bytes([node]))
        os._exit(0)
    theirs = os.read(reading, 1)
    assert os.waitpid(pids[0], 0)[1] == 0
    assert {node, *theirs} == {0, 1}


@pytest.mark.parametrize("verdict", [Verdict.MAYBE, Verdict.RESTORED])
def test_copy_releases_its_number_at_the_end_of_its_window(
    verdict: Verdict, pool: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, numbers = locked_node(pool, range(2**20)), range(2**20)

    def restored() -> list[int]:
        # Without a notification.
        first = window_of(holder)
        monkeypatch.setattr(RestoreDetector, "check", lambda _: verdict)
        inside = window_of(holder)[:2] == first[:2]
        clock.advance(1000 * MS)
        moved = window_of(holder)
        monkeypatch.setattr(RestoreDetector, "check", lambda _: Verdict.SAME)
        clock.advance(1000 * MS)
        return [inside, moved[0] - first[0], window_of(holder)[0] - moved[0], moved[1]]

    before = window_of(locked_node(pool, numbers))[1]
    found = [in_child(restored) for _ in range(3)]
    assert [each[:3] for each in found] == [[True, 1, 0]] * 3
    # Alike by chance less than once in 2^17.
    assert len({before, *(each[3] for each in found)}) == 4


@pytest.mark.parametrize("is_told", [True, False])
def test_copies_begin_apart_and_avoid_recorded_numbers(
    is_told: bool, pool: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = range(2**20)
    with closing_number(locked_node(pool, numbers)) as before:
        known = window_of(before)[1]

    def restored() -> list[int]:
        first = registry.numbers.first_index() % len(numbers)
        if is_told:
            start_generation()
        else:
            window_of(locked_node(pool, numbers))
            monkeypatch.setattr(RestoreDetector, "check", lambda _: Verdict.MAYBE)
            registry.numbers.restore_state()
        return [first, next(registry.locks._order(pool, numbers))]

    found = [known, *in_child(restored), *in_child(restored)]
    # Alike by chance less than once in 2^16.
    assert len(set(found)) == 5


@pytest.mark.parametrize("unit_ms", [1, 4, 1000, 5000])
def test_ticks_of_any_length_fit_into_windows_of_locks(
    unit_ms: int, pool: str, nowhere: Path, clock: ManualClock
) -> None:
    layout = snowflake.Layout("time:41 node:3 sequence:10", epoch_ms=1_700_000_000_000, unit_ms=unit_ms)
    ids: list[int] = []
    for _ in range(20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UniquenessWarning)
            with snowflake.Generator(layout=layout, pool=pool, clock=clock, max_wait_ms=60_000) as generator:
                ids += generator.batch(1500).tolist()
        clock.advance(unit_ms * MS)
    assert len(set(ids)) == 30_000


# --- location -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relative", ["state", "./state", "~/state", "../state"])
def test_relative_home_of_mintage_is_refused(relative: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINTAGE_HOME", relative)
    with pytest.raises(ConfigError, match=r"MINTAGE_HOME '.*state' is not an absolute path"):
        snowflake.Generator().new()


def test_explicit_store_needs_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINTAGE_HOME", "relative")
    with snowflake.Generator(store="memory:") as generator:
        generator.new()
        # It is a store like others, with possible earlier holders.
        assert code_of(lambda: generator.new_at(datetime(2026, 1, 1, tzinfo=UTC))) == "lease.history"


@pytest.fixture
def no_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove the registry of the machine and the variables that name another."""
    monkeypatch.delenv("MINTAGE_HOME")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(registry, "MACHINE", str(tmp_path / "none"))


@pytest.mark.usefixtures("no_machine")
def test_other_relative_directories_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    monkeypatch.setenv("HOME", "/somewhere")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert registry.home() == "/state/mintage"
    for relative in ("state", "", "./state"):
        monkeypatch.setenv("XDG_STATE_HOME", relative)
        assert registry.home() == "/somewhere/.local/state/mintage"
    home = pwd.getpwuid(os.geteuid()).pw_dir
    for relative in ("home", ""):
        monkeypatch.setenv("HOME", relative)
        assert registry.home() == f"{home}/.local/state/mintage"
    monkeypatch.delenv("HOME")
    assert registry.home() == f"{home}/.local/state/mintage"


@pytest.mark.usefixtures("no_machine")
def test_user_without_a_home_gets_a_lock(monkeypatch: pytest.MonkeyPatch, pool: str) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    assert not registry.is_writable()
    with pytest.warns(UniquenessWarning, match="in a home directory: node"):
        snowflake.Generator(pool=pool).new()


@pytest.mark.parametrize("name", [b"\xff", "h h%41?#ü".encode()], ids=["not UTF-8", "special characters"])
def test_home_may_have_any_name(name: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(tmp_path, os.fsdecode(name))
    monkeypatch.setenv("MINTAGE_HOME", str(home))
    sno.Generator().new()
    assert (home / "registry.db").exists()
    assert [lease.node for lease in open_store(registry.url()).list_leases("sno")]


IMPORTS_NOTHING_MORE = """if True:
    import os, sys, warnings
    from mintage import Sequence, sno
    from mintage.errors import StoreError

    class Refusing:
        @staticmethod
        def find_spec(name, *_):
            raise ImportError(f"{name} cannot be read", name=name)

    warnings.simplefilter("ignore")
    sno.new()
    sys.meta_path.insert(0, Refusing)
    minted = [sno.new(), sno.Generator().new(), Sequence("orders").next()]
    if not (child := os.fork()):
        sno.new()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    try:
        sno.Generator(store="sqlite:////nowhere/ids.db").new()
    except StoreError as error:
        print(error.code)
    os.environ["MINTAGE_HOME"] = "/proc/nowhere"
    print(sno.Generator().new() not in minted)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_process_that_can_import_nothing_more_mints_on() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS_NOTHING_MORE], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.returncode) == (["store.refused", "True"], 0), done.stderr


def test_host_without_a_machine_id_has_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mintage.platform.machine._content", lambda _: b"")
    before = registry.numbers.host_id()
    monkeypatch.setattr("mintage.platform.machine.host_name", lambda: "another")
    assert registry.numbers.host_id() != before


def test_each_user_and_each_directory_begins_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {registry.numbers.host_id()}
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    found.add(registry.numbers.host_id())
    monkeypatch.setenv("MINTAGE_HOME", "/somewhere/else")
    found.add(registry.numbers.host_id())
    monkeypatch.setattr("mintage.platform.machine.host_name", lambda: "another")
    found.add(registry.numbers.host_id())
    assert len(found) == 4


# --- the registry of a machine --------------------------------------------------------------------------------------


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, shared: Path) -> Path:
    """Return a registry that root has created for a group of users."""
    group = 54_300
    made = shared / "machine"
    made.mkdir()
    os.chown(made, 0, group)
    made.chmod(0o2770)
    monkeypatch.delenv("MINTAGE_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(shared / "state"))
    monkeypatch.setattr(registry, "MACHINE", str(made))
    return made


def as_user(user: int, run: Callable[[], object], *, groups: tuple[int, ...] = (54_300,)) -> Any:
    def other() -> object:
        os.umask(0o077)
        os.setgroups(groups)
        os.setgid(user)
        os.setuid(user)
        return run()

    return in_child(other)


@as_root
def test_users_of_one_machine_lease_from_its_registry(machine: Path) -> None:
    def mint() -> tuple[str, int]:
        # The module's own generator may have leased before, from the registry of these tests.
        return registry.home(), snowflake.DEFAULT.parse(snowflake.Generator().new()).node

    found = [as_user(user, mint) for user in (54_321, 54_322, 54_323)]
    assert {home for home, _ in found} == {str(machine)}
    assert len({node for _, node in found}) == 3
    file = (machine / "registry.db").stat()
    assert (stat.S_IMODE(file.st_mode), file.st_gid, file.st_nlink) == (0o660, 54_300, 1)


@as_root
def test_integers_begin_again_in_the_registry_of_a_machine(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(registry, "MACHINE", str(machine / "none"))
        assert Sequence("orders").next() == 1
    assert in_child(lambda: Sequence("orders").next()) == 1


@as_root
def test_creating_the_machine_file_leaves_nothing_open(machine: Path) -> None:
    registry.prepare()
    assert (machine / "registry.db").exists()
    assert opened(str(machine)) == 0


@as_root
def test_setuid_program_writes_what_its_effective_user_may(machine: Path) -> None:
    def outsider() -> bool:
        os.setgroups([])
        os.setresgid(54_321, 54_321, 54_321)
        os.setresuid(0, 54_321, 54_321)
        return registry.is_outsider()

    assert in_child(outsider)


@as_root
def test_file_created_by_another_user_meanwhile_is_kept(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "registry.db").write_text("another's")
    monkeypatch.setattr(Path, "exists", lambda _: False)
    registry.prepare()
    assert (machine / "registry.db").read_text() == "another's"


@as_root
def test_user_outside_the_group_is_warned_of_a_separate_registry(machine: Path, shared: Path) -> None:
    shared.chmod(0o777)

    def mint() -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UniquenessWarning)
            snowflake.Generator().new()
        assert {each.filename for each in caught} == {__file__}
        return [registry.home(), *(str(each.message) for each in caught)]

    home, warning = as_user(54_321, mint, groups=())
    assert home == str(shared / "state" / "mintage")
    assert "add the user to the directory's group" in warning


@as_root
@pytest.mark.parametrize("wrong", ["a stranger's", "anybody's", "a link", "a file"])
def test_group_directory_not_created_by_root_is_no_registry(wrong: str, machine: Path) -> None:
    if wrong == "a stranger's":
        os.chown(machine, 54_321, 54_300)
    elif wrong == "anybody's":
        machine.chmod(0o2777)
    else:
        machine.rmdir()
        if wrong == "a link":
            machine.symlink_to("/root")
        else:
            machine.write_text("")
    assert registry.home() != str(machine)
    assert not registry.is_outsider()


@as_root
def test_explicit_home_bypasses_the_registry_of_the_machine(machine: Path, monkeypatch: Any) -> None:
    assert registry.home() == str(machine)
    monkeypatch.setenv("MINTAGE_HOME", "/somewhere")
    assert registry.home() == "/somewhere"


def test_lease_error_of_locks_names_the_remedy(pool: str) -> None:
    held = locked_node(pool, range(1))
    node_of(held)
    with pytest.raises(LeaseError, match="set MINTAGE_HOME"):
        locked_node(pool, range(1)).window(0)
