"""The URLs of pages that others link to."""

from __future__ import annotations

from urllib.parse import quote, urlencode


def namespace_url(name: str) -> str:
    """Return the URL of the page of a namespace."""
    return f"/console/namespaces/{quote(name)}"


def pool_url(pool: str, node: int | None = None, **query: object) -> str:
    """Return the URL of the page of a pool or of one of its node numbers."""
    path = f"/console/pools/{quote(pool, safe='')}" + ("" if node is None else f"/{node}")
    return f"{path}?{urlencode(query)}" if query else path
