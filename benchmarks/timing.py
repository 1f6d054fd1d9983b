"""Measurement of a row: two sides, alternating, each in a loop with a code object of its own."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice, repeat
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any

SNO_UNIT_NS = 4_000_000
"""One unit of sno's time, within which a generator has 65,536 IDs; its bounds fall on whole Unix units."""

BUILT = Path(__file__).parent.parent / "target" / "peers"

BUILD_S = 150
"""Seconds that the building of a Go program may take, the download of its modules included."""

CALLS = 50_000
"""Calls of one timed loop: fewer than the 65,536 IDs of a unit of sno, so that no side ever waits for the clock."""

Loop = Callable[[int], object]
"""Does something the given number of times."""


class UnavailableError(Exception):
    """A row cannot be measured on this machine; the text says why."""


@dataclass(frozen=True)
class Side:
    """One side of a row: `prepare` imports what it needs and returns the loop, which makes `repeats` calls."""

    prepare: Callable[[], Loop]
    repeats: int = CALLS
    ids: int = 1
    """IDs of one repeat."""

    def ns_per_id(self, loop: Loop) -> float:
        """Return nanoseconds an ID of one timed loop that starts early in a unit of sno."""
        await_unit()
        start = time.perf_counter_ns()
        loop(self.repeats)
        return (time.perf_counter_ns() - start) / (self.repeats * self.ids)


@dataclass
class Rounds:
    """The result of a measurement: one figure a round for each side, in the unit of the row, and its counts."""

    figures: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    missing: str | None = None
    """The reason if there is no other side."""

    def add(self, figure: float, beside: float) -> None:
        """Add one round."""
        self.figures.append(figure)
        self.beside.append(beside)

    def count(self, what: str, number: int) -> None:
        """Add to one of the counts."""
        self.counts[what] = self.counts.get(what, 0) + number


Measure = Callable[[int], Rounds]
"""Measures the given number of rounds in this process."""


def await_unit() -> None:
    """Spin, to keep the processor awake, until a unit of sno is 0.1 ms old and every cached clock shows it."""
    now = time.time_ns()
    fresh = now - now % SNO_UNIT_NS + SNO_UNIT_NS + 100_000
    while time.time_ns() < fresh:
        pass


# Loops. Every side of a row gets its own copy of the code object, which is specialised for that side alone.


def _call0(f: Callable[[], object], n: int) -> None:
    for _ in repeat(None, n):
        f()


def _call1(f: Callable[[Any], object], a: object, n: int) -> None:
    for _ in repeat(None, n):
        f(a)


def _call2(f: Callable[[Any, Any], object], a: object, b: object, n: int) -> None:
    for _ in repeat(None, n):
        f(a, b)


def _iterate(ids: Iterable[object], n: int) -> None:
    for _ in islice(ids, n):
        pass


def _own_copy(function: Any) -> Callable[..., object]:
    return FunctionType(function.__code__.replace(), function.__globals__)


def _keep(ids: Iterable[object], n: int, kept: list[object]) -> None:
    keep = kept.append  # `kept.extend(islice(...))` would not let other threads run in between
    for id_ in islice(ids, n):
        keep(id_)


def calls(f: Callable[..., object], *arguments: object) -> Loop:
    """Return a loop over `f(*arguments)`, with at most two arguments."""
    return partial(_own_copy((_call0, _call1, _call2)[len(arguments)]), f, *arguments)


def iterates(ids: Iterable[object]) -> Loop:
    """Return a loop over `for id in ids`, which `islice` ends: its cost is part of the figure."""
    return partial(_own_copy(_iterate), ids)


# Measurements.


def side_by_side(ours: Side, beside: Side) -> Measure:
    """Return nanoseconds an ID of both sides in alternation; only ours if the other is not installed."""

    def measure(rounds: int) -> Rounds:
        result = Rounds()
        our_loop = ours.prepare()
        try:
            their_loop = beside.prepare()
        except ImportError as error:
            result.missing = str(error)
            their_loop = None
        for round_ in range(-1, rounds):  # round -1 warms up
            figure = ours.ns_per_id(our_loop)
            other = beside.ns_per_id(their_loop) if their_loop else None
            if round_ >= 0:
                result.figures.append(figure)
                if other is not None:
                    result.beside.append(other)
        return result

    return measure


def _time_each(f: Callable[[], object], n: int, into: list[int]) -> None:
    clock = time.perf_counter_ns
    for at in range(n):
        start = clock()
        f()
        into[at] = clock() - start


def tail(
    open_ours: Callable[[], AbstractContextManager[Callable[[], object]]], beside: str, per_mille: float
) -> Measure:
    """Return the given per mille of single calls in nanoseconds, beside those of a peer.

    Each call is timed by itself, and the cost of the clock is part of the figure. A round is a million calls.
    """

    def measure(rounds: int) -> Rounds:
        result = Rounds()
        peer = resolve_name(beside)
        taken = [0] * 1_000_000
        timed = [_own_copy(_time_each), _own_copy(_time_each)]

        def nth(loop: Callable[..., object], f: Callable[[], object]) -> float:
            loop(f, len(taken), taken)
            return float(sorted(taken)[round(len(taken) * per_mille / 1000)])

        with open_ours() as ours:
            nth(timed[0], ours)
            for _ in range(rounds):
                result.add(nth(timed[0], ours), nth(timed[1], peer))
        return result

    return measure


