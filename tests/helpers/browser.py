"""The distribution's Chromium, driven by Playwright: a browser for a module of tests, and pages with checks."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from checks.assets import ROOT, assets, fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_MS: Final = 60_000


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser; skip the tests if there is none."""
    if CHROMIUM is None:
        reason = "there is no Chromium: tests/servers/install.sh installs it"
        (pytest.fail if any(map(os.environ.get, ("CI", "MINTAGE_REQUIRE_SERVERS"))) else pytest.skip)(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, **how: Any) -> Iterator[Page]:
    """Open an empty page of a fresh profile; assert at the end that the browser reported nothing wrong.

    What it reports are faults of scripts, and what the content security policy refused.
    """
    context = browser.new_context(**how)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
    yield page
    context.close()
    assert not wrong, wrong


def violations(page: Page) -> list[str]:
    """Return what axe finds wrong with a page for people who cannot see it, or use a mouse."""
    (asset,) = assets(".cache")
    script = ROOT / asset.target
    if not script.exists():
        try:
            fetch(asset)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"npm cannot fetch {asset.package}: {error}")
    # Evaluated by the debugger, which the content security policy does not bind.
    page.evaluate(script.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{each['id']}: {node['html']}" for each in found["violations"] for node in each["nodes"]]
