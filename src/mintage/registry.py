"""The machine-local registry: where processes of one host agree when no store is named.

It is an SQLite file in the user's state directory, or in ``MINTAGE_HOME``. Hosts without a common store do not know of
each other; so that they at least start apart, each begins with a block of node numbers that a hash of its identity
chooses.

Where the file cannot be written, a node number is held by an exclusive lock in the temporary directory: no two living
processes of the host share it. Where that fails as well, it is drawn at random. Both warn.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from mintage.errors import StoreError, UniquenessWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["BLOCK", "SPAN_MS", "LockedNode", "blocks", "home", "is_usable", "url"]

BLOCK: Final = 32
"""How many node numbers a host tries before any other."""
SPAN_MS: Final = 30_000
"""A longer span than a shared store's: the file is written less often, and a crash costs one of many numbers."""


def home() -> Path:
    """The directory of the registry: ``MINTAGE_HOME``, or the platform's place for a user's state."""
    if chosen := os.environ.get("MINTAGE_HOME"):
        return Path(chosen).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "mintage"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "mintage"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "mintage"


def url() -> str:
    """The registry's store URL."""
    return f"sqlite:///{quote(str(home() / 'registry.db'))}"


def is_usable() -> bool:
    """Whether the registry can be written; makes its directory."""
    from mintage.store import open_store

    try:
        home().mkdir(mode=0o700, parents=True, exist_ok=True)
        with open_store(url()) as store:
            store.now_ms()
    except (OSError, RuntimeError, StoreError):
        return False
    return True


def identity() -> bytes:
    """What tells this host from others."""
    try:
        machine = Path("/etc/machine-id").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        machine = ""
    # Containers of one image have one machine-id, but seldom one name.
    return hashlib.sha256(f"{machine}\n{socket.gethostname()}".encode()).digest()


def blocks(size: int) -> Sequence[range]:
    """The node numbers of a pool of ``size`` in the order to try them: this host's own, its block, then all."""
    if size <= BLOCK:
        return [range(size)]
    own = int.from_bytes(identity()[:8], "big") % (size // BLOCK * BLOCK)
    start = own // BLOCK * BLOCK
    return [range(own, own + 1), range(start, start + BLOCK), range(size)]


class LockedNode:
    """A node number without a lease: held by a lock where that is possible, else drawn at random."""

    never_used = False

    def __init__(self, pool: str, nodes: Callable[[], Sequence[range]], size: int) -> None:
        self._pool = pool
        self._nodes = nodes
        self._size = size
        self._pid = 0
        self._serial = 0
        self._node = 0
        self._file: int | None = None

    def window(self, _max_wait_ms: int) -> tuple[int, int, None, None, None]:
        """Serial number and node; there is no window."""
        if self._pid != os.getpid():
            # A child inherits its parent's lock with the file, and keeps it, but not the right to the number.
            self._pid = os.getpid()
            self._serial += 1
            self._node = self._choose()
        return self._serial, self._node, None, None, None

    def _choose(self) -> int:
        for block in self._nodes():
            for node in block[:1024]:
                try:
                    self._file = self._lock(node)
                except BlockingIOError:
                    continue
                except (ImportError, OSError):
                    return self._draw()
                warnings.warn(
                    f"mintage cannot write its registry in {home()}: node {node} is held by a lock instead, so "
                    "IDs may repeat if the clock goes back between two processes; set MINTAGE_HOME to a directory "
                    "that can be written, or MINTAGE_STORE to a store",
                    UniquenessWarning,
                    stacklevel=3,
                )
                return node
        return self._draw()

    def _draw(self) -> int:
        warnings.warn(
            f"mintage can write neither its registry in {home()} nor {tempfile.gettempdir()}: its node number is "
            f"drawn at random from {self._size}, so two processes may share one and repeat IDs; set MINTAGE_HOME to a "
            "directory that can be written, MINTAGE_STORE to a store, or give each generator a node number",
            UniquenessWarning,
            stacklevel=4,
        )
        return secrets.randbelow(self._size)

    def _lock(self, node: int) -> int:
        import fcntl

        folder = Path(tempfile.gettempdir()) / f"mintage-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat(follow_symlinks=False).st_uid != os.getuid():
            raise PermissionError(folder)
        file = os.open(
            folder / f"{self._pool}-{node}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise
        return file

    def release(self, _used_until_ms: int) -> None:
        """Lets the number go."""
        if self._file is not None and self._pid == os.getpid():
            os.close(self._file)
            self._file = None

    abandon = release
