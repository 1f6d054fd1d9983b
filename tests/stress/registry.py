"""Processes of one host that get their node numbers together, under all former causes of duplicates.

``python -m tests.stress.registry --rounds 10`` runs each case ten times at each switch interval, with about as many
processes as first showed equal IDs, and counts those. Names of cases select them.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from array import array
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mintage import snowflake
from mintage.errors import MintError
from mintage.lease import registry
from mintage.store.sql.statements import migrations
from tests.helpers.processes import answers, forked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

INTERVALS_S: Final = (1e-6, 1e-4, 5e-3)
"""Switch intervals of threads; the last is the default of Python."""
TURNS: Final = 100
AT_ONCE: Final = 512
"""The number of IDs that a process mints in each of its turns; the others mint in the same milliseconds."""
BOUND_S: Final = 120
"""Seconds after which a process counts as stuck; never waited for otherwise."""
BACKUP_S: Final = 3.0
WAIT_MS: Final = 120_000
GROUP: Final = 54_300
ROOT: Final = Path(__file__).parents[2]


@dataclass
class Case:
    """A case of concurrent processes."""

    processes: int
    threads: int = 1
    setup: Callable[[], object] = lambda: None
    """Called once, before the first process starts."""
    prepare: Callable[[int], object] = lambda _: None
    """Called in each with its number, before any of them mints."""
    inherit: bool = False
    """True if they are forks of a process that has minted, and continues."""
    own: bool = False
    """True if each thread has a generator of its own."""
    beside: Callable[[Callable[[], None]], object] | None = None
    """The work of another process while they start; it calls its argument when it has begun."""
    slowly: bool = False
    """True if the disk takes 50 ms for each sync."""
    refusal: str | None = None
    """The code of the expected refusal."""


@dataclass
class Tally:
    """The counts of minted IDs and of errors."""

    processes: int = 0
    ids: int = 0
    equal: int = 0
    shared: int = 0
    """Node numbers with which two processes minted; one after the other, where nothing is equal."""
    refused: dict[str, int] = field(default_factory=dict)
    """The number of threads, by the code of the error."""
    failed: int = 0

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.processes += other.processes
        self.ids += other.ids
        self.equal += other.equal
        self.shared += other.shared
        self.refused = dict(Counter(self.refused) + Counter(other.refused))
        self.failed += other.failed

    def is_clean(self) -> bool:
        """Return True if nothing repeated, and no process hung."""
        return not (self.equal or self.failed)

    def __str__(self) -> str:
        refused = "".join(f", {count:,} refused with {code}" for code, count in self.refused.items())
        return (
            f"{self.processes:,} processes, {self.ids:,} IDs: {self.equal:,} equal, {self.shared:,} node numbers of "
            f"two processes{refused}{f', {self.failed} failed' if self.failed else ''}"
        )


# --- a crowd of processes -------------------------------------------------------------------------------------------


class Gate:
    """A barrier at which many processes wait until all have come and one opens it."""

    def __init__(self) -> None:
        self._opened, self._open = os.pipe()
        self._arrived, self._arrive = os.pipe()

    def leave(self) -> None:
        """Exit, in a process that only waits."""
        os.close(self._open)

    def wait(self) -> None:
        os.write(self._arrive, b".")
        os.read(self._opened, 1)

    def open_for(self, processes: int) -> None:
        deadline = time.monotonic() + BOUND_S
        while processes and select.select([self._arrived], [], [], max(0.0, deadline - time.monotonic()))[0]:
            processes -= len(os.read(self._arrived, processes))
        os.close(self._open)


def turns(batch: Callable[[int], Any], count: int) -> array[int]:
    """Return IDs of many milliseconds."""
    ids = array("Q")
    for _ in range(TURNS):
        ids.extend(batch(count).tolist())
        time.sleep(0.0005)
    return ids


def mint(case: Case, generator: snowflake.Generator, gates: tuple[Gate, Gate], number: int, interval_s: float) -> bytes:
    """Mint in a process: the first ID when all have started, the others when all have their first."""
    for gate in gates:
        gate.leave()
    case.prepare(number)
    sys.setswitchinterval(interval_s)
    together = threading.Barrier(case.threads + 1)
    ids, refused = array("Q"), []

    def thread() -> None:
        mine = snowflake.Generator(max_wait_ms=WAIT_MS) if case.own else generator
        together.wait(BOUND_S)
        try:
            ids.append(mine.new())
        except MintError as error:
            refused.append(error.code)
            together.wait(BOUND_S)
            together.wait(BOUND_S)
        except BaseException:
            together.abort()
            raise
        else:
            together.wait(BOUND_S)
            together.wait(BOUND_S)
            ids.extend(turns(mine.batch, AT_ONCE // case.threads))

    threads = [threading.Thread(target=thread) for _ in range(case.threads)]
    for each in threads:
        each.start()
    gates[0].wait()
    together.wait(BOUND_S)
    together.wait(BOUND_S)
    gates[1].wait()
    together.wait(BOUND_S)
    for each in threads:
        each.join()
    return json.dumps(refused).encode() + b"\n" + ids.tobytes()


def crowd(case: Case, interval_s: float) -> Tally:
    """Run a case once, in a process that has not minted."""
    warnings.simplefilter("ignore")
    case.setup()
    generator, aside = snowflake.Generator(max_wait_ms=WAIT_MS), []
    minted = [array("Q", [generator.new()])] if case.inherit else []
    if case.beside is not None:
        begun, begin = os.pipe()
        run = case.beside
        aside = [forked(lambda: (run(lambda: (os.write(begin, b"."), None)[1]), b"")[1])]
        os.read(begun, 1)
    gates = Gate(), Gate()
    children = [forked(partial(mint, case, generator, gates, number, interval_s)) for number in range(case.processes)]
    for gate in gates:
        gate.open_for(case.processes)
    for first in minted:
        first.extend(turns(generator.batch, AT_ONCE))
    tally = Tally(processes=case.processes)
    for answer in answers(children):
        refused, _, ids = answer.partition(b"\n")
        if not answer:
            tally.failed += 1
            continue
        tally.refused = dict(Counter(tally.refused) + Counter(json.loads(refused)))
        minted.append(array("Q", ids))
    list(answers(aside))
    every = np.frombuffer(b"".join(each.tobytes() for each in minted), dtype=np.uint64)
    tally.ids, tally.equal = len(every), len(every) - len(np.unique(every))
    holders = Counter(node for each in minted for node in {each_id >> 12 & 1023 for each_id in each})
    tally.shared = sum(count > 1 for count in holders.values())
    return tally


# --- the cases ------------------------------------------------------------------------------------------------------


# More than 60 lines: one entry a case.
def cases(folder: Path) -> dict[str, Case]:
    """Return all cases, of the size at which equal IDs were first seen, in folders of their own."""
    home, nowhere = folder / "home", folder / "file" / "home"

    def named(place: Path) -> None:
        os.environ["MINTAGE_HOME"] = str(place)

    def made() -> None:
        """Create the registry, with a number that was released."""

        def use() -> bytes:
            with snowflake.Generator() as generator:
                generator.new()
            return b""

        named(home)
        list(answers([forked(use)]))

    def without() -> None:
        (folder / "file").write_text("")
        named(nowhere)

    def alone() -> None:
        """Run without a named registry or one of the machine."""
        os.environ.pop("MINTAGE_HOME", None)
        os.environ["HOME"] = str(folder / "user")
        registry.MACHINE = str(folder / "none")  # type: ignore[misc]

    def open_to_a_group() -> None:
        alone()
        # Another user may not be able to read where Python is.
        for module in ("encodings.ascii", "logging", "mintage.lease.request", "mintage.store.sqlite.store"):
            import_module(module)
        migrations("sqlite")
        machine = folder / "machine"
        registry.MACHINE = str(machine)  # type: ignore[misc]
        machine.mkdir()
        os.chown(machine, 0, GROUP)
        machine.chmod(0o2770)
        for number in range(16):
            (folder / f"user{number}").mkdir()
            os.chown(folder / f"user{number}", GROUP + number, GROUP)

    def run(statement: str, seconds: float, begun: Callable[[], None]) -> None:
        connection = sqlite3.connect(home / "registry.db", isolation_level=None)
        connection.execute(statement)
        begun()
        time.sleep(seconds)
        connection.close()

    def user(number: int) -> None:
        os.environ["HOME"] = str(folder / f"user{number}")
        os.umask(0o077)
        os.setgroups([GROUP])
        os.setgid(GROUP)
        os.setuid(GROUP + number)

    def directory(number: int) -> None:
        (folder / str(number)).mkdir()
        os.chdir(folder / str(number))
        os.environ["XDG_STATE_HOME"] = "state"

    def services(number: int) -> None:
        """Run with a writable home, or a read-only one with a TMPDIR of its own, a private /tmp, or both."""
        if number % 4:
            unshare()
            mount(home, home, MS_BIND)
            mount(home, home, MS_BIND | MS_REMOUNT | MS_RDONLY)
        if number % 4 in {2, 3}:
            mount(folder, Path("/tmp"), 0, "tmpfs")
        if number % 4 in {1, 3}:
            os.environ["TMPDIR"] = tempfile.tempdir = f"{tempfile.gettempdir()}/{folder.name}-{number}"
            Path(os.environ["TMPDIR"]).mkdir()

    return {
        "crowd on a slow disk": Case(48, setup=partial(named, home), slowly=True),
        "crowd": Case(48, setup=partial(named, home)),
        "backup": Case(4, setup=made, inherit=True, own=True, beside=partial(run, "BEGIN IMMEDIATE", BACKUP_S)),
        "backup, two generators each": Case(
            2, threads=2, own=True, setup=made, beside=partial(run, "BEGIN IMMEDIATE", BACKUP_S)
        ),
        "newer schema": Case(
            4,
            setup=made,
            inherit=True,
            own=True,
            beside=partial(run, "PRAGMA user_version = 999", 0),
            refusal="store.schema",
        ),
        "homes": Case(4, setup=made, prepare=services),
        "threads with a lock": Case(20, threads=8, setup=without),
        "threads with a lock, forked": Case(20, threads=8, setup=without, inherit=True),
        "threads with generators of their own": Case(4, threads=8, setup=partial(named, home), own=True),
        "users": Case(4, setup=open_to_a_group, prepare=user),
        "relative state": Case(4, setup=alone, prepare=directory),
        "relative home": Case(4, setup=partial(named, Path("state")), prepare=directory, refusal="config.home"),
    }


MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16_384, 1 << 18
CLONE_NEWNS: Final = 0x20000


def unshare() -> None:
    """Give this process its own mount namespace."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount(Path("/"), Path("/"), MS_REC | MS_PRIVATE)


