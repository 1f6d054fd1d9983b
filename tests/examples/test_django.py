"""The example of Django: a project on PostgreSQL, two workers of gunicorn, and ten thousand rows at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mintage import open_store, sno, ulid
from tests.servers.server import HOST, free_port, until

pytest.importorskip("django")
pytest.importorskip("rest_framework")
pytest.importorskip("drf_spectacular")
pytest.importorskip("gunicorn")
httpx = pytest.importorskip("httpx")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import PostgreSQL

EXAMPLE = Path(__file__).parents[2] / "examples" / "django"
CLIENTS, REQUESTS, ORDERS, EVENTS = 16, 20, 16, 1
"""A request has a list of orders, and each order an event: 10,240 rows, of which each is an insert of its own."""

IN_PYTHON = """
import json
from mintage import sno, snowflake, ulid
from orders.models import Event, Order, User

assert {type(each) for each in Order.objects.values_list("pk", flat=True)} == {sno.ID}
assert {type(each) for each in Event.objects.values_list("pk", flat=True)} == {ulid.ID}
user = User.objects.create_user("reader")
assert snowflake.DEFAULT.parse(user.pk).time.year >= 2026
orders = Order.objects.order_by("pk")
assert list(orders) == sorted(orders, key=lambda order: order.pk)
found = {"orders": [str(each.pk) for each in orders], "events": [str(each.pk) for each in Event.objects.all()]}
found["partitions"] = sorted({each.pk.partition for each in orders})
print(json.dumps(found))
"""


def manage(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done


@pytest.fixture
def environment(postgresql: PostgreSQL, tmp_path: Path) -> dict[str, str]:
    ours = {
        "DATABASE_URL": postgresql.url,
        "SECRET_KEY": "k" * 50,
        "MINTAGE_HOME": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment = {**os.environ, **ours}
    # Its tables are made beforehand: on a busy machine that may last longer than the second that a first ID waits.
    with open_store(postgresql.url) as store:
        store.describe()
    manage(environment, "migrate", "--verbosity=0")
    return environment


@pytest.fixture
def service(environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    port = free_port()
    options = ["--workers=2", f"--bind={HOST}:{port}", f"--worker-tmp-dir={tmp_path}", "--no-control-socket"]
    with (tmp_path / "log").open("w+") as log:
        gunicorn = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *options, "shop.wsgi"],
            cwd=EXAMPLE,
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            base = f"http://{HOST}:{port}"

            def answers() -> bool:
                assert gunicorn.poll() is None, (tmp_path / "log").read_text()
                try:
                    return bool(httpx.get(f"{base}/api/orders/", trust_env=False).status_code == 200)
                except httpx.TransportError:
                    return False

            until(answers, "gunicorn answers")
            yield base
        finally:
            gunicorn.terminate()
            gunicorn.wait(30)


def test_the_migrations_are_those_of_the_models(environment: dict[str, str]) -> None:
    manage(environment, "makemigrations", "--check", "--dry-run")
    warnings = manage(environment, "check", "--deploy").stderr
    assert "security.W" in warnings
    assert "mintage.W001" not in warnings


def test_ten_thousand_rows_of_two_workers_have_ten_thousand_ids(service: str, environment: dict[str, str]) -> None:
    def post(client: int) -> list[Any]:
        made = []
        with httpx.Client(base_url=service, timeout=60, trust_env=False) as http:
            for request in range(REQUESTS):
                body = [{"title": f"{client}-{request}-{number}", "events": EVENTS} for number in range(ORDERS)]
                answer = http.post("/api/orders/", json=body)
                assert answer.status_code == 201, answer.text[:500]
                made += answer.json()
        return made

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = [each for part in pool.map(post, range(CLIENTS)) for each in part]
    assert {type(each["id"]) for each in answers} == {str}
    found = json.loads(manage(environment, "shell", "--no-imports", "--command", IN_PYTHON).stdout)
    expected = CLIENTS * REQUESTS * ORDERS
    assert len({*found["orders"]}) == len(found["orders"]) == expected
    assert {each["id"] for each in answers} == {*found["orders"]}
    assert len({*found["events"]}) == len(found["events"]) == expected * EVENTS
    assert len(found["partitions"]) == 2
    assert sno.ID.parse(found["orders"][0]).time <= ulid.ID.parse(max(found["events"])).time

    with httpx.Client(base_url=service, trust_env=False) as http:
        one = found["orders"][-1]
        order = http.get(f"/api/orders/{one}/").json()
        assert order["id"] == one
        assert http.get("/api/orders/x/").status_code == 404
        page = http.get("/api/orders/").json()
        assert [each["id"] for each in page["results"]] == found["orders"][:100]
        assert [each["id"] for each in http.get(page["next"]).json()["results"]] == found["orders"][100:200]
        assert http.get("/api/orders/", params={"after": "2026-01-01"}).status_code == 400
        since = http.get("/api/orders/", params={"after": sno.ID.parse(one).time.isoformat()}).json()["results"]
        assert one in {each["id"] for each in since}
        schema = http.get("/schema/", params={"format": "json"}).json()["components"]["schemas"]["Order"]
        assert schema["properties"]["id"]["type"] == "string"
