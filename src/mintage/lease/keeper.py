"""The keeper: one thread of this process that extends leases and fetches segments ahead of need.

A caller whose window has ended or whose buffer is empty waits for the keeper, at most ``max_wait_ms``. Only two kinds
of requests go to the store in the caller's own thread: those that give back, and rows of integers longer than a
segment. After a failure the keeper leaves a store alone for a while, longer each time and with jitter. So a store that
is away costs next to nothing, and the keeper finds it again by itself. A task that fails does not affect the others:
nothing that a store, a clock or a callback does ends the keeper.

State that threads share, and its locks:

- The table of keepers (:func:`current`) has no lock, as a forked child could inherit a locked one. A child finds no
  keeper of its own there and makes one.
- The state of tasks and of their keeper: under :attr:`Keeper.condition`. A task belongs to one generation of its
  process. Code that uses a task attaches it first (:meth:`Task.attach`): in a later generation that empties the task,
  and then writes the generation. A process that was restored from a snapshot empties all tasks at once
  (:meth:`Keeper.start_over`). A thread whose request to the store is older than that drops the answer.
- Every wait has a deadline: a thread that cannot acquire the condition gets an error (:meth:`Keeper.hold`). Threads
  hold it for moments, and never while they wait for a store. An exception, wherever it is raised, releases it.
- Requests to the store are made without the condition, for each task by one thread at a time: the keeper's, or the one
  that closes the task, after it has waited for the keeper (:meth:`Keeper.wait_for`).
- :attr:`Keeper.abandoned` is a deque, whose single operations need no lock.
"""

from __future__ import annotations

import atexit
import contextvars
import math
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Never, Self, TypeVar
from weakref import ref

from mintage._core import Condition, Held, fork_generation, generation, monotonic_s, start_generation
from mintage.errors import GenerationError, MintError, StoreError, TransientError
from mintage.process import jitter
from mintage.process.forks import fork_lock, give_way
from mintage.process.restore import RestoreDetector, Verdict
from mintage.telemetry import call_within, current_context

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mintage.store import Store

    T = TypeVar("T")

#: After a failure the keeper leaves a store alone: for the first time, then twice as long each time, up to the second.
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 1.0
#: The time a process has to give its leases and segments back when it ends.
SHUTDOWN_TIMEOUT_S: Final = 2.0
#: The interval of checks for a restore from a snapshot, while a task has a lease or segments.
RESTORE_CHECK_INTERVAL_S: Final = 1.0
#: A task may run this early. The keeper looks at tasks at multiples of it, so it wakes once for many.
EARLY_S: Final = 0.25
#: Threads hold the condition for moments. If one cannot get it for this long, another is stuck with it.
LOCK_S: Final = 5.0
_LONGEST_ASKED_S: Final = 10.0
_IDLE_S: Final = 3600.0
_PRUNED_AT: Final = 64


def unavailable(text: str) -> StoreError:
    """Return the error ``store.unavailable`` with the time after which the keeper asks again at the latest."""
    return StoreError(text, code="store.unavailable", retry_after_ms=round(LONGEST_PAUSE_S * 1000))


def _stuck() -> Never:
    raise unavailable(
        f"a thread of this process has been stuck for {LOCK_S:.0f} s in a clock or a callback that mintage called, or "
        "runs no longer: have these return at once"
    )


class Generation(NamedTuple):
    """The generation of this process in which an object was created: in a later one it belongs to another process."""

    number: int
    """The number of the generation. It grows at each fork and restore of this process and of its ancestors."""
    fork: int
    """The number with which the process began. It grows at forks only."""

    @classmethod
    def current(cls) -> Self:
        """Return the current generation of this process."""
        number = generation()
        return cls(number, fork_generation())

    def is_current(self) -> bool:
        """Return True if there was no fork or restore since."""
        return self.number == generation()

    def has_forked(self) -> bool:
        """Return True in a child that was forked since then."""
        return self.fork != fork_generation()


