"""Run the service for an hour under a mixed load on both interfaces: clients stay, come and go, disconnect, and err.

The exit code is 0 if no integer came twice, no client that stayed lost its connection, memory and open files stayed
level, and the service stopped cleanly with no error in its log.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from tests.servers.server import until
from tests.service.load import ALLOC, INCR, INCRBY, NEXT, post, read_answer
from tests.service.load import line as read_line
from tests.service.serving import Serving
from tests.service.wire import command

if TYPE_CHECKING:
    from collections.abc import Callable

GROWTH: Final = 1.05
"""The last third of the time may need so much more memory than the one before; the first is for warming up."""
SPARE_FILES: Final = 8
ROUND_S: Final = 1.0

NAMESPACES: Final = [f"rows-{number}" for number in range(10)]


class Seen:
    """The integers of one namespace that were given, one bit each, as they are nearly dense."""

    def __init__(self) -> None:
        self._bits = np.zeros(1 << 16, np.uint8)
        self.count = 0

    def add(self, integers: np.ndarray) -> int:
        """Return how many of these integers were added before or occur twice."""
        if not integers.size:
            return 0
        self.count += integers.size
        new, index = np.unique(integers), np.uint64(3)
        while new[-1] >> index >= self._bits.size:
            self._bits = np.concatenate([self._bits, np.zeros_like(self._bits)])
        places, bits = new >> index, np.left_shift(1, new & np.uint64(7)).astype(np.uint8)
        before = int(np.count_nonzero(self._bits[places] & bits))
        np.bitwise_or.at(self._bits, places, bits)
        return before + integers.size - new.size


# --- clients that come and go -------------------------------------------------------------------------------------


class Visitor(threading.Thread):
    """A client that connects, sends right or wrong requests, and disconnects, politely or not, repeatedly."""

    def __init__(self, service: Serving, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._service = service
        self._chance = chance
        self._lock = threading.Lock()
        self._integers: dict[str, list[int]] = {}
        self.visits: Counter[str] = Counter()
        self.stopped = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        kinds: list[Callable[[], None]] = [
            self._incr, self._alloc, self._break_off, self._err_on_redis, self._err_on_http, self._mint, self._look
        ]  # fmt: skip
        try:
            while not self.stopped.is_set():
                kind = self._chance.choice(kinds)
                kind()
                self.visits[kind.__name__.strip("_")] += 1
                self.stopped.wait(0.002)
        except BaseException as error:  # noqa: BLE001 - raised by `take`
            self.failure = error

    def take(self) -> dict[str, list[int]]:
        """Return the integers received since the last call, by namespace."""
        if self.failure is not None:
            raise self.failure
        with self._lock:
            taken, self._integers = self._integers, {}
        return taken

    def _keep(self, namespace: str, integers: list[int]) -> None:
        with self._lock:
            self._integers.setdefault(namespace, []).extend(integers)

    def _incr(self) -> None:
        namespace = self._chance.choice(NAMESPACES)
        with self._service.redis() as line:
            self._keep(namespace, [int(line.redis("INCR", namespace)[1:]) for _ in range(self._chance.randint(1, 5))])
            if self._chance.random() < 0.5:
                assert line.redis("QUIT") == "+OK"

    def _alloc(self) -> None:
        namespace = self._chance.choice(NAMESPACES)
        times = self._chance.randint(1, 5)
        asked = post("/alloc", json.dumps({"serviceName": namespace, "count": 3}))
        with self._service.http() as line:
            line.send(asked * times)
            for _ in range(times):
                self._keep(namespace, json.loads(read_answer(line.replies).body)["data"]["ids"])

    def _break_off(self) -> None:
        """Disconnect in the middle of a request, or without reading its answer."""
        redis = self._chance.random() < 0.5
        asked = command("INCR", "broken") * 50 if redis else post("/alloc", '{"serviceName":"broken"}') * 50
        with suppress(ConnectionError), self._service.redis() if redis else self._service.http() as line:
            line.send(asked[: self._chance.randrange(len(asked))])
            if self._chance.random() < 0.5:
                line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _err_on_redis(self) -> None:
        with self._service.redis() as line:
            for words in (
                ["NOPE"],
                ["INCR"],
                ["INCR", "no name"],
                ["INCRBY", "rows", "0"],
                ["MINT", "ulid"],
                ["AUTH", "x"],
            ):
                assert line.redis(*words).startswith("-"), words
            line.send(self._chance.choice([b"*1\r\n$99999999\r\n", b"*x\r\n", b"*1\r\n+OK\r\n"]))
            assert read_line(line.replies).startswith("-")
            assert line.has_ended()

    def _err_on_http(self) -> None:
        with self._service.http() as line:
            for path, body in (
                ("/nowhere", ""),
                ("/alloc", "{"),
                ("/alloc", '{"serviceName":"rows","count":101}'),
                ("/v1/sequences/rows:next?count=0", ""),
                ("/v1/sequences/no%20name:next", ""),
                ("/v1/ids/ulid", ""),
            ):
                assert b"code" in line.http(path, body).body, path
            line.send(
                self._chance.choice(
                    [b"\0\0\0\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /alloc HTTP/1.1\r\nContent-Length: x\r\n\r\n"]
                )
            )
            assert read_answer(line.replies).status == 400
            assert line.has_ended()

    def _mint(self) -> None:
        scheme = self._chance.choice(["sno", "snowflake", "locality"])
        with self._service.http() as line:
            assert line.http(f"/v1/ids/{scheme}?count=100").status == 200

    def _look(self) -> None:
        for path in ("/metrics", "/readyz", "/v1/sequences", "/v1/leases", "/openapi.json"):
            assert self._service.get(path).status == 200, path


# --- the run ------------------------------------------------------------------------------------------------------


def soak(service: Serving, seconds: float) -> bool:
    """Run the load, print the results, and return True if all is well."""
    service.start()
    files = service.open_files()
    seen: dict[str, Seen] = {}
    twice = 0
    memory: list[float] = []

    def note() -> None:
        nonlocal twice
        taken = [("orders", load.take())]
        for visitor in visitors:
            taken += [(namespace, np.array(each, np.uint64)) for namespace, each in visitor.take().items()]
        for namespace, integers in taken:
            twice += seen.setdefault(namespace, Seen()).add(integers)

    visitors = [Visitor(service, random.Random()) for _ in range(3)]
    # Those that stay.
    kinds = [INCR, INCR, INCRBY, INCRBY, ALLOC, ALLOC, NEXT, NEXT]
    began = time.monotonic()
    with service.load(kinds=kinds, reconnects=False, pause_s=0.01) as load:
        for visitor in visitors:
            visitor.start()
        while time.monotonic() - began < seconds:
            time.sleep(ROUND_S)
            note()
            memory.append(service.memory_mb())
        for visitor in visitors:
            visitor.stopped.set()
            visitor.join()
    note()
    with suppress(Exception):
        until(lambda: service.open_files() <= files + SPARE_FILES, "its connections are closed")
    files_left = service.open_files()
    stopped = _stop(service)

    thirds = [statistics.median(memory[len(memory) * at // 3 : len(memory) * (at + 1) // 3]) for at in range(3)]
    verdicts = {
        f"{sum(each.count for each in seen.values()):,} integers, {twice} of them twice": not twice,
        f"{load.codes().total():,} requests of {len(kinds)} clients that stayed, by code {dict(load.codes())}": (
            load.codes().keys() == {"ok"}
        ),
        f"{len(load.ends())} of their connections lost": not load.ends(),
        f"{sum((each.visits for each in visitors), Counter()).total():,} visits: "
        f"{dict(sum((each.visits for each in visitors), Counter()))}": True,
        f"memory {thirds[0]:.1f}, {thirds[1]:.1f}, {thirds[2]:.1f} MB in the thirds of {seconds:,.0f} s": (
            thirds[2] <= thirds[1] * GROWTH
        ),
        f"{files} open files before, {files_left} after": files_left <= files + SPARE_FILES,
        stopped or "stopped well": not stopped,
    }
    for text, well in verdicts.items():
        print(f"{'ok ' if well else 'NOT'}  {text}")
    return all(verdicts.values())


def _stop(service: Serving) -> str:
    """Stop the service; return the problems with its stop or in its log."""
    service.stop()
    if code := service.wait():
        return f"it ended with {code}"
    events = [json.loads(text) for text in service.log.read_text(encoding="utf-8").splitlines()]
    return "".join(f"\n     {each}" for each in events if each["level"] not in {"info", "debug"})


def main() -> int:
    """Soak for ``--seconds``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600, help="how long (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="of the service (%(default)s)")
    parser.add_argument("--store", help="its store; a SQLite file of its own by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mintage-soak-") as directory:
        place = Path(directory)
        store = arguments.store or f"sqlite:///{place}/ids.db"
        # What clients did wrong need not be kept for an hour.
        service = Serving(place / "service", store, workers=arguments.workers, max_wait_ms=10_000, access_log="off")
        try:
            return 0 if soak(service, arguments.seconds) else 1
        finally:
            service.kill()


if __name__ == "__main__":
    sys.exit(main())
