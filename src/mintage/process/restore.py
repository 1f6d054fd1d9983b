"""Detection of a restore from a snapshot, by signs that a restore cannot hide.

:func:`judge` is a pure function that compares two fingerprints of a process. :class:`RestoreDetector` takes them.
"""

from __future__ import annotations

import os
from enum import Enum, auto
from typing import Final, NamedTuple

from mintage._core import clocks
from mintage.platform.machine import boot_id, start_of_process
from mintage.platform.vm_generation import VmGenerationEvents

JUMP_NS: Final = 200_000_000
"""The largest change of the difference of two clocks between two checks, in nanoseconds. Slewing and a smeared leap
second change the pace of all clocks, so they change no difference. A step by NTP looks like a restore, and counts as
one."""
_TRIES: Final = 5


class Verdict(Enum):
    """The result of a comparison of two fingerprints."""

    SAME = auto()
    MAYBE = auto()
    """A clock jumped: the process was restored, somebody set the clock, or the machine slept."""
    RESTORED = auto()


class Fingerprint(NamedTuple):
    """The signs of a process at one time.

    Times are nanoseconds of the kernel's clocks. A sign that the platform does not show is 0 or empty.
    """

    realtime_ns: int = 0
    monotonic_ns: int = 0
    boottime_ns: int = 0
    boot_id: str = ""
    """The id of the kernel's boot."""
    pid: int = 0
    started: int = 0
    """The start of this process, in ticks since the boot."""
    generations: int = 0
    """The number of restores of the virtual machine that the kernel announced since the first check."""


def judge(before: Fingerprint, now: Fingerprint) -> Verdict:
    """Return the verdict on two fingerprints of one process.

    >>> judge(Fingerprint(boot_id="a", pid=7), Fingerprint(boot_id="b", pid=7))
    <Verdict.RESTORED: 3>
    """
    if (
        before.pid != now.pid
        or _differ(before.started, now.started)
        or _differ(before.boot_id, now.boot_id)
        or before.generations != now.generations
    ):
        return Verdict.RESTORED
    passed = now.monotonic_ns - before.monotonic_ns
    others = [now.realtime_ns - before.realtime_ns]
    if before.boottime_ns and now.boottime_ns:
        others.append(now.boottime_ns - before.boottime_ns)
    if passed < 0 or any(abs(other - passed) > JUMP_NS for other in others):
        return Verdict.MAYBE
    return Verdict.SAME


def _differ(before: object, now: object) -> bool:
    """Return True if both values are known and differ."""
    return bool(before) and bool(now) and before != now


def _clocks() -> tuple[int, int, int]:
    """Return the three clocks at nearly the same time: the quickest of a few readings."""
    best, shortest = (0, 0, 0), -1
    for _ in range(_TRIES):
        # Do not use the clocks of the module time: a test that patches them is not a restore.
        *read, took = clocks()
        if shortest < 0 or took < shortest:
            best, shortest = (read[0], read[1], read[2]), took
        if shortest < JUMP_NS // 100:
            break
    return best


class RestoreDetector:
    """A detector of restores of this process. Use it from one thread at a time; any thread may call :meth:`close`."""

    def __init__(self) -> None:
        self._before: Fingerprint | None = None
        self._events = VmGenerationEvents()

    def check(self) -> Verdict:
        """Return the verdict on the time since the last check."""
        before, self._before = self._before, self.fingerprint()
        return Verdict.SAME if before is None else judge(before, self._before)

    def fingerprint(self) -> Fingerprint:
        """Return the fingerprint of this process now."""
        announced = self._events.count()
        real, monotonic, boot = _clocks()
        return Fingerprint(real, monotonic, boot, boot_id(), os.getpid(), start_of_process(), announced)

    def close(self) -> None:
        """Close the netlink socket until the next check, so that a checkpoint need not save it."""
        self._events.close()
