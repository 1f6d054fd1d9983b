"""``postgresql:`` keeps its records in PostgreSQL. It uses psycopg."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from mintage import rules
from mintage._core import monotonic_s
from mintage.errors import ConfigError, StoreError
from mintage.protocol.options import connections, option, read_options, timeout
from mintage.rules import PoolRecord
from mintage.store.ledger import ConflictError, ServerIdentity
from mintage.store.sql import base
from mintage.store.sql.base import Database, MissingTableError

if TYPE_CHECKING:
    import psycopg

    from mintage.protocol.url import StoreUrl
    from mintage.store.sql.pool import DriverTransaction

T = TypeVar("T")

_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgreSqlOptions:
    """The options of a store in PostgreSQL, beside those that mintage passes to libpq."""

    timeout_ms: int = timeout()
    connections: str = connections()
    schema: str | None = option(None, "The schema of the tables; if left out, the one of the `search_path` with them")
    host: str | None = option(None, "The directory of the server's Unix socket")
    port: str | None = option(None, "The server's port, if the URL has none")
    user: str | None = option(None, "The account, if the URL has none")
    password: str | None = option(None, "Its password, if the URL has none")
    application_name: str = option("mintage", "The name of the program that the server shows")
    connect_timeout: int = option(0, "To connect, in seconds; never more than `timeout_ms`", most=86_400)
    sslmode: str | None = option(None, f"{', '.join(_SSL_MODES)}; prefer by default")
    ssl: str | None = option(None, "The name of `sslmode` in asyncpg")


class PostgreSqlStore(Database):
    """A store in PostgreSQL: ``postgresql://user:password@host:5432/database``.

    Options: :class:`PostgreSqlOptions`, and those of libpq. Without ``schema``, the tables are in the schema of the
    account's ``search_path`` that has them, or in the first one if none has. Commits wait for the disk, whatever the
    account's default is.
    """

    dialect = "postgresql"
    driver = "psycopg"
    _PASSED: Final = (
        "hostaddr", "passfile",
        "options", "target_session_attrs", "channel_binding", "require_auth", "requirepeer",
        "sslnegotiation", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcertmode", "sslcrl", "sslcrldir",
        "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version", "keepalives", "keepalives_idle",
        "keepalives_interval", "keepalives_count", "tcp_user_timeout", "gssencmode", "krbsrvname", "gsslib",
        "gssdelegation", "load_balance_hosts",
    )  # fmt: skip
    """Options of libpq."""
    _IGNORED: Final = ("pgbouncer", "connection_limit", "pool_timeout")
    """Options of other clients' pools."""
    _REFUSED: ClassVar = {
        "client_encoding": "mintage sends UTF8",
        "dbname": "the path of the URL names the database",
        "fallback_application_name": "use application_name",
        "replication": "mintage replicates nothing",
        "service": "the URL alone names the store",
    }
    advice: ClassVar = {
        "28": "check user, password, TLS, and the server's pg_hba.conf",
        "3D": "create the database",
        "42501": f"{base.RIGHTS_ADVICE}; and it needs USAGE on their schema",
        "3F": "create the schema that the account's search_path names",
        "42P07": f"mintage_schema is missing or empty, and other tables of mintage are there: {base.RESTORE_ADVICE}",
        "25006": base.PRIMARY_ADVICE,
        "53300": base.CONNECTIONS_ADVICE,
    }
    _FULL: Final = ("too many clients", "too many connections", "connection slots", "no more connections")
    _REFUSALS: Final = (
        "authentication", "password", "pg_hba.conf", "does not exist", "not permitted", "permission denied",
        "certificate", "does not support SSL", "channel binding", "invalid ",
    )  # fmt: skip

    def __init__(self, url: StoreUrl) -> None:
        options = read_options(url, PostgreSqlOptions, (*self._PASSED, *self._IGNORED), self._REFUSED)
        self._schema = options.schema
        self._is_implied = self._schema is None
        if self._schema is not None:
            if not re.fullmatch(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", self._schema):
                raise ConfigError(
                    "option schema of the store's URL must be 1 to 63 lower-case letters, digits and _; it must not "
                    "begin with a digit or pg_",
                    code="config.store",
                )
            self.schema = f'"{self._schema}".'
        super().__init__(url, options.timeout_ms, connections=options.connections)
        name, mode = ("ssl", options.ssl) if options.sslmode is None else ("sslmode", options.sslmode)
        self._ssl_mode = "prefer" if mode is None else mode
        if self._ssl_mode not in _SSL_MODES:
            raise ConfigError(
                f"option {name} of the store's URL must be one of {', '.join(_SSL_MODES)}", code="config.store"
            )
        self._options = options

    def connect(self) -> Any:
        url, options = self.url, self._options
        own: dict[str, Any] = {
            "host": url.socket or url.host,
            "port": url.port(5432) if options.port is None else options.port,
            "user": url.user or options.user,
            "password": options.password if url.password is None else url.password,
            "dbname": url.path,
            "connect_timeout": min(options.connect_timeout or self._seconds, self._seconds),
            "client_encoding": "UTF8",
            "application_name": options.application_name,
            "sslmode": self._ssl_mode,
        }
        passed: dict[str, Any] = {name: text for name, text in url.options.items() if name in self._PASSED}
        # A connection pooler may give each transaction another connection, which has no prepared statements.
        connection = _bounded_connection().connect(prepare_threshold=None, **own, **passed)
        connection.isolation_level = self._driver.IsolationLevel.READ_COMMITTED
        return connection

    def is_usable(self, connection: Any) -> bool:
        return not connection.closed

    def find_schema(self) -> None:
        """Find the schema of the tables, if an earlier call has not found it.

        The store keeps it for its life, and names it in every statement. So it goes on with the same tables whatever
        the account's search path, its rights, or the settings of a pooled session become.

        :raises ConfigError: ``config.store``: several schemas have tables, or another than those of the search path.
        """
        if self._schema is None:
            with self.transaction(self._sql["schemas"]) as (_, rows, _):
                pass
            if found := self._one_of(rows):
                self._keep(found)

    def _one_of(self, rows: Sequence[Any]) -> str | None:
        """Return the only schema with tables; ``None`` if there is none. ``rows`` are those of ``schemas``."""
        names = [name for name, is_in_path in rows if is_in_path]
        if len(names) > 1:
            raise ConfigError(
                f"{self.url}: tables of mintage are in several schemas of the account's search_path, "
                f"{' and '.join(names)}, so there are several stores: add ?schema= with the schema of the one in use "
                "to the URL of every process",
                code="config.store",
            )
        if rows and not names:
            others = " and ".join(name for name, _ in rows)
            raise ConfigError(
                f"{self.url}: tables of mintage are in schema {others}, which is not in the account's search_path: add "
                f"?schema={rows[0][0]} to the URL; or for a second store beside it, ?schema= with a new name",
                code="config.store",
            )
        return names[0] if names else None

    def _keep(self, schema: str) -> None:
        if not re.fullmatch(r"[^'\"%:{}\\]+", schema):
            raise ConfigError(
                f"{self.url}: the name of the schema {schema!r} has one of the characters '\"%:{{}}\\: rename it",
                code="config.store",
            )
        self.schema = f'"{schema}".'
        self._read_statements()
        self._schema = schema  # last, as an exception at any instruction may leave the remainder to the next call

    def make_schema(self, transaction: DriverTransaction) -> None:
        if self._is_implied:
            # Somebody may have created tables since, or moved those of this store.
            found = self._one_of(transaction.rows(self._sql["schemas"], {}))
            if self._schema is None and found:
                self._keep(found)
            elif found not in {None, self._schema}:
                raise ConfigError(
                    f"{self.url}: the tables of mintage are gone from schema {self._schema}, and others are in schema "
                    f"{found}: restart this process, or add ?schema={found} to the URL, if they were moved",
                    code="config.store",
                )
            if self._schema is None:
                [(first,)] = transaction.rows("SELECT current_schema()")
                if first is None:
                    raise StoreError(f"{self.url}: no schema to create in: {self.advice['3F']}", code="store.refused")
                self._keep(first)
        # The server refuses CREATE SCHEMA IF NOT EXISTS to accounts without the right, even if the schema exists.
        exists = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %(name)s)"
        [(found,)] = transaction.rows(exists, {"name": self._schema})
        if not found:
            transaction.rows(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"')

    def _pool(self, t: Any, name: str, layout: str, span_ms: int, server: ServerIdentity, **options: Any) -> PoolRecord:
        # A holder that the row does not name may have a node number whose row came from a dump.
        if any(is_loaded for (is_loaded,) in t.rows("is_loaded", pool=name)):
            if (known := t.get(PoolRecord, name)) is not None:
                known = replace(known, identity="loaded")
                t.put(rules.note_server(known, server.identity, server.now_ms, self.clock_limit_ms))
            t.rows("adopt", pool=name)
        return super()._pool(t, name, layout, span_ms, server, **options)

    def _migrate(self) -> None:
        known = self._schema
        try:
            super()._migrate()
        except BaseException:
            if known is None:
                self._schema, self.schema = None, ""  # nothing was created there
                self._read_statements()
            raise

    def bound(self, connection: Any, deadline: float) -> None:
        connection.deadline = deadline

    def code(self, error: Any) -> str:
        if error.sqlstate is not None:
            return str(error.sqlstate)
        if not isinstance(error, self._driver.OperationalError):
            return "22000"  # psycopg refuses to send a value, such as text with a NUL
        # A failed connection has a text but no code. With any other text, the network or the server is not ready.
        text = str(error)
        if "database" in text and "does not exist" in text:
            return "3D000"
        if any(words in text for words in self._FULL):
            return "53300"
        return "28000" if any(words in text for words in self._REFUSALS) else ""

    def kind(self, code: str) -> type[Exception]:
        if code in {"40001", "40P01", "23505"}:  # serialization failure, deadlock, duplicate key
            return ConflictError
        if code == "42P01":
            return MissingTableError
        # No connection, too many, a shutdown; a transaction that was idle for too long; a lock timeout.
        is_away = code[:2] in {"08", "53", "57"} or code in {"25P03", "25P04", "55P03"}
        return TimeoutError if is_away else StoreError

    def about(self, row: Any) -> tuple[str, list[str]]:
        version, first, *settings = row
        warnings = [
            f"{name} is off: a crash of the machine loses or damages reservations; set it to on"
            for name, value in zip(("fsync", "full_page_writes"), settings, strict=True)
            if value == "off"
        ]
        return f"PostgreSQL {version.partition(' ')[0]}, schema {self._schema or first}", warnings


@cache
def _bounded_connection() -> type[psycopg.Connection[Any]]:
    import psycopg

    class BoundedConnection(psycopg.Connection[Any]):
        """A connection with a deadline, which closes when it goes away. libpq waits for ever for a frozen server."""

        deadline = math.inf

        def __del__(self, *_: Any) -> None:
            # An exception at any instruction, such as a signal handler's, may leave it without an owner that closes it.
            self.close()

        def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
            return super().wait(self._until_deadline(gen), *args, **kwargs)

        def _until_deadline(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
            try:
                state = next(gen)
                while True:
                    ready = yield state
                    if not ready and monotonic_s() > self.deadline:
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the server did not answer in time")
                    state = gen.send(ready)
            except StopIteration as done:
                result: T = done.value
                return result

    return BoundedConnection
