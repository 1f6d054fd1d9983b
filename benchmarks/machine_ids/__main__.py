"""Compare generators in Python, Go and Java whose machine id is given or leased: their rates, and IDs they repeat.

`--rates` measures the IDs a second of one generator, one at a time through the API of its library. `--faults` counts
equal IDs of processes with machine id 1, or with one that is leased:

- twins: two processes mint in the same interval.
- restart: a process mints and ends, and another begins at once.
- restart, behind: the same, and the clock of the second shows the moment at which the first began. Libfaketime (package
  `faketime`) sets it for mintage; in Go and Java a later epoch has the same effect.
- clock back: the clock of a process goes back by 3 s between two intervals. Libfaketime cannot do it to Go, which does
  not ask the C library for the time.

Each takes less than 90 seconds and writes a record, from which `python -m benchmarks.render` makes tables. The exit
code is 1 if mintage repeats an ID although its number is leased, or if something could not be tried.
"""

import argparse
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import render
from benchmarks.environment import environment, slug
from benchmarks.machine_ids import trials
from benchmarks.machine_ids.libraries import LIBRARIES, RefusedError, versions
from benchmarks.machine_ids.record import DIRECTORY, Fault, MachineRecord, Rows
from benchmarks.timing import UnavailableError

LIMIT_S: Final = 70
"""Seconds after which no further trial begins."""


def java() -> str:
    """Return the version of Java."""
    said = subprocess.run(["java", "-version"], check=True, capture_output=True, text=True).stderr
    return said.partition("\n")[0].replace('"', "")


def faults() -> list[Fault]:
    """Try everything that is possible on this machine.

    :raises TimeoutError: it takes too long.
    """
    found, began = [], time.monotonic()
    for library in LIBRARIES:
        for trial in filter(lambda trial: trials.is_possible(trial, library), trials.TRIALS):
            if (elapsed := time.monotonic() - began) > LIMIT_S:
                raise TimeoutError(f"the machine is too slow: {elapsed:.0f} s have passed")
            found.append(trials.tried(trial, library))
            print(f"{library.label}; {trial}: {found[-1].cell()} {found[-1].refused}", file=sys.stderr, flush=True)
    return found


def printed(rows: Rows) -> None:
    """Print a table."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


def main() -> int:
    """Run, print the table, and write a record and its pages."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.machine_ids",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--rates", action="store_true", help="IDs a second")
    kind.add_argument("--faults", action="store_true", help="equal IDs under faults")
    parser.add_argument(
        "--directory", type=Path, metavar="DIRECTORY", help="where to write the record; the pages stay as they are"
    )
    options = parser.parse_args()
    try:
        for library in LIBRARIES:
            library.command()  # builds it
        facts = environment() | {"java": java(), "libraries": versions()}
        date = datetime.now(UTC).isoformat(timespec="seconds")
        if options.rates:
            record = MachineRecord(date, facts, rates=trials.rates(LIBRARIES))
            printed(record.table_of_rates())
        else:
            record = MachineRecord(date, facts, faults=faults())
            printed(record.table_of_faults())
    except (UnavailableError, TimeoutError, RefusedError) as error:
        print(error, file=sys.stderr)
        return 1
    path = record.save(options.directory or DIRECTORY, slug())
    print(f"record: {path.name}" + ("" if options.directory else f"; rendered: {', '.join(render.write())}"))
    leased = [each for each in record.faults if each.library == LIBRARIES[0].label]
    return int(any(each.repeated or each.refused for each in leased))


if __name__ == "__main__":
    sys.exit(main())
