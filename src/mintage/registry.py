"""The machine-local registry: where processes of one host agree when no store is named.

It is an SQLite file: in ``MINTAGE_HOME``, else in :data:`MACHINE` where root has made that for all users, else in the
user's state directory. Registries do not know of each other, whether of two users or of two hosts; so that they at
least start apart, each begins with a block of node numbers that a hash of host, user and directory chooses.

Where the file cannot be made or opened for writing, a node number is held by locks: no two living processes of the
host share it, and the locked files say where its next holder begins. Those numbers are the last of a layout, which the
registry never leases, so a process with a lock meets none with a lease. Where no lock can be had either, it is drawn at
random from these. Both warn. Nothing else falls back: a registry that is busy is waited for, and one that is full,
broken or newer than this mintage is an error.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import stat
import sys
import time
import warnings
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from mintage import lease as rules
from mintage._core import generation as epoch
from mintage._core import kernel_random, system_ns
from mintage._core import start_generation as start_epoch
from mintage._core.formats import MAC_FRAGMENTS
from mintage.errors import ConfigError, GenerationError, LeaseError, StoreError, UniquenessWarning
from mintage.forks import quiet
from mintage.signs import Verdict, Watch
from mintage.tenancy import WORTH_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mintage.store import Store
    from mintage.tenancy import Window

__all__ = [
    "BLOCK",
    "MACHINE",
    "LockedNode",
    "all_fragments",
    "blocks",
    "fragments",
    "home",
    "is_it",
    "is_outsider",
    "is_writable",
    "leased",
    "locked",
    "locked_fragments",
    "prepare",
    "unlocked",
    "unlocked_fragments",
    "url",
    "warn_outsider",
]

BLOCK: Final = 32
"""How many node numbers a registry tries before any other."""
LOCKED: Final = 8
"""Of so many node numbers one is for locks; a layout with fewer has none for them."""
LOCKED_FRAGMENTS: Final = 2**20
"""locality: of the 2^28 MAC fragments beside a process id, so many are for locks."""
MACHINE: Final = Path("/var/lib/mintage-registry")
"""The registry of all users of a machine: used where root owns it and this process may write it."""

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
#: What gets better by waiting, and says nothing about a directory.
_PASSING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ENOLCK, errno.EINTR})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_ADVICE: Final = "set MINTAGE_HOME to a directory that can be written, or MINTAGE_STORE to a store"


# --- where it is ----------------------------------------------------------------------------------------------------


def home() -> Path:
    """Return the directory of the registry: ``MINTAGE_HOME``, or the machine's, or the user's.

    :raises ConfigError: ``config.home``: ``MINTAGE_HOME`` is not an absolute path.
    :raises StoreError: ``store.refused``: nobody knows this user's home directory.
    """
    if chosen := os.environ.get("MINTAGE_HOME"):
        if not os.path.isabs(chosen):
            raise ConfigError(
                f"MINTAGE_HOME {chosen!r} is not an absolute path: it would be another directory in each working "
                "directory",
                code="config.home",
            )
        return Path(chosen)
    if _is_for_all_users() and _may_write(MACHINE):
        return MACHINE
    if sys.platform == "darwin":
        return _user() / "Library" / "Application Support" / "mintage"
    if sys.platform == "win32":
        return (_absolute("LOCALAPPDATA") or _user()) / "mintage"
    return (_absolute("XDG_STATE_HOME") or _user() / ".local" / "state") / "mintage"


def is_outsider() -> bool:
    """Return whether there is a registry of the machine that this process was not told to leave, and may not write."""
    return not os.environ.get("MINTAGE_HOME") and _is_for_all_users() and not _may_write(MACHINE)


def warn_outsider() -> None:
    """Warn a process that is not in the registry of the machine."""
    if is_outsider():
        _warn(
            f"the registry of all users of this machine is in {MACHINE}, which this process may not write: it has "
            "another, and IDs of the two may be equal; add the user to the directory's group"
        )


def _absolute(variable: str) -> Path | None:
    """A directory that the environment names; one that is relative counts as none, as the XDG specification says."""
    value = os.environ.get(variable, "")
    return Path(value) if os.path.isabs(value) else None


def _user() -> Path:
    if sys.platform == "win32":
        return Path.home()
    if named := _absolute("HOME"):
        return named
    import pwd

    try:
        return Path("/", pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError as error:
        raise StoreError(f"user {os.geteuid()} has no home directory: {_ADVICE}", code="store.refused") from error


def _is_for_all_users() -> bool:
    try:
        found = os.lstat(MACHINE)
    except OSError:
        return False
    # What anybody may write, anybody may replace.
    return stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and not found.st_mode & stat.S_IWOTH


def _may_write(path: Path) -> bool:
    mode = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _file() -> Path:
    return home() / "registry.db"


def url() -> str:
    """Return the registry's store URL."""
    return f"sqlite:///{quote(str(_file()))}"


