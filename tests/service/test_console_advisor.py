"""Tests of the console's advisor over HTTP: layouts and formats for a need, and the IDs of a period as SQL."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.helpers import web
from tests.service.running import Running, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

HOSTILE = "<script>alert(1)</script>\u202e&\"'"


class Advisor(NamedTuple):
    service: Running

    def get(self, **query: Any) -> httpx.Response:
        return web.get(f"{self.service.url}/console/choose", params=query)

    def read(self, **query: Any) -> str:
        """Return the text of the page, without its tags, in one line."""
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.get(**query).text)).split())

    def rows(self, table: str, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(format="json", table=table, **query).json()
        return found


@pytest.fixture(scope="module")
def advisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Advisor]:
    with running(tmp_path_factory.mktemp("advisor")) as service:
        yield Advisor(service)


def test_need_leads_to_a_layout(advisor: Advisor) -> None:
    page = advisor.read(ids_per_second=1000, nodes=100, years=50, js_safe=1)
    assert 'mintage serve --snowflake-layout "time:' in page
    bits = re.findall(r"(\d+) bits:", page)
    assert sum(map(int, bits)) == 53


def test_layout_lasts_for_the_years_from_now(advisor: Advisor) -> None:
    for years in (1, 33):
        page = advisor.read(ids_per_second=1, nodes=2, years=years)
        (end,) = re.findall(r"until (\S+Z),", page)
        last = datetime.fromisoformat(end) - datetime.now(UTC)
        assert last > timedelta(days=365 * years), page
        assert "node , 1 bit:" in page


def test_formats_that_lack_something_say_what(advisor: Advisor) -> None:
    found = {each["format"]: each for each in advisor.rows("formats", nodes=2000)}
    assert (found["snowflake default"]["meets"], found["snowflake default"]["lacks"]) == ("no", "1,024 nodes")
    assert found["sno"]["meets"] == "yes"


def test_format_lasts_as_long_as_its_generators(advisor: Advisor) -> None:
    found = {each["format"]: each for each in advisor.rows("formats", years=300)}
    assert found["ulid"]["ends"] == "2149-05-15T07:35:11.104Z"
    assert [found[name]["meets"] for name in ("ulid", "uuid v4", "uuid v6")] == ["no", "yes", "yes"]


def test_moment_leads_to_the_smallest_and_largest_ids(advisor: Advisor) -> None:
    query = {"from": "2024-05-01", "to": "2024-06-01T00:00:00Z", "dialect": "sqlite", "column": "order.id"}
    found = {each["format"]: each for each in advisor.rows("bounds", **query)}
    assert found["snowflake"] == {
        "format": "snowflake",
        "smallest": "1235017845964800000",
        "largest": "1235017845968994303",
        "condition": '("order"."id" >= 1235017845964800000 AND "order"."id" < 1246251869798400000)',
    }
    assert found["sno"]["smallest"] == "8kkk6x2222222222"


def test_layout_of_ones_own_has_bounds(advisor: Advisor) -> None:
    layout = "time:42 node:10 sequence:11 @1704067200000 1ms"
    first, *_ = advisor.rows("bounds", layout=layout, **{"from": "2024-01-01T00:00:01Z", "to": "2024-02-01"})
    assert (first["format"], first["smallest"]) == (layout, str(1000 << 21))


@pytest.mark.parametrize(
    "query",
    [
        {"ids_per_second": "many", "nodes": "3", "js_safe": "1"},
        {"nodes": "0"},
        {"nodes": str(2**50)},
        {"years": "9" * 21},
        {"from": HOSTILE},
        {"from": "2024-13-01"},
        {"to": "9" * 19},
        {"layout": HOSTILE},
        {"layout": "time:64 node:10 @0 1ms"},
    ],
)
def test_wrong_answers_of_a_form_are_told_beside_it(advisor: Advisor, query: dict[str, str]) -> None:
    page = advisor.get(**query)
    assert page.status_code == 200
    assert 'role="alert"' in page.text
    assert "<script>alert" not in page.text


def test_hostile_column_is_quoted_and_shown_as_text(advisor: Advisor) -> None:
    page = advisor.get(column=HOSTILE)
    assert "<script>alert" not in page.text
    rows = advisor.rows("bounds", column='a"b')
    assert '"a""b"' in rows[1]["condition"]


@pytest.mark.parametrize("column", ["id\u202e", "i\u200bd", "id\u2028", "\x1bid"])
def test_column_with_marks_that_nobody_sees_is_refused(advisor: Advisor, column: str) -> None:
    page = advisor.get(column=column).text
    assert "has characters that cannot be seen" in page
