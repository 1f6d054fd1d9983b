from datetime import datetime
from typing import final

from typing_extensions import Buffer, Unpack

from . import _Array, _ArrayIterator, _Generator, _Lease, _TimedID

__all__ = ["ID", "Array", "ArrayIterator", "Generator", "max_at", "min_at"]

@final
class ID(_TimedID):
    @staticmethod
    def parse(text: str, /) -> ID: ...
    @staticmethod
    def from_bytes(value: Buffer, /) -> ID: ...
    @staticmethod
    def from_int(value: int, /) -> ID: ...
    @staticmethod
    def from_parts(
        *,
        timestamp_ms: int = ...,
        timestamp_ns: int = ...,
        worker: str | int = ...,
        sequence: int = ...,
        random: str | int = ...,
    ) -> ID: ...
    def replace(
        self,
        *,
        timestamp_ms: int = ...,
        timestamp_ns: int = ...,
        worker: str | int = ...,
        sequence: int = ...,
        random: str | int = ...,
    ) -> ID: ...
    @property
    def worker(self) -> str: ...
    @property
    def sequence(self) -> int: ...
    @property
    def random(self) -> str: ...

@final
class Array(_Array[ID]):
    @staticmethod
    def parse(text: str | Buffer, /) -> Array: ...
    def __iter__(self) -> ArrayIterator: ...

@final
class ArrayIterator(_ArrayIterator[ID]): ...

@final
class Generator(_Generator[ID]):
    def __new__(cls, worker: int | None = None, **lease: Unpack[_Lease]) -> Generator: ...
    def batch(self, n: int) -> Array: ...
    def new_at(self, time: datetime | int) -> ID: ...
    def nth_at(self, time: datetime | int, n: int) -> ID: ...
    @property
    def capacity(self) -> int: ...
    @property
    def worker(self) -> int | None: ...

def max_at(time: datetime | int, /) -> ID: ...
def min_at(time: datetime | int, /) -> ID: ...
