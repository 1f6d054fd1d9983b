"""The record of a run of keys: the figures of every part. Medians and ratios are computed on display."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import record

DIRECTORY = record.DIRECTORY / "keys"


class Counters(NamedTuple):
    """Counters of a server, which only grow."""

    log_bytes: int
    hits: int | None
    """Pages that were found in the server's memory. None: the database does not tell."""
    misses: int | None
    """Pages that it asked the operating system for."""

    def since(self, before: "Counters") -> "Counters":
        """Return the difference to earlier ones."""
        hits, misses = (None if a is None or b is None else a - b for a, b in zip(self[1:], before[1:], strict=True))
        return Counters(self.log_bytes - before.log_bytes, hits, misses)


@dataclass(frozen=True)
class Part:
    """A part of the rows of a table: a tenth of them, in a run that was not cut short."""

    rows: int
    seconds: float
    p50_ms: float
    """Time of the median batch, with its commit."""
    p99_ms: float
    log_bytes: int
    hits: int | None
    misses: int | None


@dataclass(frozen=True)
class Reads:
    """Reads by key, or by time."""

    us: list[float]
    """Microseconds a row: the median of each turn of reads by key, or each read by time."""
    rows: int
    hits: int | None
    misses: int | None

    @classmethod
    def of(cls, reads: Sequence[tuple[float, int, Counters]]) -> "Reads":
        """Add up reads: microseconds a row, rows, and counters of each."""
        hits, misses = ([getattr(each, name) for *_, each in reads] for name in ("hits", "misses"))
        return cls(
            [round(us, 2) for us, *_ in reads],
            sum(rows for _, rows, _ in reads),
            None if None in hits else sum(hits),
            None if None in misses else sum(misses),
        )


@dataclass(frozen=True)
class Result:
    """The figures of a key in a database."""

    key: str
    column: str
    parts: list[Part]
    table_bytes: int
    index_bytes: int
    time_index_bytes: int
    """Size of the index of the time that a range needs; 0 if the key has the time."""
    point: Reads
    range: Reads

    @property
    def rows(self) -> int:
        """Return the rows of the table."""
        return sum(part.rows for part in self.parts)

    @property
    def rates(self) -> list[float]:
        """Return the rows a second of every part."""
        return [part.rows / part.seconds for part in self.parts]

    @property
    def p99_ms(self) -> float:
        """Return the 99th percentile of the time of a batch, the median over the parts."""
        return median(part.p99_ms for part in self.parts)

    @property
    def bytes(self) -> float:
        """Return the bytes of the table and the index of its key, a row."""
        return (self.table_bytes + self.index_bytes) / self.rows

    @property
    def log_bytes(self) -> float:
        """Return the bytes of the log, a row."""
        return sum(part.log_bytes for part in self.parts) / self.rows

    @property
    def hit_ratio(self) -> float | None:
        """Return the part of the page accesses of inserts that the server's memory answered, 0 to 1."""
        misses = _ratio([part.misses for part in self.parts], 1)
        hits = _ratio([part.hits for part in self.parts], 1)
        return None if hits is None or misses is None else hits / (hits + misses)

    @property
    def misses(self) -> float | None:
        """Return the pages that inserts read, a thousand rows."""
        return _ratio([part.misses for part in self.parts], self.rows / 1000)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Result":
        """Read the output of `asdict`."""
        parts, point, times = [Part(**part) for part in data["parts"]], Reads(**data["point"]), Reads(**data["range"])
        return cls(**{**data, "parts": parts, "point": point, "range": times})


def _ratio(counts: Sequence[int | None], by: float) -> float | None:
    known = [count for count in counts if count is not None]
    return sum(known) / by if len(known) == len(counts) else None


@dataclass(frozen=True)
class Run:
    """All keys in one database."""

    database: str
    version: str
    log: str
    settings: dict[str, str]
    checkpoints: str
    writers: int
    batch: int
    load: list[float]
    """The load of the machine, in processes over a minute, after each part of all keys."""
    results: list[Result]

    @property
    def rows(self) -> int:
        """Return the rows of each table."""
        return self.results[0].rows

    def result(self, key: str) -> Result | None:
        """Return the figures of a key, or None if it was not measured."""
        return next((each for each in self.results if each.key == key), None)

    def ratio(self, key: str, to: str) -> float:
        """Return the median, over the parts, of the rows a second of a key over those of another."""
        ours, others = self.result(key), self.result(to)
        assert ours
        assert others
        return median(a / b for a, b in zip(ours.rates, others.rates, strict=True))


@dataclass(frozen=True)
class KeyRecord:
    """The runs of one day on one machine, one for each database."""

    date: str
    facts: dict[str, Any]
    runs: list[Run]

    def save(self, slug: str) -> Path:
        """Write the record; a later run of the day replaces that of the same database."""
        DIRECTORY.mkdir(exist_ok=True)
        path = DIRECTORY / f"{self.date[:10]}-{slug}.json"
        older = KeyRecord.load(path).runs if path.exists() else []
        runs = {run.database: run for run in [*older, *self.runs]}
        path.write_text(KeyRecord(self.date, self.facts, [*runs.values()]).as_json(), encoding="utf-8")
        return path

    def as_json(self) -> str:
        """Return one line for each fact, and for each key and its database."""

        def written(value: object) -> str:
            return json.dumps(value, ensure_ascii=False, default=str)

        facts = ",\n".join(f"  {written(name)}: {written(fact)}" for name, fact in self.facts.items())
        runs = []
        for run in self.runs:
            data = asdict(run)
            results = ",\n".join(f"    {written(each)}" for each in data.pop("results"))
            head = written(data).removesuffix("}")
            runs.append(f'  {head}, "results": [\n{results}\n  ]}}')
        listed = ",\n".join(runs)
        return f'{{\n"date": {written(self.date)},\n"facts": {{\n{facts}\n}},\n"runs": [\n{listed}\n]\n}}\n'

    @classmethod
    def load(cls, path: Path) -> "KeyRecord":
        """Read one file."""
        data = json.loads(path.read_text(encoding="utf-8"))
        runs = [
            Run(**{**run, "results": [Result.from_json(result) for result in run["results"]]}) for run in data["runs"]
        ]
        return cls(data["date"], data["facts"], runs)

    @classmethod
    def newest(cls) -> "KeyRecord | None":
        """Return the record of the latest date, or None."""
        return max(map(cls.load, DIRECTORY.glob("*.json")), key=lambda each: each.date, default=None)

    def run(self, database: str) -> Run | None:
        """Return the run in a database, or None if there is none."""
        return next((each for each in self.runs if each.database == database), None)
