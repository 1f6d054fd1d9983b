"""A server and one that follows it, behind one address that moves to whichever is in charge."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from tests.servers.proxy import Proxy
from tests.servers.server import HOST, Daemon, Group

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Follower(Daemon):
    """What can be either of the two."""

    leader: Self | None = None
    """Whom it follows."""

    def follow(self, leader: Self) -> None:
        """Begin anew, with what the leader has and will have."""
        self.kill()
        self.is_new = True
        self.leader = leader
        self.start()

    def promote(self) -> None:
        """Take charge, with what it has."""
        self.stand_alone()
        self.leader = None

    @abstractmethod
    def stand_alone(self) -> None:
        """Follow nobody any more."""

    @abstractmethod
    def heard(self) -> str:
        """How far it is: the same text on both once the follower has all."""


F = TypeVar("F", bound=Follower)


class Pair(Group, Generic[F]):
    """The two. ``url`` is the address that moves."""

    member: type[F]

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.leader, self.follower = (self.member(directory / name) for name in ("one", "other"))
        self.members = (self.leader, self.follower)
        self._address: Proxy | None = None

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
            self._address = Proxy(self.leader)
        self._agree()

    def reset(self) -> None:
        self.leader.reset()

    def failover(self) -> None:
        """The leader dies, having told its follower all, and that is in charge. ``start()`` mends the pair."""
        self._agree()
        self.leader.kill()
        self._change()

    @contextmanager
    def failover_that_forgets(self) -> Iterator[None]:
        """What the leader is told inside, its follower never hears of; then the leader dies and that is in charge."""
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
