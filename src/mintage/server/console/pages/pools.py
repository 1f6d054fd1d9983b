"""Pools, the node numbers of one, and the windows of a number: who holds what."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.responses import RedirectResponse
from starlette.routing import Route

from mintage.errors import ConfigError, RequestError
from mintage.formats.catalogue import read_pool_layout
from mintage.lease.holder import Holder
from mintage.rules import LATEST_MS, MAX_NODES, check_name, history_begin
from mintage.server.console.frame import caller, page, read, service_of, store_of
from mintage.server.console.node_map import STATES, NodeMap, node_map, state_of
from mintage.server.console.query import Query
from mintage.server.console.strip import Strip, Window, length, strip, whole_range, windows_of
from mintage.server.console.table import Column, Table
from mintage.store import PAGE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from starlette.requests import Request
    from starlette.responses import Response

    from mintage.rules import GrantRecord, NodeRecord, PoolRecord
    from mintage.store import Store

TITLE: Final = "Pools"
PATH: Final = "/pools"
MOST_RECORDS: Final = 65_536
"""The most records of node numbers that a page of a pool reads."""
MOST_GRANTS: Final = 200
"""The most past windows on a page of a node number."""
_SHOWN_WINDOWS: Final = 8
"""The windows in the picture of a page without a range: the last ones."""
_SPANS: Final = (("10 minutes", 600_000), ("hour", 3_600_000), ("day", 86_400_000), ("week", 604_800_000))


# --- all pools ----------------------------------------------------------------------------------------------------


class PoolUse(NamedTuple):
    """A pool, and how many of its node numbers are held."""

    record: PoolRecord
    nodes: int | None
    """The number of its node numbers; ``None`` if this version does not know the layout."""
    ends: datetime | None
    granted: int | None
    """The numbers that were ever granted; ``None`` if they were not counted."""
    held: int | None
    """The numbers in a window that still runs."""

    @property
    def share(self) -> float | None:
        """The percentage of its node numbers that are held."""
        return 100 * self.held / self.nodes if self.nodes and self.held is not None else None

    @property
    def meter(self) -> Markup | None:
        """The share as a picture and as text."""
        if self.share is None:
            return None
        return Markup(
            '<svg class="meter" width="64" height="10" aria-hidden="true">'
            '<path class="area of-held" d="M0 0h{:.1f}v10H0z"/><path class="outline" d="M.5 .5h63v9h-63z"/></svg>'
            " {:.3g} %"
        ).format(0.64 * self.share, self.share)


def read_pools(store: Store) -> list[PoolUse]:
    """Return all pools. It counts at most 2 × :data:`MOST_RECORDS` records of node numbers."""
    now_ms, left = store.now_ms(), 2 * MOST_RECORDS
    found = []
    for record in store.each_pool():
        granted = held = 0
        for each in islice(store.each_lease(record.name), left + 1):
            granted += 1
            held += each.until_ms > now_ms
        nodes, ends = layout_of(record)
        is_counted = granted <= left
        found.append(PoolUse(record, nodes, ends, granted if is_counted else None, held if is_counted else None))
        left = max(0, left - granted)
    return found


def layout_of(pool: PoolRecord) -> tuple[int | None, datetime | None]:
    """Return the number of a pool's node numbers and the end of its layout, as far as this version knows them."""
    try:
        _, nodes, ends = read_pool_layout(pool.layout) or ("", None, None)
    except ConfigError:
        return None, None
    return nodes, ends


def pool_url(pool: str, node: int | None = None, **query: object) -> str:
    """Return the URL of the page of a pool or of one of its node numbers."""
    path = f"/console{PATH}/{quote(pool, safe='')}" + ("" if node is None else f"/{node}")
    return f"{path}?{urlencode(query)}" if query else path


_POOLS: Final = (
    Column("pool", "Pool", lambda each: each.record.name, "code", link=lambda each: pool_url(each.record.name)),
    Column("layout", "Layout", lambda each: each.record.layout, "code"),
    Column("nodes", "Numbers", lambda each: each.nodes, "number"),
    Column("held", "Held", lambda each: each.held, "number"),
    Column("share", "In use", lambda each: each.share, "number", show=lambda each: each.meter),
    Column("granted", "Ever granted", lambda each: each.granted, "number"),
    Column("quarantine", "Quarantine until", lambda each: each.record.quarantine_until_ms or None, "time"),
    Column("ends", "Layout ends", lambda each: each.ends, "time"),
)


