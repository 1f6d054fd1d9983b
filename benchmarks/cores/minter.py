"""Mint as fast as a Python loop can, in threads of this fresh process: `minter WHAT THREADS SECONDS`.

It prints a line when it is ready, begins when it reads one, and prints IDs a second.
"""

import sys
import threading
import time
from collections.abc import Callable
from itertools import repeat

from mintage import sno, uuid

CALLS = 10_000
"""Calls between two looks at the clock."""
FILLED = 65_536
"""IDs of a buffer."""


def prepared(what: str, number: int, threads: int) -> tuple[Callable[[], object], int]:
    """Return what a thread calls, and how many IDs a call mints.

    One thread leases a partition from the registry; several have a generator each.
    """
    if what == "sno":
        return (sno.Generator(number) if threads > 1 else sno.Generator()).new, 1
    if what == "uuid":
        return uuid.Generator().new, 1
    generator, buffer = uuid.Generator(), bytearray(16 * FILLED)
    return lambda: generator.fill(buffer), FILLED


def rate(call: Callable[[], object], ids: int, seconds: float) -> float:
    """Return IDs a second of a loop that takes about so long."""
    calls, done, clock = max(1, CALLS // ids), 0, time.perf_counter
    began = now = clock()
    while now - began < seconds:
        for _ in repeat(None, calls):
            call()
        done += calls
        now = clock()
    return done * ids / (now - began)


def main(what: str, threads: int, seconds: float) -> None:
    """Mint, and print the sum over the threads."""
    sides = [prepared(what, number, threads) for number in range(threads)]
    for side in sides:
        rate(*side, 0.1)
    rates, ready = [0.0] * threads, threading.Barrier(threads + 1)

    def run(number: int) -> None:
        ready.wait()
        rates[number] = rate(*sides[number], seconds)

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    print(flush=True)
    sys.stdin.readline()
    ready.wait()
    for thread in running:
        thread.join()
    print(sum(rates))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
