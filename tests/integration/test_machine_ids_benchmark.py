"""Tests of the benchmark of machine ids: its trials, its record and its tables. Covers benchmarks/machine_ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from benchmarks.machine_ids import record
from benchmarks.machine_ids.libraries import GO, JAVA, LIBRARIES, ours, running, versions
from benchmarks.machine_ids.record import Fault, MachineRecord, Rate
from benchmarks.machine_ids.trials import tried
from benchmarks.timing import BUILT

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.machine_ids.libraries import Library

FACTS: Final = {
    "cpu": "a processor",
    "cores": 2,
    "load": [3.5, 1.0, 0.5],
    "kernel": "Linux 6.1",
    "python": "CPython 3.11.2",
    "go": "go version go1.26",
    "java": "openjdk version 17",
    "libraries": {"one": "1.0"},
}
RATES: Final = MachineRecord("2026-11-27T12:00:00", FACTS, rates=[Rate("one", [30.0, 10.0, 20.0], 100)])
FAULTS: Final = MachineRecord(
    "2026-11-27T12:00:00",
    FACTS,
    faults=[
        Fault("one", "twins", 2000, 1000),
        Fault("one", "clock back", 2000, 0, waited_s=3.2),
        Fault("two", "twins", 0, 0, "the clock went back"),
    ],
)


@pytest.mark.parametrize("kept", [RATES, FAULTS], ids=["rates", "faults"])
def test_record_of_machine_ids_reads_as_it_was_written(kept: MachineRecord, tmp_path: Path) -> None:
    assert MachineRecord.load(kept.save(tmp_path, "machine")) == kept


def test_table_has_the_median_beside_what_the_layout_has() -> None:
    assert RATES.table_of_rates()[1] == ("one", "20", "100")


def test_table_tells_repeats_waits_refusals_and_what_was_not_tried() -> None:
    assert FAULTS.table_of_faults() == [
        ("", "twins", "clock back"),
        ("one", "1,000 of 2,000", "0 of 2,000, waits 3.2 s"),
        ("two", "refuses", "–"),
    ]
    assert "- two, twins: `the clock went back`." in record.faults(FAULTS)


def test_page_tells_that_other_programs_loaded_the_machine() -> None:
    assert record.rates(RATES).endswith("one 1.0. Other programs ran as well: the load was 4.")


def test_versions_of_the_peers_are_those_that_their_builds_pin() -> None:
    assert set(versions()) == {
        "github.com/bwmarrin/snowflake",
        "github.com/sony/sonyflake/v2",
        "me.ahoo.cosid:cosid-core",
        "cn.hutool:hutool-core",
    }


def test_twins_repeat_ids_with_a_number_by_hand_and_none_with_leases() -> None:
    by_hand, leased = tried("twins", ours("number")), tried("twins", ours("leased"))
    assert not by_hand.refused
    assert by_hand.repeated > 0
    assert leased.ids > 0
    assert leased.repeated == 0


@pytest.mark.parametrize("library", LIBRARIES[2:], ids=lambda library: library.label)
def test_program_of_a_peer_mints_what_it_is_told(library: Library, tmp_path: Path) -> None:
    source, file = (GO, BUILT / GO.name) if "Go" in library.label else (JAVA, BUILT / JAVA.name / "Machine.class")
    if not file.exists() or file.stat().st_mtime < max(each.stat().st_mtime for each in source.iterdir()):
        pytest.skip("python -m benchmarks.machine_ids has not built it")
    with running(library, str(tmp_path)) as program:
        ids = program.mint(0.01).ids
    assert len(ids) == len(set(ids)) >= 100
