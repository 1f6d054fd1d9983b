"""The bit picture of an ID: its bits in rows of 32, with the fields that they belong to. Lengths are pixels."""

from __future__ import annotations

from typing import Final, NamedTuple

from mintage.formats.anatomy import Anatomy

A_ROW: Final = 32
CELL: Final = 15
GAP: Final = 6
"""The space after 8 bits."""
LINE: Final = 46
"""The distance of two rows: the bits, the name of their field, and a space."""
_LETTER: Final = 7
"""The width of a character of a label, rounded up."""


class Run(NamedTuple):
    """The bits of a field in one row; of an ID that is text, its characters."""

    style: str
    """The role of the field, with ``second`` if the field before has the same role."""
    x: int
    y: int
    width: int
    text: str
    places: str
    """The middle of each character of ``text``, as the ``x`` of SVG."""
    label: str
    """The name of the field, or its number where the name has no room."""


class BitPicture(NamedTuple):
    """The picture of one reading of an ID."""

    runs: list[Run]
    width: int
    height: int


def bit_picture(each: Anatomy) -> BitPicture:
    """Return the picture of a reading. The bytes of an ID that is text are its characters, which are clearer."""
    is_text = each.bytes == each.text.encode()
    size = 8 * len(each.bytes)
    shown = each.text if is_text else f"{each.int:0{size}b}"
    unit, gap = (8, 0) if is_text else (1, GAP)
    runs: list[Run] = []
    style = ""
    for number, field in enumerate(each.fields, 1):
        style = f"{field.role} second" if style == field.role else field.role
        high, low = field.bits
        start, stop = (size - 1 - high) // unit, (size - low) // unit
        for row in range(start // A_ROW, (stop - 1) // A_ROW + 1):
            first, last = max(start, row * A_ROW), min(stop, row * A_ROW + A_ROW)
            xs = [at * CELL + at // 8 * gap for at in range(first - row * A_ROW, last - row * A_ROW)]
            width = xs[-1] - xs[0] + CELL
            places = " ".join(f"{x + CELL / 2:g}" for x in xs)
            label = field.name if len(field.name) * _LETTER <= width else str(number)
            runs.append(Run(style, xs[0], row * LINE, width, shown[first:last], places, label))
    columns = min(A_ROW, len(shown))
    return BitPicture(runs, columns * CELL + (columns - 1) // 8 * gap, -(-len(shown) // A_ROW) * LINE)
