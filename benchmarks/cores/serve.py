"""Measurement of the service and of Redis: workers, connections and namespaces, clients on processors of their own."""

import csv
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.cores.machine import children, connections, pinned, processor_s
from benchmarks.cores.record import Point
from mintage.store import open_store
from tests.servers.server import free_port

HOST: Final = "127.0.0.1"
START_S: Final = 60
WAIT_MS: Final = 60_000
"""The longest wait of the service for its store: the first use of many namespaces at once must not fail."""
PIPELINES: Final = (1, 16, 64)
POSTS, INCREMENTS = 256, 200
"""Connections of `wrk` and of `redis-benchmark`."""
ALLOC: Final = Path(__file__).parents[1] / "alloc.lua"
ONE: Final = "orders"
MANY: Final = "orders-__rand_int__"
"""A name of which `redis-benchmark` makes many, with a number of 12 digits."""
LONG_ENOUGH: Final = 0.7
"""The part of a round's wanted duration that it must last at least."""
SAMPLE_S: Final = 0.1
"""Seconds between two counts of the connections of each worker, until all are there."""


@dataclass(frozen=True)
class Server:
    """A running server."""

    http: int
    redis: int
    """The ports."""
    workers: Sequence[int]
    """Its processes that serve."""


@dataclass(frozen=True)
class Plan:
    """The processors and the durations of a run."""

    servers: Sequence[int]
    clients: Sequence[int]
    """Processors."""
    seconds: float
    """The approximate duration of a round."""
    rounds: int

    def beside(self, workers: int) -> "Plan":
        """Return a plan with a processor for each worker, as long as two are left for the clients."""
        every = [*self.servers, *self.clients]
        most = max(len(self.servers), min(workers, len(every) - 2))
        return Plan(every[:most], every[most:] or self.clients, self.seconds, self.rounds)