class Task(ABC):
    """A lease or the segments of a sequence. Attributes change under the keeper's condition only."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.failure: MintError | None = None
        """Why the last attempt failed; ``None`` once one has succeeded."""
        self.wanted = False
        """True if a caller waits."""
        self.closed = False
        self.generation = Generation.current()
        """The generation that its lease or its segments belong to."""
        self.resets = 0
        """The number of resets so far. The answer to a request from before a reset is dropped."""
        self.keeper: Keeper | None = None
        """The keeper that it is attached to."""
        self.context: Context | None = None
        """The context of the last caller's span."""

    @abstractmethod
    def due_s(self) -> float | None:
        """Return in how many seconds there is work; ``None`` while there is none."""

    @abstractmethod
    def plan(self) -> Callable[[], Callable[[], None]]:
        """Return the request to the store, called without the condition; it returns the change to make under it."""

    @abstractmethod
    def refused(self, error: MintError) -> None:
        """Record that the store refused the request."""

    def after_attempt(self) -> None:  # noqa: B027 - most tasks notify nobody
        """Notify those who wait, after each attempt, failed or not."""

    @abstractmethod
    def has_resources(self) -> bool:
        """Return True if it has a lease or segments, which a clone of this process would have as well."""

    @abstractmethod
    def begin_release(self) -> Callable[[], None]:
        """Detach the lease or the segments; return the call that gives them back, to be made without the condition."""

    @abstractmethod
    def reset(self) -> None:
        """Forget the lease or the segments: they belong to an earlier generation, and so to another process."""

    def end(self) -> None:  # noqa: B027 - most tasks have nothing to stop
        """Stop minting, as the process ends."""

    def attach(self) -> Keeper:
        """Attach this task to the keeper of this process, and return that."""
        keeper = current()
        with keeper.hold():
            now = Generation.current()
            if self.generation.number != now.number:
                self.start_over()
            keeper.add(self)
            self.keeper, self.generation = keeper, now
        return keeper

    def start_over(self) -> None:
        """Forget the lease or the segments, under the condition.

        A thread that waits goes on waiting, unless it stayed behind in a parent of this process. The caller writes the
        generation afterwards.
        """
        self.resets += 1
        self.failure = None
        self.reset()
        if self.generation.has_forked():
            self.wanted = False

    def _wait(self, ready: Callable[[], T | None], max_wait_ms: int, patience_ms: int = 0) -> T:
        """Wait until ``ready`` returns a value, and return that; Ctrl-C ends the wait.

        A store that has not answered yet is waited for ``patience_ms`` if that is longer.

        :raises MintError: why it is not ready after ``max_wait_ms``, or cannot be.
        """
        deadline = monotonic_s() + max_wait_ms / 1000
        patience_s = max(0, patience_ms - max_wait_ms) / 1000
        while True:
            here = Generation.current()
            keeper = self.attach()
            with keeper.hold():
                if keeper.inline or max(keeper.pause_s(self.store), keeper.pause_s(self)) <= 0:
                    self.failure = None
                # A clock of the user's own, or a signal's handler, may fork this process: the child starts over.
                while here.is_current():
                    try:
                        found = ready()
                    except MintError:
                        if not here.is_current():
                            break
                        raise
                    if not here.is_current():
                        break
                    if found is not None:
                        return found
                    self._await(keeper, deadline, patience_s, max_wait_ms)

    def _await(self, keeper: Keeper, deadline: float, patience_s: float, max_wait_ms: int) -> None:
        """Wait, under the condition, for the next attempt of the keeper."""
        self._check_open()
        own = deadline - monotonic_s()
        left, failure = own + patience_s, self.failure
        if failure is not None and (left <= 0 or not _is_transient(failure, own)):
            raise as_fresh_error(failure, keeper.pause_s(self.store))
        if keeper.is_ending:
            raise GenerationError(
                "this process ends, and its leases were released: mint before that, or start another",
                code="generator.closed",
            )
        if keeper.is_own_thread():
            raise unavailable(
                f"{self.store.url}: a log handler, a callback or a __del__ asked for an ID in the thread that asks the "
                "store, which cannot wait for itself: mint in another thread"
            )
        self.wanted = True
        keeper.announce(self)
        if left <= 0 and not keeper.inline:
            keeper.wake()
            raise unavailable(
                f"{self.store.url}: no answer in {max_wait_ms} ms: try again, or allow a longer max_wait_ms"
            )
        keeper.attend(left)

    def _check_open(self) -> None:
        if self.closed:
            raise GenerationError("the generator is closed; create a new one", code="generator.closed")


