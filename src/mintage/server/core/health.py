"""The health of the service: liveness, readiness, and the state of its store.

``/healthz`` answers as long as the event loop turns. ``/readyz`` answers 200 while requests can be served: the store
answers, or buffered integers remain, or the last resort is enabled. :class:`StoreProbe` asks the store at intervals, so
that neither of them ever waits for it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

import structlog

from mintage.errors import ConfigError, MintError, RequestError, StoreError
from mintage.rules import NamespaceRecord, Segment
from mintage.server.core.metrics import Metrics
from mintage.store import Description, Store
from mintage.telemetry import untraced

T = TypeVar("T")

LOOK_S: Final = 2.0
SURVEY_S: Final = 60.0
FIRST_SURVEY_S: Final = 0.25
MOST_SURVEYED: Final = 1_000
"""The most namespaces of one survey."""
SURVEYED_AT_ONCE: Final = 50
"""The number of namespaces that are read within one patience."""
PATIENCE_S: Final = 2.0
"""A store that has not answered after this time counts as away."""
DAY_S: Final = 86_400.0
#: A segment that was never reserved.
_NOTHING: Final = Segment("mintage:ready", 1, 1, 1)

log: Any = structlog.get_logger("mintage")


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed at which a namespace is used up."""

    high_water: int
    watched_s: float = 0.0
    """The time over which it was observed, in seconds."""
    per_second: float = 0.0
    """Integers a second by which the high-water mark moves; older observations count less."""


def next_pace(high_water: int, before: Pace, seconds: float) -> Pace:
    """Return the pace after another observation, ``seconds`` later.

    It is a plain mean for a day, so that the first observation counts no more than any other. After that, the weight of
    an observation halves about every 17 hours, so that day and night both count. A tail that was given back does not
    make the pace negative.
    """
    watched_s = before.watched_s + seconds
    weight = seconds / min(watched_s, DAY_S + seconds)
    moved = max(0, high_water - before.high_water) / seconds
    return Pace(high_water, watched_s, before.per_second + weight * (moved - before.per_second))


def days_left(left: int, per_second: float) -> float:
    """Return in how many days a namespace is used up; infinity if nobody uses it."""
    if left <= 0:
        return 0.0
    return left / per_second / DAY_S if per_second > 0 else math.inf


def is_ready(*, draining: bool, store_up: bool, held: Mapping[str, int], last_resort: bool = False) -> bool:
    """Return True if the service can serve requests.

    It can if its store answers, if every namespace in use has buffered integers, or if the last resort applies.

    :param held: the number of buffered integers, by namespace; namespaces that have ended are left out once
        they are empty.
    """
    return not draining and (store_up or last_resort or (bool(held) and all(level > 0 for level in held.values())))


def check_passing(error: MintError | None) -> None:
    """Raise an error of the configuration if a store failed for a reason that only its operator can remove.

    :raises ConfigError: ``config.setting``, or the store's own reason.
    """
    if isinstance(error, ConfigError):
        raise error
    if isinstance(error, StoreError) and (error.is_lasting or error.code == "store.schema"):
        raise ConfigError(f"the store cannot be used: {error}", code="config.setting") from error


