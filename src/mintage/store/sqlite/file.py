"""The file of a store of SQLite: its schema, and the incarnations that tell an older copy from it."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Final

from mintage import rules
from mintage._core import created_ns, kernel_random, system_ns
from mintage.errors import StoreError
from mintage.platform.machine import mounts, root_id
from mintage.protocol.records import KEYS, name_of
from mintage.protocol.url import StoreUrl, quoted
from mintage.store.ledger import ConflictError
from mintage.store.sql.statements import migrations, statements
from mintage.store.sqlite.marks import Mark, Marks, Witness, place_of

SQL: Final = statements("sqlite")
NEWEST: Final = migrations("sqlite")[-1][0]
"""The newest version of the schema."""
READABLE: Final = range(2, NEWEST)
"""The older versions whose files verbs that read leave as they are: those with incarnations."""
ATTEMPTS: Final = 3
"""The number of attempts to open a file that may be inaccessible for a moment only."""


@dataclass(frozen=True, slots=True)
class Incarnation:
    """A part of a file's history, from its creation or replacement to its next replacement."""

    name: str
    serial: int
    """The number of writes to the file in this incarnation and those before."""
    moved: int = 0
    """The integers by which namespaces moved in them. No namespace lost more than the difference of two such
    numbers."""
    lost: int = 0
    """The number of integers that a namespace which is not in the file may have lost."""
    began_ms: int | None = None
    """The start in milliseconds since the Unix epoch; ``None`` if the file lacks nothing since."""
    place: str | None = None
    """Device and inode of the file."""
    created_ns: int | None = None
    """The creation time of that inode; ``None`` if the file system does not record it."""


