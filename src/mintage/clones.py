"""Snapshots of processes: what is to be done before one is taken, and after one was restored.

A process that is restored twice is two processes with one memory: one lease, one token, segments half used. Where a
platform tells of it, these two functions are its hooks; ``snapshot_restore_py``, of AWS Lambda, is told by itself.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from mintage._core import start_epoch

if TYPE_CHECKING:
    from collections.abc import Callable

    from mintage.keeper import Keeper

__all__ = ["after_restore", "before_snapshot", "register"]

_HOOKS = "snapshot_restore_py"


def _keeper() -> Keeper | None:
    """This process's keeper, if it has ever leased anything."""
    # It may be half imported by another thread, which then has leased nothing either.
    current: Callable[[], Keeper] | None = getattr(sys.modules.get("mintage.keeper"), "current", None)
    return None if current is None else current()


def before_snapshot() -> None:
    """Gives back all leases and the unused tails of all segments, and closes the connections to stores.

    To be called when no thread mints any more: whatever mints after it leases and reserves anew. What a store that is
    away cannot take back runs out by itself. Waits for the verb in progress and at most two seconds; raises nothing.
    """
    keeper = _keeper()
    if keeper is not None:
        keeper.rest()


def after_restore() -> None:
    """Has this process start over, as a forked child does: it leases and reserves anew before its next ID, and random
    numbers are drawn anew.

    To be called in each restored process before it mints. A generator that was given its number refuses to mint from
    now on (``fork.shared_node``), as all that were restored have that number. Asks no store, and raises nothing.
    """
    keeper = _keeper()
    if keeper is None:
        start_epoch()
    else:
        keeper.start_over()


_registered = False


def register() -> None:
    """Tells ``snapshot_restore_py`` of both, once, if it can be imported.

    It runs hooks before a snapshot in the reverse order of their registration, and after a restore in that order. So
    whoever is first gives back when all others are done, and starts over before any of them mints.
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
