"""Pools, the node numbers of one, and the windows of a number: who holds what."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from mintage.errors import RequestError
from mintage.formats.catalogue import known_pool_layout, share_text
from mintage.lease.registry.numbers import is_left_to_locks
from mintage.rules import LATEST_MS, MAX_NODES, GrantRecord, NodeRecord, PoolRecord, check_name, history_begin
from mintage.server.config.values import shown
from mintage.server.console.frame import PageRequest
from mintage.server.console.node_map import STATES, NodeMap, node_map, state_of
from mintage.server.console.pages.ends import POOLS, pools_of
from mintage.server.console.query import Query, malformed, pool_url
from mintage.server.console.shared import LONG_PATIENCE_S
from mintage.server.console.strip import Strip, Window, whole_range, windows_of
from mintage.server.console.table import Column, Table
from mintage.store import PAGE, Store, note_server

MOST_RECORDS: Final = 65_536
"""The most records of node numbers that a page of a pool reads."""
MOST_GRANTS: Final = 200
"""The most past windows on a page of a node number."""
_SHOWN_WINDOWS: Final = 8
"""The windows in the picture of a page without a range: the last ones."""
_SPANS: Final = (("10 minutes", 600_000), ("hour", 3_600_000), ("day", 86_400_000), ("week", 604_800_000))


async def pools(request: PageRequest) -> Response:
    """Answer with all pools."""
    empty = "No pools yet: the first generator with this store creates one."
    found, now_ms = await pools_of(request)
    table = Table(request.query, "Pools of node numbers", POOLS, found, sort="pool", empty=empty)
    may_create = request.caller.may_any("create")
    return await request.page(
        "pools.html", title="Pools", tables=[table], live=True, may_create=may_create, now_ms=now_ms
    )


def _find_pool(store: Store, name: str) -> PoolRecord:
    """Return a pool after it has noted the server that it is on, or refuse the path."""
    if (found := store.get_pool(name)) is None:
        raise RequestError(f"there is no pool {name!r}", code="request.path")
    return note_server(store, [found], store.now_ms())[0]


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
        return size_of(self.pool) or (self.records[-1].node + 1 if self.records else 1)

    def within(self, first: int, last: int) -> tuple[range, list[NodeRecord]]:
        """Return the part of the numbers ``first`` to ``last`` that was read, and its records."""
        stop = min(last + 1, self.size if self.stop is None else self.stop)
        return range(first, stop), [each for each in self.records if first <= each.node < stop]


def read_nodes(store: Store, pool: str, first: int = 0, most: int = MOST_RECORDS) -> PoolNodes:
    """Return a pool and its node numbers from ``first`` on.

    :param most: the records after which it reads no further page.
    :raises RequestError: ``request.path``: there is no such pool.
    """
    record = _find_pool(store, pool)
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


def size_of(pool: PoolRecord) -> int | None:
    """Return the number of a pool's node numbers; ``None`` if this version does not know the layout."""
    known = known_pool_layout(pool.layout)
    return known[1] if known else None


STATE: Final = Column(
    "state",
    "State",
    lambda each: each.state,
    show=lambda each: Markup('<span class="badge state-{0}">{0}</span>').format(each.state),
)
HOLDER: Final = (
    Column("host", "Host", lambda each: each.holder and (each.holder.host or None), "code"),
    Column("process", "Process", lambda each: each.holder and each.holder.pid),
    Column("started", "Started", lambda each: each.holder and each.holder.started, "time"),
    Column("version", "Version", lambda each: each.holder and each.holder.version, "code"),
)
"""The columns of a row with a ``holder``."""
_WINDOW: Final = (
    STATE,
    *HOLDER,
    Column("granted", "Granted", lambda each: each.record.since_ms or None, "time"),
    Column("floor", "Window from", lambda each: each.record.floor_ms or None, "time"),
    Column("fence", "Window until, its fence", lambda each: each.record.until_ms, "time"),
)
_LEASES: Final = (
    Column(
        "node",
        "Number",
        lambda each: each.record.node,
        "number",
        link=lambda each: pool_url(each.record.pool, each.record.node),
    ),
    *_WINDOW,
    Column("copy", "Copy seen", lambda each: each.record.cloned_ms or None, "time"),
)
_WINDOWS: Final = (Column("holder", "Holder", lambda each: each.letter), *_WINDOW)


