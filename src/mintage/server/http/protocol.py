"""Connections of HTTP clients: the lane, the fast path in Rust, in front of uvicorn's own protocol.

At the start of a request, the data of a read goes to the lane in one call. Requests that the lane does not answer at
once go on to uvicorn, which keeps the connection until it has answered them.

:class:`HttpProtocol` uses attributes of uvicorn's protocol that are not its public API: ``cycle``, ``pipeline``,
``flow`` and ``_unset_keepalive_if_required``. uvicorn has no public way to answer requests in front of it, to bound the
work of a turn, or to refuse a request in the form of this service. ``pyproject.toml`` requires uvicorn 0.54 or later,
below 1; try the tests of the service with each new version.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import structlog
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from mintage._core.lane import MAX_REPLY_BATCH, HttpSession
from mintage.errors import RequestError
from mintage.server.http.answers import Facts
from mintage.server.loop.budget import FREE, HIGH_WATER, REQUEST

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp

    from mintage.server.core.service import Service

MOST_HEADERS: Final = 100
"""The most headers of a request."""
#: The most bytes that go to uvicorn at once: it parses every request in them before it answers the first.
_SLICE: Final = 2048
_VERSIONS: Final = frozenset({"1.0", "1.1"})

log: Any = structlog.get_logger("mintage.server")


class _State(Enum):
    """The state of uvicorn's parser.

    ======== ============================= ========
    state    event                         next
    ======== ============================= ========
    IDLE     the first byte of a request   HEAD
    HEAD     the end of the head           BODY
    HEAD     the end of the request        IDLE
    BODY     the end of the request        IDLE
    any      a fault in a request          REFUSING
    REFUSING any                           REFUSING
    ======== ============================= ========

    A request that offers another protocol ends in its head; :meth:`HttpProtocol._strip_upgrade` then parses it again.
    """

    IDLE = "between requests"
    HEAD = "in the head of a request"
    BODY = "in the body or the trailer of a request"
    REFUSING = "after a fault: no more is parsed, and the refusal follows the answers to earlier requests"


class _Turn(Enum):
    """The work that is scheduled for a later turn of the event loop."""

    NONE = "nothing"
    READ_ON = "go on with the data that waits"
    NEXT_REQUEST = "start the next request of the pipeline, and go on"


# As globals, since the look-up of an enum's member takes longer.
_IDLE, _HEAD, _BODY, _REFUSING = _State


def configured(app: ASGIApp) -> tuple[Config, ServerState]:
    """Return the configuration of uvicorn's protocols for an application, and the state that all of them share."""
    config = Config(
        app,
        http=HttpToolsProtocol,
        lifespan="off",
        ws="none",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )
    config.load()
    return config, ServerState()


