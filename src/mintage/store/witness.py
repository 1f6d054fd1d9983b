"""What is known of an SQLite store from outside its file: who uses it now, and how far it had come.

An older copy that takes a file's place brings along all that is in the file, so nothing in it can show that it went
back. So each verb counts in the file, and what it counted to is remembered in three places: in this process, in a file
beside the store's, and in memory that the user's processes share until the machine restarts. No copy overwrites all of
them at once.

The file beside, which ends with ``-guard``, is locked during each verb as well. SQLite's own locks are those of POSIX,
and a process loses them when any part of it opens and closes the store's file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import stat
import time
import zlib
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mintage._core import clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Mark", "Marks", "Witness", "link_new", "place_of", "watched"]

_SHARED: Final = Path("/dev/shm")  # noqa: S108 - only a folder that is this user's own
_ENDING: Final = "-guard"
_SIZE: Final = 512
"""Bytes of marks: one sector, written at once."""
_MOST: Final = 1000
"""How many stores are remembered in memory; those that were used last."""
_SHORTAGE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)


class Mark(NamedTuple):
    """How far a file had come: its incarnation, and how often it was written in it and those before."""

    incarnation: str
    serial: int
    moved: int = 0
    """How many integers namespaces had moved on."""


class Marks(NamedTuple):
    """What is remembered of a file."""

    with_log: Mark
    """The file with its log."""
    without_log: Mark | None
    """The file without its log, where that is known: an older file beside this log lacks it."""
    place: str
    """Where the file was: see :func:`place_of`."""


_remembered: dict[str, Marks] = {}


def place_of(path: str) -> str | None:
    """Device and inode of the file; ``None`` where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return f"{found.st_dev}:{found.st_ino}"


class Witness:
    """The places that remember a file, while its guard is locked."""

    def __init__(self, path: str, guard: int | None) -> None:
        self._path = path
        self._guard = guard
        self._shared = _open_shared(hashlib.sha256(os.fsencode(path)).hexdigest()[:32])

    @property
    def is_known(self) -> bool:
        """True if this process has used a file at this path."""
        return self._path in _remembered

    def recall(self, place: str) -> set[Marks]:
        """Return what is remembered of the file that is at this place now; the places may differ.

        What the guard remembers is of this very directory. All else goes by the path, of which there may be two files:
        what containers that share their memory call by one name are two, at two places.
        """
        beside, shared = (_read(file) for file in (self._guard, self._shared))
        if beside is not None:
            beside = beside._replace(place=place)
        return {each for each in (beside, shared, _remembered.get(self._path)) if each is not None}

    def keep(self, marks: Marks) -> None:
        """Remember how far the file has come, in all places.

        Called after the commit: what is remembered may fall behind the file in a crash, never get ahead of it.
        """
        _remembered.pop(self._path, None)
        _remembered[self._path] = marks
        while len(_remembered) > _MOST:
            _remembered.pop(next(iter(_remembered)), None)
        for file in (self._guard, self._shared):
            if file is not None and _read(file) != marks:
                _write(file, marks)

    def follow(self) -> None:
        """Let the guard be opened by all who may open the store's file."""
        if self._guard is not None:
            _follow(self._guard, self._path)

    def close(self) -> None:
        """Unlock the guard, in a child that was forked meanwhile too."""
        for file in (self._guard, self._shared):
            if file is not None:
                with suppress(OSError, ImportError):
                    import fcntl

                    fcntl.flock(file, fcntl.LOCK_UN)
                with suppress(OSError):
                    os.close(file)


@contextmanager
def watched(path: str, timeout_ms: int) -> Iterator[Witness]:
    """A witness of the file at ``path``, whose guard nobody else has meanwhile.

    Where no guard can be had, as in a directory that is not there, SQLite's own locks and the other places remain.

    :raises TimeoutError: another had it for longer than ``timeout_ms``.
    :raises OSError: no file descriptors or memory are left.
    """
    witness = Witness(path, _lock(f"{path}{_ENDING}", timeout_ms))
    try:
        yield witness
    finally:
        witness.close()


def _lock(path: str, timeout_ms: int) -> int | None:
    end_ns = _now_ns() + timeout_ms * 1_000_000
    while True:
        try:
            file = _open_or_make(path)
        except OSError as error:
            if error.errno in _SHORTAGE:
                raise
            return None
        try:
            found = os.fstat(file)
            is_ours = stat.S_ISREG(found.st_mode) and found.st_nlink <= 1  # or somebody else's, by whatever name
            if is_ours:
                _wait_for(file, end_ns)
                if _is_at(path, found):
                    return file  # One that was removed meanwhile keeps nobody away.
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        if not is_ours:
            return None


