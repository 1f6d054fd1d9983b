"""A journal: records that all workers of a service append to, and that each of them can read.

With several workers it is a file in the directory that they share, which ends with the service. With one worker it is
in memory. Its size is bounded: the oldest records make room for new ones. No worker waits for another.
"""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

from mintage.platform.files import lock

DIRECTORY: Final = "_MINTAGE_WORKERS_DIR"
"""The environment variable with the directory that the workers share, which the process that starts them sets."""
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
    """

    def __init__(self, name: str) -> None:
        directory = os.environ.get(DIRECTORY)
        self._file = Path(directory, f"{name}.jsonl") if directory else None
        self._lines = _MEMORY.setdefault(name, deque(maxlen=MOST_RECORDS))
        self._read: tuple[bytes, list[dict[str, Any]]] = (b"", [])

    def append(self, record: dict[str, Any]) -> bool:
        """Add a record; return False if it is too long, or cannot be written now."""
        line = line_of(record)
        if len(line) > LONGEST_BYTES:
            return False
        if self._file is None:
            with _LOCK:
                self._lines.append(line)
            return True
        try:
            # One write at the end of the file is whole, whatever other workers write.
            with self._file.open("ab", buffering=0) as file:
                is_whole = file.write(line) == len(line)
                found = os.fstat(file.fileno())
                if found.st_size >= _FILE_BYTES:
                    # Another worker may hold the lock, or have replaced the file: a later record finds it full.
                    with suppress(OSError):
                        lock(file.fileno())
                        if os.path.samestat(self._file.stat(), found):
                            self._file.replace(self._file.with_suffix(".before"))
        except OSError:
            return False
        # A worker that was stopped meanwhile may have written to a file that was removed.
        return is_whole and found.st_nlink > 0

    def read(self) -> list[dict[str, Any]]:
        """Return all records, the oldest first. Do not change them."""
        content, found = self._content(), self._read
        if content != found[0]:
            self._read = found = content, [each for line in content.split(b"\n") for each in _parsed(line)]
        return found[1]

    def _content(self) -> bytes:
        if self._file is None:
            with _LOCK:
                return b"".join(self._lines)
        newest, before = _content(self._file), _content(self._file.with_suffix(".before"))
        # Between both reads, the first file may have become the second.
        return before if before.startswith(newest) else before + newest


def line_of(record: dict[str, Any]) -> bytes:
    """Return the line of a record. It begins with the end of a line: the one before may be half written."""
    text = json.dumps(record, separators=(",", ":"), default=str, ensure_ascii=False)
    return b"\n" + text.encode(errors="replace")


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _parsed(line: bytes) -> list[dict[str, Any]]:
    """Return the record of a line; none of a line that is half written, as on a full disk."""
    try:
        return [json.loads(line)]
    except ValueError:
        return []
