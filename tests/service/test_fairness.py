"""Tests of fairness: a new connection beside many busy ones, counted in turns of the event loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from mintage._core.lane import MAX_REPLY_BATCH
from mintage.server.config.keys import digest
from mintage.server.core.minters import SLICE
from mintage.server.http.app import create_app
from mintage.server.http.protocol import HttpProtocol
from mintage.server.http.v1 import sequences
from mintage.server.loop.budget import COMMAND, HIGH_WATER, INTEGER, RECORD, REQUEST, TURN, Turns
from mintage.server.resp.protocol import RespProtocol
from tests.service.here import Here, here, run
from tests.service.wire import PATIENCE_S, command, connect, head

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from mintage.rules import NamespaceRecord

MANY: Final = 300
MOST_TURNS: Final = 100
"""The turns until a new connection is answered: some to accept 300 before it, and one for every eight waiting."""
MOST_WORK: Final = 2 * (TURN + 4 * MAX_REPLY_BATCH)
"""The work of one turn: its budget, twice, and the last replies beyond it."""
NEXT: Final = head("POST /v1/sequences/busy:next?count=10000", length=0)
WARM: Final = head("POST /v1/sequences/busy:next", length=0)
ODD: Final = head("POST /v1/sequences/busy:next?count=10000", "Origin: http://localhost", length=0) * 5
LONG: Final = 5_000
"""The namespaces of a long list."""


class Busy(NamedTuple):
    """The requests that every busy connection sends at once, and the work of one request at least."""

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
    "Redis, 10,000 minted": Busy("redis", command("MINT", "cuid2", "COUNT", "10000"), REQUEST),
    "HTTP, 10,000 integers by Python": Busy("http", ODD, REQUEST),
    "HTTP, a list of namespaces": Busy("http", head("GET /v1/sequences") * 5, REQUEST),
    "HTTP, 10,000 minted": Busy("http", head("POST /v1/ids/ulid?count=10000", length=0), REQUEST),
}
ASKED: Final = {"http": head("GET /healthz"), "redis": command("PING")}
ANSWERED: Final = {"http": b"HTTP/1.1 200 ", "redis": b"+PONG\r\n"}


@pytest.fixture
def keyed(tmp_path: Path) -> list[str]:
    """Return options of a service with a key."""
    config = tmp_path / "mintage.toml"
    config.write_text(f'[keys.shop]\nhash = "{digest("secret")}"\nrights = {{ "*" = ["next"] }}\n', encoding="utf-8")
    return ["--config", str(config)]


async def turns() -> AsyncIterator[int]:
    """Count the turns of the loop while others work."""
    for turn in range(1_000_000):
        yield turn
        await asyncio.sleep(0)


def answered(service: Here, counter: str = "mintage_requests_total") -> float:
    """Return the number of requests answered, by the lane or by Python, or the sum of another counter."""
    service.service.gather()
    metrics = service.service.metrics
    samples = (each for metric in metrics.registry.collect() for each in metric.samples)
    return sum(each.value for each in samples if each.name == counter)


async def warm(service: Here) -> None:
    """Open the namespace, so that the lane has integers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.ports["http"])
    writer.write(WARM)
    await asyncio.wait_for(reader.readuntil(b"]}"), PATIENCE_S)
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def busy_connections(service: Here, busy: Busy) -> AsyncIterator[None]:
    """Connect all and send all requests before the loop has another turn; reset them at the end."""
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
def test_new_connection_is_answered_within_few_turns(name: str, keyed: list[str]) -> None:
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
def test_turn_has_bounded_work_for_any_amount_of_requests(name: str, keyed: list[str]) -> None:
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


@pytest.mark.parametrize("name", ["Redis, 10,000 minted", "HTTP, 10,000 minted"])
def test_turn_mints_one_slice_however_many_ids_are_asked_for(name: str) -> None:
    async def test() -> None:
        async with here() as service:
            minted = most = 0.0
            async with busy_connections(service, BUSY[name]):
                async for _ in turns():
                    before, minted = minted, answered(service, "mintage_ids_total")
                    most = max(most, minted - before)
                    if minted >= 5_000:
                        break
            assert 0 < most <= SLICE

    run(test)


