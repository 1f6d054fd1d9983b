"""Tests of the benchmark of cores: its measurements, its record and what it refuses. Covers benchmarks/cores."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from benchmarks.cores import mint, report, serve
from benchmarks.cores.machine import connections, processors
from benchmarks.cores.record import CoresRecord, Point

if TYPE_CHECKING:
    from pathlib import Path

MORE: Final = {"p99_ms": 1.5, "busy": [90, 40], "connections": [100, 96], "client_busy": 60, "client_processors": 8}
POINTS: Final = [
    *(Point("workers", name, 2, 138_000, MORE) for name in report.SERVED),
    Point("processes", "sno", 64, 149_600_000),
]
RECORD: Final = CoresRecord("2026-01-02T03:04:05+00:00", {"cpu": "one", "cores": 16}, POINTS)


def test_record_of_cores_reads_as_it_was_written(tmp_path: Path) -> None:
    assert CoresRecord.load(RECORD.save(tmp_path, "machine")) == RECORD


def test_table_has_the_spread_of_connections_and_load() -> None:
    [rows] = [rows for title, rows in report.tables(RECORD) if title == report.LOAD]
    assert rows[1] == ("2", "1", "138 k/s", "96 to 100", "40 to 90 %", "60 % of 8", "1.50 ms")


def test_run_over_cores_refuses_a_machine_with_few() -> None:
    command = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), sys.executable, "-m", "benchmarks.cores"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "1 processors are too few: use a machine with more than 4, or --anyway\n"


def test_processes_that_mint_begin_together_and_add_up() -> None:
    assert mint.minted(sys.executable, "sno", processes=2, threads=1, seconds=0.05) > 10_000


def test_connections_of_a_process_are_counted_by_port() -> None:
    with socket.create_server((serve.HOST, 0)) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert connections(os.getpid(), listener.getsockname()[1]) == 1


def test_processors_are_each_there_once() -> None:
    assert sorted(processors()) == sorted(os.sched_getaffinity(0))


@pytest.mark.skipif(shutil.which("redis-benchmark") is None, reason="redis-benchmark is not installed")
def test_client_of_a_worker_shows_its_rate_and_load() -> None:
    every = processors()
    plan = serve.Plan(every[:1], every[-1:], 1.0, 1)
    with serve.mintage(plan, 1) as server:
        rate, more = serve.once(serve.Client(1, connections=4), server, plan, 100_000)
    assert rate > 100
    assert more["connections"] == [4]
    assert more["client_processors"] == 1
