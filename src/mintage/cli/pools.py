"""``mintage pools`` and ``leases``: node numbers and their holders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mintage.cli.command import UsageError, command, group, option, parse_duration, parse_int, parse_time
from mintage.cli.screen import Span, ago, moment, open_screen, show_facts, show_records
from mintage.cli.stores import SHOWN, in_pages, opened
from mintage.errors import ConfigError
from mintage.formats import catalogue, times
from mintage.lease.holder import Holder
from mintage.rules import SPAN_MS, NodeRecord, PoolRecord, end_of_windows, history_begin
from mintage.store import note_server

if TYPE_CHECKING:
    import argparse

    from mintage.store import Store


def _wanted(args: argparse.Namespace, store: Store) -> str:
    """Return the text of the layout for a new pool."""
    if args.layout is not None:
        return catalogue.pool_layout(args.layout).text
    if (record := store.get_pool(args.pool)) is not None:
        return record.layout
    try:
        return catalogue.pool_layout(args.pool).text
    except ConfigError as error:
        raise UsageError(f"a new pool called {args.pool!a} needs --layout: {error}") from error


# --- mintage pools -----------------------------------------------------------------------------------------------


@command(
    "list",
    *SHOWN,
    examples="""
  mintage pools list
  mintage pools list --json | jq -r 'select(.quarantine_until) | .pool'""",
)
def _list(args: argparse.Namespace) -> int:
    """List the pools: their layout, and the number of node numbers that are held.

    The command reads and prints 1,000 at a time.
    """
    with opened(args, reads=True) as store:
        now_ms = store.now_ms()
        for page in in_pages(store, store.each_pool()):
            noted = note_server(store, page, now_ms)
            _show_pools(args, [(each, *_counts(store, each.name, now_ms)) for each in noted], now_ms)
    return 0


def _show_pools(args: argparse.Namespace, found: Sequence[tuple[PoolRecord, int, int]], now_ms: int) -> None:
    def row(each: tuple[PoolRecord, int, int]) -> list[Span]:
        pool, granted, held = each
        left_ms = pool.quarantine_until_ms - now_ms
        quarantine: Span = (_length(left_ms), "attention") if left_ms > 0 else "-"
        counts = [_numbers(pool), f"{granted:,}", f"{held:,}", _length(pool.span_ms)]
        return [(pool.name, "name"), *counts, quarantine, (pool.layout, "quiet")]

    show_records(
        args,
        found,
        facts=lambda each: _pool_facts(*each, now_ms),
        head=("pool", "nodes", "granted", "held", "span", "quarantine", "layout"),
        row=row,
        right=range(1, 6),
        none="no pools yet: the first generator with this store creates one",
    )


@command(
    "show",
    option("pool", metavar="POOL", help="the name of the pool"),
    *SHOWN,
    examples="""
  mintage pools show sno""",
)
def _show(args: argparse.Namespace) -> int:
    """Show everything that the store records of a pool."""
    with opened(args, reads=True) as store:
        _show_pool(args, store, *note_server(store, [_find(store, args.pool)], store.now_ms()))
    return 0


@command(
    "create",
    option("pool", metavar="NAME", help="1 to 128 letters, digits and . _ : @ -"),
    option(
        "--layout",
        metavar="LAYOUT",
        help="the meaning of its node numbers: a scheme, sno/8 (with shards=8), a snowflake layout of "
        "'mintage schemes', or 'snowflake time:41 node:10 sequence:12 @EPOCH_MS UNITms' (default: the layout of the "
        "pool if it exists, else its name)",
    ),
    option(
        "--span-ms",
        type=parse_int,
        metavar="MS",
        help="the longest span that a new pool grants, in milliseconds (default, and least: that of generators)",
    ),
    option(
        "--never-used",
        action="store_true",
        help="state that no ID was ever minted with its node numbers, which ends its quarantine; if that is false, IDs "
        "repeat",
    ),
    option(
        "--history",
        type=parse_duration,
        metavar="TIME",
        help="how long to keep past grants, such as 30d or 12h, also in a pool that exists; off removes them and keeps "
        "none (default: 7d in a new pool)",
    ),
    option(
        "--nodes",
        metavar="FIRST-LAST",
        help="its share: the only numbers that it grants, such as 0-511, also in a pool that exists (default: all in a "
        "new pool)",
    ),
    option(
        "--wider-from",
        type=parse_time,
        metavar="TIME",
        help="state that no process of another store mints under --nodes at this time or later, so that the share of a "
        "pool that exists may be wider; if that is false, IDs repeat",
    ),
    *SHOWN,
    examples="""
  mintage pools create sno
  mintage pools create sno --history 30d
  mintage pools create sno --never-used
  mintage pools create sno --nodes 0-32767
  mintage pools create sno --nodes 0-65535 --wider-from "$(date -u +%FT%TZ)"
  mintage pools create eu.tweets --layout twitter
  mintage pools create eu.sno --layout sno/8""",
)
def _create(args: argparse.Namespace) -> int:
    """Create a pool of node numbers if it does not exist.

    The first generator creates its pool itself, so you seldom need this command. If the store cannot tell a new pool
    from a lost one, as on Redis, the pool begins in quarantine: it grants nothing until every lease that may have been
    lost has ended. --never-used ends the quarantine. Type it only for a pool whose node numbers no ID has, on this
    store or on one that lost its data: otherwise IDs repeat. A pool that has granted node numbers, and may have lost
    others, refuses it.

    A pool keeps its past grants for a time, so that you can look up the process that minted an ID. --history sets that
    time, also in a pool that exists.

    Stores that know nothing of each other divide the node numbers by --nodes: shares must be disjoint. The share of a
    pool that exists is narrowed at once. A holder of a number outside of it mints to the end of its window, so the
    command prints when another store may grant these numbers: that time is its --wider-from.
    """
    if args.wider_from is not None and args.nodes is None:
        raise UsageError("--wider-from needs --nodes: give the whole share")
    with opened(args) as store:
        terms: dict[str, Any] = {} if args.span_ms is None else {"span_ms": args.span_ms}
        layout = _wanted(args, store)
        if args.nodes is not None:
            terms["nodes"] = catalogue.read_share(layout, args.nodes)
        if args.wider_from is not None:
            terms["wider_from_ms"] = -(-times.unix_ns(args.wider_from, "--wider-from") // times.MS)
        record = store.create_pool(
            args.pool, layout=layout, never_used=args.never_used, history_ms=args.history, **terms
        )
        _show_pool(args, store, record, is_narrowed="nodes" in terms and "wider_from_ms" not in terms)
        if args.span_ms not in {None, record.span_ms} and not args.json:
            line = f"--span-ms {args.span_ms} had no effect: the span of a pool never changes, and is {SPAN_MS} or more"
            open_screen(args.color).line((line, "attention"))
    return 0


def _free_from(store: Store, pool: PoolRecord, now_ms: int) -> int:
    """Return the time, in milliseconds and a whole second, from which nobody mints outside the pool's new share."""
    is_used = any(each.node not in pool.share for each in store.each_lease(pool.name))
    # An extension from before the change may still be on its way, so the ends that the store shows are too early.
    free_ms = end_of_windows(pool, now_ms, store.clock_limit_ms) if is_used else now_ms
    return -(-free_ms // 1000) * 1000


pools = group("pools", "Pools of node numbers: list them, show one, create one.", _list, _show, _create)


def _find(store: Store, name: str) -> PoolRecord:
    if (found := store.get_pool(name)) is None:
        raise UsageError(f"there is no pool {name!a}: see 'mintage pools list'")
    return found


def _counts(store: Store, pool: str, now_ms: int) -> tuple[int, int]:
    """Return the number of a pool's node numbers that were ever granted, and of those that have a holder now."""
    granted = held = 0
    for each in store.each_lease(pool):
        granted += 1
        held += each.until_ms > now_ms
    return granted, held


def _numbers(pool: PoolRecord) -> str:
    layout, share = catalogue.known_pool_layout(pool.layout), catalogue.share_text(pool)
    count = f"{layout.nodes:,}" if layout else "-"
    return count if share is None else f"{share} of {count}"


def _length(ms: int) -> str:
    return f"{ms / 1000:,.1f}".removesuffix(".0") + " s"


def _kept(pool: PoolRecord, now_ms: int) -> str:
    if not pool.history_ms:
        return "not kept"
    begin_ms = history_begin(pool, now_ms)
    since = "from the next grant on" if begin_ms is None else f"since {moment(begin_ms)} UTC"
    days, rest_ms = divmod(pool.history_ms, 86_400_000)
    return f"kept for {f'{days:,} days' if not rest_ms else _length(pool.history_ms)}, {since}"


def _pool_facts(pool: PoolRecord, granted: int, held: int, now_ms: int) -> dict[str, object]:
    layout = catalogue.known_pool_layout(pool.layout)
    return {
        "pool": pool.name,
        "layout": pool.layout,
        "nodes": str(layout.nodes) if layout else None,
        "share": catalogue.share_text(pool),
        "granted": granted,
        "held": held,
        "span_ms": pool.span_ms,
        "floor": _stamp(pool.floor_ms),
        "quarantine_until": _stamp(pool.quarantine_until_ms) if pool.quarantine_until_ms > now_ms else None,
        "history_lost": pool.history_lost,
        "history_ms": pool.history_ms,
        "history_from": _stamp(history_begin(pool, now_ms) or 0),
        "identity": pool.identity,
        "expires": times.stamp(layout.ends) if layout and layout.ends else None,
    }


def _stamp(ms: int) -> str | None:
    """Return a time in milliseconds as text, or ``None`` for 0, which means that there is no bound."""
    time = times.utc(ms * times.MS)
    return times.stamp(time) if ms and time else None


def _show_pool(args: argparse.Namespace, store: Store, pool: PoolRecord, *, is_narrowed: bool = False) -> None:
    now_ms = store.now_ms()
    granted, held = _counts(store, pool.name, now_ms)
    free_from = _stamp(_free_from(store, pool, now_ms)) if is_narrowed else None
    if args.json:
        print(json.dumps(_pool_facts(pool, granted, held, now_ms) | ({"free_from": free_from} if free_from else {})))
        return
    screen = open_screen(args.color)
    layout = catalogue.known_pool_layout(pool.layout)
    left_ms = pool.quarantine_until_ms - now_ms
    quarantine: Span = "none"
    if left_ms > 0:
        quarantine = (f"for {_length(left_ms)}, until {moment(pool.quarantine_until_ms)} UTC", "attention")
    screen.line((pool.name, "title"))
    facts: dict[str, Span | None] = {
        "layout": pool.layout,
        "runs out": f"{layout.ends:%Y-%m-%d}" if layout and layout.ends else "-",
        "node numbers": f"{layout.nodes:,}" if layout else "not known to this version",
        "share": catalogue.share_text(pool) or "all of them",
        "other numbers": (f"free for another store from {free_from} on", "attention") if free_from else None,
        "granted": f"{granted:,}",
        "held now": f"{held:,}",
        "span": f"{_length(pool.span_ms)}, the longest that it grants",
        "floor": moment(pool.floor_ms) if pool.floor_ms else "none",
        "quarantine": quarantine,
        "history": "may be lost" if pool.history_lost else "complete",
        "past grants": _kept(pool, now_ms),
        "server": pool.identity,
    }
    show_facts(screen, facts)


# --- mintage leases ----------------------------------------------------------------------------------------------


@command(
    "list",
    option("pool", metavar="POOL", nargs="?", help="the name of a pool, to list its leases only"),
    *SHOWN,
    examples="""
  mintage leases list
  mintage leases list sno
  mintage leases list --json | jq -r 'select(.state == "held") | .holder'""",
)
def _leases(args: argparse.Namespace) -> int:
    """List the leases: the node number, its holder, and the end of the window.

    Times are UTC. 'floor' is the first time that the holder may use in IDs, 'until' the first that it may not use any
    more, and 'left' the time until then. A lease is 'held' until its window ends, 'ended' if its holder did not extend
    it, 'revoked' if its holder may mint to the end of the window but not extend it, and 'released' when the holder has
    given it back. If a copy of a holder, such as a restored snapshot, tried to extend the same lease, the list shows
    when. The command reads and prints 1,000 at a time.
    """
    with opened(args, reads=True) as store:
        if args.pool is not None:
            _find(store, args.pool)
        for page in in_pages(store, store.each_lease(args.pool)):
            _show_leases(args, page, store.now_ms())
    return 0


def _show_leases(args: argparse.Namespace, nodes: Sequence[NodeRecord], now_ms: int) -> None:
    def row(each: NodeRecord) -> list[Span]:
        word = _state(each, now_ms)
        quiet = "" if word in {"held", "revoked"} else "quiet"
        times = [moment(each.floor_ms) if each.floor_ms else "-", moment(each.until_ms), _left(each.until_ms - now_ms)]
        return [
            (each.pool, "name"),
            (f"{each.node:,}", "node"),
            (word, {"held": "ok", "revoked": "attention"}.get(word, "quiet")),
            *((time, quiet) for time in times),
            (_holder(each, now_ms), "attention" if each.cloned_ms else quiet),
        ]

    show_records(
        args,
        nodes,
        facts=lambda each: _lease_facts(each, now_ms),
        head=("pool", "node", "state", "floor", "until", "left", "holder"),
        row=row,
        right={1},
        none="no leases yet",
    )


@command(
    "release",
    option("pool", metavar="POOL", help="the name of the pool"),
    option("node", type=parse_int, metavar="NODE", help="the node number; see 'mintage leases list'"),
    *SHOWN,
    examples="""
  mintage leases release sno 0""",
)
def _release(args: argparse.Namespace) -> int:
    """Take a node number from its holder, at the end of the holder's window.

    This is always safe, so the command does not ask. The holder can mint until its window ends, which takes some
    seconds. Then it raises lease.lost, or leases another node number if it was created with on_lease_lost="move".
    Nobody else gets the node number before that.
    """
    with opened(args) as store:
        record, now_ms = store.revoke(args.pool, args.node), store.now_ms()
    if args.json:
        print(json.dumps(_lease_facts(record, now_ms)))
        return 0
    screen = open_screen(args.color)
    screen.line((f"node {record.node} of pool {record.pool}", "name"), f": {_state(record, now_ms)}")
    if record.until_ms > now_ms:
        until = f"{moment(record.until_ms)} UTC ({_left(record.until_ms - now_ms)} left)"
        holder = Holder.parse(record.holder).words if record.holder else "its holder"
        screen.line(f"  {holder} can mint until {until}, then raises lease.lost;")
        screen.line("  then the node number is free")
    else:
        screen.line("  its window has ended: the node number is free")
    return 0


leases = group("leases", "Leases of node numbers: list them, take one from its holder.", _leases, _release)


def _state(record: NodeRecord, now_ms: int) -> str:
    """Return the state of the last lease of a node number; a revoked lease is released when its window ends."""
    if record.token is None:
        return "revoked" if record.until_ms > now_ms else "released"
    return "held" if record.until_ms > now_ms else "ended"


def _holder(record: NodeRecord, now_ms: int) -> str:
    copied = f", and a copy of it {ago((now_ms - record.cloned_ms) / 1000)}" if record.cloned_ms else ""
    return (Holder.parse(record.holder).words if record.holder else "-") + copied


def _left(ms: int) -> str:
    return _length(ms) if ms > 0 else ago(-ms / 1000)


def _lease_facts(record: NodeRecord, now_ms: int) -> dict[str, object]:
    return {
        "pool": record.pool,
        "node": str(record.node),
        "state": _state(record, now_ms),
        "floor": _stamp(record.floor_ms),
        "until": _stamp(record.until_ms),
        "since": _stamp(record.since_ms),
        "left_ms": max(0, record.until_ms - now_ms),
        "span_ms": record.span_ms,
        "holder": record.holder,
        "cloned": _stamp(record.cloned_ms),
        "identity": record.identity,
    }
