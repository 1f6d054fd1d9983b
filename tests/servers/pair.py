"""A server and its follower, behind one address that moves to the current leader."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from tests.servers.proxy import Proxy
from tests.servers.server import HOST, Daemon, Group

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.haproxy import HAProxy


class Follower(Daemon):
    """A server that can be leader or follower."""

    leader: Self | None = None
    """The leader that it follows."""

    def follow(self, leader: Self) -> None:
        """Start afresh, with the current and future data of the leader."""
        self.kill()
        self.is_new = True
        self.leader = leader
        self.start()

    def promote(self) -> None:
        """Become the leader, with the current data."""
        self.stand_alone()
        self.leader = None

    @abstractmethod
    def stand_alone(self) -> None:
        """Stop following."""

    @abstractmethod
    def heard(self) -> str:
        """Return the replication position: the same text on both once the follower has everything."""


F = TypeVar("F", bound=Follower)


class Pair(Group, Generic[F]):
    """A leader and a follower. ``url`` is the address that moves."""

    member: type[F]

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.leader, self.follower = (self.member(directory / name) for name in ("one", "other"))
        self.members = (self.leader, self.follower)
        self._address: Proxy | HAProxy | None = None

    def address(self) -> Proxy | HAProxy:
        """Return the address that leads to the leader, at the first start."""
        return Proxy(self.leader)

    @property
    def url(self) -> str:
        assert self._address
        return self.leader.url.replace(f"{HOST}:{self.leader.port}", f"{HOST}:{self._address.port}")

    def start(self) -> None:
        self.leader.start()
        if self.follower.leader is None:
            self.follower.follow(self.leader)
        self.follower.start()
        if self._address is None:
            self._address = self.address()
        self._agree()

    def reset(self) -> None:
        self.leader.reset()

    def failover(self) -> None:
        """Stop the leader once its follower has received everything, and promote that. ``start()`` restores it."""
        self._agree()
        self.leader.kill()
        self._change()

    @contextmanager
    def failover_that_forgets(self) -> Iterator[None]:
        """Lose the writes of the block in the follower; then stop the leader and promote the follower."""
        self._agree()
        self.follower.kill()
        yield
        self.leader.kill()
        self.follower.start()
        self._change()

    def _agree(self) -> None:
        self.until(lambda: self.leader.heard() == self.follower.heard(), "the follower has heard all")

    def _change(self) -> None:
        assert self._address
        self.follower.promote()
        self.leader, self.follower = self.follower, self.leader
        self._address.lead_to(self.leader)
