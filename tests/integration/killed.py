"""Processes of one program that are killed and started anew, time after time, until they have done enough."""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _start(program: Callable[[Path], object], path: Path) -> int:
    """Fork a process that runs the program, and return its id."""
    pid = os.fork()
    if pid == 0:
        try:
            program(path)
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(1)
    return pid


def run_and_kill(
    program: Callable[[Path], object], directory: Path, *, processes: int, pause_s: float, is_enough: Callable[[], bool]
) -> None:
    """Keep processes running, each with a new file in the directory, and kill one at random after each pause.

    :raises SystemExit: a process ended before it was killed.
    """
    paths = (directory / f"{at}.txt" for at in range(10**6))
    running = [_start(program, next(paths)) for _ in range(processes)]
    try:
        while not is_enough():
            time.sleep(pause_s)
            at = random.randrange(processes)
            os.kill(running[at], signal.SIGKILL)
            _, status = os.waitpid(running[at], 0)
            if os.WIFEXITED(status):
                raise SystemExit("a process failed before it was killed")
            running[at] = _start(program, next(paths))
    finally:
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
