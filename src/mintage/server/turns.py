"""The work of one turn of the event loop is bounded, whatever clients send.

A loop answers all that it has read before it accepts new connections and reads again. So a connection is answered up
to its share of a turn, and goes on in a later one; and once a turn has done its work, what else is read in it waits for
the next. What waits goes on in the order in which it came.

Work is counted in bytes that are read or written, for which the lane takes about the same time: a quarter of a
millisecond for a connection's share of a turn. What Python answers counts as the bytes that the lane would write
meanwhile.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections import deque
from typing import TYPE_CHECKING, Final

from mintage._core.lane import MAX_REPLY_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["COMMAND", "FREE", "HIGH_WATER", "INTEGER", "REQUEST", "TURN", "Turns"]

TURN: Final = 8 * MAX_REPLY_BATCH
"""The work of one turn for what was read in it, and as much again for what waits."""
FREE: Final = 2048
"""So little work is not counted: what counts it would take longer."""
COMMAND: Final = MAX_REPLY_BATCH // 64
"""The work of a command of the Redis protocol that Python answers at once."""
REQUEST: Final = MAX_REPLY_BATCH
"""The work of a request for which Python starts a task."""
INTEGER: Final = 64
"""The work of an integer in an answer of Python's."""
HIGH_WATER: Final = 16 * 1024
"""So many bytes of replies may wait for a client to read them; then none is made, and nothing read, for it."""


class Turns:
    """Counts the work of a turn, and has what is left of it wait."""

    __slots__ = ("_is_counting", "_left", "_waiting", "is_over")

    def __init__(self) -> None:
        self.is_over = False
        """True if this turn has done its work: whatever is read now has to wait."""
        self._left = TURN
        self._waiting: deque[Callable[[], None]] = deque()
        # A turn in which nothing is counted costs nothing, and lets the loop sleep.
        self._is_counting = False

    def spend(self, work: int) -> None:
        """Count work that was done in this turn."""
        self._left -= work
        self.is_over = self._left <= 0
        self._count()

    def later(self, go_on: Callable[[], None]) -> None:
        """Call this once, in a later turn: behind all that waits already."""
        self._waiting.append(go_on)
        self._count()

    async def room(self, integers: int) -> None:
        """Wait until a turn has room for an answer of Python's with so many integers, and count it.

        For what many requests wait for: all of them may go on in the turn in which it comes.
        """
        work = integers * INTEGER
        if not self.is_over:
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
            get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Begin a turn with what waits. What is read in it has a budget of its own, and need not wait as well."""
        self._left = TURN
        try:
            for _ in range(len(self._waiting)):
                self._waiting.popleft()()
                if self._left <= 0:
                    break
        finally:
            self._is_counting = self._left < TURN or bool(self._waiting)
            self._left, self.is_over = TURN, False
            if self._is_counting:
                get_running_loop().call_soon(self._turn)
