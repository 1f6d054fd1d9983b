"""Tests of clocks: manual ones, callables of users, and the cached tick of the fast path."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mintage import _core, locality, sno, snowflake
from mintage.errors import ArgumentError, ConfigError, FieldError, GenerationError
from mintage.testing import ManualClock

MS = 1_000_000
NOW = 1_700_000_000_000 * MS
MAX_AGE_NS = 50_000
"""As documented: how old a cached millisecond may be."""


# ------------------------------------------------------------------------------------------------------ a test's clock


def test_manual_clock_stands_still_until_it_is_set() -> None:
    clock = ManualClock(NOW)
    assert [clock.now_ns, clock.now_ns, clock()] == [NOW] * 3
    clock.advance(5)
    assert clock.now_ns == NOW + 5
    clock.advance(-7)
    assert clock.now_ns == NOW - 2
    clock.set(-1)
    assert clock() == -1
    assert repr(clock) == "ManualClock(-1)"


@pytest.mark.parametrize("ns", [0, -(2**100), 2**127 - 1])
def test_manual_clock_reads_any_time_of_127_bits(ns: int) -> None:
    assert ManualClock(ns).now_ns == ns


def test_manual_clock_refuses_invalid_times() -> None:
    clock = ManualClock(NOW)
    wrong: Any
    for wrong in (1.0, "1", None):
        for call in (ManualClock, clock.set, clock.advance):
            with pytest.raises(ArgumentError):
                call(wrong)
    for call in (ManualClock, clock.set, clock.advance):
        with pytest.raises(FieldError) as caught:
            call(2**127)
        assert caught.value.code == "field.range"
    assert clock.now_ns == NOW


def test_manual_clock_is_set_only_by_its_methods() -> None:
    clock: Any = ManualClock(NOW)
    assert clock.auto_advance
    assert not ManualClock(NOW, auto_advance=False).auto_advance
    for name in ("now_ns", "auto_advance"):
        with pytest.raises(AttributeError):
            setattr(clock, name, 0)


def test_waiting_generator_moves_the_clock_exactly_to_its_target() -> None:
    clock = ManualClock(NOW + 1)
    sno.Generator(1, sequence_min=0, sequence_max=5, clock=clock).batch(7)
    assert clock.now_ns == NOW + 4 * MS
    snowflake.Generator(1, clock=clock).batch(4097)
    assert clock.now_ns == NOW + 5 * MS


# ------------------------------------------------------------------------------------------------------- a user's clock


def test_callable_is_a_clock() -> None:
    def clock() -> int:
        return NOW + 123_456_789

    assert sno.Generator(1, clock=clock).new().timestamp_ns == NOW + 120 * MS
    assert snowflake.DEFAULT.parse(snowflake.Generator(1, clock=clock).new()).timestamp_ms == NOW // MS + 123
    assert locality.Generator(clock=clock).new().timestamp_ms == NOW // MS + 123


Make = Callable[[Any], "sno.Generator | snowflake.Generator | locality.Generator"]
MAKERS: list[Make] = [
    lambda clock: sno.Generator(1, clock=clock),
    lambda clock: snowflake.Generator(1, clock=clock),
    lambda clock: locality.Generator(clock=clock),
]
each_scheme = pytest.mark.parametrize("make", MAKERS, ids=["sno", "snowflake", "locality"])


@each_scheme
def test_clock_that_is_neither_callable_nor_manual_is_refused(make: Make) -> None:
    with pytest.raises(ArgumentError):
        make(NOW)


@each_scheme
@pytest.mark.parametrize("reading", [1.7e18, None, "now"])
def test_clock_must_return_an_int(make: Make, reading: object) -> None:
    generator = make(lambda: reading)
    with pytest.raises(ConfigError) as caught:
        generator.new()
    assert caught.value.code == "config.clock"


@each_scheme
def test_exception_of_a_clock_reaches_the_caller(make: Make) -> None:
    def broken() -> int:
        raise LookupError("no time")

    generator = make(broken)
    for call in (generator.new, generator.__next__, lambda: generator.batch(1)):
        with pytest.raises(LookupError, match="no time"):
            call()


@each_scheme
def test_clock_before_the_epoch_is_refused(make: Make) -> None:
    generator = make(ManualClock(-1))
    with pytest.raises(GenerationError) as caught:
        generator.new()
    assert (caught.value.code, caught.value.retry_after_ms) == ("clock.range", None)


# ------------------------------------------------------------------------------------------------------ the cached tick


def cached_ms_is_fresh(readings: int) -> list[tuple[int, int, int]]:
    """Return the wrong readings."""
    now, cached = time.time_ns, _core.cached_ms
    wrong = []
    for _ in range(readings):
        before, ms, after = now(), cached(), now()
        if not (before - MAX_AGE_NS) // MS <= ms <= after // MS:
            wrong.append((before, ms, after))
    return wrong


def test_cached_tick_is_never_older_than_documented() -> None:
    assert cached_ms_is_fresh(300_000) == []


def test_cached_tick_is_never_older_than_documented_in_threads() -> None:
    wrong: list[tuple[int, int, int]] = []
    threads = [threading.Thread(target=lambda: wrong.extend(cached_ms_is_fresh(50_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_ids_carry_the_time_at_which_they_were_minted() -> None:
    generator = snowflake.Generator(1)
    parse = snowflake.DEFAULT.parse
    for _ in range(20_000):
        before, minted, after = time.time_ns(), generator.new(), time.time_ns()
        assert (before - MAX_AGE_NS) // MS <= parse(minted).timestamp_ms <= after // MS


def test_batch_reads_the_clock_itself() -> None:
    generator = snowflake.Generator(1)
    parse = snowflake.DEFAULT.parse
    for _ in range(20_000):
        generator.new()  # from a millisecond that may be over
        before, [minted], after = time.time_ns(), generator.batch(1).tolist(), time.time_ns()
        assert before // MS <= parse(minted).timestamp_ms <= after // MS


def test_documented_bound_of_the_cached_tick_matches_the_facts() -> None:
    facts = _core.clock_facts()
    assert 0 < facts["max_age_ns"] <= MAX_AGE_NS
    # No counter, or one that runs at 1 MHz to 100 GHz.
    assert facts["cycles_per_second"] == 0 or 10**6 <= facts["cycles_per_second"] <= 10**11
