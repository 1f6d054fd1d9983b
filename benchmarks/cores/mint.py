"""Measurement of minting: processes, and threads with and without the GIL."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.cores.record import Point
from benchmarks.environment import HERE

SERIES: Final = {"sno": "sno", "uuid": "uuid v7", "fill": "uuid v7, fill"}
"""The argument of a minter, and the name of its series."""
READY_S: Final = 60
"""Seconds that all minters together may need until they are ready."""


def minted(python: str, what: str, processes: int, threads: int, seconds: float) -> float:
    """Return the IDs a second of some processes that begin together.

    Each process leases a partition of sno from a registry that all share.
    """
    command = [python, "-m", "benchmarks.cores.minter", what, str(threads), str(seconds)]
    with TemporaryDirectory(prefix="mintage-") as home:
        environment = {**os.environ, "MINTAGE_HOME": home}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": HERE.parent}
        running = [subprocess.Popen(command, env=environment, **pipes) for _ in range(processes)]  # type: ignore[call-overload]
        try:
            for each in running:
                each.stdout.readline()
            for each in running:
                each.stdin.write("\n")
                each.stdin.flush()
            return sum(float(each.communicate(timeout=seconds + READY_S)[0]) for each in running)
        finally:
            for each in running:
                each.kill()
                each.wait()


def _point(group: str, name: str, count: int, rounds: int, python: str, what: str, seconds: float) -> Point:
    """Return the median of some rounds of as many processes or threads."""
    each = (count, 1) if group == "processes" else (1, count)
    return Point(group, name, count, median(minted(python, what, *each, seconds) for _ in range(rounds)))


def processes(counts: list[int], seconds: float, rounds: int) -> Iterator[Point]:
    """Yield the points of processes that mint."""
    for what, series in SERIES.items():
        for count in counts:
            yield _point("processes", series, count, rounds, sys.executable, what, seconds)


def has_gil(python: str) -> bool:
    """Return True if an interpreter has the GIL, with mintage imported."""
    asked = "import sys, mintage._core; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    done = subprocess.run([python, "-c", asked], cwd=HERE.parent, check=True, capture_output=True, text=True)
    return done.stdout.strip() == "True"


def threads(counts: list[int], seconds: float, rounds: int, free: Path | None) -> Iterator[Point]:
    """Yield the points of threads of one process, each with a generator of its own.

    :param free: an interpreter without the GIL that has mintage, if there is one.
    :raises SystemExit: it has the GIL.
    """
    pythons = {"with the GIL": sys.executable}
    if free is not None:
        if has_gil(str(free)):
            raise SystemExit(f"{free} has the GIL: give an interpreter without it to --free")
        pythons["without the GIL"] = str(free)
    for name, python in pythons.items():
        for what in ("sno", "uuid"):
            for count in counts:
                yield _point("threads", f"{SERIES[what]}, {name}", count, rounds, python, what, seconds)
