"""HAProxy: one address in front of several servers."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, ClassVar

from tests.servers.server import HOST, Daemon

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class HAProxy(Daemon):
    """An ``haproxy`` whose connections go round the servers that accept connections and are enabled."""

    name = "haproxy"
    programs: ClassVar[tuple[str, ...]] = ("haproxy",)

    def __init__(self, directory: Path, servers: Sequence[Daemon]) -> None:
        super().__init__(directory)
        self._servers = servers

    @property
    def url(self) -> str:
        """Return the URL of the servers through the proxy."""
        first = self._servers[0]
        return first.url.replace(f"{HOST}:{first.port}", f"{HOST}:{self.port}")

    def command(self) -> list[str]:
        servers = "\n".join(
            f"  server {server.directory.name} {HOST}:{server.port} check inter 200 fall 2 rise 1"
            for server in self._servers
        )
        (self.directory / "haproxy.cfg").write_text(
            f"""
global
  stats socket {self._socket} level admin
  maxconn 200
defaults
  mode tcp
  option redispatch
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  default-server on-marked-down shutdown-sessions
listen servers
  bind {HOST}:{self.port}
  balance roundrobin
{servers}
""",
            encoding="ascii",
        )
        return ["haproxy", "-db", "-f", "haproxy.cfg"]

    def answers(self) -> bool:
        try:
            return bool(self._ask("show info"))
        except OSError:
            return False

    def reset(self) -> None:
        """Do nothing: it has no data."""

    def lead_to(self, server: Daemon) -> None:
        """Lead to this server alone from now on, and end the connections to the others."""
        for each in self._servers:
            name = f"servers/{each.directory.name}"
            self._ask(f"set server {name} addr {HOST} port {each.port}")  # a server that starts afresh has another one
            self._ask(f"set server {name} state {'ready' if each is server else 'maint'}")
            if each is not server:
                self._ask(f"shutdown sessions server {name}")

    @property
    def _socket(self) -> Path:
        return self.directory / "admin"

    def _ask(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self._socket))
            client.sendall(f"{command}\n".encode())
            with client.makefile() as answer:
                return answer.read()
