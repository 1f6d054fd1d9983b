"""``memory:`` keeps its records in this process: for tests, and for trying things out."""

from __future__ import annotations

import bisect
import os
import sys
import threading
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mintage._core import system_ns
from mintage.errors import StoreError, UniquenessWarning
from mintage.process.generation import fork_generation, generation
from mintage.protocol.records import KEYS, key_of
from mintage.protocol.url import StoreUrl
from mintage.rules import NodeRecord
from mintage.store import Description
from mintage.store.ledger import Ledger, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mintage.protocol.records import R, Record

__all__ = ["MemoryStore"]


class MemoryStore(Ledger):
    """A store in this process's memory. ``memory:`` and ``memory:name`` name one and the same store each.

    ``clock`` returns the store's time in milliseconds since the Unix epoch; the system's by default.

    A store of a URL warns with :class:`~mintage.errors.UniquenessWarning` in a child process: the workers of a server
    would have such a store each, and mint equal IDs.
    """

    promise: ClassVar[str] = "process"

    def __init__(self, url: StoreUrl | None = None, *, clock: Callable[[], int] | None = None) -> None:
        self.url = url or StoreUrl("memory")
        self.url.check_options()
        if url is not None and (child := _kind_of_child()):
            _warn(
                f"{url} is a store of this process alone, and this process {child}: it and its siblings mint equal "
                "IDs. Name a store that they share, such as sqlite:///ids.db or postgresql://..."
            )
        named = _named.setdefault(self.url.path, Records()) if url is not None else Records()
        self._records = named
        self._clock = clock or (lambda: system_ns() // 1_000_000)

    @contextmanager
    def _begin(self) -> Iterator[Records]:
        records = self._records
        if records.generation != generation():
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
        """Do nothing: the records live as long as the process."""


class Records:
    """The records. Nothing is undone when a verb is refused: rules refuse before anything is written."""

    def __init__(self) -> None:
        self.generation = generation()
        self.lock = threading.Lock()
        self.identity = "memory"
        self.clock: Callable[[], int] = lambda: 0
        self.tables: dict[type[Record], dict[tuple[Any, ...], Any]] = {kind: {} for kind in KEYS}

    def server(self) -> Server:
        return Server(self.identity, self.clock())

    def get(self, kind: type[R], *key: str | int) -> R | None:
        return self.tables[kind].get(key)

    get_unlocked = get

    def put(self, record: Record) -> None:
        self.tables[type(record)][key_of(record)] = record

    def all(self, kind: type[R]) -> Sequence[R]:
        return [record for _, record in sorted(self.tables[kind].items())]

    def nodes(self, pool: str) -> Sequence[NodeRecord]:
        return [record for record in self.all(NodeRecord) if record.pool == pool]

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        records = [record for record in self.nodes(pool) if record.node in nodes]
        return min(records, key=lambda record: (record.until_ms, record.node), default=None)

    def unused(self, pool: str, nodes: range) -> int | None:
        used = [record.node for record in self.nodes(pool) if record.node in nodes]
        # Where a number is used in vain, all before it are: the first that is not is found by halving.
        at = bisect.bisect_left(range(len(used)), 1, key=lambda at: used[at] - nodes.start - at)
        return nodes[at] if at < len(nodes) else None


_named: dict[str, Records] = {}


# --- child processes ----------------------------------------------------------------------------------------------

_FORKED_ONLY: Final = 0x40
"""Linux's PF_FORKNOEXEC: a process that was forked, and has executed no program since."""


def _kind_of_child() -> str:
    """Return what makes this process a child that may have siblings of the same program, or nothing."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return f"is a child of process {os.getppid()} by multiprocessing"
    # 1 is the process that imported mintage; a server may import the program after the fork.
    if fork_generation() > 1 or _flags() & _FORKED_ONLY:
        return f"was forked from process {os.getppid()}"
    return ""


def _flags() -> int:
    """Return the kernel's flags of this process; 0 where it does not show them."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/stat", encoding="utf-8", errors="replace") as stat:
        # The name before the last parenthesis may have spaces in it.
        return int(stat.read().rpartition(")")[2].split()[6])
    return 0


def _warn(text: str) -> None:
    """Warn at the first line outside of mintage."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "mintage":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UniquenessWarning, stacklevel=level)
