"""Tests of metrics: exact counts over all workers, under the documented names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import mintage
from mintage import Sequence, __version__, sno
from mintage.errors import ConfigError, GenerationError
from mintage.server.core.metrics import OPERATIONS, Metered, Metrics
from mintage.store import Store, new_token
from mintage.store.memory import MemoryStore
from tests.helpers.pages import answer, with_keys
from tests.servers.server import until

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ROOT = Path(__file__).parents[2]
INSTALLED = str(Path(mintage.__file__).parents[1])


def samples(metrics: Metrics) -> dict[str, float]:
    """Return all samples except histogram buckets, as written: ``name{label="value"}``."""
    return read(metrics.render()[0].decode())


def read(text: str) -> dict[str, float]:
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            if "le" not in sample.labels:
                found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


class Lane:
    """A lane with given counts."""

    def __init__(self, *rows: tuple[str, str, int, int]) -> None:
        self.rows = list(rows)
        self.key = ""

    def counts(self) -> list[tuple[str, str, str, int, int]]:
        return [(namespace, self.key, *counts) for namespace, *counts in self.rows]  # type: ignore[misc]


def service(
    *rows: tuple[str, str, int, int],
    sequences: Mapping[str, Any] | None = None,
    schemes: Collection[str] = (),
    connections: Mapping[str, Any] | None = None,
    draining: bool = False,
) -> dict[str, Any]:
    return {
        "lane": Lane(*rows),
        "sequences": sequences or {},
        "schemes": schemes,
        "connections": connections or {},
        "draining": draining,
    }


# --- counts of requests -------------------------------------------------------------------------------------------


def test_request_counts_by_interface_operation_and_code() -> None:
    metrics = Metrics()
    metrics.request("http", "reserve", "ok", 0.25)
    metrics.request("http", "reserve", "ok", 0.5)
    metrics.request("redis", "get", "store.unavailable")
    found = samples(metrics)
    assert found['mintage_requests_total{code="ok",interface="http",operation="reserve"}'] == 2
    assert found['mintage_requests_total{code="store.unavailable",interface="redis",operation="get"}'] == 1
    assert found['mintage_request_seconds_count{interface="http",operation="reserve"}'] == 2
    assert found['mintage_request_seconds_sum{interface="http",operation="reserve"}'] == 0.75
    assert 'mintage_request_seconds_count{interface="redis",operation="get"}' not in found


def test_requests_of_strangers_create_no_series() -> None:
    metrics = Metrics()
    before = len(samples(metrics))
    for at in range(100):
        metrics.request("redis", f"FLUSHALL{at}", f"no.such{at}", 0.1)
    assert len(samples(metrics)) <= before + 3
    assert samples(metrics)['mintage_requests_total{code="service.failed",interface="redis",operation="other"}'] == 100


def test_integers_ids_and_the_last_resort_add_up() -> None:
    metrics = Metrics()
    metrics.integers("orders", 3)
    metrics.integers("orders", 2**40)
    metrics.ids("sno", 5)
    metrics.fallback("orders", 7)
    found = samples(metrics)
    assert found['mintage_integers_total{namespace="orders"}'] == 3 + 2**40
    assert found['mintage_ids_total{scheme="sno"}'] == 5
    assert found['mintage_fallback_integers_total{namespace="orders"}'] == 7


def test_counters_have_the_name_of_the_key_if_there_are_keys() -> None:
    metrics, it = Metrics(has_keys=True), service(("orders", "next", 2, 20))
    it["lane"].key = "shop"
    metrics.gather(**it)
    metrics.request("http", "mint", "ok", 0.1, key="shop")
    metrics.ids("sno", 5, "shop")
    metrics.request("http", "other", "request.key")
    found = samples(metrics)
    assert found['mintage_integers_total{key="shop",namespace="orders"}'] == 20
    assert found['mintage_ids_total{key="shop",scheme="sno"}'] == 5
    assert found['mintage_requests_total{code="ok",interface="http",key="shop",operation="next"}'] == 2
    assert found['mintage_requests_total{code="request.key",interface="http",key="",operation="other"}'] == 1


# --- collection ---------------------------------------------------------------------------------------------------


def test_fast_path_is_counted_once_however_often_it_is_gathered() -> None:
    metrics, it = Metrics(), service(("orders", "alloc", 2, 200), ("orders", "incrby", 1, 50))
    metrics.gather(**it)
    metrics.gather(**it)
    it["lane"].rows = [("orders", "alloc", 5, 500), ("orders", "incrby", 1, 50), ("users", "next", 1, 1)]
    metrics.gather(**it)
    found = samples(metrics)
    assert found['mintage_requests_total{code="ok",interface="http",operation="alloc"}'] == 5
    assert found['mintage_requests_total{code="ok",interface="redis",operation="incrby"}'] == 1
    assert found['mintage_integers_total{namespace="orders"}'] == 550
    assert found['mintage_integers_total{namespace="users"}'] == 1


def test_gauge_shows_the_buffer_of_a_sequence_until_it_closes() -> None:
    metrics = Metrics()
    with Sequence("orders", MemoryStore(), step=1000) as orders:
        orders.next()
        # The next segment comes by itself, at a time of its own.
        until(lambda: orders.buffered == 1999, "both segments are there")
        metrics.gather(**service(sequences={"orders": orders}))
        assert samples(metrics)['mintage_buffered_integers{namespace="orders"}'] == 1999
    metrics.gather(**service(sequences={"orders": orders}))
    assert samples(metrics)['mintage_buffered_integers{namespace="orders"}'] == 0


def test_gauges_show_the_current_state() -> None:
    metrics = Metrics()
    metrics.gather(**service(schemes=["sno"], connections={"http": {1, 2}, "redis": set()}, draining=True))
    found = samples(metrics)
    assert found['mintage_leases{scheme="sno"}'] == 1
    assert found['mintage_leases{scheme="snowflake"}'] == found['mintage_leases{scheme="locality"}'] == 0
    assert found['mintage_connections{interface="http"}'] == 2
    assert found['mintage_connections{interface="redis"}'] == 0
    assert found["mintage_draining"] == 1
    assert found[f'mintage_info{{version="{__version__}"}}'] == 1


# --- the store ----------------------------------------------------------------------------------------------------


def test_every_verb_of_a_store_is_forwarded_and_timed() -> None:
    metrics = Metrics()
    with Metered(MemoryStore(), metrics) as store:
        now_ms = store.now_ms()
        store.create_pool("pool", layout="sno/1")
        lease = store.acquire("pool", nodes=range(4), layout="sno/1", holder="me", now_ms=now_ms, span_ms=1000)
        store.release(store.extend(lease, now_ms=now_ms, next_token=new_token()), used_until_ms=now_ms)
        assert store.revoke("pool", lease.node).node == lease.node
        store.create_namespace("orders", stride=2)
        segment = store.reserve("orders", 10)
        assert len(segment) == 10
        assert store.give_back(segment, segment.first)
        assert store.raise_floor("orders", 100).high_water == 98
        assert store.retire("orders").retired
        assert [each.name for each in store.list_pools()] == ["pool"]
        assert [each.node for each in store.list_leases("pool")] == [lease.node]
        assert list(store.list_grants("pool", lease.node)) == []
        assert list(store.list_runs("orders")) == []
        assert store.get_pool("pool") == store.list_pools()[0]
        assert [each.name for each in store.list_namespaces()] == ["orders"]
        assert store.get_namespace("orders") is not None
        assert store.count_namespaces() == 1
        assert store.describe().server == "memory"
    found = samples(metrics)
    timed = {name for name in Store.__abstractmethods__ if found.get(f'mintage_store_seconds_count{{verb="{name}"}}')}
    assert timed == Store.__abstractmethods__ - {"close"}
    assert not any(name.startswith("mintage_store_failures") for name in found)


def test_refusal_counts_and_reaches_the_caller() -> None:
    metrics = Metrics()
    store = Metered(MemoryStore(), metrics)
    store.create_namespace("few", maximum=1)
    store.reserve("few", 1)
    with pytest.raises(GenerationError) as refusal:
        store.reserve("few", 1)
    with pytest.raises(ConfigError):
        store.create_namespace("few")
    assert refusal.value.code == "namespace.exhausted"
    found = samples(metrics)
    assert found['mintage_store_failures_total{code="namespace.exhausted",verb="reserve"}'] == 1
    assert found['mintage_store_failures_total{code="config.namespace",verb="create_namespace"}'] == 1
    assert found['mintage_store_seconds_count{verb="reserve"}'] == 2


def test_unexpected_store_exception_counts_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, inner = Metrics(), MemoryStore()
    monkeypatch.setattr(inner, "now_ms", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Metered(inner, metrics).now_ms()
    assert samples(metrics)['mintage_store_failures_total{code="store.refused",verb="now_ms"}'] == 1


def test_metered_store_works_for_generators_and_sequences() -> None:
    metrics, inner = Metrics(), MemoryStore()
    inner.clock_limit_ms = 123
    store = Metered(inner, metrics)
    assert (store.url, store.promise, store.clock_limit_ms) == (inner.url, inner.promise, 123)
    with Sequence("orders", store, step=100) as orders, sno.Generator(store=store) as ids:
        assert orders.next() == 1
        assert ids.new()
    found = samples(metrics)
    assert found['mintage_store_seconds_count{verb="reserve"}'] >= 1
    assert found['mintage_store_seconds_count{verb="acquire"}'] == 1
    assert found['mintage_store_seconds_count{verb="release"}'] == 1


# --- several workers ----------------------------------------------------------------------------------------------

WORKER = """
import sys
from multiprocessing import current_process
from types import SimpleNamespace
from mintage.server.core.metrics import Metrics
current_process().name = sys.argv[1]
metrics = Metrics()
held, up, days = (int(word) for word in sys.argv[2:])
metrics.request("http", "reserve", "ok", 0.1)
metrics.gather(
    lane=SimpleNamespace(counts=lambda: [("orders", "", "incr", 10, 10)]),
    sequences={"orders": SimpleNamespace(buffered=held)},
    schemes=["sno"],
    connections={"redis": {1, 2}},
    draining=False,
)
metrics.store_up.set(up)
metrics.clock_offset.set(up)
metrics.namespace_days.labels("orders").set(days)
"""
SUPERVISOR = """
import sys
from prometheus_client.multiprocess import mark_process_dead
from mintage.server.core.metrics import workers_replaced
mark_process_dead(sys.argv[1])
workers_replaced().inc()
"""
SCRAPE = """
import sys
from mintage.server.core.metrics import Metrics
sys.stdout.buffer.write(Metrics().render()[0])
"""


def run(directory: Path, program: str, *words: object) -> str:
    """Run a program as a process of the service, and return its output."""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(directory), "PYTHONPATH": INSTALLED}
    command = [sys.executable, "-W", "error", "-c", program, *map(str, words)]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout


def test_counters_of_workers_add_up_and_gauges_of_dead_ones_vanish(tmp_path: Path) -> None:
    run(tmp_path, WORKER, "first", 1000, 1, 50)
    run(tmp_path, WORKER, "second", 500, 1, 40)
    # The process that merges is a third one, which has not looked at the store.
    merged = read(run(tmp_path, SCRAPE))
    assert merged['mintage_requests_total{code="ok",interface="http",operation="reserve"}'] == 2
    assert merged['mintage_requests_total{code="ok",interface="redis",operation="incr"}'] == 20
    assert merged['mintage_request_seconds_count{interface="http",operation="reserve"}'] == 2
    assert merged['mintage_integers_total{namespace="orders"}'] == 20
    assert merged['mintage_buffered_integers{namespace="orders"}'] == 1500
    assert merged['mintage_leases{scheme="sno"}'] == 2
    assert merged['mintage_connections{interface="redis"}'] == 4
    assert merged['mintage_namespace_days_left{namespace="orders"}'] == 40
    assert merged["mintage_store_clock_offset_seconds"] in {0, 1}
    assert merged["mintage_store_up"] == 0
    assert merged[f'mintage_info{{version="{__version__}"}}'] == 1
    assert merged["mintage_workers_replaced_total"] == 0
    assert not any("pid=" in name for name in merged)

    run(tmp_path, SUPERVISOR, "first")
    merged = read(run(tmp_path, SCRAPE))
    assert merged['mintage_buffered_integers{namespace="orders"}'] == 500
    assert merged['mintage_integers_total{namespace="orders"}'] == 20
    assert merged["mintage_workers_replaced_total"] == 1


def test_files_of_workers_that_start_or_end_meanwhile_are_left_out(tmp_path: Path) -> None:
    run(tmp_path, WORKER, "worker", 1000, 1, 50)
    # A worker that is killed at its start leaves an empty file.
    (tmp_path / "counter_1.db").touch()
    (tmp_path / "gauge_livesum_1.db").symlink_to(tmp_path / "removed")
    merged = read(run(tmp_path, SCRAPE))
    assert merged['mintage_integers_total{namespace="orders"}'] == 10


# --- the page -----------------------------------------------------------------------------------------------------


def test_metrics_are_current_prometheus_text() -> None:
    metrics = Metrics()
    it = SimpleNamespace(metrics=metrics, gather=lambda: metrics.gather(**service(("orders", "incr", 1, 1))))
    with_keys(it, has_keys=False)
    response = answer(it, "/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert read(response.text)['mintage_integers_total{namespace="orders"}'] == 1


def test_metrics_need_their_right() -> None:
    it = SimpleNamespace(metrics=Metrics(), gather=lambda: None)
    with_keys(it, scraper=["metrics"], other=["next"])
    assert answer(it, "/metrics", key="scraper").status_code == 200
    assert answer(it, "/metrics", key="other").text == "request.rights"
    assert answer(it, "/metrics").text == "request.key"
    assert answer(it, "/metrics", key="unknown").text == "request.key"


def test_reference_lists_every_metric_with_type_and_labels() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    documented = {
        found[1]: (found[2], set(re.findall(r"`(\w+)`", found[3])))
        for found in re.finditer(r"^\| `(mintage_\w+)` \| (\w+) \|([^|]*)\|", page, re.MULTILINE)
    }
    assert documented == {
        name: (each._type, set(each._labelnames)) for name, each in registry(Metrics(has_keys=True)).items()
    }
    for operation in OPERATIONS:
        assert f"`{operation}`" in page


def registry(metrics: Metrics) -> dict[str, Any]:
    """Return the collectors by the names under which they are scraped."""
    collectors: dict[str, Any] = dict(metrics.registry._names_to_collectors)
    return {
        name: each
        for name, each in collectors.items()
        if name == (f"{each._name}_total" if each._type == "counter" else each._name)
    }
