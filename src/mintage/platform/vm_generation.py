"""The messages by which the kernel announces that its virtual machine was restored from a snapshot (Linux 6.10)."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    import _socket

_UEVENTS: Final = 15
"""The netlink family of the kernel's device events."""
_NEW_GENERATION: Final = b"NEW_VMGENID=1"
_DRIVER: Final = "/sys/bus/platform/drivers/vmgenid"


def is_announcement(message: bytes) -> bool:
    """Return True if a message of the kernel announces a restore of its virtual machine.

    The kernel marks messages that a user triggers, and these do not count.
    """
    return _NEW_GENERATION in message.split(b"\0")


class VmGenerationEvents:
    """The number of restores that the kernel announced since the first question.

    Use it from one thread at a time; any thread may call :meth:`close`.
    """

    _opened: ClassVar[set[_socket.socket]] = set()
    """The open sockets. Otherwise the garbage collector could finalize a socket before its owner, and warn about it."""

    def __init__(self) -> None:
        self._count = 0
        self._socket: _socket.socket | None = None
        self._inode = 0
        self._is_impossible = False

    def count(self) -> int:
        """Return the number; 0 if this kernel announces none."""
        events = self._socket or self._open()
        if sys.platform == "linux" and events is not None:
            from _socket import MSG_DONTWAIT

            with suppress(OSError):
                # A program may close unknown descriptors; then the number may belong to another file.
                while os.fstat(events.fileno()).st_ino == self._inode:
                    self._count += is_announcement(events.recv(1 << 16, MSG_DONTWAIT))
        return self._count

    def _open(self) -> _socket.socket | None:
        if sys.platform != "linux" or self._is_impossible or not os.path.exists(_DRIVER):
            self._is_impossible = True
            return None
        import _socket  # now, as few kernels have the driver

        try:
            # Use the C type: the sockets of gevent and eventlet ignore SOCK_NONBLOCK and block.
            kind = _socket.SOCK_DGRAM | _socket.SOCK_NONBLOCK
            self._socket = events = _socket.socket(_socket.AF_NETLINK, kind, _UEVENTS)
            self._opened.add(events)
            events.bind((0, 1))
            self._inode = os.fstat(events.fileno()).st_ino
        except OSError:
            # A sandbox may forbid it.
            self.close()
            self._is_impossible = True
            return None
        return events

    def close(self) -> None:
        """Close the socket until the next question, so that a checkpoint need not save it."""
        events, self._socket = self._socket, None
        if events is not None:
            with suppress(OSError):
                if os.fstat(events.fileno()).st_ino == self._inode:
                    events.close()
            events.detach()
            self._opened.discard(events)

    __del__ = close
