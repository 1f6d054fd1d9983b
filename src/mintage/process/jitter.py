"""The random part of pauses, so that processes which wait for each other do not return at the same time.

It has a source of its own. A program may seed the functions of :mod:`random`, and Hypothesis warns of a thread that
uses them while it draws.
"""

from __future__ import annotations

from mintage._core import kernel_random


def uniform(least: float, most: float) -> float:
    """Return a random float from ``least`` up to ``most``."""
    return least + (most - least) * int.from_bytes(kernel_random(6), "big") / 2**48
