"""Run an example by the commands of its README, in a folder with nothing but a copy of the example."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from packaging.requirements import InvalidRequirement, Requirement

from tests.servers.server import HOST, answers, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
BOUND_S: Final = 250
LATE: Final = "no answer in 1000 ms: try again"
TRIES: Final = 10
"""Of a command, each of which a machine that stalls may hold up."""


def json_values(text: str) -> list[Any]:
    """Return the consecutive JSON values in a text, as curl prints them."""
    decoder, found = json.JSONDecoder(), []
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


class Example:
    """A copy of an example, and the environment in which a reader runs its commands.

    ``environment`` has the exported variables. ``places`` replaces texts in the commands, such as the port of a
    service.
    """

    def __init__(
        self, name: str, folder: Path, environment: Mapping[str, str] = {}, places: Mapping[str, str] = {}
    ) -> None:
        self.folder = folder / name
        shutil.copytree(EXAMPLES / name, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.log = self.folder.with_suffix(".log")
        """The output of the service that :meth:`serve` runs."""
        self._places = dict(places)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        own = {"MINTAGE_HOME": str(folder / "home"), "PYTHONDONTWRITEBYTECODE": "1", "NO_PROXY": HOST, "no_proxy": HOST}
        self.environment = {**os.environ, **own, **environment, "PATH": path}

    @property
    def lines(self) -> list[str]:
        """Return the commands of the README in order, without installations and exports."""
        return [line for line in self._commands() if line.split()[0] not in {"pip", "export"}]

    def _commands(self) -> list[str]:
        readme = (self.folder / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"(?ms)^```(console)?\n(.*?)^```", readme)
        commands = []
        for kind, block in blocks:
            for line in block.replace("\\\n", "").splitlines():
                if not kind:
                    commands.append(line)
                elif line.startswith("$ "):
                    commands.append(line.removeprefix("$ "))
        return commands

    def check_installs(self) -> None:
        """Assert that the ``pip install`` lines name the packages that the tests run with."""
        for line in self._commands():
            words = line.split()
            if words[:2] != ["pip", "install"]:
                continue
            for word in words[2:]:
                named = word.strip("'\"")
                if named == "-r":
                    continue
                texts = [named]
                if named.endswith(".txt"):
                    texts = (self.folder / named).read_text(encoding="utf-8").splitlines()
                for text in texts:
                    if text.startswith(("../..", "#")):
                        continue
                    try:
                        requirement = Requirement(text)
                    except InvalidRequirement:
                        raise AssertionError(f"{line!r} names {text!r}") from None
                    assert requirement.specifier.contains(version(requirement.name))

    def run(self, line: str, *, check: bool = True) -> str:
        """Return the output of a command, or of several in one shell.

        Assert that it succeeds; without ``check``, return its error output as well. As a reader does, repeat a command
        that waited a second for its first ID, as on a machine that stalls, and says so.
        """
        for _ in range(TRIES):
            done = self._done(line)
            if not (check and done.returncode and LATE in done.stderr):
                break
        if check:
            assert done.returncode == 0, f"{line}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout if check else done.stdout + done.stderr

    def _done(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-ec", self._placed(line)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )

    @contextmanager
    def serve(self, line: str, url: str) -> Iterator[str]:
        """Run a service until the block ends; it answers ``url`` with 200 first."""
        log = self.log
        with log.open("w+") as file:
            process = subprocess.Popen(
                ["sh", "-c", f"exec {self._placed(line)}"],
                cwd=self.folder,
                env=self.environment,
                stdout=file,
                stderr=file,
            )

            def is_up() -> bool:
                assert process.poll() is None, log.read_text(encoding="utf-8")
                return answers(url)

            try:
                until(is_up, f"{line} answers")
                yield url
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        assert process.returncode == 0, log.read_text(encoding="utf-8")[-3000:]

    def _placed(self, line: str) -> str:
        for old, new in self._places.items():
            line = line.replace(old, new)
        return line
