"""Rows of mintage without the GIL. They need the environments of ``make pythons ARGS="3.14 3.14t"``.

Only interpreters of one source and the same compiler flags compare the GIL alone: ``tests/pythons/build.sh`` builds
both.
"""

import subprocess
from pathlib import Path

from benchmarks.row import Row, at_most
from benchmarks.timing import Measure, Rounds, UnavailableError

ENVIRONMENTS = Path(__file__).parents[1] / ".cache" / "pythons"
WITH_GIL, WITHOUT_GIL = "3.14", "3.14t"
CALLS_A_BURST, BURSTS = 5_000, 100
WIDE = "time:41 node:2 sequence:20"
"""A layout that no loop exhausts: 1,048,576 IDs a millisecond."""

PROGRAM = """
import sys, threading, time
from itertools import repeat
from mintage import sno, snowflake, ulid, uuid
if sys._is_gil_enabled() is not (sys.argv[1] == "on"):
    sys.exit("the GIL is not " + sys.argv[1])
calls, bursts, generator = int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
def run(number, spent, barrier):
    new = eval(generator).new
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
threads = [threading.Thread(target=run, args=(number, spent, barrier)) for number in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(min(spent) / calls / count)
"""
"""Prints the nanoseconds of an ID in the quickest burst: each thread has a generator of its own."""


GENERATORS = {
    "ulid": "ulid.Generator()",
    "uuid": "uuid.Generator()",
    "sno": "sno.Generator(number)",
    "snowflake": f"snowflake.Generator(number, layout=snowflake.Layout({WIDE!r}, epoch_ms=0))",
}
"""The generator of the thread of a number, by scheme."""


def ns_per_id(scheme: str, version: str, threads: int) -> float:
    """Return the nanoseconds an ID in a fresh process of a version.

    :raises UnavailableError: it has no environment here, or its GIL is in the wrong state.
    """
    python = ENVIRONMENTS / version / "venv" / "bin" / "python"
    if not python.exists():
        raise UnavailableError(f'{version} is not built: make pythons ARGS="{version}"')
    gil = "on" if version == WITH_GIL else "off"
    words = [python, "-I", "-W", "ignore", "-c", PROGRAM, gil, threads, CALLS_A_BURST, BURSTS, GENERATORS[scheme]]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(done.stderr.strip().splitlines()[-1])
    return float(done.stdout)


def compared(scheme: str, ours: tuple[str, int], beside: tuple[str, int]) -> Measure:
    """Return nanoseconds an ID of a version and a number of threads, beside another."""

    def measure(rounds: int) -> Rounds:
        result = Rounds()
        for _ in range(rounds):
            result.add(ns_per_id(scheme, *ours), ns_per_id(scheme, *beside))
        return result

    return measure


NOTE = "The quickest of 100 bursts of 5,000 calls."
WIDE_NOTE = f"{NOTE} Layout `{WIDE}`, which no loop exhausts."


def rows(scheme: str) -> tuple[Row, ...]:
    """Return the rows of a scheme: without the GIL beside with it, and two threads beside one."""
    what, note = f"{scheme}.Generator.new() without the GIL", WIDE_NOTE if scheme == "snowflake" else NOTE
    return (
        Row(
            what,
            "the same with the GIL",
            compared(scheme, (WITHOUT_GIL, 1), (WITH_GIL, 1)),
            at_most(1.3),
            note=note,
            processes=1,
        ),
        Row(
            f"{what}, two threads with a generator each",
            "one thread",
            compared(scheme, (WITHOUT_GIL, 2), (WITHOUT_GIL, 1)),
            at_most(1 / 1.7),
            note=note,
            pinned=False,
            processes=1,
        ),
    )


FREE_THREADED: tuple[Row, ...] = tuple(row for scheme in GENERATORS for row in rows(scheme))
