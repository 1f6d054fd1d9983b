"""The rules of leases and segments. They are pure functions: they use no clock, no I/O and no randomness.

A **lease** is a rectangle of ID space: one node number, and the times ``[floor_ms, until_ms)`` that its IDs may carry.
A **segment** is an interval of integers. A store keeps them in the records below. Each verb of a store applies one of
these functions to records that no other client can change meanwhile. Two rules make IDs unique:

- The next window of a node number begins at the end of its last window or later (:func:`grant`).
- The store extends a window only for a holder that sends the token of the last grant or extension, and each extension
  replaces the token (:func:`extend`). So if a holder has copies, such as a machine restored twice from one snapshot,
  exactly one of them continues.

One rule makes integers unique: each reservation raises the high-water mark of a namespace. The mark goes back only when
the segment that ends at it is given back, and only once (:func:`give_back`).

Times are milliseconds since the Unix epoch. The rules of uniqueness compare a clock with these times only, so a wrong
clock can delay a grant or waste a window, but it cannot make two windows overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mintage._core import sha1
from mintage.errors import ArgumentError, ConfigError, FieldError, GenerationError, LeaseError

SPAN_MS: Final = 30_000
"""The length of a window in milliseconds, and so the time of one node number that a crash wastes at most."""
MIN_SPAN_MS: Final = 1_000
MAX_SPAN_MS: Final = 86_400_000
LARGE_POOL: Final = 100
"""The number of holders from which on windows are longer, as far as their pool allows."""
CLOCK_LIMIT_MS: Final = 5_000
"""The largest difference between a caller's clock and the store's, in milliseconds."""
CLOCK_MARGIN_MS: Final = 1_000
"""The largest difference between the clocks of a server and of the server that takes over from it, in milliseconds."""
COOLDOWN_MS: Final = 60_000
"""The cool-down, in milliseconds: a node number that came free earlier is granted before one that was never used. So a
pool of 2^44 node numbers does not grow a record for each process that ever ran."""
HISTORY_MS: Final = 604_800_000
"""The time for which a pool keeps the past grants of its node numbers, in milliseconds: 7 days."""
MAX_HISTORY_MS: Final = 315_360_000_000
"""The longest such time: 3,650 days."""
PRUNED: Final = 10
"""The most past grants that one grant removes, and the most past runs that one reservation removes."""
GAP: Final = 10
"""The factor of the largest count ever reserved at once: so many integers a namespace skips after the server
changed."""
MAX_NODES: Final = 2**44
"""The size of the largest pool, which is locality's."""
ALL_NODES: Final = range(MAX_NODES)
MAX_RANGES: Final = 64
"""The most ranges of node numbers that a generator chooses from."""
MAX_INTEGER: Final = 2**63 - 1
MAX_COUNT: Final = 2**31 - 1
MAX_STRIDE: Final = 2**31 - 1

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer that Lua's and JSON's numbers hold exactly."""
LATEST_MS: Final = MAX_SAFE_INTEGER
"""The latest time."""

# Sets, as the import and the patterns of re would take longer than all checks of a process.
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
ALPHANUMERIC: Final = frozenset(f"{_LETTERS}{_LETTERS.upper()}0123456789")
_OF_NAMES: Final = ALPHANUMERIC | {*"._:@-"}
_OF_TOKENS: Final = ALPHANUMERIC | {*"._-"}

Ms = int
SpanMs = int
Node = int
Integer = int
Count = int
Serial = int
Stride = int
HighWater = int
LIMITS: Final = {
    "Ms": range(LATEST_MS + 1),
    "SpanMs": range(MAX_SPAN_MS + 1),
    "Node": range(MAX_NODES),
    "Integer": range(MAX_INTEGER + 1),
    "Count": range(MAX_COUNT + 1),
    "Serial": range(MAX_SAFE_INTEGER + 1),
    "Stride": range(1, MAX_STRIDE + 1),
    "HighWater": range(-MAX_STRIDE, MAX_INTEGER + 1),
}
"""The values that a record's numbers may have, by the name of their type."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to mint IDs with node number ``node`` and times in ``[floor_ms, until_ms)``.

    ``token`` proves the right to extend the lease; each extension replaces it. The repr does not show it.

    >>> lease = Lease("orders", 7, floor_ms=1_000, until_ms=31_000, token="secret")
    >>> lease
    Lease(pool='orders', node=7, floor_ms=1000, until_ms=31000)
    """

    pool: str
    node: int
    floor_ms: int
    until_ms: int
    token: str = field(repr=False)
    previous: str = field(default="", repr=False)
    """The token before this one. A server that forgot the last extension still knows it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The integers ``first``, ``first + stride``, … ``last`` of a namespace, reserved for one owner.

    >>> segment = Segment("orders", 1, 9, stride=2)
    >>> len(segment), list(segment.as_range())
    (5, [1, 3, 5, 7, 9])
    """

    namespace: str
    first: int
    last: int
    stride: int = 1
    floor: int = field(default=0, compare=False)
    """The namespace's floor at the reservation: the owner hands out no integer below it. 0 means no floor."""
    serial: int = field(default=0, compare=False)
    """The namespace's serial after the reservation. A client that gives the tail back names the segment by it."""

    def __len__(self) -> int:
        return (self.last - self.first) // self.stride + 1

    def as_range(self) -> range:
        """Return the same integers as a ``range``."""
        return range(self.first, self.last + 1, self.stride)


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """The record of a pool of node numbers.

    >>> from mintage.store import open_store
    >>> pool = open_store("memory:PoolRecord").create_pool("orders", layout="sno")
    >>> pool.name, pool.layout, pool.span_ms
    ('orders', 'sno', 30000)
    """

    name: str
    layout: str
    """The meaning of its node numbers. Generators share a pool only if their layouts are equal."""
    identity: str
    """The server that the pool was last written on."""
    span_ms: SpanMs
    """The longest span that it grants: every window ends at most this long after the clock limit. It never changes, as
    a longer span that a server forgot would outlast the quarantine."""
    floor_ms: Ms = 0
    """The earliest start of a window."""
    quarantine_until_ms: Ms = 0
    """The end of the quarantine, by the store's clock: the pool grants nothing before it."""
    history_lost: bool = False
    """True if the store may have forgotten grants. Then every node number may have been used."""
    changes: Count = 0
    """The number of changes of the server. It tells a server that comes back from the same server before."""
    history_ms: Ms = HISTORY_MS
    """The time for which it keeps past grants, after the end of their windows; 0 means that it keeps none."""
    history_from_ms: Ms = 0
    """The store's clock when the history began; 0 if it has not begun."""
    first_node: Node = 0
    """The first number of its share. Another store may grant the numbers outside of it."""
    last_node: Node = MAX_NODES - 1
    """The last number of its share."""

    @property
    def share(self) -> range:
        """The node numbers that it may grant."""
        return range(self.first_node, self.last_node + 1)

    def share_of(self, count: int) -> range:
        """Return the node numbers that it may grant of the first ``count``."""
        return range(count)[self.first_node : self.last_node + 1]


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """The record of a node number that was granted at least once.

    >>> from mintage.store import open_store
    >>> store = open_store("memory:NodeRecord")
    >>> lease = store.acquire(
    ...     "orders", nodes=range(64), layout="sno", holder="host 1", now_ms=store.now_ms(), span_ms=30_000
    ... )
    >>> [record] = store.list_leases("orders")
    >>> record.node, record.holder, record.until_ms == lease.until_ms
    (0, 'host 1', True)
    """

    pool: str
    node: Node
    floor_ms: Ms
    until_ms: Ms
    """The end of the last window. The next window begins here or later."""
    span_ms: SpanMs
    identity: str
    """The server that it was last written on."""
    token: str | None = field(repr=False)
    """``None`` once released or revoked."""
    holder: str | None
    """The current or last holder, as text for people."""
    cloned_ms: Ms = 0
    """The time, by the store's clock, at which a copy of the holder last sent an older token; 0 if none did."""
    changes: Count = 0
    """The pool's ``changes`` when this record was last written."""
    since_ms: Ms = 0
    """The holder's clock at the grant; 0 if an older version granted it."""

    def as_lease(self, previous: str = "") -> Lease:
        """Return the lease of its holder, who had the token ``previous`` before."""
        return Lease(self.pool, self.node, self.floor_ms, self.until_ms, self.token or "", previous)


