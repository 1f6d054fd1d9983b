"""The recorded results of the faults, and the table of the documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.faults.crew import ROOT
from tests.integration.faults.scenarios import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORD = Path(__file__).with_name("record.json")
TABLE = ROOT / "docs" / "explanation" / "fault-table.md"


def recorded() -> list[Row]:
    """Return the recorded results."""
    return [Row(**row) for row in json.loads(RECORD.read_text(encoding="utf-8"))]


def keep(rows: Sequence[Row]) -> None:
    """Replace the recorded results of the same faults and stores, and render the table."""
    kept = {(row.fault, row.store): row for row in [*recorded(), *rows]}
    RECORD.write_text(json.dumps([row.as_json() for row in kept.values()], indent=1) + "\n", encoding="utf-8")
    TABLE.write_text(render(list(kept.values())), encoding="utf-8")


def render(rows: Sequence[Row]) -> str:
    """Return the table in Markdown."""
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
