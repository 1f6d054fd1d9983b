"""The page "What will run out, and when?": namespaces, pools and layouts, what ends first at the top."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from mintage.formats import catalogue
from mintage.rules import MAX_INTEGER, NamespaceRecord, PoolRecord
from mintage.server.console.frame import PageRequest
from mintage.server.console.query import namespace_url, pool_url
from mintage.server.console.table import Column, Table
from mintage.server.console.text import counted
from mintage.server.core.health import days_left
from mintage.server.core.usage import Usage
from mintage.store import Store, note_server

SOON_DAYS: Final = 90
"""The days within which an end is at the top of the page."""
FULL: Final = 0.9
"""The share of a pool's numbers in use from which on it counts as nearly full."""
MOST: Final = 10_000
"""The most namespaces and pools of the page; a store may have more."""
MOST_LEASES: Final = 100_000
"""The most leases that the page counts; a store may have more."""
COUNT_S: Final = 60.0
"""The time for which the page shows a count of leases, in seconds: it reads all pages of them."""
_RAISED: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONGEST_DAYS: Final = 36_524
"""A hundred years. Nobody plans for longer, and a date may be after the last one of the calendar."""


# --- namespaces ---------------------------------------------------------------------------------------------------


class NamespaceEnd(NamedTuple):
    """The end of a namespace."""

    record: NamespaceRecord
    hour: float | None = None
    """Its rate in the last hour: by how much the high-water mark moves a second; ``None`` if it is not known."""
    day: float | None = None
    """The same in the last day."""

    @property
    def used(self) -> float:
        """The share of its maximum that it has used, 0 to 1."""
        return max(0, self.record.high_water) / max(1, self.record.maximum)

    @property
    def days(self) -> float | None:
        """The days left at the higher of the two rates; infinity at a rate of 0, ``None`` if none is known."""
        if self.record.left == 0:
            return 0.0
        rates = [rate for rate in (self.hour, self.day) if rate is not None]
        return days_left(self.record.maximum - self.record.high_water, max(rates)) if rates else None

    @property
    def is_soon(self) -> bool:
        """True if it ends within 90 days, or has ended without being retired."""
        return not self.record.retired and self.days is not None and self.days < SOON_DAYS

    @property
    def state(self) -> str:
        """Its state, in words."""
        if self.record.retired:
            return "retired"
        if self.record.left == 0:
            return "used up"
        if self.days is None:
            return "rate not known"
        return "ends soon" if self.is_soon else "in use" if self.days < math.inf else "not in use"


def namespace_ends(records: Iterable[NamespaceRecord], usage: Usage) -> list[NamespaceEnd]:
    """Return when each namespace ends, the first end first and the retired ones last. Call it in a thread."""
    marks, found = usage.marks(), []
    for each in records:
        rates = (usage.rate(each.high_water, each.floor, seen) for seen in marks.get(each.name, ()))
        found.append(NamespaceEnd(each, *rates))
    return sorted(
        found, key=lambda each: (each.record.retired, math.inf if each.days is None else each.days, -each.used)
    )


async def ends_of(records: Sequence[NamespaceRecord], usage: Usage) -> list[NamespaceEnd]:
    """Return when each namespace ends as :func:`namespace_ends`, and note its high-water mark."""
    found = await asyncio.to_thread(namespace_ends, records, usage)
    for each in records:
        usage.mark(each.name, each.high_water)
    return found


# --- pools --------------------------------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """The node numbers of a pool that were granted at least once, and those of its share that are held."""

    granted: int
    held: int


class PoolEnd(NamedTuple):
    """The use of a pool, and the end of its layout."""

    record: PoolRecord
    numbers: Numbers | None
    """``None`` if the page does not count so many leases."""
    nodes: int | None
    """The count of the node numbers that it grants; ``None`` if this version does not know its layout."""
    ends: datetime | None
    """The last time that its layout can hold; ``None`` if it has no such limit."""
    waits_until_ms: int | None = None
    """The end of its quarantine; ``None`` if it is not in one."""

    @property
    def share(self) -> float | None:
        """The share of its numbers that are held, 0 to 1."""
        return None if self.nodes is None or self.numbers is None else self.numbers.held / max(1, self.nodes)

    @property
    def is_full(self) -> bool:
        """True if few of its numbers are free."""
        return self.share is not None and self.share >= FULL


