"""The proxy of :mod:`mintage.prove.proxy` in front of a server of the tests."""

from __future__ import annotations

from mintage.prove import proxy
from tests.servers.server import HOST, Daemon, free_port


class Proxy(proxy.Proxy):
    """A proxy between clients and one server of the tests."""

    def __init__(self, server: Daemon) -> None:
        self._server = server
        self._swallows = False
        # The server may have another port when a client connects.
        super().__init__(lambda: (HOST, self._server.port), free_port())

    @property
    def url(self) -> str:
        """Return the URL of the server through the proxy."""
        return self._server.url.replace(f"{HOST}:{self._server.port}", f"{HOST}:{self.port}")

    def lead_to(self, server: Daemon) -> None:
        """Lead to another server from now on, as when an address moves; connections to the old one are reset."""
        with self._changed:
            self._server = server
            self.reset()

    def refuse(self) -> None:
        """Reset all connections and refuse new ones."""
        with self._changed:
            self._refuse()

    def blackhole(self) -> None:
        """Accept, and forward nothing in either direction."""
        with self._changed:
            self._swallows = True

    def heal(self) -> None:
        """Forward again, beginning with the bytes that a black hole held back, which arrive late."""
        with self._changed:
            self._cut_at = 0
            self._swallows = False
            if self._listener is None:
                self._listen()
            self._changed.notify()

    def _hold_back(self) -> None:
        while self._swallows and not self._closed:
            self._changed.wait()
