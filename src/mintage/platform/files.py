"""Files that a process locks, files that appear complete, and directories of one user."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

_PRIVATE: Final = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
"""The flags that are of no use here to a child, to a link and to a pipe; Windows keeps bytes as they are."""
_LOCKED_AT: Final = 1 << 30
"""The byte that Windows locks. It is behind the content, which others could not read otherwise."""


def open_existing(path: str) -> int:
    """Open a file for reading and writing, and return its descriptor.

    :raises OSError: there is none, or it is a link.
    """
    return os.open(path, os.O_RDWR | _PRIVATE)


def open_or_create(path: str, mode: int) -> int:
    """Open a file for reading and writing, or create it with this mode; return its descriptor.

    :raises OSError: it cannot be opened, or it is a link.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | _PRIVATE, mode)


def read_at_start(file: int, count: int) -> bytes:
    """Return at most ``count`` bytes from the start of an open file.

    :raises OSError: it cannot be read.
    """
    if sys.platform == "win32":
        os.lseek(file, 0, os.SEEK_SET)
        return os.read(file, count)
    return os.pread(file, count, 0)


def write_at_start(file: int, content: bytes) -> None:
    """Overwrite the start of an open file.

    :raises OSError: it cannot be written.
    """
    if sys.platform == "win32":
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, content)
    else:
        os.pwrite(file, content, 0)


def create_full(path: str, size: int) -> None:
    """Create a file of this size to map, unless it exists. On a full disk, a process that writes to a hole is ended.

    :raises OSError: there is no room; the file is empty then.
    """
    with open(open_or_create(path, 0o600), "ab", buffering=0) as file:
        try:
            while file.tell() < size:
                file.write(bytes(size - file.tell()))
        except OSError:
            file.truncate(0)
            raise


def attributes(path: str, prefix: str) -> dict[str, bytes]:
    """Return the attributes of a file whose names begin with ``prefix`` (Linux only).

    The result is empty if the file, or its file system, has none.
    """
    found: dict[str, bytes] = {}
    if sys.platform == "linux":
        with suppress(OSError):
            for name in os.listxattr(path):
                if name.startswith(prefix):
                    found[name] = os.getxattr(path, name)
    return found


