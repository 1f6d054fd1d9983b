"""The tables and charts of a record of keys."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from statistics import median
from typing import Final

from benchmarks.keys.record import KeyRecord, Part, Result, Run
from benchmarks.pictures import Curve, Shown, bars, curves

COUNTER: Final = "auto-increment"
"""The key to which the others are compared."""
CURVES: Final = (("uuid4 text", "axis"), ("uuid4 binary", "alarm"), ("uuid7 binary", "ids"), (COUNTER, "line"))
"""The keys that are drawn over the growth of the table, with the class of their strokes."""
RANDOM: Final = ("uuid4", "locality")
"""The keys in no order."""
NONE: Final = "–"

NAMES: Final = {"postgresql": "PostgreSQL", "mariadb": "MariaDB", "sqlite": "SQLite"}
COLUMNS: Final = (
    "key", "column", "rows a second", "rate, of auto-increment's", "P99 of a batch, ms", "table, bytes a row",
    "index, bytes a row", "log, bytes a row", "found in memory", "pages read, 1,000 rows", "read by key, µs",
    "range by time, µs a row", "index of the time, bytes a row",
)  # fmt: skip


def _number(figure: float | None) -> str:
    return NONE if figure is None else f"{figure:,.{0 if figure >= 10 else 1}f}"


def cells(run: Run, result: Result) -> tuple[str, ...]:
    """Return the row of a key, under `COLUMNS`."""
    hits = result.hit_ratio
    return (
        result.key,
        result.column,
        _number(median(result.rates)),
        f"{run.ratio(result.key, COUNTER):.2f}" if run.result(COUNTER) else NONE,
        _number(result.p99_ms),
        _number(result.table_bytes / result.rows),
        _number(result.index_bytes / result.rows) if result.index_bytes else NONE,
        _number(result.log_bytes),
        NONE if hits is None else f"{100 * hits:.1f} %",
        _number(result.misses),
        _number(median(result.point.us)),
        _number(median(result.range.us)),
        _number(result.time_index_bytes / result.rows) if result.time_index_bytes else NONE,
    )


def _shown(run: Run) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the columns of a database that have a figure, and the rows."""
    rows = [cells(run, result) for result in run.results]
    kept = [at for at, column in enumerate(zip(*rows, strict=True)) if set(column) != {NONE}]
    return tuple(COLUMNS[at] for at in kept), [tuple(row[at] for at in kept) for row in rows]


def text(run: Run) -> str:
    """Return the table of a database for a terminal."""
    columns, rows = _shown(run)
    lines = [columns, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join([f"{run.version}: {run.rows:,} rows of each key, {_settings(run)}", *table])


def _settings(run: Run) -> str:
    return f"{', '.join(f'{name} {value}' for name, value in run.settings.items())}; {run.checkpoints}"


def tables(record: KeyRecord | None) -> str:
    """Return the tables of all databases for a page."""
    if record is None:
        return "No record has been made yet: `python -m benchmarks.keys --record` makes one."
    return "\n\n".join("\n".join(_table(run)) for run in record.runs)


def _table(run: Run) -> Iterator[str]:
    columns, rows = _shown(run)
    yield "<details>"
    yield f"<summary>{run.version}, {run.rows:,} rows of each key</summary>"
    yield ""
    yield f"| {' | '.join(columns)} |"
    yield "|" + " --- |" * len(columns)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""
    yield (
        f"{run.writers} writers, {run.batch} rows of a batch in the mean. {_settings(run)}. Load of the machine during "
        f"the inserts: {min(run.load)} to {max(run.load)} processes."
    )
    yield ""
    yield "</details>"


def charts(record: KeyRecord | None) -> dict[str, str]:
    """Return the drawings of a record by their names."""
    if record is None:
        return {}
    return {name: drawing for run in record.runs for name, drawing in _charts(run, record.date[:10])}


def _charts(run: Run, day: str) -> Iterator[tuple[str, str]]:
    log = run.log.removesuffix(" log")  # a title has one line
    place = f"{run.version}, {run.rows:,} rows, {day}"

    def compared(title: str, figure: Callable[[Result], float]) -> str:
        shown = [Shown("", each.key, figure(each), not each.key.startswith(RANDOM)) for each in run.results]
        return bars(f"{NAMES[run.database]}, {title}: shorter is better", shown, place)

    def growing(title: str, figure: Callable[[Part], float]) -> str:
        found = [(each, stroke) for key, stroke in CURVES if (each := run.result(key))]
        drawn = [Curve(each.key, stroke, _points(each, figure)) for each, stroke in found]
        return curves(f"{NAMES[run.database]}, {title}", f"{run.rows:,} rows in the table", drawn, place)

    yield f"keys-size-{run.database}", compared("bytes a row", lambda each: each.bytes)
    yield f"keys-log-{run.database}", compared(f"{log} bytes a row", lambda each: each.log_bytes)
    yield f"keys-growth-{run.database}", growing(f"{log} bytes a row", lambda part: part.log_bytes / part.rows)
    if all(each.misses is not None for each in run.results):
        yield (
            f"keys-pages-{run.database}",
            growing("pages read, 1,000 rows", lambda part: 1e3 * (part.misses or 0) / part.rows),
        )
    yield f"keys-rate-{run.database}", growing("thousand rows a second", lambda part: part.rows / part.seconds / 1e3)


def _points(result: Result, figure: Callable[[Part], float]) -> list[tuple[float, float]]:
    ends = accumulate(part.rows / 1e6 for part in result.parts)
    return [(end, figure(part)) for end, part in zip(ends, result.parts, strict=True)]
