"""Accept connections, many in a turn of the loop, with TLS or without.

The event loop's own servers accept one connection in a turn, so a new connection would wait one turn for each that came
before it. They also report a connection only after its TLS handshake, so strangers could keep as many connections half
open as the process may open files. This module accepts connections itself, and counts, times and closes those with TLS
from their first byte on.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mintage.server.loop.limits import ConnectionLimit

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable

    from mintage.server.loop.limits import Connection
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


class TlsServer(Server):
    """A server with TLS: at most ``most`` connections are open, half open ones among them.

    :param connections: the connections of the interface.
    :param timeout_s: the time limit of a handshake, in seconds.
    """

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.Protocol],
        workers: int,
        share: Share | None,
        connections: set[Connection],
        most: int,
        context: ssl.SSLContext,
        timeout_s: float,
    ) -> None:
        super().__init__(listener, make, workers, share)
        self._connections = connections
        self._limit = ConnectionLimit(connections, most, timeout_s)
        self._context = context
        self._timeout_s = timeout_s

    def _begin(self, connection: socket.socket) -> None:
        if not self._limit.try_admit():
            # No refusal is sent: it would need a handshake, which is the work to save.
            connection.close()
            return
        Handshake(self._connections, self._make).begin(connection, self._context, self._timeout_s)


class Handshake(asyncio.Protocol):
    """The protocol of a connection during its handshake; the interface's own protocol then replaces it."""

    def __init__(self, connections: set[Connection], make: Callable[[], asyncio.Protocol]) -> None:
        self._connections = connections
        self._make = make
        self._task: asyncio.Task[None]

    def begin(self, connection: socket.socket, context: ssl.SSLContext, timeout_s: float) -> None:
        """Start the handshake on an accepted connection."""
        self._connections.add(self)
        self._task = asyncio.get_running_loop().create_task(self._shake_hands(connection, context, timeout_s))

    async def _shake_hands(self, connection: socket.socket, context: ssl.SSLContext, timeout_s: float) -> None:
        try:
            # Failures are the client's: it does not speak TLS, has no certificate, or takes too long.
            with suppress(OSError):
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: self, connection, ssl=context, ssl_handshake_timeout=timeout_s
                )
        finally:
            self._connections.discard(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand the connection over to the interface's own protocol."""
        self._connections.discard(self)
        protocol = self._make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    silent_s = 0.0
    """Always 0, as a handshake has a time-out of its own."""

    # --- as any connection ----------------------------------------------------------------------------------------

    def check_timeouts(self, request_timeout_s: float, idle_timeout_s: float) -> None:
        """Do nothing: the handshake has a time-out of its own."""

    def finish(self) -> bool:
        """End the handshake and return True: the client sent no request yet."""
        self.abort()
        return True

    def close(self) -> None:
        """End the handshake."""
        self.abort()

    def abort(self) -> None:
        """End the handshake."""
        self._task.cancel()