class StoreProbe:
    """The probe of the store: it sets the store's gauges, and logs when the store goes away and comes back.

    :param served: the function that returns the names of the namespaces that this worker serves.
    :param ends: by scheme, the last time that its layout can hold; ``None`` if it has no such limit.
    :param patience_s: the seconds without an answer after which the store counts as away.
    """

    def __init__(
        self,
        store: Store,
        gauges: Metrics,
        ends: Mapping[str, datetime | None],
        served: Callable[[], Collection[str]],
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._store = store
        self._served = served
        self._gauges = gauges
        self._ends = ends
        self._patience_s = patience_s
        # The probe has its own threads: a store that hangs must not block the threads that requests need.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="mintage-watch")
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._paces: dict[str, tuple[Pace, float]] = {}
        """By namespace, its pace, and the time at which it was observed, in seconds. The least recent one is first."""
        self.store_up: bool | None = None
        """True if the store answers; ``None`` before the first probe."""
        self.failure: MintError | None = None
        """The reason why the store does not answer."""
        self.since = datetime.now(UTC)
        """The time of the last change of ``store_up``."""
        self.description: Description | None = None
        """The store's last description."""
        self.offset_s = 0.0
        """This clock less the store's, in seconds, at the last probe that the store answered."""
        self.server_since = self.since
        """The time from which on the store has run on this server: the first probe, or the takeover since."""

    async def run(self) -> None:
        """Probe and survey the store until cancelled.

        Await :meth:`probe` first. Clients that have waited for the start come before the survey and the next probe.
        """
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(every(LOOK_S, self.probe, first_s=LOOK_S))
                group.create_task(every(SURVEY_S, self.survey, first_s=FIRST_SURVEY_S))
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def probe(self) -> None:
        """Ask the store for its description, and check that it accepts writes."""
        try:
            description, self.offset_s = await self._ask("look", self._look)
        except MintError as error:
            self._note(error)
        else:
            self._gauges.clock_offset.set(self.offset_s)
            self._note_server(description)
            self._note(None)

    @property
    def is_away(self) -> bool:
        """True if the store does not answer; False if it answers or refuses."""
        return self.failure is not None and self.failure.code == "store.unavailable"

    async def survey(self, now_s: float | None = None) -> None:
        """Update the gauges of all layouts, and of at most 1,000 namespaces that this worker serves.

        Of more namespaces, those come first that were observed least recently.

        :param now_s: the time of a monotonic clock, in seconds; by default, the system's.
        """
        now_s = time.monotonic() if now_s is None else now_s
        now = datetime.now(UTC)
        for scheme, end in self._ends.items():
            if end is not None:
                self._gauges.layout_days.labels(scheme).set((end - now).total_seconds() / DAY_S)
        served = self._served()
        names = [*(name for name in served if name not in self._paces), *self._paces][:MOST_SURVEYED]
        try:
            for first in range(0, len(names), SURVEYED_AT_ONCE):
                batch = names[first : first + SURVEYED_AT_ONCE]
                self._observe(await self._ask("survey", partial(_records, self._store, batch)), now_s)
        except MintError:
            return  # `probe` records that the store is away

    def _observe(self, records: list[NamespaceRecord], now_s: float) -> None:
        for each in records:
            before, before_s = self._paces.pop(each.name, (None, now_s))
            pace, seconds = Pace(each.high_water), now_s - before_s
            if before is not None and seconds > 0:
                # Nobody used the integers that a raised floor skipped.
                before = replace(before, high_water=max(before.high_water, each.floor - 1))
                pace = next_pace(each.high_water, before, seconds)
            self._paces[each.name] = pace, now_s
            self._gauges.usage.mark(each.name, each.high_water)
            # A retired namespace needs nobody's attention.
            days = math.inf if each.retired else days_left(each.maximum - each.high_water, pace.per_second)
            # Unused namespaces get no series: a store may have many of them. A retired one may have had one.
            if each.retired or days < math.inf:
                self._gauges.namespace_days.labels(each.name).set(days)

    def _look(self) -> tuple[Description, float]:
        """Return the store's description, and this clock less the store's in seconds."""
        before = time.time_ns()
        description = self._store.describe()
        offset_s = (before + time.time_ns()) / 2e9 - description.now_ms / 1e3
        # A store that answers may still refuse all writes. This takes the path of a write, and changes nothing.
        with suppress(RequestError):  # from a service as the store, if our key has no right to that namespace
            self._store.give_back(_NOTHING, 1)
        return description, offset_s

    def _note_server(self, description: Description) -> None:
        """Record the description, and log if the store runs on another server than before."""
        before, self.description = self.description, description
        if before is not None and not before.is_new and before.identity != description.identity:
            self.server_since = datetime.now(UTC)
            log.warning(
                "store taken over",
                store=str(self._store.url),
                server_id=description.identity,
                before=before.identity,
            )

    async def _ask(self, what: str, verb: Callable[[], T]) -> T:
        """Return the answer of a verb, or fail after the patience. Send no second request while one still hangs."""
        before = self._pending.get(what)
        if before is None or before.done():
            asked = asyncio.get_running_loop().run_in_executor(self._threads, untraced, verb)
            self._pending[what] = asked
            done, _ = await asyncio.wait({asked}, timeout=self._patience_s)
            if done:
                return _answer(asked)
            # Nobody needs a late answer, but asyncio warns of an exception that is never fetched.
            asked.add_done_callback(lambda late: late.cancelled() or late.exception())
        raise StoreError(f"{self._store.url}: no answer in {self._patience_s:g} s", code="store.unavailable")

    def _note(self, failure: MintError | None) -> None:
        self.failure, up = failure, failure is None
        self._gauges.store_up.set(up)
        if up == self.store_up:
            return
        first, self.store_up = self.store_up is None, up
        was, self.since = self.since, datetime.now(UTC)
        url = str(self._store.url)
        if failure is not None:
            log.warning("store away", store=url, code=failure.code, reason=str(failure))
        elif not first:
            log.info("store back", store=url, away_s=round((self.since - was).total_seconds(), 3))


def _records(store: Store, names: Sequence[str]) -> list[NamespaceRecord]:
    return [record for name in names if (record := store.get_namespace(name)) is not None]


def _answer(done: asyncio.Future[T]) -> T:
    try:
        return done.result()
    except MintError:
        raise
    except Exception as error:
        raise StoreError(f"the store failed in an unknown way: {error!r}", code="store.refused") from error


async def every(pause_s: float, do: Callable[[], Awaitable[None]], *, first_s: float = 0.0) -> None:
    """Call ``do`` again and again, with pauses, even after exceptions.

    :param first_s: the pause before the first call, in seconds.
    """
    await asyncio.sleep(first_s)
    while True:
        try:
            await do()
        except Exception:
            # Go on: without the watch nobody would see the next fault.
            log.exception("watch failed")
        await asyncio.sleep(pause_s)
