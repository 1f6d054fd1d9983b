from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar, final

from . import formats as formats
from . import locality as locality
from . import sequence as sequence
from . import service as service
from . import sno as sno
from . import snowflake as snowflake

__all__ = [
    "ManualClock",
    "as_function",
    "birth",
    "build_profile",
    "cached_ms",
    "clock_facts",
    "epoch",
    "formats",
    "kernel_random",
    "locality",
    "sequence",
    "service",
    "sno",
    "snowflake",
    "start_epoch",
]

build_profile: Final[str]

def birth() -> int: ...

_F = TypeVar("_F", bound=Callable[..., object])

def as_function(method: _F, module: str, /) -> _F: ...
def cached_ms() -> int: ...
def clock_facts() -> dict[str, int]: ...
def epoch() -> int: ...
def kernel_random(count: int, /) -> bytes: ...
def start_epoch() -> int: ...

@final
class ManualClock:
    def __new__(cls, ns: int, *, auto_advance: bool = True) -> ManualClock: ...
    @property
    def now_ns(self) -> int: ...
    @property
    def auto_advance(self) -> bool: ...
    def set(self, ns: int, /) -> None: ...
    def advance(self, ns: int, /) -> None: ...
    def __call__(self) -> int: ...

_Clock: TypeAlias = ManualClock | Callable[[], int]