def replace_attributes(path: str, old: Iterable[str], name: str, value: bytes) -> None:
    """Give a file one attribute, and then remove the old ones, as far as its file system has any (Linux only)."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setxattr(path, name, value)
        for each in old:
            if each != name:
                with suppress(OSError):
                    os.removexattr(path, each)


def lock(file: int) -> None:
    """Lock an open file without waiting. The lock ends with the last process that has this opening of the file.

    :raises BlockingIOError: another opening of the file has the lock.
    :raises OSError: the file cannot be locked.
    """
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, _LOCKED_AT, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(errno.EWOULDBLOCK, "locked by another") from error
    else:
        _flock(file, "LOCK_EX")


def lock_shared(file: int) -> None:
    """Lock an open file together with others that do so. The lock ends with the last process that has this opening.

    :raises BlockingIOError: another opening of the file has a lock of its own.
    :raises OSError: the file cannot be locked so, as on Windows.
    """
    _flock(file, "LOCK_SH")


def unlock(file: int) -> None:
    """Unlock an open file for all processes that have this opening, such as a child that was forked meanwhile.

    :raises OSError: the file cannot be unlocked.
    """
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, _LOCKED_AT, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
    else:
        _flock(file, "LOCK_UN")


def _flock(file: int, what: str) -> None:
    if sys.platform == "win32":
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    try:
        import fcntl
    except ImportError as error:  # Python may be built without it
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP)) from error
    fcntl.flock(file, getattr(fcntl, what) | fcntl.LOCK_NB)


def lock_name(name: str) -> int:
    """Lock a name that all users of a network namespace share, as an abstract socket; return its descriptor.

    The lock ends with the last process that has the descriptor open.

    :raises BlockingIOError: another process has the lock.
    :raises OSError: the system has no such names (not Linux).
    """
    if sys.platform != "linux":
        raise OSError(errno.EOPNOTSUPP, "no abstract sockets")
    import socket

    taken = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        taken.bind(f"\0{name}".encode())
    except OSError as error:
        taken.close()
        if error.errno == errno.EADDRINUSE:
            raise BlockingIOError(error.errno, "held by another") from error
        raise
    return taken.detach()


def create_prepared(path: str, prepare: Callable[[int], object]) -> None:
    """Create an empty file that appears only after ``prepare`` has set its mode and owner. Keep an existing file.

    :raises OSError: the file system does not allow it, or this system has no files without a name (Linux only).
    """
    if sys.platform != "linux":
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
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


def create_filled(path: str, content: bytes, suffix: str) -> int | None:
    """Create a file with its content at once, and return its descriptor; ``None`` if the file exists.

    :param suffix: what no other process appends to the name meanwhile
    :raises OSError: the file system does not allow it.
    """
    new = f"{path}.{suffix}"
    file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | _PRIVATE, 0o600)
    try:
        if sys.platform == "win32":
            # An open file cannot be renamed or removed, and a rename does not replace a file.
            os.write(file, content)
            os.close(file)
            file = -1
            os.rename(new, path)
            return open_existing(path)
        try:
            os.pwrite(file, content, 0)
            os.link(new, path)
        finally:
            os.unlink(new)
    except FileExistsError:
        _discard(file, new)
        return None
    except BaseException:
        _discard(file, new)
        raise
    return file


def _discard(file: int, path: str) -> None:
    if file >= 0:
        os.close(file)
    with suppress(FileNotFoundError):
        os.unlink(path)


def copy_access(file: int, path: str) -> None:
    """Give an open file the owner and mode of the file at ``path``, as far as this process may."""
    if sys.platform == "win32":
        return  # a file inherits the rights of its directory
    with suppress(OSError):
        found, wanted = os.fstat(file), os.stat(path)
        if os.geteuid() == 0 and (found.st_uid, found.st_gid) != (wanted.st_uid, wanted.st_gid):
            os.fchown(file, wanted.st_uid, wanted.st_gid)
        if stat.S_IMODE(found.st_mode) != (mode := wanted.st_mode & 0o666):
            os.fchmod(file, mode)


def set_mode(file: int, mode: int) -> None:
    """Set the mode of an open file, whatever the umask; Windows has no modes.

    :raises OSError: this process may not do so.
    """
    if sys.platform != "win32":
        os.fchmod(file, mode)


def check_room(directory: str, *, descriptors: int) -> None:
    """Check that this process may open so many files, and that a directory has room for one more (Linux only).

    :raises OSError: it may not, or the directory has none.
    """
    found: list[int] = []
    try:
        while len(found) < descriptors:
            found.append(os.open(os.devnull, os.O_RDONLY | _PRIVATE))
        if sys.platform == "linux":
            found.append(os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600))
    finally:
        for each in found:
            os.close(each)


def absolute(path: str) -> str:
    """Return the absolute path without ``//`` and ``.``; a link may be before ``..``, so that stays.

    >>> absolute("/var//lib/./ids.db")
    '/var/lib/ids.db'
    """
    if not os.path.isabs(path):
        try:
            path = os.path.join(os.getcwd(), path)
        except FileNotFoundError as error:
            raise OSError(error.errno, f"{path}: the working directory was removed: change to another one") from None
    if sys.platform == "win32":
        return os.path.normpath(path)
    return "/" + "/".join(part for part in path.split("/") if part not in {"", "."})


def user_id() -> int:
    """Return the effective user id; 0 on Windows, where a directory of a user has its own rights."""
    if sys.platform == "win32":
        return 0
    return os.geteuid()


def home_of_user() -> str:
    """Return the home directory that the system has for the user of this process, whatever the environment says.

    :raises KeyError: the system does not know this user.
    """
    if sys.platform == "win32":
        return os.path.expanduser("~")
    import pwd

    return os.path.join("/", pwd.getpwuid(os.geteuid()).pw_dir)


def state_directory() -> str | None:
    """Return the directory that the environment names for the state of programs; ``None`` if it names none."""
    if sys.platform == "win32":
        return _absolute("LOCALAPPDATA")
    chosen = _absolute("XDG_STATE_HOME") if sys.platform != "darwin" else None
    home = _absolute("HOME")
    return chosen or (state_in(home) if home else None)


def state_in(home: str) -> str:
    """Return the directory for the state of programs in a home directory."""
    if sys.platform == "win32":
        return os.path.join(home, "AppData", "Local")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support")
    return os.path.join(home, ".local", "state")


def _absolute(variable: str) -> str | None:
    """Return the directory that a variable names; None if the path is relative, as the XDG specification demands."""
    value = os.environ.get(variable, "")
    return value if os.path.isabs(value) else None


def shared_memory() -> str | None:
    """Return the directory of files in memory, which a restart empties; ``None`` if this system has none."""
    return "/dev/shm" if sys.platform == "linux" else None  # noqa: S108 - only a directory of this user in it


def lock_directories() -> tuple[str, ...]:
    """Return the directories in which processes of one user lock files. They do not depend on the environment."""
    if sys.platform == "win32":
        return (os.path.join(home_of_user(), "AppData", "Local", "Temp"),)
    shared = shared_memory()
    return (*([shared] if shared else []), "/tmp")  # noqa: S108 - not TMPDIR, and only a directory of this user


def own_directory(parent: str) -> str:
    """Return the path of this user's directory in a directory of all users."""
    return os.path.join(parent, f"mintage-{user_id()}")


def create_own_directory(parent: str) -> str:
    """Create this user's directory in a directory of all users, and return it.

    :raises PermissionError: another user has created it, or a link.
    :raises OSError: it cannot be created.
    """
    own = own_directory(parent)
    with suppress(FileExistsError):
        os.mkdir(own, 0o700)
    found = os.lstat(own)
    # Windows has no owners here: each status has the user id 0, and so has this process.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user_id():
        raise PermissionError(errno.EPERM, "another user's", own)
    return own
