"""The machine-local registry, by which the processes of a host agree on node numbers if no store is named.

It is an SQLite file: in ``MINTAGE_HOME``, or in :data:`MACHINE` if root has created it for all users, or in
the user's state directory. The registries of two users or hosts do not know each other. To make equal node numbers less
likely, each begins with a block of node numbers that a hash of host, user and directory selects.

If a process cannot create the file or open it for writing, it holds a node number by locks: no two running processes of
the host share the number, and the locked files say where its next holder begins. Those numbers are the last of a
layout, which the registry never leases, so a locked number is never a leased one. Without any lock, the number is a
random one of these. mintage warns in both cases. There is no other fallback: a process waits for a busy registry, and a
registry that is full, damaged or newer than this mintage is an error.
"""

from __future__ import annotations

import errno
import os
import stat
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mintage.errors import ConfigError, StoreError, UniquenessWarning
from mintage.platform import files
from mintage.protocol.url import StoreUrl, quoted

if TYPE_CHECKING:
    from mintage.store import Store

MACHINE: Final = "/var/lib/mintage-registry"
"""The registry of all users of a machine. A process uses it if root owns it and the process may write it."""

#: Errors that may pass, and that tell nothing about a directory.
TRANSIENT_ERRNOS: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ENOLCK, errno.EINTR}
)
FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
ADVICE: Final = "set MINTAGE_HOME to a directory that can be written, or MINTAGE_STORE to a store"


def home() -> str:
    """Return the directory of the registry: ``MINTAGE_HOME``, or the machine's, or the user's.

    :raises ConfigError: ``config.home``: ``MINTAGE_HOME`` is not an absolute path.
    :raises StoreError: ``store.refused``: this user has no home directory.
    """
    if chosen := os.environ.get("MINTAGE_HOME"):
        if not os.path.isabs(chosen):
            raise ConfigError(
                f"MINTAGE_HOME {chosen!r} is not an absolute path: it would be another directory in each working "
                "directory",
                code="config.home",
            )
        return files.absolute(chosen)
    if _is_for_all_users() and _may_write(MACHINE):
        return MACHINE
    return files.absolute(os.path.join(files.state_directory() or _default_state(), "mintage"))


def is_outsider() -> bool:
    """Return True if the machine has a registry that this process may not write, and MINTAGE_HOME is not set."""
    return not os.environ.get("MINTAGE_HOME") and _is_for_all_users() and not _may_write(MACHINE)


def warn_outsider() -> None:
    """Warn if this process does not use the registry of the machine."""
    if is_outsider():
        warn(
            f"the registry of all users of this machine is in {MACHINE}, which this process may not write: it has "
            "another, and IDs of the two may be equal; add the user to the directory's group"
        )


def _default_state() -> str:
    """Return the directory for state in the home directory that the system has for this user."""
    try:
        return files.state_in(files.home_of_user())
    except KeyError as error:
        raise StoreError(f"user {files.user_id()} has no home directory: {ADVICE}", code="store.refused") from error


def _is_for_all_users() -> bool:
    try:
        found = os.lstat(MACHINE)
    except OSError:
        return False
    # If anybody may write it, anybody may replace it.
    return stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and not found.st_mode & stat.S_IWOTH


def _may_write(path: str) -> bool:
    mode = os.R_OK | os.W_OK | (os.X_OK if os.path.isdir(path) else 0)
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _file() -> str:
    return os.path.join(home(), "registry.db")


def url() -> str:
    """Return the registry's store URL."""
    return f"sqlite:///{quoted(_file())}"


def is_registry(store: Store) -> bool:
    """Return True if the store is the registry, or wraps it."""
    try:
        return store.url.scheme == "sqlite" and files.absolute(store.url.path) == _file()
    except (ConfigError, StoreError):
        return False


def prepare() -> None:
    """Create the registry's directory, and the file of the machine's registry for all users of its group.

    :raises StoreError: ``store.refused``; ``store.unavailable`` if the error may pass.
    :raises ConfigError: ``config.home``.
    """
    directory = home()
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        if directory == MACHINE and not os.path.exists(path := _file()):
            # With access for the group at once; SQLite would create it for one user.
            files.create_prepared(path, lambda file: files.set_mode(file, 0o660))
    except OSError as error:
        if error.errno in TRANSIENT_ERRNOS | FULL_ERRNOS:
            raise as_unavailable(error) from error
        refused = StoreError(f"this machine's registry cannot be made: {error}: {ADVICE}", code="store.refused")
        refused.is_lasting = True
        raise refused from error


def reader() -> Store:
    """Return the registry for verbs that read. If its directory is missing, they find no records, and create nothing.

    :raises StoreError: ``store.refused``: this user has no home directory.
    :raises ConfigError: ``config.home``.
    """
    from mintage.store import open_store
    from mintage.store.sqlite.store import UnmadeStore

    return open_store(url()) if os.path.exists(home()) else UnmadeStore(StoreUrl("sqlite", path=_file()))


def can_be_made() -> bool:
    """Return True if this user may write the registry, or make it, as far as the rights say. It creates nothing.

    :raises ConfigError: ``config.home``.
    """
    try:
        path = home()
    except StoreError:
        return False
    if os.path.exists(path):
        return _may_write(path) and not os.path.isdir(_file()) and (not os.path.exists(_file()) or _may_write(_file()))
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path) or not _may_write(path):
        return False
    if os.stat(path).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        return True
    # Root has rights that the directory does not show; but nobody can create anything in /proc.
    with suppress(OSError):
        files.check_room(path, descriptors=0)
        return True
    return False


def is_writable() -> bool:
    """Return True if this process may create the registry's file and open it for writing.

    The answer is also True for a file that is busy, full, damaged or of a newer mintage: its first verb reports that.

    :raises StoreError: ``store.unavailable``: this process has no file descriptors or memory left for the check.
    :raises ConfigError: ``config.home``.
    """
    from mintage.store.sqlite.store import DENIED, SqliteStore

    try:
        prepare()
        # A busy file does not show whether it is writable.
        if not _may_write(home()) or (os.path.exists(_file()) and not _may_write(_file())):
            return False
        with SqliteStore(StoreUrl("sqlite", path=_file(), options={"timeout_ms": "1"})) as store:
            store.prepare()
    except StoreError as error:
        if error.code == "store.unavailable" and isinstance(error.__cause__, OSError):
            raise
        denied = isinstance(error.__cause__, (OSError, KeyError))
        if error.code == "store.refused" and getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF in DENIED:
            # SQLite has the same code for a lack of file descriptors or of space.
            _check_room()
            denied = True
        return not denied
    return True


def _check_room() -> None:
    try:
        files.check_room(home(), descriptors=4)  # as many as SQLite needs
    except OSError as error:
        if error.errno in TRANSIENT_ERRNOS | FULL_ERRNOS:
            raise as_unavailable(error) from error


def as_unavailable(error: OSError) -> StoreError:
    """Return the error for a registry that cannot be opened now."""
    return StoreError(
        f"this machine's registry cannot be opened now: {error}: try again",
        code="store.unavailable",
        retry_after_ms=1000,
    )


def shown_home() -> str:
    """Return the directory of the registry for messages."""
    try:
        return home()
    except (ConfigError, StoreError):
        return "a home directory"


def warn(text: str) -> None:
    """Warn at the line that mints: four callers are in this package, and the core has no frame."""
    warnings.warn(text, UniquenessWarning, stacklevel=5)
