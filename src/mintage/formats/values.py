"""The bytes of an ID, and the name of its class in messages."""

from __future__ import annotations

from mintage.errors import ArgumentError

__all__ = ["raw", "type_name"]


def type_name(kind: type) -> str:
    """Return how messages call a class: ``ulid.ID``, ``UUID``, ``int``."""
    return f"{kind.__module__.rpartition('.')[2]}.ID" if kind.__name__ == "ID" else kind.__name__


def raw(id: object) -> bytes:
    """The bytes of an ID, big-endian: any of mintage's, a ``uuid.UUID`` or a ``bson.ObjectId``; or bytes themselves.

    :raises ArgumentError: it is no such thing.
    """
    if hasattr(type(id), "__bytes__") or isinstance(id, (bytes, bytearray, memoryview)):
        return bytes(id)  # type: ignore[call-overload, no-any-return]
    # uuid.UUID and its like have the first, bson.ObjectId the second.
    for name in ("bytes", "binary"):
        found = getattr(id, name, None)
        if isinstance(found, bytes):
            return found
    if isinstance(id, int):
        message = "an int has no width: say how many bytes it is of, with int.to_bytes"
        raise ArgumentError(message, code="argument.type")
    hint = ": text is read by ID.parse" if isinstance(id, str) else ""
    raise ArgumentError(f"id must be an ID or bytes, not {type_name(type(id))}{hint}", code="argument.type")
