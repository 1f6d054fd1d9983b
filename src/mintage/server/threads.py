"""Run blocking calls in threads, so that the event loop never blocks."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from mintage.errors import RequestError, StoreError
from mintage.lease.keeper import LONGEST_PAUSE_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

P = ParamSpec("P")
T = TypeVar("T")

#: The most callers that may wait for a thread; further ones are refused.
_MOST_WAITING: Final = 4096


class Threads:
    """A bounded number of threads, and of callers that wait for one."""

    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._waiting = 0

    async def run(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the verb in a thread, and return its result.

        :raises RequestError: ``request.busy``: too many callers wait already.
        :raises MintError: as the verb; with ``retry_after_ms`` if the store is away.
        """
        if self._waiting >= _MOST_WAITING:
            raise RequestError(
                f"{self._waiting} requests wait for the store already, the limit: try again in a second",
                code="request.busy",
                retry_after_ms=1000,
            )
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, partial(verb, *args, **kwargs))
        except StoreError as error:
            if error.code == "store.unavailable" and error.retry_after_ms is None:
                error.retry_after_ms = round(LONGEST_PAUSE_S * 1000)
            raise
        finally:
            self._waiting -= 1

    async def run_until(self, deadline: float, work: Awaitable[T]) -> T:
        """Wait for work that needs the store, until a deadline. Work that takes longer goes on without its caller.

        :param deadline: the event loop's time at which waiting ends, in seconds.
        :raises StoreError: ``store.unavailable`` with ``retry_after_ms``: there is no result at the deadline.
        :raises MintError: as the work.
        """
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
        # A caller that goes away must not cancel the task for the others.
        await asyncio.wait({task}, timeout=max(0.0, deadline - loop.time()))
        if task.done():
            return task.result()
        # Nobody may need a late result, but asyncio warns of an exception that is never fetched.
        task.add_done_callback(lambda late: late.cancelled() or late.exception())
        raise StoreError(
            "the store has not answered in the time of max_wait_ms: try again",
            code="store.unavailable",
            retry_after_ms=round(LONGEST_PAUSE_S * 1000),
        )

    def close(self) -> None:
        """Start no further calls."""
        self._threads.shutdown(wait=False)
