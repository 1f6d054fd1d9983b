"""Leases and segments: values, and what may become of them. Pure: no clock, no I/O, no randomness.

A **lease** is a rectangle of ID space: one node number, and the times ``[floor_ms, until_ms)`` that its IDs may carry.
A **segment** is an interval of integers. What a store keeps of them are the records below; every verb of a store is one
of the functions here, applied to records that nobody else can change meanwhile. Two facts make IDs unique:

- a node number is granted anew from the end of its last window on, never before (:func:`grant`);
- a window grows only for whoever knows the token of its last grant (:func:`extend`).

Times are milliseconds since the Unix epoch, and no rule of uniqueness compares a clock with anything but these: a wrong
clock can delay a grant or waste a window, not overlap one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

from mintage.errors import ConfigError, FieldError, GenerationError, LeaseError

__all__ = [
    "CLOCK_LIMIT_MS",
    "CLOCK_MARGIN_MS",
    "GAP",
    "MAX_COUNT",
    "MAX_INTEGER",
    "MAX_NODES",
    "MAX_SPAN_MS",
    "MIN_SPAN_MS",
    "REST_MS",
    "SPAN_MS",
    "Lease",
    "NamespaceRecord",
    "NodeRecord",
    "PoolRecord",
    "Segment",
    "check_clock",
    "check_count",
    "check_layout",
    "check_name",
    "check_nodes",
    "check_quarantine",
    "check_span",
    "check_value",
    "choose",
    "create_namespace",
    "create_pool",
    "extend",
    "give_back",
    "grant",
    "note_server",
    "note_server_of_namespace",
    "raise_floor",
    "release",
    "reserve",
    "revoke",
]

SPAN_MS: Final = 10_000
"""How far ahead a window is granted, and so what a crash costs of one node number's time."""
MIN_SPAN_MS: Final = 1_000
MAX_SPAN_MS: Final = 86_400_000
CLOCK_LIMIT_MS: Final = 5_000
"""How far a caller's clock may be from the store's."""
CLOCK_MARGIN_MS: Final = 1_000
"""How far the clocks of two servers may be apart, of which one takes over from the other."""
REST_MS: Final = 60_000
"""A node number that came free longer ago than this is granted before one that was never used, so that a pool of 2^44
node numbers does not grow a record for each process that ever lived."""
GAP: Final = 10
"""After the server changed, a namespace skips this many times the largest count that was ever reserved at once."""
MAX_NODES: Final = 2**44
"""The most node numbers that a pool has: those of locality."""
MAX_INTEGER: Final = 2**63 - 1
MAX_COUNT: Final = 2**31 - 1
MAX_STRIDE: Final = 2**31 - 1

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to mint IDs of node number ``node`` whose own times lie in ``[floor_ms, until_ms)``.

    ``token`` proves the right to extend it, and so stays out of the repr.
    """

    pool: str
    node: int
    floor_ms: int
    until_ms: int
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Segment:
    """The integers ``first``, ``first + stride``, … ``last`` of a namespace, reserved for one owner."""

    namespace: str
    first: int
    last: int
    stride: int = 1

    def __len__(self) -> int:
        return (self.last - self.first) // self.stride + 1

    def as_range(self) -> range:
        """The same integers as a ``range``."""
        return range(self.first, self.last + 1, self.stride)


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """What a store keeps of a pool of node numbers."""

    name: str
    layout: str
    """What its node numbers mean: two generators share a pool only if this is the same for both."""
    identity: str
    """The server that the pool was last written on."""
    span_ms: int
    """The longest span that it grants: no window ends later than this after the clock limit. It never changes: a longer
    one that a server forgot would outlast the quarantine."""
    floor_ms: int = 0
    """No window begins before."""
    quarantine_until_ms: int = 0
    """Until then, by the store's clock, nothing is granted."""
    history_lost: bool = False
    """Whether the store may have forgotten grants, so that no node number is known never to have minted."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """What a store keeps of a node number that was granted at least once."""

    pool: str
    node: int
    floor_ms: int
    until_ms: int
    """End of the last window. The next one begins here or later."""
    span_ms: int
    identity: str
    """The server that it was last written on."""
    token: str | None = field(repr=False)
    """``None`` once released or revoked."""
    holder: str | None
    """Who holds or held it; for people."""

    def as_lease(self) -> Lease:
        """The lease of its holder."""
        return Lease(self.pool, self.node, self.floor_ms, self.until_ms, self.token or "")


@dataclass(frozen=True, slots=True)
class NamespaceRecord:
    """What a store keeps of a namespace of integers."""

    name: str
    high_water: int
    """The last integer reserved; one stride before the first where there is none yet."""
    maximum: int
    stride: int
    largest: int
    """The largest count that was ever reserved at once."""
    identity: str
    """The server that it was last written on."""


# --- checks: what comes in ----------------------------------------------------------------------------------------


def check_name(name: str, what: str) -> None:
    """A pool's or namespace's name: 1 to 128 letters, digits and ``. _ : @ -``, the first a letter or digit.

    :raises ConfigError: ``config.name``.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        shown = repr(name) if len(repr(name)) <= 60 else f"{name!r:.60}…"
        raise ConfigError(
            f"{what} {shown} is not 1 to 128 letters, digits and . _ : @ -, the first a letter or digit",
            code="config.name",
        )