def _is_transient(failure: MintError, within_s: float) -> bool:
    """Return True if another attempt within this number of seconds may succeed."""
    if failure.code == "store.unavailable":
        return True
    wait_ms = failure.retry_after_ms if isinstance(failure, TransientError) else None
    return wait_ms is not None and wait_ms <= within_s * 1000


def as_fresh_error(failure: MintError, pause_s: float) -> MintError:
    """Return a copy of the failure for one caller, with the time that is left of the keeper's pause."""
    # Copy as copy.copy does: a process that can no longer read Python's files cannot import it.
    error: MintError = type(failure).__new__(type(failure), *failure.args)
    error.__dict__.update(failure.__dict__)
    if isinstance(error, TransientError) and error.code == "store.unavailable":
        error.retry_after_ms = max(1, round(pause_s * 1000))
    error.__cause__ = failure.__cause__
    return error


def _as_failure(store: Store, error: BaseException) -> MintError:
    """Return the exception itself if callers may see it, or a :class:`StoreError` in its place."""
    if isinstance(error, MintError):
        return error
    try:
        said = f"{store.url}: {error!r}"
    except Exception:  # noqa: BLE001 - either repr may fail
        said = f"{type(store).__name__}: {type(error).__name__}"
    failure = StoreError(said, code="store.refused")
    failure.__cause__ = error
    return failure


