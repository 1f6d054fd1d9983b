"""The service's operations, for all interfaces.

The lane (Rust) hands out buffered integers at once. Only operations that need the store wait, and never in the event
loop: the keeper's thread fetches segments, and a small number of threads run all other verbs. Each operation checks the
caller's rights and rates first, and raises no error but :class:`~mintage.errors.MintError`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final, ParamSpec, TypeVar

from mintage import Sequence
from mintage._core.lane import Bucket, Lane
from mintage.errors import MintError, RequestError, StoreError
from mintage.formats.kinds import KINDS, NAMES, Generator
from mintage.rules import MAX_INTEGER, NamespaceRecord, Segment, check_int, check_name
from mintage.server.config.keys import Caller, Keys
from mintage.server.config.settings import Settings
from mintage.server.core.health import StoreProbe
from mintage.server.core.journal import Journal
from mintage.server.core.logs import Sampled
from mintage.server.core.metrics import Metered, Metrics
from mintage.server.core.minters import Minters
from mintage.server.core.namespaces import Namespaces, ServedNamespace
from mintage.server.core.threads import Threads, within
from mintage.server.loop.budget import INTEGER, Turns
from mintage.server.loop.limits import Connection, ConnectionLimit
from mintage.store import Store

P = ParamSpec("P")
T = TypeVar("T")
FALLBACK_FLOOR: Final = 2**62
"""The lowest integer of the last resort, which draws from the upper half of the 63-bit space."""

_THREADS: Final = 16


class Service:
    """The service of ``mintage serve``: its state, and the operations of its interfaces."""

    fallback: Final[ContextVar[bool]] = ContextVar("mintage_fallback", default=False)
    """True if the last answer to this request is from the last resort."""

    def __init__(
        self, settings: Settings, store: Store, connections: Mapping[str, set[Connection]] | None = None
    ) -> None:
        self.settings = settings
        self.metrics = Metrics(has_keys=settings.has_keys)
        self.store: Store = Metered(store, self.metrics)
        self.keys = Keys(settings.keys, settings.workers)
        self.lane = Lane(
            open=not settings.has_keys,
            limit=settings.max_request_bytes,
            most=settings.max_count,
            trace_header=settings.trace_header,
        )
        self.draining = False
        self.workers = Journal("workers")
        """The workers that have started: ``pid``, and ``at``, the time in seconds since the Unix epoch."""
        self.workers.append({"pid": os.getpid(), "at": time.time()})
        self.refusal_log_limit = Sampled()
        """The limit on log lines of refused requests without a known key."""
        self.connections: Mapping[str, set[Connection]] = connections or {"http": set(), "redis": set()}
        """The open connections, by interface."""
        most, silence_s = settings.max_connections, settings.request_timeout_ms / 1000
        self.connection_limits = {
            name: ConnectionLimit(each, most, silence_s) for name, each in self.connections.items()
        }
        self.minters = Minters(settings, self.store, self.metrics)
        self.turns = Turns()
        self._threads = Threads(_THREADS, "mintage-store")
        self._listing = asyncio.Lock()
        self._namespaces = Namespaces(settings, self.store, self.lane, self._threads)
        self.probe = StoreProbe(self.store, self.metrics, self.minters.ends(), self._namespaces.names)

    # --- callers ------------------------------------------------------------------------------------------------

    def _pace(self, bucket: Bucket | None, what: str) -> None:
        wait_ms = bucket.take() if bucket is not None else 0
        if wait_ms > 0:
            raise RequestError(
                f"{what} has more requests than its rate allows: try again in {wait_ms} ms",
                code="request.rate",
                retry_after_ms=wait_ms,
            )

    def _admit(self, caller: Caller, right: str, name: str) -> None:
        caller.check(right, name)
        self.pace(caller)

    def pace(self, caller: Caller) -> None:
        """Count a request with a key against its rate.

        :raises RequestError: ``request.rate``.
        """
        self._pace(caller.bucket, f"key {caller.name!r}")

    # --- integers -----------------------------------------------------------------------------------------------

    async def next(self, caller: Caller, namespace: str, count: int) -> list[int]:
        """Return the next ``count`` integers of a namespace, 1 to ``max_count``; usually in a row, but not always.

        :raises RequestError: ``request.rights``, ``request.rate``, ``request.namespace``, ``request.namespaces``.
        :raises FieldError: ``field.range``.
        :raises ConfigError: ``config.name``.
        :raises StoreError: ``store.unavailable`` with ``retry_after_ms``: too few are buffered, and the store is away.
        :raises GenerationError: ``namespace.exhausted``.
        """
        taken: list[int] = []
        deadline = self._deadline()
        try:
            served = await self._enter(caller, namespace, count, deadline)
            while (left := count - len(taken)) > 0:
                # It takes none before enough are buffered: a refused request would lose those that it took.
                if served.buffered() >= left:
                    taken += self.lane.take(namespace, left)
                else:
                    await served.refill(left, deadline)
                    await self.turns.acquire(left * INTEGER)
            self.lane.note(namespace, max(taken))
        except StoreError as error:
            taken += self._last_resort(namespace, count - len(taken), error)
        self.metrics.integers(namespace, count, caller.name)
        return taken

    async def reserve(self, caller: Caller, namespace: str, count: int) -> range:
        """Return the next ``count`` integers in a row, 1 to ``max_count``.

        :raises MintError: as :meth:`next`.
        """
        deadline = self._deadline()
        served = await self._enter(caller, namespace, count, deadline)
        while (row := self.lane.row(namespace, count)) is None:
            if self.lane.has_next(namespace):
                # The next segment is too short as well, and must be handed out first.
                # If it comes too late, its integers are a gap.
                async with within(deadline):
                    segment = await self._threads.run(self.lane.segment_client(namespace).reserve, count)
                row = segment.as_range()
                break
            # A segment for many such rows, so that each of them does not need a write in the store.
            await served.refill(count * 8, deadline, in_row=True)
        self.lane.note(namespace, row[-1])
        self.metrics.integers(namespace, count, caller.name)
        return row

    async def segment(self, caller: Caller, namespace: str, count: int, holder: str = "") -> Segment:
        """Reserve a segment of 1 to ``max_reserve`` integers in the store, for a caller that hands them out itself.

        :param holder: the text by which the caller names itself, for the history of the namespace.
        :raises MintError: as :meth:`next`, but with the right ``reserve``.
        """
        check_name(namespace, "namespace")
        self._admit(caller, "reserve", namespace)
        check_int(count, "count", 1, self.settings.max_reserve)
        async with within(self._deadline()), self._namespaces.creating(namespace, is_implied=True):
            segment = await self._threads.run(self.store.reserve, namespace, count, holder=holder)
        self._namespaces.serve(namespace).lend(caller.name, segment)
        self.metrics.integers(namespace, len(segment), caller.name)
        return segment

    async def give_back(self, caller: Caller, segment: Segment, first_unused: int) -> bool:
        """Give the unused tail of a segment back to the store, if the segment is still the last one reserved.

        Serials can be guessed. So this process passes on only segments that it lent to this caller.

        :raises MintError: as :meth:`segment`.
        """
        check_name(segment.namespace, "namespace")
        self._admit(caller, "reserve", segment.namespace)
        lent = self._namespaces.find_lent(caller.name, segment, first_unused)
        async with within(self._deadline()):
            return lent is not None and await self._threads.run(self.store.give_back, lent, first_unused)

    async def find_namespace(self, caller: Caller, namespace: str) -> NamespaceRecord:
        """Return the store's record of a namespace.

        :raises RequestError: ``request.rights``, ``request.rate``, ``request.namespace``.
        :raises StoreError: as the store's verbs.
        """
        check_name(namespace, "namespace")
        record = await self.ask(caller, "describe", namespace, self.store.get_namespace, namespace)
        if record is not None:
            return record
        raise RequestError(f"there is no namespace {namespace!r}", code="request.namespace")

    async def last(self, caller: Caller, namespace: str) -> int:
        """Return the highest integer of a namespace that this worker handed out.

        If this worker handed out none, return the last integer that is reserved in the store. Neither segments that
        clients reserved for themselves nor integers of the last resort count.

        :raises MintError: as :meth:`find_namespace`.
        """
        check_name(namespace, "namespace")
        if (last := self.lane.last(namespace)) is None:
            return (await self.find_namespace(caller, namespace)).high_water
        self._admit(caller, "describe", namespace)
        return last

    async def _enter(self, caller: Caller, namespace: str, count: int, deadline: float) -> ServedNamespace:
        """Return a namespace, which it opens if need be, if the caller may have ``count`` integers of it.

        :param deadline: the event loop's time at which waiting ends, in seconds.
        """
        check_name(namespace, "namespace")
        self._admit(caller, "next", namespace)
        check_int(count, "count", 1, self.settings.max_count)
        served = await self._namespaces.open(namespace, deadline)
        self._pace(served.bucket, f"namespace {namespace!r}")
        return served

    async def make(self, caller: Caller, namespace: str, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb of the store that creates a namespace that does not exist. It needs the right ``create``.

        :raises RequestError: ``request.rights``, ``request.rate``, ``request.busy``, ``request.namespaces``.
        :raises MintError: as the verb.
        """
        self._admit(caller, "create", namespace)
        async with within(self._deadline()), self._namespaces.creating(namespace):
            return await self._threads.run(verb, *args, **kwargs)

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self.settings.max_wait_ms / 1000

    def _last_resort(self, namespace: str, count: int, error: StoreError) -> list[int]:
        """Take the buffered integers, and random ones for the remainder."""
        if self.settings.fallback != "random" or error.code != "store.unavailable":
            raise error
        buffered: list[int] = []
        if self._namespaces.find_open(namespace) is not None:
            buffered = self.lane.take(namespace, count)
            if buffered:
                self.lane.note(namespace, max(buffered))
        elif self._namespaces.may_assume(namespace):
            self._pace(self._namespaces.serve(namespace).bucket, f"namespace {namespace!r}")
        else:
            raise error
        count -= len(buffered)
        if count == 0:
            return buffered
        self.metrics.fallback(namespace, count)
        self.fallback.set(True)
        import secrets  # which takes milliseconds, and few services have a fallback

        return buffered + [FALLBACK_FLOOR + secrets.randbelow(MAX_INTEGER + 1 - FALLBACK_FLOOR) for _ in range(count)]

    # --- IDs ----------------------------------------------------------------------------------------------------

    async def mint(self, caller: Caller, scheme: str, count: int, meta: int = 0) -> list[str]:
        """Mint ``count`` IDs of a scheme as text, 1 to ``max_count``; ``meta`` is sno's metabyte, 0 to 255.

        :raises RequestError: ``request.rights``, ``request.rate``, ``request.malformed``: no such scheme.
        :raises FieldError: ``field.range``.
        :raises MintError: as a generator's ``new``.
        """
        if scheme not in KINDS:
            raise RequestError(
                f"scheme {scheme!r:.60} does not exist: use one of {', '.join(NAMES)}", code="request.malformed"
            )
        self._admit(caller, "mint", scheme)
        return await self.minters.mint(scheme, count, meta, caller.name)

    # --- the store's verbs --------------------------------------------------------------------------------------

    async def ask(
        self, caller: Caller, right: str, name: str, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call any verb of the store, if the caller has the right.

        :raises RequestError: ``request.rights``, ``request.rate``, ``request.busy``.
        :raises MintError: as the verb.
        """
        return await self.ask_until(self._deadline(), caller, right, name, verb, *args, **kwargs)

    async def ask_until(
        self,
        deadline: float,
        caller: Caller,
        right: str,
        name: str,
        verb: Callable[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call any verb of the store as :meth:`ask`, but wait until another deadline.

        :param deadline: the event loop's time at which waiting ends, in seconds.
        :raises MintError: as :meth:`ask`.
        """
        self._admit(caller, right, name)
        async with within(deadline):
            return await self._threads.run(verb, *args, **kwargs)

    @asynccontextmanager
    async def one_list(self) -> AsyncIterator[None]:
        """Let the block answer with a list of the store's records: one at a time, as each takes megabytes.

        :raises StoreError: ``store.unavailable``: it is not its turn within ``max_wait_ms``.
        """
        async with within(self._deadline()):
            await self._listing.acquire()
        try:
            yield
        finally:
            self._listing.release()

    # --- open namespaces ----------------------------------------------------------------------------------------

    def sequences(self) -> dict[str, Sequence]:
        """Return the sequences of the open namespaces, by name."""
        return self._namespaces.sequences()

    def ended(self) -> set[str]:
        """Return the names of the open namespaces of which the store reserves no more integers."""
        return {name for name in self.sequences() if self.lane.segment_client(name).has_ended()}

    def gather(self) -> None:
        """Bring the metrics up to date."""
        self.metrics.gather(
            self.lane, self.sequences(), self.minters.generators, self.connections, draining=self.draining
        )

    def open_connections(self) -> list[Connection]:
        """Return the open connections of all interfaces."""
        return [each for connections in self.connections.values() for each in connections]

    async def close(self) -> None:
        """Release leases and give back the tails of segments, as far as the store answers."""
        owners: list[Sequence | Generator] = [*self.sequences().values(), *self.minters.generators.values()]
        closing = [self._threads.run(owner.close) for owner in owners]
        for failure in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(failure, BaseException) and not isinstance(failure, MintError):
                raise failure
        await self._threads.run(self.store.close)
        self._threads.close()
        self.minters.close()
