"""OpenTelemetry of a test: a tracer whose spans stay in memory, in place of that of this process."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mintage import telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace.sampling import Sampler


class Processor(SimpleSpanProcessor):
    """A processor without the roots of threads that other tests have left, such as those of a keeper."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        super().__init__(exporter)
        self._others = {*threading.enumerate()} - {threading.current_thread()}

    def on_end(self, span: ReadableSpan) -> None:
        if span.parent is not None or threading.current_thread() not in self._others:
            super().on_end(span)


class Traces:
    """The spans that have ended, and a tracer for those of the test itself."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler)
        provider.add_span_processor(Processor(self._exporter))
        self.tracer = provider.get_tracer("tests")

    def spans(self, *names: str) -> list[ReadableSpan]:
        """Return the spans with these names, by default all, in the order in which they ended."""
        return [each for each in self._exporter.get_finished_spans() if not names or each.name in names]

    def one(self, *names: str) -> ReadableSpan:
        """Return the only span."""
        (found,) = self.spans(*names)
        return found

    def clear(self) -> None:
        self._exporter.clear()


@contextmanager
def traced(sampler: Sampler | None = None) -> Iterator[Traces]:
    """Let mintage send its spans to the test during the block."""
    traces, before = Traces(sampler), list(telemetry._found)
    telemetry._found[:] = [telemetry.Telemetry(trace, context, traces.tracer)]
    try:
        yield traces
    finally:
        telemetry._found[:] = before


def facts(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span."""
    return dict(span.attributes or {})


def trace_of(span: ReadableSpan) -> str:
    """Return the id of its trace."""
    assert span.context
    return f"{span.context.trace_id:032x}"


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    assert parent.context
    return span.parent is not None and span.parent.span_id == parent.context.span_id
