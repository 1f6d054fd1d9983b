"""Connections to a database server: each is lent to one transaction at a time, and only usable ones are kept."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import pytest

from mintage.store.sql.pool import BusyError, Connections

if TYPE_CHECKING:
    from collections.abc import Mapping


class DriverError(Exception):
    """The error of a driver."""


class Connection:
    """A connection of a driver, which records its calls and is its own cursor."""

    description = None

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.failing: dict[str, BaseException] = {}
        self.is_open = True

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failing:
            raise self.failing[name]

    def cursor(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, statement: str, _values: Mapping[str, object] | None) -> None:
        self._call(statement)

    def commit(self) -> None:
        self._call("commit")

    def rollback(self) -> None:
        self._call("rollback")

    def close(self) -> None:
        self._call("close")
        self.is_open = False


def connections(
    made: list[Connection], *, limit: int = 2, failing: Mapping[str, BaseException] | None = None
) -> Connections:
    """Return connections, which are appended to ``made`` and whose calls in ``failing`` fail."""

    def connect() -> Connection:
        made.append(Connection())
        made[-1].failing.update(failing or {})
        return made[-1]

    return Connections(connect, lambda each: bool(each.is_open), (DriverError,), limit=limit, wait_s=0)


def use(lender: Connections) -> Any:
    """Commit one transaction, and return the connection that it had."""
    with lender.begin() as transaction:
        transaction.commit()
    return transaction.connection


def test_connection_is_lent_to_one_transaction_after_another() -> None:
    made: list[Connection] = []
    lender = connections(made)
    assert use(lender) is use(lender)
    assert made[0].calls == ["commit", "commit"]


def test_transactions_at_once_find_the_connections_of_those_before() -> None:
    made: list[Connection] = []
    lender = connections(made)
    for _ in range(3):
        with lender.begin() as first, lender.begin() as second:
            first.commit()
            second.commit()
    assert [each.is_open for each in made] == [True, True]


def test_caller_gets_an_error_if_all_connections_are_lent() -> None:
    lender = connections([])
    with lender.begin(), lender.begin(), pytest.raises(BusyError):
        lender.begin()
    use(lender)


def test_failed_connect_leaves_its_turn_to_others() -> None:
    failures = [DriverError()] * 5
    made: list[Connection] = []
    working = connections(made)

    def connect() -> Connection:
        if failures:
            raise failures.pop()
        return Connection()

    lender = Connections(connect, working.is_usable, (DriverError,), limit=1, wait_s=0)
    for _ in range(5):
        with pytest.raises(DriverError):
            lender.begin()
    use(lender)


def test_transaction_without_commit_is_rolled_back() -> None:
    made: list[Connection] = []
    lender = connections(made)
    with lender.begin() as transaction:
        transaction.rows("INSERT")
    made[0].failing["UPDATE"] = DriverError()
    with pytest.raises(DriverError), lender.begin() as transaction:
        transaction.rows("UPDATE")
    assert made[0].calls == ["INSERT", "rollback", "UPDATE", "rollback"]
    assert use(lender) is made[0]


def test_connection_that_cannot_roll_back_is_closed() -> None:
    made: list[Connection] = []
    lender = connections(made)
    with lender.begin() as transaction:
        made[0].failing["rollback"] = DriverError()
        transaction.rows("INSERT")
    assert not made[0].is_open
    assert use(lender) is made[1]


@pytest.mark.parametrize("place", ["INSERT", "rollback"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError, RecursionError, MemoryError])
def test_connection_of_an_interrupted_transaction_is_closed(place: str, kind: type[BaseException]) -> None:
    made: list[Connection] = []
    lender = connections(made, limit=1, failing={place: kind()})
    for number in range(3):
        with suppress(kind), lender.begin() as transaction:
            transaction.rows("INSERT")
        assert not made[number].is_open


def test_lost_connection_closes_the_idle_ones() -> None:
    made: list[Connection] = []
    lender = connections(made)
    with lender.begin() as first, lender.begin() as second:
        first.commit()
        second.commit()
    with lender.begin() as transaction:
        transaction.connection.is_open = False
        assert transaction.is_lost
    assert not any(each.is_open for each in made)
    assert use(lender) is made[2]


def test_detached_connection_is_closed_and_the_idle_ones_are_kept() -> None:
    made: list[Connection] = []
    lender = connections(made)
    with lender.begin() as first:
        first.commit()
        with lender.begin() as second:
            second.detach()
            second.commit()
    assert [each.is_open for each in made] == [True, False]


def test_close_closes_idle_connections_now_and_lent_ones_later() -> None:
    made: list[Connection] = []
    lender = connections(made)
    with lender.begin() as lent:
        use(lender)
        lender.close()
        assert [each.is_open for each in made] == [True, False]
        lent.commit()
    assert not made[0].is_open
