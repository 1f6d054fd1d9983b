"""The rows of the table, and the sides that rows of several kinds share."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Literal

from benchmarks.timing import CALLS, Measure, Side, calls, iterates, side_by_side

Unit = Literal["ns", "µs", "ms", "k/s", "M/s", "MB", "%"]


@dataclass(frozen=True)
class Bar:
    """The limit of the median of a row: of the ratio to the other side, or of the figure in the unit of the row."""

    of: Literal["ratio", "figure"]
    sense: Literal["≤", "≥"]
    limit: float
    zero: str | None = None
    """A count of the row that has to be 0 as well."""


@dataclass(frozen=True)
class Row:
    """One line of the table: `what` with its figure in `unit`, and its peer."""

    what: str
    beside: str
    measure: Measure
    bar: Bar | None = None
    unit: Unit = "ns"
    note: str = ""
    pinned: bool = True
    """True if the row needs only one processor."""
    processes: int = 5
    """Fresh processes of a full run. The service's rows start servers of their own in one, which is as fresh."""

    @property
    def key(self) -> str:
        """Return the name of the row, in which `--rows` searches."""
        return f"{self.what} beside {self.beside}"


def at_most(limit: float, of: Literal["ratio", "figure"] = "ratio", zero: str | None = None) -> Bar:
    """Return a bar that figures must not exceed."""
    return Bar(of, "≤", limit, zero)


def at_least(limit: float) -> Bar:
    """Return a bar that the ratio must reach."""
    return Bar("ratio", "≥", limit)


def new(generator: Callable[[], Any], repeats: int = CALLS) -> Side:
    return Side(lambda: calls(generator().new), repeats)


def each(generator: Callable[[], Iterator[object]]) -> Side:
    return Side(lambda: iterates(generator()))


def call(name: str, *arguments: object, repeats: int = CALLS) -> Side:
    """Return the function of a peer by its `module:name`."""
    return Side(lambda: calls(resolve_name(name), *arguments), repeats)


UUID7 = call("c_uuid_v7:uuid7")
UUID7_NAME = "c_uuid_v7.uuid7()"


def beside_uuid7(what: str, ours: Side, limit: float, note: str = "") -> Row:
    return Row(what, UUID7_NAME, side_by_side(ours, UUID7), at_most(limit), note=note)
