"""IDs in asyncpg: as parameters of a connection, and as values that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from mintage.formats.storage import CLASSES, WRITERS, StorageForm, readers
from mintage.installation import missing

try:
    import asyncpg  # noqa: F401
except ModuleNotFoundError as error:
    raise missing(error, "asyncpg") from None

__all__ = ["register"]

_CLASSES: Final = tuple(CLASSES)
_TEXT: Final = ("text", "varchar", "bpchar")
_FORMS: Final[dict[str, StorageForm]] = {"bytea": "bytes", "uuid": "uuid", **dict.fromkeys(_TEXT, "text")}


async def register(
    connection: Any,
    *,
    types: Iterable[str] = ("bytea", "uuid"),
    load: Mapping[str, Any] | None = None,
) -> None:
    """Make a connection accept IDs as parameters, each in the storage form of its column.

    For a pool, write ``asyncpg.create_pool(url, init=register)``. asyncpg accepts no codec of a domain, so the codecs
    are for the types on which columns and domains are based. asyncpg sends and reads all other values as before.

    >>> import asyncpg
    >>> from mintage import sno
    >>> from mintage.ext.asyncpg import register
    >>> async def find(url: str, order: sno.ID) -> sno.ID | None:
    ...     connection = await asyncpg.connect(url)
    ...     await register(connection, load={"bytea": sno.ID})
    ...     return await connection.fetchval("SELECT id FROM orders WHERE id = $1", order)

    :param connection: the connection.
    :param types: the types of PostgreSQL whose parameters can be IDs: ``bytea``, ``uuid``, ``text``, ``varchar`` and
        ``bpchar`` (``CHAR(n)``). Codecs of the types of text slow down all text, so the default leaves them out;
        ``text[]`` does not change.
    :param load: by type of PostgreSQL, the class of IDs to which its values are converted, or ``TypeID("user")`` for
        TypeIDs of a prefix: ``{"uuid": uuid.ID}``.
    :raises ArgumentError: ``argument.type``: a class that is no class of IDs, or another type of PostgreSQL.
    """
    read = readers(load, _FORMS)
    named = {**readers(dict.fromkeys(types, _CLASSES[0]), _FORMS), **read}
    for name in named:
        await connection.set_type_codec(
            name,
            schema="pg_catalog",
            encoder=_encoder(name),
            decoder=_decoder(name, read.get(name)),
            format="text" if name in _TEXT else "binary",
        )


def _encoder(name: str) -> Callable[[Any], Any]:
    write = WRITERS[_FORMS[name]]

    def encode(value: Any) -> Any:
        if isinstance(value, _CLASSES):
            value = write(value)
        if name == "bytea":
            return bytes(memoryview(value))
        if name == "uuid":
            return (value if isinstance(value, UUID) else UUID(value)).bytes
        if not isinstance(value, str):
            raise TypeError(f"expected str, got {type(value).__name__}")
        return value

    return encode


def _decoder(name: str, read: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if name == "uuid":
        return lambda value: read(UUID(bytes=value)) if read else UUID(bytes=value)
    return read or (lambda value: value)
