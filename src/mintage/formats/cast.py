"""IDs as others: :func:`cast` changes the class and keeps the bits, :func:`derive` makes an ID of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from mintage._core import typeid
from mintage.errors import ArgumentError, FieldError, ParseError
from mintage.formats.values import raw, type_name

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["cast", "derive"]

T = TypeVar("T")


def _as_uuid(id: object, data: bytes) -> UUID:
    # A shorter ID has a form of its own as a UUID, which its from_uuid takes.
    form = getattr(id, "as_uuid", None)
    if form is not None:
        made: UUID = form()
        return made
    _check_size(id, data, UUID, 16)
    return UUID(bytes=data)


def _check_size(id: object, data: bytes, to: type, size: int) -> None:
    if len(data) == size:
        return
    wrong = "lost" if len(data) > size else "made up"
    message = (
        f"{type_name(type(id))} of {len(data)} bytes is no {type_name(to)}, which has {size}: bits would be {wrong}"
    )
    raise ParseError(message, code="parse.length")


def cast(id: object, to: type[T]) -> T:
    """Return the same bits as an ID of another class: nothing is lost, and nothing made up.

    ``to`` is ``int`` or ``bytes``, which any ID is; ``uuid.UUID``; the ``ID`` of any of mintage's modules; or
    ``bson.ObjectId``. IDs of 16 bytes are each other's, and so are those of 12. ``sno`` has a form as a UUID, which
    :meth:`~mintage.sno.ID.as_uuid` describes. What the bits mean, nobody checks: a random UUID becomes a ULID of a
    random time.

    :param id: an ID, a ``uuid.UUID``, a ``bson.ObjectId``, bytes, or the int of a class's bits.
    :raises ArgumentError: ``id`` is none of these, or text, which is read by ``ID.parse``; or ``to`` is no such class.
    :raises ParseError: ``parse.length``: the class has more bytes or fewer.
    :raises FieldError: ``field.range``: an int is of more bits than the class.
    """
    if not isinstance(to, type):
        raise ArgumentError(f"to must be a class, not {type_name(type(to))}", code="argument.type")
    target: Any = to
    made: Any
    if isinstance(id, target):
        made = id
    elif isinstance(id, int):
        made = _of_int(id, target)
    else:
        data = raw(id)
        if target is bytes:
            made = data
        elif target is int:
            made = int.from_bytes(data, "big")
        elif target is UUID:
            made = _as_uuid(id, data)
        elif hasattr(target, "from_uuid") and isinstance(id, UUID):
            made = target.from_uuid(id)
        elif hasattr(target, "from_bytes"):
            _check_size(id, data, target, len(bytes(target.from_int(0))))
            made = target.from_bytes(data)
        else:
            made = _foreign(id, data, target)
    return made  # type: ignore[no-any-return]


def _of_int(id: int, to: Any) -> Any:
    if to is UUID:
        if not 0 <= id < 1 << 128:
            raise FieldError("int is outside 0..2^128 - 1", code="field.range")
        return UUID(int=id)
    if hasattr(to, "from_int"):
        return to.from_int(id)
    if to is bytes:
        raw(id)
    raise _no_class(to)


def _foreign(id: object, data: bytes, to: Any) -> Any:
    if to.__module__.startswith("bson.") and to.__name__ == "ObjectId":
        _check_size(id, data, to, 12)
        return to(data)
    raise _no_class(to)


def _no_class(to: Any) -> ArgumentError:
    name = type_name(to)
    why = {
        "typeid.ID": "which needs a prefix: use typeid.ID(prefix, id)",
        "str": "as an ID has many texts: use str(id) or mintage.text.encode",
    }.get(name, "which is neither int, bytes, uuid.UUID nor a class of IDs")
    return ArgumentError(f"nothing can be cast to {name}, {why}", code="argument.type")


def derive(parent: object, key: str | Buffer) -> UUID:
    """A UUID of version 8 that follows from a parent's ID and a key: the same for the same two, another for any other.

    So what belongs to an order, its invoice or its n-th retry, needs no ID of its own to be stored. A name as a key is
    public: anyone with the parent's ID can derive the same. With 16 random bytes or more that are kept secret, nobody
    can derive it, nor tell which parent it is of.

    The UUID is the first 16 bytes of HMAC-SHA-256 (FIPS 198-1) under the SHA-256 of the key, with version and variant
    as RFC 9562 has them, so 122 bits of it. What is hashed is ``mintage.derive``, a zero byte, the word ``bytes``,
    ``text``, ``int`` or ``typeid``, a zero byte, and the ID: its bytes, its text in UTF-8, as many big-endian bytes as
    an int needs, 8 at least, or a TypeID's prefix, a zero byte and its bytes. So IDs of the same bytes are one parent,
    whatever their classes, and TypeIDs of two prefixes are two.

    >>> from mintage import derive, ulid
    >>> derive(ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"), "invoice")
    UUID('3684020a-a1ef-826b-beee-7fde84b0e6f4')

    :param parent: an ID, as :func:`cast` takes it, or the text of one that has no other form.
    :param key: text, which stands for its UTF-8, or bytes; one at least. Every byte counts.
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
        raise FieldError("key is empty", code="field.format")
    # HMAC pads keys with zero bytes and hashes those of more than 64: not those of 32, which are another for each key.
    made = digest(sha256(secret).digest(), b"mintage.derive\0" + _message(parent), "sha256")[:16]
    number = int.from_bytes(made, "big") & ~(0xF << 76 | 0x3 << 62)
    return UUID(int=number | 0x8 << 76 | 0x2 << 62)


def _message(parent: object) -> bytes:
    if isinstance(parent, str):
        return b"text\0" + parent.encode("utf-8", "surrogatepass")
    if isinstance(parent, int):
        if parent < 0:
            raise FieldError("parent is negative", code="field.range")
        return b"int\0" + parent.to_bytes(max(8, (parent.bit_length() + 7) // 8), "big")
    if isinstance(parent, typeid.ID):
        return b"typeid\0" + parent.prefix.encode() + b"\0" + bytes(parent)
    return b"bytes\0" + raw(parent)
