from datetime import datetime
from typing import Literal, TypeAlias, final, type_check_only
from uuid import UUID

from typing_extensions import Unpack

from . import _IDArray, _Instant, _Lease, _LeasedGenerator, _TimedID

_Mode: TypeAlias = Literal["variable", "sequential"]

@type_check_only
class _Fields(_Instant, total=False):
    counter: int
    pid: int
    mac: str

@final
class ID(_TimedID[ID]):
    @staticmethod
    def from_uuid(value: UUID, /) -> ID: ...
    @staticmethod
    def from_parts(*, mode: _Mode = "variable", **fields: Unpack[_Fields]) -> ID: ...
    def replace(self, *, mode: _Mode = "variable", **fields: Unpack[_Fields]) -> ID: ...
    @property
    def version(self) -> str: ...
    @property
    def counter(self) -> int: ...
    @property
    def sequential_counter(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def mac(self) -> str: ...
    def as_uuid(self) -> UUID: ...

@final
class Array(_IDArray[ID, Array]): ...

@final
class Generator(_LeasedGenerator[ID, Array]):
    def __new__(
        cls,
        mode: _Mode = "variable",
        *,
        pid: int | None = None,
        mac: str | None = None,
        counter: int | None = None,
        **lease: Unpack[_Lease],
    ) -> Generator: ...
    def use_mode(self, mode: _Mode, /) -> None: ...
    @property
    def mode(self) -> _Mode: ...
    @property
    def pid(self) -> int: ...
    @property
    def mac(self) -> str: ...

def sequential_seed(time: datetime | int, /) -> int: ...