def count_numbers(store: Store) -> dict[str, Numbers]:
    """Count the numbers of the pools, in pages of the store, until there are 100,000. Call it in a thread.

    :raises MintError: as the store's verbs.
    """
    now_ms, left = store.now_ms(), MOST_LEASES
    found: dict[str, Numbers] = {}
    for pool in store.each_pool():
        leases = islice(store.each_lease(pool.name), left + 1)
        held = [each.until_ms > now_ms and each.node in pool.share for each in leases]
        left -= max(1, len(held))
        if left < 0:
            break
        found[pool.name] = Numbers(len(held), sum(held))
    return found


def read_pools(store: Store) -> tuple[list[PoolRecord], int]:
    """Return the pools after they have noted the server that they are on, and the store's clock."""
    now_ms = store.now_ms()
    return note_server(store, store.list_pools("", MOST), now_ms), now_ms


def pool_ends(pools: Iterable[PoolRecord], numbers: Mapping[str, Numbers], now_ms: int) -> list[PoolEnd]:
    """Return how full each pool is, the fullest first."""
    found = []
    for each in pools:
        _, nodes, ends = catalogue.known_pool_layout(each.layout) or (each.layout, None, None)
        granted = None if nodes is None else len(each.share_of(nodes))
        waits_until_ms = each.quarantine_until_ms if each.quarantine_until_ms > now_ms else None
        found.append(PoolEnd(each, numbers.get(each.name), granted, ends, waits_until_ms))
    return sorted(found, key=lambda each: (-(each.share or 0), each.record.name))


async def pools_of(request: PageRequest) -> tuple[list[PoolEnd], int]:
    """Return how full each pool of the store is, the fullest first, and the store's clock."""
    pools, now_ms = await request.read("", read_pools, request.store)
    numbers = await request.read("", count_numbers, request.store, fresh_s=COUNT_S)
    return await asyncio.to_thread(pool_ends, pools, numbers, now_ms), now_ms


def days_in_words(days: float | None) -> str:
    """Return the time left in words."""
    if days is None:
        return "not known"
    if days >= _LONGEST_DAYS:
        return "not in use" if math.isinf(days) else "over 100 years"
    for length, unit in ((365.2425, "year"), (1, "day"), (1 / 24, "hour")):
        if (count := int(days / length)) >= (2 if unit == "year" else 1):
            return counted(count, unit)
    return "less than an hour" if days > 0 else "none"


# --- the page -----------------------------------------------------------------------------------------------------


class Soon(NamedTuple):
    """A row of what ends soon."""

    kind: str
    name: str
    url: str | None
    days: float | None
    """The days left; ``None`` for what is nearly full now."""
    why: str
    """The reason and the remedy."""


def ends_soon(
    namespaces: Iterable[NamespaceEnd], pools: Sequence[PoolEnd], layouts: Mapping[str, datetime | None], now: datetime
) -> list[Soon]:
    """Return what ends within 90 days, has ended, or is nearly full, the first end first."""
    found = []
    layout_ends = [
        *(("pool", each.record.name, pool_url(each.record.name), each.ends, "its layout") for each in pools),
        *(("layout", scheme, None, end, "the layout of this service") for scheme, end in layouts.items()),
    ]
    for each in namespaces:
        if each.is_soon:
            why = f"integers left: {each.record.left:,}; use a new namespace"
            found.append(Soon("namespace", each.record.name, namespace_url(each.record.name), each.days, why))
    for pool in pools:
        if pool.numbers is not None and pool.is_full:
            held = f"{pool.numbers.held:,} of {pool.nodes:,} node numbers are held"
            why = f"{held}: stop holders, or use a layout with more"
            found.append(Soon("pool", pool.record.name, pool_url(pool.record.name), None, why))
    for kind, name, url, end, layout in layout_ends:
        if end is not None and (days := max(0.0, (end - now) / timedelta(days=1))) < SOON_DAYS:
            why = f"{layout} can hold no later time: use a layout that lasts longer"
            found.append(Soon(kind, name, url, days, why))
    return sorted(found, key=lambda each: -1.0 if each.days is None else each.days)


def _finite(days: float | None) -> float | None:
    """Return the days for a file or a column that is sorted; ``None`` if there is no end."""
    return None if days is None or math.isinf(days) else round(days, 2)


