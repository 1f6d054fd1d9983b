"""Tests of the generator of snowflake as a state machine, in any layout, under every policy, with any clock."""

from __future__ import annotations

import subprocess
import sys
from array import array
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from mintage.errors import GenerationError
from mintage.snowflake import Generator, Layout
from mintage.testing import ManualClock
from tests.helpers.outcomes import Refusal, outcome

MS = 1_000_000
PATIENT = 10**9

OnRollback = Literal["advance", "wait", "raise"]
OnExhausted = Literal["wait", "advance", "raise"]
ROLLBACKS: list[OnRollback] = ["advance", "wait", "raise"]
EXHAUSTIONS: list[OnExhausted] = ["wait", "advance", "raise"]


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Draw layouts with short sequence fields, which are soon exhausted, and fields in any order."""
    fields = [f"time:{draw(st.integers(34, 44))}"]
    if draw(st.booleans()):
        fields.append(f"{draw(st.sampled_from(['sequence', 'increment']))}:{draw(st.integers(1, 4))}")
    fields += [f"node{i}:{draw(st.integers(1, 5))}" for i in range(draw(st.integers(0, 3)))]
    return Layout(
        " ".join(draw(st.permutations(fields))),
        epoch_ms=draw(st.integers(-(2**40), 2**40)),
        unit_ms=draw(st.one_of(st.just(1), st.integers(1, 20))),
    )


@dataclass
class Model:
    """The rules without "advance", one ID at a time."""

    epoch: int
    unit: int
    capacity: int
    on_rollback: OnRollback
    on_exhausted: OnExhausted
    max_wait: int
    clock: int
    tick: int = 0
    next: int = 0

    def new(self) -> tuple[int, int]:
        """Return the tick and the sequence number of the next ID."""
        began = self.clock
        while True:
            now = (self.clock - self.epoch) // self.unit
            if now > self.tick:
                self.tick, self.next = now, 0
            if now == self.tick and self.next < self.capacity:
                self.next += 1
                return self.tick, self.next - 1
            if now == self.tick:
                code, policy, until = "sequence.exhausted", self.on_exhausted, self.tick + 1
            else:
                code, policy, until = "clock.rollback", self.on_rollback, self.tick
            self.wait(code, self.epoch + until * self.unit, began if policy == "wait" else None)

    def wait(self, code: str, until: int, began: int | None) -> None:
        if began is None or until - began > self.max_wait:
            raise GenerationError("", code=code, retry_after_ms=-((self.clock - until) // MS))
        self.clock = until


class SnowflakeMachine(RuleBasedStateMachine):
    @initialize(
        layout=layouts(),
        node=st.integers(min_value=0),
        on_rollback=st.sampled_from(ROLLBACKS),
        on_exhausted=st.sampled_from(EXHAUSTIONS),
        max_wait_ms=st.sampled_from([0, 30, PATIENT, PATIENT]),
        offset=st.integers(0, MS),
    )
    def begin(
        self,
        *,
        layout: Layout,
        node: int,
        on_rollback: OnRollback,
        on_exhausted: OnExhausted,
        max_wait_ms: int,
        offset: int,
    ) -> None:
        self.layout, self.node = layout, node % layout.nodes
        self.on_rollback, self.on_exhausted = on_rollback, on_exhausted
        self.epoch, self.unit = layout.epoch_ms * MS, layout.unit_ms * MS
        bits = {name: bits for name, bits, _ in layout.fields}
        self.capacity = 1 << bits.get("sequence", bits.get("increment", 0))
        self.clock = ManualClock(self.epoch + 2**30 * self.unit + offset)
        self.highest = (-1, -1)
        self.last_call = self.latest = self.epoch
        self.generator = Generator(
            self.node,
            layout=layout,
            on_rollback=on_rollback,
            on_exhausted=on_exhausted,
            clock=self.clock,
            max_wait_ms=max_wait_ms,
        )
        self.model = None
        if "advance" not in (on_rollback, on_exhausted):
            self.model = Model(
                self.epoch,
                self.unit,
                self.capacity,
                on_rollback,
                on_exhausted,
                max_wait_ms * MS,
                self.clock.now_ns,
            )

    def tick(self, ns: int) -> int:
        return (ns - self.epoch) // self.unit

    def start(self, tick: int) -> int:
        return self.epoch + tick * self.unit

    def mint(self, n: int, how: str) -> list[tuple[int, int]]:
        """Return ticks and sequence numbers of IDs minted by any method."""
        ids = array("Q", bytes(8 * n))
        if how == "fill":
            assert self.generator.fill(ids) == n
        else:
            ids = array("Q", self.generator.batch(n) if how == "batch" else [self.generator.new()])
        parts = [self.layout.parse(minted) for minted in ids]
        assert {part.node for part in parts} <= {self.node}
        return [(self.tick(part.timestamp_ms * MS), part.sequence) for part in parts]

    def check(self, n: int, how: str) -> None:
        before, last = self.clock.now_ns, self.highest
        minted = outcome(lambda: self.mint(n, how))
        if self.model:
            model = self.model
            assert minted == outcome(lambda: [model.new() for _ in range(n)])
            assert self.clock.now_ns == model.clock, "waited too long, or not long enough"
        if isinstance(minted, tuple):
            self.check_refusal(minted, before, how)
            self.latest = max(self.latest, before, self.clock.now_ns)
            return
        assert len(minted) == n
        self.check_order(minted)
        if not self.model:
            self.check_bounds(before, n, last)
        self.latest = max(self.latest, before, self.clock.now_ns)

    def check_order(self, minted: list[tuple[int, int]]) -> None:
        for place in minted:
            assert place > self.highest, "not strictly increasing, so minted twice"
            self.highest = place

    def check_refusal(self, refusal: Refusal, before: int, how: str) -> None:
        code, retry_after_ms = refusal
        allowed = {"clock.rollback": self.on_rollback, "sequence.exhausted": self.on_exhausted}
        assert allowed[code] != "advance"
        assert retry_after_ms
        if self.on_rollback == "advance":
            assert retry_after_ms <= 2 * self.layout.unit_ms
        if how == "new" and "wait" not in allowed.values():
            assert self.clock.now_ns == before, "a refusal must leave no effect"
        self.move_clock(retry_after_ms * MS)
        if how == "new" and not self.model:
            retried = outcome(lambda: self.mint(1, "new"))
            assert isinstance(retried, list), "retry_after_ms was too short"
            self.check_order(retried)
        # The IDs of a failed batch are unknown: the next call may be any number of ticks ahead.
        self.last_call = self.epoch

    def check_bounds(self, before: int, n: int, last: tuple[int, int]) -> None:
        """Check the promise of the policies with "advance": hardly any waiting, and no drift from the clock."""
        after = self.clock.now_ns
        ticks = -(-n // self.capacity)
        if self.on_rollback == "advance":
            # One tick more where the clock catches up with the last ID meanwhile.
            waits = 0 if self.on_exhausted == "advance" else ticks + 1
            assert after <= max(before, self.start(self.tick(before) + waits)), "blocked"
        else:
            assert after <= max(before, self.start(self.tick(self.latest))), "waited longer than the clock was behind"
        ahead = ticks + max(0, self.tick(after) - self.tick(self.last_call))
        assert self.highest[0] <= max(self.tick(after), last[0]) + ahead, "ran away from the clock"
        if n:
            self.last_call = after

    @rule()
    def new(self) -> None:
        self.check(1, "new")

    @rule(n=st.integers(0, 40))
    def batch(self, n: int) -> None:
        self.check(n, "batch")

    @rule(n=st.integers(0, 40))
    def fill(self, n: int) -> None:
        self.check(n, "fill")

    def move_clock(self, ns: int) -> None:
        self.clock.advance(ns)
        if self.model:
            self.model.clock = self.clock.now_ns

    @rule(ticks=st.integers(1, 5))
    def clock_goes_on_by_whole_ticks(self, ticks: int) -> None:
        self.move_clock(ticks * self.unit)

    @rule(ns=st.one_of(st.integers(0, 40 * MS), st.integers(0, 3_600_000 * MS)))
    def clock_goes_on(self, ns: int) -> None:
        self.move_clock(ns)

    @rule(ticks=st.integers(1, 5))
    def clock_goes_back_by_whole_ticks(self, ticks: int) -> None:
        self.move_clock(-ticks * self.unit)

    @rule(ns=st.one_of(st.integers(0, 40 * MS), st.integers(0, 3_600_000 * MS)))
    def clock_goes_back(self, ns: int) -> None:
        self.move_clock(-ns)


TestSnowflakeKeepsItsRules = SnowflakeMachine.TestCase

TWO_A_MS = Layout("time:41 node:10 sequence:1", epoch_ms=0)
NOW = 1_700_000_000_000 * MS


def test_rollback_from_an_exhausted_tick_blocks_at_most_a_tick() -> None:
    clock = ManualClock(NOW)
    generator = Generator(1, layout=TWO_A_MS, on_rollback="advance", clock=clock, max_wait_ms=PATIENT)
    first = generator.batch(2)
    clock.set(NOW - 3_600_000 * MS)
    assert generator.new() > first[-1]
    assert clock.now_ns <= NOW - 3_600_000 * MS + MS


def test_rollback_from_an_exhausted_tick_is_accepted_with_advance() -> None:
    clock = ManualClock(NOW)
    generator = Generator(1, layout=TWO_A_MS, on_rollback="advance", clock=clock, max_wait_ms=100)
    first = generator.batch(2)
    clock.set(NOW - 3_600_000 * MS)
    assert generator.new() > first[-1]


def test_clock_back_at_the_last_tick_sets_the_pace_again() -> None:
    """A generator that believes itself ahead would hang, so it runs in another process."""
    script = """if True:
        from mintage.snowflake import Generator, Layout
        from mintage.testing import ManualClock
        clock = ManualClock(1_000_000_000_000)
        generator = Generator(1, layout=Layout("time:41 node:10 sequence:1", epoch_ms=0), clock=clock)
        generator.new()
        clock.advance(-10_000_000)
        generator.new()
        clock.advance(10_000_000)
        generator.new()
        print(clock.now_ns)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "1000001000000\n", done.stderr


