"""Worlds: processes, their clocks, and a store that delays, loses, fails over and forgets."""

from __future__ import annotations

import gc
import itertools
import logging
import random
import re
import weakref
from bisect import bisect_right
from collections import Counter, deque
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from unittest.mock import patch
from zlib import crc32

import numpy as np

from mintage import (
    Sequence,
    _core,
    keeper,
    ksuid,
    ksuid_ms,
    locality,
    objectid,
    sandflake,
    sno,
    snowflake,
    supply,
    tenancy,
    ulid,
    uuid,
    xid,
)
from mintage import lease as rules
from mintage.errors import MintError, StoreError
from mintage.keeper import Keeper, Task
from mintage.lease import NamespaceRecord, NodeRecord, PoolRecord
from mintage.store.memory import MemoryStore, Records
from mintage.store.records import key_of
from mintage.tenancy import Tenancy
from mintage.testing import ManualClock
from tests.simulator.copies import Share, memory_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mintage.lease import Lease, Segment
    from mintage.store.ledger import Server, Transaction
    from mintage.store.records import Record

T = TypeVar("T")

EVENTS: Final = 20_000
"""How much happens in one world."""
MS: Final = 1_000_000
START_MS: Final = 1_760_000_000_000
PATIENCE: Final = 100_000
"""How often keepers may be asked in one event."""
DEEPEST: Final = 3
"""How many processes can be stopped in the middle of a verb at once."""
#: Few numbers a tick, so that generators run ahead of their clocks, to the end of their windows.
NARROW: Final = snowflake.Layout("time:43 node:12 sequence:6", epoch_ms=START_MS - 86_400_000)

RARE: Final = {"failover": 4, "outage": 2, "flush": 2, "sleep": 2, "busy": 2, "newer schema": 1, "server comes back": 3}
"""Faults of the whole world, and how often they are drawn beside one process's."""
OWN: Final = {
    "step back": 12,
    "step forward": 12,
    "wrong clock": 2,
    "right clock": 20,
    "drift": 6,
    "freeze": 6,
    "pause": 12,
    "long pause": 8,
    "restored backup": 2,
    "crash": 10,
    "drop": 4,
    "revoke": 3,
    "raised floor": 2,
    "given back twice": 6,
    "clone": 6,
    "told of its copies": 3,
}
ON_THE_WAY: Final = (
    "request lost",
    "reply lost",
    "request late",
    "reply late",
    "request too late",
    "sent twice",
    "garbled",
)
IN_A_CLOCK: Final = ("clock fails", "clock closes", "clock forks")
"""What a clock of the user's own does while it is read."""


class Ledgerbook(Records):
    """Records that can be taken back to what they were some transactions ago."""

    def __init__(self) -> None:
        super().__init__()
        self._past: deque[tuple[dict[Any, Any], Any, Any] | None] = deque(maxlen=50_000)
        self.transactions = 0
        """How many there were, forgotten ones included."""

    def _note(self, where: dict[Any, Any], key: Any) -> None:
        self._past.append((where, key, where.get(key)))

    def put(self, record: Record) -> None:
        self._note(self.tables[type(record)], key_of(record))
        super().put(record)

    def committed(self) -> None:
        """A transaction ends here."""
        if self._past and self._past[-1] is not None:
            self._past.append(None)
            self.transactions += 1

    def forget(
        self,
        transactions: int,
        may_return_to: Callable[[NamespaceRecord | None], bool],
        copied: set[tuple[str, int]],
    ) -> int:
        """Takes the last transactions back, as many as may be; returns how many.

        ``may_return_to`` says whether a namespace may fall back to a record. A pool is never forgotten altogether, nor
        what happened to the node numbers of holders that were ``copied``.
        """
        for done in range(transactions):
            changes = []
            for change in itertools.islice(reversed(self._past), 1, None):
                if change is None:
                    break
                changes.append(change)
            if not changes:
                return done
            for where, _, before in changes:
                if (where is self.tables[PoolRecord] and before is None) or (
                    where is self.tables[NamespaceRecord] and not may_return_to(before)
                ):
                    return done
                if isinstance(before, NodeRecord) and (before.pool, before.node) in copied:
                    return done
            self._past.pop()
            for where, key, before in changes:
                self._past.pop()
                if before is None:
                    del where[key]
                else:
                    where[key] = before
        return transactions

    def flush(self) -> None:
        """Loses all pools and node numbers."""
        self.tables[PoolRecord].clear()
        self.tables[NodeRecord].clear()
        self._past.clear()


