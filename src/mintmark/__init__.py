"""mintmark mints unique IDs for distributed systems.

Three schemes: :mod:`mintmark.sno` (10 bytes that sort by time), :mod:`mintmark.snowflake` (64-bit integers) and
:mod:`mintmark.locality` (UUIDs whose first digits scatter or cluster); and integers, :class:`mintmark.Sequence`. A
store that you already run keeps them unique across hosts. :func:`mintmark.inspect` explains any ID.
"""

from __future__ import annotations

from mintmark import errors, forks, locality, sno, snowflake
from mintmark._core.sequence import Sequence

del forks  # imported so early that no fork can cut its own import in two

# Type checkers take this for true; importing the real one from typing would cost more than all of mintmark.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from mintmark.anatomy import Anatomy, inspect
    from mintmark.client import AsyncClient, Client
    from mintmark.store import Store, open_store

__all__ = [
    "Anatomy",
    "AsyncClient",
    "Client",
    "Sequence",
    "Store",
    "__version__",
    "errors",
    "inspect",
    "locality",
    "open_store",
    "sno",
    "snowflake",
]

__version__ = "0.1.0"


_ELSEWHERE = {
    "Anatomy": "mintmark.anatomy",
    "AsyncClient": "mintmark.client",
    "Client": "mintmark.client",
    "inspect": "mintmark.anatomy",
    "Store": "mintmark.store",
    "open_store": "mintmark.store",
}


def __getattr__(name: str) -> object:
    # These cost more to import than all that minting needs.
    module = _ELSEWHERE.get(name)
    if module is not None:
        from importlib import import_module

        return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