def test_turn_writes_a_bounded_part_of_all_lists() -> None:
    async def test() -> None:
        turns_, written = Turns(), 0

        def write(part: Sequence[int]) -> int:
            nonlocal written
            written += len(part)
            return len(part)

        lists = [asyncio.create_task(turns_.in_slices(range(20_000), write, INTEGER)) for _ in range(50)]
        most = before = 0
        async for _ in turns():
            most, before = max(most, written - before), written
            if all(each.done() for each in lists):
                break
        assert written == 50 * 20_000
        assert most * INTEGER <= MOST_WORK

    run(test)


def test_turn_writes_few_records_of_a_list_of_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0
    facts = sequences._namespace

    def counted(record: NamespaceRecord) -> sequences.NamespaceFacts:
        nonlocal written
        written += 1
        return facts(record)

    monkeypatch.setattr(sequences, "_namespace", counted)

    async def test() -> None:
        async with here() as service:
            for number in range(LONG):
                service.service.store.create_namespace(f"namespace-{number}")
            most = before = 0
            with connect(("127.0.0.1", service.ports["http"])) as listing:
                listing.setblocking(False)
                listing.send(head("GET /v1/sequences"))
                async for _ in turns():
                    most, before = max(most, written - before), written
                    if written == LONG:
                        break
            assert most * RECORD <= MOST_WORK
            await service.until_closed()

    run(test)


def test_mint_of_one_does_not_wait_for_the_lists_of_others() -> None:
    async def test() -> None:
        async with here() as service:
            mint = partial(service.service.mint, service.service.keys.find(None), "ulid")
            lists = [asyncio.create_task(mint(10_000)) for _ in range(10)]
            await asyncio.sleep(0)
            assert len(await asyncio.wait_for(mint(1), PATIENCE_S)) == 1
            assert not any(each.done() for each in lists)
            assert [len(set(each)) for each in await asyncio.gather(*lists)] == [10_000] * 10

    run(test)


class Unread(asyncio.Transport):
    """The transport of a client that reads nothing, with no room in the kernel."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__({"peername": ("127.0.0.1", 4711), "sockname": ("127.0.0.1", 8080)})
        self.protocol = protocol
        self.high = self.written = 0
        self.is_read = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high or 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        was_full = self.written > self.high
        self.written += len(data)
        if self.written > self.high and not was_full:
            self.protocol.pause_writing()

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


READING: Final = 256_000
"""The most bytes that the loop reads at once."""
INTEGERS: Final = head("POST /v1/sequences/busy:next?count=1000", length=0)
PIPELINED: Final = {
    "HTTP, 10,000 integers by the lane": ("http", NEXT, 10_000 * 22),
    "HTTP, 1,000 integers by the lane": ("http", INTEGERS, 0),
    "HTTP, one integer by the lane": ("http", WARM, 0),
    "HTTP, answered by Python": ("http", head("GET /healthz"), 0),
    "Redis, by the lane": ("redis", b"INCR busy\n", 0),
    "Redis, answered by Python": ("redis", b"COMMAND\n", 0),
}
"""The command that fills a read, and the length of one reply if that is more than a share."""


@pytest.mark.parametrize("name", PIPELINED)
def test_answers_to_a_client_that_does_not_read_are_bounded(name: str) -> None:
    interface, request, reply = PIPELINED[name]

    async def test() -> None:
        async with here("--min-step", "1000000") as service:
            await warm(service)
            protocol = (
                HttpProtocol(service.service, create_app(service.service))
                if interface == "http"
                else RespProtocol(service.service)
            )
            transport = Unread(protocol)
            protocol.connection_made(transport)
            protocol.data_received(request * (READING // len(request)))
            async for turn in turns():
                if turn == MOST_TURNS:
                    break
            assert 0 < transport.written <= HIGH_WATER + max(MAX_REPLY_BATCH, reply)
            assert not transport.is_read
            protocol.connection_lost(ConnectionResetError())

    run(test)


def test_body_in_tiny_chunks_is_read_in_many_turns() -> None:
    chunks = 30_000

    async def test() -> None:
        async with here() as service:
            protocol = HttpProtocol(service.service, create_app(service.service))
            transport = Unread(protocol)
            protocol.connection_made(transport)
            protocol.data_received(head("POST /alloc", "Transfer-Encoding: chunked") + b"1\r\n\n\r\n" * chunks)
            waited = 0
            while not transport.is_read:
                await asyncio.sleep(0)
                waited += 1
            protocol.connection_lost(None)
            assert waited >= chunks / 200

    run(test)
