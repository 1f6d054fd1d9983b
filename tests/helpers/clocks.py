"""Clocks of tests that count seconds; those of generators are in ``mintage.testing``."""

from __future__ import annotations


class StandingClock:
    """A clock that stands still, in seconds, until a test sets it."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
