"""Measure mintage beside its peers, write a record, and render the tables and charts of the documentation from it."""

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE

from benchmarks import render
from benchmarks.environment import environment, slug, stolen_s
from benchmarks.record import HEADINGS, Record, Result
from benchmarks.row import Row
from benchmarks.rows import selected
from benchmarks.timing import Rounds

ROUNDS = 5
"""Rounds of a process. A pass over all rows has one process of each: a noisy minute does not fall on one row alone."""

TIMEOUT_S = 180
"""Timeout of a process in seconds, including the build of a peer."""


def measure(row: Row, result: Result, rounds: int) -> None:
    """Add the rounds of one fresh process to the result."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MINTAGE_")}
    command = [sys.executable, "-m", "benchmarks.worker", row.key, str(rounds)]
    root = Path(__file__).parent.parent
    try:
        done = subprocess.run(command, cwd=root, env=environment, check=True, stdout=PIPE, text=True, timeout=TIMEOUT_S)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        result.skipped = f"{type(error).__name__} in its process"
        return
    measured = json.loads(done.stdout)
    if "skipped" in measured:
        result.skipped = measured["skipped"]
    else:
        result.passes.append(Rounds(**measured))


def table(results: list[Result]) -> str:
    """Return the table in aligned columns."""
    lines = [HEADINGS, *(result.cells() for result in results)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def main() -> int:
    """Run the benchmarks; return 1 if `--check` finds a bar missed or not measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one process a row, and no record: a smoke run")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only rows that match, and no record")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bar is missed or was not measured")
    options = parser.parse_args()

    rows = selected(options.rows)
    results = [Result.of(row) for row in rows]
    date = datetime.now(UTC).isoformat(timespec="seconds")
    machine = environment()
    stolen = stolen_s()
    passes = 1 if options.quick else max((row.processes for row in rows), default=0)
    for number in range(1, passes + 1):
        for row, result in zip(rows, results, strict=True):
            if result.skipped is None and number <= row.processes:
                print(f"pass {number} of {passes}: {row.key}", file=sys.stderr)
                measure(row, result, ROUNDS)

    if stolen is not None:
        # Time stolen by a hypervisor is missing in the rows that count complete milliseconds.
        machine["stolen_s"] = round((stolen_s() or stolen) - stolen, 2)
        print(f"stolen by the hypervisor meanwhile: {machine['stolen_s']} s", file=sys.stderr)
    print(table(results))
    if not options.quick and not options.rows:
        path = Record(date, machine, results).save(slug())
        print(f"\nrecord: {path.name}; rendered: {', '.join(render.write())}")
    if options.check:
        return int(any(result.bar and not result.met for result in results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
