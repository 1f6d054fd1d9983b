"""The keeper: one thread of this process that extends leases and fetches segments ahead of need.

A caller that finds its window at an end or its pool empty waits for the keeper, at most ``max_wait_ms``; only what is
given back, and rows of integers that no segment holds, go to the store in the caller's own thread. After a failure the
keeper leaves a store alone for a while, longer each time and with jitter, so a store that is away costs next to
nothing, and nobody has to do anything when it comes back.

A forked child has a keeper of its own, made at first use, and leases and segments of its own.
"""

from __future__ import annotations

import atexit
import os
import random
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mintage.errors import FieldError, GenerationError, LeaseError, MintError, StoreError
from mintage.forks import quiet
from mintage.lease import Segment

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Sequence

    from mintage.lease import Lease
    from mintage.store import Store

__all__ = ["Keeper", "Supply", "Task", "Tenancy", "current", "next_step", "use"]

#: After a failure a store is left alone for this long, then twice as long each time, up to the second.
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 1.0
#: A generator that runs ahead of its clock asks for this much more of a window at once.
WORTH_MS: Final = 100
#: How long the process may take to give its leases and segments back when it ends.
FAREWELL_S: Final = 2.0


class Task(ABC):
    """What the keeper keeps: a lease or a pool. All attributes change under the keeper's condition only."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.failure: MintError | None = None
        """Why the last try failed; ``None`` once one has succeeded."""
        self.wanted = False
        """Whether a caller waits."""
        self.closed = False
        self._pid = os.getpid()

    @abstractmethod
    def due_s(self) -> float | None:
        """In how many seconds there is work; ``None`` while there is none."""

    @abstractmethod
    def work(self) -> Callable[[], None]:
        """Asks the store, without the condition; returns what to change under it.

        :raises MintError: the store's refusal.
        """

    @abstractmethod
    def refused(self, error: MintError) -> None:
        """Takes note of a refusal."""

    def settled(self) -> None:  # noqa: B027 - most tasks tell nobody
        """Called after each try, whatever came of it."""

    @abstractmethod
    def reborn(self) -> None:
        """Forgets what belongs to the parent of this process."""

    @abstractmethod
    def close(self) -> None:
        """Gives back what is held."""

    def _seat(self) -> Keeper:
        """The keeper of this process, with this task in it."""
        keeper = current()
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self.failure, self.wanted = None, False
            self.reborn()
        keeper.add(self)
        return keeper

    def _wait(self, ready: Callable[[], bool], max_wait_ms: int) -> None:
        """Waits until the keeper has made it ready; Ctrl-C ends it.

        :raises MintError: why it is not ready after ``max_wait_ms``, or cannot be.
        """
        keeper = self._seat()
        deadline = time.monotonic() + max_wait_ms / 1000
        with keeper.condition:
            if keeper.inline or max(keeper.pause_s(self.store), keeper.pause_s(self)) <= 0:
                self.failure = None
            while not ready():
                self._check_open()
                left = deadline - time.monotonic()
                failure = self.failure
                if failure is not None and (left <= 0 or not _passes(failure, left)):
                    raise _renewed(failure, keeper.pause_s(self.store))
                self.wanted = True
                if left <= 0 and not keeper.inline:
                    keeper.wake()
                    raise StoreError(
                        f"{self.store.url}: no answer in {max_wait_ms} ms: try again, or allow a longer max_wait_ms",
                        code="store.unavailable",
                        retry_after_ms=round(LONGEST_PAUSE_S * 1000),
                    )
                keeper.attend(left)

    def _check_open(self) -> None:
        if self.closed:
            raise GenerationError("it is closed: make a new one", code="generator.closed")


def _passes(failure: MintError, within_s: float) -> bool:
    """Whether waiting may help."""
    retry_after_ms = getattr(failure, "retry_after_ms", None)
    if failure.code == "store.unavailable":
        return True
    return retry_after_ms is not None and retry_after_ms <= within_s * 1000


def _renewed(failure: MintError, pause_s: float) -> MintError:
    """The failure as an error of its own for each caller, with the time that is left of the keeper's pause."""
    error = type(failure)(*failure.args, code=failure.code)
    retry_after_ms = getattr(failure, "retry_after_ms", None)
    if failure.code == "store.unavailable":
        retry_after_ms = max(1, round(pause_s * 1000))
    if isinstance(error, (StoreError, LeaseError, GenerationError)):
        error.retry_after_ms = retry_after_ms
    error.__cause__ = failure.__cause__
    return error


