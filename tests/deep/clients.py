"""Tests of unmodified Redis clients in several languages, each on a service that restarts. Part of ``make deep``.

python -m pytest tests/deep/clients.py
"""

from __future__ import annotations

import json
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mintage.server.config.keys import new_key
from tests.servers import must_run
from tests.service.programs import PROGRAMS, check, words_of
from tests.service.running import Running, key_toml, running

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = new_key()
PATIENCE_S = 120
EVERY = [(client, protocol) for client, program in PROGRAMS.items() for protocol in program.protocols]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    toml = "auto_create = true\n" + key_toml("clients", KEY, {"orders": ["next", "describe"], "sno": ["mint"]})
    with running(tmp_path_factory.mktemp("service"), toml=toml) as service:
        yield service


class Talk:
    """A program that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def read(self) -> dict[str, Any]:
        """Return the line that it prints next."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr
            pytest.fail(f"the program ended: {self._process.stderr.read()}")
        return dict(json.loads(line))

    def go_on(self) -> None:
        """Let it increment again."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()


@contextmanager
def talk(service: Running, client: str, protocol: str) -> Iterator[Talk]:
    """Run a program, which must end without a failure."""
    words = [*words_of(client, must=must_run("redis")), str(service.redis[1]), protocol, "orders", KEY]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        late = threading.Timer(PATIENCE_S, process.kill)
        late.start()
        try:
            yield Talk(process)
            _, said = process.communicate()
            assert process.returncode == 0, said
        finally:
            late.cancel()
            process.kill()


def integers(got: dict[str, Any]) -> list[int]:
    """Return the integers that a program got; of a row, all."""
    row = range(got["row"] - 9, got["row"] + 1)
    return [got["first"], *row, *got["many"], *got.get("pipeline", ())[::2], *got["atomic"]]


@pytest.mark.parametrize(("client", "protocol"), EVERY)
def test_client_works_unchanged_and_connects_again(service: Running, client: str, protocol: str) -> None:
    with talk(service, client, protocol) as program:
        got = program.read()
        check(got, got["first"])
        service.serving.stop()
        service.serving.start()
        program.go_on()
        assert program.read()["again"] > max(integers(got))


def test_clients_at_once_get_distinct_integers(service: Running) -> None:
    def all_of(client: str) -> list[int]:
        with talk(service, client, PROGRAMS[client].protocols[-1]) as program:
            got = program.read()
            program.go_on()
            return [*integers(got), program.read()["again"]]

    with ThreadPoolExecutor(len(PROGRAMS)) as threads:
        given = [integer for some in threads.map(all_of, PROGRAMS) for integer in some]
    assert len(set(given)) == len(given)
