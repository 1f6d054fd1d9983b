"""A server that minted before it forked its workers, in which several threads mint their first ID together.

``python -m tests.stress.prefork --workers 15_000`` forks so many, one batch after another at each of several switch
intervals, beside a parent that goes on minting. It counts equal IDs, workers with the node number of their parent, and
workers with more than one keeper.
"""

from __future__ import annotations

import argparse
import os
import select
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mintage import Sequence, sno

if TYPE_CHECKING:
    from collections.abc import Iterable

INTERVALS_S: Final = (1e-6, 1e-5, 1e-4, 1e-3, 5e-3)
"""Switch intervals of threads; the last is the default of Python."""
THREADS: Final = 8
EACH: Final = 5
"""The number of IDs and of integers that each thread mints."""
AT_ONCE: Final = 16
BOUND_S: Final = 120
"""Seconds after which a worker counts as stuck; never waited for otherwise."""
_ID: Final = 10


@dataclass
class Tally:
    """The counts of minted IDs and of errors."""

    workers: int = 0
    ids: int = 0
    equal: int = 0
    inherited: int = 0
    """Workers that minted with their parent's node number."""
    keepers: int = 0
    """Workers with more than one keeper."""
    failed: list[str] = field(default_factory=list)

    def is_clean(self) -> bool:
        """Return True if there was no error."""
        return not (self.equal or self.inherited or self.keepers or self.failed)

    def __str__(self) -> str:
        return (
            f"{self.workers:,} workers of {THREADS} threads, {self.ids:,} IDs and integers: {self.equal:,} equal, "
            f"{self.inherited:,} workers with their parent's node number, {self.keepers:,} with two keepers, "
            f"{len(self.failed):,} failed"
        )


def _work(generator: sno.Generator, orders: Sequence) -> bytes:
    """Mint in a worker: all threads start together."""
    begin = threading.Barrier(THREADS)
    minted: list[bytes] = []

    def mint() -> None:
        begin.wait(BOUND_S)
        for _ in range(EACH):
            minted.append(bytes(generator.new()))
            minted.append(struct.pack(">2xQ", orders.next()))

    threads = [threading.Thread(target=mint) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    keepers = 0
    for thread in threads:
        thread.join()
        keepers = max(keepers, sum(each.name == "mintage-keeper" for each in threading.enumerate()))
    if len(minted) != 2 * THREADS * EACH:
        raise RuntimeError(f"{len(minted)} minted")
    return bytes([keepers]) + b"".join(minted)


def _fork(generator: sno.Generator, orders: Sequence, interval_s: float) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            sys.setswitchinterval(interval_s)
            answer = _work(generator, orders)
            while answer:
                answer = answer[os.write(writing, answer) :]
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    return pid, reading


def _answer(reading: int) -> bytes:
    answer, deadline = b"", time.monotonic() + BOUND_S
    while select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(reading, 1 << 16)
        if not part:
            break
        answer += part
    os.close(reading)
    return answer


def run(workers: int, interval_s: float) -> Tally:
    """Run a number of workers of one parent, at one switch interval."""
    tally, seen = Tally(), Counter[bytes]()

    def note(minted: Iterable[bytes]) -> None:
        seen.update(minted)

    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/ids.db"
        generator = sno.Generator(store=store, max_wait_ms=60_000)
        with generator, Sequence("orders", store, step=100, max_wait_ms=60_000) as orders:
            generator.new()
            while tally.workers < workers:
                children = [_fork(generator, orders, interval_s) for _ in range(min(AT_ONCE, workers - tally.workers))]
                while not select.select([reading for _, reading in children], [], [], 0)[0]:
                    # The parent mints in the same milliseconds.
                    note(bytes(each) for each in generator.batch(20))
                    note([struct.pack(">2xQ", orders.next())])
                for pid, reading in children:
                    tally.workers += 1
                    answer = _answer(reading)
                    _, status = os.waitpid(pid, 0 if answer else os.WNOHANG)
                    if not answer or status:
                        tally.failed.append(f"worker {pid}: status {status}")
                        continue
                    tally.keepers += answer[0] > 1
                    minted = [answer[at : at + _ID] for at in range(1, len(answer), _ID)]
                    note(minted)
                    ids = [sno.ID(each) for each in minted if not each.startswith(b"\0\0")]
                    tally.inherited += any(each.partition == generator.partition for each in ids)
    tally.ids = seen.total()
    tally.equal = tally.ids - len(seen)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stress.prefork", description=__doc__)
    parser.add_argument("--workers", type=int, default=15_000, help="at each switch interval")
    parser.add_argument("--interval", type=float, action="append", help="a switch interval in seconds, instead of all")
    options = parser.parse_args()
    is_clean = True
    for interval_s in options.interval or INTERVALS_S:
        tally = run(options.workers, interval_s)
        print(f"switch interval {interval_s:g} s: {tally}", *tally.failed[:10], sep="\n  ", flush=True)
        is_clean &= tally.is_clean()
    return not is_clean


if __name__ == "__main__":
    sys.exit(main())
