"""Measurement of the rows of the service: two servers on one processor, clients and databases on another, in turn."""

import csv
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.servers import PEERS, Measured, bench
from benchmarks.timing import Measure, Rounds, UnavailableError, go_program

CONNECTIONS = 50
"""Connections of every client, as many as `redis-benchmark` opens by itself."""

CROWD = 500
"""Connections if the server must be the limit: enough requests wait for it at all times."""

ROUND_S = 1.5
"""The approximate duration of a round of one side."""

TAIL_ROUNDS, TAIL_ROUND_S = 25, 0.5
"""Rounds of a latency, and the duration of each: many and short, as a busy host spoils some."""

SCRIPT = Path(__file__).parent / "alloc.lua"

Client = Callable[[Measured], float]
"""Puts load on a server for one round and returns the figure."""


def _client(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise UnavailableError(f"{name} is not installed: package {package}")
    return found


def _printed(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# Clients.


def posts(server: Measured) -> float:
    """Return thousands of `POST /alloc` a second by `wrk`, over persistent connections."""
    to = ["--script", str(SCRIPT), f"{server.url}/alloc"]
    how = ["--threads", "1", "--connections", str(CONNECTIONS), "--duration", "2s"]
    printed = json.loads(_printed([_client("wrk", "wrk"), *how, *to]).splitlines()[-1])
    if printed["errors"]:
        raise RuntimeError(f"{printed['errors']} errors of {server.name}")
    return float(printed["requests"] / printed["microseconds"] * 1e3)


def increments(pipeline: int, connections: int = CONNECTIONS) -> Client:
    """Return thousands of `INCR` a second by `redis-benchmark`, with a given pipeline length."""

    def rate(server: Measured, requests: int) -> float:
        program = _client("redis-benchmark", "redis-tools")
        to = ["-p", str(server.redis_port), "-c", str(connections), "-P", str(pipeline), "-n", str(requests), "--csv"]
        _, row = csv.reader(_printed([program, *to, "INCR", "orders"]).splitlines()[-2:])
        return float(row[1])

    def client(server: Measured) -> float:
        # It has no duration option: a short run measures how many requests it needs.
        requests = rate(server, 40 * connections * pipeline) * ROUND_S
        return rate(server, max(int(requests), 1_000)) / 1e3

    return client


def busy(client: Client) -> Client:
    """Return the load of its processor that a client causes, in percent."""

    def share(server: Measured) -> float:
        before = os.times()
        client(server)
        after = os.times()
        taken_s = after.children_user + after.children_system - before.children_user - before.children_system
        return 100 * taken_s / (after.elapsed - before.elapsed)

    return share


def _p99_us(server: Measured, protocol: str, rate: float) -> float:
    """Return the P99 of answers at a given rate, in microseconds, each from the time when it was due."""
    port = server.port if protocol == "http" else server.redis_port
    how = ["-protocol", protocol, "-port", str(port), "-connections", str(CONNECTIONS)]
    offered = ["-rate", str(rate * 1e3), "-seconds", str(TAIL_ROUND_S)]
    printed = json.loads(_printed([go_program(PEERS / "load"), *how, *offered]))
    if printed["errors"]:
        raise RuntimeError(f"{printed['errors']} errors of {server.name}")
    return float(printed["p99_us"])


# Measurements.


def in_turn(
    client: Client, ours: type[Measured], beside: type[Measured], times: int = 1, *, crowded: bool = False
) -> Measure:
    """Return the figure of the client for both servers in alternation, in `times` as many rounds as requested.

    `crowded`: each server has to share its processor, so that it is the limit and not the client.
    """

    def measure(rounds: int) -> Rounds:
        rounds *= times
        result = Rounds()
        with bench() as servers:
            our_server, other = servers.start(ours), servers.start(beside)
            if crowded:
                servers.crowd()
            for round_ in range(-1, rounds):  # round -1 warms up
                figure, beside_figure = client(our_server), client(other)
                if round_ >= 0:
                    result.add(figure, beside_figure)
        return result

    return measure


def latency(protocol: str, ours: type[Measured], beside: type[Measured], *, same_rate: bool = True) -> Measure:
    """Return the P99 of both servers in microseconds, at half the peak of the slower one or each at half its own."""
    peak = posts if protocol == "http" else increments(1)

    def measure(_rounds: int) -> Rounds:
        result = Rounds()
        with bench() as servers:
            both = servers.start(ours), servers.start(beside)
            halves = [median(peak(server) for _ in range(3)) / 2 for server in both]
            if same_rate:
                halves = [min(halves)] * 2
            for round_ in range(-1, TAIL_ROUNDS):
                figure, beside_figure = (
                    _p99_us(server, protocol, rate) for server, rate in zip(both, halves, strict=True)
                )
                if round_ >= 0:
                    result.add(figure, beside_figure)
        return result

    return measure


def started(figure: Callable[[Measured, float], float], ours: type[Measured], beside: type[Measured]) -> Measure:
    """Return a figure of servers that have just given their first answer, and the milliseconds that this took."""

    def measure(rounds: int) -> Rounds:
        result = Rounds()
        with bench() as servers:
            both = servers.start(ours), servers.start(beside)  # its files are in the page cache from now on

            def once(server: Measured) -> float:
                server.stop()
                start = time.perf_counter_ns()
                server.start()
                return figure(server, (time.perf_counter_ns() - start) / 1e6)

            for _ in range(rounds):
                result.add(*map(once, both))
        return result

    return measure


def start_ms(_server: Measured, milliseconds: float) -> float:
    """Return the milliseconds of the start, until the first integer."""
    return milliseconds


def memory_mb(server: Measured, _milliseconds: float) -> float:
    """Return the megabytes of memory that a server and its processes use."""
    return _rollup_mb(server, "Rss")


def shared_memory_mb(server: Measured, _milliseconds: float) -> float:
    """Return the megabytes of memory of a server and its processes, in which a shared page counts once."""
    return _rollup_mb(server, "Pss")


def _rollup_mb(server: Measured, line: str) -> float:
    total_kb = 0
    for pid in server.family():
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        total_kb += next(int(each.split()[1]) for each in lines if each.startswith(f"{line}:"))
    return total_kb * 1024 / 1e6
