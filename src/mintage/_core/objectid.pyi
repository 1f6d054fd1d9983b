from datetime import datetime
from typing import final, type_check_only

from bson import ObjectId
from typing_extensions import Unpack

from . import _IDArray, _Instant, _Lease, _LeasedGenerator, _TimedID

@type_check_only
class _Fields(_Instant, total=False):
    process: str | int
    counter: int

@final
class ID(_TimedID[ID]):
    @staticmethod
    def from_parts(**fields: Unpack[_Fields]) -> ID: ...
    def replace(self, **fields: Unpack[_Fields]) -> ID: ...
    @staticmethod
    def from_bson(value: ObjectId, /) -> ID: ...
    def as_bson(self) -> ObjectId: ...
    @property
    def process(self) -> str: ...
    @property
    def counter(self) -> int: ...

@final
class Array(_IDArray[ID, Array]): ...

@final
class Generator(_LeasedGenerator[ID, Array]):
    def __new__(cls, process: int | None = None, **lease: Unpack[_Lease]) -> Generator: ...
    @property
    def process(self) -> int | None: ...

def max_at(time: datetime | int, /) -> ID: ...
def min_at(time: datetime | int, /) -> ID: ...
