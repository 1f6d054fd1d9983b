"""Tests of readiness, the store probe and the profile: the view of an operator of the service."""

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
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import structlog
import uvloop

from mintage.errors import CATALOGUE, ConfigError, MintError, RequestError, StoreError
from mintage.rules import NamespaceRecord, Segment
from mintage.server.core import health, profile
from mintage.server.core.health import Pace, StoreProbe, check_passing, days_left, is_ready, next_pace
from mintage.server.core.metrics import Metrics
from mintage.store.memory import MemoryStore
from tests.helpers.pages import answer, bearer, client, with_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    import httpx


DAY = 86_400


# --- a fake service -----------------------------------------------------------------------------------------------


def make(store: Any = None, **held: int) -> Any:
    """Return a service with a memory store and a number of buffered integers for each namespace."""
    service: Any = SimpleNamespace(
        store=store or MemoryStore(),
        metrics=Metrics(),
        draining=False,
        sequences=lambda: {name: SimpleNamespace(buffered=level) for name, level in held.items()},
        ended=set,
        gather=lambda: None,
    )
    with_keys(service, has_keys=False)
    service.probe = watch(service)
    return service


def watch(service: Any, patience_s: float = 5) -> StoreProbe:
    """Return a store probe with the expiry dates of three layouts."""
    ends = {"sno": datetime(2079, 9, 7, tzinfo=UTC), "snowflake": datetime(2080, 7, 10, tzinfo=UTC), "locality": None}
    served = lambda: ["used", "idle", "empty"]  # noqa: E731
    return StoreProbe(service.store, service.metrics, ends, served, patience_s=patience_s)


