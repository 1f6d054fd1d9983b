"""Run all stress programs at ten times their first size: ``python -m tests.stress --scale 10``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.stress import former_defects, locks, prefork, registry

WORKERS = 1500
"""Workers of a prefork server, of which one repeated its parent."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--scale", type=int, default=1)
    scale = parser.parse_args().scale
    is_clean = former_defects.measure(former_defects.DEFECTS, scale)
    is_clean &= former_defects.measure(locks.LOCKS, scale)
    is_clean &= registry.measure(registry.cases(Path()), registry.INTERVALS_S, scale)
    for interval_s in prefork.INTERVALS_S:
        tally = prefork.run(WORKERS * scale, interval_s)
        print(f"prefork, switch interval {interval_s:g} s: {tally}", *tally.failed[:10], sep="\n  ", flush=True)
        is_clean &= tally.is_clean()
    return not is_clean


if __name__ == "__main__":
    sys.exit(main())
