"""The span of a request, and the trace id of its client (W3C Trace Context, OpenTelemetry's semantic conventions)."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from starlette.types import Scope

from mintage import telemetry
from mintage.server.core.logs import masked
from mintage.server.http.answers import Facts

if TYPE_CHECKING:
    from opentelemetry.trace import Span

UNTRACED: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""The paths whose requests come at all times, from programs, and are no spans."""
MOST_STATE: Final = 512
"""The length of a ``tracestate`` that W3C asks to keep. OpenTelemetry up to 1.44 parses 60 kB of blanks in 10 s."""
_NO_SPAN: Final = nullcontext[None]()
_METHODS: Final = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"})
#: Version 00 ends after the flags; a later one may go on, and 255 is none.
_TRACEPARENT: Final = re.compile(
    rb"(?:(00)|(?!00|ff)[0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?(1)|(?:-.*)?)"
)


def one_header(scope: Scope, header: bytes) -> bytes:
    """Return the value of a header that occurs once; otherwise nothing."""
    found = [value for name, value in scope["headers"] if name == header]
    return found[0] if len(found) == 1 else b""


def trace_id_of(scope: Scope, span: Span | None) -> str | None:
    """Return the id of the trace that a request belongs to; ``None`` if it belongs to none."""
    if span is not None and span.get_span_context().is_valid:
        return f"{span.get_span_context().trace_id:032x}"
    match = _TRACEPARENT.fullmatch(one_header(scope, b"traceparent"))
    return match[2].decode() if match else None


def span_id_of(span: Span | None) -> dict[str, str]:
    """Return the id of a span that is recorded, for log lines."""
    return {"span_id": f"{span.get_span_context().span_id:016x}"} if span is not None and span.is_recording() else {}


def request_span(scope: Scope) -> AbstractContextManager[Span | None]:
    """Let the block be the span of a request, if this process sends spans."""
    found = None if scope["path"] in UNTRACED else telemetry.find()
    return _NO_SPAN if found is None else _span(found, scope)


def _span(found: telemetry.Telemetry, scope: Scope) -> AbstractContextManager[Span]:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    states = b",".join(value for name, value in scope["headers"] if name == b"tracestate")
    if len(states) > MOST_STATE:
        states = states[: MOST_STATE + 1].rpartition(b",")[0]
    given = {"traceparent": one_header(scope, b"traceparent"), "tracestate": states}
    carrier = {name: value.decode("latin-1") for name, value in given.items() if value}
    parent = TraceContextTextMapPropagator().extract(carrier)
    attributes = _common(scope)
    if scope["method"] not in _METHODS:
        attributes["http.request.method_original"] = scope["method"]
    for name, address in (("server", scope["server"]), ("client", scope["client"])):
        if address is not None:
            attributes[f"{name}.address"] = address[0]
    if scope["server"] is not None:
        attributes["server.port"] = scope["server"][1]
    return found.span(_name(scope, ""), found.trace.SpanKind.SERVER, attributes, parent)


def _common(scope: Scope) -> dict[str, str | int]:
    """Return the attributes of spans and of metrics alike. A client must not be able to create series by its method."""
    method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
    version = scope["http_version"]
    return {"http.request.method": method, "url.scheme": scope["scheme"], "network.protocol.version": version}


def _name(scope: Scope, route: str) -> str:
    method = scope["method"] if scope["method"] in _METHODS else "HTTP"
    return f"{method} {route}".rstrip()


def note_answer(span: Span | None, scope: Scope, route: str, status: int, facts: Facts) -> dict[str, str | int]:
    """Add the answer to the span of a request, and return the attributes that metrics count it by.

    :param route: the template of its path; empty if no route has the path.
    """
    found: dict[str, str | int] = {"http.route": route} if route else {}
    if status:
        found["http.response.status_code"] = status
    if facts.code != "ok":
        found["error.type"] = facts.code
    if span is not None and span.is_recording():
        span.update_name(_name(scope, route))
        # An ID is nobody's business but the client's. It may be anywhere in a path without a route.
        path = route if "{id}" in route else masked(scope["path"][:200])
        span.set_attributes({"url.path": path, **found} if route else found)
        if (status or 500) >= 500:
            from opentelemetry.trace import StatusCode

            span.set_status(StatusCode.ERROR)
    return _common(scope) | found
