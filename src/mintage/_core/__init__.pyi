from collections.abc import Callable
from typing import Final, TypeAlias, final

from . import locality as locality
from . import sequence as sequence
from . import service as service
from . import sno as sno
from . import snowflake as snowflake

__all__ = [
    "ManualClock",
    "build_profile",
    "cached_ms",
    "clock_facts",
    "locality",
    "sequence",
    "service",
    "sno",
    "snowflake",
]

build_profile: Final[str]

def cached_ms() -> int: ...
def clock_facts() -> dict[str, int]: ...

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
