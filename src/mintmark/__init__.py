"""mintmark mints unique IDs for distributed systems.

Three schemes: :mod:`mintmark.sno` (10 bytes that sort by time), :mod:`mintmark.snowflake` (64-bit integers) and
:mod:`mintmark.locality` (UUIDs whose first digits scatter or cluster). :func:`mintmark.inspect` explains any ID.
"""

from __future__ import annotations

from mintmark import errors, locality, sno, snowflake

# Type checkers take this for true; importing the real one from typing would cost more than all of mintmark.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from mintmark.anatomy import Anatomy, inspect

__all__ = ["Anatomy", "__version__", "errors", "inspect", "locality", "sno", "snowflake"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # Explaining an ID costs more to import than minting one.
    if name in {"Anatomy", "inspect"}:
        from mintmark import anatomy

        return getattr(anatomy, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
