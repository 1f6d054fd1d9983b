"""Tests of how connections spread over the workers of ``--workers``."""

from __future__ import annotations

import os
import re
import signal
import ssl
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.servers.server import HOST, until
from tests.service.running import certificate
from tests.service.serving import Serving
from tests.service.wire import PATIENCE_S, command, connect, head

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

ASKED: Final = {"http": head("GET /healthz"), "redis": command("PING")}
LISTENS: Final = "0A"
HANGS_S: Final = 0.1
"""A worker that does not react for twice this time gets no connections, such as one that a busy machine holds up."""


@contextmanager
def serving(directory: Path, workers: int, **settings: object) -> Iterator[Serving]:
    service = Serving(directory / "service", f"sqlite:///{directory}/ids.db", workers=workers, **settings)
    service.start()
    try:
        yield service
    finally:
        service.kill()


def port_of(service: Serving, interface: str) -> int:
    return service.port if interface == "http" else service.redis_port


def opened(stack: ExitStack, service: Serving, interface: str, n: int) -> list[socket.socket]:
    """Return connections that were opened at once."""
    return [stack.enter_context(connect((HOST, port_of(service, interface)))) for _ in range(n)]


def held(service: Serving, interface: str) -> list[int]:
    """Return how many connections each worker has, the fewest first; one counts until the worker has closed it."""
    port = port_of(service, interface)
    rows = [row.split() for row in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    nodes = {row[9] for row in rows if row[3] != LISTENS and int(row[1].rpartition(":")[2], 16) == port}
    counts = []
    for pid in service.workers():
        links = Counter(_link(pid, each) for each in os.listdir(f"/proc/{pid}/fd"))
        counts.append(sum(links[node] for node in nodes))
    return sorted(counts)


def _link(pid: int, number: str) -> str:
    try:
        found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{number}"))
    except FileNotFoundError:
        return ""
    return found[1] if found else ""


def until_held(service: Serving, interface: str, n: int) -> list[int]:
    """Wait until the workers have ``n`` connections together, and return how many each has."""
    until(lambda: sum(held(service, interface)) == n, f"{n} connections are open")
    return held(service, interface)


def spreads(
    service: Serving, interface: str, n: int, least: int, most: int, use: Callable[[list[socket.socket]], None]
) -> bool:
    """Open connections at once, and use them; return False if a worker that may have hung has too few of them."""
    began_s = time.monotonic()
    with ExitStack() as stack:
        connections = opened(stack, service, interface, n)
        counts = until_held(service, interface, n)
        is_even = least <= counts[0] <= counts[-1] <= most
        assert is_even or time.monotonic() - began_s > HANGS_S, counts
        use(connections)
    until_held(service, interface, 0)
    return is_even


@pytest.mark.parametrize("interface", ASKED)
@pytest.mark.parametrize(("workers", "n", "least", "most"), [(2, 16, 6, 10), (4, 64, 10, 24), (8, 200, 15, 35)])
def test_connections_opened_at_once_spread(
    tmp_path: Path, workers: int, n: int, least: int, most: int, interface: str
) -> None:
    def ask(connections: list[socket.socket]) -> None:
        for each in connections:
            each.sendall(ASKED[interface])
        assert all(each.recv(100) for each in connections)

    with serving(tmp_path, workers) as service:
        # Again, as closed connections must not count.
        assert sum(spreads(service, interface, n, least, most, ask) for _ in range(10)) >= 5


@pytest.mark.parametrize("interface", ASKED)
def test_connections_with_tls_spread_too(tmp_path: Path, interface: str) -> None:
    cert, key = certificate(tmp_path, "ids")
    context = ssl.create_default_context(cafile=cert)

    def ask_some(connections: list[socket.socket]) -> None:
        for each in connections[::8]:
            with context.wrap_socket(each, server_hostname=HOST) as secure:
                secure.sendall(ASKED[interface])
                assert secure.recv(100)

    with serving(tmp_path, 4, tls_cert=cert, tls_key=key) as service:
        # Half open connections count.
        until(lambda: spreads(service, interface, 64, 10, 24, ask_some), "each worker has its part")


def test_worker_that_replaces_another_gets_its_connections(tmp_path: Path) -> None:
    with serving(tmp_path, 4) as service, ExitStack() as stack:
        opened(stack, service, "redis", 64)
        until_held(service, "redis", 64)
        before = service.workers()
        os.kill(before[0], signal.SIGKILL)
        # Those who come before the next worker accepts do not wait for it.
        for each in opened(stack, service, "redis", 8):
            each.sendall(ASKED["redis"])
            assert each.recv(100) == b"+PONG\r\n"
        service.until_metric("mintage_workers_replaced_total", 1)
        until(lambda: len(set(service.workers()) - {before[0]}) == 4, "there are as many as before")
        left = sum(held(service, "redis"))
        with service.http() as line:
            assert line.http("/healthz", method="GET").status == 200
        until(lambda: _accepts_all(stack, service), "the new worker has its part")
        assert left < sum(held(service, "redis"))


def _accepts_all(stack: ExitStack, service: Serving) -> bool:
    """Open more connections, and return True if the workers then have equally many of them, nearly."""
    before = sum(held(service, "redis"))
    opened(stack, service, "redis", 8)
    counts = until_held(service, "redis", before + 8)
    return counts[-1] - counts[0] <= 5


@pytest.mark.parametrize("interface", ASKED)
def test_connections_do_not_wait_for_a_worker_that_hangs(tmp_path: Path, interface: str) -> None:
    with serving(tmp_path, 4) as service, ExitStack() as stack:
        hangs = service.workers()[1:]
        for pid in hangs:
            os.kill(pid, signal.SIGSTOP)
        connections = opened(stack, service, interface, 64)
        for each in connections:
            each.sendall(ASKED[interface])
        assert all(each.recv(100) for each in connections)
        # Once they go on, they get the next ones.
        for pid in hangs:
            os.kill(pid, signal.SIGCONT)
        opened(stack, service, interface, 64)
        counts = until_held(service, interface, 128)
        assert counts[0] >= 10


def test_stopping_service_answers_every_connection_that_it_accepted(tmp_path: Path) -> None:
    with serving(tmp_path, 4, grace_ms=60_000) as service, ExitStack() as stack:
        connections = opened(stack, service, "http", 64)
        until_held(service, "http", 64)
        whole = ASKED["http"]
        for each in connections:
            each.sendall(whole[:-2])
        service.signal(signal.SIGTERM)
        until(lambda: len(service.events("stopping")) == 4, "all workers stop")
        for each in connections:
            each.settimeout(PATIENCE_S)
            each.sendall(whole[-2:])
        assert all(each.recv(12) == b"HTTP/1.1 200" for each in connections)
        assert service.wait() == 0
