"""Marks outside an SQLite store's file, which detect an older copy; and the lock of the file.

If an older copy replaces a file, nothing in the file can show that it went back. So each verb that writes adds to a
counter in the file, and keeps a mark of it in four places: in this process, in an attribute of the file, in a file
beside the store's, and in memory that the user's processes share until the machine restarts. No copy overwrites all
four at once.

The attribute stays when an older copy is written over the file and its guard, and every user and container sees it. A
copy may bring its own attribute, so each write gives the attribute another name, which no older copy has.

The file beside the store's, whose name ends with ``-guard``, is also locked during each verb. SQLite's own locks are
POSIX locks, which a process loses when any part of it opens and closes the store's file. The marks in shared memory are
locked as well, as a copy of a directory replaces the guard during a verb. Each process that used the store
locks a second file in shared memory until it ends: a store's file that is made meanwhile replaces one that was removed.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from io import FileIO
from itertools import count
from typing import Final

from mintage._core import clocks, sha3_256
from mintage.platform import files
from mintage.process import jitter

_SHARED: Final = files.shared_memory()
_ENDING: Final = "-guard"
_ATTRIBUTE: Final = "user.mintage."
_MARKS_BYTES: Final = 512
"""The size of a file of marks in bytes: one sector, which is written at once."""
_MOST: Final = 1000
"""The number of stores whose marks stay in memory; the last used ones are kept."""
_MOST_USED: Final = 50
"""The number of stores that a process shows to others as in use: those it used last. Each takes a file descriptor."""
_SHORTAGE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class Mark:
    """The state of a file: its incarnation, and the number of writes in it and those before."""

    incarnation: str
    serial: int
    moved: int = 0
    """The number of integers by which namespaces had moved."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of a file."""

    with_log: Mark
    """The file with its log."""
    without_log: Mark | None
    """The file without its log, if known. An older file beside the same log lacks these writes."""
    place: str
    """The place of the file: see :func:`place_of`."""
    origin: str = ""
    """The name of the file's first incarnation, which all its copies have."""
    root: str = ""
    """The root of the process that kept the marks: see :func:`mintage.platform.machine.root_id`."""


class _Use:
    """An open file whose shared lock shows other processes that this one uses a store.

    It stays open, so the lock ends with this process and all its children.
    """

    def __init__(self, file: FileIO) -> None:
        # The lock belongs to the opening, and lasts as long as a descriptor of it.
        self._file = os.dup(file.fileno())
        self._found = os.fstat(self._file)

    def _status(self) -> os.stat_result | None:
        # A program may close unknown descriptors; then the number may belong to another file.
        with suppress(OSError):
            status = os.fstat(self._file)
            return status if os.path.samestat(status, self._found) else None
        return None

    def show(self) -> bool:
        """Lock the file, which another process may have tried just now; return False if it is closed or removed."""
        status = self._status()
        if status is None or not status.st_nlink:
            return False
        with suppress(OSError):
            files.lock_shared(self._file)
        return True

    def close(self) -> None:
        """Close the file."""
        if self._status() is not None:
            os.close(self._file)


_remembered: dict[str, Marks] = {}
_used: dict[str, _Use] = {}
"""The stores that this process used last, by path."""


