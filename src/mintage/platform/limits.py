"""Promises that are weaker on this system than on Linux, and the mechanisms that are missing."""

from __future__ import annotations

import sys
from typing import Final, NamedTuple


class Limit(NamedTuple):
    """A mechanism that a system lacks."""

    about: str
    """The mechanism in a word or two."""
    instead: str
    """The mechanism that is used in its place."""
    weaker: str
    """The case in which the promise is weaker."""


_RAW_FORKS: Final = Limit(
    "forks",
    "handlers of the C library detect forks",
    "a process that C code forks by the system call itself may repeat IDs of its parent",
)
_OLDER_COPIES: Final = Limit(
    "older copies",
    "marks are in each process and beside the SQLite file, and in neither shared memory nor an attribute",
    "an older copy of a whole directory is noticed only by processes that used the file before",
)
_LOCKS: Final = Limit(
    "locks",
    "files in a directory of each user lock node numbers where the registry cannot be written",
    "two users of one host do not see each other's locks",
)
_RESTORES: Final = Limit(
    "restores",
    "the clocks, and the id of the boot where there is one, detect restores from a snapshot",
    "a copy is noticed by a jump of a clock, so after the next check, and a copy whose clock was kept is not",
)
_OF_SYSTEM: Final[dict[str, tuple[Limit, ...]]] = {
    "linux": (),
    "darwin": (_RAW_FORKS, _OLDER_COPIES, _LOCKS, _RESTORES),
    "win32": (_OLDER_COPIES, _LOCKS, _RESTORES),
}


def limits(system: str = sys.platform) -> tuple[Limit, ...]:
    """Return the limits of a system, named as in ``sys.platform``; an unknown system has those of macOS.

    >>> limits("linux")
    ()
    >>> [limit.about for limit in limits("win32")]
    ['older copies', 'locks', 'restores']
    """
    return _OF_SYSTEM.get(system, _OF_SYSTEM["darwin"])
