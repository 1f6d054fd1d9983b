"""asyncpg is told how IDs are sent to PostgreSQL, and on request what they are read as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from mintage.formats.storage import CLASSES, WRITERS, Form, readers
from mintage.installation import missing

try:
    import asyncpg  # noqa: F401
except ModuleNotFoundError as error:
    raise missing(error, "asyncpg") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["register"]

_CLASSES: Final = tuple(CLASSES)
_TEXT: Final = ("text", "varchar", "bpchar")
_FORMS: Final[dict[str, Form]] = {"bytea": "bytes", "uuid": "uuid", **dict.fromkeys(_TEXT, "text")}


async def register(
    connection: Any,
    *,
    types: Iterable[str] = ("bytea", "uuid"),
    load: Mapping[str, Any] | None = None,
) -> None:
    """Let IDs be parameters of a connection, each in the form that its column takes.

    For a pool: ``asyncpg.create_pool(url, init=register)``. asyncpg takes no codec of a domain, so the codecs are of
    the types that columns and domains are made of; what is no ID is sent and read as before.

    :param connection: the connection.
    :param types: the types of PostgreSQL whose parameters may be IDs: ``bytea``, ``uuid``, ``text``, ``varchar``,
        ``bpchar``, which is ``CHAR(n)``. Those of text slow all text down, so they are left out unless named;
        ``text[]`` stays as it was.
    :param load: by such a type, the class of IDs that its values become, or ``TypeID("user")`` for TypeIDs of a prefix:
        ``{"uuid": uuid.ID}``.
    :raises ArgumentError: ``argument.type``: no class of IDs, or another type of PostgreSQL.
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