@dataclass(frozen=True, slots=True)
class GrantRecord:
    """A past grant of a node number. The current or last one is in the :class:`NodeRecord`.

    >>> from mintage.store import open_store
    >>> store = open_store("memory:GrantRecord")
    >>> for holder in ("host 1", "host 2"):
    ...     lease = store.acquire(
    ...         "orders", nodes=range(1), layout="sno", holder=holder, now_ms=store.now_ms(), span_ms=30_000
    ...     )
    ...     store.release(lease, used_until_ms=store.now_ms())
    >>> [grant.holder for grant in store.list_grants("orders", 0)]
    ['host 1']
    """

    pool: str
    node: Node
    floor_ms: Ms
    """The start of the window that the holder had."""
    until_ms: Ms
    """The end of that window, after all extensions and the release."""
    since_ms: Ms
    """The holder's clock at the grant; 0 if it is unknown."""
    holder: str
    """The holder, as text for people."""


@dataclass(frozen=True, slots=True)
class NamespaceRecord:
    """The record of a namespace of integers.

    >>> from mintage.store import open_store
    >>> namespace = open_store("memory:NamespaceRecord").create_namespace("invoices", start=1000)
    >>> namespace.high_water, namespace.maximum == 2**63 - 1
    (999, True)
    """

    name: str
    high_water: HighWater
    """The last integer reserved. Before the first reservation it is one stride below the first integer."""
    maximum: Integer
    stride: Stride
    largest: Count
    """The largest count ever reserved at once."""
    identity: str
    """The server that it was last written on."""
    floor: Integer = 0
    """The smallest integer that may still be reserved or taken back; 0 means no floor."""
    serial: Serial = 0
    """The number of the last change: each reservation and each segment taken back adds 1. Another server begins with
    another serial. No two changes have the same serial.
    """
    serial_before: Serial = 0
    """The serial before the last reservation: as a rule, the serial of the reservation before that."""
    retired: bool = False
    """True if the namespace was ended for good: its name never starts again."""
    start: Integer = 0
    """Its first integer; 0 also if an older version created it."""
    run_holder: str = ""
    """The holder of the current run, as text for people; empty if its client told none. A run is a series of
    reservations by one holder without a gap and without another holder between them."""
    run_first: Integer = 0
    """The first integer of the current run."""
    run_last: HighWater = 0
    """Its last integer; below the first if all of it was taken back."""
    run_since_ms: Ms = 0
    """The store's clock at the first reservation of the current run; 0 if there is no run yet."""
    run_until_ms: Ms = 0
    """The store's clock at its last reservation."""

    @property
    def left(self) -> int:
        """The number of integers that can still be reserved."""
        return 0 if self.retired else max(0, (self.maximum - self.high_water) // self.stride)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A past run of a namespace: reservations by one holder. The current run is in the :class:`NamespaceRecord`.

    >>> from mintage.store import open_store
    >>> store = open_store("memory:RunRecord")
    >>> for holder in ("host 1", "host 1", "host 2"):
    ...     segment = store.reserve("orders", 10, holder=holder)
    >>> [(run.holder, run.first, run.last) for run in store.list_runs("orders")]
    [('host 1', 1, 20)]
    """

    namespace: str
    first: Integer
    """The first integer of the run."""
    last: HighWater
    """Its last integer; below the first if all of it was taken back. A later run may begin below it."""
    holder: str
    """The holder, as text for people; empty if its client told none."""
    since_ms: Ms
    """The store's clock at the first reservation of the run."""
    until_ms: Ms
    """The store's clock at its last reservation."""


# --- checks of arguments ----------------------------------------------------------------------------------------


def is_number(text: str, digits: int) -> bool:
    """Return True if a text is a whole number of at most so many digits of ASCII."""
    return text.isdecimal() and text.isascii() and len(text) <= digits


def check_int(value: int, what: str, least: int | None = None, most: int | None = None) -> None:
    """Check that ``value`` is an int, and within ``least`` to ``most`` if both are given.

    :raises ArgumentError: ``argument.type``: it is not an int, or a bool.
    :raises FieldError: ``field.range``: it is outside the limits.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ArgumentError(f"{what} {_shown(value)} is {type(value).__name__}, not int", code="argument.type")
    if least is not None and most is not None and not least <= value <= most:
        raise FieldError(f"{what} {_shown(value)} is outside {least}..{most}", code="field.range")


def check_text(value: str, what: str, least: int, most: int) -> None:
    """Check that ``value`` is text of ``least`` to ``most`` characters without NUL that UTF-8 can encode.

    :raises ArgumentError: ``argument.type``: it is not a str.
    :raises FieldError: ``field.range``: its length or a character is not allowed.
    """
    if not isinstance(value, str):
        raise ArgumentError(f"{what} {_shown(value)} is {type(value).__name__}, not str", code="argument.type")
    is_text = "\0" not in value and not any("\ud800" <= each <= "\udfff" for each in value)
    if not least <= len(value) <= most or not is_text:
        raise FieldError(f"{what} {_shown(value)} is not {least} to {most} characters without NUL", code="field.range")


def _shown(value: object) -> str:
    # Python refuses to write a number of more than 4,300 digits.
    try:
        text = repr(value)
    except ValueError:
        text = "of that many digits"
    return text if len(text) <= 60 else f"{text:.60}…"


def check_lease(lease: Lease) -> None:
    """Check that a client can hold this lease.

    :raises ArgumentError: ``argument.type``.
    :raises ConfigError: ``config.name``.
    :raises LeaseError: ``lease.lost``: no pool has its node number.
    """
    if not isinstance(lease, Lease):
        raise ArgumentError(f"lease {_shown(lease)} is {type(lease).__name__}, not Lease", code="argument.type")
    check_name(lease.pool, "pool")
    for value, what in ((lease.node, "node"), (lease.floor_ms, "floor_ms"), (lease.until_ms, "until_ms")):
        check_int(value, what)
    if not isinstance(lease.token, str) or not isinstance(lease.previous, str):
        raise ArgumentError("a lease's token is not str", code="argument.type")
    if not 0 <= lease.node < MAX_NODES:
        raise LeaseError(
            f"a lease of pool {lease.pool!r} is lost: node {_shown(lease.node)} is outside 0..{MAX_NODES - 1}",
            code="lease.lost",
        )


def check_segment(segment: Segment) -> None:
    """Check that a client can have reserved this segment.

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
    """Check the name of a pool or namespace: 1 to 128 letters, digits and ``. _ : @ -``, the first a letter or digit.

    :raises ConfigError: ``config.name``.
    """
    if not (isinstance(name, str) and 1 <= len(name) <= 128 and name[0] in ALPHANUMERIC and _OF_NAMES.issuperset(name)):
        raise ConfigError(
            f"{what} {_shown(name)} is not 1 to 128 letters, digits and . _ : @ -, the first a letter or digit",
            code="config.name",
        )


def check_nodes(nodes: range) -> None:
    """Check that ``nodes`` is a range of step 1 within 0 to 2^44 that is not empty.

    :raises ConfigError: ``config.node``.
    """
    if not isinstance(nodes, range) or nodes.step != 1 or not 0 <= nodes.start < nodes.stop <= MAX_NODES:
        raise ConfigError(f"nodes {nodes!r} is not a range of step 1 within 0..{MAX_NODES}", code="config.node")


def node_ranges(nodes: Iterable[int | range]) -> list[range]:
    """Return node numbers and ranges of them as ascending ranges that neither overlap nor touch, at most 64.

    >>> node_ranges([range(8), 900, 8, 17])
    [range(0, 9), range(17, 18), range(900, 901)]

    :raises ConfigError: ``config.node``: as :func:`check_nodes`; also for no numbers, or more ranges.
    """
    found = merge_ranges(part if isinstance(part, range) else range(part, part + 1) for part in nodes)
    if not found:
        raise ConfigError("nodes has no node number: give one or more", code="config.node")
    if len(found) > MAX_RANGES:
        raise ConfigError(
            f"nodes has {len(found)} ranges of node numbers; the limit is {MAX_RANGES}, as each is a request to the "
            "store: give fewer and longer ranges",
            code="config.node",
        )
    return found


def merge_ranges(parts: Iterable[range]) -> list[range]:
    """Return the numbers of ``parts`` as ascending ranges that neither overlap nor touch.

    :raises ConfigError: ``config.node``: as :func:`check_nodes`.
    """
    found: list[range] = []
    for part in sorted(parts, key=lambda part: part.start):
        check_nodes(part)
        if found and part.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, part.stop))
        else:
            found.append(part)
    return found


