"""Tests of the console's tables and texts: sorting, searching, paging, files, and what hostile names become."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from mintage.errors import RequestError
from mintage.server.console import text
from mintage.server.console.frame import TEMPLATES
from mintage.server.console.pages.health import empty_first
from mintage.server.console.pages.use import sparkline
from mintage.server.console.query import Query
from mintage.server.console.table import Column, Table
from mintage.server.core.usage import Used
from tests.helpers.cases import each_case


class Row(NamedTuple):
    name: str
    number: int | None = 0


COLUMNS = (
    Column("name", "Name", lambda each: each.name, link=lambda each: f"/console/x/{each.number}"),
    Column("count", "Count", lambda each: each.number, "number"),
)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='",
    "\u202egnp.exe\u2066",
    "nul\x00\x1b[31m\r\n\u2028",
    "{{ 7 * 7 }}",
    "x" * 4096,
    "\ud800",
)


def table(query: str = "", rows: Any = (), **how: Any) -> Table:
    return Table(Query("/console/test", query.encode()), "Rows", COLUMNS, rows, **how)


def drawn(of: Table) -> str:
    """Return the HTML of a table."""
    return TEMPLATES.from_string('{% from "table.html" import draw %}{{ draw(table) }}').render(table=of)


def test_search_drops_the_notice_of_an_action() -> None:
    assert table("done=retire&sort=name&page=2", [Row("a")]).others() == {"sort": "name"}


def test_search_finds_a_time_as_pages_and_as_files_write_it() -> None:
    column = Column("at", "At", lambda each: each, "time")
    for words, found in (("2026-01-02 03:04", 2), ("2026-01-02 03:04:05z", 2), ("2026-01-02t03:04:05.678z", 1)):
        rows = [1767323045678, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), None]
        query = Query("/console/test", urlencode({"q": words}).encode())
        assert len(Table(query, "Rows", [column], rows).rows) == found


def test_rows_are_sorted_and_unknown_values_come_last() -> None:
    rows = [Row("b", 2), Row("a", None), Row("c", 1)]
    assert [each.name for each in table("sort=count", rows).rows] == ["c", "b", "a"]
    assert [each.name for each in table("sort=-count", rows).rows] == ["b", "c", "a"]
    assert [each.name for each in table("", rows).rows] == ["b", "a", "c"]
    assert [each.name for each in table("", rows, sort="name").rows] == ["a", "b", "c"]


def test_search_finds_texts_and_numbers_whatever_the_case() -> None:
    rows = [Row("Orders", 17), Row("users", 3)]
    assert table("q=oRD", rows).rows == [rows[0]]
    assert table("q=17", rows).rows == [rows[0]]
    assert table("q=nothing", rows).rows == []


def test_pages_have_each_row_once() -> None:
    rows = [Row(str(each), each) for each in range(95)]
    found, url = [], "/console/test"
    while url:
        page = table(url.partition("?")[2], rows)
        found += [row.number for row in page.page]
        assert page.range.endswith(" of 95")
        url = page.next_url or ""
    assert found == list(range(95))


def test_links_keep_the_other_parameters() -> None:
    rows = [Row(str(each)) for each in range(100)]
    found = table("t.sort=name&t.page=2&t.q=1&kind=x", rows, name="t")
    assert next(found.headings)[1] == "/console/test?t.sort=-name&t.q=1&kind=x"
    assert found.file_url("csv") == "/console/test?t.sort=name&t.q=1&kind=x&format=csv&table=t"
    assert found.others() == {"t.sort": "name", "kind": "x"}


def test_remedy_at_the_end_of_a_reason_is_shown() -> None:
    assert "say so, or wait" in drawn(table("", [Row("the pool is in quarantine " * 10 + "say so, or wait")]))
    assert "too long" not in drawn(table("", [Row("x" * 400 + "too long")]))


@each_case("hostile", HOSTILE)
def test_hostile_name_is_text_on_a_page(hostile: str) -> None:
    html = drawn(table("", [Row(hostile)] * 11))
    assert "<script" not in html
    assert not {"\u202e", "\u2066", "\u2028", "\x00", "\x1b", "\ud800", "49"} & set(html)
    assert " onmouseover" not in html.replace("&#39; onmouseover", "")
    assert len(html) < 20_000


def test_words_in_backticks_are_code_and_the_rest_is_text() -> None:
    assert text.prose("Wait `retry_after_ms` <b>`") == "Wait <code>retry_after_ms</code> &lt;b&gt;`"


def test_text_that_a_spreadsheet_would_compute_is_defused() -> None:
    rows = [Row(name, -1) for name in ("=1+1", "+1", "-1", "@x", "\tx", "\rx", "＝1+1", "＋1", "－1", "＠x", "plain")]
    found = list(csv.reader(io.StringIO(bytes(table("", rows).file("csv").body).decode())))
    assert [row[0] for row in found[1:]] == [*(f"'{row.name}" for row in rows[:-1]), "plain"]
    assert {row[1] for row in found[1:]} == {"-1"}


def test_files_have_all_rows_and_whole_texts() -> None:
    rows = [Row("x" * 4096, 2**63 - 1)] * 120
    found = json.loads(bytes(table("size=10", rows).file("json").body))
    assert found == [{"name": "x" * 4096, "count": 2**63 - 1}] * 120


def test_number_of_64_bits_is_text_in_files_and_sorted_as_a_number() -> None:
    columns = (Column("count", "Count", lambda each: each.number, "big"),)
    rows = [Row("a", 2**63 - 1), Row("b", 9), Row("c", 10)]
    shown = Table(Query("/console/test", b"sort=count"), "Rows", columns, rows)
    assert json.loads(bytes(shown.file("json").body)) == [{"count": "9"}, {"count": "10"}, {"count": str(2**63 - 1)}]


def test_link_of_a_page_after_an_action_leads_to_the_page() -> None:
    assert Query("/console/test", b"done=retire&q=a").link(page=2) == "/console/test?q=a&page=2"


@pytest.mark.parametrize("given", ["0", "-1", "1001", "1.5", "", "١", "1e3", "9" * 5000, "0" * 24 + "1000000"])
def test_size_outside_its_range_is_refused(given: str) -> None:
    from urllib.parse import quote

    if given == "":
        assert table("size=").page == ()
        return
    with pytest.raises(RequestError, match=r"size .* is not a whole number in 1\.\.1000|may have 4096"):
        table(f"size={quote(given)}")


def test_parameter_that_no_page_reads_is_refused() -> None:
    query = Query("/console/test", b"sort=name&other=1")
    Table(query, "Rows", COLUMNS, ())
    with pytest.raises(RequestError, match="unknown parameter 'other'"):
        query.check()


# --- texts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (1_000, "1 second"),
        (1_500, "1,500 milliseconds"),
        (30_000, "30 seconds"),
        (119_000, "119 seconds"),
        (129_600_000, "36 hours"),
        (604_800_000, "7 days"),
    ],
)
def test_setting_is_shown_exactly(ms: int, words: str) -> None:
    assert TEMPLATES.from_string("{{ ms|setting }}").render(ms=ms) == words


def test_instants_are_in_utc_and_relative() -> None:
    moment = TEMPLATES.from_string("{{ value|moment }}").render
    html = moment(value=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert '<time datetime="2026-01-02T03:04:05.000Z">2026-01-02 03:04:05Z</time>' in html
    assert moment(value=1767323045000) == html
    assert moment(value=None) == moment(value=2**62) == "–"


def test_times_on_a_page_of_the_store_are_relative_to_its_clock() -> None:
    seen = "{% from 'table.html' import text with context %}{{ text(600_000, 'time') }}"
    assert "in 5 minutes" in TEMPLATES.from_string(seen).render(now_ms=300_000)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "now"), (61, "1 minute ago"), (-7300, "in 2 hours"), (1e6, "11 days ago"), (1e9, "31 years ago")],
)
def test_relative_time_is_in_its_largest_unit(seconds: float, expected: str) -> None:
    assert text.relative(seconds) == expected


def test_template_with_an_unknown_variable_fails() -> None:
    with pytest.raises(UndefinedError):
        TEMPLATES.from_string("{{ nothing }}").render()


def test_markup_is_kept_and_text_is_not() -> None:
    drawn = TEMPLATES.from_string("{{ a }} {{ b }} {{ c }}").render(a=Markup("<b>"), b="<b>", c=None)
    assert drawn == "<b> &lt;b&gt; –"


@pytest.mark.parametrize("values", [[0, 0], [3, 1, 2]])
def test_sparkline_is_a_picture_with_a_label(values: list[int]) -> None:
    found = sparkline(values, "<label>")
    assert 'aria-label="&lt;label&gt;"' in found
    assert "nan" not in found


# --- health -------------------------------------------------------------------------------------------------------


def empty_of(**namespaces: tuple[float, int, int]) -> list[str]:
    """Return these namespaces by when they are empty: what is buffered, was taken before, and in five minutes."""
    buffered = {name: level for name, (level, _, _) in namespaces.items()}
    taken = {(name, "key"): Used(hour=(*[0] * 9, before, 0, now)) for name, (_, before, now) in namespaces.items()}
    usage = SimpleNamespace(read=lambda _: taken)
    service: Any = SimpleNamespace(metrics=SimpleNamespace(sums=lambda *_: buffered, usage=usage))
    found = empty_first(service, datetime.now(UTC) - timedelta(seconds=100))
    assert all(at - datetime.now(UTC) < timedelta(seconds=51) for at, _ in found[:1])
    return [name for _, name in found]


def test_buffers_last_until_the_first_of_them_is_empty() -> None:
    assert empty_of(users=(100.0, 0, 10), orders=(500.0, 0, 1000), idle=(1.0, 0, 0)) == ["orders", "users"]
    assert empty_of(idle=(1.0, 0, 0)) == []


def test_namespace_that_ended_before_the_outage_hides_no_other() -> None:
    assert empty_of(before=(0.0, 1000, 0), orders=(500.0, 0, 1000)) == ["orders"]
    assert empty_of(now=(0.0, 0, 1000), orders=(500.0, 0, 1000)) == ["now", "orders"]
