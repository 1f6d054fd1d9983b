"""Leases and segments: values, and what may become of them. Pure: no clock, no I/O, no randomness.

A **lease** is a rectangle of ID space: one node number, and the times ``[floor_ms, until_ms)`` that its IDs may carry.
A **segment** is an interval of integers. What a store keeps of them are the records below; every verb of a store is one
of the functions here, applied to records that nobody else can change meanwhile. Two facts make IDs unique:

- a node number is granted anew from the end of its last window on, never before (:func:`grant`);
- a window grows only for a holder that knows the token of the last verb that granted or extended it, and each extension
  puts another in its place (:func:`extend`). So of any number of copies of a holder, such as a machine restored twice
  from one snapshot, exactly one goes on.

One makes integers unique: the high-water mark of a namespace goes up with each reservation, and comes back only for the
one that it ends with, once (:func:`give_back`).

Times are milliseconds since the Unix epoch, and no rule of uniqueness compares a clock with anything but these: a wrong
clock can delay a grant or waste a window, not overlap one.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from mintage.errors import ArgumentError, ConfigError, FieldError, GenerationError, LeaseError

__all__ = [
    "CLOCK_LIMIT_MS",
    "CLOCK_MARGIN_MS",
    "COOLDOWN_MS",
    "GAP",
    "LATEST_MS",
    "MAX_COUNT",
    "MAX_INTEGER",
    "MAX_NODES",
    "MAX_SAFE_INTEGER",
    "MAX_SPAN_MS",
    "MIN_SPAN_MS",
    "SPAN_MS",
    "Lease",
    "NamespaceRecord",
    "NodeRecord",
    "PoolRecord",
    "Segment",
    "Within",
    "check_clock",
    "check_count",
    "check_int",
    "check_layout",
    "check_lease",
    "check_name",
    "check_nodes",
    "check_not_retired",
    "check_quarantine",
    "check_segment",
    "check_span",
    "check_text",
    "check_token",
    "check_value",
    "choose",
    "create_namespace",
    "create_pool",
    "extend",
    "give_back",
    "grant",
    "is_of_a_clone",
    "note_server",
    "note_server_of_namespace",
    "raise_floor",
    "release",
    "reserve",
    "retire",
    "retired_error",
    "revoke",
]

SPAN_MS: Final = 30_000
"""How far ahead a window is granted, and so what a crash costs of one node number's time."""
MIN_SPAN_MS: Final = 1_000
MAX_SPAN_MS: Final = 86_400_000
CLOCK_LIMIT_MS: Final = 5_000
"""How far a caller's clock may be from the store's."""
CLOCK_MARGIN_MS: Final = 1_000
"""How far the clocks of two servers may be apart, of which one takes over from the other."""
COOLDOWN_MS: Final = 60_000
"""A node number that came free longer ago than this is granted before one that was never used, so that a pool of 2^44
node numbers does not grow a record for each process that ever lived."""
GAP: Final = 10
"""After the server changed, a namespace skips this many times the largest count that was ever reserved at once."""
MAX_NODES: Final = 2**44
"""The most node numbers that a pool has: those of locality."""
MAX_INTEGER: Final = 2**63 - 1
MAX_COUNT: Final = 2**31 - 1
MAX_STRIDE: Final = 2**31 - 1

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer that Lua's and JSON's numbers hold exactly."""
LATEST_MS: Final = MAX_SAFE_INTEGER
"""The latest time."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Within:
    """The limits of a record's number."""

    least: int
    most: int


