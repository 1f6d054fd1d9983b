"""IDs in psycopg2: as parameters of statements for PostgreSQL, and as values that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from mintage.formats.storage import WRITERS, StorageForm, chosen, readers, refuse
from mintage.installation import missing

try:
    import psycopg2
    from psycopg2 import extensions
except ModuleNotFoundError as error:
    raise missing(error, "psycopg2") from None

__all__ = ["register"]

# No alphabet of IDs has a quotation mark or a backslash.
_SENT: Final[dict[StorageForm, Callable[[Any], Any]]] = {
    "bytes": lambda one: psycopg2.Binary(bytes(one)),
    "uuid": lambda one: extensions.AsIs(f"'{WRITERS['uuid'](one)}'::uuid"),
    "text": lambda one: extensions.AsIs(f"'{one}'"),
}
_OIDS: Final = {"bytea": 17, "uuid": 2950, "text": 25, "varchar": 1043, "bpchar": 1042}


def register(
    connection: Any = None,
    *,
    forms: Mapping[type[Any], str | None] | None = None,
    load: Mapping[str, Any] | None = None,
) -> None:
    """Make psycopg2 accept IDs as parameters, and read values of the types that you name as IDs.

    psycopg2 keeps the storage forms of parameters for the whole process. A call replaces those of an earlier call.

    >>> import psycopg2
    >>> from mintage import sno
    >>> from mintage.ext.psycopg2 import register
    >>> def find(url: str, order: sno.ID) -> tuple[sno.ID] | None:
    ...     with psycopg2.connect(url) as connection, connection.cursor() as cursor:
    ...         register(connection, forms={sno.ID: "text"}, load={"text": sno.ID})
    ...         cursor.execute("SELECT id FROM orders WHERE id = %s", [order])
    ...         return cursor.fetchone()

    :param connection: a connection or a cursor that reads IDs; the default is the whole process.
    :param forms: by class of IDs, the storage form: ``bytes``, ``uuid`` or ``text``. Other classes have their default
        form (:doc:`/reference/storage`). IDs of a class with ``None`` are refused.
    :param load: by type of PostgreSQL, the class of IDs to which its values are converted, or ``TypeID("user")`` for
        TypeIDs of a prefix: ``{"uuid": uuid.ID}``. The types are ``bytea``, ``uuid``, ``text``, ``varchar`` and
        ``bpchar`` (``CHAR(n)``).
    :raises ArgumentError: ``argument.type``: a class that is no class of IDs, or another type of PostgreSQL.
    :raises ConfigError: ``config.form``: the IDs of a class have no such form.
    """
    sent, casts = chosen(forms), readers(load, _OIDS)
    for python, form in sent.items():
        extensions.register_adapter(python, _SENT[form] if form else refuse)
    for name, read in casts.items():
        extensions.register_type(extensions.new_type((_OIDS[name],), "ID", _cast(name, read)), connection)


def _cast(name: str, read: Callable[[Any], Any]) -> Callable[[str | None, Any], Any]:
    def cast(value: str | None, cursor: Any) -> Any:
        if value is None:
            return None
        if name == "bytea":
            return read(psycopg2.BINARY(value, cursor))
        return read(UUID(value) if name == "uuid" else value)

    return cast
