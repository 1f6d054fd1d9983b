"""The tables and charts of a record of fleets."""

from collections.abc import Iterator

from benchmarks.fleet.record import FleetRecord, Run
from benchmarks.pictures import Shown, bars, place_of

NO_RECORD = "No record has been made yet: `python -m benchmarks.fleet --record` makes one."
BAR_SHARE, BAR_P99_MS = 15, 50
OF_SQL_OR_REDIS = ("postgresql", "mariadb", "redis")


def _table(columns: tuple[str, ...], rows: Iterator[tuple[object, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|" + " --- |" * len(columns)
    yield from (f"| {' | '.join(map(str, row))} |" for row in rows)


def _steady(runs: list[Run]) -> Iterator[tuple[object, ...]]:
    for run in runs:
        if (it := run.steady) is not None:
            yield (
                run.version,
                f"{it.leases:,}",
                f"{it.start_s:.0f} s",
                f"{it.writes:.0f}",
                f"{it.share:.1f} %",
                f"{it.p50_ms:.1f} ms",
                f"{it.p99_ms:.1f} ms",
                f"{it.connections}",
                it.failed,
            )


def _fleets(runs: list[Run]) -> Iterator[tuple[object, ...]]:
    for run in runs:
        if (it := run.fleet) is not None:
            away = (f"{it.attempts}", f"{it.back_s:.1f} s", f"{it.kept} of {it.processes}", f"{it.restart_s:.0f} s")
            errors = it.start_errors + it.return_errors + it.restart_errors + it.stop_errors
            yield (
                run.version,
                f"{it.processes:,}",
                f"{it.start_s:.1f} s",
                it.connections,
                *(away if it.away_s else ("–",) * 4),
                f"{it.released:,}",
                errors,
            )


def missed(runs: list[Run]) -> Iterator[str]:
    """Yield a sentence for each bar that is missed."""
    for run in runs:
        if run.steady and run.store in OF_SQL_OR_REDIS:
            if run.steady.share > BAR_SHARE:
                yield f"{run.version} takes {run.steady.share:.1f} % of a processor; the bar is {BAR_SHARE} %."
            if run.steady.p99_ms > BAR_P99_MS:
                yield f"P99 of an extension on {run.version} is {run.steady.p99_ms:.0f} ms; the bar is {BAR_P99_MS} ms."


def tables(record: FleetRecord | None) -> str:
    """Return the tables of all stores for a page."""
    if record is None:
        return NO_RECORD
    leases = (
        "store", "leases", "all start at once", "extensions a second", "processor of the store", "P50", "P99",
        "connections", "failed",
    )  # fmt: skip
    processes = (
        "store", "processes", "all start at once", "connections", "most requests in a second of the outage",
        "all work again after", "numbers kept", "rolling restart", "released at the end", "errors",
    )  # fmt: skip
    lines = [
        *_table(leases, _steady(record.runs)),
        "",
        *_table(processes, _fleets(record.runs)),
        "",
        f"Measured on {place_of(record.facts, record.date)}. {' '.join(missed(record.runs))}".rstrip(),
        *("", "```{picture} fleet-share", "```") * any(run.steady for run in record.runs),
    ]
    return "\n".join(lines)


def charts(record: FleetRecord | None) -> dict[str, str]:
    """Return the drawings of a record by their names."""
    runs = [] if record is None else [run for run in record.runs if run.steady]
    if record is None or not runs:
        return {}
    shares = [Shown("", f"{run.version}, {run.steady.leases:,}", run.steady.share, True) for run in runs if run.steady]
    title = "Leases of a fleet, percent of a processor: shorter is better"
    return {"fleet-share": bars(title, shares, place_of(record.facts, record.date))}
