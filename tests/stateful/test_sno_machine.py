"""Tests of the generator of sno as a state machine, against a naive implementation of its rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mintage import sno
from mintage.errors import GenerationError
from mintage.testing import ManualClock
from tests.helpers.outcomes import outcome

MS = 1_000_000
UNIT = 4 * MS
EPOCH = 1_262_304_000_000 * MS
START = EPOCH + 10 * 365 * 86_400_000 * MS
FIRST = EPOCH + UNIT
"""The earliest time of a clock here."""

PARTITION = 0xC0DE
PATIENT = 10**9

forward = st.one_of(st.integers(0, 5 * UNIT), st.integers(0, 3_600_000 * MS))
small_step_back = st.integers(1, 8 * UNIT)
large_step_back = st.integers(1_000 * MS, 86_400_000 * MS)


@st.composite
def bounds(draw: st.DrawFn) -> tuple[int, int]:
    """Draw bounds of at least 6 numbers, in either order; but an upper bound of 0 would mean 65535."""
    low = draw(st.one_of(st.integers(0, 20), st.integers(0, 65530)))
    high = draw(st.one_of(st.integers(low + 5, min(low + 20, 65535)), st.integers(low + 5, 65535)))
    return (high, low) if low and draw(st.booleans()) else (low, high)


Fields = tuple[int, int, int]
"""An ID's unit, tick and sequence number."""


