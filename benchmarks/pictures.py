"""Draw the pictures of README.md and docs/: bars and curves from records, and the drawings of docs/pictures/drawings.

Each picture is a file for light pages and one for dark pages. A page shows it by `<img>`, where no style sheet, font or
script of the page reaches it, so each file has the whole style. No library draws them: one that writes text as text, in
two themes and without a script, would need more lines to configure than the bars and curves need.
"""

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import groupby
from math import ceil, floor, log10
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

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


class Shown(NamedTuple):
    """One bar of a drawing, with its figure."""

    group: str
    label: str
    figure: float
    is_ours: bool


def place_of(facts: Mapping[str, Any], date: str) -> str:
    """Return the interpreter, the machine and the day of a record."""
    return f"{facts['python']}, {facts['cpu']}, {date[:10]}"


def framed(title: str, said: Iterable[str], height: int, lines: Iterable[str]) -> str:
    """Return a drawing with its title for readers who see no pictures."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    text = f"  <title>{escape(f'{title}. ' + '; '.join(said))}</title>"
    heading = f'<text class="head" x="{_MARGIN}" y="34">{escape(title)}</text>'
    return "\n".join([head, text, *(f"  {line}" for line in (heading, *lines)), "</svg>", ""])


def bars(title: str, shown: Iterable[Shown], place: str) -> str:
    """Return a drawing of bars, the best of each group first."""
    lines, said = [], []
    y = 54
    is_less = "shorter" in title
    for group, each in groupby(shown, key=lambda bar: bar.group):
        found = sorted(each, key=lambda bar: bar.figure if is_less else -bar.figure)
        longest = max(bar.figure for bar in found)
        if group:
            lines.append(f'<text class="mute" x="{_MARGIN}" y="{y + 12}">{escape(group)}</text>')
            y += 22
        for bar in found:
            width = max(1, bar.figure / longest * (WIDTH - 2 * _MARGIN - _LABELS - _FIGURES))
            kind, label = ("ours", "name") if bar.is_ours else ("bar", "label")
            left = _MARGIN + _LABELS
            lines += [
                f'<text class="{label}" x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(bar.label)}</text>',
                f'<rect class="{kind}" x="{left}" y="{y}" width="{width:.1f}" height="{_THICK}" rx="2"/>',
                f'<text class="{label}" x="{left + width + 6:.1f}" y="{y + 13}">{_words(bar.figure)}</text>',
            ]
            said.append(f"{group}{': ' if group else ''}{bar.label} {_words(bar.figure)}")
            y += _ROW
        y += 8 if group else 0
    lines.append(f'<text class="mute" x="{_MARGIN}" y="{y + 14}">{escape(place)}</text>')
    return framed(title, said, y + 32, lines)


def chart(chart: Chart, record: Record) -> str:
    """Return a drawing of a chart. A bar that was not measured is left out."""
    found = ((bar, _figure(bar, record.results)) for bar in chart.bars)
    shown = [Shown(bar.group, bar.label, figure, bar.is_ours) for bar, figure in found if figure is not None]
    return bars(chart.title, shown, place_of(record.facts, record.date))


class Curve(NamedTuple):
    """One line of a drawing, by the class of its stroke."""

    label: str
    stroke: str
    points: list[tuple[float, float]]


_TOP, _BOTTOM, _LEFT, _RIGHT = 56, 250, 62, 126


def _round_up(figure: float) -> float:
    """Return the next number of one digit and zeros, for the end of an axis."""
    step: float = 10.0 ** floor(log10(figure))
    return ceil(figure / step) * step


def _mark(figure: float) -> str:
    return _words(figure).removesuffix(".0")


def curves(title: str, across: str, drawn: list[Curve], place: str, begin: str = "0") -> str:
    """Return a drawing of lines from `begin` to what `across` names, each with its name at its end."""
    widest = max(x for curve in drawn for x, _ in curve.points)
    highest = _round_up(max(y for curve in drawn for _, y in curve.points))

    def at(point: tuple[float, float]) -> tuple[float, float]:
        x, y = point
        return _LEFT + x / widest * (WIDTH - _LEFT - _RIGHT), _BOTTOM - y / highest * (_BOTTOM - _TOP)

    right = WIDTH - _RIGHT
    lines = []
    for share in (0, 0.5, 1):
        _, y = at((0, highest * share))
        lines += [
            f'<path class="frame" d="M{_LEFT} {y:.0f}H{right}"/>',
            f'<text class="mute" x="{_LEFT - 8}" y="{y + 5:.0f}" text-anchor="end">{_mark(highest * share)}</text>',
        ]
    said, free = [], float(_TOP - 20)
    for curve in sorted(drawn, key=lambda curve: -curve.points[-1][1]):
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(at, curve.points))
        free = max(free + 18, at(curve.points[-1])[1] + 5)
        lines += [
            f'<path class="{curve.stroke}" d="M{path}"/>',
            f'<text x="{right + 8}" y="{free:.0f}">{escape(curve.label)}</text>',
        ]
        said.append(f"{curve.label} from {_words(curve.points[0][1])} to {_words(curve.points[-1][1])}")
    lines += [
        f'<text class="mute" x="{_LEFT}" y="{_BOTTOM + 22}">{begin}</text>',
        f'<text class="mute" x="{right}" y="{_BOTTOM + 22}" text-anchor="end">{escape(across)}</text>',
        f'<text class="mute" x="{_MARGIN}" y="{_BOTTOM + 46}">{escape(place)}</text>',
    ]
    return framed(title, said, _BOTTOM + 64, lines)


def themed(drawing: str, theme: str) -> str:
    """Return a drawing with the style and the background of a theme."""
    head, end, body = drawing.partition("</title>\n")
    _, _, width, height = head.partition('viewBox="')[2].partition('"')[0].split()
    style = STYLE.format(**THEMES[theme]).replace("\n", "\n    ").strip()
    card = f'<rect class="card" x=".5" y=".5" width="{int(width) - 1}" height="{int(height) - 1}" rx="6"/>'
    return f"{head}{end}  <style>\n    {style}\n  </style>\n  {card}\n{body}"


def drawn(record: Record | None, others: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield each file of a picture, and its text. `others` are drawings of other records by their names."""
    drawings = {path.stem: path.read_text("utf-8") for path in sorted((PICTURES / "drawings").glob("*.svg"))}
    if record is not None:
        drawings |= {name: chart(each, record) for name, each in CHARTS.items()}
    for name, drawing in {**drawings, **others}.items():
        for theme in THEMES:
            yield PICTURES / f"{name}-{theme}.svg", themed(drawing, theme)
