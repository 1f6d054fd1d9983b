"""The tables and charts of a record of cores."""

import re
from collections.abc import Iterator
from math import log10
from typing import Final

from benchmarks.cores.record import CoresRecord, Point
from benchmarks.pictures import Curve, curves

Rows = list[tuple[str, ...]]
"""A table; its first row has the columns."""

NONE: Final = "–"
MINTED: Final = ("sno", "uuid v7", "uuid v7, fill")
PROCESSES: Final = "IDs a second of processes, each with a Python loop"
THREADS: Final = "IDs a second of threads of one process, each with a generator"
SERVICE: Final = "Requests a second of the service and of Redis"
LOAD: Final = "The same `INCR` one by one: the load of workers and clients"
OPEN: Final = "`INCR` one by one over connections, with a worker for each processor of the servers"
NAMED: Final = "`INCR` of namespaces at random, one worker"
ALLOCS: Final = "POST /alloc"
PIPELINE: Final = "INCR, pipeline {}"
TWO: Final = f"{PIPELINE.format(1)}, two clients"
SERVED: Final = (ALLOCS, PIPELINE.format(1), TWO, PIPELINE.format(16), PIPELINE.format(64))


def rate(figure: float) -> str:
    """Return a rate with its unit: thousands, millions or milliards a second."""
    for unit, size in (("G/s", 1e9), ("M/s", 1e6), ("k/s", 1e3)):
        if figure >= size:
            digits = 0 if unit == "k/s" or figure >= 100 * size else 2 if figure < 10 * size else 1
            return f"{figure / size:,.{digits}f} {unit}"
    return f"{figure:,.0f} /s"


def line(point: Point) -> str:
    """Return a point as a line of progress."""
    more = ", ".join(f"{name} {value}" for name, value in point.more.items())
    return f"{point.series}, {point.count} {point.group}: {rate(point.rate)}" + (f" ({more})" if more else "")


def _range(figures: list[int]) -> str:
    least, most = min(figures), max(figures)
    return f"{least}" if least == most else f"{least} to {most}"


def _growth(record: CoresRecord, group: str, names: tuple[str, ...]) -> Rows:
    """Return a row for each series and a column for each count."""
    found = {name: points for name in names if (points := record.series(group, name))}
    counts = sorted({count for points in found.values() for count in points})
    return [
        (group, *(f"{count:,}" for count in counts)),
        *(
            (name, *(rate(points[count].rate) if count in points else NONE for count in counts))
            for name, points in found.items()
        ),
    ]


def _threads(record: CoresRecord) -> Rows:
    names = dict.fromkeys(each.series for each in record.points if each.group == "threads")
    return _growth(record, "threads", tuple(names))


def _workers(record: CoresRecord) -> Rows:
    """Return a row for each number of workers, and one for each Redis."""
    rows: Rows = [("", ALLOCS, "its P99", *SERVED[1:])]
    series = {name: record.series("workers", name) for name in SERVED}

    def cell(point: Point | None) -> str:
        return rate(point.rate) if point else NONE

    for count, point in series[ALLOCS].items():
        cells = [cell(series[name].get(count)) for name in SERVED[1:]]
        name = f"mintage, {count} worker{'s' if count > 1 else ''}"
        rows.append((name, cell(point), f"{point.more['p99_ms']:.2f} ms", *cells))
    for threads in record.series("redis-server", SERVED[1]):
        cells = [cell(record.series("redis-server", name).get(threads)) for name in SERVED[1:]]
        rows.append((f"redis-server, {threads} I/O thread{'s' if threads > 1 else ''}", NONE, NONE, *cells))
    return rows


def _spread(record: CoresRecord) -> Rows:
    """Return the load of each worker and of the clients at pipeline 1."""
    rows: Rows = [
        ("workers", "clients", "requests", "connections of a worker", "a worker is busy", "clients are busy", "P99")
    ]
    for name, clients in ((PIPELINE.format(1), "1"), (TWO, "2")):
        for count, point in record.series("workers", name).items():
            more = point.more
            busy, client = f"{_range(more['busy'])} %", f"{more['client_busy']} % of {more['client_processors']}"
            spread = _range(more["connections"])
            rows.append((str(count), clients, rate(point.rate), spread, busy, client, f"{more['p99_ms']:.2f} ms"))
    return rows


