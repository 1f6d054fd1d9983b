"""The generation of this process, which grows at each fork and at each restore from a snapshot.

A lease, a buffer, a connection or a lock of an earlier generation belongs to another process.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from mintage._core import fork_generation, generation


class Generation(NamedTuple):
    """The generation in which an object was created."""

    number: int
    """The number of the generation. It grows at each fork and restore of this process and of its ancestors."""
    fork: int
    """The number with which the process began. It grows at forks only."""

    @classmethod
    def current(cls) -> Self:
        """Return the current generation of this process."""
        number = generation()
        return cls(number, fork_generation())

    def is_current(self) -> bool:
        """Return True if there was no fork or restore since."""
        return self.number == generation()

    def has_forked(self) -> bool:
        """Return True in a child that was forked since then."""
        return self.fork != fork_generation()
