"""Tests of hostile clients: memory stays bounded, they are disconnected, and others are served meanwhile."""

from __future__ import annotations

import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final, Self

import pytest

from tests.servers.server import until
from tests.service.running import Running, running
from tests.service.wire import PATIENCE_S, command, connect, exactly, head, say, until_closed

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S: Final = 2
"""The limit for sending a request and reading an answer; clients stay below it on a busy machine."""
ROOM: Final = 64 * 2**20
"""The additional bytes of memory that the service may use under any load."""

NEXT: Final = head("POST /v1/sequences/flood:next", length=0)
INCR: Final = command("INCR", "flood")
ENDLESS: Final = {
    "HTTP, answered by the lane": ("http", NEXT),
    "HTTP, answered by Starlette": ("http", head("GET /healthz")),
    "HTTP, refused": ("http", head("GET /nothing")),
    "HTTP, with large answers": ("http", head("POST /v1/sequences/flood:next?count=10000", length=0)),
    "Redis, answered by the lane": ("redis", INCR),
    "Redis, answered by Python": ("redis", command("MINT", "sno")),
    "Redis, refused": ("redis", command("NONSENSE", "x" * 100)),
    "Redis, with large answers": ("redis", command("MINT", "sno", "COUNT", 1000)),
}
"""Requests that can be sent again and again."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service"), "--request-timeout-ms", str(TIMEOUT_S * 1000)) as service:
        for interface, request in ENDLESS.values():
            # Do not measure what is opened or imported at first use.
            say(getattr(service, interface), request * 20 + (b"\0" if interface == "http" else command("QUIT")))
        yield service


def others_are_served(service: Running) -> None:
    body = b'{"serviceName":"bystander"}'
    with connect(service.http) as connection:
        connection.sendall(head("POST /alloc", "Connection: close", length=len(body)) + body)
        assert b'"code":0' in until_closed(connection)
    assert say(service.redis, command("INCR", "bystander"), command("QUIT")).startswith(b":")


@contextmanager
def bounded(service: Running) -> Iterator[None]:
    """Assert repeatedly that memory stays bounded and others are served."""
    limit = service.memory() + ROOM
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            assert service.memory() < limit
            others_are_served(service)

    with ThreadPoolExecutor(1) as thread:
        looking = thread.submit(look)
        try:
            yield
        finally:
            done.set()
            looking.result()


def is_closed(connection: socket.socket) -> bool:
    """Return True if the service has closed the connection; earlier bytes are discarded."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


# --- slow ---------------------------------------------------------------------------------------------------------