def nodes_text(nodes: Sequence[range]) -> str:
    """Return ranges of node numbers as text, such as ``0..15, 900``, cut at 200 characters.

    >>> nodes_text([range(16), range(900, 901)])
    '0..15, 900'
    """
    text = ", ".join(str(each.start) if len(each) == 1 else f"{each.start}..{each.stop - 1}" for each in nodes)
    return text if len(text) <= 200 else f"{text:.200}…"


def check_span(span_ms: int) -> None:
    """Check that ``span_ms`` is 1,000 to 86,400,000 milliseconds.

    :raises ConfigError: ``config.span``.
    """
    check_int(span_ms, "span_ms")
    if not MIN_SPAN_MS <= span_ms <= MAX_SPAN_MS:
        raise ConfigError(f"span_ms {_shown(span_ms)} is outside {MIN_SPAN_MS}..{MAX_SPAN_MS}", code="config.span")


def check_token(token: str) -> None:
    """Check that the next token of a lease is 1 to 64 letters, digits and ``. _ -``.

    :raises FieldError: ``field.range``. The message does not show the token.
    """
    if not isinstance(token, str) or not (1 <= len(token) <= 64 and _OF_TOKENS.issuperset(token)):
        raise FieldError("the next token is not 1 to 64 letters, digits and . _ -", code="field.range")


