"""``mysql:`` and ``mariadb:`` keep their records in MySQL or MariaDB. They use SQLAlchemy Core and PyMySQL."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Final

from mintage.errors import ConfigError, StoreError
from mintage.installation import install_line
from mintage.store.database import PRIMARY_ADVICE, RIGHTS_ADVICE, Database, MissingTableError
from mintage.store.ledger import ConflictError

__all__ = ["MySqlStore"]

IDLE_S: Final = 15
"""Seconds until MySQL and MariaDB end an idle connection: fewer than a lease has left when it is to be extended."""


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
        "1142": RIGHTS_ADVICE,
        "1143": RIGHTS_ADVICE,
        "1290": PRIMARY_ADVICE,
        "1792": PRIMARY_ADVICE,
        "1836": PRIMARY_ADVICE,
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
