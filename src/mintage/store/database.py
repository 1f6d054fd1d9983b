"""The base of the stores in a database server: :mod:`mintage.store.mysql` and :mod:`mintage.store.postgresql`.

It uses SQLAlchemy Core. The statements are files: see :mod:`mintage.store.statements`.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Final

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from mintage.errors import ConfigError, StoreError
from mintage.protocol.records import KEYS, key_of, name_of
from mintage.rules import NamespaceRecord, NodeRecord, PoolRecord
from mintage.store import Description, PerProcess, load_driver
from mintage.store.ledger import ConflictError, Ledger, Server
from mintage.store.statements import migrations, read_row, statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mintage.protocol.records import R, Record
    from mintage.protocol.url import StoreUrl

__all__ = ["PRIMARY_ADVICE", "RIGHTS_ADVICE", "Database", "MissingTableError", "Records"]

CONNECTIONS: Final = 4
"""Of one process at once, half of them kept: threads beyond that take turns."""
COUNTED: Final = (PoolRecord, NamespaceRecord)
"""Kinds of records whose number is kept: none of them is ever removed, so where there are fewer, some are gone."""
REMEMBERS: Final = 2
"""The schema's first version that leaves a view behind when its tables are dropped."""


RIGHTS_ADVICE: Final = (
    "the account needs SELECT, INSERT and UPDATE on the tables of mintage; to make them or bring them up to date, "
    "connect once with an account that may create tables"
)
PRIMARY_ADVICE: Final = "name the primary in the URL"


class MissingTableError(Exception):
    """The schema is not there, or is of an older version."""