async def _pools(request: Request) -> Response:
    """Answer with all pools."""
    found = await read(request, "describe", "", read_pools, store_of(request))
    table = Table(
        Query.of(request),
        "Pools of node numbers",
        _POOLS,
        found,
        sort="pool",
        empty="No pools yet: the first generator with this store creates one.",
    )
    live = _interval_s(sum(each.granted or 0 for each in found))
    return await page(
        request, "pools.html", title=TITLE, tables=[table], live=live, may_create=caller(request).may_any("create")
    )


def _interval_s(records: int) -> int:
    """Return the seconds after which a browser fetches a page again, so that it takes less than 1 % of a core.

    A page of 10,000 records takes a fifth of a second.
    """
    return 5 + records // 400


# --- one pool -----------------------------------------------------------------------------------------------------


class PoolNodes(NamedTuple):
    """A pool and the records of its node numbers from a first one on."""

    pool: PoolRecord
    records: list[NodeRecord]
    stop: int | None
    """The first number that was not read, as there may be too many; ``None`` if all were."""
    now_ms: int
    """The store's clock."""

    @property
    def size(self) -> int:
        """The number of its node numbers; in a layout that this version does not know, up to the last one granted."""
        nodes, _ = layout_of(self.pool)
        return nodes or (self.records[-1].node + 1 if self.records else 1)

    def within(self, first: int, last: int) -> tuple[range, list[NodeRecord]]:
        """Return the part of the numbers ``first`` to ``last`` that was read, and its records."""
        stop = min(last + 1, self.size if self.stop is None else self.stop)
        low, high = (bisect_left(self.records, each, key=lambda record: record.node) for each in (first, stop))
        return range(first, stop), self.records[low:high]


def read_nodes(store: Store, pool: str, first: int = 0, most: int = MOST_RECORDS) -> PoolNodes | None:
    """Return a pool and its node numbers from ``first`` on; ``None`` if there is no such pool.

    :param most: the records after which it reads no further page.
    """
    record = store.get_pool(pool)
    if record is None:
        return None
    found: list[NodeRecord] = []
    stop = None
    while len(found) < most:
        part = store.list_leases(pool, found[-1].node if found else first - 1, PAGE)
        found += part
        if len(part) < PAGE:
            break
    else:
        stop = found[-1].node + 1
    return PoolNodes(record, found, stop, store.now_ms())


@dataclass(frozen=True)
class LeaseRow:
    """The row of a node number that was ever granted."""

    record: NodeRecord
    state: str

    @cached_property
    def holder(self) -> Holder:
        """The current or the last holder."""
        return Holder.parse(self.record.holder or "")


STATE: Final = Column(
    "state",
    "State",
    lambda each: each.state,
    show=lambda each: Markup('<span class="badge state-{0}">{0}</span>').format(each.state),
)
HOLDER: Final = (
    Column("host", "Host", lambda each: each.holder and (each.holder.host or None), "code"),
    Column(
        "process",
        "Process",
        lambda each: each.holder and each.holder.pid,
        show=lambda each: each.holder and each.holder.pid,
    ),
    Column("started", "Started", lambda each: each.holder and each.holder.started, "time"),
    Column("version", "Version", lambda each: each.holder and each.holder.version, "code"),
)
"""The columns of a row with a ``holder``."""
_LEASES: Final = (
    Column(
        "node",
        "Number",
        lambda each: each.record.node,
        "number",
        link=lambda each: pool_url(each.record.pool, each.record.node),
    ),
    STATE,
    *HOLDER,
    Column("granted", "Granted", lambda each: each.record.since_ms or None, "time"),
    Column("floor", "Window from", lambda each: each.record.floor_ms or None, "time"),
    Column("fence", "Fence", lambda each: each.record.until_ms, "time"),
)
_COPY: Final = Column("copy", "Copy seen", lambda each: each.record.cloned_ms or None, "time")


