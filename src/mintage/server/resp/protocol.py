"""Connections of Redis clients (RESP2 and RESP3), and the table of commands; ``INCR`` is durable.

The data of one read goes to the lane in one call, which answers as many commands as it can. Python answers the first
other command, and the lane keeps the commands after it meanwhile; so replies are in the order of commands.

https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import structlog

from mintage import __version__
from mintage._core.lane import MAX_REPLY_BATCH, MOST_WORDS, RespSession
from mintage.errors import CATALOGUE, FieldError, MintError, RequestError, TransientError
from mintage.server.loop.budget import COMMAND, FREE, HIGH_WATER, INTEGER, REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mintage.server.config.keys import Caller
    from mintage.server.core.service import Service

#: The version of Redis that clients are told, from which they derive the available commands.
_REDIS_VERSION: Final = "7.4.0"
#: The most commands and bytes of a transaction.
_MOST_QUEUED: Final = 10_000
_MOST_QUEUED_BYTES: Final = 512 * 1024
_QUEUED: Final = "QUEUED"
_numbers = itertools.count(1)
_log = structlog.get_logger("mintage.server")


@dataclass(frozen=True, slots=True)
class ArrayHead:
    """The beginning of an array; the replies to the next commands are its elements."""

    length: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """A reply that is encoded already, as a long one."""

    data: bytes


Reply = bytes | int | None | str | ArrayHead | Encoded | list["Reply"] | dict[str, "Reply"]
"""The reply to a command: str is a status, None is RESP's null."""
Later = Coroutine[Any, Any, Reply]
"""The reply to a command that must wait for the store."""


class _ProtocolError(RequestError):
    """A refusal with a prefix that the Redis protocol defines."""

    def __init__(self, message: str, *, code: str, prefix: str) -> None:
        super().__init__(message, code=code)
        self.prefix = prefix


def encode(reply: Reply, version: int) -> bytes:
    """Return a reply in the encoding of RESP2 or RESP3."""
    match reply:
        case None:
            return b"_\r\n" if version == 3 else b"$-1\r\n"
        case str():
            return b"+%s\r\n" % reply.encode()
        case int():
            return b":%d\r\n" % reply
        case bytes():
            return b"$%d\r\n%s\r\n" % (len(reply), reply)
        case ArrayHead():
            return b"*%d\r\n" % reply.length
        case Encoded():
            return reply.data
        case dict():
            parts = [encode(part, version) for pair in reply.items() for part in (pair[0].encode(), pair[1])]
            head = b"%%%d\r\n" % len(reply) if version == 3 else b"*%d\r\n" % (2 * len(reply))
            return head + b"".join(parts)
        case list():
            return b"*%d\r\n%b" % (len(reply), b"".join(encode(part, version) for part in reply))


