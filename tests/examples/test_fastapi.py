"""Tests of the example of FastAPI as deployed: gunicorn, two uvicorn workers, a real PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, Final

import httpx
import psycopg
import pytest

from mintage import sno
from tests.examples.readme import Example, json_values
from tests.helpers import web
from tests.servers.server import HOST, free_port, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import PostgreSQL

WORKERS: Final = 2
INSERTS: Final = 10_000
CONNECTIONS: Final = 64


class Shop(Example):
    """The example on a PostgreSQL, and the port of gunicorn."""

    def __init__(self, folder: Path, database: str) -> None:
        self.url = f"http://{HOST}:{free_port()}"
        address = self.url.removeprefix("http://")
        options = f"--bind={address} --worker-tmp-dir={folder} --no-control-socket"
        environment = {"DATABASE_URL": database, "GUNICORN_CMD_ARGS": options}
        super().__init__("fastapi", folder, environment, {"127.0.0.1:8000": address})
        self.serving, *self.asking = self.lines


@pytest.fixture
def shop(postgresql: PostgreSQL, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path, postgresql.url)
    with shop.serve(shop.serving, f"{shop.url}/healthz"):
        # One of the workers answers; the other may still lease.
        until(lambda: shop.log.read_text(encoding="utf-8").count("startup complete") == WORKERS, "all workers serve")
        yield shop


@pytest.fixture
def url(shop: Shop) -> str:
    return shop.url


async def post(url: str, path: str, body: bytes, count: int) -> list[dict[str, Any]]:
    """Return the answers to ``count`` requests over one connection, one after the other."""
    reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    answers = []
    for _ in range(count):
        writer.write(head.encode() + body)
        answered = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"(?i)\r\ncontent-length: (\d+)\r\n", answered)
        assert answered.startswith("HTTP/1.1 201 ")
        assert length
        answers.append(json.loads(await reader.readexactly(int(length[1]))))
    writer.close()
    await writer.wait_closed()
    return answers


async def post_all(url: str, path: str, body: bytes) -> list[dict[str, Any]]:
    shares = [len(range(i, INSERTS, CONNECTIONS)) for i in range(CONNECTIONS)]
    answers = await asyncio.gather(*(post(url, path, body, share) for share in shares))
    return [each for several in answers for each in several]


def test_two_workers_insert_ten_thousand_orders_with_unique_ids(url: str, postgresql: PostgreSQL) -> None:
    with httpx.Client(base_url=url, timeout=60) as client:
        customer = client.post("/customers", json={"name": "Ada"}).raise_for_status().json()
        # Text in JSON, as JavaScript would round the number; and an integer of its layout.
        assert re.fullmatch("[0-9]{18,19}", customer["id"])
        assert int(customer["id"]) > 2**53
        body = json.dumps({"customer": customer["id"], "item": "tea"}).encode()
        answers = asyncio.run(post_all(url, "/orders", body))
        assert len(answers) == INSERTS
        ids = {sno.ID.parse(each["id"]) for each in answers}
        assert len(ids) == INSERTS
        assert {each["customer"] for each in answers} == {customer["id"]}

        # Both workers minted, each under a node number of its own.
        assert len({each.partition for each in ids}) == WORKERS
        with psycopg.connect(postgresql.url) as connection:
            stored = {sno.ID(key) for (key,) in connection.execute("SELECT id FROM orders")}
            numbers = {number for (number,) in connection.execute("SELECT DISTINCT customer FROM orders")}
        assert stored == ids
        assert numbers == {int(customer["id"])}

        # A row comes back as the object, and goes out as its text.
        one = min(ids)
        found = client.get(f"/orders/{one}").raise_for_status().json()
        receipt = found.pop("receipt")
        assert found == {"id": str(one), "customer": customer["id"], "item": "tea", "count": 1}
        assert client.get(f"/receipts/{receipt}").json() == {**found, "receipt": receipt}
        page = client.get("/orders", params={"customer": customer["id"], "limit": 1000}).raise_for_status().json()
        assert [sno.ID.parse(each["id"]) for each in page] == sorted(ids)[:1000]
        rest = client.get("/orders", params={"customer": customer["id"], "after": str(max(ids))}).json()
        assert rest == []
        since = {"customer": customer["id"], "since": max(ids).time.isoformat(), "limit": 1000}
        late = client.get("/orders", params=since).raise_for_status().json()
        assert {each["id"] for each in late} == {str(each) for each in ids if each.time >= max(ids).time}
        assert client.get("/orders", params={**since, "since": "2026-01-01T00:00:00"}).status_code == 422


def test_commands_of_the_readme_are_answered_as_it_says(shop: Shop) -> None:
    shop.check_installs()
    names, _, answers = shop.run("\n".join(shop.asking)).partition("\n")
    customer, order = names.split()
    made, found, listed, refused = json_values(answers)
    assert (made["id"], made["customer"]) == (order, customer)
    assert found == made
    assert listed == [made]
    assert refused["detail"][0]["type"] == "parse.length"
    assert web.get(f"{shop.url}/orders/{order}", trust_env=False).status_code == 404


def test_temporary_failure_to_mint_is_answered_503(tmp_path: Path) -> None:
    example = Example("fastapi", tmp_path, {"DATABASE_URL": "postgresql://127.0.0.1:1/none"})
    said = example.run(
        "python -c 'import asyncio, app; from mintage.errors import StoreError;"
        ' e = StoreError("away", code="store.unavailable", retry_after_ms=1200);'
        ' a = asyncio.run(app.try_again(None, e)); print(a.status_code, a.headers["retry-after"])\''
    )
    assert said == "503 2\n"


def test_bad_id_is_refused_with_the_code_of_mintage(url: str) -> None:
    with httpx.Client(base_url=url, timeout=60) as client:
        for path, code in (
            ("/orders/short", "parse.length"),
            ("/orders/0000000000000000", "parse.character"),
            ("/orders?customer=1.5", "parse.unknown"),
            (f"/orders?customer={2**63}", "field.range"),
        ):
            refused = client.get(path)
            assert refused.status_code == 422
            assert [each["type"] for each in refused.json()["detail"]] == [code]
        assert client.get(f"/orders/{sno.ID.MAX}").status_code == 404
        missing = client.post("/orders", json={"customer": "1", "item": "tea"})
        assert missing.status_code == 404
        schema = client.get("/openapi.json").json()["components"]["schemas"]["Order"]["properties"]
        assert schema["id"]["pattern"] == "^[2-9a-x]{16}$"
        assert schema["customer"]["format"] == "int64"
