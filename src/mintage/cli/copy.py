"""``mintage copy``: bring the counters and pools of a store to another."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mintage.cli.command import COLOR, JSON, UsageError, command, option
from mintage.cli.screen import Span, complain, open_screen, progress, show_rows
from mintage.cli.stores import advised
from mintage.errors import StoreError
from mintage.lease.holder import Holder
from mintage.store import PAGE, Store, open_store
from mintage.store.copying import NamespaceCopy, PoolCopy, check_apart, copy_namespaces, copy_pools

if TYPE_CHECKING:
    import argparse

EXIT_WAITS: Final = 1


@command(
    "copy",
    option("--from", dest="source", metavar="URL", required=True, help="the store to read; 'ps' shows both URLs"),
    option("--to", dest="target", metavar="URL", required=True, help="the store to bring up to it"),
    option("--dry-run", action="store_true", help="print what the copy would do, and write nothing"),
    option(
        "--leases-ended",
        action="store_true",
        help="state that every process that minted with the first store has stopped, so that no window grows any more",
    ),
    COLOR,
    JSON,
    examples="""
  mintage copy --from sqlite:////var/lib/ids.db --to postgresql://ids:secret@db/ids --dry-run
  mintage copy --from sqlite:////var/lib/ids.db --to postgresql://ids:secret@db/ids""",
)
def copy(args: argparse.Namespace) -> int:
    """Copy the namespaces and pools of a store to another, which may be of another kind.

    Each namespace continues after the last integer that the first store reserved. Each node number continues after the
    end of its last window. Nothing is lowered, so repeat the copy as you like: after an interruption, and after the
    last process that mints with the first store has stopped. Leases are not copied, as their holders belong to the
    first store. While it has leases, the exit code is 1, and no process may mint with the second store yet.
    """
    with advised(StoreError), _opened(args.source) as source, _opened(args.target) as target:
        check_apart(source, target)
        with progress(0, "namespaces") as report:
            done = _show(args, copy_namespaces(source, target, dry_run=args.dry_run), report)
        pools = list(copy_pools(source, target, leases_ended=args.leases_ended, dry_run=args.dry_run))
        _show(args, pools)
    windows = sum(pool.windows for pool in pools)
    if not args.json:
        was, to = ("would be ", "with --dry-run nothing was written") if args.dry_run else ("", "")
        counts = f"{done['create']:,} {was}created, {done['raise']:,} {was}raised, {done['retire']:,} {was}retired"
        spans = f"{len(pools):,} pools with {windows:,} windows {was}copied"
        screen = open_screen(args.color)
        screen.line(f"namespaces: {counts}, {done['keep']:,} as they were; {spans}")
        if to:
            screen.line((to, "quiet"))
    return _warn_of_pools(pools)


@contextmanager
def _opened(url: str) -> Iterator[Store]:
    with open_store(url) as store:
        if store.promise == "process":
            raise UsageError(f"{store.url} ends with its process, so there is nothing to copy; name another store")
        yield store


def _show(
    args: argparse.Namespace, copies: Iterable[NamespaceCopy | PoolCopy], report: Callable[[int], None] | None = None
) -> Counter[str]:
    """Print copies as JSON, a line each, or as a table by the page; return their number by action."""
    done: Counter[str] = Counter()
    rows: list[list[Span]] = []
    try:
        for each in copies:
            done[each.action] += 1
            if report:
                report(done.total())
            if args.json:
                print(json.dumps(_facts(each)))
            elif isinstance(each, PoolCopy) or each.action != "keep":
                rows.append(_row(each))
            if len(rows) == PAGE:
                show_rows(open_screen(args.color), rows)
                rows.clear()
    finally:  # what was done before an error
        if rows:
            show_rows(open_screen(args.color), rows)
    return done


def _facts(each: NamespaceCopy | PoolCopy) -> dict[str, object]:
    if isinstance(each, NamespaceCopy):
        return {"namespace": each.name, "action": each.action, "next": None if each.next is None else str(each.next)}
    facts = {"pool": each.name, "action": each.action, "layout": each.layout, "windows": each.windows}
    waits = [{"node": wait.node, "holder": wait.holder, "left_ms": wait.left_ms} for wait in each.waits]
    return {**facts, "history_lost": each.is_forgotten, "waits": waits}


def _row(each: NamespaceCopy | PoolCopy) -> list[Span]:
    if isinstance(each, NamespaceCopy):
        return [(each.name, "name"), each.action, "none left" if each.next is None else f"next {each.next:,}"]
    action = (each.action, "quiet" if each.action == "keep" else "")
    return [(f"pool {each.name}", "name"), action, f"{each.windows:,} windows of {each.layout}"]


def _warn_of_pools(pools: list[PoolCopy]) -> int:
    """Report what keeps processes from minting with the target; return the exit code."""
    for pool in pools:
        if pool.is_forgotten:
            complain(
                f"the first store may have forgotten who had the node numbers of pool {pool.name!a}, and the second "
                "cannot know that: backfill with a pool of another name",
                0,
            )
    waits = [wait for pool in pools for wait in pool.waits]
    for wait in waits:
        holder = Holder.parse(wait.holder).words if wait.holder else "-"
        who = "a holder that the first store forgot" if wait.node is None else f"node {wait.node}, {holder},"
        complain(f"pool {wait.pool!a}: {who} may mint for {-(-wait.left_ms // 1000)} s", 0)
    if not waits:
        return 0
    longest = max(wait.left_ms for wait in waits)
    return complain(
        f"{len(waits)} windows have not ended, so no process may mint with the second store yet: stop all that mint "
        f"with the first, wait {-(-longest // 1000)} s, and copy again; if all have stopped, say so by --leases-ended",
        EXIT_WAITS,
    )
