"""Run a command on a machine that stalls: all its processes stop at once, repeatedly, for up to some seconds.

A busy host does this to a virtual machine. Tests that fail only here depend on how much happens in a time, or blame a
clock, a server or a file for a pause: `python -m tests.deep.stalls python -m pytest tests/service`. It needs Linux
with control groups of version 2, and root.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS_S: Final = 2.0, 10.0
"""The time between two stalls."""
STALLS_S: Final = 0.3, 0.6, 1.2, 1.2, 1.2, 2.4, 3.5
"""Drawn from: longer than a second, as a wait may be, and longer than two, as a server's patience."""


@contextmanager
def control_group() -> Iterator[Path]:
    """Yield a control group of our own, empty at the end."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    root = next((Path(where) for _, where, kind, *_ in mounts if kind == "cgroup2"), None)
    if root is None:
        raise SystemExit("stalls: no control groups of version 2 are mounted")
    group = root / f"mintage-stalls-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise SystemExit(f"stalls: no control group can be made: {error}") from error
    try:
        yield group
    finally:
        (group / "cgroup.freeze").write_text("0", encoding="ascii")
        (group / "cgroup.kill").write_text("1", encoding="ascii")
        while "populated 1" in (group / "cgroup.events").read_text(encoding="ascii"):
            time.sleep(0.01)
        group.rmdir()


def _ends_within(seconds: float, process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def main() -> int:
    """Run the command and exit with its code."""
    parser = argparse.ArgumentParser(prog="python -m tests.deep.stalls", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="of the moments and lengths")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    arguments = parser.parse_args()
    if not arguments.command:
        parser.error("which command?")
    chance, stalled_s = random.Random(arguments.seed), 0.0
    with control_group() as group:
        entering = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs")]
        with subprocess.Popen([*entering, *arguments.command]) as process:
            while not _ends_within(chance.uniform(*RUNS_S), process):
                length_s = chance.choice(STALLS_S)
                (group / "cgroup.freeze").write_text("1", encoding="ascii")
                time.sleep(length_s)
                (group / "cgroup.freeze").write_text("0", encoding="ascii")
                stalled_s += length_s
    print(f"stalled for {stalled_s:.0f} s, seed {arguments.seed}", file=sys.stderr)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
