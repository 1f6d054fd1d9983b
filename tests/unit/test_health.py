"""Readiness, the watch over the store, and the profile: what somebody who looks after the service is told."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import sys
import threading
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import structlog
import uvloop
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

from mintage import snowflake
from mintage.errors import CATALOGUE, ConfigError, MintError, RequestError, StoreError
from mintage.lease import NamespaceRecord, Segment
from mintage.server import health, pages, profile
from mintage.server.health import Pace, Watch, days_left, is_ready, next_pace
from mintage.server.keys import Caller
from mintage.server.metrics import Metrics
from mintage.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from starlette.requests import Request
    from starlette.routing import Route

DAY = 86_400


# --- a service in the test's hand ---------------------------------------------------------------------------------


def with_keys(service: Any, /, has_keys: bool = True, **rights: Iterable[str]) -> None:
    """Lets the service know callers by their names; each has these rights to all names."""
    callers = {name: Caller.of(name, {"*": granted}) for name, granted in rights.items()}

    def caller(key: str | bytes | None) -> Caller:
        if not has_keys:
            return Caller.anybody()
        name = key.decode() if isinstance(key, bytes) else key
        if name not in callers:
            raise RequestError("who?", code="request.key")
        return callers[name]

    service.caller = caller
    service.settings = SimpleNamespace(has_keys=has_keys, layout=snowflake.TWITTER, fallback="none")


def make(store: Any = None, **held: int) -> Any:
    """A service with a memory store, that holds so many integers of each namespace."""
    service: Any = SimpleNamespace(
        store=store or MemoryStore(),
        metrics=Metrics(),
        draining=False,
        lane=SimpleNamespace(counts=list),
        sequences=lambda: {name: SimpleNamespace(buffered=level) for name, level in held.items()},
        generators=dict,
        connections={},
    )
    with_keys(service, has_keys=False)
    service.watch = watch(service)
    return service


def watch(service: Any, patience_s: float = 5) -> Watch:
    """With the ends of three layouts."""
    ends = {"sno": datetime(2079, 9, 7, tzinfo=UTC), "snowflake": datetime(2080, 7, 10, tzinfo=UTC), "locality": None}
    return Watch(service.store, service.metrics, ends, patience_s=patience_s)


def client(routes: list[Route]) -> httpx.AsyncClient:
    """Speaks to an application with these routes, whose errors are answered with their codes."""

    async def refused(_: Request, error: Exception) -> PlainTextResponse:
        assert isinstance(error, RequestError)
        return PlainTextResponse(error.code, CATALOGUE[error.code].http, {"Detail": ascii(str(error))})

    app = Starlette(routes=routes, exception_handlers={RequestError: refused})
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def answer(routes: list[Route], path: str, *, key: str = "") -> httpx.Response:
    async def ask() -> httpx.Response:
        async with client(routes) as http:
            return await http.get(path, headers=bearer(key))

    return asyncio.run(ask())


def gauge(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def watched(service: Any, do: Callable[[Watch], Coroutine[Any, Any, None]]) -> list[dict[str, Any]]:
    """Runs it, and returns what was logged."""
    with structlog.testing.capture_logs() as logged:
        asyncio.run(do(service.watch))
    return [dict(line) for line in logged]


# --- readiness ----------------------------------------------------------------------------------------------------


def test_it_is_ready_while_the_store_answers() -> None:
    assert is_ready(draining=False, store_up=True, held={})
    assert is_ready(draining=False, store_up=True, held={"orders": 0})


def test_without_the_store_it_is_ready_while_every_namespace_in_use_has_integers() -> None:
    assert is_ready(draining=False, store_up=False, held={"orders": 1, "users": 1})
    assert not is_ready(draining=False, store_up=False, held={"orders": 1, "users": 0})


def test_without_the_store_and_with_nothing_held_it_is_not_ready() -> None:
    assert not is_ready(draining=False, store_up=False, held={})


def test_with_a_last_resort_it_is_ready_without_the_store() -> None:
    assert is_ready(draining=False, store_up=False, held={}, last_resort=True)
    assert is_ready(draining=False, store_up=False, held={"orders": 0}, last_resort=True)
    assert not is_ready(draining=True, store_up=False, held={}, last_resort=True)


@pytest.mark.parametrize(("code", "status"), [("store.unavailable", 200), ("store.refused", 503)])
def test_readyz_counts_the_last_resort_where_the_store_is_away(code: str, status: int) -> None:
    service = make(Failing(code))
    service.settings.fallback = "random"
    watched(service, Watch.look)
    response = answer(pages.routes(service), "/readyz")
    assert (response.status_code, response.json()["degraded"]) == (status, status == 200)
    service.settings.fallback = "none"
    assert answer(pages.routes(service), "/readyz").status_code == 503


def test_a_service_that_stops_is_not_ready_whatever_it_holds() -> None:
    assert not is_ready(draining=True, store_up=True, held={"orders": 1})


def test_healthz_is_ok_as_long_as_the_loop_turns() -> None:
    response = answer(pages.routes(make()), "/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_readyz_tells_why() -> None:
    service = make(orders=7)

    async def look_and_ask() -> httpx.Response:
        await service.watch.look()
        async with client(pages.routes(service)) as http:
            return await http.get("/readyz")

    response = asyncio.run(look_and_ask())
    body = response.json()
    assert response.status_code == 200
    assert datetime.now(UTC) - datetime.fromisoformat(body.pop("since")) < timedelta(minutes=1)
    assert body == {
        "ready": True,
        "degraded": False,
        "draining": False,
        "store": "up",
        "sequences": {"orders": {"held": 7}},
    }
    service.draining = True
    response = answer(pages.routes(service), "/readyz")
    assert response.status_code == 503
    assert response.json()["draining"] is True
    assert response.headers["cache-control"] == "no-store"


def test_readyz_is_503_before_the_store_has_answered() -> None:
    response = answer(pages.routes(make()), "/readyz")
    assert response.status_code == 503
    assert response.json()["store"] == "down"


def test_readyz_names_no_namespace_where_there_are_keys() -> None:
    service = make(secret=1)
    with_keys(service)
    response = answer(pages.routes(service), "/readyz")
    assert response.status_code == 200
    assert "secret" not in response.text


# --- whether it starts --------------------------------------------------------------------------------------------


class Failing(MemoryStore):
    """A memory store that fails with an error."""

    def __init__(self, code: str, *, is_lasting: bool = False) -> None:
        super().__init__()
        self.error = CATALOGUE[code].error("no", code=code)
        if isinstance(self.error, StoreError):
            self.error.is_lasting = is_lasting

    def describe(self) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("store", "refused"),
    [
        (MemoryStore(), None),
        (Failing("store.unavailable"), None),
        (Failing("store.refused"), None),
        (Failing("store.refused", is_lasting=True), "config.setting"),
        (Failing("store.schema"), "config.setting"),
        (Failing("config.volatile"), "config.volatile"),
    ],
    ids=str,
)
def test_a_store_that_no_waiting_mends_is_refused_at_the_start(store: MemoryStore, refused: str | None) -> None:
    service = make(store)
    watched(service, Watch.look)
    if refused is None:
        service.watch.check()
        return
    with pytest.raises(ConfigError) as caught:
        service.watch.check()
    assert (caught.value.code, CATALOGUE[refused].exit) == (refused, 78)


# --- the watch ----------------------------------------------------------------------------------------------------


class Flaky(MemoryStore):
    """A memory store that can be away, and whose clock can be wrong."""

    error: Exception | None = None
    ahead_ms = 0

    def now_ms(self) -> int:
        if self.error is not None:
            raise self.error
        return super().now_ms() + self.ahead_ms


def test_the_log_says_once_that_the_store_went_away_and_once_that_it_came_back() -> None:
    store = Flaky()
    service = make(store)

    async def days(watch: Watch) -> None:
        await watch.look()
        store.error = StoreError("refused", code="store.unavailable")
        await watch.look()
        assert watch.store_up is False
        assert gauge(service.metrics, "mintage_store_up") == 0
        since = watch.since
        await watch.look()
        assert watch.since == since
        store.error = None
        await watch.look()
        await watch.look()
        assert watch.store_up is True
        assert watch.since > since
        assert gauge(service.metrics, "mintage_store_up") == 1

    away, back = watched(service, days)
    assert (away["event"], away["log_level"], away["code"]) == ("store away", "warning", "store.unavailable")
    assert (back["event"], back["log_level"], back["store"]) == ("store back", "info", "memory:")
    assert back["away_s"] >= 0


def test_a_fault_of_the_store_is_a_store_that_is_away() -> None:
    store = Flaky()
    store.error = ZeroDivisionError()
    (line,) = watched(make(store), Watch.look)
    assert (line["event"], line["code"]) == ("store away", "store.refused")


def test_the_clock_offset_is_ours_less_the_stores() -> None:
    store = Flaky()
    store.ahead_ms = 30_000
    service = make(store)
    asyncio.run(service.watch.look())
    assert gauge(service.metrics, "mintage_store_clock_offset_seconds") == pytest.approx(-30, abs=1)


class ReadOnly(MemoryStore):
    """A store that tells all about itself, and refuses whatever writes."""

    error: MintError = ConfigError("it has no append-only file", code="config.volatile")

    def give_back(self, segment: Segment, first_unused: int) -> bool:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [ConfigError("no append-only file", code="config.volatile"), StoreError("no right", code="store.refused")],
    ids=lambda error: error.code,
)
def test_a_store_that_answers_but_would_refuse_every_request_is_not_up(error: MintError) -> None:
    store = ReadOnly()
    store.error = error
    service = make(store)
    (line,) = watched(service, Watch.look)
    assert (line["event"], line["code"]) == ("store away", error.code)
    assert gauge(service.metrics, "mintage_store_up") == 0
    assert answer(pages.routes(service), "/readyz").status_code == 503


def test_a_service_behind_this_one_is_up_whatever_our_key_may() -> None:
    store = ReadOnly()
    store.error = RequestError("no right", code="request.rights")
    service = make(store)
    assert watched(service, Watch.look) == []
    assert answer(pages.routes(service), "/readyz").status_code == 200


def test_a_look_changes_nothing() -> None:
    store = MemoryStore()
    asyncio.run(make(store).watch.look())
    assert (store.list_namespaces(), store.list_pools()) == ([], [])


class Hanging(MemoryStore):
    """A store that answers nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()
        self.asked = 0

    def now_ms(self) -> int:
        self.asked += 1
        self.may.wait(60)
        return super().now_ms()


