"""A new connection beside many busy ones: counted in turns of the event loop, as these are what clients share."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from mintage._core.service import SHARE
from mintage.server.keys import digest
from mintage.server.turns import COMMAND, REQUEST, TURN
from tests.service.here import Here, here, run
from tests.service.wire import PATIENCE_S, command, connect, head

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator
    from pathlib import Path

MANY: Final = 300
MOST_TURNS: Final = 100
"""Until a new connection has its answer: some to accept 300 before it, and one for every eight or more that wait."""
MOST_WORK: Final = 2 * (TURN + 4 * SHARE)
"""The work of one turn: its budget, twice, and the last replies beyond it."""
NEXT: Final = head("POST /v1/sequences/busy:next?count=10000", length=0)
WARM: Final = head("POST /v1/sequences/busy:next", length=0)


class Busy(NamedTuple):
    """What every busy connection asks for at once, and the work of one request at least."""

    interface: str
    said: bytes
    work: int
    keyed: bool = False


BUSY: Final = {
    "HTTP, 10,000 integers by the lane": Busy("http", NEXT * 20, 80_000),
    "HTTP, one integer by the lane": Busy("http", WARM * 500, 250),
    "HTTP, answered by Python": Busy("http", head("GET /healthz") * 100, REQUEST),
    "HTTP, without a key": Busy("http", NEXT * 100, REQUEST, keyed=True),
    "Redis, by the lane": Busy("redis", command("INCR", "busy") * 2000, 30),
    "Redis, answered by Python": Busy("redis", command("ECHO", "x") * 2000, COMMAND),
    "Redis, without a key": Busy("redis", command("INCR", "busy") * 2000, COMMAND, keyed=True),
    "Redis, minted": Busy("redis", command("MINT", "uuid", "COUNT", "1000") * 20, REQUEST),
}
ASKED: Final = {"http": head("GET /healthz"), "redis": command("PING")}
ANSWERED: Final = {"http": b"HTTP/1.1 200 ", "redis": b"+PONG\r\n"}


@pytest.fixture
def keyed(tmp_path: Path) -> list[str]:
    """Options of a service that has a key."""
    config = tmp_path / "mintage.toml"
    config.write_text(f'[keys.shop]\nhash = "{digest("secret")}"\nrights = {{ "*" = ["next"] }}\n', encoding="utf-8")
    return ["--config", str(config)]


async def turns() -> AsyncIterator[int]:
    """Count the turns of the loop while others work."""
    for turn in range(1_000_000):
        yield turn
        await asyncio.sleep(0)


def answered(service: Here) -> float:
    """How many requests were answered, by the lane or by Python."""
    metrics = service.service.metrics
    metrics.gather(service.service)
    samples = (each for metric in metrics.registry.collect() for each in metric.samples)
    return sum(each.value for each in samples if each.name == "mintage_requests_total")


async def warm(service: Here) -> None:
    """Have the namespace opened, so that the lane has its integers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.ports["http"])
    writer.write(WARM)
    await asyncio.wait_for(reader.readuntil(b"]}"), PATIENCE_S)
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def busy_connections(service: Here, busy: Busy) -> AsyncIterator[None]:
    """Connect all and have each ask for all, before the loop has another turn; reset them in the end."""
    connections: list[socket.socket] = []
    try:
        for _ in range(MANY):
            connections.append(connect(("127.0.0.1", service.ports[busy.interface])))
            connections[-1].setblocking(False)
            assert connections[-1].send(busy.said) == len(busy.said)
        yield
    finally:
        for each in connections:
            each.close()
        await service.until_closed()


@pytest.mark.parametrize("name", BUSY)
def test_a_new_connection_is_answered_within_few_turns(name: str, keyed: list[str]) -> None:
    busy = BUSY[name]
    options = ["--min-step", "1000000", *(keyed if busy.keyed else [])]

    async def test() -> None:
        async with here(*options) as service:
            if not busy.keyed:
                await warm(service)
            async with busy_connections(service, busy):
                with connect(("127.0.0.1", service.ports[busy.interface])) as new:
                    new.setblocking(False)
                    new.send(ASKED[busy.interface])
                    async for turn in turns():
                        assert turn < MOST_TURNS, "others are answered first"
                        try:
                            reply = new.recv(100)
                        except BlockingIOError:
                            continue
                        assert reply.startswith(ANSWERED[busy.interface])
                        break

    run(test)


@pytest.mark.parametrize("name", [name for name in BUSY if "minted" not in name])
def test_a_turn_has_a_bounded_work_however_much_is_asked(name: str, keyed: list[str]) -> None:
    busy = BUSY[name]
    options = ["--min-step", "1000000", *(keyed if busy.keyed else [])]

    async def test() -> None:
        async with here(*options) as service:
            if not busy.keyed:
                await warm(service)
            before = answered(service)
            most = 0.0
            async with busy_connections(service, busy):
                async for turn in turns():
                    now = answered(service)
                    most, before = max(most, now - before), now
                    if turn == MOST_TURNS:
                        break
            assert 0 < most * busy.work <= MOST_WORK, most

    run(test)
