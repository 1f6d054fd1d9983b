"""Clients of the service: threads with sockets of their own, which record every integer that they receive.

They implement both protocols by hand, to see what a client library hides: a truncated answer, a request without an
answer, and how a connection ended.
"""

from __future__ import annotations

import json
import random
import socket
import threading
from array import array
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, Self

import numpy as np

from tests.servers.server import HOST, until
from tests.service.wire import PATIENCE_S, command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

FALLBACK_FLOOR: Final = 2**62


class Request(NamedTuple):
    """The bytes of a request, and the number of integers that it requests."""

    data: bytes
    integers: int


class Kind(NamedTuple):
    """A request that a client repeats."""

    interface: str
    make: Callable[[str, random.Random], Request]
    """A request for integers of a namespace."""


class Reply(NamedTuple):
    """A complete answer."""

    integers: Sequence[int] = ()
    code: str = "ok"
    """Or that of the error."""
    closes: bool = False
    """True if it announces the end of the connection."""
    is_fallback: bool = False
    retry_after: str | None = None


class TornError(Exception):
    """A connection ended in the middle of an answer."""


class End(NamedTuple):
    """The end of a connection that its client would have used further."""

    interface: str
    unanswered: int
    """Unanswered requests."""
    torn: bool = False
    """True if it was in the middle of an answer."""
    reset: bool = False
    farewell: bool = False
    """True if the last answer had announced it."""


# --- the interfaces -----------------------------------------------------------------------------------------------


def post(path: str, body: str = "") -> bytes:
    """Return a request of HTTP."""
    return f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def _incr(namespace: str, _: random.Random) -> Request:
    return Request(command("INCR", namespace), 1)


def _incrby(namespace: str, chance: random.Random) -> Request:
    count = chance.randint(1, 100)
    return Request(command("INCRBY", namespace, str(count)), count)


def _alloc(namespace: str, chance: random.Random) -> Request:
    count = chance.randint(1, 100)
    return Request(post("/alloc", json.dumps({"serviceName": namespace, "count": count})), count)


def _next(namespace: str, chance: random.Random) -> Request:
    count = chance.randint(1, 100)
    return Request(post(f"/v1/sequences/{namespace}:next?count={count}"), count)


INCR: Final = Kind("redis", _incr)
INCRBY: Final = Kind("redis", _incrby)
ALLOC: Final = Kind("http", _alloc)
NEXT: Final = Kind("http", _next)


def line(replies: BinaryIO) -> str:
    """Return one line of an answer, without its end."""
    text = replies.readline()
    if not text:
        raise EOFError
    if not text.endswith(b"\r\n"):
        raise TornError
    return text[:-2].decode()


def read_redis(replies: BinaryIO, count: int) -> Reply:
    """Return the reply to ``INCR``, or to ``INCRBY`` with that count."""
    text = line(replies)
    if text.startswith(":"):
        last = int(text[1:])
        return Reply(range(last - count + 1, last + 1))
    assert text.startswith("-"), text
    return Reply(code=text.rpartition("(")[2].rstrip(")"))


class Answer(NamedTuple):
    """A complete HTTP answer."""

    status: int
    headers: dict[str, str]
    """By name, in small letters."""
    body: bytes


def read_answer(replies: BinaryIO) -> Answer:
    """Return any answer that has a length."""
    status = int(line(replies).split(" ")[1])
    try:
        headers = {}
        while text := line(replies):
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
    except EOFError:
        raise TornError from None
    length = int(headers["content-length"])
    body = replies.read(length)
    if len(body) < length:
        raise TornError
    return Answer(status, headers, body)


def read_http(replies: BinaryIO, count: int) -> Reply:
    """Return the answer to ``/alloc`` or ``:next``, which must have the requested number of integers."""
    status, headers, body = read_answer(replies)
    told = json.loads(body)
    closes = headers.get("connection", "").lower() == "close"
    retry_after = headers.get("retry-after")
    if "ids" in told or told.get("code") == 0:
        integers = [int(text) for text in (told["ids"] if "ids" in told else told["data"]["ids"])]
        assert status == 200, (status, body)
        assert len(integers) == count, (count, body)
        is_fallback = headers.get("x-mintage-fallback") == "random"
        return Reply(integers, closes=closes, is_fallback=is_fallback, retry_after=retry_after)
    return Reply(code=str(told["code"]), closes=closes, retry_after=retry_after)


READERS: Final = {"redis": read_redis, "http": read_http}


# --- one request at a time ----------------------------------------------------------------------------------------


