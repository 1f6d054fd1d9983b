from collections.abc import Iterator
from datetime import datetime
from typing import Literal, SupportsIndex, final, overload
from uuid import UUID

from typing_extensions import Buffer

from . import Clock

Mode = Literal["variable", "sequential"]

@final
class ID:
    # like sno.ID: ID(bytes), parse(text of 36 characters, either case), from_bytes, from_uuid, from_int, as_uuid, comparisons, hash, pickle, copy
    @staticmethod
    def from_parts(*, counter: int, pid: int, mac: str, timestamp_ms: int, mode: Mode = "variable") -> ID: ...
    @property
    def version(self) -> str: ...          # the 13th hex digit, "b" for this scheme
    @property
    def counter(self) -> int: ...          # the first 8 digits read as variable mode writes them (least significant nibble first)
    @property
    def sequential_counter(self) -> int: ...  # the first 8 digits read as they stand
    @property
    def pid(self) -> int: ...
    @property
    def mac(self) -> str: ...              # 7 hex characters
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def time(self) -> datetime: ...        # FieldError time.range beyond year 9999

@final
class Array: ...   # as sno.Array, SIZE 16; encode() gives 36 characters an ID

@final
class Generator:
    def __new__(
        cls,
        mode: Mode = "variable",
        *,
        pid: int | None = None,
        mac: str | None = None,
        counter: int | None = None,
        store: object = None,
        clock: Clock | None = None,
    ) -> Generator: ...
    def new(self) -> ID: ...
    def batch(self, n: int) -> Array: ...
    def fill(self, buffer: Buffer) -> int: ...
    def close(self) -> None: ...
    @property
    def mode(self) -> Mode: ...
    @property
    def pid(self) -> int: ...
    @property
    def mac(self) -> str: ...
    def __iter__(self) -> Generator: ...
    def __next__(self) -> ID: ...
    def __enter__(self) -> Generator: ...
    def __exit__(self, *exc: object) -> None: ...