def saturation(ids: Callable[[], Iterator[object]], ceiling: Callable[[], int], seconds: int = 2) -> Measure:
    """Return millions of IDs a second of one `for` loop that drains a generator, beside the ceiling of the layout.

    There is one round, however many are requested: it lasts `seconds`. It starts at the beginning of a unit and ends
    with the first ID of another, so that the IDs between fill whole units.
    """

    def measure(_rounds: int) -> Rounds:
        result = Rounds()
        loop, per_second = iterates(ids()), ceiling()
        loop(1000)
        await_unit()
        start = time.perf_counter_ns()
        loop(seconds * per_second + 1)
        elapsed_s = (time.perf_counter_ns() - start) / 1e9
        result.add(seconds * per_second / elapsed_s / 1e6, per_second / 1e6)
        return result

    return measure


def threads(ids: Callable[[], Iterator[object]], *, count: int = 2, total: int = 2**20 + 2) -> Measure:
    """Return nanoseconds an ID (wall time over all IDs) of `count` threads on one generator, beside one thread.

    On sno, `total` is the IDs of 16 units and the first of another, so that the ceiling is not overestimated. After
    every round, untimed because fresh memory costs more than an ID, the threads mint as many again and keep them:
    those are counted, and the duplicates among them.
    """

    def measure(rounds: int) -> Rounds:
        result = Rounds()
        generator, share = ids(), total // count
        _iterate(generator, 1000)
        for _ in range(rounds):
            alone = _together([partial(_iterate, generator, total)])
            together = _together([partial(_iterate, generator, share)] * count)
            result.add(together / (share * count), alone / total)
            kept: list[list[object]] = [[] for _ in range(count)]
            _together([partial(_keep, generator, share, mine) for mine in kept])
            result.count("duplicates", share * count - len(set().union(*kept)))
            result.count("IDs", share * count)
        return result

    return measure


def _together(jobs: list[Callable[[], object]]) -> int:
    """Run every job in a thread of its own; return the nanoseconds from the start of all to the end of all."""
    ready = threading.Barrier(len(jobs) + 1)

    def run(job: Callable[[], object]) -> None:
        ready.wait()
        job()

    workers = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for worker in workers:
        worker.start()
    await_unit()
    start = time.perf_counter_ns()
    ready.wait()
    for worker in workers:
        worker.join()
    return time.perf_counter_ns() - start


@cache
def go_program(source: Path) -> str:
    """Build the Go program in `source` in the build directory, and return its path."""
    go = shutil.which("go")
    if go is None:
        raise UnavailableError("Go is not installed")
    program = BUILT / source.name
    build = [go, "build", "-o", str(program), "."]
    try:
        built = subprocess.run(build, cwd=source, check=False, capture_output=True, text=True, timeout=BUILD_S)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"go build took more than {BUILD_S} s") from error
    if built.returncode != 0:
        raise UnavailableError(f"go build: {built.stderr.strip().splitlines()[-1]}")
    return str(program)


def go_threads(source: Path) -> Measure:
    """Return the same figures of the Go program in `source`: two goroutines beside one."""

    def measure(rounds: int) -> Rounds:
        run = [go_program(source), "-rounds", str(rounds)]
        printed = subprocess.run(run, check=True, capture_output=True, text=True).stdout
        result = Rounds()
        lines = [json.loads(line) for line in printed.splitlines()]
        for alone, together in zip(lines[::2], lines[1::2], strict=True):
            result.add(together["ns_per_id"], alone["ns_per_id"])
            result.count("duplicates", together["duplicates"])
            result.count("IDs", together["ids"])
        return result

    return measure


_THIRD_PARTY = """
import sys
before = set(sys.modules)
import {module}
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(new - sys.stdlib_module_names - {{"{module}".partition(".")[0]}}))
"""


def importing(module: str, call: str = "pass", *, after: str = "") -> Measure:
    """Return the milliseconds that `import module`, and a first call, add to an interpreter's start, beside that start.

    :param after: the names of modules that the interpreter imports first, and that count as its start.

    The processes lease from a registry of their own, and do not find the hooks of AWS Lambda, which are here for tests.
    """

    def measure(rounds: int) -> Rounds:
        __import__(module)  # an ImportError is reported here; its files are in the page cache from now on
        result = Rounds()
        with TemporaryDirectory(prefix="mintage-") as home:
            environment = {**os.environ, "MINTAGE_HOME": home}

            def start_ms(program: str) -> float:
                start = time.perf_counter_ns()
                subprocess.run([sys.executable, "-c", program], check=True, env=environment)
                return (time.perf_counter_ns() - start) / 1e6

            before = f"import {after}" if after else "pass"
            program = f"{before}; import sys; sys.modules['snapshot_restore_py'] = None; import {module}; {call}"
            start_ms(program)
            for _ in range(rounds):
                bare = start_ms(before)
                result.add(start_ms(program) - bare, bare)
        find = [sys.executable, "-c", _THIRD_PARTY.format(module=module)]
        found = subprocess.run(find, check=True, capture_output=True, text=True).stdout
        result.count("third-party modules", len(found.split()))
        return result

    return measure
