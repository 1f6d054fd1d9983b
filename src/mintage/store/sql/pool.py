"""The connections of one process to a database server, through a driver of :pep:`249`.

SQLAlchemy's pool does the same, but its import takes 14 MB and 160 ms of each service.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from mintage._core import Turn, Turns

if TYPE_CHECKING:
    from types import TracebackType


class BusyError(Exception):
    """All connections are lent, and none came back in time."""


class Connections:
    """Connections that are lent to one transaction at a time.

    ``limit`` of them exist at most. They stay open for the next transactions, as a login costs more than a verb.
    ``connect`` opens one, and ``is_usable`` returns False for one that the server or the network has closed. After an
    exception other than ``refusals``, as a signal's handler raises it anywhere in the driver, the state of a connection
    is unknown.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        is_usable: Callable[[Any], bool],
        refusals: tuple[type[Exception], ...],
        *,
        limit: int,
        wait_s: float,
    ) -> None:
        self._connect = connect
        self.is_usable = is_usable
        self.refusals = refusals
        self._wait_s = wait_s
        self._turns = Turns(limit, threading.Lock)
        self._idle: list[Any] = []
        self._is_closed = False

    def begin(self) -> DriverTransaction:
        """Return a transaction on a connection that nothing else uses.

        :raises BusyError: all connections are lent for longer than ``wait_s`` seconds.
        """
        turn = self._turns.take(self._wait_s)
        if turn is None:
            raise BusyError
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            return DriverTransaction(self, connection, turn)
        except BaseException:
            # The traceback would hold it.
            turn.end()
            raise

    def give_back(self, connection: Any) -> None:
        """Keep a connection for the next transaction."""
        if self._is_closed:
            _close(connection)
        else:
            self._idle.append(connection)

    def discard(self, connection: Any) -> None:
        """Close a connection whose state is unknown.

        If the server has closed it, the idle ones are suspect too, so close them as well.
        """
        is_lost = not self.is_usable(connection)
        _close(connection)
        if is_lost:
            self.close_idle()

    def close(self) -> None:
        """Close the idle connections now, and those that are lent when they come back."""
        self._is_closed = True
        self.close_idle()

    def close_idle(self) -> None:
        """Close the connections that are not lent."""
        with suppress(IndexError):
            while True:
                _close(self._idle.pop())


class DriverTransaction:
    """One transaction. Leaving its block without a commit rolls it back."""

    def __init__(self, connections: Connections, connection: Any, turn: Turn) -> None:
        self._connections = connections
        self._turn = turn
        self.connection = connection
        """The connection of the driver."""
        self._is_reusable = True
        self._is_committed = False

    def rows(self, statement: str, values: Mapping[str, object] | None = None) -> Sequence[Any]:
        """Execute a statement and return its rows; none if it returns nothing.

        With ``values``, ``%(name)s`` is a parameter and ``%%`` a percent sign; without, the statement is sent as it is.
        """
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else ()

    def commit(self) -> None:
        """Commit."""
        self.connection.commit()
        self._is_committed = True

    def detach(self) -> None:
        """Close the connection at the end of this transaction."""
        self._is_reusable = False

    @property
    def is_lost(self) -> bool:
        """True if the server or the network has closed the connection."""
        return not self._connections.is_usable(self.connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._end(kind)
        finally:
            # End it even if the driver or a signal's handler raises. A transaction that goes away ends its turn, too.
            self._turn.end()

    def _end(self, kind: type[BaseException] | None) -> None:
        # A statement that was interrupted, as by a signal, may still have its answer on the way.
        is_orderly = kind is None or issubclass(kind, self._connections.refusals)
        is_reusable = self._is_reusable and is_orderly and not self.is_lost
        if is_reusable and not self._is_committed:
            try:
                self.connection.rollback()
            except Exception:  # noqa: BLE001 - the server rolls back what it cannot answer
                is_reusable = False
            except BaseException:
                self._connections.discard(self.connection)
                raise
        if is_reusable:
            self._connections.give_back(self.connection)
        else:
            self._connections.discard(self.connection)


def _close(connection: Any) -> None:
    with suppress(Exception):  # it may be closed already
        connection.close()