Ms = Annotated[int, Within(0, LATEST_MS)]
SpanMs = Annotated[int, Within(0, MAX_SPAN_MS)]
Node = Annotated[int, Within(0, MAX_NODES - 1)]
Integer = Annotated[int, Within(0, MAX_INTEGER)]
Count = Annotated[int, Within(0, MAX_COUNT)]
Serial = Annotated[int, Within(0, MAX_SAFE_INTEGER)]


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to mint IDs of node number ``node`` whose own times lie in ``[floor_ms, until_ms)``.

    ``token`` proves the right to extend it, and so stays out of the repr; each extension brings another.
    """

    pool: str
    node: int
    floor_ms: int
    until_ms: int
    token: str = field(repr=False)
    previous: str = field(default="", repr=False)
    """The token before: all that a server knows which forgot the last extension."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The integers ``first``, ``first + stride``, … ``last`` of a namespace, reserved for one owner."""

    namespace: str
    first: int
    last: int
    stride: int = 1
    floor: int = field(default=0, compare=False)
    """No integer below is to be handed out any more: the namespace's floor when it was reserved; 0 is none."""
    serial: int = field(default=0, compare=False)
    """The move of the namespace that reserved it: a client that gives its tail back proves by it which one it has."""

    def __len__(self) -> int:
        return (self.last - self.first) // self.stride + 1

    def as_range(self) -> range:
        """Return the same integers as a ``range``."""
        return range(self.first, self.last + 1, self.stride)


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """What a store keeps of a pool of node numbers."""

    name: str
    layout: str
    """What its node numbers mean: two generators share a pool only if this is the same for both."""
    identity: str
    """The server that the pool was last written on."""
    span_ms: SpanMs
    """The longest span that it grants: no window ends later than this after the clock limit. It never changes: a longer
    one that a server forgot would outlast the quarantine."""
    floor_ms: Ms = 0
    """No window begins before."""
    quarantine_until_ms: Ms = 0
    """Until then, by the store's clock, nothing is granted."""
    history_lost: bool = False
    """True if the store may have forgotten grants, so that no node number is known never to have minted."""
    changes: Count = 0
    """How often it was found on another server. So a server that comes back is not the one it was."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """What a store keeps of a node number that was granted at least once."""

    pool: str
    node: Node
    floor_ms: Ms
    until_ms: Ms
    """End of the last window. The next one begins here or later."""
    span_ms: SpanMs
    identity: str
    """The server that it was last written on."""
    token: str | None = field(repr=False)
    """``None`` once released or revoked."""
    holder: str | None
    """Who holds or held it; for people."""
    cloned_ms: Ms = 0
    """When, by the store's clock, a copy of the holder last came with a token of before; 0 if none did. For people."""
    changes: Count = 0
    """The pool's, when it was last written."""

    def as_lease(self, previous: str = "") -> Lease:
        """Return the lease of its holder, who had the token ``previous`` before."""
        return Lease(self.pool, self.node, self.floor_ms, self.until_ms, self.token or "", previous)


@dataclass(frozen=True, slots=True)
class NamespaceRecord:
    """What a store keeps of a namespace of integers."""

    name: str
    high_water: Annotated[int, Within(-MAX_STRIDE, MAX_INTEGER)]
    """The last integer reserved; one stride before the first where there is none yet."""
    maximum: Integer
    stride: Annotated[int, Within(1, MAX_STRIDE)]
    largest: Count
    """The largest count that was ever reserved at once."""
    identity: str
    """The server that it was last written on."""
    floor: Integer = 0
    """No integer below is reserved or taken back any more; 0 is none."""
    serial: Serial = 0
    """Goes up by 1 when integers are reserved or taken back, and begins anew on another server.

    Nothing has the same serial twice.
    """
    serial_before: Serial = 0
    """What ``serial`` was when the last integers were reserved: the one of the reservation before, as a rule."""
    retired: bool = False
    """True if it has ended for good: nothing is reserved or taken back any more, and its name never starts again."""


# --- checks: what comes in ----------------------------------------------------------------------------------------


