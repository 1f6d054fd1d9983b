"""etcd, the distribution's."""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from tests.servers.server import ANSWER_S, HOST, START_S, Daemon, free_port

# The environment may name a proxy for the outside world.
_open = build_opener(ProxyHandler({})).open


class Etcd(Daemon):
    """A cluster of one ``etcd``, asked through its JSON gateway."""

    name = "etcd"
    programs = ("etcd",)

    @property
    def url(self) -> str:
        return f"etcd://{HOST}:{self.port}"

    def create(self) -> None:
        self._peer_port = free_port()

    def command(self) -> list[str]:
        clients, peers = f"http://{HOST}:{self.port}", f"http://{HOST}:{self._peer_port}"
        return [
            "etcd",
            "--name=mintage",
            f"--data-dir={self.directory / 'data'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=mintage={peers}",
            "--logger=zap",
            "--log-outputs=stderr",
        ]

    def answers(self) -> bool:
        try:
            return bool(self._get("/health", None, ANSWER_S)["health"] == "true")
        except (OSError, HTTPException):
            return False

    def reset(self) -> None:
        everything = "AA=="  # the byte 0, which as both ends of a range means every key
        self.call("/v3/kv/deleterange", {"key": everything, "range_end": everything})

    def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What the gateway answers."""
        return self._get(path, json.dumps(body).encode(), START_S)

    def _get(self, path: str, body: bytes | None, seconds: float) -> dict[str, Any]:
        with _open(Request(f"http://{HOST}:{self.port}{path}", body), timeout=seconds) as answer:
            result: dict[str, Any] = json.load(answer)
        return result