@dataclass
class Model:
    """The rules of sno, one ID at a time and without optimisation."""

    low: int
    high: int
    max_wait_ms: int
    clock: int
    next: int
    unit: int = 0
    safe: int = 0
    drifts: int = 0
    overflows: tuple[int, ...] = ()
    """The units reported to `on_overflow`."""

    def unit_now(self) -> int:
        return (self.clock - EPOCH) // UNIT

    def new(self) -> Fields:
        began = self.clock
        while True:
            now = self.unit_now()
            if now > self.unit:
                self.unit, self.next = now, self.low
            elif self.safe < now < self.unit:
                self.safe, self.unit, self.next = self.unit, now, self.low
                self.drifts += 1
            if now == self.unit and self.next <= self.high:
                self.next += 1
                return self.unit, self.drifts & 1, self.next - 1
            if now == self.unit:
                code, until = "sequence.exhausted", now + 1
                if self.overflows[-1:] != (now,):
                    self.overflows += (now,)
            else:
                code, until = "clock.rollback", self.safe + 1
            self.wait(code, EPOCH + until * UNIT, began)

    def wait(self, code: str, until: int, began: int) -> None:
        if until - began > self.max_wait_ms * MS:
            raise GenerationError("", code=code, retry_after_ms=-((self.clock - until) // MS))
        self.clock = until

    def restored(self, low: int, high: int) -> Model:
        last = max(self.next - 1, self.low)
        return replace(self, low=low, high=high, next=max(last, low) + 1, overflows=())


class SnoMachine(RuleBasedStateMachine):
    """One generator after the other on one partition, each continuing where the last one was closed."""

    @initialize(limits=bounds(), max_wait_ms=st.sampled_from([0, 3, 20, PATIENT]), offset=st.integers(0, UNIT - 1))
    def begin(self, limits: tuple[int, int], max_wait_ms: int, offset: int) -> None:
        low, high = sorted(limits)
        self.seen: set[Fields] = set()
        self.last = {0: (-1, -1), 1: (-1, -1)}
        self.overflows: list[sno.Overflow] = []
        self.clock = ManualClock(START + offset)
        self.model = Model(low, high, max_wait_ms, self.clock.now_ns, next=low)
        self.generator = sno.Generator(
            PARTITION,
            sequence_min=limits[0],
            sequence_max=limits[1],
            on_overflow=self.overflows.append,
            clock=self.clock,
            max_wait_ms=max_wait_ms,
        )

    def mint(self, n: int, meta: int, *, one: bool) -> list[Fields]:
        ids = [self.generator.new(meta)] if one else self.generator.batch(n, meta).tolist()
        assert {(minted.partition, minted.meta) for minted in ids} <= {(PARTITION, meta)}
        return [((minted.timestamp_ns - EPOCH) // UNIT, minted.tick, minted.sequence) for minted in ids]

    def compare(self, n: int, meta: int, *, one: bool) -> None:
        expected = outcome(lambda: [self.model.new() for _ in range(n)])
        minted = outcome(lambda: self.mint(n, meta, one=one))
        assert minted == expected
        if isinstance(minted, list):
            for unit, tick, sequence in minted:
                assert (unit, tick, sequence) not in self.seen, "minted twice"
                assert (unit, sequence) > self.last[tick], "not in order within its timeline"
                self.seen.add((unit, tick, sequence))
                self.last[tick] = unit, sequence

    @rule(meta=st.integers(0, 255))
    def new(self, meta: int) -> None:
        self.compare(1, meta, one=True)

    @rule(n=st.integers(0, 70), meta=st.integers(0, 255))
    def batch(self, n: int, meta: int) -> None:
        self.compare(n, meta, one=False)

    @rule()
    def port_an_old_id(self) -> None:
        assert self.generator.new_at(START).tick == 0

    def move_clock(self, ns: int) -> None:
        self.clock.set(max(FIRST, self.clock.now_ns + ns))
        self.model.clock = self.clock.now_ns

    @rule(ns=forward)
    def clock_goes_on(self, ns: int) -> None:
        self.move_clock(ns)

    @rule(where=st.sampled_from(["safe", "unit"]), units=st.integers(-1, 2))
    def clock_goes_near_a_limit(self, where: str, units: int) -> None:
        self.move_clock(EPOCH + (getattr(self.model, where) + units) * UNIT - self.clock.now_ns)

    @rule(ns=small_step_back)
    def clock_goes_back_a_little(self, ns: int) -> None:
        self.move_clock(-ns)

    @rule(ns=large_step_back)
    def clock_goes_back_far(self, ns: int) -> None:
        self.move_clock(-ns)

    def restore(self, limits: tuple[int, int]) -> None:
        low, high = sorted(limits)
        s = sno.Snapshot.from_json(self.generator.snapshot().to_json())
        assert (s.now, s.wall_hi, s.wall_safe) == (self.model.unit_now(), self.model.unit, self.model.safe)
        if 0 < s.sequence < low:
            # As in the original, used numbers must not lie below the bounds.
            low = s.sequence
        snapshot = sno.Snapshot(s.partition, low, high, s.sequence, s.now, s.wall_hi, s.wall_safe, s.drifts)
        self.generator.close()
        self.overflows.clear()
        self.model = self.model.restored(low, high)
        self.generator = sno.Generator.restore(
            snapshot, on_overflow=self.overflows.append, clock=self.clock, max_wait_ms=self.model.max_wait_ms
        )

    @rule()
    def go_on_from_a_snapshot(self) -> None:
        self.restore((self.generator.sequence_min, self.generator.sequence_max))

    @rule(limits=bounds())
    def go_on_within_other_bounds(self, limits: tuple[int, int]) -> None:
        self.restore(limits)

    @invariant()
    def agrees_with_the_model(self) -> None:
        generator, model = self.generator, self.model
        capacity = model.high - model.low + 1
        used = min(max(model.next - model.low, 0), capacity) if model.unit_now() == model.unit else 0
        assert self.clock.now_ns == model.clock, "waited too long, or not long enough"
        assert (generator.sequence_min, generator.sequence_max) == (model.low, model.high)
        assert (generator.capacity, generator.used) == (capacity, used)
        assert generator.drifts == model.drifts
        assert len(self.overflows) == len(model.overflows)
        assert all(overflow.count == 1 and overflow.ticks >= 1 for overflow in self.overflows)


TestSnoKeepsItsRules = SnoMachine.TestCase


@given(
    cut=st.integers(5, 14),
    moves=st.lists(
        st.one_of(
            st.tuples(st.sampled_from([0, 1]), st.integers(1, 30)),
            st.tuples(st.just("clock"), st.integers(-6 * UNIT, 6 * UNIT)),
        ),
        max_size=40,
    ),
)
def test_two_generators_with_disjoint_bounds_share_a_partition(cut: int, moves: list[tuple[int | str, int]]) -> None:
    clock = ManualClock(START)
    generators = [
        sno.Generator(PARTITION, sequence_min=low, sequence_max=high, clock=clock, max_wait_ms=PATIENT)
        for low, high in [(0, cut), (cut + 1, 20)]
    ]
    minted: list[sno.ID] = []
    for what, amount in moves:
        if isinstance(what, str):
            clock.advance(amount)
        else:
            minted += generators[what].batch(amount)
    assert len(set(minted)) == len(minted)


def test_restored_generator_must_know_as_much_as_its_snapshot() -> None:
    clock = ManualClock(START)
    first = sno.Generator(PARTITION, clock=clock)
    minted = first.batch(100).tolist()
    clock.advance(-UNIT)
    minted += first.batch(100).tolist()
    second = sno.Generator.restore(first.snapshot(), clock=clock, max_wait_ms=PATIENT)
    clock.advance(-UNIT)
    minted += second.batch(100).tolist()
    assert len(set(minted)) == 300


@pytest.mark.parametrize("ns", [EPOCH - 1, EPOCH + (1 << 39) * UNIT])
def test_clock_outside_the_layout_is_refused(ns: int) -> None:
    generator = sno.Generator(PARTITION, clock=ManualClock(ns))
    with pytest.raises(GenerationError) as caught:
        generator.new()
    assert (caught.value.code, caught.value.retry_after_ms) == ("clock.range", None)