def encode_error(error: MintError) -> bytes:
    """Return an error reply: the catalogue's prefix, the message on one line, the time to wait if known, the code."""
    prefix = error.prefix if isinstance(error, _ProtocolError) else CATALOGUE[error.code].resp
    message = "".join(letter if letter.isprintable() else "?" for letter in str(error))
    wait_ms = error.retry_after_ms if isinstance(error, TransientError) else None
    retry = "" if wait_ms is None else f" [retry_after_ms={wait_ms}]"
    return f"-{prefix} {message}{retry} ({error.code})\r\n".encode()


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the least and the most words that it has, its name included, and its handler."""

    least: int
    most: int
    run: Callable[[RespProtocol, list[bytes]], Reply | Later]
    usage: str


class _Transaction:
    """The commands since MULTI, as bytes."""

    __slots__ = ("commands", "count", "is_aborted")

    def __init__(self) -> None:
        self.commands = bytearray()
        self.count = 0
        self.is_aborted = False

    def add(self, words: list[bytes], most_bytes: int) -> None:
        """Queue a command of at most ``most_bytes``.

        :raises RequestError: ``request.size``.
        """
        if self.is_aborted:
            return
        # Words that came in a line may take more bytes as an array, which the session would refuse.
        command = encode(list[Reply](words), 2)
        if len(command) > most_bytes:
            raise RequestError(f"the command is longer than {most_bytes} bytes", code="request.size")
        if self.count == _MOST_QUEUED or len(self.commands) + len(command) > _MOST_QUEUED_BYTES:
            raise RequestError(
                f"the transaction is longer than {_MOST_QUEUED} commands or {_MOST_QUEUED_BYTES} bytes: send several",
                code="request.size",
            )
        self.commands += command
        self.count += 1

    def abort(self) -> None:
        """Let EXEC fail."""
        self.commands.clear()
        self.is_aborted = True


# It has 18 attributes: the state of one connection, which a protocol of asyncio keeps in one object.
class RespProtocol(asyncio.Protocol):
    """The protocol of one connection."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._connections = service.connections["redis"]
        self._session = RespSession(service.lane)
        self._version = 2
        self._caller: Caller | None = None if service.settings.has_keys else service.caller(None)
        self._name = b""
        self._number = next(_numbers)
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        # True if data waits for the reply to an earlier command, for its turn, or for the client to read.
        self._is_busy = False
        self._is_writable = True
        self._transaction: _Transaction | None = None
        self._quits = False
        self._is_over = False
        self._is_active = True
        self._waits_s = 0
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
        self._is_writable = False
        self._listen(False)

    def resume_writing(self) -> None:
        """Go on once the client has read its replies."""
        self._waits_s = 0
        self._is_writable = True
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
            reply = b"" if words is None else self._answer(words)
            if not isinstance(reply, bytes):
                self._transport.write(written)
                self._turns.spend(REQUEST)
                self._wait_for(self._finish(cast("list[bytes]", words), reply))
                return
            self._transport.write(written + reply)
            work = COMMAND + len(written) + len(reply)
            self._turns.spend(work)
            left -= work
            if self._quits:
                self._transport.close()
            if self._transport.is_closing():
                return
            if words is None or left <= 0 or not self._is_writable:
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
            if self._is_writable:
                self._turns.later(self._resume)
        elif self._is_writable:
            self._read_on()

    def _resume(self) -> None:
        if self._transport.is_closing():
            return
        self._is_busy = False
        held = self._session.held
        answer = self._session.resume()
        self._turns.spend(held - self._session.held)
        self._go_on(answer)
        if not self._is_busy and self._is_writable:
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

    def _answer(self, words: list[bytes]) -> bytes | Later:
        began = time.perf_counter()
        try:
            reply = self._run(words)
            if isinstance(reply, Coroutine):
                return reply
            encoded = encode(reply, self._version)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not cost the client its other replies
            return self._refuse(words, error, began)
        if reply is not _QUEUED:  # EXEC runs and counts a queued command
            self._count(words, "ok", began)
        return encoded

    async def _finish(self, words: list[bytes], reply: Later) -> bytes:
        began = time.perf_counter()
        try:
            encoded = encode(await reply, self._version)
        except Exception as error:  # noqa: BLE001 - as above
            # Only refusals after a wait are logged: the others are mistakes of a client, and would fill the log.
            if isinstance(error, MintError) and self._service.settings.access_log != "off":
                key = {"key": self._key} if self._key else {}
                _log.info(
                    "refused", interface="redis", command=_operation(words), **key, code=error.code, error=str(error)
                )
            return self._refuse(words, error, began)
        self._count(words, "ok", began)
        return encoded

    def _run(self, words: list[bytes]) -> Reply | Later:
        name = words[0].upper()
        command = COMMANDS.get(name)
        if command is None:
            # The words of Redis, which clients look for.
            why = _NO_LOCKS if name in {b"WATCH", b"UNWATCH"} else ""
            raise RequestError(f"unknown command {_shown(words[0])}{why}", code="request.malformed")
        if not command.least <= len(words) <= command.most:
            raise RequestError(
                f"wrong number of arguments for '{name.decode().lower()}': {command.usage}", code="request.malformed"
            )
        if self._caller is None and name not in _BEFORE_AUTH:
            raise RequestError("Authentication required: send AUTH with a key", code="request.key")
        if self._transaction is not None and name not in _NEVER_QUEUED:
            self._transaction.add(words, self._service.settings.max_request_bytes)
            return _QUEUED
        return command.run(self, words)

    def _refuse(self, words: list[bytes], error: Exception, began: float) -> bytes:
        """Return the reply to a command that failed."""
        if not isinstance(error, MintError):
            _log.error("failed", interface="redis", command=_operation(words), exc_info=error)
            error = RequestError("the service has a fault; its log tells more", code="service.failed")
        if self._transaction is not None:
            self._transaction.abort()
        self._count(words, error.code, began)
        return encode_error(error)

    def _count(self, words: list[bytes], code: str, began: float) -> None:
        self._service.metrics.request("redis", _operation(words), code, time.perf_counter() - began, key=self._key)

    # --- time-outs and closing ----------------------------------------------------------------------------------

    @property
    def silent_s(self) -> float:
        """The seconds since the last command; 0 if a command has begun or is being answered."""
        is_silent = not self._is_busy and self._session.held == 0 and self._is_writable
        return self._waits_s if is_silent else 0

    def check_timeouts(self, request_timeout_s: float, idle_timeout_s: float) -> None:
        """Close the connection if the client is silent for too long, or takes too long to send or to read."""
        stuck = not self._is_writable
        if self._is_busy and not stuck:
            self._waits_s = 0
            return  # a reply is being made
        begun = self._session.held > 0
        self._waits_s = 0 if self._is_active and not (begun or stuck) else self._waits_s + 1
        self._is_active = False
        limit_s = request_timeout_s if begun or stuck else idle_timeout_s
        if limit_s and self._waits_s > limit_s:
            # Replies that the client did not read in time are dropped.
            self._transport.abort() if stuck else self._transport.close()

    def finish(self) -> bool:
        """Close the connection if it was silent since the last check, and return True if so."""
        if not self._is_busy and not self._is_active and self._session.held == 0:
            self._transport.close()
            return True
        self._is_active = False
        return False

    def close(self) -> None:
        """Close the connection after sending all written data."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection now."""
        self._transport.abort()

    # --- commands -----------------------------------------------------------------------------------------------

    @property
    def _key(self) -> str:
        """The name of the connection's key; empty before it sent one."""
        return self._caller.name if self._caller else ""

    @property
    def _who(self) -> Caller:
        assert self._caller is not None  # noqa: S101 - commands that need it are refused before
        return self._caller

    def _authenticate(self, key: bytes) -> None:
        if not self._service.settings.has_keys:
            raise RequestError("there are no keys here: send no AUTH", code="request.malformed")
        self._caller = None
        self._session.admit(all=False)
        try:
            self._caller = caller = self._service.caller(key)
        except RequestError as error:
            raise _ProtocolError(str(error), code=error.code, prefix="WRONGPASS") from None
        self._session.admit(all=False, key=caller.name, bucket=caller.bucket)

    def auth(self, words: list[bytes]) -> Reply:
        """Use a key from now on."""
        self._authenticate(words[-1])
        return "OK"

    def hello(self, words: list[bytes]) -> Reply:
        """Choose the version of the protocol, a key and a name, and describe the server."""
        version, name = self._version, self._name
        key: bytes | None = None
        options = words[1:]
        if options:
            wanted = options.pop(0)
            if wanted not in {b"2", b"3"}:
                message = f"unsupported protocol version {_shown(wanted)}: there are 2 and 3"
                raise _ProtocolError(message, code="request.malformed", prefix="NOPROTO")
            version = int(wanted)
        while options:
            match [options[0].upper(), *options[1:]]:
                case [b"AUTH", _, key, *_]:
                    del options[:3]
                case [b"SETNAME", name, *_]:
                    del options[:2]
                case _:
                    raise RequestError(COMMANDS[b"HELLO"].usage, code="request.malformed")
        if key is not None:
            self._authenticate(key)
        if self._caller is None:
            raise RequestError("Authentication required: HELLO 3 AUTH default KEY", code="request.key")
        self._version, self._name = version, name
        return {
            "server": b"mintage",
            "version": _REDIS_VERSION.encode(),
            "proto": version,
            "id": self._number,
            "mode": b"standalone",
            "role": b"master",
            "modules": [],
        }

    def ping(self, words: list[bytes]) -> Reply:
        """Return the message, or PONG."""
        return words[1] if len(words) == 2 else "PONG"

    def echo(self, words: list[bytes]) -> Reply:
        """Return the message."""
        return words[1]

    def select(self, words: list[bytes]) -> Reply:
        """Accept the database 0, the only one."""
        if words[1] != b"0":
            raise RequestError("DB index is out of range: there is only 0", code="request.malformed")
        return "OK"

    def client(self, words: list[bytes]) -> Reply:
        """Set or return facts about the connection."""
        match words[1].upper(), words[2:]:
            case b"SETNAME", [name]:
                self._name = name
                return "OK"
            case b"GETNAME", []:
                return self._name or None
            case b"SETINFO", [_, _]:
                return "OK"
            case b"ID", []:
                return self._number
        raise RequestError(COMMANDS[b"CLIENT"].usage, code="request.malformed")

    def command(self, words: list[bytes]) -> Reply:
        """Describe the commands."""
        match [word.upper() for word in words[1:]]:
            case []:
                return [_row(name, each) for name, each in COMMANDS.items()]
            case [b"INFO", *names]:
                return [_row(name, COMMANDS[name]) if name in COMMANDS else None for name in names or COMMANDS]
            case [b"LIST"]:
                return [name.lower() for name in COMMANDS]
            case [b"COUNT"]:
                return len(COMMANDS)
            case [b"DOCS", *names]:
                wanted = [name for name in COMMANDS if not names or name in names]
                return {
                    name.decode().lower(): {"summary": COMMANDS[name].usage.encode(), "group": b"generic"}
                    for name in wanted
                }
        raise RequestError(COMMANDS[b"COMMAND"].usage, code="request.malformed")

    def info(self, _: list[bytes]) -> Reply:
        """Describe the server, and the buffered integers of the namespaces that the caller may describe."""
        # The prefix keeps namespaces apart from fields such as `loading`, which clients look for in any section.
        buffered = {
            f"held_{name}": sequence.buffered
            for name, sequence in self._service.sequences().items()
            if self._who.may("describe", name)
        }
        sections: dict[str, dict[str, object]] = {
            "Server": {"redis_version": _REDIS_VERSION, "mintage_version": __version__, "redis_mode": "standalone"},
            "Clients": {"connected_clients": len(self._connections)},
            "Persistence": {"loading": 0},
            "Replication": {"role": "master", "connected_slaves": 0},
            "Held": {**buffered},
        }
        lines = itertools.chain.from_iterable(
            (f"# {title}", *(f"{key}:{value}" for key, value in facts.items()), "") for title, facts in sections.items()
        )
        return "\r\n".join(lines).encode()

    def quit(self, _: list[bytes]) -> Reply:
        """Close the connection after this reply."""
        self._quits = True
        return "OK"

    def multi(self, _: list[bytes]) -> Reply:
        """Queue the next commands until EXEC or DISCARD."""
        if self._transaction is not None:
            raise RequestError("MULTI calls can not be nested", code="request.malformed")
        self._transaction = _Transaction()
        self._session.queue()
        return "OK"

    def exec(self, _: list[bytes]) -> Reply:
        """Run the queued commands, as if the client sent them now; their replies are the elements of an array."""
        transaction = self._end_transaction("EXEC")
        if transaction.is_aborted:
            message = "Transaction discarded because of previous errors."
            raise _ProtocolError(message, code="request.malformed", prefix="EXECABORT")
        self._session.replay(bytes(transaction.commands))
        return ArrayHead(transaction.count)

    def discard(self, _: list[bytes]) -> Reply:
        """Drop the queued commands."""
        self._end_transaction("DISCARD")
        return "OK"

    def _end_transaction(self, name: str) -> _Transaction:
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            raise RequestError(f"{name} without MULTI", code="request.malformed")
        self._session.replay(b"")
        return transaction

    async def incr(self, words: list[bytes]) -> Reply:
        """Return the next integer of a namespace."""
        namespace = _text(words[1], "namespace")
        (integer,) = await self._service.next(self._who, namespace, 1)
        self._session.allow(namespace)
        return integer

    async def incrby(self, words: list[bytes]) -> Reply:
        """Take integers in a row, and return the last of them."""
        namespace = _text(words[1], "namespace")
        row = await self._service.reserve(self._who, namespace, _parse_int(words[2], "count"))
        self._session.allow(namespace)
        return row[-1]

    async def get(self, words: list[bytes]) -> Reply:
        """Return the highest integer that was handed out; null if the namespace does not exist."""
        try:
            return b"%d" % await self._service.last(self._who, _text(words[1], "namespace"))
        except RequestError as error:
            if error.code != "request.namespace":
                raise
            return None

    async def mint(self, words: list[bytes]) -> Reply:
        """Mint one ID, or a list of IDs if COUNT is given."""
        scheme = _text(words[1], "scheme").lower()
        options: dict[bytes, int] = {}
        for at in range(2, len(words), 2):
            option = words[at].upper()
            if option not in {b"COUNT", b"META"} or option in options or at + 1 == len(words):
                raise RequestError(COMMANDS[b"MINT"].usage, code="request.malformed")
            options[option] = _parse_int(words[at + 1], option.decode().lower())
        count = options.get(b"COUNT")
        ids = await self._service.mint(self._who, scheme, 1 if count is None else count, options.get(b"META", 0))
        if count is None:
            return ids[0].encode()
        return Encoded(b"*%d\r\n%b" % (count, b"".join(await self._turns.in_slices(ids, _encode_all, INTEGER))))


