"""The rate of a generator, and the faults."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.machine_ids.libraries import Interval, Library, RefusedError, running
from benchmarks.machine_ids.record import Fault, Rate
from benchmarks.repeats import FAKETIME, STEP_S, equal

SECONDS: Final = 0.3
"""The interval in which a process mints."""
AHEAD_S: Final = 0.2
"""Seconds between the order to mint and the common interval of two processes."""
ROUNDS, ROUND_S, WARM_S = 3, 0.7, 0.5
RATES_S: Final = 75
"""Seconds after which programs whose rates are measured are killed."""


def rates(libraries: Sequence[Library]) -> list[Rate]:
    """Measure the libraries by turns, each in one process."""
    with ExitStack() as stack:
        found = []
        for library in libraries:
            home = stack.enter_context(TemporaryDirectory(prefix="mintage-"))
            program = stack.enter_context(running(library, home, limit_s=RATES_S))
            program.rate(WARM_S)
            found.append((program, Rate(library.label, [], library.ceiling)))
        for _ in range(ROUNDS):
            for program, rate in found:
                rate.rounds.append(round(program.rate(ROUND_S)))
        return [rate for _, rate in found]


def twins(library: Library, home: str) -> list[Interval]:
    """Return what two processes mint in the same interval, at the first time that the machine runs both in it."""
    with ExitStack() as stack:
        both = [stack.enter_context(running(library, home)) for _ in range(2)]
        for program in both:
            program.rate(WARM_S)
        while True:
            start = time.time() + AHEAD_S
            for program in both:
                program.ask(f"mint {start} {SECONDS}")
            first, second = (program.minted() for program in both)
            if min(first.ended, second.ended) - max(first.began, second.began) > SECONDS / 2:
                return [first, second]


def restarted(library: Library, home: str) -> list[Interval]:
    """Return what a process mints, and another that begins when the first has ended."""
    with running(library, home) as program:
        first = program.mint(SECONDS)
    with running(library, home) as program:
        return [first, program.mint(SECONDS)]


def restarted_behind(library: Library, home: str) -> list[Interval]:
    """Return the same if the second's clock shows the moment at which the first began to mint."""
    with running(library, home, faked=library.is_ours) as program:
        first = program.mint(SECONDS)
    with running(library, home, faked=library.is_ours) as program:
        program.set_behind(time.time() - first.began)
        return [first, program.mint(SECONDS)]


def stepped(library: Library, home: str) -> list[Interval]:
    """Return what a process mints whose clock goes back."""
    with running(library, home, faked=True) as program:
        first = program.mint(SECONDS)
        program.set_behind(STEP_S)
        return [first, program.mint(SECONDS)]


TRIALS: Final[dict[str, Callable[[Library, str], list[Interval]]]] = {
    "twins": twins,
    "restart": restarted,
    "restart, behind": restarted_behind,
    "clock back": stepped,
}


def is_possible(trial: str, library: Library) -> bool:
    """Return False if the trial needs libfaketime, and it is missing or cannot set the clock of the process."""
    if trial == "clock back":
        return library.is_steppable and FAKETIME.exists()
    return trial != "restart, behind" or not library.is_ours or FAKETIME.exists()


def tried(trial: str, library: Library) -> Fault:
    """Return the result of a trial, in processes and a store of its own."""
    with TemporaryDirectory(prefix="mintage-") as home:
        try:
            found = TRIALS[trial](library, home)
        except RefusedError as error:
            return Fault(library.label, trial, 0, 0, str(error))
        ids = [id_ for interval in found for id_ in interval.ids]
        waited_s = round(max(interval.waited_s for interval in found), 1)
        return Fault(library.label, trial, len(ids), equal(ids), waited_s=waited_s)
