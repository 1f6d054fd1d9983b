"""``mintage who``: which process minted an ID, or reserved an integer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from mintage.cli.command import UsageError, command, option
from mintage.cli.inspect import answer_each
from mintage.cli.screen import Screen, dated, moment, open_screen, show_facts
from mintage.cli.stores import SHOWN, opened
from mintage.errors import ConfigError, ParseError
from mintage.formats import anatomy
from mintage.rules import is_number
from mintage.who import Finding, IntegerFinding, who_reserved
from mintage.who import who as find

if TYPE_CHECKING:
    import argparse

    from mintage.store import Store

_STYLES: Final = {"held": "ok", "forgotten": "attention", "late": "attention", "unknown": "attention"}


@command(
    "who",
    option(
        "ids",
        metavar="ID",
        nargs="*",
        help="an ID, or a namespace and an integer; without any, the command reads an ID a line from standard input",
    ),
    *SHOWN,
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
    with opened(args, reads=True) as store:
        if _is_integer(args.ids, store):
            _answer_integer(args, who_reserved(args.ids[0], int(args.ids[1]), store))
            return 0
        return answer_each(args, "findings", partial(find, store=store), _draw)


def _is_integer(words: Sequence[str], store: Store) -> bool:
    """Return True if the arguments are a namespace and an integer of it, rather than IDs.

    :raises UsageError: they are neither.
    """
    if len(words) != 2:
        return False
    name, integer = words
    if not is_number(integer, 19):
        if not (_is_id(name) or _is_id(integer)):
            raise UsageError(
                f"neither {name!a:.42} nor {integer!a:.42} is an ID of any known scheme; for an integer of a "
                "namespace, write: mintage who NAMESPACE INTEGER"
            )
        return False
    try:
        return store.get_namespace(name) is not None or not _is_id(name)
    except ConfigError:
        return False  # no name of a namespace


def _is_id(text: str) -> bool:
    try:
        anatomy.inspect(text)
    except ParseError:
        return False
    return True


def _answer_integer(args: argparse.Namespace, found: IntegerFinding) -> None:
    text = f"{found.namespace} {found.integer}"
    if args.json:
        print(json.dumps({"input": text, **found.as_dict()}))
        return
    screen = open_screen(args.color)
    screen.line((text, "title"))
    screen.line()
    screen.line("  ", (found.state, _STYLES.get(found.state, "quiet")))
    screen.line("  " + found.sentence)
    facts = {"namespace": found.namespace, **_of_holder(found)}
    if found.since_ms is not None and found.until_ms is not None:
        facts["integers"] = f"{found.first} to {found.last}"
        facts["reserved"] = f"{moment(found.since_ms)} to {moment(found.until_ms)}"
    show_facts(screen, facts)
    screen.line()


def _of_holder(found: Finding | IntegerFinding) -> dict[str, str | int | None]:
    holder = found.holder
    if holder is None:
        return {}
    return {
        "host": holder.host,
        "process": holder.pid,
        "generation": holder.generation,
        "started": f"{holder.started:%Y-%m-%d %H:%M:%S}" if holder.started else None,
        "version": holder.version,
    }


def _draw(screen: Screen, text: str, found: Sequence[Finding]) -> None:
    screen.line((text, "title"))
    hints: list[Finding] = []
    for each in found:
        if each.state == "unknown pool" and len(found) > 1:
            hints.append(each)
            continue
        screen.line()
        when, state = dated(each.time), (each.state, _STYLES.get(each.state, "quiet"))
        screen.line("  ", (each.format, "name"), (when and f"  {when}", "time"), "  ", state)
        screen.line("  " + each.sentence)
        facts: dict[str, str | int | None] = {"pool": each.pool, "node": each.node, **_of_holder(each)}
        if each.until_ms is not None:
            facts["window"] = f"{moment(each.floor_ms) if each.floor_ms else '-'} to {moment(each.until_ms)}"
        facts["granted"] = moment(each.since_ms) if each.since_ms and each.node is not None else None
        show_facts(screen, facts)
        if each.why:
            screen.line(("  " + each.why, "quiet"))
    if hints:
        screen.line()
        screen.line((f"  the store has no pool for {', '.join(each.format for each in hints)}", "quiet"))
    screen.line()
