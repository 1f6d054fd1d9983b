"""Values as messages and reports show them: short, on one line, and without control characters."""

from __future__ import annotations

from typing import Final

SHORT_CHARACTERS: Final = 40


def printable(text: str) -> str:
    r"""Return a text on one line, in which each character that is not printable is escaped.

    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def shorten(value: object) -> str:
    """Return the first 40 characters of a value as printable text; bytes are written in hexadecimal.

    >>> shorten("ORD-17"), shorten(bytes(3)), len(shorten("9" * 5000))
    ('ORD-17', '000000', 43)
    """
    text = value if isinstance(value, str) else value.hex() if isinstance(value, bytes) else str(value)
    text = text[: SHORT_CHARACTERS + 1]
    shown = printable(text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
    return shown if len(text) <= SHORT_CHARACTERS else f"{shown[:SHORT_CHARACTERS]}..."
