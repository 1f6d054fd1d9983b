"""``sqlite:`` keeps its records in a file for the processes of one host. It uses the standard library."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from mintage import rules
from mintage._core import system_ns
from mintage.errors import ConfigError, StoreError
from mintage.platform import files
from mintage.process.forks import fork_lock
from mintage.protocol.options import read_options, timeout
from mintage.protocol.records import R, Record, name_of
from mintage.rules import NamespaceRecord
from mintage.store.ledger import ConflictError, Ledger, ServerIdentity
from mintage.store.sql.statements import OLDER, RowRecords, statements
from mintage.store.sqlite.file import (
    ATTEMPTS,
    READABLE,
    File,
    Incarnation,
    check_names,
    has_log,
    incarnations_without_log,
    migrate,
    schema_version,
)
from mintage.store.sqlite.marks import Witness, watched

if TYPE_CHECKING:
    from mintage.protocol.url import StoreUrl
    from mintage.store import Description

    T = TypeVar("T")

DENIED: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})
"""The codes of SQLite for a file that it may not open or write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteOptions:
    """The options of a store in a file."""

    timeout_ms: int = timeout("The longest wait for other processes, in milliseconds")


class SqliteStore(Ledger):
    """A store in a file: ``sqlite:///ids.db`` in the working directory, ``sqlite:////var/lib/ids.db`` anywhere.

    The file is in WAL mode with ``synchronous=FULL``, so committed records survive a power failure. It must not be on a
    network file system, whose locks are unreliable. Options: :class:`SqliteOptions`.
    """

    promise: ClassVar[str] = "host"

    def __init__(self, url: StoreUrl) -> None:
        options = read_options(url, SqliteOptions)
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
        self._timeout_ms = options.timeout_ms

    def _begin(self) -> AbstractContextManager[Records]:
        return self._records(writes=True)

    @contextmanager
    def _records(self, *, writes: bool) -> Iterator[Records]:
        # SQLite keeps the state of its file locks in the process's memory. A forked child that inherits an open
        # connection assumes that it has the locks, and both may write at once. So each verb opens and closes one.
        path = os.path.realpath(self.path)
        check_names(self.url, path)
        with fork_lock(), self._watched(path) as witness:
            try:
                without_log = incarnations_without_log(path) if has_log(path) else None
                # The connection's own block, in C, rolls back however it ends. A connection that goes away does not
                # before the collector runs.
                with closing(self._retried(self._connect)) as connection, connection:
                    version = self._retried(lambda: self._open(connection, writes=writes))
                    file = File(connection, path, witness, without_log)
                    records = Records(self.url, connection, file.incarnation, version)
                    records.skip(file.missing)
                    yield records
                    if records.has_written:
                        file.count(records.moved)
                    connection.execute("COMMIT")
                    file.check_place(records.skip)
                file.remember()
                file.check_not_replaced()
            except sqlite3.Error as error:
                raise self._translate(error) from error

    @contextmanager
    def _look(self) -> Iterator[Records]:
        if _is_new(os.path.realpath(self.path)):
            yield NoRecords(self.url)
            return
        with self._records(writes=False) as records:
            yield records

    @contextmanager
    def _watched(self, path: str) -> Iterator[Witness]:
        """Yield the witness of the file.

        :raises StoreError: ``store.unavailable``: another process holds the file, or this one may open no more.
        """
        with ExitStack() as stack:
            try:
                witness = stack.enter_context(watched(path, self._timeout_ms))
            except TimeoutError:
                raise self._busy() from None
            except OSError as error:
                raise StoreError(f"{self.url}: {error}: try again", code="store.unavailable") from error
            yield witness

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

    def _open(self, connection: sqlite3.Connection, *, writes: bool) -> int | None:
        """Begin a transaction on a new connection; return the version of its tables if it is an older one."""
        connection.rollback()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        version = None if writes else schema_version(connection, self.path)
        if version not in READABLE:
            version = None
            migrate(connection, self.path)
        connection.execute("BEGIN IMMEDIATE")
        return version

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
            case _ if not os.path.isdir(directory := os.path.dirname(self.path)):
                hint = f"there is no directory {directory}, or no access to it: create it, or correct the URL"
            case _:
                hint = f"check that {self.path} is a writable database on a local disk with free space"
        refused = StoreError(f"{self.url}: {error}: {hint}", code="store.refused")
        # SQLite has one code for a file that is not writable and for a lack of file descriptors.
        refused.is_lasting = code == sqlite3.SQLITE_NOTADB or (code in DENIED and not _may_write(self.path))
        return refused

    def describe(self) -> Description:
        def verb(t: Any) -> Description:
            warnings = (OLDER,) if t.is_old else ()
            return self._describe(t.server(), f"SQLite {sqlite3.sqlite_version}", warnings, is_new=t.is_new)

        return self._read(verb)

    def close(self) -> None:
        """Do nothing, as the file is open during verbs only."""

    def _namespace(self, t: Any, name: str, *, is_implied: bool = False) -> NamespaceRecord:
        namespace = super()._namespace(t, name, is_implied=is_implied)
        # A namespace that is not in the file skips the integers that the file may have lost.
        return namespace if t.has(namespace) else _skipped(namespace, t.incarnation.lost)


