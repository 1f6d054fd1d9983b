from datetime import datetime
from typing import final

from typing_extensions import Unpack

from . import _ArrayIterator, _IDArray, _Lease, _NodeGenerator, _TimedID

__all__ = ["ID", "Array", "ArrayIterator", "Generator", "max_at", "min_at"]

@final
class ID(_TimedID[ID]):
    @staticmethod
    def from_parts(
        *,
        time: datetime = ...,
        timestamp_ms: int = ...,
        timestamp_ns: int = ...,
        worker: str | int = ...,
        sequence: int = ...,
        random: str | int = ...,
    ) -> ID: ...
    def replace(
        self,
        *,
        time: datetime = ...,
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
class Array(_IDArray[ID, Array, ArrayIterator]): ...

@final
class ArrayIterator(_ArrayIterator[ID]): ...

@final
class Generator(_NodeGenerator[ID, Array]):
    def __new__(cls, worker: int | None = None, **lease: Unpack[_Lease]) -> Generator: ...
    @property
    def worker(self) -> int | None: ...

def max_at(time: datetime | int, /) -> ID: ...
def min_at(time: datetime | int, /) -> ID: ...