def _marked(word: str, *, is_bad: bool) -> str:
    """Return a state in words; with a colour as well if it needs attention."""
    return Markup('<strong class="bad">{}</strong>').format(word) if is_bad else word


SOON: Final = (
    Column("what", "What", lambda each: each.kind),
    Column("name", "Name", lambda each: each.name, link=lambda each: each.url),
    Column("days_left", "Ends in", lambda each: _finite(each.days), show=lambda each: _in_words(each.days)),
    Column("why", "Why, and what to do", lambda each: each.why),
)
NAMESPACES: Final = (
    Column("namespace", "Namespace", lambda each: each.record.name, link=lambda each: namespace_url(each.record.name)),
    Column("state", "State", lambda each: each.state, show=lambda each: _marked(each.state, is_bad=each.is_soon)),
    Column("days_left", "Time left", lambda each: _finite(each.days), show=lambda each: days_in_words(each.days)),
    Column("left", "Integers left", lambda each: each.record.left, "big", show=lambda each: amount(each.record.left)),
    Column("used", "Used", lambda each: round(each.used * 100, 1), "number", show=lambda each: f"{each.used:.1%}"),
    Column("hour", "A second, last hour", lambda each: each.hour and float(f"{each.hour:.3g}"), "number"),
    Column("day", "A second, last day", lambda each: each.day and float(f"{each.day:.3g}"), "number"),
    Column("last", "Last reserved", lambda each: each.record.high_water if each.record.largest else None, "big"),
    Column(
        "maximum", "Maximum", lambda each: each.record.maximum, "big", show=lambda each: amount(each.record.maximum)
    ),
)
POOLS: Final = (
    Column("pool", "Pool", lambda each: each.record.name, link=lambda each: pool_url(each.record.name)),
    Column(
        "share",
        "Held",
        lambda each: None if each.share is None else round(each.share * 100, 3),
        "number",
        show=lambda each: "not known" if each.share is None else _marked(f"{each.share:.2%}", is_bad=each.is_full),
    ),
    Column("held", "Numbers held", lambda each: each.numbers and each.numbers.held, "number"),
    Column("granted", "Ever granted", lambda each: each.numbers and each.numbers.granted, "number"),
    Column("nodes", "Node numbers", lambda each: each.nodes, "number"),
    Column("quarantine", "Quarantine until", lambda each: each.waits_until_ms, "time"),
    Column("ends", "Layout ends", lambda each: each.ends, "time"),
    Column("layout", "Layout", lambda each: each.record.layout, "code"),
)
LAYOUTS: Final = (
    Column("scheme", "Scheme", lambda each: each[0]),
    Column("ends", "Ends", lambda each: each[1], "time"),
)


def amount(n: int) -> str:
    """Return a number of integers for people: one of more than 15 digits is rounded."""
    if n == MAX_INTEGER:
        return "2⁶³ - 1"
    if n < 10**15:
        return f"{n:,}"
    digits, _, exponent = f"{n:.1e}".partition("e+")
    return f"{digits} × 10{exponent.translate(_RAISED)}"


def _in_words(days: float | None) -> str:
    return "nearly full now" if days is None else "ended" if days == 0 else days_in_words(days)


async def ends(request: PageRequest) -> Response:
    """Return the page."""
    query, store, now = request.query, request.store, datetime.now(UTC)
    records = await request.read("", store.list_namespaces, "", MOST)
    full, now_ms = await pools_of(request)
    layouts = request.service.minters.ends()
    found = await ends_of(records, request.service.metrics.usage)
    note = f"There are more: these are the first {MOST:,} by name." if len(records) == MOST else ""
    tables = [
        Table(query, "Ends within 90 days", SOON, ends_soon(found, full, layouts, now), name="soon"),
        Table(query, "Namespaces by days left", NAMESPACES, found, name="namespaces", note=note),
        Table(query, "Pools by share of node numbers in use", POOLS, full, name="pools"),
        Table(query, "Layouts of this service by end", LAYOUTS, list(layouts.items()), name="layouts", sort="ends"),
    ]
    may_create = request.caller.may_any("create")
    title = "What will run out, and when?"
    return await request.page("ends.html", title=title, tables=tables, live=True, may_create=may_create, now_ms=now_ms)
