"""The base of all servers: a process on loopback that starts, stops, dies and restarts with its data."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.request import ProxyHandler, build_opener

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HOST = "127.0.0.1"
PASSWORD = "p@ss:w/rd?#[1%]&+="  # reserved characters of URLs, so that a client that does not decode them is refused

START_S = 60
STOP_S = 60
ANSWER_S = 2
ATTEMPTS = 3


class ServerError(RuntimeError):
    """A server did not do what was requested; the message ends with its log."""


UNSTABLE = Path(__file__).parents[2] / ".cache" / "unstable" / "bin"
"""The folder where ``unstable.sh`` installs the programs of the unstable suite of Debian."""
BUILT = Path(__file__).parents[2] / ".cache" / "kubernetes"
"""The folder where ``kubernetes.sh`` builds kube-apiserver."""


def program(name: str) -> str | None:
    """Return the path of a program; Debian keeps those of PostgreSQL and of servers out of the search path."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parts[-2]), reverse=True)
    folders = [*map(str, versions), os.environ["PATH"], "/usr/sbin", str(UNSTABLE), str(BUILT)]
    return shutil.which(name, path=os.pathsep.join(folders))


_CHANCE: Final = random.SystemRandom()  # Hypothesis seeds the others alike in all processes
_FIRST: Final = 10_000 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_STEP: Final = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
"""Of parallel tests, each process has its own ports, or it would take that of another's server that is down."""
_given: Final = deque[int](maxlen=1000)
"""The ports that this process was given. A server that is down still has its port."""


def free_port() -> int:
    """Return a port that nobody listens on.

    It is below the range for outgoing connections, so that none of them can take it while a server is down. The same
    holds for the port ten thousand above, which is the bus of a Redis Cluster and never another server's port.
    """
    while True:
        port = _CHANCE.randrange(_FIRST, 20_000, _STEP)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            if port not in _given:
                _given.append(port)
                return port


def until(condition: Callable[[], bool], what: str, *, seconds: float = START_S) -> None:
    """Wait until the condition holds.

    :raises ServerError: if it does not within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ServerError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


open_url: Final = build_opener(ProxyHandler({})).open
"""Open a URL, whatever proxy the environment names."""


def answers(url: str) -> bool:
    """Return True if a URL answers with 200."""
    try:
        with open_url(url, timeout=30) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


class Server(ABC):
    """A real server, of one process or several, that belongs to the tests."""

    name: ClassVar[str]
    programs: ClassVar[tuple[str, ...]]
    """The programs that must be installed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    @abstractmethod
    def url(self) -> str:
        """Return the URL for ``mintage.open_store``; it never changes."""

    @abstractmethod
    def start(self) -> None:
        """Start the processes that do not run, with their data, and wait until they answer.

        Call it only in the main thread: a server dies with the thread that started it.
        """

    @abstractmethod
    def stop(self) -> None:
        """Stop it in an orderly way."""

    @abstractmethod
    def kill(self) -> None:
        """Kill it with SIGKILL."""

    @abstractmethod
    def pause(self) -> None:
        """Freeze it with SIGSTOP: connections stay open and nothing answers."""

    @abstractmethod
    def resume(self) -> None:
        """Continue after a pause."""

    @abstractmethod
    def is_up(self) -> bool:
        """Return True if it runs and answers now."""

    @abstractmethod
    def reset(self) -> None:
        """Empty it."""

    def restart(self) -> None:
        self.stop()
        self.start()

    def renew(self) -> None:
        """Make it running, intact and empty, whatever happened to it."""
        self.resume()
        self.start()
        self.reset()


@dataclass(frozen=True)
class Certificate:
    """Files: the certificate of a server for 127.0.0.1, and its private authority."""

    authority: Path
    certificate: Path
    key: Path


