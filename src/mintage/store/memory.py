"""``memory:`` keeps its records in this process: for tests, and for trying things out."""

from __future__ import annotations

import bisect
import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from mintage.errors import StoreError
from mintage.store import Description
from mintage.store.ledger import Ledger, Server
from mintage.store.url import StoreUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mintage.lease import NamespaceRecord, NodeRecord, PoolRecord

__all__ = ["MemoryStore"]


class MemoryStore(Ledger):
    """A store in this process's memory. ``memory:`` and ``memory:name`` name one and the same store each.

    ``clock`` returns the store's time in milliseconds since the Unix epoch; the system's by default.
    """

    promise: ClassVar[str] = "process"

    def __init__(self, url: StoreUrl | None = None, *, clock: Callable[[], int] | None = None) -> None:
        self.url = url or StoreUrl("memory")
        self.url.check_options()
        named = _named.setdefault(self.url.path, Records()) if url is not None else Records()
        self._records = named
        self._clock = clock or (lambda: time.time_ns() // 1_000_000)

    @contextmanager
    def _begin(self) -> Iterator[Records]:
        records = self._records
        if records.pid != os.getpid():
            # A copy of it: both would grant the same.
            raise StoreError(
                "memory: belongs to the process that forked this one: use sqlite: or a shared store",
                code="store.refused",
            )
        with records.lock:
            records.clock = self._clock
            yield records

    def describe(self) -> Description:
        return Description(str(self.url), self.promise, "memory", self._records.identity, self.now_ms())

    def close(self) -> None:
        """Does nothing: the records live as long as the process."""


class Records:
    """The records. Nothing is undone when a verb is refused: rules refuse before anything is written."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.identity = "memory"
        self.clock: Callable[[], int] = lambda: 0
        self._pools: dict[str, PoolRecord] = {}
        self._nodes: dict[str, dict[int, NodeRecord]] = {}
        self._namespaces: dict[str, NamespaceRecord] = {}

    def server(self) -> Server:
        return Server(self.identity, self.clock())

    def pool(self, name: str) -> PoolRecord | None:
        return self._pools.get(name)

    def node(self, pool: str, node: int) -> NodeRecord | None:
        return self._nodes.get(pool, {}).get(node)

    def namespace(self, name: str) -> NamespaceRecord | None:
        return self._namespaces.get(name)

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        records = [record for node, record in self._nodes.get(pool, {}).items() if node in nodes]
        return min(records, key=lambda record: (record.until_ms, record.node), default=None)

    def unused(self, pool: str, nodes: range) -> int | None:
        used = sorted(node for node in self._nodes.get(pool, {}) if node in nodes)
        # Where a number is used in vain, all before it are: the first that is not is found by halving.
        at = bisect.bisect_left(range(len(used)), 1, key=lambda at: used[at] - nodes.start - at)
        return nodes[at] if at < len(nodes) else None

    def pools(self) -> Sequence[PoolRecord]:
        return [record for _, record in sorted(self._pools.items())]

    def nodes(self, pool: str | None) -> Sequence[NodeRecord]:
        pools = sorted(self._nodes) if pool is None else [pool]
        return [record for name in pools for _, record in sorted(self._nodes.get(name, {}).items())]

    def namespaces(self) -> Sequence[NamespaceRecord]:
        return [record for _, record in sorted(self._namespaces.items())]

    def put_pool(self, record: PoolRecord) -> None:
        self._pools[record.name] = record

    def put_node(self, record: NodeRecord) -> None:
        self._nodes.setdefault(record.pool, {})[record.node] = record

    def put_namespace(self, record: NamespaceRecord) -> None:
        self._namespaces[record.name] = record


_named: dict[str, Records] = {}
