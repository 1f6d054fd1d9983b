"""The rows of a busy worker: how long a new connection waits while others keep the one worker busy."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from benchmarks.row import Row, at_most
from benchmarks.servers import PEERS, Measured, MintageOnSQLite, bench
from benchmarks.timing import Measure, Rounds
from tests.servers.server import HOST

COUNT = 10_000
NEW = 5
"""New connections of a round."""
PATIENCE_S = 4.0
"""The longest recorded wait of a new connection."""

_PROGRAM = """
import selectors, socket, sys
port, busy, ahead, marks = map(int, sys.argv[1:5])
request, mark = (word.encode().decode("unicode_escape").encode() for word in sys.argv[5:])
ready, waiting = selectors.DefaultSelector(), {}
for _ in range(busy):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(request * ahead)
    connection.setblocking(False)
    ready.register(connection, selectors.EVENT_READ)
    waiting[connection] = [ahead * marks, b""]
print(flush=True)
while True:
    for key, _ in ready.select():
        state = waiting[key.fileobj]
        heard = state[1] + key.fileobj.recv(2**18)
        state[0] -= heard.count(mark)
        state[1] = heard[1 - len(mark):]
        if state[0] <= ahead * marks // 2:
            key.fileobj.send(request * ahead)
            state[0] += ahead * marks
"""


class Starlette(Measured):
    """A plain Starlette application, run by uvicorn on uvloop and httptools, that counts in memory."""

    name = label = "starlette"
    programs = ()

    def program(self) -> Sequence[str]:
        how = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
        at = ["--app-dir", str(PEERS / "starlette"), "--host", HOST, "--port", str(self.port)]
        return [sys.executable, "-m", "uvicorn", *how, *at, "app:app"]

    def serves(self) -> bool:
        return _waited_ms(self) < PATIENCE_S * 1e3


def _waited_ms(server: Measured) -> float:
    """Connect, request `/healthz`, and return the milliseconds until the answer, at most the patience."""
    began = time.perf_counter()
    with socket.create_connection((HOST, server.port), PATIENCE_S) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        try:
            if not connection.recv(4096).startswith(b"HTTP/1.1 200 "):
                raise ConnectionError(f"{server.name} gives no good answer")
        except TimeoutError:
            pass
    return (time.perf_counter() - began) * 1e3


NEXT = f"POST /v1/sequences/orders:next?count={COUNT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode()


@dataclass(frozen=True)
class Crowd:
    """Connections that send requests without end, at most `ahead` and half as many ahead of their answers."""

    busy: int
    """The number of connections."""
    ahead: int
    request: bytes = NEXT
    mark: bytes = b"\r\n\r\n"
    """Bytes that each answer has `marks` times, and nothing else has."""
    marks: int = 1
    is_redis: bool = False
    """True if they speak the Redis protocol."""

    @contextmanager
    def at(self, server: Measured) -> Iterator[None]:
        """Let them ask a server."""
        port = server.redis_port if self.is_redis else server.port
        words = [repr(each)[2:-1] for each in (self.request, self.mark)]
        command = [sys.executable, "-c", _PROGRAM, *map(str, (port, self.busy, self.ahead, self.marks)), *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as waiting:
            try:
                assert waiting.stdout
                waiting.stdout.readline()
                yield
            finally:
                waiting.kill()


def _waiting(figure: Callable[[list[float]], float], ours: Crowd, beside: Crowd) -> Measure:
    def measure(rounds: int) -> Rounds:
        result = Rounds()
        figures = []
        with bench() as servers:
            for kind, crowd in ((MintageOnSQLite, ours), (Starlette, beside)):
                server = servers.start(kind)
                with crowd.at(server):
                    figures.append([figure([_waited_ms(server) for _ in range(NEW)]) for _ in range(rounds)])
                server.stop()
        for our_figure, other in zip(*figures, strict=True):
            result.add(our_figure, other)
        return result

    return measure


ASKING = Crowd(300, 20)
ALIKE = Crowd(1_000, 1)
"""As many plain requests as those that mint, as the plain application mints nothing."""
MINTING = Crowd(1_000, 1, b"MINT cuid2 COUNT %d\r\n" % COUNT, b"\r\n$", COUNT, is_redis=True)

WAITED = (
    "keep the one worker busy; the time until a new one has the answer to `/healthz`, "
    f"{PATIENCE_S:.0f} s at most, of {NEW} a round. "
)
NOTE = (
    f"{ASKING.busy} connections, each with {ASKING.ahead // 2} to {ASKING.ahead + ASKING.ahead // 2} requests for "
    f"{COUNT:,} integers ahead of its answers, {WAITED}The plain application counts in memory."
)
MINTING_NOTE = (
    f"{MINTING.busy:,} connections, each with one `MINT cuid2 COUNT {COUNT}` at all times, {WAITED}The plain "
    f"application has as many requests for {COUNT:,} integers, and counts in memory."
)

BUSY_WORKER: tuple[Row, ...] = tuple(
    Row(
        f"a new connection beside {what}, {which}",
        "uvicorn and Starlette",
        _waiting(figure, ours, beside),
        at_most(250, "figure"),
        unit="ms",
        note=note,
        pinned=False,
        processes=1,
    )
    for what, ours, beside, note, which, figure in (
        (f"{ASKING.busy} busy ones", ASKING, ASKING, NOTE, "median", median),
        (f"{ASKING.busy} busy ones", ASKING, ASKING, NOTE, "worst", max),
        (f"{MINTING.busy:,} that mint", MINTING, ALIKE, MINTING_NOTE, "worst", max),
    )
)
