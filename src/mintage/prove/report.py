"""The report of a run: a verdict in one sentence, an object for JSON, and a page in Markdown."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from mintage import __version__

CAUSES: Final = {
    "verbs": "the store gives windows or integers to two clients, as one that loses writes, reads old data, repeats "
    "answers or has two primaries",
    "holders": "the store lets two go on with one lease, as one whose transactions do not lock what they read",
    "crowd": "the store gives the same to processes that ask at the same time",
    "kill": "the store forgets the end of a window that a killed process had",
    "stop": "the store lets a process go on whose number another has",
    "fork": "the store takes a forked process for its parent",
    "clock": "windows do not hold back a generator whose clock is wrong",
    "cut": "the store forgets, or answers again, what it had answered on a broken connection",
}
"""The meaning of duplicates, by fault."""


@dataclass
class Row:
    """The result of a fault."""

    name: str
    fault: str
    attempts: int = 0
    ids: int = 0
    duplicates: int = 0
    waited_ms: int = 0
    """The longest duration of a call."""
    refused: dict[str, int] = field(default_factory=dict)
    """Refused calls, by code."""
    not_run: str = ""
    """The reason why the fault was not caused."""
    failed: str = ""
    """The reason why it did not come to its end."""
    is_done: bool = False


@dataclass(frozen=True)
class Settings:
    """The settings of a run."""

    url: str = field(repr=False)
    seconds: int = 60
    processes: int = 8
    rate: int = 200
    """The most verbs a second that all processes together use of the store."""
    names: tuple[str, ...] = ()
    """The faults to cause; all if there are none."""


@dataclass
class Report:
    """The report of a run."""

    settings: Settings
    rows: list[Row]
    store: str = ""
    """The URL without secrets."""
    server: str = ""
    left: list[str] = field(default_factory=list)
    """The pools and the namespace that stay in the store."""

    @property
    def is_good(self) -> bool:
        """True if nothing came twice, and all that can be caused here came to its end."""
        return not any(row.duplicates or row.failed or not row.is_done for row in self.rows)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        found = [row for row in self.rows if row.duplicates]
        ids = f"{sum(row.ids for row in self.rows):,} IDs, windows and integers"
        if found:
            each = ", ".join(f"{row.name} {row.duplicates:,}" for row in found)
            worst = max(found, key=lambda row: row.duplicates)
            return f"NOT UNIQUE: duplicates in {ids} ({each}): {CAUSES[worst.name]}."
        if failed := [row.name for row in self.rows if row.failed or not row.is_done]:
            return f"NOT PROVED: no duplicate in {ids}, but {', '.join(failed)} did not come to an end."
        skipped = [row.name for row in self.rows if row.not_run]
        ran = f"{len(self.rows) - len(skipped)} of {len(CAUSES)} faults ran"
        return f"Unique: no duplicate in {ids}; {ran}{', not run: ' if skipped else ''}{', '.join(skipped)}."

    def as_json(self) -> dict[str, Any]:
        """Return the report as an object of JSON."""
        settings = {name: value for name, value in asdict(self.settings).items() if name not in {"url", "names"}}
        words = {"is_unique": self.is_good, "verdict": self.verdict, "store": self.store, "server": self.server}
        return {**words, **settings, "faults": [asdict(row) for row in self.rows], "left": self.left}

    def as_markdown(self) -> str:
        """Return the report as a page, without secrets."""
        run, machine = self.settings, f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
        lines = [
            f"**{self.verdict}**",
            "",
            f"- store: `{self.store}`, {self.server or 'unknown'}",
            f"- mintage {__version__}, {machine}",
            f"- {run.seconds} s, {run.processes} processes, at most {run.rate} verbs a second",
            f"- left in the store: {', '.join(f'`{name}`' for name in self.left) or 'nothing'}",
            "",
            "| fault | attempts | IDs | duplicates | longest wait | errors of callers | remarks |",
            "|---|--:|--:|--:|--:|---|---|",
        ]
        for row in self.rows:
            errors = ", ".join(f"`{code}` {count:,}" for code, count in row.refused.items())
            cells = [row.fault, f"{row.attempts:,}", f"{row.ids:,}", f"{row.duplicates:,}", f"{row.waited_ms:,} ms"]
            remark = " ".join((row.failed or row.not_run).replace("|", "/").split())
            lines.append("| " + " | ".join([*cells, errors or "none", remark]) + " |")
        return "\n".join([*lines, ""])
