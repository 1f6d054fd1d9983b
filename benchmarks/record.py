"""The record of a run: every round of every row and the facts of the machine. Medians are computed on display."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.row import Bar, Row
from benchmarks.timing import Rounds

DIRECTORY = Path(__file__).parent / "record"

HEADINGS = ("what", "figure", "beside", "its figure", "ratio [min … max]", "bar", "met")


@dataclass
class Result:
    """A row and its measurements, one `Rounds` a process."""

    what: str
    beside: str
    unit: str
    bar: Bar | None
    note: str
    passes: list[Rounds] = field(default_factory=list)
    skipped: str | None = None
    """The reason if nothing was measured."""

    @classmethod
    def of(cls, row: Row) -> "Result":
        """Return a result without a measurement yet."""
        return cls(row.what, row.beside, row.unit, row.bar, row.note)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Result":
        """Read the output of `asdict`."""
        bar = Bar(**data["bar"]) if data["bar"] else None
        return cls(**{**data, "bar": bar, "passes": [Rounds(**rounds) for rounds in data["passes"]]})

    @property
    def figures(self) -> list[float]:
        """Return our figure of every round, in the unit of the row."""
        return [figure for rounds in self.passes for figure in rounds.figures]

    @property
    def beside_figures(self) -> list[float]:
        """Return the figure of the other side of every round."""
        return [figure for rounds in self.passes for figure in rounds.beside]

    @property
    def ratios(self) -> list[float]:
        """Return our figures over those of the other side, pair by pair."""
        pairs = [pair for rounds in self.passes for pair in zip(rounds.figures, rounds.beside, strict=False)]
        return [figure / beside for figure, beside in pairs]

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts, added up over all processes."""
        names = dict.fromkeys(name for rounds in self.passes for name in rounds.counts)
        return {name: sum(rounds.counts.get(name, 0) for rounds in self.passes) for name in names}

    @property
    def met(self) -> bool | None:
        """Return whether the bar is met; None if there is no bar or no figure for it."""
        if self.bar is None or self.skipped is not None:
            return None
        judged = self.ratios if self.bar.of == "ratio" else self.figures
        if not judged:
            return None
        value = median(judged)
        reached = value <= self.bar.limit if self.bar.sense == "≤" else value >= self.bar.limit
        return reached and (self.bar.zero is None or self.counts[self.bar.zero] == 0)

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table, under `HEADINGS`."""
        counted = "".join(f"; {name}: {number:,}" for name, number in self.counts.items())
        missing = self.skipped or next((rounds.missing for rounds in self.passes if rounds.missing), None)
        ratios = self.ratios
        if self.bar is None:
            met = "–"
        elif self.met is None:
            met = "not measured"
        else:
            met = "yes" if self.met else "NO"
        return (
            self.what,
            (_figure(self.figures, self.unit) or f"skipped: {missing}") + counted,
            self.beside,
            _figure(self.beside_figures, self.unit) or (f"skipped: {missing}" if self.figures else "–"),
            f"{median(ratios):.3f} [{min(ratios):.3f} … {max(ratios):.3f}]" if ratios else "–",
            _bar(self.bar, self.unit),
            met,
        )


def _figure(figures: Sequence[float], unit: str) -> str:
    """Return the median, to three digits or two decimals."""
    if not figures:
        return ""
    value = median(figures)
    return f"{value:,.{0 if value >= 1000 else 2 if value < 10 or unit == 'M/s' else 1}f} {unit}"


def _bar(bar: Bar | None, unit: str) -> str:
    if bar is None:
        return "–"
    limit = f"{bar.sense} {round(bar.limit, 3)} {'×' if bar.of == 'ratio' else unit}"
    return limit + (f", 0 {bar.zero}" if bar.zero else "")


@dataclass(frozen=True)
class Record:
    """A complete run."""

    date: str
    facts: dict[str, Any]
    results: list[Result]

    def save(self, slug: str) -> Path:
        """Write the record under its date and the slug of the machine; a second run of the day replaces the first."""
        DIRECTORY.mkdir(exist_ok=True)
        path = DIRECTORY / f"{self.date[:10]}-{slug}.json"
        path.write_text(self.as_json(), encoding="utf-8")
        return path

    def as_json(self) -> str:
        """Return one line for each fact and row, so that a diff of the file shows the new measurements."""

        def written(value: object) -> str:
            return json.dumps(value, ensure_ascii=False, default=str)

        facts = ",\n".join(f"  {written(name)}: {written(fact)}" for name, fact in self.facts.items())
        results = ",\n".join(f"  {written(asdict(result))}" for result in self.results)
        return f'{{\n"date": {written(self.date)},\n"facts": {{\n{facts}\n}},\n"results": [\n{results}\n]\n}}\n'

    @classmethod
    def load(cls, path: Path) -> "Record":
        """Read one file."""
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(data["date"], data["facts"], [Result.from_json(result) for result in data["results"]])

    @classmethod
    def newest(cls) -> "Record | None":
        """Return the record of the latest date, or None."""
        return max(map(cls.load, DIRECTORY.glob("*.json")), key=lambda record: record.date, default=None)
