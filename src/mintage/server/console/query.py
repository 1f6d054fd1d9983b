"""The URLs of pages, their parameters and the fields of forms: read strictly, each with one clear error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from mintage.errors import RequestError
from mintage.server.config.values import shown
from mintage.server.console.text import utc

T = TypeVar("T")
LONGEST_PARAMETER: Final = 4_096
"""The most characters of a parameter or a field."""
_MOST_PARAMETERS: Final = 32


def malformed(message: str) -> RequestError:
    """Return an error with the code ``request.malformed``."""
    return RequestError(message, code="request.malformed")


class Query:
    """The parameters of a page's URL. The methods raise ``request.malformed`` for a wrong one as well.

    :param path: the path of the page.
    :param encoded: the query of its URL.
    :raises RequestError: ``request.malformed``: they cannot be read, or one is given twice, too long, or has a NUL.
    """

    def __init__(self, path: str, encoded: bytes = b"") -> None:
        self.path = path
        self.values = fields_of(encoded, "query")
        self._known = {"format", "table", "done"}

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as text."""
        self._known.add(name)
        return self.values.get(name, default)

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        """Return a parameter as an integer from ``least`` to ``most``."""
        given = self.text(name)
        if not given:
            return default
        if not re.fullmatch("-?[0-9]{1,25}", given) or not least <= int(given) <= most:
            raise malformed(f"{name} {shown(given, 60)} is not a whole number in {least}..{most}")
        return int(given)

    def time(self, name: str, default: T) -> datetime | T:
        """Return a parameter as an instant: RFC 3339, in UTC unless it has a zone, or milliseconds since 1970."""
        given = self.text(name).strip()
        if not given:
            return default
        try:
            found = utc(int(given)) if re.fullmatch("[0-9]{10,20}", given) else datetime.fromisoformat(given)
            if found is not None:
                return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            pass
        raise malformed(
            f"{name} {shown(given, 40)} is not a time: write 2026-05-01T12:00:00Z, 2026-05-01, or milliseconds since "
            "1970"
        )

    def one_of(self, name: str, words: Sequence[str], default: str = "") -> str:
        """Return a parameter that is one of these words, or not given."""
        given = self.text(name)
        if given and given not in words:
            raise malformed(f"{name} {shown(given, 60)} is not one of {', '.join(words)}")
        return given or default

    def check(self) -> None:
        """Refuse parameters that the page has not read."""
        for name in self.values:
            if name not in self._known:
                raise malformed(f"unknown parameter {shown(name, 60)}: this page has {', '.join(sorted(self._known))}")

    def link(self, **changes: object) -> str:
        """Return the URL of this page with some parameters changed; ``None`` removes one, and ``done`` never stays."""
        values = {name: value for name, value in {**self.values, "done": None, **changes}.items() if value is not None}
        return f"{self.path}?{urlencode(values)}" if values else self.path


def fields_of(encoded: bytes, what: str) -> dict[str, str]:
    """Return the fields of a query or a form, each of them once.

    :raises RequestError: ``request.malformed``.
    """
    try:
        pairs = parse_qsl(
            encoded.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS
        )
    except ValueError as error:
        raise malformed(f"the {what} cannot be read: {error}") from error
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise malformed(f"{shown(name, 60)} is given twice")
        if len(value) > LONGEST_PARAMETER:
            raise malformed(f"{shown(name, 60)} has {len(value)} characters, and may have {LONGEST_PARAMETER}")
        if "\x00" in value:
            raise malformed(f"{shown(name, 60)} has the character NUL")
        found[name] = value
    return found


def namespace_url(name: str) -> str:
    """Return the URL of the page of a namespace."""
    return f"/console/namespaces/{quote(name)}"


def pool_url(pool: str, node: int | None = None, **query: object) -> str:
    """Return the URL of the page of a pool or of one of its node numbers."""
    path = f"/console/pools/{quote(pool, safe='')}" + ("" if node is None else f"/{node}")
    return f"{path}?{urlencode(query)}" if query else path
