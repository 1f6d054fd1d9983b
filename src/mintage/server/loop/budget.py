"""Bound the work of one turn of the event loop, whatever clients send.

The event loop answers all requests that it has read before it accepts new connections and reads again. So a connection
gets answers up to its share of a turn, and the others in a later turn. Once a turn has used up its budget, whatever is
read in it waits for the next turn. Connections that wait go on in the order in which they came.

The unit of work is a byte read or written, for which the lane takes about the same time: a quarter of a millisecond for
a connection's share of a turn. An answer by Python counts as the bytes that the lane would write in the same time.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Final, TypeVar

from mintage._core.lane import MAX_REPLY_BATCH

T = TypeVar("T")
R = TypeVar("R")

TURN: Final = 8 * MAX_REPLY_BATCH
"""The budget of one turn for requests that are read in it; requests that wait have the same budget again."""
FREE: Final = 2048
"""Less work than this is not counted, as counting would take longer."""
COMMAND: Final = MAX_REPLY_BATCH // 64
"""The work of a command of the Redis protocol that Python answers at once."""
REQUEST: Final = MAX_REPLY_BATCH
"""The work of a request that needs a task in Python."""
INTEGER: Final = 64
"""The work of an integer or an ID in an answer that Python writes."""
RECORD: Final = 32 * INTEGER
"""The work of a record of the store in such an answer."""
HIGH_WATER: Final = 16 * 1024
"""The most bytes that may wait for a client to read them. Above it, the service neither answers nor reads."""


class Turns:
    """The budget of a turn, and the connections that wait for a later one."""

    def __init__(self) -> None:
        self.is_spent = False
        """True if this turn has used up its budget: data that is read now must wait."""
        self._left = TURN
        self._waiting: deque[Callable[[], None]] = deque()
        # The callbacks of all connections run in it, and none in the trace of the request that was counted first.
        self._context = Context()
        # If nothing was counted in a turn, no callback is scheduled, and the loop can sleep.
        self._is_counting = False

    def spend(self, work: int) -> None:
        """Count work in this turn, in bytes."""
        self._left -= work
        self.is_spent = self._left <= 0
        self._count()

    def later(self, go_on: Callable[[], None]) -> None:
        """Call ``go_on`` once in a later turn, after all that wait already."""
        self._waiting.append(go_on)
        self._count()

    async def in_slices(self, items: Sequence[T], write: Callable[[Sequence[T]], R], work: int) -> list[R]:
        """Return what ``write`` makes of slices of the items, each written in a turn with a budget for it.

        :param work: the work of an item.
        """
        size = max(1, MAX_REPLY_BATCH // work)
        parts: list[R] = []
        for first in range(0, len(items), size):
            part = items[first : first + size]
            await self.acquire(len(part) * work)
            parts.append(write(part))
        return parts

    async def acquire(self, work: int) -> None:
        """Wait for a turn with a budget for some work, and count the work.

        Many requests may wait for one segment; without this, all of them would go on in the turn in which it comes.
        """
        if not self.is_spent:
            self.spend(work)
            return
        has_room = get_running_loop().create_future()

        def go_on() -> None:
            if not has_room.done():
                self.spend(work)
                has_room.set_result(None)

        self.later(go_on)
        await has_room

    def _count(self) -> None:
        if not self._is_counting:
            self._is_counting = True
            get_running_loop().call_soon(self._turn, context=self._context)

    def _turn(self) -> None:
        """Begin a turn: run the callbacks that wait, within a budget. Requests read in this turn have their own."""
        self._left = TURN
        try:
            for _ in range(len(self._waiting)):
                self._waiting.popleft()()
                if self._left <= 0:
                    break
        finally:
            self._is_counting = self._left < TURN or bool(self._waiting)
            self._left, self.is_spent = TURN, False
            if self._is_counting:
                get_running_loop().call_soon(self._turn, context=self._context)