# It has 21 attributes, as all of them change under one condition: a part of its own would share that lock.
class Keeper:
    """The thread that extends the leases and fetches the segments of one process.

    With ``inline`` there is no thread: the caller that waits does the work, for tests and simulations that want every
    step in a known order.
    """

    def __init__(self, *, inline: bool = False) -> None:
        self.inline = inline
        self._generation = Generation.current()
        lock = threading.RLock()
        self.condition = Condition(lock, threading.Lock)
        """Callers wait on it for the keeper. Whatever tasks and the keeper share changes under its lock."""
        self._work = Condition(lock, threading.Lock)
        """The keeper waits on it for callers."""
        # Use no WeakSet: its callbacks may change it in any thread during an iteration.
        self._tasks: dict[ref[Task], float] = {}
        """When the queue has each task, or infinity if it has not. In turn: the task that was worked on comes last."""
        self._queue: list[tuple[float, int, ref[Task]]] = []
        """A heap: when to look at a task, by the monotonic clock. An entry is void unless :attr:`_tasks` has its time.
        The turn beside it lets a task that always has work keep no other waiting."""
        self._turns = count()
        self._prune_at = _PRUNED_AT
        """The number of tasks at which to remove those that are gone."""
        self._pauses: dict[int, tuple[ref[Store | Task], float, float]] = {}
        """By identity, as a store of the user's own may not be hashable: the last pause, and when it ends."""
        self._announced: deque[ref[Task]] = deque()
        """Tasks that somebody wants done now, and new ones. Callers put them in, the keeper takes them out."""
        self.abandoned: deque[Callable[[], None]] = deque()
        """Releases of leases whose generators are gone without being closed, and whatever else is to be given back
        without anybody waiting. Added to without a lock, from any thread."""
        self._thread: threading.Thread | None = None
        self._busy: Task | None = None
        self._worker: threading.Thread | None = None
        """Which thread is at work on it, or was last."""
        self._backs: list[Callable[[], None]] = []
        """Calls that give back the leases of generators which were closed while the process ends."""
        self.is_ending = False
        """True if the process ends: nothing is leased or reserved any more, and all is given back."""
        self._closing = False
        self.detector = RestoreDetector()
        """Only the keeper's thread uses it."""
        self._check_s = 0.0
        self._is_holding = False
        """True if a task held anything at the last check, or came to hold it since."""
        self._check_failed = False
        """True if the last check for a restore failed, which is logged once. Only the keeper's thread uses it."""

    def hold(self) -> Held:
        """Acquire the condition, for a ``with`` block or as long as the result exists.

        :raises StoreError: ``store.unavailable``: it is not free within :data:`LOCK_S`.
        """
        # Use no variable: the traceback of an exception would hold it.
        return self.condition.hold(LOCK_S) or _stuck()

    def wait(self, condition: Condition, timeout_s: float) -> None:
        """Wait, under the condition, which another thread may have meanwhile.

        :raises StoreError: as :meth:`hold`.
        """
        if not condition.wait(timeout_s, LOCK_S):
            _stuck()

    def add(self, task: Task) -> None:
        """Add a task, for as long as another object refers to it."""
        with self.hold():
            if ref(task) in self._tasks:
                return
            if len(self._tasks) >= self._prune_at:
                self._prune_at = max(_PRUNED_AT, 2 * len(self._kept()))
            if not self.inline:
                self._announced.append(ref(task))
            self._tasks[ref(task)] = math.inf

    def wake(self) -> None:
        """Wake the keeper, which starts at the first call.

        :raises StoreError: ``store.unavailable``: the system has no thread for it.
        """
        with self.hold():
            if self.inline or self._closing:
                return
            if self._thread is None or not self._thread.is_alive():
                # Keep it before it starts, as an exception may come between the two. A thread that is not kept ends.
                self._thread = threading.Thread(target=self._run, name="mintage-keeper", daemon=True)
                try:
                    # In an empty context: a thread of CPython 3.14 can begin with that of its starter.
                    contextvars.Context().run(self._thread.start)
                except RuntimeError as error:
                    raise unavailable(f"no thread can be started to ask the store: {error}") from error
            self._work.notify_all()

    def attend(self, timeout_s: float) -> None:
        """Wait, under the condition, until the keeper has done something."""
        if self.inline:
            if self.step() != 0:
                raise RuntimeError("an inline keeper has nothing to do, yet somebody waits for it")
            return
        self.wake()
        # Wake now and then, to handle signals.
        self.wait(self.condition, min(timeout_s, 0.5))

    def pause_s(self, what: Store | Task) -> float:
        """Return for how many more seconds the keeper leaves a store that is away, or a refused task, alone."""
        return max(0.0, self._pause_of(what)[1] - monotonic_s())

    def _pause_of(self, what: Store | Task) -> tuple[float, float]:
        """Return the length and the end of the last pause, in seconds; zeros if there is none."""
        of, last, until = self._pauses.get(id(what), (None, 0.0, 0.0))
        return (last, until) if of is not None and of() is what else (0.0, 0.0)

    def announce(self, task: Task) -> None:
        """Queue a task to be done now, under the condition; :meth:`wake` wakes the keeper for it."""
        task.context = current_context()
        if not self.inline:
            self._announced.append(ref(task))

    def is_own_thread(self) -> bool:
        """Return True in the keeper's own thread, which must never wait for the keeper."""
        return self._thread is not None and self._thread is threading.current_thread()

    def _run(self) -> None:
        while not self._generation.has_forked():
            try:
                with self.hold():
                    if self._closing or self._thread not in {None, threading.current_thread()}:
                        return
                    task = self._pick()
                    check_s = self._check_s - monotonic_s()
                    if task is None and not self.abandoned and (check_s > 0 or not self._is_holding):
                        is_idle = self.is_ending or not self._queue
                        delay = _IDLE_S if is_idle else self._queue[0][0] - monotonic_s()
                        self.wait(self._work, max(0.0, min(delay, check_s) if self._is_holding else delay))
                        continue
                # Check before the first request, which may have been due long ago.
                if check_s <= 0 or not self._is_holding:
                    self._try_to_check()
                self._let_go()
                if task is not None:
                    self._do(task)
            except BaseException as error:  # noqa: BLE001 - one task must not end the keeper of all
                if self._closing:
                    return
                # It may have failed between taking a task from the queue and putting it back.
                self._announced.extend(self._tasks.copy())
                say("the keeper failed, and goes on", error)
                time.sleep(LONGEST_PAUSE_S)
        # A greenlet continues in a forked child. It keeps nothing there, and must not end: threading does not know it.
        while True:
            time.sleep(_IDLE_S)

    def _pick(self) -> Task | None:
        """Return a task to be done now, under the condition."""
        if self.is_ending:
            return None
        while self._announced:
            task = self._announced.popleft()()
            if task is not None:
                self._is_holding = self._is_holding or task.has_resources()
                if self._is_due(task):
                    return task
        now = monotonic_s()
        while self._queue and self._queue[0][0] <= now:
            at_s, _, kept = heappop(self._queue)
            if self._tasks.get(kept) == at_s:
                self._tasks[kept] = math.inf
                task = kept()
                if task is not None and self._is_due(task):
                    return task
        return None

    def _put(self, task: Task, at_s: float) -> None:
        """Look at a task again at a time of the monotonic clock, or before it."""
        if at_s < self._tasks.get(ref(task), math.inf):
            self._tasks[ref(task)] = at_s
            heappush(self._queue, (at_s, next(self._turns), ref(task)))

    def _is_due(self, task: Task) -> bool:
        """Return True if the task is to be done now; else queue it for the time when it may be."""
        due_s, pause_s = self._due_s(task), max(self.pause_s(task.store), self.pause_s(task))
        if due_s is None:
            return False
        if due_s <= EARLY_S and pause_s <= 0:
            return True
        now = monotonic_s()
        at_s = EARLY_S * math.ceil((now + due_s) / EARLY_S - 1)
        self._put(task, max(at_s, now + pause_s))
        return False

    def _due_s(self, task: Task) -> float | None:
        try:
            # A task of an earlier generation waits until a caller attaches it again.
            return None if task.closed or not task.generation.is_current() else task.due_s()
        except BaseException:  # noqa: BLE001 - a clock of the user's own that fails here fails for its caller too
            return LONGEST_PAUSE_S

    def _kept(self) -> list[Task]:
        """Return all tasks that another object still refers to."""
        alive = []
        for kept in list(self._tasks):
            task = kept()
            if task is None:
                self._tasks.pop(kept, None)
            else:
                alive.append(task)
        return alive

    def _try_to_check(self) -> None:
        try:
            self.check_restored()
            self._check_failed = False
        except BaseException as error:  # noqa: BLE001 - a keeper that cannot check for restores still works
            if not self._check_failed:
                say("the check for a restore from a snapshot failed", error)
            self._check_failed = True

    def check_restored(self) -> None:
        """Start over if this process was restored from a snapshot since the last check, or may have been."""
        # The next check comes later, even if this one fails.
        self._check_s = monotonic_s() + RESTORE_CHECK_INTERVAL_S
        # Release the condition first: the check asks the kernel, and no caller may wait for that.
        verdict = self.detector.check()
        with self.hold():
            self._is_holding = any(task.has_resources() for task in self._kept())
            if verdict is Verdict.SAME or not self._is_holding:
                return
            is_sure = verdict is Verdict.RESTORED
            self.start_over(is_sure=is_sure)
        was = "was restored from a snapshot" if is_sure else "may have been restored from a snapshot, as a clock jumped"
        say(f"this process {was}: it abandons its leases and segments, and leases and reserves anew")

    def start_over(self, *, is_sure: bool = True) -> None:
        """Forget all leases and segments, which belong to another process that was restored from the same snapshot.

        With ``is_sure`` the process moves to a later generation: generators with a given number refuse to mint then.
        """
        with self.hold():
            if is_sure:
                start_generation()
            now = Generation.current()
            for task in self._kept():
                task.start_over()
                task.keeper, task.generation = self, now
            self.abandoned.clear()
            self._pauses.clear()
            self.condition.notify_all()

    def release_all(self) -> None:
        """Give everything back, within two seconds. A later ID leases anew.

        :raises StoreError: ``store.unavailable``: the condition cannot be had.
        """
        deadline = monotonic_s() + SHUTDOWN_TIMEOUT_S
        with self.hold():
            # Do not ask a store again that has not answered by then.
            stuck = None if self.wait_for(None, deadline) else self._busy and self._busy.store
            tasks, backs, self._backs = self._kept(), self._backs, []
            for task in tasks:
                away = task.store is stuck or self.pause_s(task.store) > 0
                give_back = task.begin_release()
                task.resets += 1
                if not away:
                    backs.append(give_back)
        self.detector.close()
        self._give_back(backs, deadline)
        for task in tasks:
            if task.store is not stuck:
                with suppress(Exception):
                    task.store.close()

    def step(self) -> float:
        """Do the first task that is due, inline. Return 0, or in how many seconds the next one will be."""
        self._let_go()
        delay = _IDLE_S
        soonest: Task | None = None
        with self.hold():
            for task in self._kept():
                # Ignore pauses: the caller of an inline keeper decides when to ask again.
                due_s = self._due_s(task)
                if due_s is not None and max(due_s, 0.0) < delay:
                    delay, soonest = max(due_s, 0.0), task
        if soonest is not None and delay == 0:
            self._do(soonest)
        return delay

    def _do(self, task: Task) -> None:
        """Send the request of a task to the store, and apply the answer."""
        said: list[tuple[str, BaseException | None]] = []
        with self.hold():
            self._busy, self._worker, resets = task, threading.current_thread(), task.resets
            context, task.context = task.context, None
            self._tasks[ref(task)] = self._tasks.pop(ref(task), math.inf)
        error: BaseException | None = None
        try:
            give_way()
            with fork_lock():
                # A fork waits from here on. A greenlet that waited until now may be in a child.
                if self._generation.has_forked():
                    return
                with self.hold():
                    ask = task.plan()
                take = call_within(context, ask)
        except BaseException as caught:  # noqa: BLE001 - a fault in a store must not end the keeper
            error = caught
        with self.hold():
            self._busy = None
            try:
                if task.resets == resets and task.generation.is_current():
                    if error is None:
                        try:
                            take()
                        except BaseException as caught:  # noqa: BLE001 - nor a fault in its answer
                            error = caught
                    said += self._note(task, error)
                task.after_attempt()
            except BaseException as caught:  # noqa: BLE001 - nor a fault in a callback of the task
                said.append(("a callback about a segment failed", caught))
            finally:
                if not self.inline:
                    self._is_holding = self._is_holding or task.has_resources()
                    if self._is_due(task):
                        self._put(task, monotonic_s())
                self.condition.notify_all()
        # Log without the condition: a log handler may do anything.
        for what, why in said:
            say(what, why)
        if self.inline and error is not None and not isinstance(error, Exception):
            raise error

    def _note(self, task: Task, error: BaseException | None) -> list[tuple[str, BaseException | None]]:
        """Record how an attempt ended, and return what to log of it."""
        task.wanted = False
        if error is None:
            task.failure = None
            self._pauses.pop(id(task.store), None)
            self._pauses.pop(id(task), None)
            return []
        task.failure = failure = _as_failure(task.store, error)
        # A store that is full says how long to leave it alone, as attempts take what it has.
        asked_ms = failure.retry_after_ms if isinstance(failure, StoreError) else None
        is_first = self._pause(task.store if failure.code == "store.unavailable" else task, (asked_ms or 0) / 1000)
        task.refused(failure)
        if failure is not error:
            return [("a store failed in an unknown way", error)]
        return [(f"{failure} ({failure.code}); trying again", None)] if is_first else []

    def _pause(self, what: Store | Task, asked_s: float = 0.0) -> bool:
        """Leave a store or a task alone for a while; return True if it was not already."""
        last, _ = self._pause_of(what)
        longest_s = max(LONGEST_PAUSE_S, min(asked_s, _LONGEST_ASKED_S))
        pause = min(longest_s, max(longest_s / 4 if asked_s > LONGEST_PAUSE_S else FIRST_PAUSE_S, 2 * last))
        for gone in [key for key, (of, *_) in self._pauses.items() if of() is None]:
            del self._pauses[gone]
        # Add jitter, so that the processes of a fleet do not return all at once.
        self._pauses[id(what)] = (ref(what), pause, monotonic_s() + pause * jitter.uniform(0.5, 1.0))
        return last == 0.0

    def _let_go(self) -> None:
        """Release the leases of generators that were collected."""
        while self.abandoned and not self._generation.has_forked():
            give_back = self.abandoned.popleft()
            try:
                give_back()
            except BaseException as error:
                if self.inline and not isinstance(error, Exception):
                    raise
                say("a lease could not be released", error)

    def wait_for(self, task: Task | None, deadline: float | None = None) -> bool:
        """Wait, under the condition, until no other thread works on the task, or on any if it is None.

        Returns False if one still does at the deadline, in seconds of the monotonic clock: by default after two.
        """
        if deadline is None:
            deadline = monotonic_s() + SHUTDOWN_TIMEOUT_S
        # Except if this thread works on the task itself, and a user's clock, read for that, asks for an ID.
        while (
            self._busy is not None
            and (task is None or task is self._busy)
            and self._worker is not threading.current_thread()
        ):
            left_s = deadline - monotonic_s()
            if left_s <= 0:
                return False
            self.wait(self.condition, left_s)
        return True

    def give_back(self, back: Callable[[], None]) -> None:
        """Give a lease back by this call; while the process ends, leave the call to :meth:`close`."""
        if self.is_ending:
            self._backs.append(back)
            return
        with suppress(Exception), fork_lock():
            back()

    def _give_back(self, backs: list[Callable[[], None]], deadline: float) -> None:
        """Give leases and segments back by these calls, and wait for them until the deadline at most.

        The keeper's thread does it where there is one: a store that does not answer holds up nobody else, and no other
        thread can be started while the interpreter ends.
        """
        thread = self._thread
        if thread is None or not thread.is_alive() or self.is_own_thread():
            for back in backs:
                if monotonic_s() < deadline:
                    with suppress(Exception), fork_lock():
                        back()
            return
        left = len(backs)

        def give_back(back: Callable[[], None]) -> None:
            nonlocal left
            if monotonic_s() < deadline:
                with suppress(Exception), fork_lock():
                    back()
            with self.hold():
                left -= 1
                self.condition.notify_all()

        self.abandoned.extend(partial(give_back, back) for back in backs)
        with self.hold():
            self._work.notify_all()
            while left and (left_s := deadline - monotonic_s()) > 0:
                self.wait(self.condition, left_s)

    def close(self) -> None:
        """Give everything back, within two seconds, and end the thread. Nothing is leased or reserved any more."""
        deadline = monotonic_s() + SHUTDOWN_TIMEOUT_S
        with self.hold():
            self.is_ending = True
            tasks = self._kept()
        # A closed generator refuses at once, so that no daemon thread is in the middle of asking when Python ends.
        for task in tasks:
            with suppress(Exception):
                task.end()
        self.release_all()
        with self.hold():
            self._closing = True
            self._work.notify_all()
            # Waiting callers get their error now, as Python waits for their calls to end.
            self.condition.notify_all()
            thread = self._thread
        # CPython before 3.14 aborts where it ends a thread that waits in the extension.
        if thread is not None and thread.is_alive() and not self.is_own_thread():
            thread.join(max(0.0, deadline - monotonic_s()))


