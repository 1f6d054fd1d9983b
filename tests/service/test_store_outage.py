"""Tests of an unavailable store: the buffer is served, everything else is refused with a retry delay.

The service recovers by itself when the store comes back.
"""

from __future__ import annotations

import json
import re
import select
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.servers import Etcd, MariaDB, PostgreSQL, Proxy, Redis
from tests.servers.server import until
from tests.service.load import FALLBACK_FLOOR, line, post, read_answer, repeated
from tests.service.serving import Serving
from tests.service.wire import PATIENCE_S, command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import Server
    from tests.servers.fixtures import Servers
    from tests.service.load import Line

STEP = 100


@pytest.fixture
def proxy(mariadb: MariaDB) -> Iterator[Proxy]:
    with Proxy(mariadb) as proxy:
        yield proxy


@pytest.fixture
def service(proxy: Proxy, tmp_path: Path) -> Iterator[Serving]:
    """Return a service that waits neither long for its store nor for a segment."""
    with serve(tmp_path, proxy.url) as service:
        yield service


@contextmanager
def serve(directory: Path, url: str, wait_ms: int = 300, **settings: object) -> Iterator[Serving]:
    store = f"{url}?timeout_ms={wait_ms}"
    service = Serving(directory / "service", store, min_step=STEP, max_step=STEP, max_wait_ms=wait_ms, **settings)
    service.start()
    try:
        yield service
    finally:
        service.kill()


@pytest.fixture
def redis(service: Serving) -> Iterator[Line]:
    with service.redis() as redis:
        yield redis


@pytest.fixture
def http(service: Serving) -> Iterator[Line]:
    with service.http() as http:
        yield http


def ready(service: Serving) -> dict[str, Any]:
    """Return the answer of readyz."""
    status, _, body = service.get("/readyz")
    said: dict[str, Any] = json.loads(body)
    assert said["ready"] is (status == 200)
    return said


def fill(service: Serving, redis: Line, namespace: str = "orders") -> int:
    """Take the first integer and wait until the buffer is full; return its size."""
    until(lambda: redis.redis("INCR", namespace) == ":1", "the store is up")
    most = 2 * STEP - 1
    until(lambda: bool(ready(service)["sequences"][namespace]["held"] == most), "two segments are held")
    return most


def empty(redis: Line, namespace: str = "orders") -> tuple[list[int], str]:
    """Take integers until there is another answer; return both."""
    integers = []
    while (said := redis.redis("INCR", namespace)).startswith(":") and int(said[1:]) < FALLBACK_FLOOR:
        integers.append(int(said[1:]))
    return integers, said


# --- outage and recovery ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["refuse", "blackhole"])
def test_buffer_is_served_then_requests_refused_until_the_store_returns(
    service: Serving, proxy: Proxy, redis: Line, http: Line, how: str
) -> None:
    held = fill(service, redis)
    getattr(proxy, how)()
    until(lambda: ready(service)["store"] == "down", "the service sees it")
    assert ready(service)["ready"], "it can still serve"

    integers, said = empty(redis)
    assert integers == list(range(2, held + 2))
    assert re.match(r"-TRYAGAIN .*\b[1-9]\d*\b.* \(store\.unavailable\)$", said)
    told = http.http("/v1/sequences/orders:next")
    assert told.status == 503
    assert int(told.headers["retry-after"]) >= 1
    problem = json.loads(told.body)
    assert problem["code"] == "store.unavailable"
    assert problem["retry_after_ms"] >= 1
    assert int(told.headers["retry-after"]) * 1000 >= problem["retry_after_ms"]
    told = http.http("/alloc", '{"serviceName":"orders"}')
    assert json.loads(told.body)["code"] == 501000
    assert int(told.headers["retry-after"]) >= 1
    # The retry continues after the last integer.
    assert (redis.redis("GET", "orders")[0], line(redis.replies)) == ("$", str(held + 1))
    for words in (["INCRBY", "orders", "3"], ["INCR", "others"], ["GET", "others"]):
        assert redis.redis(*words).startswith("-TRYAGAIN "), words
    assert not ready(service)["ready"]
    assert service.get("/healthz").status == 200
    assert service.metric("mintage_store_up") == 0
    assert service.metric("mintage_store_failures_total", verb="reserve", code="store.unavailable") > 0

    proxy.heal()
    until(lambda: redis.redis("INCR", "orders").startswith(":"), "it recovers by itself")
    until(lambda: ready(service)["store"] == "up", "and says so")
    assert ready(service)["ready"]
    until(lambda: redis.redis("INCR", "others") == ":1", "all of it")
    # A busy machine may have exceeded the short timeout before, and may exceed it again.
    away, back = service.events("store away"), service.events("store back")
    assert 1 <= len(back) <= len(away) <= len(back) + 1
    assert {each["code"] for each in away} == {"store.unavailable"}
    assert all(each["away_s"] > 0 for each in back)
    assert "p%40ss" not in service.log.read_text(encoding="utf-8"), "no secret is logged"