def _open_or_make(path: str) -> int:
    """Open the guard; make it first where there is none, with the mode that the store's file has."""
    with suppress(FileNotFoundError):
        return os.open(path, os.O_RDWR | _NOFOLLOW)
    # Another user who found it closed would use the store without it.
    with suppress(AttributeError, OSError):
        link_new(path, lambda file: _follow(file, path.removesuffix(_ENDING)))
    return os.open(path, os.O_RDWR | os.O_CREAT | _NOFOLLOW, 0o644)


def link_new(path: str, prepare: Callable[[int], object]) -> None:
    """Make an empty file that appears when it is prepared, with its mode and owner; nothing where there is one.

    :raises OSError: it cannot be made, or not in this way on this file system.
    :raises AttributeError: nor on this system, which is not Linux.
    """
    directory, name = os.path.split(path)
    folder = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        file = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o644)
        try:
            prepare(file)
            # With descriptors of directories, link follows the symbolic link to the file without a name.
            with suppress(FileExistsError):
                os.link(f"/proc/self/fd/{file}", name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(file)
    finally:
        os.close(folder)


def _follow(file: int, path: str) -> None:
    """Let a file be opened by all who may open the store's file at ``path``, as SQLite does with its log."""
    with suppress(AttributeError, OSError):
        guard, store = os.fstat(file), os.stat(path)
        if os.geteuid() == 0 and (guard.st_uid, guard.st_gid) != (store.st_uid, store.st_gid):
            os.fchown(file, store.st_uid, store.st_gid)
        if stat.S_IMODE(guard.st_mode) != (mode := store.st_mode & 0o666):
            os.fchmod(file, mode)


def _is_at(path: str, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, os.stat(path))
    except OSError:
        return False


def _wait_for(file: int, end_ns: int) -> None:
    """:raises TimeoutError: another had it until then."""
    for attempt in count():
        if _flock(file):
            return
        if _now_ns() >= end_ns:
            raise TimeoutError
        # Full jitter, and never long: a verb takes milliseconds.
        time.sleep(random.uniform(0, 0.0002 * 2 ** min(attempt, 4)))  # noqa: S311


def _now_ns() -> int:
    return clocks()[1]


def _flock(file: int) -> bool:
    """Return whether nobody else has the file; true where it cannot be locked.

    A lock of this kind belongs to the open file, so nobody loses it by closing another.
    """
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True


def _open_shared(name: str) -> int | None:
    """Return a file in memory, in a folder of this user's own."""
    try:
        own = _SHARED / f"mintage-{os.geteuid()}"
        own.mkdir(mode=0o700, exist_ok=True)
        found = own.lstat()
        # Anybody may have put it there, or a link.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return None
        path = own / f"{name}.marks"
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDWR | _NOFOLLOW)
        _forget_oldest(own)
        return os.open(path, os.O_RDWR | os.O_CREAT | _NOFOLLOW, 0o600)
    except (AttributeError, OSError):
        return None


def _forget_oldest(own: Path) -> None:
    found = [entry for entry in os.scandir(own) if entry.name.endswith(".marks")]
    if len(found) < _MOST:
        return
    with suppress(OSError):
        for entry in sorted(found, key=lambda entry: entry.stat().st_mtime_ns)[: _MOST // 2]:
            os.unlink(entry)


def _read(file: int | None) -> Marks | None:
    """Return the marks in a file; ``None`` where there are none, or a power failure left half of them."""
    if file is None:
        return None
    try:
        line, _, _ = os.pread(file, _SIZE, 0).partition(b"\n")
        check, _, text = line.partition(b" ")
        if int(check, 16) != zlib.crc32(text):
            return None
        with_log, without_log, place = json.loads(text)
        return Marks(Mark(*with_log), Mark(*without_log) if without_log else None, place)
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _write(file: int, marks: Marks) -> None:
    text = json.dumps(marks).encode()
    line = b"%08x %s\n" % (zlib.crc32(text), text)
    try:
        os.pwrite(file, line.ljust(_SIZE), 0)
    except (AttributeError, OSError):
        # Better nothing than what is outdated: a incarnation that ended would count as lost each time.
        with suppress(OSError):
            os.ftruncate(file, 0)