class Keeper:
    """Keeps the leases and pools of one process.

    With ``inline`` there is no thread: whoever waits does the work, for tests and simulations that want every step in a
    known order.
    """

    def __init__(self, *, inline: bool = False) -> None:
        self.inline = inline
        self.pid = os.getpid()
        lock = threading.RLock()
        self.condition = threading.Condition(lock)
        """What callers wait on for the keeper. All that tasks and the keeper share changes under its lock."""
        self._work = threading.Condition(lock)
        """What the keeper waits on for callers."""
        self._tasks: weakref.WeakSet[Task] = weakref.WeakSet()
        self._owners: weakref.WeakSet[Any] = weakref.WeakSet()
        self._pauses: weakref.WeakKeyDictionary[Store | Task, tuple[float, float]] = weakref.WeakKeyDictionary()
        self.abandoned: deque[tuple[Tenancy, int]] = deque()
        """Leases of generators that are gone without being closed. Added to without a lock, wherever they went."""
        self._thread: threading.Thread | None = None
        self._busy: Task | None = None
        self._closing = False

    def add(self, task: Task) -> None:
        """Keeps a task, as long as somebody else refers to it."""
        with self.condition:
            self._tasks.add(task)

    def own(self, owner: Any) -> None:
        """Closes an owner of leases when the process ends."""
        with self.condition:
            self._owners.add(owner)

    def wake(self) -> None:
        """Lets the keeper look for work now; it starts at the first call."""
        with self.condition:
            if self.inline or self._closing:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mintage-keeper", daemon=True)
                self._thread.start()
            self._work.notify()

    def attend(self, timeout_s: float) -> None:
        """Waits, under the condition, until the keeper has done something."""
        if self.inline:
            self.condition.release()
            try:
                if self.step() != 0:
                    raise RuntimeError("an inline keeper has nothing to do, yet somebody waits for it")
            finally:
                self.condition.acquire()
            return
        self.wake()
        # Wakes now and then, for a signal that must be seen.
        self.condition.wait(min(timeout_s, 0.5))

    def pause_s(self, what: Store | Task) -> float:
        """For how much longer a store that is away, or a task that was refused, is left alone."""
        _, until = self._pauses.get(what, (0.0, 0.0))
        return max(0.0, until - time.monotonic())

    def _run(self) -> None:
        while True:
            with self.condition:
                if self._closing:
                    return
                delay = self._next()[0]
                if delay > 0:
                    self._work.wait(min(delay, 3600.0))
                    continue
            self.step()

    def _next(self) -> tuple[float, Task | None]:
        """In how many seconds which task is to be done next."""
        soonest: tuple[float, Task | None] = (3600.0, None)
        for task in self._tasks:
            try:
                due = None if task.closed else task.due_s()
            except Exception:  # noqa: BLE001 - a clock of the user's own that fails now fails its caller as well
                due = None
            if due is not None:
                # An inline keeper is asked again by its caller, in whose hands time is.
                pause = 0.0 if self.inline else max(self.pause_s(task.store), self.pause_s(task))
                due = max(due, pause, 0.0)
                if due < soonest[0]:
                    soonest = (due, task)
        return soonest

    def step(self) -> float:
        """Does what is due first. Returns 0, or in how many seconds there will be something."""
        self._let_go()
        with self.condition:
            delay, task = self._next()
            if task is None or delay > 0:
                return delay
            self._busy = task
        try:
            with quiet:
                done = task.work()
        except MintError as error:
            with self.condition:
                self._pause(task.store if error.code == "store.unavailable" else task, error)
                task.failure = error
                task.wanted = False
                task.refused(error)
        except Exception as error:  # noqa: BLE001 - a fault in a store must not end the keeper
            _log().exception("mintage: a store failed in an unknown way")
            with self.condition:
                failure = StoreError(f"{task.store.url}: {error!r}", code="store.refused")
                failure.__cause__ = error
                self._pause(task, failure)
                task.failure = failure
                task.wanted = False
        else:
            with self.condition:
                self._pauses.pop(task.store, None)
                self._pauses.pop(task, None)
                task.failure = None
                task.wanted = False
                done()
        finally:
            with self.condition:
                self._busy = None
                task.settled()
                self.condition.notify_all()
        return 0.0

    def _let_go(self) -> None:
        """Releases the leases of generators that are gone."""
        while self.abandoned:
            tenancy, used_until_ms = self.abandoned.popleft()
            try:
                tenancy.release(used_until_ms)
            except Exception:  # noqa: BLE001 - as in `step`
                _log().exception("mintage: a lease could not be released")

    def _pause(self, what: Store | Task, error: MintError) -> None:
        last, _ = self._pauses.get(what, (0.0, 0.0))
        if last == 0.0:
            _log().warning("mintage: %s (%s); trying again", error, error.code)
        pause = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * last))
        # Jitter, so that the processes of a fleet do not come back all at once.
        self._pauses[what] = (pause, time.monotonic() + pause * random.uniform(0.5, 1.0))  # noqa: S311

    def wait_for(self, task: Task) -> None:
        """Waits, under the condition, until the task is not being worked on; the store's own timeout is the limit."""
        while self._busy is task and self._thread is not threading.current_thread():
            self.condition.wait(0.5)

    def is_alone(self, threads: set[threading.Thread]) -> bool:
        """Whether none of these threads is another than its own."""
        return threads <= {self._thread}

    def close(self) -> None:
        """Gives everything back, within two seconds, and ends the thread."""
        deadline = time.monotonic() + FAREWELL_S
        with self.condition:
            owners, tasks = list(self._owners), list(self._tasks)
        for owner in [*owners, *tasks]:
            if time.monotonic() < deadline:
                with suppress(Exception):
                    owner.close()
        with self.condition:
            self._closing = True
            self._work.notify()


