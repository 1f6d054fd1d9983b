"""OpenTelemetry in a worker: the exporters of spans and metrics, and the metrics as OpenTelemetry's instruments.

``mintage serve`` sets OpenTelemetry's SDK up by itself, if its environment names a collector. Each worker does so after
the fork, since exporters have threads, and has its own ``service.instance.id``. The classes of the SDK read all other
variables of OpenTelemetry.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from mintage import __version__, telemetry
from mintage.errors import ConfigError
from mintage.installation import install_line

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.resources import Resource
    from prometheus_client import CollectorRegistry, Metric
    from prometheus_client.samples import Sample

STOP_S: Final = 1.0
"""The time in seconds that the last spans and metrics have to leave a worker that stops."""
_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"

VERB_BOUNDS_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
REQUEST_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
UNITS: Final = {
    "mintage_requests": "{request}",
    "mintage_integers": "{integer}",
    "mintage_ids": "{id}",
    "mintage_fallback_integers": "{integer}",
    "mintage_store_failures": "{call}",
    "mintage_buffered_integers": "{integer}",
    "mintage_leases": "{lease}",
    "mintage_store_up": "1",
    "mintage_store_clock_offset_seconds": "s",
    "mintage_namespace_days_left": "d",
    "mintage_layout_days_left": "d",
    "mintage_connections": "{connection}",
    "mintage_draining": "1",
}
"""The unit of each counter and gauge that is exported, by its name for Prometheus."""

log: Any = structlog.get_logger("mintage.server")


def _wanted() -> list[str]:
    """Return which signals the environment wants to be sent: ``TRACES``, ``METRICS``."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return []
    return [
        signal
        for signal in ("TRACES", "METRICS")
        if os.environ.get(_ENDPOINT) or os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
        if "otlp" in map(str.strip, (os.environ.get(f"OTEL_{signal}_EXPORTER") or "otlp").split(","))
    ]


def start() -> Callable[[], None]:
    """Set up the exporters that the environment asks for, unless the process has some; return the call that ends them.

    :raises ConfigError: ``config.setting``: a variable of OpenTelemetry is malformed.
    """
    signals = _wanted()
    if not signals or telemetry.find() is not None:
        return lambda: None
    for signal in signals:
        # An empty variable counts as none.
        names = f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
        variable = next(filter(os.environ.get, names), "")
        if (protocol := os.environ.get(variable, "http/protobuf")) != "http/protobuf":
            log.warning("telemetry off", reason=f"{variable} is {protocol[:40]!r}: use http/protobuf")
            return lambda: None
    try:
        return _start(signals)
    except ImportError as error:
        log.warning("telemetry off", reason=f"{_ENDPOINT} needs the package {error.name}: {install_line('otel-sdk')}")
        return lambda: None
    except (RuntimeError, StopIteration, ValueError) as error:
        reason = str(error) or "it names what is not installed"
        raise ConfigError(
            f"a variable of OpenTelemetry is malformed: {reason}: correct it, or set OTEL_SDK_DISABLED to true",
            code="config.setting",
        ) from error


def _start(signals: list[str]) -> Callable[[], None]:
    from opentelemetry import metrics, trace
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource, ends = _resource(), list[Any]()
    if "TRACES" in signals:
        tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(tracers)
        ends.append(tracers.shutdown)
    if "METRICS" in signals:
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        meters = MeterProvider([reader], resource, shutdown_on_exit=False)
        metrics.set_meter_provider(meters)
        ends.append(meters.shutdown)

    def stop() -> None:
        # A collector that is away must not keep the service from stopping.
        ending = [threading.Thread(target=end, daemon=True) for end in ends]
        for each in ending:
            each.start()
        for each in ending:
            each.join(STOP_S / len(ending))

    return stop


def _resource() -> Resource:
    """Return the attributes of this worker: those of the environment, and an id that no other worker has."""
    import uuid

    from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, Resource

    found = Resource.create()
    own = {SERVICE_VERSION: __version__, SERVICE_INSTANCE_ID: str(uuid.uuid4())}
    if str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        own[SERVICE_NAME] = "mintage"
    return found.merge(Resource(own))


class Instruments:
    """The metrics of a worker as instruments of OpenTelemetry.

    Counters and gauges read those of Prometheus whenever they are exported, so both agree. A histogram cannot be read:
    the code that observes one for Prometheus records here as well, in the buckets of the conventions.

    :param before: what the counters had at the start of this worker, which is not exported.
    """

    def __init__(self, registry: CollectorRegistry, before: Iterable[Metric] = ()) -> None:
        from opentelemetry import metrics

        start = {_series(each): each.value for family in before for each in family.samples}
        meter = metrics.get_meter("mintage", __version__, schema_url=telemetry.SCHEMA_URL)
        for family in registry.collect():
            if (unit := UNITS.get(family.name)) is None:
                continue
            is_counter = family.type == "counter"
            create = meter.create_observable_counter if is_counter else meter.create_observable_gauge
            sample = f"{family.name}_total" if is_counter else family.name
            name = family.name.replace("_", ".", 1).removesuffix("_seconds")
            create(name, [partial(_read, registry, sample, start)], unit, family.documentation)
        self.verbs = meter.create_histogram(
            "db.client.operation.duration", "s", "Duration of the store's verbs",
            explicit_bucket_boundaries_advisory=VERB_BOUNDS_S,
        )  # fmt: skip
        self.requests = meter.create_histogram(
            "http.server.request.duration", "s", "Duration of HTTP requests beyond the fast path",
            explicit_bucket_boundaries_advisory=REQUEST_BOUNDS_S,
        )  # fmt: skip


def _read(
    registry: CollectorRegistry, name: str, start: Mapping[object, float], _: CallbackOptions
) -> Iterable[Observation]:
    from opentelemetry.metrics import Observation

    for family in registry.restricted_registry([name]).collect():
        for each in family.samples:
            yield Observation(each.value - start.get(_series(each), 0.0), _attributes(each.labels))


def _series(sample: Sample) -> object:
    return sample.name, frozenset(sample.labels.items())


def _attributes(labels: dict[str, str]) -> dict[str, str]:
    """Return a sample's labels under the names of the conventions."""
    found = {f"mintage.{name}": value for name, value in labels.items() if name != "code"}
    if (code := labels.get("code", "ok")) != "ok":
        found["error.type"] = code
    return found