def check_int(value: int, what: str, least: int | None = None, most: int | None = None) -> None:
    """A whole number within limits, if any.

    :raises ArgumentError: ``argument.type``: it is not int; bool is not.
    :raises FieldError: ``field.range``.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ArgumentError(f"{what} {_shown(value)} is {type(value).__name__}, not int", code="argument.type")
    if least is not None and most is not None and not least <= value <= most:
        raise FieldError(f"{what} {_shown(value)} is outside {least}..{most}", code="field.range")


def check_text(value: str, what: str, least: int, most: int) -> None:
    """Text of so many characters, none of them NUL, that can be written as UTF-8.

    :raises ArgumentError: ``argument.type``: it is not str.
    :raises FieldError: ``field.range``.
    """
    if not isinstance(value, str):
        raise ArgumentError(f"{what} {_shown(value)} is {type(value).__name__}, not str", code="argument.type")
    is_text = "\0" not in value and not any("\ud800" <= each <= "\udfff" for each in value)
    if not least <= len(value) <= most or not is_text:
        raise FieldError(f"{what} {_shown(value)} is not {least} to {most} characters without NUL", code="field.range")


def _shown(value: object) -> str:
    # Python writes no number of more than 4,300 digits.
    try:
        text = repr(value)
    except ValueError:
        text = "of that many digits"
    return text if len(text) <= 60 else f"{text:.60}…"


def check_lease(lease: Lease) -> None:
    """A lease that somebody can hold.

    :raises ArgumentError: ``argument.type``.
    :raises ConfigError: ``config.name``.
    :raises LeaseError: ``lease.lost``: its node number is none that a pool has.
    """
    if not isinstance(lease, Lease):
        raise ArgumentError(f"lease {_shown(lease)} is {type(lease).__name__}, not Lease", code="argument.type")
    check_name(lease.pool, "pool")
    for value, what in ((lease.node, "node"), (lease.floor_ms, "floor_ms"), (lease.until_ms, "until_ms")):
        check_int(value, what)
    if not isinstance(lease.token, str) or not isinstance(lease.previous, str):
        raise ArgumentError("a lease's token is not str", code="argument.type")
    if not 0 <= lease.node < MAX_NODES:
        raise LeaseError(f"a lease of pool {lease.pool!r} is lost: its node number is none", code="lease.lost")


def check_segment(segment: Segment) -> None:
    """A segment that somebody can have reserved.

    :raises ArgumentError: ``argument.type``.
    :raises FieldError: ``field.range``.
    :raises ConfigError: ``config.name``.
    """
    if not isinstance(segment, Segment):
        raise ArgumentError(f"segment {_shown(segment)} is {type(segment).__name__}, not Segment", code="argument.type")
    check_name(segment.namespace, "namespace")
    check_int(segment.first, "first", 0, MAX_INTEGER)
    check_int(segment.last, "last", 0, MAX_INTEGER)
    check_int(segment.stride, "stride", 1, MAX_STRIDE)
    check_int(segment.serial, "serial", 0, MAX_SAFE_INTEGER)


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
    check_int(span_ms, "span_ms")
    if not MIN_SPAN_MS <= span_ms <= MAX_SPAN_MS:
        raise ConfigError(f"span_ms {_shown(span_ms)} is outside {MIN_SPAN_MS}..{MAX_SPAN_MS}", code="config.span")


def check_count(count: int) -> None:
    """:raises FieldError: ``field.range``: outside 1 to 2^31 - 1."""
    check_int(count, "count", 1, MAX_COUNT)


def check_value(value: int) -> None:
    """:raises FieldError: ``field.range``: outside 0 to 2^63 - 1."""
    check_int(value, "value", 0, MAX_INTEGER)


def check_token(token: str) -> None:
    """A lease's next token: 1 to 64 letters, digits and ``. _ -``.

    :raises FieldError: ``field.range``. The token is not shown.
    """
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise FieldError("the next token is not 1 to 64 letters, digits and . _ -", code="field.range")


def check_clock(now_ms: int, store_now_ms: int, limit_ms: int = CLOCK_LIMIT_MS) -> None:
    """Refuse a caller whose clock is far from the store's: it would burn a node number for as long.

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


def create_pool(name: str, layout: str, span_ms: int, server_id: str, *, quarantine_until_ms: int = 0) -> PoolRecord:
    """Return a pool that has granted nothing.

    ``quarantine_until_ms`` is for a store that cannot tell a new pool from one that it has lost.
    """
    lost = quarantine_until_ms > 0
    return PoolRecord(name, layout, server_id, max(span_ms, SPAN_MS), quarantine_until_ms, quarantine_until_ms, lost)


def note_server(pool: PoolRecord, server_id: str, store_now_ms: int, limit_ms: int = CLOCK_LIMIT_MS) -> PoolRecord:
    """Return the pool as it stands on this server.

    If that is another than the one it was written on, the last writes may be lost. Nothing is granted, and no window
    begins, before every window that may have been forgotten has ended.
    """
    if pool.identity == server_id:
        return pool
    # Windows may begin as late as the floor of an earlier quarantine that was lifted.
    end = max(store_now_ms, pool.floor_ms) + pool.span_ms + limit_ms + CLOCK_MARGIN_MS
    return replace(
        pool,
        identity=server_id,
        floor_ms=max(pool.floor_ms, end),
        quarantine_until_ms=max(pool.quarantine_until_ms, end),
        history_lost=True,
        changes=pool.changes + 1,
    )