def check_nodes(nodes: range) -> None:
    """Node numbers to choose from: a range of step 1 within 0 to 2^44, not empty.

    :raises ConfigError: ``config.node``.
    """
    if not isinstance(nodes, range) or nodes.step != 1 or not 0 <= nodes.start < nodes.stop <= MAX_NODES:
        raise ConfigError(f"nodes {nodes!r} is not a range of step 1 within 0..{MAX_NODES}", code="config.node")


def check_span(span_ms: int) -> None:
    """:raises ConfigError: ``config.span``."""
    if not MIN_SPAN_MS <= span_ms <= MAX_SPAN_MS:
        raise ConfigError(f"span_ms {span_ms} is outside {MIN_SPAN_MS}..{MAX_SPAN_MS}", code="config.span")


def check_count(count: int) -> None:
    """:raises FieldError: ``field.range``: outside 1 to 2^31 - 1."""
    if not 1 <= count <= MAX_COUNT:
        raise FieldError(f"count {count} is outside 1..{MAX_COUNT}", code="field.range")


def check_value(value: int) -> None:
    """:raises FieldError: ``field.range``: outside 0 to 2^63 - 1."""
    if not 0 <= value <= MAX_INTEGER:
        raise FieldError(f"value {value} is outside 0..{MAX_INTEGER}", code="field.range")


def check_clock(now_ms: int, store_now_ms: int, limit_ms: int = CLOCK_LIMIT_MS) -> None:
    """Refuses a caller whose clock is far from the store's: it would burn a node number for as long.

    :raises LeaseError: ``lease.clock``.
    """
    ahead = now_ms - store_now_ms
    if abs(ahead) > limit_ms:
        raise LeaseError(
            f"this clock is {abs(ahead)} ms {'ahead of' if ahead > 0 else 'behind'} the store's, the limit is "
            f"{limit_ms} ms: set the clock (NTP), then try again",
            code="lease.clock",
        )


def check_layout(pool: PoolRecord, layout: str) -> None:
    """:raises ConfigError: ``config.pool``: the pool's node numbers mean something else."""
    if pool.layout != layout:
        raise ConfigError(
            f"pool {pool.name!r} holds node numbers of {pool.layout!r}, not of {layout!r}: name another pool",
            code="config.pool",
        )


# --- leases -------------------------------------------------------------------------------------------------------


def create_pool(name: str, layout: str, span_ms: int, identity: str, *, quarantine_until_ms: int = 0) -> PoolRecord:
    """A pool that has granted nothing.

    ``quarantine_until_ms`` is for a store that cannot tell a new pool from one that it has lost.
    """
    lost = quarantine_until_ms > 0
    return PoolRecord(name, layout, identity, max(span_ms, SPAN_MS), quarantine_until_ms, quarantine_until_ms, lost)


def note_server(pool: PoolRecord, identity: str, store_now_ms: int, limit_ms: int = CLOCK_LIMIT_MS) -> PoolRecord:
    """The pool as it stands on this server.

    If that is another than the one it was written on, the last writes may be lost. Nothing is granted, and no window
    begins, before every window that may have been forgotten has ended.
    """
    if pool.identity == identity:
        return pool
    # Windows may begin as late as the floor of an earlier quarantine that was lifted.
    end = max(store_now_ms, pool.floor_ms) + pool.span_ms + limit_ms + CLOCK_MARGIN_MS
    return replace(
        pool,
        identity=identity,
        floor_ms=max(pool.floor_ms, end),
        quarantine_until_ms=max(pool.quarantine_until_ms, end),
        history_lost=True,
    )