class HttpProtocol(HttpToolsProtocol):
    """The protocol of one connection."""

    def __init__(self, service: Service, config: Config, state: ServerState) -> None:
        super().__init__(config, state, app_state={})
        self._service = service
        self._session = HttpSession(service.lane)
        self._is_fast = service.settings.access_log != "all"
        self._limit = service.settings.max_request_bytes
        self._state = _IDLE
        # Bytes of heads and trailers since the last byte of a body.
        self._frame_bytes = 0
        # Data that waits for the answers to earlier requests, or for its turn.
        self._unread = b""
        self._turn = _Turn.NONE
        self._refusal: RequestError | None = None
        # The client has closed its half of the connection.
        self._has_eof = False
        self._is_active = True
        self._waits_s = 0
        self._turns = service.turns

    # --- calls of the transport -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        self.flow = _Flow(transport, self)
        transport.set_write_buffer_limits(HIGH_WATER)
        connections = self._service.connections["http"]
        if not self._service.connection_limits["http"].try_admit():
            limit = self._service.settings.max_connections
            message = f"{limit} HTTP connections are open, the limit of max_connections: try again in a second"
            self._refuse(RequestError(message, code="request.busy", retry_after_ms=1000))
            return
        connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._service.connections["http"].discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Answer the requests in the data, or keep it for later."""
        self._is_active = True
        if self._is_between() and not self._unread and not self._turns.is_spent:
            self._begin(data)
        elif self._unread or self._turns.is_spent or self.is_waiting():
            self._unread += data
            self.flow.pause_reading()
            if not self.is_waiting():
                self._later()
        else:
            self._pass_on(data)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return True to keep the connection open for the remaining answers; not over TLS, which cannot half-close."""
        if begun := self._session.release():
            self._pass_on(begun)
        self._has_eof = self.is_waiting() or bool(self._unread)
        return self._has_eof and self.transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        """Read no more requests while the client does not read its answers."""
        super().pause_writing()
        if not self.transport.is_closing():
            self.flow.pause_reading()

    def resume_writing(self) -> None:
        """Go on once the client has read its answers."""
        super().resume_writing()
        self._waits_s = 0
        self._go_on()

    # --- the order of requests ------------------------------------------------------------------------------------

    def _is_between(self) -> bool:
        """Return True if all requests are answered, so that the next byte begins another."""
        return self._state is _IDLE and (self.cycle is None or self.cycle.response_complete) and not self.pipeline

    def is_waiting(self) -> bool:
        """Return True if a complete request is not answered yet."""
        cycle = self.cycle
        return bool(self.pipeline) or not (cycle is None or cycle.response_complete or cycle.more_body)

    def is_full(self) -> bool:
        """Return True if reading must pause, as requests wait for their turn, or answers for the client."""
        return bool(self._unread or self.pipeline) or self.flow.write_paused

    def _begin(self, data: bytes) -> None:
        """Read data that begins with a request."""
        if self._is_fast:
            answer = self._session.feed(data)
            if not isinstance(answer, tuple):
                if answer:
                    # A request was complete; the data that remains is the beginning of another.
                    self._waits_s = 0
                    self.transport.write(answer)
                    if len(answer) > FREE:
                        self._turns.spend(len(answer))
                return
            written, behind = answer
            if written:
                self.transport.write(written)
            if behind is None:
                self.transport.close()
                return
            data = behind
            if self._session.paused:
                self._turns.spend(MAX_REPLY_BATCH)
                self._unread = data + self._unread
                self.flow.pause_reading()
                self._later()
                return
            self._turns.spend(len(written))
            self._authorize_session()
        self._pass_on(data)

    def _later(self) -> None:
        """Go on in a later turn."""
        if self._turn is _Turn.NONE:
            self._turn = _Turn.READ_ON
            self._turns.later(self._resume)

    def _resume(self) -> None:
        turn, self._turn = self._turn, _Turn.NONE
        if turn is _Turn.NEXT_REQUEST:
            self._turns.spend(REQUEST)
            super().on_response_complete()
        self._go_on()

    def _go_on(self) -> None:
        """Read the data that waits, unless it must wait longer."""
        while not self.transport.is_closing():
            if self.is_waiting() or self.flow.write_paused or self._turn is not _Turn.NONE:
                break
            if self._unread and self._turns.is_spent:
                self._later()
            elif self._refusal is not None:
                self._write_refusal(self._refusal)
            elif self._unread:
                data, self._unread = self._unread, b""
                self._begin(data) if self._is_between() else self._pass_on(data)
            elif self._has_eof and (begun := self._session.release()):
                self._pass_on(begun)
            elif self._has_eof:
                self.transport.close()
            else:
                self.flow.resume_reading()
                break

    def on_response_complete(self) -> None:
        """Start the next request of the pipeline in a later turn, or go on reading."""
        if self.pipeline and not self.transport.is_closing():
            self._later()
            self._turn = _Turn.NEXT_REQUEST
            return
        super().on_response_complete()
        # `check_timeouts` closes silent connections. uvicorn's timer for them survives a client that resets its
        # connection, and keeps all of the connection in memory until it fires.
        self._unset_keepalive_if_required()
        if self._unread or self._refusal is not None or self._has_eof:
            self.loop.call_soon(self._go_on)

    # --- requests that the lane does not answer -------------------------------------------------------------------

    def _authorize_session(self) -> None:
        """Let the lane answer further requests with the key of this one, if the key has the right."""
        key, namespace = self._session.asked or (None, "")
        if key is None:
            return
        try:
            caller = self._service.caller(key)
        except RequestError:
            return  # the application refuses it, in the form of the interface
        if caller.may("next", namespace):
            self._session.allow(key, namespace, caller.name, caller.bucket)

    def _pass_on(self, data: bytes) -> None:
        """Give data to uvicorn, up to the end of a request that it must answer."""
        while data and self._state is not _REFUSING and not self.is_waiting():
            self._feed(data[:_SLICE])
            data = data[_SLICE:]
        if data and self._state is not _REFUSING:
            self._unread = data + self._unread
            self.flow.pause_reading()

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._strip_upgrade(data[upgrade.args[0] :])
        except HttpParserError:
            self.send_400_response("the request is not one of HTTP/1.1")
        if self._state is not _IDLE:
            self._frame_bytes += len(data)
            if self._frame_bytes > self._limit:
                self._refuse_frame()

    def _strip_upgrade(self, remainder: bytes) -> None:
        """Parse a request that offers another protocol again, without the offer.

        The parser takes the data after such a head for that of the other protocol, but it may be the request's body.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.send_400_response("this is no proxy")
            return
        offer = {b"connection", b"upgrade", b"http2-settings"}
        lines = [b"%s %s HTTP/%s" % (method, self.url, self.parser.get_http_version().encode())]
        lines += [b"%s: %s" % header for header in self.headers if header[0] not in offer]
        if not self.parser.should_keep_alive():
            lines.append(b"connection: close")
        # Another parser, as one takes no more data after an offer in the last request of a connection.
        self.parser = HttpRequestParser(self)
        self._feed(b"\r\n".join([*lines, b"", remainder]))

    def on_message_begin(self) -> None:
        """Begin a request."""
        if self._state is not _REFUSING:
            self._state = _HEAD
        self._frame_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header of the head; ignore the fields of a trailer."""
        if self._state is not _HEAD:
            return
        if len(self.headers) < MOST_HEADERS:
            # The parser keeps the blanks after a value, which do not belong to it.
            super().on_header(name, value.rstrip(b" \t"))
        else:
            self._refuse(
                RequestError(f"the request has more than {MOST_HEADERS} headers: send fewer", code="request.size")
            )

    def on_headers_complete(self) -> None:
        """Start the request, or refuse it for its head."""
        if self._state is not _HEAD or self.parser.should_upgrade():
            return
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self._limit:
            self._refuse_frame()
            return
        version = self.parser.get_http_version()
        if version not in _VERSIONS:
            self.send_400_response(f"HTTP/{version} is not spoken here: use HTTP/1.1")
            return
        if version == "1.0" and any(name == b"transfer-encoding" for name, _ in self.headers):
            # RFC 9112, 6.1: a proxy of HTTP/1.0 in between need not know where the request ends.
            self.send_400_response("a request of HTTP/1.0 has no Transfer-Encoding: send a Content-Length")
            return
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (hosts == 0 and version == "1.1"):
            # RFC 9112, 3.2.
            self.send_400_response("the request has two headers Host" if hosts else "the request has no header Host")
            return
        self._state = _BODY
        self._frame_bytes = 0
        super().on_headers_complete()
        if not self.pipeline:
            self._turns.spend(REQUEST)
        self.cycle.transport = _Outlet(self.transport)  # type: ignore[assignment]
        self.cycle.keep_alive = self._asks_to_keep(version) and not self._service.draining
        if version == "1.0":
            # It knows no interim answer, and keeps a connection only if the answer says so.
            self.cycle.waiting_for_100_continue = False
            if self.cycle.keep_alive:
                self.cycle.default_headers = [*self.cycle.default_headers, (b"connection", b"keep-alive")]

    def _asks_to_keep(self, version: str) -> bool:
        """Return True if the connection is to be kept after the answer (RFC 9112, 9.3): ``close`` always wins."""
        values = (value for name, value in self.headers if name in {b"connection", b"proxy-connection"})
        words = {word.strip(b" \t") for value in values for word in value.lower().split(b",")}
        return b"close" not in words and (version == "1.1" or b"keep-alive" in words)

    def on_body(self, body: bytes) -> None:
        """Pass a part of a body on."""
        self._frame_bytes = 0
        if self._state is not _REFUSING:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._waits_s = 0
        if self._state is _REFUSING:
            return
        self._state = _IDLE
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that uvicorn refuses, in the form of all other refusals."""
        self._refuse(RequestError(msg.rstrip("."), code="request.malformed"))

    def _refuse_frame(self) -> None:
        what = "head" if self._state is _HEAD else "trailer"
        message = f"the {what} of the request is longer than the {self._limit} bytes of max_request_bytes"
        self._refuse(RequestError(message, code="request.size"))

    def _refuse(self, error: RequestError) -> None:
        """Write a refusal once all earlier requests are answered, and close the connection."""
        if self._state is not _REFUSING:
            self._state = _REFUSING
            self._refusal = error
            self._unread = b""
            self._go_on()

    def _write_refusal(self, error: RequestError) -> None:
        exchange = Facts(os.urandom(16).hex())
        answer = exchange.refuse(error)
        answer.headers[self._service.settings.trace_header] = exchange.trace_id
        answer.headers["Connection"] = "close"
        headers = [*self.server_state.default_headers, *answer.raw_headers]
        head = [STATUS_LINE[answer.status_code], *(b"%s: %s\r\n" % header for header in headers)]
        self._service.metrics.request("http", exchange.operation, error.code)
        wanted = self._service.settings.access_log
        left_out = {} if wanted == "all" else self._service.refusal_log_limit.allow()
        if wanted != "off" and left_out is not None:
            facts = {"code": error.code, "reason": exchange.reason, "trace_id": exchange.trace_id, **left_out}
            log.info("refused", interface="http", **facts)
        self.transport.write(b"".join([*head, b"\r\n", answer.body]))
        self.transport.close()

    # --- time-outs and closing ------------------------------------------------------------------------------------

    @property
    def silent_s(self) -> float:
        """The seconds since the last request; 0 if a request has begun or is being answered."""
        is_silent = self._is_between() and not self._unread and self._session.held == 0 and not self.flow.write_paused
        return self._waits_s if is_silent else 0

    def check_timeouts(self, request_timeout_s: float, idle_timeout_s: float) -> None:
        """Close the connection if the client is silent for too long, or takes too long to send or to read."""
        if self.is_waiting() and not self.flow.write_paused:
            self._waits_s = 0
            return  # an answer is being made
        begun = self._state is not _IDLE or self._session.held > 0 or self.flow.write_paused
        self._waits_s = 0 if self._is_active and not begun else self._waits_s + 1
        self._is_active = False
        limit_s = request_timeout_s if begun else idle_timeout_s
        if limit_s and self._waits_s > limit_s:
            # Answers that the client did not read in time are dropped.
            self.transport.abort() if self.flow.write_paused else self.transport.close()

    def finish(self) -> bool:
        """Close the connection if it was silent since the last check, and return True if so."""
        if self._is_between() and not self._unread and self._session.held == 0 and not self._is_active:
            self.transport.close()
            return True
        if self.cycle is not None:
            # The current request is the last.
            self.cycle.keep_alive = False
            self.cycle.default_headers = self.server_state.default_headers
        self._is_active = False
        return False

    def close(self) -> None:
        """Close the connection after sending all written data."""
        self.transport.close()

    def abort(self) -> None:
        """Close the connection now."""
        self.transport.abort()


class _Flow(FlowControl):
    """uvicorn's flow control, but it resumes reading only if the protocol is not full."""

    def __init__(self, transport: asyncio.Transport, protocol: HttpProtocol) -> None:
        super().__init__(transport)
        self._protocol = protocol

    def resume_reading(self) -> None:
        """Resume reading, unless requests or answers wait."""
        if not self._protocol.is_full():
            super().resume_reading()


class _Outlet:
    """A transport for an answer, which drops it if the client has closed the connection."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.close = transport.close
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write data, unless the connection is closing."""
        if not self._transport.is_closing():
            self._transport.write(data)
