"""MariaDB from the distribution, and a current MySQL with the same interface."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from tests.servers.pair import Follower, Pair
from tests.servers.server import ANSWER_S, HOST, PASSWORD, Daemon, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class MariaDB(Daemon):
    """A ``mariadbd`` that writes a commit to the disk before it answers."""

    name = "mariadb"
    programs: ClassVar[tuple[str, ...]] = ("mariadbd", "mariadb", "mariadb-install-db", "mariadb-dump", "openssl")
    account: ClassVar[str | None] = "mysql"
    scheme: ClassVar[str] = "mariadb"
    options: ClassVar[tuple[str, ...]] = ("--innodb-log-file-size=8M",)

    @property
    def url(self) -> str:
        return f"{self.scheme}://mintage:{quote(PASSWORD, safe='')}@{HOST}:{self.port}/mintage"

    @property
    def tls_url(self) -> str:
        return f"{self.url}?ssl_ca={self.certified().authority}"

    @property
    def socket_url(self) -> str:
        who, _, _ = self.url.rpartition("@")
        return f"{who}@/mintage?unix_socket={self._socket}"

    def create(self) -> None:
        self.run(
            "mariadb-install-db",
            *self._options,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--force",
        )

    def prepare(self) -> None:
        self.sql(f"CREATE USER mintage IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON mintage.* TO mintage;")
        self.reset()

    def command(self) -> Sequence[str]:
        tls = self.certified()
        return [
            self.programs[0],
            *self._options,
            f"--socket={self._socket}",
            f"--bind-address={HOST}",
            f"--port={self.port}",
            "--connect-timeout=60",  # a client may stall while it logs in
            f"--ssl-ca={tls.authority}",
            f"--ssl-cert={tls.certificate}",
            f"--ssl-key={tls.key}",
        ]

    def answers(self) -> bool:
        return self.reaches(
            self.programs[1], *self._administrator, f"--connect-timeout={ANSWER_S}", "--execute=SELECT 1"
        )

    def reset(self) -> None:
        # An open transaction is an error after a while; it would hold this up for a day.
        self.sql("SET lock_wait_timeout = 50; DROP DATABASE IF EXISTS mintage; CREATE DATABASE mintage;")

    def sql(self, statements: str) -> str:
        """Return the answer of the server to its administrator, tab-separated."""
        return self.run(self.programs[1], *self._administrator, "--batch", "--skip-column-names", text=statements)

    def dump(self, *tables: str) -> str:
        """Return statements that replace tables of the store by their current content."""
        how = [*self._administrator, "mintage"]
        return f"USE mintage;\n{self.run('mariadb-dump', *how, *tables)}"

    def await_new_second(self) -> None:
        """Wait until new tables have a creation time in another second, its only resolution."""
        newest = (
            "(SELECT MAX(UNIX_TIMESTAMP(create_time)) FROM information_schema.tables WHERE table_schema = 'mintage')"
        )
        until(lambda: self.sql(f"SELECT UNIX_TIMESTAMP() > {newest}") == "1\n", "a new second")

    @property
    def _options(self) -> list[str]:
        return [
            "--no-defaults",
            f"--datadir={self.directory / 'data'}",
            f"--tmpdir={self.directory}",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-buffer-pool-size=16M",
            *self.options,
        ]

    @property
    def _socket(self) -> str:
        return str(self.directory / "socket")

    @property
    def _administrator(self) -> list[str]:
        return ["--no-defaults", f"--socket={self._socket}", "--user=root"]


class MySQL(MariaDB):
    """A ``mysqld`` of version 9 (see ``unstable.sh``), whose accounts log in with ``caching_sha2_password``."""

    name = "mysql"
    programs = ("mysqld9", "mysql9", "openssl")
    account = None
    scheme = "mysql"
    options = ("--innodb-redo-log-capacity=8M", "--mysqlx=OFF", "--secure-file-priv=NULL")

    def create(self) -> None:
        self.run("mysqld9", *self._options, "--initialize-insecure")

    @property
    def _options(self) -> list[str]:
        who = ["--user=root"] if os.geteuid() == 0 else []
        return [*super()._options, *who]

    @contextmanager
    def without_tls(self) -> Iterator[None]:
        """Disable TLS during the block: passwords are then encrypted with the RSA key of the server."""
        self.sql("SET GLOBAL tls_version = ''; ALTER INSTANCE RELOAD TLS NO ROLLBACK ON ERROR")
        try:
            yield
        finally:
            self.sql("SET GLOBAL tls_version = DEFAULT; ALTER INSTANCE RELOAD TLS")


class Replica(Follower, MariaDB):
    """A primary, or a replica that receives each transaction after its commit."""

    name = "mariadb_replica"
    follows: ClassVar = (
        "CHANGE MASTER TO MASTER_HOST='{}', MASTER_PORT={}, MASTER_USER='replica', MASTER_PASSWORD='{}', "
    )
    follows_from: ClassVar = "MASTER_USE_GTID=slave_pos; START SLAVE; SET GLOBAL read_only = 1;"
    alone: ClassVar = "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0;"
    place: ClassVar = "SELECT @@gtid_current_pos"

    @property
    def _options(self) -> list[str]:
        return [
            *super()._options,
            f"--server-id={self.port}",
            "--log-bin=log-bin",
            "--sync-binlog=1",
            "--log-slave-updates",
        ]

    def prepare(self) -> None:
        if self.leader is None:
            super().prepare()
            self.sql(f"CREATE USER replica IDENTIFIED BY '{PASSWORD}'; GRANT REPLICATION SLAVE ON *.* TO replica;")
        else:
            self.sql((self.follows + self.follows_from).format(HOST, self.leader.port, PASSWORD))

    def stand_alone(self) -> None:
        self.sql(self.alone)

    def heard(self) -> str:
        return self.sql(self.place)


class MariaDBPair(Pair[Replica]):
    """A primary and a replica."""

    name = "mariadb_pair"
    programs = MariaDB.programs
    member = Replica
