"""Outcomes of worlds, and the search for IDs that were minted twice."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Batch:
    """IDs minted in one call."""

    event: int
    process: int
    clock_ms: int
    ids: Any


@dataclass(frozen=True)
class Duplicate:
    """An ID minted twice, and its history."""

    world: int
    region: str
    id: str
    story: tuple[str, ...]
    replay: str

    def __str__(self) -> str:
        return "\n  ".join([f"DUPLICATE {self.region} {self.id}: {self.replay}", *self.story])


@dataclass
class Outcome:
    """The result of one world or several."""

    ids: int = 0
    processes: int = 0
    verbs: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    duplicates: list[Duplicate] = field(default_factory=list)
    shared: int = 0
    """IDs that copies of a process minted twice from shared state before their notification."""
    below_floor: int = 0
    """Integers from a sequence that had reserved a segment after its floor was raised above them."""
    named: int = 0
    """IDs whose holder the store knows after the run: the process that minted them."""
    outdated: int = 0
    """IDs for which the store names the holder before, as a failover lost the release and the next grant."""
    misnamed: list[str] = field(default_factory=list)
    """IDs for which the store names another holder, or none although its history reaches back."""
    digest: int = 0

    def add(self, other: Outcome) -> None:
        self.ids += other.ids
        self.processes += other.processes
        self.verbs += other.verbs
        self.faults += other.faults
        self.refusals += other.refusals
        self.duplicates += other.duplicates
        self.shared += other.shared
        self.below_floor += other.below_floor
        self.named += other.named
        self.outdated += other.outdated
        self.misnamed += other.misnamed
        self.digest = crc32(other.digest.to_bytes(4), self.digest)


def join(batches: list[Batch], width: int) -> tuple[Any, list[int]]:
    """Return all IDs as rows of bytes, and the start of each batch."""
    rows = [batch.ids.view(np.uint8).reshape(-1, width) for batch in batches]
    starts = list(itertools.accumulate((len(part) for part in rows), initial=0))[:-1]
    return np.concatenate(rows), starts


def _cut(ids: Any, starts: list[int], batches: list[Batch], place: tuple[tuple[int, int], ...]) -> None:
    """Reduce each ID to its time and its node number, once for each process; other rows become zeros."""
    bits = np.zeros(8 * ids.shape[1], dtype=np.uint8)
    for first, end in place:
        bits[first:end] = 1
    ids &= np.packbits(bits)
    is_next = np.ones(len(ids), dtype=bool)
    is_next[1:] = (ids[1:] != ids[:-1]).any(axis=1)
    is_next[starts] = True
    seen = set()
    for at in np.flatnonzero(is_next):
        key = batches[bisect_right(starts, at) - 1].process, ids[at].tobytes()
        is_next[at] = key not in seen
        seen.add(key)
    ids[~is_next] = 0


def all_twins(
    ids: Any, starts: list[int], batches: list[Batch], place: tuple[tuple[int, int], ...]
) -> Iterator[tuple[int, int]]:
    """Return pairs of equal IDs, then pairs of equal positions of two processes, for which ``ids`` are cut."""
    yield from twins_of(ids)
    if place:
        _cut(ids, starts, batches, place)
        yield from twins_of(ids)


def twins_of(ids: Any) -> Iterator[tuple[int, int]]:
    """Return all pairs of equal rows of bytes, except zeros. Exact: candidates are compared completely."""
    width = ids.shape[1]
    padded = np.zeros((len(ids), -(-width // 8) * 8), dtype=np.uint8)
    padded[:, :width] = ids
    words = padded.view(np.uint64)
    keys = words[:, 0].copy()
    for column in range(1, words.shape[1]):
        keys = keys * np.uint64(0x9E3779B97F4A7C15) ^ words[:, column]
    present = np.flatnonzero(ids.any(axis=1))
    keys = keys[present]
    ordered = np.sort(keys)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    seen: dict[bytes, list[int]] = {}
    for at in present[np.isin(keys, again)] if len(again) else ():
        before = seen.setdefault(ids[at].tobytes(), [])
        yield from ((earlier, int(at)) for earlier in before)
        before.append(int(at))