BEGUN = {
    "half a line": ("http", b"POST /all"),
    "half a head for the lane": ("http", b"POST /alloc HTTP/1.1\r\nHost: a\r\nX-Long: "),
    "half a head": ("http", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Long: "),
    "half a body for the lane": ("http", head("POST /alloc", length=1000)),
    "half a body": ("http", head("PUT /v1/sequences/slow", length=1000)),
    "half a chunk": ("http", head("PUT /v1/sequences/slow", "Transfer-Encoding: chunked") + b"3e8\r\n"),
    "half a second request": ("http", head("GET /healthz") + b"GET /"),
    "half a count": ("redis", b"*"),
    "half an argument": ("redis", b"*2\r\n$4\r\nINCR\r\n$1000\r\n"),
    "half an inline command": ("redis", b"INCR "),
    "half a second command": ("redis", command("PING") + b"*2\r\n$4\r\nINCR\r\n$1000\r\n"),
}


def test_incomplete_request_is_closed_however_slowly_it_drips(service: Running) -> None:
    with ExitStack() as stack, bounded(service):
        waiting = {}
        for name, (interface, begun) in BEGUN.items():
            for _ in range(10):
                connection = stack.enter_context(connect(getattr(service, interface)))
                connection.sendall(begun)
                waiting[connection] = name
        deadline = time.monotonic() + PATIENCE_S
        while waiting and time.monotonic() < deadline:
            for connection in list(waiting):
                if is_closed(connection):
                    del waiting[connection]
                else:
                    with suppress(OSError):
                        connection.send(b"1")
            select.select([], [], [], 0.05)
        assert not waiting, set(waiting.values())


def test_silent_connections_do_not_block_others(service: Running) -> None:
    with ExitStack() as stack, bounded(service):
        for _ in range(200):
            stack.enter_context(connect(service.http))
            stack.enter_context(connect(service.redis))
        for _ in range(20):
            others_are_served(service)


# --- fast ---------------------------------------------------------------------------------------------------------


def test_endless_pipeline_is_answered_beyond_the_request_timeout(service: Running) -> None:
    until(lambda: goes_on(service), "no client is held up", seconds=4 * PATIENCE_S)


def goes_on(service: Running) -> bool:
    """Send all endless pipelines and check the answers; return False if a client was cut that was held up itself."""
    until_s = time.monotonic() + 2.5 * TIMEOUT_S + 1
    heard = dict.fromkeys(ENDLESS, 0)
    failures = []

    def listen(name: str, connection: socket.socket) -> None:
        # A connection that was cut before its time cannot send any more, either.
        with suppress(ConnectionResetError):
            while data := connection.recv(2**20):
                heard[name] += len(data)

    def flood(name: str) -> None:
        interface, request = ENDLESS[name]
        # Incomplete requests, so that one has always begun.
        cut = len(request) // 2
        block = request[cut:] + request * (2000 // len(request) + 1) + request[:cut]
        with connect(getattr(service, interface)) as connection:
            connection.sendall(request[:cut])
            listening = threading.Thread(target=listen, args=(name, connection))
            listening.start()
            try:
                while time.monotonic() < until_s:
                    connection.sendall(block)
            except OSError as error:
                failures.append((name, error))
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            listening.join()

    with bounded(service), Pauses() as pauses:
        floods = [threading.Thread(target=flood, args=[name]) for name in ENDLESS]
        for each in floods:
            each.start()
        for each in floods:
            each.join()
    if failures and pauses.longest_s > TIMEOUT_S / 2:
        return False
    assert not failures
    assert all(heard.values()), heard
    return True


class Pauses(threading.Thread):
    """The times in which no thread of this process ran."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_s = 0.0
        self._done = threading.Event()

    def run(self) -> None:
        before_s = time.monotonic()
        while not self._done.wait(0.05):
            now_s = time.monotonic()
            self.longest_s, before_s = max(self.longest_s, now_s - before_s), now_s

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()


@pytest.mark.parametrize("name", [name for name in ENDLESS if "lane" in name or "large" in name or "Starlette" in name])
def test_client_that_never_reads_is_not_read_and_disconnected(service: Running, name: str) -> None:
    interface, request = ENDLESS[name]
    with socket.socket() as connection, bounded(service):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(getattr(service, interface))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_for_ever(connection, request * (200_000 // len(request)))


def send_for_ever(connection: socket.socket, block: bytes) -> None:
    """Send whenever there is room, until the connection is closed."""
    connection.setblocking(False)
    rest, deadline = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if select.select([], [connection], [], 0.1)[1]:
            rest = rest or block
            rest = rest[connection.send(rest) :]


# --- large --------------------------------------------------------------------------------------------------------

FILL: Final = b"x" * 2**20
LARGE = {
    "a bulk of 4 GiB": ("redis", b"*2\r\n$4\r\nINCR\r\n$4294967296\r\n", b"-ERR Protocol error"),
    "a bulk of 2^64": ("redis", b"*2\r\n$4\r\nINCR\r\n$18446744073709551616\r\n", b"-ERR Protocol error"),
    "four billion arguments": ("redis", b"*4294967296\r\n", b"-ERR Protocol error"),
    "a length without end": ("redis", b"*" + b"1" * 2**20, b"-ERR Protocol error"),
    "an inline command without end": ("redis", b"INCR ", b"-ERR Protocol error"),
    "a path without end": ("http", b"GET /", b"HTTP/1.1 413 "),
    "a path for the lane without end": ("http", b"POST /v1/sequences/", b"HTTP/1.1 413 "),
    "a header without end": ("http", b"GET / HTTP/1.1\r\nX: ", b"HTTP/1.1 413 "),
    "a header for the lane without end": ("http", b"POST /alloc HTTP/1.1\r\nHost: a\r\nX: ", b"HTTP/1.1 413 "),
    "a header of 70 kB": ("http", head("GET /healthz", "X: " + "x" * 70_000), b"HTTP/1.1 413 "),
    "ten thousand headers": ("http", head("GET /healthz", *["X: 123"] * 10_000), b"HTTP/1.1 413 "),
    "a hundred and one headers": ("http", head("GET /healthz", *["X: 1"] * 100), b"HTTP/1.1 413 "),
    "a trailer without end": (
        "http",
        head("POST /v1/pools/x", "Transfer-Encoding: chunked") + b"0\r\nX: ",
        b"HTTP/1.1 4",
    ),
    "a body of 4 GiB": ("http", head("PUT /v1/sequences/large", length=2**32), b"HTTP/1.1 413 "),
    "a body of 4 GiB for the lane": ("http", head("POST /alloc", length=2**32), b"HTTP/1.1 200 "),
    "a body of 2^70": ("http", head("POST /alloc", length=2**70), b"HTTP/1.1 400 "),
    "a chunk of 4 GiB": (
        "http",
        head("PUT /v1/sequences/large", "Transfer-Encoding: chunked") + b"100000000\r\n",
        b"HTTP/1.1 413 ",
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_oversized_request_is_refused_before_it_is_read(service: Running, name: str) -> None:
    interface, begun, expected = LARGE[name]
    with connect(getattr(service, interface)) as connection, bounded(service):
        heard = bytearray()
        listening = threading.Thread(target=lambda: heard.extend(until_closed(connection)))
        listening.start()
        with suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(begun)
            while listening.is_alive():
                connection.sendall(FILL)
        listening.join()
        # A reset may overtake earlier bytes.
        assert bytes(heard).startswith(expected) or not heard
        others_are_served(service)


def test_waiting_client_receives_the_reason(service: Running) -> None:
    for interface, begun, expected in LARGE.values():
        if begun.endswith(b"\r\n") and b"chunked" not in begun:
            with connect(getattr(service, interface)) as connection:
                connection.sendall(begun)
                assert exactly(connection, len(expected)) == expected


# --- many ---------------------------------------------------------------------------------------------------------


def test_connections_above_the_limit_are_told_until_one_closes(tmp_path: object) -> None:
    refused = {"http": b"HTTP/1.1 503 ", "redis": b"-ERR max number of clients"}
    ask = {"http": head("GET /healthz", "Connection: close"), "redis": command("PING") + command("QUIT")}
    with running(tmp_path, "--max-connections", "5") as service:  # type: ignore[arg-type]
        for interface, said in refused.items():
            address = getattr(service, interface)
            with ExitStack() as stack:
                held = [stack.enter_context(connect(address)) for _ in range(5)]
                until(lambda address=address, said=said: said in say(address), "no more are let in")  # type: ignore[misc]
                held[0].close()
                until(
                    lambda address=address, said=said, interface=interface: said not in say(address, ask[interface]),  # type: ignore[misc]
                    "one more is let in",
                )
