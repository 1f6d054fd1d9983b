"""Find the process that minted an ID, or that reserved an integer, in the records of a store.

A generator with a lease writes a node number and a time into each ID. The store knows who had the number at that time:
its record has the last holder, and the history of grants has those before. So the answer needs no log of IDs.

The answer is exact for IDs that were minted under a lease of this store. An ID of another origin can have the same node
number and time, and nothing in it shows that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from mintage import rules
from mintage.errors import ParseError
from mintage.formats import anatomy, times
from mintage.formats.bits import BitRange, field_bits, node_bits, time_bits
from mintage.formats.catalogue import FORMATS, LAYOUTS, Format, known_pool_layout, of_layout, read_layout
from mintage.formats.values import integer_of
from mintage.lease import registry
from mintage.lease.holder import Holder
from mintage.lease.registry.numbers import is_left_to_locks
from mintage.lease.request import choose_store
from mintage.store import note_server

if TYPE_CHECKING:
    from datetime import datetime

    from mintage.rules import GrantRecord, NamespaceRecord, NodeRecord, PoolRecord
    from mintage.store import Store

__all__ = ["Finding", "IntegerFinding", "who", "who_reserved"]

State: TypeAlias = Literal["held", "forgotten", "late", "free", "no lease", "unknown pool"]
"""The answer in a word. A holder is known; the history does not reach back; the holder got the number only after the
time of the ID; nobody had the number; IDs of this format have no node number; the store has no pool of this layout.
"""

_ORDER: Final = get_args(State)
_RANDOM_BITS: Final = {
    "ulid": (BitRange(56, 24, 1),),
    "uuid v7": (BitRange(28, 24, 1),),
    "ksuid": (BitRange(96, 32, 1),),
    "ksuid_ms": (BitRange(88, 32, 1),),
}
"""The bits of the node number where a generator without a lease has random ones."""
_GREGORIAN: Final = ("uuid v1", "uuid v6")
_MULTICAST_BIT: Final = 40
"""The bit of the node of these versions that a node number from a lease leaves out: it is 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One answer to the question which process minted an ID.

    >>> import os
    >>> from mintage import open_store, ulid
    >>> store = open_store("memory:Finding")
    >>> with ulid.Generator(store=store) as generator:
    ...     [finding] = who(generator.new(), store)
    >>> finding.state, finding.pool, finding.node, finding.holder.pid == os.getpid()
    ('held', 'ulid', 0, True)
    """

    format: str
    """The format of the ID in this reading, such as ``uuid v7``."""
    text: str
    """Its canonical text."""
    time: datetime | None
    state: State
    sentence: str
    """The answer for people."""
    why: str = ""
    """The reasons for and against this reading of the ID."""
    pool: str | None = None
    node: int | None = None
    """The node number: of sno a partition and its shard, of locality the process id above the MAC fragment."""
    holder: Holder | None = None
    since_ms: int | None = None
    """The time of the grant, by the holder's clock; ``None`` if not known."""
    floor_ms: int | None = None
    until_ms: int | None = None
    """The end of the holder's window: it could mint IDs of times in ``[floor_ms, until_ms)``."""
    is_current: bool = False
    """True if the holder has the node number still."""

    def as_dict(self) -> dict[str, Any]:
        """Return a dict for JSON: the time in RFC 3339."""
        return {
            **asdict(self),
            "time": self.time and times.stamp(self.time),
            "holder": self.holder and self.holder.as_dict(),
        }


def who(id: object, store: str | Store | None = None) -> list[Finding]:
    """Return which process minted an ID: a finding for each possible reading and pool, the best answer first.

    >>> from mintage import open_store, sno
    >>> store = open_store("memory:who")
    >>> generator = sno.Generator(store=store)
    >>> id = generator.new()
    >>> [finding] = who(id, store)
    >>> finding.state, finding.pool, finding.node == id.partition, finding.is_current
    ('held', 'sno', True, True)

    :param id: a value as ``mintage.inspect`` takes it.
    :param store: a URL or a Store; by default ``MINTAGE_STORE``, or else the registry of this machine.
    :raises ParseError: ``parse.unknown``: it is no ID of a known scheme.
    :raises ArgumentError: ``argument.type``.
    :raises ConfigError: ``config.store``, ``config.driver``, ``config.home``.
    :raises StoreError: as the store's verbs.
    """
    number = _integer(id)
    try:
        anatomies = anatomy.inspect(id)
    except ParseError:
        if number is None:
            raise
        anatomies = []  # an integer may fit the layout of a pool alone
    with _opened(store) as opened:
        found = list(_findings(opened, anatomies, number))
    if not found:
        anatomy.inspect(id)  # which raises
    return sorted(found, key=lambda each: _ORDER.index(each.state))


