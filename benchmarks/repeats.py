"""Count repeated IDs of other libraries and ours after a fork, with threads, and when the clock steps back.

`python -m benchmarks.repeats` mints with each in processes of its own and counts equal IDs, and IDs that sort before
an earlier one of the same thread. libfaketime (package `faketime`) steps the clock under a fresh process; without it
this trial is skipped. The exit code is 1 unless ours repeated none.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

EACH = 20_000
"""IDs of each process and thread."""
CHILDREN, THREADS = 4, 4
STEP_S = 3
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
TIMEOUT_S = 120

LIBRARIES: tuple[tuple[str, str, bool], ...] = (
    ("mintage.sno.new", "mintage.sno:new", True),
    ("mintage.snowflake.new", "mintage.snowflake:new", True),
    ("mintage.ulid.new", "mintage.ulid:new", True),
    ("mintage.ksuid.new", "mintage.ksuid:new", True),
    ("mintage.ksuid_ms.new", "mintage.ksuid_ms:new", True),
    ("mintage.xid.new", "mintage.xid:new", True),
    ("mintage.objectid.new", "mintage.objectid:new", True),
    ("mintage.sandflake.new", "mintage.sandflake:new", True),
    ("mintage.uuid.new", "mintage.uuid:new", True),
    ("mintage.uuid.uuid1", "mintage.uuid:uuid1", False),
    ("mintage.uuid.uuid4", "mintage.uuid:uuid4", False),
    ("mintage.nanoid.new", "mintage.nanoid:new", False),
    ("mintage.cuid2.new", "mintage.cuid2:new", False),
    ("uuid.uuid1", "uuid:uuid1", False),
    ("c_uuid_v7.uuid7", "c_uuid_v7:uuid7", True),
    ("uuid_utils.uuid7", "uuid_utils:uuid7", True),
    ("uuid7_rs.uuid7", "uuid7_rs:uuid7", True),
    ("fastuuid7.uuid7", "fastuuid7:uuid7", True),
    ("fastuuidv7.uuid7", "fastuuidv7:uuid7", True),
    ("ulid_transform.ulid_now", "ulid_transform:ulid_now", True),
    ("ulid.ULID of python-ulid", "ulid:ULID", True),
    ("cyksuid.v2.ksuid", "cyksuid.v2:ksuid", True),
    ("ksuid.Ksuid of svix-ksuid", "ksuid:Ksuid", True),
    ("ksuid.KsuidMs of svix-ksuid", "ksuid:KsuidMs", True),
    ("epyxid.XID", "epyxid:XID", True),
    ("bson.ObjectId", "bson:ObjectId", True),
    ("fastnanoid.generate", "fastnanoid:generate", False),
    ("snowflake-id", "benchmarks.repeats:snowflake_id", True),
)
"""A name, a function that mints one ID, and whether IDs sort by time."""


def snowflake_id() -> object:
    """Return the next ID of a generator of snowflake-id, with a number given by the user."""
    generator: Iterator[int] = _generators.setdefault("", None) or resolve_name("snowflake:SnowflakeGenerator")(1)
    _generators[""] = generator
    return next(generator)


_generators: dict[str, Any] = {}


def minted(new: Callable[[], object], count: int) -> list[str]:
    """Return a number of IDs; integers are padded so that they sort as such."""
    ids = [new() for _ in range(count)]
    return [f"{one:020}" if isinstance(one, int) else str(one) for one in ids if one is not None]


def equal(ids: list[str]) -> int:
    """Return how many of the IDs occurred before."""
    return len(ids) - len(set(ids))


def forked(new: Callable[[], object]) -> int:
    """Return the IDs minted twice by children and their parent, which had minted before."""
    ids = minted(new, EACH)
    pipes = []
    for _ in range(CHILDREN):
        reading, writing = os.pipe()
        if os.fork() == 0:
            with os.fdopen(writing, "w") as pipe:
                pipe.write("\n".join(minted(new, EACH)))
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    ids += minted(new, EACH)
    for reading in pipes:
        with os.fdopen(reading) as pipe:
            ids += pipe.read().split("\n")
    for _ in pipes:
        os.wait()
    return equal(ids)


def threaded(new: Callable[[], object]) -> int:
    """Return the IDs minted twice by threads."""
    sys.setswitchinterval(1e-6)
    ids: list[str] = []
    begin = threading.Barrier(THREADS)

    def run() -> None:
        begin.wait()
        ids.extend(minted(new, EACH))

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return equal(ids)


def stepped(new: Callable[[], object]) -> tuple[int, int]:
    """Return the IDs minted twice and out of order by one thread whose clock goes back some seconds."""
    ids = minted(new, EACH)
    Path(os.environ["FAKETIME_TIMESTAMP_FILE"]).write_text(f"-{STEP_S}s\n")
    ids += minted(new, EACH)
    highest, behind = "", 0
    for one in ids:
        behind += one < highest
        highest = max(highest, one)
    return equal(ids), behind


TRIALS: dict[str, Callable[[Callable[[], object]], object]] = {
    "forked": forked,
    "threaded": threaded,
    "stepped": stepped,
}


def tried(trial: str, name: str) -> Any:
    """Return the result of a trial in a process of its own, or the reason of its failure as text."""
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        if trial == "stepped":
            if not FAKETIME.exists():
                return "no libfaketime"
            file = Path(folder, "time")
            file.write_text("+0\n")
            environment |= {
                "LD_PRELOAD": str(FAKETIME),
                "FAKETIME_TIMESTAMP_FILE": str(file),
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        environment["MINTAGE_HOME"] = folder
        command = [sys.executable, "-m", "benchmarks.repeats", "--trial", trial, "--library", name]
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip().split("\n")[-1][:60]


def shown(found: Any) -> str:
    return f"{found:,}" if isinstance(found, int) else str(found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repeats", description=__doc__)
    parser.add_argument("--trial", choices=tuple(TRIALS), help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trial:
        print(json.dumps(TRIALS[options.trial](resolve_name(options.library))))
        return 0
    ours = 0
    lines = [("", "after forks", "by threads", "clock back", "out of order")]
    for name, function, sorts in LIBRARIES:
        forks, threads, steps = (tried(trial, function) for trial in TRIALS)
        again, behind = steps if isinstance(steps, list) else (steps, "–")
        lines.append((name, shown(forks), shown(threads), shown(again), shown(behind) if sorts else "–"))
        if name.startswith("mintage."):
            ours += sum(found if isinstance(found, int) else 1 for found in (forks, threads, again))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *rest in lines:
        print(
            first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)), sep="  "
        )
    return int(ours > 0)


if __name__ == "__main__":
    sys.exit(main())