def test_a_store_that_hangs_is_away_and_is_not_asked_once_more_meanwhile() -> None:
    store = Hanging()
    service = make(store)
    service.watch = hasty = watch(service, 0.05)

    async def hang() -> None:
        await hasty.look()
        await hasty.look()
        await hasty.look()
        assert hasty.store_up is False
        assert store.asked == 1
        # Others are served meanwhile.
        async with client(pages.routes(service)) as http:
            assert (await http.get("/healthz")).status_code == 200
            assert (await http.get("/readyz")).status_code == 503
        store.may.set()
        while hasty.store_up is not True:
            await hasty.look()
            await asyncio.sleep(0.001)

    try:
        asyncio.run(hang())
    finally:
        store.may.set()


def test_the_watch_goes_on_after_a_fault_and_ends_when_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    service = make()
    looked = 0

    async def look(_: object) -> None:
        nonlocal looked
        looked += 1
        if looked == 1:
            raise ZeroDivisionError

    monkeypatch.setattr(Watch, "look", look)
    monkeypatch.setattr(health, "LOOK_S", 0.001)

    async def until_it_has_looked(watch: Watch) -> None:
        task = asyncio.create_task(watch.run())
        while looked < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    logged = watched(service, until_it_has_looked)
    assert looked >= 3
    assert [line["event"] for line in logged] == ["watch failed"]


