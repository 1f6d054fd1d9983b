"""Tests of the console's pages of ends and use, and of its actions: over HTTP, without JavaScript, on real stores."""

from __future__ import annotations

import csv
import io
import os
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from mintage.errors import StoreError
from mintage.rules import MAX_INTEGER
from mintage.server.config.keys import new_key
from mintage.server.http.app import create_app
from mintage.store import open_store
from mintage.store.memory import MemoryStore
from tests.helpers import web
from tests.helpers.forms import Page, Visitor
from tests.helpers.stores import acquire
from tests.servers.server import until
from tests.service.here import here, run
from tests.service.running import key_toml, running
from tests.service.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mintage.store import Store
    from tests.servers.fixtures import Servers
    from tests.service.running import Running

KEYS = {name: new_key() for name in ("ops", "reader", "maker", "nobody")}
RIGHTS: dict[str, dict[str, list[str]]] = {
    "ops": {"*": ["admin"]},
    "reader": {"*": ["describe"]},
    "maker": {"made*": ["create", "describe"]},
    "nobody": {"orders": ["next"]},
}


class World:
    """A service with keys, its store, and a visitor for each key."""

    def __init__(self, service: Running, store: Store, stack: ExitStack) -> None:
        self.service = service
        self.store = store
        self._stack = stack
        self._visitors: dict[str, Visitor] = {}

    def visitor(self, key: str = "ops") -> Visitor:
        if key not in self._visitors:
            self._visitors[key] = self._stack.enter_context(Visitor(self.service.url, KEYS[key]))
        return self._visitors[key]

    def get(self, path: str, key: str = "ops", **query: str) -> Page:
        return self.visitor(key).get(path, **query)

    def take(self, namespace: str, n: int = 1, key: str = "ops") -> None:
        """Take integers of a namespace, which creates it."""
        headers = {"Authorization": f"Bearer {KEYS[key]}"}
        url = f"{self.service.url}/v1/sequences/{namespace}:next"
        assert web.post(url, params={"count": n}, headers=headers).is_success

    def changes(self) -> list[dict[str, Any]]:
        """Return the changes in the log, without their times."""
        facts = ("event", "key", "method", "path", "interface")
        found = [each for each in self.service.events() if each["event"] == "changed"]
        return [{name: value for name, value in each.items() if name in facts or name == "floor"} for each in found]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    home = tmp_path_factory.mktemp("console")
    url = f"sqlite:///{home}/ids.db"
    if request.param == "postgresql":
        from tests.servers.postgresql import PostgreSQL

        url = f"{servers.get(PostgreSQL).url}?timeout_ms=60000"
    toml = "auto_create = true\n" + "".join(key_toml(name, KEYS[name], RIGHTS[name]) for name in KEYS)
    with ExitStack() as stack:
        service = stack.enter_context(running(home, toml=toml, store=url))
        store = stack.enter_context(open_store(url))
        # All viewers share a list for five seconds, so what the lists have is there before them.
        store.create_namespace("ending.codes", maximum=5)
        store.reserve("ending.codes", 5)
        store.create_namespace("file.codes", maximum=10)
        acquire(store, "ending.pool", nodes=range(100))
        yield World(service, store, stack)


# --- what will run out, and when? ---------------------------------------------------------------------------------


def test_used_up_namespace_is_at_the_top_of_the_ends(world: World) -> None:
    page = world.get("/ends", **{"namespaces.q": "ending."})
    assert page.status == 200
    assert page.text.index("ending.codes") < page.text.index("Namespaces by days left")
    assert "used up" in page.text


def test_ends_have_pools_and_layouts(world: World) -> None:
    page = world.get("/ends", **{"pools.q": "ending.pool"})
    assert "ending.pool" in page.text
    assert "2079" in page.text


@pytest.mark.parametrize("path", ["/ends", "/use"])
def test_page_needs_the_right_to_describe_all_names(world: World, path: str) -> None:
    assert world.get(path, "reader").status == 200
    assert world.get(path, "maker").status == 403


def test_ends_are_a_file_too(world: World) -> None:
    query = {"format": "csv", "table": "namespaces", "namespaces.q": "file.codes"}
    [row] = csv.DictReader(io.StringIO(world.get("/ends", **query).html))
    assert (row["namespace"], row["left"], row["state"]) == ("file.codes", "10", "rate not known")
    found = world.get("/ends", **{**query, "format": "json"}).json
    assert found is not None
    assert [each["left"] for each in found()] == ["10"]


# --- who uses how much? -------------------------------------------------------------------------------------------


