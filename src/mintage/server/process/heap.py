"""Return the memory of closed connections to the system.

The C library keeps freed memory that lies between blocks in use: a third of a megabyte for each of many half open TLS
connections, long after they are closed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mintage.server.core.service import Service
    from mintage.server.loop.accept import Server

TRIM_INTERVAL_S: Final = 5.0
"""The pause between two checks: trimming takes some milliseconds."""
#: The memory of fewer closed connections is not worth a trim.
_MANY: Final = 64


class Heap:
    """The freed memory that the C library keeps for this process."""

    def __init__(self, service: Service, servers: Sequence[Server]) -> None:
        self._connections = service.connections.values()
        self._servers = servers
        self._accepted = 0

    async def trim(self) -> None:
        """Return free memory to the system if, of many connections since the last time, at least half are closed."""
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
