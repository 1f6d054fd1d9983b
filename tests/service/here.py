"""A service in the process and event loop of the test, which can inspect it."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import uvloop

from mintage.server.config.settings import Settings
from mintage.server.core.service import Service
from mintage.server.http.protocol import HttpProtocol
from mintage.server.loop.tls import Handshake
from mintage.server.process.run import BACKLOG
from mintage.server.process.worker import listen
from mintage.server.resp.protocol import RespProtocol
from mintage.store.memory import MemoryStore
from tests.service.wire import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


def connections_in_memory() -> list[object]:
    gc.collect()
    # By its type: a lazy object of another package would be made by a look at its class.
    return [each for each in gc.get_objects() if issubclass(type(each), (HttpProtocol, RespProtocol, Handshake))]


class Here:
    """A service in this event loop."""

    def __init__(self, service: Service, ports: dict[str, int]) -> None:
        self.service = service
        self.ports = ports
        self._earlier = connections_in_memory()

    def count(self) -> int:
        """Return the number of connections in memory, whatever references them, without those of earlier tests."""
        earlier = {id(each) for each in self._earlier}
        return sum(id(each) not in earlier for each in connections_in_memory())

    async def until_closed(self) -> None:
        await until(lambda: not any(self.service.connections.values()))


async def until_idle() -> None:
    """Run the loop until the connections are closed."""
    for _ in range(100):
        await asyncio.sleep(0.001)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def here(*options: str) -> AsyncIterator[Here]:
    settings = Settings.load(["--store", "memory:", "--max-wait-ms", "60000", *options])
    service = Service(settings, MemoryStore())
    bound = {name: socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) for name in ("http", "redis")}
    for each in bound.values():
        each.setblocking(False)
    servers = listen(service, bound)
    try:
        yield Here(service, {name: each.getsockname()[1] for name, each in bound.items()})
    finally:
        for server in servers:
            server.close()
        await service.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await test()

    uvloop.run(main())


async def reached(port: int) -> socket.socket:
    connection = socket.socket()
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    return connection