def test_use_names_namespaces_and_keys(world: World) -> None:
    for _ in range(3):
        world.take("used.orders", 7)
    world.take("orders", 5, "nobody")
    until(lambda: "used.orders" in world.get("/use").text, "the use is counted")
    [row] = csv.DictReader(
        io.StringIO(world.get("/use", **{"format": "csv", "table": "namespaces", "namespaces.q": "used.orders"}).html)
    )
    assert (row["integers_hour"], row["integers_day"]) == ("21", "21")
    found = world.get("/use", format="json", table="keys").json
    assert found is not None
    assert {each["key"]: each["integers_hour"] for each in found()}["nobody"] == 5
    assert 'aria-label="Integers of used.orders, last hour' in world.get("/use").html


def test_keys_are_shown_to_those_who_may_read_metrics(world: World) -> None:
    assert "Keys by integers" in world.get("/use").text
    assert "Keys by integers" not in world.get("/use", "reader").text


def test_page_of_a_namespace_has_its_facts(world: World) -> None:
    world.store.create_namespace("facts.codes", start=100, maximum=1_999)
    world.store.reserve("facts.codes", 10)
    page = world.get("/namespaces/facts.codes", "reader")
    assert "Last integer reserved 109" in page.text
    assert "Integers left 1,890" in page.text
    assert "Raise its floor" not in page.text
    assert "Raise its floor" in world.get("/namespaces/facts.codes").text


def test_namespace_names_the_holder_that_reserved_last(world: World) -> None:
    world.store.create_namespace("last.none")
    assert "Reserved last by not known" in world.get("/namespaces/last.none").text
    for host in ("web-1:7", "web-2:8"):
        world.store.reserve("last.orders", 1000, holder=f"{host}:1732240000:0:0.1.0")
    page = world.get("/namespaces/last.orders", "reader")
    assert "Reserved last by process 8 on web-2" in page.text
    assert "1,001 to 2,000, until" in page.text


@pytest.mark.parametrize(
    ("name", "status"), [("no.such", 404), ("%3Cb%3E", 400), ("a%0Ab", 404), ("%E2%80%AE", 400), ("n" * 300, 400)]
)
def test_page_of_a_name_that_no_namespace_has_is_an_error(world: World, name: str, status: int) -> None:
    page = world.get(f"/namespaces/{name}")
    assert page.status == status
    assert "<b>" not in page.html


def test_counts_outlive_the_workers_that_counted(tmp_path: Path) -> None:
    service = Serving(tmp_path / "service", f"sqlite:///{tmp_path}/ids.db", workers=2)

    def counted() -> set[int]:
        """Return what the console says, asked often enough to reach both workers."""
        url = f"{service.url}/console/use?format=json&table=namespaces"
        return {each["integers_hour"] for _ in range(8) for each in web.get(url).json()}

    try:
        service.start()
        for _ in range(20):
            url = f"{service.url}/v1/sequences/orders:next"
            assert web.post(url, params={"count": 5}).is_success
        until(lambda: counted() == {100}, "all workers have counted")
        before = set(service.workers())
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        until(lambda: len(set(service.workers()) - before) == 2, "the workers are replaced")
        assert counted() == {100}
    finally:
        service.kill()


# --- actions ------------------------------------------------------------------------------------------------------


def confirm(world: World, page: Page, typed: str, key: str = "ops", **fields: str) -> Page:
    return world.visitor(key).send(page.form("typed"), typed=typed, **fields)


def test_floor_is_raised_after_the_name_is_typed(world: World) -> None:
    world.store.reserve("floor.orders", 23)
    assert "Floor none" in world.get("/namespaces/floor.orders").text
    page = world.get("/namespaces/floor.orders/raise-floor")
    assert not any("typed" in form.fields for form in page.forms)
    page = world.visitor().send(page.form("floor"), floor="5000")
    assert "It skips 4,976 integers: those from 24 to 4,999." in page.text
    page = confirm(world, page, "floor.orders")
    assert (page.status, page.path) == (200, "/console/namespaces/floor.orders")
    assert "The floor is raised." in page.text
    assert "Floor 5,000" in page.text
    assert world.store.reserve("floor.orders", 1).first == 5_000


def test_action_is_an_event_as_the_request_of_the_api_is(world: World) -> None:
    world.store.reserve("logged.orders", 1)
    page = world.get("/namespaces/logged.orders/raise-floor", floor="50")
    confirm(world, page, "logged.orders")
    request = {"method": "PUT", "path": "/v1/sequences/logged.orders", "floor": 50}
    assert {"event": "changed", "key": "ops", "interface": "console", **request} in world.changes()
    found = world.get("/events", q="logged.orders", format="json").json
    assert found is not None
    assert [(each["kind"], each["actor"]) for each in found()] == [("changed", "ops")]


