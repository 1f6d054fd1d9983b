"""Measure one row in this fresh process and print its rounds as JSON: `worker KEY ROUNDS`."""

import gc
import json
import os
import random
import sys
from dataclasses import asdict

from benchmarks.rows import ROWS
from benchmarks.timing import UnavailableError


def main(key: str, rounds: int) -> None:
    """Measure the row with that key; print the reason if it cannot be measured here."""
    row = next(row for row in ROWS if row.key == key)
    if row.pinned and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    gc.disable()
    # The addresses of objects change a figure by some per cent, for either side, and differ in each process.
    _elsewhere = [bytes(random.randrange(512)) for _ in range(random.randrange(10_000))]
    try:
        print(json.dumps(asdict(row.measure(rounds))))
    except (ImportError, UnavailableError) as error:
        print(json.dumps({"skipped": str(error)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
