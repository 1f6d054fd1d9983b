"""The SQL statements of a dialect, from its files ``dialects/*/statements.sql`` and ``dialects/*/NNN_*.sql``.

A line ``-- name: get`` begins a statement; parameters are written ``:name``. A statement with ``{kind}`` is repeated
for each kind of record, as ``get_pool``, ``get_node``, …, and has its ``{columns}``, ``{values}``, ``{changes}``,
``{key}``, ``{is_key}`` and ``{is_after}``; one with ``{counted}`` is repeated for the kinds of :data:`COUNTED`.
``{record}`` stands for the fields of a record to read, ``{node}`` for those of a node number, ``{schema}`` for the
prefix of a table that has its own schema. The statement ``identity``, if there is one, is the expression for the field
of that name. The numbered files are the migrations of the schema: each upgrades it from the version before. Their
statements end with a semicolon at the end of a line.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mintage.errors import StoreError
from mintage.protocol.records import KEYS, columns, name_of, read
from mintage.rules import NamespaceRecord, NodeRecord, PoolRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mintage.protocol.records import R, Record
    from mintage.protocol.url import StoreUrl

# Read by the path: importlib.resources imports the formats of archives, and the extension cannot be in one.
_FOLDER: Final = os.path.join(os.path.dirname(__file__), "dialects")
COUNTED: Final = (PoolRecord, NamespaceRecord)
"""The kinds of records that the store counts. No record is ever removed, so a lower number means lost records."""


@cache
def statements(dialect: str, schema: str = "", *, is_old: bool = False) -> dict[str, str]:
    """Return the statements of a dialect by name; ``is_old`` for those that read tables of an older version."""
    pieces = f"\n{_text(dialect, 'statements.sql', schema)}".split("\n-- name: ")[1:]
    texts = {name: sql.strip().removesuffix(";") for name, _, sql in (piece.partition("\n") for piece in pieces)}
    identity = texts.pop("identity", "identity")
    identity = "identity" if is_old else identity.rpartition("\n")[2]
    found: dict[str, str] = {}
    for name, text in texts.items():
        sql = text.replace("{identity}", identity)
        if "{kind}" in sql:
            found |= {f"{name}_{name_of(kind)}": _filled(sql, kind, identity) for kind in KEYS}
        elif "{counted}" in sql:
            found |= {f"{name}_{name_of(kind)}": sql.replace("{counted}", name_of(kind)) for kind in COUNTED}
        else:
            found[name] = sql.replace("{node}", _fields(NodeRecord, identity))
    return found


@cache
def driver_statements(dialect: str, schema: str = "", *, is_old: bool = False) -> dict[str, str]:
    """Return the statements of a dialect by name, with parameters as drivers want them, ``%(name)s``.

    >>> driver_statements("mysql")["insert_schema"]
    'INSERT INTO mintage_schema (version) VALUES (%(version)s)'
    """
    import re  # which SQLite does not need: its process may be short

    parameter = re.compile(r"(?<!:):(\w+)")
    found = statements(dialect, schema, is_old=is_old)
    return {name: parameter.sub(r"%(\1)s", sql.replace("%", "%%")) for name, sql in found.items()}


def _text(dialect: str, file: str, schema: str) -> str:
    with open(os.path.join(_FOLDER, dialect, file), encoding="utf-8") as opened:
        return opened.read().replace("{schema}", schema)


def _fields(kind: type[Record], identity: str) -> str:
    return ", ".join(identity if name == "identity" else name for name in columns(kind))


def _filled(sql: str, kind: type[Record], identity: str) -> str:
    names, key = columns(kind), KEYS[kind]
    return (
        sql.replace("{kind}", name_of(kind))
        .replace("{record}", _fields(kind, identity))
        .replace("{columns}", ", ".join(names))
        .replace("{values}", ", ".join(f":{name}" for name in names))
        .replace("{changes}", ", ".join(f"{name} = :{name}" for name in names if name not in key))
        .replace("{key}", ", ".join(key))
        .replace("{is_key}", " AND ".join(f"{name} = :{name}" for name in key))
        .replace("{is_after}", " AND ".join((*(f"{name} = :{name}" for name in key[:-1]), f"{key[-1]} > :{key[-1]}")))
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
    files = sorted(file for file in os.listdir(os.path.join(_FOLDER, dialect)) if file[:3].isdecimal())
    return [
        (int(file[:3]), [part.strip() for part in f"{_text(dialect, file, schema)}\n".split(";\n") if part.strip()])
        for file in files
    ]
