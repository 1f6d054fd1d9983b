"""Clients that use the store's verbs at once, and the windows and integers that two of them were given."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mintage.errors import MintError
from mintage.store import Store, new_token, open_store

if TYPE_CHECKING:
    from mintage.rules import Lease

    T = TypeVar("T")

NODES: Final = range(16)
"""The node numbers that all clients ask for: so few that each is granted again and again."""
COUNT: Final = 10
"""The most integers of a reservation."""
SPAN_MS: Final = 1000
_choose: Final = random.SystemRandom()

Interval = tuple[int, int, int]
"""A node number or a constant, the first time or integer, and the one after the last."""


def now_ms() -> int:
    """Return the time of this machine."""
    return time.time_ns() // 1_000_000


def shared(intervals: Iterable[Interval]) -> int:
    """Return how many intervals begin before another one of the same number has ended.

    >>> shared([(7, 0, 10), (7, 10, 20), (8, 5, 9), (7, 19, 30)])
    1
    """
    count, ends = 0, dict[int, int]()
    for number, first, end in sorted(intervals):
        if first < end:
            count += first < ends.get(number, first)
            ends[number] = max(end, ends.get(number, end))
    return count


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the same integers in as few intervals as possible.

    >>> union([(0, 5, 9), (0, 1, 5), (0, 2, 3), (0, 20, 21)])
    [(0, 1, 9), (0, 20, 21)]
    """
    found: list[Interval] = []
    for number, first, end in sorted(intervals):
        if found and first <= found[-1][2]:
            found[-1] = (number, found[-1][1], max(end, found[-1][2]))
        else:
            found.append((number, first, end))
    return found


@dataclass
class Client:
    """A client with connections of its own, and what it was given."""

    store: Store
    pool: str
    layout: str
    namespace: str
    pause_s: float
    """The time between two verbs."""
    windows: list[Interval] = field(default_factory=list)
    integers: list[Interval] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    verbs: int = 0
    waited_s: float = 0.0
    """The longest time of a verb."""

    def call(self, verb: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a verb of the store, at its time."""
        time.sleep(self.pause_s)
        began = time.monotonic()
        self.verbs += 1
        try:
            return verb(*args, **kwargs)
        except MintError as error:
            self.refused[error.code] += 1
            raise
        finally:
            self.waited_s = max(self.waited_s, time.monotonic() - began)

    def acquire(self, nodes: range = NODES) -> Lease:
        """Lease a node number."""
        asked = {"layout": self.layout, "holder": "mintage prove", "span_ms": SPAN_MS}
        return self.call(self.store.acquire, self.pool, nodes=nodes, now_ms=now_ms(), **asked)

    def extend(self, lease: Lease) -> Lease:
        """Extend a lease."""
        return self.call(self.store.extend, lease, now_ms=now_ms(), next_token=new_token())

    def release(self, lease: Lease) -> int:
        """End a lease, and return the end of its window: the rest is the next holder's, whatever the answer is."""
        end_ms = max(lease.floor_ms, min(now_ms(), lease.until_ms))
        with suppress(MintError):
            self.call(self.store.release, lease, used_until_ms=end_ms)
        return end_ms

    def lease(self) -> None:
        """Lease a number, extend it or not, and end it in one of three ways; an error ends it in the third."""
        lease, end_ms = self.acquire(), None
        try:
            for _ in range(_choose.randrange(3)):
                lease = self.extend(lease)
            way = _choose.randrange(10)
            if way == 0:
                self.call(self.store.revoke, self.pool, lease.node)
            elif way > 1:
                end_ms = self.release(lease)
        finally:
            self.windows.append((lease.node, lease.floor_ms, lease.until_ms if end_ms is None else end_ms))

    def reserve(self) -> None:
        """Reserve integers, and give some back or not."""
        segment = self.call(self.store.reserve, self.namespace, _choose.randint(1, COUNT))
        end = _choose.randint(segment.first, segment.last + 1)
        self.integers.append((0, segment.first, end))
        if end <= segment.last:
            self.call(self.store.give_back, segment, end)

    def work(self) -> None:
        """Use all verbs for half a second."""
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            for verb in (self.lease, self.reserve):
                with suppress(MintError):
                    verb()


class Clients:
    """Clients on threads; their calls of one verb begin together."""

    def __init__(self, url: str, count: int, rate: float, pool: str, layout: str, namespace: str) -> None:
        make = partial(Client, pool=pool, layout=layout, namespace=namespace, pause_s=count / rate)
        self.clients = [make(open_store(url)) for _ in range(count)]
        self._threads = ThreadPoolExecutor(count)

    def close(self) -> None:
        """Close the connections."""
        self._threads.shutdown(cancel_futures=True)
        for client in self.clients:
            client.store.close()

    def each(self, work: Callable[[Client], T], clients: list[Client] | None = None) -> list[T | MintError]:
        """Let clients work together, and return their results or errors."""
        chosen = self.clients if clients is None else clients
        start = threading.Barrier(len(chosen))

        def run(client: Client) -> T | MintError:
            start.wait()
            try:
                return work(client)
            except MintError as error:
                return error

        return list(self._threads.map(run, chosen))

    def contend(self, node: int) -> int:
        """Let all ask for one node number, and two extend its lease; return how many held it beside another."""
        granted = self.each(lambda client: client.acquire(range(node, node + 1)))
        leases = [each for each in granted if not isinstance(each, MintError)]
        # Two copies of the holder, as after a restore of a snapshot: the store lets one of them go on.
        held = self.each(lambda client: client.extend(leases[0]), self.clients[:2]) if leases else []
        extended = [each for each in held if not isinstance(each, MintError)]
        first = self.clients[0]
        for lease in [*extended[:1], *leases[bool(extended) :]]:
            first.windows.append((node, lease.floor_ms, first.release(lease)))
        return max(0, len(extended) - 1)

    def integers(self) -> list[Interval]:
        """Return the integers that were given."""
        return [each for client in self.clients for each in client.integers]

    def found(self) -> tuple[int, int]:
        """Return the number of windows and integers that were given, and how many of them twice."""
        windows = [each for client in self.clients for each in client.windows]
        integers = self.integers()
        given = len(windows) + sum(end - first for _, first, end in integers)
        return given, shared(windows) + shared(integers)
