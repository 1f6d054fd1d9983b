"""Tests of forked workers whose parent minted before, and whose threads mint their first IDs together."""

from __future__ import annotations

import sys

import pytest

from tests.stress.prefork import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks beside threads are Linux's")


@pytest.mark.parametrize("interval_s", [1e-6, 1e-4])
def test_workers_repeat_no_id_of_their_parent_or_each_other(interval_s: float) -> None:
    tally = run(48, interval_s)
    assert tally.is_clean(), (tally, tally.failed)
