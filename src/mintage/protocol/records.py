"""Read and write the records of :mod:`mintage.rules` by the names of their fields, for stores, service and clients.

A field is declared once, in its record. Its columns, its member in JSON and the check of its values follow from that.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from mintage.rules import LATEST_MS, NamespaceRecord, NodeRecord, PoolRecord, Within

if TYPE_CHECKING:
    from collections.abc import Mapping

Record = PoolRecord | NodeRecord | NamespaceRecord
R = TypeVar("R", PoolRecord, NodeRecord, NamespaceRecord)

KEYS: Final[dict[type[Record], tuple[str, ...]]] = {
    PoolRecord: ("name",),
    NodeRecord: ("pool", "node"),
    NamespaceRecord: ("name",),
}
"""The fields of the key of each kind of record."""
LONGEST: Final = 4096
"""The most characters of a text."""

_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")


def name_of(kind: type[Record]) -> str:
    """Return ``pool``, ``node`` or ``namespace``."""
    return kind.__name__.removesuffix("Record").lower()


def key_of(record: Record) -> tuple[Any, ...]:
    """Return the values of the record's key."""
    return tuple(getattr(record, name) for name in KEYS[type(record)])


def columns(kind: type[Record]) -> tuple[str, ...]:
    """Return the names of a record's fields, in their order."""
    return tuple(field.name for field in fields(kind))


def _forms(kind: type[Record]) -> dict[str, tuple[type, Within | None, bool]]:
    """Return, for each field, its type, its limits, and whether it may be missing."""
    forms = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        limits = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Within)), None)
        plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        options = get_args(plain)
        forms[name] = (options[0] if options else plain, limits, type(None) in options)
    return forms


_FORMS: Final = {kind: _forms(kind) for kind in KEYS}


def to_json(record: Record) -> dict[str, Any]:
    """Return the fields of a record for JSON: integers that may exceed JSON's numbers become strings."""
    values = {name: getattr(record, name) for name in columns(type(record))}
    for name, (_, limits, _) in _FORMS[type(record)].items():
        if limits is not None and limits.most > LATEST_MS:
            values[name] = str(values[name])
    return values


def read(kind: type[R], values: Mapping[str, Any]) -> R:
    """Return the record whose fields have these values. Integers may be strings, as in JSON.

    :raises ValueError: the field that has a wrong value.
    """
    return kind(**{name: _read(name, values.get(name), *form) for name, form in _FORMS[kind].items()})


def _read(name: str, value: Any, kind: type, limits: Within | None, is_optional: bool) -> Any:
    if value is None and is_optional:
        return None
    if kind is str and isinstance(value, str) and len(value) <= LONGEST and "\0" not in value:
        return value
    # Booleans are numbers in SQL.
    if kind is bool and type(value) in {bool, int} and value in {0, 1}:
        return bool(value)
    if limits is not None:
        if isinstance(value, str) and _INTEGER.fullmatch(value):
            value = int(value)
        if type(value) is int and limits.least <= value <= limits.most:
            return value
    what = f"a whole number in {limits.least}..{limits.most}" if limits else {str: "text", bool: "true or false"}[kind]
    raise ValueError(f"{name} is {'missing' if value is None else f'{value!r:.40}'}, not {what}")
