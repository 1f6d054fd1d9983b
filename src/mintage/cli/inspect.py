"""``mintage inspect``: take IDs apart."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mintage.cli.command import COLOR, JSON, command, option
from mintage.cli.screen import Glyphs, Screen, Span, complain, dated, open_screen, standard_input, styles_of
from mintage.errors import CATALOGUE, ParseError
from mintage.formats import anatomy
from mintage.tables.sources import each_line

if TYPE_CHECKING:
    import argparse

    from mintage.formats.anatomy import Anatomy


@command(
    "inspect",
    option("ids", metavar="ID", nargs="*", help="an ID; without any, the command reads one a line from standard input"),
    option("-1", "--best", action="store_true", help="show only the likeliest reading"),
    option("-a", "--all", action="store_true", help="draw unlikely readings too"),
    COLOR,
    JSON,
    examples="""
  mintage inspect 01ARZ3NDEKTSV4RRFFQ69G5FAV
  mintage inspect -1 175928847299117063 507f1f77bcf86cd799439011
  mintage new sno -n 3 | mintage inspect
  mintage inspect --json < ids.txt | jq -r .anatomies[0].time
  mintage inspect -- -dash-starts-this-one""",
)
def inspect(args: argparse.Namespace) -> int:
    """Take IDs apart: show every scheme that each can have, the likeliest first."""
    drawn = False

    def draw(screen: Screen, text: str, found: Sequence[Anatomy]) -> None:
        nonlocal drawn
        if drawn:
            screen.line()
        drawn = True
        _draw_all(screen, text, found, best=args.best, unlikely=args.all)

    return answer_each(args, "anatomies", anatomy.inspect, draw, most=1 if args.best else None)


def answer_each(
    args: argparse.Namespace,
    name: str,
    find: Callable[[str], Sequence[Any]],
    draw: Callable[[Screen, str, Sequence[Any]], None],
    *,
    most: int | None = None,
) -> int:
    """Answer for each ID of a command line, or else of standard input by line; return the exit code.

    :param name: the name of the answers in JSON.
    :param most: the number of answers for an ID in JSON, or ``None`` for all.
    """
    screen = None if args.json else open_screen(args.color)
    status = 0
    for text in args.ids or filter(None, each_line(standard_input())):
        report: dict[str, object] = {"input": text, name: []}
        try:
            found = find(text)
            if screen is None:
                report[name] = [each.as_dict() for each in found[:most]]
            else:
                draw(screen, text, found)
        except ParseError as error:
            report["error"] = {"code": error.code, "message": str(error)}
            status = complain(str(error), CATALOGUE[error.code].exit)
        if screen is None:
            print(json.dumps(report))
        sys.stdout.flush()
    return status


# --- drawing an ID ------------------------------------------------------------------------------------------------


def _draw_all(screen: Screen, text: str, found: Sequence[Anatomy], *, best: bool, unlikely: bool) -> None:
    """Draw the readings of a text, or the best one; an unlikely one is a line, unless ``unlikely`` is True."""
    screen.line((text, "title"))
    hints: list[list[Span]] = []
    for each in found[:1] if best else found:
        word = each.verdict
        if unlikely or each is found[0] or word != "unlikely":
            screen.line()
            when, verdict = dated(each.time), ("the only match", "quiet") if len(found) == 1 else (word, word)
            screen.line("  ", (each.name, "name"), (when and f"  {when}", "time"), "  ", verdict)
            _draw(screen, text, each)
        else:
            hints.append([("  unlikely", "quiet"), (each.name, "quiet"), (dated(each.time), "quiet")])
    if hints:
        screen.line()
        screen.wrapped_table(hints)


def _draw(screen: Screen, text: str, each: Anatomy) -> None:
    """Draw the reasons, the bits with their fields below, and a table of the fields."""
    screen.line(("  " + each.why, "quiet"))
    if each.text != text:
        screen.line(("  canonical text ", "quiet"), each.text)
    # The bytes of an ID that is text are its ASCII characters, which are clearer than their bits.
    as_text = each.bytes == each.text.encode()
    if not as_text:
        screen.line((f"  hex {each.bytes.hex()}", "quiet"))
    screen.line()
    styles = styles_of(each.fields)
    spots, rows = _cells(each, as_text, screen.columns - 2)
    for cells in rows:
        segments = [
            (style, *_segment(field.name, spot, cells, screen.glyphs))
            for field, spot, style in zip(each.fields, spots, styles, strict=True)
        ]
        screen.line("  ", *((shown, style) for style, shown, _ in segments))
        screen.line("  ", *((label, style) for style, _, label in segments))
    screen.line()
    table: list[list[Span]] = [
        [("  field", "quiet"), ("chars" if as_text else "bits", "quiet"), ("value", "quiet"), ("meaning", "quiet")]
    ]
    for field, spot, style in zip(each.fields, spots, styles, strict=True):
        first, last = (spot.start + 1, spot.stop) if as_text else field.bits
        place = f"{first}-{last}" if first != last else f"{first}"
        table.append([("  " + field.name, style), (place, "quiet"), (str(field.value), style), field.meaning])
    screen.wrapped_table(table)


def _cells(each: Anatomy, as_text: bool, columns: int) -> tuple[list[range], list[dict[int, str]]]:
    """Return the cells of each field, and the rows of cells by their number. A cell is a bit or a character.

    Bits form groups of 8, in rows of equal length that fit into ``columns``. Characters form a group for each field, in
    one row. A space follows the last cell of a group.
    """
    unit = 8 if as_text else 1
    size = 8 * len(each.bytes)
    spots = [
        range((size - 1 - high) // unit, (size - low) // unit) for high, low in (field.bits for field in each.fields)
    ]
    if as_text:
        ends = {spot.stop for spot in spots}
        return spots, [{at: char + " " * (at + 1 in ends) for at, char in enumerate(each.text)}]
    cells = [bit + " " * (at % 8 == 7) for at, bit in enumerate(f"{each.int:0{size}b}")]
    rows = -(-len(each.bytes) // max(1, min(8, (columns + 1) // 9)))
    length = 8 * -(-len(each.bytes) // rows)
    return spots, [dict(enumerate(cells[start : start + length], start)) for start in range(0, size, length)]


def _segment(name: str, spot: range, cells: dict[int, str], glyphs: Glyphs) -> tuple[str, str]:
    """Return a field's cells in a row, and the bracket below them with the field's name if there is room.

    The bracket has no end on a side where the field continues in another row.
    """
    shown = "".join(cells[at] for at in spot if at in cells)
    inner = len(shown.rstrip()) - 2
    begins, ends = spot.start in cells, spot.stop - 1 in cells
    if inner < 0:
        label = (glyphs.alone if begins and ends else glyphs.line) * len(shown.rstrip())
    else:
        spaced = f" {name} " if len(name) + 2 <= inner else name if len(name) <= inner else ""
        left, right = glyphs.left if begins else glyphs.line, glyphs.right if ends else glyphs.line
        label = left + spaced.center(inner, glyphs.line) + right
    return shown, label.ljust(len(shown))
