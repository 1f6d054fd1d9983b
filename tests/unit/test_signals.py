"""Tests of signals: Ctrl-C ends every operation of a generator, and everything works afterwards."""

from __future__ import annotations

import select
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

BOUND = 60
"""Seconds after which a process counts as stuck; the waits themselves would take an hour or more."""

PRELUDE = """
import signal, sys, threading, time
from mintage import locality, sno, snowflake
from mintage.testing import ManualClock

signal.signal(signal.SIGINT, signal.default_int_handler)
MS = 1_000_000
HOUR = 3_600_000 * MS
NOW = 1_700_000_000_000 * MS
FOREVER = 4_000_000_000
SMALL = dict(sequence_min=0, sequence_max=5)
TWO = dict(layout=snowflake.Layout("time:41 node:10 sequence:1", epoch_ms=0))
LONG = dict(layout=snowflake.Layout("time:41 node:10 sequence:1", epoch_ms=0, unit_ms=FOREVER))

class StandingStill:
    def __init__(self):
        self.ns = NOW
    def __call__(self):
        return self.ns
    def advance(self, ns):
        self.ns += ns

manual = ManualClock(NOW, auto_advance=False)
still = StandingStill()

# A thread that cannot run before the main thread lets go of the interpreter, which is when it waits.
about_to_work = threading.Event()
def announce():
    about_to_work.wait()
    print("waiting", flush=True)
sys.setswitchinterval(1000)
threading.Thread(target=announce, daemon=True).start()
"""

WAITS = {
    "sno, clock went back": """
        generator = sno.Generator(1, clock=manual, max_wait_ms=FOREVER)
        for _ in range(2):
            generator.new()
            manual.advance(-HOUR)
        work = generator.new
    """,
    "sno, all numbers used": """
        generator = sno.Generator(1, **SMALL, clock=manual)
        generator.batch(6)
        work = generator.new
    """,
    "sno, in a batch": """
        generator = sno.Generator(1, **SMALL, clock=manual)
        work = lambda: generator.batch(7)
    """,
    "sno, in a buffer": """
        generator = sno.Generator(1, **SMALL, clock=manual)
        work = lambda: generator.fill(bytearray(70))
    """,
    "sno, system clock behind a snapshot": """
        ahead = (time.time_ns() - 1_262_304_000_000 * MS + HOUR) // (4 * MS)
        generator = sno.Generator.restore(sno.Snapshot(1, wall_hi=ahead, wall_safe=ahead), max_wait_ms=FOREVER)
        work = generator.new
    """,
    "sno, callable clock stands still": """
        generator = sno.Generator(1, **SMALL, clock=still)
        generator.batch(6)
        work = generator.new
    """,
    "snowflake, clock went back": """
        generator = snowflake.Generator(1, on_rollback="wait", clock=manual, max_wait_ms=FOREVER)
        generator.new()
        manual.advance(-HOUR)
        work = generator.new
    """,
    "snowflake, callable clock went back": """
        generator = snowflake.Generator(1, on_rollback="wait", clock=still, max_wait_ms=FOREVER)
        generator.new()
        still.advance(-HOUR)
        work = generator.__next__
    """,
    "snowflake, all numbers used": """
        generator = snowflake.Generator(1, **TWO, clock=manual)
        generator.batch(2)
        work = generator.new
    """,
    "snowflake, all numbers of a long tick of the system clock used": """
        generator = snowflake.Generator(1, **LONG, max_wait_ms=FOREVER)
        generator.batch(2)
        work = generator.new
    """,
    "snowflake, in a batch": """
        generator = snowflake.Generator(1, **TWO, clock=manual)
        work = lambda: generator.batch(3)
    """,
}

BATCHES = {
    "sno": "work = lambda: sno.Generator(1, **SMALL).batch(5_000_000)",
    "sno, buffer": "work = lambda: sno.Generator(1, **SMALL).fill(bytearray(50_000_000))",
    "snowflake": "work = lambda: snowflake.Generator(1, **TWO).batch(5_000_000)",
    "snowflake, buffer": "work = lambda: snowflake.Generator(1, **TWO).fill(bytearray(40_000_000))",
}


def interrupt(setup: str, afterwards: str) -> list[str]:
    """Return the output of a process that is interrupted at work and then goes on."""
    script = "\n".join(
        [
            PRELUDE,
            "if True:",
            setup,
            "try:",
            "    about_to_work.set()",
            "    print('done', work())",
            "except KeyboardInterrupt:",
            "    print('interrupted')",
            afterwards,
            "for new in (sno.new, snowflake.new, locality.new):",
            "    assert len({new() for _ in range(1000)}) == 1000",
            "print('alive')",
        ]
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            assert select.select([process.stdout], [], [], BOUND)[0], "stuck, with the interpreter held"
            lines = [process.stdout.readline()]
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=BOUND)
        finally:
            process.kill()
    assert process.returncode == 0, err
    return [*lines, *out.splitlines(keepends=True)]


@pytest.mark.parametrize("name", WAITS)
def test_ctrl_c_ends_a_wait(name: str) -> None:
    assert interrupt(WAITS[name], "") == ["waiting\n", "interrupted\n", "alive\n"]


@pytest.mark.parametrize("name", ["sno, clock went back", "snowflake, clock went back", "snowflake, all numbers used"])
def test_generator_goes_on_after_ctrl_c(name: str) -> None:
    afterwards = "manual.set(NOW + HOUR); assert len({generator.new() for _ in range(2)}) == 2"
    assert interrupt(WAITS[name], afterwards) == ["waiting\n", "interrupted\n", "alive\n"]


@pytest.mark.parametrize("name", BATCHES)
def test_ctrl_c_ends_a_huge_batch(name: str) -> None:
    assert interrupt(f"    {BATCHES[name]}", "") == ["waiting\n", "interrupted\n", "alive\n"]


def test_handled_signal_does_not_end_a_wait() -> None:
    script = f"""{PRELUDE}
generator = snowflake.Generator(1, **TWO, clock=manual)
last = generator.batch(2)[-1]
signal.signal(signal.SIGALRM, lambda *_: manual.advance(MS))
signal.setitimer(signal.ITIMER_REAL, 0.01)
print(generator.new() > last)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=BOUND, check=False)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
