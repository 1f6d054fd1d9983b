"""A crew of workers: start them, send them orders, and compare the IDs that they minted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

WIDTHS: Final = {"sno": 10, "snowflake": 8, "locality": 16, "uuid": 16, "ulid": 16, "objectid": 12, "sequence": 8}
PATIENCE_S: Final = 90


def until(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait until the condition holds.

    :raises TimeoutError: if it does not within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.02)


class Worker:
    """A process that mints."""

    def __init__(self, directory: Path, name: str, orders: dict[str, Any]) -> None:
        self.orders = orders
        self.file = directory / name
        self._said = directory / f"{name}.said"
        with self._said.open("wb") as said, (directory / f"{name}.errors").open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mintage.prove.worker"],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=errors,
                env={**os.environ, "MINTAGE_HOME": str(directory / "home")},
            )
        self._say(json.dumps({**orders, "file": str(self.file), "parent": os.getpid()}))

    def _say(self, line: str) -> None:
        if self.process.stdin:
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return the reports of such events."""
        lines = self._said.read_text(encoding="utf-8").splitlines()
        told = [json.loads(line) for line in lines if line.endswith("}")]
        return [what for what in told if what["event"] == event]

    def wait_for(self, event: str, count: int = 1) -> None:
        """Wait until it has reported a number of events."""
        self._until(lambda: len(self.said(event)) >= count, f"says {event}")

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        def is_met() -> bool:
            if not (met := condition()) and self.process.poll() is not None:
                raise RuntimeError(f"process {self.file.name} ended: {self._errors() or self.process.returncode}")
            return met

        try:
            until(is_met, f"process {self.file.name} {what}", self.orders["patience_s"])
        except TimeoutError as error:
            codes = sorted({refused["code"] for refused in self.said("refused")})
            raise TimeoutError(f"{error}; its errors: {', '.join(codes) or 'none'}") from None

    def _errors(self) -> str:
        return self.file.with_name(f"{self.file.name}.errors").read_text(encoding="utf-8")

    def wait_until_minting(self) -> None:
        """Wait until it has minted in every scheme."""
        self.wait_for("minting", len(self.orders["schemes"]))

    def wait_for_more(self, count: int = 1) -> None:
        """Wait until it has minted more IDs of every scheme."""
        sizes = {scheme: self.size(scheme) for scheme in self.orders["schemes"]}
        self._until(lambda: all(self.size(scheme) > size + count for scheme, size in sizes.items()), "mints on")

    def size(self, scheme: str) -> int:
        """Return the bytes of its IDs, without those of its children."""
        file = Path(f"{self.file}.{scheme}")
        return file.stat().st_size if file.exists() else 0

    def step(self, ms: int) -> None:
        """Move its clock."""
        count = len(self.said("stepped"))
        self._say(f"step {ms}")
        self.wait_for("stepped", count + 1)

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop it in an orderly way, if it still runs."""
        with suppress(OSError):
            if self.process.stdin:
                self.process.stdin.close()
        try:
            self.process.wait(self.orders["patience_s"])
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        if self.process.returncode > 0:
            raise RuntimeError(self._errors())


class Crew:
    """Workers that share a store."""

    def __init__(self, directory: Path, store: str, **orders: Any) -> None:
        self._directory = directory
        self._orders: dict[str, Any] = {
            "store": store,
            "schemes": list(WIDTHS),
            "pools": {},
            "namespace": "orders",
            "first_node": 0,
            "nodes": 16,
            "span_ms": 1000,
            "max_wait_ms": 1000,
            "step": 500,
            "batch": 50,
            "pause_s": 0.005,
            "on_lease_lost": "raise",
            "anew": True,
            "stepped": False,
            "forks": False,
            "round_s": 0,
            "closes": True,
            "patience_s": PATIENCE_S,
            **orders,
        }
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.kill()

    def start(self, **orders: Any) -> Worker:
        """Start one more worker."""
        worker = Worker(self._directory, f"{len(self.workers)}", {**self._orders, **orders})
        self.workers.append(worker)
        return worker

    def start_minting(self, count: int, **orders: Any) -> list[Worker]:
        """Start several workers, and wait until all mint."""
        started = [self.start(**orders) for _ in range(count)]
        for worker in started:
            worker.wait_until_minting()
        return started

    def all_mint_on(self) -> None:
        """Wait until all have minted more."""
        for worker in self.workers:
            worker.wait_for_more()

    def stop(self) -> None:
        """Stop all in an orderly way."""
        for worker in self.workers:
            worker.stop()

    def refusals(self) -> Counter[str]:
        """Return the errors of callers, by code."""
        codes: Counter[str] = Counter()
        for worker in self.workers:
            done = worker.said("done")
            codes += Counter(done[0]["refusals"] if done else {what["code"]: 1 for what in worker.said("refused")})
        return codes

    def slowest_ms(self) -> int:
        """Return the longest duration of a call."""
        return max([done["slowest_ms"] for worker in self.workers for done in worker.said("done")], default=0)

    def total(self, event: str) -> int:
        """Return a count that all have reported at their end."""
        return sum(done[event] for worker in self.workers for done in worker.said("done"))

    def _files(self, scheme: str) -> Iterator[Path]:
        """Yield the files with the IDs of all workers and their children."""
        for worker in self.workers:
            yield from self._directory.glob(f"{worker.file.name}.{scheme}")
            yield from self._directory.glob(f"{worker.file.name}.*.{scheme}")

    def minted(self) -> int:
        """Return the number of IDs so far."""
        return sum(file.stat().st_size // width for scheme, width in WIDTHS.items() for file in self._files(scheme))

    def counts(self) -> tuple[int, int]:
        """Return the number of IDs and the number of duplicates among them."""
        ids = repeated = 0
        for scheme, width in WIDTHS.items():
            minted = [each for data in self.data(scheme) for each in split(data, width)]
            ids, repeated = ids + len(minted), repeated + len(minted) - len(set(minted))
        return ids, repeated

    def data(self, scheme: str) -> list[bytes]:
        """Return the bytes of the IDs of each process."""
        return [file.read_bytes() for file in self._files(scheme)]


def split(data: bytes, width: int) -> list[bytes]:
    """Return the IDs, without one that a killed process wrote in part."""
    return [data[at : at + width] for at in range(0, len(data) // width * width, width)]
