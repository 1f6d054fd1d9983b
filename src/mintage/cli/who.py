"""``mintage who``: which process minted an ID, or reserved an integer."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from mintage.cli.command import COLOR, JSON, command, option
from mintage.cli.inspect import given_ids
from mintage.cli.screen import ago, complain, moment, open_screen, show_rows
from mintage.cli.stores import STORE, opened
from mintage.errors import CATALOGUE, ConfigError, ParseError
from mintage.formats import anatomy, times
from mintage.rules import is_number
from mintage.who import who as find
from mintage.who import who_reserved

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from mintage.cli.screen import Screen, Span
    from mintage.store import Store
    from mintage.who import Finding, IntegerFinding

_STYLES: Final = {"held": "ok", "forgotten": "attention", "late": "attention", "unknown": "attention"}


@command(
    "who",
    option(
        "ids",
        metavar="ID",
        nargs="*",
        help="an ID, or a namespace and an integer; without any, the command reads an ID a line from standard input",
    ),
    STORE,
    COLOR,
    JSON,
    examples="""
  mintage who brpk4q72xwf2m63l
  mintage who orders 70123
  mintage who --json < ids.txt | jq -r '.findings[0] | select(.state == "held") | .holder.host'""",
)
def who(args: argparse.Namespace) -> int:
    """Find which process minted an ID, or reserved an integer of a namespace.

    The store knows who has or had each node number at which times: mintage reads the node number and the time from the
    ID and asks the store. If an ID can be read in several ways, or several pools have its layout, each is shown.
    'forgotten' says that the history of the pool does not reach back to the time of the ID; 'free' says that nobody had
    the node number then, so that the ID is not from a lease of this store. 'mintage pools create' sets the length of
    the history.

    Two arguments of which the second is a whole number are a namespace and an integer of it, if the store has that
    namespace, or if the first is no ID. The store then knows who reserved the integer. A service reserves for its
    clients. 'unknown' says that the client did not name itself.
    """
    screen = None if args.json else open_screen(args.color)
    status = 0
    with opened(args, reads=True) as store:
        if _is_integer(args.ids, store):
            _answer_integer(screen, who_reserved(args.ids[0], int(args.ids[1]), store))
            return 0
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


def _is_integer(words: Sequence[str], store: Store) -> bool:
    """Return True if the arguments are a namespace and an integer of it, rather than two IDs."""
    if len(words) != 2 or not is_number(words[1], 19):
        return False
    try:
        if store.get_namespace(words[0]) is not None:
            return True
        anatomy.inspect(words[0])
    except ParseError:
        return True
    except ConfigError:
        pass  # no name of a namespace
    return False


def _answer_integer(screen: Screen | None, found: IntegerFinding) -> None:
    text = f"{found.namespace} {found.integer}"
    if screen is None:
        print(json.dumps({"input": text, **found.as_dict()}))
        return
    screen.line((text, "title"))
    screen.line()
    screen.line(("  ", ""), (found.state, _STYLES.get(found.state, "quiet")))
    screen.line(("  " + found.sentence, ""))
    values = {"namespace": found.namespace, **_of_holder(found)}
    if found.since_ms is not None and found.until_ms is not None:
        values |= {"integers": f"{found.first} to {found.last}"}
        values |= {"reserved": f"{moment(found.since_ms)} to {moment(found.until_ms)}"}
    show_rows(screen, _shown(values))
    screen.line()


def _of_holder(found: Finding | IntegerFinding) -> dict[str, Any]:
    holder = found.holder
    if holder is None:
        return {}
    return {
        "host": holder.host,
        "process": holder.pid,
        "generation": holder.generation,
        "started": holder.started and f"{holder.started:%Y-%m-%d %H:%M:%S}",
        "version": holder.version,
    }


def _shown(values: dict[str, Any]) -> list[list[Span]]:
    return [[(f"  {name}", "quiet"), (str(value), "")] for name, value in values.items() if value is not None]


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
    values: dict[str, Any] = {"pool": each.pool, "node": each.node, **_of_holder(each)}
    if each.until_ms is not None:
        values["window"] = f"{moment(each.floor_ms) if each.floor_ms else '-'} to {moment(each.until_ms)}"
    values["granted"] = moment(each.since_ms) if each.since_ms and each.node is not None else None
    return _shown(values)


def _when(each: Finding) -> str:
    if each.time is None:
        return ""
    return (
        f"{times.stamp(each.time).replace('T', ' ').removesuffix('Z')} UTC, {ago(time.time() - each.time.timestamp())}"
    )
