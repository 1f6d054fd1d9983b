from collections.abc import Callable
from datetime import datetime
from typing import ClassVar, Literal, TypeAlias, final
from uuid import UUID

from typing_extensions import Buffer, Unpack

from mintage.store import Store

from . import _ArrayIterator, _Clock, _Generator, _IDArray, _Lease, _TimedID

__all__ = [
    "ID",
    "Array",
    "ArrayIterator",
    "Generator",
    "Overflow",
    "Snapshot",
    "encode_into",
    "max_at",
    "min_at",
    "parse_into",
]

# Two bytes, such as b"A\n" or (65, 10), name a partition as well as an int does.
_Partition: TypeAlias = int | bytes | tuple[int, int]

@final
class ID(_TimedID[ID]):
    ZERO: ClassVar[ID]
    MAX: ClassVar[ID]
    @staticmethod
    def from_uuid(value: UUID, /) -> ID: ...
    @staticmethod
    def from_json(value: str | None, /) -> ID: ...
    @staticmethod
    def from_parts(
        *,
        time: datetime = ...,
        timestamp_ms: int = ...,
        timestamp_ns: int = ...,
        tick: int = ...,
        meta: int = ...,
        partition: _Partition = ...,
        sequence: int = ...,
    ) -> ID: ...
    def replace(
        self,
        *,
        time: datetime = ...,
        timestamp_ms: int = ...,
        timestamp_ns: int = ...,
        tick: int = ...,
        meta: int = ...,
        partition: _Partition = ...,
        sequence: int = ...,
    ) -> ID: ...
    @property
    def tick(self) -> int: ...
    @property
    def meta(self) -> int: ...
    @property
    def partition(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def is_zero(self) -> bool: ...
    def as_uuid(self) -> UUID: ...
    def as_json(self) -> str | None: ...

@final
class Array(_IDArray[ID, Array, ArrayIterator]): ...

@final
class ArrayIterator(_ArrayIterator[ID]): ...

@final
class Overflow:
    @property
    def now(self) -> datetime: ...
    @property
    def count(self) -> int: ...
    @property
    def ticks(self) -> int: ...

@final
class Snapshot:
    def __new__(
        cls,
        partition: _Partition,
        sequence_min: int = 0,
        sequence_max: int = 65535,
        sequence: int = 0,
        now: int = 0,
        wall_hi: int = 0,
        wall_safe: int = 0,
        drifts: int = 0,
        pool: str | None = None,
        shards: int = 1,
    ) -> Snapshot: ...
    @property
    def partition(self) -> int: ...
    @property
    def sequence_min(self) -> int: ...
    @property
    def sequence_max(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def now(self) -> int: ...
    @property
    def wall_hi(self) -> int: ...
    @property
    def wall_safe(self) -> int: ...
    @property
    def drifts(self) -> int: ...
    @property
    def leased(self) -> bool: ...
    @property
    def pool(self) -> str | None: ...
    @property
    def shards(self) -> int: ...
    def to_json(self) -> str: ...
    @staticmethod
    def from_json(text: str, /) -> Snapshot: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Callable[[str], Snapshot], tuple[str]]: ...

@final
class Generator(_Generator[ID]):
    def __new__(
        cls,
        partition: _Partition | None = None,
        *,
        meta: int = 0,
        sequence_min: int = 0,
        sequence_max: int = 65535,
        on_overflow: Callable[[Overflow], object] | None = None,
        shards: int = 1,
        **lease: Unpack[_Lease],
    ) -> Generator: ...
    @staticmethod
    def restore(
        snapshot: Snapshot,
        *,
        meta: int = 0,
        on_overflow: Callable[[Overflow], object] | None = None,
        store: str | Store | None = None,
        pool: str | None = None,
        span_ms: int | None = None,
        on_lease_lost: Literal["raise", "move"] | None = None,
        clock: _Clock | None = None,
        max_wait_ms: int = 1000,
    ) -> Generator: ...
    def new(self, meta: int = ...) -> ID: ...
    def new_at(self, time: datetime | int, meta: int = ...) -> ID: ...
    def nth_at(self, time: datetime | int, n: int, meta: int = ...) -> ID: ...
    def batch(self, n: int, meta: int = ...) -> Array: ...
    def fill(self, buffer: Buffer, meta: int = ...) -> int: ...
    def snapshot(self) -> Snapshot: ...
    @property
    def meta(self) -> int: ...
    @property
    def partition(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def sequence_min(self) -> int: ...
    @property
    def sequence_max(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def drifts(self) -> int: ...

def min_at(time: datetime | int, /) -> ID: ...
def max_at(time: datetime | int, /) -> ID: ...
def encode_into(ids: Buffer, text: Buffer, /) -> int: ...
def parse_into(text: Buffer, ids: Buffer, /) -> int: ...
