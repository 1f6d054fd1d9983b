"""Tests of the HTTP application: its answers to all kinds of requests."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from base64 import b64encode
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import pytest
import structlog

from mintage import snowflake, ulid
from mintage.errors import CATALOGUE, MintError, StoreError
from mintage.formats.catalogue import LAYOUTS, write_layout
from mintage.formats.kinds import NAMES
from mintage.rules import MAX_COUNT, MAX_INTEGER
from mintage.server.config.keys import digest, new_key
from mintage.server.config.settings import Settings
from mintage.server.core.logs import Sampled
from mintage.server.core.service import FALLBACK_FLOOR, Service
from mintage.server.http.app import create_app
from mintage.server.http.openapi import document
from mintage.server.http.v1 import OPERATIONS
from mintage.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from pathlib import Path

    from mintage.rules import NamespaceRecord, Segment
    from mintage.server.http.v1.operation import Operation

Ask = dict[str, Any]
T = TypeVar("T")
SLOW = snowflake.Layout("time:38 region:4 node:10 sequence:8", epoch_ms=1_262_304_000_000, unit_ms=10)


class Asked:
    """A service without listeners, and a client of its application."""

    def __init__(self, settings: Settings, store: MemoryStore) -> None:
        self.store = store
        self._runner = asyncio.Runner()
        self.service, self._http = self._runner.run(self._made(settings))

    async def _made(self, settings: Settings) -> tuple[Service, httpx.AsyncClient]:
        service = Service(settings, self.store)
        transport = httpx.ASGITransport(create_app(service), raise_app_exceptions=False)
        return service, httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    def __call__(self, method: str, path: str, *, key: str = "", **how: Any) -> httpx.Response:
        """Return the answer."""
        headers = list(how.pop("headers", {}).items()) + ([("Authorization", f"Bearer {key}")] if key else [])
        return self._runner.run(self._http.request(method, path, headers=headers, **how))

    def alloc(self, body: object, **how: Any) -> tuple[int, Any]:
        """Return the code and the data, or the message, of the envelope of idalloc."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        envelope = self("POST", "/alloc", content=content, **how).json()
        return envelope["code"], envelope["data"] or envelope["msg"]

    def metric(self, operation: str, code: str) -> float | None:
        """Return the number of such requests, of all keys."""
        labels = {"interface": "http", "operation": operation, "code": code}
        found = [
            sample.value
            for family in self.service.metrics.registry.collect()
            for sample in family.samples
            if sample.name == "mintage_requests_total" and labels.items() <= sample.labels.items()
        ]
        return sum(found) if found else None

    def run(self, wanted: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine in the loop of the service."""
        return self._runner.run(wanted)

    def close(self) -> None:
        self._runner.run(self._http.aclose())
        self._runner.run(self.service.close())
        self._runner.close()


@contextmanager
def serving(*options: str, store: MemoryStore | None = None) -> Iterator[Asked]:
    # A slow machine is no reason to fail.
    asked = Asked(Settings.load(("--max-wait-ms", "60000", *options)), store or MemoryStore())
    try:
        yield asked
    finally:
        asked.close()


@pytest.fixture
def ask() -> Iterator[Asked]:
    with serving() as asked:
        yield asked


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Any]:
    """Return a service with keys, which have these rights to these names."""

    def configured(keys: Mapping[str, Mapping[str, Sequence[str]]], *options: str, more: str = "") -> Any:
        text = more
        for key, rights in keys.items():
            table = ", ".join(f'"{name}" = {json.dumps(list(granted))}' for name, granted in rights.items())
            text += f'[keys.k{digest(key)[-8:]}]\nhash = "{digest(key)}"\nrights = {{ {table} }}\n'
        (tmp_path / "mintage.toml").write_text(text, encoding="utf-8")
        return serving("--config", str(tmp_path / "mintage.toml"), *options)

    return configured


def problem(response: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of a problem, after a check that it is complete."""
    body = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert body.keys() - {"retry_after_ms"} == {"type", "title", "status", "detail", "code", "trace_id"}
    entry = CATALOGUE[body["code"]]
    assert (body["title"], body["status"]) == (entry.meaning, entry.http)
    assert (body["type"], body["status"]) == (f"urn:mintage:error:{body['code']}", response.status_code)
    assert body["trace_id"] == response.headers["x-trace-id"]
    return response.status_code, body["code"]


def test_fault_of_a_page_is_a_page_with_its_trace_id(ask: Asked) -> None:
    ask.service.workers = None  # type: ignore[assignment]
    response = ask("GET", "/console/")
    assert response.status_code == 500
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "service.failed" in response.text
    assert response.headers["x-trace-id"] in response.text
    assert "NoneType" not in response.text
    assert ask.metric("console", "service.failed") == 1


# --- idalloc's ----------------------------------------------------------------------------------------------------


def test_alloc_uses_the_envelope_of_idalloc(ask: Asked) -> None:
    response = ask("POST", "/alloc", content=b'{"serviceName": "orders", "count": 3}', headers={"X-Trace-Id": "mine"})
    assert re.fullmatch(
        r'\{"code":0,"msg":"OK","data":\{"ids":\[1,2,3\]\},"traceId":"mine","ts":\d{13}\}', response.text
    )
    assert response.headers["content-type"] == "application/json; charset=utf-8"
    assert response.headers["x-trace-id"] == "mine"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"serviceName": "a"}, (0, {"ids": [1]})),
        ({"serviceName": "a", "count": 0}, (0, {"ids": [1]})),
        ({"serviceName": "a", "count": None}, (0, {"ids": [1]})),
        ({"SERVICENAME": "  A\t", "Count": 2, "more": [1]}, (0, {"ids": [1, 2]})),
        (b'{"serviceName":"a","count":100,"count":1}', (0, {"ids": [1]})),
        ({}, (400000, "service_name is invalid. length: 1~64")),
        (b"null", (400000, "service_name is invalid. length: 1~64")),
        ({"serviceName": " "}, (400000, "service_name is invalid. length: 1~64")),
        ({"serviceName": "a" * 65}, (400000, "service_name is invalid. length: 1~64")),
        ({"serviceName": "a", "count": 101}, (400000, "count is invalid. min: 1 max: 100 input:101")),
        ({"serviceName": "a", "count": -1}, (400000, "count is invalid. min: 1 max: 100 input:-1")),
        ({"serviceName": 1}, (400000, "Param error")),
        ({"serviceName": "a", "count": "3"}, (400000, "Param error")),
        ({"serviceName": "a", "count": 1.5}, (400000, "Param error")),
        ({"serviceName": "a", "count": True}, (400000, "Param error")),
        ({"serviceName": "a", "count": 2**64}, (400000, "Param error")),
        (b"", (400000, "Param error")),
        (b"[]", (400000, "Param error")),
        (b"[" * 30_000, (400000, "Param error")),
        (b'{"serviceName":"a"', (400000, "Param error")),
        (b'{"serviceName":"a","count":NaN}', (400000, "Param error")),
        (b'{"serviceName":"a","count":%s}' % (b"9" * 60_000), (400000, "Param error")),
    ],
)
def test_alloc_accepts_and_answers_as_idalloc_does(ask: Asked, body: object, expected: object) -> None:
    assert ask.alloc(body) == expected


