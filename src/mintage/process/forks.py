"""The fork lock, which delays a fork until no thread imports a module or asks a store.

A forked child inherits the locks that its parent's other threads hold, and no thread of the child releases them. So
code that imports what leases need, or asks a store, holds :func:`fork_lock`. A fork from Python waits for it, at most
five seconds. A fork in C does not wait, as it may not hold the GIL: its child gets a lock of its own, and whatever the
parent had not finished belongs to an earlier generation.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock, get_ident

from mintage._core import birth as fork_generation

# Type checkers take this for true; importing the real one from typing would cost more than all of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["fork_lock", "give_way", "load"]

_LONGEST_S = 5.0
_locks: dict[int, RLock] = {}
_forking: dict[int, RLock] = {}
_waiting: list[int] = []
"""The process of each fork that waits for the lock; a child finds those of its parent's other threads."""


def fork_lock() -> RLock:
    """Return this process's lock; one of its parent's may be shut for good."""
    here = fork_generation()
    return _locks.get(here) or _locks.setdefault(here, _new_lock())


def _new_lock() -> RLock:
    # Where gevent or eventlet have patched threading, its locks are held by greenlets: of one thread, too, others wait.
    threading = sys.modules.get("threading")
    return RLock() if threading is None else threading.RLock()


def give_way() -> None:
    """Let forks that wait go first: a lock that is taken again at once is never had by anyone who waits for it."""
    while fork_generation() in _waiting:
        time.sleep(0.001)


def _before() -> None:
    lock, here = fork_lock(), fork_generation()
    _waiting.append(here)
    try:
        if lock.acquire(timeout=_LONGEST_S):
            _forking[get_ident()] = lock
    finally:
        _waiting.remove(here)


def _after() -> None:
    if lock := _forking.pop(get_ident(), None):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)


def load(module: str) -> ModuleType:
    """Import a module, whole or not at all in a child: a lock of an import that a fork cuts in two stays shut."""
    with fork_lock():
        from importlib import import_module

        return import_module(module)