def check_quarantine(pool: PoolRecord, store_now_ms: int, *, never_used: bool) -> None:
    """:raises LeaseError: ``lease.none_free``."""
    left = pool.quarantine_until_ms - store_now_ms
    if left > 0:
        raise LeaseError(
            f"pool {pool.name!r} is new on this server, or the server lost data or changed: its node numbers may still "
            f"be in use for {left} ms; wait, or if nothing ever minted from it, run: mintage pools create {pool.name}",
            code="lease.none_free",
            retry_after_ms=left,
        )
    if never_used and pool.history_lost:
        raise LeaseError(
            f"pool {pool.name!r} may have lost its history, so no node number is known to be never used: "
            "make a pool of another name for this",
            code="lease.none_free",
        )


def choose(
    pool: PoolRecord, nodes: range, oldest: NodeRecord | None, unused: int | None, now_ms: int, *, never_used: bool
) -> int:
    """Which node number to grant.

    ``oldest`` is the record in ``nodes`` whose window ended first, ``unused`` the lowest number without a record.
    A number that has rested comes first, then one never used, then any whose window has ended.

    :raises LeaseError: ``lease.none_free``, with the earliest moment that one comes free.
    """
    if never_used:
        if unused is None:
            raise LeaseError(
                f"pool {pool.name!r} has no node number in {nodes.start}..{nodes.stop - 1} that was never used",
                code="lease.none_free",
            )
        return unused
    if oldest is not None and oldest.until_ms <= now_ms - REST_MS:
        return oldest.node
    if unused is not None:
        return unused
    if oldest is not None and oldest.until_ms <= now_ms:
        return oldest.node
    left = oldest.until_ms - now_ms if oldest is not None else None
    raise LeaseError(
        f"all {len(nodes)} node numbers of pool {pool.name!r} ({nodes.start}..{nodes.stop - 1}) are leased; the first "
        f"comes free in {left} ms: stop a holder, or use a layout with more (see: mintage leases list {pool.name})",
        code="lease.none_free",
        retry_after_ms=left,
    )


def grant(
    pool: PoolRecord, record: NodeRecord | None, node: int, *, token: str, holder: str, now_ms: int, span_ms: int
) -> NodeRecord:
    """Grants a node number from the end of its last window on.

    :raises ConfigError: ``config.span``: longer than the pool grants.
    """
    if span_ms > pool.span_ms:
        raise ConfigError(
            f"span_ms {span_ms} is longer than the {pool.span_ms} that pool {pool.name!r} was made for: use at "
            f"most that; a new pool is made for longer ones by: mintage pools create NAME --span-ms {span_ms}",
            code="config.span",
        )
    floor_ms = max(pool.floor_ms, record.until_ms if record is not None else 0)
    # A caller's clock may be a little behind the last window's end: it gets a window, and waits for its floor.
    until_ms = max(floor_ms, now_ms) + span_ms
    return NodeRecord(pool.name, node, floor_ms, until_ms, span_ms, pool.identity, token, holder)


def _lost(pool: str, node: int, record: NodeRecord | None, why: str) -> LeaseError:
    now = "" if record is None or record.holder is None else f"; it is held by {record.holder}"
    return LeaseError(f"the lease of node {node} in pool {pool!r} is lost: {why}{now}", code="lease.lost")


def extend(
    record: NodeRecord | None,
    lease: Lease,
    *,
    identity: str,
    now_ms: int,
    store_now_ms: int,
    limit_ms: int = CLOCK_LIMIT_MS,
) -> NodeRecord:
    """Moves the end of a window forward to a span from now; never back.

    If the server changed since the record was written, a grant of the same number to somebody else may be forgotten.
    That cannot be where the holder's window is unbroken: it was never free.

    :raises LeaseError: ``lease.lost``.
    """
    if record is None or record.token is None or record.token != lease.token:
        raise _lost(lease.pool, lease.node, record, "it was granted to another, released or revoked")
    if record.identity != identity and lease.until_ms <= store_now_ms + limit_ms + CLOCK_MARGIN_MS:
        raise _lost(lease.pool, lease.node, record, "its window ran out while the server changed or lost data")
    # What the server forgot of the window, but no more than it can have granted.
    claimed_ms = min(lease.until_ms, store_now_ms + limit_ms + CLOCK_MARGIN_MS + record.span_ms)
    until_ms = max(record.until_ms, claimed_ms, now_ms + record.span_ms)
    return replace(record, until_ms=until_ms, identity=identity)


