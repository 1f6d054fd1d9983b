"""Tests of the example of Django by its README: PostgreSQL, two gunicorn workers, ten thousand rows at once."""

from __future__ import annotations

import json
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from mintage import open_store, sno, typeid, ulid
from tests.examples.readme import Example, json_values
from tests.servers.server import HOST, free_port

pytest.importorskip("django")
pytest.importorskip("rest_framework")
pytest.importorskip("drf_spectacular")
pytest.importorskip("gunicorn")
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import PostgreSQL

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


class Shop(Example):
    """The example on a PostgreSQL of its own, and the port of gunicorn."""

    def __init__(self, folder: Path, database: str) -> None:
        self.port = free_port()
        options = f"--bind={HOST}:{self.port} --worker-tmp-dir={folder} --no-control-socket"
        environment = {"DATABASE_URL": database, "SECRET_KEY": "k" * 50, "GUNICORN_CMD_ARGS": options}
        super().__init__("django", folder, environment, {"127.0.0.1:8000": f"{HOST}:{self.port}"})
        at = next(number for number, line in enumerate(self.lines) if line.startswith("gunicorn"))
        self.before, self.serving, self.asking = self.lines[:at], self.lines[at], self.lines[at + 1 :]

    def manage(self, words: str) -> str:
        return self.run(f"python manage.py {words}")

    def python(self, program: str) -> str:
        """Return the output of a program in the shell of Django."""
        return self.manage(f"shell --no-imports --command {shlex.quote(program)}")


@pytest.fixture
def shop(postgresql: PostgreSQL, tmp_path: Path) -> Shop:
    shop = Shop(tmp_path, postgresql.url)
    # Its tables are made beforehand: on a busy machine that may last longer than the second that a first ID waits.
    with open_store(postgresql.url) as store:
        store.describe()
    for line in shop.before:
        shop.run(line)
    return shop


@pytest.fixture
def service(shop: Shop) -> Iterator[httpx.Client]:
    base = f"http://{HOST}:{shop.port}"
    with (
        shop.serve(shop.serving, f"{base}/api/orders/"),
        httpx.Client(base_url=base, timeout=60, trust_env=False) as client,
    ):
        yield client


def post(client: httpx.Client, path: str, body: object) -> httpx.Response:
    """Return the answer to a body; repeat the request if the service cannot mint now, as on a machine that stalls."""
    for _ in range(30):
        answer = client.post(path, json=body)
        if answer.status_code != 503:
            return answer
        time.sleep(int(answer.headers["Retry-After"]))
    return answer


def test_migrations_match_the_models(shop: Shop) -> None:
    shop.check_installs()
    shop.manage("makemigrations --check --dry-run")
    assert "no issues" in shop.manage("check")
    warnings = shop.run("python manage.py check --deploy", check=False)
    assert "security.W" in warnings
    assert "mintage.W" not in warnings


def test_commands_of_the_readme_make_an_order_with_an_invoice(shop: Shop, service: httpx.Client) -> None:
    names, _, answers = shop.run("\n".join(shop.asking)).partition("\n")
    customer, order = names.split()
    number, listed, refused = json_values(answers)
    assert typeid.ID.parse(customer, "cust").as_uuid().version == 7
    assert number == {"number": 1}
    assert [(each["id"], each["customer"]) for each in listed["results"]] == [(order, customer)]
    assert sno.ID.parse(order).time.year >= 2026
    assert refused["customer"][0].startswith("typeid suffix has 16 characters")
    again = service.post(f"/api/orders/{order}/invoice/")
    assert (again.status_code, again.json()) == (200, {"number": 1})


