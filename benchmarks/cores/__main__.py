"""Measure what more cores, threads, connections and namespaces do to the library and the service.

`python -m benchmarks.cores` measures processes and threads that mint, workers of `mintage serve` beside redis-server,
and the service with many connections and namespaces. Servers run on one half of the processors, clients on the other.
It takes at most eight minutes (`--quick`: two), prints tables and writes a record.
"""

import argparse
import shutil
import sys
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import render
from benchmarks.cores import mint, report, serve
from benchmarks.cores.machine import processors, siblings
from benchmarks.cores.record import DIRECTORY, CoresRecord, Point
from benchmarks.environment import environment, slug

ENOUGH: Final = 4
"""With no more processors than this, servers and clients have too few for a figure that means something."""
PROGRAMS: Final = ("redis-server", "redis-benchmark", "wrk", "taskset")
PROCESSES, QUICK_PROCESSES = [1, 2, 4, 8, 16, 32, 64], [1, 4, 16]
THREADS: Final = [1, 2, 4, 8]
WORKERS: Final = [1, 2, 4, 8, 12]
CONNECTIONS: Final = [1, 10, 100, 1_000, 10_000]
NAMESPACES, QUICK_NAMESPACES = [1, 10, 100, 1_000, 10_000], [1, 1_000]
LIMIT_S, QUICK_LIMIT_S = 450, 110
"""Seconds after which a run begins no further point."""
SPARE_FILES: Final = 100
"""Open files of a client besides its connections."""


def sections(plan: serve.Plan, *, quick: bool, free: Path | None) -> dict[str, Iterator[Point]]:
    """Return the points of a run, by what is measured."""
    seconds, rounds = (0.5, 1) if quick else (1.0, 2)
    every = len(plan.servers) + len(plan.clients)
    limit = serve.file_limit() - SPARE_FILES
    return {
        "workers": serve.workers([each for each in WORKERS if each == 1 or each <= every - 2], plan),
        "redis": serve.redis(plan),
        "processes": mint.processes(QUICK_PROCESSES if quick else PROCESSES, seconds, rounds),
        "threads": mint.threads(THREADS[::2] if quick else THREADS, seconds, rounds, free),
        "connections": serve.open_connections(
            [each for each in (CONNECTIONS[::2] if quick else CONNECTIONS) if each <= limit], plan
        ),
        "namespaces": serve.namespaces(QUICK_NAMESPACES if quick else NAMESPACES, plan),
    }


def main() -> int:
    """Run, print the tables, and write a record."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cores", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer counts and shorter rounds, at most two minutes")
    parser.add_argument("--anyway", action="store_true", help=f"also on {ENOUGH} processors or fewer")
    parser.add_argument("--free", type=Path, metavar="PYTHON", help="an interpreter without the GIL that has mintage")
    parser.add_argument("--only", action="append", metavar="SECTION", help="workers, redis, processes, threads, ...")
    parser.add_argument("--commit", help="of the sources, if they are not in a repository of Git")
    parser.add_argument(
        "--directory", type=Path, metavar="DIRECTORY", help="where to write the record; the pages stay as they are"
    )
    options = parser.parse_args()
    every = processors()
    if len(every) <= ENOUGH and not options.anyway:
        print(
            f"{len(every)} processors are too few: use a machine with more than {ENOUGH}, or --anyway", file=sys.stderr
        )
        return 1
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        print(f"{', '.join(missing)} not found: run benchmarks/install.sh", file=sys.stderr)
        return 1
    half = (len(every) + 1) // 2
    plan = serve.Plan(every[:half], every[half:] or every, 1.0 if options.quick else 5.0, 1)
    facts = environment() | {"processors_of_a_core": len(siblings(every[0]).replace("-", ",").split(","))}
    facts["commit"] = options.commit or facts["commit"]
    date, began, is_whole = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic(), True
    found: list[Point] = []
    for name, section in sections(plan, quick=options.quick, free=options.free).items():
        if options.only and name not in options.only:
            continue
        try:
            for point in section:
                elapsed = time.monotonic() - began
                print(f"{elapsed:5.0f} s  {report.line(point)}", file=sys.stderr, flush=True)
                found.append(point)
                if elapsed > (QUICK_LIMIT_S if options.quick else LIMIT_S):
                    raise TimeoutError(f"the machine is too slow for the other figures: {elapsed:.0f} s have passed")
        except (RuntimeError, OSError, ValueError):  # the other sections have figures of their own
            traceback.print_exc()
            is_whole = False
    record = CoresRecord(date, facts, found)
    print(report.text(record))
    path = record.save(options.directory or DIRECTORY, slug())
    print(f"record: {path.name}" + ("" if options.directory else f"; rendered: {', '.join(render.write())}"))
    return int(not is_whole)


if __name__ == "__main__":
    sys.exit(main())
