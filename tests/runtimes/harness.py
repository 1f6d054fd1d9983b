"""Run one runtime: start it, make it mint, signal it, stop it, and count its IDs and remaining leases."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mintage import open_store, snowflake
from mintage._core.formats import write_layout
from tests.runtimes.runtimes import CELERY, HTTP, PROGRAM, PYTHON, Runtime
from tests.servers.server import HOST, Daemon, ServerError, until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.servers import Redis

ROOT: Final = Path(__file__).parents[2]
EACH: Final = 150
"""The number of IDs that a call mints: :data:`tests.runtimes.minting.EACH` of each of its kinds."""
CLIENTS: Final = 6
PATIENCE_S: Final = 60.0
"""A runtime that mints nothing or does not stop for this long hangs."""
SETTLED_S: Final = 1.0
"""A replaced worker ends within this time."""
TRIES: Final = 200
"""The number of requests in a row that may be refused or reset, while workers are replaced."""


@dataclass
class Tally:
    """The IDs that a runtime minted, and its errors."""

    ids: int = 0
    equal: int = 0
    processes: int = 0
    """The number of processes that minted."""
    hangs: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    leases: list[str] = field(default_factory=list)
    """The leases held after the stop."""
    refused: str = ""
    """The message with which it refused to import mintage."""
    seconds: float = 0.0

    def is_clean(self) -> bool:
        """Return True if there was no error."""
        return not (self.equal or self.hangs or self.failed or self.leases)


class _Process(Daemon):
    """The first process of the runtime."""

    programs = ()

    def __init__(self, directory: Path, runtime: Runtime, broker: str, calls: int) -> None:
        super().__init__(directory / "runtime")
        self.name = runtime.name  # type: ignore[misc] # a runtime is data, not a class
        self._runtime = runtime
        self._calls = calls
        self.file = directory / "minted"
        self.home = directory / "home"
        self.store = broker if runtime.store == "redis" else f"sqlite:///{directory}/ids.db"
        self.environment = {
            "MINTAGE_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "RUNTIMES_BROKER": f"{broker.removesuffix('/0')}/1",
            "RUNTIMES_FILE": str(self.file),
            "RUNTIMES_STORE": self.store,
        }
        self._early = {"RUNTIMES_EARLY": "1"} if runtime.is_early else {}

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def reset(self) -> None:
        raise NotImplementedError

    def command(self) -> Sequence[str]:
        words = [word.format(port=self.port, directory=self.directory) for word in self._runtime.command]
        if self._runtime.kind == PROGRAM:
            words.append(str(self._calls))
        return [*PYTHON, *words]

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), **self.environment, **self._early}

    def launch(self) -> None:
        """Start a program, which may end at any time, unlike a server."""
        self._make_anew()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._as_account(self.command()),
                cwd=self.directory,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def answers(self) -> bool:
        if self._runtime.kind == CELERY:
            return " ready." in self.logged()
        connection = HTTPConnection(HOST, self.port, timeout=PATIENCE_S)
        try:
            connection.connect()
        except OSError:
            return False
        finally:
            connection.close()
        return True

    def signal(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    def wait(self, seconds: float) -> int:
        """Wait until it has ended.

        :raises subprocess.TimeoutExpired: if it does not.
        """
        assert self._process
        return self._process.wait(seconds)

    @property
    def first(self) -> int:
        """Return the id of the process that was started, also after its end."""
        assert self._process
        return self._process.pid

    def minted(self) -> list[list[str]]:
        """Return the lines that its workers wrote: process, kind, and IDs or errors."""
        text = self.file.read_text(encoding="utf-8") if self.file.exists() else ""
        return [line.split(" ", 2) for line in text.splitlines()]

    def calls(self) -> int:
        """Return the number of finished calls, in tasks and while the application was loaded."""
        return sum(kind in {"sequence", "failed"} for _, kind, _ in self.minted())

    def size(self) -> int:
        return self.file.stat().st_size if self.file.exists() else 0


class _Clients:
    """Threads that send requests until enough IDs were minted by enough processes."""

    def __init__(self, process: _Process, runtime: Runtime, calls: int, tally: Tally) -> None:
        self._process = process
        self._runtime = runtime
        self._calls = calls
        self._tally = tally
        self._lock = threading.Lock()
        self.answered = 0
        self._pids: set[bytes] = set()
        self._is_over = False

    def is_enough(self, part: float = 1) -> bool:
        """Return True if enough was minted of every kind, by a sufficient share of the processes."""
        return self.answered >= self._calls * part and len(self._pids) >= self._runtime.processes * part

    def run(self) -> None:
        threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            steps = len(self._runtime.signals) + 1
            for number, sent in enumerate(self._runtime.signals, 1):
                self._until(partial(self.is_enough, number / steps))
                self._process.signal(sent)
            self._until(self.is_enough)
        finally:
            self._is_over = True
            for thread in threads:
                thread.join()

    def _until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds, as long as its inputs change: answers, or the processes that gave them."""
        last, since = (0, 0), time.monotonic()
        while not condition() and self._is_sound():
            now = min(self.answered, self._calls), len(self._pids)
            if now != last:
                last, since = now, time.monotonic()
            if time.monotonic() - since > PATIENCE_S:
                self._tally.hangs.append(f"after {now[0]} answers of {now[1]} processes no other in {PATIENCE_S:.0f} s")
            time.sleep(0.01)

    def _is_sound(self) -> bool:
        return not (self._tally.hangs or len(self._tally.failed) > CLIENTS or self._is_over)

    def _ask(self, number: int) -> None:
        turn = number
        tries = 0
        while not self.is_enough() and self._is_sound():
            turn += 1
            path = "/second" if turn % 2 else "/first"
            try:
                status, body = self._request(path)
            except TimeoutError:
                self._tally.hangs.append("a request was not answered")
                return
            except (OSError, HTTPException) as error:
                # Its worker was being replaced; whatever it minted is in the file.
                tries += 1
                if tries > TRIES or self._process.pid is None:
                    self._tally.failed.append(f"a request failed: {error!r}")
                    return
                time.sleep(0.05)
                continue
            tries = 0
            with self._lock:
                if status == 200:
                    self.answered += 1
                    self._pids.add(body)
                else:
                    self._tally.failed.append(f"status {status}: {body[:200]!r}")

    def _request(self, path: str) -> tuple[int, bytes]:
        connection = HTTPConnection(HOST, self._process.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", path, headers={"Connection": "close"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


class _Settled:
    """A check that a runtime has had the same processes for a second, as many as between replacements."""

    def __init__(self, process: _Process, size: int) -> None:
        self._process = process
        self._size = size
        self._last: list[int] = []
        self._since = time.monotonic()

    def __call__(self) -> bool:
        now = self._process.family()
        if now != self._last or len(now) != self._size:
            self._last, self._since = now, time.monotonic()
        return time.monotonic() - self._since > SETTLED_S


def run(runtime: Runtime, ids: int, directory: Path, redis: Redis | None = None) -> Tally:
    """Make the runtime mint at least a number of IDs, stop it, and count."""
    tally, began = Tally(), time.monotonic()
    calls = -(-ids // EACH)
    process = _Process(directory, runtime, redis.url if redis else "", calls)
    if redis and runtime.store == "redis":
        _make_pool(redis.url)
    started: dict[int, str] = {}
    try:
        process.launch() if runtime.kind == PROGRAM else process.start()
        if runtime.kind == HTTP:
            _Clients(process, runtime, calls, tally).run()
        else:
            if runtime.kind == CELERY:
                _send(process, calls)
            _watch(process, runtime, calls, tally)
        if runtime.family and not tally.hangs:
            until(_Settled(process, runtime.family), "replaced workers have ended")
        started = {pid: _start_of(pid) for pid in process.family()}
        _stop(process, runtime, tally)
        if not tally.hangs:
            until(lambda: not _alive(started), "all its processes have ended")
    except ServerError as error:
        tally.failed.append(str(error))
    finally:
        process.kill()
        for pid in _alive(started):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    _count(process, runtime, tally)
    if not tally.refused:
        _look_at_log(process, tally)
    _look_at_leases(process, runtime, tally)
    tally.seconds = time.monotonic() - began
    return tally


def _make_pool(url: str) -> None:
    """Lift the quarantine of the pool on a server on which it is new."""
    with open_store(url) as store:
        store.create_pool("snowflake", layout=f"snowflake {write_layout(snowflake.DEFAULT)}", never_used=True)


def _send(process: _Process, calls: int) -> None:
    environment = {**os.environ, **process.environment}
    command = [*PYTHON, "tests.runtimes.tasks", str(calls)]
    subprocess.run(command, env=environment, cwd=ROOT, check=True, timeout=PATIENCE_S, capture_output=True)


def _watch(process: _Process, runtime: Runtime, calls: int, tally: Tally) -> None:
    """Wait until everything is minted, as long as there is progress; for a program until it ends."""
    size, since = process.size(), time.monotonic()
    while process.pid is not None:
        time.sleep(0.05)
        if process.size() != size:
            size, since = process.size(), time.monotonic()
        if runtime.kind == CELERY and process.calls() >= calls:
            return
        if time.monotonic() - since > PATIENCE_S:
            tally.hangs.append(f"nothing minted in {PATIENCE_S:.0f} s")
            return


def _stop(process: _Process, runtime: Runtime, tally: Tally) -> None:
    if tally.hangs:
        return
    if runtime.kind != PROGRAM:
        process.signal(signal.SIGTERM)
    try:
        code = process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        tally.hangs.append(f"it did not stop in {PATIENCE_S:.0f} s")
        return
    if runtime.kind == PROGRAM and code:
        tally.failed.append(f"it ended with {code}: {process.logged()}")


def _start_of(pid: int) -> str:
    """Return when the process started, in ticks of the kernel, as its id may be reused. Empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _alive(started: dict[int, str]) -> list[int]:
    """Return those of the processes that still run."""
    return [pid for pid, start in started.items() if start and _start_of(pid) == start]


def _count(process: _Process, runtime: Runtime, tally: Tally) -> None:
    seen: Counter[str] = Counter()
    pids = set()
    ids = 0
    for pid, kind, values in process.minted():
        if kind == "failed":
            tally.failed.append(values)
            continue
        pids.add(pid)
        made = values.split()
        ids += len(made)
        seen.update(f"{kind} {value}" for value in made)
    tally.ids, tally.equal, tally.processes = ids, ids - len(seen), len(pids)
    refused = re.findall(r"^ImportError: (.*mintage.*)$", process.logged(), re.MULTILINE) if runtime.may_refuse else []
    if refused:
        tally.refused = refused[-1]
        # What follows from it.
        tally.failed.clear()
    elif len(pids) < runtime.processes:
        tally.failed.append(f"{len(pids)} processes minted")


def _look_at_log(process: _Process, tally: Tally) -> None:
    text = process.log.read_text(encoding="utf-8", errors="replace") if process.log.exists() else ""
    for sign in ("Traceback", "the keeper failed", "restored from a snapshot"):
        if sign in text:
            tally.failed.append(f"it logged {sign!r}: {text[max(0, text.index(sign) - 500) :][:2500]}")


def _look_at_leases(process: _Process, runtime: Runtime, tally: Tally) -> None:
    if not tally.ids:
        return
    first = f":{process.first}:" if runtime.keeps_first else None
    for url in (f"sqlite:///{process.home}/registry.db", process.store):
        with open_store(url) as store:
            held = [record for record in store.list_leases() if record.token is not None]
        tally.leases += [
            f"{record.pool} {record.node} of {record.holder}"
            for record in held
            if first is None or first not in f"{record.holder}"
        ]
