"""PgBouncer in transaction mode, in front of PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tests.servers.postgresql import PostgreSQL
from tests.servers.server import ANSWER_S, HOST, PASSWORD, Daemon, Group

if TYPE_CHECKING:
    from pathlib import Path


class Pooler(Daemon):
    """A ``pgbouncer`` that lends each of its connections for one transaction."""

    name = "pgbouncer_alone"
    account: ClassVar[str | None] = "postgres"

    def __init__(self, directory: Path, server: PostgreSQL) -> None:
        super().__init__(directory)
        self._server = server

    @property
    def url(self) -> str:
        return self._server.url.replace(f"{HOST}:{self._server.port}", f"{HOST}:{self.port}")

    def command(self) -> list[str]:
        (self.directory / "users").write_text(f'"mintage" "{PASSWORD}"\n', encoding="ascii")
        (self.directory / "pgbouncer.ini").write_text(
            f"""
[databases]
mintage = host={HOST} port={self._server.port}
[pgbouncer]
pool_mode = transaction
default_pool_size = 8
max_client_conn = 500
listen_addr = {HOST}
listen_port = {self.port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = users
server_login_retry = 1
""",
            encoding="ascii",
        )
        return ["pgbouncer", "pgbouncer.ini"]

    def answers(self) -> bool:
        return self.reaches("pg_isready", f"--host={HOST}", f"--port={self.port}", f"--timeout={ANSWER_S}")

    def reset(self) -> None:
        """Do nothing: it has no data."""


class PgBouncer(Group):
    """PostgreSQL behind PgBouncer."""

    name = "pgbouncer"
    programs = ("pgbouncer", *PostgreSQL.programs)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.server = PostgreSQL(directory / "server")
        self.pooler = Pooler(directory / "pooler", self.server)
        self.members = (self.pooler, self.server)

    @property
    def url(self) -> str:
        return self.pooler.url

    def start(self) -> None:
        self.server.start()
        self.pooler.start()

    def reset(self) -> None:
        self.server.reset()
