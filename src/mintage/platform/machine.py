"""The identity of the machine, of its boot and of this process."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import Final


def machine_id() -> str:
    """Return the id that the system has for this machine; empty if it shows none. Copies of a machine may share it."""
    if sys.platform == "win32":
        import winreg

        with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SOFTWARE\Microsoft\Cryptography") as key:
            return str(winreg.QueryValueEx(key, "MachineGuid")[0])
        return ""
    return _text("/etc/machine-id") if sys.platform == "linux" else _kernel_value("kern.uuid")


def host_name() -> str:
    """Return the host name of this machine."""
    if sys.platform == "win32":
        import socket

        return socket.gethostname()
    return os.uname().nodename


def boot_id() -> str:
    """Return the id of the kernel's boot; empty if the system shows none, as Windows does not."""
    if sys.platform == "linux":
        return _text("/proc/sys/kernel/random/boot_id")
    return _kernel_value("kern.bootsessionuuid")


def root_id() -> str:
    """Return the id of the mounts and of the root directory of this process.

    For all processes that share it, a path names one file at a time.
    """
    found = []
    for path in ("/proc/self/ns/mnt", "/"):
        with suppress(OSError):
            place = os.stat(path)
            found.append(f"{place.st_dev}:{place.st_ino}")
    return " ".join(found)


def _text(path: str) -> str:
    # Use UTF-8: a process that may no longer read Python's files cannot load other codecs.
    return _content(path).decode(errors="replace").strip()


def _content(path: str) -> bytes:
    """Return the content of a file; empty if it cannot be read."""
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        return file.read()
    return b""


def _kernel_value(name: str) -> str:
    """Return a text that macOS and the BSDs keep in the kernel; empty if there is none of this name."""
    if sys.platform == "win32":
        return ""
    import ctypes

    with suppress(AttributeError, OSError):
        sysctl = ctypes.CDLL(None, use_errno=True).sysctlbyname
        size = ctypes.c_size_t(128)
        text = ctypes.create_string_buffer(size.value)
        if sysctl(name.encode(), text, ctypes.byref(size), None, ctypes.c_size_t(0)) == 0:
            return text.value.decode(errors="replace")
    return ""


def field_of_process(stat: str, number: int) -> int:
    """Return a field of ``/proc/PID/stat``, counted from 1 as in proc(5); 0 if ``stat`` is not such a line.

    The second field, the name in parentheses, may contain spaces and parentheses.
    """
    _, _, fields = stat.rpartition(")")
    with suppress(ValueError, IndexError):
        return int(fields.split()[number - 3])
    return 0


def start_of_process() -> int:
    """Return the start of this process in ticks since the boot; 0 if the system does not show it (not Linux)."""
    return field_of_process(_text("/proc/self/stat"), 22)


def can_fork() -> bool:
    """Return True if a forked child inherits no lock of a thread: on Linux, in a process of one thread."""
    return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, even while it is stopped. Only Linux can do that.

    :param parent: the id of the parent; if it has ended already, this process ends now.
    """
    if sys.platform == "linux":
        import ctypes
        import signal

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def flags_of_process() -> int:
    """Return the kernel's flags of this process; 0 if the system does not show them (not Linux)."""
    return field_of_process(_text("/proc/self/stat"), 9)


def started_s() -> int:
    """Return the start of this process in seconds since the Unix epoch, as exactly as the platform shows it."""
    ticks = start_of_process()
    if sys.platform != "linux" or not ticks:
        return _started_s
    return round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK"))


_started_s: Final = round(time.time() - time.process_time())
"""Read once: the time that a process uses is less than the time that passes, so a later result would differ."""


def mounts() -> bytes:
    """Return the kernel's list of mounts; empty if the system has none (not Linux)."""
    return _content("/proc/self/mountinfo")
