"""The example of FastAPI, as it is deployed: gunicorn, two workers of uvicorn, a real PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import psycopg
import pytest

from mintage import sno
from tests.servers.server import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import PostgreSQL

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "fastapi"
WORKERS: Final = 2
INSERTS: Final = 10_000
CONNECTIONS: Final = 64
START_S: Final = 60


@pytest.fixture
def url(postgresql: PostgreSQL, tmp_path: Path) -> Iterator[str]:
    port = free_port()
    log = tmp_path / "gunicorn.log"
    worker = ["--workers", str(WORKERS), "--worker-class", "uvicorn_worker.UvicornWorker"]
    command = [sys.executable, "-m", "gunicorn", *worker, "--bind", f"{HOST}:{port}", "--no-control-socket", "app:app"]
    environment = {**os.environ, "DATABASE_URL": postgresql.url, "MINTAGE_HOME": str(tmp_path / "home")}
    with log.open("wb") as file:
        process = subprocess.Popen(command, cwd=EXAMPLE, env=environment, stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + START_S
        while log.read_text(encoding="utf-8").count("Application startup complete") < WORKERS:
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield f"http://{HOST}:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert process.returncode == 0, log.read_text(encoding="utf-8")


async def post(url: str, path: str, body: bytes, count: int) -> list[dict[str, Any]]:
    """The answers to ``count`` requests over one connection, one after the other."""
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


def test_two_workers_insert_ten_thousand_orders_at_once_and_no_id_is_twice(url: str, postgresql: PostgreSQL) -> None:
    with httpx.Client(base_url=url) as client:
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
        assert found == {"id": str(one), "customer": customer["id"], "item": "tea", "count": 1}
        page = client.get("/orders", params={"customer": customer["id"], "limit": 1000}).raise_for_status().json()
        assert [sno.ID.parse(each["id"]) for each in page] == sorted(ids)[:1000]
        rest = client.get("/orders", params={"customer": customer["id"], "after": str(max(ids))}).json()
        assert rest == []


def test_a_bad_id_is_refused_with_the_code_of_mintage(url: str) -> None:
    with httpx.Client(base_url=url) as client:
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
