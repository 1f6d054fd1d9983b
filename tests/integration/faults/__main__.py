"""Run the fault scenarios: ``python -m tests.integration.faults``; ``--record`` stores their results."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.integration.faults.record import keep
from tests.integration.faults.scenarios import SCENARIOS, Row
from tests.servers import missing
from tests.servers.fixtures import Servers


def run(names: list[str]) -> list[Row]:
    """Run all scenarios, or those whose names contain one of these texts."""
    rows = []
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mintage-")))
        directory.chmod(0o755)
        servers = Servers(directory, stack)
        for scenario in SCENARIOS:
            for kind in scenario.stores:
                if names and not any(name in scenario.name for name in names):
                    continue
                if kind and (reason := missing(kind.name)):
                    sys.exit(reason)
                here = directory / f"{scenario.name}-{kind.name if kind else 'sqlite'}"
                here.mkdir()
                done = scenario.run(servers.get(kind) if kind else None, here)
                print(json.dumps(done.as_json()), flush=True)
                rows.append(done)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.integration.faults", description=__doc__)
    parser.add_argument("scenario", nargs="*", help="only those whose names contain one of these")
    parser.add_argument("--record", action="store_true", help="keep the outcome, and render the documentation's table")
    given = parser.parse_args()
    rows = run(given.scenario)
    if given.record:
        keep(rows)
    return 1 if any(row.duplicates for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