def gauge(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def watched(service: Any, do: Callable[[StoreProbe], Coroutine[Any, Any, None]]) -> list[dict[str, Any]]:
    """Run the probe, and return its log."""
    with structlog.testing.capture_logs() as logged:
        asyncio.run(do(service.probe))
    return [dict(line) for line in logged]


# --- readiness ----------------------------------------------------------------------------------------------------


def test_service_is_ready_while_the_store_answers() -> None:
    assert is_ready(draining=False, store_up=True, held={})
    assert is_ready(draining=False, store_up=True, held={"orders": 0})


def test_buffered_integers_keep_the_service_ready_without_the_store() -> None:
    assert is_ready(draining=False, store_up=False, held={"orders": 1, "users": 1})
    assert not is_ready(draining=False, store_up=False, held={"orders": 1, "users": 0})


def test_service_without_store_and_integers_is_not_ready() -> None:
    assert not is_ready(draining=False, store_up=False, held={})


def test_last_resort_keeps_the_service_ready_without_the_store() -> None:
    assert is_ready(draining=False, store_up=False, held={}, last_resort=True)
    assert is_ready(draining=False, store_up=False, held={"orders": 0}, last_resort=True)
    assert not is_ready(draining=True, store_up=False, held={}, last_resort=True)


@pytest.mark.parametrize(("code", "status"), [("store.unavailable", 200), ("store.refused", 503)])
def test_readyz_is_degraded_if_only_the_last_resort_works(code: str, status: int) -> None:
    service = make(Failing(code))
    service.settings.fallback = "random"
    watched(service, StoreProbe.probe)
    response = answer(service, "/readyz")
    assert (response.status_code, response.json()["degraded"]) == (status, status == 200)
    service.settings.fallback = "none"
    assert answer(service, "/readyz").status_code == 503


def test_ended_namespace_does_not_make_the_service_unready() -> None:
    service = make(orders=7, ended=0)
    service.ended = lambda: {"ended"}
    assert answer(service, "/readyz").status_code == 200
    service.ended = set
    assert answer(service, "/readyz").status_code == 503


def test_survey_reads_a_bounded_number_of_namespaces_in_turn() -> None:
    class Counting(MemoryStore):
        read: ClassVar[list[str]] = []

        def get_namespace(self, namespace: str) -> NamespaceRecord:
            self.read.append(namespace)
            return NamespaceRecord(namespace, 1, 10, 1, 1, "memory")

    names = [f"n{number:04}" for number in range(1_500)]
    probe = StoreProbe(Counting(), Metrics(), {}, lambda: names)
    asyncio.run(probe.survey(1000.0))
    assert Counting.read == names[:1000]
    asyncio.run(probe.survey(1060.0))
    assert Counting.read[1000:] == names[1000:] + names[:500]


def test_stopping_service_is_not_ready() -> None:
    assert not is_ready(draining=True, store_up=True, held={"orders": 1})


def test_healthz_is_ok_while_the_event_loop_runs() -> None:
    response = answer(make(), "/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_readyz_gives_the_reason() -> None:
    service = make(orders=7)

    async def look_and_ask() -> httpx.Response:
        await service.probe.probe()
        async with client(service) as http:
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
    response = answer(service, "/readyz")
    assert response.status_code == 503
    assert response.json()["draining"] is True
    assert response.headers["cache-control"] == "no-store"


def test_readyz_is_503_until_the_store_has_answered() -> None:
    response = answer(make(), "/readyz")
    assert response.status_code == 503
    assert response.json()["store"] == "down"


def test_readyz_names_no_namespace_if_there_are_keys() -> None:
    service = make(secret=1)
    with_keys(service)
    response = answer(service, "/readyz")
    assert response.status_code == 200
    assert "secret" not in response.text


# --- startup ------------------------------------------------------------------------------------------------------


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
def test_permanent_store_error_is_refused_at_startup(store: MemoryStore, refused: str | None) -> None:
    service = make(store)
    watched(service, StoreProbe.probe)
    if refused is None:
        check_passing(service.probe.failure)
        return
    with pytest.raises(ConfigError) as caught:
        check_passing(service.probe.failure)
    assert (caught.value.code, CATALOGUE[refused].exit) == (refused, 78)


# --- the watch ----------------------------------------------------------------------------------------------------


class Flaky(MemoryStore):
    """A memory store that can be unavailable, and whose clock can be wrong."""

    error: Exception | None = None
    ahead_ms = 0

    def now_ms(self) -> int:
        if self.error is not None:
            raise self.error
        return super().now_ms() + self.ahead_ms


def test_loss_and_return_of_the_store_are_each_logged_once() -> None:
    store = Flaky()
    service = make(store)

    async def days(watch: StoreProbe) -> None:
        await watch.probe()
        store.error = StoreError("refused", code="store.unavailable")
        await watch.probe()
        assert watch.store_up is False
        assert gauge(service.metrics, "mintage_store_up") == 0
        since = watch.since
        await watch.probe()
        assert watch.since == since
        store.error = None
        await watch.probe()
        await watch.probe()
        assert watch.store_up is True
        assert watch.since > since
        assert gauge(service.metrics, "mintage_store_up") == 1

    away, back = watched(service, days)
    assert (away["event"], away["log_level"], away["code"]) == ("store away", "warning", "store.unavailable")
    assert (back["event"], back["log_level"], back["store"]) == ("store back", "info", "memory:")
    assert back["away_s"] >= 0


def test_unexpected_store_exception_counts_as_unavailable() -> None:
    store = Flaky()
    store.error = ZeroDivisionError()
    (line,) = watched(make(store), StoreProbe.probe)
    assert (line["event"], line["code"]) == ("store away", "store.refused")


def test_clock_offset_is_ours_minus_that_of_the_store() -> None:
    store = Flaky()
    store.ahead_ms = 30_000
    service = make(store)
    asyncio.run(service.probe.probe())
    assert gauge(service.metrics, "mintage_store_clock_offset_seconds") == pytest.approx(-30, abs=1)


class ReadOnly(MemoryStore):
    """A store that answers reads, and refuses writes."""

    error: MintError = ConfigError("it has no append-only file", code="config.volatile")

    def give_back(self, segment: Segment, first_unused: int) -> bool:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [ConfigError("no append-only file", code="config.volatile"), StoreError("no right", code="store.refused")],
    ids=lambda error: error.code,
)
def test_store_that_would_refuse_every_request_is_not_up(error: MintError) -> None:
    store = ReadOnly()
    store.error = error
    service = make(store)
    (line,) = watched(service, StoreProbe.probe)
    assert (line["event"], line["code"]) == ("store away", error.code)
    assert gauge(service.metrics, "mintage_store_up") == 0
    assert answer(service, "/readyz").status_code == 503


def test_service_behind_this_one_is_up_whatever_our_key_allows() -> None:
    store = ReadOnly()
    store.error = RequestError("no right", code="request.rights")
    service = make(store)
    assert watched(service, StoreProbe.probe) == []
    assert answer(service, "/readyz").status_code == 200


def test_probe_changes_nothing() -> None:
    store = MemoryStore()
    asyncio.run(make(store).probe.probe())
    assert (store.list_namespaces(), store.list_pools()) == ([], [])


class Hanging(MemoryStore):
    """A store that does not answer until the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()
        self.asked = 0

    def now_ms(self) -> int:
        self.asked += 1
        self.may.wait(60)
        return super().now_ms()


def test_hanging_store_is_unavailable_and_probed_only_once() -> None:
    store = Hanging()
    service = make(store)
    service.probe = hasty = watch(service, 0.05)

    async def hang() -> None:
        await hasty.probe()
        await hasty.probe()
        await hasty.probe()
        assert hasty.store_up is False
        assert store.asked == 1
        # Other requests are served meanwhile.
        async with client(service) as http:
            assert (await http.get("/healthz")).status_code == 200
            assert (await http.get("/readyz")).status_code == 503
        store.may.set()
        while hasty.store_up is not True:
            await hasty.probe()
            await asyncio.sleep(0.001)

    try:
        asyncio.run(hang())
    finally:
        store.may.set()


def test_probe_loop_survives_an_error_and_ends_when_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    service = make()
    looked = 0

    async def look(_: object) -> None:
        nonlocal looked
        looked += 1
        if looked == 1:
            raise ZeroDivisionError

    monkeypatch.setattr(StoreProbe, "probe", look)
    monkeypatch.setattr(health, "LOOK_S", 0.001)

    async def until_it_has_looked(watch: StoreProbe) -> None:
        task = asyncio.create_task(watch.run())
        while looked < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    logged = watched(service, until_it_has_looked)
    assert looked >= 3
    assert [line["event"] for line in logged] == ["watch failed"]


# --- expiry -------------------------------------------------------------------------------------------------------


def test_days_left_are_the_remaining_integers_divided_by_the_rate() -> None:
    pace = Pace(0)
    for minute in range(1, 61):
        pace = next_pace(minute * 600, pace, 60)
    assert pace.per_second == pytest.approx(10)
    assert days_left(10 * DAY * 7, pace.per_second) == pytest.approx(7)


def test_unused_namespace_lasts_for_ever() -> None:
    assert days_left(50, next_pace(50, Pace(50), 60).per_second) == math.inf
    assert days_left(0, 0) == 0
    assert days_left(0, 5) == 0


def test_first_minute_has_no_special_weight_in_the_rate() -> None:
    pace = next_pace(6000, Pace(0), 60)
    for _ in range(9):
        pace = next_pace(6000, pace, 60)
    assert pace.per_second == pytest.approx(10)


def test_use_of_several_days_ago_no_longer_counts() -> None:
    pace = Pace(0)
    for hour in range(1, 25):
        pace = next_pace(hour * 3_600_000, pace, 3600)
    busy = pace.per_second
    assert busy == pytest.approx(1000)
    for _ in range(24 * 7):
        pace = next_pace(pace.high_water, pace, 3600)
    assert 0 < pace.per_second < busy / 500


def test_returned_tail_makes_no_negative_rate() -> None:
    assert next_pace(50, Pace(100), 60).per_second == 0


class Listed(MemoryStore):
    """A store with given namespaces."""

    high_water = 0

    def get_namespace(self, namespace: str) -> NamespaceRecord:
        last, maximum = {"used": (self.high_water, 10_000_000), "idle": (5, 10), "empty": (10, 10)}[namespace]
        return NamespaceRecord(namespace, last, maximum, 1, 1, "memory")


def test_survey_reports_days_of_used_namespaces_and_all_layouts() -> None:
    store = Listed()
    service = make(store)
    asyncio.run(service.probe.survey(1000.0))
    assert gauge(service.metrics, "mintage_namespace_days_left", namespace="used") is None
    store.high_water = 6000
    asyncio.run(service.probe.survey(1060.0))
    days = gauge(service.metrics, "mintage_namespace_days_left", namespace="used")
    assert days == pytest.approx((10_000_000 - 6000) / 100 / DAY)
    assert gauge(service.metrics, "mintage_namespace_days_left", namespace="idle") is None
    assert gauge(service.metrics, "mintage_namespace_days_left", namespace="empty") == 0
    for scheme, year in {"sno": 2079, "snowflake": 2080}.items():
        left = gauge(service.metrics, "mintage_layout_days_left", scheme=scheme)
        assert left is not None
        assert (datetime.now(UTC) + timedelta(days=left)).year == year
    assert gauge(service.metrics, "mintage_layout_days_left", scheme="locality") is None


def test_raised_floor_brings_no_end_nearer() -> None:
    store = MemoryStore()
    service = make(store)
    store.create_namespace("used", maximum=2_000_000)
    store.reserve("used", 1)
    asyncio.run(service.probe.survey(1000.0))
    store.raise_floor("used", 1_000_000)
    asyncio.run(service.probe.survey(1060.0))
    assert gauge(service.metrics, "mintage_namespace_days_left", namespace="used") is None


def test_retired_namespace_no_longer_ends_soon() -> None:
    store = MemoryStore()
    service = make(store)
    store.create_namespace("used", maximum=1_000_000)
    for at in range(2):
        store.reserve("used", 1_000)
        asyncio.run(service.probe.survey(1000.0 + 60 * at))
    days = gauge(service.metrics, "mintage_namespace_days_left", namespace="used")
    assert days is not None
    assert days < 1
    store.retire("used")
    asyncio.run(service.probe.survey(1120.0))
    assert gauge(service.metrics, "mintage_namespace_days_left", namespace="used") == math.inf


# --- the profile --------------------------------------------------------------------------------------------------


needs_pyinstrument = pytest.mark.skipif(find_spec("pyinstrument") is None, reason="there is no pyinstrument here")


def profiled() -> Any:
    service = make()
    with_keys(service, boss=["admin"], other=["next", "metrics"])
    return service


def digest_all() -> int:
    """Work that the profile must find, as it takes nearly all of the time."""
    return sum(len(hashlib.sha256(b"mintage").digest()) for _ in range(4000))


@needs_pyinstrument
@pytest.mark.parametrize(("form", "media_type"), list(profile.TYPES.items()))
def test_profile_shows_the_running_loop_without_stopping_it(form: str, media_type: str) -> None:
    service = profiled()
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            digest_all()
            turns += 1
            # A stopping service waits for no profile.
            service.draining = turns > 200
            await asyncio.sleep(0)

    async def ask() -> httpx.Response:
        working = asyncio.create_task(work())
        async with client(service) as http:
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
def test_one_profile_runs_at_a_time_and_does_not_delay_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "LONGEST_S", 900)  # longer than a test may take
    service = profiled()

    async def ask() -> tuple[str, str]:
        async with client(service) as http:
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
def test_disconnected_caller_leaves_no_profile_running() -> None:
    service = profiled()

    async def ask() -> httpx.Response:
        async with client(service) as http:
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
    assert answer(service, "/debug/profile?seconds=1", key="other").text == "request.rights"
    assert answer(service, "/debug/profile?seconds=1").text == "request.key"


def test_without_keys_no_profile_is_given() -> None:
    response = answer(make(), "/debug/profile?seconds=1")
    assert (response.status_code, response.text) == (403, "request.rights")
    assert "mintage keys new" in response.headers["detail"]


@pytest.mark.parametrize("seconds", ["0", "61", "-1", "1.5", "", "٣", "0000000015000000", "000000001" + "1" * 5000])
def test_profile_takes_an_integer_of_1_to_60_seconds(seconds: str) -> None:
    response = answer(profiled(), f"/debug/profile?seconds={seconds}", key="boss")
    assert (response.status_code, response.text) == (400, "request.malformed")


def test_profile_has_three_forms() -> None:
    response = answer(profiled(), "/debug/profile?seconds=1&format=svg", key="boss")
    assert (response.status_code, response.text) == (400, "request.malformed")
