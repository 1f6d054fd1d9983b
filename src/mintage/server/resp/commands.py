"""Commands of Redis clients, in one table; ``INCR`` is durable."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final

import structlog

from mintage import __version__
from mintage._core.lane import MOST_WORDS, RespSession
from mintage.errors import FieldError, MintError, RequestError
from mintage.server.config.keys import Caller
from mintage.server.core.service import Service
from mintage.server.loop.budget import INTEGER
from mintage.server.resp.replies import Encoded, ProtocolError, Reply, encode, encode_error

#: The version of Redis that clients are told, from which they derive the available commands.
_REDIS_VERSION: Final = "7.4.0"
#: The most commands and bytes of a transaction.
_MOST_QUEUED: Final = 10_000
_MOST_QUEUED_BYTES: Final = 512 * 1024
_QUEUED: Final = "QUEUED"
_NOBODY: Final = Caller("", {})
"""The caller of a connection that needs a key and has sent none yet."""
_numbers = itertools.count(1)
_log = structlog.get_logger("mintage.server")

Later = Coroutine[Any, Any, Reply]
"""The reply to a command that must wait for the store."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the least and the most words that it has, its name included, and its handler."""

    least: int
    most: int
    run: Callable[[Client, list[bytes]], Reply | Later]
    usage: str


class _Transaction:
    """The commands since MULTI, as bytes."""

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


class Client:
    """One client: its key, its version of the protocol, its transaction, and its commands."""

    def __init__(self, service: Service, session: RespSession) -> None:
        self._service = service
        self._session = session
        self._version = 2
        self._caller = _NOBODY if service.settings.has_keys else service.keys.find(None)
        self._name = b""
        self._number = next(_numbers)
        self._transaction: _Transaction | None = None
        self.quits = False
        """True once the client has sent QUIT."""

    def answer(self, words: list[bytes]) -> bytes | Coroutine[Any, Any, bytes]:
        """Return the encoded reply to a command, or a coroutine that waits for it."""
        began = time.perf_counter()
        try:
            reply = self._run(words)
            if isinstance(reply, Coroutine):
                return self._finish(words, reply)
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
                key = {"key": self._caller.name} if self._caller.name else {}
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
        if self._caller is _NOBODY and name not in _BEFORE_AUTH:
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
        seconds = time.perf_counter() - began
        self._service.metrics.request("redis", _operation(words), code, seconds, key=self._caller.name)

    # --- commands -----------------------------------------------------------------------------------------------

    def _authenticate(self, key: bytes) -> None:
        if not self._service.settings.has_keys:
            raise RequestError("there are no keys here: send no AUTH", code="request.malformed")
        self._caller = _NOBODY
        self._session.admit(all=False)
        try:
            self._caller = self._service.keys.find(key)
        except RequestError as error:
            raise ProtocolError(str(error), code=error.code, prefix="WRONGPASS") from None
        self._session.admit(all=False, key=self._caller.name, bucket=self._caller.bucket)

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
                raise ProtocolError(message, code="request.malformed", prefix="NOPROTO")
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
        if self._caller is _NOBODY:
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
            if self._caller.may("describe", name)
        }
        sections: dict[str, dict[str, object]] = {
            "Server": {"redis_version": _REDIS_VERSION, "mintage_version": __version__, "redis_mode": "standalone"},
            "Clients": {"connected_clients": len(self._service.connections["redis"])},
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
        self.quits = True
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
            raise ProtocolError(message, code="request.malformed", prefix="EXECABORT")
        self._session.replay(bytes(transaction.commands))
        return Encoded(b"*%d\r\n" % transaction.count)  # the replies to the commands are its elements

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
        (integer,) = await self._service.next(self._caller, namespace, 1)
        self._session.allow(namespace)
        return integer

    async def incrby(self, words: list[bytes]) -> Reply:
        """Take integers in a row, and return the last of them."""
        namespace = _text(words[1], "namespace")
        row = await self._service.reserve(self._caller, namespace, _parse_int(words[2], "count"))
        self._session.allow(namespace)
        return row[-1]

    async def get(self, words: list[bytes]) -> Reply:
        """Return the highest integer that was handed out; null if the namespace does not exist."""
        try:
            return b"%d" % await self._service.last(self._caller, _text(words[1], "namespace"))
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
        ids = await self._service.mint(self._caller, scheme, 1 if count is None else count, options.get(b"META", 0))
        if count is None:
            return ids[0].encode()
        return Encoded(b"*%d\r\n%b" % (count, b"".join(await self._service.turns.in_slices(ids, _encode_all, INTEGER))))


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


def _row(name: bytes, command: Command) -> Reply:
    """Return the row of ``COMMAND`` for a command, with the ten elements of Redis 7."""
    arity = command.least if command.least == command.most else -command.least
    # Its name, words, flags, places of keys (the first, the last, the step), categories, tips, keys and subcommands.
    return [name.lower(), arity, [], 0, 0, 0, [], [], [], []]


def _operation(words: list[bytes]) -> str:
    return _OPERATIONS.get(words[0].upper(), "other")


_BEFORE_AUTH: Final = frozenset({b"AUTH", b"HELLO", b"QUIT", b"PING"})
_NEVER_QUEUED: Final = frozenset({b"MULTI", b"EXEC", b"DISCARD", b"QUIT"})
_NO_LOCKS: Final = ": there are no optimistic locks here; send MULTI and EXEC alone"
_OPERATIONS: Final = {b"INCR": "incr", b"INCRBY": "incrby", b"GET": "get", b"MINT": "mint"}

COMMANDS: Final[dict[bytes, Command]] = {
    b"INCR": Command(2, 2, Client.incr, "INCR namespace"),
    b"INCRBY": Command(3, 3, Client.incrby, "INCRBY namespace count"),
    b"GET": Command(2, 2, Client.get, "GET namespace"),
    b"MINT": Command(2, 6, Client.mint, "MINT scheme [COUNT count] [META metabyte]"),
    b"AUTH": Command(2, 3, Client.auth, "AUTH [name] key"),
    b"HELLO": Command(1, 7, Client.hello, "HELLO [2|3 [AUTH name key] [SETNAME name]]"),
    b"PING": Command(1, 2, Client.ping, "PING [message]"),
    b"ECHO": Command(2, 2, Client.echo, "ECHO message"),
    b"SELECT": Command(2, 2, Client.select, "SELECT 0"),
    b"CLIENT": Command(2, MOST_WORDS, Client.client, "CLIENT SETNAME name | GETNAME | SETINFO name value | ID"),
    b"COMMAND": Command(1, MOST_WORDS, Client.command, "COMMAND [COUNT | LIST | INFO [name …] | DOCS [name …]]"),
    b"INFO": Command(1, MOST_WORDS, Client.info, "INFO"),
    b"MULTI": Command(1, 1, Client.multi, "MULTI"),
    b"EXEC": Command(1, 1, Client.exec, "EXEC"),
    b"DISCARD": Command(1, 1, Client.discard, "DISCARD"),
    b"QUIT": Command(1, 1, Client.quit, "QUIT"),
}
"""All commands of the service."""