def _opened(store: str | Store | None) -> AbstractContextManager[Store]:
    chosen = choose_store(store)
    return registry.reader() if chosen is None else nullcontext(chosen)


# --- integers -----------------------------------------------------------------------------------------------------

IntegerState: TypeAlias = Literal["held", "unknown", "forgotten", "free", "unknown namespace"]
"""The answer in a word. A holder is known; it told no name; the history does not reach back; nobody is known to have
reserved it; the store has no such namespace.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerFinding:
    """The answer to the question which process reserved an integer of a namespace.

    >>> import os
    >>> from mintage import Sequence, open_store
    >>> store = open_store("memory:IntegerFinding")
    >>> with Sequence("orders", store) as orders:
    ...     finding = who_reserved("orders", orders.next(), store)
    >>> finding.state, finding.first, finding.holder.pid == os.getpid()
    ('held', 1, True)
    """

    namespace: str
    integer: int
    state: IntegerState
    sentence: str
    """The answer for people."""
    holder: Holder | None = None
    """The process that reserved it. That of a service gave it to a client."""
    first: int | None = None
    """The first integer of the run: of all that the holder reserved with no other holder between."""
    last: int | None = None
    since_ms: int | None = None
    """The store's clock when the holder reserved the first integers of the run."""
    until_ms: int | None = None
    """The store's clock when it reserved the last ones."""

    def as_dict(self) -> dict[str, Any]:
        """Return a dict for JSON: integers that may exceed JSON's numbers become strings."""
        integers = {name: getattr(self, name) for name in ("integer", "first", "last")}
        texts = {name: None if value is None else str(value) for name, value in integers.items()}
        return {**asdict(self), **texts, "holder": self.holder and self.holder.as_dict()}


def who_reserved(namespace: str, integer: int, store: str | Store | None = None) -> IntegerFinding:
    """Return which process reserved an integer of a namespace, and when.

    >>> from mintage import open_store
    >>> store = open_store("memory:who_reserved")
    >>> segment = store.reserve("orders", 10, holder="host 1")
    >>> who_reserved("orders", 7, store).holder.host, who_reserved("orders", 11, store).state
    ('host 1', 'free')

    :param integer: 0 to 2^63 - 1.
    :param store: as of :func:`who`.
    :raises ConfigError: ``config.name``, ``config.store``, ``config.driver``, ``config.home``.
    :raises ArgumentError: ``argument.type``.
    :raises FieldError: ``field.range``.
    :raises StoreError: as the store's verbs.
    """
    rules.check_int(integer, "integer", 0, rules.MAX_INTEGER)
    facts: dict[str, Any] = {"namespace": namespace, "integer": integer}
    with _opened(store) as opened:
        # The record first: the run that a reservation in between ends is among the past ones then.
        record = opened.get_namespace(namespace)
        if record is None:
            sentence = f"The store has no namespace {namespace}."
            return IntegerFinding(**facts, state="unknown namespace", sentence=sentence)
        record = rules.note_server_of_namespace(record, opened.identify("namespace", namespace) or record.identity)
        if why := _never(record, integer):
            return IntegerFinding(**facts, state="free", sentence=why)
        run = rules.run_of(record)
        if run is None or integer < run.first:
            # The last one that begins at the integer or before.
            run = next(iter(opened.list_runs(namespace, integer, 1)), None)
    if integer < record.start and (run is None or integer > run.last):
        sentence = f"Nobody is known to have reserved it: namespace {namespace} begins at {record.start} in this store."
        return IntegerFinding(**facts, state="free", sentence=sentence)
    if run is None:
        sentence = f"The history of namespace {namespace} does not reach back to this integer: "
        sentence += (
            f"it keeps past holders for {rules.HISTORY_MS // 86_400_000} days at most, and some stores fewer."
            if record.run_since_ms
            else "it has none yet, as an older mintage reserved it, or nobody did."
        )
        return IntegerFinding(**facts, state="forgotten", sentence=sentence)
    if integer > run.last:
        sentence = (
            f"Nobody is known to have reserved it. Namespace {namespace} skipped it, as its floor was raised or its "
            "server changed; or an older mintage reserved it, or the store refused to keep the holder."
        )
        return IntegerFinding(**facts, state="free", sentence=sentence)
    facts |= {"first": run.first, "last": run.last, "since_ms": run.since_ms, "until_ms": run.until_ms}
    when = f"at {_moment(run.since_ms)}"
    if run.until_ms > run.since_ms:
        when = f"between {_moment(run.since_ms)} and {_moment(run.until_ms)}"
    row = f"{when}, within {run.first} to {run.last}"
    if not run.holder:
        sentence = f"Reserved {row}, by a client that did not name itself."
        return IntegerFinding(**facts, state="unknown", sentence=sentence)
    holder = Holder.parse(run.holder)
    return IntegerFinding(**facts, state="held", sentence=f"Reserved by {holder.words}, {row}.", holder=holder)


