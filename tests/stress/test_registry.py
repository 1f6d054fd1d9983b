"""Tests of former defects of the registry and its locks, at a small scale; `make deep` runs the rest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.stress import registry

CASES = registry.cases(Path())


@pytest.mark.skipif(sys.platform != "linux", reason="users, mounts and forks beside threads are Linux's")
@pytest.mark.parametrize("name", CASES)
def test_processes_that_start_together_repeat_no_id(name: str) -> None:
    if not registry.is_possible(name):
        pytest.skip("only root can")
    tally = registry.run(name, 1e-4, min(6, CASES[name].processes))
    assert (tally.equal, tally.failed) == (0, 0)
    refusal = CASES[name].refusal
    assert tally.refused == ({refusal: tally.processes} if refusal else {})