def test_no_integer_repeats_under_load_with_a_frozen_database(service: Serving, mariadb: MariaDB) -> None:
    with service.load() as load:
        for _ in range(2):
            load.wait_for_more(2000)
            refused = load.codes()["store.unavailable"] + load.codes()["501000"]
            mariadb.pause()
            until(
                lambda before=refused: load.codes()["store.unavailable"] + load.codes()["501000"] > before + 10,  # type: ignore[misc]
                "what is held is used up",
            )
            assert service.get("/healthz").status == 200
            mariadb.resume()
        load.wait_for_more(2000)
    assert repeated(load.integers()) == []
    assert load.codes().keys() <= {"ok", "store.unavailable", "501000"}
    assert not load.ends(), "no connection was lost"
    assert load.integers().max() < FALLBACK_FLOOR
    assert not load.fallbacks().size


def test_ids_are_minted_while_the_lease_lasts_and_after_the_outage(proxy: Proxy, tmp_path: Path) -> None:
    with serve(tmp_path, proxy.url, span_ms=2000) as service, service.redis() as redis:

        def mint() -> str:
            said = redis.redis("MINT", "snowflake")
            return line(redis.replies) if said.startswith("$") else said

        ids: list[str] = []

        def minted() -> bool:
            said = mint()
            ids.extend([said] * (not said.startswith("-")))
            return not said.startswith("-")

        until(minted, "the store is up")
        proxy.refuse()
        while not (said := mint()).startswith("-"):
            ids.append(said)
        assert said.startswith("-TRYAGAIN ")
        proxy.heal()
        until(minted, "it recovers by itself")
        assert len(ids) > 2
        assert sorted(ids, key=int) == ids
        assert len(set(ids)) == len(ids)


def test_requests_waiting_for_the_store_are_limited(proxy: Proxy, tmp_path: Path) -> None:
    most = 20
    with ExitStack() as stack:
        service = stack.enter_context(patched(tmp_path, proxy, f"_MOST_WAITING = {most}"))
        redis, http = stack.enter_context(service.redis()), stack.enter_context(service.http())
        held = fill(service, redis)
        proxy.blackhole()
        waiting = [stack.enter_context(service.redis()) for _ in range(most + 1)]
        for each in waiting:
            each.send(command("GET", "others"))
        # All but one wait.
        [[one], *_] = select.select([each.socket for each in waiting], [], [], PATIENCE_S)
        [refused] = [each for each in waiting if each.socket is one]
        assert re.match(r"-TRYAGAIN .* \(request\.busy\)$", line(refused.replies))
        waiting.remove(refused)
        told = http.http("/v1/sequences/orders", method="GET")
        assert told.status == 503
        assert told.headers["retry-after"] == "1"
        assert json.loads(told.body)["code"] == "request.busy"
        assert redis.redis("INCRBY", "orders", str(held - STEP)) == f":{held - STEP + 1}"
        proxy.heal()
        assert all(re.match(r"\$|-TRYAGAIN ", line(each.replies)) for each in waiting), "each has an answer"
        until(lambda: redis.redis("GET", "others").startswith("$"), "there is room again")


@contextmanager
def patched(directory: Path, proxy: Proxy, code: str) -> Iterator[Serving]:
    """Return a service with another internal limit and a very long store timeout."""
    service = Serving(directory / "service", f"{proxy.url}?timeout_ms=30000", min_step=STEP, max_step=STEP)
    service.patch(f"import mintage.server.core.threads as threads; threads.{code}")
    service.start()
    try:
        yield service
    finally:
        service.kill()


