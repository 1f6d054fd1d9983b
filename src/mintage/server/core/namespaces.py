"""The namespaces of a worker: which of them exist, which may be created, and the state of those that it serves."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from mintage import Sequence
from mintage._core.lane import Lane
from mintage.errors import GenerationError, MintError, RequestError
from mintage.lease.keeper import unavailable
from mintage.rules import Segment
from mintage.server.config.keys import bucket_of
from mintage.server.config.settings import Settings
from mintage.server.core.threads import Shared, Threads, within
from mintage.store import Store

#: A client holds a current and a next segment of each namespace.
_MAX_LENT: Final = 16
#: A count of the store's namespaces is valid for this time, and at least for this multiple of the time that it took.
_COUNT_MAX_AGE_S: Final = 1.0
_COUNT_PAUSE: Final = 20.0


class ServedNamespace:
    """A namespace that exists, and what this worker keeps of it."""

    def __init__(self, name: str, settings: Settings, store: Store, lane: Lane) -> None:
        self.name = name
        self.sequence: Sequence | None = None
        """The source of its integers; ``None`` until a request for integers opens the namespace."""
        self.bucket = bucket_of(settings.rates.get(name, settings.rate), settings.burst, settings.workers)
        """The bucket that limits the rate of its requests; ``None``: any rate."""
        self.is_stored = False
        """True once the store has reserved integers of it."""
        self._settings = settings
        self._store = store
        self._lane = lane
        self._refill: asyncio.Future[None] | None = None
        """The keeper's current attempt to fetch a segment; all requests that need one wait for it."""
        self._lent: deque[tuple[str, Segment]] = deque(maxlen=_MAX_LENT)
        """The last segments that clients hand out by themselves, each with the name of the key that reserved it."""

    async def open(self, threads: Threads) -> None:
        """Serve integers from now on. A thread asks the store for the first segment.

        :raises RequestError: ``request.busy``.
        :raises MintError: as the store's verbs.
        """
        settings = self._settings
        sequence = await threads.run(
            Sequence,
            self.name,
            self._store,
            min_step=settings.min_step,
            max_step=settings.max_step,
            target_ms=settings.target_ms,
            max_wait_ms=settings.max_wait_ms,
        )
        self._lane.serve(self.name, sequence, self.bucket)
        self.sequence = sequence
        self.is_stored = True

    def buffered(self) -> int:
        """Return how many integers can be taken without asking the store."""
        return self._lane.segment_client(self.name).buffered()

    async def refill(self, want: int, deadline: float, *, in_row: bool = False) -> None:
        """Wait for the keeper's next attempt to fetch a segment.

        :param want: how many integers the caller needs.
        :param deadline: the event loop's time at which waiting ends, in seconds.
        :param in_row: whether the caller needs a next segment, rather than ``want`` integers in all.
        :raises MintError: the reason why there is no segment, once waiting does not help or the deadline is past.
        """
        loop = asyncio.get_running_loop()
        failure: MintError | None = None
        answered = self._refill
        if answered is None or answered.done():
            answered = self._refill = loop.create_future()
            failure = self._request(answered, want, in_row=in_row)
        if failure is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(answered), max(0.0, deadline - loop.time()))
            if self._lane.has_next(self.name) if in_row else self.buffered() >= want:
                return
            failure = self._lane.segment_client(self.name).refusal()
        is_late = loop.time() >= deadline
        if failure is not None and (is_late or failure.code != "store.unavailable"):
            if failure.code == "namespace.exhausted" and not in_row and (left := self.buffered()):
                message = f"namespace {self.name!r} has {left} integers left, not {want}"
                raise GenerationError(message, code=failure.code)
            raise failure
        if is_late:
            raise unavailable(
                f"{self._store.url}: no answer in the {self._settings.max_wait_ms} ms of max_wait_ms: try again"
            )

    def _request(self, answered: asyncio.Future[None], want: int, *, in_row: bool) -> GenerationError | None:
        """Request a segment from the keeper, and set the result of ``answered`` after its next attempt.

        :returns: the reason why no segment can come; ``None`` if one may.
        """
        loop = answered.get_loop()

        def settle() -> None:
            if not answered.done():
                answered.set_result(None)

        def on_answer() -> None:
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle)

        try:
            self._lane.segment_client(self.name).request(want, on_answer, in_row=in_row)
        except GenerationError as error:
            settle()
            return error
        return None

    def lend(self, caller: str, segment: Segment) -> None:
        """Record a segment that a caller hands out by itself."""
        self._lent.append((caller, segment))
        self.is_stored = True

    def find_lent(self, caller: str, segment: Segment, first_unused: int) -> Segment | None:
        """Return the segment that was lent to this caller and ends as the given one; ``None`` if there is none."""
        for name, lent in self._lent:
            is_same = (lent.last, lent.serial) == (segment.last, segment.serial)
            if name == caller and is_same and first_unused in lent.as_range():
                return lent
        return None


