"""Tests of the generator of locality as a state machine: both modes, changes between them, and any clock."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Literal

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from mintage import locality
from mintage.errors import GenerationError
from mintage.testing import ManualClock

MS = 1_000_000
NOW = 1_700_000_000_000 * MS
STEP = {"variable": 198_491_317, "sequential": 1}

Mode = Literal["variable", "sequential"]
MODES: list[Mode] = ["variable", "sequential"]


def seed(ns: int) -> int:
    """Return the start of sequential mode: the first 4 bytes of the md5 of the UTC minute, less its last digit."""
    minute = datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y%m%d%H%M")[:11]
    return int.from_bytes(hashlib.md5(minute.encode()).digest()[:4], "little")


class LocalityMachine(RuleBasedStateMachine):
    @initialize(
        mode=st.sampled_from(MODES),
        counter=st.one_of(st.none(), st.integers(0, 5), st.integers(2**32 - 60, 2**32 - 1), st.integers(0, 2**32 - 1)),
        ns=st.integers(0, MS),
    )
    def begin(self, mode: Mode, counter: int | None, ns: int) -> None:
        self.clock = ManualClock(NOW + ns)
        self.generator = locality.Generator(mode, pid=0xABCD, mac="0f0f0f0", counter=counter, clock=self.clock)
        self.given = counter
        self.seen: set[locality.ID] = set()
        self.highest_ms = 0
        self.changes = 0
        self.mode = mode
        self.started = False

    def start(self) -> None:
        """Return the value from which the first ID counts; ``None`` if it is random."""
        self.started = True
        self.last = self.given
        if self.given is None and self.mode == "sequential":
            self.last = seed(self.clock.now_ns)

    def check(self, minted: locality.ID) -> None:
        assert minted not in self.seen, "minted twice"
        self.seen.add(minted)
        assert (minted.version, minted.pid, minted.mac) == ("b", 0xABCD, "0f0f0f0")
        counter = minted.counter if self.mode == "variable" else minted.sequential_counter
        if self.last is not None:
            assert counter == (self.last + STEP[self.mode]) % 2**32
        self.last = counter
        now_ms = self.clock.now_ns // MS
        self.highest_ms = max(self.highest_ms, now_ms)
        assert now_ms <= minted.timestamp_ms <= self.highest_ms + 4_000 * self.changes

    def mint(self, n: int, how: str) -> None:
        if n and not self.started:
            self.start()
        if how == "new":
            ids = [self.generator.new() for _ in range(n)]
        elif how == "batch":
            ids = self.generator.batch(n).tolist()
        else:
            buffer = bytearray(16 * n)
            assert self.generator.fill(buffer) == n
            ids = locality.Array(buffer).tolist()
        assert len(ids) == n
        for minted in ids:
            self.check(minted)

    @rule()
    def new(self) -> None:
        self.mint(1, "new")

    @rule(n=st.integers(0, 70))
    def batch(self, n: int) -> None:
        self.mint(n, "batch")

    @rule(n=st.integers(0, 70))
    def fill(self, n: int) -> None:
        self.mint(n, "fill")

    @rule(mode=st.sampled_from(MODES))
    def use_mode(self, mode: Mode) -> None:
        self.generator.use_mode(mode)
        assert self.generator.mode == mode
        if mode != self.mode or not self.started:
            self.changes += 1
            self.mode = mode
            self.start()

    @rule(ns=st.one_of(st.integers(-40 * MS, 40 * MS), st.integers(-3_600_000 * MS, 3_600_000 * MS)))
    def clock_moves(self, ns: int) -> None:
        self.clock.advance(ns)


TestLocalityKeepsItsRules = LocalityMachine.TestCase


def test_change_of_mode_moves_ids_ahead_by_2048_ms_at_most() -> None:
    clock = ManualClock(NOW)
    generator = locality.Generator(clock=clock)
    for changes in range(1, 20):
        generator.use_mode(MODES[changes % 2])
        assert generator.new().timestamp_ms <= NOW // MS + 2_048 * changes


def test_change_to_the_same_mode_changes_nothing() -> None:
    clock = ManualClock(NOW)
    generator = locality.Generator("sequential", pid=1, mac="0000001", counter=41, clock=clock)
    first = generator.new()
    generator.use_mode("sequential")
    second = generator.new()
    assert (first.sequential_counter, second.sequential_counter) == (42, 43)
    assert first.timestamp_ms == second.timestamp_ms == NOW // MS


@pytest.mark.parametrize("ns", [-1, 2**43 * MS])
@pytest.mark.parametrize("mode", MODES)
def test_clock_outside_the_layout_is_refused(mode: Mode, ns: int) -> None:
    generator = locality.Generator(mode, pid=1, counter=0, clock=ManualClock(ns))
    with pytest.raises(GenerationError) as caught:
        generator.new()
    assert (caught.value.code, caught.value.retry_after_ms) == ("clock.range", None)
