"""Replication between two Redis servers of the tests."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.servers.server import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Redis


def follow(server: Redis, master: Redis) -> None:
    """Make a server the replica of another, with all of its data."""
    master.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0")
    server.ask("REPLICAOF", "127.0.0.1", str(master.port))
    until(lambda: server.info("replication").get("master_link_status") == "up", "it follows")


@contextmanager
def forgetting(server: Redis, replica: Redis) -> Iterator[None]:
    """Undo the writes of the block on a server that never stops: it becomes a replica of one without them."""
    until(lambda: offset(server, "master_repl_offset") == offset(replica, "slave_repl_offset"), "it has heard all")
    replica.ask("REPLICAOF", "NO", "ONE")
    yield
    follow(server, replica)
    server.ask("REPLICAOF", "NO", "ONE")


def offset(server: Redis, name: str) -> str:
    return server.info("replication")[name]