def is_it(store: Store) -> bool:
    """Return whether a store that was named is the registry."""
    try:
        return getattr(store, "path", None) == _file()
    except (ConfigError, StoreError):
        return False


# --- whether it can be used -----------------------------------------------------------------------------------------


def prepare() -> None:
    """Make the registry's directory; and the machine's file, for all who may write there.

    :raises StoreError: ``store.refused``; ``store.unavailable`` where that may get better by waiting.
    :raises ConfigError: ``config.home``.
    """
    directory = home()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if directory == MACHINE:
            _make_file(directory)
    except OSError as error:
        if error.errno in _PASSING | _FULL:
            raise _passing(error) from error
        raise StoreError(f"this machine's registry cannot be made: {error}: {_ADVICE}", code="store.refused") from error


def _make_file(directory: Path) -> None:
    """Make the file that SQLite would make for its user alone: at no moment is it there and closed to the others."""
    from mintage.store.witness import link_new

    if not (directory / "registry.db").exists():
        link_new(str(directory / "registry.db"), lambda file: os.fchmod(file, 0o660))  # whatever the umask


def is_writable() -> bool:
    """Return whether the registry's file can be made and opened for writing, which no waiting changes.

    One that others hold or make, full, broken or of a newer mintage is: what is wrong with it, its first verb says.

    :raises StoreError: ``store.unavailable``: this process has no file descriptors or memory left to find out.
    :raises ConfigError: ``config.home``.
    """
    from mintage.store import open_store
    from mintage.store.sqlite import DENIED

    try:
        prepare()
        # One that is busy does not say whether it could be written.
        if not _may_write(home()) or (_file().exists() and not _may_write(_file())):
            return False
        with open_store(f"{url()}?timeout_ms=1") as store:
            store.now_ms()
    except StoreError as error:
        if error.code == "store.unavailable" and isinstance(error.__cause__, OSError):
            raise
        denied = isinstance(error.__cause__, (OSError, KeyError))
        if error.code == "store.refused" and getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF in DENIED:
            # SQLite says the same where there are no descriptors left, or no room for another file.
            _check_room()
            denied = True
        return not denied
    return True


