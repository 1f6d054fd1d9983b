"""``mintage schemes``: list the layouts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from mintage.cli.command import COLOR, JSON, UsageError, command, option
from mintage.cli.screen import Span, in_columns, open_screen, styles_of
from mintage.formats import catalogue, times
from mintage.formats.kinds import KINDS

if TYPE_CHECKING:
    import argparse

    from mintage import snowflake

LAYOUT: Final = option(
    "--layout",
    metavar="LAYOUT",
    help="a layout of snowflake: one of 'mintage schemes', or 'time:41 node:10 sequence:12 @EPOCH_MS UNITms'",
)


def layout_of(args: argparse.Namespace) -> snowflake.Layout | None:
    """Return the layout that the option ``--layout`` names or declares, or ``None`` without the option.

    :raises UsageError: the scheme has no layouts, or there is no such layout.
    :raises ConfigError: ``config.layout``: it declares fields that do not fit.
    """
    if args.layout is None:
        return None
    if KINDS[args.scheme].layout is None:
        raise UsageError(f"--layout belongs to snowflake, not to {args.scheme}")
    if (layout := catalogue.read_layout(args.layout)) is None:
        names = ", ".join(catalogue.LAYOUTS)
        example = "'time:41 node:10 sequence:12 @1735689600000 1ms'"
        raise UsageError(f"{args.layout!a:.80} is not a layout; use {names}, or declare one as {example}")
    return layout


@command(
    "schemes",
    COLOR,
    JSON,
    examples="""
  mintage schemes
  mintage schemes --json | jq -r 'select(.mints) | .name'""",
)
def schemes(args: argparse.Namespace) -> int:
    """List the layouts: their fields, nodes, IDs a second for each node, and the date when each runs out."""
    # A cuid grows with its time; the last of its widths decides when cuids run out.
    known = {each.name: each for each in (*catalogue.FORMATS, *catalogue.AMBIGUOUS_FORMATS)}
    if args.json:
        for each in known.values():
            print(json.dumps(_facts(each)))
        return 0
    screen = open_screen(args.color)
    explained: dict[str, list[str]] = {}
    for each in known.values():
        if each not in catalogue.MINTED:
            explained.setdefault(each.scheme, []).extend([each.layout] if each.layout else [])
    words = ("scheme", "bits", "nodes", "IDs/s per node", "runs out")
    rows: list[list[Span]] = [[(word, "quiet") for word in words]]
    for each in catalogue.MINTED:
        nodes, rate = (_short(number) for number in (each.nodes, each.ids_per_second))
        rows.append([(each.name, "name"), str(_used_bits(each)), nodes, rate, _until(each)])
    head, *lines = in_columns(rows, range(1, 5))
    screen.line(*head)
    for cells, each in zip(lines, catalogue.MINTED, strict=True):
        parts = [part for part in each.parts if part.name != "unused"]
        spans = zip(parts, styles_of(parts), strict=True)
        screen.line(*cells)
        screen.line(" ", *((f" {part.name}:{part.bits}", style) for part, style in spans))
    screen.line()
    screen.line(("'mintage inspect' also explains", "quiet"))
    for scheme, layouts in explained.items():
        if layouts:
            screen.line("  " + scheme, (f" {' '.join(layouts)}", "quiet"))
    if single := [scheme for scheme, layouts in explained.items() if not layouts]:
        screen.line("  " + ", ".join(single))
    return 0


def _used_bits(each: catalogue.Format) -> int:
    return sum(part.bits for part in each.parts if part.name != "unused")


def _short(number: int | None) -> str:
    if number is None:
        return "-"
    for word, size in (("trillion", 10**12), ("billion", 10**9)):
        if number >= size:
            return f"{number / size:.1f} {word}"
    return f"{number:,}"


def _until(each: catalogue.Format) -> str:
    return each.expires.date().isoformat() if each.expires else "after 9999" if each.clock else "never"


def _facts(each: catalogue.Format) -> dict[str, object]:
    parts = [part for part in each.parts if part.name != "unused"]
    return {
        "name": each.name,
        "scheme": each.scheme,
        "layout": each.layout,
        "mints": each in catalogue.MINTED,
        "bits": _used_bits(each),
        "fields": [{"name": part.name, "bits": part.bits, "role": part.role} for part in parts],
        "nodes": _number(each.nodes),
        "ids_per_second_per_node": _number(each.ids_per_second),
        "expires": times.stamp(each.expires) if each.expires else None,
        "source": each.source,
    }


def _number(number: int | None) -> str | None:
    """Return an integer as JSON has it: those that may exceed 32 bits are strings."""
    return None if number is None else str(number)
