"""How databases store IDs: the forms of each format, the column of each form, and what is written to it and read back.

This is the one source of it: SQLAlchemy's types, Django's fields and the drivers' adapters ask here. The page
:doc:`/reference/storage` shows it as a table, which a test compares with each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from uuid import UUID

from mintage import typeid
from mintage.errors import ArgumentError, ConfigError
from mintage.formats.cast import cast
from mintage.formats.kinds import BY_CLASS, Kind, TypeIDs, find_kind
from mintage.formats.values import type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = [
    "CLASSES",
    "WRITERS",
    "Column",
    "Form",
    "chosen",
    "column_of",
    "form_of",
    "forms",
    "reader_of",
    "readers",
    "uuid_of",
    "writer_of",
]

Form = Literal["bytes", "uuid", "text", "integer"]
"""The bytes of IDs, their form as a UUID, their usual text; of snowflakes the integer, which is their only one."""

_WIDE: Final = 63
"""Bits of an integer above which a signed one of 64 bits cannot hold it."""
_WIDE_DIGITS: Final = 20
_UUID_BYTES: Final = 16


def _as_uuid(id: Any) -> UUID:
    return cast(id, UUID)


WRITERS: Final[dict[Form, Callable[[Any], Any]]] = {"bytes": bytes, "uuid": _as_uuid, "text": str, "integer": int}
"""What makes of an ID its form."""
CLASSES: Final[dict[type[Any], Kind | TypeIDs]] = {**BY_CLASS, typeid.ID: TypeIDs()}
"""The classes of IDs that no driver knows by itself."""


def uuid_of(value: Any) -> UUID:
    """What a driver returned of a UUID: one that does not know them gives their text, and a database, their bytes."""
    if isinstance(value, UUID):
        return value
    return UUID(value) if isinstance(value, str) else UUID(bytes=bytes(value))


def forms(kind: Kind | TypeIDs) -> tuple[Form, ...]:
    """Return the forms that IDs of a kind have, the default one first.

    The default is the UUID where IDs have 16 bytes and are known as one (uuid, locality, typeid), else the bytes.
    """
    if kind.layout is not None:
        return ("integer",)
    if kind.size is None:
        return ("text",)
    if kind.size == _UUID_BYTES and hasattr(kind.python, "as_uuid"):
        return "uuid", "bytes", "text"
    return ("bytes", "uuid", "text") if kind.has_uuid else ("bytes", "text")


def form_of(kind: Kind | TypeIDs, form: str | None) -> Form:
    """Return that form, or the default one where none is named.

    :raises ConfigError: ``config.form``: IDs of this kind have no such form.
    """
    for each in forms(kind):
        if form in (each, None):
            return each
    message = f"the form of {kind.name} must be one of {', '.join(forms(kind))}, not {form!r:.40}"
    raise ConfigError(message, code="config.form")


class Column(NamedTuple):
    """The type of a column, as its database calls it."""

    type: str
    """``uuid``, ``bytea``, ``blob``, ``binary``, ``raw``, ``char``, ``varchar``, ``bigint``, ``bigint unsigned`` or
    ``numeric``. Text is compared by its bytes, whatever the language of the database."""
    size: int | None = None
    """Bytes, characters or digits, where the type or a ``CHECK`` limits them."""


_BINARY: Final = {"postgresql": "bytea", "mysql": "binary", "mariadb": "binary", "mssql": "binary", "oracle": "raw"}
"""The types of bytes; ``blob`` elsewhere."""
_WIDE_INTEGER: Final = {"mysql": "bigint unsigned", "mariadb": "bigint unsigned", "sqlite": "char"}
"""The types of integers of 64 bits; ``numeric`` elsewhere. SQLite has signed integers only: it gets digits."""


def column_of(kind: Kind | TypeIDs, form: Form, database: str) -> Column:
    """Return the column that holds IDs of a kind in one form, in their order.

    MariaDB's own ``UUID`` is never used: it refuses some IDs and sorts others differently.

    :param form: one of :func:`forms`.
    :param database: ``postgresql``, ``mysql``, ``mariadb``, ``sqlite``, ``oracle`` or ``mssql``.
    """
    if kind.layout is not None:
        if kind.layout.bits <= _WIDE:
            return Column("bigint")
        wide = _WIDE_INTEGER.get(database, "numeric")
        return Column(wide, None if wide == "bigint unsigned" else _WIDE_DIGITS)
    if form == "text":
        return Column("varchar" if kind.size is None else "char", kind.length)
    if form == "uuid" and database == "postgresql":
        return Column("uuid")
    return Column(_BINARY.get(database, "blob"), _UUID_BYTES if form == "uuid" else kind.size)


def writer_of(kind: Kind | TypeIDs, form: Form, database: str) -> Callable[[Any], Any]:
    """Return what makes of an ID the value that such a column is given: an int, ``bytes``, ``str`` or ``UUID``."""
    column = column_of(kind, form, database)
    if form == "integer" and column.type == "char":
        return f"{{:0{_WIDE_DIGITS}}}".format
    if form == "uuid" and column.type != "uuid":
        return lambda one: _as_uuid(one).bytes
    return WRITERS[form]


def reader_of(kind: Kind | TypeIDs, form: Form | None = None) -> Callable[[Any], Any]:
    """Return what makes an ID of what a driver returned.

    :param form: what the column holds; without it bytes, a ``UUID`` and text are told apart by their type.
    """
    if kind.python in (int, str):
        return kind.python
    if isinstance(kind, TypeIDs):
        read: Callable[[Any], Any] = kind.read
    else:
        made: Any = kind.python

        def read(value: Any) -> Any:
            if isinstance(value, UUID):
                return cast(value, made)
            return made.parse(value) if isinstance(value, str) else made(value)

    return read if form != "uuid" else lambda value: read(uuid_of(value))


def chosen(named: Mapping[type[Any], str] | None) -> dict[type[Any], Form]:
    """Return the form of each class of IDs: the default one of those that are not named.

    :raises ArgumentError: ``argument.type``: something that is named is no class of IDs.
    :raises ConfigError: ``config.form``: its IDs have no such form.
    """
    named = named or {}
    for python in named:
        if python not in CLASSES:
            raise _no_class(python)
    return {python: form_of(kind, named.get(python)) for python, kind in CLASSES.items()}


def readers(load: Mapping[str, Any] | None, types: Collection[str]) -> dict[str, Callable[[Any], Any]]:
    """Return a reader by type of a database, of those that a driver knows.

    :raises ArgumentError: ``argument.type``: another type, no class of IDs, or a ``typeid.ID`` whose prefix is not
        stored.
    """
    for name in load or ():
        if name not in types:
            message = f"load must be of the types {', '.join(types)}, not {name!r:.40}"
            raise ArgumentError(message, code="argument.type")
    return {name: reader_of(_loaded(name, of)) for name, of in (load or {}).items()}


def _loaded(name: str, of: object) -> Kind | TypeIDs:
    kind = _kind_of(of)
    if kind == TypeIDs() and name in ("bytea", "uuid"):
        message = f'{name} holds no prefix of a TypeID: load TypeID("user") in place of typeid.ID'
        raise ArgumentError(message, code="argument.type")
    return kind


def _kind_of(of: object) -> Kind | TypeIDs:
    # The classes of snowflakes and of text are Python's own, which every driver knows.
    kind = find_kind(of)
    if kind is None or kind.python not in CLASSES:
        raise _no_class(of)
    return kind


def _no_class(of: object) -> ArgumentError:
    name = type_name(of if isinstance(of, type) else type(of))
    return ArgumentError(f"{name} is no class of IDs, such as sno.ID", code="argument.type")
