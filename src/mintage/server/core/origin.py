"""Refuse what a foreign page in a browser may have sent to a service without keys."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from mintage.errors import RequestError
from mintage.server.config.values import is_loopback


def foreign(method: str, headers: Iterable[tuple[bytes, bytes]]) -> RequestError | None:
    """Return the reason to refuse a request to a service without keys; ``None`` if it may pass.

    Any program on this machine may send requests, but a foreign page in a browser on this machine may not.
    """
    reads = method in {"GET", "HEAD"}
    for name, value in headers:
        if name == b"origin" and not _is_near(origin := value.decode("latin-1")):
            return RequestError(
                f"a page of {origin[:100]!a} may not send requests to a service without keys: configure keys",
                code="request.rights",
            )
        # If a page's own name points to this machine (DNS rebinding), the browser takes the request for one of
        # the same origin. It then sends no Origin with GET and HEAD, but does with every other method.
        if reads and name == b"host" and _is_name(host := value.decode("latin-1")):
            return RequestError(
                f"a service without keys is read as localhost or by its address, not as {host[:100]!a}: "
                "configure keys, or pass --insecure",
                code="request.rights",
            )
    return None


def _is_near(origin: str) -> bool:
    """Return True if the page with this origin comes from this machine."""
    try:
        return is_loopback(urlsplit(origin).hostname or "")
    except ValueError:
        return False


def _is_name(host: str) -> bool:
    """Return True for a DNS name, which an attacker can point to this machine; False for localhost and addresses."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name != "localhost":
            ipaddress.ip_address(name)
    except ValueError:
        return True
    return False
