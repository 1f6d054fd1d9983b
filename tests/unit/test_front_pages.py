"""Tests of what a newcomer reads first: how pages install mintage, and where links of the front pages lead."""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FRONT: Final = ("README.md", "docs/index.md", "docs/tutorial.md")
PAGES: Final = ("README.md", *(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")))
ROOTS: Final = ("README.md", "llms.txt", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Files that are read in a checkout."""
_LINK: Final = re.compile(r"\]\(([^)\s*]+)\)")
_SOURCE: Final = re.compile(r'(?:src|srcset)="([^"]+)"')
_EXTRAS: Final = re.compile(r"mintage\[([\w,-]+)\]")
_HEADING: Final = re.compile(r"(?m)^#{1,6} +(.+?)$")


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@cache
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["project"]
    return found


def is_released() -> bool:
    """Return True if CHANGELOG.md has the date of the version, as it does from the release on."""
    heading = re.search(rf"(?m)^## {re.escape(project()['version'])} \((.+)\)$", read("CHANGELOG.md"))
    assert heading is not None
    return heading[1] != "unreleased"


def anchors(page: Path) -> set[str]:
    """Return the names by which a link reaches the headings of a page, as the documentation makes them."""
    headings = _HEADING.findall(page.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", sorted({*ROOTS, *PAGES}))
def test_links_are_relative_and_lead_to_files_and_headings(name: str) -> None:
    links = [link for link in _LINK.findall(read(name)) if not link.startswith("https://")]
    for link in (*links, *_SOURCE.findall(read(name))):
        address, _, anchor = link.partition("#")
        page = (ROOT / name).parent / address if address else ROOT / name
        assert page.is_file(), link
        assert not anchor or anchor in anchors(page), link


def test_readme_and_llms_txt_link_to_the_documentation() -> None:
    for name in ("README.md", "llms.txt"):
        assert len([link for link in _LINK.findall(read(name)) if link.startswith("docs/")]) > 20


def test_readme_says_what_its_drawings_say() -> None:
    shown = re.findall(r'docs/pictures/([\w-]+)-light\.svg" width="\d+" alt="([^"]+)"', read("README.md"))
    drawings = {file.stem: file.read_text("utf-8") for file in (ROOT / "docs/pictures/drawings").glob("*.svg")}
    assert [name for name, _ in shown] == ["collision", "leases", "one-id"]
    assert all(f"<title>{alt}</title>" in drawings[name] for name, alt in shown if name in drawings)


def test_readme_is_at_most_150_lines() -> None:
    assert len(read("README.md").splitlines()) <= 150


@pytest.mark.parametrize("name", FRONT)
def test_front_page_installs_what_can_be_installed_first(name: str) -> None:
    first, *_ = re.findall(r"(?m)^(?:\$ )?(pip install \S+|make run)", read(name))
    assert first == "pip install mintage" if is_released() else first in {"make run", "pip install ."}


@pytest.mark.parametrize("name", FRONT)
def test_front_page_says_that_the_version_is_not_released_until_it_is(name: str) -> None:
    line = f"Version {project()['version']} is not on the package index yet."
    assert (line in " ".join(read(name).split())) is not is_released()


def test_commands_of_pages_install_nothing_that_is_not_released() -> None:
    commands = [line for name in PAGES for line in re.findall(r"(?m)^(?:\$ )?\S.*pip install .+|^pip .+", read(name))]
    typed = [line for line in commands if re.match(r"(\$ |pip |python3 |/)", line)]
    assert len(typed) >= 5
    assert is_released() or not [line for line in typed if re.search(r"install (\S+ )*'?mintage", line)]


def test_extras_that_pages_install_exist() -> None:
    named = {extra for name in PAGES for extras in _EXTRAS.findall(read(name)) for extra in extras.split(",")}
    assert {"postgresql", "server"} <= named <= {*project()["optional-dependencies"], "x"}


def test_home_of_the_project_is_named_in_pyproject_alone() -> None:
    urls = project().get("urls", {})
    assert not urls or set(urls) >= {"Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith("https://") for url in urls.values())
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=False, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this tree is no checkout of git")
    own = re.compile(r"https?://[\w.-]*(?:github|gitlab|readthedocs|pypi)\.(?:io|com|org)/(?:[\w-]+/)*mintage\b")
    homes = (*(url.rstrip("/") for url in urls.values()),)
    for name in listed.stdout.split("\0"):
        file = ROOT / name
        if name.endswith((".md", ".rst", ".txt", ".py", ".toml", ".yaml", ".yml", ".html")) and file.is_file():
            text = file.read_text("utf-8")
            assert name == "pyproject.toml" or not (own.search(text) or any(home in text for home in homes)), name


def test_llms_txt_has_the_parts_of_its_format_in_order() -> None:
    title, summary, *rest = [part for part in read("llms.txt").split("\n\n") if part.strip()]
    assert title == "# mintage"
    assert summary.startswith("> ")
    sections = rest[rest.index(next(part for part in rest if part.startswith("## "))) :]
    for heading, links in zip(sections[::2], sections[1::2], strict=True):
        assert re.fullmatch(r"## \w+", heading)
        assert all(re.fullmatch(r"- \[[^]]+\]\([^)]+\): .+", line) for line in links.strip().splitlines())
