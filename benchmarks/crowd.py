"""The rows of a crowd: how long a new connection waits while others keep the one worker busy."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median

from benchmarks.row import Row, at_most
from benchmarks.servers import PEERS, Measured, MintageOnSQLite, bench
from benchmarks.timing import Measure, Rounds
from tests.servers.server import HOST

BUSY, AHEAD, COUNT = 300, 20, 10_000
NEW = 5
"""New connections of a round."""
PATIENCE_S = 4.0
"""The longest recorded wait of a new connection."""

_PROGRAM = """
import selectors, socket, sys
port, busy, ahead, count = map(int, sys.argv[1:])
line = b"POST /v1/sequences/orders:next?count=%d HTTP/1.1\\r\\n" % count
request = line + b"Host: localhost\\r\\nContent-Length: 0\\r\\n\\r\\n"
ready, waiting = selectors.DefaultSelector(), {}
for _ in range(busy):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(request * ahead)
    connection.setblocking(False)
    ready.register(connection, selectors.EVENT_READ)
    waiting[connection] = [ahead, b""]
print(flush=True)
while True:
    for key, _ in ready.select():
        state = waiting[key.fileobj]
        heard = state[1] + key.fileobj.recv(2**18)
        state[0] -= heard.count(b"\\r\\n\\r\\n")
        state[1] = heard[-3:]
        if state[0] <= ahead // 2:
            key.fileobj.send(request * ahead)
            state[0] += ahead
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


@contextmanager
def _crowd(server: Measured) -> Iterator[None]:
    """Keep connections sending requests without end, a given number ahead of their answers."""
    command = [sys.executable, "-c", _PROGRAM, *map(str, (server.port, BUSY, AHEAD, COUNT))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as asking:
        try:
            assert asking.stdout
            asking.stdout.readline()
            yield
        finally:
            asking.kill()


def _waiting(figure: Callable[[list[float]], float]) -> Measure:
    def measure(rounds: int) -> Rounds:
        result = Rounds()
        figures = []
        with bench() as servers:
            for kind in (MintageOnSQLite, Starlette):
                server = servers.start(kind)
                with _crowd(server):
                    figures.append([figure([_waited_ms(server) for _ in range(NEW)]) for _ in range(rounds)])
                server.stop()
        for ours, other in zip(*figures, strict=True):
            result.add(ours, other)
        return result

    return measure


NOTE = (
    f"{BUSY} connections, each with {AHEAD // 2} to {AHEAD + AHEAD // 2} requests for {COUNT:,} integers ahead of its "
    f"answers, keep the one worker busy; the time until a new one has the answer to `/healthz`, {PATIENCE_S:.0f} s at "
    f"most, of {NEW} a round. The plain application counts in memory."
)

CROWDED: tuple[Row, ...] = tuple(
    Row(
        f"a new connection beside {BUSY} busy ones, {which}",
        "uvicorn and Starlette",
        _waiting(figure),
        at_most(250, "figure"),
        unit="ms",
        note=NOTE,
        pinned=False,
        processes=1,
    )
    for which, figure in (("median", median), ("worst", max))
)