def test_name_valid_only_in_idalloc_is_refused_with_its_code(ask: Asked) -> None:
    code, message = ask.alloc({"serviceName": "two words"})
    assert code == 400000
    assert "two words" in message


def test_alloc_refuses_with_the_statuses_of_idalloc(configured: Callable[..., Any]) -> None:
    key = new_key()
    with configured({key: {"orders": ["next"]}}, "--auto-create", "--rate", "1", "--burst", "1") as ask:
        for how, status, code in (({}, 401, 401000), ({"key": key}, 403, 403000)):
            response = ask("POST", "/alloc", content=b'{"serviceName":"users"}', **how)
            assert (response.status_code, response.json()["code"]) == (status, code)
            assert response.json()["data"] is None
            assert ("www-authenticate" in response.headers) == (status == 401)
        assert ask.alloc({"serviceName": "orders"}, key=key) == (0, {"ids": [1]})
        response = ask("POST", "/alloc", content=b'{"serviceName":"orders"}', key=key)
        assert (response.status_code, response.json()["code"], response.json()["msg"]) == (429, 429000, "Rate limit")
        assert int(response.headers["retry-after"]) >= 1
        assert ask.metric("alloc", "request.rate") == 1


def test_alloc_reports_other_errors_with_status_200() -> None:
    with serving("--no-auto-create") as ask:
        response = ask("POST", "/alloc", content=b'{"serviceName":"nobody-made-it"}')
        assert (response.status_code, response.json()["code"]) == (200, 404000)
    with serving("--max-wait-ms", "50", store=Away()) as ask:
        response = ask("POST", "/alloc", content=b'{"serviceName":"orders"}')
        assert (response.status_code, response.json()["code"]) == (200, 501000)
    with serving("--max-request-bytes", "4096") as ask:
        response = ask("POST", "/alloc", content=b" " * 4097)
        assert (response.status_code, response.json()["code"]) == (200, 400000)


class Away(MemoryStore):
    """A store that stops answering."""

    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        raise StoreError("away", code="store.unavailable", retry_after_ms=1500)

    def get_namespace(self, namespace: str) -> NamespaceRecord | None:
        return None

    def count_namespaces(self) -> int:
        return 0


class Gone(Away):
    """A store that never answers."""

    def get_namespace(self, namespace: str) -> NamespaceRecord | None:
        raise StoreError("away", code="store.unavailable", retry_after_ms=1500)


class Unlisted(MemoryStore):
    """A store that must not be asked for all its namespaces."""

    def list_namespaces(self, after: str = "", limit: int = MAX_COUNT) -> Sequence[NamespaceRecord]:
        assert limit <= 10_001, "this lists everything"
        return super().list_namespaces(after, limit)


def test_request_for_one_namespace_lists_no_others() -> None:
    with serving("--max-wait-ms", "60000", store=Unlisted()) as ask:
        for number in range(3):
            assert ask("PUT", f"/v1/sequences/n{number}").status_code == 201
        assert ask("POST", "/v1/sequences/n1:next").json()["ids"] == ["1"]
        assert ask("POST", "/v1/sequences/new:next").json()["ids"] == ["1"]
        assert ask("GET", "/v1/sequences/n2").json()["namespace"] == "n2"
        assert problem(ask("GET", "/v1/sequences/nobody")) == (404, "request.namespace")
        assert ask("GET", "/v1/sequences:count").json() == {"count": 4}
        first = ask("GET", "/v1/sequences?limit=2").json()["sequences"]
        second = ask("GET", "/v1/sequences?limit=2&after=n1").json()["sequences"]
        assert [each["namespace"] for each in first + second] == ["n0", "n1", "n2", "new"]
        assert len(ask("GET", "/v1/sequences").json()["sequences"]) == 4