class VirtualStore(MemoryStore):
    """A store on the other side of a bad network.

    ``forgets_pools`` makes it one that cannot tell a new pool from a lost one.
    """

    def __init__(self, world: World, *, forgets_pools: bool) -> None:
        super().__init__(clock=lambda: world.now_ms + self.ahead_ms)
        self._records = self.book = Ledgerbook()
        self._world = world
        self.forgets_pools = forgets_pools
        self.away_until_ms = self.busy_until_ms = self.newer_until_ms = 0
        self.ahead_ms = 0
        self.clock_limit_ms = world.limit_ms
        self.highest: dict[str, int] = {}
        """The highest integer of each namespace that was ever reserved, whatever the store remembers."""
        self.taken_back: deque[tuple[Segment, int]] = deque(maxlen=10)
        """The last tails that were."""
        self.identities = [self.book.identity]
        """Of all servers that there were."""

    def _apply(self, verb: Callable[[Transaction], T]) -> T:
        try:
            return super()._run(verb)
        finally:
            self.book.committed()

    def _run(self, verb: Callable[[Transaction], T]) -> T:
        world = self._world
        fault = world.draw_on_the_way()
        if self.away_until_ms > world.now_ms:
            raise _away("the store is away")
        if self.newer_until_ms > world.now_ms:
            raise StoreError("the store has a newer schema", code="store.schema")
        if self.busy_until_ms > world.now_ms:
            if world.depth < DEEPEST:
                world.meanwhile()
            if self.busy_until_ms > world.now_ms:
                raise _away("the store is busy")
        if fault is None or fault == "garbled":
            return self._apply(verb)
        world.faults[fault] += 1
        if fault == "request lost":
            raise _away(fault)
        if fault == "request too late":
            world.plan(world.random.choice((1, 5, 20)) * world.grid_ms, lambda: self._apply(verb))
            raise _away(fault)
        if fault == "sent twice":
            with suppress(MintError):
                self._apply(verb)
            if world.depth < DEEPEST:
                world.meanwhile()
            return self._apply(verb)
        if fault == "reply lost":
            with suppress(MintError):
                self._apply(verb)
            raise _away(fault)
        if fault == "request late":
            world.meanwhile()
            return self._apply(verb)
        try:
            return self._apply(verb)
        finally:
            world.meanwhile()

    def _new_pool(self, name: str, layout: str, span_ms: int, server: Server) -> PoolRecord:
        made = rules.create_pool(name, layout, span_ms, server.identity)
        if not self.forgets_pools:
            return made
        # As if another server had taken over from one that knew it.
        return rules.note_server(replace(made, identity=""), server.identity, server.now_ms, self.clock_limit_ms)

    def acquire(self, pool: str, **terms: Any) -> Lease:
        lease = super().acquire(pool, **terms)
        self._world.note("acquires", pool, lease)
        return self._garbled(lease)

    def extend(self, lease: Lease, *, now_ms: int, next_token: str) -> Lease:
        extended = super().extend(lease, now_ms=now_ms, next_token=next_token)
        self._world.note("extends", lease.pool, extended)
        for share in self._world.shares:
            if share.token == next_token:
                share.until_ms = max(share.until_ms, extended.until_ms)
        return self._garbled(extended)

    def _garbled(self, answer: T) -> T:
        """What a broken service makes of an answer, where the request was meant to meet one."""
        is_garbled, self._world.is_garbled = self._world.is_garbled, False
        if not is_garbled:
            return answer
        known: Any = answer
        wrong: list[dict[str, Any]] = (
            [{"first": known.first + 0.5}, {"last": known.last + 2**40}, {"namespace": "another"}, {"stride": 0}]
            if isinstance(known, rules.Segment)
            else [
                {"until_ms": known.until_ms + 0.5},
                {"pool": "another"},
                {"floor_ms": known.until_ms},
                {"token": ""},
            ]
        )
        garbled: Any = replace(known, **self._world.random.choice(wrong)) if self._world.random.random() < 0.8 else None
        return garbled  # type: ignore[no-any-return]

    def release(self, lease: Lease, *, used_until_ms: int) -> None:
        self._world.note("releases", lease.pool, lease, used_until_ms)
        self._world.gives_back()
        super().release(lease, used_until_ms=used_until_ms)

    def reserve(self, namespace: str, count: int) -> Segment:
        segment = super().reserve(namespace, count)
        self._world.note("reserves", namespace, segment)
        answer = self._garbled(segment)
        if answer is segment and self._world.current.keeper.is_at_work:
            self._world.current.told_floor = segment.floor
        return answer

    def give_back(self, segment: Segment, first_unused: int) -> bool:
        self._world.note("gives back", segment.namespace, segment, first_unused)
        self._world.gives_back()
        is_taken = super().give_back(segment, first_unused)
        if is_taken:
            self.taken_back.append((segment, first_unused))
        return is_taken

    def fail_over(self, transactions: int, to: str = "") -> None:
        """Another server, or the one that is named, takes over and has not heard of the last transactions."""
        for record in self.book.all(NamespaceRecord):
            self.highest[record.name] = max(self.highest.get(record.name, 0), record.high_water)
        copied = {(share.region, share.node) for share in self._world.shares if share.node is not None}
        forgotten = self.book.forget(transactions, self._may_return_to, copied)
        known = [identity for identity in self.identities if identity != self.book.identity]
        if to:
            self.book.identity = to
        elif known and self._has_seen_all() and self._world.random.random() < 0.7:
            self.book.identity = self._world.random.choice(known)
            self._world.faults["server came back"] += 1
        else:
            self.book.identity = f"server {self._world.serial()}"
            self.identities.append(self.book.identity)
        self.ahead_ms = self._world.random.choice(
            (0, 0, rules.CLOCK_MARGIN_MS, self._world.random.randint(0, rules.CLOCK_MARGIN_MS))
        )
        self._world.note("fails over", self.book.identity, f"and forgets {forgotten} transactions")

    def _has_seen_all(self) -> bool:
        """Whether the last server's writes left a trace in all records: then one that was before may come back."""
        identity = self.book.identity
        pools = all(self.has_seen(pool.name) for pool in self.book.all(PoolRecord))
        return pools and all(namespace.identity == identity for namespace in self.book.all(NamespaceRecord))

    def has_seen(self, pool: str) -> bool:
        """Whether this server wrote anything of a pool, whether or not the rules took note of the server."""
        records: list[Any] = [*self.book.all(PoolRecord), *self.book.all(NodeRecord)]
        return any(
            record.identity == self.book.identity
            for record in records
            if (record.name if isinstance(record, PoolRecord) else record.pool) == pool
        )

    def _may_return_to(self, record: NamespaceRecord | None) -> bool:
        """Whether the gap is large enough for a record: all that stores promise of namespaces."""
        if record is None:
            return False
        gap = rules.GAP * max(1, record.largest) * record.stride
        if self._world.promise == "each":
            return bool(self.book.tables[NamespaceRecord][record.name,].high_water - record.high_water <= gap)
        return self.highest[record.name] - record.high_water <= gap


def _away(why: str) -> StoreError:
    return StoreError(why, code="store.unavailable")


class _CirclesError(BaseException):
    """A call goes round in circles. No Exception: a keeper on the way would take it for its store's."""


class VirtualKeeper(Keeper):
    """An inline keeper: who waits does its work, and the time that this takes is virtual."""

    def __init__(self, world: World) -> None:
        super().__init__(inline=True)
        self._world = world

    def add(self, task: Task) -> None:
        self._world.asked += 1
        if self._world.asked > PATIENCE:
            raise _CirclesError
        process = self._world.current
        process.task = weakref.ref(task)
        if process.memory is not None:
            memory, process.memory = process.memory, None
            memory(task)
        super().add(task)

    @property
    def is_at_work(self) -> bool:
        return self._busy is not None

    def attend(self, timeout_s: float) -> None:
        self._world.waited_s += 1
        super().attend(timeout_s)


