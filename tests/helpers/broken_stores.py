"""Stores that break their promise in five ways, each rarely, for a service in a process of the tests.

``install`` makes ``memory:`` one of them, in the process that calls it.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mintage.errors import StoreError
from mintage.process import jitter
from mintage.store import STORE_KINDS
from mintage.store.memory import MemoryStore, Records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mintage.protocol.records import Record
    from mintage.protocol.url import StoreUrl
    from mintage.rules import Lease, Segment

NAMES: Final = ("WritesLost", "StaleReads", "ClockBack", "TwoPrimaries", "AnswersTwice")
RARELY: Final = 0.1
LAG_S: Final = 0.2


def copy_of(records: Records) -> Records:
    """Return the records as they are now."""
    copied = Records()
    copied.clock = records.clock
    copied.tables = {kind: dict(table) for kind, table in records.tables.items()}
    return copied


class Broken(MemoryStore):
    promise: ClassVar[str] = "shared"


class WritesLost(Broken):
    """It answers, and then loses the writes of some transactions, as a server that was killed before a flush."""

    @contextmanager
    def _begin(self) -> Iterator[Records]:
        with super()._begin() as records:
            before = copy_of(records).tables if jitter.uniform(0, 1) < RARELY else None
            yield records
            if before is not None:
                records.tables = before


class Lagging:
    """A transaction that reads from a replica and writes to its primary."""

    is_new = False

    def __init__(self, primary: Records, replica: Records) -> None:
        self._primary, self._replica = primary, replica

    def put(self, record: Record) -> None:
        self._primary.put(record)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._replica, name)


class StaleReads(Broken):
    """Some of its transactions read what was true a moment ago."""

    def __init__(self, url: StoreUrl | None = None) -> None:
        super().__init__(url)
        self._replica, self._copied_s = Records(), 0.0

    @contextmanager
    def _begin(self) -> Iterator[Any]:
        with super()._begin() as records:
            # A record that it has never seen is no fault of this kind.
            is_stale = all(len(self._replica.tables[kind]) == len(each) for kind, each in records.tables.items())
            if is_stale and jitter.uniform(0, 1) < RARELY:
                yield Lagging(records, self._replica)
            else:
                if time.monotonic() - self._copied_s > LAG_S:
                    self._replica, self._copied_s = copy_of(records), time.monotonic()
                yield records


class LastWriteWins:
    """A transaction whose writes are ignored if the record has a later time."""

    is_new = False

    def __init__(self, records: Records, times: dict[Any, int], now_ms: int) -> None:
        self._records, self._times, self._now_ms = records, times, now_ms

    def put(self, record: Record) -> None:
        key = (type(record), *(getattr(record, name, None) for name in ("pool", "node", "name")))
        if self._now_ms >= self._times.get(key, 0):
            self._times[key] = self._now_ms
            self._records.put(record)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)


class ClockBack(Broken):
    """The last write wins by a clock, which goes back for a moment each second."""

    def __init__(self, url: StoreUrl | None = None) -> None:
        super().__init__(url)
        self._times: dict[Any, int] = {}

    @contextmanager
    def _begin(self) -> Iterator[Any]:
        with super()._begin() as records:
            now_ms = time.time_ns() // 1_000_000
            yield LastWriteWins(records, self._times, now_ms - 500 * (now_ms % 1000 < 100))


class TwoPrimaries(Broken):
    """For a moment of each second it has two primaries; then the writes of the second one are lost."""

    _other: Records | None = None
    _turn = 0

    @contextmanager
    def _begin(self) -> Iterator[Records]:
        with super()._begin() as records:
            if time.time() % 1 > 0.15:
                self._other = None
                yield records
                return
            self._other = self._other or copy_of(records)
            self._turn += 1
            yield (records, self._other)[self._turn % 2]


class AnswersTwice(Broken):
    """Some requests get the answer to another one, as from a proxy that repeats answers."""

    def __init__(self, url: StoreUrl | None = None) -> None:
        super().__init__(url)
        self._leases: dict[str, Lease] = {}
        self._segments: dict[str, Segment] = {}

    def acquire(self, pool: str, **asked: Any) -> Lease:
        last = self._leases.get(pool)
        if last is None or last.node not in asked["nodes"] or jitter.uniform(0, 1) > RARELY:
            last = self._leases[pool] = super().acquire(pool, **asked)
        return last

    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        last = self._segments.get(namespace)
        if last is None or len(last) > count or jitter.uniform(0, 1) > RARELY:
            last = self._segments[namespace] = super().reserve(namespace, count, holder=holder)
        return last


class Refuses(Broken):
    """It leases node numbers, and refuses to reserve."""

    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        raise StoreError("the account may not reserve", code="store.refused")


def install(name: str) -> None:
    """Make ``memory:`` the broken store of this name."""
    STORE_KINDS["memory"] = (__name__, name, None)
