"""The SQL statements of a dialect, from its files ``dialects/*/statements.sql`` and ``dialects/*/NNN_*.sql``.

``dialects/records.sql`` has those that all dialects share, ``dialects/servers.sql`` those of both database servers.

A line ``-- name: get`` begins a statement; parameters are written ``:name``. A statement with ``{kind}`` is repeated
for each kind of :data:`KINDS`, as ``get_pool``, ``get_node``, …, one with ``{counted}`` for those of :data:`COUNTED`,
and one with ``{past}`` for those of :data:`PAST`. Each has the ``{columns}``, ``{values}``, ``{changes}``, ``{key}``,
``{is_key}`` and ``{is_after}`` of its kind. One of a past record has the field ``{group}`` of its pool or namespace,
the condition ``{is_place}`` on all fields of the key but the ``{last}`` one, and the field ``{age}``, which is lowest
in the oldest record. ``{record}`` stands for the fields of a record to read, ``{node}`` for those of a node number,
``{schema}`` for the prefix of a table that has its own schema, ``{ahead}`` for the end of a run in the future,
``{prune}`` for the statement of that name. The statement ``identity``, if there is one, is the expression for the field
of that name. The numbered files are the migrations of the schema: each upgrades it from the version before. Their
statements end with a semicolon at the end of a line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mintage import rules
from mintage.errors import StoreError
from mintage.protocol.records import ADDED, KEYS, Past, R, Record, columns, name_of, read
from mintage.rules import LATEST_MS, MAX_COUNT, PRUNED, GrantRecord, NamespaceRecord, NodeRecord, PoolRecord, RunRecord
from mintage.store.ledger import FORGOTTEN, Transaction

if TYPE_CHECKING:
    from mintage.protocol.url import StoreUrl

# Read by the path: importlib.resources imports the formats of archives, and the extension cannot be in one.
_FOLDER: Final = os.path.join(os.path.dirname(__file__), "dialects")
KINDS: Final = (PoolRecord, NodeRecord, NamespaceRecord)
"""The kinds of records that the rules change."""
COUNTED: Final = (PoolRecord, NamespaceRecord)
"""The kinds of records that the store counts. No record is ever removed, so a lower number means lost records."""
PAST: Final = {GrantRecord: "history_ms", RunRecord: "run_first"}
"""The kinds of records of the history, each with a column that is missing if an older version has none of the kind."""
_REPEATED: Final = {"{kind}": KINDS, "{counted}": COUNTED, "{past}": tuple(PAST)}
OLDER: Final = "its tables are of an older version of mintage: the first verb that writes brings them up to date"
"""The warning of a store whose tables reading verbs left as they are."""


@cache
def statements(dialect: str, schema: str = "", version: int | None = None) -> dict[str, str]:
    """Return the statements of a dialect by name; with ``version``, those that read tables of that older version."""
    lacks = frozenset[str]() if version is None else lacking(dialect, version)
    files = ("records.sql", *(() if dialect == "sqlite" else ("servers.sql",)), f"{dialect}/statements.sql")
    pieces = [piece for file in files for piece in f"\n{_text(file, schema)}".split("\n-- name: ")[1:]]
    texts = {name: sql.strip().removesuffix(";") for name, _, sql in (piece.partition("\n") for piece in pieces)}
    identity = texts.pop("identity", "identity")
    identity = identity.rpartition("\n")[2] if version is None else "identity"
    found: dict[str, str] = {}
    for name, text in texts.items():
        sql = text.replace("{identity}", identity).replace("{prune}", texts["prune"])
        for word, kinds in _REPEATED.items():
            if word in sql:
                has = (kind for kind in kinds if PAST.get(kind) not in lacks)
                found |= {f"{name}_{name_of(kind)}": _filled(sql, word, kind, identity, lacks) for kind in has}
                break
        else:
            found[name] = sql.replace("{node}", _fields(NodeRecord, identity, lacks))
    return found


@cache
def driver_statements(dialect: str, schema: str = "", version: int | None = None) -> dict[str, str]:
    """Return the statements of a dialect by name, with parameters as drivers want them, ``%(name)s``.

    >>> driver_statements("mysql")["insert_schema"]
    'INSERT INTO mintage_schema (version) VALUES (%(version)s)'
    """
    import re  # which SQLite does not need: its process may be short

    parameter = re.compile(r"(?<!:):(\w+)")
    found = statements(dialect, schema, version)
    return {name: parameter.sub(r"%(\1)s", sql.replace("%", "%%")) for name, sql in found.items()}


def _text(file: str, schema: str) -> str:
    with open(os.path.join(_FOLDER, file), encoding="utf-8") as opened:
        return opened.read().replace("{schema}", schema)


@cache
def lacking(dialect: str, version: int) -> frozenset[str]:
    """Return the columns that tables of an older version lack."""
    steps = (step for number, steps in migrations(dialect) if number > version for step in steps)
    return frozenset(part.split()[0] for step in steps for part in step.split("ADD COLUMN ")[1:])


def _fields(kind: type[Record], identity: str, lacks: frozenset[str]) -> str:
    others: dict[str, object] = {"identity": identity, **{name: repr(ADDED[name]) for name in lacks & ADDED.keys()}}
    return ", ".join(f"{others.get(name, name)}" for name in columns(kind))


def _filled(sql: str, word: str, kind: type[Record], identity: str, lacks: frozenset[str]) -> str:
    names, key = columns(kind), KEYS[kind]
    return (
        sql.replace(word, name_of(kind))
        .replace("{record}", _fields(kind, identity, lacks))
        .replace("{columns}", ", ".join(names))
        .replace("{values}", ", ".join(f":{name}" for name in names))
        .replace("{changes}", ", ".join(f"{name} = :{name}" for name in names if name not in key))
        .replace("{key}", ", ".join(key))
        .replace("{is_key}", " AND ".join(f"{name} = :{name}" for name in key))
        .replace("{is_place}", " AND ".join(f"{name} = :{name}" for name in key[:-1]))
        .replace("{is_after}", " AND ".join((*(f"{name} = :{name}" for name in key[:-1]), f"{key[-1]} > :{key[-1]}")))
        .replace("{group}", key[0])
        .replace("{last}", key[-1])
        .replace("{age}", "until_ms" if kind is GrantRecord else key[-1])
        # A run that ends more than a week from now is by a clock that was wrong: it would protect all later ones.
        .replace("{ahead}", "" if kind is GrantRecord else f" OR until_ms > :ended_ms + {2 * rules.HISTORY_MS}")
    )


class RowRecords(Transaction):
    """The records in one transaction, which the statements of a dialect read."""

    is_old = False
    """True if the tables are of an older version: reading verbs leave them as they are."""

    def __init__(self, url: StoreUrl, sql: Mapping[str, str]) -> None:
        self._url = url
        self._sql = sql

    def rows(self, statement: str, /, **values: object) -> Sequence[Any]:
        """Execute a statement and return its rows."""
        raise NotImplementedError

    def _read(self, kind: type[R], rows: Sequence[Any]) -> list[R]:
        found = []
        for row in rows:
            values = dict(zip(columns(kind), row, strict=True))
            try:
                found.append(read(kind, values))
            except ValueError as error:
                key = " ".join(str(values[name])[:128] for name in KEYS[kind])
                raise StoreError(
                    f"{self._url}: the row of {name_of(kind)} {key} is damaged: {error}: restore it from a backup",
                    code="store.refused",
                ) from None
        return found

    def _find(self, statement: str, kind: type[R], key: tuple[str | int, ...]) -> R | None:
        rows = self.rows(f"{statement}_{name_of(kind)}", **dict(zip(KEYS[kind], key, strict=True)))
        return next(iter(self._read(kind, rows)), None)

    def page(self, kind: type[R], *after: str | int, limit: int = MAX_COUNT) -> Sequence[R]:
        values = dict(zip(KEYS[kind], after, strict=True))
        return self._read(kind, self.rows(f"page_{name_of(kind)}", limit=limit, **values))

    def keep(self, record: Past, ended_ms: int) -> None:
        what = name_of(type(record))
        at_once = f"prune_and_keep_{what}"
        for statement in (at_once,) if at_once in self._sql else (f"prune_{what}", f"keep_{what}"):
            self.rows(statement, **asdict(record), ended_ms=ended_ms, most=PRUNED)

    def past(self, kind: type[R], *place: str | int, highest: int, limit: int) -> Sequence[R]:
        statement = f"past_{name_of(kind)}"
        if statement not in self._sql:  # the tables are of an older version
            return ()
        values = dict(zip(KEYS[kind][:-1], place, strict=True))
        return self._read(kind, self.rows(statement, highest=highest, limit=limit, **values))

    def forget_grants(self, pool: str) -> bool:
        self.rows("prune_grant", pool=pool, ended_ms=LATEST_MS + 1, most=FORGOTTEN)
        return bool(self.rows("any_grant", pool=pool))

    def count_namespaces(self) -> int:
        if self.is_old:  # tables of the first versions have no counter
            return len(self.page(NamespaceRecord, ""))
        rows = self.rows("count_namespaces")
        return int(rows[0][0]) if rows else 0

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        rows = self.rows("oldest", pool=pool, first=nodes.start, stop=nodes.stop)
        return next(iter(self._read(NodeRecord, rows)), None)

    def unused(self, pool: str, nodes: range) -> int | None:
        rows = self.rows("unused", pool=pool, first=nodes.start, stop=nodes.stop)
        return rows[0][0] if rows else None


@cache
def migrations(dialect: str, schema: str = "") -> list[tuple[int, list[str]]]:
    """Return the migrations of a dialect's schema in order: the version of each, and its statements."""
    files = sorted(file for file in os.listdir(os.path.join(_FOLDER, dialect)) if file[:3].isdecimal())
    texts = ((int(file[:3]), f"{_text(f'{dialect}/{file}', schema)}\n") for file in files)
    return [(number, [part.strip() for part in text.split(";\n") if part.strip()]) for number, text in texts]