async def pool(request: PageRequest) -> Response:
    """Answer with the map of a pool's node numbers and their holders."""
    name, query = request.path_params["pool"], request.query
    check_name(name, "pool")
    if query.text("node"):
        return RedirectResponse(pool_url(name, query.integer("node", 0, 0, MAX_NODES - 1)), 303)
    first = query.integer("first", 0, 0, MAX_NODES - 1)
    last = query.integer("last", MAX_NODES - 1, first, MAX_NODES - 1)
    chosen = query.one_of("state", ("live", "all", *STATES), "live")
    found = await _nodes(request, name, first, last)
    if first >= found.size:
        raise malformed(f"first {first} is outside 0..{found.size - 1}")
    table, drawn, count = await asyncio.to_thread(_drawn, query, found, first, last, chosen)
    return await request.page(
        "pool.html",
        title=name,
        tables=[table],
        # A page of 10,000 records takes a fifth of a second: it is less than 1 % of a core.
        live=0 if table.search else 5 + count // 400,
        pool=found.pool,
        share=share_text(found.pool),
        size=found.size,
        numbers=size_of(found.pool),
        now_ms=found.now_ms,
        map=drawn,
        states=STATES,
        chosen=chosen,
        address=lambda cell: (
            pool_url(name, cell.first)
            if cell.first == cell.last
            else query.link(first=cell.first, last=cell.last, page=None)
        ),
    )


async def _nodes(request: PageRequest, name: str, first: int, last: int) -> PoolNodes:
    """Return a pool with the records of the numbers ``first`` to ``last``, and others."""
    found = await request.read(name, read_nodes, request.store, name)
    if found.stop is None or first == 0 or last < found.stop:
        return found
    # One at a time and not kept, as it may take tens of megabytes, and there are many firsts.
    service = request.service
    async with service.one_list():
        deadline = asyncio.get_running_loop().time() + LONG_PATIENCE_S
        return await service.ask_until(
            deadline, request.caller, "describe", name, read_nodes, service.store, name, first
        )


def _drawn(query: Query, found: PoolNodes, first: int, last: int, chosen: str) -> tuple[Table, NodeMap, int]:
    """Return the table and the map of the numbers ``first`` to ``last``, and the count of their records.

    Call it in a thread: there may be tens of thousands.
    """
    nodes, records = found.within(first, last)
    wanted = {"live": ("held", "revoked"), "all": STATES}.get(chosen, (chosen,))
    rows = [Window(each, state) for each in records if (state := state_of(each, found.pool, found.now_ms)) in wanted]
    has_copies = any(each.cloned_ms for each in records)
    cut = f"There are more numbers that were ever granted: add ?first={nodes.stop} to the address."
    table = Table(
        query,
        "Holders" if chosen == "live" else "Node numbers that were granted",
        _LEASES if has_copies else _LEASES[:-1],
        rows,
        sort="node",
        empty="Nobody holds one of these numbers now." if chosen == "live" else "There is none.",
        note="" if nodes.stop == min(last + 1, found.size) else cut,
    )
    marked = [each.record.node for each in table.rows] if table.search else ()
    return table, node_map(found.pool, records, nodes, found.now_ms, marked), len(records)


# --- one node number ----------------------------------------------------------------------------------------------


class NodeWindows(NamedTuple):
    """A node number of a pool and its past grants."""

    pool: PoolRecord
    record: NodeRecord | None
    grants: Sequence[GrantRecord]
    """The past grants, the latest first: one more than :data:`MOST_GRANTS` if there are older ones."""
    now_ms: int
    is_granted: bool = True
    """False if another store or a lock may have the number, as the pool does not grant it."""

    @property
    def known_ms(self) -> int:
        """The time from which on all windows are known: nobody has had the number since the last grant."""
        if not self.is_granted:
            return self.now_ms
        pool, record = self.pool, self.record
        granted_ms = max(record.floor_ms, record.since_ms) if record else 0
        known_ms = min(granted_ms, history_begin(pool, self.now_ms) or granted_ms)
        return max(known_ms, pool.floor_ms) if pool.history_lost else known_ms


