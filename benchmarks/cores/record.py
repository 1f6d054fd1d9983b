"""The record of a run over the cores of a machine."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

DIRECTORY: Final = Path(__file__).parents[1] / "record" / "cores"


@dataclass(frozen=True)
class Point:
    """One figure."""

    group: str
    """The things that were counted: processes, threads, workers, connections or namespaces."""
    series: str
    count: int
    """The number of them."""
    rate: float
    """IDs or requests a second: the median of some rounds."""
    more: dict[str, Any] = field(default_factory=dict)
    """For the service: the P99 in ms; in per cent of a processor, how busy each worker was and the clients were in the
    mean; and the connections of each worker."""


@dataclass(frozen=True)
class CoresRecord:
    """A complete run on one machine."""

    date: str
    facts: dict[str, Any]
    points: list[Point]

    def as_json(self) -> str:
        """Return one line for each fact and each point."""

        def written(value: object) -> str:
            return json.dumps(value, ensure_ascii=False, default=str)

        facts = ",\n".join(f"  {written(name)}: {written(fact)}" for name, fact in self.facts.items())
        points = ",\n".join(f"  {written(asdict(point))}" for point in self.points)
        return f'{{\n"date": {written(self.date)},\n"facts": {{\n{facts}\n}},\n"points": [\n{points}\n]\n}}\n'

    def save(self, directory: Path, slug: str) -> Path:
        """Write the record under its date and the slug of the machine; a second run of the day replaces the first."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self.date[:10]}-{slug}.json"
        path.write_text(self.as_json(), encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> "CoresRecord":
        """Read one file."""
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(data["date"], data["facts"], [Point(**point) for point in data["points"]])

    @classmethod
    def newest(cls) -> "CoresRecord | None":
        """Return the record of the latest date, or None."""
        return max(map(cls.load, DIRECTORY.glob("*.json")), key=lambda each: each.date, default=None)

    def series(self, group: str, series: str) -> dict[int, Point]:
        """Return the points of a series by their counts."""
        return {each.count: each for each in self.points if (each.group, each.series) == (group, series)}