def test_retry_after_the_refused_time_succeeds() -> None:
    clock = ManualClock(NOW)
    generator = Generator(1, layout=TWO_A_MS, on_rollback="advance", on_exhausted="raise", clock=clock)
    generator.new()
    clock.advance(-10 * MS)
    generator.new()
    clock.advance(10 * MS)
    with pytest.raises(GenerationError) as caught:
        generator.new()
    assert (caught.value.code, caught.value.retry_after_ms) == ("sequence.exhausted", 1)
    clock.advance(MS)
    generator.new()


def test_reported_wait_suffices_when_the_clock_catches_up() -> None:
    clock = ManualClock(NOW)
    generator = Generator(1, layout=TWO_A_MS, on_rollback="advance", on_exhausted="raise", clock=clock)
    generator.batch(2)
    clock.advance(-MS)
    with pytest.raises(GenerationError) as caught:
        generator.new()
    assert caught.value.retry_after_ms
    clock.advance(caught.value.retry_after_ms * MS)
    generator.new()


def test_wait_for_a_rolled_back_clock_ends_when_it_caught_up() -> None:
    clock = ManualClock(NOW)
    generator = Generator(
        1, layout=TWO_A_MS, on_rollback="wait", on_exhausted="advance", clock=clock, max_wait_ms=PATIENT
    )
    generator.batch(200)  # 99 ms ahead of the clock
    clock.advance(-MS)
    generator.new()
    assert clock.now_ns == NOW


