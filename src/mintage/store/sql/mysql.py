"""``mysql:`` and ``mariadb:`` keep their records in MySQL or MariaDB. They use PyMySQL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mintage.errors import ConfigError, StoreError
from mintage.installation import install_line
from mintage.protocol.options import CERTIFICATE, connections, option, read_options, timeout
from mintage.protocol.records import name_of
from mintage.store.ledger import ConflictError
from mintage.store.sql import base
from mintage.store.sql.base import Database, MissingTableError
from mintage.store.sql.statements import KINDS

if TYPE_CHECKING:
    from mintage.protocol.url import StoreUrl
    from mintage.store.sql.pool import DriverTransaction

_SSL_MODES: Final = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
_BOUNDED: Final = "in seconds; never more than `timeout_ms`"
_MOST_S: Final = 31_536_000

IDLE_S: Final = 15
"""The seconds after which the server ends an idle connection: fewer than remain of a lease when it is due."""
APART: Final = {
    "MariaDB": "pc.ignore_sb or pc.ignore_quorum is on: a node that is cut off from its cluster accepts writes, so IDs "
    "and integers can repeat; set both to false",
    "MySQL": "the group may have several primaries, and the account cannot see that this server is in it: so each one "
    "counts as a server that took over; GRANT SELECT ON performance_schema.replication_group_members",
}
"""The warnings about a server of a cluster that may be apart from the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MySqlOptions:
    """The options of a store in MySQL or MariaDB."""

    timeout_ms: int = timeout()
    connections: str = connections()
    volatile: bool = option(False, "Whether to use a server that loses transactions when it crashes")
    unix_socket: str | None = option(None, "The path of the server's socket, instead of a host")
    ssl_mode: str | None = option(None, f"{', '.join(_SSL_MODES)}; PREFERRED by default, VERIFY_IDENTITY with `ssl_ca`")
    ssl_ca: str | None = option(None, "The file of the authority that signed the server's certificate")
    ssl_cert: str | None = option(None, CERTIFICATE)
    ssl_key: str | None = option(None, "The file of the certificate's private key")
    ssl_key_password: str | None = option(None, "The password of that file")
    charset: str = option("utf8mb4", "`utf8mb4` alone, or its older names")
    connect_timeout: int | None = option(None, f"To connect, {_BOUNDED}", least=1, most=_MOST_S)
    read_timeout: int | None = option(None, f"To wait for an answer, {_BOUNDED}", least=1, most=_MOST_S)
    write_timeout: int | None = option(None, f"To send, {_BOUNDED}", least=1, most=_MOST_S)
    bind_address: str | None = option(None, "The own address of the connections")
    program_name: str | None = option(None, "The name of the program that the server shows")


