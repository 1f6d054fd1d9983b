"""Worlds: a store, the processes that share it, and the events that happen to them."""

from __future__ import annotations

import gc
import itertools
import logging
import random
import re
from bisect import bisect_right
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from multiprocessing import get_context
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch
from zlib import crc32

import numpy as np

from mintage import _core, rules
from mintage.errors import MintError
from mintage.lease import keeper, segment_client
from mintage.lease.lease_client import LeaseClient
from mintage.process import jitter
from mintage.rules import GrantRecord, NamespaceRecord, NodeRecord, PoolRecord
from mintage.store.memory import MemoryStore
from tests.simulator.cloning import Share, memory_of
from tests.simulator.outcomes import Batch, Duplicate, Outcome, all_twins, join
from tests.simulator.processes import MS, PATIENCE, CirclesError, ClockError, Process, VirtualKeeper
from tests.simulator.regions import LEASED, REGIONS, START_MS, STEPS, Region, make_sequence
from tests.simulator.virtual_store import DEEPEST, Ledgerbook, VirtualStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


EVENTS: Final = 20_000
"""The number of events in a world."""
RARE: Final = {"failover": 4, "outage": 2, "flush": 2, "sleep": 2, "busy": 2, "newer schema": 1, "server comes back": 3}
"""Faults of the world, and their weights beside those of a process."""
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
BEHIND: Final = 0.3
"""The share of failovers to a server that is as far behind as it may be."""
OF_THE_STORE: Final = frozenset({"fails over", "is flushed", "leads to two"})
WITH_TWO: Final = 0.3
"""The share of worlds in which somebody makes a second store under the name of the first."""
IN_A_CLOCK: Final = ("clock fails", "clock closes", "clock forks")
"""The side effects of the clock of a user."""


