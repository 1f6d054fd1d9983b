"""Pictures of the console for the documentation: ``python -m tests.service.screenshots``.

A service with the data of a small company runs on this machine, and Chromium draws the pages that the documentation
shows, in the light and in the dark theme. The pictures differ from run to run, as their times do: commit them when
pages changed.
"""

from __future__ import annotations

import random
import tempfile
import time
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from mintage.rules import SPAN_MS
from tests.helpers.browser import chromium
from tests.service.running import Running, key_toml, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PICTURES: Final = Path(__file__).parents[2] / "docs" / "pictures" / "console"
KEYS: Final = {name: f"mint_{(name * 9)[:43]}" for name in ("anna", "shop", "billing")}
TOML: Final = (
    key_toml("anna", KEYS["anna"], {"*": ["admin"]})
    + key_toml("shop", KEYS["shop"], {"*": ["next", "create", "mint", "lease"]})
    + key_toml("billing", KEYS["billing"], {"*": ["next", "create"]})
)
NAMESPACES: Final = {
    "orders": 900,
    "order-lines": 2500,
    "invoices": 120,
    "payments": 300,
    "users": 40,
    "shipments": 200,
}
"""The namespaces, and the integers of a request."""
NODE: Final = 99
"""A node number with several holders, one after the other. Above, windows are longer than their holders ask for."""
HOSTS: Final = ("web-1", "web-2", "web-3", "worker-a", "worker-b", "billing-1")
PAGES: Final = {
    "health": "",
    "ends": "ends",
    "pool": "pools/sno",
    "who": "who?id={example}",
    "use": "use",
    "events": "events",
    "node": f"pools/sno/{NODE}",
}
"""The names of the pictures, and the paths of their pages."""
SIZE: Final = {"width": 1180, "height": 740}
QUALITY: Final = 82


def lease_numbers(client: httpx.Client, headers: dict[str, str]) -> None:
    """Lease node numbers for processes of all hosts, and release every fifth of them."""
    for at in range(40):
        body = {
            "nodes": {"first": 0, "last": 1023},
            "layout": "sno/1",
            "holder": f"{HOSTS[at % len(HOSTS)]}:{4000 + 7 * at}:{round(time.time()) - 977 * at}:0:0.1.0",
            "now_ms": time.time_ns() // 1_000_000,
            "span_ms": SPAN_MS,
        }
        lease = client.post("/v1/leases/sno", json=body, headers=headers).json()
        if at % 5 == 0:
            given = {**headers, "Lease-Token": lease["token"]}
            used_until_ms = lease["floor_ms"] + 2000
            client.delete(f"/v1/leases/sno/{lease['node']}?used_until_ms={used_until_ms}", headers=given)


def use(service: Running, seconds: float) -> None:
    """Let clients take integers, mint IDs and lease node numbers for a while."""
    chance = random.Random(7)
    with httpx.Client(base_url=service.url) as client:
        shop, billing = ({"Authorization": f"Bearer {KEYS[name]}"} for name in ("shop", "billing"))
        for name in NAMESPACES:
            client.put(f"/v1/sequences/{name}", headers=shop)
        client.put("/v1/sequences/coupons", json={"maximum": "100000"}, headers=shop)
        client.post("/v1/sequences/coupons:next?count=9000", headers=shop)
        lease_numbers(client, shop)
        client.put("/v1/pools/archive", json={"layout": "ulid"}, headers={**shop, "X-Trace-Id": "deploy-4711"})
        client.get("/v1/store", headers=billing)
        due_s = time.monotonic()
        end_s = due_s + seconds
        while time.monotonic() < end_s:
            if time.monotonic() >= due_s:
                due_s += 4.0
                lease_in_turn(client, shop, chance.choice(HOSTS), chance.choice((1500, 2500, 3500)))
            name = chance.choice(list(NAMESPACES))
            headers = billing if name in {"invoices", "payments"} else shop
            client.post(f"/v1/sequences/{name}:next?count={chance.randint(1, NAMESPACES[name])}", headers=headers)
            client.post(f"/v1/ids/{chance.choice(['sno', 'snowflake'])}?count=3", headers=shop)
            time.sleep(0.02)
        lease_numbers(client, shop)
        while not lease_in_turn(client, shop, "web-2", SPAN_MS):
            time.sleep(0.2)


def lease_in_turn(client: httpx.Client, headers: dict[str, str], host: str, span_ms: int) -> bool:
    """Lease one node number for a while, as processes do that start and stop one after the other.

    :returns: False if another one holds it.
    """
    body = {
        "nodes": {"first": NODE, "last": NODE},
        "layout": "sno/1",
        "holder": f"{host}:4711:{int(time.time()) - 60}:1:0.1.0",
        "now_ms": time.time_ns() // 1_000_000,
        "span_ms": span_ms,
    }
    answer = client.post("/v1/leases/sno", json=body, headers=headers)
    assert answer.is_success or answer.json()["code"] == "lease.none_free", answer.text
    return answer.is_success


def draw(browser: Browser, service: Running, example: str) -> None:
    """Draw each page in both themes."""
    for theme in ("light", "dark"):
        context = browser.new_context(viewport=SIZE, color_scheme=theme)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{service.url}/console/")
        page.get_by_label("Key").fill(KEYS["anna"])
        page.get_by_role("button", name="Sign in").click()
        for name, path in PAGES.items():
            tab = context.new_page()
            answer = tab.goto(f"{service.url}/console/{path.format(example=example)}")
            assert answer is not None
            assert answer.ok, path
            assert "/sign-in" not in tab.url, path
            found = context.new_cdp_session(tab).send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
            (PICTURES / f"{name}-{theme}.webp").write_bytes(b64decode(found["data"]))
            tab.close()
        context.close()


def main() -> None:
    """Draw the pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as home,
        running(Path(home) / "ids", "--workers", "2", toml=TOML) as service,
        chromium() as browser,
    ):
        use(service, 100.0)
        headers = {"Authorization": f"Bearer {KEYS['shop']}"}
        minted = httpx.post(f"{service.url}/v1/ids/sno", headers=headers).json()["ids"]
        draw(browser, service, minted[0])


if __name__ == "__main__":
    main()
