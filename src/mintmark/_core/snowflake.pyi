from array import array
from collections.abc import Iterable
from datetime import datetime
from typing import Literal, final

from typing_extensions import Buffer

from . import Clock

@final
class Parts:  # equality, repr
    @property
    def timestamp_ms(self) -> int: ...   # Unix ms
    @property
    def time(self) -> datetime: ...
    @property
    def node(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def fields(self) -> dict[str, int]: ...   # raw values by field name, high to low

@final
class Layout:   # immutable, hashable, comparable, picklable
    def __new__(cls, fields: str, *, epoch_ms: int, unit_ms: int = 1) -> Layout: ...
    # "time:41 node:10 sequence:12": every field that is neither time nor sequence is part of the node number, high to low
    @property
    def epoch_ms(self) -> int: ...
    @property
    def unit_ms(self) -> int: ...
    @property
    def fields(self) -> tuple[tuple[str, int, int], ...]: ...  # (name, bits, shift of its lowest bit), high to low
    @property
    def bits(self) -> int: ...     # at most 64
    @property
    def nodes(self) -> int: ...
    @property
    def expires(self) -> datetime: ...   # first instant it can no longer hold (datetime.max where later than year 9999)
    @property
    def ids_per_second(self) -> int: ... # of one node
    def compose(self, *, timestamp_ms: int, node: int = 0, sequence: int = 0) -> int: ...
    def parse(self, id: int, /) -> Parts: ...
    def min_at(self, time: datetime | int, /) -> int: ...
    def max_at(self, time: datetime | int, /) -> int: ...

DEFAULT: Layout
TWITTER: Layout
DISCORD: Layout
INSTAGRAM: Layout
SONYFLAKE: Layout

Rollback = Literal["advance", "wait", "raise"]
Exhausted = Literal["wait", "advance", "raise"]

@final
class Generator:
    def __new__(
        cls,
        node: int | None = None,
        *,
        layout: Layout = ...,
        on_rollback: Rollback = "advance",
        on_exhausted: Exhausted = "wait",
        store: object = None,
        clock: Clock | None = None,
        max_wait_ms: int = 1000,
    ) -> Generator: ...
    def new(self) -> int: ...
    def batch(self, n: int) -> array[int]: ...     # array.array("Q")
    def fill(self, buffer: Buffer) -> int: ...     # 8-byte items, native order
    def close(self) -> None: ...
    @property
    def node(self) -> int: ...
    @property
    def layout(self) -> Layout: ...
    def __iter__(self) -> Generator: ...
    def __next__(self) -> int: ...
    def __enter__(self) -> Generator: ...
    def __exit__(self, *exc: object) -> None: ...

def node_from_macs(macs: Iterable[str], /) -> int: ...
def to_lines(ids: Buffer, /) -> bytes: ...    # decimal text, one a line