def test_wrong_name_does_nothing_and_keeps_the_values(world: World) -> None:
    world.store.reserve("typo.orders", 1)
    page = confirm(world, world.get("/namespaces/typo.orders/raise-floor", floor="77"), "typo.order")
    assert page.status == 400
    assert "nothing was done" in page.text
    form = page.form("typed")
    assert (form.fields["floor"], form.fields["typed"]) == ("77", "typo.order")
    record = world.store.get_namespace("typo.orders")
    assert record is not None
    assert record.floor == 0


@pytest.mark.parametrize("value", ["", "12x", "-1", "9223372036854775808", "1" * 30, "<b>1</b>"])
def test_wrong_value_is_one_error_that_keeps_it(world: World, value: str) -> None:
    page = world.get("/namespaces/values.orders/raise-floor", floor=value)
    assert page.status == 400
    assert page.form("floor").fields["floor"] == value
    assert "<b>" not in page.html


@pytest.mark.parametrize(
    "query", ["?name=new&layout=none", "?name=new&span_ms=1", "?name=new&layout=snowflake+time:99", "?name=%ff", "?a=1"]
)
def test_wrong_pool_is_refused_as_the_fault_of_the_form(world: World, query: str) -> None:
    assert world.get(f"/create/pool{query}").status == 400


def test_second_submit_does_nothing(world: World) -> None:
    world.store.reserve("twice.orders", 1)
    page = world.get("/namespaces/twice.orders/raise-floor", floor="50")
    confirm(world, page, "twice.orders")
    before = len(world.changes())
    again = confirm(world, page, "twice.orders")
    assert again.status == 409
    assert "nothing was done" in again.text
    assert len(world.changes()) == before


def test_form_of_an_earlier_state_does_nothing(world: World) -> None:
    world.store.reserve("stale.orders", 1)
    page = world.get("/namespaces/stale.orders/raise-floor", floor="50")
    world.store.raise_floor("stale.orders", 40)
    again = confirm(world, page, "stale.orders")
    assert (again.status, "request.stale" in again.text) == (409, True)
    record = world.store.get_namespace("stale.orders")
    assert record is not None
    assert record.floor == 40
    # The page shows what the action does now, and its form does it.
    assert "It skips 10 integers: those from 40 to 49." in again.text
    assert confirm(world, again, "stale.orders").status == 200


def test_changed_value_needs_a_page_of_its_own(world: World) -> None:
    world.store.reserve("forged.orders", 1)
    page = world.get("/namespaces/forged.orders/raise-floor", floor="50")
    assert confirm(world, page, "forged.orders", floor=str(MAX_INTEGER)).status == 409


