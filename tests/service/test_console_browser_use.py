"""Tests of what runs out, who uses how much, and the actions, in a real browser: clicks lead to each answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx
import pytest

from mintage.store import open_store
from tests.helpers.browser import chromium, opened, violations
from tests.servers.postgresql import PostgreSQL
from tests.servers.redis import Redis
from tests.service.running import Running, key_toml, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from tests.servers.fixtures import Servers

KEY = "mint_of-the-operator-of-the-namespaces"
HEADERS = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def busy(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service of two workers on PostgreSQL with Redis in front: 1,000 namespaces, of which one is nearly used up."""
    database, cache = servers.get(PostgreSQL), servers.get(Redis)
    url = f"{database.url}?cache={cache.url}"
    toml = f"auto_create = true\n{key_toml('ops', KEY, {'*': ['admin']})}"
    with open_store(database.url) as store:
        for at in range(999):
            store.create_namespace(f"tenant.{at:03}", start=1 + at)
        store.create_namespace("coupons", maximum=99)
        store.reserve("coupons", 99)
    home = tmp_path_factory.mktemp("busy")
    with running(home, "--workers", "2", toml=toml, store=url) as service:
        yield service


def test_what_runs_out_is_found_by_clicks(browser: Browser, busy: Running) -> None:
    with opened(browser, extra_http_headers=HEADERS) as page:
        page.goto(f"{busy.url}/console/")
        page.get_by_role("link", name="Ends", exact=True).click()
        first = page.get_by_role("table", name="Ends within 90 days").get_by_role("row").nth(1)
        assert "coupons" in first.inner_text()
        page.get_by_role("table", name=re.compile("Namespaces by days left 1 to 50 of 1,000")).wait_for()
        first.get_by_role("link", name="coupons").click()
        page.get_by_text("It is used up.").wait_for()


def test_who_uses_most_is_found_by_clicks(browser: Browser, busy: Running) -> None:
    for _ in range(20):  # each connection may reach another worker
        url = f"{busy.url}/v1/sequences/tenant.500:next"
        assert httpx.post(url, params={"count": 50}, headers=HEADERS, timeout=60).is_success
    with opened(browser, extra_http_headers=HEADERS) as page:
        page.goto(f"{busy.url}/console/")
        page.get_by_role("link", name="Use", exact=True).click()
        row = page.get_by_role("table", name="Namespaces by integers").get_by_role("row").nth(1)
        # The page is read again by itself until all workers have counted.
        page.wait_for_function("() => document.querySelector('tbody').innerText.includes('1,000')")
        assert row.get_by_role("rowheader").inner_text() == "tenant.500"
        row.get_by_role("img", name=re.compile("^Integers of tenant.500, last hour")).wait_for()
        assert "ops" in page.get_by_role("table", name="Keys by integers").inner_text()


def test_floor_is_raised_by_clicks(browser: Browser, busy: Running) -> None:
    with opened(browser, extra_http_headers=HEADERS) as page:
        page.goto(f"{busy.url}/console/namespaces/tenant.007")
        page.get_by_role("link", name="Raise its floor").click()
        page.get_by_label("New floor").fill("5000")
        page.get_by_role("button", name="Show what it will do").click()
        page.get_by_text("It skips 4,992 integers: those from 8 to 4,999.").wait_for()
        page.get_by_label("Type tenant.007 to confirm").fill("tenant.008")
        page.get_by_role("button", name="Raise the floor").click()
        page.get_by_role("alert").get_by_text("nothing was done").wait_for()
        page.get_by_label("Type tenant.007 to confirm").fill("tenant.007")
        page.get_by_role("button", name="Raise the floor").click()
        page.get_by_text("The floor is raised.").wait_for()
        page.get_by_text("5,000").first.wait_for()


PAGES = (
    "/ends",
    "/use",
    "/namespaces/coupons",
    "/namespaces/tenant.001",
    "/namespaces/tenant.001/raise-floor",
    "/namespaces/tenant.001/raise-floor?floor=5000",
    "/namespaces/tenant.001/raise-floor?floor=x",
    "/namespaces/tenant.001/retire",
    "/create/namespace?name=new",
    "/create/pool?name=sno&never_used=yes",
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation(browser: Browser, busy: Running, theme: str) -> None:
    with opened(browser, color_scheme=theme, extra_http_headers=HEADERS) as page:
        for path in PAGES:
            page.goto(f"{busy.url}/console{path}")
            assert violations(page) == [], path


@pytest.mark.parametrize("width", [320, 1440])
def test_page_is_no_wider_than_the_screen(browser: Browser, busy: Running, width: int) -> None:
    with opened(browser, viewport={"width": width, "height": 800}, extra_http_headers=HEADERS) as page:
        for path in PAGES:
            page.goto(f"{busy.url}/console{path}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_floor_is_raised_without_javascript(browser: Browser, busy: Running) -> None:
    with opened(browser, java_script_enabled=False, extra_http_headers=HEADERS) as page:
        page.goto(f"{busy.url}/console/namespaces/tenant.009/raise-floor")
        page.get_by_label("New floor").fill("20")
        page.get_by_role("button", name="Show what it will do").click()
        page.get_by_label("Type tenant.009 to confirm").fill("tenant.009")
        page.get_by_role("button", name="Raise the floor").click()
        page.get_by_text("The floor is raised.").wait_for()
