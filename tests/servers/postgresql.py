"""PostgreSQL from the distribution."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from tests.servers.haproxy import HAProxy
from tests.servers.pair import Follower, Pair
from tests.servers.server import ANSWER_S, HOST, PASSWORD, Daemon

if TYPE_CHECKING:
    from pathlib import Path


class PostgreSQL(Daemon):
    """A ``postgres`` that writes a commit to the disk before it answers."""

    name = "postgresql"
    programs: ClassVar[tuple[str, ...]] = ("postgres", "initdb", "psql", "pg_isready", "pg_dump", "openssl")
    account = "postgres"
    stop_signal = signal.SIGINT  # does not wait until the last client has left

    @property
    def url(self) -> str:
        return f"postgresql://mintage:{quote(PASSWORD, safe='')}@{HOST}:{self.port}/mintage"

    @property
    def tls_url(self) -> str:
        return f"{self.url}?sslmode=verify-full&sslrootcert={self.certified().authority}"

    @property
    def socket_url(self) -> str:
        who, _, _ = self.url.rpartition("@")
        return f"{who}@/mintage?host={self.directory}&port={self.port}"

    settings: ClassVar[dict[str, str]] = {}

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
        tls = self.certified()
        settings = {
            "listen_addresses": HOST,
            "port": str(self.port),
            "unix_socket_directories": str(self.directory),
            "fsync": "on",
            "synchronous_commit": "on",
            "shared_buffers": "16MB",
            "ssl": "on",
            "ssl_cert_file": str(tls.certificate),
            "ssl_key_file": str(tls.key),
            **self.settings,
        }
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return ["postgres", "-D", str(self.directory / "data"), *options]

    def answers(self) -> bool:
        return self.reaches("pg_isready", f"--host={HOST}", f"--port={self.port}", f"--timeout={ANSWER_S}")

    def reset(self) -> None:
        # The schema, since a database goes only once nobody is connected. An open transaction becomes an error.
        self.sql("SET lock_timeout = '50s'; DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION mintage;")

    def dump(self, *tables: str) -> str:
        """Return statements that replace tables of the store by their current content."""
        where = [f"--host={HOST}", f"--port={self.port}", "--username=postgres", "--dbname=mintage"]
        how = ["--clean", "--if-exists", *(f"--table={table}" for table in tables)]
        return self.run("pg_dump", *where, *how, env={"PGPASSWORD": PASSWORD, "PGSSLMODE": "disable"})

    def sql(self, statements: str, *, database: str = "mintage") -> str:
        """Return the answer of the server to its administrator, one row a line, ``|`` between the columns."""
        where = [f"--host={HOST}", f"--port={self.port}", "--username=postgres", f"--dbname={database}"]
        how = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", "--file=-"]
        return self.run("psql", *where, *how, text=statements, env={"PGPASSWORD": PASSWORD, "PGSSLMODE": "disable"})


class Standby(Follower, PostgreSQL):
    """A primary, or a physical standby."""

    name = "postgresql_standby"
    settings: ClassVar = {"hot_standby": "on"}

    def create(self) -> None:
        if self.leader is None:
            super().create()
            return
        where = [f"--host={HOST}", f"--port={self.leader.port}", "--username=postgres"]
        how = ["--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync"]
        data = self.directory / "data"
        self.run("pg_basebackup", f"--pgdata={data}", *where, *how, env={"PGPASSWORD": PASSWORD})

    def prepare(self) -> None:
        if self.leader is None:
            super().prepare()

    def stand_alone(self) -> None:
        self.sql("SELECT pg_promote()")

    def heard(self) -> str:
        place = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END"
        return self.sql(f"SELECT {place}")


class PostgreSQLPair(Pair[Standby]):
    """A primary and a physical standby."""

    name = "postgresql_pair"
    programs = (*PostgreSQL.programs, "pg_basebackup")
    member = Standby


def position(heard: str) -> int:
    """Return a position in the log as a number."""
    high, _, low = heard.strip().partition("/")
    return int(high, 16) << 32 | int(low, 16)


class PostgreSQLHAProxy(PostgreSQLPair):
    """A primary and a standby behind HAProxy, which is told who is the primary."""

    name = "postgresql_haproxy"
    programs = (*PostgreSQLPair.programs, *HAProxy.programs)

    def address(self) -> HAProxy:
        self._haproxy = HAProxy(self.directory / "address", self.members)
        self._haproxy.start()
        self._haproxy.lead_to(self.leader)
        return self._haproxy

    def _agree(self) -> None:
        # Under load, the standby has never heard all at the moment when it is asked.
        told = position(self.leader.heard())
        self.until(lambda: position(self.follower.heard()) >= told, "the standby has heard what the primary wrote")

    def kill(self) -> None:
        self._haproxy.kill()
        super().kill()

    def stop(self) -> None:
        self._haproxy.stop()
        super().stop()


class Subscriber(Follower, PostgreSQL):
    """A server of its own that receives each row after its commit: a logical replica."""

    name = "postgresql_subscriber"
    settings: ClassVar = {"wal_level": "logical"}

    def subscribe(self) -> None:
        """Receive the rows of all current tables of the leader, not of tables that it creates later."""
        leader = self.leader
        assert leader
        where = [f"--host={HOST}", f"--port={leader.port}", "--username=postgres"]
        password = {"PGPASSWORD": PASSWORD}
        self.sql(self.run("pg_dump", "--schema-only", *where, "mintage", env=password))
        leader.sql("CREATE PUBLICATION all_tables FOR ALL TABLES")
        keywords = f"host={HOST} port={leader.port} user=postgres dbname=mintage password='{PASSWORD}'".replace(
            "'", "''"
        )
        self.sql(f"CREATE SUBSCRIPTION hears CONNECTION '{keywords}' PUBLICATION all_tables")

    def stand_alone(self) -> None:
        if self.sql("SELECT 1 FROM pg_subscription"):
            self.sql("ALTER SUBSCRIPTION hears DISABLE; ALTER SUBSCRIPTION hears SET (slot_name = NONE);")
            self.sql("DROP SUBSCRIPTION hears")

    def heard(self) -> str:
        return self.sql("SELECT pg_current_wal_lsn()").strip()


class PostgreSQLLogical(Pair[Subscriber]):
    """A server and one that subscribes to its rows, on request."""

    name = "postgresql_logical"
    programs = Subscriber.programs
    member = Subscriber

    def subscribe(self) -> None:
        self.follower.subscribe()
        self._agree()

    def _agree(self) -> None:
        told = self.leader.heard()
        behind = f"SELECT 1 FROM pg_replication_slots WHERE NOT confirmed_flush_lsn >= '{told}'"
        copied = "SELECT 1 FROM pg_subscription_rel WHERE srsubstate <> 'r'"
        self.until(
            lambda: not self.leader.sql(behind) and not self.follower.sql(copied), "the subscriber has heard all"
        )

    def reset(self) -> None:
        """Reset both, as changes of tables are not replicated."""
        self.leader.sql("DROP PUBLICATION IF EXISTS all_tables")
        for member in (self.leader, self.follower):
            member.stand_alone()
            member.reset()


class Backup(PostgreSQL):
    """A server on a base backup of another, made when it first starts."""

    name = "postgresql_backup"
    programs = (*PostgreSQL.programs, "pg_basebackup")
    settings: ClassVar = {"restore_command": "false", "hot_standby": "off"}

    def __init__(self, directory: Path, source: PostgreSQL) -> None:
        super().__init__(directory)
        self.source = source

    def create(self) -> None:
        where = [f"--host={HOST}", f"--port={self.source.port}", "--username=postgres"]
        how = [f"--pgdata={self.directory / 'data'}", "--checkpoint=fast", "--wal-method=stream", "--no-sync"]
        self.run("pg_basebackup", *where, *how, env={"PGPASSWORD": PASSWORD})

    def prepare(self) -> None:
        """Do nothing: the account and the database are those of the source."""

    def recover(self) -> None:
        """Recover from the archive at the next start, which begins another timeline."""
        self.run("touch", str(self.directory / "data" / "recovery.signal"))
