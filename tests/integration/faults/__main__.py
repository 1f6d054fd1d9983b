"""``python -m tests.integration.faults``: runs the scenarios; with ``--record`` renders the documentation's table."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.integration.faults.crew import ROOT
from tests.integration.faults.scenarios import SCENARIOS, Row
from tests.servers import missing
from tests.servers.fixtures import Servers

RECORD = Path(__file__).with_name("record.json")
TABLE = ROOT / "docs" / "explanation" / "fault-table.md"


def run(names: list[str]) -> list[Row]:
    """All scenarios, or those whose names contain one of these."""
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


def render(rows: list[Row]) -> str:
    """The table in Markdown."""
    lines = [
        "| fault | store | longest wait | errors that callers saw | IDs minted | duplicates |",
        "|---|---|--:|---|--:|--:|",
    ]
    for row in rows:
        errors = ", ".join(f"`{code}`" for code in row.refused) or "none"
        seen = f"{errors}; {row.seen}" if row.seen else errors
        wait = f"{row.waited_ms:,} ms" if row.waited_ms else ""
        lines.append(f"| {row.fault} | {row.store} | {wait} | {seen} | {row.ids:,} | {row.duplicates} |")
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.integration.faults", description=__doc__)
    parser.add_argument("scenario", nargs="*", help="only those whose names contain one of these")
    parser.add_argument("--record", action="store_true", help="keep the outcome and render the table")
    parser.add_argument("--render", action="store_true", help="render the table of the kept outcome; run nothing")
    given = parser.parse_args()
    if given.render:
        rows = [Row(**row) for row in json.loads(RECORD.read_text(encoding="utf-8"))]
    else:
        rows = run(given.scenario)
    if given.record:
        RECORD.write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n", encoding="utf-8")
    if given.record or given.render:
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text(render(rows), encoding="utf-8")
    return 1 if any(row.duplicates for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
