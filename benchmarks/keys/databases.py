"""PostgreSQL, MariaDB or MySQL, and SQLite: a schema of its own, inserts, and the counters of the server."""

import re
import secrets
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Final

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import NullPool, StaticPool

from benchmarks.keys.kinds import Key
from benchmarks.keys.record import Counters

BODY: Final = "x" * 100
"""The rest of each row: 100 characters, which the database adds as a default."""
NAME: Final = "mintage_keys_"
"""The beginning of the name of every schema that a run creates."""
QUIET_S: Final = 60
EXPORTED_S: Final = 0.1
"""The time after which `SHOW STATUS` of MySQL counts the last commit: a thread copies the position each 10 ms."""
CONNECTIONS: Final = 16
BEFORE_EACH_PART: Final = "a checkpoint before each part"


class Database(ABC):
    """A database, and the schema in it that a run creates and removes. It touches nothing else."""

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    """The settings that a record shows."""
    log: ClassVar[str]
    """The name of the log whose bytes are counted."""

    def __init__(self, url: URL) -> None:
        self.schema = f"{NAME}{secrets.token_hex(4)}"
        self.engine = self.connected(url)
        self.metadata = sa.MetaData(schema=self.schema)
        self._statements: dict[str, str] = {}

    @abstractmethod
    def connected(self, url: URL) -> sa.Engine:
        """Return the engine."""

    def has(self, key: Key) -> bool:
        """Return True if the database has the column of a key. MySQL has no type for UUIDs."""
        return self.name in key.databases and (key.form, self.engine.dialect.name) != ("native", "mysql")

    def create(self) -> None:
        """Create the schema."""
        with self.engine.begin() as connection:
            connection.execute(sa.schema.CreateSchema(self.schema))

    def drop(self) -> None:
        """Remove the schema with all in it."""
        with self.engine.begin() as connection:
            connection.execute(sa.schema.DropSchema(self.schema, cascade=self.name == "postgresql", if_exists=True))

    def create_table(self, key: Key) -> None:
        """Create the table of a key."""
        table = sa.Table(
            key.table,
            self.metadata,
            sa.Column("id", key.type, primary_key=True, autoincrement=key.writer is None),
            sa.Column("created", sa.BigInteger(), nullable=False),
            sa.Column("body", sa.String(len(BODY)), nullable=False, server_default=BODY),
        )
        table.create(self.engine)

    def index_time(self, key: Key) -> None:
        """Add the index of the time that a key without a time needs for a range."""
        table = self.metadata.tables[f"{self.schema}.{key.table}" if self.metadata.schema else key.table]
        sa.Index(f"{key.table}_created", table.c.created).create(self.engine)

    def place(self, key: Key) -> str:
        """Return the name of the table of a key in a statement."""
        return f"{self.schema}.{key.table}"

    def open(self) -> Any:
        """Return a connection of the driver for one writer or reader."""
        return self.engine.raw_connection()

    def query(self, statement: str) -> list[Any]:
        """Return the rows of a statement."""
        with self.engine.connect().execution_options(no_parameters=True) as connection:
            return list(connection.exec_driver_sql(statement))

    def column(self, key: Key) -> str:
        """Return the type of the column of a key, without the order of its text, which is that of the bytes."""
        type_name = str(key.type.dialect_impl(self.engine.dialect).compile(self.engine.dialect)).lower()
        return re.split(" collate| character set", type_name)[0]

    @abstractmethod
    def version(self) -> str:
        """Return the name and the version of the server."""

    @abstractmethod
    def show(self, setting: str) -> str:
        """Return the value of a setting."""

    @abstractmethod
    def insert(self, connection: Any, key: Key, values: Sequence[Any] | None, count: int, created_ms: int) -> None:
        """Insert and commit a batch of rows. The database numbers them if there are no values."""

    @abstractmethod
    def counters(self, key: Key) -> Counters:
        """Return the counters now. No connection is open."""

    @abstractmethod
    def sizes(self, key: Key) -> tuple[int, int]:
        """Return the bytes of the table and of its indexes."""

    @abstractmethod
    def checkpoint(self) -> str:
        """Write all pages to the disk where that changes the bytes of the log; return a sentence on it."""

    def analyze(self, key: Key) -> None:
        """Update the statistics of the planner."""
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(self.analyzes.format(self.place(key)))

    analyzes: ClassVar[str] = "ANALYZE {}"


