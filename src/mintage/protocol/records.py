"""Read and write the records of :mod:`mintage.rules` by the names of their fields, for stores, service and clients.

A field is declared once, in its record. Its columns, its member in JSON and the check of its values follow from that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, TypeVar

from mintage.rules import LATEST_MS, LIMITS, GrantRecord, NamespaceRecord, NodeRecord, PoolRecord, RunRecord, is_number

R = TypeVar("R", PoolRecord, NodeRecord, GrantRecord, NamespaceRecord, RunRecord)
Record = PoolRecord | NodeRecord | GrantRecord | NamespaceRecord | RunRecord
Past = GrantRecord | RunRecord
"""A record of the history of a pool or namespace."""

KEYS: Final[dict[type[Record], tuple[str, ...]]] = {
    PoolRecord: ("name",),
    NodeRecord: ("pool", "node"),
    GrantRecord: ("pool", "node", "floor_ms"),
    NamespaceRecord: ("name",),
    RunRecord: ("namespace", "first"),
}
"""The fields of the key of each kind of record."""
_ADDED: Final = frozenset({
    "history_ms", "history_from_ms", "first_node", "last_node", "since_ms",
    "start", "run_holder", "run_first", "run_last", "run_since_ms", "run_until_ms",
})  # fmt: skip
ADDED: Final[dict[str, Any]] = {
    each.name: each.default
    for kind in (PoolRecord, NodeRecord, NamespaceRecord)
    for each in fields(kind)
    if each.name in _ADDED
}
"""The fields that records of an older version lack, with the value that stands for a missing one."""
LONGEST: Final = 4096
"""The most characters of a text."""

_DIGITS: Final = 19
"""The most digits of an integer in text."""


def name_of(kind: type[Record]) -> str:
    """Return ``pool``, ``node``, ``grant``, ``namespace`` or ``run``."""
    return kind.__name__.removesuffix("Record").lower()


def key_of(record: Record) -> tuple[Any, ...]:
    """Return the values of the record's key."""
    return tuple(getattr(record, name) for name in KEYS[type(record)])


def columns(kind: type[Record]) -> tuple[str, ...]:
    """Return the names of a record's fields, in their order."""
    return kind.__match_args__


def _forms(kind: type[Record]) -> dict[str, tuple[str, range | None, bool]]:
    """Return, for each field, its type, its limits, and whether it may be missing."""
    forms = {}
    for name, annotation in kind.__annotations__.items():
        plain, _, optional = annotation.partition(" | ")
        forms[name] = (plain, LIMITS.get(plain), optional == "None")
    return forms


_FORMS: Final = {kind: _forms(kind) for kind in KEYS}


def to_json(record: Record) -> dict[str, Any]:
    """Return the fields of a record for JSON: integers that may exceed JSON's numbers become strings."""
    values = {name: getattr(record, name) for name in columns(type(record))}
    for name, (_, limits, _) in _FORMS[type(record)].items():
        if limits is not None and limits[-1] > LATEST_MS:
            values[name] = str(values[name])
    return values


def read(kind: type[R], values: Mapping[str, Any]) -> R:
    """Return the record whose fields have these values. Integers may be strings, as in JSON.

    A record of an older version may lack the fields of :data:`ADDED`.

    :raises ValueError: the field that has a wrong value.
    """
    return kind(**{name: _read(name, values.get(name, ADDED.get(name)), *form) for name, form in _FORMS[kind].items()})


def _read(name: str, value: Any, kind: str, limits: range | None, is_optional: bool) -> Any:
    if value is None and is_optional:
        return None
    if kind == "str" and isinstance(value, str) and len(value) <= LONGEST and "\0" not in value:
        return value
    # Booleans are numbers in SQL.
    if kind == "bool" and type(value) in {bool, int} and value in {0, 1}:
        return bool(value)
    if limits is not None:
        if isinstance(value, str) and is_number(value.removeprefix("-"), _DIGITS):
            value = int(value)
        if type(value) is int and value in limits:
            return value
    what = f"a whole number in {limits[0]}..{limits[-1]}" if limits else {"str": "text", "bool": "true or false"}[kind]
    raise ValueError(f"{name} is {'missing' if value is None else f'{value!r:.40}'}, not {what}")