def place_of(path: str) -> str | None:
    """Return the device and inode of the file; ``None`` if it is missing."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return f"{found.st_dev}:{found.st_ino}"


class Witness:
    """The places that keep the marks of a file, while its guard is locked."""

    def __init__(self, path: str, guard: FileIO | None) -> None:
        self._path = path
        self._guard = guard
        self._shared: FileIO | None = None
        self._attributes: dict[str, bytes] = {}

    def lock_shared(self, end_ns: int) -> None:
        """Open and lock the marks in shared memory, if there is any.

        :raises TimeoutError: another process had the lock until ``end_ns``.
        """
        while (file := _open_shared(self._path, "marks")) is not None:
            self._shared = file
            _wait_for(file, end_ns)
            if os.fstat(file.fileno()).st_nlink:
                return
            file.close()  # Marks that were removed meanwhile lock out nobody.
            self._shared = None

    @property
    def is_in_use(self) -> bool:
        """True if this process, or another one of this user that still runs, has used a file at this path."""
        if self._path in _remembered:
            return True
        file = _open_shared(self._path, "users")
        if file is None:
            return False
        with file:
            return not _flock(file)

    @property
    def has_guard(self) -> bool:
        """True if the locked guard is still at its path, or if there is none."""
        return self._guard is None or _is_at(f"{self._path}{_ENDING}", os.fstat(self._guard.fileno()))

    def read_marks(self, place: str) -> set[Marks]:
        """Return the marks of the file that is at this place now. Their places may differ.

        The guard is in the file's directory, so its marks belong to this file, as those of an attribute do. The other
        marks belong to the path, which may name two files: containers that share memory may have different files at one
        path. Their roots differ.
        """
        self._attributes = files.attributes(self._path, _ATTRIBUTE)
        of_file = {_read(self._guard), *map(_parse, self._attributes.values())}
        of_path = {_read(self._shared), _remembered.get(self._path)}
        return {replace(each, place=place) for each in of_file if each} | {each for each in of_path if each}

    def write_marks(self, marks: Marks) -> None:
        """Keep the marks in all places.

        Call it after the commit: after a crash, the marks may be behind the file, but never ahead of it.
        """
        _remembered.pop(self._path, None)
        _remembered[self._path] = marks
        while len(_remembered) > _MOST:
            _remembered.pop(next(iter(_remembered)), None)
        for file in (self._guard, self._shared):
            if file is not None and _read(file) != marks:
                _write(file, marks)
        self._show_use()
        name, line = f"{_ATTRIBUTE}{marks.with_log.serial}", _line(marks)
        if self._attributes != {name: line}:
            files.replace_attributes(self._path, self._attributes, name, line)

    def _show_use(self) -> None:
        used = _used.pop(self._path, None)
        if used is None or not used.show():
            if used is not None:
                used.close()
            file = _open_shared(self._path, "users")
            if file is None:
                return
            with file:
                used = _Use(file)
            used.show()
        _used[self._path] = used
        while len(_used) > _MOST_USED:
            _used.pop(next(iter(_used))).close()

    def copy_mode(self) -> None:
        """Give the guard the owner and mode of the store's file."""
        if self._guard is not None:
            files.copy_access(self._guard.fileno(), self._path)

    def close(self) -> None:
        """Unlock the guard and the marks in shared memory, also in a child that was forked meanwhile."""
        for file in (self._guard, self._shared):
            if file is not None:
                with suppress(OSError):
                    files.unlock(file.fileno())
                file.close()


@contextmanager
def watched(path: str, timeout_ms: int) -> Iterator[Witness]:
    """Yield a witness of the file at ``path`` while this process has locked the guard and the marks in shared memory.

    Without a guard, as in a missing directory, SQLite's own locks and the other places remain.

    :raises TimeoutError: another process had the lock for longer than ``timeout_ms``.
    :raises OSError: no file descriptors or memory are left.
    """
    end_ns = _now_ns() + timeout_ms * 1_000_000
    witness = Witness(path, _lock(f"{path}{_ENDING}", end_ns))
    try:
        witness.lock_shared(end_ns)
        yield witness
    finally:
        witness.close()


# Locked files are objects, not descriptors: an exception at any instruction, as of a signal's handler, drops and so
# closes them, and that unlocks them.
def _lock(path: str, end_ns: int) -> FileIO | None:
    while True:
        try:
            file = _open_or_make(path)
        except OSError as error:
            if error.errno in _SHORTAGE:
                raise
            return None
        try:
            found = os.fstat(file.fileno())
            is_ours = stat.S_ISREG(found.st_mode) and found.st_nlink <= 1  # otherwise another user put it there
            if is_ours:
                _wait_for(file, end_ns)
                if _is_at(path, found):
                    return file  # A guard that was removed meanwhile locks out nobody.
        except BaseException:
            file.close()
            raise
        file.close()
        if not is_ours:
            return None


