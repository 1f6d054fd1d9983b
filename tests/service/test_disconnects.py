"""Tests of disconnected clients: they leave nothing in the process, however they disconnect."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import struct
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest

from tests.servers.server import until as until_back
from tests.service.here import here, reached, run, until, until_idle
from tests.service.running import certificate, running
from tests.service.wire import PATIENCE_S, command, connect, head, until_closed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MANY: Final = 50
SAID: Final = {
    "HTTP, answered by the lane": ("http", head("POST /v1/sequences/orders:next", length=0)),
    "HTTP, answered by Starlette": ("http", head("GET /healthz")),
    "HTTP, with many headers": ("http", head("GET /healthz", *[f"X-{at}: x" for at in range(90)])),
    "HTTP, refused": ("http", head("GET /nothing")),
    "HTTP, half a head": ("http", head("GET /healthz")[:-2]),
    "HTTP, half a body": ("http", head("PUT /v1/sequences/orders", length=1000)),
    "HTTP, one and a half": ("http", head("GET /healthz") + b"GET / HTTP/1.1\r\nX: "),
    "HTTP, many at once": ("http", head("GET /healthz") * 100),
    "Redis, answered": ("redis", command("INCR", "orders")),
    "Redis, minted": ("redis", command("MINT", "sno")),
    "Redis, half a command": ("redis", b"*2\r\n$4\r\nINCR\r\n$1000\r\n"),
}


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("how", [reset, socket.socket.close], ids=["reset", "closed"])
@pytest.mark.parametrize("name", SAID)
def test_disconnected_client_leaves_nothing(name: str, how: Callable[[socket.socket], None]) -> None:
    interface, said = SAID[name]

    async def test() -> None:
        loop = asyncio.get_running_loop()
        async with here() as service:
            for _ in range(MANY):
                connection = await reached(service.ports[interface])
                await loop.sock_sendall(connection, said)
                if ", half" not in name:
                    await asyncio.wait_for(loop.sock_recv(connection, 10), PATIENCE_S)
                else:
                    await until(lambda: bool(service.service.connections[interface]))
                how(connection)
                del connection
            await service.until_closed()
            await until_idle()
            assert service.count() == 0

    run(test)


# --- TLS ----------------------------------------------------------------------------------------------------------

BEGUN: Final = {
    "nothing": b"",
    "half a hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no TLS at all": head("GET /healthz"),
}


def hello(cert: str) -> tuple[bytes, ssl.SSLContext]:
    """Return the complete first bytes of a client."""
    context = ssl.create_default_context(cafile=cert)
    said = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), said, server_hostname="127.0.0.1").do_handshake()
    return said.read(), context


@pytest.mark.parametrize("interface", ["http", "redis"])
def test_unfinished_handshake_counts_against_the_connection_limit(tmp_path: Path, interface: str) -> None:
    cert, key = certificate(tmp_path, "ids")
    options = ["--tls-cert", cert, "--tls-key", key, "--max-connections", "5"]

    async def test() -> None:
        loop = asyncio.get_running_loop()
        whole, context = hello(cert)
        async with here(*options) as service:
            held = service.service.connections[interface]
            connections = []
            for said in ([b"", BEGUN["half a hello"], whole] * 7)[:20]:
                connections.append(await reached(service.ports[interface]))
                with suppress(OSError):
                    await loop.sock_sendall(connections[-1], said)
            cut = 0
            for each in connections[5:]:
                with suppress(ConnectionResetError):
                    assert await asyncio.wait_for(loop.sock_recv(each, 10), PATIENCE_S) == b""
                cut += 1
            assert (len(held), cut) == (5, 15)
            service.service.gather()
            rate = service.service.metrics.registry.get_sample_value("mintage_connections", {"interface": interface})
            assert rate == 5
            for each in connections:
                each.close()
            del each, connections
            await service.until_closed()
            reader, writer = await asyncio.open_connection("127.0.0.1", service.ports[interface], ssl=context)
            writer.write({"http": head("GET /healthz"), "redis": command("PING")}[interface])
            assert await asyncio.wait_for(reader.read(5), PATIENCE_S) in {b"HTTP/", b"+PONG"}
            assert len(held) == 1
            writer.close()
            await writer.wait_closed()
            del reader, writer
            await service.until_closed()
            await until_idle()
            assert service.count() == 0

    run(test)


@pytest.mark.parametrize("said", BEGUN.values(), ids=BEGUN)
def test_handshake_that_does_not_end_is_closed(tmp_path: Path, said: bytes) -> None:
    cert, key = certificate(tmp_path, "ids")

    async def test() -> None:
        loop = asyncio.get_running_loop()
        async with here("--tls-cert", cert, "--tls-key", key, "--request-timeout-ms", "200") as service:
            connection = await reached(service.ports["http"])
            await loop.sock_sendall(connection, said)
            await until(lambda: bool(service.service.connections["http"]) or said == BEGUN["no TLS at all"])
            await service.until_closed()
            with suppress(ConnectionResetError):
                assert b"HTTP" not in await asyncio.wait_for(loop.sock_recv(connection, 10), PATIENCE_S)
            connection.close()
            await until_idle()
            assert service.count() == 0

    run(test)


@pytest.mark.parametrize("how", [reset, socket.socket.close], ids=["reset", "closed"])
def test_interrupted_handshakes_leave_nothing_to_the_collector(
    tmp_path: Path, how: Callable[[socket.socket], None]
) -> None:
    cert, key = certificate(tmp_path, "ids")

    async def test() -> None:
        loop = asyncio.get_running_loop()
        whole, _ = hello(cert)
        async with here("--tls-cert", cert, "--tls-key", key) as service:
            gc.collect()
            earlier = Counter(type(each).__name__ for each in gc.get_objects())
            gc.disable()
            try:
                for said in [BEGUN["half a hello"], whole, BEGUN["no TLS at all"]] * MANY:
                    connection = await reached(service.ports["http"])
                    await loop.sock_sendall(connection, said)
                    await asyncio.sleep(0.001)
                    how(connection)
                    del connection
                await service.until_closed()
                await until_idle()
                left = Counter(type(each).__name__ for each in gc.get_objects()) - earlier
            finally:
                gc.enable()
            assert not {"Handshake", "SSLObject", "SSLProtocol", "TCPTransport", "_SSLProtocolTransport"} & set(left)

    run(test)


def test_memory_of_interrupted_handshakes_is_freed(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "ids")
    with running(tmp_path, "--tls-cert", cert, "--tls-key", key) as service:
        before = service.memory()
        for _ in range(20):
            connections = [connect(service.http) for _ in range(200)]
            for each in connections:
                each.sendall(BEGUN["half a hello"])
            for each in connections:
                reset(each)
        # Without giving back, it keeps 70 MB more.
        until_back(lambda: service.memory() - before < 30e6, "what they held is given back")


def test_stopping_service_waits_for_no_handshake(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "ids")
    options = ["--tls-cert", cert, "--tls-key", key, "--grace-ms", "600000"]
    with running(tmp_path, *options) as service:
        connection = connect(service.http)
        connection.sendall(BEGUN["half a hello"])
    with connection:
        assert until_closed(connection) == b""
