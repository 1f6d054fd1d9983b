"""A node number that locks hold, where this process cannot write the registry."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import stat
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mintage import rules
from mintage._core import kernel_random, system_ns
from mintage.errors import GenerationError, LeaseError, UniquenessWarning
from mintage.lease.lease_client import MIN_GROWTH_MS
from mintage.lease.registry.numbers import first_index, is_restored, restore_state
from mintage.lease.registry.place import ADVICE, TRANSIENT_ERRNOS, as_unavailable, shown_home, uid, warn
from mintage.process.forks import fork_lock
from mintage.process.generation import generation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mintage.lease.lease_client import Window

__all__ = ["LockedNode"]

FIRST_SPAN_MS: Final = 100
"""How far ahead of use a locked number's files are written at first, and so what a process that is killed soon costs of
the number's time; twice as far each time."""
LOCK_SPAN_MS: Final = 1_000
"""How far at most, for a generator that is not ahead of its clock."""
UNRECORDED_MS: Final = 500
"""How far at most where no file can be had: a number's next holder waits for so long."""

_FOLDERS: Final = ("/dev/shm", "/tmp")  # noqa: S108 - whatever TMPDIR says, and only a folder that is this user's own
_TRIES: Final = 4096
_RECORD: Final = re.compile(rb"[0-9]{16}\n")


class _Lock(NamedTuple):
    """A file or socket that holds a number while any process has it open."""

    descriptor: int
    device: int
    inode: int
    has_time: bool
    """True if it is a file, which keeps the first unused time."""

    def is_intact(self) -> bool:
        """Return whether it is open still, which a daemon may have closed, and the file is where others find it."""
        found = self._found()
        return found is not None and found.st_nlink > 0

    def write(self, until_ms: int) -> None:
        """Write the first unused time, if this is a file.

        :raises OSError: it cannot be written, or is not ours any more.
        """
        if self.has_time:
            if not self.is_intact():
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            os.pwrite(self.descriptor, _record(until_ms), 0)

    def close(self) -> None:
        """Let go, unless the descriptor is another's meanwhile."""
        if self._found() is not None:
            with suppress(OSError):
                os.close(self.descriptor)

    def _found(self) -> os.stat_result | None:
        try:
            found = os.fstat(self.descriptor)
        except OSError:
            return None
        return found if (found.st_dev, found.st_ino) == (self.device, self.inode) else None


class _Held(NamedTuple):
    """A number that this process holds, and its window."""

    restore_state: tuple[int, int]
    """What :func:`restore_state` returned."""
    serial: int
    node: int
    name: str
    locks: Sequence[_Lock]
    floor_ms: int
    until_ms: int
    """What the files say: written before anything is minted up to it. The floor while there is no window yet."""
    span_ms: int
    """How far the last extension went."""

    @property
    def generation(self) -> int:
        """The generation in which a generator of this process took it."""
        return self.restore_state[0]

    def has_file(self) -> bool:
        """Return whether the next holder will know this window."""
        return any(lock.has_time for lock in self.locks)


