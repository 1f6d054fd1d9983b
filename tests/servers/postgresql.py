"""PostgreSQL, the distribution's."""

from __future__ import annotations

import signal
from urllib.parse import quote

from tests.servers.server import ANSWER_S, HOST, PASSWORD, Daemon


class PostgreSQL(Daemon):
    """One ``postgres``; a commit is on the disk before it is answered."""

    name = "postgresql"
    programs = ("postgres", "initdb", "psql", "pg_isready")
    account = "postgres"
    stop_signal = signal.SIGINT  # does not wait until the last client has left

    @property
    def url(self) -> str:
        return f"postgresql://mintage:{quote(PASSWORD, safe='')}@{HOST}:{self.port}/mintage"

    def create(self) -> None:
        password = self.directory / "password"
        password.write_text(PASSWORD, encoding="ascii")
        password.chmod(0o644)
        self.run(
            "initdb",
            f"--pgdata={self.directory / 'data'}",
            "--username=postgres",
            "--auth=scram-sha-256",
            f"--pwfile={password}",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",  # fewer than all files on the disk matter only if the machine itself fails
        )

    def prepare(self) -> None:
        self.sql(f"CREATE ROLE mintage LOGIN PASSWORD '{PASSWORD}'", database="postgres")
        self.sql("CREATE DATABASE mintage OWNER mintage", database="postgres")

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "on",
            "synchronous_commit": "on",
            "shared_buffers": "16MB",
        }
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return ["postgres", "-D", str(self.directory / "data"), *options]

    def answers(self) -> bool:
        return self.reaches("pg_isready", f"--host={HOST}", f"--port={self.port}", f"--timeout={ANSWER_S}")

    def reset(self) -> None:
        # The schema, since a database goes only once nobody is connected. An open transaction becomes an error.
        self.sql("SET lock_timeout = '10s'; DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION mintage;")

    def sql(self, statements: str, *, database: str = "mintage") -> str:
        """What the server answers its administrator, one row a line, ``|`` between the columns."""
        where = [f"--host={HOST}", f"--port={self.port}", "--username=postgres", f"--dbname={database}"]
        how = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", "--file=-"]
        return self.run("psql", *where, *how, text=statements, env={"PGPASSWORD": PASSWORD})