def test_action_whose_answer_is_lost_may_have_been_done(monkeypatch: pytest.MonkeyPatch) -> None:
    raise_floor = MemoryStore.raise_floor

    def lost(self: MemoryStore, name: str, value: int) -> None:
        raise_floor(self, name, value)
        raise StoreError("the connection ended within the answer", code="store.unavailable")

    monkeypatch.setattr(MemoryStore, "raise_floor", lost)

    async def main() -> None:
        async with here() as at:
            transport = httpx.ASGITransport(create_app(at.service), client=("127.0.0.1", 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                form = Page(await client.get("/console/namespaces/orders/raise-floor?floor=99")).form("typed")
                for typed, status, is_unknown in (("order", 400, False), ("orders", 503, True), ("orders", 409, False)):
                    page = Page(await client.post(form.action, data={**form.fields, "typed": typed}))
                    assert (page.status, "not known whether this was done" in page.text) == (status, is_unknown)
                    assert ("nothing was done" in page.text) != is_unknown

    run(main)


def test_value_that_was_pasted_with_a_tab_reaches_the_action(world: World) -> None:
    page = world.get("/create/namespace", name="pasted.orders\t", start="5\t")
    assert confirm(world, page, "pasted.orders\t").status == 200
    record = world.store.get_namespace("pasted.orders")
    assert record is not None
    assert record.start == 5


def test_namespace_is_retired_for_good(world: World) -> None:
    world.store.reserve("over.orders", 7)
    page = world.get("/namespaces/over.orders/retire")
    assert "Nothing undoes this." in page.text
    assert "The last integer that is reserved is 7." in page.text
    page = confirm(world, page, "over.orders")
    assert "The namespace is retired." in page.text
    record = world.store.get_namespace("over.orders")
    assert record is not None
    assert record.retired
    assert world.get("/namespaces/over.orders/retire").status == 410


def test_namespace_is_created_with_its_bounds(world: World) -> None:
    page = world.visitor("maker").send(
        world.get("/create/namespace", "maker").form("start"), name="made.codes", start="100", maximum="999"
    )
    assert "made.codes hands out 900 integers, from 100 to at most 999." in page.text
    page = confirm(world, page, "made.codes", "maker")
    assert page.path == "/console/namespaces/made.codes"
    record = world.store.get_namespace("made.codes")
    assert record is not None
    assert (record.high_water, record.maximum) == (99, 999)


def test_pool_that_was_never_used_is_typed_out(world: World) -> None:
    page = world.get("/create/pool", name="made.pool", layout="twitter", never_used="yes")
    assert "If this is false, IDs repeat." in page.text
    assert confirm(world, page, "made.pool").status == 400
    confirm(world, page, "made.pool was never used")
    assert [each.layout for each in world.store.each_pool() if each.name == "made.pool"] != []


def test_share_of_a_pool_is_narrowed_and_shown(world: World) -> None:
    page = world.get("/create/pool", name="shared.pool", layout="twitter", nodes="0-511")
    assert "It grants only the numbers 0 to 511: its share." in page.text
    page = confirm(world, page, "shared.pool")
    assert "0-511: it grants no other numbers" in page.text
    page = world.get("/create/pool", name="shared.pool", layout="twitter", nodes="0-255")
    assert "mints to the end of its window" in page.text
    assert "0-255: it grants no other numbers" in confirm(world, page, "shared.pool").text
    for nodes in ("0-511", "0-1024", "5-2", "all"):
        page = world.get("/create/pool", name="shared.pool", layout="twitter", nodes=nodes)
        assert page.status == 400
    record = world.store.get_pool("shared.pool")
    assert record is not None
    assert record.share == range(256)


def test_lease_is_revoked_from_its_holder(world: World) -> None:
    lease = acquire(world.store, "revoked.pool", holder="web-1 <b>")
    page = world.get(f"/pools/revoked.pool/{lease.node}/revoke")
    assert "The holder is web-1 <b>." in page.text
    confirm(world, page, f"revoked.pool/{lease.node}")
    [record] = world.store.list_leases("revoked.pool")
    assert record.token is None
    assert confirm(world, page, f"revoked.pool/{lease.node}").status == 409


def test_lease_of_the_next_holder_is_not_revoked(world: World) -> None:
    lease = acquire(world.store, "moved.pool", nodes=range(1), holder="web-1")
    page = world.get("/pools/moved.pool/0/revoke")
    world.store.release(lease, used_until_ms=lease.floor_ms)
    acquire(world.store, "moved.pool", nodes=range(1), holder="web-2", now_ms=world.store.now_ms() + 1_000)
    again = confirm(world, page, "moved.pool/0")
    assert again.status == 409
    assert "The holder is web-2." in again.text
    [record] = world.store.list_leases("moved.pool")
    assert record.token is not None


ACTIONS = [
    "/namespaces/orders/raise-floor?floor=5",
    "/namespaces/orders/retire",
    "/create/namespace?name=orders2",
    "/create/pool?name=sno2",
    "/pools/revoked.pool/0/revoke",
]


@pytest.mark.parametrize("path", ACTIONS)
def test_action_needs_its_right(world: World, path: str) -> None:
    for key in ("reader", "nobody"):
        page = world.get(path, key)
        assert (page.status, [form for form in page.forms if "typed" in form.fields]) == (403, [])


@pytest.mark.parametrize("path", ACTIONS)
def test_form_without_the_token_of_its_session_is_refused(world: World, path: str) -> None:
    visitor = world.visitor()
    sent = visitor.http.post(f"/console{path.partition('?')[0]}", data={"typed": "orders", "basis": "", "token": "x"})
    assert sent.status_code == 403


def test_link_of_another_site_cannot_claim_an_action(world: World) -> None:
    world.store.reserve("claimed.orders", 1)
    url = "/console/namespaces/claimed.orders?done=retire"
    for site, is_shown in (("same-origin", True), ("none", False), ("cross-site", False)):
        answer = world.visitor().http.get(url, headers={"Sec-Fetch-Site": site})
        assert (answer.status_code, "The namespace is retired." in answer.text) == (200, is_shown)


def test_page_of_another_site_can_cause_nothing(world: World) -> None:
    world.store.reserve("cross.orders", 1)
    form = world.get("/namespaces/cross.orders/retire").form("typed")
    page = world.visitor().send(form, site="cross-site", typed="cross.orders")
    assert page.status == 403
    record = world.store.get_namespace("cross.orders")
    assert record is not None
    assert not record.retired