def _check_room() -> None:
    found: list[int] = []
    try:
        while len(found) < 4:  # as many as SQLite needs
            found.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        if sys.platform == "linux":
            found.append(os.open(home(), os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno in _PASSING | _FULL:
            raise _passing(error) from error
    finally:
        for each in found:
            os.close(each)


def _passing(error: OSError) -> StoreError:
    return StoreError(
        f"this machine's registry cannot be opened now: {error}: try again",
        code="store.unavailable",
        retry_after_ms=1000,
    )


# --- which node numbers ---------------------------------------------------------------------------------------------


def identity() -> bytes:
    """Return what tells this registry from others: host, user and directory."""
    try:
        machine = Path("/etc/machine-id").read_bytes().decode(errors="replace").strip()
    except OSError:
        machine = ""
    where = _shown_home()
    try:
        found = os.stat(where)
    except OSError:
        place = ""
    else:
        place = f"{found.st_dev}:{found.st_ino}"  # of mounts, one path may be many directories
    # Containers of one image have one machine-id, but seldom one name.
    return hashlib.sha256("\n".join([machine, socket.gethostname(), str(_uid()), where, place]).encode()).digest()


def _uid() -> int:
    return os.geteuid() if sys.platform != "win32" else 0


def _shown_home() -> str:
    try:
        return str(home())
    except (ConfigError, StoreError):
        return "a home directory"


_seen = os.getpid(), epoch()
_is_copy = False


def _was_copied() -> bool:
    """Whether this process, or one that it comes from, was restored from a snapshot: then so may another have been."""
    global _seen, _is_copy  # noqa: PLW0603 - one a process
    now = os.getpid(), epoch()
    # A child has a process id of its own.
    _is_copy |= now[0] == _seen[0] and now[1] != _seen[1]
    _seen = now
    return _is_copy


_watch = -1, Watch()
_jumps = 0


def _copies(*, only_first: bool = False) -> tuple[int, int]:
    """Return a value that changes each time that this process is found to be a copy, or to be one perhaps.

    In one that was restored for certain all generators start over, as after :func:`mintage.after_restore`. Looks for
    that if this process never did, or else unless ``only_first``.
    """
    global _watch, _jumps, _is_copy, _drawn  # noqa: PLW0603 - one a process
    is_first = _watch[0] != epoch()
    if is_first:
        _watch = epoch(), Watch()
    verdict = _watch[1].look() if is_first or not only_first else Verdict.SAME
    if verdict is Verdict.RESTORED:
        start_epoch()
    elif verdict is Verdict.MAYBE:
        _jumps, _is_copy, _drawn = _jumps + 1, True, (-1, 0)
    return epoch(), _jumps


if hasattr(os, "register_at_fork"):
    # Seen before a fork and after it, so that a child knows it of its parent, and one that is restored of itself.
    os.register_at_fork(before=_was_copied, after_in_child=_was_copied)


def _own(numbers: int) -> int:
    """Return which of so many node numbers comes first; a copy has its original's identity, and so begins anywhere."""
    return int.from_bytes(kernel_random(8) if _was_copied() else identity()[:8], "big") % numbers


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
    own = _own(len(numbers) // BLOCK * BLOCK)
    start = own // BLOCK * BLOCK
    return [range(own, own + 1), range(start, start + BLOCK), numbers]


def all_fragments(origin: int) -> range:
    """locality's node numbers of the process id that ``origin`` tells, with any MAC fragment."""
    first = origin // MAC_FRAGMENTS * MAC_FRAGMENTS
    return range(first, first + MAC_FRAGMENTS)


def fragments(origin: int) -> Sequence[range]:
    """As :func:`blocks` for locality: ``origin`` itself, then the other fragments that are leased."""
    numbers = all_fragments(origin)[:-LOCKED_FRAGMENTS]
    if _was_copied():
        origin = numbers[_own(len(numbers))]
    return [range(origin, origin + 1), numbers] if origin in numbers else [numbers]


def locked_fragments(origin: int) -> range:
    """As :func:`locked` for locality."""
    return all_fragments(origin)[-LOCKED_FRAGMENTS:]


# --- a node number without a registry -------------------------------------------------------------------------------


class _Lock(NamedTuple):
    """A file or socket that holds a number while any process has it open."""

    descriptor: int
    device: int
    inode: int
    has_time: bool
    """True if it is a file, which keeps the first unused time."""

    def is_there(self) -> bool:
        """Return whether it is open still, which a daemon may have closed, and the file is where others find it."""
        found = self._found()
        return found is not None and found.st_nlink > 0

    def write(self, until_ms: int) -> None:
        """Write the first unused time, if this is a file.

        :raises OSError: it cannot be written, or is not ours any more.
        """
        if self.has_time:
            if not self.is_there():
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

    copies: tuple[int, int]
    """What :func:`_copies` returned."""
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
    def epoch(self) -> int:
        """The epoch that it is held in."""
        return self.copies[0]

    def remembers(self) -> bool:
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
        """Return a window that the generator's clock is not at the end of, as :meth:`Tenancy.window` does.

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
            with quiet():
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
            raise GenerationError("it is closed: make a new one", code="generator.closed")
        held = self._held
        if held is not None:
            is_lost = now_ms >= held.until_ms and self._is_lost(held)
            # A child has its parent's locks open as well: the number is free when both have closed it.
            if is_lost or held.epoch != epoch():
                self._let_go()
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
        due_ms = held.until_ms - self._next_span_ms(held, self._span_ms) + WORTH_MS
        return held.serial, held.node, held.floor_ms, held.until_ms, due_ms

    def grow(self, until_ms: int, _max_wait_ms: int) -> None:
        """Extend a window that ends at ``until_ms`` for a generator that ran ahead of its clock.

        :raises MintError: as :meth:`window`.
        """
        now_ms = self._now_ms()
        with quiet():
            held = self._held
            if held is None or held.epoch != epoch() or held.until_ms > until_ms:
                return
            if self._is_lost(held):
                self._let_go()
            else:
                self._extend(held, now_ms, self._span_ms)

    def _is_lost(self, held: _Held) -> bool:
        """Return whether the number may be another's: its locks are gone, or this process is a copy."""
        return _copies() != held.copies or not all(lock.is_there() for lock in held.locks)

    def _next_span_ms(self, held: _Held, most_ms: int) -> int:
        # One that has minted for long is likely to go on; one that is killed at once leaves a short window behind.
        return min(2 * held.span_ms, most_ms if held.remembers() else UNRECORDED_MS)

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
            raise _passing(error) from error
        _untils[held.name] = until_ms
        self._held = held = held._replace(until_ms=until_ms, span_ms=span_ms)
        return held

    def release(self, used_until_ms: int) -> None:
        """Let the number go: the next holder may start at ``used_until_ms``. In a child, only its own."""
        with quiet():
            self._closed = True
            self._let_go(used_until_ms)

    def abandon(self, used_until_ms: int) -> None:
        """As :meth:`release`, for a generator that is gone. Takes no lock."""
        self._let_go(used_until_ms)

    def _let_go(self, used_until_ms: int | None = None) -> None:
        """Let the number go, which begins for the next holder where its window ends, or where its use is known to."""
        held, self._held = self._held, None
        if held is None:
            return
        if used_until_ms is not None and held.epoch == epoch():
            first_ms = min(held.until_ms, max(held.floor_ms, used_until_ms))
            _untils[held.name] = first_ms
            for lock in held.locks:
                with suppress(OSError):
                    lock.write(first_ms)
        _free(held.name, held.locks, held.epoch)

    def _choose(self, now_ms: int) -> _Held:
        numbers = self._nodes()
        ahead_ms: list[int] = []
        copies = _copies(only_first=True)
        for node in _order(self._pool, numbers):
            name = f"{self._pool}-{node}"
            try:
                floor_ms, locks = self._hold(node)
            except BlockingIOError:
                continue
            if floor_ms > now_ms:
                _free(name, locks, copies[0])
                ahead_ms.append(floor_ms - now_ms)
                continue
            if locks and not any(lock.has_time for lock in locks):
                # Where the clock did not go back, its holder before has minted no further than this.
                floor_ms = now_ms + UNRECORDED_MS
            serial = next(self._serials)
            held = _Held(copies, serial, node, name, locks, floor_ms, floor_ms, FIRST_SPAN_MS // 2)
            try:
                _warn(
                    f"mintage cannot write its registry in {_shown_home()}: {_at_stake(held, len(numbers))}; {_ADVICE}",
                    5,
                )
            except UniquenessWarning:
                _free(held.name, locks, held.epoch)
                raise
            return held
        why = "living processes hold"
        if ahead_ms:
            why = f"living processes hold, or minted with for {min(ahead_ms)} ms from now or longer,"
        raise LeaseError(
            f"mintage cannot write its registry in {_shown_home()}, and {why} all {len(numbers)} node numbers of pool "
            f"{self._pool!r} that are for locks: {_ADVICE}",
            code="lease.none_free",
            retry_after_ms=min(ahead_ms, default=None),
        )

    def _hold(self, node: int) -> tuple[int, list[_Lock]]:
        """Lock a number in all places that can be had; return the first time that may be unused, and the locks.

        :raises BlockingIOError: it is held by another in one of them, or one does not say since when it is unused.
        """
        name = f"{self._pool}-{node}"
        if _holders.get(name) == epoch():
            raise BlockingIOError(errno.EWOULDBLOCK, "held by another generator")
        _holders[name] = epoch()
        until_ms = _untils.get(name, 0)
        locks: list[_Lock] = []
        try:
            for take, has_time in _places(name):
                try:
                    descriptor = take()
                except BlockingIOError:
                    raise
                except (ImportError, OSError) as error:
                    if getattr(error, "errno", None) in _PASSING:
                        raise _passing(error) from error  # type: ignore[arg-type]
                    continue
                found = os.fstat(descriptor)
                locks.append(_Lock(descriptor, found.st_dev, found.st_ino, has_time))
                if has_time:
                    until_ms = max(until_ms, _read(descriptor))
        except BaseException:
            _free(name, locks, epoch())
            raise
        return until_ms, locks


_untils: dict[str, int] = {}
"""By the name of a number: the first time that this process is not known to have minted in with it."""
_holders: dict[str, int] = {}
"""By the name of a number: the epoch in which a generator of this process holds it."""


def _free(name: str, locks: Sequence[_Lock], of_epoch: int) -> None:
    for lock in locks:
        lock.close()
    # What a parent held may be another generator's here.
    if _holders.get(name) == of_epoch:
        del _holders[name]


def _at_stake(held: _Held, numbers: int) -> str:
    if held.remembers():
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
    start = _start()
    # A copy finds the files of what it was copied from, as all of its copies do.
    known = set() if _was_copied() else _known(pool, numbers)
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


_drawn = -1, 0


def _start() -> int:
    """Return where a process begins: drawn, as nothing tells two containers, or copies of a machine, apart for sure."""
    global _drawn  # noqa: PLW0603 - one an epoch
    if _drawn[0] != epoch():
        _drawn = epoch(), int.from_bytes(kernel_random(8), "big")
    return _drawn[1]


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
    return Path(folder, f"mintage-{_uid()}")


def _flocked(folder: Path, name: str) -> int:
    """Lock a file in a folder of this user's own.

    :raises BlockingIOError: another has it; or it is there, but cannot be opened, so that nobody knows what it says.
    """
    import fcntl

    own = _own_folder(folder)
    own.mkdir(mode=0o700, exist_ok=True)
    found = own.lstat()
    # Anybody may have put it there, or a link.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != _uid():
        raise PermissionError(errno.EPERM, "another user's", str(own))
    path = own / f"{name}.lock"
    file = _opened(path) or _made(path) or _opened(path)
    if file is None:
        raise BlockingIOError(errno.EWOULDBLOCK, "it comes and goes", str(path))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _opened(path: Path) -> int | None:
    """Open a number's file; ``None`` where there is none."""
    try:
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _PASSING:
            raise
        raise BlockingIOError(error.errno, "its time cannot be read", str(path)) from error


def _made(path: Path) -> int | None:
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
    text = os.pread(file, 18, 0) if stat.S_ISREG(found.st_mode) and found.st_uid == _uid() else b""
    if not _RECORD.fullmatch(text):
        raise BlockingIOError(errno.EINVAL, "it keeps no time")
    return int(text)


def _warn(text: str, stacklevel: int = 4) -> None:
    # At the line that mints or makes the generator: callers here, then the core, which has no frame.
    warnings.warn(text, UniquenessWarning, stacklevel=stacklevel)