def _log() -> logging.Logger:
    # Not imported before it is needed: it breaks if that is while another thread forks.
    import logging

    return logging.getLogger("mintage")


_current: Keeper | None = None


def current() -> Keeper:
    """This process's keeper."""
    global _current  # noqa: PLW0603 - one a process
    keeper = _current
    if keeper is None or keeper.pid != os.getpid():
        _current = keeper = Keeper()
        _install()
    return keeper


def use(keeper: Keeper) -> None:
    """Makes ``keeper`` this process's own, for tests."""
    global _current  # noqa: PLW0603 - one a process
    _current = keeper


@cache
def _install() -> None:
    atexit.register(_farewell)


def _farewell() -> None:
    keeper = _current
    # Threads that still run may still mint: then what they hold runs out by itself.
    others = {thread for thread in threading.enumerate() if thread is not threading.current_thread()}
    if keeper is not None and keeper.pid == os.getpid() and keeper.is_alone(others):
        keeper.close()


# --- leases -------------------------------------------------------------------------------------------------------


class Tenancy(Task):
    """A generator's lease, and the next one when it moves.

    ``nodes`` returns ranges to choose from, in this order. ``clock`` returns the generator's time in nanoseconds. No
    call waits less than ``patience_ms``.
    """

    def __init__(
        self,
        store: Store,
        *,
        pool: str,
        nodes: Callable[[], Sequence[range]],
        layout: str,
        never_used: bool,
        span_ms: int,
        moves: bool,
        holder: Callable[[], str],
        clock: Callable[[], int],
        patience_ms: int = 0,
    ) -> None:
        super().__init__(store)
        self._patience_ms = patience_ms
        self.never_used = never_used
        self._pool = pool
        self._nodes = nodes
        self._layout = layout
        self._span_ms = span_ms
        self._moves = moves
        self._holder = holder
        self._clock = clock
        self._lease: Lease | None = None
        self._serial = 0
        self._lost: LeaseError | None = None

    def now_ms(self) -> int:
        """The generator's clock."""
        return self._clock() // 1_000_000

    def window(self, max_wait_ms: int) -> tuple[int, int, int, int, int]:
        """A window that the generator's clock is not at the end of.

        Returns the serial number of the grant, the node, floor, until, and when it is worth asking for a later end;
        times in milliseconds.

        :raises LeaseError: ``lease.lost``, ``lease.none_free``, ``lease.clock``.
        :raises StoreError: as the store's verbs.
        :raises GenerationError: ``generator.closed``.
        """
        self._wait(self._is_open, max(max_wait_ms, self._patience_ms))
        lease = self._lease
        assert lease is not None  # noqa: S101 - what _is_open says
        return self._serial, lease.node, lease.floor_ms, lease.until_ms, lease.until_ms - self._span_ms + WORTH_MS

    def _is_open(self) -> bool:
        if self._lease is not None and self.now_ms() < self._lease.until_ms:
            return True
        self._leave_lost()
        return False

    def _leave_lost(self) -> None:
        """Forgets a lease that is lost and used up, for another; raises where the generator does not move."""
        if self._lost is None:
            return
        if not self._moves:
            raise LeaseError(
                f"{self._lost}; its window ended: make a new generator, or let it move by itself with "
                'on_lease_lost="move"',
                code="lease.lost",
            )
        self._lease = self._lost = None

    def grow(self, until_ms: int, max_wait_ms: int) -> None:
        """Waits for a later end of the window than ``until_ms``, for a generator that runs ahead of its clock.

        :raises MintError: as :meth:`window`.
        """
        serial = self._serial

        def grown() -> bool:
            # The window of a lease that is lost grows no more, and the generator has used all of it.
            self._leave_lost()
            return self._is_open() and (self._serial != serial or self._end_ms() > until_ms)

        self._wait(grown, max(max_wait_ms, self._patience_ms))

    def _end_ms(self) -> int:
        return self._lease.until_ms if self._lease is not None else 0

    def due_s(self) -> float | None:
        if self._lease is None:
            return 0.0 if self.wanted else None
        if self._lost is not None:
            return None
        if self.wanted:
            return 0.0
        # A third of the span is spent.
        return (self._lease.until_ms - self.now_ms() - self._span_ms * 2 / 3) / 1000

    def work(self) -> Callable[[], None]:
        lease, now_ms = self._lease, self.now_ms()
        if lease is not None:
            extended = self.store.extend(lease, now_ms=now_ms)
            return lambda: self._hold(extended)
        granted = self._acquire(now_ms)
        return lambda: self._hold(granted, new=True)

    def _acquire(self, now_ms: int) -> Lease:
        choices = self._nodes()
        for at, nodes in enumerate(choices):
            try:
                return self.store.acquire(
                    self._pool,
                    nodes=nodes,
                    layout=self._layout,
                    holder=self._holder(),
                    now_ms=now_ms,
                    span_ms=self._span_ms,
                    never_used=self.never_used,
                )
            except LeaseError as error:
                if error.code != "lease.none_free" or at + 1 == len(choices):
                    raise
        raise AssertionError("a tenancy has node numbers to choose from")

    def _hold(self, lease: Lease, *, new: bool = False) -> None:
        self._lease = lease
        self._serial += new

    def refused(self, error: MintError) -> None:
        if isinstance(error, LeaseError) and error.code == "lease.lost":
            _log().warning("mintage: %s", error)
            self._lost = error
            self.failure = None

    def reborn(self) -> None:
        self._lease = self._lost = None

    def release(self, used_until_ms: int) -> None:
        """Ends the lease; the next holder may start at ``used_until_ms``.

        A store that is away does not matter: the window ends by itself.
        """
        keeper = self._seat()
        with keeper.condition:
            self.closed = True
            keeper.wait_for(self)
            lease, self._lease = self._lease, None
            away = keeper.pause_s(self.store) > 0
            keeper.condition.notify_all()
        if lease is not None and self._lost is None and not away:
            with suppress(MintError), quiet:
                self.store.release(lease, used_until_ms=used_until_ms)

    def abandon(self, used_until_ms: int) -> None:
        """Has the keeper release the lease of a generator that is gone. Takes no lock, and does not ask the store."""
        if self._lease is not None and self._pid == os.getpid():
            current().abandoned.append((self, used_until_ms))

    def close(self) -> None:
        """Lets the lease run out, of whose use nothing is known here."""
        self.closed = True


