"""The last tagged version and this one mint from one store at the same time, and through each other's service."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    tag = tagged.last_tag()
    if tag is None:
        pytest.skip("no version is tagged before this commit: its tag, such as v0.1.0, is what this test builds")
    return [str(tagged.installed(tag)), sys.executable]


class Worker(NamedTuple):
    """A process that mints, and the interpreter that runs it."""

    python: str
    process: subprocess.Popen[str]


def start(stack: ExitStack, python: str, store: str, home: Path) -> Worker:
    command = [python, str(WORKER), store, "orders"]
    # The directory of the script is first on the path of Python, and has no package called mintage.
    environment = {"MINTAGE_HOME": str(home), "PATH": ""}
    process = stack.enter_context(
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=home)
    )
    stack.callback(process.kill)
    return Worker(python, process)


def end(worker: Worker) -> dict[str, Any]:
    """Let a worker end, and return what it minted."""
    output, _ = worker.process.communicate(timeout=SECONDS)
    assert worker.process.returncode == 0
    minted: dict[str, Any] = json.loads(output.splitlines()[-1])
    return minted


def is_ready(worker: Worker) -> bool:
    assert worker.process.stdout is not None
    return worker.process.stdout.readline() == "ready\n"


def assert_unique(minted: Sequence[dict[str, Any]]) -> None:
    for kind in ("sno", "snowflake", "integer"):
        ids = [each for one in minted for each in one[kind]]
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
    workers = [start(stack, python, store, tmp_path) for python in pythons * 2]
    # All of them mint at the same time before the first one ends.
    assert [is_ready(worker) for worker in workers] == [True] * len(workers)
    minted = [end(worker) for worker in workers]
    assert_unique(minted)
    assert minted[0]["file"] != minted[1]["file"]


@each_store
@pytest.mark.parametrize("order", [1, -1], ids=["upgrade", "downgrade"])
def test_a_version_goes_on_after_another_that_was_killed(
    pythons: list[str], store: str, order: int, tmp_path: Path, stack: ExitStack
) -> None:
    before, after = pythons[::order]
    killed = start(stack, before, store, tmp_path)
    assert is_ready(killed)
    killed.process.kill()
    first = start(stack, before, store, tmp_path)
    assert is_ready(first)
    second = start(stack, after, store, tmp_path)
    assert is_ready(second)
    assert_unique([end(first), end(second)])


@pytest.mark.parametrize("order", [1, -1], ids=["older service", "newer service"])
def test_clients_of_a_version_use_the_service_of_another(
    pythons: list[str], order: int, tmp_path: Path, stack: ExitStack
) -> None:
    serving, asking = pythons[::order]
    service = _Service(tmp_path / "service", f"sqlite:///{tmp_path}/ids.db", serving)
    stack.callback(service.kill)
    service.start()
    workers = [start(stack, python, service.url, tmp_path) for python in (asking, serving)]
    assert [is_ready(worker) for worker in workers] == [True] * len(workers)
    assert_unique([end(worker) for worker in workers])
    service.stop()


class _Service(Serving):
    """The service of one of the versions."""

    def __init__(self, directory: Path, store: str, python: str) -> None:
        super().__init__(directory, store)
        self._python = python

    def command(self) -> Sequence[str]:
        return [self._python if word == sys.executable else word for word in super().command()]
