"""Integers, bytes and IDs as text of other bases: base 32, 36, 58, 62 and 64, and hex.

The text of bytes, and of any ID that has bytes, is as long for each ID of a class, and sorts as the IDs do, in every
base but ``base64url``, whose digits are in no order of ASCII's. The text of an int is as short as it can be, or of a
width that is given; of equal widths it sorts too.

>>> from mintage import text
>>> text.encode(255, "hex"), text.encode(255, "base36", width=4)
('ff', '0073')
>>> text.encode(b"\\x00\\x01\\xff", "base58"), text.decode_bytes("1119p", "base58", 3)
('1119p', b'\\x00\\x01\\xff')
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Final

from mintage._core import views
from mintage.errors import ArgumentError, ConfigError, FieldError, ParseError
from mintage.formats.values import raw

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["BASES", "decode", "decode_bytes", "encode"]

BASES: Final = dict(views.BASES)
"""The digits of each base, zero first: ``hex``, ``base32`` (Crockford's), ``base32sno``, ``base36``, ``base58``
(Bitcoin's), ``base62``, ``base64url`` (RFC 4648)."""
MOST_WIDTH: Final = 1024
"""Characters that a text is filled up to, or read from, at most."""


def _digits(base: str) -> str:
    found = BASES.get(base)
    if found is None:
        message = f"base {base!a:.40} is not one of {', '.join(BASES)}"
        raise ConfigError(message, code="config.policy")
    return found


def encode(value: int | Buffer | object, base: str = "base32", *, width: int | None = None) -> str:
    """Return the text of an int of 0 or more, of bytes, or of an ID.

    ``width`` is of ints alone: the characters that they are filled up to with the digit zero, 1,024 at most. Bytes, 24
    at most, have the width of the largest of as many. In ``base64url`` they are written as RFC 4648 says, without
    ``=``.

    :raises ArgumentError: an argument of the wrong type.
    :raises ConfigError: ``config.policy``: no such base.
    :raises FieldError: ``field.range``: a negative int, one that needs more characters, or too many bytes.
    """
    digits = _digits(base)
    if not isinstance(value, int):
        if width is not None:
            raise ArgumentError("width must be left out: bytes have their own", code="argument.type")
        return views.encode(base, raw(value))
    if value < 0:
        raise FieldError("int is negative, must be 0 or more", code="field.range")
    left, text = int(value), ""
    while left or not text:
        left, digit = divmod(left, len(digits))
        text = digits[digit] + text
    if width is None:
        return text
    try:
        wanted = index(width)
    except TypeError:
        raise ArgumentError(f"width must be int, not {type(width).__name__}", code="argument.type") from None
    if not len(text) <= wanted <= MOST_WIDTH:
        message = f"int needs {len(text)} characters, width {wanted} is outside {len(text)}..{MOST_WIDTH}"
        raise FieldError(message, code="field.range")
    return text.rjust(wanted, digits[0])


def decode(text: str, base: str = "base32") -> int:
    """Return the int of a text of any width. Digits are read strictly; hex in either case.

    :raises ArgumentError: ``text`` is not str.
    :raises ConfigError: ``config.policy``: no such base.
    :raises ParseError: ``parse.length``: it is empty, or of more than 1,024 characters; ``parse.character`` with its
        ``position``.
    """
    digits = _digits(base)
    if not isinstance(text, str):
        raise ArgumentError(f"text must be str, not {type(text).__name__}", code="argument.type")
    if not 1 <= len(text) <= MOST_WIDTH:
        raise ParseError(f"text has {len(text)} characters, needs 1 to {MOST_WIDTH}", code="parse.length")
    number = 0
    for position, character in enumerate(text):
        digit = digits.find(character.lower() if base == "hex" and character.isascii() else character)
        if digit < 0:
            message = f"text: {character!a} at position {position} is not a digit of {base}"
            raise ParseError(message, code="parse.character", position=position)
        number = number * len(digits) + digit
    return number


def decode_bytes(text: str, base: str, size: int) -> bytes:
    """So many bytes of their text, 1 to 24.

    :raises ArgumentError: an argument of the wrong type.
    :raises ConfigError: ``config.policy``: no such base.
    :raises FieldError: ``field.range``: the size.
    :raises ParseError: ``parse.length``, or ``parse.character`` with its ``position``: also a number of more bits.
    """
    return views.decode(base, text, size)