class MySqlStore(Database):
    """A store in MySQL or MariaDB: ``mysql://user:password@host:3306/database``, or ``mariadb://…``.

    Options: :class:`MySqlOptions`; each may be written with ``-`` for ``_``. With ``ssl_ca``, the client encrypts the
    connection and checks the certificate and its host name.
    """

    dialect = "mysql"
    driver = "pymysql"
    _REFUSED: ClassVar = {
        "autocommit": "mintage commits its transactions",
        "init_command": "mintage sets up its sessions",
        "sql_mode": "mintage uses the strict mode",
        "isolation_level": "mintage uses READ COMMITTED",
        "local_infile": "mintage sends no file",
    }
    forgets = "innodb_flush_log_at_trx_commit is 0"
    repeated = "1060"  # the column exists
    unseen = "1142"
    advice: ClassVar = {
        "1040": base.CONNECTIONS_ADVICE,
        "1203": base.CONNECTIONS_ADVICE,
        "1226": base.CONNECTIONS_ADVICE,
        "1044": "check the account's rights on the database",
        "1045": "check user and password",
        "1698": "check user and password",
        "2026": "check ssl_ca, and that the certificate names this host",
        "1049": "create the database",
        "1142": base.RIGHTS_ADVICE,
        "1143": base.RIGHTS_ADVICE,
        "1290": base.PRIMARY_ADVICE,
        "1792": base.PRIMARY_ADVICE,
        "1836": base.PRIMARY_ADVICE,
    }

    def __init__(self, url: StoreUrl) -> None:
        url = replace(url, options={name.replace("-", "_"): text for name, text in url.options.items()})
        options = read_options(url, MySqlOptions, refused=self._REFUSED)
        super().__init__(url, options.timeout_ms, connections=options.connections, is_volatile=options.volatile)
        default = "PREFERRED" if options.ssl_ca is None else "VERIFY_IDENTITY"
        mode = (default if options.ssl_mode is None else options.ssl_mode).upper()
        if mode not in _SSL_MODES:
            raise ConfigError(
                f"option ssl_mode of the store's URL must be one of {', '.join(_SSL_MODES)}", code="config.store"
            )
        if mode.startswith("VERIFY") and options.ssl_ca is None:
            raise ConfigError(
                f"option ssl_mode={mode} of the store's URL needs ssl_ca, the file of the authority",
                code="config.store",
            )
        if options.charset not in {"utf8", "utf8mb3", "utf8mb4"}:
            raise ConfigError("option charset of the store's URL: mintage sends utf8mb4 alone", code="config.store")
        self._ssl_mode = mode
        self._options = options

    def _tls(self) -> dict[str, Any]:
        """Return the arguments for TLS."""
        options = self.url.options
        if self._ssl_mode == "DISABLED":
            return {"ssl_disabled": True}
        files: dict[str, Any] = {
            name: options[name] for name in ("ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password") if name in options
        }
        if "ssl_ca" in files:
            return {**files, "ssl_verify_cert": True, "ssl_verify_identity": self._ssl_mode != "VERIFY_CA"}
        if files:
            return {**files, "ssl_verify_cert": False}
        return {"ssl": {"verify_mode": False, "check_hostname": False}} if self._ssl_mode == "REQUIRED" else {}

    def connect(self) -> Any:
        # A client that stops within a transaction must not block the others: MariaDB ends the transaction, and MySQL
        # the connection, before clients that wait for the same record lose their leases. The strict mode makes the
        # server refuse values that do not fit a column; its default may cut them. The safe mode would refuse a DELETE
        # that joins a subquery.
        session = (
            f"SET SESSION innodb_lock_wait_timeout = {self._seconds}, lock_wait_timeout = {self._seconds}, "
            "sql_safe_updates = OFF, "
            f"sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', wait_timeout = {max(IDLE_S, self._seconds)} "
            f"/*M!100300 , idle_transaction_timeout = {self._seconds} */"
        )
        options = self.url.options
        named = {name: options[name] for name in ("unix_socket", "bind_address", "program_name") if name in options}
        try:
            connection = self._driver.connect(
                host=self.url.host,
                port=self.url.port(3306),
                user=self.url.user,
                password=self.url.password or "",
                database=self.url.path,
                charset="utf8mb4",
                connect_timeout=self._bounded(self._options.connect_timeout),
                read_timeout=self._bounded(self._options.read_timeout),
                write_timeout=self._bounded(self._options.write_timeout),
                init_command=session,
                **named,
                **self._tls(),
            )
        except OSError as error:
            # PyMySQL's own errors are not OSErrors: this one concerns the file.
            raise StoreError(
                f"{self.url}: option ssl_ca, ssl_cert or ssl_key: {error}", code="store.refused"
            ) from error
        except RuntimeError as error:  # PyMySQL needs another library to encrypt a password without TLS
            raise ConfigError(f"{self.url}: {error}: {install_line('mysql')}", code="config.driver") from error
        connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        with connection.cursor() as cursor:
            self._join(cursor)
        connection.rollback()
        return connection

    def _join(self, cursor: Any) -> None:
        """Set up the session for a cluster in which several servers accept writes, if the server is in one."""
        cursor.execute(self._sql["cluster"])
        [(cluster,)] = cursor.fetchall()
        if not cluster:
            return
        try:
            cursor.execute(self._sql["member"])
        except self._driver.Error as error:
            if self.code(error) != self.unseen:
                raise
        else:
            if not cursor.fetchall():
                raise StoreError(
                    f"{self.url}: the server is outside its group {cluster}: wait until it is a member, or empty "
                    "group_replication_group_name",
                    code="store.unavailable",
                )
            cursor.execute(self._sql["join"], {"cluster": cluster})

    def _bounded(self, timeout_s: int | None) -> float:
        """Return a timeout in seconds, at most that of a verb."""
        return min(timeout_s or self._seconds, self._timeout_ms / 1000)

    def is_usable(self, connection: Any) -> bool:
        return bool(connection.open)

    def code(self, error: Any) -> str:
        number = error.args[0] if error.args else 0
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return "2026"
        if number == 1180 and "error 149" in str(error):
            return "1213"  # a deadlock that COMMIT found, as when another member of the group wrote the row
        # Codes from 2000 to 2999 are the driver's, for errors of connections.
        is_servers = isinstance(number, int) and number != 0 and not 2000 <= number < 3000
        return str(number) if is_servers else ""

    def kind(self, code: str) -> type[Exception]:
        # A deadlock, a duplicate key, a row that changed since it was read, a row that another server of a group wrote.
        if code in {"1213", "1062", "1020", "3101"}:
            return ConflictError
        if code == "1146":
            return MissingTableError
        # A lock timeout, too many connections, a server outside its cluster, a shutdown, an abort, a kill, a timeout.
        away = {"1205", "1040", "1203", "1226", "1047", "1053", "1152", "1317", "1927", "4031", "1969", "3024"}
        away |= {"3032", "3100", "3796", "3797"}  # a server that left its group, or joins it
        return TimeoutError if code in away else StoreError

    def lacks_transactions(self, identity: str) -> bool:
        """Return True if a table has another engine: its name is in the id, behind the time of the table."""
        return any(letter.isalpha() for letter in identity.rpartition(":")[2])

    def machine(self, identity: str) -> str:
        """Return the part of a server's id before the times of the tables."""
        return identity.rpartition(":")[0]

    def owner(self, transaction: DriverTransaction) -> str | None:
        """Return the id of the server; ``None`` if it has no tables, or if these are an older copy."""
        if self._reached[0]:
            return None  # This process wrote on newer tables: the rows must be those of another server.
        try:
            [row] = transaction.rows(self._sql["server"], self._limits)
        except self._driver.Error as error:
            if self.kind(self.code(error)) is not MissingTableError:
                raise
            return None
        return str(row[0])

    def take_over(self, transaction: DriverTransaction, owner: str | None) -> str | None:
        """Give the server's present id to the rows of an owner, as ALTER TABLE changed it; return that id."""
        if owner is None:
            return None
        [row] = transaction.rows(self._sql["server"], self._limits)
        for kind in KINDS if row[0] != owner else ():
            transaction.rows(self._sql[f"take_over_{name_of(kind)}"], {"before": owner, "after": row[0]})
        return str(row[0])

    def about(self, row: Any) -> tuple[str, list[str]]:
        version, flush, binary_log, sync, others, is_apart = row
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
            warnings.append(base.ENGINE_ADVICE)
        number, _, _ = version.partition("-")
        product = "MariaDB" if "mariadb" in version.lower() else "MySQL"
        if is_apart:
            warnings.append(APART[product])
        return f"{product} {number}", warnings
