"""The map of a pool: its node numbers as cells, each filled by the states of its numbers.

One cell is one number or a group of numbers, so that a pool of any size is a picture of at most :data:`MOST_CELLS`
cells. A range of more than :data:`LARGEST_DENSE` numbers shows only the groups with a number that was ever granted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from markupsafe import Markup

from mintage.rules import COOLDOWN_MS, NodeRecord, PoolRecord

STATES: Final = {
    "held": "its holder can extend the window",
    "revoked": "nobody can extend the window, which still runs",
    "cooling": "the window ended less than a minute ago; the pool grants other numbers first",
    "quarantined": "the pool grants nothing before its quarantine ends",
    "free": "this store has no holder of it; another store or a lock may have it if the pool does not grant it",
}
"""The states of a node number and their meanings, in the order in which a cell is filled from below."""

MOST_CELLS: Final = 1024
LARGEST_DENSE: Final = 2**20
"""The longest range whose cells are all drawn."""
COLUMNS: Final = 32
PITCH: Final = 20
"""The distance between two cells, in pixels."""
SIDE: Final = 18
"""The side of a cell, in pixels."""
_LEAST: Final = 3
"""The least height of a state that a number in a cell has, in pixels."""


def state_of(record: NodeRecord | None, pool: PoolRecord, now_ms: int) -> str:
    """Return the state of a node number, a key of :data:`STATES`.

    :param record: its record; ``None`` if it was never granted.
    :param now_ms: the store's clock.
    """
    if record is not None and record.until_ms > now_ms:
        return "revoked" if record.token is None else "held"
    if pool.quarantine_until_ms > now_ms:
        return "quarantined"
    return "cooling" if record is not None and record.until_ms > now_ms - COOLDOWN_MS else "free"


class Cell(NamedTuple):
    """The numbers ``first`` to ``last`` at a place of the map, in pixels."""

    first: int
    last: int
    counts: dict[str, int]
    """The number of its numbers in each state that one of them has."""
    is_found: bool
    """True if a search found one of its numbers."""
    x: int
    y: int

    @property
    def title(self) -> str:
        """The text of the cell for readers and for the pointer."""
        if self.first == self.last:
            return f"{self.first:,}: {next(iter(self.counts))}"
        listed = ", ".join(f"{count:,} {state}" for state, count in self.counts.items())
        return f"{self.first:,} to {self.last:,}: {listed}"


class NodeMap(NamedTuple):
    """The map of a range of a pool's node numbers."""

    nodes: range
    size: int
    """The numbers of a cell; the first and the last cell may have fewer."""
    is_sparse: bool
    """True if groups without any granted number are left out."""
    counts: dict[str, int]
    """The numbers of the whole range in each state."""
    cells: list[Cell]
    shapes: dict[str, Markup]
    """For each state that a number has, but for free ones: the path of its areas, as the ``d`` of SVG."""


def node_map(
    pool: PoolRecord, records: Iterable[NodeRecord], nodes: range, now_ms: int, found: Collection[int] = ()
) -> NodeMap:
    """Return the map of ``nodes``, which are not empty.

    :param records: those of granted numbers within ``nodes``.
    :param now_ms: the store's clock.
    :param found: the numbers that a search found.
    """
    states = {each.node: state_of(each, pool, now_ms) for each in records}
    others, is_sparse = state_of(None, pool, now_ms), len(nodes) > LARGEST_DENSE
    shift = _shift_of_used(states) if is_sparse else (-(-len(nodes) // MOST_CELLS) - 1).bit_length()
    groups: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for node, state in states.items():
        groups[node >> shift][state] += 1
    framed = {each >> shift for each in found}
    cells: list[Cell] = []
    for group in sorted(groups) if is_sparse else range(nodes.start >> shift, (nodes.stop - 1 >> shift) + 1):
        first, stop = max(nodes.start, group << shift), min(nodes.stop, group + 1 << shift)
        counts = groups.get(group, Counter())
        if left := stop - first - sum(counts.values()):
            counts[others] += left
        ordered = {state: counts[state] for state in STATES if state in counts}
        row, column = divmod(len(cells), COLUMNS)
        cells.append(Cell(first, stop - 1, ordered, group in framed, column * PITCH, row * PITCH))
    totals = Counter(states.values())
    totals[others] += len(nodes) - len(states)
    return NodeMap(nodes, 1 << shift, is_sparse, totals, cells, _shapes(cells))


def _shift_of_used(numbers: Iterable[int]) -> int:
    """Return the least shift by which numbers fall into at most :data:`MOST_CELLS` groups."""
    shift, used = 0, set(numbers)
    while len(used) > MOST_CELLS:
        shift, used = shift + 1, {each >> 1 for each in used}
    return shift


def _shapes(cells: Iterable[Cell]) -> dict[str, Markup]:
    paths: dict[str, list[str]] = {}
    for cell in cells:
        for state, top, height in heights(cell.counts):
            paths.setdefault(state, []).append(f"M{cell.x} {cell.y + SIDE - top}h{SIDE}v{height}h-{SIDE}z")
    # Numbers only, so there is nothing to escape.
    return {state: Markup("".join(paths[state])) for state in STATES if state in paths and state != "free"}  # noqa: S704


def heights(counts: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """Yield the states of a cell, each with the top above the cell's lower side and the height, in pixels.

    Each state has at least 3 pixels, and all together have the side of the cell.
    """
    total, shared = sum(counts.values()), SIDE - _LEAST * len(counts)
    shares = {state: _LEAST + shared * count // total for state, count in counts.items()}
    shares[max(counts, key=lambda state: counts[state])] += SIDE - sum(shares.values())
    top = 0
    for state, height in shares.items():
        top += height
        yield state, top, height
