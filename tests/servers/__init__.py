"""Real servers for tests: each a process on loopback, with its data and its log in a directory that the tests own.

A test asks for one by its fixture (:mod:`tests.servers.fixtures`) and has it up, whole and empty.
"""

from __future__ import annotations

import os
from typing import Final

from tests.servers.etcd import Etcd
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.proxy import Proxy
from tests.servers.redis import Redis, RedisCluster, RedisSentinel, RedisWithoutAOF, Valkey
from tests.servers.server import Daemon, Group, Server, ServerError, program

__all__ = [
    "KINDS",
    "Daemon",
    "Etcd",
    "Group",
    "MariaDB",
    "PostgreSQL",
    "Proxy",
    "Redis",
    "RedisCluster",
    "RedisSentinel",
    "RedisWithoutAOF",
    "Server",
    "ServerError",
    "Valkey",
    "missing",
    "must_run",
]

KINDS: Final[dict[str, type[Server]]] = {
    kind.name: kind for kind in (MariaDB, PostgreSQL, Redis, RedisWithoutAOF, RedisSentinel, RedisCluster, Valkey, Etcd)
}


def missing(name: str) -> str | None:
    """Why the server cannot run here, if it cannot."""
    lacking = [needed for needed in ("setpriv", *KINDS[name].programs) if program(needed) is None]
    return f"{name} needs {', '.join(lacking)}: run tests/servers/install.sh as root" if lacking else None


def must_run(name: str) -> bool:
    """Whether tests fail without it, as in continuous integration. Not every distribution has Valkey."""
    return name != "valkey" and any(os.environ.get(variable) for variable in ("CI", "MINTAGE_REQUIRE_SERVERS"))
