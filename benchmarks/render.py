"""Render the newest record and the table of the family into their pages, between two markers."""

import argparse
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from benchmarks import family
from benchmarks.record import Record, Result

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
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
    """Yield the number of bars that were missed, and a line for each of them."""
    judged = [each for each in results if each.met is not None]
    missed = [each for each in judged if not each.met]
    yield f"{len(missed) or 'None'} of {len(judged)} bars {'is' if len(missed) < 2 else 'are'} missed."
    yield ""
    for each in missed:
        what, figure, beside, its_figure, ratio, bar, _ = each.cells()
        judged_by = f" The ratio is {ratio.partition(' ')[0]}." if each.bar and each.bar.of == "ratio" else ""
        yield f"- **{what}**: {figure}; beside it {beside}: {its_figure}.{judged_by} The bar is {bar}."


def section(record: Record | None) -> str:
    """Return the first figures, the missed bars, the table of all rows with its notes, and the versions."""
    if record is None:
        return "No record has been made yet: `make bench` makes one."
    facts = record.facts
    measured = {**facts["packages"], **facts.get("programs", {})}
    versions = ", ".join(
        [f"{name} {version}" for name, version in measured.items() if version]
        + [facts[fact] for fact in ("rustc", "go") if facts[fact]]
    )
    noted = [result for result in record.results if result.note]
    notes = {note: number for number, note in enumerate(dict.fromkeys(result.note for result in noted), start=1)}
    again = "; ".join(facts.get("measured_again", ()))
    host = ", ".join(str(facts[fact]) for fact in ("cpu", "kernel", "python") if facts[fact])
    first = [each for asked in FIRST for each in record.results if (each.what, each.beside) == asked]
    marked = (_row(each, f" ({notes[each.note]})" if each.note else "") for each in record.results)
    lines = [
        f"Measured on {record.date[:10]} on {host}, {facts['cores']} cores.",
        "",
        *_table(map(_row, first)),
        "",
        *_misses(record.results),
        "",
        "### All rows",
        "",
        *_table(marked),
        "",
        *(f"{number}. {note}" for note, number in notes.items()),
        "",
        f"Versions: {versions}; commit {facts['commit']}."
        + (f" Measured again right after, on the same commit: {again}." if again else ""),
    ]
    return "\n".join(lines)


SECTIONS: tuple[tuple[str, str, Callable[[Record | None], str]], ...] = (
    ("docs/performance.md", "record", section),
    ("README.md", "family", partial(family.table, f"{PROJECT['urls']['Documentation']}schemes/{{}}.html")),
    ("docs/how-to/choose.md", "family", partial(family.table, "../schemes/{}.md")),
)
"""A page, the name of its markers, and the content between them."""


def rendered() -> Iterator[tuple[Path, str, str]]:
    """Return each page with its current and its new text."""
    record = Record.newest()
    for name, marker, section_of in SECTIONS:
        page = ROOT / name
        document = page.read_text(encoding="utf-8")
        before, begin, rest = document.partition(f"<!-- {marker}: begin -->")
        _, end, after = rest.partition(f"<!-- {marker}: end -->")
        if not begin or not end:
            raise SystemExit(f"{name} lacks the markers of {marker}")
        yield page, document, f"{before}{begin}\n\n{section_of(record)}\n\n{end}{after}"


def write() -> list[str]:
    """Update the pages, and return their names."""
    for page, _, new in rendered():
        page.write_text(new, encoding="utf-8")
    return [name for name, *_ in SECTIONS]


def main() -> int:
    """Write the pages; with `--check` only compare, and return 1 if a page is out of date."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.render", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 where a page is stale")
    if not parser.parse_args().check:
        write()
        return 0
    stale = [page.name for page, old, new in rendered() if old != new]
    if stale:
        print(f"{', '.join(stale)}: run `python -m benchmarks.render`", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