def three_of_each(ask: Asked) -> None:
    """Make three namespaces, and three pools of which the last has three leases."""
    lease = {"layout": "test", "now_ms": time.time_ns() // 1_000_000, "never_used": True}
    for number in range(3):
        assert ask("PUT", f"/v1/sequences/n{number}").status_code == 201
        assert ask("PUT", f"/v1/pools/p{number}", json={"layout": "test", "never_used": True}).status_code == 200
        node = {"first": 2 * number, "last": 2 * number}
        assert ask("POST", "/v1/leases/p2", json={**lease, "nodes": node}).status_code == 201


LISTS = {
    "sequences": ("/v1/sequences?", "namespace", ["n0", "n1", "n2"]),
    "pools": ("/v1/pools?", "name", ["p0", "p1", "p2"]),
    "leases": ("/v1/leases?pool=p2&", "node", [0, 2, 4]),
}


@pytest.mark.parametrize("what", LISTS)
def test_list_without_limit_is_refused_if_it_is_too_long(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mintage.server.http.v1.schemas.LONGEST_PAGE", 2)
    path, _, _ = LISTS[what]
    with serving("--max-wait-ms", "60000") as ask:
        three_of_each(ask)
        assert problem(ask("GET", path)) == (400, "field.range")
        assert problem(ask("GET", path.partition("?")[0])) == (400, "field.range")
        assert len(ask("GET", f"{path}limit=2").json()[what]) == 2


@pytest.mark.parametrize("what", LISTS)
def test_pages_of_a_list_join_without_gaps(what: str) -> None:
    path, key, names = LISTS[what]
    with serving("--max-wait-ms", "60000") as ask:
        three_of_each(ask)
        whole = ask("GET", path).json()[what]
        assert [each[key] for each in whole] == names
        for limit in (1, 2, 3, 10_000):
            found: list[Any] = []
            while page := ask("GET", f"{path}limit={limit}" + (f"&after={found[-1][key]}" if found else "")).json()[
                what
            ]:
                assert len(page) <= limit
                found += page
            assert found == whole


@pytest.mark.parametrize("what", LISTS)
def test_hostile_page_is_refused(what: str, subtests: pytest.Subtests) -> None:
    path, _, _ = LISTS[what]
    names = ("%25", "_", "a%00", "%C3%A9", "%FF", "' OR 1=1 --", "n" * 129, "*", "[", "../x", "")
    numbers = ("-2", "-1", "1e3", "x", "%D9%A1", "1_0", str(2**44), "9" * 5000, "")
    cases = [f"limit={bad}" for bad in ("0", "-1", "1000000000", "10001", "1.0", "x", "", "9" * 5000)]
    cases += [f"after={bad}" for bad in (numbers if what == "leases" else names)]
    cases += ["limit=1&limit=2", "cursor=1"]
    with serving("--max-wait-ms", "60000") as ask:
        for case in cases:
            with subtests.test(case[:40]):
                answer = ask("GET", path + case)
                assert problem(answer)[1] in {"field.range", "request.malformed", "config.name"}
                assert len(answer.text) < 600


def test_node_number_to_begin_at_needs_a_pool() -> None:
    with serving("--max-wait-ms", "60000") as ask:
        three_of_each(ask)
        assert problem(ask("GET", "/v1/leases?after=0")) == (400, "field.range")
        assert [each["node"] for each in ask("GET", "/v1/leases?limit=2").json()["leases"]] == [0, 2]


@pytest.mark.parametrize("verb", ["next", "reserve", "give-back"])
def test_put_on_the_path_of_a_verb_creates_nothing(verb: str) -> None:
    with serving("--max-wait-ms", "60000") as ask:
        assert problem(ask("PUT", f"/v1/sequences/orders:{verb}")) == (400, "config.name")
        assert ask.store.list_namespaces() == []


class Slow(MemoryStore):
    """A store that answers only once the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()

    def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
        self.may.wait()
        return super().reserve(namespace, count, holder=holder)


def test_first_use_ends_at_max_wait_ms_and_the_next_one_is_served() -> None:
    store = Slow()
    with serving("--max-wait-ms", "50", store=store) as ask:
        assert problem(ask("POST", "/v1/sequences/orders:next")) == (503, "store.unavailable")
        store.may.set()
        while (served := ask("POST", "/v1/sequences/orders:next")).status_code == 503:
            pass
        assert served.json()["ids"] == ["1"], "the first opening went on"


# --- mintage's own -----------------------------------------------------------------------------------------------


def test_integers_of_any_size_are_strings(ask: Asked) -> None:
    start = str(MAX_INTEGER - 3)
    made = ask("PUT", "/v1/sequences/large", json={"start": start})
    assert made.status_code == 201
    assert made.json()["maximum"] == str(MAX_INTEGER)
    found = ask("POST", "/v1/sequences/large:next?count=2").json()
    assert found == {"namespace": "large", "ids": [start, str(MAX_INTEGER - 2)]}
    reserved = ask("POST", "/v1/sequences/other:reserve?count=1000").json()
    segment = {"first": "1", "last": "1000", "stride": 1, "count": 1000, "floor": "0", "serial": 1}
    assert reserved == {"namespace": "other", **segment}


def test_tail_of_a_segment_is_taken_back_once(ask: Asked) -> None:
    serial = ask("POST", "/v1/sequences/orders:reserve?count=1000").json()["serial"]
    tail = {"first": "1", "last": "1000", "first_unused": "900", "serial": serial}
    assert ask("POST", "/v1/sequences/orders:give-back", json=tail).json() == {"taken_back": True}
    assert ask("POST", "/v1/sequences/orders:give-back", json=tail).json() == {"taken_back": False}
    # The same key gets the returned integers, and its segment ends where the other did.
    assert ask("POST", "/v1/sequences/orders:reserve?count=101").json()["first"] == "900"
    assert ask("POST", "/v1/sequences/orders:give-back", json=tail).json() == {"taken_back": False}
    assert ask("POST", "/v1/sequences/orders:reserve?count=1").json()["first"] == "1001"


def test_used_up_namespace_is_a_conflict_without_a_retry(ask: Asked) -> None:
    ask("PUT", "/v1/sequences/few", json={"maximum": "3"})
    assert problem(ask("POST", "/v1/sequences/few:next?count=5")) == (409, "namespace.exhausted")
    ask("POST", "/v1/sequences/few:next?count=3")
    for verb in ("next", "reserve"):
        refused = ask("POST", f"/v1/sequences/few:{verb}")
        assert problem(refused) == (409, "namespace.exhausted")
        assert "retry-after" not in refused.headers
    envelope = ask("POST", "/alloc", json={"serviceName": "few"}).json()
    assert (envelope["code"], envelope["data"]) == (400000, None)


def test_retired_namespace_answers_gone(ask: Asked) -> None:
    path = "/v1/sequences/orders"
    reserved = ask("POST", f"{path}:reserve?count=10").json()
    retired = ask("DELETE", path)
    assert (retired.status_code, retired.json()["retired"]) == (200, True)
    assert ask("DELETE", path).json() == retired.json()
    tail = {"first": "1", "last": "10", "first_unused": "6", "serial": reserved["serial"]}
    for method, suffix, options in (
        ("POST", ":next", {}),
        ("POST", ":reserve", {}),
        ("POST", ":give-back", {"json": tail}),
        ("PUT", "", {}),
        ("PUT", "", {"json": {"floor": "100"}}),
    ):
        assert problem(ask(method, path + suffix, **options)) == (410, "namespace.retired")
    assert ask("GET", path).json() == retired.json()
    assert ask("GET", "/v1/sequences").json()["sequences"] == [retired.json()]


def test_only_callers_that_may_create_a_namespace_retire_it(configured: Callable[..., Any]) -> None:
    user, operator = new_key(), new_key()
    rights = {user: {"orders": ["next", "reserve", "describe"]}, operator: {"orders": ["create"]}}
    with configured(rights) as ask:
        assert problem(ask("DELETE", "/v1/sequences/orders", key=user)) == (403, "request.rights")
        assert problem(ask("DELETE", "/v1/sequences/others", key=operator)) == (403, "request.rights")
        assert ask("DELETE", "/v1/sequences/orders", key=operator).json()["retired"] is True


def test_only_lent_integers_are_taken_back(ask: Asked) -> None:
    def taken_back(namespace: str = "lent", serial: int = 2, **tail: str | int) -> bool:
        tail["serial"] = serial
        return bool(ask("POST", f"/v1/sequences/{namespace}:give-back", json=tail).json()["taken_back"])

    assert ask("POST", "/v1/sequences/orders:next?count=3").json()["ids"] == ["1", "2", "3"]
    assert not taken_back("orders", 1, first="1", last="1000", first_unused="1"), "the service hands these out itself"
    # Of another namespace, of which the service fetches nothing ahead meanwhile.
    ask("POST", "/v1/sequences/lent:reserve?count=1000")
    reserved = ask("POST", "/v1/sequences/lent:reserve?count=10").json()
    first, last = int(reserved["first"]), int(reserved["last"])
    assert not taken_back(first="1", last=str(last), first_unused=str(first - 1)), "it is longer"
    assert not taken_back(first=str(first - 1), last=str(last - 1), first_unused=str(first)), "it is another"
    assert not taken_back(serial=1, first=str(first), last=str(last), first_unused=str(first)), "it is an earlier one"
    assert taken_back(first=str(first), last=str(last), first_unused=str(first))
    assert ask("POST", "/v1/sequences/lent:reserve?count=1").json()["first"] == str(first)
    ask("PUT", "/v1/sequences/even", json={"start": "2", "stride": 2})
    ask("POST", "/v1/sequences/even:reserve?count=5")
    tail = {"first": "9", "last": "10", "stride": 1, "first_unused": "9", "serial": 1}
    assert ask("POST", "/v1/sequences/even:give-back", json=tail).json() == {"taken_back": False}


def test_caller_cannot_give_back_integers_of_another_key(configured: Callable[..., Any]) -> None:
    mine, other = new_key(), new_key()
    with configured({mine: {"orders": ["reserve"]}, other: {"orders": ["reserve"]}}, "--auto-create") as ask:
        ask("POST", "/v1/sequences/orders:reserve?count=10", key=mine)
        tail = {"first": "1", "last": "10", "first_unused": "6", "serial": 1}
        given = [ask("POST", "/v1/sequences/orders:give-back", json=tail, key=key).json() for key in (other, mine)]
        assert given == [{"taken_back": False}, {"taken_back": True}]


@pytest.mark.parametrize(
    "tail",
    [
        {"first": "1", "last": "1000", "first_unused": "1001"},
        {"first": "1", "last": "1000", "first_unused": "0"},
        {"first": "10", "last": "1", "first_unused": "5"},
        {"first": "1", "last": "1000", "stride": 2, "first_unused": "3"},
        {"first": "1", "last": "999", "stride": 2, "first_unused": "4"},
    ],
)
def test_invalid_tail_is_refused(ask: Asked, tail: Ask) -> None:
    answer = ask("POST", "/v1/sequences/orders:give-back", json={**tail, "serial": 1})
    assert problem(answer) == (400, "field.range")


def test_namespace_is_created_once_and_its_floor_only_rises(ask: Asked) -> None:
    path = "/v1/sequences/orders"
    assert problem(ask("GET", path)) == (404, "request.namespace")
    made = ask("PUT", path, json={"start": "10", "stride": 10, "offset": 5})
    assert (made.status_code, made.json()["high_water"], made.json()["stride"]) == (201, "5", 10)
    assert problem(ask("PUT", path, json={})) == (409, "config.namespace")
    raised = ask("PUT", path, json={"floor": "5000"})
    assert (raised.status_code, raised.json()) == (200, ask("GET", path).json())
    assert ask("PUT", path, json={"floor": 1}).json() == raised.json()
    assert ask("GET", "/v1/sequences").json() == {"sequences": [raised.json()]}
    assert problem(ask("PUT", path, json={"floor": "1", "start": "1"})) == (400, "request.malformed")


def test_namespace_defaults_to_all_integers_from_1(ask: Asked) -> None:
    assert ask("PUT", "/v1/sequences/orders").status_code == 201
    assert ask("POST", "/v1/sequences/orders:next").json()["ids"] == ["1"]


@pytest.mark.parametrize("scheme", NAMES)
def test_ids_are_minted_and_inspected(ask: Asked, scheme: str) -> None:
    minted = ask("POST", f"/v1/ids/{scheme}?count=3").json()
    assert minted["scheme"] == scheme
    assert len(set(minted["ids"])) == 3
    found = ask("GET", f"/v1/inspect/{minted['ids'][0]}").json()
    assert scheme in {each["scheme"] for each in found["anatomies"]}
    assert problem(ask("GET", "/v1/inspect/what is this")) == (400, "parse.unknown")


@pytest.mark.parametrize("layout", [snowflake.TWITTER, snowflake.SONYFLAKE, SLOW])
def test_snowflakes_have_the_configured_layout(layout: snowflake.Layout) -> None:
    names = {each: name for name, each in LAYOUTS.items()}
    with serving("--snowflake-layout", names.get(layout, write_layout(layout))) as ask:
        before_ns = time.time_ns() - layout.unit_ms * 1_000_000
        first, *_, last = map(int, ask("POST", "/v1/ids/snowflake?count=500").json()["ids"])
        (pool,) = ask.service.store.list_pools()
        assert pool.layout == f"snowflake {write_layout(layout)}"
        assert first < last
        assert layout.min_at(before_ns) < first
        assert last < layout.max_at(time.time_ns())
        assert layout.parse(first).node == layout.parse(last).node < layout.nodes


def test_snowflakes_have_the_configured_node_numbers() -> None:
    with serving("--snowflake-nodes", "700,900..901") as ask:
        (one,) = ask("POST", "/v1/ids/snowflake").json()["ids"]
        assert snowflake.DEFAULT.parse(int(one)).node == 700


def test_layout_with_few_ids_delays_no_other_request() -> None:
    with serving("--snowflake-layout", "time:41 node:10 sequence:1 @0 100ms") as ask:
        assert problem(ask("POST", "/v1/ids/snowflake?count=21")) == (400, "field.range")

        async def at_once() -> list[int]:
            caller = ask.service.keys.find(None)
            minted = [asyncio.ensure_future(ask.service.mint(caller, "snowflake", 8)) for _ in range(40)]
            await asyncio.sleep(0)
            assert len(await ask.service.segment(caller, "orders", 5)) == 5
            assert not any(isinstance(each, list) for each in minted)
            found = await asyncio.gather(*minted, return_exceptions=True)
            assert {each.code for each in found if isinstance(each, MintError)} == {"request.busy"}
            return [int(each) for row in found if isinstance(row, list) for each in row]

        ids = ask.run(at_once())
        assert len(ids) == len({*ids}) == 16


def test_lease_is_used_by_its_token_only(ask: Asked) -> None:
    now_ms = ask("GET", "/v1/store").json()["now_ms"]
    wanted = {"nodes": {"first": 0, "last": 0}, "layout": "mine/1", "holder": "me", "now_ms": now_ms, "span_ms": 5000}
    made = ask("POST", "/v1/leases/mine", json=wanted)
    lease = made.json()
    assert (made.status_code, lease["pool"], lease["node"]) == (201, "mine", 0)
    full = ask("POST", "/v1/leases/mine", json=wanted)
    assert problem(full) == (503, "lease.none_free")
    assert int(full.headers["retry-after"]) * 1000 >= full.json()["retry_after_ms"] > 0
    held = {
        "floor_ms": lease["floor_ms"],
        "until_ms": lease["until_ms"],
        "now_ms": now_ms,
        "next_token": "next",
        "previous_token": "",
    }
    token = {"Lease-Token": lease["token"]}
    extended = ask("PATCH", "/v1/leases/mine/0", json=held, headers=token)
    assert (extended.json()["token"], extended.json()["until_ms"] >= lease["until_ms"]) == ("next", True)
    assert ask("PATCH", "/v1/leases/mine/0", json=held, headers=token).json() == extended.json()
    copied = held | {"next_token": "another"}
    assert problem(ask("PATCH", "/v1/leases/mine/0", json=copied, headers=token)) == (409, "lease.lost")
    token = {"Lease-Token": "next"}
    for wrong in ("", "a b", "t" * 65):
        refused = ask("PATCH", "/v1/leases/mine/0", json=held | {"next_token": wrong}, headers=token)
        assert problem(refused) == (400, "request.malformed")
    held["next_token"] = "last"
    assert problem(ask("PATCH", "/v1/leases/mine/0", json=held, headers={"Lease-Token": "wrong"})) == (
        409,
        "lease.lost",
    )
    assert problem(ask("PATCH", "/v1/leases/mine/0", json=held)) == (400, "request.malformed")
    listed = ask("GET", "/v1/leases?pool=mine")
    assert lease["token"] not in listed.text + ask("GET", "/v1/leases").text
    assert [(each["node"], each["holder"], each["held"]) for each in listed.json()["leases"]] == [(0, "me", True)]
    assert abs(listed.json()["leases"][0]["cloned_ms"] - now_ms) < 60_000
    released = ask("DELETE", f"/v1/leases/mine/0?used_until_ms={now_ms}", headers=token)
    assert (released.status_code, released.content) == (204, b"")
    assert ask("GET", "/v1/leases?pool=mine").json()["leases"][0]["held"] is False
    assert [each["name"] for each in ask("GET", "/v1/pools").json()["pools"]] == ["mine"]
    assert ask("PUT", "/v1/pools/yours", json={"layout": "yours/1"}).json()["span_ms"] == 30_000


def test_pool_keeps_the_text_of_its_layout_as_its_holders_write_it(ask: Asked) -> None:
    assert ask("PUT", "/v1/pools/sno", json={"layout": "sno", "never_used": True}).json()["layout"] == "sno"
    wanted = {"nodes": {"first": 0, "last": 0}, "layout": "sno", "now_ms": ask.store.now_ms()}
    assert ask("POST", "/v1/leases/sno", json=wanted).status_code == 201


def test_who_names_the_holder_of_an_id(ask: Asked) -> None:
    wanted = {"nodes": {"first": 3, "last": 3}, "layout": "ulid", "holder": "web-1:4711:1700000000:1:0.1.0"}
    assert ask("POST", "/v1/leases/ulid", json={**wanted, "now_ms": ask.store.now_ms()}).status_code == 201
    minted = str(ulid.Generator(3).new())
    answer = ask("GET", f"/v1/who/{minted}")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["input"] == minted
    found, *_ = answer.json()["findings"]  # some ULIDs can be read as a sandflake as well
    assert (found["state"], found["node"], found["holder"]["pid"], found["is_current"]) == ("held", 3, 4711, True)
    assert problem(ask("GET", "/v1/who/x")) == (400, "parse.unknown")


def test_who_needs_the_right_to_list(configured: Callable[..., Any]) -> None:
    all_names, one = new_key(), new_key()
    with configured({all_names: {"*": ["describe"]}, one: {"orders": ["describe"]}}) as ask:
        minted = str(ulid.Generator(3).new())
        assert ask("GET", f"/v1/who/{minted}", key=all_names).status_code == 200
        assert problem(ask("GET", f"/v1/who/{minted}", key=one)) == (403, "request.rights")


WRONG: list[tuple[str, str, Ask, str]] = [
    ("POST", "/v1/sequences/orders:next?count=0", {}, "field.range"),
    ("POST", "/v1/sequences/orders:next?count=10001", {}, "field.range"),
    ("POST", "/v1/sequences/orders:next?count=1_0", {}, "request.malformed"),
    ("POST", "/v1/sequences/orders:next?count=%D9%A3", {}, "request.malformed"),
    ("POST", "/v1/sequences/orders:next?count=" + "9" * 5000, {}, "request.malformed"),
    ("POST", "/v1/sequences/orders:next?count=1&count=1", {}, "request.malformed"),
    ("POST", "/v1/sequences/orders:next?size=1", {}, "request.malformed"),
    ("POST", "/v1/sequences/orders:next?" + "&" * 100, {"content": b"x"}, "request.malformed"),
    ("POST", "/v1/sequences/orders:next", {"content": b"{}"}, "request.malformed"),
    ("POST", "/v1/sequences/orders:reserve?count=1000001", {}, "field.range"),
    ("POST", "/v1/sequences/%20:next", {}, "config.name"),
    ("POST", f"/v1/sequences/{'a' * 129}:next", {}, "config.name"),
    ("POST", "/v1/sequences/%0A:next", {}, "config.name"),
    ("GET", "/v1/sequences/-", {}, "config.name"),
    ("PUT", "/v1/sequences/orders", {"content": b" "}, "request.malformed"),
    ("POST", "/v1/sequences/orders:give-back", {"content": b""}, "request.malformed"),
    ("PUT", "/v1/sequences/orders", {"content": b"\xff"}, "request.malformed"),
    ("PUT", "/v1/sequences/orders", {"content": b"[]"}, "request.malformed"),
    ("PUT", "/v1/sequences/orders", {"content": b'{"start":"1","start":"1"}'}, "request.malformed"),
    ("PUT", "/v1/sequences/orders", {"json": {"begin": 1}}, "request.malformed"),
    ("PUT", "/v1/sequences/orders", {"json": {"start": 1.0}}, "request.malformed"),
    ("PUT", "/v1/sequences/orders", {"json": {"start": True}}, "request.malformed"),
    ("PUT", "/v1/sequences/orders", {"json": {"start": "-1"}}, "field.range"),
    ("PUT", "/v1/sequences/orders", {"json": {"maximum": str(MAX_INTEGER + 1)}}, "field.range"),
    ("PUT", "/v1/sequences/orders", {"json": {"stride": 0}}, "field.range"),
    ("POST", "/v1/ids/typeid", {}, "request.malformed"),
    ("POST", "/v1/ids/sno?meta=256", {}, "field.range"),
    ("POST", "/v1/ids/snowflake?meta=1", {}, "field.range"),
    ("PUT", "/v1/pools/mine", {"json": {"layout": "a\nb"}}, "request.malformed"),
    ("PUT", "/v1/pools/mine", {"json": {"layout": "a", "span_ms": 1}}, "config.span"),
    (
        "POST",
        "/v1/leases/mine",
        {"json": {"nodes": {"first": 5, "last": 4}, "layout": "a", "now_ms": 0}},
        "config.node",
    ),
    ("DELETE", "/v1/leases/mine/x?used_until_ms=0", {"headers": {"Lease-Token": "a"}}, "request.malformed"),
    ("DELETE", "/v1/leases/mine/0", {"headers": {"Lease-Token": "a"}}, "request.malformed"),
    ("PUT", "/v1/pools/mine", {"content": rb'{"layout":"\ud800"}'}, "request.malformed"),
    ("PUT", "/v1/pools/mine", {"content": rb'{"\ud800":1}'}, "request.malformed"),
    ("PUT", "/v1/pools/mine", {"content": b'{"layout":"a","x` - at `$.y":1}'}, "request.malformed"),
    ("PUT", "/v1/pools/mine", {"content": b'{"layout":"a","x - at `$.y":1}'}, "request.malformed"),
    ("PUT", "/v1/pools/mine", {"json": {"layout": "a\n"}}, "request.malformed"),
    ("POST", "/v1/leases/mine/0:revoke", {}, "request.rights"),
    ("GET", "/debug/profile", {}, "request.rights"),
    ("GET", "/v1/nothing", {}, "request.path"),
    ("GET", "/v1/sequences/a/b", {}, "request.path"),
    ("GET", "/v1/sequences/", {}, "request.path"),
    ("GET", "/x//alloc", {}, "request.path"),
    ("GET", "/alloc", {}, "request.method"),
    ("BREW", "/alloc", {}, "request.method"),
    ("POST", "/healthz", {}, "request.method"),
    ("PATCH", "/v1/sequences/orders", {}, "request.method"),
    ("DELETE", "/v1/sequences/orders%2F", {}, "request.path"),
    ("DELETE", "/v1/sequences/-orders", {}, "config.name"),
    ("DELETE", "/v1/sequences/orders?for_good=1", {}, "request.malformed"),
    ("DELETE", "/v1/sequences", {}, "request.method"),
]


@pytest.mark.parametrize(("method", "path", "how", "code"), WRONG, ids=[f"{row[0]} {row[1]:.60}" for row in WRONG])
def test_wrong_input_is_refused_with_its_code_and_without_effect(
    ask: Asked, method: str, path: str, how: Ask, code: str
) -> None:
    response = ask(method, path, **how)
    assert problem(response) == (CATALOGUE[code].http, code)
    assert len(response.content) < 1000
    assert "Traceback" not in response.text
    assert not ask.store.list_namespaces()
    assert not ask.store.list_pools()


def test_error_names_the_value_and_its_limit(ask: Asked) -> None:
    detail = ask("POST", "/v1/sequences/orders:next?count=10001").json()["detail"]
    assert detail == "count 10001 is outside 1..10000"
    detail = ask("POST", "/v1/sequences/orders:next?count=x").json()["detail"]
    assert detail == "count 'x' is not a whole number"


@pytest.mark.parametrize("verb", ["next", "reserve", "give-back"])
def test_known_verb_is_not_read_as_a_missing_namespace(verb: str) -> None:
    with serving() as it:
        for method in ("GET", "HEAD"):
            response = it(method, f"/v1/sequences/orders:{verb}")
            assert (response.status_code, response.headers["allow"]) == (405, "OPTIONS, POST")
        assert "use POST" in it("GET", f"/v1/sequences/orders:{verb}").json()["detail"]
        # Unless there is one of that name.
        it.store.create_namespace(f"orders:{verb}")
        assert it("GET", f"/v1/sequences/orders:{verb}").json()["namespace"] == f"orders:{verb}"
        assert it("GET", "/v1/sequences/users").status_code == 404


def test_path_tells_its_methods(ask: Asked) -> None:
    paths = (
        ("/v1/sequences/a", "DELETE, GET, PUT", "DELETE, GET, HEAD, OPTIONS, PUT"),
        ("/alloc", "POST", "OPTIONS, POST"),
        ("/metrics", "GET", "GET, HEAD, OPTIONS"),
    )
    for path, named, allowed in paths:
        response = ask("PATCH", path)
        assert problem(response) == (405, "request.method")
        assert response.headers["allow"] == allowed
        assert response.json()["detail"].endswith(f"use {named}")
        response = ask("OPTIONS", path)
        assert (response.status_code, response.headers["allow"], response.content) == (204, allowed, b"")
    assert ask("OPTIONS", "/nowhere").status_code == 404


def test_options_of_readyz_tells_what_get_tells() -> None:
    with serving() as it:
        assert it("OPTIONS", "/readyz").status_code == it("GET", "/readyz").status_code
        it.service.draining = True
        assert it("OPTIONS", "/readyz").status_code == it("GET", "/readyz").status_code == 503


def test_every_get_route_answers_head(ask: Asked) -> None:
    for path in ("/v1/sequences", "/v1/store", "/healthz", "/metrics", "/openapi.json", "/"):
        assert ask("HEAD", path).status_code == 200


def test_namespace_may_contain_a_colon_and_a_verb(ask: Asked) -> None:
    assert ask("POST", "/v1/sequences/a:b:next").json()["namespace"] == "a:b"
    assert ask("POST", "/v1/sequences/a:next:next").json()["namespace"] == "a:next"
    assert ask("GET", "/v1/sequences/a:next").json()["namespace"] == "a:next"


@pytest.mark.parametrize("body", [b"x" * 4097, [b"x" * 4000, b"x" * 97]], ids=["one piece", "of unknown length"])
def test_body_is_read_up_to_the_limit(body: Any) -> None:
    async def pieces() -> Any:
        for each in body:
            yield each

    with serving("--max-request-bytes", "4096") as ask:
        content = body if isinstance(body, bytes) else pieces()
        assert problem(ask("PUT", "/v1/sequences/orders", content=content)) == (413, "request.size")


# --- keys and rights ----------------------------------------------------------------------------------------------


def test_key_is_accepted_as_bearer_and_as_basic_password(configured: Callable[..., Any]) -> None:
    key = new_key()
    with configured({key: {"*": ["describe"]}}) as ask:
        basic = {"Authorization": f"Basic {b64encode(f'anybody:{key}'.encode()).decode()}"}
        assert ask("GET", "/v1/sequences", key=key).status_code == 200
        assert ask("GET", "/v1/sequences", headers=basic).status_code == 200
        wrong = ["Bearer", "Bearer x", f"Bearer {key}x", f"Digest {key}", "Basic !", f"Basic {key}", key, "Bearer \xff"]
        for each in wrong:
            response = ask("GET", "/v1/sequences", headers={"Authorization": each.encode("latin-1")})
            assert problem(response) == (401, "request.key")
            assert response.headers["www-authenticate"] == 'Bearer realm="mintage"'
            assert key not in response.text


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1.evil.example:8080", "null", "", "http://["]
)
def test_without_keys_cross_origin_requests_are_refused(ask: Asked, origin: str) -> None:
    for method, path in (("POST", "/alloc"), ("PUT", "/v1/sequences/orders"), ("GET", "/v1/leases")):
        response = ask(method, path, headers={"Origin": origin}, content=b'{"serviceName": "orders"}')
        assert problem(response) == (403, "request.rights")
    assert ask.store.list_namespaces() == []


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"])
def test_without_keys_a_page_of_this_machine_may_send_requests(ask: Asked, origin: str) -> None:
    assert ask("POST", "/v1/sequences/orders:next", headers={"Origin": origin}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "[", ""])
def test_without_keys_dns_rebinding_reads_nothing(ask: Asked, host: str) -> None:
    for path in ("/v1/sequences", "/v1/leases", "/metrics", "/"):
        assert problem(ask("GET", path, headers={"Host": host})) == (403, "request.rights")
        assert ask("HEAD", path, headers={"Host": host}).status_code == 403


def test_allowed_host_names_are_accepted(ask: Asked) -> None:
    # A browser would have sent the Origin of its page.
    assert ask("POST", "/v1/sequences/orders:next", headers={"Host": "ids"}).status_code == 200


@pytest.mark.parametrize("host", ["localhost:8080", "LOCALHOST", "127.0.0.1", "[::1]:8080", "192.0.2.1:80"])
def test_without_keys_localhost_and_ip_addresses_are_answered(ask: Asked, host: str) -> None:
    assert ask("GET", "/v1/sequences", headers={"Host": host}).status_code == 200


def test_with_keys_or_insecure_any_host_name_is_accepted(configured: Callable[..., Any]) -> None:
    key, host = new_key(), {"Host": "ids.example"}
    with configured({key: {"*": ["describe"]}}) as ask:
        assert ask("GET", "/v1/sequences", key=key, headers=host).status_code == 200
    with serving("--insecure") as ask:
        assert ask("GET", "/v1/sequences", headers=host).status_code == 200


def test_with_keys_or_insecure_any_origin_is_accepted(configured: Callable[..., Any]) -> None:
    key, origin = new_key(), {"Origin": "https://console.example"}
    with configured({key: {"*": ["next"]}}) as ask:
        assert ask("POST", "/v1/sequences/orders:next", headers=origin).status_code == 401
    with configured({key: {"*": ["next", "create"]}}, "--auto-create") as ask:
        assert ask("POST", "/v1/sequences/orders:next", key=key, headers=origin).status_code == 200
    with serving("--insecure") as ask:
        assert ask("POST", "/v1/sequences/orders:next", headers=origin).status_code == 200


def request_of(operation: Operation) -> tuple[str, str, Ask]:
    """Return a valid request, from the examples of the document."""
    described = document(Settings.load([]))["paths"][operation.path][operation.method.lower()]
    path = operation.path
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    for each in described.get("parameters", []):
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", str(each.get("example", 0)))
        elif each["required"]:
            (headers if each["in"] == "header" else query)[each["name"]] = str(each["example"])
    how: Ask = {"headers": headers, "params": query}
    if "requestBody" in described:
        schemas = document(Settings.load([]))["components"]["schemas"]
        how["json"] = example(described["requestBody"]["content"]["application/json"]["schema"], schemas)
    return operation.method, path, how


def example(schema: Any, schemas: Any) -> Any:
    if "$ref" in schema:
        return example(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "examples" in schema:
        return schema["examples"][0]
    return {name: example(schema["properties"][name], schemas) for name in schema.get("required", [])}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_operation_needs_exactly_its_right(configured: Callable[..., Any], operation: Operation) -> None:
    able, unable, nothing = new_key(), new_key(), new_key()
    others = {"next", "reserve", "describe", "create", "mint", "lease", "metrics"} - {operation.right}
    rights = {
        able: {"*": [operation.right or "next"]},
        unable: {"*": sorted(others), "orders": ["next"]},
        nothing: {"nobody": ["next"]},
    }
    method, path, how = request_of(operation)
    with configured(rights, "--auto-create") as ask:
        assert problem(ask(method, path, **how)) == (401, "request.key")
        served = ask(method, path, key=able, **how)
        assert served.status_code < 300 or served.json()["code"] in operation.codes
        if operation.right:
            if operation.right != "next":
                assert problem(ask(method, path, key=unable, **how)) == (403, "request.rights")
            assert problem(ask(method, path, key=nothing, **how)) == (403, "request.rights")


def test_rights_to_all_names_show_metrics_and_admin_profiles(configured: Callable[..., Any]) -> None:
    admin, metrics, other = new_key(), new_key(), new_key()
    rights = {
        admin: {"*": ["admin"]},
        metrics: {"*": ["metrics"]},
        other: {"*": ["next", "reserve", "describe", "create", "mint", "lease"]},
    }
    with configured(rights) as ask:
        for path, key, expected in (
            ("/metrics", "", (401, "request.key")),
            ("/metrics", other, (403, "request.rights")),
            ("/debug/profile?seconds=1", "", (401, "request.key")),
            ("/debug/profile?seconds=1", metrics, (403, "request.rights")),
        ):
            assert problem(ask("GET", path, key=key)) == expected
        assert "mintage_requests_total" in ask("GET", "/metrics", key=metrics).text
        assert "mintage_requests_total" in ask("GET", "/metrics", key=admin).text
        for path in ("/", "/openapi.json", "/healthz"):
            assert ask("GET", path).status_code == 200
        pytest.importorskip("pyinstrument")
        profile = ask("GET", "/debug/profile?seconds=1&format=text", key=admin)
        assert (profile.status_code, profile.headers["content-type"]) == (200, "text/plain; charset=utf-8")


def test_rate_of_a_key_applies_to_inspection(configured: Callable[..., Any]) -> None:
    slow = new_key()
    more = f'[keys.slow]\nhash = "{digest(slow)}"\nrights = {{ "*" = ["next"] }}\nrate = 1\nburst = 2\n'
    with configured({}, more=more) as ask:
        statuses = [ask("GET", "/v1/inspect/1", key=slow).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]


def test_key_has_its_own_rate(configured: Callable[..., Any]) -> None:
    slow, other = new_key(), new_key()
    rights = {slow: {"*": ["next"]}, other: {"*": ["next"]}}
    more = f'[keys.slow]\nhash = "{digest(slow)}"\nrights = {{ "*" = ["next"] }}\nrate = 1\nburst = 2\n'
    del rights[slow]
    with configured(rights, "--auto-create", more=more) as ask:
        answers = [ask("POST", "/v1/sequences/orders:next", key=slow) for _ in range(3)]
        assert [each.status_code for each in answers] == [200, 200, 429]
        assert problem(answers[2]) == (429, "request.rate")
        assert 0 < answers[2].json()["retry_after_ms"] <= 1000
        assert answers[2].headers["retry-after"] == "1"
        assert ask("POST", "/v1/sequences/orders:next", key=other).status_code == 200


# --- every request ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", ["a", "order-4711", "A1._:/+=-", "x" * 128])
def test_trace_id_of_the_client_is_kept(ask: Asked, sent: str) -> None:
    for path in ("/healthz", "/nothing", "/v1/sequences", "/metrics"):
        assert ask("GET", path, headers={"X-Trace-Id": sent}).headers["x-trace-id"] == sent


@pytest.mark.parametrize("sent", ["", "x" * 129, "a b", 'a"b', "<script>", "\xe9"])
def test_unsafe_trace_id_is_replaced(ask: Asked, sent: str) -> None:
    found = ask("GET", "/healthz", headers={"X-Trace-Id": sent.encode("latin-1")}).headers["x-trace-id"]
    assert re.fullmatch("[0-9a-f]{32}", found)


def test_header_of_the_trace_id_is_configurable() -> None:
    with serving("--trace-header", "X-Request-Id") as ask:
        response = ask("GET", "/healthz", headers={"x-request-id": "mine"})
        assert response.headers["x-request-id"] == "mine"
        assert "x-trace-id" not in response.headers
        assert (
            "X-Request-Id"
            in ask("GET", "/openapi.json").json()["paths"]["/healthz"]["get"]["responses"]["200"]["headers"]
        )


def test_internal_error_is_answered_and_logged_but_not_shown(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(ask.service, "next", broken)
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logged:
        response = ask("POST", "/v1/sequences/orders:next", headers={"X-Trace-Id": "mine"})
        assert ask.alloc({"serviceName": "orders"})[0] == 501000
    assert problem(response) == (500, "service.failed")
    assert "secret" not in response.text
    first = logged[0]
    assert (first["event"], first["log_level"], first["trace_id"]) == ("failed", "error", "mine")
    assert ask.metric("next", "service.failed") == ask.metric("alloc", "service.failed") == 1


def test_every_answer_is_counted_by_its_operation_and_code(ask: Asked) -> None:
    ask("POST", "/v1/sequences/orders:next")
    ask("POST", "/v1/sequences/orders:next?count=0")
    ask("GET", "/v1/sequences")
    ask("GET", "/nothing")
    counted = [("next", "ok"), ("next", "field.range"), ("describe", "ok"), ("other", "request.path")]
    assert [ask.metric(*each) for each in counted] == [1, 1, 1, 1]


@pytest.mark.parametrize(("level", "expected"), [("off", []), ("errors", [404]), ("all", [200, 404])])
def test_access_log_has_the_configured_detail(level: str, expected: list[int]) -> None:
    with serving("--access-log", level) as ask, structlog.testing.capture_logs() as logged:
        ask("GET", "/healthz")
        ask("GET", "/nothing")
        assert [line["status"] for line in logged if line["event"] in {"answered", "refused"}] == expected


def test_unauthenticated_requests_do_not_fill_the_log(configured: Callable[..., Any]) -> None:
    key = new_key()
    now = [0.0]
    with configured({key: {"*": ["next"]}}) as ask, structlog.testing.capture_logs() as logged:
        ask.service.refusal_log_limit = Sampled(lambda: now[0])
        for _ in range(50):
            ask("POST", "/v1/sequences/orders:next")
            ask("GET", "/nothing")
        now[0] = 1.0
        ask("POST", "/alloc")
        # They do not suppress log lines of known callers.
        for _ in range(3):
            ask("GET", "/v1/sequences/orders", key=key)
    lines = [line for line in logged if line["event"] == "refused"]
    assert [line.get("left_out") for line in lines] == [None, 99] + [None] * 3
    assert [line["code"] for line in lines] == ["request.key"] * 2 + ["request.rights"] * 3
    assert ask.metric("next", "request.key") == 50


def test_last_resort_accepts_no_more_names_than_the_limit() -> None:
    resort = ("--fallback", "random", "--max-wait-ms", "50", "--max-namespaces", "3", "--rate", "2")
    with serving(*resort, store=Gone()) as ask:
        answers = [ask("POST", f"/v1/sequences/n{number}:next").status_code for number in range(6)]
        assert answers == [200] * 3 + [503] * 3
        again = [ask("POST", "/v1/sequences/n0:next").status_code for _ in range(6)]
        assert again[0] == 200
        assert again[-1] == 429, "its rate holds here too"
    with serving(*resort, "--no-auto-create", store=Gone()) as ask:
        assert problem(ask("POST", "/v1/sequences/orders:next")) == (503, "store.unavailable")


def test_integers_of_the_last_resort_are_marked() -> None:
    with serving("--fallback", "random", "--max-wait-ms", "50", store=Away()) as ask:
        response = ask("POST", "/v1/sequences/orders:next?count=3")
        assert response.headers["x-mintage-fallback"] == "random"
        assert all(FALLBACK_FLOOR <= int(each) <= MAX_INTEGER for each in response.json()["ids"])
        assert "x-mintage-fallback" not in ask("GET", "/healthz").headers
    with serving("--max-wait-ms", "50", store=Away()) as ask:
        response = ask("POST", "/v1/sequences/orders:next")
        assert problem(response) == (503, "store.unavailable")
        assert response.headers["retry-after"] == str(-(-response.json()["retry_after_ms"] // 1000))
        assert "x-mintage-fallback" not in response.headers
