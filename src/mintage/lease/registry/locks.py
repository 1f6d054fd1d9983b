"""Node numbers that locks hold, for processes that cannot write the registry."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

from mintage import rules
from mintage._core import generation, kernel_random, monotonic_s, sha3_256, system_ns
from mintage.errors import GenerationError, LeaseError, UniquenessWarning
from mintage.lease.lease_client import MIN_GROWTH_MS, Window
from mintage.lease.registry import ADVICE, TRANSIENT_ERRNOS, as_unavailable, shown_home, warn
from mintage.lease.registry.numbers import first_index, is_restored, restore_state
from mintage.platform import files
from mintage.process.forks import fork_lock

FIRST_SPAN_MS: Final = 100
"""The first window of a locked number in milliseconds, and so the time that a process wastes if it is killed soon. Each
extension doubles it."""
LOCK_SPAN_MS: Final = 1_000
"""The longest window in milliseconds for a generator that is not ahead of its clock."""
UNRECORDED_MS: Final = 500
"""The longest window in milliseconds without a file: the next holder of the number waits this long."""

_FOLDERS: Final = files.lock_directories()
_TRIES: Final = 4096


class _Lock(NamedTuple):
    """A file or socket that holds a number while a process has it open."""

    descriptor: int
    device: int
    inode: int
    has_time: bool
    """True for a file, which keeps the first unused time; False for a socket."""

    def is_intact(self) -> bool:
        """Return True if the descriptor is open, which a daemon may have closed, and the file has a name."""
        found = self._found()
        return found is not None and found.st_nlink > 0

    def write(self, until_ms: int) -> None:
        """Write the first unused time, if this is a file.

        :raises OSError: the file is not writable, or the lock is lost.
        """
        if self.has_time:
            if not self.is_intact():
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            files.write_at_start(self.descriptor, _record(until_ms))

    def close(self) -> None:
        """Release the lock, unless the descriptor belongs to another file now."""
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
    """A node number that this process holds, and its window."""

    restore_state: tuple[int, int]
    """The value of :func:`restore_state` when the number was taken."""
    serial: int
    node: int
    name: str
    locks: Sequence[_Lock]
    floor_ms: int
    until_ms: int
    """The time in the files, which is written before the generator mints up to it. Without a window it is the floor."""
    span_ms: int
    """The length of the last extension in milliseconds."""

    @property
    def generation(self) -> int:
        """The generation in which a generator of this process took it."""
        return self.restore_state[0]

    def has_file(self) -> bool:
        """Return True if a file keeps this window for the next holder."""
        return any(lock.has_time for lock in self.locks)


class LockedNode:
    """A node number without a registry. Locks hold it if possible; otherwise it is random.

    The process locks the number in every available place. So two processes have different numbers if they share one of
    the places: the network namespace (for all users), ``/dev/shm`` or ``/tmp`` (for one user). Locks end with the
    process.

    A number is leased as from a store, and its files are the records. Each file keeps the first unused time, which is
    written before use; the next holder begins there. So neither the end of the process nor its clock can make two
    windows overlap. A generator at the end of its window extends it in its own thread, in a few microseconds, without
    the keeper.
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
        """Return the generator's time in milliseconds since the Unix epoch.

        :raises LeaseError: ``lease.clock``: it is far from the system's; the difference would be wasted time.
        """
        system_ms = system_ns() // 1_000_000
        if self._clock is None:
            return system_ms
        now_ms = self._clock() // 1_000_000
        rules.check_clock(now_ms, system_ms)
        return now_ms

    def window(self, max_wait_ms: int) -> Window:
        """Return a window that has not ended by the generator's clock, as :meth:`LeaseClient.window` does.

        ``max_wait_ms`` is the longest wait in milliseconds.

        :raises LeaseError: ``lease.none_free``: running processes hold all numbers, or minted ahead of this clock;
            ``lease.clock``.
        :raises StoreError: ``store.unavailable``: no file descriptors are left, or a file is not writable.
        :raises GenerationError: ``generator.closed``.
        """
        deadline = monotonic_s() + max_wait_ms / 1000
        while True:
            # Compute this before the clock is read: on a machine that stalls, its time may be old afterwards.
            left_s = deadline - monotonic_s()
            # A custom clock may fork this process, so read it before any other state.
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
        # Assign the result once, at the end: other threads and forked children must not see a partial state.
        if self._closed:
            raise GenerationError("the generator is closed; create a new one", code="generator.closed")
        held = self._held
        if held is not None:
            is_lost = now_ms >= held.until_ms and self._is_lost(held)
            # A child has its parent's locks open too: the number comes free when both have closed them.
            if is_lost or held.generation != generation():
                self._release_number()
                held = None
        if held is None:
            held = self._held = self._choose(now_ms)
        if now_ms < held.until_ms == held.floor_ms:
            left = held.floor_ms - now_ms
            raise LeaseError(
                f"node {held.node} is held by a lock that remembers no times: its holder before may have minted "
                f"for {left} ms from now; wait {left} ms",
                code="lease.none_free",
                retry_after_ms=left,
            )
        if now_ms >= held.until_ms:
            held = self._extend(held, now_ms, LOCK_SPAN_MS)
        due_ms = held.until_ms - self._next_span_ms(held, self._span_ms) + MIN_GROWTH_MS
        return held.serial, held.node, held.floor_ms, held.until_ms, due_ms

    def grow(self, until_ms: int, _max_wait_ms: int) -> None:
        """Extend the window that ends at ``until_ms``, for a generator that is ahead of its clock.

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
        """Return True if another process may have the number: its locks are gone, or this process is a copy."""
        return restore_state() != held.restore_state or not all(lock.is_intact() for lock in held.locks)

    def _next_span_ms(self, held: _Held, most_ms: int) -> int:
        # A process that has minted for long is likely to continue; one that is killed soon wastes a short window.
        return min(2 * held.span_ms, most_ms if held.has_file() else UNRECORDED_MS)

    def _extend(self, held: _Held, now_ms: int, most_ms: int) -> _Held:
        """Write a later end of the window to the files, then use it."""
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
        """Release the number. The next holder may start at ``used_until_ms``. A child releases only its own number."""
        with fork_lock():
            self._closed = True
            self._release_number(used_until_ms)

    def abandon(self, used_until_ms: int) -> None:
        """Release the number of a generator that was garbage-collected, without the fork lock."""
        self._release_number(used_until_ms)

    def _release_number(self, used_until_ms: int | None = None) -> None:
        """Release the number. The next window begins at ``used_until_ms``, or at the end of this one if it is None."""
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
                # If the clock did not go back, the previous holder has minted no later than this.
                floor_ms = now_ms + UNRECORDED_MS
            serial = next(self._serials)
            held = _Held(state, serial, node, name, locks, floor_ms, floor_ms, FIRST_SPAN_MS // 2)
            try:
                fallback = _describe_fallback(held, len(numbers))
                warn(f"mintage cannot write its registry in {shown_home()}: {fallback}; {ADVICE}")
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
        """Lock a number in all available places; return the first unused time, and the locks.

        :raises BlockingIOError: another process has one of the locks, or a file has no valid time.
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
"""The first time that this process has not used, by the name of the number."""
_holders: dict[str, int] = {}
"""The generation in which a generator of this process took the number, by its name."""


