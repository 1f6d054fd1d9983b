"""Tests of former defects on stores and servers, at a small scale; `make deep` runs the rest."""

from __future__ import annotations

import sys

import pytest

from tests.servers import must_run
from tests.stress import former_defects, locks

EVERY = former_defects.DEFECTS | locks.LOCKS
SMALL = {
    "two stores under one name": 500,
    "an older disk of a database": 500,
    "older rows without their tables": 500,
    "a cluster that went back": 500,
    "a fork in a user's clock": 8,
    "children one after another": 40,
    "children one after another, slow ticks": 40,
    "a clock that is set back": 6,
    "a table that is emptied between runs": 3_200,
    "a pool created after a loss": 20_000,
    "one generator's IDs of given times": 10_000,
    "uuid1 of one node": 30_000,
    "with statements, one number": 300,
}
"""Smaller sizes of cases that take too long."""
LONG = "a server that comes back"
"""It waits for extensions and quarantines; the contract suite tests it with a manual clock."""


@pytest.mark.skipif(sys.platform != "linux", reason="mounts and raw clones are Linux's")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.servers] if defect.servers else [])
        for name, defect in EVERY.items()
        if name != LONG
    ],
)
def test_former_defects_repeat_nothing(name: str) -> None:
    defect = EVERY[name]
    if reason := former_defects.why_not(defect):
        (pytest.fail if any(map(must_run, defect.servers)) else pytest.skip)(reason)
    tally = former_defects.run(defect, SMALL.get(name, defect.size))
    assert (tally.equal, tally.failed) == (0, 0)
    if defect.refusal:
        assert set(tally.refused) == {defect.refusal}
    else:
        assert tally.ids
