"""Run blocking calls in threads, so that the event loop never blocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

from mintage.errors import RequestError, StoreError
from mintage.lease.keeper import LONGEST_PAUSE_S, unavailable

P = ParamSpec("P")
T = TypeVar("T")

#: The most calls that may wait for a thread; further ones are refused.
_MOST_WAITING: Final = 4096


class Threads:
    """A bounded number of threads, and of calls that wait for one."""

    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._waiting = 0

    async def run(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the verb in a thread, and return its result.

        If the caller leaves before a thread has begun, the verb is not called.

        :raises RequestError: ``request.busy``: too many calls wait already.
        :raises MintError: as the verb; with ``retry_after_ms`` if the store is away.
        """
        if self._waiting >= _MOST_WAITING:
            raise RequestError(
                f"{self._waiting} requests already wait for the store, the most allowed: try again in a second",
                code="request.busy",
                retry_after_ms=1000,
            )
        is_over = False

        def call() -> T | None:
            return None if is_over else verb(*args, **kwargs)

        # It counts as waiting until a thread has taken it, even if its caller leaves: so the queue is bounded.
        self._waiting += 1
        # The thread logs with the trace id of the request, and its spans are children of the request's.
        called = asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, call)
        called.add_done_callback(self._note_end)
        try:
            return cast("T", await asyncio.shield(called))
        except StoreError as error:
            if error.code == "store.unavailable" and error.retry_after_ms is None:
                error.retry_after_ms = round(LONGEST_PAUSE_S * 1000)
            raise
        finally:
            is_over = True

    def _note_end(self, called: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        _fetch(called)

    def close(self) -> None:
        """Start no further calls."""
        self._threads.shutdown(wait=False)


def _fetch(work: asyncio.Future[Any]) -> None:
    """Fetch the exception of work that nobody may wait for any more: asyncio warns of one that is never fetched."""
    _ = work.cancelled() or work.exception()


class Shared(Generic[T]):
    """Work under way, by name. All who need it wait for the same, and it goes on if one of them leaves."""

    def __init__(self) -> None:
        self._working: dict[str, asyncio.Task[T]] = {}

    async def run(self, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the work of that name; begin it if it is not under way."""
        working = self._working.get(name)
        if working is None:
            working = self._working[name] = asyncio.create_task(work())
            working.add_done_callback(lambda _: self._working.pop(name, None))
            working.add_done_callback(_fetch)
        return await asyncio.shield(working)


@asynccontextmanager
async def within(deadline: float) -> AsyncIterator[None]:
    """Let the block wait for the store until a deadline. A call that a thread has begun by then goes on.

    :param deadline: the event loop's time at which waiting ends, in seconds.
    :raises StoreError: ``store.unavailable`` with ``retry_after_ms``: the block still waits at the deadline.
    """
    limit = asyncio.timeout_at(deadline)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise unavailable("the store has not answered in the time of max_wait_ms: try again") from error
