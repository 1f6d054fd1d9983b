"""The base of the stores in a database server: :mod:`mintage.store.sql.mysql` and :mod:`mintage.store.sql.postgresql`.

The statements are files: see :mod:`mintage.store.sql.statements`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from mintage._core import monotonic_s
from mintage.errors import ConfigError, MintError, StoreError
from mintage.protocol.records import Past, R, Record, key_of, name_of
from mintage.rules import GrantRecord, NodeRecord
from mintage.store import LOST_HISTORY, Description, load_driver, new_token
from mintage.store.ledger import ConflictError, Ledger, ServerIdentity
from mintage.store.per_process import PerProcess
from mintage.store.sql.pool import BusyError, Connections, DriverTransaction
from mintage.store.sql.statements import COUNTED, OLDER, PAST, RowRecords, driver_statements, migrations

if TYPE_CHECKING:
    from mintage.protocol.url import StoreUrl

    T = TypeVar("T")

CONNECTIONS: Final = 4
"""The most connections of a process. More threads wait for their turn."""
WITHOUT_TABLES: Final = frozenset({"describe", "has_history"})
"""The statements of reading verbs that use no table of mintage."""
REMEMBERS: Final = 2
"""The first version of the schema whose view stays when the tables are dropped."""


RIGHTS_ADVICE: Final = (
    "the account needs SELECT, INSERT and UPDATE on the tables of mintage, and DELETE on mintage_grant and "
    "mintage_run; to make them or bring them up to date, connect once with an account that may create tables"
)
RESTORE_ADVICE: Final = (
    "restore it from a backup; or to start again, drop all tables of mintage and the view mintage_existed"
)
HISTORY_ADVICE: Final = {
    "mintage_grant": "the next grant of a node number creates it again, and the history begins anew",
    "mintage_run": "the next change of who reserves creates it again, and the history begins anew",
}
ENGINE_ADVICE: Final = (
    "tables of mintage are not InnoDB, so nothing is atomic: ALTER TABLE each of them to ENGINE = InnoDB"
)
PRIMARY_ADVICE: Final = "name the primary in the URL"
CONNECTIONS_ADVICE: Final = (
    "the server has no connection left: add connections=close to the URL of every process, put PgBouncer or another "
    "pooler before the server, let processes use mintage serve, or allow more connections"
)
FULL_MS: Final = 10_000
"""The longest time, in milliseconds, to leave a server without a free connection alone: its refusals cost it, too."""
NO_RUNS_S: Final = 60
"""The time in seconds for which a process keeps no past runs after the server refused one."""


class MissingTableError(Exception):
    """The schema is missing or has an older version."""


class MissingRunsError(MissingTableError):
    """The table of past runs is missing, which no reservation needs."""


class Database(Ledger):
    """A store in a database.

    The first verb that writes creates the tables if the account may do so. Afterwards the account needs SELECT, INSERT
    and UPDATE on them, and DELETE on those of past grants and runs.
    """

    promise: ClassVar[str] = "shared"
    dialect: ClassVar[str]
    """The folder of its statements, which is also the extra that installs the driver."""
    driver: ClassVar[str]
    """The driver's module, of :pep:`249`."""
    forgets: ClassVar[str] = ""
    """The setting that makes the server lose acknowledged writes; empty if it has none."""
    advice: ClassVar[Mapping[str, str]]
    """The remedy for an error of the server, by the first characters of its code."""
    repeated: ClassVar[str] = ""
    """The code of a migration step that was done before, in databases whose schema statements commit at once."""
    unseen: ClassVar[str] = ""
    """The code of the refusal to create a view, in databases that have a right for views alone."""
    no_runs_until_s = 0.0
    """The end of a pause after the server refused a past run: reservations go on without their history."""
    schema: str = ""
    """The prefix of a table's name; empty in a database without schemas, and before the schema is found."""

    def __init__(self, url: StoreUrl, timeout_ms: int, *, connections: str = "keep", is_volatile: bool = False) -> None:
        if len(url.hosts) > 1 or not url.path or "," in (url.socket or ""):
            raise ConfigError(
                f"a store of kind {url.scheme} needs one host and a database: {url.scheme}://user:password@host/database",
                code="config.store",
            )
        if url.hosts and url.socket:
            raise ConfigError(f"{url} names the server twice: by its host, and by an option", code="config.store")
        if connections not in {"keep", "close"}:
            raise ConfigError("option connections of the store's URL must be keep or close", code="config.store")
        self.url = url
        self._keeps_connections = connections == "keep"
        self._timeout_ms = timeout_ms
        self._is_volatile = is_volatile
        self._seconds = math.ceil(self._timeout_ms / 1000)
        self._driver = load_driver(self.driver, self.dialect)
        self._read_statements()
        self._connections = PerProcess(self._make_connections, Connections.close)
        self._reached: tuple[str, int] = ("", 0)
        """The id of the server that this process last wrote on, and the least progress that it has since."""

    # Row locks decide the order of transactions. A statement must see the writes that were committed while it waited
    # for a lock: with one snapshot for the whole transaction, every transaction that waited would fail.
    @abstractmethod
    def connect(self) -> Any:
        """Return a new connection of the driver, whose transactions have the isolation level READ COMMITTED."""

    @abstractmethod
    def is_usable(self, connection: Any) -> bool:
        """Return False if the server or the network has closed a connection."""

    @abstractmethod
    def code(self, error: Any) -> str:
        """Return the server's code for an error of the driver; empty if the server did not answer."""

    @abstractmethod
    def kind(self, code: str) -> type[Exception]:
        """Return the exception of a code; :exc:`StoreError` if the server refuses the statement."""

    @abstractmethod
    def about(self, row: Any) -> tuple[str, list[str]]:
        """Return product and version, and warnings, from the row of the statement ``describe``."""

    @property
    def driver_error(self) -> type[Exception]:
        """The base of the driver's exceptions."""
        error: type[Exception] = self._driver.Error
        return error

    def find_schema(self) -> None:
        """Find the schema of the tables, in databases that have schemas, if an earlier call has not found it."""

    def make_schema(self, transaction: DriverTransaction) -> None:
        """Create the schema that the tables belong to, if it is missing."""

    def lacks_transactions(self, identity: str) -> bool:  # noqa: ARG002
        """Return True if the server with this id has tables without transactions, in databases that have such."""
        return False

    def owner(self, transaction: DriverTransaction) -> str | None:  # noqa: ARG002
        """Return the id of the rows that an upgrade takes over; ``None`` if it leaves them as they are."""
        return None

    def take_over(self, transaction: DriverTransaction, owner: str | None) -> str | None:  # noqa: ARG002
        """Give the server's present id to the rows of an owner, after a step of an upgrade; return that id."""
        return owner

    def machine(self, identity: str) -> str:
        """Return the part of a server's id that an upgrade of its tables leaves as it is."""
        return identity

    def _read_statements(self) -> None:
        self._migrations = migrations(self.dialect, self.schema)
        self._sql = driver_statements(self.dialect, self.schema)

    def bound(self, connection: Any, deadline: float) -> None:
        """Set the deadline of a connection whose driver has no timeouts."""

    def _make_connections(self) -> Connections:
        return Connections(
            self.connect,
            self.is_usable,
            (self._driver.Error, MintError, ConflictError, MissingTableError),
            limit=CONNECTIONS,
            wait_s=self._timeout_ms / 1000,
        )

    def _run(self, verb: Callable[[Any], T], begin: Callable[[], Any] | None = None) -> T:
        try:
            return super()._run(verb, begin)
        finally:
            if not self._keeps_connections:
                self._connections.get().close_idle()

    @contextmanager
    def transaction(self, first: str) -> Iterator[tuple[DriverTransaction, Sequence[Any], float]]:
        """Yield a transaction, the rows of its first statement, and its deadline by the monotonic clock; then commit.

        :raises ConflictError: another transaction conflicted.
        :raises MissingTableError: a table is missing.
        :raises StoreError: ``store.unavailable``, ``store.refused``.
        """
        deadline = monotonic_s() + self._timeout_ms / 1000
        try:
            transaction, rows = self._open(first, deadline)
            with transaction:
                yield transaction, rows, deadline
                transaction.commit()
        except BusyError as error:
            raise StoreError(
                f"{self.url}: all {CONNECTIONS} connections of this process were busy for {self._timeout_ms} ms: "
                "try again",
                code="store.unavailable",
            ) from error
        except UnicodeError as error:
            raise StoreError(f"{self.url}: {error}", code="store.refused") from error
        except self._driver.Error as error:
            raise self._translate(error) from error

    @property
    def _limits(self) -> dict[str, object]:
        return {"timeout": str(self._timeout_ms), "seconds": self._seconds}

    def _open(self, first: str, deadline: float) -> tuple[DriverTransaction, Sequence[Any]]:
        for is_last in (False, True):
            with ExitStack() as failed:
                transaction = failed.enter_context(self._connections.get().begin())
                try:
                    self.bound(transaction.connection, deadline)
                    rows = transaction.rows(first, self._limits)
                except self._driver.Error:
                    # The server may have closed a kept connection long ago. No statement ran on it: a retry is safe.
                    if not transaction.is_lost or is_last or monotonic_s() > deadline:
                        raise
                else:
                    failed.pop_all()
                    return transaction, rows
        raise AssertionError

    def kind_of(self, error: Any) -> type[Exception]:
        """Return the exception for an error of the driver."""
        code = self.code(error)
        return self.kind(code) if code else TimeoutError

    def _translate(self, reason: Any) -> Exception:
        code, kind = self.code(reason), self.kind_of(reason)
        advice = next((advice for start, advice in self.advice.items() if code.startswith(start)), "")
        # The first line says what is wrong; the next ones may show the row, with its token.
        message = str(reason.args[-1] if reason.args else "").partition("\n")[0] or type(reason).__name__
        reason.args = (*reason.args[:-1], message)
        if kind is TimeoutError:
            hint = advice or "check that the server runs, try again"
            wait_ms = FULL_MS if advice is CONNECTIONS_ADVICE else None
            return StoreError(f"{self.url}: {message}: {hint}", code="store.unavailable", retry_after_ms=wait_ms)
        if kind is not StoreError:
            return kind(message)
        hint = advice or "see the server's log"
        refused = StoreError(f"{self.url}: {message}: {hint}", code="store.refused")
        # A replica may become the primary soon.
        refused.is_lasting = advice not in {"", PRIMARY_ADVICE}
        return refused

    @contextmanager
    def _begin(self) -> Iterator[Records]:
        try:
            with self._records(writes=True) as records:
                yield records
        except MissingTableError as missing:
            try:
                self._migrate()
                self.no_runs_until_s = 0.0
            except StoreError:
                if not isinstance(missing, MissingRunsError):
                    raise
            raise ConflictError from None

    @contextmanager
    def _look(self) -> Iterator[Records]:
        try:
            with ExitStack() as stack:
                try:
                    records = stack.enter_context(self._records(writes=False))
                except MissingTableError:
                    records = stack.enter_context(self._no_records())
                yield records
        except MissingTableError as error:
            advice = next((text for table, text in HISTORY_ADVICE.items() if table in str(error)), RESTORE_ADVICE)
            raise StoreError(f"{self.url}: {error}: {advice}", code="store.refused") from error.__cause__

    @contextmanager
    def _records(self, *, writes: bool) -> Iterator[Records]:
        self.find_schema()
        newest = self._migrations[-1][0]
        known, least = self._reached  # read before the server answers, as other threads raise it
        with self.transaction(self._sql["server"]) as (transaction, [row], deadline):
            identity, now_ms, is_read_only, version, forgets, progress = row[:6]
            if version > newest:
                raise StoreError(
                    f"{self.url} has schema version {version}; this mintage knows {newest}: upgrade mintage",
                    code="store.schema",
                )
            self._check_server(is_read_only=is_read_only, forgets=forgets)
            if version < newest and writes:
                raise MissingTableError
            if writes and self.lacks_transactions(identity):
                raise ConfigError(f"{self.url} can lose acknowledged writes: {ENGINE_ADVICE}", code="config.volatile")
            is_known = self.machine(identity) == self.machine(known)
            if writes and is_known and progress is not None and progress < least:
                # An older copy of its disk runs under the same id. From now on it has another id for all processes.
                transaction.rows(self._sql["renew"], {"life": new_token()})
                transaction.commit()
                self._reached = ("", 0)
                raise ConflictError
            sql = self._sql if version == newest else driver_statements(self.dialect, self.schema, version)
            records = Records(self, transaction, sql, ServerIdentity(identity, now_ms), deadline)
            records.progress, records.is_old = progress, version < newest
            yield records
        if records.reached is not None:
            self._reached = (identity, max(records.reached, least if identity == known else 0))

    @contextmanager
    def _no_records(self) -> Iterator[Records]:
        """Yield no records, as all tables are missing.

        :raises StoreError: ``store.refused``: some are missing.
        """
        with self.transaction(self._sql["missing"]) as (transaction, [row], deadline):
            identity, now_ms, is_read_only, tables, forgets = row[:5]
            self._check_server(is_read_only=is_read_only, forgets=forgets)
            if tables == "all":
                raise ConflictError  # another process creates them
            if tables != "none":
                raise StoreError(f"{self.url}: a table of mintage is missing: {RESTORE_ADVICE}", code="store.refused")
            yield Records(self, transaction, self._sql, ServerIdentity(identity, now_ms), deadline, is_new=True)

    def _check_server(self, *, is_read_only: bool, forgets: bool) -> None:
        if is_read_only:
            raise StoreError(
                f"{self.url}: the server is a replica, or set to read only: name the primary in the URL",
                code="store.refused",
            )
        if forgets and not self._is_volatile:
            raise ConfigError(
                f"{self.url} can lose acknowledged writes: {self.forgets}; correct that, or add volatile=1 to "
                "the URL if repeated IDs are acceptable",
                code="config.volatile",
            )

    def _migrate(self) -> None:
        """Upgrade the schema to the newest version. A lock lets one process at a time do so.

        :raises StoreError: ``store.refused``: a table is missing while others exist.
        """
        try:
            with self.transaction(self._sql["lock_schema"]) as (transaction, [row], _):
                # The lock may last as long as the connection, so no other transaction may have it.
                transaction.detach()
                if row[0] != 1:
                    raise StoreError(
                        f"{self.url}: another process is creating the tables: try again", code="store.unavailable"
                    )
                self._make_tables(transaction)
                # These statements fail if a table is still missing.
                transaction.rows(self._sql["server"], self._limits)
                transaction.rows(self._sql["may_add_names"], {})
        except MissingTableError as error:
            raise StoreError(f"{self.url}: {error}: {RESTORE_ADVICE}", code="store.refused") from error.__cause__

    def _make_tables(self, transaction: DriverTransaction) -> None:
        self.make_schema(transaction)
        owner = self.owner(transaction)
        transaction.rows(self._sql["create_schema"], {})
        for statement in ("create_grant", "create_grant_index", "create_run"):
            if statement in self._sql:
                transaction.rows(self._sql[statement])
        [(version,)] = transaction.rows(self._sql["schema"], {})
        [(existed,)] = transaction.rows(self._sql["has_history"], {})
        for number, steps in self._migrations:
            if number > version:
                for step in steps:
                    try:
                        transaction.rows(step)
                    except self._driver.Error as error:
                        if self.code(error) != self.repeated:
                            raise
                # In the transaction of the version's number: an upgrade that ends between them would lose the rows.
                owner = self.take_over(transaction, owner)
                transaction.rows(self._sql["insert_schema"], {"version": number})
        if existed and version < REMEMBERS:
            transaction.rows(self._sql["lose_history"], {})
        elif not existed:
            # This is the last step: tables whose creation was interrupted have lost nothing.
            try:
                transaction.rows(self._sql["keep_history"], {})
            except self._driver.Error as error:
                if self.code(error) != self.unseen:
                    raise

    def _has_lost(self, t: Any, kind: type[Record], name: str) -> bool:
        [(lost,)] = t.rows(f"has_lost_{name_of(kind)}", name=name)
        return bool(lost)

    def describe(self) -> Description:
        def verb(t: Any) -> Description:
            [row] = t.rows("describe")
            product, warnings = self.about(row)
            server = t.server()
            for statement in () if t.is_old or self.lacks_transactions(server.identity) else self._sql:
                if statement.startswith("may_") and not statement.endswith(tuple(map(name_of, PAST))):
                    t.rows(statement)
            if self._is_volatile:
                warnings.append("volatile=1: integers may repeat once this server has crashed")
            warnings += self._warnings(t)
            return self._describe(server, product, warnings, is_new=t.is_new)

        described = self._read(verb)
        warnings = (each for kind in PAST for each in self._history_warnings(name_of(kind)))
        return replace(described, warnings=(*described.warnings, *warnings))

    def _history_warnings(self, kind: str) -> Iterator[str]:
        # In a transaction of its own, as an error ends it in PostgreSQL. Sequences need no history.
        def verb(t: Any) -> None:
            for right in () if t.is_old else ("may_keep", "may_remove"):
                t.rows(f"{right}_{kind}")

        try:
            self._read(verb)
        except StoreError as error:
            if error.code != "store.refused":
                raise
            yield f"the table of past {kind}s cannot be used: {error}"

    def _warnings(self, t: Records) -> Iterator[str]:
        if t.is_old:
            yield OLDER
            return
        [(existed,)] = t.rows("has_history")
        names = [name_of(kind) for kind in COUNTED]
        gone = [f"{name}s" for name in names if (existed if t.is_new else t.rows(f"has_lost_any_{name}")[0][0])]
        if gone:
            yield (
                f"{LOST_HISTORY}: records of {' and '.join(gone)} are gone, as tables were dropped, emptied or "
                "replaced by a dump. Such a pool begins in quarantine, such a namespace is refused. Create each "
                "namespace that was in use above all its integers (mintage namespaces create NAME --start N). If this "
                f"warning stays, then run: {' '.join(self._sql['accept_history'].split())}"
            )
        if not existed and not t.is_new:
            made = " ".join(self._sql["keep_history"].partition("\n")[2].split())
            yield (
                "the view mintage_existed is missing, so tables that are dropped and created again count as the first, "
                f"and integers repeat: run {made}"
            )

    def close(self) -> None:
        self._connections.close()


