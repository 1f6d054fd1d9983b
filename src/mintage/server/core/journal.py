"""A journal: records that all workers of a service append to, and that each of them can read.

With several workers it is a file in the directory that their metrics use, which ends with the service. With one worker
it is in memory. Its size is bounded: the oldest records make room for new ones.
"""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from mintage.platform.files import lock_when_free

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_RECORDS: Final = 1_000
"""The number of records that a journal keeps at least, unless they are long."""
LONGEST_BYTES: Final = 2_000
"""The longest record in JSON; a longer one is not kept."""
_MEMORY: Final[dict[str, deque[bytes]]] = {}
"""The lines of each journal of a service with one worker, by name."""
_LOCK: Final = Lock()
_FILE_BYTES: Final = MOST_RECORDS * 300
"""The size from which on a file is full. A journal has two files: one that grows, and the full one before it."""


class Journal:
    """A bounded list of records, JSON objects, that all workers share.

    Its methods may be called from any thread. Reading takes about a microsecond a kilobyte the first time after a
    change, and less after that.

    :param name: letters and ``-``; all journals of a service with this name are one.
    :param most: the number of records that it keeps in memory, with one worker.
    """

    def __init__(self, name: str, most: int = MOST_RECORDS) -> None:
        directory = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        self._file = Path(directory, f"{name}.jsonl") if directory else None
        self._lines = _MEMORY.setdefault(name, deque(maxlen=most))
        self._read: tuple[object, list[dict[str, Any]]] = (None, [])

    def append(self, record: dict[str, Any]) -> bool:
        """Add a record; return False if it is too long, or cannot be written now."""
        line = json.dumps(record, separators=(",", ":"), default=str).encode() + b"\n"
        if len(line) > LONGEST_BYTES:
            return False
        if self._file is None:
            with _LOCK:
                self._lines.append(line)
            return True
        try:
            with _LOCK, self._locked(self._file.with_suffix(".lock")):
                with self._file.open("ab") as file:
                    file.write(line)
                    is_full = file.tell() >= _FILE_BYTES
                if is_full:
                    self._file.replace(self._before)
        except OSError:
            return False
        return True

    def read(self) -> list[dict[str, Any]]:
        """Return all records, the oldest first. Do not change them."""
        with _LOCK:
            if (mark := self._mark()) != self._read[0]:
                self._read = (mark, [each for line in self._all_lines() for each in _parsed(line)])
            return self._read[1]

    @property
    def _before(self) -> Path:
        assert self._file is not None  # noqa: S101 - only journals with files have one before
        return self._file.with_suffix(".before")

    def _mark(self) -> object:
        """Return a value that changes with the records."""
        if self._file is None:
            return list(self._lines)
        try:
            found = self._file.stat()
        except OSError:
            return object()
        return found.st_ino, found.st_size

    def _all_lines(self) -> list[bytes]:
        if self._file is None:
            return list(self._lines)
        lines: list[bytes] = []
        for file in (self._before, self._file):
            try:
                lines += file.read_bytes().splitlines(keepends=True)
            except OSError:
                continue
        return lines

    @contextmanager
    def _locked(self, file: Path) -> Iterator[None]:
        """Hold the lock of all processes, so that only one of them replaces a full file."""
        with file.open("ab") as held:
            lock_when_free(held.fileno())
            yield


def _parsed(line: bytes) -> list[dict[str, Any]]:
    """Return the record of a line; none of a line that is half written, as on a full disk."""
    try:
        return [json.loads(line)]
    except ValueError:
        return []
