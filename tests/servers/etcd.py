"""etcd from the distribution."""

from __future__ import annotations

import json
from base64 import b64encode
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.request import Request

from tests.servers.server import ANSWER_S, HOST, START_S, Daemon, Group, free_port, open_url

if TYPE_CHECKING:
    from pathlib import Path

# The environment may name a proxy for the outside world.


class Etcd(Daemon):
    """A cluster of one ``etcd``, used through its JSON gateway."""

    name = "etcd"
    programs = ("etcd", "openssl")
    options: tuple[str, ...] = ()
    """More options of the command."""

    @property
    def url(self) -> str:
        return f"etcd://{HOST}:{self.port}"

    @property
    def tls_url(self) -> str:
        return f"etcds://{HOST}:{self._tls_port}?ca={self.certified().authority}"

    @property
    def _peers(self) -> str:
        return f"http://{HOST}:{self._peer_port}"

    @property
    def _cluster(self) -> str:
        return f"{self.directory.name}={self._peers}"

    def create(self) -> None:
        self._peer_port, self._tls_port = free_port(), free_port()

    def command(self) -> list[str]:
        tls = self.certified()
        clients = f"http://{HOST}:{self.port},https://{HOST}:{self._tls_port}"
        return [
            "etcd",
            f"--name={self.directory.name}",
            f"--data-dir={self.directory / 'data'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={self._peers}",
            f"--initial-advertise-peer-urls={self._peers}",
            f"--initial-cluster={self._cluster}",
            f"--cert-file={tls.certificate}",
            f"--key-file={tls.key}",
            "--logger=zap",
            "--log-outputs=stderr",
            *self.options,
        ]

    def answers(self) -> bool:
        try:
            return bool(self._get("/health", None, ANSWER_S)["health"] == "true")
        except (OSError, HTTPException):
            return False

    def reset(self) -> None:
        everything = "AA=="  # the byte 0, which as both ends of a range means every key
        self.call("/v3/kv/deleterange", {"key": everything, "range_end": everything})

    def delete(self, first: str, end: str) -> None:
        """Remove the keys from ``first`` to ``end``, without ``end``."""
        self.call("/v3/kv/deleterange", {"key": _encoded(first), "range_end": _encoded(end)})

    def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the gateway."""
        return self._get(path, json.dumps(body).encode(), START_S)

    def _get(self, path: str, body: bytes | None, seconds: float) -> dict[str, Any]:
        with open_url(Request(f"http://{HOST}:{self.port}{path}", body), timeout=seconds) as answer:
            result: dict[str, Any] = json.load(answer)
        return result


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


class Member(Etcd):
    """A member of a cluster."""

    name = "etcd_member"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._peer_port = free_port()
        self.cluster: tuple[Member, ...] = ()

    @property
    def _cluster(self) -> str:
        return ",".join(f"{member.directory.name}={member._peers}" for member in self.cluster)

    def create(self) -> None:
        self._tls_port = free_port()

    def answers(self) -> bool:
        """Return True at once, as no member answers before a majority runs."""
        return True

    def is_up(self) -> bool:
        return self.pid is not None and super().answers()


class EtcdCluster(Group):
    """Three members; any two are a majority."""

    name = "etcd_cluster"
    programs = Etcd.programs
    members: tuple[Member, ...]

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.members = tuple(Member(directory / f"member-{number}") for number in range(3))
        for member in self.members:
            member.cluster = self.members

    @property
    def url(self) -> str:
        return f"etcd://{','.join(f'{HOST}:{member.port}' for member in self.members)}"

    def start(self) -> None:
        for member in self.members:
            member.start()
        self.until(self.is_up, "the cluster serves")

    def reset(self) -> None:
        self.members[0].reset()