class Records(RowRecords):
    """The records in one transaction.

    The first write of a missing record is an INSERT, so if two transactions found no record, one of them fails.
    """

    def __init__(
        self,
        store: Database,
        transaction: DriverTransaction,
        sql: Mapping[str, str],
        server: ServerIdentity,
        deadline: float,
        *,
        is_new: bool = False,
    ) -> None:
        super().__init__(store.url, sql)
        self._store = store
        self._transaction = transaction
        self._server = server
        self._deadline = deadline
        self._locked: set[tuple[object, ...]] = set()
        self.is_new = is_new
        """True if there are no tables yet: statements on tables find nothing."""
        self.progress: int | None = None
        """A number that never goes back on this server; ``None`` if it has none."""
        self.reached: int | None = None
        """The least progress of the server after the commit; ``None`` if nothing was written."""

    def rows(self, statement: str, /, **values: object) -> Sequence[Any]:
        if monotonic_s() > self._deadline:
            raise StoreError(
                f"{self._url}: the server takes too long to answer: try again, or raise timeout_ms",
                code="store.unavailable",
            )
        if self.is_new and statement not in WITHOUT_TABLES:
            return ()
        return self._transaction.rows(self._sql[statement], values)

    def server(self) -> ServerIdentity:
        return self._server

    def get(self, kind: type[R], *key: str | int) -> R | None:
        found = self._find("get", kind, key)
        if found is not None:
            self._locked.add((kind, *key))
        return found

    def get_unlocked(self, kind: type[R], *key: str | int) -> R | None:
        return self._find("get_unlocked", kind, key)

    def put(self, record: Record) -> None:
        kind = type(record)
        key = (kind, *key_of(record))
        is_known = key in self._locked
        written = self.rows(f"{'update' if is_known else 'insert'}_{name_of(kind)}", **asdict(record))
        self.reached = written[0][0] + 1 if written else self.progress
        if not is_known and isinstance(record, COUNTED):
            for statement in ("count", "keep_name"):
                self.rows(f"{statement}_{name_of(kind)}", name=record.name)
        self._locked.add(key)

    def keep(self, record: Past, ended_ms: int) -> None:
        """Write a past grant or run; if the server refuses a run, the verb starts again without it."""
        if isinstance(record, GrantRecord):
            super().keep(record, ended_ms)
        elif monotonic_s() >= self._store.no_runs_until_s:
            try:
                super().keep(record, ended_ms)
            except self._store.driver_error as error:
                kind = self._store.kind_of(error)
                if kind not in {MissingTableError, StoreError}:
                    raise
                self._store.no_runs_until_s = monotonic_s() + NO_RUNS_S
                raise (MissingRunsError if kind is MissingTableError else ConflictError) from error

    def oldest(self, pool: str, nodes: range) -> NodeRecord | None:
        found = super().oldest(pool, nodes)
        # Its holder does not lock the pool, so the record may not be the oldest when this transaction has locked it.
        if found is not None and self.get(NodeRecord, pool, found.node) != found:
            raise ConflictError
        return found
