"""The node numbers that the registry leases, those that are held by locks, and which of them come first."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mintage._core import kernel_random
from mintage._core.formats import MAC_FRAGMENTS
from mintage.lease.registry.place import shown_home, uid
from mintage.process.generation import generation, start_generation
from mintage.process.restore import RestoreDetector, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = [
    "BLOCK",
    "all_fragments",
    "blocks",
    "first_index",
    "fragments",
    "host_id",
    "is_restored",
    "leased",
    "locked",
    "locked_fragments",
    "restore_state",
    "unlocked",
    "unlocked_fragments",
]

BLOCK: Final = 32
"""How many node numbers a registry tries before any other."""
LOCKED: Final = 8
"""Of so many node numbers one is for locks; a layout with fewer has none for them."""
LOCKED_FRAGMENTS: Final = 2**20
"""locality: of the 2^28 MAC fragments beside a process id, so many are for locks."""


def host_id() -> bytes:
    """Return what tells this registry from others: host, user and directory."""
    try:
        machine = Path("/etc/machine-id").read_bytes().decode(errors="replace").strip()
    except OSError:
        machine = ""
    where = shown_home()
    try:
        found = os.stat(where)
    except OSError:
        place = ""
    else:
        place = f"{found.st_dev}:{found.st_ino}"  # of mounts, one path may be many directories
    # Containers of one image have one machine-id, but seldom one name.
    return hashlib.sha256("\n".join([machine, socket.gethostname(), str(uid()), where, place]).encode()).digest()


_last_seen = os.getpid(), generation()
_is_restored = False


def is_restored() -> bool:
    """Whether this process, or one that it comes from, was restored from a snapshot: then so may another have been."""
    global _last_seen, _is_restored  # noqa: PLW0603 - one a process
    now = os.getpid(), generation()
    # A child has a process id of its own.
    _is_restored |= now[0] == _last_seen[0] and now[1] != _last_seen[1]
    _last_seen = now
    return _is_restored


_detector = -1, RestoreDetector()
_clock_jumps = 0


def restore_state(*, only_first: bool = False) -> tuple[int, int]:
    """Return a value that changes each time that this process is found to be a copy, or to be one perhaps.

    In one that was restored for certain all generators start over, as after :func:`mintage.after_restore`. Looks for
    that if this process never did, or else unless ``only_first``.
    """
    global _detector, _clock_jumps, _is_restored, _random_start  # noqa: PLW0603 - one a process
    is_first = _detector[0] != generation()
    if is_first:
        _detector = generation(), RestoreDetector()
    verdict = _detector[1].check() if is_first or not only_first else Verdict.SAME
    if verdict is Verdict.RESTORED:
        start_generation()
    elif verdict is Verdict.MAYBE:
        _clock_jumps, _is_restored, _random_start = _clock_jumps + 1, True, (-1, 0)
    return generation(), _clock_jumps


if hasattr(os, "register_at_fork"):
    # Seen before a fork and after it, so that a child knows it of its parent, and one that is restored of itself.
    os.register_at_fork(before=is_restored, after_in_child=is_restored)


def _preferred_index(numbers: int) -> int:
    """Return which of so many node numbers comes first; a copy has its original's identity, and so begins anywhere."""
    return int.from_bytes(kernel_random(8) if is_restored() else host_id()[:8], "big") % numbers


def leased(size: int) -> range:
    """Return which node numbers of a layout with ``size`` of them the registry leases."""
    return range(size - size // LOCKED)


def locked(size: int) -> range:
    """Return which node numbers are held by locks where there is no registry; none of a layout with few."""
    return range(leased(size).stop, size)


def unlocked(asked: range, size: int) -> Sequence[range]:
    """Return what the registry leases of the node numbers that were asked for, of a layout with ``size`` of them."""
    return _without_ends(asked, size, len(locked(size)))


def unlocked_fragments(asked: range) -> Sequence[range]:
    """As :func:`unlocked` for locality."""
    return _without_ends(asked, MAC_FRAGMENTS, LOCKED_FRAGMENTS)


def _without_ends(asked: range, size: int, end: int) -> Sequence[range]:
    """Return the parts of a range, where of each ``size`` numbers the last ``end`` are left out."""
    starts = range(asked.start - asked.start % size, asked.stop, size)
    parts = (range(max(asked.start, start), min(asked.stop, start + size - end)) for start in starts)
    return [part for part in parts if part]


def blocks(size: int) -> Sequence[range]:
    """The node numbers to lease, in the order to try them: this registry's own, its block, then all that it leases."""
    numbers = leased(size)
    if len(numbers) <= BLOCK:
        return [numbers]
    own = _preferred_index(len(numbers) // BLOCK * BLOCK)
    start = own // BLOCK * BLOCK
    return [range(own, own + 1), range(start, start + BLOCK), numbers]


def all_fragments(origin: int) -> range:
    """locality's node numbers of the process id that ``origin`` tells, with any MAC fragment."""
    first = origin // MAC_FRAGMENTS * MAC_FRAGMENTS
    return range(first, first + MAC_FRAGMENTS)


def fragments(origin: int) -> Sequence[range]:
    """As :func:`blocks` for locality: ``origin`` itself, then the other fragments that are leased."""
    numbers = all_fragments(origin)[:-LOCKED_FRAGMENTS]
    if is_restored():
        origin = numbers[_preferred_index(len(numbers))]
    return [range(origin, origin + 1), numbers] if origin in numbers else [numbers]


def locked_fragments(origin: int) -> range:
    """As :func:`locked` for locality."""
    return all_fragments(origin)[-LOCKED_FRAGMENTS:]


_random_start = -1, 0


def first_index() -> int:
    """Return where a process begins: drawn, as nothing tells two containers, or copies of a machine, apart for sure."""
    global _random_start  # noqa: PLW0603 - one a generation
    if _random_start[0] != generation():
        _random_start = generation(), int.from_bytes(kernel_random(8), "big")
    return _random_start[1]
