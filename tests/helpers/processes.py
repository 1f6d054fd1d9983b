"""Forked processes that run a function and answer through a pipe, and a directory that a process may not enter."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import select
import signal
import sys
import time
import traceback
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BOUND_S: Final = 120
"""Seconds after which a child counts as stuck; never waited for otherwise."""
HEED: Final = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
HEEDING_CTRL_C: Final = [
    sys.executable,
    "-c",
    f"{HEED}; import sys; from mintage.cli import main; sys.exit(main(sys.argv[1:]))",
]
"""The command ``mintage``. Tests in the background may ignore Ctrl-C, and its process would inherit that."""


@contextmanager
def closed_directory(parent: Path) -> Iterator[Path]:
    """Create a directory that this process may not enter meanwhile, not even as root."""
    directory, user = parent / "closed", os.geteuid()
    directory.mkdir(mode=0)
    try:
        if user == 0:
            os.seteuid(65534)
        yield directory
    finally:
        os.seteuid(user)


def raw_clone(flags: int = 0) -> int:
    """Fork by the system call itself: neither handlers of the C library nor of Python run."""
    number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    # PyDLL keeps the GIL, so that the child's only thread holds it.
    pid: int = ctypes.PyDLL(None, use_errno=True).syscall(number, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return pid


def first_of_a_namespace() -> int:
    """Make a raw clone that is pid 1 of a PID namespace of its own."""
    new_user, new_pid = 0x10000000, 0x20000000
    try:
        return raw_clone(new_pid | (new_user if os.geteuid() else 0))
    except PermissionError:
        pytest.skip("this user may not make namespaces")


class Child:
    """A forked process that runs a function, whose result comes back through a pipe, as JSON."""

    def __init__(self, run: Callable[[], object], fork: Callable[[], int] = os.fork) -> None:
        self.reading, writing = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads, which are the subject of this test.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = fork()
        if self.pid == 0:
            try:
                answer = json.dumps({"result": run()})
            except BaseException as error:  # noqa: BLE001 (whatever it is, the parent reports it)
                answer = json.dumps({"error": repr(error)})
            view = memoryview(answer.encode())
            while view:
                view = view[os.write(writing, view) :]
            os._exit(0)
        os.close(writing)

    def result(self) -> Any:
        answer = b""
        deadline = time.monotonic() + BOUND_S
        while select.select([self.reading], [], [], max(0, deadline - time.monotonic()))[0]:
            part = os.read(self.reading, 1 << 16)
            if not part:
                break
            answer += part
        else:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.reading)
        os.waitpid(self.pid, 0)
        assert answer, "the child is stuck"
        outcome = json.loads(answer)
        assert "result" in outcome, outcome["error"]
        return outcome["result"]


def in_child(run: Callable[[], object]) -> Any:
    """Return the result of a function in a forked child."""
    return Child(run).result()


def forked(run: Callable[[], bytes], fork: Callable[[], int] = os.fork) -> tuple[int, int]:
    """Return a forked process, and a pipe with its answer."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            answer = run()
            while answer:
                answer = answer[os.write(writing, answer) :]
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    os.close(writing)
    return pid, reading


def answers(children: list[tuple[int, int]], bound_s: float = 2 * BOUND_S) -> Iterator[bytes]:
    """Return the answer of each process, or nothing if one failed or hangs."""
    found = {reading: bytearray() for _, reading in children}
    waiting, deadline = set(found), time.monotonic() + bound_s
    while waiting and (ready := select.select(list(waiting), [], [], max(0.0, deadline - time.monotonic()))[0]):
        for reading in ready:
            part = os.read(reading, 1 << 20)
            found[reading] += part
            if not part:
                waiting.discard(reading)
    for pid, reading in children:
        os.close(reading)
        if reading in waiting:
            os.kill(pid, signal.SIGKILL)
        yield b"" if os.waitpid(pid, 0)[1] else bytes(found[reading])
