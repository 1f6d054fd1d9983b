"""The SQL of a dialect, read from its files: ``sql/<dialect>/statements.sql`` and ``sql/<dialect>/NNN_*.sql``.

A line ``-- name: put_node`` begins a statement; parameters are written ``:name``. The numbered files are the schema's
migrations: each brings it from the version before to its own. Their statements end with a semicolon at a line's end.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

__all__ = ["migrations", "statements"]

_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def statements(dialect: str) -> dict[str, str]:
    """The statements of a dialect by name."""
    text = (files(__package__) / "sql" / dialect / "statements.sql").read_text(encoding="utf-8")
    pieces = _NAME.split(text)[1:]
    return dict(zip(pieces[::2], (sql.strip().removesuffix(";") for sql in pieces[1::2]), strict=True))


@cache
def migrations(dialect: str) -> list[tuple[int, list[str]]]:
    """The migrations of a dialect's schema in order: the version that each brings, and its statements."""
    folder = files(__package__) / "sql" / dialect
    found = sorted(
        (file.name, file.read_text(encoding="utf-8")) for file in folder.iterdir() if re.match(r"\d{3}_", file.name)
    )
    return [
        (int(name[:3]), [part.strip() for part in re.split(r";\s*$", sql, flags=re.MULTILINE) if part.strip()])
        for name, sql in found
    ]