class Records(RowRecords):
    """The records in a transaction."""

    def __init__(
        self, url: StoreUrl, connection: sqlite3.Connection, incarnation: Incarnation, version: int | None
    ) -> None:
        super().__init__(url, statements("sqlite", version=version))
        self.is_old = version is not None
        self._connection = connection
        self.incarnation = incarnation
        self.has_written = False
        self.moved = 0
        """The number of integers by which this verb moved namespaces forward."""
        self._namespaces: dict[str, NamespaceRecord] = {}

    def rows(self, statement: str, /, **values: object) -> Sequence[Any]:
        return self._connection.execute(self._sql[statement], values).fetchall()

    def server(self) -> ServerIdentity:
        return ServerIdentity(self.incarnation.name, system_ns() // 1_000_000, self.incarnation.began_ms)

    def get(self, kind: type[R], *key: str | int) -> R | None:
        found = self._find("get_unlocked", kind, key)  # the transaction has locked the file
        if isinstance(found, NamespaceRecord):
            self._namespaces[found.name] = found
        return found

    def has(self, namespace: NamespaceRecord) -> bool:
        """Return True if the file had the namespace when this transaction read it."""
        return namespace.name in self._namespaces

    def skip(self, count: int) -> None:
        """Move all namespaces forward by ``count`` integers, which the file may have lost."""
        for namespace in self.page(NamespaceRecord, "") if count else ():
            self.rows("put_namespace", **asdict(_skipped(namespace, count)))

    def put(self, record: Record) -> None:
        self.has_written = True
        if isinstance(record, NamespaceRecord):
            known = self._namespaces.get(record.name)
            if known is None:
                if not record.floor:
                    record = _skipped(record, self.incarnation.lost)
                self.moved += record.largest + record.floor // record.stride
            else:
                self.moved += max(0, record.high_water - known.high_water) // record.stride
        self.rows(f"put_{name_of(type(record))}", **asdict(record))

    def forget_grants(self, pool: str) -> bool:
        self.has_written = True
        return super().forget_grants(pool)


class UnmadeStore(SqliteStore):
    """A store in a directory that is not there yet: verbs that read find no records."""

    @contextmanager
    def _look(self) -> Iterator[Records]:
        yield NoRecords(self.url)


class NoRecords(Records):
    """The records of a file that is not there yet."""

    is_new = True

    def __init__(self, url: StoreUrl) -> None:
        RowRecords.__init__(self, url, {})
        self.incarnation = Incarnation("none", 0)

    def rows(self, statement: str, /, **values: object) -> Sequence[Any]:  # noqa: ARG002
        return ()


def _skipped(namespace: NamespaceRecord, count: int) -> NamespaceRecord:
    """Return the namespace moved forward by ``count`` integers."""
    if namespace.retired or not count:
        return namespace
    value = namespace.high_water + count * namespace.stride + 1
    return rules.raise_floor(namespace, min(value, rules.MAX_INTEGER))


def _is_new(path: str) -> bool:
    """Return True if the file is missing or has no tables, and this user may make it."""
    try:
        with open(path, "rb") as file:
            version = file.read(64)[60:]  # where SQLite keeps the number of the schema
    except FileNotFoundError:
        return _may_write(path)
    except OSError:
        return False  # The verb reports the error.
    return not any(version) and not has_log(path)


def _may_write(path: str) -> bool:
    """Return True if this user may write or create a file."""
    # Add the separator, as a file in the place of the directory may be writable too.
    return os.access(os.path.join(os.path.dirname(path), ""), os.W_OK) and (
        not os.path.exists(path) or os.access(path, os.W_OK)
    )


def _closed_beside(path: str) -> str | None:
    """Return a file that SQLite created beside the store's and this user may not write; ``None`` if there is none."""
    beside = [path + ending for ending in ("-wal", "-shm")]
    return next((file for file in beside if os.path.exists(file) and not os.access(file, os.R_OK | os.W_OK)), None)
