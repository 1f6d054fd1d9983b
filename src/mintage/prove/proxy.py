"""A proxy in front of a server, which loses a reply on request."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

HOST: Final = "127.0.0.1"
PATIENCE_S: Final = 10


@dataclass(eq=False, slots=True)
class _Connection:
    """A connection of a client, and the one to the server that belongs to it."""

    client: socket.socket
    server: socket.socket
    asks: bool = False
    """True if the client sent the last bytes."""


class Proxy:
    """A proxy between clients and one server, on one thread; a method has taken effect when it returns.

    A reply is the output of the server up to the next bytes of the client, after the client has sent something: in a
    protocol of requests and answers, it proves that the server has executed the request. A greeting is no reply.
    """

    def __init__(self, server: Callable[[], tuple[str, int]], port: int = 0) -> None:
        """Listen on a port of the loopback address.

        :param server: returns host and port of the server, for each connection anew.
        :param port: the port to listen on; 0 for any that is free.
        """
        self.replies = 0
        """The number of replies so far. The count of one verb tells which reply to cut."""
        self._address = server
        self._cut_at, self._sends_half = 0, False
        self._closed = False
        self._changed = threading.Condition()
        self._connections: dict[socket.socket, _Connection] = {}
        self._listener: socket.socket | None = None
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self.port = port
        self._listen()
        self._thread = threading.Thread(target=self._forward, name="proxy", daemon=True)
        self._thread.start()

    def cut(self, reply: int = 1, *, sends_half: bool = False) -> None:
        """Lose a reply, counted from now: its request is executed, and the connection of its client reset instead.

        :param sends_half: True to forward the first half of it before.
        """
        with self._changed:
            self._cut_at, self._sends_half = self.replies + reply, sends_half

    def has_cut(self) -> bool:
        """Return True if the reply has been lost."""
        return self.replies >= self._cut_at

    def reset(self) -> None:
        """Reset all connections."""
        with self._changed:
            for connection in set(self._connections.values()):
                self._drop(connection)

    def close(self) -> None:
        """Reset all connections and end the thread."""
        with self._changed:
            self._closed = True
            self._refuse()
            self._changed.notify()
        self._waker.close()
        self._thread.join()
        self._woken.close()
        self._selector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forward(self) -> None:
        while True:
            ready = self._selector.select()
            with self._changed:
                self._hold_back()
                if self._closed:
                    return
                for key, _ in ready:
                    end = key.fileobj
                    # What a verb closed meanwhile is neither.
                    if end is self._listener and self._listener is not None:
                        self._accept(self._listener)
                    elif isinstance(end, socket.socket) and (connection := self._connections.get(end)):
                        self._pass_on(connection, end)

    def _hold_back(self) -> None:
        """Wait here to forward nothing."""

    def _accept(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except OSError:  # it went away again
            return
        try:
            server = socket.create_connection(self._address(), timeout=PATIENCE_S)
        except OSError:
            _reset(client)
            return
        connection = _Connection(client, server)
        for end in (client, server):
            end.settimeout(PATIENCE_S)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections[end] = connection
            self._selector.register(end, selectors.EVENT_READ)

    def _pass_on(self, connection: _Connection, source: socket.socket) -> None:
        try:
            data = source.recv(65536)
            if source is connection.client:
                connection.asks = connection.asks or bool(data)
                target = connection.server
            else:
                target = connection.client
                if connection.asks and data:
                    connection.asks = False
                    self.replies += 1
                    if self.replies == self._cut_at:
                        if self._sends_half:
                            target.sendall(data[: len(data) // 2])
                        data = b""
            target.sendall(data)
        except OSError:
            data = b""
        if not data:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        for end in (connection.client, connection.server):
            self._selector.unregister(end)
            del self._connections[end]
            _reset(end)

    def _refuse(self) -> None:
        if self._listener:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
        self.reset()

    def _listen(self) -> None:
        self._listener = socket.create_server((HOST, self.port))
        self.port = self._listener.getsockname()[1]
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)


def _reset(end: socket.socket) -> None:
    """Close a connection with a reset, whatever is still to be sent."""
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()
