from typing import final

from . import _TextGenerator

__all__ = ["Generator"]

@final
class Generator(_TextGenerator):
    def __new__(cls, length: int = 24) -> Generator: ...
    @property
    def length(self) -> int: ...
