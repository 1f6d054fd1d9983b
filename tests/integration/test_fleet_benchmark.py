"""Tests of the benchmark of fleets: a small run, and its record. Covers benchmarks/fleet."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from benchmarks.fleet import record, report, run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.servers import Redis


def test_small_fleet_is_measured_and_recorded(redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "DIRECTORY", tmp_path)
    steady = run.steady(redis.url, redis, processes=2, leases=60, seconds=2)
    fleet = run.day(redis.url, redis, processes=3, away_s=0, seconds=0.1, span_ms=run.SPAN_MS)
    assert (steady.failed, steady.connections) == (0, 2)
    assert (fleet.numbers, fleet.released, fleet.start_errors, fleet.stop_errors) == (3, 3, 0, 0)
    facts = {"python": "CPython", "cpu": "a processor"}
    made = record.FleetRecord(
        "2026-01-02T03:04:05", facts, [record.Run("redis", "Redis 7", replace(steady, share=1.5), fleet)]
    )
    assert made.save("test").read_text(encoding="utf-8")
    found = record.FleetRecord.newest()
    assert found is not None
    assert asdict(found) == asdict(made)
    assert "| Redis 7 | 60 |" in report.tables(found)
    assert [ET.fromstring(drawing).tag for drawing in report.charts(found).values()]
