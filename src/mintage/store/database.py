"""``mysql:``, ``mariadb:`` and ``postgresql:`` keep their records in a database, shared by all that reach it.

Made with SQLAlchemy Core, and PyMySQL or psycopg. The statements are files: see :mod:`mintage.store.statements`.
"""

from __future__ import annotations

import math
import re
import time
from abc import abstractmethod
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from mintage.errors import ConfigError, StoreError
from mintage.installation import install_line
from mintage.protocol.records import KEYS, key_of, name_of
from mintage.rules import NamespaceRecord, NodeRecord, PoolRecord
from mintage.store import Description, PerProcess, load_driver
from mintage.store.ledger import ConflictError, Ledger, Server
from mintage.store.statements import migrations, read_row, statements

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    import psycopg

    from mintage.protocol.records import R, Record
    from mintage.protocol.url import StoreUrl

__all__ = ["Database", "MySqlStore", "PostgreSqlStore"]

T = TypeVar("T")

CONNECTIONS: Final = 4
"""Of one process at once, half of them kept: threads beyond that take turns."""
IDLE_S: Final = 15
"""Seconds until MySQL and MariaDB end an idle connection: fewer than a lease has left when it is to be extended."""


COUNTED: Final = (PoolRecord, NamespaceRecord)
"""Kinds of records whose number is kept: none of them is ever removed, so where there are fewer, some are gone."""
REMEMBERS: Final = 2
"""The schema's first version that leaves a view behind when its tables are dropped."""


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
        refused.is_lasting = advice not in {"", _PRIMARY}
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


# --- MySQL and MariaDB --------------------------------------------------------------------------------------------

_RIGHTS: Final = (
    "the account needs SELECT, INSERT and UPDATE on the tables of mintage; to make them or bring them up to date, "
    "connect once with an account that may create tables"
)
_PRIMARY: Final = "name the primary in the URL"


@cache
def _mysql_connection() -> Any:
    """PyMySQL's connection, which makes its TLS settings once.

    To read the authorities that the system trusts costs more than all else of a connection, and a server that is away
    is tried again and again.
    """
    from pymysql.connections import Connection

    contexts: dict[tuple[Any, ...], Any] = {}

    class Connected(Connection):  # type: ignore[misc]
        def _create_ssl_ctx(self, sslp: dict[str, Any]) -> Any:
            key = tuple(sorted(sslp.items()))
            if key not in contexts:
                contexts[key] = super()._create_ssl_ctx(sslp)
            return contexts[key]

    return Connected


class MySqlStore(Database):
    """``mysql://user:password@host:3306/database``, or ``mariadb://…``.

    Options: ``ssl_ca``, the file of the authority that signed the server's certificate; the connection is then
    encrypted, and the certificate and its host name are checked. ``volatile=1`` uses a server that loses transactions
    when it crashes.
    """

    dialect = "mysql+pymysql"
    options = ("ssl_ca", "volatile")
    forgets = "innodb_flush_log_at_trx_commit is 0"
    repeated = "1060"  # the column is there
    unseen = "1142"
    advice: ClassVar = {
        "1044": "check the account's rights on the database",
        "1045": "check user and password",
        "1698": "check user and password",
        "2026": "check ssl_ca, and that the certificate names this host",
        "1049": "create the database",
        "1142": _RIGHTS,
        "1143": _RIGHTS,
        "1290": _PRIMARY,
        "1792": _PRIMARY,
        "1836": _PRIMARY,
    }

    def connect(self) -> Any:
        seconds = self._timeout_ms / 1000
        # A client that stops in the middle of a transaction must not stop all others: MariaDB ends the transaction,
        # MySQL the connection, before those who wait for the same record lose their leases. Errors for what does not
        # fit a column; the server's default may be to cut it.
        session = (
            f"SET SESSION innodb_lock_wait_timeout = {self._seconds}, lock_wait_timeout = {self._seconds}, "
            f"sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', wait_timeout = {max(IDLE_S, self._seconds)} "
            f"/*M!100300 , idle_transaction_timeout = {self._seconds} */"
        )
        authority = self.url.options.get("ssl_ca")
        try:
            return _mysql_connection()(
                host=self.url.host,
                port=self.url.port(3306),
                user=self.url.user,
                password=self.url.password or "",
                database=self.url.path,
                charset="utf8mb4",
                connect_timeout=seconds,
                read_timeout=seconds,
                write_timeout=seconds,
                init_command=session,
                **({"ssl_ca": authority, "ssl_verify_cert": True, "ssl_verify_identity": True} if authority else {}),
            )
        except RuntimeError as error:  # the only one: without TLS it encrypts a password by another library
            raise ConfigError(f"{self.url}: {error}: {install_line('mysql')}", code="config.driver") from error
        except OSError as error:
            # PyMySQL's own errors are no OSErrors: this is the file.
            raise StoreError(f"{self.url}: option ssl_ca: {error}", code="store.refused") from error

    def code(self, error: Any) -> str:
        number = error.args[0] if error.args else 0
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return "2026"
        # From 2000 on they are the driver's own, of connections.
        is_servers = isinstance(number, int) and number != 0 and not 2000 <= number < 3000
        return str(number) if is_servers else ""

    def kind(self, code: str) -> type[Exception]:
        if code in {"1213", "1062", "1020"}:  # deadlock, duplicate key, changed since it was read
            return ConflictError
        if code == "1146":
            return MissingTableError
        # Waited for a lock, too many connections, not in its cluster yet, stopping, aborted, killed, too slow.
        away = {"1205", "1040", "1203", "1226", "1047", "1053", "1152", "1317", "1927", "4031", "1969", "3024"}
        return TimeoutError if code in away else StoreError

    def about(self, row: Any) -> tuple[str, list[str]]:
        version, flush, binary_log, sync, others = row
        warnings = []
        if flush != 1:
            warnings.append(
                f"innodb_flush_log_at_trx_commit is {flush}: a crash loses the last second's reservations; set it to 1"
            )
        if binary_log and sync != 1:
            warnings.append(
                f"sync_binlog is {sync}: a power failure may lose reservations that the binary log has not; set it to 1"
            )
        if others:
            warnings.append(
                "tables of mintage are not InnoDB, so nothing is atomic: ALTER TABLE each of them to ENGINE = InnoDB"
            )
        number, _, _ = version.partition("-")
        return f"{'MariaDB' if 'mariadb' in version.lower() else 'MySQL'} {number}", warnings


