"""A pool that grows: what its verbs cost with more and more leases."""

import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from statistics import median

from benchmarks.fleet.crew import LAYOUT, NODES, POOL
from benchmarks.fleet.record import Grown
from mintage import rules
from mintage.rules import Lease, PoolRecord
from mintage.store import Store, open_store
from mintage.store.ledger import Ledger

COUNTS = (1, 256, 4_096, 65_536)
ROUNDS = 15
PAGE = 100
"""The leases of a page of a list."""
SPAN_MS = 300_000
BATCH = 1_000
"""The records that one transaction adds."""


def _acquire(store: Store) -> Lease:
    now_ms = store.now_ms()
    return store.acquire(POOL, nodes=NODES, layout=LAYOUT, holder="a process", now_ms=now_ms, span_ms=SPAN_MS)


def fill(store: Store, first: int, stop: int) -> None:
    """Grant the node numbers of a range."""
    if not isinstance(store, Ledger):
        for _ in range(first, stop):
            _acquire(store)
        return
    pool, now_ms = store.get_pool(POOL), store.now_ms()
    assert isinstance(pool, PoolRecord)
    for begin in range(first, stop, BATCH):
        with store._begin() as transaction:
            for node in range(begin, min(begin + BATCH, stop)):
                token = f"token-{node}"
                transaction.put(
                    rules.grant(pool, None, node, token=token, holder="a process", now_ms=now_ms, span_ms=SPAN_MS)
                )


def _timed_ms(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - began)


def _doctor(url: str) -> None:
    command = [sys.executable, "-m", "mintage", "doctor", "--store", url]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def grow(name: str, url: str) -> Iterator[Grown]:
    """Yield what the verbs of a pool cost with each of :data:`COUNTS` leases, the last :data:`ROUNDS` just acquired."""
    with open_store(url) as store:
        store.create_pool(POOL, layout=LAYOUT, span_ms=SPAN_MS, never_used=True)
        filled = 0
        for count in COUNTS:
            fill(store, filled, count - ROUNDS)
            acquired = [_timed_ms(lambda: _acquire(store)) for _ in range(ROUNDS)]
            filled = max(count, ROUNDS)
            pages = [_timed_ms(lambda: store.list_leases(POOL, limit=PAGE)) for _ in range(ROUNDS)]
            listed_ms = _timed_ms(lambda: deque(store.each_lease(POOL), maxlen=0))
            yield Grown(
                name, count, median(acquired), median(pages), listed_ms / 1e3, _timed_ms(lambda: _doctor(url)) / 1e3
            )