# --- the bound on waiting -----------------------------------------------------------------------------------------

TAIL = '{"first":"51","last":"100","first_unused":"90","serial":%d}'
LAYOUT = '"layout":"sno/1"'
HELD = '{"floor_ms":1,"until_ms":2,"now_ms":3,"next_token":"%s"}' % ("ab" * 16)
DOORS = (
    ("POST", "/alloc", '{"serviceName":"fresh"}'),
    ("POST", "/v1/sequences/fresh:next", ""),
    ("POST", "/v1/sequences/orders:next?count=10000", ""),
    ("POST", "/v1/sequences/orders:reserve?count=50", ""),
    ("POST", "/v1/sequences/fresh:reserve?count=50", ""),
    ("POST", "/v1/sequences/lent:give-back", TAIL),
    ("GET", "/v1/sequences/orders", ""),
    ("GET", "/v1/sequences", ""),
    ("GET", "/v1/sequences:count", ""),
    ("PUT", "/v1/sequences/made", ""),
    ("PUT", "/v1/sequences/orders", '{"floor":"9"}'),
    ("DELETE", "/v1/sequences/orders", ""),
    ("GET", "/v1/pools", ""),
    ("PUT", "/v1/pools/ours", f"{{{LAYOUT}}}"),
    ("GET", "/v1/leases?pool=sno", ""),
    ("POST", "/v1/leases/sno", f'{{{LAYOUT},"nodes":{{"first":0,"last":9}},"now_ms":1}}'),
    ("PATCH", "/v1/leases/sno/1", HELD),
    ("DELETE", "/v1/leases/sno/1?used_until_ms=1", ""),
    ("GET", "/v1/store", ""),
    *(
        ("POST", f"/v1/ids/{scheme}", "")
        for scheme in ("snowflake", "xid", "sno", "sno", "sno", "sno?count=1000", "sno?count=999")
    ),
)
"""Every request that may wait for the store: method, path and body."""
COMMANDS = ("INCR fresh", "INCRBY fresh 5", "INCRBY orders 5000", "GET fresh", "MINT ulid", "MINT ulid COUNT 1000")


@pytest.mark.parametrize("kind", [PostgreSQL, MariaDB, Redis, Etcd], ids=lambda kind: kind.name)
def test_no_request_waits_longer_for_a_paused_store(kind: type[Server], servers: Servers, tmp_path: Path) -> None:
    server = servers.get(kind)
    # The driver waits far longer than the test's patience: only the service's own bound can give an answer.
    store = f"{server.url}{'&' if '?' in server.url else '?'}timeout_ms=60000"
    with ExitStack() as stack:
        service = Serving(tmp_path / "service", store, min_step=STEP, max_step=STEP, max_wait_ms=1000)
        stack.callback(service.kill)
        service.start()
        http, redis = stack.enter_context(service.http()), stack.enter_context(service.redis())
        fill(service, redis)
        until(lambda: http.http("/v1/sequences/lent:reserve?count=50").status == 200, "the store answers in time")
        serial = json.loads(http.http("/v1/sequences/lent:reserve?count=50").body)["serial"]
        asked = [(stack.enter_context(service.http()), each) for each in DOORS]
        said = [(stack.enter_context(service.redis()), each) for each in COMMANDS]
        server.pause()
        try:
            for http, (method, path, body) in asked:
                lease = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nLease-Token: {'cd' * 16}\r\n"
                filled = body % serial if body is TAIL else body
                http.send(f"{lease}Content-Length: {len(filled)}\r\n\r\n{filled}".encode())
            for redis, words in said:
                redis.send(command(*words.split()))
            for http, door in asked:
                told = read_answer(http.replies)
                if door[1] == "/alloc":
                    assert json.loads(told.body)["code"] == 501000
                else:
                    assert told.status == 503, (door, told)
                    assert json.loads(told.body)["code"] == "store.unavailable", door
                assert int(told.headers["retry-after"]) >= 1, door
            for redis, words in said:
                assert re.match(r"-TRYAGAIN .*\[retry_after_ms=\d+\] \(store\.unavailable\)", line(redis.replies)), (
                    words
                )
        finally:
            server.resume()
        until(lambda: ready(service)["store"] == "up", "the store is back")
        # More at once than there are threads: none is lost.
        again = [stack.enter_context(service.http()) for _ in range(40)]

        def served() -> bool:
            for each in again:
                each.send(post("/v1/sequences/orders", "").replace(b"POST", b"GET", 1))
            return {read_answer(each.replies).status for each in again} == {200}

        until(served, "all threads are free")
        with service.http() as http:
            assert http.http("/v1/sequences/made", method="GET").status in {200, 404}