class Namespaces:
    """The namespaces that this worker knows of, and those that it serves, by name."""

    def __init__(self, settings: Settings, store: Store, lane: Lane, threads: Threads) -> None:
        self._settings = settings
        self._store = store
        self._lane = lane
        self._threads = threads
        self._served: dict[str, ServedNamespace] = {}
        self._opening: Shared[ServedNamespace] = Shared()
        """Apart from those that are served: a name that a request brings need not exist."""
        self._count = 0
        """The number of namespaces in the store, when it last counted them."""
        self._count_until_s = 0.0
        """The time at which the count is too old."""
        self._counting: Shared[None] = Shared()
        self._created: set[str] = set()
        """Created since the store was last asked to count, so the count may lack them."""
        self._creating: Counter[str] = Counter()
        """Names of namespaces that are being created; they are not to be used yet, but they count."""
        self._is_idle = asyncio.Event()
        """Set while no namespace is being created."""
        self._is_idle.set()

    def sequences(self) -> dict[str, Sequence]:
        """Return the sequences of the namespaces that are open, by name."""
        return {name: each.sequence for name, each in self._served.items() if each.sequence is not None}

    def names(self) -> Collection[str]:
        """Return the names of the namespaces that this worker serves, open or not."""
        return self._served.keys()

    def find_open(self, name: str) -> ServedNamespace | None:
        """Return a namespace that is open; ``None`` if it is not."""
        served = self._served.get(name)
        return served if served is not None and served.sequence is not None else None

    def serve(self, name: str) -> ServedNamespace:
        """Return the state of a namespace that exists, open or not."""
        served = self._served.get(name)
        if served is None:
            served = self._served[name] = ServedNamespace(name, self._settings, self._store, self._lane)
        return served

    def find_lent(self, caller: str, segment: Segment, first_unused: int) -> Segment | None:
        """Return the segment that :meth:`ServedNamespace.find_lent` finds, if this worker lent any of the namespace."""
        served = self._served.get(segment.namespace)
        return None if served is None else served.find_lent(caller, segment, first_unused)

    async def open(self, name: str, deadline: float) -> ServedNamespace:
        """Return a namespace that is open, having opened it if need be.

        If it takes longer, the opening goes on for the next caller.

        :param deadline: the event loop's time at which waiting ends, in seconds.
        :raises RequestError: as :meth:`creating`.
        :raises MintError: as the store's verbs.
        """
        if (served := self.find_open(name)) is not None:
            return served
        async with within(deadline):
            return await self._opening.run(name, partial(self._open, name))

    async def _open(self, name: str) -> ServedNamespace:
        async with self.creating(name, is_implied=True):
            served = self.serve(name)
            await served.open(self._threads)
        return served

    async def exist(self, name: str) -> bool:
        """Return True if this namespace exists.

        :raises RequestError: ``request.busy``.
        :raises MintError: as :meth:`Store.get_namespace`.
        """
        served = self._served.get(name)
        is_known = served is not None and served.is_stored
        return is_known or await self._threads.run(self._store.get_namespace, name) is not None

    async def _count_stored(self) -> None:
        """Let the store count its namespaces."""
        # The store may count a namespace that is being created, so wait for these: all new ones wait for this count.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_idle.wait(), self._settings.max_wait_ms / 1000)
        began_s, counted = time.monotonic(), frozenset(self._created)
        self._count = await self._threads.run(self._store.count_namespaces)
        self._created -= counted
        ended_s = time.monotonic()
        # A count that takes long is used for longer, so that the store spends little of its time on it.
        self._count_until_s = ended_s + max(_COUNT_MAX_AGE_S, _COUNT_PAUSE * (ended_s - began_s))

    @asynccontextmanager
    async def creating(self, name: str, *, is_implied: bool = False) -> AsyncIterator[None]:
        """Count a namespace that does not exist as existing, while the block creates it.

        :param is_implied: whether the caller did not ask to create it, but uses it.
        :raises RequestError: ``request.busy``, ``request.namespaces``, ``request.namespace``.
        :raises MintError: as the store's verbs.
        """
        is_missing = not await self.exist(name)
        if is_missing and is_implied and not self._settings.creates:
            raise RequestError(
                f"there is no namespace {name!r}, and auto_create is off: create it first", code="request.namespace"
            )
        if is_missing and time.monotonic() >= self._count_until_s:
            await self._counting.run("", self._count_stored)  # all requests wait for one count
            is_missing = not await self.exist(name)  # another request may have made it
        if not is_missing:
            yield
            return
        recent = self._created | self._creating.keys()
        taken, limit = self._count + len(recent), self._settings.max_namespaces
        if name not in recent and taken >= limit:
            refused = "is not made by its first use" if is_implied else "is not made"
            raise RequestError(
                f"namespace {name!r} {refused}: there are {taken}, the limit is {limit}", code="request.namespaces"
            )
        self._is_idle.clear()
        self._creating[name] += 1
        may_exist = True
        try:
            yield
        except MintError as error:
            may_exist = error.code == "store.unavailable"
            raise
        finally:
            self._creating -= Counter([name])
            if may_exist:
                self._created.add(name)
            if not self._creating:
                self._is_idle.set()

    def may_assume(self, name: str) -> bool:
        """Return True if a namespace exists, or if its first use may create it, without asking the store.

        In the second case, count it as one that exists: its metrics stay, so the limit applies to it.
        """
        if name in self._served or name in self._created:
            return True
        if not self._settings.creates or self._count + len(self._created) >= self._settings.max_namespaces:
            return False
        self._created.add(name)
        return True
