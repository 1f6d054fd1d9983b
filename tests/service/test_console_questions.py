"""The seven questions of the console, answered by clicks: in a large fleet, and as its store goes away and returns.

The service has two workers on PostgreSQL with Redis in front, 1,000 namespaces and 10,000 leases.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from mintage import sno
from mintage.store import open_store
from tests.helpers import web
from tests.helpers.browser import chromium, opened
from tests.servers.postgresql import PostgreSQL
from tests.servers.proxy import Proxy
from tests.servers.redis import Redis
from tests.service.running import running
from tests.service.test_console_leases_browser import copy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.servers.fixtures import Servers

SPAN_MS: Final = 86_400_000
HOLDER: Final = "web-0.example.net:4711:1732240000:1:0.1.0"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def visit(page: Page, name: str) -> None:
    """Follow a link of the navigation."""
    page.get_by_label("Console").get_by_role("link", name=name, exact=True).click()


def ask_what_will_run_out(page: Page) -> None:
    visit(page, "Ends")
    first = page.get_by_role("table", name="Ends within 90 days").get_by_role("row").nth(1)
    first.get_by_role("link", name="coupons").click()
    page.get_by_text("It is used up.").wait_for()


def ask_who_holds_node_17(page: Page) -> None:
    visit(page, "Pools")
    page.get_by_role("link", name="sno", exact=True).click()
    page.locator("a", has=page.locator("title", has_text="0 to 63: 64 held")).click()
    page.locator("a", has=page.locator("title", has_text="17: held")).click()
    page.get_by_text("process 17 on web-17.example.net").wait_for()


def ask_who_minted(page: Page, minted: str) -> None:
    visit(page, "Who")
    page.get_by_label("An ID of any format").fill(minted)
    page.get_by_role("button", name="Find").click()
    page.get_by_text("node 10000 of pool sno").wait_for()


def ask_who_uses_most(page: Page) -> None:
    visit(page, "Use")
    # The page is read again by itself until both workers have counted.
    page.wait_for_function("() => document.querySelector('tbody').innerText.includes('tenant.500')")
    row = page.get_by_role("table", name="Namespaces by integers").get_by_role("row").nth(1)
    assert row.get_by_role("rowheader").inner_text() == "tenant.500"


def ask_what_happened(page: Page, event: str) -> None:
    visit(page, "Events")
    page.get_by_label("What happened").select_option(event)
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("cell", name=event, exact=True).first.wait_for()


def ask_what_to_choose(page: Page) -> None:
    visit(page, "Choose")
    page.get_by_label("Nodes at the same time").fill("2000")
    page.get_by_label("JavaScript").check()
    page.get_by_role("button", name="Advise").click()
    page.get_by_text("2048 nodes, 2000 asked for").wait_for()


def test_seven_questions_outlive_the_loss_of_the_store(browser: Browser, servers: Servers, tmp_path: Path) -> None:
    database, cache = servers.get(PostgreSQL), servers.get(Redis)
    with open_store(f"{database.url}?timeout_ms=60000") as store:
        for at in range(999):
            store.create_namespace(f"tenant.{at:03}", start=1 + at)
        store.create_namespace("coupons", maximum=99)
        store.reserve("coupons", 99)
        store.create_pool("sno", layout="sno/1", span_ms=SPAN_MS, never_used=True)
        store.acquire("sno", nodes=range(1), layout="sno/1", holder=HOLDER, now_ms=store.now_ms(), span_ms=SPAN_MS)
        copy(database)
        with sno.Generator(store=store) as generator:
            minted = str(generator.new())
    with (
        Proxy(database) as proxy,
        running(tmp_path, "--workers", "2", store=f"{proxy.url}?cache={cache.url}") as service,
        opened(browser) as page,
    ):
        for _ in range(4):  # each connection may reach another worker
            web.post(f"{service.url}/v1/sequences/tenant.500:next", params={"count": 50}).raise_for_status()

        def ask_all(event: str) -> None:
            page.get_by_text("The service is well").wait_for()
            ask_what_will_run_out(page)
            ask_who_holds_node_17(page)
            ask_who_minted(page, minted)
            ask_who_uses_most(page)
            ask_what_happened(page, event)
            ask_what_to_choose(page)

        page.goto(f"{service.url}/console/")
        ask_all("serving")
        visit(page, "Health")
        proxy.refuse()
        page.get_by_text("degraded since").wait_for()
        page.get_by_text("What to do").wait_for()
        visit(page, "Pools")
        # Without its age, which a screen reader would announce again every five seconds.
        page.get_by_role("status").filter(has_text=re.compile(r"^The store does not answer\.$")).wait_for()
        page.get_by_role("link", name="sno", exact=True).wait_for()
        ask_who_uses_most(page)
        ask_what_happened(page, "store away")
        ask_what_to_choose(page)
        visit(page, "Health")
        proxy.heal()
        ask_all("store back")
