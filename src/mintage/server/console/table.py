"""Tables: sorted, filtered and paged by the URL, and drawn as HTML, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal

from starlette.responses import Response

from mintage.server.config.values import shown
from mintage.server.console import text
from mintage.server.console.query import Query, malformed

Kind = Literal["text", "code", "number", "big", "time"]
PAGE: Final = 50
"""The rows of a page, unless the URL has another number."""
LARGEST_PAGE: Final = 1_000
_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n")
"""The beginnings of formulas; in East Asian settings a spreadsheet takes the full-width signs as well."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    """Its name in URLs and files: small letters and ``_``."""
    title: str
    """Its heading."""
    value: Callable[[Any], Any]
    """Returns its value for a row: a text, a number, a datetime, or ``None`` if it is not known."""
    kind: Kind = "text"
    """The way it is drawn. A ``number`` is on the right, and so is a ``big`` one, which files have as text, as JSON's
    numbers do not hold 64 bits everywhere. A ``time`` is a datetime or milliseconds since the Unix epoch."""
    link: Callable[[Any], str | None] | None = None
    """Returns the URL that the value leads to."""
    show: Callable[[Any], Any] | None = None
    """Returns what HTML shows in place of the value: a text, or Markup such as a picture."""

    def cell(self, row: Any) -> tuple[Any, Kind, str | None]:
        """Return the value, the kind and the URL of a cell, as the template draws it."""
        kind: Kind = "text" if self.show and self.kind not in {"number", "big"} else self.kind
        return (self.show or self.value)(row), kind, self.link(row) if self.link else None


@dataclass(eq=False)
class Table:
    """Rows and their columns, as the parameters of the URL ask for them.

    The parameters are ``sort`` (a column; ``-`` before it for descending order), ``q`` (a text that a row must
    contain), ``page`` and ``size``; in a table with a name they begin with it: ``pools.sort``.

    :param query: the parameters of the page.
    :param caption: the heading of the table, which screen readers announce.
    :param given: the rows, any objects; the columns know their values.
    :param sort: the column of the order without a parameter, with ``-`` for descending; ``""`` for that of the rows.
    :param name: needed if a page has several tables.
    :param empty: what is shown without rows.
    :param note: a remark below the table, such as that there are more rows.
    :raises RequestError: ``request.malformed``: a parameter is wrong.
    """

    query: Query
    caption: str
    columns: Sequence[Column]
    given: Sequence[Any]
    _: KW_ONLY
    sort: str = ""
    name: str = ""
    empty: str = "There is nothing to show."
    note: str = ""

    def __post_init__(self) -> None:
        """Read the parameters."""
        query, prefix = self.query, f"{self.name}." if self.name else ""
        self._prefix = prefix
        self.id = f"table-{self.name}" if self.name else "table"
        """The id of its element."""
        self.parameter = f"{prefix}q"
        """The name of the parameter for the text that rows must contain."""
        self.search = query.text(self.parameter)
        self.is_searched = bool(self.search) or len(self.given) > 10
        """True if a search is worth a field: there are more rows than fit, or one is on."""
        self._sort = query.text(f"{prefix}sort", self.sort)
        self._size = query.integer(f"{prefix}size", PAGE, 1, LARGEST_PAGE)
        self._page = query.integer(f"{prefix}page", 1, 1, 1_000_000)
        self._first = (self._page - 1) * self._size
        self._by = next((each for each in self.columns if each.name == self._sort.removeprefix("-")), None)
        if self._sort and self._by is None:
            names = ", ".join(each.name for each in self.columns)
            raise malformed(
                f"{prefix}sort {shown(self._sort, 60)} is no column: use one of {names}, with - before it for "
                "descending order"
            )

    # --- for the template -------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> Sequence[Any]:
        """All rows that contain the text, in order."""
        found = self.given
        if wanted := self.search.casefold():
            found = [row for row in found if any(wanted in self._plain(each, row).casefold() for each in self.columns)]
        by = self._by
        if by is None:
            return found
        known = [row for row in found if by.value(row) is not None]
        unknown = [row for row in found if by.value(row) is None]
        return sorted(known, key=by.value, reverse=self._sort.startswith("-")) + unknown

    @property
    def headings(self) -> Iterator[tuple[Column, str, Literal["ascending", "descending"] | None]]:
        """Each column, the URL of the page sorted by it, or the other way if it is already, and its order now."""
        for each in self.columns:
            is_by = each is self._by
            is_up = is_by and not self._sort.startswith("-")
            url = self._link(sort=f"-{each.name}" if is_up else each.name, page=None)
            yield each, url, "ascending" if is_up else "descending" if is_by else None

    @property
    def page(self) -> Sequence[Any]:
        """The rows of the page."""
        return self.rows[self._first : self._first + self._size]

    @property
    def range(self) -> str:
        """The rows that the page has: ``12``, or ``1 to 50 of 1,234``."""
        count = len(self.rows)
        if not count:
            return "none" if not self.search else "none of them"
        if self._page == 1 and count <= self._size:
            return f"{count:,}"
        last = min(self._first + self._size, count)
        return f"{self._first + 1:,} to {last:,} of {count:,}" if self._first < count else f"none of {count:,}"

    @property
    def previous_url(self) -> str | None:
        """The URL of the page before, if there is one."""
        return self._link(page=self._page - 1 if self._page > 2 else None) if self._page > 1 else None

    @property
    def next_url(self) -> str | None:
        """The URL of the next page, if there is one."""
        return self._link(page=self._page + 1) if self._first + self._size < len(self.rows) else None

    def file_url(self, form: str) -> str:
        """Return the URL of all its rows as a file."""
        return self.query.link(format=form, table=self.name or None, **{f"{self._prefix}page": None})

    def others(self) -> dict[str, str]:
        """Return the parameters that a search keeps."""
        dropped = {self.parameter, f"{self._prefix}page", "format", "table", "done"}
        return {name: value for name, value in self.query.values.items() if name not in dropped}

    def _link(self, **changes: object) -> str:
        return self.query.link(**{f"{self._prefix}{name}": value for name, value in changes.items()})

    # --- files ------------------------------------------------------------------------------------------------------

    def file(self, form: str) -> Response:
        """Return all rows as a file, ``csv`` or ``json``: those that contain the text, in order."""
        name = self.name or self.query.path.rstrip("/").rpartition("/")[2]
        headers = {"Content-Disposition": f'attachment; filename="mintage-{name}.{form}"'}
        if form == "json":
            found = [{each.name: _json(each, each.value(row)) for each in self.columns} for row in self.rows]
            return Response(json.dumps(found), headers=headers, media_type="application/json")
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow([each.name for each in self.columns])
        writer.writerows([_csv(each, each.value(row)) for each in self.columns] for row in self.rows)
        return Response(out.getvalue(), headers=headers, media_type="text/csv")

    @staticmethod
    def _plain(column: Column, row: Any) -> str:
        value = _json(column, column.value(row))
        if column.kind == "time" and value is not None:
            # A page shows 2026-05-01 12:00:00Z, and a file has 2026-05-01T12:00:00.000Z.
            value = f"{value} {value[:19].replace('T', ' ')}Z"
        return "" if value is None else str(value)


def _json(column: Column, value: Any) -> Any:
    """Return a value for JSON: an instant in RFC 3339, and no infinity."""
    if column.kind == "time" and value is not None:
        value = text.utc(value)
    if column.kind == "big" and value is not None:
        return str(value)
    if isinstance(value, datetime):
        return text.iso(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _csv(column: Column, value: Any) -> Any:
    """Return a value for CSV. A spreadsheet must not take a text for a formula: such a text begins with ``'``."""
    value = _json(column, value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
