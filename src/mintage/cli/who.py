"""``mintage who``: which process minted an ID."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from mintage.cli.command import COLOR, JSON, command, option
from mintage.cli.inspect import given_ids
from mintage.cli.screen import ago, complain, moment, open_screen, show_rows
from mintage.cli.stores import STORE, opened
from mintage.errors import CATALOGUE, ParseError
from mintage.formats import times
from mintage.who import who as find

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from mintage.cli.screen import Screen, Span
    from mintage.store import Store
    from mintage.who import Finding

_STYLES: Final = {"held": "ok", "forgotten": "attention", "late": "attention"}


@command(
    "who",
    option(
        "ids",
        metavar="ID",
        nargs="*",
        help="an ID; without any, the command reads one a line from standard input",
    ),
    STORE,
    COLOR,
    JSON,
    examples="""
  mintage who brpk4q72xwf2m63l
  mintage who --json < ids.txt | jq -r '.findings[0] | select(.state == "held") | .holder.host'""",
)
def who(args: argparse.Namespace) -> int:
    """Find which process minted an ID.

    The store knows who has or had each node number at which times: mintage reads the node number and the time from the
    ID and asks the store. If an ID can be read in several ways, or several pools have its layout, each is shown.
    'forgotten' says that the history of the pool does not reach back to the time of the ID; 'free' says that nobody had
    the node number then, so that the ID is not from a lease of this store. 'mintage pools create' sets the length of
    the history.
    """
    screen = None if args.json else open_screen(args.color)
    status = 0
    with opened(args, reads=True) as store:
        for text, found in _answers(args, store):
            report: dict[str, Any] = {"input": text, "findings": []}
            if isinstance(found, ParseError):
                report["error"] = {"code": found.code, "message": str(found)}
                status = complain(str(found), CATALOGUE[found.code].exit)
            elif screen is None:
                report["findings"] = [each.as_dict() for each in found]
            else:
                _draw(screen, text, found)
            if screen is None:
                print(json.dumps(report))
            sys.stdout.flush()
    return status


def _answers(args: argparse.Namespace, store: Store) -> Iterator[tuple[str, Sequence[Finding] | ParseError]]:
    """Yield the findings of each ID, or the reason why it is none."""
    for text in given_ids(args):
        try:
            yield text, find(text, store)
        except ParseError as error:
            yield text, error


def _draw(screen: Screen, text: str, found: Sequence[Finding]) -> None:
    screen.line((text, "title"))
    hints: list[Finding] = []
    for each in found:
        if each.state == "unknown pool" and len(found) > 1:
            hints.append(each)
            continue
        screen.line()
        when = f"  {_when(each)}" if each.time else ""
        screen.line(
            ("  ", ""),
            (each.format, "name"),
            (when, "time"),
            ("  ", ""),
            (each.state, _STYLES.get(each.state, "quiet")),
        )
        screen.line(("  " + each.sentence, ""))
        if rows := _rows(each):
            show_rows(screen, rows)
        if each.why:
            screen.line(("  " + each.why, "quiet"))
    if hints:
        screen.line()
        screen.line((f"  the store has no pool for {', '.join(each.format for each in hints)}", "quiet"))
    screen.line()


def _rows(each: Finding) -> list[list[Span]]:
    values: dict[str, Any] = {"pool": each.pool, "node": each.node}
    if each.holder is not None:
        values |= {"host": each.holder.host, "process": each.holder.pid, "generation": each.holder.generation}
        values["started"] = each.holder.started and f"{each.holder.started:%Y-%m-%d %H:%M:%S}"
        values["version"] = each.holder.version
    if each.until_ms is not None:
        values["window"] = f"{moment(each.floor_ms) if each.floor_ms else '-'} to {moment(each.until_ms)}"
    values["granted"] = moment(each.since_ms) if each.since_ms and each.node is not None else None
    return [[(f"  {name}", "quiet"), (str(value), "")] for name, value in values.items() if value is not None]


def _when(each: Finding) -> str:
    if each.time is None:
        return ""
    return (
        f"{times.stamp(each.time).replace('T', ' ').removesuffix('Z')} UTC, {ago(time.time() - each.time.timestamp())}"
    )
