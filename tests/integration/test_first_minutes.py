"""The first five minutes of a newcomer who has only Python: install the wheel, mint, inspect, serve and ask."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request

import pytest

from tests.helpers.output import first_snippet, shape
from tests.helpers.wheel import build_wheel
from tests.servers.server import HOST, answers, free_port, open_url, until
from tests.service.wire import command, say

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.servers


def run(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, timeout=250, **options)


class Newcomer:
    """An environment that has the wheel with the extra of the service, and nothing else on its PATH."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self._programs = folder / "venv" / "bin"
        run(sys.executable, "-m", "venv", folder / "venv").check_returncode()
        # The settings of pip are the tester's: they may name a mirror of the package index.
        self.environment = {**os.environ, "PATH": str(self._programs)}
        self.run("pip", "install", "--quiet", f"{wheel}[server]")
        self.environment = {"PATH": str(self._programs), "HOME": str(self.home), "NO_COLOR": "1", "no_proxy": HOST}

    def attempt(self, program: str, *words: object) -> subprocess.CompletedProcess[str]:
        return run(self._programs / program, *words, cwd=self.home, env=self.environment)

    def run(self, program: str, *words: object) -> str:
        done = self.attempt(program, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def serve(self, http: str, redis: str) -> subprocess.Popen[bytes]:
        words = [str(self._programs / "mintage"), "serve", "--http", http, "--redis", redis]
        with (self.home / "serve.log").open("wb") as log:
            return subprocess.Popen(words, cwd=self.home, env=self.environment, stdout=log, stderr=log)


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    folder = tmp_path_factory.mktemp("newcomer")
    # In the directory that `make build` compiles into, so that little is compiled again.
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return Newcomer(folder, build_wheel(ROOT, sys.executable, folder / "wheels", target=target))


@pytest.fixture
def service(newcomer: Newcomer) -> Iterator[tuple[str, int]]:
    """Start the service; return the address of its HTTP interface and the port of the other one."""
    http, redis = free_port(), free_port()
    process = newcomer.serve(f"{HOST}:{http}", f"{HOST}:{redis}")
    log = newcomer.home / "serve.log"

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text("utf-8")
        return answers(f"http://{HOST}:{http}/readyz")

    try:
        until(is_ready, "the service is ready")
        yield f"http://{HOST}:{http}", redis
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, log.read_text("utf-8")
    finally:
        process.kill()
        process.wait()


def test_first_snippet_of_the_readme_prints_what_it_shows(newcomer: Newcomer) -> None:
    snippet, output = first_snippet()
    assert shape(newcomer.run("python", "-c", snippet)) == shape(output)


def test_command_mints_and_explains_an_id(newcomer: Newcomer) -> None:
    first, second = newcomer.run("mintage", "new", "sno", "-n", "2").split()
    assert first < second
    assert "partition" in newcomer.run("mintage", "inspect", first)
    assert newcomer.run("mintage", "doctor")


def test_service_answers_each_of_its_protocols(newcomer: Newcomer, service: tuple[str, int]) -> None:
    url, port = service
    client = f"import mintage; print(mintage.Client('{url}').next('orders'))"
    assert newcomer.run("python", "-c", client) == "1\n"
    body = json.dumps({"serviceName": "orders", "count": 3}).encode()
    with open_url(Request(f"{url}/alloc", body, {"Content-Type": "application/json"}), timeout=30) as answer:
        assert answer.status == 200
        integers = json.load(answer)["data"]["ids"]
    assert len(set(integers)) == 3
    reply = say((HOST, port), command("INCR", "orders") + command("QUIT"))
    assert int(reply.split(b"\r\n")[0].removeprefix(b":")) > 1


def test_missing_driver_names_the_command_that_installs_it(newcomer: Newcomer) -> None:
    code = "from mintage import Sequence; Sequence('orders', store='postgresql://127.0.0.1/ids').next()"
    done = newcomer.attempt("python", "-c", code)
    assert done.stderr.splitlines()[-1].endswith("pip install 'mintage[postgresql]'")