def mount(source: Path, target: Path, flags: int, kind: str = "none") -> None:
    """Call mount(2)."""
    arguments = os.fsencode(source), os.fsencode(target), kind.encode(), flags, None
    if ctypes.CDLL(None, use_errno=True).mount(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "mount", str(target))


# --- all of them ----------------------------------------------------------------------------------------------------


def slow_disk(folder: Path) -> dict[str, str]:
    """Return environment variables that slow down the disk of a process; none without a compiler."""
    if (compiler := shutil.which("cc")) is None:
        return {}
    library = folder / "slow.so"
    source = Path(__file__).with_name("slow.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def is_possible(name: str) -> bool:
    """Return True if this process may run a case."""
    return os.geteuid() == 0 or name not in {"homes", "users"}


def run(name: str, interval_s: float, processes: int | None = None) -> Tally:
    """Run a case once, in processes of its own."""
    with tempfile.TemporaryDirectory(prefix="mintage-stress-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        slowly = slow_disk(Path(folder)) if cases(Path(folder))[name].slowly else {}
        command = [
            sys.executable,
            "-m",
            "tests.stress.registry",
            "--inside",
            folder,
            "--interval",
            str(interval_s),
            name,
        ]
        if processes:
            command += ["--processes", str(processes)]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **slowly}, stdout=subprocess.PIPE, check=True)
    return Tally(**json.loads(done.stdout))


def measure(names: Iterable[str], intervals_s: Iterable[float], rounds: int, processes: int | None = None) -> bool:
    """Run cases a number of times, print their results, and return True if nothing repeated."""
    is_clean = True
    for name in names:
        if not is_possible(name):
            print(f"{name}: only root can", flush=True)
            continue
        for interval_s in intervals_s:
            total = Tally()
            for _ in range(rounds):
                total.add(run(name, interval_s, processes))
            print(f"{name}, switch interval {interval_s:g} s: {total}", flush=True)
            is_clean &= total.is_clean()
    return is_clean


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stress.registry", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="case", help="these only")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--interval", type=float, action="append", help="a switch interval in seconds, instead of all")
    parser.add_argument("--processes", type=int, help="of each case, instead of its own number")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        case = cases(options.inside)[options.names[0]]
        case.processes = options.processes or case.processes
        print(json.dumps(asdict(crowd(case, options.interval[0]))))
        return 0
    names = options.names or cases(Path())
    return not measure(names, options.interval or INTERVALS_S, options.rounds, options.processes)


if __name__ == "__main__":
    sys.exit(main())
