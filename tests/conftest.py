"""What all tests share: the recorded behaviour of real implementations."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["tests.servers.fixtures"]


def _has_room(place: Path, room: int = 4 << 30) -> bool:
    """Whether the data of all servers fits in many times over, and what tests write there can be run."""
    return place.is_dir() and shutil.disk_usage(place).free > room and not os.statvfs(place).f_flag & os.ST_NOEXEC


# In memory, if there is room: servers die here, machines do not, so nobody need wait for disks.
if "TMPDIR" not in os.environ and _has_room(MEMORY := Path("/dev/shm")):
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

# Default generators lease from a registry of the tests' own, not from the user's.
os.environ["MINTAGE_HOME"] = tempfile.mkdtemp(prefix="mintage-home-")
atexit.register(shutil.rmtree, os.environ["MINTAGE_HOME"], ignore_errors=True)
os.environ.pop("MINTAGE_STORE", None)

# A machine under load is no reason to fail.
settings.register_profile("mintage", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.register_profile("deep", deadline=None, max_examples=2000)
settings.load_profile("mintage")


@pytest.fixture(autouse=True)
def the_epoch_stays() -> Iterator[None]:
    """A test moves the epoch in a child only: generators that were made before would become a fork's."""
    from mintage._core import generation

    before = generation()
    yield
    assert generation() == before


VECTORS = Path(__file__).parents[1] / "spec" / "vectors"


@cache
def vectors(name: str) -> Any:
    """The content of ``spec/vectors/<name>.json``; its README says what the fields mean."""
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
