"""HTTP: the lane in front of uvicorn's own protocol.

At the start of a request, bytes go to the lane in one call. Whatever it does not answer at once goes on to uvicorn,
which keeps the connection until all of it is answered.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

import structlog
from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from mintage._core.service import SHARE, HttpSession
from mintage.errors import RequestError
from mintage.server.operation import Exchange
from mintage.server.turns import FREE, HIGH_WATER, REQUEST

if TYPE_CHECKING:
    import asyncio

    from uvicorn import Config
    from uvicorn.server import ServerState

    from mintage.server.service import Service

__all__ = ["MOST_HEADERS", "HttpProtocol"]

MOST_HEADERS: Final = 100
"""Of one request."""
#: So many bytes go to uvicorn at once: it takes note of every request in them before it answers the first.
_SLICE: Final = 2048

log: Any = structlog.get_logger("mintage.server")


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, service: Service, config: Config, state: ServerState) -> None:
        super().__init__(config, state, app_state={})
        self._service = service
        self._session = HttpSession(service.lane)
        self._is_fast = service.settings.access_log != "all"
        self._limit = service.settings.max_request_bytes
        # Where uvicorn's parser is.
        self._in_message = False
        self._in_head = False
        # Since something was heard that is neither head nor trailer.
        self._frame_bytes = 0
        # What waits for the answers to what came before, or for its turn.
        self._rest = b""
        self._is_queued = False
        # Whether the next request that uvicorn has taken note of may be answered.
        self._is_next_due = False
        self._refusal: RequestError | None = None
        self._is_over = False
        self._is_active = True
        self._waits_s = 0
        self._heard = service.wake.heard
        self._turns = service.turns

    # --- the transport's calls ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport, self)
        transport.set_write_buffer_limits(HIGH_WATER)
        connections = self._service.connections["http"]
        if not self._service.rooms["http"].is_there():
            limit = self._service.settings.max_connections
            message = f"{limit} HTTP connections are open, the limit of max_connections: try again in a second"
            self._refuse(RequestError(message, code="request.busy", retry_after_ms=1000))
            return
        connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.connections["http"].discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._heard()
        self._is_active = True
        if self._is_between() and not self._rest and not self._turns.is_over:
            self._begin(data)
        elif self._rest or self._turns.is_over or self.is_waiting():
            self._rest += data
            self.flow.pause_reading()
            if not self.is_waiting():
                self._later()
        else:
            self._pass_on(data)

    def eof_received(self) -> bool:  # type: ignore[override]
        if begun := self._session.release():
            self._pass_on(begun)
        # Who has said all that it will still gets its answers; but not over TLS, which cannot be closed by half.
        self._is_over = self.is_waiting() or bool(self._rest)
        return self._is_over and self.transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        super().pause_writing()
        # Who does not read the answers is not listened to.
        if not self.transport.is_closing():
            self.flow.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._waits_s = 0
        self._go_on()

    # --- one after the other --------------------------------------------------------------------------------------

    def _is_between(self) -> bool:
        """Return whether all that was heard is answered, so that the next byte begins a request."""
        return not self._in_message and (self.cycle is None or self.cycle.response_complete) and not self.pipeline

    def is_waiting(self) -> bool:
        """Return whether a whole request is not answered yet."""
        cycle = self.cycle
        return bool(self.pipeline) or not (cycle is None or cycle.response_complete or cycle.more_body)

    def is_full(self) -> bool:
        """Whether no more is to be read, as what was read or said already waits for the client or the application."""
        return bool(self._rest or self.pipeline) or self.flow.write_paused

    def _begin(self, data: bytes) -> None:
        """Hears what begins with a request."""
        if self._is_fast:
            answer = self._session.feed(data)
            if not isinstance(answer, tuple):
                if answer:
                    # A request was whole; what has begun is another.
                    self._waits_s = 0
                    self.transport.write(answer)
                    if len(answer) > FREE:
                        self._turns.spend(len(answer))
                return
            said, data = answer
            if said:
                self.transport.write(said)
            if self._session.paused:
                self._turns.spend(SHARE)
                self._rest = data + self._rest
                self.flow.pause_reading()
                self._later()
                return
            self._turns.spend(len(said))
            self._authorize_session()
        self._pass_on(data)

    def _later(self) -> None:
        """Goes on in a later turn."""
        if not self._is_queued:
            self._is_queued = True
            self._turns.later(self._resume)

    def _resume(self) -> None:
        self._is_queued = False
        if self._is_next_due:
            self._is_next_due = False
            self._turns.spend(REQUEST)
            super().on_response_complete()
        self._go_on()

    def _go_on(self) -> None:
        """Hears what waits, as far as nothing keeps it waiting."""
        while not self.transport.is_closing():
            if self.is_waiting() or self.flow.write_paused or self._is_queued:
                break
            if self._rest and self._turns.is_over:
                self._later()
            elif self._refusal is not None:
                self._write_refusal(self._refusal)
            elif self._rest:
                data, self._rest = self._rest, b""
                self._begin(data) if self._is_between() else self._pass_on(data)
            elif self._is_over and (begun := self._session.release()):
                self._pass_on(begun)
            elif self._is_over:
                self.transport.close()
            else:
                self.flow.resume_reading()
                break

    def on_response_complete(self) -> None:
        if self.pipeline and not self.transport.is_closing():
            self._is_next_due = True
            self._later()
            return
        super().on_response_complete()
        # `check_timeouts` closes silent connections. uvicorn's timer for them survives a client that resets its
        # connection, and keeps all of the connection in memory until it fires.
        self._unset_keepalive_if_required()
        if self._rest or self._refusal is not None or self._is_over:
            self.loop.call_soon(self._go_on)

    # --- what the lane does not answer ----------------------------------------------------------------------------

    def _authorize_session(self) -> None:
        """Let the lane answer the next request with the key of this one, if that has the right."""
        key, namespace = self._session.asked or (None, "")
        if key is None:
            return
        try:
            caller = self._service.caller(key)
        except RequestError:
            return  # the application refuses it, in the words of the interface
        if caller.may("next", namespace):
            self._session.allow(key, namespace, caller.bucket)

    def _pass_on(self, data: bytes) -> None:
        """Give bytes to uvicorn, up to the next request that it must answer."""
        while data and self._refusal is None and not self.is_waiting():
            self._feed(data[:_SLICE])
            data = data[_SLICE:]
        if data and self._refusal is None:
            self._rest = data + self._rest
            self.flow.pause_reading()

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._strip_upgrade(data[upgrade.args[0] :])
        except HttpParserError:
            self.send_400_response("the request is not one of HTTP/1.1")
        if self._in_message:
            self._frame_bytes += len(data)
            if self._frame_bytes > self._limit:
                self._refuse_frame()

    def _strip_upgrade(self, rest: bytes) -> None:
        """Read a request that offers another protocol again, without the offer.

        The parser takes what comes after such a head for the other protocol's, and it may be the request's body.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.send_400_response("this is no proxy")
            return
        offer = {b"connection", b"upgrade", b"http2-settings"}
        lines = [b"%s %s HTTP/%s" % (method, self.url, self.parser.get_http_version().encode())]
        lines += [b"%s: %s" % header for header in self.headers if header[0] not in offer]
        self._feed(b"\r\n".join([*lines, b"", rest]))

    def on_message_begin(self) -> None:
        self._in_message = self._in_head = True
        self._frame_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer is no header, and nothing here asks for one
        if len(self.headers) < MOST_HEADERS:
            # Blanks around a value are none of its own; the parser keeps those at its end.
            super().on_header(name, value.rstrip(b" \t"))
        else:
            self._refuse(
                RequestError(f"the request has more than {MOST_HEADERS} headers: send fewer", code="request.size")
            )

    def on_headers_complete(self) -> None:
        if self._refusal is not None or self.parser.should_upgrade():
            return
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self._limit:
            self._refuse_frame()
            return
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            # RFC 9112, 3.2.
            self.send_400_response("the request has two headers Host" if hosts else "the request has no header Host")
            return
        self._in_head = False
        self._frame_bytes = 0
        super().on_headers_complete()
        if not self.pipeline:
            self._turns.spend(REQUEST)
        self.cycle.transport = _Outlet(self.transport)  # type: ignore[assignment]
        if self._service.draining:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._frame_bytes = 0
        if self._refusal is None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_message = False
        self._waits_s = 0
        if self._refusal is None and not self.parser.should_upgrade():
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """uvicorn's own refusal, in the form of all others."""
        self._refuse(RequestError(msg.rstrip("."), code="request.malformed"))

    def _refuse_frame(self) -> None:
        what = "head" if self._in_head else "trailer"
        message = f"the {what} of the request is longer than the {self._limit} bytes of max_request_bytes"
        self._refuse(RequestError(message, code="request.size"))

    def _refuse(self, error: RequestError) -> None:
        """Say why, once all before is answered; then closes."""
        if self._refusal is None:
            self._refusal = error
            self._rest = b""
            self._go_on()

    def _write_refusal(self, error: RequestError) -> None:
        exchange = Exchange(secrets.token_hex(16))
        problem = exchange.refused(error)
        added = {self._service.settings.trace_header: exchange.trace_id, **exchange.headers, "connection": "close"}
        headers = [
            *self.server_state.default_headers,
            *problem.raw_headers,
            *((name.lower().encode(), value.encode()) for name, value in added.items()),
        ]
        head = [STATUS_LINE[problem.status_code], *(b"%s: %s\r\n" % header for header in headers)]
        self._service.metrics.request("http", exchange.operation, error.code)
        wanted = self._service.settings.access_log
        left_out = {} if wanted == "all" else self._service.strangers.passes()
        if wanted != "off" and left_out is not None:
            facts = {"code": error.code, "reason": exchange.reason, "trace_id": exchange.trace_id, **left_out}
            log.info("refused", interface="http", **facts)
        self.transport.write(b"".join([*head, b"\r\n", bytes(problem.body)]))
        self.transport.close()

    # --- looked at once a second ----------------------------------------------------------------------------------

    @property
    def silent_s(self) -> float:
        """For how many seconds nothing was asked."""
        is_silent = self._is_between() and not self._rest and self._session.held == 0 and not self.flow.write_paused
        return self._waits_s if is_silent else 0

    def check_timeouts(self, request_timeout_s: float, idle_timeout_s: float) -> None:
        """Close a connection that is silent for too long, or takes too long over a request or an answer."""
        if self.is_waiting() and not self.flow.write_paused:
            self._waits_s = 0
            return  # an answer is being made
        begun = self._in_message or self._session.held > 0 or self.flow.write_paused
        self._waits_s = 0 if self._is_active and not begun else self._waits_s + 1
        self._is_active = False
        limit_s = request_timeout_s if begun else idle_timeout_s
        if limit_s and self._waits_s > limit_s:
            # What was not read until now never will be.
            self.transport.abort() if self.flow.write_paused else self.transport.close()

    def finish(self) -> bool:
        """Close a connection that was silent since it was last looked at; whether it did."""
        if self._is_between() and not self._rest and self._session.held == 0 and not self._is_active:
            self.transport.close()
            return True
        if self.cycle is not None:
            # What is being answered is the last.
            self.cycle.keep_alive = False
        self._is_active = False
        return False

    def close(self) -> None:
        """Close it once what is written is sent."""
        self.transport.close()

    def abort(self) -> None:
        """Close it now."""
        self.transport.abort()


class _Flow(FlowControl):
    """uvicorn's, which listens again as soon as it has room itself."""

    def __init__(self, transport: asyncio.Transport, protocol: HttpProtocol) -> None:
        super().__init__(transport)
        self._protocol = protocol

    def resume_reading(self) -> None:
        if not self._protocol.is_full():
            super().resume_reading()


class _Outlet:
    """A transport to write an answer to: a client that has gone away meanwhile is no fault."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.close = transport.close
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)
