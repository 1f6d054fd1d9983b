"""Tests of the table of docs/uniqueness.md, cell by cell: each is read from the page, and tried with real processes.

A cell that begins with "yes" must show no equal IDs, a bold "no" must show some. A row is run in each configuration of
its columns; that of generators without a store runs once more in a home that cannot be written, where locks hold the
node number, as the page promises the same there. ``NOT_TRIED`` has the reasons for omitted cells.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from array import array
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import mintage
from mintage import Sequence, snowflake
from mintage.errors import MintError, StoreError, UniquenessWarning
from mintage.lease import keeper
from mintage.store import Forwarding, open_store
from mintage.testing import ManualClock
from tests.helpers.processes import answers, forked, raw_clone
from tests.servers.server import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="locks, raw clones and users are Linux's here")

MS: Final = 10**6
WAIT_MS: Final = 60_000
MANY: Final = 20_000
"""IDs of five milliseconds at least, whose numbers are all used."""
EPOCH_MS: Final = 1_735_689_600_000
NARROW: Final = snowflake.Layout("time:41 node:3 sequence:12", epoch_ms=EPOCH_MS)
"""One of its node numbers is for locks."""
FEW: Final = snowflake.Layout("time:41 node:3 sequence:2", epoch_ms=EPOCH_MS)
"""The same, with four IDs of a millisecond."""


# --- the page --------------------------------------------------------------------------------------------------------


def plain(cell: str) -> str:
    """Return the text of a cell, without links."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell).strip()


def read_table() -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of the columns, and the cells of each row by its label."""
    page = (Path(__file__).parents[2] / "docs/uniqueness.md").read_text(encoding="utf-8")
    section = page.partition("## What is promised, by configuration\n")[2].partition("\n## ")[0]
    rows = [[plain(cell) for cell in line.strip("|").split("|")] for line in re.findall(r"(?m)^\|.*\|$", section)]
    head, _, *body = rows
    return head[1:], {label: cells for label, *cells in body}


COLUMNS, TABLE = read_table()
CONFIGURATIONS: Final = {"store": 0, "default": 1, "locked": 1, "number": 2}
"""The configuration of each column; ``locked`` is the default one, in a home that is not writable."""


# --- the configurations ----------------------------------------------------------------------------------------------


class Setting:
    """One configuration, in a directory of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.url = f"sqlite:///{folder}/store.db"
        self.pool = f"narrow-{folder.name}"
        self.refused: list[str] = []
        """The codes of the errors."""

    def enter(self) -> None:
        """Configure this process and its children."""
        warnings.simplefilter("ignore", UniquenessWarning)
        home = self.folder / "home"
        if self.name == "locked":
            (self.folder / "file").touch()
            home = self.folder / "file" / "home"
        os.environ["MINTAGE_HOME"] = str(home)

    def make(self, *, number: int = 7, one: bool = False, **options: Any) -> snowflake.Generator:
        """Return a generator; with ``one``, each has the same node number if possible."""
        options = {"max_wait_ms": WAIT_MS, **options}
        if self.name == "number":
            # A lock never waits for others, and has no window.
            return snowflake.Generator(node=number, **{key: options[key] for key in options if key != "span_ms"})
        # With only a custom clock it would choose a number at random. With a pool it leases one.
        where = {"store": self.url} if self.name == "store" else {"pool": "snowflake"}
        options = {**where, **options}
        if one and self.name == "locked":
            options = {"layout": NARROW, **options, "pool": self.pool}
        elif one:
            options |= {"nodes": range(5, 6)}
        return snowflake.Generator(**options)

    def batch(self, generator: snowflake.Generator, count: int = MANY) -> list[int]:
        """Return up to a number of IDs."""
        try:
            return list(generator.batch(count).tolist())
        except MintError as error:
            self.refused.append(error.code)
            return []

    def apart(self, *works: Callable[[], Iterable[int]], fork: Callable[[], int] = os.fork) -> list[int]:
        """Return the IDs that several processes minted concurrently; an error of mintage ends one."""

        def run(work: Callable[[], Iterable[int]]) -> bytes:
            self.refused.clear()
            ids = array("Q")
            try:
                ids.extend(work())
            except MintError as error:
                self.refused.append(error.code)
            return json.dumps(self.refused).encode() + b"\n" + ids.tobytes()

        minted: list[int] = []
        for answer in list(answers([forked(partial(run, work), fork) for work in works])):
            refused, _, ids = answer.partition(b"\n")
            self.refused += json.loads(refused)
            minted += array("Q", ids)
        return minted


def behind(ns: int) -> Callable[[], int]:
    """Return a clock that is a number of nanoseconds behind that of the system."""
    return lambda: time.time_ns() - ns


