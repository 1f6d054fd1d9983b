"""Concurrent clients of one store, each with a wrong clock, which record the values that they were given.

``python -m tests.contract.clients URL CLIENTS TURNS SEED`` runs some in their own process and prints their history.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from mintage.errors import LeaseError, MintError, StoreError
from mintage.rules import MIN_SPAN_MS
from mintage.store import new_token, open_store

if TYPE_CHECKING:
    from mintage.store import Store

POOL = "crowd"
NODES = range(8)
NAMESPACE = "crowd"
SKEW_MS = 2_000

History = list[tuple[str, int, int]]
"""The owner (a node number or the namespace) and the range [first, stop)."""


class Client:
    """A client that leases and reserves untidily until it has a number of values, at least one lease among them."""

    def __init__(self, store: Store, seed: int) -> None:
        self.history: History = []
        self.error: BaseException | None = None
        self._has_leased = False
        self._store = store
        self._random = random.Random(seed)
        self._skew_ms = self._random.randint(-SKEW_MS, SKEW_MS)

    def run(self, turns: int, stop: threading.Event) -> None:
        try:
            while not stop.is_set() and (len(self.history) < turns or not self._has_leased):
                try:
                    self._reserve() if self._random.random() < 0.5 else self._lease()
                except LeaseError as error:
                    # In a large crowd, some requests are so late that their clock counts as wrong.
                    if error.code not in {"lease.none_free", "lease.lost", "lease.unknown", "lease.clock"}:
                        raise
                except StoreError as error:
                    # A crowd may be too large for a while.
                    if error.code != "store.unavailable":
                        raise
        except BaseException as error:  # noqa: BLE001 (whatever it is, the test reports it)
            self.error = error
            stop.set()

    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._skew_ms

    def _lease(self) -> None:
        lease = self._store.acquire(
            POOL, nodes=NODES, layout="test", holder="crowd", now_ms=self._now_ms(), span_ms=MIN_SPAN_MS
        )
        self._has_leased = True
        at = len(self.history)
        self.history.append((str(lease.node), lease.floor_ms, lease.until_ms))
        for _ in range(self._random.randrange(4)):
            time.sleep(self._random.uniform(0, 0.05))  # so that other clients get a turn
            lease = self._store.extend(lease, now_ms=self._now_ms(), next_token=new_token())
            self.history[at] = (str(lease.node), lease.floor_ms, lease.until_ms)
        match self._random.randrange(8):
            case 0:
                pass  # It crashes: the number comes free when the window ends.
            case 1:
                self._store.revoke(POOL, self._random.choice(NODES))
            case _:
                used = self._random.randint(lease.floor_ms, max(lease.floor_ms, min(lease.until_ms, self._now_ms())))
                self.history[at] = (str(lease.node), lease.floor_ms, used)
                self._store.release(lease, used_until_ms=used)

    def _reserve(self) -> None:
        segment = self._store.reserve(NAMESPACE, self._random.randint(1, 1_000))
        at = len(self.history)
        self.history.append((NAMESPACE, segment.first, segment.last + 1))
        match self._random.randrange(8):
            case 0:
                unused = self._random.randint(segment.first, segment.last)
                self.history[at] = (NAMESPACE, segment.first, unused)
                if not self._store.give_back(segment, unused):
                    self.history[at] = (NAMESPACE, segment.first, segment.last + 1)
            case 1:
                self._store.raise_floor(NAMESPACE, segment.last + self._random.randint(0, 1_000))


def crowd(store: Store, clients: int, turns: int, seed: int) -> History:
    """Run clients on a thread each, for at least ``turns`` turns each, and return the values that they were given.

    :raises MintError: an error that no client should see.
    """
    stop = threading.Event()
    all_clients = [Client(store, seed * 1_000 + number) for number in range(clients)]
    threads = [threading.Thread(target=client.run, args=[turns, stop]) for client in all_clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in all_clients:
        if client.error is not None:
            raise client.error
    return [entry for client in all_clients for entry in client.history]


def overlaps(history: History) -> list[tuple[tuple[str, int, int], tuple[str, int, int]]]:
    """Return the pairs that share a value."""
    found = []
    by_whom = defaultdict(list)
    for entry in history:
        if entry[1] < entry[2]:
            by_whom[entry[0]].append(entry)
    for entries in by_whom.values():
        found += [(before, after) for before, after in pairwise(sorted(entries)) if after[1] < before[2]]
    return found


if __name__ == "__main__":
    url, count, turns, seed = sys.argv[1:]
    try:
        with open_store(url) as store:
            print(json.dumps(crowd(store, int(count), int(turns), int(seed))))
    except MintError as error:
        sys.exit(f"{type(error).__name__}: {error}")