def check_quarantine(pool: PoolRecord, store_now_ms: int, *, never_used: bool) -> None:
    """:raises LeaseError: ``lease.none_free``."""
    left = pool.quarantine_until_ms - store_now_ms
    if left > 0:
        raise LeaseError(
            f"pool {pool.name!r} is new on this server, or the server lost data or changed: its node numbers may still "
            f"be in use for {-(-left // 1000)} s; wait, or make new pools before their first use: mintage pools create",
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
    """Return which node number to grant.

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
    if oldest is not None and oldest.until_ms <= now_ms - COOLDOWN_MS:
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
    """Grant a node number from the end of its last window on.

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
    return NodeRecord(pool.name, node, floor_ms, until_ms, span_ms, pool.identity, token, holder, 0, pool.changes)


def _lost(pool: str, node: int, record: NodeRecord | None, why: str) -> LeaseError:
    now = "" if record is None or record.holder is None else f"; it is held by {record.holder}"
    return LeaseError(f"the lease of node {node} in pool {pool!r} is lost: {why}{now}", code="lease.lost")


def extend(
    record: NodeRecord | None,
    lease: Lease,
    *,
    next_token: str,
    server_id: str,
    changes: int = 0,
    now_ms: int,
    store_now_ms: int,
    limit_ms: int = CLOCK_LIMIT_MS,
) -> NodeRecord:
    """Move the end of a window forward to a span from now, never back, and the token to ``next_token``.

    A request with an older token is refused, be it a copy of the holder's. One that comes again with the same next
    token, as the answer was lost, is answered again.

    ``changes`` is the pool's, as it stands on this server. If the server changed since the record was written, a
    grant of the same number to somebody else may be forgotten. That cannot be where the holder's window is unbroken:
    it was never free. The last extension may be forgotten as well, and then the record has the token before the
    holder's: it is taken, and moves, so the next copy of the holder finds neither of its own.

    :raises LeaseError: ``lease.lost``.
    """
    if record is not None and record.token is not None and record.token == next_token:
        return record
    is_elsewhere = record is not None and (record.identity, record.changes) != (server_id, changes)
    known = {lease.token, lease.previous} if is_elsewhere else {lease.token}
    if not record or not record.token or record.token not in known:
        why = "it was granted to another, released or revoked"
        if is_of_a_clone(record, lease, server_id, changes):
            why = "another copy of its holder goes on with it, as the process was cloned, or restored from a snapshot"
        raise _lost(lease.pool, lease.node, record, why)
    if is_elsewhere and lease.until_ms <= store_now_ms + limit_ms + CLOCK_MARGIN_MS:
        raise _lost(lease.pool, lease.node, record, "its window ran out while the server changed or lost data")
    # What the server forgot of the window, but no more than it can have granted.
    claimed_ms = min(lease.until_ms, store_now_ms + limit_ms + CLOCK_MARGIN_MS + record.span_ms)
    until_ms = max(record.until_ms, claimed_ms, now_ms + record.span_ms)
    return replace(record, until_ms=until_ms, identity=server_id, token=next_token, changes=changes)


def is_of_a_clone(record: NodeRecord | None, lease: Lease, server_id: str, changes: int = 0) -> bool:
    """Return whether a lease is of the record's own grant, but not of its last extension.

    Grants of one node number begin at different times; on another server, an extension may have been forgotten.
    """
    return (
        record is not None
        and record.token not in {None, lease.token}
        and record.floor_ms == lease.floor_ms
        and (record.identity, record.changes) == (server_id, changes)
    )


def release(record: NodeRecord | None, lease: Lease, *, used_until_ms: int) -> NodeRecord:
    """End a lease: the next holder may start at ``used_until_ms``, the first time that was not minted in.

    :raises LeaseError: ``lease.lost``.
    """
    if record is None or record.token is None or record.token != lease.token:
        raise _lost(lease.pool, lease.node, record, "it was granted to another, released or revoked")
    until_ms = min(record.until_ms, max(record.floor_ms, used_until_ms))
    return replace(record, until_ms=until_ms, token=None)


def revoke(record: NodeRecord) -> NodeRecord:
    """Take the lease from its holder: the window cannot grow any more, and the number comes free when it ends."""
    return replace(record, token=None)


# --- segments -----------------------------------------------------------------------------------------------------


def create_namespace(
    name: str, server_id: str, *, start: int = 1, maximum: int = MAX_INTEGER, stride: int = 1, offset: int = 0
) -> NamespaceRecord:
    """Return a namespace of the integers from ``start`` to ``maximum`` that are ``offset`` modulo ``stride``.

    Two independent databases with stride 2 and offsets 0 and 1 hand out even and odd numbers, and either may be down.

    :raises FieldError: ``field.range``.
    """
    check_int(start, "start", 0, MAX_INTEGER)
    check_int(maximum, "maximum", 0, MAX_INTEGER)
    check_int(stride, "stride", 1, MAX_STRIDE)
    check_int(offset, "offset", 0, stride - 1)
    first = start + (offset - start) % stride
    if first > maximum:
        raise FieldError(f"maximum {maximum} is below the first integer {first}", code="field.range")
    return NamespaceRecord(name, first - stride, maximum, stride, 0, server_id)


def note_server_of_namespace(namespace: NamespaceRecord, server_id: str) -> NamespaceRecord:
    """Return the namespace as it stands on this server: if that is another than before, it skips what may be forgotten.

    Its serials begin anew, so that nothing is taken back that was reserved on another server, not even at the maximum.
    """
    if namespace.identity == server_id:
        return namespace
    skip = GAP * max(1, namespace.largest)
    high_water = _capped(namespace, namespace.high_water + skip * namespace.stride)
    serial = _first_serial(server_id)
    return replace(namespace, high_water=high_water, identity=server_id, serial=serial, serial_before=0)


def _first_serial(server_id: str) -> int:
    """Return the serial with which a server begins that takes over: 52 bits of its server_id's SHA-1.

    Two servers that take over from one replica begin at the same integer. Integers that were given back do not move the
    high-water mark, so no count of moves would tell a segment of the one from that of the other.
    """
    return int(hashlib.sha1(server_id.encode(), usedforsecurity=False).hexdigest()[:13], 16)


def _capped(namespace: NamespaceRecord, high_water: int) -> int:
    """Return the last integer of the namespace at or below ``high_water``."""
    top = min(high_water, namespace.maximum)
    return top - (top - namespace.high_water) % namespace.stride


def check_not_retired(namespace: NamespaceRecord) -> None:
    """:raises GenerationError: ``namespace.retired``."""
    if namespace.retired:
        raise retired_error(namespace.name)


def retired_error(name: str) -> GenerationError:
    """Return what is said of a namespace that was retired."""
    return GenerationError(
        f"namespace {name!r} was retired for good: its name never starts again, take another", code="namespace.retired"
    )


def retire(namespace: NamespaceRecord) -> NamespaceRecord:
    """End a namespace for good. The record stays, as it is what keeps its name from starting again."""
    return replace(namespace, retired=True)


def reserve(namespace: NamespaceRecord, count: int) -> tuple[NamespaceRecord, Segment]:
    """Reserve the next ``count`` integers, or as many as are left.

    :raises GenerationError: ``sequence.exhausted``: none are; ``namespace.retired``.
    """
    check_not_retired(namespace)
    high_water = max(namespace.high_water, _below(namespace, namespace.floor))
    first = high_water + namespace.stride
    last = _capped(namespace, high_water + count * namespace.stride)
    if last < first:
        raise GenerationError(
            f"namespace {namespace.name!r} is used up: its last integer is {high_water}, its maximum "
            f"{namespace.maximum}",
            code="sequence.exhausted",
        )
    largest, serial = max(namespace.largest, count), namespace.serial + 1
    moved = replace(namespace, high_water=last, largest=largest, serial=serial, serial_before=namespace.serial)
    return moved, Segment(namespace.name, first, last, namespace.stride, namespace.floor, serial)


def _below(namespace: NamespaceRecord, value: int) -> int:
    """Return the last integer of the namespace below ``value``, or as far as it goes."""
    return _capped(namespace, value - 1)


def raise_floor(namespace: NamespaceRecord, value: int) -> NamespaceRecord:
    """Let no integer below ``value`` be reserved or taken back any more; never moves back.

    :raises GenerationError: ``namespace.retired``.
    """
    check_not_retired(namespace)
    high_water = max(namespace.high_water, _below(namespace, value))
    return replace(namespace, high_water=high_water, floor=max(namespace.floor, value))


def give_back(namespace: NamespaceRecord, segment: Segment, first_unused: int) -> NamespaceRecord | None:
    """Take back the unused tail of a segment if it is still the last that was reserved; ``None`` if it is not.

    So each reservation is given back once, and only while nobody else has any of it. Where its serial is the
    namespace's, nothing was reserved or taken back since. Where it is the one before, one reservation was made since,
    and as the high-water mark is where that began, all of it was taken back. With what is taken back goes its serial.

    Of a tail that begins below the floor, the rest is taken back.

    :raises GenerationError: ``namespace.retired``.
    """
    if first_unused not in segment.as_range():
        return None
    check_not_retired(namespace)
    is_known = segment.serial > 0 and segment.serial in {namespace.serial, namespace.serial_before}
    if not is_known or segment.last != namespace.high_water or segment.stride != namespace.stride:
        return None
    high_water = max(first_unused - namespace.stride, _below(namespace, namespace.floor))
    if high_water >= namespace.high_water:
        return None
    before = 0 if segment.serial == namespace.serial_before else namespace.serial_before
    return replace(namespace, high_water=high_water, serial=namespace.serial + 1, serial_before=before)
