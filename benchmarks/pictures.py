"""Draw the pictures of README.md and of docs/: bar charts from a record, and the drawings of docs/pictures/drawings.

Each picture is a file for light pages and one for dark pages. A page shows it by `<img>`, where no style sheet, font or
script of the page reaches it, so each file has the whole style. No library draws the bars: one that writes text as
text, in two themes and without a script, would need more lines to configure than the bars need.
"""

from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.record import Record, Result

PICTURES: Final = Path(__file__).parent.parent / "docs" / "pictures"

THEMES: Final = {
    "light": {
        "card": "#ffffff", "edge": "#d1d9e0", "ink": "#1f2328", "mute": "#59636e", "off": "#8c959f",
        "a": "#2a6fdb", "b": "#c2701a", "c": "#2d8a4e", "bad": "#c62828",
    },
    "dark": {
        "card": "#0d1117", "edge": "#3d444d", "ink": "#e6edf3", "mute": "#9ea7b3", "off": "#656c76",
        "a": "#5b9dff", "b": "#f0a045", "c": "#4ac26b", "bad": "#ff7b72",
    },
}  # fmt: skip
STYLE: Final = """\
text{{font:14px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:{ink}}}
.head{{font-size:16px;font-weight:600}}.name{{font-weight:600}}.code{{font-family:ui-monospace,Menlo,Consolas,monospace}}
.mute{{fill:{mute}}}.wrong{{fill:{bad};font-weight:600}}
.card{{fill:{card};stroke:{edge}}}.frame{{fill:none;stroke:{edge}}}
.a,.b,.c,.bad,.off,.used{{fill-opacity:.22}}.used{{fill:none;stroke:{off};stroke-dasharray:4}}
.a{{fill:{a};stroke:{a}}}.b{{fill:{b};stroke:{b}}}.c{{fill:{c};stroke:{c}}}.bad{{fill:{bad};stroke:{bad}}}
.off{{fill:{off};stroke:{off}}}.bar{{fill:{off}}}.ours{{fill:{a}}}
.axis,.arrow,.line,.ids,.alarm{{fill:none;stroke:{mute};stroke-width:1.5}}.ids{{stroke:{a};stroke-width:2}}
.line{{stroke:{ink}}}.alarm{{stroke:{bad};stroke-width:2}}
"""


class Bar(NamedTuple):
    """One bar of a chart: the figure of one side of a row of the record."""

    group: str
    """The heading of the bars that share a scale; "" if all do."""
    label: str
    what: str
    beside: str
    is_ours: bool = False


class Chart(NamedTuple):
    """A chart: its title, which says what is better, and its bars."""

    title: str
    bars: tuple[Bar, ...]


UUID7: Final = "c_uuid_v7.uuid7()"
SNO: Final = "sno.Generator.new()"
IN_MEMORY: Final = "Redis without persistence"
DURABLE: Final = "Redis, appendfsync always"
CHARTS: Final = {
    "one-id": Chart(
        "Nanoseconds an ID: shorter is better",
        (
            Bar("", "sno.new()", "sno.new()", UUID7, True),
            Bar("", "uuid.new(), version 7", "uuid.new(), version 7", UUID7, True),
            Bar("", "snowflake", "snowflake.Generator.new()", UUID7, True),
            Bar("", UUID7, SNO, UUID7),
            Bar("", "ulid_transform", SNO, "ulid_transform.ulid_now(), text"),
            Bar("", "uuid_utils.uuid7()", SNO, "uuid_utils.uuid7()"),
            Bar("", "snowflake-id", "snowflake.Generator.new()", "snowflake.SnowflakeGenerator of snowflake-id"),
            Bar("", "python-ulid", SNO, "ulid.ULID()"),
            Bar("", "uuid.uuid4() of Python", SNO, "uuid.uuid4()"),
        ),
    ),
    "text": Chart(
        "Nanoseconds a text: shorter is better",
        (
            Bar("ID to text", "str(id) of sno", "str(id) of sno", "str() of a uuid_utils.UUID", True),
            Bar("ID to text", "str(uuid_utils.UUID)", "str(id) of sno", "str() of a uuid_utils.UUID"),
            Bar("Text to ID", "sno.ID.parse(text)", "sno.ID.parse(text)", "uuid_utils.UUID(text)", True),
            Bar("Text to ID", "uuid_utils.UUID(text)", "sno.ID.parse(text)", "uuid_utils.UUID(text)"),
        ),
    ),
    "throughput": Chart(
        "Thousand requests a second: longer is better",
        (
            Bar("POST /alloc", "mintage serve", "POST /alloc", "idalloc that logs errors only", True),
            Bar("POST /alloc", "a constant by Go", "POST /alloc", "a constant by Go's net/http"),
            Bar("POST /alloc", "idalloc", "POST /alloc", "idalloc that logs errors only"),
            *(
                Bar(f"INCR, {pipeline} at a time", label, f"INCR, pipeline {pipeline}", beside, is_ours)
                for pipeline in (64, 16)
                for label, beside, is_ours in (
                    ("mintage serve", IN_MEMORY, True),
                    ("Redis in memory", IN_MEMORY, False),
                    ("Redis, durable", DURABLE, False),
                )
            ),
            Bar("INCR, one client", "mintage serve", "INCR, pipeline 1, one connection", DURABLE, True),
            Bar("INCR, one client", "Redis, durable", "INCR, pipeline 1, one connection", DURABLE),
        ),
    ),
    "process": Chart(
        "A process of the service: shorter is better",
        tuple(
            Bar(f"{words}, {unit}", label, f"mintage serve{on}: {figure}", beside, is_ours)
            for words, unit, figure in (
                ("Idle memory", "MB", "idle memory (RSS)"),
                ("Start to first integer", "ms", "start to first integer"),
            )
            for on, name, beside in (
                ("", "mintage on SQLite", "redis-server"),
                (" on the pair", "mintage on the pair", "idalloc"),
            )
            for label, is_ours in ((name, True), (beside, False))
        ),
    ),
}

