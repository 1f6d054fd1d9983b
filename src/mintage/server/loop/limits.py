"""Open connections, the limit on their number, and the time limits of their clients."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from operator import attrgetter


class Connection(asyncio.Protocol, ABC):
    """A client's connection, of any interface. A subclass that reads requests overrides all methods."""

    @property
    def silent_s(self) -> float:
        """The seconds since the last request; 0 if a request has begun or is being answered."""
        return 0

    def check_timeouts(self, request_timeout_s: float, idle_timeout_s: float) -> None:
        """Close the connection if the client takes too long. The service calls this once a second."""

    def finish(self) -> bool:
        """Close the connection if it was silent since the last call, and return True if so."""
        self.abort()
        return True

    def close(self) -> None:
        """Close the connection after sending all written data."""
        self.abort()

    @abstractmethod
    def abort(self) -> None:
        """Close the connection now."""


class ClientProtocol(Connection):
    """The part of an interface's protocol that limits how long a client may be silent, send a request or read.

    The interface says what the connection waits for.
    """

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._is_active = True
        """True if data came since the last check."""
        self._is_clogged = False
        """True while the client does not read its answers."""
        self._waits_s = 0
        """For how many seconds the client was waited for."""

    @abstractmethod
    def has_begun(self) -> bool:
        """Return True if a request has begun whose end was not read yet."""

    @abstractmethod
    def is_waiting(self) -> bool:
        """Return True if a complete request is not answered yet."""

    def is_silent(self) -> bool:
        """Return True if every request that has begun is answered."""
        return not (self.has_begun() or self.is_waiting())

    @property
    def silent_s(self) -> float:
        """The seconds since the last request; 0 if a request has begun or is being answered."""
        return self._waits_s if self.is_silent() and not self._is_clogged else 0

    def check_timeouts(self, request_timeout_s: float, idle_timeout_s: float) -> None:
        """Close the connection if the client is silent for too long, or takes too long to send or to read."""
        if self.is_waiting() and not self._is_clogged:
            self._waits_s = 0
            return  # an answer is being made
        begun = self.has_begun() or self._is_clogged
        self._waits_s = 0 if self._is_active and not begun else self._waits_s + 1
        self._is_active = False
        limit_s = request_timeout_s if begun else idle_timeout_s
        if limit_s and self._waits_s > limit_s:
            # Answers that the client did not read in time are dropped.
            self._transport.abort() if self._is_clogged else self._transport.close()

    def finish(self) -> bool:
        """Close the connection if it was silent since the last check, and return True if so."""
        if self.is_silent() and not self._is_active:
            self._transport.close()
            return True
        self._is_active = False
        return False

    def close(self) -> None:
        """Close the connection after sending all written data."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection now."""
        self._transport.abort()


class ConnectionLimit:
    """The limit on the open connections of an interface.

    If it is reached, connections that have been silent for longer than ``silence_s`` are closed for new ones, so that
    silent clients cannot keep others out.
    """

    def __init__(self, connections: set[Connection], most: int, silence_s: float) -> None:
        self.connections = connections
        self._most = most
        self._silence_s = silence_s
        self._again_s = 0.0

    def try_admit(self) -> bool:
        """Return True if one more connection may be open, having closed the most silent ones if need be."""
        if len(self.connections) < self._most:
            return True
        now_s = time.monotonic()
        if now_s < self._again_s:
            return False
        silent = [each for each in self.connections if each.silent_s > self._silence_s]
        # It closes several at once, and searches again only after a second: a search takes a while.
        for each in sorted(silent, key=attrgetter("silent_s"))[-max(1, self._most // 32) :]:
            self.connections.discard(each)
            each.abort()
        if not silent:
            self._again_s = now_s + 1.0
        return bool(silent)