class PostgreSQL(Database):
    """PostgreSQL, by psycopg: one `INSERT` with an array of keys for each batch."""

    name = "postgresql"
    log = "WAL"
    settings = (
        "shared_buffers", "max_wal_size", "checkpoint_timeout", "full_page_writes", "wal_compression",
        "synchronous_commit", "fsync",
    )  # fmt: skip
    analyzes = "VACUUM (ANALYZE) {}"

    def connected(self, url: URL) -> sa.Engine:
        # Each connection is closed after its use: a backend reports its statistics when it ends.
        arguments = {"application_name": self.schema}
        return sa.create_engine(url.set(drivername="postgresql+psycopg"), poolclass=NullPool, connect_args=arguments)

    def version(self) -> str:
        return f"PostgreSQL {self.query('SHOW server_version')[0][0].split()[0]}"

    def show(self, setting: str) -> str:
        return str(self.query(f"SHOW {setting}")[0][0])

    def insert(self, connection: Any, key: Key, values: Sequence[Any] | None, count: int, created_ms: int) -> None:
        cursor = connection.cursor()
        if values is None:
            rows = f"INSERT INTO {self.place(key)} (created) SELECT %s FROM generate_series(1, %s)"
            cursor.execute(rows, (created_ms, count))
        else:
            array = {"native": "uuid", "binary": "bytea", "text": "text", "integer": "bigint"}[key.form]
            rows = f"INSERT INTO {self.place(key)} (id, created) SELECT unnest(%b::{array}[]), %b::bigint"
            cursor.execute(rows, (values, created_ms))
        connection.commit()

    def counters(self, key: Key) -> Counters:
        others = f"SELECT 1 FROM pg_stat_activity WHERE application_name = '{self.schema}' AND pid <> pg_backend_pid()"
        counted = (
            "SELECT pg_current_wal_insert_lsn() - '0/0', heap_blks_hit + idx_blks_hit, heap_blks_read + idx_blks_read "
            f"FROM pg_statio_user_tables WHERE schemaname = '{self.schema}' AND relname = '{key.table}'"
        )
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            deadline = time.monotonic() + QUIET_S
            while connection.exec_driver_sql(others).first() and time.monotonic() < deadline:
                time.sleep(0.02)  # a backend reports as it ends
            [log_bytes, hits, misses] = connection.exec_driver_sql(counted).one()
        return Counters(int(log_bytes), int(hits), int(misses))

    def sizes(self, key: Key) -> tuple[int, int]:
        [(table, index)] = self.query(
            f"SELECT pg_table_size('{self.place(key)}'), pg_indexes_size('{self.place(key)}')"
        )
        return table, index

    def checkpoint(self) -> str:
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            try:
                connection.exec_driver_sql("CHECKPOINT")
            except sa.exc.DBAPIError as error:
                return f"no checkpoint before each part: {str(error.orig).partition(chr(10))[0]}"
        return BEFORE_EACH_PART


class MySQL(Database):
    """MariaDB, or MySQL, by PyMySQL: one `INSERT` with a list of rows for each batch."""

    name = "mariadb"
    log = "redo log"
    settings = (
        "innodb_buffer_pool_size", "innodb_log_file_size", "innodb_flush_log_at_trx_commit", "innodb_flush_method",
        "innodb_doublewrite", "innodb_page_size", "log_bin",
    )  # fmt: skip
    analyzes = "ANALYZE TABLE {}"

    def connected(self, url: URL) -> sa.Engine:
        dialect = url.drivername.partition("+")[0]
        return sa.create_engine(url.set(drivername=f"{dialect}+pymysql"), pool_size=CONNECTIONS)

    def version(self) -> str:
        said = str(self.query("SELECT VERSION()")[0][0])
        return f"{'MariaDB' if 'mariadb' in said.lower() else 'MySQL'} {said.partition('-')[0]}"

    def show(self, setting: str) -> str:
        found = self.query(f"SHOW GLOBAL VARIABLES LIKE '{setting}'")
        return str(found[0][1]) if found else "–"

    def insert(self, connection: Any, key: Key, values: Sequence[Any] | None, count: int, created_ms: int) -> None:
        cursor = connection.cursor()
        if values is None:
            cursor.executemany(f"INSERT INTO {self.place(key)} (created) VALUES (%s)", [(created_ms,)] * count)
        else:
            rows = [(value, created_ms) for value in values]
            cursor.executemany(f"INSERT INTO {self.place(key)} (id, created) VALUES (%s, %s)", rows)
        connection.commit()

    def counters(self, _: Key) -> Counters:
        if self.engine.dialect.name == "mysql":
            time.sleep(EXPORTED_S)
        status = {name.lower(): value for name, value in self.query("SHOW GLOBAL STATUS LIKE 'Innodb%'")}
        names = ("innodb_lsn_current", "innodb_redo_log_current_lsn", "innodb_os_log_written")
        log_bytes = int(next(status[name] for name in names if name in status))
        misses = int(status["innodb_buffer_pool_reads"])
        return Counters(log_bytes, int(status["innodb_buffer_pool_read_requests"]) - misses, misses)

    def sizes(self, key: Key) -> tuple[int, int]:
        [(table, index)] = self.query(
            "SELECT data_length, index_length FROM information_schema.tables "
            f"WHERE table_schema = '{self.schema}' AND table_name = '{key.table}'"
        )
        return int(table), int(index)

    def checkpoint(self) -> str:
        return "checkpoints as the server decides"


