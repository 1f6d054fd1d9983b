"""The machine-local registry: where processes of one host agree when no store is named.

It is an SQLite file: in ``MINTAGE_HOME``, else in :data:`MACHINE` where root has made that for all users, else in the
user's state directory. Registries do not know of each other, whether of two users or of two hosts; so that they at
least start apart, each begins with a block of node numbers that a hash of host, user and directory chooses.

Where the file cannot be made or opened for writing, a node number is held by locks: no two living processes of the host
share it. Those numbers are the last of a layout, which the registry never leases, so a process with a lock meets none
with a lease. Where no lock can be had either, it is drawn at random from these. Both warn. Nothing else falls back: a
registry that is busy is waited for, and one that is full, broken or newer than this mintage is an error.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import stat
import sys
import warnings
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from mintage._core import epoch, kernel_random
from mintage._core.formats import MAC_FRAGMENTS
from mintage.errors import ConfigError, GenerationError, LeaseError, StoreError, UniquenessWarning
from mintage.forks import quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mintage.store import Store

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

_FOLDERS: Final = ("/dev/shm", "/tmp")  # noqa: S108 - whatever TMPDIR says, and only a folder that is this user's own
_TRIES: Final = 4096
#: What gets better by waiting, and says nothing about a directory.
_PASSING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ENOLCK, errno.EINTR})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_ADVICE: Final = "set MINTAGE_HOME to a directory that can be written, or MINTAGE_STORE to a store"


# --- where it is ----------------------------------------------------------------------------------------------------


def home() -> Path:
    """The directory of the registry: ``MINTAGE_HOME``, or the machine's, or the user's.

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
    """Whether there is a registry of the machine that this process was not told to leave, and may not write."""
    return not os.environ.get("MINTAGE_HOME") and _is_for_all_users() and not _may_write(MACHINE)


def warn_outsider() -> None:
    """Warns a process that is not in the registry of the machine."""
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
    """The registry's store URL."""
    return f"sqlite:///{quote(str(_file()))}"


def is_it(store: Store) -> bool:
    """Whether a store that was named is the registry."""
    try:
        return getattr(store, "path", None) == _file()
    except (ConfigError, StoreError):
        return False


# --- whether it can be used -----------------------------------------------------------------------------------------


def prepare() -> None:
    """Makes the registry's directory; and the machine's file, for all who may write there.

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
    """Makes the file that SQLite would make for its user alone: at no moment is it there and closed to the others."""
    if (directory / "registry.db").exists():
        return
    folder = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        file = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o660)
        try:
            os.fchmod(file, 0o660)  # whatever the umask
            with suppress(FileExistsError):
                os.link(f"/proc/self/fd/{file}", "registry.db", src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(file)
    finally:
        os.close(folder)


def is_writable() -> bool:
    """Whether the registry's file can be made and opened for writing, which no waiting changes.

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
    """What tells this registry from others: host, user and directory."""
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


if hasattr(os, "register_at_fork"):
    # Seen before a fork and after it, so that a child knows it of its parent, and one that is restored of itself.
    os.register_at_fork(before=_was_copied, after_in_child=_was_copied)


def _own(numbers: int) -> int:
    """Which of so many node numbers comes first; a copy has its original's identity, and so begins anywhere."""
    return int.from_bytes(kernel_random(8) if _was_copied() else identity()[:8], "big") % numbers


