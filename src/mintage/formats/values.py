"""The bytes of an ID, and how messages name its class and write integers."""

from __future__ import annotations

import operator
from typing import Final

from mintage.errors import ArgumentError

MAX_SHOWN_BITS: Final = 128
"""The size of the largest integer whose digits a message has."""
_MAX_DIGITS: Final = 50
"""More than the 49 digits of an ID of 160 bits."""


def type_name(kind: type) -> str:
    """Return the name of a class for messages: ``ulid.ID``, ``UUID``, ``int``."""
    return f"{kind.__module__.rpartition('.')[2]}.ID" if kind.__name__ == "ID" else kind.__name__


def integer_of(value: object) -> int | None:
    """Return the int of an integer, or ``None`` if the value is none that an ID can be.

    An int, an integral ``Decimal``, as drivers return from ``NUMERIC``, and an integer of NumPy are integers. A bool is
    not, nor is a float, which may be another ID's integer, rounded, nor a ``Decimal`` of more digits than any ID.
    """
    if isinstance(value, int):
        return None if isinstance(value, bool) else int(value)
    if hasattr(type(value), "__index__"):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:  # an array of NumPy
            return None
    from decimal import Decimal  # most processes read none

    if not isinstance(value, Decimal) or not value.is_finite() or value.adjusted() >= _MAX_DIGITS:
        return None  # the exponent of a short text can ask for an int of gigabytes
    return int(value) if value == value.to_integral_value() else None


def raw(id: object) -> bytes:
    """Return the big-endian bytes of an ID, of a ``uuid.UUID`` or of a ``bson.ObjectId``; bytes stay as they are.

    :raises ArgumentError: it is none of these.
    """
    if hasattr(type(id), "__bytes__") or isinstance(id, (bytes, bytearray, memoryview)):
        return bytes(id)  # type: ignore[call-overload, no-any-return]
    # uuid.UUID has the first, bson.ObjectId the second.
    for name in ("bytes", "binary"):
        found = getattr(id, name, None)
        if isinstance(found, bytes):
            return found
    if isinstance(id, int) and not isinstance(id, bool):
        message = "an int has no width: pass the bytes of int.to_bytes instead"
        raise ArgumentError(message, code="argument.type")
    hint = ": text is read by ID.parse" if isinstance(id, str) else ""
    raise ArgumentError(f"id must be an ID or bytes, not {type_name(type(id))}{hint}", code="argument.type")


def lost_digits(text: str) -> str:
    """Return the end of an error message for a text such as ``4.549E+17`` or ``454947766275222900.0``, else nothing.

    >>> lost_digits("4.549E+17"), lost_digits("ORD-17")
    ('; a spreadsheet or a float rounded an integer, and its last digits are lost: export the column as text', '')
    """
    import re

    if re.fullmatch(r"[0-9]+(?:[.,][0-9]*)?[eE]\+?[0-9]+|[0-9]{16,}[.,]0+", text[:64]):
        return "; a spreadsheet or a float rounded an integer, and its last digits are lost: export the column as text"
    return ""
