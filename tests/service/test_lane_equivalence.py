"""Tests that lane and Python are one interface: both answer any request in any pieces alike.

Requests are good ones with something changed. Each goes to a service with a lane and to one without, and to the former
once more in two pieces. Their integers are counted from the same start, so that even those must agree.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from mintage.server.config.settings import Settings
from mintage.server.core.service import Service
from mintage.server.http.app import create_app
from mintage.server.http.protocol import HttpProtocol
from mintage.store.memory import MemoryStore
from tests.service.wire import PATIENCE_S, head

if TYPE_CHECKING:
    from collections.abc import Iterator


def of_1_0(request: bytes) -> bytes:
    """Return a request as one of HTTP/1.0, which need not name its host."""
    return request.replace(b"HTTP/1.1\r\nHost: localhost", b"HTTP/1.0", 1)


BODY: Final = b'{"serviceName":"orders","count":3}'
GOOD: Final = {
    "alloc": head("POST /alloc", "Content-Type: application/json", length=len(BODY)) + BODY,
    "alloc, traced": head("POST /alloc", "X-Trace-Id: order-4711", length=len(BODY)) + BODY,
    "next": head("POST /v1/sequences/orders:next?count=3", length=0),
    "next, traced": head("POST /v1/sequences/orders:next", "X-Trace-Id: mine", "Connection: keep-alive", length=0),
    "next, no body": head("POST /v1/sequences/orders:next"),
    "next, closed": head("POST /v1/sequences/orders:next", "Connection: close", length=0),
    "next, 1.0": of_1_0(head("POST /v1/sequences/orders:next", length=0)),
    "alloc, 1.0, kept": of_1_0(head("POST /alloc", "Connection: Keep-Alive", length=len(BODY))) + BODY,
    "healthz": head("GET /healthz"),
    "healthz, 1.0, kept": of_1_0(head("GET /healthz", "connection: keep-alive")),
    "healthz, 1.0, HEAD": of_1_0(head("HEAD /healthz")),
}
PIECES: Final = [
    *(bytes([each]) for each in b'\x00\t\n\r !"%&+,-./0123:;=?AZ[\\]_az{}\x7f\x80\xff'),
    *(
        b"\r\n",
        b"  ",
        b"\t ",
        b"HTTP/1.0",
        b"HTTP/1.1",
        b"HTTP/1.2",
        b"HTTP/2.0",
        b"HTTP/0.9",
        b"http://localhost",
        b"count",
        b"orders",
        b"null",
        b"1e0",
        b":next",
    ),
]
LINES: Final = [
    *(b"Content-Length: 3", b"Content-Length: +3", b"Content-Length: 34 ", b"Transfer-Encoding: chunked", b"Host: b"),
    *(b"X-Trace-Id: b", b"x-trace-id:c \t", b"X-Trace-Id:\t d", b"X-Trace-Id: e\tf", b"X-Trace-Id:", b"X-Trace-Id : g"),
    *(
        b"Origin: http://evil",
        b"Expect: 100-continue",
        b"Upgrade: h2c",
        b"Connection: close",
        b"Connection: Keep-Alive ",
        b"CONNECTION:keep-alive",
        b"Connection: close, keep-alive",
        b"Connection: keep-alive , Close",
        b"Connection: close, Upgrade",
        b"Connection: foreclose",
        b"Proxy-Connection: close",
        b"Proxy-Connection: keep-alive",
    ),
    *(
        b"Authorization: Bearer x",
        b"Authorization: Bearer x ",
        b" folded",
        b"X-\xc3\xa4: \xc3\xa4",
        b"X: \x01",
        b": y",
        b"X",
    ),
]


class Wire(asyncio.Transport):
    """A transport that records the bytes for the client."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 4711), "sockname": ("127.0.0.1", 8080)})
        self.said = b""
        self.is_read = True
        self._is_closing = False

    def write(self, data: Any) -> None:
        if not self._is_closing:
            self.said += bytes(data)

    def close(self) -> None:
        self._is_closing = True

    abort = close

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ignore the limits: there is room for everything."""


class Way:
    """A service, and its answers."""

    def __init__(self, runner: asyncio.Runner, *options: str) -> None:
        self._runner = runner
        self._store = MemoryStore()
        self._settings = Settings.load(
            ["--store", "memory:", "--max-namespaces", "1000000", "--max-wait-ms", "60000", *options]
        )

    def answers(self, *pieces: bytes) -> bytes:
        """Return all answers to a client that sends these pieces and no more, as :func:`plain` returns them."""
        return self._runner.run(self._answers(pieces))

    async def _answers(self, pieces: tuple[bytes, ...]) -> bytes:
        # A new connection each time, which has handed out nothing yet.
        service = Service(self._settings, MemoryStore())
        try:
            # From now on the lane can answer.
            await service.next(service.keys.find(None), "orders", 1)
            protocol, wire = HttpProtocol(service, create_app(service)), Wire()
            protocol.connection_made(wire)
            async with asyncio.timeout(PATIENCE_S):
                for piece in pieces:
                    if not wire.is_closing():
                        protocol.data_received(piece)
                    await _quiet(protocol, wire)
                if not wire.is_closing():
                    protocol.eof_received()
                    await _quiet(protocol, wire)
            protocol.connection_lost(None)
            return plain(wire.said)
        finally:
            await service.close()


async def _quiet(protocol: HttpProtocol, wire: Wire) -> None:
    """Wait until everything is answered that can be."""
    while not wire.is_closing() and (not wire.is_read or protocol.is_waiting()):
        await asyncio.sleep(0)
    # What was refused may be said only once the loop has its turn.
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.fixture(scope="module")
def ways() -> Iterator[tuple[Way, Way]]:
    with asyncio.Runner() as runner, structlog.testing.capture_logs():
        # The log of all requests turns the lane off.
        yield Way(runner), Way(runner, "--access-log", "all")


def plain(said: bytes) -> bytes:
    """Return an answer without times and generated trace ids, and with headers in one order."""
    said = re.sub(rb"date: [^\r]*", b"date", re.sub(rb'"ts":\d+', b'"ts"', said))
    said = re.sub(rb"[0-9a-f]{32}", b"made", said)
    return re.sub(
        rb"HTTP/1.1 .*?\r\n\r\n", lambda found: b"\r\n".join(sorted(found[0].split(b"\r\n"))), said, flags=re.DOTALL
    )


@st.composite
def nearly_good(draw: st.DrawFn) -> bytes:
    """Draw good requests with up to two more headers and up to three insertions, deletions or changes."""
    request = draw(st.sampled_from(list(GOOD.values())))
    for line in draw(st.lists(st.sampled_from(LINES), max_size=2)):
        first, rest = request.split(b"\r\n", 1)
        request = b"\r\n".join([first, line, rest])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(request)))
        gone = draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
        request = request[:at] + draw(st.sampled_from([b"", *PIECES])) + request[at + gone :]
    return request * draw(st.sampled_from([1, 1, 2]))


@given(request_=nearly_good(), cut=st.floats(0, 1))
def test_lane_and_python_answer_every_request_alike(ways: tuple[Way, Way], request_: bytes, cut: float) -> None:
    fast, slow = ways
    at = round(cut * len(request_))
    whole = fast.answers(request_)
    assert slow.answers(request_) == whole
    assert fast.answers(request_[:at], request_[at:]) == whole


@pytest.mark.parametrize("name", GOOD)
def test_lane_and_python_answer_alike_when_cut_at_every_byte(ways: tuple[Way, Way], name: str) -> None:
    fast, slow = ways
    request = GOOD[name]
    expected = fast.answers(request)
    assert b"HTTP/1.1 200 OK" in expected
    for at in range(len(request)):
        assert fast.answers(request[:at], request[at:]) == expected
        assert slow.answers(request[:at], request[at:]) == expected
