"""Storage forms: the types of columns of IDs, and the values that are written to them and read from them.

SQLAlchemy's types, Django's fields and the drivers' adapters all use this module. The page :doc:`/reference/storage`
has its table, which a test compares with each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, NoReturn
from uuid import UUID

from mintage import typeid
from mintage.errors import ArgumentError, ConfigError
from mintage.formats.annotations import BY_CLASS, TypeIDs, find_kind
from mintage.formats.cast import cast
from mintage.formats.kinds import UUID_BYTES, Kind
from mintage.formats.values import type_name

StorageForm = Literal["bytes", "uuid", "text", "integer"]
"""A storage form: the bytes of IDs, their UUID, or their usual text; of snowflakes always the integer."""

_WIDE: Final = 63
"""The most bits of an ID in a signed integer of 64 bits."""
_WIDE_DIGITS: Final = 20


WRITERS: Final[dict[StorageForm, Callable[[Any], Any]]] = {
    "bytes": bytes,
    "uuid": lambda one: cast(one, UUID),
    "text": str,
    "integer": int,
}
"""The function that returns an ID in a storage form, by that form."""
CLASSES: Final[dict[type[Any], Kind]] = {**BY_CLASS, typeid.ID: TypeIDs()}
"""The kinds of IDs by their class, of the classes that no driver knows."""


def uuid_of(value: Any) -> UUID:
    """Return the UUID of a value that a driver returned: a ``UUID``, its text or its bytes."""
    if isinstance(value, UUID):
        return value
    return UUID(value) if isinstance(value, str) else UUID(bytes=bytes(value))


def storage_forms(kind: Kind) -> tuple[StorageForm, ...]:
    """Return the storage forms of a kind of IDs, the default one first.

    The default is ``uuid`` if the class has 16 bytes and an ``as_uuid`` (uuid, locality, typeid), else ``bytes``.
    """
    if kind.layout is not None:
        return ("integer",)
    if kind.size is None:
        return ("text",)
    if kind.size == UUID_BYTES and hasattr(kind.python, "as_uuid"):
        return "uuid", "bytes", "text"
    return ("bytes", "uuid", "text") if kind.has_uuid else ("bytes", "text")


def storage_form(kind: Kind, form: str | None) -> StorageForm:
    """Return a storage form by its name, or the default one for ``None``.

    :raises ConfigError: ``config.form``: IDs of this kind have no such form.
    """
    for each in storage_forms(kind):
        if form in (each, None):
            return each
    message = f"the form of {kind.name} must be one of {', '.join(storage_forms(kind))}, not {form!r:.40}"
    raise ConfigError(message, code="config.form")


class Column(NamedTuple):
    """The type of a column, by the database's name."""

    type: str
    """``uuid``, ``bytea``, ``blob``, ``binary``, ``raw``, ``char``, ``varchar``, ``bigint``, ``bigint unsigned`` or
    ``numeric``. Adapters compare text by its bytes, as the order of a language is another."""
    size: int | None = None
    """The limit of the type or of a ``CHECK``, in bytes, characters or digits."""


_BINARY: Final = {"postgresql": "bytea", "mysql": "binary", "mariadb": "binary", "mssql": "binary", "oracle": "raw"}
"""The type of bytes by database; ``blob`` in any other."""
_WIDE_INTEGER: Final = {"mysql": "bigint unsigned", "mariadb": "bigint unsigned", "sqlite": "char"}
"""The type of unsigned 64-bit integers by database; ``numeric`` in any other. SQLite has none, so it stores digits."""


def column_of(kind: Kind, form: StorageForm, database: str) -> Column:
    """Return the column for IDs of a kind in a storage form. It sorts as the IDs do.

    MariaDB's own ``UUID`` is never used, as it refuses some IDs and has another order.

    :param kind: the kind.
    :param form: one of its storage forms.
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
    return Column(_BINARY.get(database, "blob"), UUID_BYTES if form == "uuid" else kind.size)


def writer_of(kind: Kind, form: StorageForm, database: str) -> Callable[[Any], Any]:
    """Return the function that converts an ID to a value of its column: an int, ``bytes``, ``str`` or ``UUID``."""
    column = column_of(kind, form, database)
    if form == "integer" and column.type == "char":
        return f"{{:0{_WIDE_DIGITS}}}".format
    if form == "uuid" and column.type != "uuid":
        return lambda one: cast(one, UUID).bytes
    return WRITERS[form]


def reader_of(kind: Kind, form: StorageForm | None = None) -> Callable[[Any], Any]:
    """Return the function that converts a value of a driver to an ID.

    :param kind: the kind.
    :param form: the storage form of the column; if ``None``, the type of the value tells bytes, ``UUID`` and text
        apart.
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


def chosen(named: Mapping[type[Any], str | None] | None) -> dict[type[Any], StorageForm | None]:
    """Return the storage form of each class of IDs, or ``None`` for a class that has none.

    :param named: the forms of some classes, or ``None``; the others have their default form.
    :raises ArgumentError: ``argument.type``: a key is no class of IDs.
    :raises ConfigError: ``config.form``: the IDs have no such form.
    """
    forms: dict[type[Any], StorageForm | None] = {python: storage_form(kind, None) for python, kind in CLASSES.items()}
    for python, form in (named or {}).items():
        if python not in CLASSES:
            raise _no_class(python)
        forms[python] = None if form is None else storage_form(CLASSES[python], form)
    return forms


def refuse(id: object, *_: object) -> NoReturn:
    """Refuse to write an ID of a class without a form.

    :raises ArgumentError: ``argument.type``: always.
    """
    name = type_name(type(id))
    message = (
        f"{name} has several storage forms here, and no column says which one: give the parameter its column's type"
    )
    raise ArgumentError(message, code="argument.type")


def declared(columns: Iterable[tuple[type[Any], StorageForm]]) -> dict[type[Any], str | None]:
    """Return the form of each class that a project stores, for :func:`chosen`: an ID without a column is sent in it.

    A class that is stored in two forms has none: either could be wrong, so the driver shall refuse such an ID.

    :param columns: the class of IDs and the form of each column.
    """
    found: dict[type[Any], str | None] = {}
    for python, form in columns:
        if python in CLASSES:
            found[python] = form if found.get(python, form) == form else None
    return found


def readers(load: Mapping[str, Any] | None, types: Collection[str]) -> dict[str, Callable[[Any], Any]]:
    """Return, by type of a database, the function that converts its values to IDs.

    :param load: by type, the class of IDs, or a ``TypeID`` with a prefix.
    :param types: the types that the driver knows.
    :raises ArgumentError: ``argument.type``: an unknown type, no class of IDs, or a ``typeid.ID`` in a type that stores
        no prefix.
    """
    for name in load or ():
        if name not in types:
            message = f"load must be of the types {', '.join(types)}, not {name!r:.40}"
            raise ArgumentError(message, code="argument.type")
    return {name: reader_of(_loaded(name, of)) for name, of in (load or {}).items()}


def _loaded(name: str, of: object) -> Kind:
    # int, of snowflakes, and str are not in CLASSES: every driver knows them.
    kind = find_kind(of)
    if kind is None or kind.python not in CLASSES:
        raise _no_class(of)
    if kind == TypeIDs() and name in ("bytea", "uuid"):
        message = f'{name} holds no prefix of a TypeID: load TypeID("user") in place of typeid.ID'
        raise ArgumentError(message, code="argument.type")
    return kind


def _no_class(of: object) -> ArgumentError:
    name = type_name(of if isinstance(of, type) else type(of))
    return ArgumentError(f"{name} is no class of IDs, such as sno.ID", code="argument.type")