# --- how long it lasts --------------------------------------------------------------------------------------------


def test_a_namespace_lasts_as_long_as_what_is_left_divided_by_the_rate() -> None:
    pace = Pace(0)
    for minute in range(1, 61):
        pace = next_pace(minute * 600, pace, 60)
    assert pace.per_second == pytest.approx(10)
    assert days_left(36_000 + 10 * DAY * 7, pace) == pytest.approx(7)


def test_a_namespace_that_is_not_used_lasts_for_ever_and_one_used_up_not_at_all() -> None:
    assert days_left(100, next_pace(50, Pace(50), 60)) == math.inf
    assert days_left(100, Pace(100)) == 0
    assert days_left(100, Pace(100, 60, 5)) == 0


def test_the_first_minute_counts_no_more_than_any_other_of_the_first_day() -> None:
    pace = next_pace(6000, Pace(0), 60)
    for _ in range(9):
        pace = next_pace(6000, pace, 60)
    assert pace.per_second == pytest.approx(10)


def test_what_happened_days_ago_no_longer_counts() -> None:
    pace = Pace(0)
    for hour in range(1, 25):
        pace = next_pace(hour * 3_600_000, pace, 3600)
    busy = pace.per_second
    assert busy == pytest.approx(1000)
    for _ in range(24 * 7):
        pace = next_pace(pace.high_water, pace, 3600)
    assert 0 < pace.per_second < busy / 500


def test_a_tail_that_was_given_back_is_no_pace_backwards() -> None:
    assert next_pace(50, Pace(100), 60).per_second == 0


class Listed(MemoryStore):
    """A store whose namespaces a test says."""

    high_water = 0

    def list_namespaces(self) -> list[NamespaceRecord]:
        used = NamespaceRecord("used", self.high_water, 10_000_000, 1, 1, "memory")
        return [used, NamespaceRecord("idle", 5, 10, 1, 1, "memory"), NamespaceRecord("empty", 10, 10, 1, 1, "memory")]