class LockedNode:
    """A node number without a registry: held by locks where that is possible, else drawn at random.

    It is held in every place that can be had, so two processes share no number if they share any of the places: the
    network namespace (for all users), ``/dev/shm`` and ``/tmp`` (for one user). Locks end with the process.

    A number is leased as from a store: its files are the records. Each keeps the first time that may not have been
    minted in, which is written ahead of use; the next holder begins there. So neither the end of the process nor its
    clock can make a window begin twice. A generator that comes to the end of its window extends it in its own thread,
    in some microseconds: no keeper has to.
    """

    def __init__(
        self,
        pool: str,
        nodes: Callable[[], range],
        *,
        span_ms: int = rules.SPAN_MS,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._pool = pool
        self._nodes = nodes
        self._span_ms = span_ms
        self._clock = clock
        self._held: _Held | None = None
        self._serials = count(1)
        self._closed = False

    def _now_ms(self) -> int:
        """Return the generator's time.

        :raises LeaseError: ``lease.clock``: it is far from the system's, and would burn a number for as long.
        """
        system_ms = system_ns() // 1_000_000
        if self._clock is None:
            return system_ms
        now_ms = self._clock() // 1_000_000
        rules.check_clock(now_ms, system_ms)
        return now_ms

    def window(self, max_wait_ms: int) -> Window:
        """Return a window that the generator's clock is not at the end of, as :meth:`LeaseClient.window` does.

        :raises LeaseError: ``lease.none_free``: living processes hold all numbers, or minted ahead of this clock;
            ``lease.clock``.
        :raises StoreError: ``store.unavailable``: no file descriptors are left, or a file cannot be written.
        :raises GenerationError: ``generator.closed``.
        """
        deadline = time.monotonic() + max_wait_ms / 1000
        while True:
            # Before the clock is read: what it said may be old when there is an answer, on a machine that stalls.
            left_s = deadline - time.monotonic()
            # A clock of the user's own may fork this process: all else is looked at after it was read.
            now_ms = self._now_ms()
            with fork_lock():
                try:
                    return self._open_window(now_ms)
                except LeaseError as error:
                    refusal = error
            wait_s = (refusal.retry_after_ms or 0) / 1000
            if not wait_s or wait_s > left_s:
                raise refusal
            time.sleep(wait_s)

    def _open_window(self, now_ms: int) -> Window:
        # Published as a whole, when all is decided: other threads and forked children see none of it before.
        if self._closed:
            raise GenerationError("the generator is closed; create a new one", code="generator.closed")
        held = self._held
        if held is not None:
            is_lost = now_ms >= held.until_ms and self._is_lost(held)
            # A child has its parent's locks open as well: the number is free when both have closed it.
            if is_lost or held.generation != generation():
                self._release_number()
                held = None
        if held is None:
            held = self._held = self._choose(now_ms)
        if now_ms < held.until_ms == held.floor_ms:
            left = held.floor_ms - now_ms
            raise LeaseError(
                f"node {held.node} is held by a lock that remembers no times: its holder before may have minted "
                f"for {left} ms from now",
                code="lease.none_free",
                retry_after_ms=left,
            )
        if now_ms >= held.until_ms:
            held = self._extend(held, now_ms, LOCK_SPAN_MS)
        due_ms = held.until_ms - self._next_span_ms(held, self._span_ms) + MIN_GROWTH_MS
        return held.serial, held.node, held.floor_ms, held.until_ms, due_ms

    def grow(self, until_ms: int, _max_wait_ms: int) -> None:
        """Extend a window that ends at ``until_ms`` for a generator that ran ahead of its clock.

        :raises MintError: as :meth:`window`.
        """
        now_ms = self._now_ms()
        with fork_lock():
            held = self._held
            if held is None or held.generation != generation() or held.until_ms > until_ms:
                return
            if self._is_lost(held):
                self._release_number()
            else:
                self._extend(held, now_ms, self._span_ms)

    def _is_lost(self, held: _Held) -> bool:
        """Return whether the number may be another's: its locks are gone, or this process is a copy."""
        return restore_state() != held.restore_state or not all(lock.is_intact() for lock in held.locks)

    def _next_span_ms(self, held: _Held, most_ms: int) -> int:
        # One that has minted for long is likely to go on; one that is killed at once leaves a short window behind.
        return min(2 * held.span_ms, most_ms if held.has_file() else UNRECORDED_MS)

    def _extend(self, held: _Held, now_ms: int, most_ms: int) -> _Held:
        """Write a later end of the window down, then open it.

        :raises StoreError: ``store.unavailable``: it cannot be written.
        """
        span_ms = self._next_span_ms(held, most_ms)
        until_ms = max(held.until_ms, now_ms + span_ms)
        try:
            for lock in held.locks:
                lock.write(until_ms)
        except OSError as error:
            raise as_unavailable(error) from error
        _untils[held.name] = until_ms
        self._held = held = held._replace(until_ms=until_ms, span_ms=span_ms)
        return held

    def release(self, used_until_ms: int) -> None:
        """Let the number go: the next holder may start at ``used_until_ms``. In a child, only its own."""
        with fork_lock():
            self._closed = True
            self._release_number(used_until_ms)

    def abandon(self, used_until_ms: int) -> None:
        """As :meth:`release`, for a generator that is gone. Takes no lock."""
        self._release_number(used_until_ms)

    def _release_number(self, used_until_ms: int | None = None) -> None:
        """Let the number go, which begins for the next holder where its window ends, or where its use is known to."""
        held, self._held = self._held, None
        if held is None:
            return
        if used_until_ms is not None and held.generation == generation():
            first_ms = min(held.until_ms, max(held.floor_ms, used_until_ms))
            _untils[held.name] = first_ms
            for lock in held.locks:
                with suppress(OSError):
                    lock.write(first_ms)
        _free(held.name, held.locks, held.generation)

    def _choose(self, now_ms: int) -> _Held:
        numbers = self._nodes()
        ahead_ms: list[int] = []
        state = restore_state(only_first=True)
        for node in _order(self._pool, numbers):
            name = f"{self._pool}-{node}"
            try:
                floor_ms, locks = self._hold(node)
            except BlockingIOError:
                continue
            if floor_ms > now_ms:
                _free(name, locks, state[0])
                ahead_ms.append(floor_ms - now_ms)
                continue
            if locks and not any(lock.has_time for lock in locks):
                # Where the clock did not go back, its holder before has minted no further than this.
                floor_ms = now_ms + UNRECORDED_MS
            serial = next(self._serials)
            held = _Held(state, serial, node, name, locks, floor_ms, floor_ms, FIRST_SPAN_MS // 2)
            try:
                fallback = _describe_fallback(held, len(numbers))
                warn(f"mintage cannot write its registry in {shown_home()}: {fallback}; {ADVICE}", 5)
            except UniquenessWarning:
                _free(held.name, locks, held.generation)
                raise
            return held
        why = "living processes hold"
        if ahead_ms:
            why = f"living processes hold, or minted with for {min(ahead_ms)} ms from now or longer,"
        raise LeaseError(
            f"mintage cannot write its registry in {shown_home()}, and {why} all {len(numbers)} node numbers of pool "
            f"{self._pool!r} that are for locks: {ADVICE}",
            code="lease.none_free",
            retry_after_ms=min(ahead_ms, default=None),
        )

    def _hold(self, node: int) -> tuple[int, list[_Lock]]:
        """Lock a number in all places that can be had; return the first time that may be unused, and the locks.

        :raises BlockingIOError: it is held by another in one of them, or one does not say since when it is unused.
        """
        name = f"{self._pool}-{node}"
        if _holders.get(name) == generation():
            raise BlockingIOError(errno.EWOULDBLOCK, "held by another generator")
        _holders[name] = generation()
        until_ms = _untils.get(name, 0)
        locks: list[_Lock] = []
        try:
            for take, has_time in _places(name):
                try:
                    descriptor = take()
                except BlockingIOError:
                    raise
                except (ImportError, OSError) as error:
                    if getattr(error, "errno", None) in TRANSIENT_ERRNOS:
                        raise as_unavailable(error) from error  # type: ignore[arg-type]
                    continue
                found = os.fstat(descriptor)
                locks.append(_Lock(descriptor, found.st_dev, found.st_ino, has_time))
                if has_time:
                    until_ms = max(until_ms, _read(descriptor))
        except BaseException:
            _free(name, locks, generation())
            raise
        return until_ms, locks


_untils: dict[str, int] = {}
"""By the name of a number: the first time that this process is not known to have minted in with it."""
_holders: dict[str, int] = {}
"""By the name of a number: the generation in which a generator of this process holds it."""


def _free(name: str, locks: Sequence[_Lock], of_generation: int) -> None:
    for lock in locks:
        lock.close()
    # What a parent held may be another generator's here.
    if _holders.get(name) == of_generation:
        del _holders[name]


def _describe_fallback(held: _Held, numbers: int) -> str:
    if held.has_file():
        return f"node {held.node} is held by a lock instead, of which other users, containers and hosts know nothing"
    if held.locks:
        return (
            f"node {held.node} is held by a lock instead, and no file remembers its times, so IDs may repeat if the "
            "clock goes back between two processes"
        )
    return (
        f"nor anything to lock: its node number is drawn at random from {numbers}, so two processes may share one and "
        "repeat IDs"
    )


def _order(pool: str, numbers: range) -> Iterator[int]:
    """Yield the numbers in the order to try them: those that have files first, so that no more are made than needed."""
    start = first_index()
    # A copy finds the files of what it was copied from, as all of its copies do.
    known = set() if is_restored() else _known(pool, numbers)
    ordered, at = sorted(known), start % max(1, len(known))
    yield from ordered[at:]
    yield from ordered[:at]
    for each in range(min(len(numbers), _TRIES)):
        node = numbers[(start + each) % len(numbers)]
        if node not in known:
            yield node


def _known(pool: str, numbers: range) -> set[int]:
    """Return the numbers that have a file."""
    pattern = re.compile(re.escape(pool) + r"-([0-9]{1,14})\.lock")
    found = set()
    for folder in _FOLDERS:
        with suppress(OSError):
            found |= {int(match[1]) for name in os.listdir(_own_folder(folder)) if (match := pattern.fullmatch(name))}
    return {node for node in found if node in numbers}


def _places(name: str) -> Iterator[tuple[Callable[[], int], bool]]:
    """Yield what holds a number in each place, and whether it keeps the time."""
    yield lambda: _bound(name), False
    for folder in _FOLDERS:
        yield lambda folder=folder: _flocked(Path(folder), name), True  # type: ignore[misc]


def _bound(name: str) -> int:
    """An abstract socket's name: of all users of a network namespace, in no directory, gone with its last holder."""
    if sys.platform != "linux":
        raise OSError(errno.EOPNOTSUPP, "no abstract sockets")
    if len(name) > 90:  # a socket's name has 107 bytes at most
        name = f"#{hashlib.sha256(name.encode()).hexdigest()}"
    taken = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        taken.bind(f"\0mintage/{name}".encode())
    except OSError as error:
        taken.close()
        if error.errno == errno.EADDRINUSE:
            raise BlockingIOError(error.errno, "held by another") from error
        raise
    return taken.detach()


def _own_folder(folder: str | Path) -> Path:
    return Path(folder, f"mintage-{uid()}")


def _flocked(folder: Path, name: str) -> int:
    """Lock a file in a folder of this user's own.

    :raises BlockingIOError: another has it; or it is there, but cannot be opened, so that nobody knows what it says.
    """
    import fcntl

    own = _own_folder(folder)
    own.mkdir(mode=0o700, exist_ok=True)
    found = own.lstat()
    # Anybody may have put it there, or a link.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid():
        raise PermissionError(errno.EPERM, "another user's", str(own))
    path = own / f"{name}.lock"
    file = _open(path) or _create(path) or _open(path)
    if file is None:
        raise BlockingIOError(errno.EWOULDBLOCK, "it comes and goes", str(path))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _open(path: Path) -> int | None:
    """Open a number's file; ``None`` where there is none."""
    try:
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in TRANSIENT_ERRNOS:
            raise
        raise BlockingIOError(error.errno, "its time cannot be read", str(path)) from error


def _create(path: Path) -> int | None:
    """Make a number's file with a time in it: at no moment is it there without one. ``None`` where another made it."""
    new = path.with_name(f"{path.name}.{kernel_random(8).hex()}")
    file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            os.pwrite(file, _record(0), 0)
            os.link(new, path)
        finally:
            new.unlink()
    except FileExistsError:
        os.close(file)
        return None
    except BaseException:
        os.close(file)
        raise
    return file


def _record(until_ms: int) -> bytes:
    return b"%016d\n" % until_ms


def _read(file: int) -> int:
    """Return the first unused time that a number's file keeps.

    :raises BlockingIOError: it keeps none, or another user wrote it: the number is not to be used.
    """
    found = os.fstat(file)
    text = os.pread(file, 18, 0) if stat.S_ISREG(found.st_mode) and found.st_uid == uid() else b""
    if not _RECORD.fullmatch(text):
        raise BlockingIOError(errno.EINVAL, "it keeps no time")
    return int(text)
