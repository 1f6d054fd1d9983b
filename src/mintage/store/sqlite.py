"""``sqlite:`` keeps its records in a file: for the processes of one host. Made with the standard library."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mintage.errors import ConfigError, StoreError
from mintage.forks import quiet
from mintage.lease import NamespaceRecord, NodeRecord, PoolRecord
from mintage.store import Description
from mintage.store.ledger import ConflictError, Ledger, Server
from mintage.store.statements import migrations, statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mintage.store.url import StoreUrl

__all__ = ["SqliteStore"]

SQL: Final = statements("sqlite")


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
        with quiet:
            try:
                with closing(self._connect()) as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    try:
                        yield Records(connection, _identity(self.path))
                    except BaseException:
                        connection.execute("ROLLBACK")
                        raise
                    connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise self._translate(error) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=self._timeout_ms / 1000, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            _migrate(connection, self.path)
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
        return StoreError(
            f"{self.url}: {error}: check that {self.path} is a writable database on a local disk with free space",
            code="store.refused",
        )

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

    def __init__(self, connection: sqlite3.Connection, identity: str) -> None:
        self._connection = connection
        self._identity = identity

    def _rows(self, statement: str, /, **values: object) -> list[Any]:
        return self._connection.execute(SQL[statement], values).fetchall()

    def server(self) -> Server:
        return Server(self._identity, time.time_ns() // 1_000_000)

    def pool(self, name: str) -> PoolRecord | None:
        rows = self._rows("pool", name=name)
        return _pool(rows[0]) if rows else None

    def node(self, pool: str, node: int) -> NodeRecord | None:
        rows = self._rows("node", pool=pool, node=node)
        return NodeRecord(*rows[0]) if rows else None

    def namespace(self, name: str) -> NamespaceRecord | None:
        rows = self._rows("namespace", name=name)
        return NamespaceRecord(*rows[0]) if rows else None

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        rows = self._rows("oldest", pool=pool, first=nodes.start, stop=nodes.stop)
        return NodeRecord(*rows[0]) if rows else None

    def unused(self, pool: str, nodes: range) -> int | None:
        node: int | None = self._rows("unused", pool=pool, first=nodes.start, stop=nodes.stop)[0][0]
        return node

    def pools(self) -> Sequence[PoolRecord]:
        return [_pool(row) for row in self._rows("pools")]

    def nodes(self, pool: str | None) -> Sequence[NodeRecord]:
        return [NodeRecord(*row) for row in self._rows("nodes", pool=pool)]

    def namespaces(self) -> Sequence[NamespaceRecord]:
        return [NamespaceRecord(*row) for row in self._rows("namespaces")]

    def put_pool(self, record: PoolRecord) -> None:
        self._rows("put_pool", **asdict(record))

    def put_node(self, record: NodeRecord) -> None:
        self._rows("put_node", **asdict(record))

    def put_namespace(self, record: NamespaceRecord) -> None:
        self._rows("put_namespace", **asdict(record))


def _pool(row: tuple[Any, ...]) -> PoolRecord:
    return replace(PoolRecord(*row), history_lost=bool(row[-1]))


def _identity(path: Path) -> str:
    """A file that was restored from a copy is another file."""
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return ""
    return f"{stat.st_dev}:{stat.st_ino}"


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
