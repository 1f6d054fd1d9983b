"""Keep the event loop awake between two reads that follow each other closely.

A client that writes to a sleeping processor must wake it, which takes the client some microseconds, mostly on virtual
machines. So after two reads in quick succession the loop polls for the next one for a moment before it sleeps. A loop
with fewer requests sleeps as usual.
"""

from __future__ import annotations

from asyncio import get_running_loop
from time import monotonic
from typing import Final

MOMENT_S: Final = 20e-6
"""About the time that a wake-up takes."""


class Wake:
    """The state that keeps an event loop awake; call :meth:`note_read` at each read."""

    __slots__ = ("_is_awake", "_last_read_s")

    def __init__(self) -> None:
        self._last_read_s = 0.0
        self._is_awake = False

    def note_read(self) -> None:
        """Record that data was read."""
        now_s = monotonic()
        if now_s - self._last_read_s < MOMENT_S and not self._is_awake:
            self._is_awake = True
            get_running_loop().call_soon(self._turn)
        self._last_read_s = now_s

    def _turn(self) -> None:
        if monotonic() - self._last_read_s < MOMENT_S:
            get_running_loop().call_soon(self._turn)
        else:
            self._is_awake = False
