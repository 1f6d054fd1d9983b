"""Clones of a process: dumped once by CRIU, restored twice side by side, each in namespaces of its own.

Everything that is invisible from inside is equal: memory, threads, pid, open files. Connections are closed, like those
of a restored virtual machine. The directory of each clone has the path that the process had for its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tests.integration.faults.crew import PATIENCE_S, ROOT, WIDTHS
from tests.integration.faults.record import keep
from tests.integration.faults.scenarios import Row, url_of
from tests.servers import PostgreSQL, Redis, Server
from tests.servers import missing as missing_server
from tests.servers.fixtures import Servers
from tests.servers.server import family, program, state, until

if TYPE_CHECKING:
    from collections.abc import Iterator

PER_CALL: Final = 20
SCHEMES: Final = ["snowflake", "locality", "sequence"]


def missing() -> str | None:
    """Return the reason why nothing can be cloned here, or None."""
    if os.geteuid() != 0:
        return "only root can restore a process"
    criu = program("criu4")
    if criu is None:
        return "CRIU 4 is not here: run tests/servers/unstable.sh"
    done = subprocess.run([criu, "check"], capture_output=True, text=True, check=False)
    return f"CRIU cannot run on this kernel: {done.stderr.strip()}" if done.returncode else None


@dataclass
class Copy:
    """A process, seen through the files in its directory."""

    directory: Path

    def said(self, event: str) -> list[dict[str, Any]]:
        lines = (self.directory / "said").read_text(encoding="utf-8").splitlines()
        told = [json.loads(line) for line in lines if line.endswith("}")]
        return [what for what in told if what["event"] == event]

    def ids(self, scheme: str) -> list[bytes]:
        """Return the IDs in the order in which they were minted."""
        file, width = self.directory / f"ids.{scheme}", WIDTHS[scheme]
        data = file.read_bytes() if file.exists() else b""
        return [data[at : at + width] for at in range(0, len(data) // width * width, width)]

    def size(self) -> int:
        return min(len(self.ids(scheme)) for scheme in SCHEMES)

    def waits_for(self, event: str, count: int = 1) -> None:
        until(lambda: len(self.said(event)) >= count, f"it says {event}", seconds=PATIENCE_S)

    def waits_for_more(self, count: int) -> None:
        size = self.size()
        until(lambda: self.size() >= size + count, f"{self.directory} mints on", seconds=PATIENCE_S)

    def tell(self, word: str) -> None:
        (self.directory / word).touch()


class Original(Copy):
    """The process before it is dumped."""

    def __init__(self, directory: Path, **orders: Any) -> None:
        super().__init__(directory / "own")
        self.directory.mkdir()
        given = {
            "file": str(self.directory / "ids"),
            "schemes": SCHEMES,
            "pools": {},
            "namespace": "orders",
            "first_node": 0,
            "nodes": 16,
            "span_ms": 2000,
            "max_wait_ms": 5000,
            "step": 20_000,
            "batch": PER_CALL,
            "pause_s": 0.002,
            "on_lease_lost": "move",
            "anew": True,
            "stepped": False,
            "warned": False,
            **orders,
        }
        with (self.directory / "said").open("ab") as said, (self.directory / "errors").open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.faults.clone", json.dumps(given), str(self.directory)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=errors,
                env={**os.environ, "MINTAGE_HOME": str(directory / "home")},
            )
        self._images = directory / "images"

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def dump(self) -> None:
        """Dump the process to files, and end it."""
        self._images.mkdir()
        self._runs = _runs(self.pid)
        self._criu("dump", "--tree", str(self.pid), *self._how(self._images))
        self._process.wait()

    @contextmanager
    def restored(self, count: int) -> Iterator[list[Copy]]:
        """Restore a number of clones and start them together."""
        with ExitStack() as stack:
            clones = [stack.enter_context(self._restored(number)) for number in range(count)]
            for _, pid in clones:
                os.kill(pid, signal.SIGCONT)
            yield [clone for clone, _ in clones]

    @contextmanager
    def _restored(self, number: int) -> Iterator[tuple[Copy, int]]:
        clone = Copy(self.directory.parent / f"clone-{number}")
        shutil.copytree(self.directory, clone.directory)
        work = self.directory.parent / f"work-{number}"
        work.mkdir()
        restore = [program("criu4"), "restore", "--leave-stopped", *self._how(work)]
        bind = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", bind, "sh"]
        with (work / "log").open("wb") as log:
            init = subprocess.Popen(
                [*command, str(clone.directory), str(self.directory), *map(str, restore)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

        def found() -> int | None:
            """Return the restored process, once it is complete, without the processes of CRIU itself."""
            assert init.poll() is None, (work / "log").read_text(encoding="utf-8", errors="replace")[-2000:]
            ours = (pid for pid in family(init.pid) if _runs(pid) == self._runs and state(pid) == "T")
            return next(ours, None)

        try:
            until(lambda: found() is not None, "the clone is restored", seconds=PATIENCE_S)
            yield clone, cast("int", found())
        finally:
            init.kill()
            init.wait()

    @staticmethod
    def _criu(*words: str) -> None:
        done = subprocess.run([str(program("criu4")), *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"criu {words[0]}: {done.stdout[-1000:]}{done.stderr[-2000:]}")

    def _how(self, work: Path) -> list[str]:
        return ["--images-dir", str(self._images), "--work-dir", str(work), "--tcp-close", "--file-locks", "-v1"]


def _runs(pid: int) -> str:
    """Return True if the process runs its program."""
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/exe").readlink())
    return ""


def cloned(server: Server | None, directory: Path, *, warned: bool) -> Row:
    """Clone a process twice. With a warning it runs the hooks around the snapshot; otherwise each clone detects it."""
    original = Original(directory, store=url_of(server, directory), warned=warned)
    try:
        original.waits_for_more(1000)
        if warned:
            original.tell("snapshot")
            original.waits_for("ready")
        original.dump()
        with original.restored(2) as clones:
            for clone in clones:
                if warned:
                    clone.tell("go")
                clone.waits_for("noticed")
                clone.waits_for_more(10_000)
                clone.tell("stop")
            for clone in clones:
                clone.waits_for("done")
    finally:
        original.kill()
    once = {scheme: original.ids(scheme) for scheme in SCHEMES}
    early = later = ids = 0
    for scheme in SCHEMES:
        minted = [clone.ids(scheme)[len(once[scheme]) :] for clone in clones]
        noticed = [clone.said("noticed")[0]["ids"][scheme] * PER_CALL - len(once[scheme]) for clone in clones]
        ids += len(once[scheme]) + sum(map(len, minted))
        fresh = [set(each[count:]) for each, count in zip(minted, noticed, strict=True)]
        later += len(fresh[0] & fresh[1]) + len((fresh[0] | fresh[1]) & set(once[scheme]))
        early += len(set(minted[0]) & set(minted[1]))
    refused = sum((Counter(clone.said("done")[0]["refusals"]) for clone in clones), Counter[str]())
    slowest = max(clone.said("done")[0]["slowest_ms"] for clone in clones)
    fault = "a process restored twice by CRIU, " + ("with its hooks" if warned else "untold")
    seen = "" if warned else f"{early - later:,} were equal before the clones noticed, within a second"
    return Row(
        fault, server.name if server else "sqlite", slowest, dict(refused), ids, early if warned else later, seen
    )


def main() -> int:
    """Run all scenarios and print their results, one a line."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.faults.clones", description=main.__doc__)
    parser.add_argument("--record", action="store_true", help="keep the outcome, and render the documentation's table")
    given = parser.parse_args()
    if reason := missing():
        print(f"No process was cloned: {reason}.")
        return 0
    rows = []
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mintage-")))
        directory.chmod(0o755)
        servers = Servers(directory, stack)
        for kind in (None, PostgreSQL, Redis):
            if kind and (reason := missing_server(kind.name)):
                print(reason)
                continue
            for warned in (False, True):
                here = directory / f"cloned-{kind.name if kind else 'sqlite'}-{warned}"
                here.mkdir()
                rows.append(cloned(servers.get(kind) if kind else None, here, warned=warned))
                print(json.dumps(rows[-1].as_json()), flush=True)
    if given.record:
        keep(rows)
    return 1 if any(row.duplicates for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
