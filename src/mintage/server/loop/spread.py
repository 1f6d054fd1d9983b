"""Spread connections over the workers.

All workers wait at the same listeners, and the first one to wake could accept all connections that wait. So each worker
shows the others how many connections it has, in memory that they share, and leaves new ones to those that have fewer.
It leaves none to a worker that does not react, which hangs, has ended or is about to start.

Each worker writes its own words only, so there is no lock. A worker that reads an old number has a few connections more
or fewer, and no other harm is done.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection
from typing import Final

from mintage.server.loop.limits import Connection

#: The most times in a row that it leaves them to a worker that does not react: a turn of the loop is far shorter.
_PATIENCE: Final = 200
#: A worker accepts until it has so many connections more than any other,
_AHEAD: Final = 2
#: or this part more, so that the workers accept thousands in few turns.
_AHEAD_PART: Final = 8
#: The words of a worker: the number of its connections, and how often it has looked for new ones. The latter is 0 while
#: it accepts none.
_WORDS: Final = 2


class Share(set[Connection]):
    """The open connections of one interface and worker, whose number the other workers see.

    :param words: the words of all workers.
    :param own: the place of this worker's words.
    :param others: the places of the others' words.
    """

    def __init__(self, words: memoryview, own: int, others: Collection[int]) -> None:
        super().__init__()
        self._words = words
        self._own = own
        self._others = others
        self._left = 0
        """The number of times in a row that this worker left connections to the others."""
        self._before: dict[int, int] = {}
        """The count of looks of each of the others when this worker began to leave them connections."""
        self._away: dict[int, int] = {}
        """The count of looks of each worker that does not react: it is back once it looks again."""

    def add(self, connection: Connection) -> None:
        """Add a connection."""
        super().add(connection)
        self._words[self._own] = len(self)

    def discard(self, connection: object) -> None:
        """Remove a connection if it is there."""
        super().discard(connection)
        self._words[self._own] = len(self)

    def begin(self) -> None:
        """Show that this worker accepts connections from now on."""
        self._words[self._own] = 0
        self._words[self._own + 1] += 1

    def end(self) -> None:
        """Show that this worker accepts no more."""
        self._words[self._own + 1] = 0

    def may_accept(self, opening: int) -> bool:
        """Return True if this worker may accept a connection, False if it should leave it to the others for a moment.

        :param opening: how many accepted connections are not yet in this set.
        """
        words = self._words
        # The others do not see those that open: some of them may be counted twice for a moment.
        mine = len(self) + opening
        words[self._own + 1] += 1
        looked = {each: words[each + 1] for each in self._others}
        fewest = min((words[each] for each in looked if looked[each] not in {0, self._away.get(each)}), default=mine)
        if mine < fewest + max(_AHEAD, fewest // _AHEAD_PART):
            self._left = 0
            return True
        if self._left == 0:
            self._before = looked
        self._left += 1
        if self._left > _PATIENCE:
            self._left = 0
            self._away = {each: count for each, count in looked.items() if self._before[each] == count}
        return False


class Shares:
    """The shares of all workers, in memory that they inherit."""

    def __init__(self, workers: int, interfaces: Collection[str]) -> None:
        self._workers = workers
        self._interfaces = interfaces
        self._words = memoryview(mmap.mmap(-1, 8 * _WORDS * workers * len(interfaces))).cast("q")

    def of(self, worker: int) -> dict[str, Share]:
        """Return the shares of a worker that is about to start, by interface."""
        shares = {}
        for nth, interface in enumerate(self._interfaces):
            places = [_WORDS * (nth * self._workers + each) for each in range(self._workers)]
            own = places.pop(worker)
            share = shares[interface] = Share(self._words, own, places)
            # The one that it replaces accepts no more.
            share.end()
        return shares
