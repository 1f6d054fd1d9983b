"""Run the simulator: ``python -m tests.simulator --seed 1 --ids 1_000_000 --faults 10_000`` prints its counts."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from mintage.rules import CLOCK_MARGIN_MS
from tests.simulator.world import run_world, simulate

if TYPE_CHECKING:
    from collections import Counter

    from tests.simulator.outcomes import Outcome


def show(outcome: Outcome, seconds: float) -> None:
    """Print the counts, one line a kind."""

    def line(name: str, counts: Counter[str]) -> str:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in counts.most_common())
        return f"{name} {sum(counts.values()):,}: {kinds}"

    print(f"IDs {outcome.ids:,} minted in {seconds:.0f} s; processes {outcome.processes:,}")
    print(line("faults", outcome.faults))
    print(line("verbs", outcome.verbs))
    print(line("refusals", outcome.refusals))
    print(f"shared by copies before they were told {outcome.shared:,}")
    print(f"below a floor that had been raised {outcome.below_floor:,}")
    wrong = len(outcome.misnamed)
    print(f"holders named {outcome.named:,}, of before a failover {outcome.outdated:,}, wrongly or not at all {wrong}")
    for each in outcome.misnamed[:10]:
        print(each)
    print(f"duplicates {len(outcome.duplicates)}")
    for duplicate in outcome.duplicates:
        print(duplicate)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ids", type=int, default=1_000_000, help="mint at least so many")
    parser.add_argument("--faults", type=int, default=10_000, help="under at least so many")
    parser.add_argument("--jobs", type=int, default=1, help="worlds at a time")
    parser.add_argument("--world", type=int, help="run this one only")
    parser.add_argument("--batch", type=int, default=100, help="IDs a call, on average")
    parser.add_argument("--promise", choices=("all", "each"), default="all", help="what a failover may forget")
    parser.add_argument(
        "--regions", default="", help="only pools and namespaces whose name begins so, a regular expression"
    )
    parser.add_argument(
        "--apart-ms", type=int, default=CLOCK_MARGIN_MS, help="the most by which the clocks of two servers differ"
    )
    parser.add_argument("--divided", action="store_true", help="two stores a world, each with half of all numbers")
    given = parser.parse_args()
    options = {name: getattr(given, name) for name in ("batch", "promise", "regions", "apart_ms", "divided")}
    started = time.monotonic()
    if given.world is not None:
        outcome = run_world(given.seed, given.world, **options)
    else:
        *_, outcome = simulate(given.seed, ids=given.ids, faults=given.faults, jobs=given.jobs, **options)
    show(outcome, time.monotonic() - started)
    return 1 if outcome.duplicates or outcome.below_floor or outcome.misnamed else 0


if __name__ == "__main__":
    sys.exit(main())