class Database(Ledger):
    """A store in a database. Options: ``timeout_ms``, how long a verb may take (2000), and those of its kind.

    Tables are made at the first verb, if the account may. From then on it needs SELECT, INSERT and UPDATE on them.
    """

    promise: ClassVar[str] = "shared"
    dialect: ClassVar[str]
    """What SQLAlchemy calls it and its statements' folder, and after the ``+`` the driver's module."""
    options: ClassVar[tuple[str, ...]]
    forgets: ClassVar[str] = ""
    """The setting that makes it lose what it acknowledged, where it has one."""
    advice: ClassVar[Mapping[str, str]]
    """What to do about an error that the server answers with, by the beginning of its code."""
    repeated: ClassVar[str] = ""
    """The code of a migration's step that was done before, where schema statements commit by themselves."""
    unseen: ClassVar[str] = ""
    """The code of the refusal to make a view, where that is another right than to make tables."""
    schema: str = ""
    """What stands before the name of a table."""

    def __init__(self, url: StoreUrl) -> None:
        url.check_options("timeout_ms", *self.options)
        if len(url.hosts) > 1 or not url.path:
            raise ConfigError(
                f"a store of kind {url.scheme} needs one host and a database: {url.scheme}://user:password@host/database",
                code="config.store",
            )
        self.url = url
        self._timeout_ms = url.parse_int("timeout_ms", 2000, 1, 60_000)
        self._volatile = url.flag("volatile") if "volatile" in self.options else False
        self._seconds = math.ceil(self._timeout_ms / 1000)
        folder, _, driver = self.dialect.partition("+")
        self._driver = load_driver(driver, folder)
        self._migrations = migrations(folder, self.schema)
        self._sql = statements(folder, self.schema)
        self._engine = PerProcess(self._make_engine)

    @abstractmethod
    def connect(self) -> Any:
        """Return a new connection of the driver's."""

    @abstractmethod
    def code(self, error: Any) -> str:
        """The server's code for an error of the driver's; empty if the server was not reached, or did not answer."""

    @abstractmethod
    def kind(self, code: str) -> type[Exception]:
        """ConflictError, MissingTableError, TimeoutError; or StoreError, where it is the server's refusal."""

    @abstractmethod
    def about(self, row: Any) -> tuple[str, list[str]]:
        """Product and version, and warnings, from what the statement ``describe`` returns."""

    def make_schema(self, connection: sa.Connection) -> None:
        """Make what the tables are to be in, if that is not there."""

    def bound(self, connection: sa.Connection, deadline: float) -> None:
        """Tell a connection when to give up, where its driver has no timeouts of its own."""

    def _make_engine(self) -> sa.Engine:
        # Row locks decide who comes first, and a statement must see what was committed while it waited for one: with a
        # snapshot for the whole transaction, all who waited would fail, every time.
        return sa.create_engine(
            f"{self.dialect}://",
            creator=self.connect,
            isolation_level="READ COMMITTED",
            pool_size=CONNECTIONS // 2,
            max_overflow=CONNECTIONS - CONNECTIONS // 2,
            pool_timeout=self._timeout_ms / 1000,
            pool_reset_on_return=None,  # Every transaction here ends by itself: another ROLLBACK is a round trip.
            hide_parameters=True,
        )

    @contextmanager
    def transaction(self, first: str) -> Iterator[tuple[sa.Connection, Sequence[Any], float]]:
        """A transaction, the rows of its first statement, and its deadline by the monotonic clock. Commits at the end.

        :raises ConflictError: another got in between.
        :raises MissingTableError: a table is missing.
        :raises StoreError: ``store.unavailable``, ``store.refused``.
        """
        deadline = time.monotonic() + self._timeout_ms / 1000
        try:
            connection, rows = self._open(sa.text(first), deadline)
            with connection:
                yield connection, rows, deadline
                connection.commit()
        except PoolTimeoutError as error:
            raise StoreError(
                f"{self.url}: all {CONNECTIONS} connections of this process were busy for {self._timeout_ms} ms: "
                "try again",
                code="store.unavailable",
            ) from error
        except UnicodeError as error:
            raise StoreError(f"{self.url}: {error}", code="store.refused") from error
        except DBAPIError as error:
            raise self._translate(error) from error.orig

    @property
    def _limits(self) -> dict[str, object]:
        return {"timeout": str(self._timeout_ms), "seconds": self._seconds}

    def _open(self, first: sa.TextClause, deadline: float) -> tuple[sa.Connection, Sequence[Any]]:
        for is_last in (False, True):
            connection = self._engine.get().connect()
            try:
                self.bound(connection, deadline)
                return connection, connection.execute(first, self._limits).all()
            except DBAPIError as error:
                connection.close()
                # A kept connection may have been closed by the server long ago; nothing has been done with it yet.
                if not error.connection_invalidated or is_last or time.monotonic() > deadline:
                    raise
            except BaseException:
                connection.close()
                raise
        raise AssertionError

    def _translate(self, error: DBAPIError) -> Exception:
        reason: Any = error.orig
        code = self.code(reason)
        kind = self.kind(code) if code else TimeoutError
        # The first line says what is wrong; what follows may show the row, with its token.
        said = str(reason.args[-1] if reason.args else "").partition("\n")[0] or type(reason).__name__
        reason.args = (*reason.args[:-1], said)
        if kind is TimeoutError:
            return StoreError(f"{self.url}: {said}: check that the server runs, try again", code="store.unavailable")
        if kind is not StoreError:
            return kind(said)
        advice = next((advice for start, advice in self.advice.items() if code.startswith(start)), "")
        hint = advice or "see the server's log"
        refused = StoreError(f"{self.url}: {said}: {hint}", code="store.refused")
        # A replica may be the primary soon.
        refused.is_lasting = advice not in {"", PRIMARY_ADVICE}
        return refused

    @contextmanager
    def _begin(self) -> Iterator[Records]:
        newest = self._migrations[-1][0]
        try:
            with self.transaction(self._sql["server"]) as (connection, [row], deadline):
                identity, now_ms, is_read_only, version, forgets = row[:5]
                if version > newest:
                    raise StoreError(
                        f"{self.url} has schema version {version}, this mintage knows {newest}: upgrade mintage",
                        code="store.schema",
                    )
                if is_read_only:
                    raise StoreError(
                        f"{self.url}: the server is a replica, or set to read only: name the primary in the URL",
                        code="store.refused",
                    )
                if forgets and not self._volatile:
                    raise ConfigError(
                        f"{self.url} can lose what it acknowledged: {self.forgets}; repair that, or add volatile=1 to "
                        "the URL if repeated IDs are acceptable",
                        code="config.volatile",
                    )
                if version < newest:
                    raise MissingTableError
                yield Records(self, connection, self._sql, Server(identity, now_ms), deadline)
        except MissingTableError:
            self._migrate()
            raise ConflictError from None

    def _migrate(self) -> None:
        """Bring the schema to the newest version, one process at a time.

        :raises StoreError: ``store.refused``: a table is missing though the others are there.
        """
        try:
            with self.transaction(self._sql["lock_schema"]) as (connection, [row], _):
                # The lock may last as long as the connection does.
                connection.detach()
                if row[0] != 1:
                    raise StoreError(f"{self.url}: another is making the tables: try again", code="store.unavailable")
                self._make_tables(connection)
                # Now they are all there.
                connection.execute(sa.text(self._sql["server"]), self._limits)
        except MissingTableError as error:
            raise StoreError(
                f"{self.url}: {error}: restore it from a backup; or to begin anew, drop all tables of mintage and the "
                "view mintage_existed",
                code="store.refused",
            ) from error.__cause__

    def _make_tables(self, connection: sa.Connection) -> None:
        self.make_schema(connection)
        connection.execute(sa.text(self._sql["create_schema"]))
        version = connection.execute(sa.text(self._sql["schema"])).scalar_one()
        existed = connection.execute(sa.text(self._sql["has_history"])).scalar_one()
        for number, steps in self._migrations:
            if number > version:
                for step in steps:
                    try:
                        connection.execute(sa.text(step))
                    except DBAPIError as error:
                        if self.code(error.orig) != self.repeated:
                            raise
                connection.execute(sa.text(self._sql["insert_schema"]), {"version": number})
        if existed and version < REMEMBERS:
            connection.execute(sa.text(self._sql["lose_history"]))
        elif not existed:
            # At last: tables that were left half made have lost nothing.
            try:
                connection.execute(sa.text(self._sql["keep_history"]))
            except DBAPIError as error:
                if self.code(error.orig) != self.unseen:
                    raise

    def _has_lost(self, t: Any, kind: type[Record]) -> bool:
        return bool(t.has_lost(kind))

    def describe(self) -> Description:
        def verb(t: Any) -> Description:
            [row] = t.rows("describe")
            product, warnings = self.about(row)
            for statement in self._sql:
                if statement.startswith("may_"):
                    t.does(statement)
            server = t.server()
            if self._volatile:
                warnings.append("volatile=1: integers may repeat once this server has crashed")
            warnings += self._warnings(t)
            return Description(str(self.url), self.promise, product, server.identity, server.now_ms, tuple(warnings))

        return self._run(verb)

    def _warnings(self, t: Records) -> Iterator[str]:
        gone = [f"{name_of(kind)}s" for kind in COUNTED if t.has_lost(kind)]
        if gone:
            yield (
                f"history was lost: records of {' and '.join(gone)} are gone, as tables were dropped, emptied or "
                "replaced by a dump. A pool that is not listed begins in quarantine, a namespace that is not listed is "
                "refused. Make each that was in use above all that it handed out (mintage namespaces create NAME "
                f"--start N), then run: {' '.join(self._sql['accept_history'].split())}"
            )
        [(existed,)] = t.rows("has_history")
        if not existed:
            made = " ".join(self._sql["keep_history"].partition("\n")[2].split())
            yield (
                "the view mintage_existed is missing, so tables that are dropped and made anew count as the first, and "
                f"integers begin again: run {made}"
            )

    def close(self) -> None:
        engine = self._engine.pop()
        if engine is not None:
            engine.dispose()


