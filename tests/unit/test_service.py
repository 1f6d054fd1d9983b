"""Tests of the operations of the service without interfaces: effects of refused requests, and new namespaces."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage._core import monotonic_s
from mintage.errors import MintError, StoreError
from mintage.formats import kinds
from mintage.lease import keeper
from mintage.server.config.keys import Caller
from mintage.server.config.settings import Settings
from mintage.server.core.service import FALLBACK_FLOOR, Service
from mintage.server.core.threads import Shared
from mintage.server.loop.limits import ConnectionLimit
from mintage.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from mintage.rules import Segment

ANYBODY = Caller.anybody()
PATIENT = ("--max-wait-ms", "60000")


class Moody(MemoryStore):
    """A store that reserves only while it has no error to raise."""

    error: str = ""

    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        if self.error:
            raise StoreError("it does not", code=self.error)
        return super().reserve(namespace, count, holder=holder)


class Tried:
    """A service, and the results of its operations."""

    def __init__(self, *options: str) -> None:
        self.store = Moody()
        self._runner = asyncio.Runner()
        self.service: Service = self._runner.run(self._made(Settings.load(options)))

    async def _made(self, settings: Settings) -> Service:
        return Service(settings, self.store)

    def next(self, *counts: int, namespace: str = "orders") -> list[list[int] | str]:
        """Return the integers given to concurrent requests; the code if they are refused."""
        return self.run(*(self.service.next(ANYBODY, namespace, count) for count in counts))

    def run(self, *asked: Coroutine[Any, Any, Any]) -> list[Any]:
        async def all_of_them() -> list[Any]:
            found = await asyncio.gather(*asked, return_exceptions=True)
            for each in found:
                if isinstance(each, BaseException) and not isinstance(each, MintError):
                    raise each
            return [each.code if isinstance(each, MintError) else each for each in found]

        return self._runner.run(all_of_them())

    def become(self, error: str) -> None:
        """Let the store raise this error, or none if it is empty, and wait for the request that it has already."""
        self.store.error = error
        with keeper.current().hold():
            assert keeper.current().wait_for(None, monotonic_s() + 60)

    def held(self, namespace: str = "orders") -> int:
        return self.service.lane.segment_client(namespace).buffered()

    def fill(self) -> int:
        """Hand out three integers, wait until the next segment is fetched, and return the buffered number."""
        while tuple(self.next(3)[0]) != (1, 2, 3):
            pass  # a machine that stalls is no reason to fail
        while not self.service.lane.has_next("orders"):
            time.sleep(0.001)
        return self.held()

    def names(self) -> set[str]:
        return {record.name for record in self.store.list_namespaces()}

    def close(self) -> None:
        self._runner.run(self.service.close())
        self._runner.close()


@contextmanager
def serving(*options: str) -> Iterator[Tried]:
    tried = Tried(*(options or PATIENT))
    try:
        yield tried
    finally:
        tried.close()


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the keeper retry refused stores at once."""
    monkeypatch.setattr(keeper, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(keeper, "LONGEST_PAUSE_S", 0.0)


# --- a refused request takes nothing --------------------------------------------------------------------------------


def test_request_for_more_than_are_left_takes_none() -> None:
    with serving() as tried:
        tried.store.create_namespace("orders", maximum=100)
        assert tried.next(60) == [list(range(1, 61))]
        with pytest.raises(MintError, match="namespace 'orders' has 40 integers left, not 60"):
            tried._runner.run(tried.service.next(ANYBODY, "orders", 60))
        assert tried.next(60, 40, 1) == ["namespace.exhausted", list(range(61, 101)), "namespace.exhausted"]


def test_request_refused_by_the_store_takes_none() -> None:
    with serving() as tried:
        held = tried.fill()
        tried.store.error = "store.refused"
        assert tried.next(held + 1, held + 1) == ["store.refused"] * 2
        assert tried.next(held) == [list(range(4, held + 4))]


def test_request_without_a_reachable_store_takes_none() -> None:
    with serving("--max-wait-ms", "50") as tried:
        held = tried.fill()
        tried.store.error = "store.unavailable"
        assert tried.next(held + 1) == ["store.unavailable"]
        assert tried.held() == held


def test_last_resort_hands_out_buffered_integers_first() -> None:
    with serving("--max-wait-ms", "50", "--fallback", "random") as tried:
        held = tried.fill()
        tried.store.error = "store.unavailable"
        [found] = tried.next(held + 5)
        assert [int(each) < FALLBACK_FLOOR for each in found] == [True] * held + [False] * 5
        assert tried.held() == 0


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_request_may_exceed_a_segment(step: int) -> None:
    with serving(*PATIENT, "--min-step", "1", "--max-step", str(step)) as tried:
        given = [each for part in tried.next(100, 1, 50, 1) for each in part]
        assert sorted(given) == list(range(1, 153))


actions = st.lists(
    st.tuples(st.sampled_from(["", "", "", "store.refused"]), st.lists(st.integers(1, 60), min_size=1, max_size=4)),
    max_size=12,
)


@given(actions, st.integers(1, 400), st.integers(1, 40))
def test_no_integer_is_lost_or_repeated_after_refusals(
    actions: list[tuple[str, list[int]]], maximum: int, step: int
) -> None:
    with serving(*PATIENT, "--min-step", "1", "--max-step", str(step)) as tried:
        tried.store.create_namespace("orders", maximum=maximum)
        given: list[int] = []
        for error, counts in actions:
            tried.become(error)
            for count, found in zip(counts, tried.next(*counts), strict=True):
                if not isinstance(found, str):
                    assert len(found) == count
                    assert found == sorted(found)
                    given += found
        tried.become("")
        while (found := tried.next(1)[0]) != "namespace.exhausted":
            assert not isinstance(found, str)
            given += found
        assert sorted(given) == list(range(1, maximum + 1))


# --- connections ----------------------------------------------------------------------------------------------------


class Open:
    """A connection that was silent for a number of seconds."""

    def __init__(self, silent_s: float) -> None:
        self.silent_s, self.is_ended = silent_s, False

    def abort(self) -> None:
        self.is_ended = True


def room_of(most: int, *silent_s: float) -> tuple[ConnectionLimit, list[Open], set[Any]]:
    opened = [Open(each) for each in silent_s]
    connections: set[Any] = set(opened)
    return ConnectionLimit(connections, most, 10.0), opened, connections


def test_longest_idle_connection_is_closed_at_the_limit() -> None:
    room, opened, connections = room_of(4, 0, 11, 99, 10)
    assert room.try_admit()
    assert [each.is_ended for each in opened] == [False, False, True, False]
    assert connections == {opened[0], opened[1], opened[3]}
    assert room.try_admit()
    assert len(connections) == 3


def test_active_connections_are_kept_and_idle_ones_below_the_limit() -> None:
    for room, opened, _ in (room_of(3, 0, 5, 10), room_of(4, 99, 99, 99)):
        assert room.try_admit() == (opened[0].silent_s == 99)
        assert not any(each.is_ended for each in opened)


# --- files ----------------------------------------------------------------------------------------------------------


def test_first_id_without_a_free_descriptor_is_refused_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_file(name: str) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), name)

    with serving() as tried:
        monkeypatch.setattr(kinds, "import_module", no_file)
        monkeypatch.setattr(kinds, "_module", kinds._module.__wrapped__)
        assert tried.run(tried.service.mint(ANYBODY, "ksuid", 1)) == ["request.busy"]
        monkeypatch.undo()
        assert len(tried.run(tried.service.mint(ANYBODY, "ksuid", 1))[0][0]) == 27


