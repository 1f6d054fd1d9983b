"""Detection of a restore from a snapshot, by what a restore cannot hide.

:func:`judge` is pure: it compares two fingerprints of a process. :class:`RestoreDetector` takes them.
"""

from __future__ import annotations

import _socket
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from mintage._core import clocks

__all__ = ["Fingerprint", "RestoreDetector", "Verdict", "judge", "started_s"]

JUMP_NS: Final = 200_000_000
"""By how much clocks may come apart between two looks. Slewing changes none of the distances, as it changes the pace of
all; so does no leap second that is smeared. A step of NTP looks like a restore, and is treated as one."""
_TRIES: Final = 5
_UEVENTS: Final = 15
"""The family of netlink in which the kernel announces what happens to devices."""
_NEW_GENERATION: Final = b"NEW_VMGENID=1"
"""What the kernel (6.10 and newer) says where its virtual machine was restored."""
_PROC: Final = Path("/proc")
_DRIVER: Final = Path("/sys/bus/platform/drivers/vmgenid")


class Verdict(Enum):
    """What two looks say."""

    SAME = "same"
    MAYBE = "maybe"
    """A clock jumped: a restore, or somebody set the clock, or the machine slept."""
    RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One look. Times are nanoseconds of the kernel's clocks; what the platform does not show is 0 or empty."""

    realtime_ns: int = 0
    monotonic_ns: int = 0
    boottime_ns: int = 0
    boot_id: str = ""
    """The kernel's, another after each start of it."""
    pid: int = 0
    started: int = 0
    """When this process started, in ticks since the kernel did."""
    generations: int = 0
    """How often the kernel was told that its virtual machine was restored, since the first look."""


def judge(before: Fingerprint, now: Fingerprint) -> Verdict:
    """Return what became of a process between two looks of its own."""
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
    """Return whether both are known, and not the same."""
    return bool(before) and bool(now) and before != now


def started_ticks(stat: str) -> int:
    """Return when a process started, from its ``/proc/PID/stat``: the 22nd field.

    The second, its name in parentheses, may hold blanks and parentheses of its own.

    :raises ValueError: it is no such line.
    """
    _, end, fields = stat.rpartition(")")
    numbers = fields.split()
    if not end or len(numbers) < 20:
        raise ValueError("not a line of /proc/PID/stat")
    return int(numbers[19])


def _started() -> int:
    with suppress(OSError, ValueError):
        return started_ticks((_PROC / "self/stat").read_bytes().decode(errors="replace"))
    return 0


def _boot_id() -> str:
    with suppress(OSError):
        # UTF-8 is there for a process that may read no more of Python's own files, too; others need not be.
        return (_PROC / "sys/kernel/random/boot_id").read_bytes().decode(errors="replace").strip()
    return ""


def _clocks() -> tuple[int, int, int]:
    """Return the three clocks at one moment, as nearly as can be had: of some readings the quickest."""
    best, shortest = (0, 0, 0), -1
    for _ in range(_TRIES):
        # Not those of the module time: a test that travels is no restore.
        *read, took = clocks()
        if shortest < 0 or took < shortest:
            best, shortest = (read[0], read[1], read[2]), took
        if shortest < JUMP_NS // 100:
            break
    return best


def started_s() -> int:
    """Return when this process started, in seconds since the Unix epoch, as far as it can be known."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    if boottime is None or not (ticks := _started()):
        return round(time.time() - time.process_time())
    return round(time.time() - time.clock_gettime(boottime) + ticks / os.sysconf("SC_CLK_TCK"))


class RestoreDetector:
    """Looks at the signs of this process, now and then. For one thread at a time; any may call :meth:`close`."""

    def __init__(self) -> None:
        self._before: Fingerprint | None = None
        self._generations = 0
        self._uevents: _socket.socket | None = None
        self._inode = 0
        self._no_uevents = False

    def check(self) -> Verdict:
        """Return what became of this process since the last look."""
        before, self._before = self._before, self.fingerprint()
        return Verdict.SAME if before is None else judge(before, self._before)

    def fingerprint(self) -> Fingerprint:
        """Return how this process stands now."""
        self._poll_uevents()
        real, monotonic, boot = _clocks()
        return Fingerprint(real, monotonic, boot, _boot_id(), os.getpid(), _started(), self._generations)

    def _poll_uevents(self) -> None:
        """Count what the kernel announced since: only where it has a driver for it."""
        uevents = self._uevents
        if uevents is None:
            if self._no_uevents or not _DRIVER.exists():
                self._no_uevents = True
                return
            try:
                # The C type: sockets of gevent and eventlet ignore SOCK_NONBLOCK, and wait.
                kind = _socket.SOCK_DGRAM | _socket.SOCK_NONBLOCK
                self._uevents = uevents = _socket.socket(_socket.AF_NETLINK, kind, _UEVENTS)
                uevents.bind((0, 1))
                self._inode = os.fstat(uevents.fileno()).st_ino
            except OSError:
                # A sandbox may not allow it.
                self.close()
                self._no_uevents = True
                return
        with suppress(OSError):
            # A program may close what it does not know, and then the number is another's.
            while os.fstat(uevents.fileno()).st_ino == self._inode:
                self._generations += is_generation(uevents.recv(1 << 16, _socket.MSG_DONTWAIT))

    def close(self) -> None:
        """Close what it listens with, until the next look: a checkpoint need not keep it."""
        uevents, self._uevents = self._uevents, None
        if uevents is not None:
            with suppress(OSError):
                if os.fstat(uevents.fileno()).st_ino == self._inode:
                    uevents.close()
            uevents.detach()

    __del__ = close


def is_generation(message: bytes) -> bool:
    """Return whether a message of the kernel's says that its virtual machine was restored.

    What a user has the kernel say is marked as such, and does not.
    """
    return _NEW_GENERATION in message.split(b"\0")
