from datetime import datetime
from typing import final

from . import _Clock, _TextGenerator

__all__ = ["Generator", "max_at", "min_at"]

@final
class Generator(_TextGenerator):
    def __new__(cls, *, fingerprint: str | None = None, clock: _Clock | None = None) -> Generator: ...
    def new_at(self, time: datetime | int) -> str: ...

def max_at(time: datetime | int, /) -> str: ...
def min_at(time: datetime | int, /) -> str: ...
