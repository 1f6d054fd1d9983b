"""``sqlite:`` keeps its records in a file for the processes of one host. It uses the standard library."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from mintage import rules
from mintage._core import created_ns, kernel_random, system_ns
from mintage.errors import ConfigError, StoreError
from mintage.platform import files
from mintage.platform.machine import mounts, root_id
from mintage.process.forks import fork_lock
from mintage.protocol.records import KEYS, name_of
from mintage.protocol.url import quoted
from mintage.rules import NamespaceRecord, NodeRecord
from mintage.store import Description
from mintage.store.ledger import ConflictError, Ledger, ServerIdentity
from mintage.store.sql.statements import migrations, read_row, statements
from mintage.store.sqlite.marks import Mark, Marks, place_of, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mintage.protocol.records import R, Record
    from mintage.protocol.url import StoreUrl
    from mintage.rules import PoolRecord
    from mintage.store.sqlite.marks import Witness

    T = TypeVar("T")

SQL: Final = statements("sqlite")
DENIED: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})
"""The codes of SQLite for a file that it may not open or write."""
ATTEMPTS: Final = 3
"""The number of attempts to open a file that may be inaccessible for a moment only."""


class SqliteStore(Ledger):
    """A store in a file: ``sqlite:///ids.db`` in the working directory, ``sqlite:////var/lib/ids.db`` anywhere.

    The file is in WAL mode with ``synchronous=FULL``, so committed records survive a power failure. It must not be on a
    network file system, whose locks are unreliable. Option: ``timeout_ms``, the longest wait for other processes
    (2000).
    """

    promise: ClassVar[str] = "host"

    def __init__(self, url: StoreUrl) -> None:
        url.check_options("timeout_ms")
        if url.hosts or not url.path:
            raise ConfigError(
                "a store of kind sqlite needs a file: sqlite:///ids.db, or with an absolute path sqlite:////var/lib/ids.db",
                code="config.store",
            )
        if "\0" in url.path:
            raise ConfigError("the path of the store's file has a zero byte (%00)", code="config.store")
        if os.path.basename(url.path) == ":memory:" or url.path.startswith("file:"):
            raise ConfigError(
                f"the path {url.path!r} is special in SQLite, but would be a file of this name here: use memory: for a "
                "store without a file, or a plain path",
                code="config.store",
            )
        self.url = url
        self.path = files.absolute(url.path)
        self._timeout_ms = url.parse_int("timeout_ms", 2000, 1, 60_000)

    @contextmanager
    def _begin(self) -> Iterator[Records]:
        # SQLite keeps the state of its file locks in the process's memory. A forked child that inherits an open
        # connection assumes that it has the locks, and both may write at once. So each verb opens and closes one.
        path = os.path.realpath(self.path)
        _check_names(self.url, path)
        with fork_lock(), self._watched(path) as witness:
            try:
                without_log = _incarnations_without_log(path) if _has_log(path) else None
                # The connection's own block, in C, rolls back however it ends. A connection that goes away does not
                # before the collector runs.
                with closing(self._retried(self._connect)) as connection, connection:
                    self._retried(lambda: self._open(connection))
                    file = File(connection, path, witness, without_log)
                    records = Records(self.url, connection, file.incarnation)
                    records.skip(file.missing)
                    yield records
                    if records.has_written:
                        file.count(records.moved)
                    connection.execute("COMMIT")
                    file.check_place(records)
                file.remember()
                file.check_not_replaced()
            except sqlite3.Error as error:
                raise self._translate(error) from error

    @contextmanager
    def _look(self) -> Iterator[Records]:
        if _is_new(os.path.realpath(self.path)):
            yield NoRecords(self.url)
            return
        with self._begin() as records:
            yield records

    @contextmanager
    def _watched(self, path: str) -> Iterator[Witness]:
        """Yield the witness of the file.

        :raises StoreError: ``store.unavailable``: another process holds the file, or this one may open no more.
        """
        is_watched = False
        try:
            with watched(path, self._timeout_ms) as witness:
                is_watched = True
                yield witness
        except OSError as error:
            if is_watched:
                raise
            if isinstance(error, TimeoutError):
                raise self._busy() from None
            raise StoreError(f"{self.url}: {error}: try again", code="store.unavailable") from error

    def _retried(self, step: Callable[[], T]) -> T:
        """Return what a step in opening the file returns; retry where access is denied.

        SQLite creates two files beside the store's file with access for one user, and gives access to others in its
        next step. A process of another user that opens them in between is denied.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return step()
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in DENIED:
                    raise
        return step()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=self._timeout_ms / 1000, isolation_level=None)

    def _open(self, connection: sqlite3.Connection) -> None:
        """Begin a transaction on a new connection."""
        connection.rollback()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        _migrate(connection, self.path)
        connection.execute("BEGIN IMMEDIATE")

    def _busy(self) -> StoreError:
        return StoreError(
            f"{self.url}: another process held the file for longer than {self._timeout_ms} ms: try again",
            code="store.unavailable",
        )

    def _translate(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return self._busy()
        if code in {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_SCHEMA}:
            return ConflictError()
        if code in DENIED and (closed := _closed_beside(self.path)):
            return StoreError(
                f"{self.url}: {error}: {closed} is of another user, who creates it now or denies access: try again",
                code="store.unavailable",
            )
        match code:
            case sqlite3.SQLITE_ERROR:
                hint = "its tables are not those that this mintage makes: use another file"
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                hint = f"{self.path} is no SQLite database or a damaged one: use another file, or restore a backup"
            case _:
                hint = f"check that {self.path} is a writable database on a local disk with free space"
        refused = StoreError(f"{self.url}: {error}: {hint}", code="store.refused")
        # SQLite has one code for a file that is not writable and for a lack of file descriptors.
        refused.is_lasting = code == sqlite3.SQLITE_NOTADB or (code in DENIED and not _may_write(self.path))
        return refused

    def describe(self) -> Description:
        """Return the description of the store."""

        def verb(t: Any) -> Description:
            server = t.server()
            return Description(
                str(self.url),
                self.promise,
                f"SQLite {sqlite3.sqlite_version}",
                server.identity,
                server.now_ms,
                is_new=isinstance(t, NoRecords),
            )

        return self._read(verb)

    def close(self) -> None:
        """Do nothing, as the file is open during verbs only."""

    def _namespace(self, t: Any, name: str, *, is_implied: bool = False) -> NamespaceRecord:
        return self._admitted(t, super()._namespace(t, name, is_implied=is_implied))

    def _admitted(self, records: Records, namespace: NamespaceRecord) -> NamespaceRecord:
        """Return the namespace; a namespace that is not in the file skips the integers that the file may have lost."""
        return namespace if records.has(namespace) else _skipped(namespace, records.incarnation.lost)

    def _new_pool(self, name: str, layout: str, span_ms: int, server: ServerIdentity) -> PoolRecord:
        # The file may have lost this pool, so its windows may be in use.
        began_ms = server.began_ms if isinstance(server, FileServer) else None
        if began_ms is None:
            return super()._new_pool(name, layout, span_ms, server)
        # After the quarantine, too, nobody knows which of its numbers were used.
        end_ms = rules.end_of_quarantine(began_ms, max(span_ms, rules.SPAN_MS), self.clock_limit_ms)
        return rules.create_pool(name, layout, span_ms, server.identity, quarantine_until_ms=end_ms)


@dataclass(frozen=True, slots=True)
class FileServer(ServerIdentity):
    """The file in its role as the server of a transaction."""

    began_ms: int | None = None
    """The start of its incarnation in milliseconds; ``None`` if the file lacks nothing since."""


class Records:
    """The records in a transaction."""

    def __init__(self, url: StoreUrl, connection: sqlite3.Connection, incarnation: Incarnation) -> None:
        self._url = url
        self._connection = connection
        self.incarnation = incarnation
        self.has_written = False
        self.moved = 0
        """The number of integers by which this verb moved namespaces forward."""
        self._namespaces: dict[str, NamespaceRecord] = {}

    def _rows(self, statement: str, /, **values: object) -> list[Any]:
        return self._connection.execute(SQL[statement], values).fetchall()

    def server(self) -> ServerIdentity:
        """Return the server of this transaction and its clock."""
        return FileServer(self.incarnation.name, system_ns() // 1_000_000, self.incarnation.began_ms)

    def _read(self, kind: type[R], rows: list[Any]) -> list[R]:
        return [read_row(self._url, kind, row) for row in rows]

    def get(self, kind: type[R], *key: str | int) -> R | None:
        """Return the record with this key, locked; ``None`` if there is none."""
        found = self._read(kind, self._rows(f"get_{name_of(kind)}", **dict(zip(KEYS[kind], key, strict=True))))
        if found and isinstance(found[0], NamespaceRecord):
            self._namespaces[found[0].name] = found[0]
        return found[0] if found else None

    get_unlocked = get

    def has(self, namespace: NamespaceRecord) -> bool:
        """Return True if the file had the namespace when this transaction read it."""
        return namespace.name in self._namespaces

    def skip(self, count: int) -> None:
        """Move all namespaces forward by ``count`` integers, which the file may have lost."""
        for namespace in self.page(NamespaceRecord, "") if count else ():
            self._rows("put_namespace", **asdict(_skipped(namespace, count)))

    def put(self, record: Record) -> None:
        """Write a record, new or not."""
        self.has_written = True
        if isinstance(record, NamespaceRecord):
            known = self._namespaces.get(record.name)
            if known is None:
                if not record.floor:
                    record = _skipped(record, self.incarnation.lost)
                self.moved += record.largest + record.floor // record.stride
            else:
                self.moved += max(0, record.high_water - known.high_water) // record.stride
        self._rows(f"put_{name_of(type(record))}", **asdict(record))

    def page(self, kind: type[R], *after: str | int, limit: int = rules.MAX_COUNT) -> Sequence[R]:
        """Return the first records of a kind whose keys sort after a key, at most ``limit``."""
        values = dict(zip(KEYS[kind], after, strict=True))
        return self._read(kind, self._rows(f"page_{name_of(kind)}", limit=limit, **values))

    def count_namespaces(self) -> int:
        """Return the number of namespaces."""
        rows = self._rows("count_namespaces")
        return int(rows[0][0]) if rows else 0

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        """Return the record in ``nodes`` whose window ended first, locked."""
        found = self._read(NodeRecord, self._rows("oldest", pool=pool, first=nodes.start, stop=nodes.stop))
        return found[0] if found else None

    def unused(self, pool: str, nodes: range) -> int | None:
        """Return the lowest of ``nodes`` without a record; ``None`` if all have one."""
        node: int | None = self._rows("unused", pool=pool, first=nodes.start, stop=nodes.stop)[0][0]
        return node


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


class UnmadeStore(SqliteStore):
    """A store in a directory that is not there yet: verbs that read find no records."""

    @contextmanager
    def _look(self) -> Iterator[Records]:
        yield NoRecords(self.url)


class NoRecords(Records):
    """The records of a file that is not there yet."""

    def __init__(self, url: StoreUrl) -> None:
        self._url = url
        self.incarnation = Incarnation("none", 0)

    def _rows(self, statement: str, /, **values: object) -> list[Any]:  # noqa: ARG002
        return []


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

    def check_place(self, records: Records) -> None:
        """Check that the file has the committed records, before a caller uses them.

        :raises ConflictError: a copy replaced the file, or was written over it, during the verb.
        """
        if place_of(self._path) != self._place:
            raise ConflictError
        if _written(self._path) == self._written or self._mark_without_log is None:
            return
        # Another process may have moved the log into the file; or an older copy was written over it during the verb.
        incarnations = _incarnations_without_log(self._path)
        for _ in range(ATTEMPTS):
            if incarnations:
                break
            time.sleep(0.01)  # A copy is in progress.
            incarnations = _incarnations_without_log(self._path)
        if incarnations is None or not _covers(incarnations, self._mark_without_log):
            self._connection.execute("BEGIN IMMEDIATE")
            self._begin_incarnation([], _moved(incarnations))
            records.skip(self.missing)
            self._connection.execute("COMMIT")
            raise ConflictError

    def remember(self) -> None:
        """Keep the marks of the last write; closing the connection first moves the log into the file."""
        with_log = Mark(self.incarnation.name, self.incarnation.serial, self.incarnation.moved)
        without_log = self._mark_without_log if _has_log(self._path) else with_log
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


def _skipped(namespace: NamespaceRecord, count: int) -> NamespaceRecord:
    """Return the namespace moved forward by ``count`` integers."""
    if namespace.retired or not count:
        return namespace
    value = namespace.high_water + count * namespace.stride + 1
    return rules.raise_floor(namespace, min(value, rules.MAX_INTEGER))


def _covers(incarnations: list[Incarnation], mark: Mark) -> bool:
    """Return True if a file with these incarnations has all writes that the mark counts."""
    return any(
        incarnation.name == mark.incarnation and incarnation.serial >= mark.serial for incarnation in incarnations
    )


def _is_new(path: str) -> bool:
    """Return True if the file is missing or has no tables, and this user may make it."""
    try:
        with open(path, "rb") as file:
            version = file.read(64)[60:]  # where SQLite keeps the number of the schema
    except FileNotFoundError:
        return _may_write(path)
    except OSError:
        return False  # The verb reports the error.
    return not any(version) and not _has_log(path)


def _has_log(path: str) -> bool:
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


def _incarnations_without_log(path: str) -> list[Incarnation] | None:
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


def _may_write(path: str) -> bool:
    """Return True if this user may write or create a file."""
    # Add the separator, as a file in the place of the directory may be writable too.
    return os.access(os.path.join(os.path.dirname(path), ""), os.W_OK) and (
        not os.path.exists(path) or os.access(path, os.W_OK)
    )


def _check_pages(connection: sqlite3.Connection, path: str) -> None:
    """Check that the pages of the file and of its log fit together.

    :raises StoreError: ``store.refused``: they do not, as the file was replaced.
    """
    tables = [f"mintage_{name_of(kind)}" for kind in KEYS]
    if any(connection.execute(f"PRAGMA quick_check({table})").fetchall() != [("ok",)] for table in tables):
        raise StoreError(
            f"{path} was replaced without its log {path}-wal, and the two do not fit: stop the processes that use it, "
            f"remove {path}-wal and {path}-shm, and restore the copy again",
            code="store.refused",
        )


def _check_names(url: StoreUrl, path: str) -> None:
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


def _closed_beside(path: str) -> str | None:
    """Return a file that SQLite created beside the store's and this user may not write; ``None`` if there is none."""
    beside = [path + ending for ending in ("-wal", "-shm")]
    return next((file for file in beside if os.path.exists(file) and not os.access(file, os.R_OK | os.W_OK)), None)


def _is_mounted(path: str) -> bool:
    """Return True if the kernel lists the file itself as a mount point."""
    escaped = b"".join(rb"\%03o" % each if each in b"\\ \t\n" else b"%c" % each for each in os.fsencode(path))
    return b" %b " % escaped in mounts()


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    known = migrations("sqlite")
    connection.create_function("mintage_place", 0, lambda: place_of(path))
    newest = known[-1][0]
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > newest:
        raise StoreError(
            f"{path} has schema version {version}; this mintage knows {newest}: upgrade mintage", code="store.schema"
        )
    if version == newest:
        return
    # Other processes may do the same; the first one wins.
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, steps in known:
        if number > version:
            for step in steps:
                connection.execute(step)
            connection.execute(f"PRAGMA user_version = {number}")
    connection.execute("COMMIT")
