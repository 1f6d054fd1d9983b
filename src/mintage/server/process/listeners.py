"""The sockets that the service listens on."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mintage.errors import ConfigError
from mintage.server.config.sources import variable

if TYPE_CHECKING:
    from mintage.server.config.settings import Settings

BACKLOG: Final = 2048
"""The most connections of a listener that wait to be accepted."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Bound sockets; ``None`` where an interface is off."""

    http: socket.socket | None
    redis: socket.socket | None

    @classmethod
    def bind(cls, settings: Settings) -> Listeners:
        """Bind the addresses of the settings.

        :raises ConfigError: ``config.setting``: an address cannot be listened on.
        """
        return cls(_bind("http", settings.http_address), _bind("redis", settings.redis_address))

    def bound(self) -> dict[str, socket.socket]:
        """Return the bound sockets, by interface."""
        return {name: each for name, each in (("http", self.http), ("redis", self.redis)) if each is not None}

    def addresses(self) -> dict[str, str]:
        """Return the actual host and port of each interface, as ``host:port``."""
        return {name: _shown(each) for name, each in self.bound().items()}


def _shown(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bind(name: str, address: tuple[str, int] | None) -> socket.socket | None:
    if address is None:
        return None
    try:
        # As bytes: to encode a text, Python imports the tables of internationalized names.
        host, port = address[0].encode("ascii"), address[1]
        (family, kind, number, _, place), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        listener = socket.socket(family, kind, number)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"{name} {address[0]}:{address[1]} cannot be listened on: {error.strerror or error}: take another address, "
            f"with --{name} or {variable(name)}",
            code="config.setting",
        ) from error
    listener.setblocking(False)
    return listener