def _encode_all(ids: Iterable[str]) -> bytes:
    return b"".join(b"$%d\r\n%b\r\n" % (len(each), each.encode()) for each in ids)


def _shown(word: bytes) -> str:
    return ascii(word[:64])[1:]


def _text(word: bytes, what: str) -> str:
    try:
        return word.decode("ascii")
    except UnicodeDecodeError:
        raise RequestError(f"{what} {_shown(word)} is not ASCII", code="request.malformed") from None


def _parse_int(word: bytes, what: str) -> int:
    if not word.isdigit() or len(word) > 19:
        raise FieldError(f"{what} {_shown(word)} is not a whole number of 1 to 19 digits", code="field.range")
    return int(word)


def _arity(command: Command) -> int:
    return command.least if command.least == command.most else -command.least


def _row(name: bytes, command: Command) -> Reply:
    """Return the row of ``COMMAND`` for a command, with the ten elements of Redis 7."""
    # Its name, words, flags, places of keys (the first, the last, the step), categories, tips, keys and subcommands.
    return [name.lower(), _arity(command), [], 0, 0, 0, [], [], [], []]


def _operation(words: list[bytes]) -> str:
    return _OPERATIONS.get(words[0].upper(), "other")


_BEFORE_AUTH: Final = frozenset({b"AUTH", b"HELLO", b"QUIT", b"PING"})
_NEVER_QUEUED: Final = frozenset({b"MULTI", b"EXEC", b"DISCARD", b"QUIT"})
_NO_LOCKS: Final = ": there are no optimistic locks here; send MULTI and EXEC alone"
#: First words of lines of HTTP without the version that tells them apart. Nothing behind them may be executed.
_OF_HTTP: Final = frozenset({b"POST", b"HOST:"})
_FOREIGN: Final = "this is the Redis protocol, not HTTP or TLS"
_OPERATIONS: Final = {b"INCR": "incr", b"INCRBY": "incrby", b"GET": "get", b"MINT": "mint"}