# --- the last resort ----------------------------------------------------------------------------------------------


@pytest.fixture
def random(proxy: Proxy, tmp_path: Path) -> Iterator[Serving]:
    """Return a service with the last resort."""
    with serve(tmp_path, proxy.url, fallback="random") as service:
        yield service


def ids(told: Any) -> list[int]:
    """Return the integers of an answer of either kind."""
    body = json.loads(told.body)
    return [int(each) for each in (body["ids"] if "ids" in body else body["data"]["ids"])]


def test_last_resort_integers_are_random_marked_and_counted(random: Serving, proxy: Proxy) -> None:
    with random.redis() as redis, random.http() as http:
        held = fill(random, redis)
        proxy.refuse()
        # Buffered integers come first, and are not marked.
        most = held - 10
        told = http.http(f"/v1/sequences/orders:next?count={most}")
        assert ids(told) == list(range(2, most + 2))
        assert "x-mintage-fallback" not in told.headers
        # If they do not suffice, the remainder is random.
        given = []
        told = http.http("/v1/sequences/orders:next?count=50")
        assert told.status == 200
        assert told.headers["x-mintage-fallback"] == "random"
        assert [each for each in ids(told) if each < FALLBACK_FLOOR] == list(range(most + 2, held + 2))
        given += [each for each in ids(told) if each >= FALLBACK_FLOOR]
        told = http.http("/alloc", '{"serviceName":"orders","count":100}')
        assert told.headers["x-mintage-fallback"] == "random"
        given += ids(told)
        given += [int(redis.redis("INCR", "orders")[1:]) for _ in range(3)]
        assert len(set(given)) == 40 + 100 + 3
        assert all(FALLBACK_FLOOR <= each < 2**63 for each in given)
        assert random.metric("mintage_fallback_integers_total", namespace="orders") == len(given)
        # Random integers are not consecutive.
        assert redis.redis("INCRBY", "orders", "3").startswith("-TRYAGAIN ")

        proxy.heal()
        until(lambda: int(redis.redis("INCR", "orders")[1:]) < FALLBACK_FLOOR, "the store counts again")
        told = http.http("/v1/sequences/orders:next?count=2")
        assert all(held + 1 < each < FALLBACK_FLOOR for each in ids(told))
        assert "x-mintage-fallback" not in told.headers


def test_last_resort_is_not_used_while_the_store_answers(proxy: Proxy, tmp_path: Path) -> None:
    with serve(tmp_path, proxy.url, wait_ms=20_000, fallback="random") as random:
        with random.load() as load:
            load.wait_for_more(5000)
        assert load.codes().keys() == {"ok"}
        assert not load.fallbacks().size
        assert not random.metric("mintage_fallback_integers_total")


def test_exhausted_namespace_has_no_last_resort(proxy: Proxy, tmp_path: Path) -> None:
    with serve(tmp_path, proxy.url, wait_ms=20_000, fallback="random") as random, random.http() as http:
        assert http.http("/v1/sequences/few", '{"maximum":"5"}', method="PUT").status == 201
        assert ids(http.http("/v1/sequences/few:next?count=5")) == [1, 2, 3, 4, 5]
        told = http.http("/v1/sequences/few:next")
        assert json.loads(told.body)["code"] == "namespace.exhausted"
        assert "x-mintage-fallback" not in told.headers


def test_no_counted_integer_repeats_under_load_with_a_last_resort(random: Serving, proxy: Proxy) -> None:
    with random.load() as load:
        load.wait_for_more(2000)
        proxy.refuse()
        until(lambda: load.fallbacks().size > 1000, "what is held is used up")
        proxy.heal()
        load.wait_for_more(2000)
    assert repeated(load.integers()) == []
    assert np.all(load.fallbacks() < 2**63)
    random.until_metric("mintage_fallback_integers_total", load.fallbacks().size)
    random.until_metric("mintage_integers_total", load.fallbacks().size + load.integers().size)
