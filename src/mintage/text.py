"""Integers, bytes and IDs as text in other bases: base 32, 36, 58, 62 and 64, and hex.

All IDs of a class have texts of one length, which sort as the IDs do. The exception is ``base64url``, whose digits are
not in the order of ASCII. The text of an int is as short as possible, or has the width that you give; texts of one
width sort as the ints do.

>>> from mintage import text
>>> text.BASES["hex"]
'0123456789abcdef'
>>> text.encode(255, "hex"), text.encode(255, "base36", width=4)
('ff', '0073')
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Final

from mintage._core import views
from mintage.errors import ArgumentError, ConfigError, FieldError, ParseError
from mintage.formats.values import integer_of, raw

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["BASES", "decode", "decode_bytes", "encode"]

BASES: Final = dict(views.BASES)
"""The digits of each base, zero first: ``hex``, ``base32`` (Crockford's), ``base32sno``, ``base36``, ``base58``
(Bitcoin's), ``base62``, ``base64url`` (RFC 4648)."""
MOST_WIDTH: Final = 1024
"""The largest ``width`` that :func:`encode` accepts, and the longest text that :func:`decode` reads, in characters."""


def _digits(base: str) -> str:
    found = BASES.get(base)
    if found is None:
        message = f"base {base!a:.40} is not one of {', '.join(BASES)}"
        raise ConfigError(message, code="config.policy")
    return found


def encode(value: int | Buffer | object, base: str = "base32", *, width: int | None = None) -> str:
    """Return the text of an int of 0 or more, of bytes, or of an ID.

    Up to 24 bytes can be written. Their text is as long as that of the largest value of this many bytes. ``base64url``
    follows RFC 4648 and writes no ``=``.

    >>> from mintage import text, ulid
    >>> text.encode(ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"), "base58")
    '1AaLyDYFxmKZxXbNo18znE'

    :param value: an int, bytes, or an ID.
    :param base: a name of :data:`BASES`.
    :param width: of an int only: the length of the text in characters, up to 1,024. Leading zeros fill it.
    :raises ArgumentError: an argument of the wrong type.
    :raises ConfigError: ``config.policy``: no such base.
    :raises FieldError: ``field.range``: a negative int, one that needs more characters, or too many bytes.
    """
    digits = _digits(base)
    number = integer_of(value)
    if number is None:
        if width is not None:
            raise ArgumentError("width is for an int only; leave it out for bytes and IDs", code="argument.type")
        return views.encode(base, raw(value))
    if number < 0:
        raise FieldError("int is negative, must be 0 or more", code="field.range")
    left, text = number, ""
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
        message = f"width {wanted} is outside {len(text)}..{MOST_WIDTH}: the int needs {len(text)} characters"
        raise FieldError(message, code="field.range")
    return text.rjust(wanted, digits[0])


def decode(text: str, base: str = "base32") -> int:
    """Return the int of a text of any width. Upper and lower case are told apart, except in hex.

    >>> from mintage import text
    >>> text.decode("7Z", "base32")
    255

    :param text: 1 to 1,024 digits.
    :param base: a name of :data:`BASES`.
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
    """Return the bytes of a text.

    >>> from mintage import text
    >>> text.decode_bytes("1119p", "base58", 3).hex()
    '0001ff'

    :param text: as many digits as :func:`encode` writes for this many bytes.
    :param base: a name of :data:`BASES`.
    :param size: the number of bytes, 1 to 24.
    :raises ArgumentError: an argument of the wrong type.
    :raises ConfigError: ``config.policy``: no such base.
    :raises FieldError: ``field.range``: the size.
    :raises ParseError: ``parse.length``, or ``parse.character`` with its ``position``: also a number of more bits.
    """
    return views.decode(base, text, size)
