"""The record of a run, and its tables."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

DIRECTORY: Final = Path(__file__).parents[1] / "record" / "machine_ids"
Rows = list[tuple[str, ...]]
"""A table; its first row has the columns."""
NONE: Final = "–"


@dataclass(frozen=True)
class Rate:
    """The rate of one generator in one thread."""

    library: str
    rounds: list[float]
    """IDs a second of each round."""
    ceiling: int
    """The IDs a second that the layout has for a machine id."""


@dataclass(frozen=True)
class Fault:
    """The result of a trial with a library."""

    library: str
    trial: str
    ids: int
    repeated: int
    """The number of these IDs that occurred before."""
    refused: str = ""
    """The library's error, if it raised one."""
    waited_s: float = 0
    """Seconds that an answer took, beyond its interval."""

    def cell(self) -> str:
        """Return the result as a cell of a table."""
        if self.refused:
            return "refuses"
        waits = f", waits {self.waited_s:.1f} s" if self.waited_s >= 1 else ""
        return f"{self.repeated:,} of {self.ids:,}{waits}"


@dataclass(frozen=True)
class MachineRecord:
    """The rates or the faults of all libraries on one machine."""

    date: str
    facts: dict[str, Any]
    rates: list[Rate] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def save(self, directory: Path, slug: str) -> Path:
        """Write the record under its date, its kind and the slug of the machine."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self.date[:10]}-{'rates' if self.rates else 'faults'}-{slug}.json"
        path.write_text(self.as_json(), encoding="utf-8")
        return path

    def as_json(self) -> str:
        """Return one line for each fact and each result."""

        def written(value: object) -> str:
            return json.dumps(value, ensure_ascii=False)

        def lines(values: Sequence[Any]) -> str:
            return "[" + ",".join(f"\n  {written(asdict(value))}" for value in values) + "\n]"

        facts = ",\n".join(f"  {written(name)}: {written(fact)}" for name, fact in self.facts.items())
        rates, faults = lines(self.rates), lines(self.faults)
        return (
            f'{{\n"date": {written(self.date)},\n"facts": {{\n{facts}\n}},\n"rates": {rates},\n"faults": {faults}\n}}\n'
        )

    @classmethod
    def load(cls, path: Path) -> "MachineRecord":
        """Read one file."""
        data = json.loads(path.read_text(encoding="utf-8"))
        rates, faults = [Rate(**each) for each in data["rates"]], [Fault(**each) for each in data["faults"]]
        return cls(data["date"], data["facts"], rates, faults)

    @classmethod
    def newest(cls, kind: str) -> "MachineRecord | None":
        """Return the record of `rates` or `faults` of the latest date, or None."""
        return max(map(cls.load, DIRECTORY.glob(f"*-{kind}-*.json")), key=lambda each: each.date, default=None)

    def table_of_rates(self) -> Rows:
        """Return a row for each library."""
        head = ("", "IDs a second", "those of its layout")
        return [head, *((each.library, f"{median(each.rounds):,.0f}", f"{each.ceiling:,}") for each in self.rates)]

    def table_of_faults(self) -> Rows:
        """Return a row for each library and a column for each trial."""
        cells = {(each.library, each.trial): each.cell() for each in self.faults}
        libraries, trials = (tuple(dict.fromkeys(part)) for part in zip(*cells, strict=True))
        return [
            ("", *trials),
            *((library, *(cells.get((library, trial), NONE) for trial in trials)) for library in libraries),
        ]


def _section(record: MachineRecord | None, kind: str, table: Callable[[MachineRecord], Rows]) -> str:
    if record is None:
        return f"No record has been made yet: `python -m benchmarks.machine_ids --{kind}` makes one."
    head, *rows = (f"| {' | '.join(row)} |" for row in table(record))
    facts = record.facts
    where = f"{facts['cpu']}, {facts['cores']} processors, " + ", ".join(
        facts[fact] for fact in ("kernel", "python", "go", "java")
    )
    load = (facts["load"] or [0])[0]
    beside = f" Other programs ran as well: the load was {load:.0f}." if load > facts["cores"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in facts["libraries"].items())
    refused = [f"{each.library}, {each.trial}: `{each.refused}`." for each in record.faults if each.refused]
    said = ["What the libraries said that refuse:", *(f"\n- {line}" for line in refused), ""] if refused else []
    return "\n".join(
        [
            head,
            "|" + " --- |" * (head.count("|") - 1),
            *rows,
            "",
            *said,
            f"Measured on {record.date[:10]} on {where}: {versions}.{beside}",
        ]
    )


def rates(record: MachineRecord | None) -> str:
    """Return the section of rates of a page."""
    return _section(record, "rates", MachineRecord.table_of_rates)


def faults(record: MachineRecord | None) -> str:
    """Return the section of faults of a page."""
    return _section(record, "faults", MachineRecord.table_of_faults)