def tables(record: CoresRecord) -> list[tuple[str, Rows]]:
    """Return all tables that have a figure, by their titles."""
    found = [
        (PROCESSES, _growth(record, "processes", MINTED)),
        (THREADS, _threads(record)),
        (SERVICE, _workers(record)),
        (LOAD, _spread(record)),
        (OPEN, _growth(record, "connections", (PIPELINE.format(1),))),
        (NAMED, _growth(record, "namespaces", SERVED)),
    ]
    return [(title, rows) for title, rows in found if len(rows) > 1]


def text(record: CoresRecord) -> str:
    """Return the tables for a terminal."""
    lines = [f"{record.facts['cpu']}, {record.facts['cores']} processors, {record.facts['python']}"]
    for title, rows in tables(record):
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += ["", title, *("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)]
    return "\n".join(lines)


def _table(rows: Rows) -> list[str]:
    head, *others = rows
    return [f"| {' | '.join(head)} |", "|" + " --- |" * len(head), *(f"| {' | '.join(row)} |" for row in others)]


NO_RECORD: Final = "No record has been made yet: `python -m benchmarks.cores` makes one."


def _section(record: CoresRecord | None, pictures: str, *titles: str) -> str:
    """Return some pictures, the tables with some titles and the machine, for a page."""
    if record is None:
        return NO_RECORD
    facts = record.facts
    lines = [f"```{{picture}} {pictures}", "```", ""]
    for title, rows in tables(record):
        if title in titles:
            lines += [f"{title}:", "", *_table(rows), ""]
    lines.append(
        f"Measured on {record.date[:10]} on {facts['cpu']}, {facts['cores']} processors, {facts['kernel']}, "
        f"{facts['python']}."
    )
    return "\n".join(lines)


def workers(record: CoresRecord | None) -> str:
    """Return the section of workers."""
    return _section(record, "cores-workers cores-pipelines", SERVICE, LOAD)


def growth(record: CoresRecord | None) -> str:
    """Return the section of connections and namespaces."""
    return _section(record, "cores-connections cores-namespaces", OPEN, NAMED)


def minting(record: CoresRecord | None) -> str:
    """Return the section of processes and threads that mint."""
    return _section(record, "cores-processes", PROCESSES, THREADS)


def charts(record: CoresRecord | None) -> dict[str, str]:
    """Return the drawings of a record by their names."""
    return {} if record is None else dict(_charts(record))


STROKES: Final = ("ids", "line", "alarm", "axis")


def _charts(record: CoresRecord) -> Iterator[tuple[str, str]]:
    model = re.sub(r"\((R|TM)\)|@.*", "", record.facts["cpu"]).strip()
    place = f"{model}, {record.facts['cores']} processors, {record.date[:10]}"

    def drawn(title: str, across: str, lines: dict[str, dict[int, Point]], unit: float, *, log: bool = False) -> str:
        shown = [
            Curve(name, stroke, [(log10(n) if log else n, point.rate / unit) for n, point in points.items()])
            for (name, points), stroke in zip(lines.items(), STROKES, strict=False)
            if points
        ]
        return curves(title, across, shown, place, "1" if log else "0")

    def of(group: str, **names: str) -> dict[str, dict[int, Point]]:
        return {label: record.series(group, name) for label, name in names.items()}

    processes = of("processes", **{"sno": "sno", "uuid v7": "uuid v7"})
    yield "cores-processes", drawn("Million IDs a second", f"{max(processes['sno'])} processes", processes, 1e6)
    served = {
        "POST /alloc": record.series("workers", ALLOCS),
        "INCR": record.series("workers", PIPELINE.format(1)),
    }
    last = max(served["INCR"])
    for threads, point in record.series("redis-server", PIPELINE.format(1)).items():
        served["Redis, threads" if threads > 1 else "Redis"] = {1: point, last: point}
    yield "cores-workers", drawn("Thousand requests a second, one by one", f"{last} workers", served, 1e3)
    piped = {f"{pipeline} at a time": record.series("workers", PIPELINE.format(pipeline)) for pipeline in (16, 64)}
    yield "cores-pipelines", drawn("Million INCR a second", f"{last} workers", piped, 1e6)
    for group, names in (("connections", {"INCR": 1}), ("namespaces", {"1 at a time": 1, "16 at a time": 16})):
        lines = {label: record.series(group, PIPELINE.format(pipeline)) for label, pipeline in names.items()}
        most = max(max(points) for points in lines.values())
        yield (
            f"cores-{group}",
            drawn("Thousand INCR a second", f"{most:,} {group}", lines, 1e3, log=True),
        )
