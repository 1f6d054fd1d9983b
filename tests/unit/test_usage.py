"""Tests of the counts of the last hour and day: exact over workers and their deaths, and bounded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mintage
from mintage.server.core import usage
from mintage.server.core.metrics import Metrics
from mintage.server.core.usage import DAY_POINTS, HOUR_POINTS, Mark, Usage, Used
from tests.helpers.clocks import StandingClock

NOON_S = 1_800_014_400
"""A whole hour, in seconds since the Unix epoch."""
INSTALLED = str(Path(mintage.__file__).parents[1])


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(NOON_S)


@pytest.fixture
def counts(clock: StandingClock) -> Usage:
    return Usage(clock=clock)


def orders(found: Usage) -> Used:
    return found.read("integers")["orders", ""]


def test_each_five_minutes_have_a_point(counts: Usage, clock: StandingClock) -> None:
    counts.add("integers", "orders", 3)
    clock.now_s += 299
    counts.add("integers", "orders", 4)
    clock.now_s += 1
    counts.add("integers", "orders", 5)
    assert orders(counts).hour == (*[0] * (HOUR_POINTS - 2), 7, 5)
    assert orders(counts).day == (*[0] * (DAY_POINTS - 1), 12)


def test_counts_older_than_a_day_vanish(counts: Usage, clock: StandingClock) -> None:
    counts.add("integers", "orders", 3)
    clock.now_s += 3_600
    assert sum(orders(counts).hour) == 0
    assert sum(orders(counts).day) == 3
    clock.now_s += 22 * 3_600
    assert orders(counts).day[0] == 3
    clock.now_s += 3_600
    assert orders(counts) == Used()


def test_point_of_yesterday_is_not_counted_today(counts: Usage, clock: StandingClock) -> None:
    counts.add("integers", "orders", 3)
    clock.now_s += 86_400
    counts.add("integers", "orders", 1)
    assert (sum(orders(counts).hour), sum(orders(counts).day)) == (1, 1)


def test_integers_and_ids_are_counted_by_key(counts: Usage) -> None:
    counts.add("integers", "orders", 1, "web")
    counts.add("integers", "orders", 2, "batch")
    counts.add("ids", "sno", 4, "web")
    found = {key: sum(used.hour) for key, used in counts.read("integers").items()}
    assert found == {("orders", "web"): 1, ("orders", "batch"): 2}
    assert list(counts.read("ids")) == [("sno", "web")]


def test_counts_of_one_name_are_those_of_no_other(counts: Usage) -> None:
    for name in ("orders", "orders2", "order"):
        counts.add("integers", name, len(name), "web")
    assert [(series, sum(used.hour)) for series, used in counts.read("integers", "orders").items()] == [
        (("orders", "web"), 6)
    ]


def test_metrics_count_use() -> None:
    metrics = Metrics(has_keys=True)
    metrics.integers("orders", 5, "web")
    metrics.ids("sno", 2, "web")
    assert sum(metrics.usage.read("integers")["orders", "web"].hour) == 5
    assert sum(metrics.usage.read("ids")["sno", "web"].hour) == 2


# --- several workers ----------------------------------------------------------------------------------------------


def test_any_worker_reads_the_counts_of_all(tmp_path: Path, clock: StandingClock) -> None:
    workers = [Usage(tmp_path / f"usage-{n}", clock) for n in range(3)]
    for n, worker in enumerate(workers, 1):
        worker.add("integers", "orders", n)
    assert {sum(orders(worker).hour) for worker in workers} == {6}
    assert len(list(tmp_path.iterdir())) == 3


def test_successor_continues_the_file_of_a_killed_worker(tmp_path: Path) -> None:
    program = (
        "import sys, os, signal; from pathlib import Path; from mintage.server.core.usage import Usage; "
        f"usage = Usage(Path(sys.argv[1], 'usage-0'), lambda: {NOON_S}); usage.add('integers', 'orders', 7); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "PYTHONPATH": INSTALLED}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=environment, check=False)
        assert done.returncode == -signal.SIGKILL
    successor = Usage(tmp_path / "usage-0", StandingClock(NOON_S))
    successor.add("integers", "orders", 1)
    assert sum(orders(successor).hour) == 15
    assert len(list(tmp_path.iterdir())) == 1


def test_file_that_is_being_created_is_left_out(tmp_path: Path, clock: StandingClock) -> None:
    counts = Usage(tmp_path / "usage-0", clock)
    counts.add("integers", "orders", 1)
    (tmp_path / "usage-1").touch()
    assert sum(orders(counts).hour) == 1


def test_file_that_is_removed_while_all_are_read_is_left_out(tmp_path: Path, clock: StandingClock) -> None:
    workers = [Usage(tmp_path / f"usage-{n}", clock) for n in range(2)]
    contents = workers[0]._contents()
    next(contents)
    for each in tmp_path.iterdir():
        each.unlink()
    assert list(contents) == []


def test_file_has_all_its_room_before_the_first_count(tmp_path: Path, clock: StandingClock) -> None:
    Usage(tmp_path / "usage-0", clock)
    found = (tmp_path / "usage-0").stat()
    assert found.st_blocks * 512 >= found.st_size == usage._BYTES


FULL = """
import os, resource, signal, sys
from pathlib import Path
from mintage.server.core.metrics import Metrics
from mintage.server.core.usage import Usage
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
usual = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, usual[1]))
metrics = Metrics()
metrics.integers("orders", 5)
[file] = Path(sys.argv[1]).glob("usage-*")
assert file.stat().st_size == 0
resource.setrlimit(resource.RLIMIT_FSIZE, usual)
successor = Usage(file)
successor.add("integers", "orders", 7)
print([sum(each.read("integers")["orders", ""].hour) for each in (metrics.usage, successor)])
"""


def test_worker_on_a_full_disk_counts_in_memory(tmp_path: Path) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": INSTALLED}
    program = [sys.executable, "-c", FULL, str(tmp_path)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[5, 7]", "")


# --- bounds -------------------------------------------------------------------------------------------------------


def test_series_beyond_the_limit_count_together(counts: Usage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "SLOTS", 10)
    for at in range(20):
        counts.add("integers", f"n{at}", 1)
    found = counts.read("integers")
    assert len(found) == 9
    assert sum(sum(used.hour) for used in found.values()) == 20
    assert sum(found["", ""].hour) == 12


def test_series_unused_for_a_day_make_room(
    counts: Usage, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "SLOTS", 10)
    for at in range(8):
        counts.add("integers", f"old{at}", 1)
    clock.now_s += 86_400 + 3_600
    counts.add("integers", "old7", 1)
    counts.add("integers", "new", 1)
    assert {name for name, _ in counts.read("integers")} == {"old7", "new"}


def test_room_is_found_again_by_a_successor(
    tmp_path: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "SLOTS", 10)
    first = Usage(tmp_path / "usage-0", clock)
    for at in range(8):
        first.add("integers", f"old{at}", 1)
    clock.now_s += 86_400 + 3_600
    first.add("integers", "new", 1)
    del first
    second = Usage(tmp_path / "usage-0", clock)
    for at in range(7):
        second.add("integers", f"newer{at}", 1)
    assert {name for name, _ in second.read("integers")} == {"new", *(f"newer{at}" for at in range(7))}


def test_marks_leave_half_of_the_room_to_counts(counts: Usage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "SLOTS", 10)
    for at in range(10):
        counts.mark(f"n{at}", 1)
    assert len(counts.marks()) == 5


def test_longest_names_have_room(counts: Usage) -> None:
    counts.add("integers", "n" * 128, 1, "k" * 64)
    counts.add("integers", "m" * 128, 2, "k" * 64)
    assert [(name[:1], sum(used.hour)) for (name, _), used in counts.read("integers").items()] == [("n", 1), ("m", 2)]


# --- rates --------------------------------------------------------------------------------------------------------


def test_rate_is_that_since_the_first_mark_of_the_last_hour(counts: Usage, clock: StandingClock) -> None:
    counts.mark("orders", 0)
    clock.now_s += 10 * 3_600
    for minute in range(30):
        counts.mark("orders", 1_000 + 60 * minute)
        clock.now_s += 60
    hour, day = counts.marks()["orders"]
    assert (hour[0], day[0]) == (Mark(NOON_S + 36_000, 1_000), Mark(NOON_S, 0))
    assert counts.rate(2_800, 1, hour) == 1.0
    assert counts.rate(2_800, 1, day) == 2_800 / (36_000 + 1_800)


def test_first_mark_of_any_worker_counts(tmp_path: Path, clock: StandingClock) -> None:
    first, second = Usage(tmp_path / "usage-0", clock), Usage(tmp_path / "usage-0", clock)
    first.mark("orders", 100)
    clock.now_s += 120
    second.mark("orders", 220)
    assert {each.marks()["orders"][0][0] for each in (first, second)} == {Mark(NOON_S, 100)}
    assert second.rate(220, 1, second.marks()["orders"][0]) == 1.0


def test_marks_are_read_again_after_the_clock_went_back(counts: Usage, clock: StandingClock) -> None:
    counts.mark("orders", 100)
    clock.now_s += 60
    assert counts.marks()["orders"][0] == [Mark(NOON_S, 100)]
    clock.now_s -= 86_400
    counts.mark("orders", 200)
    assert counts.marks()["orders"][0] == [Mark(NOON_S + 60 - 86_400, 200)]


def test_rate_needs_half_a_minute_and_is_never_negative(counts: Usage, clock: StandingClock) -> None:
    counts.mark("orders", 100)
    since, _ = counts.marks()["orders"]
    clock.now_s += 29
    assert counts.rate(160, 1, since) is None
    clock.now_s += 1
    assert counts.rate(90, 1, since) == 0.0


def test_floor_that_follows_the_use_leaves_the_rate(counts: Usage, clock: StandingClock) -> None:
    for minute in range(60):
        counts.mark("orders", 60 * minute)
        clock.now_s += 60
    hour, _ = counts.marks()["orders"]
    rate = counts.rate(3_600, 3_601, hour)
    assert rate is not None
    assert 0.9 < rate <= 1.0
