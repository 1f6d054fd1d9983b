"""Keys of values: bytes of one width that are equal if the IDs are equal, and that sort as the IDs do."""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final
from uuid import UUID

from mintage.errors import MintError, ParseError
from mintage.formats.kinds import KINDS, UUID_BYTES, Kind, listed, snowflakes
from mintage.tables import InputError

if TYPE_CHECKING:
    from datetime import datetime

    from mintage import snowflake

_HEX_LENGTH: Final = 32
_UUID: Final = re.compile(r"[0-9A-Fa-f]{32}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}").fullmatch
_QUOTED_CHARACTERS: Final = 40
"""The most characters of a value in a message."""


def kind_of(scheme: str, layout: snowflake.Layout | None = None) -> Kind:
    """Return the kind of the IDs of a scheme.

    >>> from mintage import snowflake
    >>> kind_of("sno").size, kind_of("snowflake", snowflake.JS_SAFE).max == 2**53 - 1
    (10, True)

    :param scheme: the name of a scheme, such as ``"sno"``.
    :param layout: of snowflake; ``None`` for its default layout.
    :raises InputError: there is no such scheme, or it has no layouts.
    """
    if scheme not in KINDS:
        raise InputError(f"the scheme is {scheme!a:.80}; it must be {listed(KINDS, 'or')}")
    kind = KINDS[scheme]
    if layout is None:
        return kind
    if kind.layout is None:
        raise InputError(f"a layout belongs to snowflake, not to {scheme}")
    return snowflakes(layout)


class Reader:
    """A converter between the values of a column and keys.

    >>> reader = Reader(kind_of("snowflake"))
    >>> reader.keys([5, 7]) == reader.key("5") + reader.key(7)
    True
    >>> reader.text(reader.key(7))
    '7'

    :param kind: the IDs of the column, from :func:`kind_of`.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.width = kind.size or kind.lengths[1]
        """Bytes of a key."""
        self.has_unsorted_ids = kind.name == "uuid"
        """True if some IDs of the scheme do not sort by time: UUIDs of other versions than 7."""
        self._is_uuid = kind.size == UUID_BYTES and not kind.layout  # a UUID can hold the IDs
        # The pattern matches the whole text of an ID, and not a newline after it.
        self._match = re.compile(kind.pattern.removesuffix("$") + r"\Z").match if kind.size is None else None

    def keys(self, values: Sequence[object]) -> bytes | None:
        """Return the keys of many values, one after the other.

        This is the fast path. It returns ``None`` if one of the values is no ID, or if their types differ: :meth:`key`
        then finds the value and the reason.
        """
        types = set(map(type, values))
        try:
            if types == {str}:
                return self._of_texts(values)  # type: ignore[arg-type]
            if types == {int} and self.kind.layout:
                return self._of_integers(values)  # type: ignore[arg-type]
            if types == {bytes} and self.kind.size and not self.kind.layout:
                are_ids = set(map(len, values)) == {self.width}  # type: ignore[arg-type]
                return b"".join(values) if are_ids else None  # type: ignore[arg-type]
        except (MintError, UnicodeError):
            pass
        return None

    def _of_texts(self, texts: Sequence[str]) -> bytes | None:
        if self._match:
            return b"".join(self._padded(text) for text in texts) if all(map(self._match, texts)) else None
        joined = "".join(texts)
        if self.kind.layout:
            longest = max(map(len, texts))
            if not (joined.isascii() and joined.isdigit() and longest <= self.kind.length):
                return None
            return self._of_integers(list(map(int, texts)))
        lengths = set(map(len, texts))
        if self._is_uuid and lengths == {_HEX_LENGTH}:
            return b"".join(map(self.key, texts))
        if lengths != {self.kind.length}:
            return None
        keys: bytes = self.kind.module.Array.parse(joined).tobytes()
        return keys

    def _of_integers(self, numbers: Sequence[int]) -> bytes | None:
        if min(numbers) < 0 or max(numbers) > self.kind.max:
            return None
        items = array("Q", numbers)
        if sys.byteorder == "little":
            items.byteswap()
        return items.tobytes()

    def _padded(self, text: str) -> bytes:
        # On the left, because a longer cuid has a later time.
        return text.encode().rjust(self.width, b"\0")

    def key(self, value: object) -> bytes:
        """Return the key of one value: text, bytes, a UUID, an integer, or a ``Decimal`` without a fraction.

        :raises MintError: the value is no ID; :class:`~mintage.errors.FieldError` if it is an integer outside the
            layout.
        """
        if isinstance(value, Decimal) and value.is_finite() and abs(value) < 2**64 and value == int(value):
            value = int(value)
        if isinstance(value, str) and not value.isascii():
            raise ParseError(f"{value[:_QUOTED_CHARACTERS]!a} is no {self.kind.name}", code="parse.character")
        read = self.kind.read(self._uuid(value) if isinstance(value, str) else value)
        if self.kind.layout:
            return int(read).to_bytes(8, "big")
        return bytes(read) if self.kind.size else self._padded(read)

    def _uuid(self, text: str) -> str | UUID:
        """Return a text as the UUID that Django and SQLAlchemy write, in 32 or 36 characters, or as it is."""
        if self._is_uuid and _UUID(text) and len(text) != self.kind.length:
            return UUID(text)
        return text

    def text(self, key: bytes) -> str:
        """Return the text of the ID that a key stands for."""
        if self.kind.layout:
            return str(int.from_bytes(key, "big"))
        return str(self.kind.python.from_bytes(key)) if self.kind.size else key.lstrip(b"\0").decode()

    def bound(self, time: datetime, *, is_last: bool) -> bytes:
        """Return the smallest key of a time, or with ``is_last`` the largest one.

        :raises FieldError: the IDs do not sort by time, or the layout does not have this time.
        """
        return self.key(self.kind.max_at(time) if is_last else self.kind.min_at(time))

    def sorts_by_time(self, key: bytes) -> bool:
        """Return True if the ID of a key is one of those that sort by time."""
        return not self.has_unsorted_ids or key[6] >> 4 == 7
