"""The libraries, and a running program of one that obeys lines; `minter.py` describes them."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from threading import Timer
from typing import IO, Final

from benchmarks.repeats import FAKETIME
from benchmarks.timing import BUILT, UnavailableError, go_program

PEERS: Final = Path(__file__).parents[1] / "peers"
GO, JAVA = PEERS / "gomachine", PEERS / "javamachine"
LIMIT_S: Final = 120
"""Seconds after which a program is killed."""
EACH_TICK: Final = 4_096_000
"""IDs a second of a layout with 12 bits of sequence in each millisecond."""


@cache
def java_program(source: Path) -> tuple[str, ...]:
    """Return the command of the Java program in a folder; Maven fetches its libraries.

    :raises UnavailableError: without a JDK or Maven, or if one of them fails.
    """
    if missing := [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]:
        raise UnavailableError(f"{missing[0]} is not installed")
    built, program = BUILT / source.name, source / "Machine.java"
    libraries = built / "classpath"
    built.mkdir(parents=True, exist_ok=True)
    steps: list[Sequence[str]] = []
    if _is_older(libraries, source / "pom.xml"):
        steps.append(["mvn", "-q", "-B", "dependency:build-classpath", f"-Dmdep.outputFile={libraries}"])
    if steps or _is_older(built / "Machine.class", program):
        steps.append(["javac", "-d", str(built), "-cp", f"@{libraries}", str(program)])
    for step in steps:
        command = [libraries.read_text("utf-8") if word.startswith("@") else word for word in step]
        done = subprocess.run(command, cwd=source, check=False, capture_output=True, text=True)
        if done.returncode:
            raise UnavailableError(f"{step[0]}: {(done.stdout + done.stderr).strip().splitlines()[0]}")
    return "java", "-cp", os.pathsep.join([str(built), libraries.read_text("utf-8")]), "Machine"


def _is_older(built: Path, source: Path) -> bool:
    return not built.exists() or built.stat().st_mtime < source.stat().st_mtime


@dataclass(frozen=True)
class Library:
    """A library of the tables."""

    label: str
    command: Callable[[], Sequence[str]]
    ceiling: int = EACH_TICK
    """The IDs a second that its layout has for one machine id."""
    is_steppable: bool = True
    """True if libfaketime can set the clock of its process."""
    is_ours: bool = False


def ours(kind: str) -> Library:
    """Return a generator of mintage: `leased`, or `number`, which is 1."""
    label = {"leased": "mintage.snowflake, leased", "number": "mintage.snowflake, number 1 by hand"}[kind]
    return Library(label, lambda: [sys.executable, "-m", "benchmarks.machine_ids.minter", kind], is_ours=True)


LIBRARIES: Final = (
    ours("leased"),
    ours("number"),
    Library("bwmarrin/snowflake (Go)", lambda: [go_program(GO), "bwmarrin"], is_steppable=False),
    Library("sonyflake v2 (Go)", lambda: [go_program(GO), "sonyflake"], 25_600, is_steppable=False),
    Library("CosId (Java)", lambda: [*java_program(JAVA), "cosid"]),
    Library("hutool Snowflake (Java)", lambda: [*java_program(JAVA), "hutool"]),
)


def versions() -> dict[str, str]:
    """Return the versions of the libraries of others."""
    go = re.findall(r"^\s(\S+) v(\S+)$", (GO / "go.mod").read_text("utf-8"), re.MULTILINE)
    java = re.findall(
        r"<groupId>(\S+)</groupId>\s+<artifactId>(\S+)</artifactId>\s+<version>(\S+)</version>\s+</dependency>",
        (JAVA / "pom.xml").read_text("utf-8"),
    )
    return dict(go) | {f"{group}:{name}": version for group, name, version in java}


class RefusedError(Exception):
    """A library raised an error; the text is its own."""


@dataclass(frozen=True)
class Interval:
    """The IDs that a program minted in an interval."""

    began: float
    ended: float
    """Unix times that the program saw."""
    ids: list[str]
    waited_s: float = 0
    """Seconds that the answer took, beyond the interval."""


class Program:
    """A running program."""

    def __init__(self, process: "subprocess.Popen[str]", clock: Path | None) -> None:
        assert process.stdin
        assert process.stdout
        self._lines: IO[str] = process.stdin
        self._answers: IO[str] = process.stdout
        self._clock = clock

    def ask(self, line: str) -> None:
        """Give an order; `answer` tells if the program has ended."""
        with suppress(BrokenPipeError):
            self._lines.write(f"{line}\n")
            self._lines.flush()

    def end(self) -> None:
        """End its input."""
        with suppress(BrokenPipeError):
            self._lines.close()

    def answer(self) -> str:
        """Return the answer to the next order.

        :raises RefusedError: the library raised an error, or its program ended.
        """
        line = self._answers.readline()
        kind, _, text = line.strip().partition(" ")
        if kind == "error" or not line:
            raise RefusedError(text or "no answer")
        return line

    def minted(self) -> Interval:
        """Return the answer to `mint`."""
        began, ended, *ids = self.answer().split()
        return Interval(float(began), float(ended), ids)

    def mint(self, seconds: float) -> Interval:
        """Mint at once."""
        began = time.monotonic()
        self.ask(f"mint 0 {seconds}")
        found = self.minted()
        return replace(found, waited_s=time.monotonic() - began - seconds)

    def rate(self, seconds: float) -> float:
        """Return IDs a second."""
        self.ask(f"rate {seconds}")
        return float(self.answer())

    def set_behind(self, seconds: float) -> None:
        """Set the clock of the program behind that of the machine."""
        if self._clock:
            self._clock.write_text(f"-{seconds:.3f}\n", encoding="ascii")
        else:
            self.ask(f"behind {seconds:.3f}")
            self.answer()


@contextmanager
def running(library: Library, home: str, *, faked: bool = False, limit_s: float = LIMIT_S) -> Iterator[Program]:
    """Run a program until the end of the block, which is an ordinary end.

    :param faked: True to set its clock by libfaketime.
    :param limit_s: the seconds after which it is killed.
    """
    environment, clock = {**os.environ, "MINTAGE_HOME": home}, None
    if faked:
        clock = Path(home, f"clock-{time.monotonic_ns()}")
        clock.write_text("+0\n", encoding="ascii")
        environment |= {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
    with subprocess.Popen(
        library.command(),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        limit = Timer(limit_s, process.kill)
        limit.start()
        program = Program(process, clock)
        try:
            program.answer()
            yield program
            program.end()
            process.wait()
        finally:
            limit.cancel()
            process.kill()
            program.end()
