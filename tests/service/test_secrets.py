"""Tests of secrets: a key that is sent in a wrong place never appears in the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from mintage.server.config.keys import new_key
from tests.service.running import Running, key_toml, running
from tests.service.wire import command, head, say

if TYPE_CHECKING:
    from pathlib import Path


def requests_with(key: str) -> list[bytes]:
    """Return HTTP requests with a key in each of their parts."""
    encoded = "".join(f"%{ord(each):02X}" for each in key)
    written = [key, f"orders_{key}", f"{key}_orders", f"a{key}", key.lower(), key.upper(), encoded, quote(encoded)]
    paths = [f"{before}{each}{after}" for each in written for before, after in PATHS]
    said = [head(f"{method} {path}", "Connection: close") for path in paths for method in ("GET", "POST")]
    said += [head(f"{key} /healthz", "Connection: close"), head(f"GET http://u:{key}@h/", "Connection: close")]
    for name in ("Authorization", "X-Trace-Id", "Origin", "Cookie", "Lease-Token", "Upgrade", f"X-{key}", key):
        for value in (key, f"Bearer {key}x", f"Basic {key}", f"orders_{key}"):
            said.append(head("POST /v1/sequences/orders:next", f"{name}: {value}", "Connection: close"))
    bodies = [{"serviceName": key}, {"serviceName": f"orders_{key}", "count": key}, {key: 1}, key]
    for path in ("POST /alloc", "PUT /v1/sequences/orders", "POST /v1/leases/pool"):
        for body in (json.dumps(each).encode() for each in bodies):
            said.append(head(path, f"Authorization: Bearer {key}", "Connection: close", length=len(body)) + body)
    return said


PATHS = [
    ("/v1/sequences/", ":next"),
    ("/v1/sequences/orders:next?count=", ""),
    ("/v1/ids/", ""),
    ("/", ""),
    ("/?", "=1"),
]
COMMANDS = [
    "INCR {}",
    "INCR orders_{}",
    "INCRBY a{} 5",
    "INCRBY orders {}",
    "GET {}",
    "MINT {}",
    "MINT sno META {}",
    "{}",
]
COMMANDS += ["ECHO {}", "SELECT {}", "CLIENT {}", "CLIENT SETNAME {}", "HELLO {}", "COMMAND DOCS {}", "x{} y"]


@pytest.mark.parametrize("known", [True, False])
def test_key_appears_in_no_log_line(tmp_path: Path, known: bool) -> None:
    key, other = new_key(), new_key()
    toml = key_toml("shop", key if known else other, {"*": ["admin"]})
    with running(tmp_path / "service", "--access-log", "all", "--log-level", "debug", toml=toml) as service:
        for each in requests_with(key):
            say(service.http, each)
        auth = [command("AUTH", key)] if known else []
        lines = [each.format(key) for each in COMMANDS]
        for each in [*(command(*line.split()) for line in lines), *(f"{line}\r\n".encode() for line in lines)]:
            say(service.redis, *auth, each, command("AUTH", f"{key}x"), command("QUIT"))
        assert parts_in(service, key) == []


def parts_in(service: Running, key: str) -> list[str]:
    """Return lines of the log that contain 16 or more characters of a key, in any case."""
    parts = [key[at : at + 16].lower() for at in range(5, len(key) - 15)]
    return [line for line in service.logged().splitlines() if any(part in line.lower() for part in parts)]
