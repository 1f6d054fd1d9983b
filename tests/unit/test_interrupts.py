"""Tests of locks and turns that end with their objects, of waits under a frozen clock, and of the end of a process."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mintage
from mintage import Sequence
from mintage._core import Condition, Turns, hold
from mintage.errors import StoreError
from mintage.lease.keeper import Keeper
from mintage.process import forks
from mintage.store.memory import MemoryStore
from tests.helpers.keepers import keeper_in_place
from tests.unit.test_connections import Connection, connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from mintage.store.sql.pool import Connections

BOUND = 60


def in_other_thread(call: Any) -> Any:
    """Return what a call returns in another thread."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(BOUND)
    assert found, "the call failed, or did not return"
    return found[0]


@pytest.mark.parametrize("depth", [1, 2])
def test_lock_is_released_when_its_object_goes_away(depth: int) -> None:
    lock = threading.RLock()
    held = [hold(lock) for _ in range(depth)]
    assert in_other_thread(lambda: hold(lock, 0) is None)
    held.clear()
    assert in_other_thread(lambda: hold(lock, 0) is not None)


def test_wait_gives_the_lock_back_as_often_as_it_was_held() -> None:
    lock = threading.RLock()
    condition = Condition(lock, threading.Lock)
    with hold(lock), hold(lock):
        assert condition.wait(0.01, 1.0)
        assert in_other_thread(lambda: hold(lock, 0) is None)
    assert in_other_thread(lambda: hold(lock, 0) is not None)


def test_turn_that_goes_away_is_given_to_another_caller() -> None:
    turns = Turns(1, threading.Lock)
    turn = turns.take(0)
    assert turn is not None
    assert turns.take(0) is None
    del turn
    assert turns.take(0) is not None


class Interrupt(BaseException):
    """The exception of a signal's handler."""


def interrupted(call: Callable[[], object], *, step: int) -> Iterator[None]:
    """Call once for every ``step``-th instruction of mintage's that the call runs, and raise there."""
    source, left = str(Path(mintage.__file__).parent), 0

    def at_instruction(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                raise Interrupt
        return at_instruction

    def at_call(frame: FrameType, event: str, argument: object) -> Any:
        return at_instruction(frame, event, argument) if frame.f_code.co_filename.startswith(source) else None

    at, is_complete = 0, False
    while not is_complete:
        left, before = at, sys.gettrace()
        try:
            sys.settrace(at_call)
            call()
            is_complete = True
        except Interrupt:
            pass
        finally:
            sys.settrace(before)
        yield
        at += step
    assert at > 10 * step


@pytest.mark.parametrize("verb", ["next", "reserve"])
def test_exception_at_any_instruction_leaves_no_lock_held(verb: str) -> None:
    def are_free() -> bool:
        return hold(forks._lock(), BOUND) is not None and keeper.condition.hold(BOUND) is not None

    with keeper_in_place(Keeper()) as keeper:
        orders = Sequence("orders", MemoryStore(), step=1)
        calls = {"next": orders.next, "reserve": lambda: orders.reserve(2)}
        for _ in interrupted(calls[verb], step=3):
            assert in_other_thread(are_free)
        assert in_other_thread(orders.next)


def has_all_turns(lender: Connections, limit: int) -> bool:
    """Return True if as many connections can be lent as the limit says, and no more."""
    turns = [lender._turns.take(0) for _ in range(limit + 1)]
    return None not in turns[:-1] and turns[-1] is None


def test_exception_at_any_instruction_loses_no_connection_slot() -> None:
    made: list[Connection] = []
    lender = connections(made, limit=2)

    def fail() -> None:
        with lender.begin() as transaction:
            transaction.rows("select 1")
            raise StoreError("refused", code="store.refused")

    def call() -> None:
        with pytest.raises(StoreError):
            fail()

    for _ in interrupted(call, step=1):
        assert has_all_turns(lender, 2)


def test_recursion_limit_at_any_depth_loses_no_connection_slot() -> None:
    lender = connections([], limit=2)

    def fail(depth: int) -> None:
        if depth:
            fail(depth - 1)
            return
        with lender.begin() as transaction:
            transaction.rows("select 1")
            raise StoreError("refused", code="store.refused")

    limit, room = sys.getrecursionlimit(), 200
    errors = set()
    for depth in range(room):
        sys.setrecursionlimit(len(_frames()) + room)
        try:
            fail(depth)
        except (RecursionError, StoreError) as error:
            errors.add(type(error))
        finally:
            sys.setrecursionlimit(limit)
        assert has_all_turns(lender, 2)
    assert errors == {RecursionError, StoreError}


def _frames() -> list[FrameType]:
    """Return the frames of the caller."""
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return frames


def test_frozen_clock_of_a_test_ends_no_wait_late() -> None:
    freezegun = pytest.importorskip("freezegun")
    with freezegun.freeze_time("2026-01-01"):
        orders = Sequence("orders", "redis://127.0.0.1:1", max_wait_ms=200)
        with pytest.raises(StoreError):
            in_this_time(orders.next)


def in_this_time(call: Any) -> Any:
    """Return what a call returns or raises in another thread, within the bound."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - it is raised below
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(BOUND)
    assert failed, "the wait did not end"
    raise failed[0]


@pytest.mark.parametrize("kind", ["snowflake.Generator(store=store).new", "Sequence('orders', store, step=1).next"])
def test_process_with_minting_daemon_threads_ends_in_good_order(tmp_path: Path, kind: str) -> None:
    program = f"""
import sys, threading, time
from mintage import Sequence, snowflake
store = "sqlite:///" + sys.argv[1]
mint = {kind}
def work():
    while True:
        try:
            mint()
        except Exception:
            pass
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(4):
        path = str(tmp_path / "ids.db")
        done = subprocess.run([sys.executable, "-c", program, path], check=False, capture_output=True, timeout=BOUND)
        assert (done.returncode, done.stderr) == (0, b"")
