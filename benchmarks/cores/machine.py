"""The processors of this machine and what programs do with them, by `/proc` and `/sys` of Linux."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
ESTABLISHED: Final = "01"
"""The state of an open connection in `/proc/net/tcp`."""


def siblings(processor: int) -> str:
    """Return the processors that are threads of the same core, such as `0,8`."""
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    return path.read_text(encoding="ascii").strip() if path.exists() else str(processor)


def processors() -> list[int]:
    """Return the processors that this process may use, threads of one core side by side."""
    allowed = sorted(os.sched_getaffinity(0))
    cores = list(dict.fromkeys(map(siblings, allowed)))
    return sorted(allowed, key=lambda processor: (cores.index(siblings(processor)), processor))


def pinned(to: Iterable[int], *program: str) -> list[str]:
    """Return the command of a program that runs on some processors."""
    return ["taskset", "--cpu-list", ",".join(map(str, to)), *program]


def children(parent: int) -> list[int]:
    """Return the processes that a process started and that still run, oldest first."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(words[1]) == parent:
            found.append(int(stat.parent.name))
    return sorted(found)


def processor_s(process: int) -> float:
    """Return the processor time that a process has taken, in seconds."""
    words = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS_A_SECOND


def connections(process: int, port: int) -> int:
    """Return how many connections to a local port a process has open."""
    local, inodes = f":{port:04X}", set()
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        words = line.split()
        if words[1].endswith(local) and words[3] == ESTABLISHED:
            inodes.add(f"socket:[{words[9]}]")
    count = 0
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        try:
            count += os.readlink(descriptor) in inodes
        except OSError:
            continue  # it was closed meanwhile
    return count
