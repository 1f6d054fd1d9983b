"""Make each runtime mint and print a table: ``python -m tests.runtimes [NAME ...] --ids 100000``.

A name is any part of the name of a runtime.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.runtimes.harness import Tally, run
from tests.runtimes.runtimes import RUNTIMES
from tests.servers import Redis, missing

ROW: Final = "{:34} {:>9} {:>6} {:>10} {:>6} {:>7} {:>12} {:>8}"


def row(name: str, tally: Tally) -> str:
    """Return a line of the table."""
    counts = (tally.equal, tally.processes, len(tally.hangs), len(tally.failed), len(tally.leases))
    return ROW.format(name, f"{tally.ids:,}", *map(str, counts), f"{tally.seconds:.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.runtimes", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ids", type=int, default=100_000)
    options = parser.parse_args()
    chosen = [
        runtime
        for name, runtime in RUNTIMES.items()
        if not options.names or any(each in name for each in options.names)
    ]
    if not chosen:
        parser.error(f"no runtime has such a name: there are {', '.join(RUNTIMES)}")
    is_clean = True
    print(ROW.format("runtime", "IDs", "equal", "processes", "hangs", "failed", "leases left", "seconds"), flush=True)
    with tempfile.TemporaryDirectory(prefix="mintage-") as folder:
        redis = Redis(Path(folder) / "redis")
        if not missing("redis"):
            redis.start()
        try:
            for number, runtime in enumerate(chosen):
                if reason := runtime.lacking() or (missing("redis") if runtime.uses_redis() else None):
                    print(f"{runtime.name}: not run: {reason}", flush=True)
                    continue
                if redis.pid:
                    redis.renew()
                directory = Path(folder) / str(number)
                directory.mkdir()
                tally = run(runtime, options.ids, directory, redis)
                print(row(runtime.name, tally), flush=True)
                for what in [tally.refused, *tally.hangs[:1], *tally.failed[:3], *tally.leases[:3]]:
                    if what:
                        print(f"    {what}", flush=True)
                is_clean &= tally.is_clean()
        finally:
            redis.kill()
    return not is_clean


if __name__ == "__main__":
    sys.exit(main())
