"""Tests of threads: they share a generator without locks and without duplicates."""

from __future__ import annotations

import random
import sys
import threading
from array import array
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeAlias

import pytest

from mintage import locality, sno, snowflake
from mintage.errors import GenerationError
from mintage.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MS = 1_000_000
NOW = 1_700_000_000_000 * MS
PATIENT = 10**9
BOUND = 60
"""Seconds after which a thread counts as stuck; never waited for otherwise."""

Generator: TypeAlias = "sno.Generator | snowflake.Generator | locality.Generator"
Clock: TypeAlias = "ManualClock | None"


def sno_generator(clock: Clock = None) -> sno.Generator:
    return sno.Generator(1, clock=clock, max_wait_ms=PATIENT)


def small_sno_generator(clock: Clock = None) -> sno.Generator:
    return sno.Generator(1, sequence_min=100, sequence_max=1123, clock=clock, max_wait_ms=PATIENT)


def snowflake_generator(clock: Clock = None) -> snowflake.Generator:
    return snowflake.Generator(1, clock=clock, max_wait_ms=PATIENT)


def waiting_snowflake_generator(clock: Clock = None) -> snowflake.Generator:
    return snowflake.Generator(1, on_rollback="wait", clock=clock, max_wait_ms=PATIENT)


def locality_generator(clock: Clock = None) -> locality.Generator:
    return locality.Generator(pid=1, counter=2**32 - 1000, clock=clock)


def sequential_generator(clock: Clock = None) -> locality.Generator:
    return locality.Generator("sequential", pid=1, counter=2**32 - 1000, clock=clock)


MAKERS = [
    sno_generator,
    small_sno_generator,
    snowflake_generator,
    waiting_snowflake_generator,
    locality_generator,
    sequential_generator,
]