def _open_or_make(path: str) -> FileIO:
    """Open the guard; create a missing one with the mode of the store's file."""
    with suppress(FileNotFoundError):
        return FileIO(files.open_existing(path), "r+")
    # A process of another user that may not open the guard would use the store without it.
    with suppress(OSError):
        files.create_prepared(path, lambda file: files.copy_access(file, path.removesuffix(_ENDING)))
    return FileIO(files.open_or_create(path, 0o644), "r+")


def _is_at(path: str, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, os.stat(path))
    except OSError:
        return False


def _wait_for(file: FileIO, end_ns: int) -> None:
    """Wait for the lock until ``end_ns``.

    :raises TimeoutError: another process had the lock until then.
    """
    for attempt in count():
        if _flock(file):
            return
        if _now_ns() >= end_ns:
            raise TimeoutError
        # Full jitter with short waits, as a verb takes milliseconds.
        time.sleep(jitter.uniform(0, 0.0002 * 2 ** min(attempt, 4)))


def _now_ns() -> int:
    return clocks()[1]


def _flock(file: FileIO) -> bool:
    """Lock the file; return False if another process has the lock, and True if the file cannot be locked at all.

    A lock of this kind belongs to the open file, so a process does not lose it by closing another one.
    """
    try:
        files.lock(file.fileno())
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _open_shared(store: str, kind: str) -> FileIO | None:
    """Return a store's open file in shared memory, in a directory of this user; ``None`` if there is none."""
    if _SHARED is None:
        return None
    try:
        own = files.create_own_directory(_SHARED)
        path = f"{own}/{sha3_256(os.fsencode(store)).hex()[:32]}.{kind}"
        with suppress(FileNotFoundError):
            return FileIO(files.open_existing(path), "r+")
        _forget_oldest(own)
        return FileIO(files.open_or_create(path, 0o600), "r+")
    except OSError:
        return None


def _forget_oldest(own: str) -> None:
    found = [entry for entry in os.scandir(own) if entry.name.endswith(".marks")]
    if len(found) < _MOST:
        return
    with suppress(OSError):
        for entry in sorted(found, key=lambda entry: entry.stat().st_mtime_ns)[: _MOST // 2]:
            users = f"{entry.path.removesuffix('marks')}users"
            with suppress(FileNotFoundError), FileIO(files.open_existing(users), "r+") as file:
                if not _flock(file):
                    continue  # A running process uses this store.
                os.unlink(users)
            os.unlink(entry)


def _read(file: FileIO | None) -> Marks | None:
    """Return the marks in a file; ``None`` if it has none, or if a power failure left half of them."""
    if file is None:
        return None
    try:
        return _parse(files.read_at_start(file.fileno(), _MARKS_BYTES))
    except OSError:
        return None


def _parse(content: bytes) -> Marks | None:
    try:
        line, _, _ = content.partition(b"\n")
        check, _, text = line.partition(b" ")
        if check != _check(text):
            return None
        values = text.decode().split("\t")
        with_log, without_log = (_parse_mark(*values[at : at + 3]) for at in (0, 3))
        return Marks(with_log, without_log, *values[6:]) if with_log else None
    except (ValueError, TypeError):
        return None


def _parse_mark(incarnation: str, serial: str, moved: str) -> Mark | None:
    return Mark(incarnation, int(serial), int(moved)) if incarnation else None


def _check(text: bytes) -> bytes:
    return sha3_256(text).hex()[:16].encode()


def _values(mark: Mark | None) -> list[str]:
    return [str(value) for value in asdict(mark).values()] if mark else ["", "", ""]


def _line(marks: Marks) -> bytes:
    values = [*_values(marks.with_log), *_values(marks.without_log), marks.place, marks.origin, marks.root]
    text = "\t".join(values).encode()
    return b"%s %s\n" % (_check(text), text)


def _write(file: FileIO, marks: Marks) -> None:
    try:
        files.write_at_start(file.fileno(), _line(marks).ljust(_MARKS_BYTES))
    except OSError:
        # Write no mark rather than an outdated one: an incarnation that ended would count as lost each time.
        with suppress(OSError):
            os.ftruncate(file.fileno(), 0)
