"""The SQL statements of a dialect, from the files ``sql/<dialect>/statements.sql`` and ``sql/<dialect>/NNN_*.sql``.

A line ``-- name: get`` begins a statement; parameters are written ``:name``. A statement with ``{kind}`` is repeated
for each kind of record, as ``get_pool``, ``get_node``, …, and has its ``{columns}``, ``{values}``, ``{changes}``,
``{key}`` and ``{is_key}``. ``{node}`` stands for the columns of a node number's record, ``{schema}`` for the prefix of
a table that has its own schema. The numbered files are the migrations of the schema: each upgrades it from the version
before. Their statements end with a semicolon at the end of a line.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mintage.errors import StoreError
from mintage.protocol.records import KEYS, columns, name_of, read
from mintage.rules import NodeRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mintage.protocol.records import R, Record
    from mintage.protocol.url import StoreUrl

# By the path, as importlib.resources imports the formats of archives, and the extension cannot be in one anyway.
_FOLDER: Final = Path(__file__).parent / "sql"
_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PARAMETER: Final = re.compile(r"(?<!:):(\w+)")


@cache
def statements(dialect: str, schema: str = "") -> dict[str, str]:
    """Return the statements of a dialect by name."""
    text = (_FOLDER / dialect / "statements.sql").read_text(encoding="utf-8")
    text = text.replace("{schema}", schema)
    pieces = _NAME.split(text)[1:]
    found: dict[str, str] = {}
    for name, sql in zip(pieces[::2], (sql.strip().removesuffix(";") for sql in pieces[1::2]), strict=True):
        if "{kind}" in sql:
            found |= {f"{name}_{name_of(kind)}": _filled(sql, kind) for kind in KEYS}
        else:
            found[name] = sql.replace("{node}", ", ".join(columns(NodeRecord)))
    return found


@cache
def driver_statements(dialect: str, schema: str = "") -> dict[str, str]:
    """Return the statements of a dialect by name, with parameters as drivers want them, ``%(name)s``.

    >>> driver_statements("mysql")["insert_schema"]
    'INSERT INTO mintage_schema (version) VALUES (%(version)s)'
    """
    return {
        name: _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")) for name, sql in statements(dialect, schema).items()
    }


def _filled(sql: str, kind: type[Record]) -> str:
    names, key = columns(kind), KEYS[kind]
    return (
        sql.replace("{kind}", name_of(kind))
        .replace("{columns}", ", ".join(names))
        .replace("{values}", ", ".join(f":{name}" for name in names))
        .replace("{changes}", ", ".join(f"{name} = :{name}" for name in names if name not in key))
        .replace("{key}", ", ".join(key))
        .replace("{is_key}", " AND ".join(f"{name} = :{name}" for name in key))
    )


def read_row(url: StoreUrl, kind: type[R], row: Sequence[Any]) -> R:
    """Return the record of a row.

    :raises StoreError: ``store.refused``: the row is not a valid record.
    """
    values = dict(zip(columns(kind), row, strict=True))
    try:
        return read(kind, values)
    except ValueError as error:
        key = " ".join(str(values[name])[:128] for name in KEYS[kind])
        raise StoreError(
            f"{url}: the row of {name_of(kind)} {key} is damaged: {error}: restore it from a backup",
            code="store.refused",
        ) from None


@cache
def migrations(dialect: str, schema: str = "") -> list[tuple[int, list[str]]]:
    """Return the migrations of a dialect's schema in order: the version of each, and its statements."""
    found = sorted(
        (file.name, file.read_text(encoding="utf-8").replace("{schema}", schema))
        for file in (_FOLDER / dialect).iterdir()
        if re.match(r"\d{3}_", file.name)
    )
    return [
        (int(name[:3]), [part.strip() for part in re.split(r";\s*$", sql, flags=re.MULTILINE) if part.strip()])
        for name, sql in found
    ]
