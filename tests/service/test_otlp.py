"""Tests of OpenTelemetry in `mintage serve`, with a collector that receives what its workers send."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace
from prometheus_client.parser import text_string_to_metric_families

from mintage import Client
from mintage.server.core import otlp
from mintage.server.core.metrics import Metrics
from mintage.server.core.otlp import UNITS
from tests.helpers.outcomes import refusal
from tests.helpers.traces import traced
from tests.servers.server import HOST, PASSWORD, until
from tests.service.collector import Collector, Labels, Span
from tests.service.load import read_answer
from tests.service.serving import Serving
from tests.service.wire import command, connect, exactly, head

WORKERS = 2

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.postgresql import PostgreSQL


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture
def service(tmp_path: Path, collector: Collector) -> Iterator[Serving]:
    service = Serving(tmp_path / "service", f"sqlite:///{tmp_path}/ids.db")
    service.environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "NO_PROXY": "127.0.0.1",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "60",
    }
    # The test receives what a worker sends at its end, and it may be slow.
    service.patch("from mintage.server.core import otlp; otlp.STOP_S = 60.0")
    yield service
    service.kill()


def stop(service: Serving) -> None:
    service.signal(signal.SIGTERM)
    assert service.wait() == 0


def reserve_once(service: Serving) -> None:
    """Start the service, reserve integers, and stop it."""
    service.start()
    with service.http() as line:
        assert line.http("/v1/sequences/orders:reserve?count=10").status == 200
    stop(service)


def test_trace_leads_from_the_client_to_the_verb_of_the_store(
    service: Serving, collector: Collector, postgresql: PostgreSQL
) -> None:
    service.store = postgresql.url
    service.settings["workers"] = WORKERS
    service.start()
    sent: dict[str, str] = {}

    def requests() -> list[Span]:
        return [span for span in collector.spans if span.parent in sent]

    with traced() as traces:

        def both_workers_answered() -> bool:
            with Client(service.url) as client, traces.tracer.start_as_current_span("work") as span:
                client.reserve("orders", 10)
            context = span.get_span_context()
            sent[trace.format_span_id(context.span_id)] = trace.format_trace_id(context.trace_id)
            return len({span.resource["service.instance.id"] for span in requests()}) == WORKERS

        until(both_workers_answered, "each worker has sent the span of a request")
    stop(service)
    assert {span.name for span in requests()} == {"POST /v1/sequences/{namespace}:reserve"}
    assert {span.resource["service.name"] for span in requests()} == {"mintage"}
    for request in requests():
        verbs = [span for span in collector.spans if span.parent == request.id]
        assert {request.trace, *(span.trace for span in verbs)} == {sent[request.parent]}
        assert "reserve mintage" in {span.name for span in verbs}
        assert {span.facts["db.system.name"] for span in verbs} == {"postgresql"}
    assert PASSWORD not in repr(collector.spans)


def test_prometheus_and_opentelemetry_agree_on_all_counts(service: Serving, collector: Collector) -> None:
    service.settings["workers"] = WORKERS
    service.start()

    def all_workers_serve() -> bool:
        with service.http() as line, service.redis() as redis:
            assert line.http("/v1/sequences/orders:reserve?count=10").status == 200
            assert line.http("/v1/sequences/orders:reserve?count=0").status == 400
            assert line.http("/alloc", '{"serviceName":"orders","count":7}').status == 200
            assert line.http("/v1/ids/sno?count=3").status == 200
            assert redis.redis("INCR", "orders").startswith(":")
        return len(collector.instances("mintage.requests", mintage__operation="alloc")) == WORKERS

    until(all_workers_serve, "each worker has sent what it counted")

    def counted(name: str) -> dict[Labels, float]:
        """Return a counter as Prometheus reads it, under the names of OpenTelemetry."""
        found: dict[Labels, float] = {}
        for family in text_string_to_metric_families(service.get("/metrics").body.decode()):
            for sample in family.samples:
                if sample.name == f"{name}_total":
                    labels = {f"mintage.{label}": value for label, value in sample.labels.items() if label != "code"}
                    if sample.labels.get("code", "ok") != "ok":
                        labels["error.type"] = sample.labels["code"]
                    found[frozenset(labels.items())] = sample.value
        return settled(found)

    def settled(series: dict[Labels, float]) -> dict[Labels, float]:
        # Each look at the metrics is a request of its own.
        return {has: value for has, value in series.items() if ("mintage.operation", "other") not in has}

    for name in ("requests", "integers", "ids", "store_failures"):
        until(lambda: settled(collector.values(f"mintage.{name}")) == counted(f"mintage_{name}"), name)  # noqa: B023
    assert collector.value("mintage.requests", mintage__operation="alloc") >= WORKERS

    def duration(operation: str) -> bool:
        route = f"/v1/sequences/{{namespace}}:{operation}"
        prometheus = service.metric("mintage_request_seconds_count", interface="http", operation=operation)
        return collector.value("http.server.request.duration", http__route=route) == prometheus > 0

    until(lambda: duration("reserve"), "requests are timed alike")
    versions = {dict(labels)["network.protocol.version"] for labels in collector.values("http.server.request.duration")}
    assert versions == {"1.1"}
    for verb in ("reserve", "acquire"):
        until(
            lambda: (
                collector.value("db.client.operation.duration", db__operation__name=verb)  # noqa: B023
                == service.metric("mintage_store_seconds_count", verb=verb)  # noqa: B023
                > 0
            ),
            f"{verb} is timed alike",
        )
    assert collector.value("http.server.request.duration", error__type="field.range") >= WORKERS
    assert collector.value("mintage.store_up") == WORKERS
    stop(service)


def test_durations_have_the_buckets_of_the_conventions(service: Serving, collector: Collector) -> None:
    reserve_once(service)
    assert collector.bounds == {
        "db.client.operation.duration": [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
        "http.server.request.duration": [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
    }


def test_counts_of_a_killed_worker_are_not_sent_by_its_successor(service: Serving, collector: Collector) -> None:
    service.settings["workers"] = WORKERS
    service.start()
    for times in range(1, 3):
        until(lambda t=times: len(collector.instances()) == WORKERS * t, "each worker has sent metrics")  # type: ignore[misc]
        with ExitStack() as stack:  # connections to both workers
            for each in [stack.enter_context(service.redis()) for _ in range(8)]:
                assert each.redis("INCR", "orders").startswith(":")
        until(lambda t=times: collector.value("mintage.integers") == 8 * t, "it is sent once")  # type: ignore[misc]
        for worker in service.workers():
            os.kill(worker, signal.SIGKILL)
        service.until_metric("mintage_workers_replaced_total", WORKERS * times)
    until(lambda: len(collector.instances()) == WORKERS * 3, "the last successors have sent metrics")
    assert collector.value("mintage.integers") == 16
    service.until_metric("mintage_integers_total", 16)
    stop(service)


def test_last_spans_and_counts_are_sent_at_the_end(service: Serving, collector: Collector) -> None:
    service.environment |= {"OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_METRIC_EXPORT_INTERVAL": "600000"}
    service.start()
    with service.http() as line, service.redis() as redis:
        assert line.http("/v1/sequences/orders:reserve?count=10").status == 200
        for _ in range(5):
            assert redis.redis("INCR", "orders").startswith(":")
    stop(service)
    assert "POST /v1/sequences/{namespace}:reserve" in {span.name for span in collector.spans}
    assert collector.value("mintage.requests", mintage__operation="incr") == 5


def test_fast_path_and_ids_are_no_spans(service: Serving, collector: Collector) -> None:
    service.start()
    with service.http() as line, service.redis() as redis:
        for _ in range(50):
            assert line.http("/alloc", '{"serviceName":"orders","count":2}').status == 200
            assert redis.redis("INCR", "orders").startswith(":")
    stop(service)
    names = Counter(span.name for span in collector.spans)
    # The first request of a connection asks Python for its rights, and the first of all for a segment.
    assert names["POST /alloc"] <= 2
    assert names["INCR"] == 0


def test_commands_of_redis_are_in_no_trace_of_another_client(service: Serving, collector: Collector) -> None:
    service.start()
    requests = head("GET /v1/sequences/none", f"traceparent: 00-{'4b' * 16}-{'00f0' * 4}-01") * 50
    commands = b"".join(command("INCR", f"redis{at}") for at in range(20))
    with connect((HOST, service.port)) as http, connect((HOST, service.redis_port)) as redis:
        http.sendall(requests)
        redis.sendall(commands)
        assert exactly(redis, 80) == b":1\r\n" * 20
    stop(service)
    verbs = [span for span in collector.spans if str(span.facts.get("mintage.namespace", "")).startswith("redis")]
    assert len(verbs) >= 20
    assert "4b" * 16 not in {span.trace for span in verbs}


def test_collector_that_is_away_stops_nothing(service: Serving) -> None:
    # Not patched, as the collector of the other tests is waited for.
    service.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    reserve_once(service)


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_service_sends_nothing_that_its_environment_does_not_want(
    service: Serving, collector: Collector, variables: dict[str, str]
) -> None:
    service.environment |= variables
    reserve_once(service)
    assert collector.spans == []
    assert collector.instances() == set()
    assert ("telemetry off" in service.log.read_text("utf-8")) == ("OTEL_EXPORTER_OTLP_PROTOCOL" in variables)


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_TRACES_EXPORTER": "", "OTEL_METRICS_EXPORTER": "", "OTEL_EXPORTER_OTLP_PROTOCOL": ""},
        {"OTEL_TRACES_EXPORTER": "console, otlp", "OTEL_METRICS_EXPORTER": "otlp "},
        {
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
        },
    ],
)
def test_service_sends_all_that_its_environment_wants(
    service: Serving, collector: Collector, variables: dict[str, str]
) -> None:
    service.environment |= variables
    reserve_once(service)
    assert collector.spans
    assert collector.instances()


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"),
        ("OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER", "missing", "'missing' not found"),
        ("OTEL_PYTHON_METER_PROVIDER", "missing", "it names what is not installed"),
    ],
)
def test_malformed_variable_is_an_error_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, reason: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(variable, value)
    error = refusal(otlp.start)
    assert error.code == "config.setting"
    assert reason in str(error)


def test_log_repeats_neither_a_hostile_header_nor_a_secret_of_the_exporter(service: Serving) -> None:
    service.environment["OTEL_EXPORTER_OTLP_HEADERS"] = "Bearer secret-4711"
    service.start()
    with service.http() as line:
        line.send(
            b"GET /v1/sequences HTTP/1.1\r\nHost: 127.0.0.1\r\ntracestate: hostile-4711\r\n"
            b"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n"
        )
        assert read_answer(line.replies).status == 200
    stop(service)
    assert "4711" not in service.log.read_text("utf-8")


def test_every_metric_has_a_counterpart_in_opentelemetry() -> None:
    families = {family.name: family.type for family in Metrics(has_keys=True).registry.collect()}
    exported = {name for name, kind in families.items() if kind != "histogram"}
    # The supervisor counts the first; the resource has what is in the second.
    assert exported - {"mintage_workers_replaced", "mintage_info"} == UNITS.keys()
