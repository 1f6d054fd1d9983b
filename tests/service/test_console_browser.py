"""Tests of the console in a real browser, on real stores."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pytest

from tests.helpers import web
from tests.helpers.browser import chromium, opened, violations
from tests.servers.proxy import Proxy
from tests.service.running import Running, key_toml, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.servers.redis import Redis

KEY = "mint_of-the-operator"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("open")) as found:
        yield found


def paths(page: Page, service: Running) -> list[str]:
    """Return the paths of all pages in the navigation, and of one that does not exist."""
    page.goto(f"{service.url}/console/")
    found = [each.get_attribute("href") or "" for each in page.locator("nav[aria-label=Console] a").all()]
    assert len(found) > 1
    return [*found, "/console/nothing"]


def test_root_leads_a_browser_to_the_health_of_the_service(browser: Browser, service: Running) -> None:
    with opened(browser) as page:
        page.goto(f"{service.url}/")
        assert page.url == f"{service.url}/console/"
        page.get_by_text("The service is well").wait_for()
        assert page.get_by_role("table", name="Processes").get_by_role("row").count() == 2


def test_key_signs_in_and_out(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    toml = key_toml("ops", KEY, {"*": ["describe"]})
    with running(tmp_path_factory.mktemp("keys"), toml=toml) as service, opened(browser) as page:
        page.goto(f"{service.url}/console/")
        page.get_by_label("Key").fill("mint_wrong")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("not known").wait_for()
        page.get_by_label("Key").fill(KEY)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("The service is well").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.goto(f"{service.url}/console/")
        page.get_by_label("Key").wait_for()


def test_link_from_another_site_finds_the_session(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    toml = key_toml("ops", KEY, {"*": ["describe"]})
    with running(tmp_path_factory.mktemp("linked"), toml=toml) as service, opened(browser) as page:
        page.goto(f"{service.url}/console/")
        page.get_by_label("Key").fill(KEY)
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"data:text/html,<a href='{service.url}/console/events?sort=kind'>incident</a>")
        page.get_by_text("incident").click()
        page.get_by_role("table", name="Events").wait_for()


def wait_for_reading(page: Page) -> None:
    """Wait until a live page was read again."""
    trace = page.locator(".foot code").inner_text()
    page.wait_for_function("text => document.querySelector('.foot code').innerText !== text", arg=trace)


@pytest.mark.parametrize(("role", "name"), [("link", "CSV"), ("button", "Pause")])
def test_live_page_is_read_again_and_keeps_its_focus(
    browser: Browser, service: Running, role: Literal["link", "button"], name: str
) -> None:
    with opened(browser) as page:
        page.goto(f"{service.url}/console/")
        page.get_by_role(role, name=name).focus()
        wait_for_reading(page)
        assert page.evaluate("document.activeElement.innerText") == name


def test_live_page_outlives_the_answer_of_a_proxy(browser: Browser, service: Running) -> None:
    """A proxy answers with a page of its own while the service behind it is upgraded."""
    with opened(browser) as page:
        page.goto(f"{service.url}/console/")
        page.route("**/console/", lambda route: route.fulfill(status=502, body="<h1>502 Bad Gateway</h1>"))
        page.get_by_text("The service does not answer").wait_for()
        assert page.get_by_text("The service is well").is_visible()
        page.unroute("**/console/")
        wait_for_reading(page)
        assert not page.get_by_text("The service does not answer").is_visible()


def test_live_page_names_the_key_that_reads_it(browser: Browser, tmp_path: Path) -> None:
    toml = key_toml("ops", KEY, {"*": ["describe"]}) + key_toml("dev", f"{KEY}-2", {"*": ["describe"]})
    with running(tmp_path, toml=toml) as service, opened(browser) as page:
        tabs = [(page, KEY), (page.context.new_page(), f"{KEY}-2")]
        for tab, key in tabs:
            tab.goto(f"{service.url}/console/sign-in")
            tab.get_by_label("Key").fill(key)
            tab.get_by_role("button", name="Sign in").click()
            tab.get_by_text("The service is well").wait_for()
        page.bring_to_front()
        page.locator(".who").get_by_text("dev").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Key").wait_for()
        tabs[1][0].bring_to_front()
        tabs[1][0].get_by_label("Key").wait_for()
        assert not tabs[1][0].get_by_role("button", name="Sign out").is_visible()


def test_filter_by_a_time_of_any_form_stays_on(browser: Browser, service: Running) -> None:
    with opened(browser) as page:
        for given, shown in (("2999-01-01T12:00:00Z", "2999-01-01T12:00"), ("32472144000123", "2999-01-01T00:00")):
            page.goto(f"{service.url}/console/events?since={given}")
            assert page.get_by_label("From (UTC)").input_value() == shown
            page.get_by_role("button", name="Filter").click()
            page.get_by_text("Nothing happened that these filters let through").wait_for()
        # A field that the browser had changed would stop the page, as one that somebody types in.
        wait_for_reading(page)


def test_live_page_of_a_slow_key_comes_back(browser: Browser, tmp_path: Path) -> None:
    toml = key_toml("slow", KEY, {"*": ["describe"]}, "rate = 1\nburst = 5")
    with running(tmp_path, toml=toml) as service, opened(browser) as page:
        headers = {"Authorization": f"Bearer {KEY}"}
        page.set_extra_http_headers(headers)
        page.goto(f"{service.url}/console/")
        while not page.get_by_text("Too many requests").is_visible():
            # A slow machine reloads the page less often than once a second.
            while web.get(f"{service.url}/console/", headers=headers).status_code != 429:
                pass
            page.reload()
        page.get_by_text("The service is well").wait_for()


def test_choice_of_a_theme_outlives_the_page_but_is_not_printed(browser: Browser, service: Running) -> None:
    with opened(browser, color_scheme="light") as page:
        page.goto(f"{service.url}/console/")
        page.get_by_label("Theme").select_option("dark")
        page.reload()
        scheme = "getComputedStyle(document.documentElement).colorScheme"
        assert page.evaluate(scheme) == "dark"
        page.emulate_media(media="print")
        assert page.evaluate(scheme) == "light"


def test_current_page_is_marked_in_forced_colours(browser: Browser, service: Running) -> None:
    with opened(browser, forced_colors="active") as page:
        page.goto(f"{service.url}/console/")
        looks = [
            page.get_by_role("link", name=name, exact=True).evaluate("e => getComputedStyle(e).textDecorationLine")
            for name in ("Health", "Ends")
        ]
        assert looks == ["underline", "none"]


def test_picture_is_seen_in_forced_colours_in_any_theme(browser: Browser, service: Running) -> None:
    with opened(browser, forced_colors="active", color_scheme="dark") as page:
        page.goto(f"{service.url}/console/choose")
        colours = []
        for theme in ("", "dark", "light"):
            page.get_by_label("Theme").select_option(theme)
            page.reload()
            colours.append(page.locator(".bits .name").first.evaluate("e => getComputedStyle(e).fill"))
        assert len({*colours}) == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation(browser: Browser, service: Running, tmp_path: Path, theme: str) -> None:
    with opened(browser, color_scheme=theme) as page:
        for path in paths(page, service):
            page.goto(service.url + path)
            assert violations(page) == [], path
        with running(tmp_path, toml=key_toml("ops", KEY, {})) as keyed:
            page.goto(f"{keyed.url}/console/")
            assert violations(page) == []


@pytest.mark.parametrize("width", [320, 1440])
def test_page_is_no_wider_than_the_screen(browser: Browser, service: Running, width: int) -> None:
    with opened(browser, viewport={"width": width, "height": 800}) as page:
        for path in paths(page, service):
            page.goto(service.url + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_pages_work_without_javascript(browser: Browser, service: Running) -> None:
    with opened(browser, java_script_enabled=False) as page:
        page.goto(f"{service.url}/console/")
        assert not page.get_by_role("button", name="Pause").or_(page.get_by_label("Theme")).is_visible()
        page.get_by_role("link", name="Events").click()
        page.get_by_role("table", name="Events").get_by_text("serving").wait_for()
        page.get_by_label("What happened").select_option("serving")
        page.get_by_role("button", name="Filter").click()
        page.wait_for_url(re.compile("kind=serving"))
        page.get_by_role("link", name="Time").click()
        page.wait_for_url(re.compile("sort=at"))


def test_lost_store_is_shown_until_it_is_back(browser: Browser, redis: Redis, tmp_path: Path) -> None:
    with Proxy(redis) as proxy, running(tmp_path, store=proxy.url) as service, opened(browser) as page:
        page.goto(f"{service.url}/console/")
        page.get_by_text("The service is well").wait_for()
        proxy.refuse()
        page.get_by_text("degraded since").wait_for()
        page.get_by_text("What to do").wait_for()
        proxy.heal()
        page.get_by_text("The service is well").wait_for()
        page.goto(f"{service.url}/console/events?kind=store+back")
        page.get_by_role("cell", name="store back").wait_for()