def test_raise_detects_a_rollback_while_ids_are_ahead() -> None:
    clock = ManualClock(NOW)
    generator = Generator(1, layout=TWO_A_MS, on_rollback="raise", on_exhausted="advance", clock=clock)
    generator.batch(200)
    clock.advance(90 * MS)
    generator.new()
    clock.advance(-80 * MS)
    with pytest.raises(GenerationError) as caught:
        generator.new()
    assert caught.value.code == "clock.rollback"


@pytest.mark.parametrize("on_rollback", ROLLBACKS)
@pytest.mark.parametrize("on_exhausted", EXHAUSTIONS)
def test_full_layout_ends_with_an_error_and_never_restarts(on_rollback: OnRollback, on_exhausted: OnExhausted) -> None:
    layout = Layout("time:8 node:2 sequence:2", epoch_ms=0)
    clock = ManualClock(250 * MS)
    generator = Generator(3, layout=layout, on_rollback=on_rollback, on_exhausted=on_exhausted, clock=clock)
    ids: list[int] = []
    while (minted := outcome(lambda: [generator.new()])) != ("clock.range", None):
        if isinstance(minted, list):
            ids += minted
        else:
            assert minted == ("sequence.exhausted", 1)
            clock.advance(MS)
    assert ids == [layout.compose(timestamp_ms=ms, node=3, sequence=n) for ms in range(250, 256) for n in range(4)]