def wait_for(port: int, running: "subprocess.Popen[bytes]") -> None:
    """Wait until a server answers an `INCR`.

    :raises RuntimeError: if it ends or does not.
    """
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and running.poll() is None:
        try:
            with socket.create_connection((HOST, port), 2) as connection:
                connection.sendall(f"INCR {ONE}\r\n".encode())
                if connection.recv(100).startswith(b":"):
                    return
        except OSError:
            pass
        time.sleep(0.02)
    raise RuntimeError(f"{running.args!r} does not serve")


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """Run a server until the end of the block, and return its process."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            wait_for(port, server)
            yield server.pid
        finally:
            server.terminate()
            try:
                server.wait(START_S)
            except subprocess.TimeoutExpired:
                server.kill()


@contextmanager
def mintage(plan: Plan, workers: int, names: int = 0) -> Iterator[Server]:
    """Run `mintage serve` on a store of SQLite in memory, or in a file where there is no `/dev/shm`.

    :param names: how many namespaces `MANY` names; they are in the store before the service starts.
    """
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with TemporaryDirectory(prefix="mintage-", dir=memory) as home:
        http, redis, url = free_port(), free_port(), f"sqlite:///{home}/ids.db"
        with open_store(url) as store:
            for number in range(names):
                store.reserve(MANY.replace("__rand_int__", f"{number:012}"), 1)
        at = ["--http", f"{HOST}:{http}", "--redis", f"{HOST}:{redis}", "--store", url, "--log-level", "error"]
        most = ["--max-namespaces", str(names + 1), "--max-wait-ms", str(WAIT_MS)]
        serve = [sys.executable, "-m", "mintage", "serve", "--workers", str(workers), *at, *most]
        with running(pinned(plan.servers, *serve), redis) as parent:
            yield Server(http, redis, children(parent) if workers > 1 else [parent])


@contextmanager
def redis_server(plan: Plan, threads: int) -> Iterator[Server]:
    """Run `redis-server` without persistence, with some threads for its input and output."""
    port = free_port()
    io = ["--io-threads", str(threads), "--io-threads-do-reads", "yes"] if threads > 1 else []
    serve = ["redis-server", "--bind", HOST, "--port", str(port), "--save", "", "--appendonly", "no", *io]
    with running(pinned(plan.servers, *serve), port) as process:
        yield Server(0, port, [process])


@dataclass(frozen=True)
class Client:
    """A client: `POST /alloc` by `wrk`, or `INCR` by `redis-benchmark`."""

    pipeline: int = 0
    """Commands that are sent at once; 0 for `POST /alloc`."""
    connections: int = INCREMENTS
    programs: int = 1
    """Client processes that run at the same time, with as many connections together."""
    names: int = 1
    """Namespaces that it uses, each as often."""

    def command(self, server: Server, processors: Sequence[int], requests: int, seconds: float) -> list[str]:
        """Return the command of one of the programs."""
        each = str(max(1, self.connections // self.programs))
        threads = str(max(1, min(len(processors), int(each), 16)))
        if not self.pipeline:
            how = ["--threads", threads, "--connections", each, "--duration", f"{max(1, round(seconds))}s"]
            return pinned(processors, "wrk", *how, "--script", str(ALLOC), f"http://{HOST}:{server.http}/alloc")
        how = ["-p", str(server.redis), "-c", each, "--threads", threads, "-P", str(self.pipeline), "--csv"]
        many = ["-r", str(self.names)] if self.names > 1 else []
        name = MANY if self.names > 1 else ONE
        return pinned(processors, "redis-benchmark", *how, "-n", str(requests), *many, "INCR", name)

    def parsed(self, printed: str) -> tuple[float, float]:
        """Return the requests a second and the P99 in milliseconds.

        :raises RuntimeError: if there were errors.
        """
        if self.pipeline:
            *_, row = csv.reader(printed.splitlines())
            return float(row[1]), float(row[6])
        result = json.loads(printed.splitlines()[-1])
        if result["errors"]:
            raise RuntimeError(f"{result['errors']} errors")
        return result["requests"] / result["microseconds"] * 1e6, result["p99_us"] / 1e3


def once(client: Client, server: Server, plan: Plan, requests: int) -> tuple[float, dict[str, Any]]:
    """Run a client once; return requests a second and the other facts of a point."""
    share = len(plan.clients) // client.programs or 1
    places = [plan.clients[at * share : (at + 1) * share] or plan.clients for at in range(client.programs)]
    before, spent = [processor_s(each) for each in server.workers], os.times()
    programs = [
        subprocess.Popen(
            client.command(server, place, requests // client.programs, plan.seconds),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for place in places
    ]
    port = server.redis if client.pipeline else server.http
    spread: list[int] = []
    while sum(spread) < client.connections and any(program.poll() is None for program in programs):
        time.sleep(SAMPLE_S)
        spread = max(spread, [connections(each, port) for each in server.workers], key=sum)
    printed = [program.communicate()[0] for program in programs]
    after, since = [processor_s(each) for each in server.workers], os.times()
    if any(program.returncode for program in programs):
        raise RuntimeError(f"{programs[0].args!r} failed")
    elapsed = since.elapsed - spent.elapsed
    taken = since.children_user + since.children_system - spent.children_user - spent.children_system
    rates = [client.parsed(each) for each in printed]
    return sum(rate for rate, _ in rates), {
        "p99_ms": max(p99 for _, p99 in rates),
        "busy": [round(100 * (end - begin) / elapsed) for begin, end in zip(before, after, strict=True)],
        "connections": spread,
        "client_busy": round(100 * taken / elapsed / len(plan.clients)),
        "client_processors": len(plan.clients),
    }


def measured(client: Client, server: Server, plan: Plan) -> tuple[float, dict[str, Any]]:
    """Return the round with the median rate of some that last long enough.

    With threads, `redis-benchmark` looks only every 250 ms whether it has finished, so a short round says too little.
    """
    requests = max(20 * client.connections * max(1, client.pipeline), 20_000)
    found = [once(client, server, plan, requests)]
    if not client.pipeline:  # the first one pays for the first segments
        found = [once(client, server, plan, requests)]
    while client.pipeline and (taken_s := requests / found[-1][0]) < LONG_ENOUGH * plan.seconds:
        requests = int(requests * plan.seconds / taken_s)
        found = [once(client, server, plan, requests)]
    found += [once(client, server, plan, requests) for _ in range(plan.rounds - 1)]
    return sorted(found, key=lambda each: each[0])[len(found) // 2]


ALLOCS: Final = "POST /alloc"


def named(pipeline: int) -> str:
    """Return the name of a series."""
    return f"INCR, pipeline {pipeline}"


def workers(counts: list[int], plan: Plan) -> Iterator[Point]:
    """Yield the points of workers."""
    for count in counts:
        beside = plan.beside(count)
        with mintage(beside, count) as server:
            yield Point("workers", ALLOCS, count, *measured(Client(connections=POSTS), server, beside))
            for pipeline in PIPELINES:
                yield Point("workers", named(pipeline), count, *measured(Client(pipeline), server, beside))
            if len(beside.clients) > 1:
                two = Client(1, programs=2)
                yield Point("workers", f"{named(1)}, two clients", count, *measured(two, server, beside))


def redis(plan: Plan) -> Iterator[Point]:
    """Yield the points of Redis, with one thread and with as many as the servers have processors."""
    for threads in dict.fromkeys((1, len(plan.servers))):
        with redis_server(plan, threads) as server:
            for pipeline in PIPELINES:
                yield Point("redis-server", named(pipeline), threads, *measured(Client(pipeline), server, plan))


def open_connections(counts: list[int], plan: Plan) -> Iterator[Point]:
    """Yield the points of connections, to a worker for each processor of the servers."""
    with mintage(plan, len(plan.servers)) as server:
        for count in counts:
            client = Client(1, connections=count)
            yield Point("connections", named(1), count, *measured(client, server, plan))


def namespaces(counts: list[int], plan: Plan) -> Iterator[Point]:
    """Yield the points of namespaces that the requests name at random, of one worker."""
    with mintage(plan, 1, max(counts)) as server:
        for count in counts:
            for pipeline in (1, 16):
                client = Client(pipeline, names=count)
                if pipeline == 1:
                    once(client, server, plan, 12 * count)  # the first use of nearly all of them
                yield Point("namespaces", named(pipeline), count, *measured(client, server, plan))


def file_limit() -> int:
    """Raise the limit of open files of this process and its children as far as it may, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, 1 << 16)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
