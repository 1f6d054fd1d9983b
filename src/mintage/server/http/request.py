"""A request of HTTP/1: read from the bytes of its connection, and answered by an application of ASGI.

httptools parses it. This module finds where it ends, bounds it, and refuses what RFC 9112 lets no server accept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Final
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url
from starlette.types import ASGIApp, Message, Scope

from mintage.errors import RequestError
from mintage.server.core.service import Service
from mintage.server.http.answers import write_head
from mintage.server.loop.budget import HIGH_WATER, REQUEST

MOST_HEADERS: Final = 100
"""The most headers of a request."""
_OFFER: Final = frozenset({b"connection", b"upgrade", b"http2-settings"})


def _malformed(message: str = "the request is not one of HTTP/1.1") -> RequestError:
    return RequestError(message, code="request.malformed")


class _Found:
    """The parts of a request that its parser has found; the methods are the callbacks."""

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.has_head = False
        self.body = bytearray()
        self.has_end = False
        self.framing = 0
        """The bytes of the head, or those since the last byte of the body."""

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        # The fields of a trailer are ignored. One header more than the most is enough to refuse the request.
        if not self.has_head and len(self.headers) <= MOST_HEADERS:
            # The parser keeps the blanks after a value, which do not belong to it.
            self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        self.has_head = True
        self.framing = 0

    def on_body(self, part: bytes) -> None:
        self.body += part
        self.framing = 0

    def on_message_complete(self) -> None:
        self.has_end = True

    def values(self, *names: bytes) -> list[bytes]:
        return [value for name, value in self.headers if name in names]


class Request:
    """A request that the application answers.

    :param go_on: is called once it is answered, and whenever the application asks for more of the body.
    """

    def __init__(self, service: Service, app: ASGIApp, transport: asyncio.Transport, go_on: Callable[[], None]) -> None:
        self._service = service
        self._app = app
        self._transport = transport
        self._go_on = go_on
        self._limit = service.settings.max_request_bytes
        self._found = _Found()
        self._parser = HttpRequestParser(self._found)
        # The last two bytes that were parsed.
        self._tail = b""
        # The bytes of the body that are still to come; None if the head does not say.
        self._body_left: int | None = None
        self._scope: Scope = {}
        self._keeps = self._expects_100 = False
        self._task: asyncio.Task[None] | None = None
        self._has_news = asyncio.Event()
        self._answer: Message = {}
        self.is_over = False
        """True if it is answered, or the client has disconnected."""

    # --- reading --------------------------------------------------------------------------------------------------

    @property
    def has_end(self) -> bool:
        """True if it was read to its end."""
        return self._found.has_end

    def read(self, data: bytes) -> bytes:
        """Read the first bytes of data, at most up to the end of the request, and return the others.

        :raises RequestError: ``request.malformed``, ``request.size``. Nothing more can be read from the connection.
        """
        length = self._length(data)
        self._parse(data[:length])
        found = self._found
        if len(found.headers) > MOST_HEADERS:
            raise RequestError(f"the request has more than {MOST_HEADERS} headers: send fewer", code="request.size")
        if found.framing == self._limit and not found.has_end:
            what = "trailer" if found.has_head else "head"
            message = f"the {what} of the request is longer than the {self._limit} bytes of max_request_bytes"
            raise RequestError(message, code="request.size")
        if found.has_head and self._task is None:
            self._start()
        if self.is_over:
            found.body.clear()
        elif len(found.body) > HIGH_WATER:
            self._transport.pause_reading()
        if found.body or found.has_end:
            self._has_news.set()
        return data[length:]

    def _length(self, data: bytes) -> int:
        """Return how many bytes to parse: none of a later request."""
        if self._body_left is not None:
            length = min(self._body_left, len(data))
            self._body_left -= length
            return length
        # A head ends in an empty line, and so does a body in chunks. The line may have begun in earlier data.
        begun = self._tail + data[: self._limit - self._found.framing]
        end = begun.find(b"\n\r\n")
        if end >= 0:
            begun = begun[: end + 3]
        length = len(begun) - len(self._tail)
        self._tail = begun[-2:]
        self._found.framing += length
        return length

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            # The parser takes what follows for the other protocol, but it may be the body.
            self._parse(self._head_without_offer())
        except HttpParserError as error:
            raise _malformed() from error

    def _head_without_offer(self) -> bytes:
        """Return the head of a request that offers another protocol, without the offer, for another parser."""
        parser, found = self._parser, self._found
        if (method := parser.get_method()) == b"CONNECT":
            raise _malformed("this is no proxy")
        lines = [b"%s %s HTTP/%s" % (method, found.target, parser.get_http_version().encode())]
        lines += [b"%s: %s" % header for header in found.headers if header[0] not in _OFFER]
        if not parser.should_keep_alive():
            lines.append(b"connection: close")
        self._found = _Found()
        self._parser = HttpRequestParser(self._found)
        return b"\r\n".join([*lines, b"", b""])

    def _start(self) -> None:
        """Call the application, unless the head must be refused."""
        found, version = self._found, self._parser.get_http_version()
        if version not in {"1.0", "1.1"}:
            raise _malformed(f"HTTP/{version} is not spoken here: use HTTP/1.1")
        if version == "1.0" and found.values(b"transfer-encoding"):
            # RFC 9112, 6.1: a proxy of HTTP/1.0 in between need not know where the request ends.
            raise _malformed("a request of HTTP/1.0 has no Transfer-Encoding: send a Content-Length")
        hosts = len(found.values(b"host"))
        if hosts > 1 or (hosts == 0 and version == "1.1"):
            # RFC 9112, 3.2.
            raise _malformed("the request has two headers Host" if hosts else "the request has no header Host")
        try:
            target = parse_url(found.target)
            path = unquote(target.path.decode("ascii"))
        except (HttpParserError, AttributeError, UnicodeDecodeError) as error:
            raise _malformed() from error
        lengths = found.values(b"content-length")
        self._body_left = int(lengths[0]) if lengths else None
        # RFC 9112, 9.3: `close` always wins.
        said = b",".join(found.values(b"connection", b"proxy-connection")).lower().split(b",")
        words = {word.strip(b" \t") for word in said}
        self._keeps = b"close" not in words and (version == "1.1" or b"keep-alive" in words)
        # HTTP/1.0 has no interim answers.
        self._expects_100 = version == "1.1" and b"100-continue" in map(bytes.lower, found.values(b"expect"))
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": version,
            "method": self._parser.get_method().decode(),
            "scheme": "http" if self._transport.get_extra_info("sslcontext") is None else "https",
            "path": path,
            "raw_path": target.path,
            "query_string": target.query or b"",
            "root_path": "",
            "headers": found.headers,
            "client": self._address("peername"),
            "server": self._address("sockname"),
        }
        self._service.turns.spend(REQUEST)
        # It may begin while the request before it ends, whose trace is not its own.
        self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    def _address(self, name: str) -> tuple[str, int] | None:
        # There is none if the client has disconnected.
        found = self._transport.get_extra_info(name)
        return found[:2] if isinstance(found, tuple) else None

    # --- answering ------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._receive, self._send)
        finally:
            if not self.is_over:
                self._transport.close()

    async def _receive(self) -> Message:
        if not self.is_over:
            if self._expects_100 and not self._transport.is_closing():
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._expects_100 = False
            self._go_on()
            await self._has_news.wait()
            self._has_news.clear()
        if self.is_over:
            return {"type": "http.disconnect"}
        body, self._found.body = bytes(self._found.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": not self.has_end}

    async def _send(self, message: Message) -> None:
        """Write the answer once all of it is there: no answer of the service is a stream, and all give their length."""
        if message["type"] == "http.response.start":
            self._answer = {"body": b"", **message}
            return
        self._answer["body"] += message.get("body", b"")
        if self.is_over or message.get("more_body", False):
            return
        headers = [*self._answer["headers"]]
        body = b"" if self._scope["method"] == "HEAD" else self._answer["body"]
        keeps = self._keeps and not self._service.draining
        if not keeps:
            headers.append((b"connection", b"close"))
        elif self._scope["http_version"] == "1.0":
            headers.append((b"connection", b"keep-alive"))
        if not self._transport.is_closing():
            self._transport.write(write_head(self._answer["status"], headers) + body)
        if not keeps:
            self._transport.close()
        self.end()
        self._go_on()

    def end(self) -> None:
        """Tell the application that the answer is complete, or that the client has disconnected."""
        self.is_over = True
        self._found.body.clear()
        self._has_news.set()