class Daemon(Server):
    """A server of one process."""

    account: ClassVar[str | None] = None
    """The account that runs it if root runs the tests, for servers that refuse root."""
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.port = 0
        self.is_new = True
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Create everything that is needed before the first start."""

    def prepare(self) -> None:
        """Create everything that is needed after the first start: accounts, a database."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return the program and its options."""

    @abstractmethod
    def answers(self) -> bool:
        """Return True if somebody answers at the port."""

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def certified(self) -> Certificate:
        """Return the certificate of the server, made at its first use."""
        made = Certificate(*(self.directory / name for name in ("authority.pem", "server.pem", "server.key")))
        if not made.key.exists():
            for file, name, more in (
                (made.authority, "authority", []),
                (
                    made.certificate,
                    self.name,
                    [
                        *("-CA", str(made.authority), "-CAkey", str(made.authority.with_suffix(".key"))),
                        *("-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"subjectAltName=IP:{HOST}"),
                    ],
                ),
            ):
                self.run(
                    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
                    *("-days", "2", "-subj", f"/CN={name}"),
                    *("-keyout", str(file.with_suffix(".key")), "-out", str(file), *more),
                )
        return made

    @property
    def pid(self) -> int | None:
        """Return the id of the running process."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def is_up(self) -> bool:
        return self.pid is not None and self.answers()

    def start(self) -> None:
        if self.pid:
            return
        assert threading.current_thread() is threading.main_thread(), "servers die with the thread that starts them"
        tried = ""
        # A free port may be taken a moment later, and the last process may release its port a moment late.
        for _ in range(ATTEMPTS):
            if self.is_new:
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
            try:
                until(lambda: self.pid is None or self.answers(), f"{self.name} answers")
            except ServerError as error:
                self.kill()
                raise ServerError(f"{error}\n{self.logged()}") from None
            if self.pid:
                if self.is_new:
                    self.prepare()
                    self.is_new = False
                return
            tried = self.logged()
        raise ServerError(f"{self.name} ended {ATTEMPTS} times while it started\n{tried}")

    def stop(self) -> None:
        self.resume()
        if self._process is None:
            return
        self._process.send_signal(self.stop_signal)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerError(f"{self.name} did not stop within {STOP_S} s\n{self.logged()}") from None

    def kill(self) -> None:
        self._freeze()
        self._signal(signal.SIGKILL)
        if self._process:
            self._process.wait()

    def pause(self) -> None:
        self._freeze()
        until(lambda: all(state(pid) in "TtZ" for pid in self.family()), f"{self.name} is frozen")

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def run(self, name: str, *arguments: str, text: str = "", env: dict[str, str] | None = None) -> str:
        """Return the output of a program that comes with the server.

        :raises ServerError: if it fails, or takes longer than a start may.
        """
        return self._run(START_S, [name, *arguments], text, env)

    def reaches(self, name: str, *arguments: str, env: dict[str, str] | None = None) -> bool:
        """Return True if a client program of the server succeeds at once."""
        try:
            self._run(ANSWER_S, [name, *arguments], "", env)
        except ServerError:
            return False
        return True

    def _run(self, seconds: float, command: list[str], text: str, env: dict[str, str] | None) -> str:
        try:
            done = subprocess.run(
                self._as_account(command),
                input=text,
                capture_output=True,
                text=True,
                cwd=self.directory,
                env=self._environment() | (env or {}),
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ServerError(f"{command[0]} took longer than {seconds} s\n{self.logged()}") from None
        if done.returncode:
            raise ServerError(f"{command[0]} failed: {done.stdout}{done.stderr}\n{self.logged()}")
        return done.stdout

    def _make_anew(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        if self.account and os.geteuid() == 0:
            shutil.chown(self.directory, self.account, self.account)
        self.port = free_port()
        self.create()

    def _as_account(self, command: Sequence[str]) -> list[str]:
        """Return the command for the required account, killed if the tests die."""
        account = self.account if os.geteuid() == 0 else None
        who = ["--reuid", account, "--regid", account, "--init-groups"] if account else []
        return ["setpriv", "--pdeathsig", "KILL", *who, program(command[0]) or command[0], *command[1:]]

    def _environment(self) -> dict[str, str]:
        """Return an environment without our variables, which clients and servers would use."""
        return {"PATH": os.pathsep.join([os.environ["PATH"], "/usr/sbin"]), "LC_ALL": "C.UTF-8"}

    def family(self) -> list[int]:
        """Return the process and its descendants."""
        return family(self.pid) if self.pid else []

    def _freeze(self) -> None:
        # A second time, for processes forked just before the freeze.
        for _ in range(2):
            self._signal(signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.family():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def logged(self) -> str:
        """Return the end of its log."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join([f"The end of {self.log}:", *text.splitlines()[-40:]])


class Group(Server):
    """A server of several processes."""

    members: Sequence[Daemon]

    def stop(self) -> None:
        for member in self.members:
            member.stop()

    def kill(self) -> None:
        for member in self.members:
            member.kill()

    def pause(self) -> None:
        for member in self.members:
            member.pause()

    def resume(self) -> None:
        for member in self.members:
            member.resume()

    def is_up(self) -> bool:
        return all(member.is_up() for member in self.members)

    def family(self) -> list[int]:
        """Return the processes of all members and their descendants."""
        return [pid for member in self.members for pid in member.family()]

    def until(self, condition: Callable[[], bool], what: str, *, seconds: float = START_S) -> None:
        """Wait until the condition holds.

        :raises ServerError: if it does not within ``seconds``, with the logs of all members.
        """
        try:
            until(condition, what, seconds=seconds)
        except ServerError as error:
            raise ServerError("\n".join([str(error), *(member.logged() for member in self.members)])) from None


def family(pid: int) -> list[int]:
    """Return a process and its descendants, parents first."""
    found = [pid]
    for parent in found:
        with suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split())
    return found


def state(pid: int) -> str:
    """Return the state letter of a process in proc(5); an ended process is a zombie, ``Z``."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"
