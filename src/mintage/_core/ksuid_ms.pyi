from datetime import datetime
from typing import final, type_check_only

from typing_extensions import Unpack

from . import _IDArray, _Instant, _NodeGenerator, _TimedID

@type_check_only
class _Fields(_Instant, total=False):
    payload: str | int

@final
class ID(_TimedID[ID]):
    @staticmethod
    def from_parts(**fields: Unpack[_Fields]) -> ID: ...
    def replace(self, **fields: Unpack[_Fields]) -> ID: ...
    @property
    def fraction(self) -> int: ...
    @property
    def payload(self) -> str: ...

@final
class Array(_IDArray[ID, Array]): ...

@final
class Generator(_NodeGenerator[ID, Array]): ...

def max_at(time: datetime | int, /) -> ID: ...
def min_at(time: datetime | int, /) -> ID: ...
