"""A process that mints until it is stopped: IDs go into files as bytes, events to its output as JSON lines.

Its input is one line of JSON, its orders; then ``step <ms>`` moves its clock, and the end of the input ends it, also
when the process that started it is killed. On Linux the kernel ends it then, even if it is stopped.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from array import array
from collections import Counter
from itertools import chain
from typing import Any, Final

from mintage import Sequence
from mintage.errors import MintError
from mintage.formats.kinds import KINDS
from mintage.platform.machine import end_with_parent

TURNS_OF_A_CHILD: Final = 5


class Clock:
    """The system clock with an offset."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def __call__(self) -> int:
        """Return the time in nanoseconds since 1970."""
        return time.time_ns() + self.ahead_ns


class Minter:
    """A generator and the IDs that it minted, in the order of its calls."""

    def __init__(self, scheme: str, orders: dict[str, Any], clock: Clock) -> None:
        self._scheme = scheme
        self._orders = orders
        self._clock = clock
        self.open(orders["file"])
        self.ids = 0
        self.slowest_ms = 0.0
        self.refusals: Counter[str] = Counter()
        self.generator = self.make()

    def open(self, file: str) -> None:
        """Write further IDs to the file of this name and the scheme's."""
        self._file = os.open(f"{file}.{self._scheme}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def make(self) -> Any:
        """Return a new generator."""
        store, max_wait_ms = self._orders["store"], self._orders["max_wait_ms"]
        if self._scheme == "sequence":
            return Sequence(self._orders["namespace"], store, step=self._orders["step"], max_wait_ms=max_wait_ms)
        first = self._orders["first_node"]
        leased: dict[str, Any] = {
            "pool": self._orders["pools"].get(self._scheme),
            "nodes": range(first, first + self._orders["nodes"]),
            "span_ms": self._orders["span_ms"],
            "on_lease_lost": self._orders["on_lease_lost"],
        }
        if self._orders["stepped"]:
            leased["clock"] = self._clock
        if self._scheme == "locality":
            leased["counter"] = 0  # only the lease keeps two apart
        return KINDS[self._scheme].module.Generator(store=store, max_wait_ms=max_wait_ms, **leased)

    def mint(self, count: int) -> bytes:
        """Return the IDs as bytes."""
        if self._scheme != "sequence":
            return bytes(memoryview(self.generator.batch(count)))
        return array("Q", chain.from_iterable(self.generator.batch(count))).tobytes()

    def turn(self) -> None:
        """Make one call."""
        began = time.monotonic()
        try:
            minted = self.mint(self._orders["batch"])
        except MintError as error:
            waited_ms = round((time.monotonic() - began) * 1000)
            if not self.refusals[error.code]:
                later_ms = getattr(error, "retry_after_ms", None)
                tell(
                    event="refused", scheme=self._scheme, code=error.code, retry_after_ms=later_ms, waited_ms=waited_ms
                )
            self.refusals[error.code] += 1
            self.slowest_ms = max(self.slowest_ms, waited_ms)
            if error.code == "lease.lost" and self._orders["on_lease_lost"] == "raise":
                if not self._orders["anew"]:
                    raise
                self.generator = self.make()
            # A refused caller waits for the given delay, within limits.
            time.sleep(min((getattr(error, "retry_after_ms", None) or 20) / 1000, 0.1))
            return
        self.slowest_ms = max(self.slowest_ms, (time.monotonic() - began) * 1000)
        if os.write(self._file, minted) != len(minted):
            raise OSError("the disk is full")
        if not self.ids:
            tell(event="minting", scheme=self._scheme)
        self.ids += 1


def tell(**what: Any) -> None:
    """Report an event."""
    print(json.dumps({**what, "at_ms": time.time_ns() // 1_000_000}), flush=True)


def listen(clock: Clock, ends: threading.Event) -> None:
    """Read the lines after the orders."""
    for line in sys.stdin:
        clock.ahead_ns += int(line.split()[1]) * 1_000_000
        tell(event="stepped")
    ends.set()


def fork(minters: list[Minter], file: str) -> int:
    """Fork a child that mints with the generators of this process, and return its id."""
    parent = os.getpid()
    if child := int(getattr(os, "fork")()):  # noqa: B009 - Windows has none
        return child
    try:
        end_with_parent(parent)
        for minter in minters:
            minter.open(f"{file}.{os.getpid()}")
        for _ in range(TURNS_OF_A_CHILD):
            for minter in minters:
                minter.turn()
        for minter in minters:
            minter.generator.close()
    finally:
        os._exit(0)


def main() -> None:
    """Mint as the orders say, until the input ends."""
    orders = json.loads(sys.stdin.readline())
    end_with_parent(orders["parent"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches it as well, and its parent ends it
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks
    clock, ends = Clock(), threading.Event()
    threading.Thread(target=listen, args=(clock, ends), daemon=True).start()
    minters = [Minter(scheme, orders, clock) for scheme in orders["schemes"]]
    round_s, child, rounds, forks = orders["round_s"], 0, 0, 0
    try:
        while not ends.is_set():
            if round_s:
                # All processes begin at the same time.
                time.sleep(round_s - time.time() % round_s)
                rounds += 1
                for minter in minters:
                    minter.generator.close()
                    minter.generator = minter.make()
            if orders["forks"] and minters[0].ids:
                if child:
                    os.waitpid(child, 0)
                child, forks = fork(minters, orders["file"]), forks + 1
            for minter in minters:
                minter.turn()
            time.sleep(orders["pause_s"])
    except MintError as error:
        tell(event="ended", code=error.code)
    else:
        if child:
            os.waitpid(child, 0)
        if orders["closes"]:
            for minter in minters:
                minter.generator.close()
    refusals: Counter[str] = sum((minter.refusals for minter in minters), Counter())
    slowest_ms = round(max(minter.slowest_ms for minter in minters))
    tell(event="done", refusals=refusals, slowest_ms=slowest_ms, rounds=rounds, forks=forks)
    sys.stdout.flush()
    os._exit(0)  # like a killed process: nothing that is still open is released


if __name__ == "__main__":
    main()
