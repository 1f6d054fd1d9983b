"""Virtual processes: their keepers and their clocks, those of users included."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from mintage.lease import keeper
from mintage.lease.keeper import Keeper, Task
from mintage.lease.lease_client import LeaseClient
from mintage.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.regions import Region
    from tests.simulator.world import World

MS: Final = 1_000_000
PATIENCE: Final = 100_000
"""The number of requests of keepers in one event, at most."""


class CirclesError(BaseException):
    """A call loops for ever. It is no Exception, as a keeper would take that for an error of its store."""


class VirtualKeeper(Keeper):
    """An inline keeper: a waiting caller does its work, in virtual time."""

    def __init__(self, world: World) -> None:
        super().__init__(inline=True)
        self._world = world

    def add(self, task: Task) -> None:
        self._world.asked += 1
        if self._world.asked > PATIENCE:
            raise CirclesError
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


class ClockError(Exception):
    """The clock of a user fails."""


class UserClock:
    """The clock of a user, with side effects when it is read."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = weakref.ref(process)
        self.generator: weakref.ref[Any] | None = None

    def __call__(self) -> int:
        world, process = self._world, self._process()
        # Not while an inline keeper reads it: a threaded keeper would read it in another call.
        is_called = process is not None and process is world.current and not process.keeper.is_at_work
        if process is not None and is_called and world.random.random() < 0.02:
            world.disturb(process)
        return process.clock.now_ns if process is not None else 0


# It has 17 attributes: the state of a process that events change, of which snapshots take a copy.
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
        """True in the middle of a verb."""
        self.epoch = world.serial()
        self.least_ms = 0
        """The first time without IDs when the real generation changed, or when it was cloned."""
        self.told_floor = 0
        """The floor of its namespace, by the last segment that its keeper reserved."""
        self.task: weakref.ref[Task] | None = None
        """The lease or the segments of its generator, once it was used."""
        self.memory: Callable[[Task], None] | None = None
        """The initial state of the lease or segments of its generator, if it is a copy."""
        self.user_clock: UserClock | None = None

    def set_clock(self, world: World) -> None:
        """Set its clock to the reading for the current time of the world."""
        if self.frozen_until_ms <= world.now_ms:
            passed_ms = world.now_ms - self.since_ms
            shown_ms = self.since_ms + int(passed_ms * self.rate) + self.offset_ms
            self.clock.set((shown_ms - shown_ms % world.grid_ms + world.phase_ms) * MS)

    def let_reseat(self) -> None:
        """Make its generator attach again where it is, with its state; the next generation belongs to another."""
        task = self.task and self.task()
        if isinstance(task, LeaseClient) and (used_until_ms := task._detach()) is not None:
            self.least_ms = max(self.least_ms, used_until_ms)
            task._serial += 1

    def crash(self, world: World) -> None:
        """End at once, without a release."""
        self.keeper = VirtualKeeper(world)
        keeper.use(self.keeper)
        self.generator = None
        self.keeper.abandoned.clear()
