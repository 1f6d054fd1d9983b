"""Measure what an open page of the console costs the hot paths of its service.

`python -m benchmarks.console` starts `mintage serve` on MariaDB with Redis in front, 990 namespaces and a pool of
10,000 leases. It alternates between blocks in which a client reads the page again at the page's own pace, as a browser
does, and blocks without. The command prints one row of a Markdown table for each hot path: the rate with the page, the
rate without, and the mean of the ratios with its standard error. Its last row is the processor time of the page while
nothing else runs.
"""

import argparse
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from math import sqrt
from statistics import fmean, median, stdev

from benchmarks.fleet.crew import LAYOUT, POOL
from benchmarks.fleet.grow import fill
from benchmarks.fleet.run import cpu_s
from benchmarks.servers import Measured, Mintage, bench
from benchmarks.service import Client, increments, posts
from mintage.store import open_store

LEASES, NAMESPACES = 10_000, 990
ROWS: dict[str, Client] = {"INCR": increments(1), "INCR, pipeline 16": increments(16), "POST /alloc": posts}


@contextmanager
def opened(url: str) -> Iterator[None]:
    """Read a page at once, and again at the pace that it asks for, until the block ends."""
    ends = threading.Event()

    def read() -> float:
        with urllib.request.urlopen(url, timeout=60) as answer:
            pace = re.search(rb'hx-trigger="every ([0-9]+)s"', answer.read())
        assert pace, f"{url} is not a live page"
        return float(pace[1])

    pace_s = read()  # the first reading imports the console

    def view() -> None:
        while not ends.wait(pace_s):
            read()

    thread = threading.Thread(target=view)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def rate(client: Client, server: Measured, seconds: float) -> float:
    """Return the mean rate of a client that runs again and again for some seconds."""
    until, rates = time.monotonic() + seconds, []
    while time.monotonic() < until:
        rates.append(client(server))
    return fmean(rates)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__)
    parser.add_argument("--page", default=f"pools/{POOL}", help="the path of the page (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=12, help="the length of a block (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=6, help="blocks with the page, a row (default: %(default)s)")
    args = parser.parse_args()
    with bench() as servers:
        server = servers.start(Mintage)
        with open_store(server.store) as store:
            for at in range(NAMESPACES):
                store.create_namespace(f"tenant.{at:03}")
        with open_store(servers.place.mariadb.url) as store:
            store.create_pool(POOL, layout=LAYOUT, span_ms=86_400_000, never_used=True)
            fill(store, 0, LEASES)
        page = f"{server.url}/console/{args.page}"
        print(f"| {args.page} | open | closed | ratio |\n| --- | --- | --- | --- |")
        for name, client in ROWS.items():
            with opened(page):
                client(server)
            rates: dict[bool, list[float]] = {True: [], False: []}
            for at in range(args.blocks):
                for is_open in (True, False) if at % 2 else (False, True):  # a drift of the machine favours neither
                    with opened(page) if is_open else nullcontext():
                        rates[is_open].append(rate(client, server, args.seconds))
            ratios = [a / b for a, b in zip(rates[True], rates[False], strict=True)]
            print(
                f"| {name} | {median(rates[True]):.1f} | {median(rates[False]):.1f} "
                f"| {fmean(ratios):.3f} ± {stdev(ratios) / sqrt(len(ratios)):.3f} |",
                flush=True,
            )
        shares = []
        for viewed in (opened(page), nullcontext()):
            before, began = cpu_s(server.family()), time.monotonic()
            with viewed:
                time.sleep(60)
            shares.append(100 * (cpu_s(server.family()) - before) / (time.monotonic() - began))
        print("| % of a core, idle | {:.2f} | {:.2f} | |".format(*shares))


if __name__ == "__main__":
    main()
