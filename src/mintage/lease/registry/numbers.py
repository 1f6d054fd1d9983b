"""The split of node numbers between the registry and the locks, and the order in which a process tries them.

A new process tries the first number of its block, then the rest of the block, then all numbers that are leased.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from mintage._core import generation, kernel_random, sha3_256, start_generation
from mintage._core.formats import MAC_FRAGMENTS
from mintage.lease import registry
from mintage.platform import files, machine
from mintage.process.restore import RestoreDetector, Verdict

if TYPE_CHECKING:
    from mintage.store import Store

BLOCK: Final = 32
"""The size of the block of node numbers that a registry tries first."""
LOCKED: Final = 8
"""One of this many node numbers is reserved for locks; a smaller layout has none for them."""
LOCKED_FRAGMENTS: Final = 2**20
"""The number of locality's 2^28 MAC fragments beside a process id that are reserved for locks."""


def host_id() -> bytes:
    """Return the id of this registry: a hash of host, user and directory."""
    where = registry.shown_home()
    try:
        found = os.stat(where)
    except OSError:
        place = ""
    else:
        place = f"{found.st_dev}:{found.st_ino}"  # with mounts, one path may name several directories
    # Containers of one image share a machine-id, but seldom a host name.
    told = "\n".join([machine.machine_id(), machine.host_name(), str(files.user_id()), where, place])
    return sha3_256(os.fsencode(told))  # a directory need not be UTF-8


_last_seen = os.getpid(), generation()
_is_restored = False


def is_restored() -> bool:
    """Return True if this process or an ancestor was restored from a snapshot, so that copies of it may run."""
    global _last_seen, _is_restored  # noqa: PLW0603 - one a process
    now = os.getpid(), generation()
    # A forked child has another process id.
    _is_restored |= now[0] == _last_seen[0] and now[1] != _last_seen[1]
    _last_seen = now
    return _is_restored


_detector = -1, RestoreDetector()
_clock_jumps = 0


def restore_state(*, only_first: bool = False) -> tuple[int, int]:
    """Return a value that changes when this process is found to be restored, or perhaps restored, from a snapshot.

    After a certain restore all generators start over, as after :func:`mintage.after_restore`. The first call of a
    process checks for a restore; later calls check unless ``only_first`` is True.
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
    # Check before and after a fork: a child must know a restore of its parent, and a restored child its own.
    os.register_at_fork(before=is_restored, after_in_child=is_restored)


def _preferred_index(numbers: int) -> int:
    """Return the index of the node number to try first. A copy has its original's host id, so its index is random."""
    return int.from_bytes(kernel_random(8) if is_restored() else host_id()[:8], "big") % numbers


def leased(size: int) -> range:
    """Return the node numbers that the registry leases, of a layout with ``size`` of them.

    >>> leased(1024)
    range(0, 896)
    """
    return range(size - size // LOCKED)


def locked(size: int) -> range:
    """Return the node numbers that are reserved for locks; none if the layout has few.

    >>> locked(1024), locked(4)
    (range(896, 1024), range(4, 4))
    """
    return range(leased(size).stop, size)


def unlocked(asked: range, size: int, locked: int) -> list[range]:
    """Return the requested node numbers that the registry leases: all but the last ``locked`` of each ``size``.

    >>> unlocked(range(890, 1030), 1024, 128)
    [range(890, 896), range(1024, 1030)]
    """
    starts = range(asked.start - asked.start % size, asked.stop, size)
    parts = (range(max(asked.start, start), min(asked.stop, start + size - locked)) for start in starts)
    return [part for part in parts if part]


def blocks(size: int) -> list[range]:
    """Return the ranges of node numbers to try: the registry's first number, its block, then all that it leases.

    >>> blocks(1024)[-1]
    range(0, 896)
    """
    numbers = leased(size)
    if len(numbers) <= BLOCK:
        return [numbers]
    own = _preferred_index(len(numbers) // BLOCK * BLOCK)
    start = own // BLOCK * BLOCK
    return [range(own, own + 1), range(start, start + BLOCK), numbers]


def all_fragments(origin: int) -> range:
    """Return locality's node numbers with the process id of ``origin`` and any MAC fragment.

    >>> all_fragments(5)
    range(0, 268435456)
    """
    first = origin // MAC_FRAGMENTS * MAC_FRAGMENTS
    return range(first, first + MAC_FRAGMENTS)


def fragments(origin: int) -> list[range]:
    """Return the ranges to try for locality: ``origin`` itself, then the other fragments that are leased.

    >>> fragments(5)
    [range(5, 6), range(0, 267386880)]
    """
    numbers = all_fragments(origin)[:-LOCKED_FRAGMENTS]
    if is_restored():
        origin = numbers[_preferred_index(len(numbers))]
    return [range(origin, origin + 1), numbers] if origin in numbers else [numbers]


def locked_fragments(origin: int) -> range:
    """Return the node numbers of locality that are reserved for locks.

    >>> locked_fragments(5)
    range(267386880, 268435456)
    """
    return all_fragments(origin)[-LOCKED_FRAGMENTS:]


def is_left_to_locks(store: Store, layout: str, size: int, node: int) -> bool:
    """Return True if the store is the registry of this machine, and leaves a node number of a layout to locks.

    :param size: the number of node numbers of the layout; 0 if it is not known.
    """
    own = locked_fragments(node) if layout == "locality" else locked(size)
    return node in own and registry.is_registry(store)


_random_start = -1, 0


def first_index() -> int:
    """Return a random start index, as nothing reliably tells two containers or copies of a machine apart."""
    global _random_start  # noqa: PLW0603 - one a generation
    if _random_start[0] != generation():
        _random_start = generation(), int.from_bytes(kernel_random(8), "big")
    return _random_start[1]
