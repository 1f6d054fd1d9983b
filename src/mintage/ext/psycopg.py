"""IDs in psycopg 3: as parameters of statements for PostgreSQL, and as values that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from mintage.formats.storage import WRITERS, StorageForm, chosen, readers, refuse
from mintage.installation import missing

try:
    import psycopg
    from psycopg import postgres, pq
    from psycopg.adapt import Dumper
    from psycopg.types import string, uuid
except ModuleNotFoundError as error:
    raise missing(error, "psycopg") from None

if TYPE_CHECKING:
    from psycopg.abc import AdaptContext

__all__ = ["register"]

# The values for the server, in both formats. An unknown type makes it accept text for any column of text.
_DUMPED: Final[dict[StorageForm | None, tuple[tuple[str, pq.Format, Callable[[Any], bytes]], ...]]] = {
    None: (("", pq.Format.TEXT, refuse), ("", pq.Format.BINARY, refuse)),
    "bytes": (
        ("bytea", pq.Format.TEXT, lambda one: rf"\x{bytes(one).hex()}".encode("ascii")),
        ("bytea", pq.Format.BINARY, bytes),
    ),
    "uuid": (
        ("uuid", pq.Format.TEXT, lambda one: str(WRITERS["uuid"](one)).encode("ascii")),
        ("uuid", pq.Format.BINARY, lambda one: WRITERS["uuid"](one).bytes),
    ),
    "text": (
        ("text", pq.Format.BINARY, lambda one: str(one).encode("ascii")),
        ("", pq.Format.TEXT, lambda one: str(one).encode("ascii")),
    ),
}
# psycopg's loaders in Python: one in C does not call the methods of a subclass.
_LOADED: Final[dict[str, tuple[Any, ...]]] = {
    "bytea": (string.ByteaLoader, string.ByteaBinaryLoader),
    "uuid": (uuid.UUIDLoader, uuid.UUIDBinaryLoader),
    **dict.fromkeys(("text", "varchar", "bpchar"), (string.TextLoader, string.TextBinaryLoader)),
}


def register(
    context: AdaptContext | None = None,
    *,
    forms: Mapping[type[Any], str | None] | None = None,
    load: Mapping[str, Any] | None = None,
) -> None:
    """Make psycopg accept IDs as parameters, and read values of the types that you name as IDs.

    A call replaces the storage forms of an earlier call.

    >>> import psycopg
    >>> from mintage import sno
    >>> from mintage.ext.psycopg import register
    >>> def find(url: str, order: sno.ID) -> tuple[sno.ID] | None:
    ...     with psycopg.connect(url) as connection:
    ...         register(connection, forms={sno.ID: "text"}, load={"text": sno.ID})
    ...         return connection.execute("SELECT id FROM orders WHERE id = %s", [order]).fetchone()

    :param context: a connection or a cursor, of asyncio or not; the default is the whole process.
    :param forms: by class of IDs, the storage form: ``bytes``, ``uuid`` or ``text``. Other classes have their default
        form (:doc:`/reference/storage`). IDs of a class with ``None`` are refused.
    :param load: by type of PostgreSQL, the class of IDs to which its values are converted, or ``TypeID("user")`` for
        TypeIDs of a prefix: ``{"uuid": uuid.ID}``. The types are ``bytea``, ``uuid``, ``text``, ``varchar`` and
        ``bpchar`` (``CHAR(n)``). A domain counts as the type on which it is based, as the server names that type only.
    :raises ArgumentError: ``argument.type``: a class that is no class of IDs, or another type of PostgreSQL.
    :raises ConfigError: ``config.form``: the IDs of a class have no such form.
    """
    adapters = context.adapters if context is not None else psycopg.adapters
    dumpers = [(python, dumper) for python, form in chosen(forms).items() for dumper in _dumpers(form)]
    loaders = [(name, _loader(base, read)) for name, read in readers(load, _LOADED).items() for base in _LOADED[name]]
    for python, dumper in dumpers:
        adapters.register_dumper(python, dumper)
    for name, loader in loaders:
        adapters.register_loader(name, loader)


def _dumpers(form: StorageForm | None) -> Iterator[type[Dumper]]:
    for name, way, write in _DUMPED[form]:
        yield type(
            "IDDumper",
            (Dumper,),
            {
                "oid": postgres.types[name].oid if name else 0,
                "format": way,
                "dump": staticmethod(write),
            },
        )


def _loader(base: Any, read: Callable[[Any], Any]) -> Any:
    class IDLoader(base):  # type: ignore[misc]
        """A loader that converts the value of psycopg's own loader to an ID."""

        def load(self, data: Any) -> Any:
            """Return the ID of a value."""
            return read(super().load(bytes(data)))

    return IDLoader