def test_ids_of_relations_are_checked_as_strictly_as_keys(shop: Shop, service: httpx.Client) -> None:
    user = int(shop.python("from orders.models import User; print(User.objects.create_user('reader').pk)"))
    assert user > 2**53
    customer = post(service, "/api/customers/", {"name": "Ada"}).json()["id"]
    made = post(service, "/api/orders/", {"title": "tea", "customer": customer, "buyer": str(user)})
    assert (made.status_code, made.json()["buyer"]) == (201, str(user))
    other = made.json()["id"]
    # JavaScript would have rounded the number; an ID of another table is none of this one's.
    for field, values in (
        ("buyer", [user, user + 1, float(user), True, "x", other]),
        ("customer", [user, 1.5, other, customer.replace("cust_", "user_"), customer.upper(), {}]),
    ):
        for value in values:
            answer = post(service, "/api/orders/", {"title": "tea", field: value})
            assert (answer.status_code, list(answer.json())) == (400, [field]), (value, answer.text[:500])
    missing = str(sno.new())
    assert service.get(f"/api/orders/{missing}/").status_code == 404
    schema = service.get("/schema/", params={"format": "json"}).json()["components"]["schemas"]["Order"]["properties"]
    assert {name: schema[name]["type"] for name in ("id", "buyer", "customer")} == dict.fromkeys(
        ("id", "buyer", "customer"), "string"
    )


def test_rows_of_dumpdata_are_restored_by_loaddata(shop: Shop) -> None:
    shop.python(
        "from orders.models import *; c = Customer.objects.create(name='Ada');"
        "o = Order.objects.create(title='tea', customer=c); Event.objects.create(order=o, number=0);"
        "Invoice.objects.create(order=o)"
    )
    shop.manage("dumpdata orders --output shop.json")
    before = json.loads((shop.folder / "shop.json").read_text(encoding="utf-8"))
    shop.manage("flush --no-input")
    shop.manage("loaddata shop.json")
    shop.manage("dumpdata orders --output again.json")
    assert json.loads((shop.folder / "again.json").read_text(encoding="utf-8")) == before
    # Numbers go on: those of the store are not in the tables that were flushed.
    program = "from orders.models import *; o = Order.objects.create(title='ink');"
    assert shop.python(program + "print(Invoice.objects.create(order=o).number)") == "2\n"


def test_check_names_an_app_with_another_default_key(shop: Shop) -> None:
    apps = shop.folder / "orders/apps.py"
    apps.write_text(
        "from django.apps import AppConfig\n\n\nclass Orders(AppConfig):\n    name = 'orders'\n"
        "    default_auto_field = 'django.db.models.BigAutoField'\n",
        encoding="utf-8",
    )
    assert "mintage.W002" in shop.run("python manage.py check", check=False)


def test_temporary_failure_to_mint_is_answered_503(shop: Shop) -> None:
    said = shop.python(
        "from mintage.errors import StoreError; from orders.api import answer_errors;"
        "e = StoreError('away', code='store.unavailable', retry_after_ms=1200); a = answer_errors(e, {});"
        "print(a.status_code, a['Retry-After'])"
    )
    assert said == "503 2\n"


def test_ten_thousand_rows_of_two_workers_have_unique_ids(shop: Shop, service: httpx.Client) -> None:
    def post_all(client: int) -> list[Any]:
        made = []
        with httpx.Client(base_url=service.base_url, timeout=60, trust_env=False) as http:
            for request in range(REQUESTS):
                body = [{"title": f"{client}-{request}-{number}", "events": EVENTS} for number in range(ORDERS)]
                answer = post(http, "/api/orders/", body)
                assert answer.status_code == 201, answer.text[:500]
                made += answer.json()
        return made

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = [each for part in pool.map(post_all, range(CLIENTS)) for each in part]
    assert {type(each["id"]) for each in answers} == {str}
    found = json.loads(shop.python(IN_PYTHON))
    expected = CLIENTS * REQUESTS * ORDERS
    assert len({*found["orders"]}) == len(found["orders"]) == expected
    assert {each["id"] for each in answers} == {*found["orders"]}
    assert len({*found["events"]}) == len(found["events"]) == expected * EVENTS
    assert len(found["partitions"]) == 2
    assert sno.ID.parse(found["orders"][0]).time <= ulid.ID.parse(max(found["events"])).time

    with httpx.Client(base_url=service.base_url, timeout=60, trust_env=False) as http:
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