def leased(size: int) -> range:
    """Which node numbers of a layout with ``size`` of them the registry leases."""
    return range(size - size // LOCKED)


def locked(size: int) -> range:
    """Which node numbers are held by locks where there is no registry; none of a layout with few."""
    return range(leased(size).stop, size)


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
    """An open file or socket that holds a number while any process has it open."""

    descriptor: int
    device: int
    inode: int

    def close(self) -> None:
        """Lets go; a descriptor that somebody closed meanwhile, such as a daemon with all of its own, is not ours."""
        with suppress(OSError):
            found = os.fstat(self.descriptor)
            if (found.st_dev, found.st_ino) == (self.device, self.inode):
                os.close(self.descriptor)


class _Seat(NamedTuple):
    epoch: int
    serial: int
    node: int
    locks: Sequence[_Lock]


class LockedNode:
    """A node number without a lease: held by locks where that is possible, else drawn at random.

    It is held in every place that can be had, so two processes share no number if they share any of the places: the
    network namespace (for all users), ``/dev/shm`` and ``/tmp`` (for one user). Locks end with the process.
    """

    def __init__(self, pool: str, nodes: Callable[[], range]) -> None:
        self._pool = pool
        self._nodes = nodes
        self._seat: _Seat | None = None
        self._serials = count(1)
        self._closed = False

    def window(self, _max_wait_ms: int) -> tuple[int, int, None, None, None]:
        """Serial number and node; there is no window.

        :raises LeaseError: ``lease.none_free``: living processes hold all numbers.
        :raises StoreError: ``store.unavailable``: no file descriptors are left.
        :raises GenerationError: ``generator.closed``.
        """
        # Published as a whole, when all is decided: other threads and forked children see none of it before.
        with quiet():
            if self._closed:
                raise GenerationError("it is closed: make a new one", code="generator.closed")
            now, seat = epoch(), self._seat
            if seat is None or seat.epoch != now:
                # A child has its parent's locks open as well: the number is free when both have closed it.
                self._let_go()
                node, locks = self._choose()
                self._seat = seat = _Seat(now, next(self._serials), node, locks)
        return seat.serial, seat.node, None, None, None

    def release(self, _used_until_ms: int) -> None:
        """Lets the number go; in a child, only its own."""
        with quiet():
            self._closed = True
            self._let_go()

    def abandon(self, _used_until_ms: int) -> None:
        """As :meth:`release`, for a generator that is gone. Takes no lock."""
        self._let_go()

    def _let_go(self) -> None:
        seat, self._seat = self._seat, None
        for lock in seat.locks if seat is not None else ():
            lock.close()

    def _choose(self) -> tuple[int, Sequence[_Lock]]:
        numbers = self._nodes()
        first = _own(len(numbers))
        for at in range(min(len(numbers), _TRIES)):
            node = numbers[(first + at) % len(numbers)]
            try:
                locks = self._hold(node)
            except BlockingIOError:
                continue
            why = (
                f"node {node} is held by a lock instead, so IDs may repeat if the clock goes back between two processes"
                if locks
                else f"nor anything to lock: its node number is drawn at random from {len(numbers)}, so two processes "
                "may share one and repeat IDs"
            )
            try:
                _warn(f"mintage cannot write its registry in {_shown_home()}: {why}; {_ADVICE}")
            except UniquenessWarning:
                for lock in locks:
                    lock.close()
                raise
            return (node if locks else numbers[int.from_bytes(kernel_random(8), "big") % len(numbers)]), locks
        raise LeaseError(
            f"mintage cannot write its registry in {_shown_home()}, and living processes hold all {len(numbers)} node "
            f"numbers of pool {self._pool!r} that are for locks: {_ADVICE}",
            code="lease.none_free",
        )

    def _hold(self, node: int) -> list[_Lock]:
        """The locks of a number in all places that can be had.

        :raises BlockingIOError: it is held by another in one of them.
        """
        held: list[_Lock] = []
        try:
            for take in _places(self._pool, node):
                try:
                    descriptor = take()
                except BlockingIOError:
                    raise
                except (ImportError, OSError) as error:
                    if getattr(error, "errno", None) in _PASSING:
                        raise _passing(error) from error  # type: ignore[arg-type]
                    continue
                found = os.fstat(descriptor)
                held.append(_Lock(descriptor, found.st_dev, found.st_ino))
        except BaseException:
            for lock in held:
                lock.close()
            raise
        return held


def _places(pool: str, node: int) -> Iterator[Callable[[], int]]:
    name = f"{pool}-{node}"
    yield lambda: _bound(name)
    for folder in _FOLDERS:
        yield lambda folder=folder: _flocked(Path(folder), name)  # type: ignore[misc]


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


def _flocked(folder: Path, name: str) -> int:
    """A locked file in a folder of this user's own."""
    import fcntl

    own = folder / f"mintage-{_uid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    found = own.lstat()
    # Anybody may have put it there, or a link.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != _uid():
        raise PermissionError(errno.EPERM, "another user's", str(own))
    file = os.open(own / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _warn(text: str) -> None:
    # At the line that mints or makes the generator: two callers here, then the core, which has no frame.
    warnings.warn(text, UniquenessWarning, stacklevel=4)
