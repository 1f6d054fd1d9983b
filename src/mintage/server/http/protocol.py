"""Connections of HTTP clients: the lane, the fast path in Rust, in front of an application of ASGI.

At the start of a request, the data of a read goes to the lane in one call. A request that the lane does not answer at
once goes to the application, and whatever the client sends after it waits for the answer.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final, cast

import structlog
from starlette.types import ASGIApp

from mintage._core.lane import MAX_REPLY_BATCH, HttpSession
from mintage.errors import RequestError
from mintage.server.core.service import Service
from mintage.server.http.answers import Facts, write_head
from mintage.server.http.request import Request
from mintage.server.loop.budget import FREE, HIGH_WATER, REQUEST
from mintage.server.loop.limits import ClientProtocol

#: The most parts of a request to read in a row: a client may send a body in tiny ones.
_MOST_PARTS: Final = 100

log: Any = structlog.get_logger("mintage.server")


class HttpProtocol(ClientProtocol):
    """The protocol of one connection."""

    def __init__(self, service: Service, app: ASGIApp) -> None:
        super().__init__()
        self._service = service
        self._app = app
        self._session = HttpSession(service.lane)
        self._is_fast = service.settings.access_log != "all"
        self._turns = service.turns
        # The last request that the lane did not answer.
        self._request: Request | None = None
        # Data that waits for an answer, or for its turn.
        self._unread = b""
        self._is_scheduled = False
        # The client has closed its half of the connection.
        self._has_eof = False

    # --- calls of the transport -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or refuse it if there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(HIGH_WATER)
        if not self._service.connection_limits["http"].try_admit():
            limit = self._service.settings.max_connections
            message = f"{limit} HTTP connections are open, the limit of max_connections: try again in a second"
            self._refuse(RequestError(message, code="request.busy", retry_after_ms=1000))
            return
        self._service.connections["http"].add(self)

    def connection_lost(self, _: Exception | None) -> None:
        """Forget the connection."""
        self._service.connections["http"].discard(self)
        if self._request is not None:
            self._request.end()
            self._request = None

    def data_received(self, data: bytes) -> None:
        """Answer the requests in the data, or keep it for later."""
        self._is_active = True
        if self._unread or self._turns.is_spent or self.is_waiting():
            self._unread += data
            self._hold(b"")
        else:
            self._read(data)

    def eof_received(self) -> bool:
        """Return True to keep the connection open for the remaining answers; not over TLS, which cannot half-close."""
        if begun := self._session.release():
            self._pass_on(begun)
        self._has_eof = self.is_waiting() or bool(self._unread)
        return self._has_eof and self._transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        """Read no more requests while the client does not read its answers."""
        self._is_clogged = True
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on once the client has read its answers."""
        self._is_clogged = False
        self._waits_s = 0
        self._go_on()

    # --- the order of requests ------------------------------------------------------------------------------------

    def has_begun(self) -> bool:
        """Return True if a request has begun whose end was not read yet."""
        return self._session.held > 0 or (self._request is not None and not self._request.has_end)

    def is_waiting(self) -> bool:
        """Return True if a complete request is not answered yet."""
        return self._request is not None and self._request.has_end and not self._request.is_over

    def is_silent(self) -> bool:
        """Return True if every request that has begun is answered, and no data waits for its turn."""
        return super().is_silent() and not self._unread

    def _read(self, data: bytes) -> None:
        """Read data whose turn it is."""
        if not self._is_fast or (self._request is not None and not self._request.has_end):
            self._pass_on(data)
            return
        answer = self._session.feed(data)
        if not isinstance(answer, tuple):
            if answer:
                # A request was complete; the data that remains is the beginning of another.
                self._waits_s = 0
                self._transport.write(answer)
                if len(answer) > FREE:
                    self._turns.spend(len(answer))
            return
        written, behind = answer
        if written:
            self._transport.write(written)
        if behind is None:
            self._transport.close()
        elif self._session.paused:
            self._turns.spend(MAX_REPLY_BATCH)
            self._hold(behind)
        else:
            self._turns.spend(len(written))
            self._authorize_session()
            self._pass_on(behind)

    def _pass_on(self, data: bytes) -> None:
        """Read data up to the end of a request that the application must answer."""
        for _ in range(_MOST_PARTS):
            if not data or self.is_waiting() or self._transport.is_closing():
                break
            data = self._read_part(data)
        else:
            self._turns.spend(REQUEST)
        if data and not self._transport.is_closing():
            self._hold(data)

    def _read_part(self, data: bytes) -> bytes:
        """Read the first bytes of data, at most up to the end of a request, and return the others."""
        if self._request is None or self._request.has_end:
            if not (data := data.lstrip(b"\r\n")):
                return b""
            self._request = Request(self._service, self._app, self._transport, self._go_on)
        try:
            data = self._request.read(data)
        except RequestError as error:
            self._refuse(error)
            return b""
        if self._request.has_end:
            self._waits_s = 0
        return data

    def _hold(self, data: bytes) -> None:
        """Keep data for a later turn, or until the request before it is answered, and read no more."""
        self._unread = data + self._unread
        self._transport.pause_reading()
        self._go_on()

    def _must_wait(self) -> bool:
        return self.is_waiting() or self._is_clogged or self._transport.is_closing()

    def _go_on(self) -> None:
        """Go on with the data that waits in a later turn; without any, read on."""
        if self._must_wait():
            return
        if self._unread:
            if not self._is_scheduled:
                self._is_scheduled = True
                self._turns.later(self._resume)
        elif self._has_eof:
            self._pass_on(self._session.release())
            if not (self.is_waiting() or self._unread):
                self._transport.close()
        else:
            self._transport.resume_reading()

    def _resume(self) -> None:
        self._is_scheduled = False
        if not self._must_wait():
            data, self._unread = self._unread, b""
            self._read(data)
            self._go_on()

    def _authorize_session(self) -> None:
        """Let the lane answer further requests with the key of this one, if the key has the right."""
        key, namespace = self._session.asked or (None, "")
        if key is None:
            return
        try:
            caller = self._service.keys.find(key)
        except RequestError:
            return  # the application refuses it, in the form of the interface
        if caller.may("next", namespace):
            self._session.allow(key, namespace, caller.name, caller.bucket)

    def _refuse(self, error: RequestError) -> None:
        """Write a refusal, and close the connection."""
        facts = Facts(os.urandom(16).hex())
        answer = facts.refuse(error)
        answer.headers[self._service.settings.trace_header] = facts.trace_id
        self._service.metrics.request("http", facts.operation, error.code)
        wanted = self._service.settings.access_log
        left_out = {} if wanted == "all" else self._service.refusal_log_limit.allow()
        if wanted != "off" and left_out is not None:
            more = {"code": error.code, "reason": facts.reason, "trace_id": facts.trace_id, **left_out}
            log.info("refused", interface="http", **more)
        head = write_head(answer.status_code, [*answer.raw_headers, (b"connection", b"close")])
        self._transport.write(head + bytes(answer.body))
        self._transport.close()
