"""The crew of :mod:`mintage.prove.crew`, which mints in all schemes here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from mintage.prove import crew
from mintage.prove.crew import PATIENCE_S, WIDTHS, Worker

__all__ = ["PATIENCE_S", "ROOT", "WIDTHS", "Crew", "Worker", "cpu_s"]

ROOT: Final = Path(__file__).parents[3]
PLACES: Final = {
    "uuid": bytes.fromhex("ffffffffffff 0000 000f fffff0 000000"),
    "ulid": bytes.fromhex("ffffffffffff ffffff 00000000000000"),
    "objectid": bytes.fromhex("ffffffff ffffffffff 000000"),
}
"""The bits that are time and node number, where others are random: no two workers may have these in common."""


class Crew(crew.Crew):
    """Workers that share a store."""

    def counts(self) -> tuple[int, int]:
        ids, repeated = super().counts()
        for scheme, place in PLACES.items():
            positions = [positions_of(data, place) for data in self.data(scheme)]
            repeated += sum(map(len, positions)) - len(set().union(*positions))
        return ids, repeated


def positions_of(data: bytes, place: bytes) -> set[int]:
    """Return the position bits of each ID."""
    mask = int.from_bytes(place, "big")
    return {int.from_bytes(each, "big") & mask for each in crew.split(data, len(place))}


def cpu_s(worker: Worker) -> float:
    """Return the processor time that a worker has used."""
    fields = Path(f"/proc/{worker.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