WIDTH: Final = 480
_MARGIN, _LABELS, _FIGURES, _ROW, _THICK = 18, 182, 60, 26, 16


def _figure(bar: Bar, results: list[Result]) -> float | None:
    for each in results:
        if (each.what, each.beside) == (bar.what, bar.beside):
            figures = each.figures if bar.is_ours else each.beside_figures
            return median(figures) if figures else None
    raise SystemExit(f"the record has no row {bar.what!r} beside {bar.beside!r}, which a chart shows")


def _words(figure: float) -> str:
    return f"{figure:,.{1 if figure < 10 else 0}f}"


def chart(chart: Chart, record: Record) -> str:
    """Return a drawing of the bars, the best of each group first. A bar that was not measured is left out."""
    lines = [f'<text class="head" x="{_MARGIN}" y="34">{escape(chart.title)}</text>']
    said = []
    y = 54
    is_less = "shorter" in chart.title
    for group, bars in groupby(chart.bars, key=lambda bar: bar.group):
        found = [(figure, bar) for bar in bars if (figure := _figure(bar, record.results)) is not None]
        found.sort(key=lambda pair: pair[0] if is_less else -pair[0])
        if not found:
            continue
        if group:
            lines.append(f'<text class="mute" x="{_MARGIN}" y="{y + 12}">{escape(group)}</text>')
            y += 22
        for figure, bar in found:
            width = max(1, figure / max(each for each, _ in found) * (WIDTH - 2 * _MARGIN - _LABELS - _FIGURES))
            kind, label = ("ours", "name") if bar.is_ours else ("bar", "label")
            left = _MARGIN + _LABELS
            lines += [
                f'<text class="{label}" x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(bar.label)}</text>',
                f'<rect class="{kind}" x="{left}" y="{y}" width="{width:.1f}" height="{_THICK}" rx="2"/>',
                f'<text class="{label}" x="{left + width + 6:.1f}" y="{y + 13}">{_words(figure)}</text>',
            ]
            said.append(f"{group}{': ' if group else ''}{bar.label} {_words(figure)}")
            y += _ROW
        y += 8 if group else 0
    facts = record.facts
    place = f"{facts['python']}, {facts['cpu']}, {record.date[:10]}"
    lines.append(f'<text class="mute" x="{_MARGIN}" y="{y + 14}">{escape(place)}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 32}" role="img">'
    title = f"  <title>{escape(f'{chart.title}. ' + '; '.join(said))}</title>"
    return "\n".join([head, title, *(f"  {line}" for line in lines), "</svg>", ""])


def themed(drawing: str, theme: str) -> str:
    """Return a drawing with the style and the background of a theme."""
    head, end, body = drawing.partition("</title>\n")
    _, _, width, height = head.partition('viewBox="')[2].partition('"')[0].split()
    style = STYLE.format(**THEMES[theme]).replace("\n", "\n    ").strip()
    card = f'<rect class="card" x=".5" y=".5" width="{int(width) - 1}" height="{int(height) - 1}" rx="6"/>'
    return f"{head}{end}  <style>\n    {style}\n  </style>\n  {card}\n{body}"


def drawn(record: Record | None) -> Iterator[tuple[Path, str]]:
    """Yield each file of a picture, and its text."""
    drawings = {path.stem: path.read_text("utf-8") for path in sorted((PICTURES / "drawings").glob("*.svg"))}
    if record is not None:
        drawings |= {name: chart(each, record) for name, each in CHARTS.items()}
    for name, drawing in drawings.items():
        for theme in THEMES:
            yield PICTURES / f"{name}-{theme}.svg", themed(drawing, theme)