class Records:
    """The records, in one transaction.

    The first to write a record that was not there inserts it, so that of two that both found nothing one fails.
    """

    def __init__(
        self,
        store: Database,
        connection: sa.Connection,
        sql: Mapping[str, str],
        server: Server,
        deadline: float,
    ) -> None:
        self._store = store
        self._connection = connection
        self._sql = sql
        self._server = server
        self._deadline = deadline
        self._locked: set[tuple[object, ...]] = set()

    def _execute(self, statement: str, values: Mapping[str, object]) -> sa.CursorResult[Any]:
        if time.monotonic() > self._deadline:
            raise StoreError(
                f"{self._store.url}: the server takes too long to answer: try again, or raise timeout_ms",
                code="store.unavailable",
            )
        return self._connection.execute(sa.text(self._sql[statement]), values)

    def rows(self, statement: str, /, **values: object) -> Sequence[Any]:
        """Return what a statement returns."""
        return self._execute(statement, values).all()

    def does(self, statement: str) -> None:
        """Execute a statement that returns nothing."""
        self._execute(statement, {})

    def server(self) -> Server:
        return self._server

    def _read(self, kind: type[R], rows: Sequence[Any]) -> list[R]:
        return [read_row(self._store.url, kind, row) for row in rows]

    def get(self, kind: type[R], *key: str | int) -> R | None:
        found = self._read(kind, self.rows(f"get_{name_of(kind)}", **dict(zip(KEYS[kind], key, strict=True))))
        if not found:
            return None
        self._locked.add((kind, *key))
        return found[0]

    def get_unlocked(self, kind: type[R], *key: str | int) -> R | None:
        found = self._read(kind, self.rows(f"get_unlocked_{name_of(kind)}", **dict(zip(KEYS[kind], key, strict=True))))
        return found[0] if found else None

    def put(self, record: Record) -> None:
        kind = type(record)
        key = (kind, *key_of(record))
        is_known = key in self._locked
        self._execute(f"{'update' if is_known else 'insert'}_{name_of(kind)}", asdict(record))
        if not is_known and kind in COUNTED:
            self.does(f"count_{name_of(kind)}")
        self._locked.add(key)

    def has_lost(self, kind: type[Record]) -> bool:
        """Return whether there are fewer records of a kind than were made."""
        [(lost,)] = self.rows(f"has_lost_{name_of(kind)}")
        return bool(lost)

    def all(self, kind: type[R]) -> Sequence[R]:
        return self._read(kind, self.rows(f"all_{name_of(kind)}"))

    def nodes(self, pool: str) -> Sequence[NodeRecord]:
        return self._read(NodeRecord, self.rows("nodes", pool=pool))

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        found = self._read(NodeRecord, self.rows("oldest", pool=pool, first=nodes.start, stop=nodes.stop))
        if not found:
            return None
        # Its holder does not lock the pool: once this transaction has the record, it may not be the oldest any more.
        if self.get(NodeRecord, pool, found[0].node) != found[0]:
            raise ConflictError
        return found[0]

    def unused(self, pool: str, nodes: range) -> int | None:
        rows = self.rows("unused", pool=pool, first=nodes.start, stop=nodes.stop)
        return rows[0][0] if rows else None
