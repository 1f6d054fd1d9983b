"""MariaDB Galera: three nodes that all accept writes, behind one address that goes round them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.servers.haproxy import HAProxy
from tests.servers.mariadb import MariaDB
from tests.servers.server import ANSWER_S, HOST, Group, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class Node(MariaDB):
    """A node of a cluster."""

    name = "galera_node"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.peer_port, self._transfer_port = free_port(), free_port()
        self.cluster: tuple[Node, ...] = ()

    def create(self) -> None:
        if self is self.cluster[0]:
            super().create()
        else:  # It copies the data of another node when it joins.
            self.run("mkdir", "data")

    def command(self) -> Sequence[str]:
        state = self.directory / "data" / "grastate.dat"
        if state.exists() and not self._others:  # all were killed: the data of this node will do
            state.write_text(state.read_text("ascii").replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"), "ascii")
        return super().command()

    @property
    def _others(self) -> list[Node]:
        """Return the other nodes that run."""
        return [node for node in self.cluster if node is not self and node.pid]

    def prepare(self) -> None:
        if self is self.cluster[0]:
            super().prepare()

    def answers(self) -> bool:
        """Return True if it is a member of the cluster's majority and has the others' writes."""
        return self.reaches(
            self.programs[1],
            *self._administrator,
            f"--connect-timeout={ANSWER_S}",
            "--execute=SET wsrep_sync_wait = 1; SELECT 1 FROM mysql.global_priv LIMIT 1",
        )

    @contextmanager
    def partitioned(self) -> Iterator[None]:
        """Cut it off from the other nodes during the block; its clients reach it."""
        self._isolate(1)
        try:
            yield
        finally:
            self._isolate(0)

    def _isolate(self, is_isolated: int) -> None:
        self.sql(f"SET GLOBAL wsrep_provider_options = 'gmcast.isolate={is_isolated}'")

    @property
    def _options(self) -> list[str]:
        provider = {
            "gmcast.listen_addr": f"tcp://{HOST}:{self.peer_port}",
            "ist.recv_addr": f"{HOST}:{free_port()}",
            "gcache.size": "8M",
            "evs.keepalive_period": "PT0.3S",
            "evs.inactive_check_period": "PT0.3S",
            "evs.suspect_timeout": "PT2S",
            "evs.inactive_timeout": "PT4S",
        }
        return [
            *super()._options,
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
            "--wsrep-on=ON",
            "--wsrep-provider=/usr/lib/galera/libgalera_smm.so",
            f"--wsrep-cluster-address=gcomm://{','.join(f'{HOST}:{node.peer_port}' for node in self._others)}",
            f"--wsrep-node-address={HOST}",
            f"--wsrep-sst-receive-address={HOST}:{self._transfer_port}",
            "--wsrep-sst-method=rsync",
            f"--wsrep-provider-options={';'.join(f'{name}={value}' for name, value in provider.items())}",
        ]


class Galera(Group):
    """Three nodes; any two are a majority. Connections go round all nodes that answer."""

    name = "galera"
    programs = (*MariaDB.programs, "wsrep_sst_rsync", "rsync", *HAProxy.programs)
    members: tuple[Node, ...]

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.members = tuple(Node(directory / f"node-{number}") for number in range(3))
        for member in self.members:
            member.cluster = self.members
        self._address = HAProxy(directory / "address", self.members)

    @property
    def url(self) -> str:
        return self._address.url

    def start(self) -> None:
        for member in self.members:
            member.start()
        self._address.start()
        self.until(self.is_up, "the cluster serves")

    def reset(self) -> None:
        self.members[0].reset()

    def kill(self) -> None:
        self._address.kill()
        super().kill()

    def stop(self) -> None:
        self._address.stop()
        super().stop()