@dataclass(frozen=True)
class Region:
    """A pool or a namespace, whose IDs must all differ."""

    name: str
    width: int
    """Bytes of an ID."""
    make: Callable[[World, Process], Any]
    time_ms: Callable[[bytes], int]
    """An ID's time in milliseconds since the Unix epoch, or the integer."""
    place: tuple[tuple[int, int], ...] = ()
    """The bits of an ID, from the first, that are its time, its node number, and what is the same in all of them, where
    others are random: no two processes may have one place. Empty where all of its bytes are compared."""


class _ClockError(Exception):
    """A clock of the user's own fails."""


class UserClock:
    """A clock of the user's own, that does strange things while it is read."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = weakref.ref(process)
        self.generator: weakref.ref[Any] | None = None

    def __call__(self) -> int:
        world, process = self._world, self._process()
        # Not while an inline keeper reads it: with a thread of its own, that is another's call.
        is_called = process is not None and process is world.current and not process.keeper.is_at_work
        if process is not None and is_called and world.random.random() < 0.02:
            world.disturb(process)
        return process.clock.now_ns if process is not None else 0


class Process:
    """A virtual process: at most one generator at a time, and a clock of its own."""

    def __init__(self, world: World, region: Region) -> None:
        draw = world.random
        self.region = region
        self.serial = 0
        self.keeper = VirtualKeeper(world)
        self.generator: Any = None
        self.clock = ManualClock(0)
        self.offset_ms = draw.choice((0, 0, 0, draw.randint(-world.limit_ms, world.limit_ms)))
        self.rate = 1.0
        self.since_ms = world.now_ms
        self.frozen_until_ms = 0
        self.awake_at_ms = 0
        self.is_stopped = False
        """In the middle of a verb."""
        self.epoch = world.serial()
        self.least_ms = 0
        """The first time that was not minted in when the real epoch moved, or when it was copied."""
        self.told_floor = 0
        """The floor of its namespace, by the last segment that its keeper reserved."""
        self.task: weakref.ref[Task] | None = None
        """The lease or the segments of its generator, once that was used."""
        self.memory: Callable[[Task], None] | None = None
        """What its generator's lease or segments begin with, as it is a copy."""
        self.user_clock: UserClock | None = None

    def set_clock(self, world: World) -> None:
        """Has its clock show what it does at the world's present moment."""
        if self.frozen_until_ms <= world.now_ms:
            passed_ms = world.now_ms - self.since_ms
            shown_ms = self.since_ms + int(passed_ms * self.rate) + self.offset_ms
            self.clock.set((shown_ms - shown_ms % world.grid_ms + world.phase_ms) * MS)

    def let_reseat(self) -> None:
        """Has its generator begin again where it is, with all that it holds: the next epoch is another's."""
        task = self.task and self.task()
        if isinstance(task, Tenancy) and (used_until_ms := task._unseat()) is not None:
            self.least_ms = max(self.least_ms, used_until_ms)
            task._serial += 1

    def crash(self, world: World) -> None:
        """Ends at once: nobody releases anything."""
        self.keeper = VirtualKeeper(world)
        keeper.use(self.keeper)
        self.generator = None
        self.keeper.abandoned.clear()


@dataclass
class Batch:
    """IDs minted in one call."""

    event: int
    process: int
    clock_ms: int
    ids: Any


@dataclass(frozen=True)
class Duplicate:
    """An ID minted twice, and how that came about."""

    world: int
    region: str
    id: str
    story: tuple[str, ...]
    replay: str

    def __str__(self) -> str:
        return "\n  ".join([f"DUPLICATE {self.region} {self.id}: {self.replay}", *self.story])


@dataclass
class Outcome:
    """What became of one world or several."""

    ids: int = 0
    processes: int = 0
    verbs: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    duplicates: list[Duplicate] = field(default_factory=list)
    shared: int = 0
    """IDs that copies of a process minted twice before they were told, of what they shared."""
    below_floor: int = 0
    """Integers that a sequence gave out although it had reserved a segment after its floor was raised above them."""
    digest: int = 0

    def add(self, other: Outcome) -> None:
        self.ids += other.ids
        self.processes += other.processes
        self.verbs += other.verbs
        self.faults += other.faults
        self.refusals += other.refusals
        self.duplicates += other.duplicates
        self.shared += other.shared
        self.below_floor += other.below_floor
        self.digest = crc32(other.digest.to_bytes(4), self.digest)


