"""Tests of the log of changes: by whose key, from which address, and what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from mintage import Sequence, snowflake
from mintage.server.config.keys import new_key
from tests.helpers import web
from tests.service.running import key_toml, running

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE = "/v1/sequences/orders"
CHANGES: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("PUT", NAMESPACE, {"start": "5", "stride": 2, "offset": 1}, {"start": 5, "stride": 2, "offset": 1}),
    ("PUT", NAMESPACE, {"floor": "5000"}, {"floor": 5000}),
    ("DELETE", NAMESPACE, None, {}),
    ("PUT", "/v1/pools/sno", {"layout": "sno/1", "never_used": True}, {"layout": "sno/1", "never_used": True}),
]


def test_each_change_is_logged_with_key_and_address(tmp_path: Path) -> None:
    key = new_key()
    with running(tmp_path / "service", toml=key_toml("ops", key, {"*": ["admin"]})) as service:
        with httpx.Client(
            base_url=service.url, timeout=60, headers={"Authorization": f"Bearer {key}", "X-Trace-Id": "t"}
        ) as ops:
            for method, path, body, _ in CHANGES:
                assert ops.request(method, path, json=body).is_success
            with snowflake.Generator(store=f"http://:{key}@{service.url[7:]}") as generator:
                generator.new()
                (held,) = ops.get("/v1/leases?pool=snowflake").json()["leases"]
                revoked = f"/v1/leases/snowflake/{held['node']}:revoke"
                assert ops.post(revoked).is_success
        logged = [each for each in service.events() if each["event"] == "changed"]
        expected = [*CHANGES, ("POST", revoked, None, {})]
        whose = {"level": "info", "event": "changed", "trace_id": "t", "key": "ops", "client": "127.0.0.1"}
        for each, (method, path, _, facts) in zip(logged, expected, strict=True):
            del each["timestamp"]
            assert each == {**whose, "method": method, "path": path, **facts}
        assert key not in service.logged()


def test_only_changes_are_logged_as_such(tmp_path: Path) -> None:
    with running(tmp_path / "service") as service:
        assert web.put(f"{service.url}{NAMESPACE}").is_success
        assert not web.put(f"{service.url}{NAMESPACE}", json={"start": "7"}).is_success
        assert not web.delete(f"{service.url}/v1/leases/sno/0").is_success
        for method, path in [("GET", NAMESPACE), ("POST", f"{NAMESPACE}:next"), ("POST", "/v1/ids/sno")]:
            assert web.request(method, f"{service.url}{path}").is_success
        with (
            Sequence("orders", store=service.url, max_wait_ms=60_000) as orders,
            snowflake.Generator(store=service.url, max_wait_ms=60_000) as generator,
        ):
            orders.next(), generator.new()
        (only,) = [each for each in service.events() if each["event"] == "changed"]
        assert (only["method"], only["path"]) == ("PUT", NAMESPACE)
        assert "key" not in only