# It has 37 attributes: the whole state of a simulation, so that one seed reproduces it.
class World:
    """A store and the processes that share it, from a seed.

    ``promise`` says how much a server that takes over may have forgotten of a namespace: with ``"all"`` as much as the
    gap in total since its record, with ``"each"`` as much as the gap at each failover. The clocks of two servers differ
    by ``apart_ms`` at most. With a ``half``, 0 or 1, the store has one half of all node numbers and integers: processes
    ask for all, and somebody divides each pool before its first grant, also after the store was lost.
    """

    def __init__(
        self,
        seed: int,
        index: int = 0,
        *,
        batch: int = 100,
        promise: str = "all",
        regions: str = "",
        apart_ms: int = rules.CLOCK_MARGIN_MS,
        half: int | None = None,
    ) -> None:
        self.seed, self.index, self.batch, self.promise, self.regions = seed, index, batch, promise, regions
        self.half = half
        self.apart_ms = apart_ms
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
        self.originals: dict[int, int] = {}
        """The process, by serial, of which another one is a copy."""
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
        """The probability of a fault during a verb."""
        self.faultiness = draw.choice((0.1, 0.3, 0.5))
        self.span_ms = draw.choice((1000, 2000, 5000, 10_000, 30_000))
        self.steps = draw.choice((None, *STEPS))
        """The steps of all sequences; ``None`` if each has its own."""
        self.copies = draw.random() < 0.4
        """True if processes are cloned. Then no failover forgets changes of their node numbers."""
        count = draw.choice((10, 50, 200, 300))
        made = [each for each in (*REGIONS, *(LEASED if regions else ())) if re.match(regions, each.name)]
        if not regions:
            made = draw.sample(made, draw.choice((1, 2, len(made))))
        # Drawn apart, so that the same seed meets the same events until then.
        self.apart = random.Random(f"{seed}/{index}/apart")
        self.second_at = self.apart.randrange(EVENTS // 4) if self.apart.random() < WITH_TWO else -1
        """The event in which the name leads to a second store; -1 if it never does."""
        self.processes = [Process(self, draw.choice(made)) for _ in range(count)]
        self.numbers = max(1 if half is None else 2, round(count / len(made) * draw.choice((0.3, 0.8, 1.5))))
        """The number of node numbers of a pool."""
        first = self.numbers // 2
        self.share = rules.ALL_NODES if half is None else range(first, rules.MAX_NODES) if half else range(first)
        self.pace = draw.choice((0.02, 0.1, 0.3)) * count
        """The number of events at one moment."""
        self.calm_until_ms = 0
        self.current = self.processes[0]
        self._create_namespaces()

    def _create_namespaces(self) -> None:
        draw, self.trouble, usual = self.random, 0.0, self.trouble
        for region in REGIONS:
            if region.make is make_sequence:
                stride = draw.choice((1, 1, 2, 7))
                limit = draw.choice((10_000, 2**63 - 1, 2**63 - 1))
                start, offset = draw.randrange(3), draw.randrange(stride)
                if self.half is not None:
                    stride, offset = 2 * stride, offset + self.half * stride
                self.store.create_namespace(region.name, start=start, maximum=limit, stride=stride, offset=offset)
        self.trouble = usual

    def replay(self) -> str:
        """Return the command that repeats this run."""
        usual = {"batch": 100, "promise": "all", "regions": "", "apart_ms": rules.CLOCK_MARGIN_MS}
        changed = (name for name in usual if getattr(self, name) != usual[name])
        options = "".join(f" --{name.replace('_', '-')} {getattr(self, name)}" for name in changed)
        options += "" if self.half is None else " --divided"
        return f"python -m tests.simulator --seed {self.seed} --world {self.index}{options}"

    # --- what the store and the keepers ask ---

    def plan(self, delay_ms: int, what: Callable[[], object]) -> None:
        """Schedule an event."""
        self.agenda.append((self.now_ms + delay_ms, what))

    def pass_time(self, ms: int) -> None:
        """Advance the time of the world, and run the scheduled events."""
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
        """Suspend the current process while others go on."""
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
        """Record that the current process returned resources that its copies may still use."""
        for share in self.shares:
            if self.current.serial in share.members and share.given_back is None:
                share.given_back = self.event

    def clone(self, process: Process) -> Process | None:
        """Clone a process, if it holds anything, in place of one that holds nothing; return the copy."""
        task, heir = process.task() if process.task else None, self.heir_of(process.region)
        if (
            process.generator is None
            or task is None
            or task.closed
            or task.generation.number != process.epoch
            or heir is None
        ):
            return None
        share = Share(process.region.name, self.event, {process.serial: None})
        process.let_reseat()
        memory = memory_of(task, share, process.least_ms)
        if memory is None:
            return None
        self.enter(heir)
        heir.serial, heir.epoch, heir.keeper = self.serial(), process.epoch, VirtualKeeper(self)
        self.originals[heir.serial] = process.serial
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
        """Make processes mint at one moment, if they can."""
        for each in processes:
            if each.generator is not None and not each.is_stopped and each.awake_at_ms <= self.now_ms:
                with self.refusing(each):
                    self.mint(each)

    def begin_epoch(self) -> int:
        """Start a new generation for the current process. The real one is global: others go on with their state."""
        process = self.current
        for each in self.processes:
            if each is not process and each.generator is not None:
                each.let_reseat()
        process.epoch, process.least_ms = self.serial(), 0
        # A copy that is notified before its first request starts with nothing too.
        process.memory = None
        self.store.book.epoch = _core.start_generation()
        for share in self.shares:
            if share.members.get(process.serial, 0) is None:
                share.members[process.serial] = self.event
        return process.epoch

    def disturb(self, process: Process) -> None:
        """Cause a side effect in the clock of a user while it is read."""
        what = self.random.choice(IN_A_CLOCK)
        self.faults[what] += 1
        match what:
            case "clock fails":
                raise ClockError
            case "clock closes":
                process.generator.close()
            case "clock forks":
                # The child continues here; the parent is the copy that keeps everything.
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
        """Run a number of events, then look for an ID that was minted twice."""
        self.events = events
        with self._virtual_time():
            while self.event < events:
                try:
                    self.happen()
                except CirclesError:
                    message = f"event {self.event}: a call asked its keeper {PATIENCE:,} times: {self.replay()}"
                    raise RuntimeError(message) from None
            for process in self.processes:
                process.crash(self)
        return self.check()

    @contextmanager
    def _virtual_time(self) -> Iterator[None]:
        def clock() -> float:
            return self.now_ms / 1000 + self.waited_s

        log, open_window = logging.getLogger("mintage"), LeaseClient._open_window

        def epoch() -> int:
            return self.current.epoch

        def window(task: LeaseClient) -> Any:
            found = open_window(task)
            return found and (*found[:2], max(found[2], self.current.least_ms), *found[3:])

        before, level = keeper.current(), log.level
        with ExitStack() as stack:
            virtual_names: dict[Any, dict[str, Any]] = {
                keeper: {"monotonic_s": clock, "start_generation": self.begin_epoch, "generation": epoch},
                jitter: {"uniform": self.random.uniform},
                segment_client: {"monotonic_s": clock},
                LeaseClient: {"_open_window": window},
            }
            for where, names in virtual_names.items():
                for name, virtual in names.items():
                    stack.enter_context(patch.object(where, name, virtual))
            # The time of a garbage collection does not depend on the seed.
            if gc.isenabled():
                stack.callback(gc.enable)
                gc.disable()
            stack.callback(log.setLevel, level)
            stack.callback(keeper.use, before)
            log.setLevel(logging.CRITICAL)
            yield

    def happen(self) -> None:
        """Run one event."""
        draw = self.random
        self.event += 1
        self.asked = 0
        if self.event == self.second_at:
            self.make_second()
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
        """Start another process right after one that closed, to take what it released."""
        heir = self.heir_of(process.region)
        if heir and self.random.random() < 0.5:
            self.pass_time(self.grid_ms)
            if heir.generator is None:
                self.enter(heir)
                self.start(heir)
                self.look(heir)

    def heir_of(self, region: Region) -> Process | None:
        """Return a process that may want a node number."""
        others = [
            other
            for other in self.processes
            if other.region is region and other.generator is None and not other.is_stopped
        ]
        return self.random.choice(others) if others else None

    def look(self, process: Process) -> None:
        """Get a lease without minting, if there is one; the clock may step back before the first ID."""
        # Keep the generator in no variable: a stored error keeps this frame, and would keep the generator alive.
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
        if region.make is make_sequence:
            floor = process.told_floor
            self.keep(
                process, [process.generator.reserve(count)] if count % 8 == 0 else process.generator.batch(count), floor
            )
            return
        ids = np.zeros(count * width, dtype=np.uint8)
        kept.append(Batch(event, process.serial, clock_ms, ids))
        # IDs minted before a refusal are in the buffer.
        process.generator.fill(ids)

    def keep(self, process: Process, ranges: list[range], floor: int) -> None:
        """Record integers from a sequence, and the floor that it knew before."""
        ids = np.concatenate([np.arange(r.start, r.stop, r.step, dtype=np.uint64) for r in ranges])
        kept = self.batches.setdefault(process.region.name, [])
        kept.append(Batch(self.event, process.serial, process.clock.now_ns // MS, ids))
        self.below_floor += int(np.count_nonzero(ids < floor))

    def deliver_twice(self, process: Process) -> None:
        """Close a sequence, let another take what it returned, and then deliver the return once more."""
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

    # More than 60 lines: one branch a kind of fault.
    def fault(self, process: Process) -> None:
        draw = self.random
        kinds = RARE if draw.random() < 0.1 else OWN
        kind = draw.choices(list(kinds), list(kinds.values()))[0]
        if kind == "flush" and not self.store.forgets_pools:
            return
        if kind in {"clone", "told of its copies"} and not self.copies:
            return
        if kind in {"flush", "failover", "restored backup", "server comes back"}:
            # Each causes a quarantine: as often as other events, they would leave no process anything to mint from.
            if self.now_ms < self.calm_until_ms:
                return
            rest_ms = max(self.span_ms, rules.SPAN_MS) + self.limit_ms + rules.CLOCK_MARGIN_MS
            self.calm_until_ms = self.now_ms + draw.choice((0, 1, 3, 8)) * rest_ms
        self.faults[kind] += 1
        span, grid = self.span_ms, self.grid_ms
        match kind:
            case "failover" if process.region.make is not make_sequence and self.apart.random() < BEHIND:
                self.fail_over_behind(process.region)
                self.enter(process)
            case "failover":
                self.store.fail_over(draw.choice((0, 1, 2, 5, 10, 50, 500)))
                if draw.random() < 0.3:
                    self.store.fail_over(draw.choice((0, 1, 5)))
            case "outage":
                self.store.away_until_ms = self.now_ms + draw.choice((grid, span // 2, 2 * span))
            case "flush":
                if process.region.make is not make_sequence and draw.random() < 0.5:
                    self.create_lost_pools(process.region)
                    self.enter(process)
                else:
                    self.store.book.flush()
                    self.note("is flushed")
            case "sleep":
                self.pass_time(draw.choice((span // 2, span, 2 * span + self.limit_ms)))
            case "busy":
                self.store.busy_until_ms = self.now_ms + draw.choice((grid, span // 2, 2 * span))
            case "newer schema":
                self.store.newer_until_ms = self.now_ms + draw.choice((grid, span // 2))
            case "raised floor":
                if process.region.make is make_sequence:
                    highest = self.store.book.tables[NamespaceRecord][process.region.name,]
                    self.store.raise_floor(process.region.name, highest.high_water + draw.choice((-50, 0, 1, 7, 300)))
            case "given back twice":
                if process.region.make is make_sequence and process.generator is not None:
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
                if process.region.make is not make_sequence:
                    draw.choice((self.extend_elsewhere, self.grant_elsewhere))(process.region)
                    self.enter(process)
            case "crash":
                process.crash(self)
            case "drop":
                process.generator = None
                process.keeper.step()
            case "revoke":
                nodes = [node for _, node in sorted(self.store.book.tables[NodeRecord].items())]
                if nodes:
                    taken = draw.choice(nodes)
                    self.store.revoke(taken.pool, taken.node)
                    self.note("revokes", taken.pool, taken.as_lease())

    def restore_backup(self, process: Process, delay_ms: int) -> None:
        """Pause a process past its window. When it wakes, another has its number, and the store has forgotten that."""
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
        """Extend windows on a server, then bring back the one before, without the last extensions."""
        holders, heirs = self._gather(region)
        with self._switching(region, self.span_ms * 4 // 5, holders):
            self.step_all(holders)
        self.now_ms += self.span_ms // 5 + self.grid_ms
        self.mint_together([*heirs, *holders])

    def grant_elsewhere(self, region: Region) -> None:
        """Grant numbers of paused holders on a server, then bring back the one before, without these grants."""
        holders, heirs = self._gather(region)
        with self._switching(region, self._rest_ms(), heirs[:1]):
            self.mint_together(heirs)
        self.mint_together([*holders, *heirs])

    def create_lost_pools(self, region: Region) -> None:
        """Lose all pools and create them again at once, as a script that sets up the server does."""
        holders, heirs = self._gather(region)
        usual, self.trouble = self.trouble, 0.0
        lost = self.store.book.page(PoolRecord, "")
        self.store.book.flush()
        self.note("is flushed")
        for pool in lost:
            self.store.create_pool(pool.name, layout=pool.layout, span_ms=pool.span_ms)
        self.mint_together([*heirs, *holders])
        self.trouble = usual

    def fail_over_behind(self, region: Region) -> None:
        """Grant numbers by a fast server to callers that are fast, and lose that on a server that is right.

        Then holders mint to the end of their windows, and others the same times, as soon as the quarantine has ended.
        """
        usual, self.trouble, self.span_ms = (self.trouble, self.span_ms), 0.0, rules.SPAN_MS
        _, both = self._gather(region)
        holders, heirs = both[::2], both[1::2]
        self.store.fail_over(0)
        self.store.ahead_ms = self.apart_ms
        self.mint_together(heirs)  # refused, but noted
        self.now_ms += 2 * self._rest_ms()
        known = self.store.book.transactions
        self._mint_at(holders, self.now_ms + self.apart_ms + self.limit_ms)
        self.store.fail_over(self.store.book.transactions - known)
        self.store.ahead_ms = 0
        self.mint_together(heirs)
        last_ms = self.now_ms + self.apart_ms + self.limit_ms + self.span_ms - 2 * self.grid_ms
        self._mint_at(holders, last_ms)
        self.now_ms += self._rest_ms()
        self._mint_at(heirs, last_ms)
        self.trouble, self.span_ms = usual

    def _mint_at(self, processes: list[Process], time_ms: int) -> None:
        """Make processes mint at one moment at which their clocks show a time."""
        for each in processes:
            each.offset_ms, each.since_ms = time_ms - self.now_ms, self.now_ms
        self.mint_together(processes)

    def make_second(self) -> None:
        """Make a second store under the name of the first, until somebody removes it."""
        self.faults["second store"] += 1
        self.note("leads to two")
        self.store.second = Ledgerbook()
        self.plan(8 * self._rest_ms(), self.remove_second)

    def remove_second(self) -> None:
        self.store.second = None

    def _rest_ms(self) -> int:
        """Return how long node numbers are in quarantine after a failover."""
        rest_ms = max(self.span_ms, rules.SPAN_MS) + self.limit_ms + rules.CLOCK_MARGIN_MS
        return rest_ms - rest_ms % self.grid_ms + 2 * self.grid_ms

    def _gather(self, region: Region) -> tuple[list[Process], list[Process]]:
        """Restart all processes of a region with right clocks; return those that mint and the others."""
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
        """Switch to another server, as ``witnesses`` see, and later back, without the writes of the block.

        There is no switch back if the other wrote nothing of the pool before the block, as nobody would know of it.
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
        """Run a process at its turn, and count its errors."""
        self.enter(process)
        try:
            yield
        except ClockError:
            self.refusals["a clock failed"] += 1
        except MintError as error:
            self.refusals[error.code] += 1
            if error.code in {"lease.lost", "namespace.exhausted", "generator.closed"} and self.random.random() < 0.5:
                process.crash(self)

    # --- the invariant ---

    def check(self) -> Outcome:
        """Count the minted IDs, and compare all IDs of a region byte for byte."""
        outcome = Outcome(0, self.serial() - 1, self.verbs, self.faults, self.refusals, below_floor=self.below_floor)
        for region in (*REGIONS, *LEASED):
            batches = self.batches.get(region.name, [])
            if batches:
                ids, starts = join(batches, region.width)
                outcome.ids += int(np.count_nonzero(ids.any(axis=1)))
                for pair in all_twins(ids, starts, batches, region.place):
                    twins = [batches[bisect_right(starts, at) - 1] for at in pair]
                    if self._is_shared(region, twins, ids[pair[0]].tobytes()):
                        outcome.shared += 1
                    else:
                        outcome.duplicates.append(self._tell(region, twins, ids[pair[0]].tobytes()))
                        break
                outcome.digest = crc32(ids.tobytes(), outcome.digest)
            if region.node is not None:
                self._check_history(region, region.node, batches, outcome)
        return outcome

    def _check_history(
        self, region: Region, node_of: Callable[[bytes], int], batches: list[Batch], outcome: Outcome
    ) -> None:
        """Check that the store names the process that minted the first and the last ID of each call."""
        windows: dict[int, list[tuple[int, int, str]]] = {}
        for kind in (GrantRecord, NodeRecord):
            for each in self.store.book.tables[kind].values():
                if each.pool == region.name:
                    windows.setdefault(each.node, []).append((each.floor_ms, each.until_ms, each.holder or ""))
        pool, now_ms = self.store.book.get(PoolRecord, region.name), self.now_ms + self.store.ahead_ms
        if pool is not None:
            # After a failover near the end of the run, no verb may have noted the server yet.
            pool = rules.note_server(pool, self.store.book.identity, now_ms, self.limit_ms)
        begin = None if pool is None else rules.history_begin(pool, now_ms)
        copied = {share.node for share in self.shares if share.region == region.name}
        for batch in batches:
            rows = [row.tobytes() for row in batch.ids.view(np.uint8).reshape(-1, region.width) if row.any()]
            for row in {*rows[:1], *rows[-1:]}:
                time_ms, node = region.time_ms(row), node_of(row)
                if node in copied:
                    continue  # a copy may mint when the number is another's
                found = [who for floor, until, who in windows.get(node, ()) if floor <= time_ms < until]
                is_known = begin is not None and time_ms >= begin
                if len(found) == 1 and found[0] in self._names(batch.process):
                    outcome.named += 1
                elif found and not is_known and self.store.has_forgotten:
                    outcome.outdated += 1
                elif found or is_known:
                    outcome.misnamed.append(
                        f"{region.name} {row.hex()} of process {batch.process} at {time_ms - START_MS} ms: "
                        f"node {node} was held by {found}; {self.replay()}"
                    )

    def _names(self, process: int | None) -> Iterator[str]:
        """Yield the names of a process and of those of which it is a copy."""
        while process is not None:
            yield str(process)
            process = self.originals.get(process)

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
        world = [entry for entry in self.diary if entry[2][0] in OF_THE_STORE and low <= entry[0] <= high]
        story += [_sentence(entry) for entry in world[-4:]]
        return Duplicate(self.index, region.name, row.hex(), tuple(story), self.replay())


def _sentence(entry: tuple[int, int, tuple[Any, ...]]) -> str:
    event, process, (verb, *rest) = entry
    who = "the store" if verb in OF_THE_STORE else f"process {process}"
    return f"event {event}: {who} {verb} {' '.join(map(str, rest))}"


def run_world(seed: int, index: int, events: int = EVENTS, *, divided: bool = False, **options: Any) -> Outcome:
    """Run a world, or two with a store each that never hear of each other, and have half of all numbers each."""
    total, kept = Outcome(), list[World]()
    for half in (0, 1) if divided else (None,):
        kept.append(World(seed, index, half=half, **options))
        total.add(kept[-1].run(events))
    if divided:
        total.duplicates += _between(*kept)
    return total


def _between(one: World, other: World) -> Iterator[Duplicate]:
    """Yield an ID of each region that two worlds have minted."""
    for region in (*REGIONS, *LEASED):
        own, others = one.batches.get(region.name, []), other.batches.get(region.name, [])
        if not own or not others:
            continue
        apart = one.serial()  # above the serials of all processes of this world
        batches = [*own, *(replace(each, process=each.process + apart) for each in others)]
        ids, starts = join(batches, region.width)
        border = starts[len(own)]
        for first, last in all_twins(ids, starts, batches, region.place):
            if first < border <= last:
                story = (f"a process of each store minted it: {one.replay()}",)
                yield Duplicate(one.index, region.name, ids[first].tobytes().hex(), story, one.replay())
                break


def _run_world(terms: tuple[int, int, dict[str, Any]]) -> Outcome:
    seed, index, options = terms
    return run_world(seed, index, **options)


def simulate(seed: int, *, ids: int, faults: int, jobs: int = 1, **options: Any) -> Iterator[Outcome]:
    """Run world after world until a number of IDs were minted under a number of faults; yield the total after each.

    Stop at a duplicate.
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
