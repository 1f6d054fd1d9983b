"""FLUSHALL under load: idalloc and `mintage serve` in turn, each new, on the same MariaDB and Redis.

`python -m benchmarks.flushall` runs clients of idalloc against each server, flushes its Redis three times and counts
the integers that were repeated. The exit code is 1 unless mintage repeated none.
"""

import argparse
import http.client
import json
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from benchmarks.servers import Idalloc, Measured, Mintage, bench
from benchmarks.timing import UnavailableError
from tests.servers.server import ANSWER_S, HOST, until

CLIENTS, COUNT = 4, 100
"""The number of clients, and of integers of each request: the most that idalloc gives."""

FLUSHES = 3

BATCH = 10_000
"""Integers that a server fetches at a time: what idalloc's README has, and the same for mintage."""


class MintageInBatches(Mintage):
    """The service with batches of the size of idalloc, so that it needs its Redis as often."""

    label = "mintage-batches"

    def program(self) -> list[str]:
        return [*super().program(), "--min-step", str(BATCH), "--max-step", str(BATCH)]


@dataclass
class Load:
    """The integers that the clients of one server received."""

    given: list[int] = field(default_factory=list)
    refused: int = 0

    def ask(self, port: int, end: threading.Event) -> None:
        """Run one client, on one connection, until the end."""
        connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_S)
        body = json.dumps({"serviceName": "orders", "count": COUNT})
        while not end.is_set():
            connection.request("POST", "/alloc", body)
            answer = json.load(connection.getresponse())
            if answer["code"] == 0:
                self.given.extend(answer["data"]["ids"])
            else:
                self.refused += 1
        connection.close()


@dataclass(frozen=True)
class Outcome:
    """The result of one server."""

    given: int
    refused: int
    again: int
    """Repeated integers."""
    repeated: list[int]
    """Which ones, in order."""

    def cells(self, name: str) -> tuple[str, ...]:
        """Return the row of this server in the table."""
        which = f"{self.repeated[0]:,} … {self.repeated[-1]:,}" if self.repeated else "–"
        return (name, f"{self.given:,}", f"{self.refused:,}", f"{self.again:,}", which)


HEADINGS = ("", "integers given", "requests refused", "given again", "between")


def flushed(kind: type[Measured], seconds: float) -> Outcome:
    """Put load on one server and run FLUSHALL several times, with some seconds before and after each."""
    with bench(alone=False) as servers, ThreadPoolExecutor(CLIENTS) as pool:
        server, redis = servers.start(kind), servers.place.redis
        load, end = Load(), threading.Event()
        clients = [pool.submit(load.ask, server.port, end) for _ in range(CLIENTS)]
        try:
            time.sleep(seconds)
            for _ in range(FLUSHES):
                redis.ask("FLUSHALL")
                time.sleep(seconds)
                # While Redis is empty, nobody has missed anything yet.
                until(lambda: redis.ask("DBSIZE") != "0", f"{server.name} comes back to its Redis", seconds=ANSWER_S)
        finally:
            end.set()
        for client in clients:
            client.result()
    repeated = {integer: times for integer, times in Counter(load.given).items() if times > 1}
    again = sum(repeated.values()) - len(repeated)
    return Outcome(len(load.given), load.refused, again, sorted(repeated))


def main() -> int:
    """Run both and print the table; return 1 if mintage repeated an integer or something is missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flushall", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2, help="of load around each FLUSHALL (default: 2)")
    options = parser.parse_args()
    try:
        idalloc, ours = flushed(Idalloc, options.seconds), flushed(MintageInBatches, options.seconds)
    except UnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    lines = [HEADINGS, idalloc.cells("idalloc 0.1.1"), ours.cells("mintage serve")]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        print("  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip())
    return int(bool(ours.repeated))


if __name__ == "__main__":
    sys.exit(main())