def check_clock(now_ms: int, store_now_ms: int, limit_ms: int = CLOCK_LIMIT_MS) -> None:
    """Refuse a caller whose clock is far from the store's: the difference would be wasted time of a node number.

    :raises LeaseError: ``lease.clock``.
    """
    ahead = now_ms - store_now_ms
    if abs(ahead) > limit_ms:
        raise LeaseError(
            f"this clock is {abs(ahead)} ms {'ahead of' if ahead > 0 else 'behind'} the store's; the limit is "
            f"{limit_ms} ms: set the clock (NTP), then try again",
            code="lease.clock",
        )


def check_layout(pool: PoolRecord, layout: str) -> None:
    """Check that the pool has this layout.

    :raises ConfigError: ``config.pool``: it has another layout.
    """
    if pool.layout != layout:
        raise ConfigError(
            f"pool {pool.name!r} holds node numbers of {pool.layout!r}, not of {layout!r}: name another pool",
            code="config.pool",
        )


# --- leases -------------------------------------------------------------------------------------------------------


def create_pool(name: str, layout: str, span_ms: int, server_id: str, *, quarantine_until_ms: int = 0) -> PoolRecord:
    """Return a pool that has granted nothing.

    A store that cannot tell a new pool from a lost one passes ``quarantine_until_ms``.
    """
    lost = quarantine_until_ms > 0
    return PoolRecord(name, layout, server_id, max(span_ms, SPAN_MS), quarantine_until_ms, quarantine_until_ms, lost)


def end_of_quarantine(now_ms: int, span_ms: int, limit_ms: int = CLOCK_LIMIT_MS) -> int:
    """Return the time in milliseconds at which all windows that a pool granted until ``now_ms`` have ended."""
    return now_ms + span_ms + limit_ms + CLOCK_MARGIN_MS


def declare_unused(pool: PoolRecord, *, has_granted: bool) -> PoolRecord:
    """Return the pool after an operator stated that no ID was ever minted with its node numbers.

    The statement ends the quarantine. ``has_granted`` is True if the store has a record of a node number.

    :raises ConfigError: ``config.pool``: the store may have lost grants, and has the record of another.
    """
    if has_granted and pool.history_lost:
        raise ConfigError(
            f"pool {pool.name!r} has granted node numbers, so they were used: wait for the end of its quarantine, and "
            f"see: mintage leases list {pool.name}",
            code="config.pool",
        )
    return pool if has_granted else replace(pool, floor_ms=0, quarantine_until_ms=0, history_lost=False)


