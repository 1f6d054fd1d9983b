"""The tables and charts of a record of fleets."""

from collections.abc import Iterator

from benchmarks.fleet.record import FleetRecord, Grown, Run
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


def _grown(grown: list[Grown]) -> Iterator[str]:
    """Yield a table of the verbs of each store over the leases of a pool."""
    if not grown:
        return
    counts = sorted({each.leases for each in grown})
    yield from ("", "What a pool costs the more leases it has:", "")
    rows: list[tuple[object, ...]] = []
    for store in dict.fromkeys(each.store for each in grown):
        of = {each.leases: each for each in grown if each.store == store}
        for verb, unit, digits, field in (
            ("acquire", "ms", 1, "acquire_ms"),
            ("a page of 100 leases", "ms", 1, "page_ms"),
            ("all leases", "s", 2, "list_s"),
            ("`mintage doctor`", "s", 1, "doctor_s"),
        ):
            shown = (f"{getattr(of[count], field):.{digits}f} {unit}" if count in of else "–" for count in counts)
            rows.append((store, verb, *shown))
    yield from _table(("store", "leases", *(f"{count:,}" for count in counts)), iter(rows))


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
        *_grown(record.grown),
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
    most = max(run.steady.leases for run in runs if run.steady)
    of_most = [(run.version, run.steady) for run in runs if run.steady and run.steady.leases == most]
    # The service's name alone fits the card; the table says on which store it is.
    shares = [Shown("", version.partition(" on ")[0], steady.share, True) for version, steady in of_most]
    title = f"Percent of a processor for {most:,} leases"
    return {"fleet-share": bars(title, shares, place_of(record.facts, record.date))}