def release(record: NodeRecord | None, lease: Lease, *, used_until_ms: int) -> NodeRecord:
    """Ends a lease: the next holder may start at ``used_until_ms``, the first time that was not minted in.

    :raises LeaseError: ``lease.lost``.
    """
    if record is None or record.token is None or record.token != lease.token:
        raise _lost(lease.pool, lease.node, record, "it was granted to another, released or revoked")
    until_ms = min(record.until_ms, max(record.floor_ms, used_until_ms))
    return replace(record, until_ms=until_ms, token=None)


def revoke(record: NodeRecord) -> NodeRecord:
    """Takes the lease from its holder: the window cannot grow any more, and the number comes free when it ends."""
    return replace(record, token=None)


# --- segments -----------------------------------------------------------------------------------------------------


def create_namespace(
    name: str, identity: str, *, start: int = 1, maximum: int = MAX_INTEGER, stride: int = 1, offset: int = 0
) -> NamespaceRecord:
    """A namespace of the integers from ``start`` to ``maximum`` that are ``offset`` modulo ``stride``.

    Two independent databases with stride 2 and offsets 0 and 1 hand out even and odd numbers, and either may be down.

    :raises FieldError: ``field.range``.
    """
    check_value(start)
    check_value(maximum)
    if not 1 <= stride <= MAX_STRIDE:
        raise FieldError(f"stride {stride} is outside 1..{MAX_STRIDE}", code="field.range")
    if not 0 <= offset < stride:
        raise FieldError(f"offset {offset} is outside 0..{stride - 1}", code="field.range")
    first = start + (offset - start) % stride
    if first > maximum:
        raise FieldError(f"maximum {maximum} is below the first integer {first}", code="field.range")
    return NamespaceRecord(name, first - stride, maximum, stride, 0, identity)


def note_server_of_namespace(namespace: NamespaceRecord, identity: str) -> NamespaceRecord:
    """The namespace as it stands on this server: if that is another than before, it skips what may be forgotten."""
    if namespace.identity == identity:
        return namespace
    skip = GAP * max(1, namespace.largest) * namespace.stride
    return replace(namespace, high_water=_capped(namespace, namespace.high_water + skip), identity=identity)


def _capped(namespace: NamespaceRecord, high_water: int) -> int:
    """The last integer of the namespace at or below ``high_water``."""
    top = min(high_water, namespace.maximum)
    return top - (top - namespace.high_water) % namespace.stride


def reserve(namespace: NamespaceRecord, count: int) -> tuple[NamespaceRecord, Segment]:
    """Reserves the next ``count`` integers, or as many as are left.

    :raises GenerationError: ``sequence.exhausted``: none are.
    """
    first = namespace.high_water + namespace.stride
    last = _capped(namespace, namespace.high_water + count * namespace.stride)
    if last < first:
        raise GenerationError(
            f"namespace {namespace.name!r} is used up: its last integer is {namespace.high_water}, its maximum "
            f"{namespace.maximum}",
            code="sequence.exhausted",
        )
    moved = replace(namespace, high_water=last, largest=max(namespace.largest, count))
    return moved, Segment(namespace.name, first, last, namespace.stride)


def raise_floor(namespace: NamespaceRecord, value: int) -> NamespaceRecord:
    """Lets no integer below ``value`` be reserved any more; never moves back."""
    wanted = value - 1
    if wanted <= namespace.high_water:
        return namespace
    # Rounded down, to the last integer of the namespace below `value`.
    wanted -= (wanted - namespace.high_water) % namespace.stride
    return replace(namespace, high_water=min(wanted, _capped(namespace, wanted)))


def give_back(namespace: NamespaceRecord, segment: Segment, first_unused: int) -> NamespaceRecord | None:
    """Takes back the unused tail of a segment if it is still the last that was reserved; ``None`` if it is not."""
    if namespace.high_water != segment.last or not segment.first <= first_unused <= segment.last:
        return None
    return replace(namespace, high_water=first_unused - namespace.stride)
