"""The hooks that run before a snapshot of this process, as on AWS Lambda, and after a restore.

A process that is restored twice becomes two processes with one memory: the same lease, token and segments. A platform
with hooks calls these two functions; mintage registers them with ``snapshot_restore_py``, of AWS Lambda, itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from mintage._core import start_generation
from mintage.errors import StoreError

if TYPE_CHECKING:
    from mintage.lease.keeper import Keeper


def _keeper() -> Keeper | None:
    """Return this process's keeper, if it has ever leased anything."""
    # Another thread may be importing the module; then it has leased nothing yet.
    current: Callable[[], Keeper] | None = getattr(sys.modules.get("mintage.lease.keeper"), "current", None)
    return None if current is None else current()


def release_all() -> None:
    """Release all leases and the unused tails of all segments of this process, and close its connections to stores.

    Call it at a graceful end that runs no ``atexit`` handlers, as in the lifespan of an application under uvicorn. A
    thread that mints later gets a new lease. If a store is unreachable, its windows end when they expire. The function
    waits for at most two seconds, and raises nothing.

    >>> from mintage import release_all, snowflake
    >>> first = snowflake.new()
    >>> release_all()
    >>> snowflake.new() > first  # with a new lease
    True
    """
    keeper = _keeper()
    if keeper is not None:
        with suppress(StoreError):
            keeper.release_all()


def before_snapshot() -> None:
    """Release all leases and segments, as :func:`release_all` does, before a snapshot of this process.

    Call it when no thread mints. A thread that mints afterwards gets new leases and segments.

    >>> from mintage import before_snapshot
    >>> before_snapshot()
    """
    release_all()


def after_restore() -> None:
    """Start a new generation of this process, as in a forked child.

    Call it in each restored process before it mints. Before its next ID, each generator gets new leases, segments and
    random numbers. A generator with an explicit node number refuses to mint from now on (``fork.shared_node``), as all
    restored processes have that number. The function asks no store, and raises nothing.

    >>> from mintage import after_restore, snowflake
    >>> after_restore()  # doctest: +SKIP
    >>> id = snowflake.new()  # with a new lease after a restore
    """
    keeper = _keeper()
    if keeper is None:
        start_generation()
    else:
        keeper.start_over()


@cache
def register() -> None:
    """Register both hooks with ``snapshot_restore_py``, once, if it can be imported.

    The package runs hooks before a snapshot in the reverse order of their registration, and after a restore in that
    order. So the hooks that are registered first release after all others, and start over before any of them mints.
    """
    try:
        hooks = import_module("snapshot_restore_py")
    except ImportError:
        return
    hooks.register_before_snapshot(before_snapshot)
    hooks.register_after_restore(after_restore)
