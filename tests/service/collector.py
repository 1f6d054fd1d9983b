"""A collector of OpenTelemetry: it receives spans and metrics over OTLP, as the official protobufs define them."""

from __future__ import annotations

import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource


class Span(NamedTuple):
    """A span that arrived."""

    name: str
    trace: str
    id: str
    parent: str
    facts: dict[str, Any]
    resource: dict[str, Any]


Labels = frozenset[tuple[str, Any]]


class Collector:
    """A collector on a free port, for a ``with`` block."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.bounds: dict[str, list[float]] = {}
        """The bounds of the buckets of each histogram, by metric."""
        self._points: dict[tuple[str, str, Labels], float] = {}
        """By instance, metric and labels, the last value; of a histogram the count."""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                {"/v1/traces": collector._take_spans, "/v1/metrics": collector._take_metrics}[self.path](body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _take_spans(self, body: bytes) -> None:
        for each in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _facts(each.resource.attributes)
            for scope in each.scope_spans:
                self.spans += [
                    Span(
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        _facts(span.attributes),
                        resource,
                    )
                    for span in scope.spans
                ]

    def _take_metrics(self, body: bytes) -> None:
        for each in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            instance = _instance(each.resource)
            for scope in each.scope_metrics:
                for metric in scope.metrics:
                    kind = metric.WhichOneof("data")
                    for point in getattr(metric, kind).data_points:
                        if kind == "histogram":
                            self.bounds[metric.name] = [*point.explicit_bounds]
                        value = point.count if kind == "histogram" else point.as_double or point.as_int
                        labels = frozenset(_facts(point.attributes).items())
                        self._points[instance, metric.name, labels] = value

    def instances(self, metric: str = "", **labels: object) -> set[str]:
        """Return the ids of the instances that sent metrics, or a metric with these labels."""
        wanted = _names(labels)
        found = list(self._points)
        return {instance for instance, name, has in found if metric in {"", name} and wanted <= set(has)}

    def values(self, metric: str) -> dict[Labels, float]:
        """Return the last values of a metric by its labels, summed over all instances."""
        found: defaultdict[Labels, float] = defaultdict(float)
        for (_, name, labels), value in list(self._points.items()):
            if name == metric:
                found[labels] += value
        return dict(found)

    def value(self, metric: str, **labels: object) -> float:
        """Return the sum of a metric over all series with these labels."""
        wanted = _names(labels)
        return sum(value for has, value in self.values(metric).items() if wanted <= set(has))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _names(labels: Mapping[str, object]) -> AbstractSet[tuple[str, object]]:
    """Return labels under their names, in which ``__`` stands for a dot."""
    return {name.replace("__", "."): value for name, value in labels.items()}.items()


def _facts(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}


def _instance(resource: Resource) -> str:
    return str(_facts(resource.attributes)["service.instance.id"])