@pytest.fixture(autouse=True)
def busy_switching() -> Iterator[None]:
    """Switch threads a thousand times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 1000)
    yield
    sys.setswitchinterval(usual)


def mint(generator: Generator, rounds: int, n: int) -> list[int]:
    """Return IDs of every minting method, as integers in order."""
    minted: list[int] = []
    size = 8 if isinstance(generator, snowflake.Generator) else len(bytes(generator.new()))
    for _ in range(rounds):
        minted.extend(int(generator.new()) for _ in range(n))
        minted.extend(int(generator.__next__()) for _ in range(n))
        minted.extend(int(one) for one in generator.batch(n))
        buffer = bytearray(n * size)
        assert generator.fill(buffer) == n
        if isinstance(generator, snowflake.Generator):
            minted.extend(array("Q", bytes(buffer)))
        else:
            minted.extend(int.from_bytes(buffer[at : at + size], "big") for at in range(0, len(buffer), size))
    return minted


def run_in_threads(count: int, work: Callable[[], list[int]]) -> list[list[int]]:
    """Start threads together; return the result of each."""
    results: list[list[int]] = []
    failures: list[BaseException] = []
    gate = threading.Barrier(count, timeout=BOUND)

    def run() -> None:
        try:
            gate.wait()
            results.append(work())
        except BaseException as error:  # noqa: BLE001 (a thread's failure is the test's)
            failures.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    assert not failures, failures
    assert len(results) == count, "a thread is stuck"
    return results


def check(generator: Generator, results: list[list[int]]) -> None:
    everything = [*chain.from_iterable(results)]
    assert len(set(everything)) == len(everything), "minted twice"
    in_order = isinstance(generator, snowflake.Generator)
    if isinstance(generator, sno.Generator):
        in_order = not generator.drifts
    if in_order:
        assert all(a < b for minted in results for a, b in pairwise(minted)), "not in order within a thread"


@pytest.mark.parametrize("count", [2, 5, 8])
@pytest.mark.parametrize("make", MAKERS)
def test_threads_on_one_generator_never_mint_an_id_twice(make: Callable[[], Generator], count: int) -> None:
    generator = make()
    check(generator, run_in_threads(count, lambda: mint(generator, 5, 1000)))


@pytest.mark.parametrize("make", MAKERS)
def test_threads_repeat_no_id_while_the_clock_steps_both_ways(make: Callable[[Clock], Generator]) -> None:
    clock = ManualClock(NOW)
    generator = make(clock)
    done = threading.Event()

    def step() -> None:
        steps = random.Random(2)
        while not done.is_set():
            clock.advance(steps.randrange(-30, 31) * MS // 2)

    stepper = threading.Thread(target=step, daemon=True)
    stepper.start()
    try:
        results = run_in_threads(4, lambda: mint(generator, 6, 300))
    finally:
        done.set()
        stepper.join(BOUND)
    check(generator, results)


def test_slow_thread_is_not_taken_for_a_clock_rollback() -> None:
    clock = ManualClock(NOW)
    generator = sno.Generator(1, clock=clock, max_wait_ms=0)
    done = threading.Event()

    def step() -> None:
        while not done.is_set():
            clock.advance(MS)

    stepper = threading.Thread(target=step, daemon=True)
    stepper.start()
    try:
        check(generator, run_in_threads(4, lambda: mint(generator, 6, 300)))
    finally:
        done.set()
        stepper.join(BOUND)
    assert generator.drifts == 0


def test_default_generators_serve_all_threads() -> None:
    for new in (sno.new, snowflake.new, locality.new):
        results = run_in_threads(4, lambda new=new: [int(new()) for _ in range(5_000)])  # type: ignore[misc]
        assert len({*chain.from_iterable(results)}) == 20_000


def test_changing_the_mode_while_threads_mint_repeats_no_id() -> None:
    generator = locality.Generator(pid=1, counter=7, clock=ManualClock(NOW))
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            generator.use_mode("sequential")
            generator.use_mode("variable")

    changer = threading.Thread(target=change, daemon=True)
    changer.start()
    try:
        results = run_in_threads(4, lambda: mint(generator, 5, 200))
    finally:
        done.set()
        changer.join(BOUND)
    check(generator, results)


def test_waiting_thread_lets_others_advance_the_clock() -> None:
    waiting = threading.Event()
    clock = ManualClock(NOW, auto_advance=False)
    generator = sno.Generator(
        1, sequence_min=0, sequence_max=5, clock=clock, max_wait_ms=PATIENT, on_overflow=lambda _: waiting.set()
    )
    used = generator.batch(6).tolist()
    minted: list[sno.ID] = []
    thread = threading.Thread(target=lambda: minted.append(generator.new()), daemon=True)
    thread.start()
    assert waiting.wait(BOUND)
    clock.advance(4 * MS - 1)
    assert minted == [], "did not wait"
    clock.advance(1)
    thread.join(BOUND)
    assert len(minted) == 1
    assert minted[0] > used[-1]


def test_all_waiting_threads_go_on_with_the_clock() -> None:
    clock = ManualClock(NOW, auto_advance=False)
    generator = snowflake.Generator(1, on_rollback="wait", clock=clock, max_wait_ms=PATIENT)
    last = generator.new()
    clock.advance(-1000 * MS)
    minted: list[int] = []
    threads = [threading.Thread(target=lambda: minted.append(generator.new()), daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert minted == [], "did not wait"
    clock.set(NOW)
    for thread in threads:
        thread.join(BOUND)
    assert sorted(minted) == [last + n for n in range(1, 9)]


def test_wait_ends_if_the_clock_goes_back_further() -> None:
    waiting = threading.Event()
    clock = ManualClock(NOW, auto_advance=False)
    generator = sno.Generator(
        1, sequence_min=0, sequence_max=5, clock=clock, max_wait_ms=10, on_overflow=lambda _: waiting.set()
    )
    generator.batch(6)
    failures: list[GenerationError] = []

    def wait() -> None:
        try:
            generator.new()
        except GenerationError as error:
            failures.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    assert waiting.wait(BOUND)
    clock.advance(-3_600_000 * MS)
    thread.join(BOUND)
    clock.set(NOW + 4 * MS)  # lets the thread go in any case
    thread.join(BOUND)
    assert [error.code for error in failures] == ["sequence.exhausted"]


def test_overflow_reports_how_many_callers_wait() -> None:
    told: list[sno.Overflow] = []
    both = threading.Event()
    clock = ManualClock(NOW, auto_advance=False)

    def on_overflow(overflow: sno.Overflow) -> None:
        told.append(overflow)
        both.set()

    generator = sno.Generator(
        1, sequence_min=0, sequence_max=5, clock=clock, max_wait_ms=PATIENT, on_overflow=on_overflow
    )
    generator.batch(6)
    threads = [threading.Thread(target=generator.new, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert both.wait(BOUND)
    clock.advance(4 * MS)
    for thread in threads:
        thread.join(BOUND)
        assert not thread.is_alive()
    assert [overflow.count for overflow in told] == [1], "told once a unit, by the first to wait"