class SQLite(Database):
    """SQLite in a file of its own. It has one writer at a time, so all writers commit through one connection in turn.

    Each mints and converts its batch while another commits.
    """

    name = "sqlite"
    log = "WAL"
    settings = ("page_size", "cache_size", "journal_mode", "synchronous")
    cache_kib: ClassVar[int] = 32 * 1024
    log_limit_bytes: ClassVar[int] = 64 << 20
    """The size of the log at which a writer checkpoints. The log begins anew then, so its bytes are added up."""

    def __init__(self, url: URL) -> None:
        if not url.database or url.database.startswith((":memory:", "file:")) or Path(url.database).exists():
            raise SystemExit(f"{url.database or 'a database in memory'}: name a file that does not exist yet")
        self.file = Path(url.database)
        self.turn = Lock()
        self.logged = 0
        super().__init__(url)
        self.metadata.schema = None

    def connected(self, url: URL) -> sa.Engine:
        engine = sa.create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})

        @sa.event.listens_for(engine, "connect")
        def configure(connection: sqlite3.Connection, _: object) -> None:
            connection.executescript(
                f"PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA wal_autocheckpoint = 0; "
                f"PRAGMA cache_size = -{self.cache_kib};"
            )

        return engine

    def create(self) -> None:
        """Do nothing: the first connection creates the file."""

    def drop(self) -> None:
        """Remove the file."""
        self.engine.dispose()
        for end in ("", "-wal", "-shm"):
            Path(f"{self.file}{end}").unlink(missing_ok=True)

    def place(self, key: Key) -> str:
        return key.table

    def version(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def show(self, setting: str) -> str:
        return str(self.query(f"PRAGMA {setting}")[0][0])

    def insert(self, connection: Any, key: Key, values: Sequence[Any] | None, count: int, created_ms: int) -> None:
        rows: Sequence[tuple[Any, ...]]
        if values is None:
            statement, rows = f"INSERT INTO {key.table} (created) VALUES (?)", [(created_ms,)] * count
        else:
            statement = f"INSERT INTO {key.table} (id, created) VALUES (?, ?)"
            rows = [(value, created_ms) for value in values]
        with self.turn:
            connection.cursor().executemany(statement, rows)
            connection.commit()
            if self._log_bytes() > self.log_limit_bytes:
                self._begin_log(connection.cursor().execute)

    def _log_bytes(self) -> int:
        with suppress(FileNotFoundError):
            return Path(f"{self.file}-wal").stat().st_size
        return 0

    def _begin_log(self, run: Callable[[str], Any]) -> None:
        self.logged += self._log_bytes()
        run("PRAGMA wal_checkpoint(TRUNCATE)")

    def checkpoint(self) -> str:
        self._begin_log(self.query)
        return BEFORE_EACH_PART

    def counters(self, _: Key) -> Counters:
        return Counters(self.logged + self._log_bytes(), None, None)

    def sizes(self, key: Key) -> tuple[int, int]:
        trees = self.query(f"SELECT type, name FROM sqlite_schema WHERE tbl_name = '{key.table}'")
        sizes = {"table": 0, "index": 0}
        for kind, name in trees:
            [(size,)] = self.query(f"SELECT SUM(pgsize) FROM dbstat WHERE name = '{name}' AND aggregate = TRUE")
            sizes[kind] += size
        return sizes["table"], sizes["index"]


def database_of(url: str) -> Database:
    """Return the database of a URL, as SQLAlchemy writes it.

    :raises SystemExit: if it is none of the three.
    """
    try:
        parsed = make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise SystemExit(f"the URL is not one such as postgresql://me@localhost/test: {error}") from None
    kinds: dict[str, type[Database]] = {
        "postgresql": PostgreSQL, "postgres": PostgreSQL, "mariadb": MySQL, "mysql": MySQL, "sqlite": SQLite,
    }  # fmt: skip
    scheme = parsed.drivername.partition("+")[0]
    if scheme not in kinds:
        raise SystemExit(f"the URL must begin with {', '.join(kinds)}, not {scheme!r}")
    return kinds[scheme](parsed)