async def _pool(request: Request) -> Response:
    """Answer with the map of a pool's node numbers and their holders."""
    name, query = request.path_params["pool"], Query.of(request)
    check_name(name, "pool")
    if query.text("node"):
        return RedirectResponse(pool_url(name, query.integer("node", 0, 0, MAX_NODES - 1)), 303)
    first = query.integer("first", 0, 0, MAX_NODES - 1)
    last = query.integer("last", MAX_NODES - 1, first, MAX_NODES - 1)
    shown = query.one_of("state", ("live", "all", *STATES), "live")
    found = await _nodes(request, name, first, last)
    if first >= found.size:
        raise RequestError(f"first {first} is outside 0..{found.size - 1}", code="request.malformed")
    nodes, records = found.within(first, last)
    rows = [LeaseRow(each, state_of(each, found.pool, found.now_ms)) for each in records]
    wanted = {"live": ("held", "revoked"), "all": STATES}.get(shown, (shown,))
    chosen = [each for each in rows if each.state in wanted]
    has_copies = any(each.record.cloned_ms for each in rows)
    table = Table(
        query,
        "Holders" if shown == "live" else "Node numbers that were granted",
        (*_LEASES, _COPY) if has_copies else _LEASES,
        chosen,
        sort="node",
        empty="Nobody holds one of these numbers now." if shown == "live" else "There is none.",
        note="" if nodes.stop == min(last + 1, found.size) else _CUT.format(nodes.stop),
    )
    return await page(
        request,
        "pool.html",
        title=name,
        tables=[table],
        live=0 if table.search else _interval_s(len(records)),
        pool=found.pool,
        ends=layout_of(found.pool)[1],
        size=found.size,
        now_ms=found.now_ms,
        map=await asyncio.to_thread(_map, found, nodes, records, table),
        states=STATES,
        shown=shown,
        address=lambda cell: (
            pool_url(name, cell.first)
            if cell.first == cell.last
            else query.link(first=cell.first, last=cell.last, page=None)
        ),
        length=length,
    )


_CUT: Final = "There are more numbers that were ever granted: add ?first={} to the address."


async def _nodes(request: Request, name: str, first: int, last: int) -> PoolNodes:
    """Return a pool with the records of the numbers ``first`` to ``last``, and others.

    :raises RequestError: ``request.path``: there is no such pool; as :func:`read`.
    """
    found = await read(request, "describe", name, read_nodes, store_of(request), name)
    if found is None:
        raise RequestError(f"there is no pool {name!r}", code="request.path")
    if found.stop is None or first == 0 or last < found.stop:
        return found
    # One at a time and not kept, as it may take tens of megabytes, and there are many firsts.
    service = service_of(request)
    async with service.one_list():
        later = await service.ask(caller(request), "describe", name, read_nodes, service.store, name, first)
    return later or found


def _map(found: PoolNodes, nodes: range, records: list[NodeRecord], table: Table) -> NodeMap:
    marked = [each.record.node for each in table.rows] if table.search else ()
    return node_map(found.pool, records, nodes, found.now_ms, marked)


# --- one node number ----------------------------------------------------------------------------------------------


class NodeWindows(NamedTuple):
    """A node number of a pool and its past grants."""

    pool: PoolRecord
    record: NodeRecord | None
    grants: Sequence[GrantRecord]
    """The past grants, the latest first: one more than :data:`MOST_GRANTS` if there are older ones."""
    now_ms: int


def read_windows(store: Store, pool: str, node: int, before_ms: int) -> NodeWindows | None:
    """Return the grants of a node number whose windows began at or before ``before_ms``; ``None`` without the pool."""
    found = store.get_pool(pool)
    if found is None:
        return None
    # The record first: what a grant in between overwrites is in the history then.
    record = next((each for each in store.list_leases(pool, node - 1, 1) if each.node == node), None)
    grants = store.list_grants(pool, node, before_ms, MOST_GRANTS + 1)
    return NodeWindows(found, record, grants, store.now_ms())


@dataclass(frozen=True)
class WindowRow:
    """The row of a window."""

    window: Window
    state: str

    @cached_property
    def holder(self) -> Holder:
        """The process that had it."""
        return Holder.parse(self.window.holder)


_WINDOWS: Final = (
    Column("holder", "Holder", lambda each: each.window.letter),
    STATE,
    *HOLDER,
    Column("granted", "Granted", lambda each: each.window.since_ms or None, "time"),
    Column("floor", "Window from", lambda each: each.window.floor_ms or None, "time"),
    Column("until", "Window until", lambda each: each.window.until_ms, "time"),
    Column(
        "length_ms",
        "Length",
        lambda each: each.window.until_ms - each.window.starts_ms if each.window.starts_ms else None,
        show=lambda each: length(each.window.until_ms - each.window.starts_ms) if each.window.starts_ms else None,
    ),
)