def _never(record: NamespaceRecord, integer: int) -> str:
    """Return the reason why the store cannot have reserved an integer; empty if it can."""
    if (integer - record.high_water) % record.stride:
        return (
            f"Namespace {record.name} does not have it: its integers are {record.high_water % record.stride} modulo "
            f"{record.stride}."
        )
    if integer > record.maximum:
        return f"Namespace {record.name} does not have it: its maximum is {record.maximum}."
    if integer > record.high_water:
        then = "It is retired." if record.retired else f"Its next reservation begins above {record.high_water}."
        return f"Nobody has it: namespace {record.name} has not reserved it, or took it back. {then}"
    return ""


# --- IDs ----------------------------------------------------------------------------------------------------------


_LOCKED: Final = (
    "Processes hold node {} by locks of files, as they cannot write this machine's registry; locks keep no history."
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The meaning of a pool's node numbers, and how an ID tells its number and its tick."""

    text: str
    nodes: int
    """The number of node numbers."""
    format: Format
    is_integer: bool
    """True if IDs are integers of a snowflake layout."""
    node_runs: tuple[BitRange, ...]
    shards: int
    """The number of parts of each number, by the sequence number; 1 for all formats but sno."""
    unit_ms: int
    """The length of a tick in milliseconds, of which generators count whole ones."""

    def node(self, number: int) -> int | None:
        """Return the node number of an ID; ``None`` if no generator with a lease mints the ID."""
        node = _sum(number, self.node_runs)
        if self.format.name in _GREGORIAN:
            if not node >> _MULTICAST_BIT & 1:
                return None
            return node >> (_MULTICAST_BIT + 1) << _MULTICAST_BIT | node & ((1 << _MULTICAST_BIT) - 1)
        if self.shards > 1:
            [sequence] = field_bits(self.format, "sequence")
            return node * self.shards + (_sum(number, (sequence,)) * self.shards >> sequence.bits)
        return node

    def tick(self, number: int) -> tuple[int, int]:
        """Return the start and the end of the ID's tick, in milliseconds.

        A generator mints in a tick only if its window contains all of it. So two holders never share a tick.
        """
        start_ms = (self.format.time_ns(number) or 0) // times.MS
        return start_ms, start_ms + self.unit_ms

    def is_locked(self, store: Store, node: int) -> bool:
        """Return True if the store is the registry of a machine, and leaves a node number to locks."""
        return is_left_to_locks(store, self.text, self.nodes, node)

    def numbers(self, anatomies: list[anatomy.Anatomy], integer: int | None) -> Iterator[tuple[int, str, str]]:
        """Yield the readings of a value as an ID of this layout: its bits, its text, and the reasons."""
        found = [(each.int, each.text, each.why) for each in anatomies if each.name == self.format.name]
        if not found and self.is_integer and integer is not None and self.format.fits(integer):
            found = [(integer, str(integer), "An integer of this size.")]
        yield from found


def _sum(number: int, runs: tuple[BitRange, ...]) -> int:
    return sum((number >> run.low & ((1 << run.bits) - 1)) * run.weight for run in runs)


@lru_cache(maxsize=256)
def _layout(text: str) -> _Layout | None:
    """Return the layout of a pool; ``None`` if this version does not know it."""
    known = known_pool_layout(text)
    if known is None:
        return None
    text, nodes, _ = known
    declared = read_layout(fields) if (fields := text.removeprefix("snowflake ")) != text else None
    if declared is not None:
        fmt = of_layout(declared, next((name for name, each in LAYOUTS.items() if each == declared), None))
    else:
        name = text.partition("/")[0].replace(".", " ")
        fmt = next(each for each in FORMATS if each.name == name)
    has_node = any(part.role == "node" for part in fmt.parts)
    runs = _RANDOM_BITS[fmt.name] if fmt.name in _RANDOM_BITS else node_bits(fmt) if has_node else ()
    time = time_bits(fmt)
    unit_ms = min(run.weight for run in time.runs) if time.unit == "ms" else 1
    return _Layout(text, nodes, fmt, declared is not None, runs, int(text.partition("/")[2] or 1), unit_ms)


def _integer(id: object) -> int | None:
    """Return the integer that a value is, or whose digits it has, if it can be a snowflake."""
    if isinstance(id, str):
        is_one = rules.is_number(id, 20) and (id == "0" or id[0] != "0")
        return int(id) if is_one else None
    return None if hasattr(type(id), "__bytes__") else integer_of(id)


def _findings(store: Store, anatomies: list[anatomy.Anatomy], integer: int | None) -> Iterator[Finding]:
    now_ms = store.now_ms()
    left = {each.name: each for each in anatomies}
    has_pool = False
    for pool in store.each_pool():
        if (layout := _layout(pool.layout)) is None:
            continue
        for number, text, why in layout.numbers(anatomies, integer):
            left.pop(layout.format.name, None)
            has_pool = True
            facts: dict[str, Any] = {"format": layout.format.name, "text": text, "why": why}
            yield _of_pool(store, pool, layout, number, facts, now_ms)
    leasable = {name: layout for name in left if (layout := _layout(name.replace("uuid ", "uuid.")))}
    for name, each in left.items():
        facts = {"format": name, "text": each.text, "time": each.time, "why": each.why}
        if name in leasable:
            node = leasable[name].node(each.int)
            if node is not None and leasable[name].is_locked(store, node):
                yield Finding(**facts, state="forgotten", sentence=_LOCKED.format(node), node=node)
            else:
                sentence = f"The store has no pool for {name}, so no process minted it under a lease of this store."
                yield Finding(**facts, state="unknown pool", sentence=sentence, node=node)
        elif not leasable and not has_pool:
            sentence = f"IDs of {name} have no node number from a lease, so the ID does not tell its process."
            yield Finding(**facts, state="no lease", sentence=sentence)


def _of_pool(
    store: Store, pool: PoolRecord, layout: _Layout, number: int, reading: dict[str, Any], now_ms: int
) -> Finding:
    """Return who had the node number of an ID in a pool."""
    node = layout.node(number)
    facts = {**reading, "time": times.utc(layout.format.time_ns(number) or 0), "pool": pool.name, "node": node}
    if layout.format.name in _RANDOM_BITS:
        facts["why"] += " Without a lease, the bits of the node number are random."
    if node is None:
        sentence = f"The node of this {layout.format.name} is the address of a network card, and not from a lease."
        return Finding(**facts, state="no lease", sentence=sentence)
    if layout.is_locked(store, node):
        return Finding(**facts, state="forgotten", sentence=_LOCKED.format(node))
    start_ms, end_ms = layout.tick(number)
    # The record first: what a grant in between overwrites is in the history then.
    last = store.get_lease(pool.name, node) if node < rules.MAX_NODES else None
    found: NodeRecord | GrantRecord | None = last
    if last is not None and last.floor_ms > start_ms:
        found = next(iter(store.list_grants(pool.name, node, start_ms, 1)), None) if start_ms >= 0 else None
    [pool] = note_server(store, [pool], now_ms)  # after all that was read
    if found is None or end_ms > found.until_ms:
        state, sentence = _unheld(pool, node, last, found, start_ms)
        return Finding(**facts, state=state, sentence=sentence)
    named, holder = f"node {node} of pool {pool.name}", Holder.parse(found.holder or "")
    held: dict[str, Any] = {
        "holder": holder,
        "since_ms": found.since_ms or None,
        "floor_ms": found.floor_ms,
        "until_ms": found.until_ms,
        "is_current": found is last and found.until_ms > now_ms,
    }
    # The first window of a number begins at 0, so it contains the times of all IDs that are older than the pool.
    began_ms = found.since_ms or (int(holder.started.timestamp() * 1000) if holder.started else 0)
    if end_ms < began_ms - store.clock_limit_ms:
        sentence = (
            f"Nobody had {named} from this store at that time. It was granted at {_moment(began_ms)} or later, for IDs "
            f"{_window(found)}, to {holder.words}. Under a lease of this store only that holder can have minted the "
            "ID: with new_at, or as its clock went back."
        )
        return Finding(**facts, state="late", sentence=sentence, **held)
    has = "has" if held["is_current"] else "had"
    sentence = f"Minted by {holder.words}. It {has} {named} for IDs {_window(found)}."
    if found is last and last.cloned_ms:
        sentence += (
            f" A copy of this process, which may be the one, came with an old token at {_moment(last.cloned_ms)}."
        )
    if pool.history_lost and start_ms < pool.floor_ms:
        sentence += (
            f" Before {_moment(pool.floor_ms)}, the server changed or lost data, or another store granted numbers of "
            "this pool: so if a release was forgotten, another process may have minted it."
        )
    return Finding(**facts, state="held", sentence=sentence, **held)


def _unheld(
    pool: PoolRecord, node: int, last: NodeRecord | None, before: NodeRecord | GrantRecord | None, start_ms: int
) -> tuple[State, str]:
    """Return the answer where no known window contains the ID's tick.

    :param before: the last known window of the number that begins at or before ``start_ms``.
    """
    number = f"node {node} of pool {pool.name}"
    if before is not None and start_ms < before.until_ms:
        return "free", (
            f"Nobody minted it under a lease of this store: its tick crosses the end of a window of {number}, at "
            f"{_moment(before.until_ms)}, and no generator mints in such a tick."
        )
    if pool.history_lost and start_ms < pool.floor_ms:
        return "forgotten", (
            f"The store may have forgotten who had {number} at that time, or another store granted it: the pool is "
            "new, got numbers of another store, or its server changed or lost data, so that it knows all grants only "
            f"from {_moment(pool.floor_ms)} on."
        )
    # Later windows of a number follow each other without a gap, unless some are missing.
    if before is not last:
        return "forgotten", f"The history of {number} does not reach back to that time: {_reach(pool, start_ms)}."
    if node not in pool.share:
        return "free", (
            f"Nobody had {number} from this store at that time, as its share is {pool.first_node}..{pool.last_node}: "
            "ask the store that grants the other numbers."
        )
    ended = "it was never granted" if last is None else f"its last window ended at {_moment(last.until_ms)}"
    return "free", f"Nobody had {number} at that time: {ended}. The ID is not from a lease of this store."


def _reach(pool: PoolRecord, start_ms: int) -> str:
    if not pool.history_ms:
        return f"pool {pool.name} keeps none"
    if not pool.history_from_ms:
        return f"pool {pool.name} has none yet, as an older mintage granted the number"
    if start_ms < pool.history_from_ms:
        return f"pool {pool.name} has kept one since {_moment(pool.history_from_ms)}"
    return f"pool {pool.name} keeps {pool.history_ms / 86_400_000:,g} days of it at most"


def _window(found: NodeRecord | GrantRecord) -> str:
    since = f"from {_moment(found.floor_ms)} " if found.floor_ms else ""
    return f"{since}until {_moment(found.until_ms)}"


def _moment(ms: int) -> str:
    """Return a time in UTC, to the millisecond."""
    time = times.utc(ms * times.MS)
    return times.stamp(time) if time else f"{ms} ms after 1970"