def _free(name: str, locks: Sequence[_Lock], of_generation: int) -> None:
    for lock in locks:
        lock.close()
    # In a child, another generator may have the parent's number.
    if _holders.get(name) == of_generation:
        del _holders[name]


BY_FILE: Final = "held by a lock instead, which other users, containers and hosts do not see"


def may_lock_files() -> bool:
    """Return True if this process may lock files that keep times, as far as the rights say. It creates none."""
    own = [(folder, files.own_directory(folder)) for folder in _FOLDERS]
    return any(os.access(path if os.path.lexists(path) else folder, os.W_OK | os.X_OK) for folder, path in own)


def _describe_fallback(held: _Held, numbers: int) -> str:
    if held.has_file():
        return f"node {held.node} is {BY_FILE}"
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
    """Yield the numbers in the order to try them; first those with files, to create few files."""
    start = first_index()
    # All copies of a process would find the same files, so a copy begins anywhere.
    known = set() if is_restored() else _known(pool, numbers)
    ordered, at = sorted(known), start % max(1, len(known))
    yield from ordered[at:]
    yield from ordered[:at]
    for each in range(min(len(numbers), _TRIES)):
        node = numbers[(start + each) % len(numbers)]
        if node not in known:
            yield node


def _known(pool: str, numbers: range) -> set[int]:
    """Return the numbers with a file."""
    found = set()
    for folder in _FOLDERS:
        with suppress(OSError):
            for name in os.listdir(files.own_directory(folder)):
                number = name.removeprefix(f"{pool}-").removesuffix(".lock")
                if name == f"{pool}-{number}.lock" and rules.is_number(number, 14):
                    found.add(int(number))
    return {node for node in found if node in numbers}


def _places(name: str) -> Iterator[tuple[Callable[[], int], bool]]:
    """Yield the function that locks a number in each place, and True if that place keeps the time."""
    yield lambda: _bound(name), False
    for folder in _FOLDERS:
        yield lambda folder=folder: _flocked(folder, name), True  # type: ignore[misc]


def _bound(name: str) -> int:
    """Lock a name that all users of a network namespace share.

    :raises BlockingIOError: another process has the lock.
    :raises OSError: the system has no such names.
    """
    if len(name) > 90:  # a name has 107 bytes at most
        name = f"#{sha3_256(name.encode()).hex()}"
    return files.lock_name(f"mintage/{name}")


def _flocked(folder: str, name: str) -> int:
    """Lock a file in a directory of this user.

    :raises BlockingIOError: another process has the lock; or the file cannot be opened, so its time is unknown.
    """
    path = os.path.join(files.create_own_directory(folder), f"{name}.lock")
    file = _open(path) or files.create_filled(path, _record(0), kernel_random(8).hex()) or _open(path)
    if file is None:
        raise BlockingIOError(errno.EWOULDBLOCK, "it comes and goes", path)
    try:
        files.lock(file)
    except OSError:
        os.close(file)
        raise
    return file


def _open(path: str) -> int | None:
    """Open the file of a number; ``None`` if there is none."""
    try:
        return files.open_existing(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in TRANSIENT_ERRNOS:
            raise
        raise BlockingIOError(error.errno, "its time cannot be read", path) from error


def _record(until_ms: int) -> bytes:
    return b"%016d\n" % until_ms


def _read(file: int) -> int:
    """Return the first unused time that a number's file keeps.

    :raises BlockingIOError: it has no valid time, or another user wrote it, so the number must not be used.
    """
    found = os.fstat(file)
    text = files.read_at_start(file, 18) if stat.S_ISREG(found.st_mode) and found.st_uid == files.user_id() else b""
    if not (len(text) == 17 and text[:16].isdigit() and text.endswith(b"\n")):
        raise BlockingIOError(errno.EINVAL, "it keeps no time")
    return int(text)
