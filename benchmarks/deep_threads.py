"""Mint IDs by several threads on one sno generator and prove with an exact bitmap that none occurs twice.

`python -m benchmarks.deep_threads [COUNT] [--threads N]`: a billion IDs take about a minute, as the layout allows
16.384 million a second, and 330 MB. The exit code is 1 if there is a duplicate.
"""

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle, islice

import numpy as np

from mintage import sno

ID = np.dtype([("unit", ">u4"), ("tick", "u1"), ("meta", "u1"), ("partition", ">u2"), ("sequence", ">u2")])
"""The 10 bytes of an ID. The 39 bits of time end within the second field, above the bit of the timeline."""

UNITS_PER_SECOND, SEQUENCES = 250, 65_536
TIMELINES = 2 * UNITS_PER_SECOND
"""Timelines a second: a unit of 4 ms has two."""

PARTITION = 1
FILLED, ITERATED = True, False
BLOCKS = ((65_536, FILLED), (10_007, ITERATED), (40_000, FILLED), (1_024, FILLED), (131_072, FILLED))
"""IDs of one piece of work and how they are minted, in turn: every thread does every kind, across bounds of units."""


class Bitmap:
    """One bit for every unit, timeline and sequence number, starting 10 s before the first ID."""

    def __init__(self, ids: int) -> None:
        """Reserve space for IDs minted without a pause; it grows on demand."""
        self._bits = np.zeros(ids * 2 // 8 + 20 * TIMELINES * SEQUENCES // 8, np.uint8)
        self._first: int | None = None

    def add(self, block: bytes | bytearray) -> int:
        """Enter the IDs of a block; return how many of them were entered before."""
        ids = np.frombuffer(block, ID)
        if np.any(ids["partition"] != PARTITION) or np.any(ids["meta"]):
            raise AssertionError("an ID of another partition or with a metabyte")
        timeline = ids["unit"].astype(np.int64) << 8 | ids["tick"]
        if self._first is None:
            self._first = int(timeline[0]) - 10 * TIMELINES
        bits = (timeline - self._first) * SEQUENCES + ids["sequence"]
        begin = int(bits.min()) // 8
        if begin < 0:
            raise AssertionError("the clock went back by more than 10 s")

        block_bits = np.zeros(int(bits.max()) + 1 - 8 * begin, np.bool_)
        block_bits[bits - 8 * begin] = True
        new = np.packbits(block_bits, bitorder="little")
        if begin + len(new) > len(self._bits):
            self._bits = np.concatenate([self._bits, np.zeros(begin + len(new), np.uint8)])
        seen = self._bits[begin : begin + len(new)]
        again = int(np.bitwise_count(seen & new).sum(dtype=np.int64))
        seen |= new
        return again + len(ids) - int(np.count_nonzero(block_bits))


def mint(generator: sno.Generator, ids: int, filled: bool) -> bytes | bytearray:
    """Mint the IDs of one job."""
    if not filled:
        return b"".join(map(bytes, islice(generator, ids)))
    block = bytearray(ID.itemsize * ids)
    generator.fill(block)
    return block


def plan(count: int) -> Iterator[tuple[int, bool]]:
    """Return jobs that add up to `count` IDs."""
    for ids, filled in cycle(BLOCKS):
        if count <= ids:
            yield count, filled
            return
        yield ids, filled
        count -= ids


def main() -> int:
    """Mint and check; return 1 if an ID occurred twice."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deep_threads", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=10**9, help="IDs to mint (default: 10**9)")
    parser.add_argument("--threads", type=int, default=4, help="threads that share the generator (default: 4)")
    options = parser.parse_args()

    sys.setswitchinterval(100e-6)  # the threads take turns as often as they can
    generator = sno.Generator(partition=PARTITION)
    bitmap, work, duplicates = Bitmap(options.count), plan(options.count), 0
    start = time.perf_counter()
    with ThreadPoolExecutor(options.threads) as pool:
        pending: deque[Future[bytes | bytearray]] = deque()
        while True:
            pending.extend(
                pool.submit(mint, generator, *piece) for piece in islice(work, 2 * options.threads - len(pending))
            )
            if not pending:
                break
            duplicates += bitmap.add(pending.popleft().result())
    seconds = time.perf_counter() - start
    print(
        f"{options.count:,} IDs, {options.threads} threads, {seconds:.1f} s, "
        f"{options.count / seconds:,.0f} IDs/s, {duplicates:,} duplicates"
    )
    return int(duplicates > 0)


if __name__ == "__main__":
    sys.exit(main())
