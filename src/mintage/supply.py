"""The segments of a sequence: how its pool is kept filled. The keeper does the work.

All that a supply holds changes under the keeper's condition, as :mod:`mintage.keeper` says. Threads that mint take from
the pool without it; only offering and draining is the supply's, under the condition.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mintage import lease as rules
from mintage._core import fork_generation as birth
from mintage._core import generation as epoch
from mintage.errors import FieldError, GenerationError, MintError, StoreError
from mintage.forks import quiet
from mintage.keeper import Task, renewed, say
from mintage.lease import GAP, LATEST_MS, MAX_COUNT, MAX_INTEGER, MAX_STRIDE, Segment
from mintage.store import whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from mintage.store import Store

    #: Integers in a row: the first, how many, and how far apart.
    Part: TypeAlias = tuple[int, int, int]

__all__ = ["Supply", "above", "next_step"]


def above(floor: int, first: int, count: int, stride: int) -> Part | None:
    """Return what of integers in a row is not below a floor; ``None`` where nothing is."""
    below = min(count, max(0, -((first - floor) // stride)))
    return (first + below * stride, count - below, stride) if below < count else None


def next_step(step: int, rate: float, target_s: float, least: int, most: int) -> int:
    """Return how many integers to reserve next, after ``step`` and at so many a second: enough for the target time.

    It grows at most eightfold and shrinks at most by half at a time, so that one burst or pause does not decide.
    """
    wanted = rate * target_s
    return round(min(max(wanted, step / 2, least), step * 8, most))


class Supply(Task):
    """The segments of a sequence: keeps a pool filled.

    ``pool`` is the extension's: ``offer(first, count, stride)``, ``has_next()``, ``level()``, ``drain()``.
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
        self._waiting: deque[Part] = deque()
        """What goes to the pool when that has room again."""
        self._recent: deque[tuple[int, int]] = deque(maxlen=4)
        """Of the last segments their ends and serials: more of them than are held at once."""
        self._floor = 0
        """The highest floor of the namespace that a segment told of."""
        self._highest = -1
        """The last integer that was granted and not given back, or -1: the store grants none up to it any more."""
        self._asked = False
        self._needed = 0
        """How many integers a caller needs to be held at once."""
        self._used_up: GenerationError | None = None
        self._told: list[Callable[[], None]] = []

    def seat(self) -> None:
        """Make sure that what the pool holds belongs to this epoch."""
        self._seat()

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
            self._fill()
            keeper.announce(self)
        # Without a thread to fetch the next segment, the present one can be used nevertheless.
        with suppress(StoreError):
            keeper.wake()

    def wait(self, max_wait_ms: int) -> None:
        """Wait until the pool has a next segment.

        :raises StoreError: as :meth:`Store.reserve`, where there is none after ``max_wait_ms``.
        :raises GenerationError: ``sequence.exhausted``, ``generator.closed``.
        """
        self._wait(lambda: self._has_next() or None, max_wait_ms)

    def ask(self, want: int, told: Callable[[], None], *, in_row: bool = False) -> None:
        """Want ``want`` integers to be held, and do not wait; ``in_row``: want a next segment, of as many if it may be.

        ``told`` is called, in the keeper's thread as a rule, after the next answer of the store: it must not block. Ask
        again where that was not enough. :meth:`refusal` says why, if the store has refused.

        :raises GenerationError: ``sequence.exhausted``, ``generator.closed``.
        """
        keeper = self._seat()
        with keeper.condition:
            self._check_open()
            if self._pool.has_next() if in_row else self._level() >= want:
                told()
                return
            if self._used_up is not None:
                raise renewed(self._used_up, 0.0)
            self._step = max(self._step, min(want, self._most))
            if not in_row:
                self._needed = max(self._needed, want)
            self._told.append(told)
            self.wanted = True
            keeper.announce(self)
        keeper.wake()

    def held(self) -> int:
        """Return how many integers can be taken without the store."""
        keeper = self._seat()
        with keeper.condition:
            return self._level()

    def _level(self) -> int:
        level: int = self._pool.level()[1]
        return level + sum(count for _, count, _ in self._waiting)

    def refusal(self) -> MintError | None:
        """Return why the last try failed, as an error of the caller's own; ``None`` if it did not."""
        keeper = self._seat()
        with keeper.condition:
            return None if self.failure is None else renewed(self.failure, keeper.pause_s(self.store))

    def settled(self) -> None:
        self._needed = 0
        told, self._told = self._told, []
        failed: BaseException | None = None
        for tell in told:
            try:
                tell()
            except BaseException as error:  # noqa: BLE001 - the others are told all the same
                failed = error
        if failed is not None:
            raise failed

    def _has_next(self) -> bool:
        if self._pool.has_next():
            return True
        if self._used_up is not None:
            raise renewed(self._used_up, 0.0)
        return False

    def due_s(self) -> float | None:
        wants = (self.wanted or self._asked) and self._used_up is None
        return 0.0 if wants and (not self._pool.has_next() or self._level() < self._needed) else None

    def plan(self) -> Callable[[], Callable[[], None]]:
        wanted, most = self._step, self._most

        def reserve() -> Callable[[], None]:
            step = wanted
            while True:
                try:
                    segment = self._reserve(step)
                    break
                except FieldError:
                    # A service may give less at a time than we would take.
                    if step == 1:
                        raise
                    step //= 2
            return lambda: self._offer(segment, step if step < wanted else most)

        return reserve

    def _reserve(self, count: int) -> Segment:
        """Reserve at most ``count`` integers, all above those of the segments that this process already has.

        A store that grants lower ones was replaced by an older copy, or emptied, and its identity did not change. That
        is what a server does that took over: integers are skipped for whatever else it may have forgotten.

        :raises StoreError: ``store.refused``: the floor could not be raised.
        """
        highest = self._highest
        segment = self._checked(self.store.reserve(self._namespace, count), count)
        if segment.first > highest or not self.store.is_ascending:
            return segment
        floor = min(highest + 1 + GAP * max(count, self._step) * segment.stride, MAX_INTEGER)
        went_back = (
            f"{self.store.url}: namespace {self._namespace!r} went back: the store granted {segment.first} after "
            f"{highest}, so it was emptied or an older copy took its place"
        )
        try:
            self.store.raise_floor(self._namespace, floor)
        except MintError as error:
            raise StoreError(
                f"{went_back}; its floor could not be raised ({error}): run mintage namespaces raise-floor "
                f"{self._namespace} {floor}",
                code="store.refused",
            ) from error
        say(f"{went_back}; it goes on at {floor}. Check what else the store has forgotten")
        return self._checked(self.store.reserve(self._namespace, count), count)

    def _checked(self, segment: Segment, count: int) -> Segment:
        """Return what the store answered, if it can be: at most ``count`` integers of the namespace.

        :raises StoreError: ``store.refused``.
        """
        if not (
            isinstance(segment, Segment)
            and all(type(number) is int for number in (segment.first, segment.last, segment.stride))
            and segment.namespace == self._namespace
            and 0 <= segment.first <= segment.last <= MAX_INTEGER
            and 1 <= segment.stride <= MAX_STRIDE
            and (segment.last - segment.first) % segment.stride == 0
            and (segment.last - segment.first) // segment.stride < count
            and type(segment.floor) is int
            and 0 <= segment.floor <= MAX_INTEGER
            and type(segment.serial) is int
            and 0 <= segment.serial <= LATEST_MS
        ):
            raise StoreError(
                f"{self.store.url}: asked for {count} integers of {self._namespace!r}, it answered {segment!r:.200}, "
                "which cannot be",
                code="store.refused",
            )
        return segment

    def _offer(self, segment: Segment, most: int) -> None:
        self._most, self._step = most, min(self._step, most)
        self._asked = False
        self._highest = segment.last
        self._recent.append((segment.last, segment.serial))
        parts: list[Part] = [(segment.first, len(segment), segment.stride)]
        if segment.floor > self._floor:
            # A thread that takes meanwhile finds nothing, and waits for the condition.
            self._floor, self._began_s = segment.floor, None
            parts = [part for part in (above(self._floor, *each) for each in [*self._drain(), *parts]) if part]
        # Also while it closes: `close` waits for this, and gives it back.
        self._waiting.extend(parts)
        self._sizes.extend(count for _, count, _ in parts)
        self._fill()

    def _fill(self) -> None:
        """Put what waits into the pool, as far as there is room."""
        while self._waiting and not self._pool.has_next():
            self._pool.offer(*self._waiting.popleft())

    def _drain(self) -> list[Part]:
        """Take back what the pool and this hold, in order."""
        rest = [*self._pool.drain(), *self._waiting]
        self._waiting.clear()
        self._sizes.clear()
        return rest

    def refused(self, error: MintError) -> None:
        if isinstance(error, GenerationError):
            self._used_up = error

    def reserve(self, count: int) -> Segment:
        """Reserve integers in a row beside the pool, in the caller's own thread.

        :raises StoreError: as the store's verbs.
        :raises GenerationError: ``sequence.exhausted``: fewer are left; they are given back.
        """
        while True:
            self._seat()
            self._check_open()
            life = self.life
            with quiet():
                segment = self._reserve(count)
                # Else another copy of this process may have been answered as well.
                if self.life == life and self.epoch == epoch():
                    return whole(self.store, segment, count)

    def reserve_all(self, count: int) -> list[range]:
        """Reserve integers in ranges as large as the store gives, all of one size but the last.

        :param count: 1 or more, also above 2^31 - 1.
        :raises MintError: as :meth:`reserve`. Nothing was reserved then, unless others reserve at the same time, or a
            service does not let its namespaces be listed.
        """
        ranges = list[range]()
        step = MAX_COUNT
        while count:
            want = min(count, step)
            if want < count and not ranges:
                self._check_left(count)
            try:
                ranges.append(self.reserve(want).as_range())
            except FieldError:
                # A service may give less at a time.
                if ranges or want == 1:
                    raise
                step = want // 2
            else:
                count -= want
        return ranges

    def _check_left(self, count: int) -> None:
        """Check that a namespace has so many integers left: of several reservations, only the last can be given back.

        :raises GenerationError: ``sequence.exhausted``.
        """
        try:
            record = next((each for each in self.store.list_namespaces() if each.name == self._namespace), None)
        except MintError:
            return
        left = len(rules.reserve(record, count)[1]) if record else count
        if left < count:
            message = f"namespace {self._namespace!r} has {left} integers left, not {count}"
            raise GenerationError(message, code="sequence.exhausted")

    def holds(self) -> bool:
        return bool(self._sizes)

    def rest(self) -> Callable[[], None]:
        rest = self._tails()
        self._began_s, self._asked = None, False
        return lambda: self._give_back(rest)

    def _tails(self) -> list[Segment]:
        """Take back what is held, as segments, in order."""
        serials, tails = dict(self._recent), []
        # They may come again, from here or, after a fork, from the parent.
        self._highest = -1
        for first, count, stride in self._drain():
            end = first + (count - 1) * stride
            tails.append(Segment(self._namespace, first, end, stride, serial=serials.get(end, 0)))
        return tails

    def _give_back(self, tails: list[Segment]) -> None:
        # From the end: what lies right before a tail that was taken back is a tail now.
        for tail in reversed(tails):
            if not self.store.give_back(tail, tail.first):
                return

    def reborn(self) -> None:
        self.rest()
        if self.birth != birth():
            self._told = []
        self._step = self._least

    def close(self) -> None:
        """Give the unused tail back where it is still the last that was reserved.

        A store that is away does not matter: the tail is skipped.
        """
        keeper = self._seat()
        with keeper.condition:
            if self.closed:
                return
            self.closed = True
            is_free = keeper.wait_for(self)
            with suppress(Exception):
                self.settled()
            rest = self._tails()
            away = not is_free or keeper.pause_s(self.store) > 0
            keeper.condition.notify_all()
        if away:
            return
        with suppress(Exception), quiet():
            self._give_back(rest)
