"""Detection of a restore from a snapshot, by signs that a restore cannot hide.

:func:`judge` is a pure function that compares two fingerprints of a process. :class:`RestoreDetector` takes them.
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

JUMP_NS: Final = 200_000_000
"""The largest change of the difference of two clocks between two checks, in nanoseconds. Slewing and a smeared leap
second change the pace of all clocks, so they change no difference. A step by NTP looks like a restore, and counts as
one."""
_TRIES: Final = 5
_UEVENTS: Final = 15
"""The netlink family of the kernel's device events."""
_NEW_GENERATION: Final = b"NEW_VMGENID=1"
"""The message of the kernel (6.10 or newer) after its virtual machine was restored."""
_PROC: Final = Path("/proc")
_DRIVER: Final = Path("/sys/bus/platform/drivers/vmgenid")


class Verdict(Enum):
    """The result of a comparison of two fingerprints."""

    SAME = "same"
    MAYBE = "maybe"
    """A clock jumped: the process was restored, somebody set the clock, or the machine slept."""
    RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class Fingerprint:
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
    <Verdict.RESTORED: 'restored'>
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


def started_ticks(stat: str) -> int:
    """Return the start of a process in ticks since the boot: the 22nd field of its ``/proc/PID/stat``.

    The second field, the name in parentheses, may contain spaces and parentheses.

    :raises ValueError: ``stat`` is not such a line.
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
        # Use UTF-8: a process that may no longer read Python's files cannot load other codecs.
        return (_PROC / "sys/kernel/random/boot_id").read_bytes().decode(errors="replace").strip()
    return ""


def _clocks() -> tuple[int, int, int]:
    """Return the three clocks at nearly the same time: the quickest of a few readings."""
    best, shortest = (0, 0, 0), -1
    for _ in range(_TRIES):
        # Not the clocks of the module time: a test that patches them is not a restore.
        *read, took = clocks()
        if shortest < 0 or took < shortest:
            best, shortest = (read[0], read[1], read[2]), took
        if shortest < JUMP_NS // 100:
            break
    return best


def started_s() -> int:
    """Return the start of this process in seconds since the Unix epoch, as exactly as the platform shows it."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    if boottime is None or not (ticks := _started()):
        return round(time.time() - time.process_time())
    return round(time.time() - time.clock_gettime(boottime) + ticks / os.sysconf("SC_CLK_TCK"))


class RestoreDetector:
    """A detector of restores of this process. Use it from one thread at a time; any thread may call :meth:`close`."""

    def __init__(self) -> None:
        self._before: Fingerprint | None = None
        self._generations = 0
        self._uevents: _socket.socket | None = None
        self._inode = 0
        self._no_uevents = False

    def check(self) -> Verdict:
        """Return the verdict on the time since the last check."""
        before, self._before = self._before, self.fingerprint()
        return Verdict.SAME if before is None else judge(before, self._before)

    def fingerprint(self) -> Fingerprint:
        """Return the fingerprint of this process now."""
        self._poll_uevents()
        real, monotonic, boot = _clocks()
        return Fingerprint(real, monotonic, boot, _boot_id(), os.getpid(), _started(), self._generations)

    def _poll_uevents(self) -> None:
        """Count the restores that the kernel announced, if it has the driver."""
        uevents = self._uevents
        if uevents is None:
            if self._no_uevents or not _DRIVER.exists():
                self._no_uevents = True
                return
            try:
                # Use the C type: the sockets of gevent and eventlet ignore SOCK_NONBLOCK and block.
                kind = _socket.SOCK_DGRAM | _socket.SOCK_NONBLOCK
                self._uevents = uevents = _socket.socket(_socket.AF_NETLINK, kind, _UEVENTS)
                uevents.bind((0, 1))
                self._inode = os.fstat(uevents.fileno()).st_ino
            except OSError:
                # A sandbox may forbid it.
                self.close()
                self._no_uevents = True
                return
        with suppress(OSError):
            # A program may close unknown descriptors; then the number may belong to another file.
            while os.fstat(uevents.fileno()).st_ino == self._inode:
                self._generations += is_generation(uevents.recv(1 << 16, _socket.MSG_DONTWAIT))

    def close(self) -> None:
        """Close the netlink socket until the next check, so that a checkpoint need not save it."""
        uevents, self._uevents = self._uevents, None
        if uevents is not None:
            with suppress(OSError):
                if os.fstat(uevents.fileno()).st_ino == self._inode:
                    uevents.close()
            uevents.detach()

    __del__ = close


def is_generation(message: bytes) -> bool:
    """Return True if a message of the kernel announces a restore of its virtual machine.

    The kernel marks messages that a user triggers, and these do not count.
    """
    return _NEW_GENERATION in message.split(b"\0")
