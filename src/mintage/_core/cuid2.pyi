from typing import final

from . import _Clock, _TextGenerator

@final
class Generator(_TextGenerator):
    def __new__(cls, length: int = 24, *, clock: _Clock | None = None) -> Generator: ...
    @property
    def length(self) -> int: ...
