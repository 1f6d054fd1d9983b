"""Snapshots of processes: what is to be done before one is taken, and after one was restored.

A process that is restored twice is two processes with one memory: one lease, one token, segments half used. Where a
platform tells of it, these two functions are its hooks; ``snapshot_restore_py``, of AWS Lambda, is told by itself.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from mintage.errors import StoreError
from mintage.process.generation import start_generation

if TYPE_CHECKING:
    from collections.abc import Callable

    from mintage.lease.keeper import Keeper

__all__ = ["after_restore", "before_snapshot", "register", "release_all"]

_HOOKS = "snapshot_restore_py"


def _keeper() -> Keeper | None:
    """Return this process's keeper, if it has ever leased anything."""
    # It may be half imported by another thread, which then has leased nothing either.
    current: Callable[[], Keeper] | None = getattr(sys.modules.get("mintage.lease.keeper"), "current", None)
    return None if current is None else current()


def release_all() -> None:
    """Give back all leases and the unused tails of all segments of this process, and close its connections to stores.

    Call it at a graceful end that runs no ``atexit`` handlers: in the lifespan of an application under uvicorn. Threads
    that mint later lease anew. Windows that a store cannot take back, as it is away, end by themselves. Waits at most
    two seconds, and raises nothing.

    >>> from mintage import release_all, snowflake
    >>> first = snowflake.new()
    >>> release_all()
    >>> snowflake.new() > first  # leased anew
    True
    """
    keeper = _keeper()
    if keeper is not None:
        with suppress(StoreError):
            keeper.release_all()


def before_snapshot() -> None:
    """Give everything back, as :func:`release_all` does, before a snapshot of this process is taken.

    To be called when no thread mints any more: what mints after it leases and reserves anew.
    """
    release_all()


def after_restore() -> None:
    """Have this process start over, as a forked child does: it leases and reserves anew before its next ID, and random
    numbers are drawn anew.

    To be called in each restored process before it mints. A generator that was given its number refuses to mint from
    now on (``fork.shared_node``), as all that were restored have that number. Asks no store, and raises nothing.
    """
    keeper = _keeper()
    if keeper is None:
        start_generation()
    else:
        keeper.start_over()


_registered = False


def register() -> None:
    """Tell ``snapshot_restore_py`` of both, once, if it can be imported.

    It runs hooks before a snapshot in the reverse order of their registration, and after a restore in that order. So
    the first of them gives back when all others are done, and starts over before any of them mints.
    """
    global _registered  # noqa: PLW0603 - one a process
    if _registered:
        return
    try:
        hooks = import_module(_HOOKS)
    except ImportError:
        return
    _registered = True
    hooks.register_before_snapshot(before_snapshot)
    hooks.register_after_restore(after_restore)