class World:
    """One store and the processes that share it, from a seed.

    ``promise`` says how much a server that takes over may have forgotten of a namespace: with ``"all"`` as much as the
    gap in all since the record it has, with ``"each"`` as much as the gap at each failover.
    """

    def __init__(self, seed: int, index: int = 0, *, batch: int = 100, promise: str = "all", regions: str = "") -> None:
        self.seed, self.index, self.batch, self.promise, self.regions = seed, index, batch, promise, regions
        self.random = draw = random.Random(f"{seed}/{index}")
        self.now_ms = START_MS + draw.randrange(1000)
        # Times are multiples of this, so that those who share a node number share ticks.
        self.grid_ms = draw.choice((50, 100, 199, 250))
        self.phase_ms = draw.randrange(4)
        self.waited_s = 0.0
        self.asked = 0
        self.event = self.events = 0
        self.depth = 0
        self._serials = itertools.count(1)
        self.is_garbled = False
        self.shares: list[Share] = []
        self.below_floor = 0
        self.verbs: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.batches: dict[str, list[Batch]] = {}
        self.diary: list[tuple[int, int, tuple[Any, ...]]] = []
        self.agenda: list[tuple[int, Callable[[], object]]] = []
        self.limit_ms = draw.choice((2000, rules.CLOCK_LIMIT_MS))
        self.store = VirtualStore(self, forgets_pools=draw.random() < 0.5)
        self.trouble = draw.choice((0.02, 0.1, 0.3))
        """How likely a verb goes wrong on the way."""
        self.faultiness = draw.choice((0.1, 0.3, 0.5))
        self.span_ms = draw.choice((1000, 2000, 5000, 10_000, 30_000))
        self.steps = draw.choice((None, *STEPS))
        """How all sequences reserve; ``None`` where each has its own way."""
        self.copies = draw.random() < 0.4
        """Whether processes are copied here. What then happens to their node numbers, no failover forgets."""
        count = draw.choice((10, 50, 200, 300))
        made = [each for each in (*REGIONS, *(LEASED if regions else ())) if re.match(regions, each.name)]
        if not regions:
            made = draw.sample(made, draw.choice((1, 2, len(made))))
        self.processes = [Process(self, draw.choice(made)) for _ in range(count)]
        self.numbers = max(1, round(count / len(made) * draw.choice((0.3, 0.8, 1.5))))
        """How many node numbers of a pool there are."""
        self.pace = draw.choice((0.02, 0.1, 0.3)) * count
        """How many events come at one moment."""
        self.calm_until_ms = 0
        self.current = self.processes[0]
        self._create_namespaces()

    def _create_namespaces(self) -> None:
        draw, self.trouble, usual = self.random, 0.0, self.trouble
        for region in REGIONS:
            if region.make is _sequence:
                stride = draw.choice((1, 1, 2, 7))
                limit = draw.choice((10_000, 2**63 - 1, 2**63 - 1))
                self.store.create_namespace(
                    region.name, start=draw.randrange(3), maximum=limit, stride=stride, offset=draw.randrange(stride)
                )
        self.trouble = usual

    def replay(self) -> str:
        """The command that does all of this again."""
        usual = {"batch": 100, "promise": "all", "regions": ""}
        options = "".join(f" --{name} {getattr(self, name)}" for name in usual if getattr(self, name) != usual[name])
        return f"python -m tests.simulator --seed {self.seed} --world {self.index}{options}"

    # --- what the store and the keepers ask ---

    def plan(self, delay_ms: int, what: Callable[[], object]) -> None:
        """Has something happen later."""
        self.agenda.append((self.now_ms + delay_ms, what))

    def pass_time(self, ms: int) -> None:
        """Moves the world's time, and has happen what was planned for it."""
        self.now_ms += ms
        due = [plan for plan in self.agenda if plan[0] <= self.now_ms]
        if due:
            self.agenda = [plan for plan in self.agenda if plan[0] > self.now_ms]
            for _, what in due:
                with suppress(MintError):
                    what()

    def serial(self) -> int:
        return next(self._serials)

    def note(self, *what: Any) -> None:
        self.verbs[what[0]] += 1
        self.diary.append((self.event, self.current.serial, what))

    def draw_on_the_way(self) -> str | None:
        self.is_garbled = False
        if self.random.random() >= self.trouble:
            return None
        fault = self.random.choice(ON_THE_WAY)
        self.is_garbled = fault == "garbled"
        self.faults[fault] += fault == "garbled"
        return None if self.depth >= DEEPEST and fault.endswith(" late") else fault

    def meanwhile(self) -> None:
        """The present process stops where it is, while others go on."""
        process, self.depth = self.current, self.depth + 1
        process.is_stopped = True
        for _ in range(min(self.random.choice((1, 3, 10, 30)), self.events - self.event)):
            self.happen()
        if self.random.random() < 0.3:
            self.pass_time(self.random.choice((1, 5, 20, 100)) * self.grid_ms)
        if self.random.random() < 0.2:
            process.offset_ms -= self.random.choice((1, 2, 5)) * self.grid_ms
        self.depth -= 1
        process.is_stopped = False
        self.enter(process)

    def gives_back(self) -> None:
        """The present process gives back what copies of it may still use."""
        for share in self.shares:
            if self.current.serial in share.members and share.given_back is None:
                share.given_back = self.event

    def clone(self, process: Process) -> Process | None:
        """Makes a process two, if it holds anything. The copy, returned, takes the place of one that has nothing."""
        task, heir = process.task() if process.task else None, self.heir_of(process.region)
        if process.generator is None or task is None or task.closed or task.epoch != process.epoch or heir is None:
            return None
        share = Share(process.region.name, self.event, {process.serial: None})
        process.let_reseat()
        memory = memory_of(task, share, process.least_ms)
        if memory is None:
            return None
        self.enter(heir)
        heir.serial, heir.epoch, heir.keeper = self.serial(), process.epoch, VirtualKeeper(self)
        keeper.use(heir.keeper)
        heir.least_ms, heir.told_floor = process.least_ms, process.told_floor
        heir.offset_ms, heir.rate, heir.since_ms = process.offset_ms, process.rate, process.since_ms
        heir.memory = memory
        heir.generator = heir.region.make(self, heir)
        for each in [*self.shares, share]:
            if process.serial in each.members and each.members[process.serial] is None:
                each.members[heir.serial] = None
        self.shares.append(share)
        self.note("is a copy of", process.serial)
        self.enter(process)
        return heir

    def mint_together(self, processes: list[Process]) -> None:
        """Has processes mint at one moment, where they can."""
        for each in processes:
            if each.generator is not None and not each.is_stopped and each.awake_at_ms <= self.now_ms:
                with self.refusing(each):
                    self.mint(each)

    def begin_epoch(self) -> int:
        """Moves the present process to a later epoch. The real one is that of all: others go on with what they hold."""
        process = self.current
        for each in self.processes:
            if each is not process and each.generator is not None:
                each.let_reseat()
        process.epoch, process.least_ms = self.serial(), 0
        # A copy that is told before it ever asked goes on with nothing, too.
        process.memory = None
        self.store.book.epoch = _core.start_generation()
        for share in self.shares:
            if share.members.get(process.serial, 0) is None:
                share.members[process.serial] = self.event
        return process.epoch

    def disturb(self, process: Process) -> None:
        """A clock of the user's own does something while it is read."""
        what = self.random.choice(IN_A_CLOCK)
        self.faults[what] += 1
        match what:
            case "clock fails":
                raise _ClockError
            case "clock closes":
                process.generator.close()
            case "clock forks":
                # Who goes on here is the child; the parent is the copy that keeps all.
                before = len(self.shares)
                self.clone(process)
                process.keeper = VirtualKeeper(self)
                self.enter(process)
                self.begin_epoch()
                del self.shares[before:]

    def enter(self, process: Process) -> None:
        self.current = process
        keeper.use(process.keeper)
        process.set_clock(self)

    # --- what happens ---

    def run(self, events: int = EVENTS) -> Outcome:
        """Lets so much happen, then looks for an ID that was minted twice."""
        self.events = events
        with self._virtual_time():
            while self.event < events:
                try:
                    self.happen()
                except _CirclesError:
                    message = f"event {self.event}: a call asked its keeper {PATIENCE:,} times: {self.replay()}"
                    raise RuntimeError(message) from None
            for process in self.processes:
                process.crash(self)
        return self.check()

    @contextmanager
    def _virtual_time(self) -> Iterator[None]:
        clock = SimpleNamespace(monotonic=lambda: self.now_ms / 1000 + self.waited_s)
        log, open_window = logging.getLogger("mintage"), Tenancy._open_window

        def epoch() -> int:
            return self.current.epoch

        def window(task: Tenancy) -> Any:
            found = open_window(task)
            return found and (*found[:2], max(found[2], self.current.least_ms), *found[3:])

        before, level = keeper.current(), log.level
        with ExitStack() as stack:
            virtual_names: dict[Any, dict[str, Any]] = {
                keeper: {"time": clock, "random": self.random, "epoch": epoch, "start_epoch": self.begin_epoch},
                supply: {"time": clock, "epoch": epoch},
                tenancy: {"epoch": epoch},
                Tenancy: {"_open_window": window},
            }
            for where, names in virtual_names.items():
                for name, virtual in names.items():
                    stack.enter_context(patch.object(where, name, virtual))
            # When the collector ends a generator is not of the seed.
            if gc.isenabled():
                stack.callback(gc.enable)
                gc.disable()
            stack.callback(log.setLevel, level)
            stack.callback(keeper.use, before)
            log.setLevel(logging.CRITICAL)
            yield

    def happen(self) -> None:
        """One event."""
        draw = self.random
        self.event += 1
        self.asked = 0
        if draw.random() * self.pace < 1:
            self.pass_time(self.grid_ms)
        process = draw.choice(self.processes)
        if process.is_stopped or process.awake_at_ms > self.now_ms:
            return
        with self.refusing(process):
            if draw.random() < self.faultiness:
                self.fault(process)
            elif process.generator is None:
                self.start(process)
            else:
                self.act(process)

    def start(self, process: Process) -> None:
        process.serial, process.epoch = self.serial(), self.serial()
        process.task = process.memory = None
        process.least_ms = process.told_floor = 0
        process.keeper = VirtualKeeper(self)
        keeper.use(process.keeper)
        process.generator = process.region.make(self, process)

    def act(self, process: Process) -> None:
        what = self.random.random()
        if what < 0.65:
            self.mint(process)
        elif what < 0.7:
            self.look(process)
        elif what < 0.94:
            process.keeper.step()
        else:
            process.generator.close()
            process.generator = None
            self.hand_over(process)

    def hand_over(self, process: Process) -> None:
        """Has another process start right after one that closed, to take what it gave back."""
        heir = self.heir_of(process.region)
        if heir and self.random.random() < 0.5:
            self.pass_time(self.grid_ms)
            if heir.generator is None:
                self.enter(heir)
                self.start(heir)
                self.look(heir)

    def heir_of(self, region: Region) -> Process | None:
        """Somebody who may want a node number."""
        others = [
            other
            for other in self.processes
            if other.region is region and other.generator is None and not other.is_stopped
        ]
        return self.random.choice(others) if others else None

    def look(self, process: Process) -> None:
        """Gets a lease without minting, where there is one; the clock may step back before the first ID."""
        # No variable is the generator: an error that is kept keeps this frame, and the generator must end when dropped.
        for name in ("partition", "node", "mac", "process", "worker"):
            getattr(process.generator, name, None)
        if self.random.random() < 0.5:
            process.offset_ms -= self.random.choice((1, 2, 5)) * self.grid_ms
            process.set_clock(self)
            self.mint(process)

    def mint(self, process: Process) -> None:
        count = self.random.randint(1, 2 * self.batch)
        region, event, width = process.region, self.event, process.region.width
        clock_ms = process.clock.now_ns // MS
        kept = self.batches.setdefault(region.name, [])
        if region.make is _sequence:
            floor = process.told_floor
            self.keep(
                process, [process.generator.reserve(count)] if count % 8 == 0 else process.generator.batch(count), floor
            )
            return
        ids = np.zeros(count * width, dtype=np.uint8)
        kept.append(Batch(event, process.serial, clock_ms, ids))
        # What was minted before a refusal is in the buffer.
        process.generator.fill(ids)

    def keep(self, process: Process, ranges: list[range], floor: int) -> None:
        """Takes note of integers that a sequence gave out, since it knew of that floor."""
        ids = np.concatenate([np.arange(r.start, r.stop, r.step, dtype=np.uint64) for r in ranges])
        kept = self.batches.setdefault(process.region.name, [])
        kept.append(Batch(self.event, process.serial, process.clock.now_ns // MS, ids))
        self.below_floor += int(np.count_nonzero(ids < floor))

    def deliver_twice(self, process: Process) -> None:
        """A sequence closes, another takes just what it gave back, and then that is delivered once more."""
        self.store.taken_back.clear()
        process.generator.close()
        process.generator = None
        taken_back = list(self.store.taken_back)
        heir = self.heir_of(process.region)
        if heir is None or not taken_back:
            return
        self.enter(heir)
        self.start(heir)
        for segment, first_unused in reversed(taken_back):
            with self.refusing(heir):
                count = (segment.last - first_unused) // segment.stride + 1
                self.keep(heir, [heir.generator.reserve(count)], heir.told_floor)
        for segment, first_unused in taken_back:
            with suppress(MintError):
                MemoryStore.give_back(self.store, segment, first_unused)
        with self.refusing(heir):
            self.mint(heir)

    def fault(self, process: Process) -> None:
        draw = self.random
        kinds = RARE if draw.random() < 0.1 else OWN
        kind = draw.choices(list(kinds), list(kinds.values()))[0]
        if kind == "flush" and not self.store.forgets_pools:
            return
        if kind in {"clone", "told of its copies"} and not self.copies:
            return
        if kind in {"flush", "failover", "restored backup", "server comes back"}:
            # Node numbers rest after each of them: as often as others they would leave nobody anything to mint from.
            if self.now_ms < self.calm_until_ms:
                return
            rest_ms = max(self.span_ms, rules.SPAN_MS) + self.limit_ms + rules.CLOCK_MARGIN_MS
            self.calm_until_ms = self.now_ms + draw.choice((0, 1, 3, 8)) * rest_ms
        self.faults[kind] += 1
        span, grid = self.span_ms, self.grid_ms
        match kind:
            case "failover":
                self.store.fail_over(draw.choice((0, 1, 2, 5, 10, 50, 500)))
                if draw.random() < 0.3:
                    self.store.fail_over(draw.choice((0, 1, 5)))
            case "outage":
                self.store.away_until_ms = self.now_ms + draw.choice((grid, span // 2, 2 * span))
            case "flush":
                self.store.book.flush()
                self.note("is flushed")
            case "sleep":
                self.pass_time(draw.choice((span // 2, span, 2 * span + self.limit_ms)))
            case "busy":
                self.store.busy_until_ms = self.now_ms + draw.choice((grid, span // 2, 2 * span))
            case "newer schema":
                self.store.newer_until_ms = self.now_ms + draw.choice((grid, span // 2))
            case "raised floor":
                if process.region.make is _sequence:
                    highest = self.store.book.tables[NamespaceRecord][process.region.name,]
                    self.store.raise_floor(process.region.name, highest.high_water + draw.choice((-50, 0, 1, 7, 300)))
            case "given back twice":
                if process.region.make is _sequence and process.generator is not None:
                    self.deliver_twice(process)
            case "clone":
                living = [each for each in self.processes if each.generator is not None and not each.is_stopped]
                if living:
                    one = draw.choice(living)
                    heir = self.clone(one)
                    self.mint_together([one, heir] if heir else [])
                    self.enter(process)
            case "told of its copies":
                told = [each for each in self.processes if any(each.serial in share.members for share in self.shares)]
                if told and not (one := draw.choice(told)).is_stopped:
                    self.enter(one)
                    one.keeper.start_over()
                    families = [share.members for share in self.shares if one.serial in share.members]
                    self.mint_together([each for each in told if any(each.serial in members for members in families)])
                    self.enter(process)
            case "step back":
                process.offset_ms -= draw.choice((1, 2, 5, 20)) * grid
            case "step forward":
                process.offset_ms += draw.choice((1, 2, 5, 20)) * grid
            case "wrong clock":
                process.offset_ms = draw.choice((-1, 1)) * draw.choice((self.limit_ms, self.limit_ms + grid, 3_600_000))
            case "right clock":
                process.offset_ms, process.rate, process.since_ms = (
                    draw.randint(-1, 1) * self.limit_ms // 2,
                    1.0,
                    self.now_ms,
                )
            case "drift":
                process.since_ms, process.rate = self.now_ms, draw.choice((0.5, 0.99, 1.01, 1.5))
            case "freeze":
                process.frozen_until_ms = self.now_ms + draw.choice((grid, span, 3 * span))
            case "pause":
                process.awake_at_ms = self.now_ms + draw.choice((grid, span // 2, span))
            case "long pause":
                process.awake_at_ms = self.now_ms + span + draw.choice((grid, self.limit_ms, 5 * span))
            case "restored backup":
                self.restore_backup(process, span + draw.choice((0, 1, 3, 10)) * grid)
            case "server comes back":
                if process.region.make is not _sequence:
                    draw.choice((self.extend_elsewhere, self.grant_elsewhere))(process.region)
                    self.enter(process)
            case "crash":
                process.crash(self)
            case "drop":
                process.generator = None
                process.keeper.step()
            case "revoke":
                nodes = self.store.book.all(NodeRecord)
                if nodes:
                    taken = draw.choice(nodes)
                    self.store.revoke(taken.pool, taken.node)
                    self.note("revokes", taken.pool, taken.as_lease())

    def restore_backup(self, process: Process, delay_ms: int) -> None:
        """Pauses a process past its window. When it wakes, another has its number, and the store has forgotten that."""
        known = self.store.book.transactions
        process.awake_at_ms = self.now_ms + delay_ms

        def wake() -> None:
            heir = self.heir_of(process.region)
            if heir:
                with self.refusing(heir):
                    self.start(heir)
                    self.mint(heir)
            self.store.fail_over(self.store.book.transactions - known)
            for each in (process, heir):
                if each and each.generator is not None and not each.is_stopped:
                    with self.refusing(each):
                        self.mint(each)

        self.plan(delay_ms, wake)

    def extend_elsewhere(self, region: Region) -> None:
        """A server extends windows, the one before it comes back, and has not heard of the last extensions."""
        holders, heirs = self._gather(region)
        with self._switching(region, self.span_ms * 4 // 5, holders):
            self.step_all(holders)
        self.now_ms += self.span_ms // 5 + self.grid_ms
        self.mint_together([*heirs, *holders])

    def grant_elsewhere(self, region: Region) -> None:
        """A server grants numbers of holders that sleep, the one before it comes back, and has not heard of that."""
        holders, heirs = self._gather(region)
        with self._switching(region, self._rest_ms(), heirs[:1]):
            self.mint_together(heirs)
        self.mint_together([*holders, *heirs])

    def _rest_ms(self) -> int:
        """How long node numbers rest after a failover."""
        rest_ms = max(self.span_ms, rules.SPAN_MS) + self.limit_ms + rules.CLOCK_MARGIN_MS
        return rest_ms - rest_ms % self.grid_ms + 2 * self.grid_ms

    def _gather(self, region: Region) -> tuple[list[Process], list[Process]]:
        """Starts all of a region anew on a store that answers, their clocks right: those that mint, and the others."""
        all_there = [each for each in self.processes if each.region is region and not each.is_stopped]
        self.store.away_until_ms = self.store.busy_until_ms = self.store.newer_until_ms = 0
        self.now_ms += self._rest_ms()
        for each in all_there:
            each.crash(self)
            each.offset_ms, each.rate, each.since_ms = 0, 1.0, self.now_ms
            each.frozen_until_ms = each.awake_at_ms = 0
            self.enter(each)
            self.start(each)
        half = len(all_there) // 2
        self.mint_together(all_there[:half])
        return all_there[:half], all_there[half:]

    @contextmanager
    def _switching(self, region: Region, ms: int, witnesses: list[Process]) -> Iterator[None]:
        """Another server takes over, as ``witnesses`` see; so much later the one before it is back, without the block.

        It is not, if the other wrote nothing of the pool before the block: nobody would know of it.
        """
        book, before, usual = self.store.book, self.store.book.identity, self.trouble
        # Only this pool is written.
        self.trouble = 0.0
        self.store.fail_over(0, f"server {self.serial()}")
        self.store.identities.append(book.identity)
        # From here on windows are extended, and most of each is left.
        self.now_ms += self.span_ms // 3 + self.grid_ms
        self.step_all([each for each in witnesses if each.task])
        self.mint_together([each for each in witnesses if not each.task])
        self.now_ms += ms
        known, is_known = book.transactions, self.store.has_seen(region.name)
        yield
        self.trouble = usual
        if is_known:
            self.store.fail_over(book.transactions - known, before)

    def step_all(self, processes: list[Process]) -> None:
        for each in processes:
            with self.refusing(each):
                each.keeper.step()

    @contextmanager
    def refusing(self, process: Process) -> Iterator[None]:
        """A process at its turn; what it is refused is counted."""
        self.enter(process)
        try:
            yield
        except _ClockError:
            self.refusals["a clock failed"] += 1
        except MintError as error:
            self.refusals[error.code] += 1
            if error.code in {"lease.lost", "sequence.exhausted", "generator.closed"} and self.random.random() < 0.5:
                process.crash(self)

    # --- the invariant ---

    def check(self) -> Outcome:
        """Counts what was minted; all of a region are compared with each other, byte for byte."""
        outcome = Outcome(0, self.serial() - 1, self.verbs, self.faults, self.refusals, below_floor=self.below_floor)
        for region in (*REGIONS, *LEASED):
            batches = self.batches.get(region.name, [])
            if batches:
                ids, starts = _join(batches, region.width)
                outcome.ids += int(np.count_nonzero(ids.any(axis=1)))
                for pair in _all_twins(ids, starts, batches, region.place):
                    twins = [batches[bisect_right(starts, at) - 1] for at in pair]
                    if self._is_shared(region, twins, ids[pair[0]].tobytes()):
                        outcome.shared += 1
                    else:
                        outcome.duplicates.append(self._tell(region, twins, ids[pair[0]].tobytes()))
                        break
                outcome.digest = crc32(ids.tobytes(), outcome.digest)
        return outcome

    def _is_shared(self, region: Region, twins: list[Batch], row: bytes) -> bool:
        one, other = ((batch.event, batch.process) for batch in twins)
        shares = [share for share in self.shares if share.region == region.name]
        return any(share.excuses((one, other), region.time_ms(row)) for share in shares)

    def _tell(self, region: Region, twins: list[Batch], row: bytes) -> Duplicate:
        story = [
            f"process {batch.process} minted it in event {batch.event}, its clock at {batch.clock_ms - START_MS} ms"
            for batch in twins
        ]
        for batch in {batch.process: batch for batch in twins}.values():
            own = [entry for entry in self.diary if entry[1] == batch.process and entry[0] <= batch.event]
            story += [_sentence(entry) for entry in own[-3:]]
        low, high = sorted(batch.event for batch in twins)
        low = min([low, *(entry[0] for entry in self.diary if entry[1] in {batch.process for batch in twins})])
        world = [
            entry for entry in self.diary if entry[2][0] in {"fails over", "is flushed"} and low <= entry[0] <= high
        ]
        story += [_sentence(entry) for entry in world[-4:]]
        return Duplicate(self.index, region.name, row.hex(), tuple(story), self.replay())


def _sentence(entry: tuple[int, int, tuple[Any, ...]]) -> str:
    event, process, (verb, *rest) = entry
    who = "the store" if verb in {"fails over", "is flushed"} else f"process {process}"
    return f"event {event}: {who} {verb} {' '.join(map(str, rest))}"


def _join(batches: list[Batch], width: int) -> tuple[Any, list[int]]:
    """All IDs as rows of bytes, and where each batch begins."""
    rows = [batch.ids.view(np.uint8).reshape(-1, width) for batch in batches]
    starts = list(itertools.accumulate((len(part) for part in rows), initial=0))[:-1]
    return np.concatenate(rows), starts


def _cut(ids: Any, starts: list[int], batches: list[Batch], place: tuple[tuple[int, int], ...]) -> None:
    """Leaves of each ID its time and its node number, once for each process; other rows become zeros."""
    bits = np.zeros(8 * ids.shape[1], dtype=np.uint8)
    for first, end in place:
        bits[first:end] = 1
    ids &= np.packbits(bits)
    is_next = np.ones(len(ids), dtype=bool)
    is_next[1:] = (ids[1:] != ids[:-1]).any(axis=1)
    is_next[starts] = True
    seen = set()
    for at in np.flatnonzero(is_next):
        key = batches[bisect_right(starts, at) - 1].process, ids[at].tobytes()
        is_next[at] = key not in seen
        seen.add(key)
    ids[~is_next] = 0


def _all_twins(
    ids: Any, starts: list[int], batches: list[Batch], place: tuple[tuple[int, int], ...]
) -> Iterator[tuple[int, int]]:
    """All pairs of equal IDs, then those of equal places of two processes, to which ``ids`` are cut meanwhile."""
    yield from twins_of(ids)
    if place:
        _cut(ids, starts, batches, place)
        yield from twins_of(ids)


def twins_of(ids: Any) -> Iterator[tuple[int, int]]:
    """All pairs of equal rows of bytes; rows of zeros are none. Exact: what only looks equal is compared in full."""
    width = ids.shape[1]
    padded = np.zeros((len(ids), -(-width // 8) * 8), dtype=np.uint8)
    padded[:, :width] = ids
    words = padded.view(np.uint64)
    keys = words[:, 0].copy()
    for column in range(1, words.shape[1]):
        keys = keys * np.uint64(0x9E3779B97F4A7C15) ^ words[:, column]
    present = np.flatnonzero(ids.any(axis=1))
    keys = keys[present]
    ordered = np.sort(keys)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    seen: dict[bytes, list[int]] = {}
    for at in present[np.isin(keys, again)] if len(again) else ():
        before = seen.setdefault(ids[at].tobytes(), [])
        yield from ((earlier, int(at)) for earlier in before)
        before.append(int(at))


# --- what is minted -----------------------------------------------------------------------------------------------


def _terms(world: World, process: Process, size: int) -> dict[str, Any]:
    """The arguments that all leased generators share. Most processes want the same few numbers."""
    draw = world.random
    size = min(size, world.numbers)
    first = draw.randrange(size) if draw.random() < 0.2 else 0
    process.user_clock = UserClock(world, process) if draw.random() < 0.1 else None
    return {
        "store": world.store,
        "nodes": range(first, size),
        "span_ms": world.span_ms,
        "pool": process.region.name,
        "on_lease_lost": draw.choice(("raise", "move")),
        "clock": process.user_clock or process.clock,
        # For a clock of the user's own, real time would have to pass.
        "max_wait_ms": 0 if process.user_clock else draw.choice((0, 50, 5000)),
        "never_used": draw.random() < 0.02,
    }


def _sno(world: World, process: Process) -> sno.Generator:
    return sno.Generator(**_terms(world, process, 65_536))


def _sharded(world: World, process: Process) -> sno.Generator:
    return sno.Generator(shards=1024, **_terms(world, process, 65_536))


def _snowflake(world: World, process: Process) -> snowflake.Generator:
    policies: Any = {
        "on_rollback": world.random.choice(("advance", "wait", "raise")),
        "on_exhausted": world.random.choice(("advance", "wait", "raise")),
    }
    return snowflake.Generator(**policies, **_terms(world, process, 1024))


def _narrow(world: World, process: Process) -> snowflake.Generator:
    policies: Any = {"on_exhausted": world.random.choice(("advance", "wait"))}
    return snowflake.Generator(layout=NARROW, **policies, **_terms(world, process, 4096))


def _locality(world: World, process: Process) -> locality.Generator:
    # All count from the same number: only their leases keep them apart.
    mode: Any = world.random.choice(("variable", "sequential"))
    return locality.Generator(mode, counter=0, **_terms(world, process, 2**44))


def _ticked(module: Any, node_bits: int, **options: Any) -> Callable[[World, Process], Any]:
    return lambda world, process: module.Generator(**options, **_terms(world, process, 2**node_bits))


def _sequence(world: World, process: Process) -> Sequence:
    draw = world.random
    steps: Any = world.steps or draw.choice(STEPS)
    return Sequence(process.region.name, world.store, max_wait_ms=draw.choice((0, 50)), **steps)


STEPS: Final = ({"step": 1}, {"step": 100}, {"step": 500}, {"min_step": 10, "max_step": 2000})


def _time_of_sno(row: bytes) -> int:
    return sno.ID(row).timestamp_ns // MS


def _time_of_snowflake(layout: snowflake.Layout) -> Callable[[bytes], int]:
    return lambda row: layout.parse(int.from_bytes(row, "little")).timestamp_ms


def _time_of_locality(row: bytes) -> int:
    return locality.ID(row).timestamp_ms


def _time_of(module: Any) -> Callable[[bytes], int]:
    return lambda row: module.ID(row).timestamp_ms


def _integer(row: bytes) -> int:
    return int.from_bytes(row, "little")


REGIONS: Final = (
    Region("sno", 10, _sno, _time_of_sno),
    Region("sno.shards", 10, _sharded, _time_of_sno),
    Region("snowflake", 8, _snowflake, _time_of_snowflake(snowflake.DEFAULT)),
    Region("snowflake.narrow", 8, _narrow, _time_of_snowflake(NARROW)),
    Region("locality", 16, _locality, _time_of_locality),
    Region("ulid", 16, _ticked(ulid, 24), _time_of(ulid), place=((0, 72),)),
    Region("objectid", 12, _ticked(objectid, 40), _time_of(objectid), place=((0, 72),)),
    Region("sequence.a", 8, _sequence, _integer),
    Region("sequence.b", 8, _sequence, _integer),
)
"""What a world has, unless it is told to have only some."""
LEASED: Final = (
    Region("uuid.v1", 16, _ticked(uuid, 47, version=1), _time_of(uuid), place=((0, 66), (80, 128))),
    Region("uuid.v6", 16, _ticked(uuid, 47, version=6), _time_of(uuid), place=((0, 66), (80, 128))),
    Region("uuid.v7", 16, _ticked(uuid, 24), _time_of(uuid), place=((0, 52), (64, 66), (76, 100))),
    Region("ksuid", 20, _ticked(ksuid, 32), _time_of(ksuid), place=((0, 64),)),
    Region("ksuid_ms", 20, _ticked(ksuid_ms, 32), _time_of(ksuid_ms), place=((0, 72),)),
    Region("xid", 12, _ticked(xid, 40), _time_of(xid), place=((0, 72),)),
    Region("sandflake", 16, _ticked(sandflake, 32), _time_of(sandflake), place=((0, 80),)),
)
"""The other formats with room for a node number: only in worlds that are told to have them."""


# --- many worlds --------------------------------------------------------------------------------------------------


def _run_world(terms: tuple[int, int, dict[str, Any]]) -> Outcome:
    seed, index, options = terms
    return World(seed, index, **options).run()


def simulate(seed: int, *, ids: int, faults: int, jobs: int = 1, **options: Any) -> Iterator[Outcome]:
    """Runs world after world until so many IDs were minted under so many faults; yields the total after each.

    Stops at a duplicate.
    """
    total = Outcome()
    worlds = ((seed, index, options) for index in itertools.count())
    with get_context("fork").Pool(jobs) if jobs > 1 else _here() as pool:
        while total.ids < ids or sum(total.faults.values()) < faults:
            for outcome in pool.map(_run_world, list(itertools.islice(worlds, jobs))):
                total.add(outcome)
            yield total
            if total.duplicates:
                return


@contextmanager
def _here() -> Iterator[Any]:
    yield SimpleNamespace(map=map)