def say(what: str, error: BaseException | None = None) -> None:
    """Log a warning, or an error with its traceback. A log handler that fails stops nothing."""
    with suppress(Exception):
        import logging  # only when it is needed: an import breaks while another thread forks

        level = logging.WARNING if error is None else logging.ERROR
        logging.getLogger("mintage").log(level, "mintage: %s", what, exc_info=error)


_keepers: dict[int, Keeper] = {}
"""By the fork generation of their process."""


def current() -> Keeper:
    """Return this process's keeper."""
    here = fork_generation()
    keeper = _keepers.get(here)
    if keeper is None:
        made = Keeper()
        # If several threads come at once, the first one decides.
        keeper = _keepers.setdefault(here, made)
        if keeper is made:
            _install()
        for parents in list(_keepers):
            if parents != here:
                _keepers.pop(parents, None)
    return keeper


def use(keeper: Keeper) -> None:
    """Make ``keeper`` this process's own, for tests."""
    _keepers[fork_generation()] = keeper


@cache
def _install_at_exit() -> None:
    atexit.register(_shut_down)


def _install() -> None:
    """Register the shutdown for each way in which this process may end in good order."""
    _install_at_exit()
    # A child of multiprocessing forgets its parent's handlers, and ends without those of atexit.
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        # Run after the handlers that flush queues and end a pool's workers.
        util.Finalize(None, _shut_down, exitpriority=-1000)
    # A worker of Celery's prefork pool runs neither.
    if (signals := sys.modules.get("celery.signals")) is not None:
        signals.worker_process_shutdown.connect(_shut_down, weak=False)


def _shut_down(**_: object) -> None:
    keeper = _keepers.get(fork_generation())
    if keeper is not None:
        with suppress(StoreError):
            keeper.close()
