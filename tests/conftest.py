"""Configuration of all tests: servers, a temporary registry and Hypothesis profiles."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["tests.servers.fixtures"]

TESTS = Path(__file__).parent
REST = [
    re.compile(line)
    for line in (TESTS / "rest.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
"""The beginnings of the node ids, below ``tests``, that ``make test`` leaves to ``make test-all``."""


def _has_room(place: Path, room: int = 4 << 30) -> bool:
    """Return True if the place has room for the data of all servers and allows programs to run."""
    return place.is_dir() and shutil.disk_usage(place).free > room and not os.statvfs(place).f_flag & os.ST_NOEXEC


# Keep data in memory if there is room: processes are killed here but machines are not, so no test needs a disk.
if "TMPDIR" not in os.environ and _has_room(MEMORY := Path("/dev/shm")):
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

# Default generators lease from a temporary registry, not from that of the user.
os.environ["MINTAGE_HOME"] = tempfile.mkdtemp(prefix="mintage-home-")
atexit.register(shutil.rmtree, os.environ["MINTAGE_HOME"], ignore_errors=True)
os.environ.pop("MINTAGE_STORE", None)

# A machine under load is no reason to fail.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("mintage", PATIENT)
settings.register_profile("quick", PATIENT, max_examples=10)
settings.register_profile("deep", PATIENT, max_examples=2000)
settings.load_profile("mintage")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of ``rest.txt``.

    :raises UsageError: all tests were collected, and none of them is one of a line.
    """
    unused = set(REST)
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        if found := next((each for each in REST if each.match(name)), None):
            unused.discard(found)
            item.add_marker(pytest.mark.rest)
    if unused and config.args == config.getini("testpaths"):
        raise pytest.UsageError(f"tests/rest.txt: no test begins with {', '.join(each.pattern for each in unused)}")


@pytest.fixture(autouse=True)
def no_test_changes_the_generation() -> Iterator[None]:
    """Assert that no test changes the generation of this process, which would look like a fork to generators."""
    from mintage._core import generation

    before = generation()
    yield
    assert generation() == before
