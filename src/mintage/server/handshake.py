"""Connections whose TLS handshake is not over are connections like all others: counted, timed and ended.

The event loop's own servers tell of a connection only after its handshake, so that strangers could have as many of them
half open as the process may have files. So connections are accepted here, and counted before they say a word.
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

__all__ = ["TlsServer"]

#: Accepted in a row, before connections that are open have their turn.
_AT_ONCE: Final = 100
#: Without a file or memory left, none is accepted for so long.
_PAUSE_S: Final = 1.0


class TlsServer:
    """Accepts connections of one interface: at most ``most`` of them are open, half open ones among them.

    :param connections: those of the interface.
    :param make: makes the interface's protocol for one.
    """

    def __init__(
        self,
        listener: socket.socket,
        connections: set[Connection],
        most: int,
        make: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext,
        timeout_s: float,
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._room = Room(connections, most, timeout_s)
        self._make = make
        self._context = context
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._listen()

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return  # another worker was faster, or the client has gone
            except OSError:
                self._loop.remove_reader(self._listener)
                self._pause = self._loop.call_later(_PAUSE_S, self._listen)
                return
            if not self._room.is_there():
                # Words need a handshake, which is what is to be saved.
                connection.close()
                continue
            connection.setblocking(False)
            Handshake(self._connections, self._make).begin(connection, self._context, self._timeout_s)

    def close(self) -> None:
        """Accepts no more."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()


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

    def look(self, request_timeout_s: float, idle_timeout_s: float) -> None:
        """Nothing: the handshake has a time-out of its own."""

    def finish(self) -> bool:
        """Ends it: nothing was asked yet."""
        self.abort()
        return True

    def close(self) -> None:
        """Ends it."""
        self.abort()

    def abort(self) -> None:
        """Ends it."""
        self._task.cancel()