COMMANDS: Final[dict[bytes, Command]] = {
    b"INCR": Command(2, 2, RespProtocol.incr, "INCR namespace"),
    b"INCRBY": Command(3, 3, RespProtocol.incrby, "INCRBY namespace count"),
    b"GET": Command(2, 2, RespProtocol.get, "GET namespace"),
    b"MINT": Command(2, 6, RespProtocol.mint, "MINT scheme [COUNT count] [META metabyte]"),
    b"AUTH": Command(2, 3, RespProtocol.auth, "AUTH [name] key"),
    b"HELLO": Command(1, 7, RespProtocol.hello, "HELLO [2|3 [AUTH name key] [SETNAME name]]"),
    b"PING": Command(1, 2, RespProtocol.ping, "PING [message]"),
    b"ECHO": Command(2, 2, RespProtocol.echo, "ECHO message"),
    b"SELECT": Command(2, 2, RespProtocol.select, "SELECT 0"),
    b"CLIENT": Command(2, MOST_WORDS, RespProtocol.client, "CLIENT SETNAME name | GETNAME | SETINFO name value | ID"),
    b"COMMAND": Command(1, MOST_WORDS, RespProtocol.command, "COMMAND [COUNT | LIST | INFO [name …] | DOCS [name …]]"),
    b"INFO": Command(1, MOST_WORDS, RespProtocol.info, "INFO"),
    b"MULTI": Command(1, 1, RespProtocol.multi, "MULTI"),
    b"EXEC": Command(1, 1, RespProtocol.exec, "EXEC"),
    b"DISCARD": Command(1, 1, RespProtocol.discard, "DISCARD"),
    b"QUIT": Command(1, 1, RespProtocol.quit, "QUIT"),
}
"""All commands of the service."""
