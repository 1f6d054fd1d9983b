"""`mintage serve` as a process of the tests: the same ports at each start, and its log as events."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.servers.server import HOST, STOP_S, Daemon, free_port, until
from tests.service.load import Answer, Line, Load

if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence


class Serving(Daemon):
    """The service, on both interfaces; ``settings`` are those of the command line, such as ``max_wait_ms=500``.

    By default it waits for its store without a limit, as a slow machine is no reason to fail.
    """

    name = "mintage"
    programs = ()

    def __init__(self, directory: Path, store: str, **settings: object) -> None:
        super().__init__(directory)
        self.store = store
        self.settings = {"max_wait_ms": 60_000, **settings}
        self.environment: dict[str, str] = {}
        """Further variables."""
        self.python = sys.executable
        """The interpreter, and so the version, that serves."""

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def create(self) -> None:
        self.redis_port = free_port()

    def command(self) -> Sequence[str]:
        given = {
            "store": self.store,
            "http": f"{HOST}:{self.port}",
            "redis": f"{HOST}:{self.redis_port}",
            "log_format": "json",
            **self.settings,
        }
        options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        environment = {
            "MINTAGE_HOME": str(self.directory / "home"),
            # Temporary files in a directory of its own, so that tests see which are left.
            "TMPDIR": str(self.directory),
            **self.environment,
        }
        variables = [f"{name}={value}" for name, value in environment.items()]
        return ["env", *variables, self.python, "-m", "mintage", "serve", *options]

    def answers(self) -> bool:
        return bool(self.events("serving"))

    def reset(self) -> None:
        """Do nothing: its data is in its store."""

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events with that name in the log of its last run."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        events: list[dict[str, Any]] = []
        for text in lines:
            with suppress(ValueError):  # not JSON, or incomplete
                event = json.loads(text)
                if event["event"] == "serving" and event["pid"] != self.pid:
                    events.clear()
                elif event["event"] == name:
                    events.append(event)
        return events

    def patch(self, code: str, *, workers_only: bool = False) -> None:
        """Run code at the next start before any other, for conditions that no setting can create."""
        place = self.directory.with_suffix(".patch")
        place.mkdir()
        if workers_only:
            code = f"import os; os.register_at_fork(after_in_child=lambda: exec({code!r}, {{}}))"
        (place / "sitecustomize.py").write_text(code, encoding="utf-8")
        self.environment["PYTHONPATH"] = str(place)

    def wait(self, seconds: float = STOP_S) -> int:
        """Wait until it has ended, and return its exit code."""
        assert self._process
        return self._process.wait(seconds)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; of several processes, to the one that was started."""
        assert self._process
        self._process.send_signal(number)

    def load(self, **how: Any) -> Load:
        """Return clients of both interfaces."""
        return Load(self.port, self.redis_port, **how)

    def http(self) -> Line:
        """Return an HTTP connection."""
        return Line(self.port)

    def redis(self) -> Line:
        """Return a Redis connection."""
        return Line(self.redis_port)

    def get(self, path: str) -> Answer:
        """Return its answer on a separate connection."""
        with self.http() as line:
            return line.http(path, method="GET")

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric over all series with these labels."""
        total = 0.0
        for text in self.get("/metrics").body.decode().splitlines():
            if match := re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", text):
                has = dict(re.findall(r'(\w+)="([^"]*)"', match[1] or ""))
                if labels.items() <= has.items():
                    total += float(match[2])
        return total

    def until_metric(self, name: str, value: float, **labels: str) -> None:
        """Wait until a metric has that value; counts are collected once a second."""
        until(lambda: self.metric(name, **labels) == value, f"{name} {labels} is {value}")

    def workers(self) -> list[int]:
        """Return the worker processes that live, if there are several; one that has ended has no command line."""
        return [pid for pid in self.family()[1:] if _command_line(pid)]

    def memory_mb(self) -> float:
        """Return the memory of all its processes in megabytes."""
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) for pid in self.family())
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def open_files(self) -> int:
        """Return the number of open files and connections of all its processes."""
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.family())


def _command_line(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
