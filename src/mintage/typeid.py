"""TypeIDs: a prefix that says what an ID is of, before any ID of 128 bits.

A view, not a format: the bits are those of a UUID, a ULID, a locality or a Sandflake. Version 0.3 of the specification.

>>> from mintage import typeid, ulid
>>> one = typeid.ID("user", ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"))
>>> str(one)
'user_01arz3ndektsv4rrffq69g5fav'
>>> typeid.ID.parse(str(one), "user").as_uuid()
UUID('01563e3a-b5d3-d676-4c61-efb99302bd5b')
"""

from __future__ import annotations

from functools import total_ordering
from typing import TYPE_CHECKING, Any, Protocol, final
from uuid import UUID

from mintage import uuid
from mintage._core import views
from mintage.casting import raw, type_name
from mintage.errors import ArgumentError, FieldError, ParseError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

__all__ = ["ID", "Generator", "new"]


class _Source(Protocol):
    def new(self) -> Any:
        """An ID of 128 bits."""

    def close(self) -> None:
        """Mints no more."""


@final
@total_ordering
class ID:
    """A prefix and 16 bytes. TypeIDs order as their text does; they hash, pickle and copy.

    ID(prefix, id)

    :param prefix: up to 63 characters of ``a-z``, with ``_`` inside; it may be empty.
    :param id: any ID of 128 bits, or 16 bytes.
    :raises ArgumentError: an argument of the wrong type.
    :raises FieldError: ``field.format``: the prefix is none.
    :raises ParseError: ``parse.length``: the ID has other than 16 bytes.
    """

    __slots__ = ("_prefix", "_raw")

    def __init__(self, prefix: str, id: object) -> None:
        views.check_prefix(prefix)
        self._prefix, self._raw = prefix, _sixteen(id)

    @classmethod
    def parse(cls, text: str, prefix: str | None = None) -> Self:
        """Reads a TypeID strictly, of any prefix, or of this one alone.

        :raises ArgumentError: ``text`` is not str.
        :raises ParseError: ``parse.length``, or ``parse.character`` with its ``position``; ``parse.unknown``: it has
            another prefix.
        """
        found, data = views.read_typeid(text)
        if prefix is not None and found != prefix:
            message = f"typeid text has the prefix {found!a}, needs {prefix!a:.70}"
            raise ParseError(message, code="parse.unknown")
        made = cls.__new__(cls)
        made._prefix, made._raw = found, data
        return made

    @property
    def prefix(self) -> str:
        """What it is of; empty where that is not said."""
        return self._prefix

    def as_uuid(self) -> UUID:
        """The ``uuid.UUID`` of the same 128 bits. :func:`mintage.cast` has the other classes."""
        return UUID(bytes=self._raw)

    def __bytes__(self) -> bytes:
        return self._raw

    def __int__(self) -> int:
        return int.from_bytes(self._raw, "big")

    def __str__(self) -> str:
        return views.write_typeid(self._prefix, self._raw)

    def __repr__(self) -> str:
        return f"typeid.ID.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ID):
            return NotImplemented
        return (self._prefix, self._raw) == (other._prefix, other._raw)

    def __lt__(self, other: object) -> bool:
        # As the text does: the separator is below every letter, and a digit follows it.
        if not isinstance(other, ID):
            return NotImplemented
        return (self._prefix, self._raw) < (other._prefix, other._raw)

    def __hash__(self) -> int:
        return hash((self._prefix, self._raw))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any, /) -> Any:
        """How Pydantic reads and writes IDs: see :mod:`mintage.ext.pydantic`.

        :raises ModuleNotFoundError: pydantic is not installed.
        """
        from mintage.extras import pydantic

        return pydantic().core_schema_of(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any, /) -> dict[str, Any]:
        """The JSON schema of an ID's text.

        :raises ModuleNotFoundError: pydantic is not installed.
        """
        from mintage.extras import pydantic

        return pydantic().json_schema_of(cls)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[type[ID], tuple[str, bytes]]:
        return ID, (self._prefix, self._raw)


_blank = object.__new__


def _sixteen(id: object) -> bytes:
    data = raw(id)
    if len(data) != 16:
        message = f"a TypeID is of 16 bytes, {type_name(type(id))} has {len(data)}"
        raise ParseError(message, code="parse.length")
    return data


@final
class Generator:
    """Mints TypeIDs of one prefix, over the IDs of another generator.

    Generator(prefix, of=None)

    Threads may share one, if they may share the other.

    :param prefix: up to 63 characters of ``a-z``, with ``_`` inside; it may be empty.
    :param of: a generator of IDs of 128 bits, such as ``ulid.Generator()``, which is closed with this one; by default
        one of UUIDs of version 7, for which the specification asks.
    :raises ArgumentError: an argument of the wrong type.
    :raises FieldError: ``field.format``: the prefix is none.
    """

    __slots__ = ("_of", "_prefix", "_read")

    def __init__(self, prefix: str, of: _Source | None = None) -> None:
        views.check_prefix(prefix)
        # A call of C code for what needs no look at each.
        is_uuid = of is None or isinstance(of, uuid.Generator)
        self._read: Callable[[Any], bytes] = uuid.ID.__bytes__ if is_uuid else _sixteen
        if of is None:
            of = uuid.Generator()
        if not callable(getattr(of, "new", None)):
            message = f"of must be a generator, not {type_name(type(of))}"
            raise ArgumentError(message, code="argument.type")
        self._prefix, self._of = prefix, of

    @property
    def prefix(self) -> str:
        """What its IDs are of."""
        return self._prefix

    def new(self) -> ID:
        """Mints a TypeID.

        :raises ParseError: ``parse.length``: the generator's IDs have other than 16 bytes.
        :raises MintError: as the ``new`` of the other generator.
        """
        made = _blank(ID)
        made._prefix = self._prefix
        made._raw = self._read(self._of.new())
        return made

    def batch(self, n: int) -> list[ID]:
        """Mints ``n`` TypeIDs into a list.

        :raises FieldError: ``field.range``: ``n`` is negative.
        :raises MintError: as :meth:`new`.
        """
        if n < 0:
            raise FieldError(f"n {n} is outside 0..", code="field.range")
        return [self.new() for _ in range(n)]

    def close(self) -> None:
        """Ends minting for good, and closes the other generator."""
        self._of.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ID:
        return self.new()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<typeid.Generator {self._prefix!r}>"


def new(prefix: str) -> ID:
    """Mints a TypeID over a UUID of version 7.

    :raises ArgumentError: ``prefix`` is not str.
    :raises FieldError: ``field.format``: it is no prefix.
    :raises GenerationError: as the ``new`` of :mod:`mintage.uuid`.
    """
    return ID(prefix, uuid.new())