# --- segments -----------------------------------------------------------------------------------------------------


def next_step(step: int, rate: float, target_s: float, least: int, most: int) -> int:
    """How many integers to reserve next, after ``step`` and at so many a second: enough for the target time.

    It grows at most eightfold and shrinks at most by half at a time, so that one burst or pause does not decide.
    """
    wanted = rate * target_s
    return round(min(max(wanted, step / 2, least), step * 8, most))


class Supply(Task):
    """The segments of a sequence: keeps a pool filled.

    ``pool`` is the extension's: ``offer(first, count, stride)``, ``has_next()``, ``drain()``.
    """

    def __init__(
        self, store: Store, namespace: str, pool: Any, *, min_step: int, max_step: int, target_ms: int
    ) -> None:
        super().__init__(store)
        self._namespace = namespace
        self._pool = pool
        self._least, self._most = min_step, max_step
        self._target_s = target_ms / 1000
        self._step = min_step
        self._began_s: float | None = None
        self._sizes: deque[int] = deque()
        """Of the segments that the pool was offered and has not used up, the current one first."""
        self._asked = False
        self._used_up: GenerationError | None = None
        self._told: list[Callable[[], None]] = []

    def advanced(self) -> None:
        """The next segment has become the current one: time to fetch another."""
        keeper = self._seat()
        now = time.monotonic()
        with keeper.condition:
            if self._began_s is not None and len(self._sizes) > 1:
                rate = self._sizes.popleft() / max(now - self._began_s, 1e-6)
                self._step = next_step(self._step, rate, self._target_s, self._least, self._most)
            self._began_s = now
            self._asked = True
        keeper.wake()

    def wait(self, max_wait_ms: int) -> None:
        """Waits until the pool has a next segment.

        :raises StoreError: as :meth:`Store.reserve`, where there is none after ``max_wait_ms``.
        :raises GenerationError: ``sequence.exhausted``, ``generator.closed``.
        """
        self._wait(self._has_next, max_wait_ms)

    def ask(self, want: int, told: Callable[[], None]) -> None:
        """Wants a segment, of at least ``want`` integers if the largest step allows, and does not wait.

        ``told`` is called, in the keeper's thread as a rule, once there is one or the store has refused: it must not
        block. :meth:`refusal` then says why.

        :raises GenerationError: ``sequence.exhausted``, ``generator.closed``.
        """
        keeper = self._seat()
        with keeper.condition:
            self._check_open()
            if self._has_next():
                told()
                return
            self._step = max(self._step, min(want, self._most))
            self._told.append(told)
            self.wanted = True
        keeper.wake()

    def refusal(self) -> MintError | None:
        """Why the last try failed, as an error of the caller's own; ``None`` if it did not."""
        keeper = self._seat()
        with keeper.condition:
            return None if self.failure is None else _renewed(self.failure, keeper.pause_s(self.store))

    def settled(self) -> None:
        told, self._told = self._told, []
        for tell in told:
            tell()

    def _has_next(self) -> bool:
        if self._pool.has_next():
            return True
        if self._used_up is not None:
            raise _renewed(self._used_up, 0.0)
        return False

    def due_s(self) -> float | None:
        wants = (self.wanted or self._asked) and self._used_up is None
        return 0.0 if wants and not self._pool.has_next() else None

    def work(self) -> Callable[[], None]:
        step = wanted = self._step
        while True:
            try:
                segment = self.store.reserve(self._namespace, step)
                break
            except FieldError:
                # A service may give less at a time than we would take.
                if step == 1:
                    raise
                step //= 2
        most = step if step < wanted else self._most
        return lambda: self._offer(segment, most)

    def _offer(self, segment: Segment, most: int) -> None:
        self._most, self._step = most, min(self._step, most)
        self._asked = False
        # Also while it closes: `close` waits for this, and gives it back.
        self._pool.offer(segment.first, len(segment), segment.stride)
        self._sizes.append(len(segment))

    def refused(self, error: MintError) -> None:
        if isinstance(error, GenerationError):
            self._used_up = error

    def reserve(self, count: int) -> Segment:
        """Reserves integers in a row beside the pool, in the caller's own thread.

        :raises StoreError: as the store's verbs.
        :raises GenerationError: ``sequence.exhausted``: fewer are left; they are given back.
        """
        self._seat()
        self._check_open()
        with quiet:
            segment = self.store.reserve(self._namespace, count)
        if len(segment) < count:
            with quiet:
                self.store.give_back(segment, segment.first)
            raise GenerationError(
                f"namespace {self._namespace!r} has {len(segment)} integers left, not {count}",
                code="sequence.exhausted",
            )
        return segment

    def reborn(self) -> None:
        self._pool.drain()
        self._told = []
        self._sizes.clear()
        self._began_s = None
        self._step = self._least

    def close(self) -> None:
        """Gives the unused tail back where it is still the last that was reserved.

        A store that is away does not matter: the tail is skipped.
        """
        keeper = self._seat()
        with keeper.condition:
            if self.closed:
                return
            self.closed = True
            keeper.wait_for(self)
            self.settled()
            rest = self._pool.drain()
            away = keeper.pause_s(self.store) > 0
            keeper.condition.notify_all()
        if away:
            return
        # From the end: what lies right before a tail that was taken back is a tail now.
        with suppress(MintError), quiet:
            for first, count, stride in reversed(rest):
                end = first + (count - 1) * stride
                if not self.store.give_back(Segment(self._namespace, first, end, stride), first):
                    return
