from typing import final

from . import _Clock, _TextGenerator

@final
class Generator(_TextGenerator):
    def __new__(cls, size: int = 21, alphabet: str = "A-Za-z0-9_-", *, clock: _Clock | None = None) -> Generator: ...
    @property
    def size(self) -> int: ...
    @property
    def alphabet(self) -> str: ...