class File:
    """The store's file in a transaction, which checks that the file was not replaced by an older copy.

    Its incarnation is the id of the server. A new incarnation begins if the file is at another inode, as a copy is, or
    if the file lacks writes that a mark remembers, as it does when an older copy was written over it.

    :raises ConflictError: the file is gone.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: str, witness: Witness, without_log: list[Incarnation] | None
    ) -> None:
        self._connection = connection
        self._path = path
        self._witness = witness
        place, created = place_of(path), created_ns(path)
        if place is None:
            raise ConflictError
        witness.copy_mode()
        self._place, self._created_ns = place, created
        self._written = _written(path)
        incarnations = _incarnations(connection)
        self.incarnation = incarnations[-1] if incarnations else Incarnation("", 0)
        self._origin = incarnations[0].name if incarnations else ""
        is_moved = not self._is_in_place()
        # A new file replaces an older one only if a process that used that one still runs: a user who removes a file
        # to start again stops these processes first. Any other file replaces the file that was at its place, not a file
        # elsewhere with the same name.
        is_new = not (self.incarnation.serial or self.incarnation.place)
        takes_over = witness.is_in_use if is_new else is_moved
        known = [marks for marks in witness.read_marks(place) if takes_over or (not is_new and self._is_of_file(marks))]
        lost = [marks.with_log for marks in known if not _covers(incarnations, marks.with_log)]
        is_mixed = without_log is not None and any(
            marks.without_log is not None and not _covers(without_log, marks.without_log) for marks in known
        )
        if is_mixed:
            _check_pages(connection, path)
        self._mark_without_log = (
            _mark(without_log) if without_log is not None else _mark(incarnations) if self.incarnation.place else None
        )
        self.missing = 0
        """The largest number of integers that the file lost of any namespace."""
        if lost or is_mixed or is_moved:
            self._begin_incarnation(lost, _moved(without_log) if is_mixed else self.incarnation.moved)
        elif (self.incarnation.place, self.incarnation.created_ns) != (place, created or self.incarnation.created_ns):
            self._put(replace(self.incarnation, place=place, created_ns=created))  # The file is new or was migrated.

    def _is_of_file(self, marks: Marks) -> bool:
        """Return True if the marks are of this file or of a copy that was at its path.

        A volume that is restored from its snapshot may be at the place of the snapshot again, while the marks are of
        another place: the system gives a volume a device number each time it mounts it.
        """
        return marks.place == self._place or (marks.origin, marks.root) == (self._origin, root_id())

    def _is_in_place(self) -> bool:
        place, created = self.incarnation.place, self.incarnation.created_ns
        is_same_inode = created is None or self._created_ns is None or created == self._created_ns
        return bool(self.incarnation.name) and (place is None or (place == self._place and is_same_inode))

    def _begin_incarnation(self, lost: list[Mark], moved: int) -> None:
        """Begin an incarnation that also follows the lost ones, so that other processes find their marks recorded.

        ``moved`` is the number of integers by which namespaces had moved in the file's records.
        """
        own = self.incarnation
        incarnations = {each.name: each for each in _incarnations(self._connection)}
        for mark in lost:
            known = incarnations.get(mark.incarnation, Incarnation(mark.incarnation, 0))
            incarnations[mark.incarnation] = replace(
                known, serial=max(mark.serial, known.serial), moved=max(mark.moved, known.moved)
            )
            self._put(incarnations[mark.incarnation])
        serial = max((each.serial for each in incarnations.values()), default=0) + 1
        most = max((each.moved for each in incarnations.values()), default=0)
        self.missing = max(0, most - moved)
        self._put(
            Incarnation(
                name=kernel_random(16).hex(),
                serial=serial,
                moved=min(max(most, own.moved + self.missing), rules.MAX_INTEGER),
                lost=min(own.lost + self.missing, rules.MAX_INTEGER),
                began_ms=system_ns() // 1_000_000,
                place=self._place,
                created_ns=self._created_ns,
            )
        )

    def _put(self, incarnation: Incarnation) -> None:
        self.incarnation = incarnation
        self._connection.execute(SQL["put_incarnation"], asdict(incarnation))

    def count(self, moved: int) -> None:
        """Record that a verb wrote, and the integers by which it moved namespaces."""
        moved = min(self.incarnation.moved + moved, rules.MAX_INTEGER)
        self._put(replace(self.incarnation, serial=self.incarnation.serial + 1, moved=moved))

    def check_place(self, skip: Callable[[int], None]) -> None:
        """Check that the file has the committed records, before a caller uses them.

        :param skip: moves all namespaces forward, by as many integers as the file has lost.
        :raises ConflictError: a copy replaced the file, or was written over it, during the verb.
        """
        if place_of(self._path) != self._place:
            raise ConflictError
        if _written(self._path) == self._written or self._mark_without_log is None:
            return
        # Another process may have moved the log into the file; or an older copy was written over it during the verb.
        incarnations = incarnations_without_log(self._path)
        for _ in range(ATTEMPTS):
            if incarnations:
                break
            time.sleep(0.01)  # A copy is in progress.
            incarnations = incarnations_without_log(self._path)
        if incarnations is None or not _covers(incarnations, self._mark_without_log):
            self._connection.execute("BEGIN IMMEDIATE")
            self._begin_incarnation([], _moved(incarnations))
            skip(self.missing)
            self._connection.execute("COMMIT")
            raise ConflictError

    def remember(self) -> None:
        """Keep the marks of the last write; closing the connection first moves the log into the file."""
        with_log = Mark(self.incarnation.name, self.incarnation.serial, self.incarnation.moved)
        without_log = self._mark_without_log if has_log(self._path) else with_log
        origin = self._origin or self.incarnation.name
        self._witness.write_marks(Marks(with_log, without_log, self._place, origin, root_id()))

    def check_not_replaced(self) -> None:
        """Check that the file and its guard are at their paths once the marks are kept.

        Without shared memory, a process that used a copy before it could find the marks may have been given the same
        integers, as the lock of a replaced guard does not keep it out.

        :raises ConflictError: a copy replaced either file before the marks were kept.
        """
        is_same_inode = place_of(self._path) == self._place and created_ns(self._path) == self._created_ns
        if not (is_same_inode and self._witness.has_guard):
            raise ConflictError


def _incarnations(connection: sqlite3.Connection) -> list[Incarnation]:
    return [Incarnation(*row) for row in connection.execute(SQL["incarnations"])]


def _mark(incarnations: list[Incarnation]) -> Mark | None:
    return Mark(incarnations[-1].name, incarnations[-1].serial, incarnations[-1].moved) if incarnations else None


def _moved(incarnations: list[Incarnation] | None) -> int:
    return incarnations[-1].moved if incarnations else 0


def _covers(incarnations: list[Incarnation], mark: Mark) -> bool:
    """Return True if a file with these incarnations has all writes that the mark counts."""
    return any(
        incarnation.name == mark.incarnation and incarnation.serial >= mark.serial for incarnation in incarnations
    )


def has_log(path: str) -> bool:
    """Return True if a log with writes is beside the file."""
    try:
        return os.stat(f"{path}-wal").st_size > 0
    except OSError:
        return False


def _written(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def incarnations_without_log(path: str) -> list[Incarnation] | None:
    """Return the incarnations in the file without its log; ``None`` if SQLite cannot read the file.

    SQLite applies a log to any file beside it, so the two together may hide that the file is an older copy.
    """
    uri = f"file:{quoted(path)}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return _incarnations(connection)
    except sqlite3.Error as error:
        # The file has no tables yet, or those of version 1.
        return [] if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR else None


def _check_pages(connection: sqlite3.Connection, path: str) -> None:
    """Check that the pages of the file and of its log fit together.

    :raises StoreError: ``store.refused``: they do not, as the file was replaced.
    """
    made = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}  # older ones lack some
    tables = made & {f"mintage_{name_of(kind)}" for kind in KEYS}
    if any(connection.execute(f"PRAGMA quick_check({table})").fetchall() != [("ok",)] for table in tables):
        raise StoreError(
            f"{path} was replaced without its log {path}-wal, and the two do not fit: stop the processes that use it, "
            f"remove {path}-wal and {path}-shm, and restore the copy again",
            code="store.refused",
        )


def check_names(url: StoreUrl, path: str) -> None:
    """Check that the file has one name. SQLite names its log after the name by which a process opened the file.

    :raises StoreError: ``store.refused``: a process may open the file by another name, and miss the writes in the log.
    """
    try:
        found = os.stat(path)
    except OSError:
        return  # SQLite creates the file, or reports the error.
    if not stat.S_ISREG(found.st_mode):
        return
    if found.st_nlink > 1:
        raise StoreError(
            f"{url}: {path} has {found.st_nlink} names (hard links), and a process that opens it by one name misses "
            "writes by another: leave it one name",
            code="store.refused",
        )
    if _is_mounted(path):
        raise StoreError(
            f"{url}: {path} is mounted as a single file, and a process that opens it elsewhere misses writes here: "
            "mount the directory that it is in",
            code="store.refused",
        )


def _is_mounted(path: str) -> bool:
    """Return True if the kernel lists the file itself as a mount point."""
    escaped = b"".join(rb"\%03o" % each if each in b"\\ \t\n" else b"%c" % each for each in os.fsencode(path))
    return b" %b " % escaped in mounts()


def schema_version(connection: sqlite3.Connection, path: str) -> int:
    """Return the version of the file's schema; 0 if it has none yet.

    :raises StoreError: ``store.schema``: a newer mintage made it.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > NEWEST:
        raise StoreError(
            f"{path} has schema version {version}; this mintage knows {NEWEST}: upgrade mintage", code="store.schema"
        )
    return int(version)


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the schema of the file up to date.

    :raises StoreError: ``store.schema``: a newer mintage made it.
    """
    if schema_version(connection, path) == NEWEST:
        return
    connection.create_function("mintage_place", 0, lambda: place_of(path))
    # Other processes may do the same; the first one wins.
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, steps in migrations("sqlite"):
        if number > version:
            for step in steps:
                connection.execute(step)
            connection.execute(f"PRAGMA user_version = {number}")
    connection.execute("COMMIT")
