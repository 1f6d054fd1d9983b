"""The processes of a fleet: each is forked from one parent after its imports, and obeys it over a pipe."""

import gc
import logging
import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from mintage import sno
from mintage._core import monotonic_s
from mintage.errors import MintError
from mintage.lease import keeper
from mintage.lease.lease_client import LeaseClient
from mintage.process.holder import holder
from mintage.rules import Lease
from mintage.store import Store, open_store

POOL = "fleet"
LAYOUT = "benchmark"
NODES = range(65_536)
PATIENCE_MS = 120_000
CONTEXT = get_context("fork")


class Verb(NamedTuple):
    """One call of a store."""

    name: str
    at: float
    """When it began, in Unix seconds."""
    ms: float
    is_ok: bool


class Told(NamedTuple):
    """The answer of a process to a word of the parent."""

    took: float
    cpu: float
    log: list[Verb]
    errors: list[str]
    numbers: list[int]


class Member(LeaseClient):
    """A lease whose first extension is at a random time, as in a fleet whose processes started at any time."""

    _first_s: float | None = None

    def due_s(self) -> float | None:
        """Return in how many seconds the lease is to be acquired or extended."""
        if self._lease is None or self._first_s is None:
            return super().due_s()
        return self._first_s - monotonic_s()

    def _set_lease(self, lease: Lease, new_span_ms: int = 0) -> None:
        super()._set_lease(lease, new_span_ms)
        self._first_s = monotonic_s() + random.random() * new_span_ms / 3000 if new_span_ms else None


def _timed(store: Store, log: list[Verb]) -> None:
    """Log each verb about a lease."""

    def logged(name: str, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
        at, began, is_ok = time.time(), time.perf_counter(), False
        try:
            answer = verb(*args, **options)
            is_ok = True
        finally:
            log.append(Verb(name, at, 1e3 * (time.perf_counter() - began), is_ok))
        return answer

    for name in ("acquire", "extend", "release"):
        setattr(store, name, partial(logged, name, getattr(store, name)))


def _member(store: Store) -> LeaseClient:
    return Member(
        store,
        pool=POOL,
        nodes=lambda: [NODES],
        layout=LAYOUT,
        never_used=False,
        span_ms=30_000,
        moves=True,
        holder=holder,
        clock=time.time_ns,
    )


def _obey(pipe: Connection, url: str, leases: int, span_ms: int) -> None:
    """Do what the parent says: hold that many leases, or mint with one generator if 0."""
    logging.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log: list[Verb] = []
    store = open_store(url)
    _timed(store, log)
    members = [_member(store) for _ in range(leases)]
    generator = None if leases else sno.Generator(store=store, span_ms=span_ms, max_wait_ms=PATIENCE_MS)
    errors: list[str] = []

    def use() -> None:
        try:
            for member in members:
                member.window(PATIENCE_MS)
            if generator:
                generator.new()
        except MintError as error:
            errors.append(str(error))

    def watch(seconds: float) -> None:
        """Mint now and then."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, random.uniform(0.5, 1.5)))
            if generator:
                use()

    for word, value in iter(pipe.recv, None):
        began, cpu = time.time(), time.process_time()
        if word == "start":
            time.sleep(max(0.0, value - began))
            began = time.time()
            use()
        else:
            watch(value)
        took, cpu = time.time() - began, time.process_time() - cpu
        numbers = [generator.partition] if generator and not errors else []
        pipe.send(Told(took, cpu, log[:], errors[:], numbers))
        log.clear()
        errors.clear()
    try:
        keeper.current().close()
    finally:
        pipe.send(Told(0.0, 0.0, log, errors, []))
        os._exit(0)


class Crew:
    """Forked processes that hold a number of leases each, or mint with one generator each if that is 0."""

    def __init__(self, url: str, processes: int, *, leases: int = 0, span_ms: int = 30_000) -> None:
        self._begin = partial(self._fork, url, leases, span_ms)
        self._pipes: list[Connection] = []
        self._children: list[Any] = []
        gc.collect()
        gc.freeze()
        for _ in range(processes):
            self._begin()

    def _fork(self, url: str, leases: int, span_ms: int) -> None:
        ours, theirs = CONTEXT.Pipe()
        child = CONTEXT.Process(target=_obey, args=(theirs, url, leases, span_ms), daemon=True)
        child.start()
        theirs.close()
        self._pipes.append(ours)
        self._children.append(child)

    def start(self, after_s: float = 1.0, spread_s: float = 0.0) -> list[Told]:
        """Let all lease their numbers at the same time, or spread evenly over a number of seconds."""
        at = time.time() + after_s
        for turn, pipe in enumerate(self._pipes):
            pipe.send(("start", at + spread_s * turn / len(self._pipes)))
        return self.answers()

    def watch(self, seconds: float) -> list[Told]:
        """Let all mint for a time."""
        return self._ask(("watch", seconds))

    def begin(self, seconds: float) -> None:
        """Let all mint for a time; :meth:`answers` waits for them."""
        for pipe in self._pipes:
            pipe.send(("watch", seconds))

    def answers(self) -> list[Told]:
        """Wait for all."""
        return [pipe.recv() for pipe in self._pipes]

    def _ask(self, words: tuple[str, float]) -> list[Told]:
        for pipe in self._pipes:
            pipe.send(words)
        return self.answers()

    def renew(self) -> list[Told]:
        """End the first process and start another in its place; return what both say."""
        pipe, child = self._pipes.pop(0), self._children.pop(0)
        pipe.send(None)
        last = pipe.recv()
        child.join()
        self._begin()
        self._pipes[-1].send(("start", 0.0))
        return [last, self._pipes[-1].recv()]

    def stop(self) -> list[Told]:
        """End all processes at the same time."""
        told = self._ask(None)  # type: ignore[arg-type]
        for child in self._children:
            child.join()
        return told
