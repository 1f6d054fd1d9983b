"""Tests of the warning of ``memory:`` in worker processes, each of which would have a store of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import httpx
import pytest

from tests.helpers import web
from tests.servers.server import HOST, free_port, until

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENT: Final = {key: value for key, value in os.environ.items() if key != "MINTAGE_STORE"}
WARNED: Final = re.compile(
    r"UniquenessWarning: memory: is a store of this process alone, and this process "
    r"(is a child of process \d+ by multiprocessing|was forked from process \d+): it and its siblings mint equal IDs"
)
APP: Final = """
import os
from contextlib import asynccontextmanager
from mintage import sno

ids = sno.Generator(store="memory:")

async def app(scope, receive, send):
    if scope["type"] == "http":
        body = f"{os.getpid()} {ids.new()}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})
"""
MINTS: Final = """
from mintage import Sequence, sno
assert sno.Generator(store="memory:").new()
assert Sequence("orders", "memory:").next() == 1
"""
CHILDREN: Final = {
    "forked before mintage is imported": f"import os\nif os.fork(): os.wait(); os._exit(0)\n{MINTS}",
    "forked after mintage is imported": f"import os, mintage.sno\nif os.fork(): os.wait(); os._exit(0)\n{MINTS}",
    **{
        f"multiprocessing, {method}": f"""
import multiprocessing
def mint():
{"".join(f"    {line}" for line in MINTS.strip().splitlines(keepends=True))}
if __name__ == "__main__":
    child = multiprocessing.get_context({method!r}).Process(target=mint)
    child.start()
    child.join()
    assert child.exitcode == 0
"""
        for method in ("fork", "forkserver", "spawn")
    },
}


def ended(folder: Path, *words: str) -> str:
    """Run Python to its end, and return what it wrote to standard error."""
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("name", CHILDREN)
def test_child_process_is_warned_once_of_its_own_memory_store(tmp_path: Path, name: str) -> None:
    if sys.platform != "linux" and name.startswith("forked before"):
        pytest.skip("only Linux shows it")
    (tmp_path / "program.py").write_text(CHILDREN[name], encoding="utf-8")
    said = ended(tmp_path, "program.py")
    assert len(WARNED.findall(said)) == 1, said
    # At the line that makes the generator, not at one of mintage's.
    assert re.search(r"program\.py:\d+: UniquenessWarning", said), said


def test_uvicorn_workers_are_warned(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    port = free_port()
    log = tmp_path / "log"
    command = [sys.executable, "-m", "uvicorn", "app:app", "--workers", "2", "--port", str(port), "--lifespan", "off"]
    # It would replace a worker that a busy machine holds up, and the next one would be warned as well.
    command += ["--timeout-worker-healthcheck", "60"]
    with log.open("wb") as file:
        server = subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stdout=file, stderr=file)
    try:

        def answered() -> set[str]:
            # A connection each, so that both workers are asked.
            try:
                return {web.get(f"http://{HOST}:{port}").text.split()[0] for _ in range(20)}
            except httpx.TransportError:
                return set()

        until(lambda: len(answered()) == 2, "both workers mint", seconds=60)
        said = log.read_text(encoding="utf-8")
        assert len(WARNED.findall(said)) == 2, said
    finally:
        server.terminate()
        server.wait(60)


def test_single_process_is_not_warned(tmp_path: Path) -> None:
    assert ended(tmp_path, "-W", "error", "-c", MINTS) == ""


def test_parallel_test_processes_are_not_warned(tmp_path: Path) -> None:
    tests = "\n".join(f"def test_{n}():\n{''.join(f'    {line}' for line in MINTS.splitlines(True))}" for n in range(4))
    (tmp_path / "test_parallel.py").write_text(tests.replace("== 1", ">= 1"), encoding="utf-8")
    words = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-W", "error::mintage.errors.UniquenessWarning"]
    assert ended(tmp_path, *words, "--rootdir", str(tmp_path), str(tmp_path)) == ""
