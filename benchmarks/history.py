"""Measure what past grants cost: the verbs of a fleet, on a pool that keeps them and on one that does not.

`python -m benchmarks.history postgresql redis` starts each store on an empty directory and alternates between the two
pools. A process takes a number that another one had, extends its lease ten times, and releases it, as in five minutes
of its life. The command prints one row of a Markdown table for each store: such lives a second, with a history and
without it, and the median of their ratio.
"""

import argparse
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.growth import SERVERS
from mintage.rules import HISTORY_MS
from mintage.store import Store, new_token, open_store

EXTENSIONS = 10
LAYOUT = "benchmark"


def live(store: Store, pool: str, lives: int) -> float:
    """Return how many lives of a process a second the store serves."""
    began = time.perf_counter()
    for _ in range(lives):
        now_ms = store.now_ms()
        lease = store.acquire(
            pool, nodes=range(1), layout=LAYOUT, holder="host:1:1", now_ms=now_ms - 1000, span_ms=30_000
        )
        for _ in range(EXTENSIONS):
            lease = store.extend(lease, now_ms=now_ms, next_token=new_token())
        store.release(lease, used_until_ms=lease.floor_ms + 1)
    return lives / (time.perf_counter() - began)


def measure(url: str, lives: int, rounds: int) -> tuple[float, float, float]:
    """Return the lives a second with a history and without it, and the median of the ratios of all rounds."""
    with open_store(url) as store:
        pools = {"with": HISTORY_MS, "without": 0}
        for pool, history_ms in pools.items():
            store.create_pool(pool, layout=LAYOUT, never_used=True, history_ms=history_ms)
            lease = store.acquire(pool, nodes=range(1), layout=LAYOUT, holder="", now_ms=store.now_ms(), span_ms=30_000)
            store.release(lease, used_until_ms=lease.until_ms - 120_000)
            live(store, pool, lives // 10 + 1)
        found: dict[str, list[float]] = {pool: [] for pool in pools}
        for at in range(rounds):
            for pool in sorted(pools, reverse=bool(at % 2)):
                found[pool].append(live(store, pool, lives))
        assert len(store.list_grants("with", 0)) >= rounds * lives
        assert not store.list_grants("without", 0)
    ratio = median(kept / bare for kept, bare in zip(found["with"], found["without"], strict=True))
    return median(found["with"]), median(found["without"]), ratio


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("stores", nargs="+", choices=list(SERVERS))
    parser.add_argument("--lives", type=int, default=50, help="lives a round")
    parser.add_argument("--rounds", type=int, default=11)
    args = parser.parse_args()
    print("| store | lives a second | without a history | ratio |\n| --- | --- | --- | --- |")
    for kind in args.stores:
        with TemporaryDirectory(prefix="mintage-") as folder:
            if SERVERS[kind] is None:
                rates = measure(f"sqlite:///{folder}/ids.db", args.lives, args.rounds)
            else:
                server = SERVERS[kind](Path(folder))
                try:
                    server.start()
                    rates = measure(server.url, args.lives, args.rounds)
                finally:
                    server.kill()
        print("| {} | {:.1f} | {:.1f} | {:.3f} |".format(kind, *rates))


if __name__ == "__main__":
    main()