# --- the rows --------------------------------------------------------------------------------------------------------


def threads(to: Setting) -> list[int]:
    generator, found = to.make(), [list[int]() for _ in range(4)]

    def mint(mine: list[int]) -> None:
        for _ in range(50):
            mine.extend(generator.new() for _ in range(50))
            mine.extend(to.batch(generator, 50))

    workers = [threading.Thread(target=mint, args=[mine]) for mine in found]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return [each for mine in found for each in mine]


def clock_back(to: Setting) -> list[int]:
    off_ns = 0
    generator, minted = to.make(clock=lambda: time.time_ns() - off_ns), list[int]()
    for step_ms in (0, 10, 400, 30):
        off_ns += step_ms * MS
        minted += to.batch(generator)
    return minted


def pause(to: Setting) -> list[int]:
    """Pause a process past its window, while another mints, under the same number if possible."""
    reading, writing = os.pipe()

    def sleeper() -> list[int]:
        generator = to.make(one=True, span_ms=1000, on_lease_lost="raise") if to.name != "number" else to.make()
        minted = to.batch(generator, 100)
        os.write(writing, os.getpid().to_bytes(8, "big"))
        os.kill(os.getpid(), signal.SIGSTOP)
        return minted + to.batch(generator)

    def other() -> list[int]:
        pid = int.from_bytes(os.read(reading, 8), "big")
        until(lambda: " T " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"), "it sleeps")
        try:
            if to.name in {"number", "locked"}:  # nobody else has its number
                return []
            return to.batch(to.make(one=True, span_ms=1000))
        finally:
            os.kill(pid, signal.SIGCONT)

    return to.apart(sleeper, other)


def fork(to: Setting) -> list[int]:
    minted: list[int] = []
    for kind in (os.fork, raw_clone):
        generator = to.make()
        minted += to.batch(generator, 10)
        child = partial(to.batch, generator)
        minted += to.apart(child, child, fork=kind)
        minted += to.batch(generator)
    return minted


def cloned(to: Setting) -> list[int]:
    """Copy the memory of the process, as a restored snapshot does."""
    generator = to.make()
    minted = to.batch(generator, 10)
    mintage.before_snapshot()

    def restored() -> list[int]:
        mintage.after_restore()
        return to.batch(generator)

    return minted + to.apart(restored, restored, fork=raw_clone)


def two_generators(to: Setting, numbers: tuple[int, int] = (7, 7)) -> list[int]:
    first, second = (to.make(number=number) for number in numbers)
    minted = [each.new() for _ in range(500) for each in (first, second)]
    minted += to.batch(first) + to.batch(second)
    if to.name != "number":
        for _ in range(20):  # one after the other has the number of the one before
            with to.make() as generator:
                minted += to.batch(generator, 500)
    return minted


def two_processes(to: Setting, numbers: tuple[int, int] = (7, 7)) -> list[int]:
    return to.apart(*(lambda number=number: to.batch(to.make(number=number)) for number in numbers))


def two_users(to: Setting, numbers: tuple[int, int] = (7, 7)) -> list[int]:
    to.folder.chmod(0o777)
    with open_store(to.url) as store:
        store.now_ms()
    for file in to.folder.glob("store.db*"):
        file.chmod(0o666)

    def mint(user: int, number: int) -> list[int]:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        os.umask(0)  # each needs the other's files beside the database
        os.environ["MINTAGE_HOME"] = str(to.folder / f"home of {user}")
        return to.batch(to.make(number=number))

    return to.apart(partial(mint, 54321, numbers[0]), partial(mint, 54322, numbers[1]))


def two_hosts(to: Setting, numbers: tuple[int, int] = (7, 7)) -> list[int]:
    """Run two hosts that share only the named resources."""

    def mint(number: int) -> list[int]:
        os.environ["MINTAGE_HOME"] = str(to.folder / f"home of {os.getpid()}")
        return to.batch(to.make(number=number))

    return to.apart(*(partial(mint, number) for number in numbers))


def killed(to: Setting) -> list[int]:
    """Kill processes while they mint; the next one begins at once; the last one stays."""
    file = to.folder / "minted"

    def mint() -> bytes:
        with file.open("ab", buffering=0) as minted:
            generator = to.make(span_ms=1000)
            while True:
                minted.write(array("Q", generator.batch(100).tolist()).tobytes())

    for _ in range(4):
        pid, reading = forked(mint)
        before = file.stat().st_size if file.exists() else 0
        until(lambda before=before: file.exists() and file.stat().st_size > before + 8 * 5_000, "it mints")  # type: ignore[misc]
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        last_ns = time.time_ns()
        until(lambda last_ns=last_ns: time.time_ns() // MS > last_ns // MS, "its last tick is over")  # type: ignore[misc]
    whole = file.read_bytes()
    return array("Q", whole[: len(whole) // 8 * 8]).tolist()


def restarted(to: Setting, count: int = MANY, *, goes_back: bool, **options: Any) -> list[int]:
    """Run processes one after the other, which end with and without releasing."""
    began_ns, minted = time.time_ns(), list[int]()

    def mint(off_ns: int, closes: bool) -> list[int]:
        # Without a window, each goes through the very ticks of the one before, however slow this machine is.
        clock = ManualClock(began_ns) if off_ns and to.name == "number" else behind(off_ns)
        generator = to.make(one=True, span_ms=1000, clock=clock, **options)
        minted = to.batch(generator, count)
        if closes:
            generator.close()
        return minted

    for closes in (True, False, True):
        off_ns = time.time_ns() - began_ns if goes_back else 0
        if off_ns > 4_000 * MS and to.name != "number":  # stores refuse clocks that are further off
            began_ns, off_ns = time.time_ns(), 0
        minted += to.apart(partial(mint, off_ns, closes))
    return minted


def changed_hands(to: Setting) -> list[int]:
    if to.name == "number":
        clock = ManualClock(1_800_000_000_000 * MS, auto_advance=False)
        return [to.make(clock=clock).new() for _ in range(2)]
    minted: list[int] = []
    for turn in range(10):
        generator = to.make(one=True, span_ms=1000)
        minted += to.batch(generator, 1000)
        if turn == 5 and to.name == "store":
            with open_store(to.url) as store:
                store.revoke("snowflake", 5)
            other = to.make(one=True, span_ms=1000)
            minted += to.batch(other, 1000) + to.batch(generator, 1000)
            other.close()
        generator.close()
    return minted


def ahead(to: Setting) -> list[int]:
    """Run a generator without a window so far ahead that the next one starts within its time."""
    count = 40_000 if to.name == "number" else 1_600
    return restarted(to, count, goes_back=False, layout=FEW, on_exhausted="advance")


class Away(Forwarding):
    """A store that can be unavailable."""

    is_away = False

    def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        if self.is_away:
            raise StoreError("the store is away", code="store.unavailable")
        return super().forward(verb, *args, **kwargs)


def store_away(to: Setting) -> list[int]:
    ahead_ns = 0
    with open_store(to.url) as inner:
        store = Away(inner)
        options: dict[str, Any] = {"nodes": range(7, 8), "span_ms": 1000, "on_lease_lost": "raise"}
        generator = snowflake.Generator(
            store=store, clock=lambda: time.time_ns() + ahead_ns, max_wait_ms=2000, **options
        )
        minted = list[int]()
        while not minted:  # a busy machine may not lease within the time that the store may be away
            minted = to.batch(generator)
        to.refused.clear()
        store.is_away = True
        while not to.refused:
            minted += to.batch(generator, 1000)
            ahead_ns += 50 * MS
        [lease] = inner.list_leases()  # an extension that was under way has ended
        assert max(snowflake.DEFAULT.parse(each).timestamp_ms for each in minted) < lease.until_ms
        with snowflake.Generator(store=inner, max_wait_ms=WAIT_MS, **options) as other:
            return minted + to.batch(other)


def store_forgot(to: Setting) -> list[int]:
    """Restore an older copy of an SQLite store, while a generator and a sequence go on."""
    with open_store(to.url) as store:
        store.create_pool("snowflake", layout="snowflake time:41 node:10 sequence:12 @1420070400000 1ms")
        store.reserve("orders", 1000)
    shutil.copyfile(to.folder / "store.db", to.folder / "copy.db")
    generator, orders = to.make(one=True), Sequence("orders", to.url, step=1000, max_wait_ms=WAIT_MS)
    # Integers are far below all IDs.
    minted = to.batch(generator) + [orders.next() for _ in range(1500)]
    for file in to.folder.glob("store.db*"):
        file.unlink()
    shutil.copyfile(to.folder / "copy.db", to.folder / "store.db")

    def come() -> list[int]:
        others = [Sequence("orders", to.url, step=1000, max_wait_ms=WAIT_MS).next() for _ in range(500)]
        return others + to.batch(to.make(one=True, max_wait_ms=2000))

    minted += to.apart(come)
    assert "lease.none_free" in to.refused, "a pool rests after its store has lost writes"
    return minted + to.batch(generator) + [orders.next() for _ in range(1500)]


def registry_deleted(to: Setting) -> list[int]:
    began_ns = time.time_ns()

    def mint() -> list[int]:
        # The same times for both, however long a lease takes.
        off_ns = None
        generator = to.make(clock=lambda: began_ns if off_ns is None else time.time_ns() - off_ns, span_ms=1000)
        minted = to.batch(generator, 1)
        off_ns = time.time_ns() - began_ns
        return minted + to.batch(generator)

    minted = to.apart(mint)
    for file in (to.folder / "home").iterdir():
        file.unlink()
    return minted + to.apart(mint)


ROWS: Final[dict[str, Callable[..., list[int]]]] = {
    "one generator, many threads": threads,
    "the clock goes back, the process lives on": clock_back,
    "a pause or a sleep of any length": pause,
    "a fork, of any kind": fork,
    "a process that is cloned, with the two calls": cloned,
    "two generators in one process": two_generators,
    "two processes of one user of one host": two_processes,
    "two users of one host": two_users,
    "two hosts, two containers": two_hosts,
    "a crash, a restart, `kill -9`": killed,
    "the clock went back before the restart": partial(restarted, goes_back=True),
    "a restart of a generator that was ahead of its clock": ahead,
    "a number that changed hands": changed_hands,
    "the store is away": store_away,
    "the store forgot its last writes": store_forgot,
    "the registry's file is deleted while processes run": registry_deleted,
}
FIRST_SECOND: Final = "its copies must not be told: tests/unit/test_clones.py and the simulator have them"
BY_CHANCE: Final = "the page promises odds: tests/unit/test_registry.py has where registries begin"
NOT_TRIED: Final = {
    ("a process that is cloned, and nobody told it", "store"): FIRST_SECOND,
    ("a process that is cloned, and nobody told it", "default"): FIRST_SECOND,
    ("a process that is cloned, and nobody told it", "locked"): FIRST_SECOND,
    ("a process that is cloned, and nobody told it", "number"): "a copy of a process, of which nothing is known",
    ("two users of one host", "default"): BY_CHANCE,
    ("two users of one host", "locked"): BY_CHANCE,
    ("two hosts, two containers", "default"): BY_CHANCE,
    ("two hosts, two containers", "locked"): BY_CHANCE,
    ("the registry's file is deleted while processes run", "locked"): "there is none",
}


# --- the cells -------------------------------------------------------------------------------------------------------


def cell_of(label: str, name: str) -> str:
    return TABLE[label][CONFIGURATIONS[name]]


CELLS: Final = [(label, name) for label in TABLE for name in CONFIGURATIONS if cell_of(label, name) != "–"]


def run(label: str, name: str, folder: Path, **options: Any) -> tuple[int, int, list[str]]:
    """Try a cell in a process of its own; return the number of IDs and of equal IDs, and the codes of refusals."""

    def inside() -> bytes:
        to = Setting(name, folder)
        to.enter()
        if label in {"a fork, of any kind", "a process that is cloned, with the two calls"}:
            # Python cannot go on after a raw clone beside a thread that waits for the GIL.
            keeper.use(keeper.Keeper(inline=True))
        minted = ROWS[label](to, **options)
        return json.dumps([len(minted), len(minted) - len(set(minted)), to.refused]).encode()

    [answer] = answers([forked(inside)])
    assert answer, "it failed: see what it wrote"
    count, equal, refused = json.loads(answer)
    return count, equal, refused


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a directory that other users see; lock files elsewhere are removed with it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o755)
        yield Path(made)
        for place in ("/dev/shm", "/tmp"):
            for file in Path(place, f"mintage-{os.geteuid()}").glob(f"*{Path(made).name}*"):
                file.unlink()


@pytest.mark.parametrize(("label", "name"), CELLS, ids=[f"{name}-{label}" for label, name in CELLS])
def test_each_cell_of_the_table_is_true(label: str, name: str, folder: Path) -> None:
    if reason := NOT_TRIED.get((label, name)):
        pytest.skip(reason)
    if label == "two users of one host" and os.geteuid():
        pytest.skip("only root can be another user")
    cell = cell_of(label, name)
    if cell == "if their numbers differ":
        assert run(label, name, folder, numbers=(7, 8))[1] == 0
        return
    count, equal, refused = run(label, name, folder)
    assert count
    if cell.startswith("yes"):
        assert equal == 0
        assert ("fork.shared_node" in refused) == ("refuse" in cell)
        assert "`store.unavailable`" not in cell or refused == ["store.unavailable"]
    else:
        assert cell in {"**no**", "yours to prevent"}, f"nobody knows how to try {cell!r}"
        assert equal > 0


def test_table_has_the_columns_that_the_tests_run() -> None:
    assert COLUMNS == ["`store=`", "default, no store", "explicit number, no store"]


def test_every_row_of_the_table_is_run_or_excused() -> None:
    assert [label for label, name in CELLS if label not in ROWS and (label, name) not in NOT_TRIED] == []
    assert ROWS.keys() | {label for label, _ in NOT_TRIED} == TABLE.keys()
    assert NOT_TRIED.keys() <= set(CELLS)