def test_a_survey_tells_the_days_of_namespaces_in_use_and_of_all_layouts() -> None:
    store = Listed()
    service = make(store)
    asyncio.run(service.watch.survey(1000.0))
    assert gauge(service.metrics, "mintage_namespace_days_left", namespace="used") is None
    store.high_water = 6000
    asyncio.run(service.watch.survey(1060.0))
    days = gauge(service.metrics, "mintage_namespace_days_left", namespace="used")
    assert days == pytest.approx((10_000_000 - 6000) / 100 / DAY)
    assert gauge(service.metrics, "mintage_namespace_days_left", namespace="idle") is None
    assert gauge(service.metrics, "mintage_namespace_days_left", namespace="empty") == 0
    for scheme, year in {"sno": 2079, "snowflake": 2080}.items():
        left = gauge(service.metrics, "mintage_layout_days_left", scheme=scheme)
        assert left is not None
        assert (datetime.now(UTC) + timedelta(days=left)).year == year
    assert gauge(service.metrics, "mintage_layout_days_left", scheme="locality") is None


# --- the profile --------------------------------------------------------------------------------------------------


needs_pyinstrument = pytest.mark.skipif(find_spec("pyinstrument") is None, reason="there is no pyinstrument here")


def profiled() -> Any:
    service = make()
    with_keys(service, boss=["admin"], other=["next", "metrics"])
    return service


def digest_all() -> int:
    """What the profile is to find: nearly all that is done."""
    return sum(len(hashlib.sha256(b"mintage").digest()) for _ in range(4000))


@needs_pyinstrument
@pytest.mark.parametrize(("form", "media_type"), list(profile.TYPES.items()))
def test_a_profile_shows_what_the_loop_does_meanwhile_and_the_loop_goes_on(form: str, media_type: str) -> None:
    service = profiled()
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            digest_all()
            turns += 1
            # A service that stops waits for nobody's profile.
            service.draining = turns > 200
            await asyncio.sleep(0)

    async def ask() -> httpx.Response:
        working = asyncio.create_task(work())
        async with client(pages.routes(service)) as http:
            response = await http.get(f"/debug/profile?seconds=60&format={form}", headers=bearer("boss"))
        working.cancel()
        return response

    response = uvloop.run(ask())
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(media_type)
    assert "digest_all" in response.text
    assert turns > 200
    if form == "speedscope":
        assert "speedscope" in json.loads(response.text)["$schema"]


@needs_pyinstrument
def test_one_profile_at_a_time_and_a_service_that_stops_does_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "LONGEST_S", 900)  # longer than a test may take
    service = profiled()

    async def ask() -> tuple[str, str]:
        async with client(pages.routes(service)) as http:
            first = asyncio.create_task(http.get("/debug/profile?seconds=900&format=text", headers=bearer("boss")))
            while sys.getprofile() is None:
                await asyncio.sleep(0.001)
            second = await http.get("/debug/profile?seconds=60", headers=bearer("boss"))
            service.draining = True
            return second.text, (await first).text

    refused, taken = asyncio.run(ask())
    assert refused == "request.busy"
    assert "mintage serve, 900 s" in taken
    assert sys.getprofile() is None


@needs_pyinstrument
def test_a_caller_that_goes_away_leaves_no_profile_running() -> None:
    service = profiled()

    async def ask() -> httpx.Response:
        async with client(pages.routes(service)) as http:
            first = asyncio.create_task(http.get("/debug/profile?seconds=60", headers=bearer("boss")))
            while sys.getprofile() is None:
                await asyncio.sleep(0.001)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert sys.getprofile() is None
            return await http.get("/debug/profile?seconds=1", headers=bearer("boss"))

    assert asyncio.run(ask()).status_code == 200


def test_profiles_are_for_admins() -> None:
    service = profiled()
    assert answer(pages.routes(service), "/debug/profile?seconds=1", key="other").text == "request.rights"
    assert answer(pages.routes(service), "/debug/profile?seconds=1").text == "request.key"


def test_without_keys_nobody_gets_a_profile() -> None:
    response = answer(pages.routes(make()), "/debug/profile?seconds=1")
    assert (response.status_code, response.text) == (403, "request.rights")
    assert "mintage keys new" in response.headers["detail"]


@pytest.mark.parametrize("seconds", ["0", "61", "-1", "1.5", "", "٣", "0000000015000000", "000000001" + "1" * 5000])
def test_a_profile_takes_1_to_60_whole_seconds(seconds: str) -> None:
    response = answer(pages.routes(profiled()), f"/debug/profile?seconds={seconds}", key="boss")
    assert (response.status_code, response.text) == (400, "request.malformed")


def test_a_profile_has_three_forms() -> None:
    response = answer(pages.routes(profiled()), "/debug/profile?seconds=1&format=svg", key="boss")
    assert (response.status_code, response.text) == (400, "request.malformed")
