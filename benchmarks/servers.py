"""The measured servers, each on a processor of its own, and the MariaDB and Redis behind them on another."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, TypeVar

from benchmarks.timing import UnavailableError, go_program
from tests.servers import Daemon, MariaDB, Redis, missing
from tests.servers.server import ANSWER_S, HOST, PASSWORD, free_port

PEERS = Path(__file__).parent / "peers"


def alloc(port: int, name: str, count: int = 1) -> list[int]:
    """Return the integers that a server gives to a client of idalloc.

    :raises OSError, HTTPException: if there is no server yet.
    :raises ValueError: if it refuses.
    """
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_S)
    try:
        connection.request("POST", "/alloc", json.dumps({"serviceName": name, "count": count}))
        answer = json.load(connection.getresponse())
    finally:
        connection.close()
    if answer["code"] != 0:
        raise ValueError(str(answer))
    ids: list[int] = answer["data"]["ids"]
    return ids


@dataclass(frozen=True)
class Place:
    """The place where a server runs, and the stores that it may use."""

    directory: Path
    processor: int | None
    """The processor of the server; None if it need not be alone."""
    mariadb: MariaDB
    redis: Redis

    def pinned(self, *program: str) -> list[str]:
        """Return the command of a program that runs on that processor."""
        return [*([] if self.processor is None else ["taskset", "--cpu-list", str(self.processor)]), *program]


class Measured(Daemon):
    """A measured server: alone on its processor; it is up at its first good answer, seen within 1 ms."""

    label: ClassVar[str]

    def __init__(self, place: Place) -> None:
        super().__init__(place.directory / self.label)
        self.place = place

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def redis_port(self) -> int:
        """Return the port of the Redis protocol."""
        raise NotImplementedError

    def reset(self) -> None:
        """Do nothing: the server stores nothing besides the pair."""

    def program(self) -> Sequence[str]:
        """Return the program and its options."""
        raise NotImplementedError

    def command(self) -> list[str]:
        return self.place.pinned(*self.program())

    def serves(self) -> bool:
        """Return True if the server hands out an integer now."""
        return bool(alloc(self.port, "ready"))

    def answers(self) -> bool:
        deadline = time.monotonic() + ANSWER_S
        while self.pid is not None and time.monotonic() < deadline:
            try:
                return self.serves()
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.001)
        return False


class Mintage(Measured):
    """`mintage serve`, with both interfaces, on the pair."""

    name = label = "mintage"
    programs = ()

    def create(self) -> None:
        self._redis_port = free_port()

    @property
    def redis_port(self) -> int:
        return self._redis_port

    @property
    def store(self) -> str:
        """Return the URL of its store."""
        return f"{self.place.mariadb.url}?cache={self.place.redis.url}"

    def program(self) -> list[str]:
        http_at, redis_at = f"{HOST}:{self.port}", f"{HOST}:{self.redis_port}"
        serve = [sys.executable, "-m", "mintage", "serve", "--log-format", "json"]
        return [*serve, "--store", self.store, "--http", http_at, "--redis", redis_at]


class MintageOnSQLite(Mintage):
    """`mintage serve` without another server behind it."""

    name = label = "mintage-sqlite"

    @property
    def store(self) -> str:
        return f"sqlite:///{self.directory}/integers.db"


class MintageWithWorkers(MintageOnSQLite):
    """`mintage serve` with two workers."""

    name = label = "mintage-workers"

    def program(self) -> list[str]:
        return [*super().program(), "--workers", "2"]


class Idalloc(Measured):
    """idalloc as its README configures it, on the pair. It logs every request, to the null device."""

    name = label = "idalloc"
    programs = ()
    level = "INFO"

    @property
    def log(self) -> Path:
        return Path(os.devnull)

    def create(self) -> None:
        self._program = go_program(PEERS / "idalloc")

    def program(self) -> list[str]:
        at = self.place
        dsn = f"mintage:{PASSWORD}@tcp({HOST}:{at.mariadb.port})/mintage?charset=utf8mb4&parseTime=true&loc=Local"
        databases = ["-mysql", dsn, "-redis", f"{HOST}:{at.redis.port}"]
        return [self._program, "-listen", f"{HOST}:{self.port}", *databases, "-log-level", self.level]


class QuietIdalloc(Idalloc):
    """idalloc that logs only errors, and so has less to do."""

    name = label = "idalloc-quiet"
    level = "ERROR"


class GoConstant(Measured):
    """net/http of Go with a handler that returns a constant."""

    name = label = "goconstant"
    programs = ()

    def create(self) -> None:
        self._program = go_program(PEERS / "goconstant")

    def program(self) -> list[str]:
        return [self._program, "-listen", f"{HOST}:{self.port}"]


class RedisInMemory(Measured):
    """`redis-server` without persistence."""

    name = label = "redis-memory"
    programs = Redis.programs
    options: ClassVar[tuple[str, ...]] = ("--appendonly", "no")

    @property
    def redis_port(self) -> int:
        return self.port

    def program(self) -> list[str]:
        return ["redis-server", "--bind", HOST, "--port", str(self.port), "--dir", ".", "--save", "", *self.options]

    def serves(self) -> bool:
        with socket.create_connection((HOST, self.port), ANSWER_S) as connection:
            connection.sendall(b"INCR orders\r\n")
            return connection.recv(100).startswith(b":")


class DurableRedis(RedisInMemory):
    """`redis-server` that writes to the disk before it answers, as mintage does before it hands out."""

    name = label = "redis-durable"
    options = ("--appendonly", "yes", "--appendfsync", "always")


M = TypeVar("M", bound=Measured)


class Bench:
    """The pair, and servers on it, until the bench is closed."""

    def __init__(self, place: Place, stack: ExitStack) -> None:
        self.place = place
        self._stack = stack

    def start(self, kind: type[M]) -> M:
        """Start a new server of that kind and wait until it is up.

        :raises UnavailableError: if it cannot run here.
        """
        server = kind(self.place)
        self._stack.callback(server.kill)
        server.start()
        return server

    def crowd(self) -> None:
        """Share the processor of the servers from now on with a busy program, which takes half of it."""
        spinner = subprocess.Popen(self.place.pinned("sh", "-c", "while :; do :; done"))
        self._stack.callback(spinner.wait)
        self._stack.callback(spinner.kill)


def _can_serve() -> bool:
    asked = [sys.executable, "-m", "mintage", "serve", "--help"]
    return subprocess.run(asked, check=False, capture_output=True).returncode == 0


@contextmanager
def bench(*, alone: bool = True) -> Iterator[Bench]:
    """Start the pair. `alone`: this process, the pair and all clients keep away from the processor of the servers.

    :raises UnavailableError: without the programs, or if there is no second processor.
    """
    for database in ("mariadb", "redis"):
        if reason := missing(database):
            raise UnavailableError(reason)
    if not _can_serve():
        raise UnavailableError("mintage serve needs mintage[server]")
    processors = sorted(os.sched_getaffinity(0))
    if alone:
        if len(processors) < 2:
            raise UnavailableError("client and server need a processor each")
        os.sched_setaffinity(0, processors[:-1])
    with TemporaryDirectory(prefix="mintage-") as name, ExitStack() as stack:
        directory = Path(name)
        directory.chmod(0o755)  # MariaDB has an account of its own
        databases = MariaDB(directory / "mariadb"), Redis(directory / "redis")
        for server in databases:
            stack.callback(server.kill)
            server.start()
        yield Bench(Place(directory, processors[-1] if alone else None, *databases), stack)