# --- the limit of namespaces ----------------------------------------------------------------------------------------


def put(tried: Tried, name: str) -> Coroutine[Any, Any, Any]:
    return tried.service.make(ANYBODY, name, tried.store.create_namespace, name)


def floor(tried: Tried, name: str) -> Coroutine[Any, Any, Any]:
    return tried.service.make(ANYBODY, name, tried.store.raise_floor, name, 7)


def retire(tried: Tried, name: str) -> Coroutine[Any, Any, Any]:
    return tried.service.make(ANYBODY, name, tried.store.retire, name)


def use(tried: Tried, name: str) -> Coroutine[Any, Any, Any]:
    return tried.service.next(ANYBODY, name, 1)


def segment(tried: Tried, name: str) -> Coroutine[Any, Any, Any]:
    return tried.service.segment(ANYBODY, name, 1)


def are_refused(found: list[Any]) -> list[bool]:
    assert {each for each in found if isinstance(each, str)} <= {"request.namespaces"}
    return [each == "request.namespaces" for each in found]


@pytest.mark.parametrize("way", [put, floor, retire, use, segment])
def test_no_interface_creates_more_namespaces_than_the_limit(way: Any) -> None:
    with serving(*PATIENT, "--max-namespaces", "3") as tried:
        assert are_refused(tried.run(way(tried, "a"))) == [False]
        # They run at once, so any may come first.
        assert are_refused(tried.run(*(way(tried, f"n{at}") for at in range(9)))).count(True) == 7
        assert len(tried.names()) == 3
        # An existing namespace works as before.
        if way is not put:
            assert are_refused(tried.run(way(tried, "a"))) == [False]


@pytest.mark.parametrize("way", [put, floor, retire, use, segment])
def test_refused_names_leave_nothing_in_memory(way: Any) -> None:
    def kept(tried: Tried) -> int:
        """Return the number of entries that the service keeps of names."""
        parts = [each for name, each in vars(tried.service._namespaces).items() if name != "_threads"]
        parts += [inner for each in parts if isinstance(each, Shared) for inner in vars(each).values()]
        return sum(len(each) for each in parts if isinstance(each, dict | set))

    with serving(*PATIENT, "--max-namespaces", "1") as tried:
        assert are_refused(tried.run(use(tried, "a"))) == [False]
        assert all(are_refused(tried.run(*(way(tried, f"n{at}") for at in range(20)))))
        known = kept(tried), len(tried.service.metrics.render()[0])
        assert all(are_refused(tried.run(*(way(tried, f"m{at}") for at in range(200)))))
        # A request that has ended a moment ago may still be there.
        assert kept(tried) < known[0] + 20
        assert len(tried.service.metrics.render()[0]) < known[1] + 200


def test_failed_request_creates_no_usable_namespace() -> None:
    with serving(*PATIENT, "--no-auto-create", "--max-namespaces", "3") as tried:
        for _ in range(5):
            assert tried.run(tried.service.make(ANYBODY, "n", tried.store.create_namespace, "n", start=-1)) == [
                "field.range"
            ]
        assert tried.run(use(tried, "n")) == ["request.namespace"]
        assert are_refused(tried.run(put(tried, "a"), put(tried, "b"), put(tried, "c"))) == [False] * 3
