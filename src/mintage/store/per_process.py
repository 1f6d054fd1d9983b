"""Objects that each process makes for itself, such as connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from mintage._core import generation

T = TypeVar("T")


class PerProcess(Generic[T]):
    """An object that a forked child must not share with its parent, such as a connection.

    Each process makes its own at first use.

    >>> import sqlite3
    >>> connections = PerProcess(lambda: sqlite3.connect(":memory:"), sqlite3.Connection.close)
    >>> connections.get().execute("SELECT 17").fetchone()
    (17,)
    >>> connections.get() is connections.get()
    True
    >>> connections.close()
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], object]) -> None:
        self._make, self._close = make, close
        # A child keeps its parent's object and never closes it: closing would end the parent's session.
        self._made: dict[int, T] = {}

    def get(self) -> T:
        """Return the object of this process."""
        try:
            return self._made[generation()]
        except KeyError:
            return self._made.setdefault(generation(), self._make())

    def close(self) -> None:
        """Close the object of this process, if there is one; the next use makes another."""
        made = self._made.pop(generation(), None)
        if made is not None:
            self._close(made)
