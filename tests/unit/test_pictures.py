"""Tests of the pictures of README.md and docs/: what their files contain, and how bars follow a record."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

import pytest

from benchmarks.pictures import CHARTS, PICTURES, Bar, Chart, Curve, chart, curves, drawn, themed
from benchmarks.record import Record, Result
from benchmarks.render import charts
from benchmarks.rows import ROWS
from benchmarks.timing import Rounds

if TYPE_CHECKING:
    from pathlib import Path

SVG: Final = "{http://www.w3.org/2000/svg}"
WIDE_PX: Final = {"head": 9.7, "name": 8.4, "wrong": 8.4, "code": 8.5}
"""Width of a letter of a wide font, such as DejaVu Sans, by the class of a text; of others, 7.4."""
FILES: Final = sorted(PICTURES.glob("*.svg"))
PAIR: Final = Chart(
    "Seconds: shorter is better", (Bar("", "ours", "mint", "peer", True), Bar("", "its", "mint", "peer"))
)


def a_record(ours: list[float], its: list[float]) -> Record:
    result = Result("mint", "peer", "s", None, "", [Rounds(ours, its)] if ours else [])
    return Record("2026-01-02T03:04:05+00:00", {"python": "CPython 3.11", "cpu": "a processor"}, [result])


def bars(picture: str) -> list[tuple[str, float]]:
    """Return the class and the width of each bar, from the top."""
    rectangles = ET.fromstring(picture).iter(f"{SVG}rect")
    return [(each.attrib["class"], float(each.attrib["width"])) for each in rectangles]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_picture_loads_nothing_and_says_what_it_shows(file: Path) -> None:
    root = ET.fromstring(file.read_text("utf-8"))
    assert root.attrib["role"] == "img"
    assert len(root.findtext(f"{SVG}title") or "") > 20
    text = file.read_text("utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//|url\(|@import|<script|<image|href", text)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_text_of_a_picture_stays_on_its_card_in_a_wide_font(file: Path) -> None:
    root = ET.fromstring(file.read_text("utf-8"))
    width = int(root.attrib["viewBox"].split()[2])
    for text in root.iter(f"{SVG}text"):
        long = len(text.text or "") * WIDE_PX.get(text.get("class", ""), 7.4)
        left = float(text.attrib["x"]) - long * {"middle": 0.5, "end": 1}.get(text.get("text-anchor", ""), 0)
        assert 4 <= left <= width - 4 - long, text.text


def test_each_picture_is_there_for_light_and_for_dark_pages() -> None:
    names = {file.name for file in FILES}
    assert names == {path.name for path, _ in drawn(Record.newest(), charts())}
    assert {name.replace("-light", "-dark") for name in names if "-light" in name} == {
        name for name in names if "-dark" in name
    }


def test_each_picture_is_on_a_page() -> None:
    root = PICTURES.parents[1]
    pages = [root / "README.md", *(page for page in (root / "docs").rglob("*.md") if "_build" not in page.parts)]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    names = {file.stem.removesuffix("-light") for file in PICTURES.rglob("*-light.*")}
    assert [name for name in names if not re.search(rf"{{picture}}.* {name}\b|pictures/(console/)?{name}-", text)] == []


def test_themes_differ_in_colours_alone() -> None:
    one, other = (re.sub(r"#[0-9a-f]{6}", "#", themed(chart(PAIR, a_record([1], [2])), t)) for t in ("light", "dark"))
    assert one == other


def test_bar_is_as_long_as_its_median_and_the_best_comes_first() -> None:
    (its, short), (ours, long) = bars(chart(PAIR, a_record([3, 4, 80], [1, 2, 2])))
    assert (its, ours) == ("bar", "ours")
    assert short / long == pytest.approx(0.5)


def test_longer_bars_come_first_where_longer_is_better() -> None:
    rates = PAIR._replace(title="Requests a second: longer is better")
    assert [kind for kind, _ in bars(chart(rates, a_record([3], [1])))] == ["ours", "bar"]


def test_curve_rises_with_its_figures_and_ends_beside_its_name() -> None:
    picture = curves("Rows", "rows", [Curve("v4", "alarm", [(1, 4), (2, 8)]), Curve("v7", "ids", [(1, 4), (2, 4)])], "")
    rising, flat = re.findall(r'class="(?:alarm|ids)" d="M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)"', picture)
    assert [float(y) for y in (*rising, *flat)] == [153, 56, 153, 153]
    assert "v4 from 4.0 to 8.0; v7 from 4.0 to 4.0" in picture


def test_names_of_curves_do_not_cover_each_other() -> None:
    drawn = [Curve(name, "ids", [(1, 5), (2, 5)]) for name in ("one", "two", "three")]
    picture = ET.fromstring(curves("Rows", "rows", drawn, ""))
    places = [float(each.attrib["y"]) for each in picture.iter(f"{SVG}text") if each.text in {"one", "two", "three"}]
    assert all(below - above >= 18 for above, below in pairwise(places))


def test_rows_that_were_not_measured_have_neither_bars_nor_a_heading() -> None:
    grouped = PAIR._replace(bars=tuple(bar._replace(group="Writes") for bar in PAIR.bars))
    picture = chart(grouped, a_record([], []))
    assert bars(picture) == []
    assert "Writes" not in picture


def test_chart_of_a_row_that_the_record_lacks_is_refused() -> None:
    with pytest.raises(SystemExit, match="the record has no row 'mint' beside 'peer'"):
        chart(PAIR, replace(a_record([1], [2]), results=[]))


def test_charts_show_rows_that_are_measured() -> None:
    measured = {(row.what, row.beside) for row in ROWS}
    assert {(bar.what, bar.beside) for chart in CHARTS.values() for bar in chart.bars} <= measured


def test_title_of_a_chart_has_its_figures() -> None:
    record = Record.newest()
    assert record is not None
    assert re.search(r"sno\.new\(\) \d+; .*uuid\.uuid4\(\) of Python [\d,]+<", chart(CHARTS["one-id"], record))
