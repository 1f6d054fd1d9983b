"""The generation of this process, which moves on at each fork and at each restore from a snapshot.

What belongs to an earlier generation is another process's: a lease, a buffer of integers, a connection, a lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mintage._core import fork_generation, generation, start_generation

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Generation", "fork_generation", "generation", "start_generation"]


class Generation(NamedTuple):
    """The generation in which something was made."""

    number: int
    """Moves on at each fork and at each restore, of this process or of one that it was forked from."""
    fork: int
    """The number that this process began with: it moves on at a fork alone."""

    @classmethod
    def current(cls) -> Self:
        """Return the generation of this process now."""
        number = generation()
        return cls(number, fork_generation())

    def is_current(self) -> bool:
        """Return True if this process was neither forked nor restored since."""
        return self.number == generation()

    def has_forked(self) -> bool:
        """Return True in a child that was forked since."""
        return self.fork != fork_generation()
