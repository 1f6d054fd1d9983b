"""Exact duplicates among any number of keys, in bounded memory.

The number of repeated rows is exact, but the lists of examples are limited:

>>> from mintage.tables.duplicates import MAX_EXAMPLES, DuplicateFinder
>>> with DuplicateFinder(width=1, limit=1000) as finder:
...     finder.add(b"a" * 500, rows=range(500))
...     total, [duplicate] = finder.find()
>>> total, duplicate.times, len(duplicate.rows) == MAX_EXAMPLES
(499, 500, True)
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from struct import iter_unpack
from typing import Any, BinaryIO, Final, NamedTuple, Self

__all__ = ["MAX_EXAMPLES", "Duplicate", "DuplicateFinder"]

MAX_EXAMPLES: Final = 10
"""The most keys that :meth:`DuplicateFinder.find` lists, and the most rows of each."""
BASE_BYTES: Final = 64 << 20
"""Memory of the interpreter and the package, with one batch of rows."""
HASH_BITS: Final = 7
"""Bits of a hash that choose one of the files."""
_READ_BYTES: Final = 1 << 19


class Duplicate(NamedTuple):
    """A key that occurs more than once.

    >>> with DuplicateFinder(width=2, limit=1000) as finder:
    ...     finder.add(b"aabbaa", rows=[1, 2, 3])
    ...     total, [duplicate] = finder.find()
    >>> f"{duplicate.key.decode()} is in {duplicate.times} rows, such as {duplicate.rows}"
    'aa is in 2 rows, such as [1, 3]'
    """

    row: int
    """The row where the key occurs for the second time."""
    key: bytes
    """The key itself."""
    rows: list[int]
    """The first rows with this key, at most ten."""
    times: int
    """The number of rows with this key."""


class DuplicateFinder:
    """A collector of keys that finds all that occur more than once.

    It writes each key, with its row, to one of several temporary files, which some bits of the key's hash choose. The
    keys of one file usually fit into memory. If they do not, that file is divided in the same way by the next bits. The
    files have no names, so they disappear with the process, however it ends.

    >>> with DuplicateFinder(width=2, limit=1000) as finder:
    ...     finder.add(b"aabbaa", rows=[1, 2, 3])
    ...     finder.find()
    (1, [Duplicate(row=3, key=b'aa', rows=[1, 3], times=2)])

    :param width: bytes of a key.
    :param limit: the number of different keys to hold in memory; see :meth:`limit`.
    :param directory: the directory of the files, or ``None`` for the system's usual one.
    """

    def __init__(self, width: int, limit: int, directory: str | None = None, *, depth: int = 0) -> None:
        self._width, self._limit, self._directory, self._depth = width, limit, directory, depth
        self._files: list[Any] = []
        self._stack = ExitStack()
        self.rows = 0
        """The number of keys so far."""

    @staticmethod
    def limit(memory_bytes: int, width: int) -> int:
        """Return how many keys of ``width`` bytes a process of ``memory_bytes`` can hold.

        A key is a bytes object in a growing set. The rest of the process takes 64 MB of ``memory_bytes``.
        """
        return max(1, (memory_bytes - BASE_BYTES) // (80 + (34 + width + 15) // 16 * 16 + 8))

    @property
    def row_bytes(self) -> int:
        """Bytes that a row takes on disk: its key and 8 more."""
        return self._width + 8

    def add(self, keys: bytes, rows: Iterable[int]) -> None:
        """Add keys.

        :param keys: the keys, one after the other.
        :param rows: the row of each key, 0 to 2⁶⁴ - 1; they rise from call to call.
        """
        numbers = array("Q", rows)
        if sys.byteorder == "little":
            numbers.byteswap()
        places, size = numbers.tobytes(), self.row_bytes
        # Compare one byte of all rows at a time, which is faster than row by row.
        records = bytearray(len(numbers) * size)
        for at in range(self._width):
            records[at::size] = keys[at :: self._width]
        for at in range(8):
            records[self._width + at :: size] = places[at::8]
        self._divide(records)

    def _divide(self, records: bytes | bytearray) -> None:
        if not self._files:
            from tempfile import TemporaryFile

            for _ in range(1 << HASH_BITS):
                self._files.append(self._stack.enter_context(TemporaryFile(dir=self._directory)))  # noqa: SIM115
        shift, mask = self._depth * HASH_BITS, (1 << HASH_BITS) - 1
        parts: list[list[bytes]] = [[] for _ in self._files]
        # Python's hash of bytes has a new secret in each process, so no input can aim at one file.
        for (key,), (record,) in zip(
            iter_unpack(f"{self._width}s8x", records), iter_unpack(f"{self.row_bytes}s", records), strict=True
        ):
            parts[(hash(key) >> shift) & mask].append(record)
        for file, part in zip(self._files, parts, strict=True):
            file.write(b"".join(part))
        self.rows += len(records) // self.row_bytes

    def find(self, report: Callable[[int], None] | None = None) -> tuple[int, list[Duplicate]]:
        """Return the number of rows whose key an earlier row has, and the first repeated keys.

        The collector is closed afterwards.

        :param report: a function that is called with the number of keys that are compared so far.
        """
        total, first, done = 0, list[Duplicate](), 0
        with self:
            for file in self._files:
                count, some = self._find_in(file)
                done += file.tell() // self.row_bytes
                file.close()
                total += count
                first = sorted((*first, *some))[:MAX_EXAMPLES]
                if report:
                    report(done)
        return total, first

    def _find_in(self, file: BinaryIO) -> tuple[int, list[Duplicate]]:
        seen: set[bytes] = set()
        rows = 0
        for records in self._read(file):
            seen.update(chain.from_iterable(iter_unpack(f"{self._width}s8x", records)))
            rows += len(records) // self.row_bytes
            # After the last bits of a hash, all keys of a file have the same hash: it cannot be divided again.
            if len(seen) > self._limit and (self._depth + 1) * HASH_BITS < 64:
                seen.clear()
                return self._find_divided(file)
        return (rows - len(seen), self._first(file, seen)) if len(seen) < rows else (0, [])

    def _find_divided(self, file: BinaryIO) -> tuple[int, list[Duplicate]]:
        with DuplicateFinder(self._width, self._limit, self._directory, depth=self._depth + 1) as parts:
            for records in self._read(file):
                parts._divide(records)
            return parts.find()

    def _first(self, file: BinaryIO, seen: set[bytes]) -> list[Duplicate]:
        """Return the first repeated keys of a file whose different keys are ``seen``."""
        again: dict[bytes, int] = {}
        for key, row in self._pairs(file):
            if key in seen:
                seen.remove(key)
            elif key not in again:
                again[key] = row
                if len(again) == MAX_EXAMPLES:
                    break
        rows: dict[bytes, list[int]] = {key: [] for key in again}
        counts = Counter[bytes]()
        for key, row in self._pairs(file):
            if key in again:
                counts[key] += 1
                if len(rows[key]) < MAX_EXAMPLES:
                    rows[key].append(row)
        return [Duplicate(row, key, rows[key], counts[key]) for key, row in again.items()]

    def _pairs(self, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
        for records in self._read(file):
            yield from iter_unpack(f">{self._width}sQ", records)

    def _read(self, file: BinaryIO) -> Iterator[bytes]:
        file.seek(0)
        size = _READ_BYTES // self.row_bytes * self.row_bytes
        while records := file.read(size):
            yield records

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