class Line:
    """A connection on which a test sends one request after another."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port), PATIENCE_S)
        self.replies = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.replies.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def redis(self, *words: str) -> str:
        """Return the first line of the reply to a command."""
        self.send(command(*words))
        return line(self.replies)

    def http(self, path: str, body: str = "", *, method: str = "POST") -> Answer:
        """Return the answer to a request."""
        self.send(post(path, body).replace(b"POST", method.encode(), 1))
        return read_answer(self.replies)

    def has_ended(self) -> bool:
        """Wait until the service closes the connection; return True if it sent nothing more."""
        with suppress(ConnectionResetError):
            return self.replies.read() == b""
        return True


# --- load ---------------------------------------------------------------------------------------------------------


class _Client(threading.Thread):
    def __init__(self, load: Load, kind: Kind, chance: random.Random) -> None:
        super().__init__(name="client", daemon=True)
        self._load = load
        self._kind = kind
        self._chance = chance
        self._interface = kind.interface
        self.lock = threading.Lock()
        self.integers = array("Q")
        self.fallbacks = array("Q")
        self.codes: Counter[str] = Counter()
        self.retries: set[str | None] = set()
        self.ends: list[End] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._load.stopped.is_set():
                try:
                    connected = socket.create_connection((HOST, self._load.ports[self._interface]), PATIENCE_S)
                except (ConnectionError, TimeoutError):
                    self._load.stopped.wait(0.01)
                    continue
                with connected, connected.makefile("rb") as replies:
                    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._talk(connected, replies)
                if not self._load.reconnects:
                    return
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.failure = error

    def _talk(self, connected: socket.socket, replies: BinaryIO) -> None:
        waiting: deque[int] = deque()
        read = READERS[self._interface]
        # HTTP clients do not send a request before they have the last answer.
        most = self._load.pipeline if self._interface == "redis" else 1
        farewell = False
        try:
            while not self._load.stopped.is_set():
                asked = [
                    self._kind.make(self._load.namespace, self._chance) for _ in range(self._chance.randint(1, most))
                ]
                waiting.extend(request.integers for request in asked)
                connected.sendall(b"".join(request.data for request in asked))
                while waiting:
                    reply = read(replies, waiting[0])
                    waiting.popleft()
                    self._note(reply)
                    farewell = reply.closes
                if farewell:
                    break
                self._load.stopped.wait(self._load.pause_s)
            else:
                return
        except EOFError:
            self.ends.append(End(self._interface, len(waiting), farewell=farewell))
        except TornError:
            self.ends.append(End(self._interface, len(waiting), torn=True))
        except ConnectionError:
            self.ends.append(End(self._interface, len(waiting), reset=True))
        else:
            self.ends.append(End(self._interface, 0, farewell=True))

    def _note(self, reply: Reply) -> None:
        self.codes[reply.code] += 1
        if reply.code != "ok":
            self.retries.add(reply.retry_after)
        with self.lock:
            for integer in reply.integers:
                (self.integers if integer < FALLBACK_FLOOR else self.fallbacks).append(integer)

    def take(self) -> array[int]:
        """Return the integers received since the last call, and forget them."""
        with self.lock:
            taken, self.integers = self.integers, array("Q")
        return taken


class Load:
    """Clients that request integers of one namespace until they are stopped, or the service ends.

    ``pipeline`` is the largest number of commands sent at once over the Redis protocol. ``reconnects`` says whether a
    client whose connection ended opens another.
    """

    def __init__(
        self,
        http_port: int,
        redis_port: int,
        *,
        kinds: Iterable[Kind] = (INCR, INCR, INCRBY, ALLOC, ALLOC, NEXT),
        namespace: str = "orders",
        pipeline: int = 20,
        pause_s: float = 0.002,
        reconnects: bool = True,
        seed: int | None = None,
    ) -> None:
        self.ports = {"http": http_port, "redis": redis_port}
        self.namespace = namespace
        self.pipeline = pipeline
        self.pause_s = pause_s
        self.reconnects = reconnects
        self.stopped = threading.Event()
        self.seed = random.randrange(2**32) if seed is None else seed
        chance = random.Random(self.seed)
        self._clients = [_Client(self, kind, random.Random(chance.getrandbits(64))) for kind in kinds]

    def __enter__(self) -> Self:
        for client in self._clients:
            client.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopped.set()
        for client in self._clients:
            client.join(2 * PATIENCE_S)
        if error is None:
            self._raise()

    def _raise(self) -> None:
        for client in self._clients:
            if client.failure is not None:
                raise client.failure

    def count(self) -> int:
        """Return the number of integers received so far."""
        return sum(len(client.integers) for client in self._clients)

    def wait_for_more(self, count: int = 1) -> None:
        """Wait until every client has received more, and all together a number of integers."""
        before = [len(client.integers) for client in self._clients]

        def have_more() -> bool:
            self._raise()
            more = [len(client.integers) - had for client, had in zip(self._clients, before, strict=True)]
            return min(more) > 0 and sum(more) >= count

        until(have_more, f"{count} more integers (seed {self.seed})", seconds=2 * PATIENCE_S)

    def integers(self) -> np.ndarray:
        """Return all integers received, except those of the last resort."""
        return np.concatenate([np.array(client.integers, np.uint64) for client in self._clients])

    def take(self) -> np.ndarray:
        """Return the integers that all clients received since the last call, and forget them."""
        return np.concatenate([np.array(client.take(), np.uint64) for client in self._clients])

    def fallbacks(self) -> np.ndarray:
        """Return the integers of the last resort."""
        return np.concatenate([np.array(client.fallbacks, np.uint64) for client in self._clients])

    def codes(self) -> Counter[str]:
        """Return the number of answered requests, by ``"ok"`` or the code of their error."""
        return sum((client.codes for client in self._clients), Counter())

    def retries(self) -> set[str | None]:
        """Return all retry delays of refusals."""
        return set().union(*(client.retries for client in self._clients))

    def ends(self) -> list[End]:
        """Return the ends of all connections that ended before their clients were stopped."""
        return [end for client in self._clients for end in client.ends]


def repeated(integers: np.ndarray) -> list[int]:
    """Return the first of the duplicates."""
    values, counts = np.unique(integers, return_counts=True)
    found: list[int] = values[counts > 1][:10].tolist()
    return found
