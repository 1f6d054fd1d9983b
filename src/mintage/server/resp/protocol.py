"""Connections of Redis clients.

The data of one read goes to the lane in one call, which answers as many commands as it can. Python answers the first
other command, and the lane keeps the commands after it meanwhile; so replies are in the order of commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, cast

from mintage._core.lane import MAX_REPLY_BATCH, RespSession
from mintage.server.core.service import Service
from mintage.server.loop.budget import COMMAND, FREE, HIGH_WATER, REQUEST
from mintage.server.loop.limits import ClientProtocol
from mintage.server.resp.commands import Client

#: First words of lines of HTTP without the version that tells them apart. Nothing behind them may be executed.
_OF_HTTP: Final = frozenset({b"POST", b"HOST:"})
_FOREIGN: Final = "this is the Redis protocol, not HTTP or TLS"


class RespProtocol(ClientProtocol):
    """The protocol of one connection."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self._service = service
        self._connections = service.connections["redis"]
        self._session = RespSession(service.lane)
        self._client = Client(service, self._session)
        self._task: asyncio.Task[None] | None = None
        # True if data waits for the reply to an earlier command, for its turn, or for the client to read.
        self._is_busy = False
        self._is_over = False
        self._turns = service.turns

    # --- calls of the transport -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or refuse it if there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(HIGH_WATER)
        if not self._service.connection_limits["redis"].try_admit():
            self._transport.write(b"-ERR max number of clients reached (request.busy)\r\n")
            self._transport.close()
            return
        self._connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        """Forget the connection."""
        self._connections.discard(self)

    def data_received(self, data: bytes) -> None:
        """Answer the commands in the data, or keep it for later."""
        self._is_active = True
        if self._is_busy or self._turns.is_spent:
            # At most the data of one read is kept beyond the command that is being answered.
            self._session.hold(data)
            self._listen(False)
            if not self._is_busy:
                self._later()
            return
        answer = self._session.feed(data)
        if len(data) > FREE:
            self._turns.spend(min(len(data), MAX_REPLY_BATCH))
        if type(answer) is bytes:
            if answer:
                # A command was complete; the data that remains is the beginning of another.
                self._waits_s = 0
                self._transport.write(answer)
            return
        self._waits_s = 0
        self._go_on(answer)

    def eof_received(self) -> bool:
        """Return True to keep the connection open for the remaining replies; not over TLS, which cannot half-close."""
        self._is_over = True
        return self._is_busy and self._transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        """Read no more commands while the client does not read its replies."""
        self._is_clogged = True
        self._listen(False)

    def resume_writing(self) -> None:
        """Go on once the client has read its replies."""
        self._waits_s = 0
        self._is_clogged = False
        if not self._is_busy:
            self._read_on()
        elif self._task is None:
            self._turns.later(self._resume)

    def _read_on(self) -> None:
        self._transport.close() if self._is_over else self._listen(True)

    def _listen(self, on: bool) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading() if on else self._transport.pause_reading()

    # --- commands for Python --------------------------------------------------------------------------------------

    def _go_on(self, answer: bytes | tuple[bytes, list[bytes] | str | None]) -> None:
        """Answer the commands that this turn has a budget for; start a task for the first command that must wait."""
        left = MAX_REPLY_BATCH
        while not isinstance(answer, bytes):
            written, words = answer
            if isinstance(words, list) and words[0].upper() in _OF_HTTP:
                words = _FOREIGN
            if isinstance(words, str):
                self._transport.write(written + f"-ERR Protocol error: {words} (request.malformed)\r\n".encode())
                self._transport.close()
                return
            reply = b"" if words is None else self._client.answer(words)
            if not isinstance(reply, bytes):
                self._transport.write(written)
                self._turns.spend(REQUEST)
                self._wait_for(reply)
                return
            self._transport.write(written + reply)
            work = COMMAND + len(written) + len(reply)
            self._turns.spend(work)
            left -= work
            if self._client.quits:
                self._transport.close()
            if self._transport.is_closing():
                return
            if words is None or left <= 0 or self._is_clogged:
                self._later()
                return
            answer = self._session.resume()
        if answer:
            self._transport.write(answer)

    def _later(self) -> None:
        """Answer the remaining commands in a later turn, once the client has read enough replies."""
        self._is_busy = self._session.held > 0
        if self._is_busy:
            self._listen(False)
            if not self._is_clogged:
                self._turns.later(self._resume)
        elif not self._is_clogged:
            self._read_on()

    def _resume(self) -> None:
        if self._transport.is_closing():
            return
        self._is_busy = False
        held = self._session.held
        answer = self._session.resume()
        self._turns.spend(held - self._session.held)
        self._go_on(answer)
        if not self._is_busy and not self._is_clogged:
            self._read_on()

    def _wait_for(self, reply: Coroutine[Any, Any, bytes]) -> None:
        self._is_busy = True
        # It goes on reading, as only a read shows that the client closed the connection.
        if self._session.held > MAX_REPLY_BATCH:
            self._listen(False)
        self._task = asyncio.ensure_future(self._wait(reply))

    async def _wait(self, reply: Coroutine[Any, Any, bytes]) -> None:
        encoded = await reply
        self._task = None
        self._turns.spend(len(encoded))
        if not self._transport.is_closing():
            self._transport.write(encoded)
            self._later()

    # --- what the connection waits for --------------------------------------------------------------------------------

    def has_begun(self) -> bool:
        """Return True if a command has begun whose end was not read yet."""
        return self._session.held > 0

    def is_waiting(self) -> bool:
        """Return True if data waits for the reply to an earlier command, for its turn, or for the client to read."""
        return self._is_busy
