"""The fork lock, which delays a fork until no thread imports a module or asks a store.

A forked child inherits the locks that its parent's other threads hold, and no thread of the child releases them. So
code that imports modules for leases, or asks a store, holds :func:`fork_lock`. Other such code waits for it, as long as
a store's time-out at most. A fork from Python waits for the lock for at most five seconds. A fork in C does not wait,
as it may run without the GIL; its child gets a new lock, and objects that the parent had not finished belong to an
earlier generation.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock, get_ident

from mintage._core import fork_generation, hold

# Type checkers treat this name as true; the import of typing would cost more than the rest of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Never

    from mintage._core import Held

_LONGEST_S = 5.0
#: No option of a store allows a longer time-out.
_STUCK_S = 60.0
_locks: dict[int, RLock] = {}
_forking: dict[int, Held | None] = {}
_waiting: list[int] = []
"""The generation of each process with a fork that waits for the lock; a child also finds those of its parent."""


def fork_lock() -> Held:
    """Acquire the lock of this process, for a ``with`` block or as long as the result exists.

    :raises StoreError: ``store.unavailable``: it is not free within a minute.
    """
    return hold(_lock(), _STUCK_S) or _stuck()


def _stuck() -> Never:
    from mintage.errors import StoreError

    raise StoreError(
        f"another thread of this process has imported a module or asked a store for {_STUCK_S:g} s: give the store a "
        "time-out",
        code="store.unavailable",
        retry_after_ms=1000,
    )


def _lock() -> RLock:
    # Another thread may have held the parent's lock at the fork, for ever.
    here = fork_generation()
    return _locks.get(here) or _locks.setdefault(here, _new_lock())


def _new_lock() -> RLock:
    # gevent and eventlet patch the locks of threading, so that greenlets own them and wait for each other.
    threading = sys.modules.get("threading")
    return RLock() if threading is None else threading.RLock()


def give_way() -> None:
    """Wait for pending forks: a thread that takes the lock again at once would starve them."""
    while fork_generation() in _waiting:
        time.sleep(0.001)


def _before() -> None:
    here = fork_generation()
    _waiting.append(here)
    try:
        # If the lock is not free in time, the fork continues without it.
        _forking[get_ident()] = hold(_lock(), _LONGEST_S)
    finally:
        _waiting.remove(here)


def _after() -> None:
    if held := _forking.pop(get_ident(), None):
        held.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)


def load(module: str) -> ModuleType:
    """Import and return a module under the fork lock, as an interrupted import stays locked in a child."""
    with fork_lock():
        from importlib import import_module

        return import_module(module)
