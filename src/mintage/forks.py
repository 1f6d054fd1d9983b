"""No fork in the middle of things: a child inherits the locks of its parent's other threads, and nobody opens them.

Whoever imports what leases need, or asks a store, holds :data:`quiet`. A fork from Python waits for it, at most five
seconds.
"""

from __future__ import annotations

import os
from _thread import RLock, get_ident

# Type checkers take this for true; importing the real one from typing would cost more than all of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["load", "quiet"]

quiet = RLock()
_LONGEST_S = 5.0
_forking: dict[int, bool] = {}


def _before() -> None:
    _forking[get_ident()] = quiet.acquire(timeout=_LONGEST_S)


def _after() -> None:
    if _forking.pop(get_ident(), False):
        quiet.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)


def load(module: str) -> ModuleType:
    """Imports a module, whole or not at all in a child: a lock of an import that a fork cuts in two stays shut."""
    with quiet:
        from importlib import import_module

        return import_module(module)