def note_server(pool: PoolRecord, server_id: str, store_now_ms: int, limit_ms: int = CLOCK_LIMIT_MS) -> PoolRecord:
    """Return the pool after it has noted the server that it is on.

    If another server wrote the record, the last writes may be lost. Then the pool grants nothing, and no window begins,
    before the end of every window that the server may have forgotten.
    """
    if pool.identity == server_id:
        return pool
    end = end_of_windows(pool, store_now_ms, limit_ms)
    return replace(
        pool,
        identity=server_id,
        floor_ms=max(pool.floor_ms, end),
        quarantine_until_ms=max(pool.quarantine_until_ms, end),
        history_lost=True,
        changes=pool.changes + 1,
    )


def share_of(pool: PoolRecord, nodes: range) -> range:
    """Return the part of ``nodes`` that is in the pool's share.

    :raises ConfigError: ``config.node``: none is.
    """
    found = range(max(nodes.start, pool.first_node), min(nodes.stop, pool.last_node + 1))
    if not found:
        asked = f"number {nodes.start} is" if len(nodes) == 1 else f"numbers {nodes.start}..{nodes.stop - 1} are"
        raise ConfigError(
            f"node {asked} outside the share {pool.first_node}..{pool.last_node} of pool {pool.name!r}: choose "
            "numbers of the share, as another store may grant the others",
            code="config.node",
        )
    return found


def set_share(
    pool: PoolRecord,
    nodes: range,
    store_now_ms: int,
    *,
    wider_from_ms: int | None = None,
    limit_ms: int = CLOCK_LIMIT_MS,
) -> PoolRecord:
    """Return the pool with ``nodes`` as its share.

    A holder of a number outside of it mints to the end of its window. ``wider_from_ms`` states that nobody else mints
    under ``nodes`` at that time or later: then no window begins before, and every number counts as used. It is no later
    than a clock may be ahead, as a window that a server forgets must end with the quarantine.

    :raises ConfigError: ``config.node``: ``wider_from_ms`` is too late; or the share would be wider, and
        ``wider_from_ms`` is missing, or more than a day ago.
    """
    share = replace(pool, first_node=nodes.start, last_node=nodes.stop - 1)
    is_wider = nodes.start < pool.first_node or nodes.stop - 1 > pool.last_node
    if wider_from_ms is None:
        if is_wider:
            raise ConfigError(
                f"nodes {nodes.start}..{nodes.stop - 1} are not within the share {pool.first_node}..{pool.last_node} "
                f"of pool {pool.name!r}, and another store may grant others: narrow its share, and repeat this with "
                f"the time that it prints, by: mintage pools create {pool.name} --nodes "
                f"{nodes.start}-{nodes.stop - 1} --wider-from TIME",
                code="config.node",
            )
        return share
    ahead_ms = wider_from_ms - store_now_ms
    if ahead_ms > limit_ms:
        raise ConfigError(
            f"wider_from_ms {wider_from_ms} is {ahead_ms} ms ahead of the store's clock; the limit is {limit_ms} ms: "
            "wait until then, and repeat it",
            code="config.node",
        )
    if is_wider and -ahead_ms > MAX_SPAN_MS:
        # A script that is run again must not take numbers back that the store has given up since.
        raise ConfigError(
            f"wider_from_ms {wider_from_ms} is {-ahead_ms} ms ago; the limit for a wider share is {MAX_SPAN_MS} ms: "
            "state a later time, if no other store grants these numbers now",
            code="config.node",
        )
    return replace(share, floor_ms=max(pool.floor_ms, wider_from_ms), history_lost=True)


def end_of_windows(pool: PoolRecord, store_now_ms: int, limit_ms: int = CLOCK_LIMIT_MS) -> int:
    """Return the time in milliseconds at which all windows that the pool granted or extended until now have ended."""
    # No window begins before the floor, so the pool may have granted windows from there on.
    return end_of_quarantine(max(store_now_ms, pool.floor_ms), pool.span_ms, limit_ms)


def check_quarantine(pool: PoolRecord, store_now_ms: int, *, never_used: bool) -> None:
    """Check that the pool is not in quarantine, and has its history if ``never_used`` needs it.

    :raises LeaseError: ``lease.none_free``.
    """
    remedy = (
        f"if no ID was ever minted with its node numbers, say so: mintage pools create {pool.name} --never-used; else"
    )
    if never_used and pool.history_lost:
        raise LeaseError(
            f"pool {pool.name!r} cannot know which node numbers were never used, as it is new on this server, got "
            f"numbers of another store, or the server changed or lost data: {remedy} lease numbers that no generator "
            "ever had from another pool, by nodes=range(...)",
            code="lease.none_free",
        )
    left = pool.quarantine_until_ms - store_now_ms
    if left > 0:
        raise LeaseError(
            f"pool {pool.name!r} is in quarantine for {-(-left // 1000)} s, as it is new on this server, or the server "
            f"changed or lost data, and its node numbers may still be in use: {remedy} wait",
            code="lease.none_free",
            retry_after_ms=left,
        )


