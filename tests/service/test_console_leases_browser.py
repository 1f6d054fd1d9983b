"""Tests of the console's pages in a real browser: who holds node 17, who minted this ID, what should I choose."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mintage import ulid
from mintage.store import Store, open_store
from tests.helpers.browser import chromium, opened, violations
from tests.servers.postgresql import PostgreSQL
from tests.service.running import Running, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from tests.servers.fixtures import Servers

LEASES = 10_000
PATHS = (
    "pools",
    "pools/sno",
    "pools/sno?first=0&last=63&q=web-5.",
    "pools/sno/17",
    "who?id=454947766275222906",
    "choose?nodes=0",
)


class Fleet(NamedTuple):
    service: Running
    store: Store

    def url(self, path: str = "") -> str:
        return f"{self.service.url}/console/{path}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def fleet(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Run a service on PostgreSQL, with a pool of 65,536 numbers of which 10,000 are held."""
    database = servers.get(PostgreSQL)
    with open_store(database.url) as store, running(tmp_path_factory.mktemp("fleet"), store=database.url) as service:
        store.create_pool("sno", layout="sno/1", span_ms=86_400_000)
        now_ms, holder = store.now_ms(), "web-0.example.net:4711:1732240000:1:0.1.0"
        store.acquire("sno", nodes=range(1), layout="sno/1", holder=holder, now_ms=now_ms, span_ms=86_400_000)
        copy(database)
        yield Fleet(service, store)


def copy(database: PostgreSQL) -> None:
    """Copy the record of node 0 to the numbers below 10,000, as that many acquires would take half a minute."""
    listed = database.sql(
        "SELECT string_agg(column_name, ', ') FROM information_schema.columns WHERE table_name = 'mintage_node'"
    )
    columns = next(line.strip() for line in listed.splitlines() if "holder" in line)
    values = re.sub(r"\bholder\b", "'web-' || n % 97 || '.example.net:' || n || ':1732240000:1:0.1.0'", columns)
    values = re.sub(r"\bnode\b", "n", values)
    database.sql(
        f"INSERT INTO mintage_node ({columns}) SELECT {values} FROM mintage_node, generate_series(1, {LEASES - 1}) AS n"
    )


def test_clicks_lead_to_the_holder_of_a_number(browser: Browser, fleet: Fleet) -> None:
    with opened(browser) as page:
        page.goto(fleet.url())
        page.get_by_role("link", name="Pools", exact=True).click()
        page.get_by_role("row", name="sno").get_by_text("10,000").nth(1).wait_for()
        page.get_by_role("link", name="sno", exact=True).click()
        page.locator("a", has=page.locator("title", has_text="0 to 63: 64 held")).click()
        page.locator("a", has=page.locator("title", has_text="17: held")).click()
        page.get_by_text("process 17 on web-17.example.net").wait_for()
        page.get_by_text("fence", exact=False).first.wait_for()
        page.wait_for_load_state()
        assert page.get_by_role("table", name="Windows").get_by_role("row").count() == 2


def test_search_leads_to_the_numbers_of_a_host(browser: Browser, fleet: Fleet) -> None:
    with opened(browser) as page:
        page.goto(fleet.url("pools/sno"))
        page.get_by_label("Contains").fill("web-5.")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("table", name="Holders").get_by_text("web-5.example.net").first.wait_for()
        page.wait_for_load_state()
        assert page.locator(".found").count() == len(range(5, LEASES, 97))
        page.get_by_label("Go to a number").fill("9999")
        page.get_by_role("button", name="Show its windows").click()
        page.get_by_role("heading", name="Node 9,999 of sno").wait_for()


def test_pasted_id_leads_to_its_process_and_window(browser: Browser, fleet: Fleet) -> None:
    with ulid.Generator(store=fleet.store) as generator, opened(browser) as page:
        minted = str(generator.new())
        page.goto(fleet.url())
        page.get_by_role("link", name="Who", exact=True).click()
        page.get_by_label("An ID of any format").fill(minted)
        page.get_by_role("button", name="Find").click()
        page.get_by_text("It has node 0 of pool ulid").wait_for()
        page.get_by_role("img", name="Bits of the ID as ulid").wait_for()
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 718, "height": 1000})  # A4
        assert page.evaluate("document.documentElement.scrollWidth") == 718
        page.emulate_media(media="screen")
        page.get_by_role("link", name="The windows of node 0").click()
        page.locator("svg.strip .mark.at").wait_for()


def test_pictures_are_printed_whole(browser: Browser, fleet: Fleet) -> None:
    with opened(browser, viewport={"width": 718, "height": 1000}) as page:  # A4
        page.emulate_media(media="print")
        for path in ("pools/sno", "pools/sno/17"):
            page.goto(fleet.url(path))
            assert page.locator(".picture").evaluate("each => each.scrollWidth <= each.clientWidth"), path


def test_numbers_lead_to_a_layout_and_to_sql(browser: Browser, fleet: Fleet) -> None:
    with opened(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(fleet.url())
        page.get_by_role("link", name="Choose", exact=True).click()
        page.get_by_label("Nodes at the same time").fill("2000")
        page.get_by_label("JavaScript").check()
        page.get_by_role("button", name="Advise").click()
        page.get_by_text("2048 nodes, 2000 asked for").wait_for()
        page.get_by_label("From, in UTC").fill("2024-05-01")
        page.get_by_label("To, which").fill("2024-06-01")
        page.get_by_role("button", name="Show").click()
        condition = page.locator("tr", has=page.get_by_role("rowheader", name="snowflake", exact=True))
        condition.get_by_role("button", name="Copy").click()
        condition.get_by_role("button", name="Copied").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == '("id" >= 1235017845964800000 AND "id" < 1246251869798400000)'


def test_questions_are_answered_without_javascript(browser: Browser, fleet: Fleet) -> None:
    with opened(browser, java_script_enabled=False) as page:
        page.goto(fleet.url("pools/sno"))
        page.locator("a", has=page.locator("title", has_text="0 to 63: 64 held")).click()
        page.locator("a", has=page.locator("title", has_text="17: held")).click()
        page.get_by_text("process 17 on web-17.example.net").wait_for()
        page.goto(fleet.url("who"))
        page.get_by_label("An ID of any format").fill("brpk4q72xwf2m63l")
        page.get_by_role("button", name="Find").click()
        page.get_by_role("img", name="Bits of the ID as sno").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation_in_pages_of_leases(browser: Browser, fleet: Fleet, theme: str) -> None:
    with opened(browser, color_scheme=theme) as page:
        for path in PATHS:
            page.goto(fleet.url(path))
            assert violations(page) == [], path


@pytest.mark.parametrize("width", [320, 768])
def test_pages_of_leases_are_no_wider_than_the_screen(browser: Browser, fleet: Fleet, width: int) -> None:
    with opened(browser, viewport={"width": width, "height": 800}) as page:
        for path in PATHS:
            page.goto(fleet.url(path))
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_page_of_10000_leases_is_below_300_kb(browser: Browser, fleet: Fleet) -> None:
    with opened(browser) as page:
        answer = page.goto(fleet.url("pools/sno"))
        assert answer is not None
        assert len(answer.body()) < 300_000
