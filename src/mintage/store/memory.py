"""``memory:`` keeps its records in this process. It is for tests and experiments."""

from __future__ import annotations

import bisect
import heapq
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from mintage._core import fork_generation, generation, hold, system_ns
from mintage.errors import StoreError, UniquenessWarning
from mintage.platform.machine import flags_of_process
from mintage.protocol.options import NoOptions, read_options
from mintage.protocol.records import KEYS, Past, R, Record, key_of
from mintage.protocol.url import StoreUrl
from mintage.rules import MAX_COUNT, PRUNED, GrantRecord, NamespaceRecord, NodeRecord
from mintage.store import Description
from mintage.store.ledger import Ledger, ServerIdentity, Transaction

__all__ = ["MemoryStore"]


class MemoryStore(Ledger):
    """A store in the memory of this process. All stores with one URL, ``memory:`` or ``memory:name``, share records.

    ``clock`` returns the store's time in milliseconds since the Unix epoch. By default, it is the system's time.

    A store with a URL warns with :class:`~mintage.errors.UniquenessWarning` in a child process: each worker of a server
    would have a store of its own, and mint equal IDs.

    >>> store = MemoryStore(clock=lambda: 1_700_000_000_000)
    >>> store.now_ms()
    1700000000000
    """

    promise: ClassVar[str] = "process"

    def __init__(self, url: StoreUrl | None = None, *, clock: Callable[[], int] | None = None) -> None:
        self.url = url or StoreUrl("memory")
        read_options(self.url, NoOptions)
        if url is not None and (child := _kind_of_child()):
            _warn(
                f"{url} is a store of this process alone, and this process {child}: it and its siblings mint equal "
                "IDs. Name a store that they share, such as sqlite:///ids.db or postgresql://..."
            )
        self._records = _named.setdefault(self.url.path, Records()) if url is not None else Records()
        self._clock = clock or (lambda: system_ns() // 1_000_000)

    @contextmanager
    def _begin(self) -> Iterator[Records]:
        records = self._records
        if records.epoch != generation():
            # These records are a copy of the parent's: both would grant the same node numbers.
            raise StoreError(
                "memory: belongs to the process that forked this one: use sqlite: or a shared store",
                code="store.refused",
            )
        with hold(records.lock):
            records.clock = self._clock
            yield records

    def describe(self) -> Description:
        return Description(str(self.url), self.promise, "memory", self._records.identity, self.now_ms())

    def close(self) -> None:
        """Do nothing: the records live as long as the process."""


class Records(Transaction):
    """The records. A refused verb needs no rollback, as the rules refuse before the first write."""

    def __init__(self) -> None:
        self.epoch = generation()
        self.lock = threading.Lock()
        self.identity = "memory"
        self.clock: Callable[[], int] = lambda: 0
        self.tables: dict[type[Record], dict[tuple[Any, ...], Any]] = {kind: {} for kind in KEYS}
        self._ends: dict[tuple[type[Past], str], list[tuple[int, tuple[Any, ...]]]] = {}
        """The ends of the past records of each pool or namespace with their keys, as a heap; some may be gone."""

    def server(self) -> ServerIdentity:
        return ServerIdentity(self.identity, self.clock())

    def get(self, kind: type[R], *key: str | int) -> R | None:
        return self.tables[kind].get(key)

    def put(self, record: Record) -> None:
        self.tables[type(record)][key_of(record)] = record

    def page(self, kind: type[R], *after: str | int, limit: int = MAX_COUNT) -> Sequence[R]:
        table = self.tables[kind]
        keys = (key for key in table if key[:-1] == after[:-1] and key > after)
        return [table[key] for key in heapq.nsmallest(limit, keys)]

    def remove(self, record: Record) -> None:
        """Remove a record."""
        del self.tables[type(record)][key_of(record)]

    def keep(self, record: Past, ended_ms: int) -> None:
        table, key = self.tables[type(record)], key_of(record)
        ends = self._ends.setdefault((type(record), key[0]), [])
        for _ in range(PRUNED):
            if not ends or ends[0][0] >= ended_ms:
                break
            until_ms, ended = heapq.heappop(ends)
            if ended in table and table[ended].until_ms == until_ms:
                self.remove(table[ended])
        self.put(record)
        heapq.heappush(ends, (record.until_ms, key))

    def past(self, kind: type[R], *place: str | int, highest: int, limit: int) -> Sequence[R]:
        found = [each for key, each in self.tables[kind].items() if key[:-1] == place and key[-1] <= highest]
        return heapq.nlargest(limit, found, key=key_of)

    def forget_grants(self, pool: str) -> bool:
        for each in [each for each in self.tables[GrantRecord].values() if each.pool == pool]:
            self.remove(each)
        self._ends.pop((GrantRecord, pool), None)
        return False

    def count_namespaces(self) -> int:
        return len(self.tables[NamespaceRecord])

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        records = [record for record in self.page(NodeRecord, pool, -1) if record.node in nodes]
        return min(records, key=lambda record: (record.until_ms, record.node), default=None)

    def unused(self, pool: str, nodes: range) -> int | None:
        used = [record.node for record in self.page(NodeRecord, pool, -1) if record.node in nodes]
        # All numbers before a gap are used, so a binary search finds the first gap.
        at = bisect.bisect_left(range(len(used)), 1, key=lambda at: used[at] - nodes.start - at)
        return nodes[at] if at < len(nodes) else None


_named: dict[str, Records] = {}


# --- child processes ----------------------------------------------------------------------------------------------

_FORKED_ONLY: Final = 0x40
"""Linux's flag PF_FORKNOEXEC: the process was forked and has executed no program since."""


def _kind_of_child() -> str:
    """Return the reason why this process may have siblings of the same program; empty if it has none."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return f"is a child of process {os.getppid()} by multiprocessing"
    # The process that imported mintage has generation 1; a server may import the program after the fork.
    if fork_generation() > 1 or flags_of_process() & _FORKED_ONLY:
        return f"was forked from process {os.getppid()}"
    return ""


def _warn(text: str) -> None:
    """Issue the warning at the first line of the caller outside mintage."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "mintage":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UniquenessWarning, stacklevel=level)
