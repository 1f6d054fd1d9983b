"""The bit picture of an ID: its bits in rows of 32, with the fields that they belong to. Lengths are pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    for number, (field, style) in enumerate(zip(each.fields, styles_of([e.role for e in each.fields]), strict=True), 1):
        high, low = field.bits
        spot = range((size - 1 - high) // unit, (size - low) // unit)
        for row, cells in _rows(spot):
            xs = [at * CELL + at // 8 * gap for at in cells]
            width = xs[-1] - xs[0] + CELL
            runs.append(
                Run(
                    style,
                    xs[0],
                    row * LINE,
                    width,
                    shown[row * A_ROW + cells.start : row * A_ROW + cells.stop],
                    " ".join(f"{x + CELL / 2:g}" for x in xs),
                    field.name if len(field.name) * _LETTER <= width else str(number),
                )
            )
    columns = min(A_ROW, len(shown))
    return BitPicture(runs, columns * CELL + (columns - 1) // 8 * gap, -(-len(shown) // A_ROW) * LINE)


def _rows(spot: range) -> Iterator[tuple[int, range]]:
    """Yield the rows that a range of cells is in, with the columns in each."""
    for row in range(spot.start // A_ROW, (spot.stop - 1) // A_ROW + 1):
        yield row, range(max(0, spot.start - row * A_ROW), min(A_ROW, spot.stop - row * A_ROW))


def styles_of(roles: Sequence[str]) -> list[str]:
    """Return the style of each field: its role, with ``second`` if the field before has the same one."""
    styles: list[str] = []
    for role in roles:
        styles.append(f"{role} second" if styles and styles[-1] == role else role)
    return styles
