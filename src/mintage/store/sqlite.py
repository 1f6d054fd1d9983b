"""``sqlite:`` keeps its records in a file: for the processes of one host. Made with the standard library."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mintage._core import system_ns
from mintage.errors import ConfigError, StoreError
from mintage.forks import quiet
from mintage.lease import NodeRecord
from mintage.store import Description
from mintage.store.ledger import ConflictError, Ledger, Server
from mintage.store.records import KEYS, name_of
from mintage.store.statements import migrations, read_row, statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mintage.store.records import R, Record
    from mintage.store.url import StoreUrl

__all__ = ["SqliteStore"]

SQL: Final = statements("sqlite")
DENIED: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})
"""What SQLite says where it may not open a file, or not write it."""
ATTEMPTS: Final = 3
"""How often a file is opened that may be closed for a moment only."""


class SqliteStore(Ledger):
    """A store in a file: ``sqlite:///ids.db`` in the working directory, ``sqlite:////var/lib/ids.db`` anywhere.

    The file is in WAL mode with ``synchronous=FULL``: what was committed survives a power failure. It must not be on a
    network file system, whose locks cannot be trusted. Option: ``timeout_ms``, how long to wait for other processes
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
        self.url = url
        self.path = Path(url.path).absolute()
        self._timeout_ms = url.whole("timeout_ms", 2000, 1, 60_000)

    @contextmanager
    def _begin(self) -> Iterator[Records]:
        # SQLite keeps its locks on files in the process's memory. A child that inherits an open connection inherits the
        # belief that it holds them, and both may write at once. So no connection outlives its verb.
        with quiet():
            try:
                with closing(self._open()) as connection:
                    try:
                        yield Records(self.url, connection, _identity(connection, self.path))
                    except BaseException:
                        connection.execute("ROLLBACK")
                        raise
                    connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise self._translate(error) from error

    def _open(self) -> sqlite3.Connection:
        """A connection with a transaction.

        SQLite makes two files beside the store's for the user alone, and opens them to the others in its next step: who
        comes in between is denied what it has a moment later.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return self._connect()
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in DENIED:
                    raise
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
        _check_names(self.url, self.path)
        connection = sqlite3.connect(self.path, timeout=self._timeout_ms / 1000, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            _migrate(connection, self.path)
            connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            connection.close()
            raise
        return connection

    def _translate(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return StoreError(
                f"{self.url}: another process held the file for longer than {self._timeout_ms} ms: try again",
                code="store.unavailable",
            )
        if code in {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_SCHEMA}:
            return ConflictError()
        if code in DENIED and (closed := _closed_beside(self.path)):
            return StoreError(
                f"{self.url}: {error}: {closed} is of another user, who makes it now or for nobody else: try again",
                code="store.unavailable",
            )
        match code:
            case sqlite3.SQLITE_ERROR:
                hint = "its tables are not those that this mintage makes: take another file"
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                hint = f"{self.path} is no SQLite database or a damaged one: take another file, or a backup of it"
            case _:
                hint = f"check that {self.path} is a writable database on a local disk with free space"
        return StoreError(f"{self.url}: {error}: {hint}", code="store.refused")

    def describe(self) -> Description:
        def verb(t: Any) -> Description:
            server = t.server()
            return Description(
                str(self.url), self.promise, f"SQLite {sqlite3.sqlite_version}", server.identity, server.now_ms
            )

        return self._run(verb)

    def close(self) -> None:
        """Does nothing: the file is open during verbs only."""


class Records:
    """The records, in a transaction."""

    def __init__(self, url: StoreUrl, connection: sqlite3.Connection, identity: str) -> None:
        self._url = url
        self._connection = connection
        self._identity = identity

    def _rows(self, statement: str, /, **values: object) -> list[Any]:
        return self._connection.execute(SQL[statement], values).fetchall()

    def server(self) -> Server:
        return Server(self._identity, system_ns() // 1_000_000)

    def _read(self, kind: type[R], rows: list[Any]) -> list[R]:
        return [read_row(self._url, kind, row) for row in rows]

    def get(self, kind: type[R], *key: str | int) -> R | None:
        found = self._read(kind, self._rows(f"get_{name_of(kind)}", **dict(zip(KEYS[kind], key, strict=True))))
        return found[0] if found else None

    look = get

    def put(self, record: Record) -> None:
        self._rows(f"put_{name_of(type(record))}", **asdict(record))

    def all(self, kind: type[R]) -> Sequence[R]:
        return self._read(kind, self._rows(f"all_{name_of(kind)}"))

    def nodes(self, pool: str) -> Sequence[NodeRecord]:
        return self._read(NodeRecord, self._rows("nodes", pool=pool))

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        found = self._read(NodeRecord, self._rows("oldest", pool=pool, first=nodes.start, stop=nodes.stop))
        return found[0] if found else None

    def unused(self, pool: str, nodes: range) -> int | None:
        node: int | None = self._rows("unused", pool=pool, first=nodes.start, stop=nodes.stop)[0][0]
        return node


def _identity(connection: sqlite3.Connection, path: Path) -> str:
    """A file that was restored from a copy is another file, and so is one that was made anew."""
    [(life,)] = connection.execute("SELECT max(name) FROM mintage_life")
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ""
    return f"{found.st_dev}:{found.st_ino}:{life}"


def _check_names(url: StoreUrl, path: Path) -> None:
    """SQLite keeps what it has not yet put into a file beside it, under the name by which it was opened.

    :raises StoreError: ``store.refused``: others may know the file by another name, and not see what is written here.
    """
    try:
        found = os.stat(path)
    except OSError:
        return  # It is to be made, or SQLite says what is wrong.
    if not stat.S_ISREG(found.st_mode):
        return
    if found.st_nlink > 1:
        raise StoreError(
            f"{url}: {path} has {found.st_nlink} names (hard links), and who opens it by one does not see what is "
            "written by another: leave it one name",
            code="store.refused",
        )
    if _is_mounted(os.path.realpath(path)):
        raise StoreError(
            f"{url}: {path} is mounted as a file by itself, and who opens it elsewhere does not see what is written "
            "here: mount the directory that it is in",
            code="store.refused",
        )


def _closed_beside(path: Path) -> Path | None:
    """One of the files that SQLite makes beside the store's, if it is there and may not be written."""
    beside = [path.with_name(path.name + ending) for ending in ("-wal", "-shm")]
    return next((file for file in beside if file.exists() and not os.access(file, os.R_OK | os.W_OK)), None)


def _is_mounted(path: str) -> bool:
    """Whether the file itself is mounted somewhere, where the kernel tells."""
    try:
        mounts = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return False
    escaped = re.sub(rb"[\\ \t\n]", lambda found: b"\\%03o" % ord(found[0]), os.fsencode(path))
    return b" %b " % escaped in mounts


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    known = migrations("sqlite")
    newest = known[-1][0]
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > newest:
        raise StoreError(
            f"{path} has schema version {version}, this mintage knows {newest}: upgrade mintage", code="store.schema"
        )
    if version == newest:
        return
    # Others may be doing the same: the first one does it.
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, steps in known:
        if number > version:
            for step in steps:
                connection.execute(step)
            connection.execute(f"PRAGMA user_version = {number}")
    connection.execute("COMMIT")