def read_windows(store: Store, pool: str, node: int, before_ms: int) -> NodeWindows:
    """Return the grants of a node number whose windows began at or before ``before_ms``.

    :raises RequestError: ``request.path``: there is no such pool.
    """
    found = _find_pool(store, pool)
    # The record first: what a grant in between overwrites is in the history then.
    record = store.get_lease(pool, node)
    grants = store.list_grants(pool, node, before_ms, MOST_GRANTS + 1)
    return NodeWindows(found, record, grants, store.now_ms(), _is_granted(store, found, node))


def _is_granted(store: Store, pool: PoolRecord, node: int) -> bool:
    return node in pool.share and not is_left_to_locks(store, pool.layout, size_of(pool) or 0, node)


async def node(request: PageRequest) -> Response:
    """Answer with the windows of a node number along time."""
    name, query = request.path_params["pool"], request.query
    check_name(name, "pool")
    number = node_of(request.path_params["node"])
    before_ms = query.integer("before", LATEST_MS, 0, LATEST_MS)
    found = await request.read(name, read_windows, request.store, name, number, before_ms)
    record, now_ms = found.record, found.now_ms
    size = size_of(found.pool)
    if size is not None and number >= size:
        raise RequestError(f"pool {name!r} has the node numbers 0 to {size - 1}, not {number}", code="request.path")
    is_first = record is not None and record.floor_ms <= before_ms
    listed_ms = (LATEST_MS if is_first or record is None else before_ms) + 1
    state = state_of(record, found.pool, now_ms)
    windows = windows_of(record if is_first else None, found.grants[:MOST_GRANTS], state)
    has_older = len(found.grants) > MOST_GRANTS
    at_ms = query.integer("at", 0, 0, LATEST_MS)
    return await request.page(
        "node.html",
        title=f"Node {number:,} of {name}",
        tables=[Table(query, "Windows", _WINDOWS, windows, empty="It was never granted.")],
        live=True,
        pool=found.pool,
        node=number,
        state=state,
        may_revoke=state == "held" and request.caller.may("admin", name),
        meaning=STATES[state],
        row=windows[0] if windows and windows[0].is_current else None,
        known_ms=history_begin(found.pool, now_ms),
        now_ms=now_ms,
        at_ms=at_ms,
        strip=_picture(query, found, windows, at_ms, listed_ms, has_older=has_older),
        spans=[
            (words, query.link(**{"from": max(0, now_ms - span_ms), "to": now_ms + found.pool.span_ms, "at": None}))
            for words, span_ms in _SPANS
        ],
        address=lambda bar: query.link(**_around(bar.first_ms, bar.last_ms)),
        older=query.link(before=windows[-1].record.floor_ms - 1, **{"from": None, "to": None}) if has_older else None,
        pool_url=pool_url,
    )


def node_of(text: str) -> int:
    """Return a node number in a path.

    :raises RequestError: ``request.path``: it is none.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 14 and int(text) < MAX_NODES):
        raise RequestError(f"{shown(text, 40)} is not a node number", code="request.path")
    return int(text)


def _around(first_ms: int, last_ms: int) -> dict[str, int]:
    """Return the parameters of a picture of a period, with room at both ends."""
    room = max((last_ms - first_ms) // 5, 5_000)
    return {"from": max(0, first_ms - room), "to": last_ms + room}


def _picture(
    query: Query, found: NodeWindows, windows: list[Window], at_ms: int, listed_ms: int, *, has_older: bool
) -> Strip:
    """Return the picture of a page's windows, in the range of the URL or around the time that the page points at."""
    first_ms, last_ms = whole_range(found.pool, windows[:_SHOWN_WINDOWS], found.now_ms)
    if at_ms:
        held = next((each for each in windows if each.starts_ms <= at_ms < each.record.until_ms), None)
        period = (held.starts_ms or at_ms, held.record.until_ms) if held else (at_ms - 300_000, at_ms + 300_000)
        first_ms, last_ms = _around(*period).values()
    first_ms = query.integer("from", first_ms, 0, LATEST_MS)
    last_ms = query.integer("to", max(last_ms, first_ms + 1), first_ms + 1, LATEST_MS + 1)
    known_ms = max(found.known_ms, windows[-1].starts_ms) if has_older else found.known_ms
    return Strip(found.pool, windows, first_ms, last_ms, found.now_ms, known_ms, at_ms, listed_ms)
