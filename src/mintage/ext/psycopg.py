"""psycopg 3 is told how IDs are sent to PostgreSQL, and on request what they are read as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mintage.formats.storage import WRITERS, Form, chosen, readers
from mintage.installation import missing

try:
    import psycopg
    from psycopg import postgres, pq
    from psycopg.adapt import Dumper
    from psycopg.types import string, uuid
except ModuleNotFoundError as error:
    raise missing(error, "psycopg") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from psycopg.abc import AdaptContext

__all__ = ["register"]

# What the server is sent, in either format. An unknown type lets it take text for any column of text.
_DUMPED: Final[dict[Form, tuple[tuple[str, pq.Format, Callable[[Any], bytes]], ...]]] = {
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
# psycopg's own in Python: a loader that is written in C is not asked for what a subclass does.
_LOADED: Final[dict[str, tuple[Any, ...]]] = {
    "bytea": (string.ByteaLoader, string.ByteaBinaryLoader),
    "uuid": (uuid.UUIDLoader, uuid.UUIDBinaryLoader),
    **dict.fromkeys(("text", "varchar", "bpchar"), (string.TextLoader, string.TextBinaryLoader)),
}


def register(
    context: AdaptContext | None = None,
    *,
    forms: Mapping[type[Any], str] | None = None,
    load: Mapping[str, Any] | None = None,
) -> None:
    """Let IDs be parameters, and read columns as IDs where it is told which.

    A call says all: what an earlier one said of forms is forgotten.

    :param context: a connection or a cursor, of asyncio or not; all of this process where it is left out.
    :param forms: by class of IDs, what they are sent as: ``bytes``, ``uuid`` or ``text``. What is not named is sent
        in its default form (:doc:`/reference/storage`).
    :param load: by type of PostgreSQL, the class of IDs that its values become, or ``TypeID("user")`` for TypeIDs of a
        prefix: ``{"uuid": uuid.ID}``. The types are
        ``bytea``, ``uuid``, ``text``, ``varchar`` and ``bpchar``, which is ``CHAR(n)``. A domain counts as the type
        that it is made of: the server says no more of a column.
    :raises ArgumentError: ``argument.type``: no class of IDs, or another type of PostgreSQL.
    :raises ConfigError: ``config.form``: IDs of a class have no such form.
    """
    adapters = context.adapters if context is not None else psycopg.adapters
    dumpers = [(python, dumper) for python, form in chosen(forms).items() for dumper in _dumpers(form)]
    loaders = [(name, _loader(base, read)) for name, read in readers(load, _LOADED).items() for base in _LOADED[name]]
    for python, dumper in dumpers:
        adapters.register_dumper(python, dumper)
    for name, loader in loaders:
        adapters.register_loader(name, loader)


def _dumpers(form: Form) -> Iterator[type[Dumper]]:
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
        """Reads an ID of what psycopg itself would have read."""

        def load(self, data: Any) -> Any:
            return read(super().load(bytes(data)))

    return IDLoader
