"""The last tagged version and this one mint from one store at the same time, and through each other's service."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.compatibility import tagged
from tests.service.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORKER: Final = Path(__file__).with_name("worker.py")
SECONDS: Final = 120
"""The longest that a worker may take to end."""
SERVERS: Final = ("mariadb", "mysql", "postgresql", "redis", "valkey", "etcd")


@pytest.fixture(scope="module")
def pythons() -> list[str]:
    """Return the interpreters of the tagged version and of this one."""
    commit = tagged.last_version()
    if commit is None:
        pytest.skip("no version is tagged before this commit: its tag, such as v0.1.0, is what this test builds")
    return [str(tagged.installed(commit)), sys.executable]


class Worker:
    """A process that mints, and what it has minted so far, a round each."""

    def __init__(self, stack: ExitStack, python: str, store: str, home: Path) -> None:
        # The directory of the script is first on the path of Python, and has no package called mintage.
        command, environment = [python, str(WORKER), store, "orders"], {"MINTAGE_HOME": str(home), "PATH": ""}
        pipe = subprocess.PIPE
        self._process = stack.enter_context(
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=home)
        )
        self.kill = self._process.kill
        stack.callback(self.kill)
        self.minted: list[dict[str, Any]] = []

    def wait_for_first_round(self) -> None:
        assert self._process.stdout is not None
        self.minted.append(json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self.minted += map(json.loads, self._process.stdout)
        assert self._process.wait(SECONDS) == 0


def assert_unique(workers: Sequence[Worker]) -> None:
    for kind in ("sno", "snowflake", "integer"):
        ids = [each for worker in workers for minted in worker.minted for each in minted[kind]]
        assert len(ids) == len(set(ids)) > 0, kind


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ids.db"
    url: str = request.getfixturevalue(request.param).url
    for pool in ("sno", "snowflake"):  # or Redis, which is new, keeps the numbers in quarantine
        command = [sys.executable, "-m", "mintage", "pools", "create", pool, "--store", url]
        subprocess.run(command, check=True, capture_output=True)
    return url


each_store = pytest.mark.parametrize("store", ["sqlite", *SERVERS], indirect=True)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@each_store
def test_both_versions_on_one_store_mint_no_id_twice(
    pythons: list[str], store: str, tmp_path: Path, stack: ExitStack
) -> None:
    workers = [Worker(stack, python, store, tmp_path) for python in pythons * 2]
    # All of them mint at the same time before the first one ends.
    for worker in workers:
        worker.wait_for_first_round()
    for worker in workers:
        worker.end()
    assert_unique(workers)
    assert len({worker.minted[0]["file"] for worker in workers}) == 2


@each_store
@pytest.mark.parametrize("order", [1, -1], ids=["upgrade", "downgrade"])
def test_a_version_goes_on_after_another_that_was_killed(
    pythons: list[str], store: str, order: int, tmp_path: Path, stack: ExitStack
) -> None:
    before, after = pythons[::order]
    killed = Worker(stack, before, store, tmp_path)
    killed.wait_for_first_round()
    killed.kill()
    later = [Worker(stack, python, store, tmp_path) for python in (before, after)]
    for worker in later:
        worker.wait_for_first_round()
    for worker in later:
        worker.end()
    assert_unique([killed, *later])


@pytest.mark.parametrize("order", [1, -1], ids=["older service", "newer service"])
def test_clients_of_a_version_use_the_service_of_another(
    pythons: list[str], order: int, tmp_path: Path, stack: ExitStack
) -> None:
    serving, asking = pythons[::order]
    service = Serving(tmp_path / "service", f"sqlite:///{tmp_path}/ids.db")
    service.python = serving
    stack.callback(service.kill)
    service.start()
    workers = [Worker(stack, python, service.url, tmp_path) for python in (asking, serving)]
    for worker in workers:
        worker.wait_for_first_round()
    for worker in workers:
        worker.end()
    assert_unique(workers)
    service.stop()