async def _node(request: Request) -> Response:
    """Answer with the windows of a node number along time."""
    name, query = request.path_params["pool"], Query.of(request)
    check_name(name, "pool")
    node = _node_of(request.path_params["node"])
    before_ms = query.integer("before", LATEST_MS, 0, LATEST_MS)
    found = await read(request, "describe", name, read_windows, store_of(request), name, node, before_ms)
    if found is None:
        raise RequestError(f"there is no pool {name!r}", code="request.path")
    pool, now_ms = found.pool, found.now_ms
    size, _ = layout_of(pool)
    if size is not None and node >= size:
        raise RequestError(f"pool {name!r} has the node numbers 0 to {size - 1}, not {node}", code="request.path")
    is_first = found.record is not None and found.record.floor_ms <= before_ms
    windows = windows_of(found.record if is_first else None, found.grants[:MOST_GRANTS])
    has_older = len(found.grants) > MOST_GRANTS
    state = state_of(found.record, pool, now_ms)
    rows = [WindowRow(each, state if each.is_current and state in {"held", "revoked"} else "ended") for each in windows]
    picture, at_ms = _picture(query, found, windows, has_older=has_older)
    return await page(
        request,
        "node.html",
        title=f"Node {node:,} of {name}",
        tables=[Table(query, "Windows", _WINDOWS, rows, empty="It was never granted.")],
        live=True,
        pool=pool,
        node=node,
        state=state,
        may_revoke=state == "held" and caller(request).may("admin", name),
        meaning=STATES[state],
        row=rows[0] if rows and rows[0].window.is_current else None,
        known_ms=history_begin(pool, now_ms),
        now_ms=now_ms,
        at_ms=at_ms,
        strip=picture,
        spans=[
            (words, query.link(**{"from": max(0, now_ms - span_ms), "to": now_ms + pool.span_ms, "at": None}))
            for words, span_ms in _SPANS
        ],
        address=lambda bar: query.link(**_around(bar.first_ms, bar.last_ms)),
        older=query.link(before=windows[-1].floor_ms - 1, **{"from": None, "to": None}) if has_older else None,
        length=length,
        pool_url=pool_url,
    )


def _node_of(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 14 and int(text) < MAX_NODES):
        raise RequestError(f"{text!a:.40} is not a node number", code="request.path")
    return int(text)


def _around(first_ms: int, last_ms: int) -> dict[str, int]:
    """Return the parameters of a picture of a period, with room at both ends."""
    room = max((last_ms - first_ms) // 5, 5_000)
    return {"from": max(0, first_ms - room), "to": last_ms + room}


def _picture(query: Query, found: NodeWindows, windows: list[Window], *, has_older: bool) -> tuple[Strip, int]:
    """Return the picture of a page's windows, and the time that the page points at; 0 if there is none."""
    at_ms = query.integer("at", 0, 0, LATEST_MS)
    first_ms, last_ms = whole_range(found.pool, windows[:_SHOWN_WINDOWS], found.now_ms)
    if at_ms:
        held = next((each for each in windows if each.starts_ms <= at_ms < each.until_ms), None)
        near = _around(held.starts_ms or at_ms, held.until_ms) if held else _around(at_ms - 300_000, at_ms + 300_000)
        first_ms, last_ms = near.values()
    first_ms = query.integer("from", first_ms, 0, LATEST_MS)
    last_ms = query.integer("to", max(last_ms, first_ms + 1), first_ms + 1, LATEST_MS + 1)
    known_ms = history_begin(found.pool, found.now_ms)
    known_ms = found.now_ms if known_ms is None else known_ms
    if has_older:
        known_ms = max(known_ms, windows[-1].starts_ms)
    return strip(found.pool, windows, first_ms, last_ms, found.now_ms, known_ms=known_ms, at_ms=at_ms), at_ms


ROUTES: Final = (
    Route(PATH, _pools, methods=["GET"]),
    Route(PATH + "/{pool}", _pool, methods=["GET"]),
    Route(PATH + "/{pool}/{node}", _node, methods=["GET"]),
)
