"""MariaDB, the distribution's."""

from __future__ import annotations

from urllib.parse import quote

from tests.servers.server import ANSWER_S, HOST, PASSWORD, Daemon


class MariaDB(Daemon):
    """One ``mariadbd``; a commit is on the disk before it is answered."""

    name = "mariadb"
    programs = ("mariadbd", "mariadb-install-db", "mariadb")
    account = "mysql"

    @property
    def url(self) -> str:
        return f"mariadb://mintage:{quote(PASSWORD, safe='')}@{HOST}:{self.port}/mintage"

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

    def command(self) -> list[str]:
        return ["mariadbd", *self._options, f"--socket={self._socket}", f"--bind-address={HOST}", f"--port={self.port}"]

    def answers(self) -> bool:
        return self.reaches("mariadb", *self._administrator, f"--connect-timeout={ANSWER_S}", "--execute=SELECT 1")

    def reset(self) -> None:
        # An open transaction is an error after a while; it would hold this up for a day.
        self.sql("SET lock_wait_timeout = 10; DROP DATABASE IF EXISTS mintage; CREATE DATABASE mintage;")

    def sql(self, statements: str) -> str:
        """What the server answers its administrator, tab-separated."""
        return self.run("mariadb", *self._administrator, "--batch", "--skip-column-names", text=statements)

    @property
    def _options(self) -> list[str]:
        return [
            "--no-defaults",
            f"--datadir={self.directory / 'data'}",
            f"--tmpdir={self.directory}",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-buffer-pool-size=16M",
            "--innodb-log-file-size=8M",
        ]

    @property
    def _socket(self) -> str:
        return str(self.directory / "socket")

    @property
    def _administrator(self) -> list[str]:
        return ["--no-defaults", f"--socket={self._socket}", "--user=root"]
