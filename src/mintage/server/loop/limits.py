"""Open connections, and the limit on their number."""

from __future__ import annotations

import time
from typing import Protocol


class Connection(Protocol):
    """A client's connection, of any interface."""

    @property
    def silent_s(self) -> float:
        """The seconds since the last request; 0 if a request has begun or is being answered."""

    def check_timeouts(self, request_timeout_s: float, idle_timeout_s: float) -> None:
        """Close the connection if the client takes too long. The service calls this once a second."""

    def finish(self) -> bool:
        """Close the connection if it was silent since the last call, and return True if so."""

    def close(self) -> None:
        """Close the connection after sending all written data."""

    def abort(self) -> None:
        """Close the connection now."""


class ConnectionLimit:
    """The limit on the open connections of an interface.

    If it is reached, connections that have been silent for longer than ``silence_s`` are closed for new ones, so that
    silent clients cannot keep others out.
    """

    def __init__(self, connections: set[Connection], most: int, silence_s: float) -> None:
        self._connections = connections
        self._most = most
        self._silence_s = silence_s
        self._again_s = 0.0

    def try_admit(self) -> bool:
        """Return True if one more connection may be open, having closed the most silent ones if need be."""
        if len(self._connections) < self._most:
            return True
        now_s = time.monotonic()
        if now_s < self._again_s:
            return False
        silent = sorted((each for each in self._connections if each.silent_s > self._silence_s), key=_silence)
        # It closes several at once, and searches again only after a second: a search takes a while.
        for each in silent[-max(1, self._most // 32) :]:
            self._connections.discard(each)
            each.abort()
        if not silent:
            self._again_s = now_s + 1.0
        return bool(silent)


def _silence(connection: Connection) -> float:
    return connection.silent_s
