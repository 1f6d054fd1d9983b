"""Tests of turns of the event loop: their work is bounded, and waiting tasks resume in order."""

from __future__ import annotations

import asyncio
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING

import pytest

from mintage._core.lane import MAX_REPLY_BATCH
from mintage.server.loop.budget import TURN, Turns

if TYPE_CHECKING:
    from collections.abc import Callable


class Loop:
    """An event loop that runs scheduled calls when told to."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None], *, context: Context) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    loop = Loop()
    monkeypatch.setattr("mintage.server.loop.budget.get_running_loop", lambda: loop)
    return loop


def test_turn_ends_with_its_work_and_the_next_starts_fresh(loop: Loop) -> None:
    turns = Turns()
    assert loop.soon == [], "nothing is counted"
    turns.spend(TURN - 1)
    assert not turns.is_spent
    turns.spend(1)
    assert turns.is_spent
    assert len(loop.soon) == 1, "counted once a turn"
    loop.turn()
    assert not turns.is_spent
    assert loop.soon == [], "and the loop sleeps"


def test_waiting_work_resumes_in_order_within_a_turn(loop: Loop) -> None:
    turns = Turns()
    went: list[int] = []

    def go_on(at: int) -> None:
        went.append(at)
        turns.spend(MAX_REPLY_BATCH)
        turns.later(lambda: go_on(at))

    many = TURN // MAX_REPLY_BATCH + 2
    for at in range(many):
        turns.later(lambda at=at: go_on(at))  # type: ignore[misc]
    loop.turn()
    assert went == list(range(many - 2))
    assert not turns.is_spent, "what is read meanwhile has a budget of its own"
    loop.turn()
    assert went == [*range(many), *range(many - 4)], "who went on waits behind all others"


def test_nothing_resumes_twice_in_a_turn(loop: Loop) -> None:
    turns = Turns()
    went: list[None] = []

    def go_on() -> None:
        went.append(None)
        turns.later(go_on)

    turns.later(go_on)
    for number in range(1, 4):
        loop.turn()
        assert len(went) == number


def test_failure_of_one_task_stops_no_other(loop: Loop) -> None:
    turns = Turns()
    went: list[None] = []
    turns.later(lambda: 1 // 0)  # type: ignore[arg-type]
    turns.later(lambda: went.append(None))
    with pytest.raises(ZeroDivisionError):
        loop.turn()
    loop.turn()
    assert went == [None]


def test_tasks_that_awaited_one_answer_resume_one_by_one() -> None:
    async def main() -> None:
        turns, went = Turns(), 0

        async def answer() -> None:
            nonlocal went
            await turns.acquire(TURN)
            went += 1

        answers = asyncio.gather(*(answer() for _ in range(10)))
        before = 0
        while not answers.done():
            await asyncio.sleep(0)
            assert went - before <= 1 + 1, "of what waits, and of what is new"
            before = went
        assert went == 10

    asyncio.run(main())


def test_callback_that_waits_is_not_in_the_context_of_a_request() -> None:
    trace: ContextVar[str] = ContextVar("trace", default="none")
    seen: list[str] = []

    async def wait_beside_a_request() -> None:
        turns, done = Turns(), asyncio.Event()

        def go_on() -> None:
            seen.append(trace.get())
            turns.later(go_on) if len(seen) < 3 else done.set()

        trace.set("of a request")
        turns.spend(TURN)
        turns.later(go_on)
        await done.wait()

    asyncio.run(wait_beside_a_request())
    assert seen == ["none"] * 3
