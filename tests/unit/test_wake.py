"""Tests of the wake-up of the loop: it stays awake between frequent readings and sleeps between rare ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mintage.server.wake import MOMENT_S, Wake

if TYPE_CHECKING:
    from collections.abc import Callable


class Loop:
    """An event loop that runs scheduled calls when told to."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [1000.0]
    monkeypatch.setattr("mintage.server.wake.monotonic", lambda: now_s[0])
    return now_s


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    loop = Loop()
    monkeypatch.setattr("mintage.server.wake.get_running_loop", lambda: loop)
    return loop


def test_quick_readings_keep_the_clock_thread_awake_briefly(clock: list[float], loop: Loop) -> None:
    wake = Wake()
    wake.note_read()
    clock[0] += MOMENT_S / 2
    wake.note_read()
    clock[0] += MOMENT_S / 2
    loop.turn()
    assert len(loop.soon) == 1, "it polls on"
    wake.note_read()
    assert len(loop.soon) == 1, "once, however often it is asked"
    clock[0] += MOMENT_S * 2
    loop.turn()
    assert loop.soon == [], "and then it sleeps"


def test_distant_readings_leave_the_clock_thread_asleep(clock: list[float], loop: Loop) -> None:
    wake = Wake()
    for _ in range(10):
        wake.note_read()
        clock[0] += MOMENT_S * 2
    assert loop.soon == []
