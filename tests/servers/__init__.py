"""Real servers for tests: processes on loopback, with data and log in a directory of the tests.

A test requests one by its fixture (:mod:`tests.servers.fixtures`), which is running, intact and empty.
"""

from __future__ import annotations

import os
from typing import Final

from tests.servers.etcd import Etcd, EtcdCluster
from tests.servers.galera import Galera
from tests.servers.group import MySQLGroup
from tests.servers.haproxy import HAProxy
from tests.servers.kubernetes import Kubernetes
from tests.servers.mariadb import MariaDB, MariaDBPair, MySQL
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgresql import PostgreSQL, PostgreSQLHAProxy, PostgreSQLLogical, PostgreSQLPair
from tests.servers.proxy import Proxy
from tests.servers.redis import Redis, RedisCluster, RedisClusterOfSix, RedisSentinel, RedisWithoutAOF, Valkey
from tests.servers.server import Daemon, Group, Server, ServerError, program

__all__ = [
    "KINDS",
    "Daemon",
    "Etcd",
    "EtcdCluster",
    "Galera",
    "Group",
    "HAProxy",
    "Kubernetes",
    "MariaDB",
    "MariaDBPair",
    "MySQL",
    "MySQLGroup",
    "PgBouncer",
    "PostgreSQL",
    "PostgreSQLHAProxy",
    "PostgreSQLLogical",
    "PostgreSQLPair",
    "Proxy",
    "Redis",
    "RedisCluster",
    "RedisClusterOfSix",
    "RedisSentinel",
    "RedisWithoutAOF",
    "Server",
    "ServerError",
    "Valkey",
    "missing",
    "must_run",
]

KINDS: Final[dict[str, type[Server]]] = {
    kind.name: kind
    for kind in (
        MariaDB,
        MySQL,
        PostgreSQL,
        Redis,
        RedisWithoutAOF,
        RedisSentinel,
        RedisCluster,
        RedisClusterOfSix,
        Valkey,
        Etcd,
        EtcdCluster,
        Galera,
        MySQLGroup,
        PgBouncer,
        Kubernetes,
        MariaDBPair,
        PostgreSQLPair,
        PostgreSQLHAProxy,
        PostgreSQLLogical,
    )
}
INSTALLERS: Final = {
    "mysql": "unstable.sh",
    "mysql_group": "unstable.sh",
    "valkey": "unstable.sh",
    "kubernetes": "kubernetes.sh",
}
"""The scripts in this folder that get those servers that are not always available."""


def missing(name: str) -> str | None:
    """Return the reason why the server cannot run here, or None."""
    lacking = [needed for needed in ("setpriv", *KINDS[name].programs) if program(needed) is None]
    how = f"tests/servers/{INSTALLERS.get(name, 'install.sh as root')}"
    return f"{name} needs {', '.join(lacking)}: run {how}" if lacking else None


def must_run(name: str) -> bool:
    """Return True if tests fail without it, as in continuous integration."""
    return name not in INSTALLERS and any(os.environ.get(variable) for variable in ("CI", "MINTAGE_REQUIRE_SERVERS"))