# --- PostgreSQL ---------------------------------------------------------------------------------------------------


class PostgreSqlStore(Database):
    """``postgresql://user:password@host:5432/database``.

    Options: libpq's ``sslmode`` and ``sslrootcert``; ``schema``, in which the tables are, in place of the first of the
    account's ``search_path``. Commits wait for the disk even where the account's default is not to.
    """

    dialect = "postgresql+psycopg"
    options = ("sslmode", "sslrootcert", "schema")
    advice: ClassVar = {
        "28": "check user, password, TLS, and the server's pg_hba.conf",
        "3D": "create the database",
        "42501": f"{_RIGHTS}; and it needs USAGE on their schema",
        "3F": "create the schema that the account's search_path names",
        "42P07": "mintage_schema is missing or empty, and other tables of mintage are there: restore it from a backup; "
        "or to begin anew, drop all tables of mintage and the view mintage_existed",
        "25006": _PRIMARY,
    }
    _REFUSALS: Final = (
        "authentication", "password", "pg_hba.conf", "does not exist", "not permitted", "permission denied",
        "certificate", "does not support SSL",
    )  # fmt: skip
    _SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

    def __init__(self, url: StoreUrl) -> None:
        self._schema = url.options.get("schema")
        if self._schema is not None:
            if not re.fullmatch(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", self._schema):
                raise ConfigError(
                    "option schema of the store's URL is not 1 to 63 lower-case letters, digits and _, the first no "
                    "digit, or begins with pg_",
                    code="config.store",
                )
            self.schema = f'"{self._schema}".'
        super().__init__(url)
        if url.options.get("sslmode", "prefer") not in self._SSL_MODES:
            raise ConfigError(
                f"option sslmode of the store's URL is none of {', '.join(self._SSL_MODES)}", code="config.store"
            )

    def connect(self) -> Any:
        options: dict[str, Any] = {name: self.url.options.get(name) for name in ("sslmode", "sslrootcert")}
        return _bounded_connection().connect(
            host=self.url.host,
            port=self.url.port(5432),
            user=self.url.user,
            password=self.url.password,
            dbname=self.url.path,
            connect_timeout=self._seconds,
            client_encoding="UTF8",
            application_name="mintage",
            prepare_threshold=None,  # A pooler in between may give each transaction another connection.
            **options,
        )

    def make_schema(self, connection: sa.Connection) -> None:
        if self._schema is None:
            return
        # CREATE SCHEMA IF NOT EXISTS is refused to those who may not create one, even where it exists.
        exists = sa.text("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = :name)")
        if not connection.execute(exists, {"name": self._schema}).scalar_one():
            connection.execute(sa.text(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"'))

    def bound(self, connection: sa.Connection, deadline: float) -> None:
        cast("Any", connection.connection.driver_connection).deadline = deadline

    def code(self, error: Any) -> str:
        if error.sqlstate is not None:
            return str(error.sqlstate)
        if not isinstance(error, self._driver.OperationalError):
            return "22000"  # A value that psycopg does not even send, such as text with a NUL.
        # What fails while connecting has a text only. If it is none of these, the network or the server is not ready.
        text = str(error)
        if "database" in text and "does not exist" in text:
            return "3D000"
        return "28000" if any(words in text for words in self._REFUSALS) else ""

    def kind(self, code: str) -> type[Exception]:
        if code in {"40001", "40P01", "23505"}:  # serialization failure, deadlock, duplicate key
            return ConflictError
        if code == "42P01":
            return MissingTableError
        # No connection, too many, stopping; a transaction that was idle for too long, a lock that was not free in time.
        is_away = code[:2] in {"08", "53", "57"} or code in {"25P03", "25P04", "55P03"}
        return TimeoutError if is_away else StoreError

    def about(self, row: Any) -> tuple[str, list[str]]:
        version, schema, *settings = row
        warnings = [
            f"{name} is off: a crash of the machine loses or damages what was reserved; set it to on"
            for name, value in zip(("fsync", "full_page_writes"), settings, strict=True)
            if value == "off"
        ]
        return f"PostgreSQL {version.partition(' ')[0]}, schema {schema}", warnings


@cache
def _bounded_connection() -> type[psycopg.Connection[Any]]:
    import psycopg

    class BoundedConnection(psycopg.Connection[Any]):
        """Gives up at a deadline: libpq itself waits for ever for a server that is frozen."""

        deadline = math.inf

        def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
            return super().wait(self._until_deadline(gen), *args, **kwargs)

        def _until_deadline(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
            try:
                state = next(gen)
                while True:
                    ready = yield state
                    if not ready and time.monotonic() > self.deadline:
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the server did not answer in time")
                    state = gen.send(ready)
            except StopIteration as done:
                result: T = done.value
                return result

    return BoundedConnection
