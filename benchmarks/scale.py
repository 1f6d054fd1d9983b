"""The load of the store of `mintage serve` and the gain of workers: the tables of docs/how-to/scale.md.

`python -m benchmarks.scale` takes integers at several rates from a service on MariaDB and counts its writes there;
then `wrk` sends requests to services of one worker and of two as fast as it can.
"""

import argparse
import http.client
import os
import re
import socket
import sys
import time
from typing import ClassVar

from benchmarks.servers import Bench, Measured, Mintage, bench
from benchmarks.service import posts
from benchmarks.timing import UnavailableError
from tests.servers.server import ANSWER_S, HOST

RATES = (1_000, 10_000, 100_000, 1_000_000)
"""Integers a second."""

BEAT_S = 0.01
"""Requests a second of the client: each for a hundredth of the integers of a second, in a pipeline."""

ROW = 1_000
"""The most integers of one `INCRBY`."""

TARGET_S = 10
"""The target duration of a segment; the default of `target_ms`."""


class OnMariaDB(Mintage):
    """The service with only the database behind it, so that a refill is a write."""

    name = label = "mintage-mariadb"
    options: ClassVar[tuple[str, ...]] = ()

    @property
    def store(self) -> str:
        return self.place.mariadb.url

    def program(self) -> list[str]:
        return [*super().program(), *self.options]


class InSteps(OnMariaDB):
    """The service with segments of a thousand integers, whatever the load."""

    label = "mintage-steps"
    options = ("--min-step", "1000", "--max-step", "1000")


class TwoWorkers(OnMariaDB):
    label = "mintage-workers"
    options = ("--workers", "2")


def refills(server: Measured) -> int:
    """Return how often the service has reserved a segment in its store."""
    connection = http.client.HTTPConnection(HOST, server.port, timeout=ANSWER_S)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    found = re.search(r'^mintage_store_seconds_count\{verb="reserve"\} ([\d.e+]+)$', text, re.MULTILINE)
    return int(float(found[1])) if found else 0


def take(server: Measured, rate: int, seconds: float) -> int:
    """Take a number of integers a second, in order; return how many were taken."""
    each = int(rate * BEAT_S)
    row = min(each, ROW)
    beat = f"INCRBY orders {row}\r\n".encode() * (each // row)
    taken = 0
    with (
        socket.create_connection((HOST, server.redis_port), ANSWER_S) as connection,
        connection.makefile("rb") as answers,
    ):
        start = time.monotonic()
        for number in range(round(seconds / BEAT_S)):
            time.sleep(max(0.0, start + number * BEAT_S - time.monotonic()))
            connection.sendall(beat)
            for _ in range(each // row):
                answer = answers.readline()
                if not answer.startswith(b":"):
                    raise RuntimeError(f"{server.name} answers {answer!r}")
                taken += row
    return taken


def writes(servers: Bench, kind: type[Measured], rate: int, warm_up_s: float, seconds: float) -> tuple[float, float]:
    """Return the integers a second that were taken, and the writes a second that this caused."""
    server = servers.start(kind)
    take(server, rate, warm_up_s)
    before, start = refills(server), time.monotonic()
    taken = take(server, rate, seconds)
    elapsed = time.monotonic() - start
    after = refills(server)
    server.stop()
    return taken / elapsed, (after - before) / elapsed


def print_table(lines: list[tuple[str, ...]]) -> None:
    """Print rows in aligned columns."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        print("  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip())


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.5 * TARGET_S, help="of each rate (default: %(default)s)")
    options = parser.parse_args()
    try:
        with bench(alone=False) as servers:
            lines: list[tuple[str, ...]] = [("integers a second", "writes a second", "in steps of 1,000")]
            for rate in RATES:
                # Segments grow eightfold at a time, until one lasts for its target time.
                taken, adaptive = writes(servers, OnMariaDB, rate, TARGET_S, options.seconds)
                _, fixed = writes(servers, InSteps, rate, 1, options.seconds / 5)
                lines.append((f"{taken:,.0f}", f"{adaptive:.2f}", f"{fixed:,.1f}"))
            print_table(lines)
            print()
            lines = [("", "POST /alloc a second")]
            for kind, name in ((OnMariaDB, "1 worker"), (TwoWorkers, "2 workers")):
                server = servers.start(kind)
                posts(server)
                lines.append((name, f"{posts(server) * 1e3:,.0f}"))
                server.stop()
            print_table(lines)
            print(f"{len(os.sched_getaffinity(0))} processors for the workers, wrk and MariaDB together")
    except UnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
