"""For users' own tests: a clock that stands still until it is told otherwise."""

from __future__ import annotations

from mintage._core import ManualClock

__all__ = ["ManualClock"]
