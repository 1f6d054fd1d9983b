"""Redis alone, behind a Sentinel and as a cluster; and Valkey with the same interface."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from tests.servers.server import HOST, Daemon, Group, ServerError, free_port, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVICE = "mymaster"
"""The name of the master and its replica in Sentinel."""


class Redis(Daemon):
    """A ``redis-server`` whose append-only file is on the disk before it answers."""

    name = "redis"
    programs: ClassVar[tuple[str, ...]] = ("redis-server", "redis-cli", "openssl")
    options: ClassVar[tuple[str, ...]] = ("--appendonly", "yes", "--appendfsync", "always")

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    @property
    def tls_url(self) -> str:
        return f"rediss://{HOST}:{self._tls_port}/0?ssl_ca_certs={self.certified().authority}"

    def create(self) -> None:
        self._tls_port = free_port()

    @property
    def socket_url(self) -> str:
        return f"unix://{self.directory / 'socket'}"

    def command(self) -> list[str]:
        tls = self.certified()
        encrypted = ["--tls-port", self._tls_port, "--tls-auth-clients", "no", "--tls-ca-cert-file", tls.authority]
        shown = ["--tls-cert-file", tls.certificate, "--tls-key-file", tls.key]
        plain = ["--bind", HOST, "--port", self.port, "--unixsocket", "socket", "--dir", ".", "--save", ""]
        return [self.programs[0], *map(str, [*plain, *encrypted, *shown]), *self.options]

    def answers(self) -> bool:
        client = self.programs[1]
        return self.reaches(client, "-e", "-p", str(self.port), "PING")

    def stop(self) -> None:
        self.resume()
        if self.is_up():
            # Redis refuses to stop while it writes the first append-only file of a new role.
            until(self.has_written_its_file, f"{self.name} has written its file")
        super().stop()

    def has_written_its_file(self) -> bool:
        facts = self.info("persistence")
        return "1" not in {facts.get(f"aof_rewrite_{state}") for state in ("in_progress", "scheduled")}

    def reset(self) -> None:
        self.ask("FLUSHALL")
        self.ask("SCRIPT", "FLUSH")

    def ask(self, *words: str) -> str:
        """Return the answer of the server, one item a line."""
        client = self.programs[1]
        return self.run(client, "-e", "-p", str(self.port), "--raw", *words).removesuffix("\n")

    def info(self, section: str) -> dict[str, str]:
        """Return a section of ``INFO``."""
        lines = self.ask("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)


class RedisWithoutAOF(Redis):
    """A ``redis-server`` that keeps nothing when it ends."""

    name = "redis_without_aof"
    options = ("--appendonly", "no")


class Valkey(Redis):
    """A ``valkey-server`` of version 9 (see ``unstable.sh``); its file is on the disk before it answers."""

    name = "valkey"
    programs = ("valkey9-server", "valkey9-cli", "openssl")


class Replicated(Redis):
    """A master, or the replica of one."""

    name = "redis_replicated"
    _master: Replicated | None = None

    def command(self) -> list[str]:
        role = ["--replicaof", HOST, str(self._master.port)] if self._master else []
        return [*super().command(), "--repl-diskless-sync-delay", "0", *role]

    def follow(self, master: Replicated | None) -> None:
        """Run as the replica of that master, or as a master, from the start."""
        self._master = master
        self.start()
        if master:
            self.ask("REPLICAOF", HOST, str(master.port))

    def is_in_step(self) -> bool:
        """Return True if it is a replica connected to its master."""
        return self.info("replication").get("master_link_status") == "up"

    def heard(self) -> int:
        """Return the replication offset of a master or its replica."""
        facts = self.info("replication")
        return int(facts.get("slave_repl_offset", facts["master_repl_offset"]))


TAKEOVER_S = 200
"""Sentinel is inactive for half a minute after each gap in its time, as on a slow machine."""


class Sentinel(Redis):
    """A ``redis-sentinel`` that decides alone."""

    name = "sentinel"

    def __init__(self, directory: Path, watched: Daemon) -> None:
        super().__init__(directory)
        self._watched = watched

    def create(self) -> None:
        # It promotes no replica whose master was gone for ten such times before it noticed: more than its half minute.
        self._settings.write_text(
            f"""
            bind {HOST}
            port {self.port}
            dir {self.directory}
            sentinel monitor {SERVICE} {HOST} {self._watched.port} 1
            sentinel down-after-milliseconds {SERVICE} 5000
            sentinel failover-timeout {SERVICE} 1000
            """,
            encoding="ascii",
        )

    def command(self) -> list[str]:
        # Sentinel writes its state into its configuration file.
        return ["redis-server", str(self._settings), "--sentinel"]

    def reset(self) -> None:
        """Do nothing: a Sentinel has no data."""

    def master_port(self) -> int:
        """Return the port that it names as the master."""
        return int(self.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE).split()[1])

    def is_calm(self) -> bool:
        """Return True if it sees no problem with the master, and does nothing about it."""
        return self._facts(self.ask("SENTINEL", "MASTER", SERVICE))["flags"] == "master"

    def knows_a_replica(self) -> bool:
        """Return True if it knows a replica that can take over."""
        facts = self._facts(self.ask("SENTINEL", "REPLICAS", SERVICE))
        return facts.get("flags") == "slave" and facts.get("master-link-status") == "ok"

    @staticmethod
    def _facts(answer: str) -> dict[str, str]:
        lines = answer.splitlines()
        return dict(zip(lines[::2], lines[1::2], strict=False))

    @property
    def _settings(self) -> Path:
        return self.directory / "sentinel.conf"


class RedisSentinel(Group):
    """A master, its replica, and the Sentinel that promotes the replica."""

    name = "redis_sentinel"
    programs = Redis.programs

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._pair = (Replicated(directory / "0"), Replicated(directory / "1"))
        self.sentinel = Sentinel(directory / "sentinel", self._pair[0])
        # Stop it first, so that it does not react to what looks like a failure.
        self.members = (self.sentinel, *self._pair)

    @property
    def url(self) -> str:
        return f"redis+sentinel://{HOST}:{self.sentinel.port}/{SERVICE}/0"

    @property
    def master(self) -> Replicated:
        """Return the server that Sentinel names as the master."""
        port = self.sentinel.master_port()
        return next(member for member in self._pair if member.port == port)

    @property
    def replica(self) -> Replicated:
        return next(member for member in self._pair if member is not self.master)

    def start(self) -> None:
        if self.sentinel.is_new:
            # Sentinel looks for replicas when it starts, and then every ten seconds.
            master, replica = self._pair
            master.start()
            replica.follow(master)
            self.until(replica.is_in_step, "the replica follows")
        self.sentinel.start()
        self.until(self._mend, "the replica follows, and Sentinel knows it")

    def pause(self) -> None:
        # Sentinel is not paused: after a gap in its time it would be inactive for half a minute.
        for member in self._pair:
            member.pause()

    def reset(self) -> None:
        self.master.reset()

    def failover(self) -> None:
        """Stop the master once its replica has received everything; return when that is promoted."""
        master, replica = self.master, self.replica
        self.until(lambda: master.heard() == replica.heard(), "the replica has heard all")
        master.kill()
        self._wait_for(replica)

    @contextmanager
    def failover_that_forgets(self) -> Iterator[None]:
        """Lose the writes of the block in the replica; then stop the master and wait for the promotion."""
        master, replica = self.master, self.replica
        # A connected replica can still lag a second: wait until it has confirmed the first writes.
        told = master.heard()
        self.until(lambda: replica.heard() >= told, "the replica has heard what was told before")
        replica.kill()
        yield
        master.kill()
        replica.follow(master)
        self._wait_for(replica)

    def _wait_for(self, master: Replicated) -> None:
        self.until(
            lambda: self.master is master and self.sentinel.is_calm(),
            "the replica is Sentinel's master",
            seconds=TAKEOVER_S,
        )
        master.follow(None)

    def _mend(self) -> bool:
        """Bring both back into the roles that Sentinel sees; return True if all agree."""
        master, replica = self.master, self.replica
        master.follow(None)
        if not self.sentinel.is_calm():
            return False
        replica.follow(master)
        return replica.is_in_step() and self.sentinel.knows_a_replica()


class Clustered(Redis):
    """A member of a cluster."""

    name = "redis_clustered"

    def command(self) -> list[str]:
        return [*super().command(), "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]

    def agrees(self) -> bool:
        """Return True if it serves, and sees every other member."""
        try:
            state = self.ask("CLUSTER", "INFO").splitlines()
        except ServerError:
            return False
        is_linked = self.info("replication").get("master_link_status", "up") == "up"
        return "cluster_state:ok" in state and "cluster_size:3" in state and is_linked

    def serves(self, slot: int) -> bool:
        """Return True if it is the master of a slot."""
        [own] = [line for line in self.ask("CLUSTER", "NODES").splitlines() if "myself" in line]
        ranges = [tuple(map(int, f"{each}-{each}".split("-")[:2])) for each in own.split()[8:] if "[" not in each]
        return any(first <= slot <= last for first, last in ranges)


class RedisCluster(Group):
    """Three masters that share the slots."""

    name = "redis_cluster"
    programs = Redis.programs
    replicas: ClassVar = 0
    """The replicas of each master."""
    members: tuple[Clustered, ...]

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.members = tuple(Clustered(directory / str(index)) for index in range(3 * (1 + self.replicas)))

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(self._addresses)}"

    def start(self) -> None:
        is_new = self.members[0].is_new
        for member in self.members:
            member.start()
        if is_new:
            replicas = ("--cluster-replicas", str(self.replicas))
            self.members[0].run("redis-cli", "--cluster", "create", *self._addresses, *replicas, "--cluster-yes")
        self.until(self.is_up, "the cluster serves")

    def is_up(self) -> bool:
        return all(member.pid and member.is_up() and member.agrees() for member in self.members)

    def reset(self) -> None:
        for member in self.masters:
            member.reset()

    @property
    def masters(self) -> list[Clustered]:
        return [member for member in self.members if member.pid and member.info("replication")["role"] == "master"]

    def ask(self, *words: str) -> str:
        """Return the answer of the member that stores the key."""
        return self.members[0].ask("-c", *words)

    def move(self, slot: int) -> None:
        """Move a slot with its keys from its master to another one."""
        source = next(each for each in self.masters if each.serves(slot))
        target = next(each for each in self.masters if each is not source)
        source_id, target_id = source.ask("CLUSTER", "MYID"), target.ask("CLUSTER", "MYID")
        target.ask("CLUSTER", "SETSLOT", str(slot), "IMPORTING", source_id)
        source.ask("CLUSTER", "SETSLOT", str(slot), "MIGRATING", target_id)
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", str(slot), "100").split():
            source.ask("MIGRATE", HOST, str(target.port), "", "0", "5000", "KEYS", *keys)
        for member in [target, source, *self.masters]:
            member.ask("CLUSTER", "SETSLOT", str(slot), "NODE", target_id)

    @property
    def _addresses(self) -> list[str]:
        return [f"{HOST}:{member.port}" for member in self.members]


class RedisClusterOfSix(RedisCluster):
    """Three masters with a replica each."""

    name = "redis_cluster_of_six"
    replicas = 1
