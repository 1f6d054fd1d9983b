"""Tests of former defects on stores and servers, at a small scale; `make deep` runs the rest."""

from __future__ import annotations

import sys

import pytest

from tests.servers import must_run
from tests.stress import holes, locks

EVERY = holes.HOLES | locks.LOCKS
SMALL = {
    "a fork in a user's clock": 8,
    "children one after another": 40,
    "children one after another, slow ticks": 40,
    "a clock that is set back": 6,
    "a table that is emptied between runs": 3_200,
    "one generator's IDs of given times": 10_000,
    "uuid1 of one node": 30_000,
    "with statements, one number": 300,
}
"""Where the size at which it was found takes too long."""
LONG = "a server that comes back"
"""It waits for leases to be extended and to rest: the contract suite has it with a clock of its own."""


@pytest.mark.skipif(sys.platform != "linux", reason="mounts and raw clones are Linux's")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.servers] if hole.servers else [])
        for name, hole in EVERY.items()
        if name != LONG
    ],
)
def test_former_defects_repeat_nothing(name: str) -> None:
    hole = EVERY[name]
    if reason := holes.why_not(hole):
        (pytest.fail if any(map(must_run, hole.servers)) else pytest.skip)(reason)
    tally = holes.run(hole, SMALL.get(name, hole.size))
    assert (tally.equal, tally.failed) == (0, 0)
    if hole.refusal:
        assert set(tally.refused) == {hole.refusal}
    else:
        assert tally.ids
