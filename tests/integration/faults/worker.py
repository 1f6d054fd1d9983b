"""A process that mints until it is stopped: IDs go into files as bytes, events to its output as JSON lines.

Its input is one line of JSON, its orders; then ``step <ms>`` moves its clock, and the end of the input ends it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from typing import Any

import numpy as np

from mintage import Sequence
from mintage.errors import MintError
from mintage.formats.kinds import KINDS


class Clock:
    """The system clock with an offset."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def __call__(self) -> int:
        return time.time_ns() + self.ahead_ns


class Minter:
    """A generator and the IDs that it minted, in the order of its calls."""

    def __init__(self, scheme: str, orders: dict[str, Any], clock: Clock) -> None:
        self._scheme = scheme
        self._orders = orders
        self._clock = clock
        self._file = os.open(f"{orders['file']}.{scheme}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.ids = 0
        self.slowest_ms = 0.0
        self.refusals: Counter[str] = Counter()
        self.events: list[dict[str, Any]] = []
        self.generator = self._make()

    def _make(self) -> Any:
        store, max_wait_ms = self._orders["store"], self._orders["max_wait_ms"]
        if self._scheme == "sequence":
            return Sequence("orders", store, step=self._orders["step"], max_wait_ms=max_wait_ms)
        leased: dict[str, Any] = {
            "nodes": range(self._orders["nodes"]),
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
        ranges = self.generator.batch(count)
        return b"".join(np.arange(r.start, r.stop, r.step, dtype=np.uint64).tobytes() for r in ranges)

    def turn(self) -> None:
        """Make one call."""
        began = time.monotonic()
        try:
            minted = self.mint(self._orders["batch"])
        except MintError as error:
            waited_ms = round((time.monotonic() - began) * 1000)
            if not self.refusals[error.code]:
                retry_after_ms = getattr(error, "retry_after_ms", None)
                tell(
                    event="refused",
                    scheme=self._scheme,
                    code=error.code,
                    retry_after_ms=retry_after_ms,
                    waited_ms=waited_ms,
                )
            self.refusals[error.code] += 1
            self.slowest_ms = max(self.slowest_ms, waited_ms)
            if error.code == "lease.lost" and self._orders["on_lease_lost"] == "raise":
                if not self._orders["anew"]:
                    raise
                self.generator = self._make()
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
    print(json.dumps({**what, "at_ms": time.time_ns() // 1_000_000}), flush=True)


def listen(clock: Clock, ends: threading.Event) -> None:
    for line in sys.stdin:
        clock.ahead_ns += int(line.split()[1]) * 1_000_000
        tell(event="stepped")
    ends.set()


def main() -> None:
    orders = json.loads(sys.stdin.readline())
    clock, ends = Clock(), threading.Event()
    threading.Thread(target=listen, args=(clock, ends), daemon=True).start()
    minters = [Minter(scheme, orders, clock) for scheme in orders["schemes"]]
    try:
        while not ends.is_set():
            for minter in minters:
                minter.turn()
            time.sleep(orders["pause_s"])
    except MintError as error:
        tell(event="ended", code=error.code)
    else:
        if orders["closes"]:
            for minter in minters:
                minter.generator.close()
    refusals: Counter[str] = sum((minter.refusals for minter in minters), Counter())
    slowest_ms = round(max(minter.slowest_ms for minter in minters))
    tell(event="done", refusals=refusals, slowest_ms=slowest_ms, cpu_s=time.process_time())
    sys.stdout.flush()
    os._exit(0)  # like a killed process: nothing that is still open is released


if __name__ == "__main__":
    main()
