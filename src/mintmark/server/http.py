"""HTTP: the lane in front of uvicorn's own protocol.

At the start of a request, bytes go to the lane in one call. Whatever it does not answer at once goes on to uvicorn,
which keeps the connection until all of it is answered.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mintmark._core.service import HttpSession
from mintmark.errors import CATALOGUE, RequestError

if TYPE_CHECKING:
    import asyncio

    from uvicorn import Config
    from uvicorn.server import ServerState

    from mintmark.server.service import Service

__all__ = ["HttpProtocol"]

#: Whoever sends more requests than this without waiting for an answer is no client of ours.
_MOST_PIPELINED: Final = 64


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
        self._head_bytes = 0
        self._is_refused = False
        self._is_active = True
        self._waits_s = 0

    # --- the transport's calls ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connections = self._service.connections["http"]
        if len(connections) >= self._service.settings.max_connections:
            self._refuse(RequestError("too many connections", code="request.busy", retry_after_ms=1000))
            return
        connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.connections["http"].discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._is_active = True
        if self._is_fast and self._is_between():
            answer = self._session.feed(data)
            if not isinstance(answer, tuple):
                if answer:
                    self.transport.write(answer)
                return
            said, data = answer
            if said:
                self.transport.write(said)
            self._trust()
        self._pass_on(data)

    def eof_received(self) -> None:
        if begun := self._session.release():
            self._pass_on(begun)
        super().eof_received()

    def pause_writing(self) -> None:
        super().pause_writing()
        # Who does not read the answers is not listened to.
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.flow.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    # --- what the lane does not answer ----------------------------------------------------------------------------

    def _is_between(self) -> bool:
        """Whether all that was heard is answered, so that the next byte begins a request."""
        return not self._in_message and (self.cycle is None or self.cycle.response_complete) and not self.pipeline

    def _trust(self) -> None:
        """Lets the lane answer the next request with the key of this one, if that has the right."""
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
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._limit:
                self._refuse(
                    RequestError(
                        f"the head of a request is longer than {self._limit} bytes",
                        code="request.size",
                    )
                )

    def on_message_begin(self) -> None:
        self._in_message = self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._is_refused:
            return
        if len(self.pipeline) >= _MOST_PIPELINED:
            self._refuse(RequestError(f"more than {_MOST_PIPELINED} requests at once", code="request.malformed"))
            return
        super().on_headers_complete()
        if self._service.draining:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_message = False
        if not self._is_refused:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """uvicorn's own refusal, in the form of all others."""
        self._refuse(RequestError(msg.rstrip("."), code="request.malformed"))

    def _refuse(self, error: RequestError) -> None:
        """Says why, and closes."""
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        entry = CATALOGUE[error.code]
        problem = {
            "type": f"urn:mintmark:error:{error.code}",
            "title": entry.meaning,
            "status": entry.http,
            "detail": str(error),
            "code": error.code,
        }
        body = json.dumps(problem, separators=(",", ":")).encode()
        head = (
            f"HTTP/1.1 {entry.http} \r\ncontent-type: application/problem+json\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    # --- looked at once a second ----------------------------------------------------------------------------------

    def look(self, request_timeout_s: float, idle_timeout_s: float) -> None:
        """Closes a connection that is silent for too long, or takes too long over a request or an answer."""
        begun = self._in_message or self._session.held > 0
        if begun or self.flow.write_paused:
            limit_s = request_timeout_s
            self._waits_s += 1
        elif not self._is_between():
            self._waits_s = 0
            return  # an answer is being made
        else:
            limit_s = idle_timeout_s
            self._waits_s = 0 if self._is_active else self._waits_s + 1
        self._is_active = False
        if limit_s and self._waits_s > limit_s and not self.transport.is_closing():
            self.transport.abort() if self.flow.write_paused else self.transport.close()

    def finish(self) -> bool:
        """Closes a connection that was silent since it was last looked at; whether it did."""
        if self._is_between() and self._session.held == 0 and not self._is_active:
            self.transport.close()
            return True
        self._is_active = False
        return False

    def close(self) -> None:
        """Closes it once what is written is sent."""
        self.transport.close()

    def abort(self) -> None:
        """Closes it now."""
        self.transport.abort()