def choose(
    pool: PoolRecord, nodes: range, oldest: NodeRecord | None, unused: int | None, now_ms: int, *, never_used: bool
) -> int:
    """Return the node number to grant.

    ``oldest`` is the record in ``nodes`` whose window ended first, ``unused`` the lowest number without a record.
    A number after its cool-down comes first, then one never used, then any whose window has ended.

    :raises LeaseError: ``lease.none_free``, with the time until the first number comes free.
    """
    if never_used:
        if unused is None:
            raise LeaseError(
                f"pool {pool.name!r} has no node number in {nodes.start}..{nodes.stop - 1} that was never used: "
                "create a pool with another name",
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
    if len(nodes) == 1:
        held = f"node number {nodes.start} of pool {pool.name!r} is leased; it comes free in {left} ms at the earliest"
        remedy = "wait, raise max_wait_ms, or stop the holder"
    else:
        held = (
            f"all {len(nodes)} node numbers of pool {pool.name!r} ({nodes.start}..{nodes.stop - 1}) are leased; the "
            f"first comes free in {left} ms"
        )
        remedy = "stop a holder, or use a layout with more"
    raise LeaseError(
        f"{held}: {remedy} (see: mintage leases list {pool.name})",
        code="lease.none_free",
        retry_after_ms=left,
    )


def longest_span(node: int, span_ms: int) -> int:
    """Return the longest span that a node number is granted for, in milliseconds, where ``span_ms`` is asked for.

    Numbers are granted from the lowest of the pool's share on, so ``node``, counted from there, tells how many holders
    the pool has. The rate of extensions then grows with the logarithm of the fleet, up to the pool's longest span.
    """
    return span_ms * max(LARGE_POOL, node) // LARGE_POOL


def grant(
    pool: PoolRecord, record: NodeRecord | None, node: int, *, token: str, holder: str, now_ms: int, span_ms: int
) -> NodeRecord:
    """Return the record of a node number that is granted from the end of its last window, for ``span_ms`` or longer.

    :raises ConfigError: ``config.span``: ``span_ms`` is longer than the pool allows.
    """
    if span_ms > pool.span_ms:
        raise ConfigError(
            f"span_ms is {span_ms}; pool {pool.name!r} allows at most {pool.span_ms}: ask for less, or create a "
            f"pool by: mintage pools create NAME --span-ms {span_ms}",
            code="config.span",
        )
    span_ms = min(pool.span_ms, longest_span(node - pool.first_node, span_ms))
    floor_ms = max(pool.floor_ms, record.until_ms if record is not None else 0)
    # A caller whose clock is a little behind the last window's end gets a window and waits for its floor.
    until_ms = max(floor_ms, now_ms) + span_ms
    return NodeRecord(
        pool.name, node, floor_ms, until_ms, span_ms, pool.identity, token, holder, 0, pool.changes, now_ms
    )


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
    share: range = ALL_NODES,
    now_ms: int,
    store_now_ms: int,
    limit_ms: int = CLOCK_LIMIT_MS,
) -> NodeRecord:
    """Return the record with its window extended to a span from now, and with ``next_token`` as its token.

    The end of a window never moves back. The rule refuses a request with an older token, which a copy of the holder may
    have. A request that is repeated with the same next token, because its answer was lost, gets the same answer.

    ``changes`` is the pool's on this server. If the server changed since the record was written, it may have forgotten
    a grant of the number to another holder. That is impossible if this holder's window has not ended: the number was
    never free. The server may also have forgotten the last extension; then the record has the holder's previous token.
    The rule accepts that token and replaces it, so the next copy of the holder finds neither of its tokens.

    ``share`` is the pool's: the rule extends no window of a number outside of it.

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
    if lease.node not in share:
        raise _lost(lease.pool, lease.node, record, f"it is outside the share {share.start}..{share.stop - 1}")
    if is_elsewhere and lease.until_ms <= store_now_ms + limit_ms + CLOCK_MARGIN_MS:
        raise _lost(lease.pool, lease.node, record, "its window ran out while the server changed or lost data")
    # The end that the holder knows and the server may have forgotten, but not later than the server can have granted.
    claimed_ms = min(lease.until_ms, store_now_ms + limit_ms + CLOCK_MARGIN_MS + record.span_ms)
    until_ms = max(record.until_ms, claimed_ms, now_ms + record.span_ms)
    return replace(record, until_ms=until_ms, identity=server_id, token=next_token, changes=changes)


def is_of_a_clone(record: NodeRecord | None, lease: Lease, server_id: str, changes: int = 0) -> bool:
    """Return True if the lease belongs to the record's grant, but not to its last extension.

    The grants of one node number have different floors. On another server the last extension may be forgotten, so the
    answer is False there.
    """
    return (
        record is not None
        and record.token not in {None, lease.token}
        and record.floor_ms == lease.floor_ms
        and (record.identity, record.changes) == (server_id, changes)
    )


def release(record: NodeRecord | None, lease: Lease, *, used_until_ms: int) -> NodeRecord:
    """Return the record after the end of the lease.

    The next window may begin at ``used_until_ms``, the first unused time in milliseconds.

    :raises LeaseError: ``lease.lost``.
    """
    if record is None or record.token is None or record.token != lease.token:
        raise _lost(lease.pool, lease.node, record, "it was granted to another, released or revoked")
    until_ms = min(record.until_ms, max(record.floor_ms, used_until_ms))
    return replace(record, until_ms=until_ms, token=None)


def revoke(record: NodeRecord | None, pool: str, node: int) -> NodeRecord:
    """Return the record without its token: nobody can extend the window, and the number comes free when it ends.

    :raises LeaseError: ``lease.unknown``: the node number has no record.
    """
    if record is None:
        raise LeaseError(f"node {node} of pool {pool!r} was never leased", code="lease.unknown")
    return replace(record, token=None)


# --- the history of a pool ----------------------------------------------------------------------------------------


def keep_history(pool: PoolRecord, store_now_ms: int, history_ms: int | None = None) -> PoolRecord:
    """Return the pool with a history of that length in milliseconds; ``None`` leaves the length as it is.

    A history begins when it is first kept. One that is made longer begins where the shorter one did.
    """
    length_ms = pool.history_ms if history_ms is None else history_ms
    begun_ms = pool.history_from_ms
    if length_ms == 0:
        begun_ms = 0
    elif begun_ms == 0:
        begun_ms = store_now_ms
    elif length_ms > pool.history_ms:
        begun_ms = max(begun_ms, store_now_ms - pool.history_ms)
    return replace(pool, history_ms=length_ms, history_from_ms=begun_ms)


def past_grant(pool: PoolRecord, replaced: NodeRecord | None) -> GrantRecord | None:
    """Return the past grant to keep when a node number is granted again.

    ``replaced`` is the record that the new grant replaces. There is nothing to keep if the pool has no history, or if
    nobody could mint in the window.
    """
    if replaced is None or not pool.history_ms or replaced.until_ms <= replaced.floor_ms:
        return None
    holder = replaced.holder or ""
    return GrantRecord(replaced.pool, replaced.node, replaced.floor_ms, replaced.until_ms, replaced.since_ms, holder)


def kept_from(pool: PoolRecord, store_now_ms: int) -> int:
    """Return the time in milliseconds at which a grant may have ended and still be kept."""
    return max(0, store_now_ms - pool.history_ms)


def history_begin(pool: PoolRecord, store_now_ms: int) -> int | None:
    """Return the time in milliseconds from which on the pool knows every holder; ``None`` if it keeps no history.

    A server that took over may have forgotten holders, whose windows end with the quarantine. Times are those of the
    store's clock, from which a holder's may differ by the clock limit.
    """
    if not pool.history_ms or not pool.history_from_ms:
        return None
    return max(pool.history_from_ms, pool.quarantine_until_ms, kept_from(pool, store_now_ms))


# --- segments -----------------------------------------------------------------------------------------------------


def create_namespace(
    name: str, server_id: str, *, start: int | None = None, maximum: int = MAX_INTEGER, stride: int = 1, offset: int = 0
) -> NamespaceRecord:
    """Return a namespace of the integers from ``start`` (1) to ``maximum`` that are ``offset`` modulo ``stride``.

    Two independent databases with stride 2 and offsets 0 and 1 hand out even and odd integers. Each works without the
    other.

    :raises FieldError: ``field.range``.
    """
    start = 1 if start is None else start
    check_int(start, "start", 0, MAX_INTEGER)
    check_int(maximum, "maximum", 0, MAX_INTEGER)
    check_int(stride, "stride", 1, MAX_STRIDE)
    check_int(offset, "offset", 0, stride - 1)
    first = start + (offset - start) % stride
    if first > maximum:
        raise FieldError(f"maximum {maximum} is below the first integer {first}", code="field.range")
    return NamespaceRecord(name, first - stride, maximum, stride, 0, server_id, start=first)


def note_server_of_namespace(namespace: NamespaceRecord, server_id: str) -> NamespaceRecord:
    """Return the namespace after it has noted the server that it is on.

    If another server wrote the record, the namespace skips the integers that this server may have forgotten. Its
    serials start again, so it takes back no segment that another server reserved, not even at the maximum.
    """
    if namespace.identity == server_id:
        return namespace
    skip = GAP * max(1, namespace.largest)
    high_water = _capped(namespace, namespace.high_water + skip * namespace.stride)
    serial = _first_serial(server_id)
    return replace(namespace, high_water=high_water, identity=server_id, serial=serial, serial_before=0)


def _first_serial(server_id: str) -> int:
    """Return the first serial on a server that takes over: 52 bits of the SHA-1 of its id.

    Two servers that take over from one replica begin at the same integer, and a count of changes may be equal on both.
    So only a serial that depends on the server tells their segments apart.
    """
    return int(sha1(server_id.encode()).hex()[:13], 16)


def _capped(namespace: NamespaceRecord, high_water: int) -> int:
    """Return the last integer of the namespace at or below ``high_water``."""
    top = min(high_water, namespace.maximum)
    return top - (top - namespace.high_water) % namespace.stride


def check_not_retired(namespace: NamespaceRecord) -> None:
    """Check that the namespace is not retired.

    :raises GenerationError: ``namespace.retired``.
    """
    if namespace.retired:
        raise retired_error(namespace.name)


def retired_error(name: str) -> GenerationError:
    """Return the error for a namespace that is retired."""
    return GenerationError(
        f"namespace {name!r} was retired for good: its name never starts again; use another name",
        code="namespace.retired",
    )


def retire(namespace: NamespaceRecord) -> NamespaceRecord:
    """Return the namespace, ended for good. Its record stays, so that the name never starts again."""
    return replace(namespace, retired=True)


def reserve(namespace: NamespaceRecord, count: int) -> tuple[NamespaceRecord, Segment]:
    """Return the namespace and a segment of its next ``count`` integers, or of all that are left.

    :raises GenerationError: ``namespace.exhausted``: no integer is left; ``namespace.retired``.
    """
    check_not_retired(namespace)
    high_water = max(namespace.high_water, _capped(namespace, namespace.floor - 1))
    first = high_water + namespace.stride
    last = _capped(namespace, high_water + count * namespace.stride)
    if last < first:
        raise GenerationError(
            f"namespace {namespace.name!r} is used up: its last integer is {high_water}, its maximum "
            f"{namespace.maximum}; create another namespace",
            code="namespace.exhausted",
        )
    largest, serial = max(namespace.largest, count), namespace.serial + 1
    moved = replace(namespace, high_water=last, largest=largest, serial=serial, serial_before=namespace.serial)
    return moved, Segment(namespace.name, first, last, namespace.stride, namespace.floor, serial)


def raise_floor(namespace: NamespaceRecord, value: int) -> NamespaceRecord:
    """Return the namespace with its floor at ``value`` or higher. Integers below it are not reserved or taken back.

    :raises GenerationError: ``namespace.retired``.
    """
    check_not_retired(namespace)
    high_water = max(namespace.high_water, _capped(namespace, value - 1))
    return replace(namespace, high_water=high_water, floor=max(namespace.floor, value))


def give_back(namespace: NamespaceRecord, segment: Segment, first_unused: int) -> NamespaceRecord | None:
    """Return the namespace without the unused tail of its last segment; ``None`` if the segment is not the last one.

    So each reservation is given back once, and only while no other client has any of its integers. If the segment's
    serial equals the namespace's, nothing was reserved or taken back since. If it equals the one before, one
    reservation was made since; as the high-water mark is where that one began, all of it was taken back. The serial
    changes with each tail that is taken back.

    If the tail begins below the floor, only the part above the floor is taken back.

    :raises GenerationError: ``namespace.retired``.
    """
    if first_unused not in segment.as_range():
        return None
    check_not_retired(namespace)
    is_known = segment.serial > 0 and segment.serial in {namespace.serial, namespace.serial_before}
    if not is_known or segment.last != namespace.high_water or segment.stride != namespace.stride:
        return None
    high_water = max(first_unused - namespace.stride, _capped(namespace, namespace.floor - 1))
    if high_water >= namespace.high_water:
        return None
    before = 0 if segment.serial == namespace.serial_before else namespace.serial_before
    return replace(namespace, high_water=high_water, serial=namespace.serial + 1, serial_before=before)


# --- the history of a namespace -----------------------------------------------------------------------------------


def run_of(namespace: NamespaceRecord) -> RunRecord | None:
    """Return the current run of a namespace; ``None`` if there is none yet."""
    if not namespace.run_since_ms:
        return None
    since_ms, until_ms = namespace.run_since_ms, namespace.run_until_ms
    return RunRecord(namespace.name, namespace.run_first, namespace.run_last, namespace.run_holder, since_ms, until_ms)


def note_run(
    namespace: NamespaceRecord, segment: Segment, holder: str, store_now_ms: int
) -> tuple[NamespaceRecord, RunRecord | None]:
    """Return the namespace after its run has noted a reservation, and the past run to keep, if another one begins.

    ``namespace`` is the record that :func:`reserve` returned with the segment. No rule of uniqueness reads a run.
    """
    run = run_of(namespace)
    first, since_ms = segment.first, store_now_ms
    if run is not None and (holder, first) == (run.holder, run.last + namespace.stride):
        first, since_ms = run.first, run.since_ms
    noted = replace(
        namespace,
        run_holder=holder,
        run_first=first,
        run_last=segment.last,
        run_since_ms=since_ms,
        run_until_ms=max(since_ms, store_now_ms),
    )
    # A run that was taken back as a whole stays, unless the next one replaces it: it hides what lies below it.
    return noted, run if run is not None and run.first != first else None


def shorten_run(namespace: NamespaceRecord) -> NamespaceRecord:
    """Return the namespace after its run has noted a tail that :func:`give_back` took back.

    The tail may reach below the current run, into past ones. Then the current one is empty, and begins at the next
    integer.
    """
    following = namespace.high_water + namespace.stride
    return replace(
        namespace,
        run_first=min(namespace.run_first, following),
        run_last=min(namespace.run_last, namespace.high_water),
    )
