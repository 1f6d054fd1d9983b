"""The sockets that the service listens on."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mintage.errors import ConfigError
from mintage.server.config.sources import variable

if TYPE_CHECKING:
    from mintage.server.config.settings import Settings

BACKLOG: Final = 2048
"""The most connections of a listener that wait to be accepted."""

Listeners = Mapping[str, socket.socket]
"""The bound sockets of the interfaces that are on, ``http`` and ``redis``."""


def bind(settings: Settings) -> Listeners:
    """Bind the addresses of the settings.

    :raises ConfigError: ``config.setting``: an address cannot be listened on.
    """
    return {name: _bind(name, *address) for name, address in settings.addresses.items()}


def addresses(listeners: Listeners) -> dict[str, str]:
    """Return the actual host and port of each interface, as ``host:port``."""
    return {name: _shown(each) for name, each in listeners.items()}


def _shown(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bind(name: str, host: str, port: int) -> socket.socket:
    try:
        # As bytes: to encode a text, Python imports the tables of internationalized names.
        (family, kind, number, _, place), *_ = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
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
            f"{name} {host}:{port} cannot be listened on: {error.strerror or error}: take another address, "
            f"with --{name} or {variable(name)}",
            code="config.setting",
        ) from error
    listener.setblocking(False)
    return listener
