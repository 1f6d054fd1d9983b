"""IDs from IDs: :func:`cast` changes the class and keeps the bits, :func:`derive` makes a UUID of an ID and a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from mintage._core import typeid
from mintage.errors import ArgumentError, FieldError, ParseError
from mintage.formats.values import integer_of, raw, type_name

if TYPE_CHECKING:
    from typing_extensions import Buffer

T = TypeVar("T")


def _check_size(id: object, data: bytes, to: type, size: int) -> None:
    if len(data) == size:
        return
    wrong = "lost" if len(data) > size else "made up"
    message = (
        f"{type_name(type(id))} of {len(data)} bytes is no {type_name(to)}, which has {size}: bits would be {wrong}"
    )
    raise ParseError(message, code="parse.length")


def cast(id: object, to: type[T]) -> T:
    """Return an ID of another class with the same bits.

    Any two classes of one size can be cast into each other: those of 16 bytes, and those of 12. Also a ``sno.ID`` and a
    UUID, as :meth:`~mintage.sno.ID.as_uuid` describes. The meaning of the bits is not checked: a random UUID becomes a
    ULID of a random time.

    >>> from uuid import UUID
    >>> from mintage import cast, ulid
    >>> cast(UUID("01563e3a-b5d3-d676-4c61-efb99302bd5b"), ulid.ID)
    ulid.ID.parse('01ARZ3NDEKTSV4RRFFQ69G5FAV')

    :param id: an ID, a ``uuid.UUID``, a ``bson.ObjectId``, bytes, or an int with the bits of the class.
    :param to: ``int`` or ``bytes``, for any ID; ``uuid.UUID``; the ``ID`` of a module of mintage; or ``bson.ObjectId``.
    :raises ArgumentError: ``id`` is none of these, or is text, which ``ID.parse`` reads; or ``to`` is no such class.
    :raises ParseError: ``parse.length``: the class has another number of bytes.
    :raises FieldError: ``field.range``: the int has more bits than the class.
    """
    if not isinstance(to, type):
        raise ArgumentError(f"to must be a class, not {type_name(type(to))}", code="argument.type")
    target: Any = to
    made: Any
    if isinstance(id, target) and not isinstance(id, bool):
        made = id
    elif (number := integer_of(id)) is not None:
        made = _of_int(number, target)
    else:
        data = raw(id)
        if target is bytes:
            made = data
        elif target is int:
            made = int.from_bytes(data, "big")
        elif target is UUID and hasattr(id, "as_uuid"):
            made = id.as_uuid()  # a shorter ID has a UUID of its own, which its from_uuid reads
        elif target is UUID:
            _check_size(id, data, target, 16)
            made = UUID(bytes=data)
        elif hasattr(target, "from_uuid") and isinstance(id, UUID):
            made = target.from_uuid(id)
        elif hasattr(target, "from_bytes"):
            _check_size(id, data, target, len(bytes(target.from_int(0))))
            made = target.from_bytes(data)
        elif target.__module__.startswith("bson.") and target.__name__ == "ObjectId":
            _check_size(id, data, target, 12)
            made = target(data)
        else:
            raise _no_class(target)
    return made  # type: ignore[no-any-return]


def _of_int(id: int, to: Any) -> Any:
    if to is UUID:
        if not 0 <= id < 1 << 128:
            raise FieldError("int is outside 0..2^128 - 1", code="field.range")
        return UUID(int=id)
    if hasattr(to, "from_int"):
        return to.from_int(id)
    if to is int:
        return id
    if to is bytes:
        raw(id)
    raise _no_class(to)


def _no_class(to: Any) -> ArgumentError:
    name = type_name(to)
    why = {
        "typeid.ID": "which needs a prefix: use typeid.ID(prefix, id)",
        "str": "as an ID has many texts: use str(id) or mintage.text.encode",
    }.get(name, "which is neither int, bytes, uuid.UUID nor a class of IDs")
    return ArgumentError(f"nothing can be cast to {name}, {why}", code="argument.type")


def derive(parent: object, key: str | Buffer) -> UUID:
    """Return a UUID of version 8 that follows from a parent's ID and a key. The same two give the same UUID.

    Use it for an invoice of an order, or its third retry, so that you need not store another ID. If the key is a name,
    anyone with the parent's ID can derive the same UUID. If the key is 16 secret random bytes or more, nobody else can
    derive it, or tell which parent it has.

    The UUID is the first 16 bytes of an HMAC-SHA-256 (FIPS 198-1) under the SHA-256 of the key, with the version and
    variant of RFC 9562 in 6 of its bits. The message is ``mintage.derive``, a zero byte, the word ``bytes``, ``text``,
    ``int`` or ``typeid``, a zero byte, and the ID: its bytes; its text in UTF-8; the big-endian bytes of an int, at
    least 8; or the prefix of a TypeID, a zero byte and its bytes. So two IDs with the same bytes are one parent, also
    if their classes differ; two TypeIDs with different prefixes are two.

    >>> from mintage import derive, ulid
    >>> derive(ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"), "invoice")
    UUID('3684020a-a1ef-826b-beee-7fde84b0e6f4')

    :param parent: an ID that :func:`cast` accepts, or the text of an ID that is text only.
    :param key: text, which is encoded as UTF-8, or bytes; at least 1 byte. Every byte counts.
    :raises ArgumentError: an argument of the wrong type.
    :raises FieldError: ``field.range``: a negative int; ``field.format``: an empty key.
    """
    from hashlib import sha256
    from hmac import digest

    if isinstance(key, str):
        key = key.encode("utf-8", "surrogatepass")
    try:
        secret = bytes(memoryview(key))
    except TypeError:
        message = f"key must be str or bytes, not {type_name(type(key))}"
        raise ArgumentError(message, code="argument.type") from None
    if not secret:
        raise FieldError("key is empty, must have at least 1 byte", code="field.format")
    # HMAC pads a short key with zero bytes and hashes one of more than 64 bytes, so two keys could be one. A hash of 32
    # bytes is another for each key.
    made = digest(sha256(secret).digest(), b"mintage.derive\0" + _message(parent), "sha256")[:16]
    number = int.from_bytes(made, "big") & ~(0xF << 76 | 0x3 << 62)
    return UUID(int=number | 0x8 << 76 | 0x2 << 62)


def _message(parent: object) -> bytes:
    if isinstance(parent, str):
        return b"text\0" + parent.encode("utf-8", "surrogatepass")
    if (number := integer_of(parent)) is not None:
        if number < 0:
            raise FieldError("parent is negative, must be 0 or more", code="field.range")
        return b"int\0" + number.to_bytes(max(8, (number.bit_length() + 7) // 8), "big")
    if isinstance(parent, typeid.ID):
        return b"typeid\0" + parent.prefix.encode() + b"\0" + bytes(parent)
    return b"bytes\0" + raw(parent)
