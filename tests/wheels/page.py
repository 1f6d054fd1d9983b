"""Make the page for a package index from README.md: pure. Links that are relative in a checkout become absolute."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)")
_PICTURE = re.compile(r'<picture><source [^>]*><img src="([^"]+)"([^>]*)></picture>')


def index_page(readme: str, urls: Mapping[str, str], version: str) -> str:
    """Return README.md with links to the documentation, and to the files of a version's tag.

    A page of an index is always light, so it has the light pictures. Without a home, the words stay, and relative links
    and pictures go.

    :param urls: ``[project.urls]``, of which Documentation and Source are read
    """
    if not urls:
        return _LINK.sub(r"\1", re.sub(r"(<p>\n)?(<picture>.*</picture>\n)+(</p>\n)?\n", "", readme))
    site, source = urls["Documentation"].rstrip("/"), urls["Source"].rstrip("/")

    def absolute(link: str) -> str:
        path, _, anchor = link.partition("#")
        if path.startswith("docs/") and path.endswith(".md"):
            address = f"{site}/{path.removeprefix('docs/').removesuffix('.md')}.html"
        else:
            address = f"{source}/blob/v{version}/{path}"
        return f"{address}#{anchor}" if anchor else address

    page = _LINK.sub(lambda found: f"[{found[1]}]({absolute(found[2])})", readme)
    return _PICTURE.sub(rf'<img src="{source}/raw/v{version}/\1"\2>', page)
