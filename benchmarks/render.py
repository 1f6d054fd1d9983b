"""Render the newest record and the table of formats into their pages, between two markers, and draw the pictures."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path

from benchmarks import format_table, pictures
from benchmarks.cores import report as cores
from benchmarks.cores.record import CoresRecord
from benchmarks.fleet import report as fleet_report
from benchmarks.fleet.record import FleetRecord
from benchmarks.keys import report
from benchmarks.keys.record import KeyRecord
from benchmarks.machine_ids import record as machine_ids
from benchmarks.machine_ids.record import MachineRecord
from benchmarks.record import Record, Result

ROOT = Path(__file__).parent.parent
# Fewer and narrower than in the terminal: a page has less room.
COLUMNS = ("what", "figure", "beside", "ratio", "bar: met")
FIRST = (
    ("sno.Generator.new()", "c_uuid_v7.uuid7()"),
    ("snowflake.Generator.new()", "c_uuid_v7.uuid7()"),
    ("Sequence.next()", "c_uuid_v7.uuid7()"),
    ("POST /alloc", "idalloc that logs errors only"),
    ("INCR, pipeline 1, one connection", "Redis, appendfsync always"),
)
"""The rows at the head of the page, each with its peer."""


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _row(result: Result, mark: str = "") -> str:
    what, figure, beside, its_figure, ratio, bar, met = result.cells()
    ratio = ratio.partition(" ")[0]  # the extremes are in the record
    return _line((what + mark, figure, f"{beside}: {its_figure}", ratio, bar if met == "–" else f"{bar}: {met}"))


def _table(rows: Iterable[str]) -> list[str]:
    return [_line(COLUMNS), "|" + " --- |" * len(COLUMNS), *rows]


def _misses(results: Iterable[Result]) -> Iterator[str]:
    """Yield how many bars are met, and a sentence for each that is missed."""
    judged = [each for each in results if each.met is not None]
    missed = [each for each in judged if not each.met]
    unknown = sum(each.bar is not None and each.met is None for each in results)
    yield (
        f"{len(judged) - len(missed)} of {len(judged)} bars are met"
        + (f", and {unknown} more could not be measured" if unknown else "")
        + (". Missed:" if missed else ".")
    )
    yield ""
    for each in missed:
        what, figure, beside, its_figure, ratio, bar, _ = each.cells()
        if each.bar and each.bar.of == "ratio":
            figure = f"{ratio.partition(' ')[0]} times as much, {figure}"
        if each.bar and each.bar.zero and not each.counts[each.bar.zero]:
            figure, bar = figure.partition(";")[0], bar.partition(",")[0]
        limit = bar.replace("≤", "at most").replace("≥", "at least").replace("×", "times as much")
        yield f"- **{what}**: {figure}, and the bar is {limit}. For comparison, {beside}: {its_figure}."


NO_RECORD = "No record has been made yet: `make bench` makes one."


def first(record: Record | None) -> str:
    """Return the rows at the head of the page, and the missed bars."""
    if record is None:
        return NO_RECORD
    facts = record.facts
    host = ", ".join(str(facts[fact]) for fact in ("cpu", "kernel", "python") if facts[fact])
    shown = [each for asked in FIRST for each in record.results if (each.what, each.beside) == asked]
    lines = [
        *_table(map(_row, shown)),
        "",
        f"Measured on {record.date[:10]} on {host}, {facts['cores']} cores.",
        "",
        *_misses(record.results),
    ]
    return "\n".join(lines)


def rows(record: Record | None) -> str:
    """Return the table of all rows with its notes, and the versions."""
    if record is None:
        return NO_RECORD
    facts = record.facts
    measured = {**facts["packages"], **facts.get("programs", {})}
    versions = ", ".join(
        [f"{name} {version}" for name, version in measured.items() if version]
        + [facts[fact] for fact in ("rustc", "go") if facts[fact]]
    )
    noted = [result for result in record.results if result.note]
    notes = {note: number for number, note in enumerate(dict.fromkeys(result.note for result in noted), start=1)}
    again = "; ".join(facts.get("measured_again", ()))
    marked = (_row(each, f" ({notes[each.note]})" if each.note else "") for each in record.results)
    lines = [
        *_table(marked),
        "",
        *(f"{number}. {note}" for note, number in notes.items()),
        "",
        "<details>",
        "<summary>Versions of everything that was measured</summary>",
        "",
        f"{versions}; commit {facts['commit']}."
        + (f" Measured again right after, on the same commit: {again}." if again else ""),
        "",
        "</details>",
    ]
    return "\n".join(lines)


SECTIONS: tuple[tuple[str, str, Callable[[Record | None], str]], ...] = (
    ("docs/performance.md", "first", first),
    ("docs/performance.md", "rows", rows),
    ("docs/performance.md", "rates", lambda _: machine_ids.rates(MachineRecord.newest("rates"))),
    ("docs/explanation/repeats.md", "faults", lambda _: machine_ids.faults(MachineRecord.newest("faults"))),
    ("docs/how-to/scale.md", "workers", lambda _: cores.workers(CoresRecord.newest())),
    ("docs/how-to/scale.md", "growth", lambda _: cores.growth(CoresRecord.newest())),
    ("docs/how-to/scale.md", "minting", lambda _: cores.minting(CoresRecord.newest())),
    ("docs/how-to/choose.md", "family", partial(format_table.table, "../schemes/{}.md")),
    ("docs/how-to/choose.md", "keys", lambda _: report.tables(KeyRecord.newest())),
    ("docs/how-to/fleets.md", "fleet", lambda _: fleet_report.tables(FleetRecord.newest())),
)
"""A page, the name of its markers, and the content between them."""


def charts() -> dict[str, str]:
    """Return the drawings of the newest records of keys, fleets and cores by their names."""
    fleet, keys = FleetRecord.newest(), KeyRecord.newest()
    return report.charts(keys) | fleet_report.charts(fleet) | cores.charts(CoresRecord.newest())


def rendered() -> Iterator[tuple[Path, str, str]]:
    """Return each page and picture with its current and its new text."""
    record = Record.newest()
    for name, sections in groupby(SECTIONS, key=lambda section: section[0]):
        page = ROOT / name
        document = new = page.read_text(encoding="utf-8")
        for _, marker, section_of in sections:
            before, begin, rest = new.partition(f"<!-- {marker}: begin -->")
            _, end, after = rest.partition(f"<!-- {marker}: end -->")
            if not begin or not end:
                raise SystemExit(f"{name} lacks the markers of {marker}")
            new = f"{before}{begin}\n\n{section_of(record)}\n\n{end}{after}"
        yield page, document, new
    for picture, new in pictures.drawn(record, charts()):
        yield picture, picture.read_text("utf-8") if picture.exists() else "", new


def write() -> list[str]:
    """Update what is out of date, and return its names."""
    stale = [(page, new) for page, old, new in rendered() if old != new]
    for page, new in stale:
        page.write_text(new, encoding="utf-8")
    return [page.name for page, _ in stale]


def main() -> int:
    """Write pages and pictures; with `--check` only compare, and return 1 if one is out of date."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.render", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 where a page or picture is stale"
    )
    if not parser.parse_args().check:
        write()
        return 0
    stale = [page.name for page, old, new in rendered() if old != new]
    if stale:
        print(f"{', '.join(stale)}: run `python -m benchmarks.render`", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
