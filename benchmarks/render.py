"""Render the newest record and the table of the family into their pages, between two markers."""

import argparse
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks import family
from benchmarks.record import Record

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Fewer and narrower than in the terminal: a page has less room.
COLUMNS = ("what", "figure", "beside", "ratio", "bar: met")


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def section(record: Record | None) -> str:
    """Return the facts, the table and its notes in Markdown."""
    if record is None:
        return "No record has been made yet: `make bench` makes one."
    facts = record.facts
    measured = {**facts["packages"], **facts.get("programs", {})}
    versions = ", ".join(f"{name} {version}" for name, version in measured.items() if version)
    noted = [result for result in record.results if result.note]
    notes = {note: number for number, note in enumerate(dict.fromkeys(result.note for result in noted), start=1)}
    again = "; ".join(facts.get("measured_again", ()))
    host = ", ".join(str(facts[fact]) for fact in ("cpu", "kernel", "python", "rustc", "go") if facts[fact])
    lines = [
        f"Measured on {record.date[:10]}: {host}, {facts['cores']} cores; {versions}; commit {facts['commit']}."
        + (f" Measured again right after, on the same commit: {again}." if again else ""),
        "",
        _line(COLUMNS),
        "|" + " --- |" * len(COLUMNS),
    ]
    for result in record.results:
        what, figure, beside, its_figure, ratio, bar, met = result.cells()
        ratio = ratio.partition(" ")[0]  # the extremes are in the record
        mark = f" ({notes[result.note]})" if result.note else ""
        against = f"{beside}: {its_figure}"
        lines.append(_line((what + mark, figure, against, ratio, bar if met == "–" else f"{bar}: {met}")))
    lines += ["", *(f"{number}. {note}" for note, number in notes.items())]
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
