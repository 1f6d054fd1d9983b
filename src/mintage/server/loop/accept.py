"""Accept connections, many in a turn of the loop.

The event loop's own servers accept one connection in a turn, so a new connection would wait one turn for each that came
before it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from mintage.server.loop.spread import Share

#: Most connections that all workers together accept in a row before open connections have their turn.
_AT_ONCE: Final = 100
#: If the process has no file or memory left, it accepts no connection for this time.
_PAUSE_S: Final = 1.0
#: The time for which it leaves connections to workers that have fewer.
_LEAVE_S: Final = 0.001


class Server:
    """The server of one interface, which accepts connections.

    :param make: creates the interface's protocol for a connection.
    :param workers: how many processes accept from the listener.
    :param share: the connections of the interface, if there are other workers.
    """

    def __init__(
        self, listener: socket.socket, make: Callable[[], asyncio.Protocol], workers: int, share: Share | None
    ) -> None:
        self._listener = listener
        self._make = make
        self._share = share
        self._at_once = max(1, _AT_ONCE // workers)
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Task[object]] = set()
        self.accepted = 0
        """The number of connections accepted since the start."""
        if share is not None:
            share.begin()
        self._listen()

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _listen_later(self, pause_s: float) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(pause_s, self._listen)

    def _accept(self) -> None:
        for _ in range(self._at_once):
            if self._share is not None and not self._share.may_accept(len(self._opening)):
                self._listen_later(_LEAVE_S)
                return
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return  # another worker was faster, or the client has gone
            except OSError:
                self._listen_later(_PAUSE_S)
                return
            self.accepted += 1
            connection.setblocking(False)
            self._begin(connection)

    def _begin(self, connection: socket.socket) -> None:
        opening = self._loop.create_task(self._loop.connect_accepted_socket(self._make, connection))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    def close(self) -> None:
        """Accept no more."""
        if self._pause is not None:
            self._pause.cancel()
        if self._share is not None:
            self._share.end()
        self._loop.remove_reader(self._listener)
        self._listener.close()
