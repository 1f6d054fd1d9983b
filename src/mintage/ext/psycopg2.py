"""psycopg2 is told how IDs are sent to PostgreSQL, and on request what they are read as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from mintage.formats.storage import WRITERS, Form, chosen, readers
from mintage.installation import missing

try:
    import psycopg2
    from psycopg2 import extensions
except ModuleNotFoundError as error:
    raise missing(error, "psycopg2") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["register"]

# No alphabet of IDs has a quotation mark or a backslash.
_SENT: Final[dict[Form, Callable[[Any], Any]]] = {
    "bytes": lambda one: psycopg2.Binary(bytes(one)),
    "uuid": lambda one: extensions.AsIs(f"'{WRITERS['uuid'](one)}'::uuid"),
    "text": lambda one: extensions.AsIs(f"'{one}'"),
}
_OIDS: Final = {"bytea": 17, "uuid": 2950, "text": 25, "varchar": 1043, "bpchar": 1042}


def register(
    connection: Any = None,
    *,
    forms: Mapping[type[Any], str] | None = None,
    load: Mapping[str, Any] | None = None,
) -> None:
    """Let IDs be parameters, in all of this process, and read columns as IDs where it is told which.

    A call says all: what an earlier one said of forms is forgotten.

    :param connection: where columns are read so: a connection or a cursor; all of this process where it is left out.
        psycopg2 keeps what parameters are sent as for the whole process.
    :param forms: by class of IDs, what they are sent as: ``bytes``, ``uuid`` or ``text``. What is not named is sent
        in its default form (:doc:`/reference/storage`).
    :param load: by type of PostgreSQL, the class of IDs that its values become, or ``TypeID("user")`` for TypeIDs of a
        prefix: ``{"uuid": uuid.ID}``. The types are
        ``bytea``, ``uuid``, ``text``, ``varchar`` and ``bpchar``, which is ``CHAR(n)``.
    :raises ArgumentError: ``argument.type``: no class of IDs, or another type of PostgreSQL.
    :raises ConfigError: ``config.form``: IDs of a class have no such form.
    """
    sent, casts = chosen(forms), readers(load, _OIDS)
    for python, form in sent.items():
        extensions.register_adapter(python, _SENT[form])
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
