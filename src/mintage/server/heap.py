"""Memory of connections that have gone goes back to the system.

The C library keeps freed memory for later requests, as it lies between what is still in use: a third of a megabyte
for each half open TLS connection of a crowd, long after the crowd has gone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mintage.server.handshake import Server
    from mintage.server.service import Service

__all__ = ["TRIM_INTERVAL_S", "Heap"]

TRIM_INTERVAL_S: Final = 5.0
"""How often it is looked at: giving back takes some milliseconds."""
#: What fewer connections leave behind is not worth it.
_MANY: Final = 64


class Heap:
    """What the C library keeps of the memory of this process."""

    def __init__(self, service: Service, servers: Sequence[Server]) -> None:
        self._connections = service.connections.values()
        self._servers = servers
        self._accepted = 0

    async def trim(self) -> None:
        """Give back what is free, if at least half of many connections have gone since it was last given back."""
        accepted = sum(server.accepted for server in self._servers)
        came, are_open = accepted - self._accepted, sum(map(len, self._connections))
        if came >= _MANY and are_open <= came // 2:
            self._accepted = accepted
            _trim()


def _trim() -> None:
    import ctypes

    # Other C libraries than glibc have no such function.
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
