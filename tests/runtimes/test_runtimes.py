"""Tests of each runtime, briefly; `make deep` mints a hundred thousand IDs in each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.runtimes import harness
from tests.runtimes.runtimes import RUNTIMES
from tests.servers import Redis

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.fixtures import Servers

IDS = 3000


@pytest.mark.skipif(sys.platform != "linux", reason="the harness reads /proc")
@pytest.mark.parametrize("name", RUNTIMES)
def test_runtime_mints_nothing_twice_and_releases_its_leases(name: str, servers: Servers, tmp_path: Path) -> None:
    runtime = RUNTIMES[name]
    if reason := runtime.lacking():
        pytest.skip(reason)
    redis = servers.get(Redis) if runtime.uses_redis() else None
    tally = harness.run(runtime, IDS, tmp_path, redis)
    assert tally.is_clean(), tally
    assert tally.ids >= IDS or tally.refused
