"""Accepts connections, many in a turn of the loop, with TLS or without.

The event loop's own servers accept one connection in a turn, so that a new one would wait for as many turns as others
were faster. They also tell of a connection only after its TLS handshake, so that strangers could have as many of them
half open as the process may have files. So connections are accepted here, and those with TLS are counted, timed and
ended like all others before they say a word.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mintage.server.service import Room

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable

    from mintage.server.service import Connection

__all__ = ["Server", "TlsServer"]

#: Accepted in a row by all workers together, before connections that are open have their turn: one that is faster than
#: the others must not take all.
_AT_ONCE: Final = 100
#: Without a file or memory left, none is accepted for so long.
_PAUSE_S: Final = 1.0


class Server:
    """Accepts connections of one interface.

    :param make: makes the interface's protocol for one.
    :param workers: how many processes accept from the listener.
    """

    def __init__(self, listener: socket.socket, make: Callable[[], asyncio.Protocol], workers: int) -> None:
        self._listener = listener
        self._make = make
        self._at_once = max(1, _AT_ONCE // workers)
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Task[object]] = set()
        self.accepted = 0
        """How many connections, since the start."""
        self._listen()

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(self._at_once):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return  # another worker was faster, or the client has gone
            except OSError:
                self._loop.remove_reader(self._listener)
                self._pause = self._loop.call_later(_PAUSE_S, self._listen)
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
        self._loop.remove_reader(self._listener)
        self._listener.close()


class TlsServer(Server):
    """The same with TLS: at most ``most`` connections are open, half open ones among them.

    :param connections: those of the interface.
    """

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.Protocol],
        workers: int,
        connections: set[Connection],
        most: int,
        context: ssl.SSLContext,
        timeout_s: float,
    ) -> None:
        super().__init__(listener, make, workers)
        self._connections = connections
        self._room = Room(connections, most, timeout_s)
        self._context = context
        self._timeout_s = timeout_s

    def _begin(self, connection: socket.socket) -> None:
        if not self._room.is_there():
            # Words need a handshake, which is what is to be saved.
            connection.close()
            return
        Handshake(self._connections, self._make).begin(connection, self._context, self._timeout_s)


class Handshake(asyncio.Protocol):
    """What a connection is until its handshake is over; the interface's own protocol then takes its place."""

    def __init__(self, connections: set[Connection], make: Callable[[], asyncio.Protocol]) -> None:
        self._connections = connections
        self._make = make
        self._task: asyncio.Task[None]

    def begin(self, connection: socket.socket, context: ssl.SSLContext, timeout_s: float) -> None:
        """Greets a client that was accepted."""
        self._connections.add(self)
        self._task = asyncio.get_running_loop().create_task(self._shake_hands(connection, context, timeout_s))

    async def _shake_hands(self, connection: socket.socket, context: ssl.SSLContext, timeout_s: float) -> None:
        try:
            # What fails is theirs: they speak no TLS, or have no certificate, or take too long.
            with suppress(OSError):
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: self, connection, ssl=context, ssl_handshake_timeout=timeout_s
                )
        finally:
            self._connections.discard(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connections.discard(self)
        protocol = self._make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    silent_s = 0.0
    """As a handshake has a time-out of its own."""

    # --- as any connection ----------------------------------------------------------------------------------------

    def check_timeouts(self, request_timeout_s: float, idle_timeout_s: float) -> None:
        """Nothing: the handshake has a time-out of its own."""

    def finish(self) -> bool:
        """End it: nothing was asked yet."""
        self.abort()
        return True

    def close(self) -> None:
        """End it."""
        self.abort()

    def abort(self) -> None:
        """End it."""
        self._task.cancel()
