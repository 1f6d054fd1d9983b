"""Renders the newest record into docs/performance.md, between two markers."""

import argparse
import sys
from pathlib import Path

from benchmarks.record import Record

DOCUMENT = Path(__file__).parent.parent / "docs" / "performance.md"
# Fewer and narrower than in the terminal: a page has less room.
COLUMNS = ("what", "figure", "beside", "ratio", "bar: met")
BEGIN, END = "<!-- record: begin -->", "<!-- record: end -->"


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def section(record: Record | None) -> str:
    """The facts, the table and its notes in Markdown."""
    if record is None:
        return "No record has been made yet: `make bench` makes one."
    facts = record.facts
    measured = {**facts["packages"], **facts.get("programs", {})}
    versions = ", ".join(f"{name} {version}" for name, version in measured.items() if version)
    noted = [result for result in record.results if result.note]
    notes = {note: number for number, note in enumerate(dict.fromkeys(result.note for result in noted), start=1)}
    host = ", ".join(str(facts[fact]) for fact in ("cpu", "kernel", "python", "rustc", "go") if facts[fact])
    lines = [
        f"Measured on {record.date[:10]}: {host}, {facts['cores']} cores; {versions}; commit {facts['commit']}.",
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


def rendered(document: str) -> str:
    """The document with the newest record's section between the markers."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{DOCUMENT.name} lacks the markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{section(Record.newest())}\n\n{END}{after}"


def write() -> Path:
    """Bring the document up to date."""
    DOCUMENT.write_text(rendered(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    return DOCUMENT


def main() -> int:
    """Write, or with `--check` only compare: 1 where the document does not match the newest record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.render", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 where the document is stale")
    if not parser.parse_args().check:
        write()
        return 0
    document = DOCUMENT.read_text(encoding="utf-8")
    if document == rendered(document):
        return 0
    print(f"{DOCUMENT.name} does not match the newest record: run `python -m benchmarks.render`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
