"""The record of a run: the figures of each store."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import record

DIRECTORY = record.DIRECTORY / "fleet"


@dataclass(frozen=True)
class Steady:
    """Many leases that a few processes hold."""

    leases: int
    processes: int
    start_s: float
    """Time to lease all, everybody starting at once."""
    writes: float
    """Extensions a second."""
    share: float
    """Percentage of a processor that the store's processes used."""
    keepers: float
    """Percentage of a processor that all holders used."""
    p50_ms: float
    p99_ms: float
    connections: int
    failed: int


@dataclass(frozen=True)
class Fleet:
    """Processes with a generator each."""

    processes: int
    start_s: float
    """Time until the last process had its first ID, everybody starting at once."""
    start_p50_s: float
    start_errors: int
    numbers: int
    """Different node numbers that they leased."""
    connections: int
    away_s: float
    """Length of the outage; 0 if there was none."""
    attempts: int
    """Most requests in a second, during the outage and the 5 s after it."""
    back_s: float
    """Time from the return of the store until the last process had a window again."""
    return_errors: int
    kept: int
    """Processes with the number that they had before the outage."""
    restart_s: float
    restart_errors: int
    released: int
    """Processes that gave their number back when all stopped at once."""
    stop_errors: int


@dataclass(frozen=True)
class Run:
    """The figures of one store."""

    store: str
    version: str
    steady: Steady | None
    fleet: Fleet | None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Run":
        """Read the output of `asdict`."""
        steady, fleet = data["steady"], data["fleet"]
        return cls(data["store"], data["version"], steady and Steady(**steady), fleet and Fleet(**fleet))


@dataclass(frozen=True)
class Grown:
    """The cost of the verbs of a pool with a number of leases."""

    store: str
    leases: int
    acquire_ms: float
    """Median of an acquire of a number that was never used."""
    page_ms: float
    """Median of a list of 100 leases."""
    list_s: float
    """Time to list all leases, page by page."""
    doctor_s: float
    """Time of `mintage doctor`, start of the interpreter included."""


@dataclass(frozen=True)
class FleetRecord:
    """The runs of one day on one machine."""

    date: str
    facts: dict[str, Any]
    runs: list[Run]
    grown: list[Grown] = field(default_factory=list)

    def save(self, slug: str) -> Path:
        """Write the record, in place of an earlier one of the day."""
        DIRECTORY.mkdir(exist_ok=True)
        path = DIRECTORY / f"{self.date[:10]}-{slug}.json"
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path

    @classmethod
    def newest(cls) -> "FleetRecord | None":
        """Return the record of the latest date, or None."""
        loaded = [json.loads(path.read_text(encoding="utf-8")) for path in DIRECTORY.glob("*.json")]
        if not loaded:
            return None
        data = max(loaded, key=lambda each: str(each["date"]))
        runs, grown = [Run.from_json(run) for run in data["runs"]], [Grown(**each) for each in data["grown"]]
        return cls(data["date"], data["facts"], runs, grown)
