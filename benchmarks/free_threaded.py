"""Rows of mintage without the GIL. They need the environments of ``make pythons ARGS="3.14 3.14t"``."""

import subprocess
from pathlib import Path

from benchmarks.row import Row, at_most
from benchmarks.timing import Measure, Rounds, UnavailableError

ENVIRONMENTS = Path(__file__).parents[1] / ".cache" / "pythons"
WITH_GIL, WITHOUT_GIL = "3.14", "3.14t"
CALLS_A_BURST, BURSTS = 5_000, 100

PROGRAM = """
import sys, threading, time
from itertools import repeat
from mintage import ulid
if sys._is_gil_enabled() is not (sys.argv[1] == "on"):
    sys.exit("the GIL is not " + sys.argv[1])
calls, bursts = int(sys.argv[3]), int(sys.argv[4])
def run(spent, barrier):
    new = ulid.Generator().new
    for _ in range(10):
        for _ in repeat(None, calls):
            new()
    for at in range(bursts):
        barrier.wait()
        begun = time.perf_counter_ns()
        for _ in repeat(None, calls):
            new()
        spent[at] = max(spent[at], time.perf_counter_ns() - begun)
count = int(sys.argv[2])
spent, barrier = [0] * bursts, threading.Barrier(count)
threads = [threading.Thread(target=run, args=(spent, barrier)) for _ in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(min(spent) / calls / count)
"""
"""Prints the nanoseconds of an ID in the quickest burst: each thread has a generator of its own."""


def ns_per_id(version: str, threads: int) -> float:
    """Return the nanoseconds an ID in a fresh process of a version.

    :raises UnavailableError: it has no environment here, or its GIL is in the wrong state.
    """
    python = ENVIRONMENTS / version / "venv" / "bin" / "python"
    if not python.exists():
        raise UnavailableError(f'{version} is not built: make pythons ARGS="{version}"')
    gil, options = ("on", []) if version == WITH_GIL else ("off", ["-X", "gil=0"])
    words = [python, "-I", *options, "-c", PROGRAM, gil, threads, CALLS_A_BURST, BURSTS]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(done.stderr.strip().splitlines()[-1])
    return float(done.stdout)


def compared(ours: tuple[str, int], beside: tuple[str, int]) -> Measure:
    """Return nanoseconds an ID of a version and a number of threads, beside another."""

    def measure(rounds: int) -> Rounds:
        result = Rounds()
        for _ in range(rounds):
            result.add(ns_per_id(*ours), ns_per_id(*beside))
        return result

    return measure


NOTE = "The quickest of 100 bursts of 5,000 calls."
FREE_THREADED: tuple[Row, ...] = (
    Row(
        "ulid.Generator.new() without the GIL",
        "the same with the GIL",
        compared((WITHOUT_GIL, 1), (WITH_GIL, 1)),
        at_most(1.3),
        note=NOTE,
        processes=1,
    ),
    Row(
        "ulid.Generator.new() without the GIL, two threads with a generator each",
        "one thread",
        compared((WITHOUT_GIL, 2), (WITHOUT_GIL, 1)),
        at_most(1 / 1.7),
        note=NOTE,
        pinned=False,
        processes=1,
    ),
)
