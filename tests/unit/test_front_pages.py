"""Tests of what a newcomer reads first: how pages install mintage, and where README.md and llms.txt link to."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FRONT: Final = ("README.md", "docs/index.md", "docs/tutorial.md")
LISTS: Final = ("README.md", "llms.txt")
"""Files that are read elsewhere: on the page of a package index, on a site, in the memory of an agent."""
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_EXTRAS: Final = re.compile(r"mintage\[([\w,-]+)\]")
_HEADING: Final = re.compile(r"(?m)^#{1,6} +(.+?)$")


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@cache
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["project"]
    return found


def anchors(page: Path) -> set[str]:
    """Return the names by which a link reaches the headings of a page, as the documentation makes them."""
    headings = _HEADING.findall(page.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def file_of(link: str) -> Path | None:
    """Return the file of this tree that an absolute link shows, or None if it shows something else."""
    urls = project()["urls"]
    site, blob = urls["Documentation"], f"{urls['Source']}/blob/main/"
    address = link.partition("#")[0]
    if address.startswith(blob):
        return ROOT / address.removeprefix(blob)
    if not address.startswith(site):
        return None
    page = ROOT / "docs" / (address.removeprefix(site).removesuffix(".html") or "index")
    return next((page.with_suffix(end) for end in (".md", ".rst") if page.with_suffix(end).is_file()), page)


@pytest.mark.parametrize("name", LISTS)
def test_links_are_absolute_and_lead_to_files_of_this_tree(name: str) -> None:
    links = _LINK.findall(read(name))
    assert len(links) > 20
    for link in links:
        _, _, anchor = link.partition("#")
        page = ROOT / name if link.startswith("#") else file_of(link)
        assert link.startswith(("https://", "#")), link
        if page is None:
            continue
        assert page.is_file(), link
        assert not anchor or anchor in anchors(page), link


@pytest.mark.parametrize("name", FRONT)
def test_front_page_installs_the_released_package_first(name: str) -> None:
    first, *_ = re.findall(r"pip install (\S+)|make run", read(name))
    assert first == "mintage"


@pytest.mark.parametrize("name", FRONT)
def test_front_page_says_that_the_version_is_not_released_until_it_is(name: str) -> None:
    # The section of the version in CHANGELOG.md carries its date from the release on.
    heading = re.search(rf"(?m)^## {re.escape(project()['version'])} \((.+)\)$", read("CHANGELOG.md"))
    assert heading is not None
    line = f"Version {project()['version']} is not on the package index yet."
    assert (line in " ".join(read(name).split())) is (heading[1] == "unreleased")


def test_extras_that_pages_install_exist() -> None:
    pages = ["README.md", *(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
    named = {extra for name in pages for extras in _EXTRAS.findall(read(name)) for extra in extras.split(",")}
    assert {"postgresql", "server"} <= named <= {*project()["optional-dependencies"], "x"}


def test_project_urls_have_the_labels_that_package_indexes_know() -> None:
    assert set(project()["urls"]) >= {"Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith("https://") for url in project()["urls"].values())


def test_llms_txt_has_the_parts_of_its_format_in_order() -> None:
    title, summary, *rest = [part for part in read("llms.txt").split("\n\n") if part.strip()]
    assert title == "# mintage"
    assert summary.startswith("> ")
    sections = rest[rest.index(next(part for part in rest if part.startswith("## "))) :]
    for heading, links in zip(sections[::2], sections[1::2], strict=True):
        assert re.fullmatch(r"## \w+", heading)
        assert all(re.fullmatch(r"- \[[^]]+\]\([^)]+\): .+", line) for line in links.strip().splitlines())
