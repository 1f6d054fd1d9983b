"""Programs in other languages (``clients/``): what an application does with the service by an unmodified Redis client.

Each has the words PORT PROTOCOL NAMESPACE KEY. It increments, reserves, reads, sends a pipeline and a transaction,
mints, and sends a command that does not exist. It prints what it got as one line of JSON, waits for a line, increments
until the client is connected again, and prints the integer.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from mintage import sno

if TYPE_CHECKING:
    from collections.abc import Mapping

CLIENTS = Path(__file__).parent / "clients"
CACHE = Path(__file__).parents[2] / "target" / "clients"


@dataclass(frozen=True)
class Program:
    """The directory of a program, how it is built and run there, and the protocols that its client can be told."""

    directory: str
    words: tuple[str, ...]
    build: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("2", "3")
    tools: tuple[str, ...] = ()
    """Other programs and files that it needs."""


_GO: Final = ("go", "build", "-mod=readonly", "-o", "client", ".")
_NPM: Final = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
_JARS: Final = "mvn -q -B dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=jars"
_JAVA: Final = ("sh", "-c", f"{_JARS} && javac -nowarn -cp 'jars/*' -d classes *.java")
_PHP: Final = "/usr/share/php/Predis/Autoloader.php"

PROGRAMS: Final[dict[str, Program]] = {
    "redis-py": Program("python", (sys.executable, "client.py", "redis")),
    "redis-py asyncio": Program("python", (sys.executable, "client.py", "redis.asyncio")),
    "valkey-py": Program("python", (sys.executable, "client.py", "valkey")),
    "go-redis": Program("go", ("./client",), _GO),
    "rueidis": Program("rueidis", ("./client",), _GO),
    "node-redis": Program("node", ("node", "client.mjs"), _NPM, tools=("node",)),
    "ioredis": Program("ioredis", ("node", "client.mjs"), _NPM, tools=("node",)),
    "Jedis": Program("java", ("java", "-cp", "classes:jars/*", "UseJedis"), _JAVA, tools=("mvn", "javac")),
    "Lettuce": Program("java", ("java", "-cp", "classes:jars/*", "UseLettuce"), _JAVA, tools=("mvn", "javac")),
    "Redisson": Program("java", ("java", "-cp", "classes:jars/*", "UseRedisson"), _JAVA, tools=("mvn", "javac")),
    "redis-rs": Program("rust", ("./target/debug/mintage-redis-rs-client",), ("cargo", "build", "--quiet")),
    "hiredis": Program(
        "c", ("./client",), ("cc", "-o", "client", "client.c", "-lhiredis"), ("2",), ("/usr/include/hiredis/hiredis.h",)
    ),
    "phpredis": Program("php", ("php", "phpredis.php"), protocols=("2",)),
    "predis": Program("php", ("php", "predis.php"), protocols=("2",), tools=(_PHP,)),
    "redis-rb": Program("ruby", ("ruby", "client.rb"), protocols=("2",)),
}
"""The program of each client, of six languages and more."""


def run(*words: str | Path, said: str | bytes = b"", **environment: str) -> str:
    """Return the output of a program, which must not fail."""
    done = subprocess.run(
        words,
        input=said.encode() if isinstance(said, str) else said,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout.decode()


def installed(name: str, *, must: bool = False) -> str:
    """Return the path of a tool. Skip if it is missing; fail if it is required."""
    path = name if name.startswith("/") and Path(name).exists() else shutil.which(name)
    if path is None:
        (pytest.fail if must else pytest.skip)(f"{name} is not installed")
    return path


def words_of(client: str, *, must: bool = False) -> list[str]:
    """Return the words that run the program of a client. Skip if it cannot be built here; fail if it is required."""
    program = PROGRAMS[client]
    for tool in (*program.tools, *program.build[:1], program.words[0]):
        if not tool.startswith("./"):
            installed(tool, must=must)
    place = _built(program.directory, program.build)
    if isinstance(place, str):
        (pytest.fail if must else pytest.skip)(place)
    return ["env", f"--chdir={place}", *program.words]


@cache
def _built(directory: str, build: tuple[str, ...]) -> Path | str:
    """Return a built copy of the files of a program, or the reason of its failure, such as no network."""
    files = sorted(path for path in (CLIENTS / directory).rglob("*") if path.is_file() and path.suffix != ".pyc")
    fingerprint = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    place = CACHE / f"{directory}-{fingerprint}"
    if place.exists() or not build:
        return place if build else CLIENTS / directory
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as made:
        making = Path(made) / "client"
        shutil.copytree(CLIENTS / directory, making, ignore=shutil.ignore_patterns("node_modules"))
        # No download of a compiler, no shared directory of builds, and no long waits for an unavailable registry.
        bounds = {"GOTOOLCHAIN": "local", "npm_config_fetch_retries": "1", "npm_config_fetch_timeout": "20000"}
        environment = {**os.environ, **bounds, "CARGO_TARGET_DIR": "target"}
        try:
            done = subprocess.run(build, cwd=making, env=environment, capture_output=True, timeout=600, check=False)
        except subprocess.TimeoutExpired:
            return f"{directory}: the client could not be installed in time"
        if done.returncode != 0:
            said = (done.stderr + done.stdout).decode(errors="replace")[-400:]
            return f"{directory}: the client cannot be installed: {said}"
        making.rename(place)
    return place


def check(got: Mapping[str, Any], first: int) -> None:
    """Check what a program printed first, if nobody else took integers of its namespace."""
    assert (got["first"], got["row"], got["read"]) == (first, first + 10, first + 10)
    assert sorted(got["many"]) == list(range(first + 11, first + 1011))
    after = first + 1011 + len(got.get("pipeline", ())[::2])
    assert got["atomic"] == [after, after + 1]
    assert len({sno.ID.parse(each) for each in [got["id"], *got["ids"]]}) == 4
    assert "unknown command 'set'" in got["refused"].lower()
    assert got["is_typed"], "the client raises it as the error of a server"
