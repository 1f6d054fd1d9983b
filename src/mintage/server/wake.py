"""A loop that is asked much does not fall asleep between two readings.

A client that writes to a sleeping processor has to wake it, which costs the client microseconds, above all on a virtual
machine. So after two readings in quick succession the loop looks for the next one for a moment before it waits. A loop
that is asked less often sleeps as ever.
"""

from __future__ import annotations

from asyncio import get_running_loop
from time import monotonic
from typing import Final

__all__ = ["MOMENT_S", "Wake"]

MOMENT_S: Final = 20e-6
"""About what a wake-up costs."""


class Wake:
    """What keeps the loop awake that it is told in."""

    __slots__ = ("_heard_s", "_is_awake")

    def __init__(self) -> None:
        self._heard_s = 0.0
        self._is_awake = False

    def heard(self) -> None:
        """Something was read."""
        now_s = monotonic()
        if now_s - self._heard_s < MOMENT_S and not self._is_awake:
            self._is_awake = True
            get_running_loop().call_soon(self._turn)
        self._heard_s = now_s

    def _turn(self) -> None:
        if monotonic() - self._heard_s < MOMENT_S:
            get_running_loop().call_soon(self._turn)
        else:
            self._is_awake = False
