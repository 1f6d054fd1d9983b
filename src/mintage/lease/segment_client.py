"""The segments of a sequence: keep its buffer filled. The keeper sends the requests to the store.

All attributes of a :class:`SegmentClient` change under the keeper's condition, as :mod:`mintage.lease.keeper` says.
Threads that mint take from the buffer without it; only the segment client fills and drains the buffer, under the
condition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from mintage import rules
from mintage._core import monotonic_s
from mintage.errors import FieldError, GenerationError, MintError, StoreError
from mintage.lease.keeper import Task, as_fresh_error, say
from mintage.process.forks import fork_lock
from mintage.rules import GAP, LATEST_MS, MAX_COUNT, MAX_INTEGER, MAX_STRIDE, Segment
from mintage.store import Store, all_or_nothing

if TYPE_CHECKING:
    #: Integers in a row: the first one, their number, and their distance.
    Part: TypeAlias = tuple[int, int, int]


def above(floor: int, first: int, count: int, stride: int) -> Part | None:
    """Return the part of integers in a row that is not below a floor; ``None`` if there is none."""
    below = min(count, max(0, -((first - floor) // stride)))
    return (first + below * stride, count - below, stride) if below < count else None


def next_step(step: int, rate: float, target_s: float, least: int, most: int) -> int:
    """Return how many integers to reserve next, after ``step`` and at so many a second: enough for the target time.

    It grows at most eightfold and shrinks at most by half at a time, so that one burst or pause does not decide.
    """
    wanted = rate * target_s
    return round(min(max(wanted, step / 2, least), step * 8, most))


# It has 18 attributes, as the buffer, the step and the requests change under one condition, at one event.
class SegmentClient(Task):
    """The segments of one sequence, and the buffer that they fill.

    ``buffer`` is the extension's: ``offer(first, count, stride)``, ``has_next()``, ``level()``, ``drain()``.
    """

    def __init__(
        self, store: Store, namespace: str, buffer: Any, *, min_step: int, max_step: int, target_ms: int
    ) -> None:
        super().__init__(store)
        self._namespace = namespace
        self._buffer = buffer
        self._least, self._most = min_step, max_step
        self._target_s = target_ms / 1000
        self._step = min_step
        self._began_s: float | None = None
        self._sizes: deque[int] = deque()
        """The sizes of the segments in the buffer that are not used up, the current one first."""
        self._waiting: deque[Part] = deque()
        """Integers that go to the buffer when it has room again."""
        self._recent: deque[tuple[int, int]] = deque(maxlen=4)
        """The ends and serials of the last segments: more of them than are buffered at once."""
        self._floor = 0
        """The highest floor of the namespace that came with a segment."""
        self._highest = -1
        """The last integer that was granted and not given back, or -1: the store must grant none up to it."""
        self._asked = False
        self._needed = 0
        """The most integers that a caller needs in the buffer at once."""
        self._used_up: GenerationError | None = None
        self._callbacks: list[Callable[[], None]] = []

    def advanced(self) -> None:
        """Fetch another segment, as the next one has become the current one."""
        keeper = self.attach()
        now = monotonic_s()
        with keeper.hold():
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
        """Wait until the buffer has a next segment.

        :raises StoreError: as :meth:`Store.reserve`, where there is none after ``max_wait_ms``.
        :raises GenerationError: ``namespace.exhausted``, ``generator.closed``.
        """
        self._wait(lambda: self._has_next() or None, max_wait_ms)

    def request(self, want: int, callback: Callable[[], None], *, in_row: bool = False) -> None:
        """Request that the buffer has ``want`` integers, without waiting; ``in_row``: that it has a next segment.

        The keeper calls ``callback`` after the next answer of the store, in its own thread as a rule: it must not
        block. Request again if that was not enough. :meth:`refusal` returns the reason if the store refused.

        :raises GenerationError: ``namespace.exhausted``, ``generator.closed``.
        """
        keeper = self.attach()
        with keeper.hold():
            self._check_open()
            if self._buffer.has_next() if in_row else self._level() >= want:
                callback()
                return
            if self._used_up is not None:
                raise as_fresh_error(self._used_up, 0.0)
            self._step = max(self._step, min(want, self._most))
            if not in_row:
                self._needed = max(self._needed, want)
            self._callbacks.append(callback)
            self.wanted = True
            keeper.announce(self)
        keeper.wake()

    def buffered(self) -> int:
        """Return the number of integers that can be taken without the store."""
        keeper = self.attach()
        with keeper.hold():
            return self._level()

    def has_ended(self) -> bool:
        """Return True if the store will reserve no more integers, as the namespace is used up or retired."""
        return self._used_up is not None

    def _level(self) -> int:
        level: int = self._buffer.level()[1]
        return level + sum(count for _, count, _ in self._waiting)

    def refusal(self) -> MintError | None:
        """Return the error of the last attempt, as a copy for the caller; ``None`` if it succeeded."""
        keeper = self.attach()
        with keeper.hold():
            return None if self.failure is None else as_fresh_error(self.failure, keeper.pause_s(self.store))

    def after_attempt(self) -> None:
        """Call the callbacks of those that requested integers."""
        self._needed = 0
        callbacks, self._callbacks = self._callbacks, []
        failed: BaseException | None = None
        for callback in callbacks:
            try:
                callback()
            except BaseException as error:  # noqa: BLE001 - call the other callbacks nevertheless
                failed = error
        if failed is not None:
            raise failed

    def _has_next(self) -> bool:
        if self._buffer.has_next():
            return True
        if self._used_up is not None:
            raise as_fresh_error(self._used_up, 0.0)
        return False

    def due_s(self) -> float | None:
        """Return 0 if a segment is to be fetched now; ``None`` if none is needed."""
        wants = (self.wanted or self._asked) and self._used_up is None
        return 0.0 if wants and (not self._buffer.has_next() or self._level() < self._needed) else None

    def plan(self) -> Callable[[], Callable[[], None]]:
        """Return the request that reserves the next segment."""
        wanted, most = self._step, self._most

        def reserve() -> Callable[[], None]:
            step = wanted
            while True:
                try:
                    segment = self._reserve(step)
                    break
                except FieldError:
                    # A service may reserve less at a time than this process asks for.
                    if step == 1:
                        raise
                    step //= 2
            return lambda: self._offer(segment, step if step < wanted else most)

        return reserve

    def _reserve(self, count: int) -> Segment:
        """Reserve at most ``count`` integers, all above those of the segments that this process already has.

        A store that grants lower ones was emptied or replaced by an older copy, under the same server id. The client
        then skips integers, as after a server took over, for all else that the store may have forgotten.

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
        """Return the segment that the store answered with, if it is a valid answer: at most ``count`` integers."""
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
                f"{self.store.url}: invalid answer to reserve({self._namespace!r}, {count}): {segment!r:.200}",
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
        # Do this while it closes, too: `close` waits for it, and gives the segment back.
        self._waiting.extend(parts)
        self._sizes.extend(count for _, count, _ in parts)
        self._fill()

    def _fill(self) -> None:
        """Put waiting integers into the buffer, as far as there is room."""
        while self._waiting and not self._buffer.has_next():
            self._buffer.offer(*self._waiting.popleft())

    def _drain(self) -> list[Part]:
        """Take back all integers that are buffered or wait, in order."""
        drained = [*self._buffer.drain(), *self._waiting]
        self._waiting.clear()
        self._sizes.clear()
        return drained

    def refused(self, error: MintError) -> None:
        """Remember that the namespace is used up, if the store says so."""
        if isinstance(error, GenerationError):
            self._used_up = error

    def reserve(self, count: int) -> Segment:
        """Reserve integers in a row beside the buffer, in the caller's own thread.

        :raises StoreError: as the store's verbs.
        :raises GenerationError: ``namespace.exhausted``: fewer are left; they are given back.
        """
        while True:
            self.attach()
            self._check_open()
            resets = self.resets
            with fork_lock():
                segment = self._reserve(count)
                # Otherwise another copy of this process may have received the same answer.
                if self.resets == resets and self.generation.is_current():
                    return all_or_nothing(self.store, segment, count)

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
        """Check that so many integers are left: of several reservations only the last can be given back."""
        try:
            record = self.store.get_namespace(self._namespace)
        except MintError:
            return
        left = len(rules.reserve(record, count)[1]) if record else count
        if left < count:
            message = f"namespace {self._namespace!r} has {left} integers left, not {count}"
            raise GenerationError(message, code="namespace.exhausted")

    def has_resources(self) -> bool:
        """Return True if integers are buffered."""
        return bool(self._sizes)

    def begin_release(self) -> Callable[[], None]:
        """Empty the buffer, and return the call that gives the unused segments back."""
        tails = self._tails()
        self._began_s, self._asked = None, False
        return lambda: self._give_back(tails)

    def _tails(self) -> list[Segment]:
        """Take back the unused integers, as segments, in order."""
        serials, tails = dict(self._recent), []
        # The store may grant them again: this process or, after a fork, the parent gave them back.
        self._highest = -1
        for first, count, stride in self._drain():
            end = first + (count - 1) * stride
            tails.append(Segment(self._namespace, first, end, stride, serial=serials.get(end, 0)))
        return tails

    def _give_back(self, tails: list[Segment]) -> None:
        # Begin at the end: after a tail is given back, the segment before it is the tail.
        for tail in reversed(tails):
            if not self.store.give_back(tail, tail.first):
                return

    def reset(self) -> None:
        """Empty the buffer, whose integers belong to an earlier generation."""
        self.begin_release()
        if self.generation.has_forked():
            self._callbacks = []
        self._step = self._least

    def close(self) -> None:
        """Give the unused tail back where it is still the last that was reserved.

        A store that is away does not matter: the tail is skipped.
        """
        keeper = self.attach()
        with keeper.hold():
            if self.closed:
                return
            self.closed = True
            is_free = keeper.wait_for(self)
            with suppress(Exception):
                self.after_attempt()
            tails = self._tails()
            away = not is_free or keeper.pause_s(self.store) > 0
            keeper.condition.notify_all()
        if away:
            return
        with suppress(Exception), fork_lock():
            self._give_back(tails)
