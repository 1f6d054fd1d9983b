"""Tests of the spans of HTTP requests, of W3C Trace Context, and of the trace ids in logs and answers."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import structlog
from opentelemetry.trace import SpanKind, StatusCode

from mintage.errors import StoreError
from mintage.server.config.settings import Settings
from mintage.server.core.service import Service
from mintage.server.http.app import create_app
from mintage.store.memory import MemoryStore
from tests.helpers.traces import Traces, facts, is_child, trace_of, traced

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from mintage.rules import NamespaceRecord

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
def traces() -> Iterator[Traces]:
    with traced() as traces:
        yield traces


def ask(*requests: tuple[str, str] | tuple[str, str, Any], store: MemoryStore | None = None) -> list[httpx.Response]:
    """Return the answers of a service without listeners to requests: method, path and headers."""

    async def answers() -> list[httpx.Response]:
        service = Service(Settings.load(("--max-wait-ms", "60000", "--access-log", "all")), store or MemoryStore())
        transport = httpx.ASGITransport(create_app(service), raise_app_exceptions=False, client=("127.0.0.1", 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as http:
            found = [await http.request(method, path, headers=(*more, {})[0]) for method, path, *more in requests]
        await service.close()
        return found

    return asyncio.run(answers())


RESERVE = ("POST", "/v1/sequences/orders:reserve?count=5")


# --- spans --------------------------------------------------------------------------------------------------------


def test_request_is_a_span_with_the_template_of_its_path(traces: Traces) -> None:
    ask(("GET", "/v1/sequences?limit=3"))
    span = traces.one("GET /v1/sequences")
    assert (span.kind, span.parent, span.status.status_code) == (SpanKind.SERVER, None, StatusCode.UNSET)
    assert facts(span) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/v1/sequences",
        "url.path": "/v1/sequences",
        "url.scheme": "http",
        "server.address": "127.0.0.1",
        "server.port": 8080,
        "client.address": "127.0.0.1",
        "network.protocol.version": "1.1",
    }


def test_verb_of_the_store_is_a_child_of_the_request(traces: Traces) -> None:
    ask((*RESERVE, {"traceparent": PARENT}))
    request, verb = traces.one("POST /v1/sequences/{namespace}:reserve"), traces.one("reserve")
    assert trace_of(request) == trace_of(verb) == TRACE
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == SPAN
    assert is_child(verb, request)


def test_segment_that_the_keeper_fetches_is_in_the_trace_of_the_request(traces: Traces) -> None:
    ask(("POST", "/v1/sequences/orders:next", {"traceparent": PARENT}))
    assert next(trace_of(each) for each in traces.spans("reserve")) == TRACE


def test_refused_request_has_the_code_and_is_no_fault(traces: Traces) -> None:
    ask(("POST", "/v1/sequences/orders:next?count=x"))
    span = traces.one()
    assert facts(span)["error.type"] == "request.malformed"
    assert facts(span)["http.response.status_code"] == 400
    assert span.status.status_code is StatusCode.UNSET


def test_failed_request_is_a_fault(traces: Traces) -> None:
    class Away(MemoryStore):
        def get_namespace(self, namespace: str) -> NamespaceRecord | None:
            raise StoreError("away", code="store.unavailable")

    ask(("GET", "/v1/sequences/orders"), store=Away())
    span = traces.one("GET /v1/sequences/{namespace}")
    assert (facts(span)["error.type"], span.status.status_code) == ("store.unavailable", StatusCode.ERROR)


def test_path_without_a_route_gives_no_name(traces: Traces) -> None:
    ask(("GET", "/wp-login.php"))
    assert traces.one().name == "GET"
    assert "http.route" not in facts(traces.one())


def test_method_of_no_standard_gives_no_name(traces: Traces) -> None:
    ask(("PURGE", "/v1/sequences"))
    assert traces.one().name == "HTTP /v1/sequences"
    found = facts(traces.one())
    assert (found["http.request.method"], found["http.request.method_original"]) == ("_OTHER", "PURGE")


def test_method_of_the_conventions_is_no_other(traces: Traces) -> None:
    ask(("QUERY", "/v1/sequences"))
    assert traces.one("QUERY /v1/sequences")
    assert "http.request.method_original" not in facts(traces.one())


def test_span_has_no_id_and_no_key(traces: Traces) -> None:
    key = "mint_abcdefghijklmnopqrstuvwxyz"
    ask(
        ("GET", "/v1/inspect/01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("GET", "/v1/who/01ARZ3NDEKTSV4RRFFQ69G5FAV/"),
        ("GET", f"/{key}?secret={key}", {"Authorization": f"Bearer {key}"}),
    )
    shown = "".join(each.to_json() for each in traces.spans())
    assert len(traces.spans()) == 3
    assert "01ARZ3" not in shown
    assert key not in shown


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probe_is_no_span(traces: Traces, path: str) -> None:
    ask(("GET", path, {"traceparent": PARENT}))
    assert traces.spans() == []


# --- trace ids ----------------------------------------------------------------------------------------------------


def logged(*request: Any) -> tuple[httpx.Response, MutableMapping[str, Any]]:
    """Return the answer to a request, and its line in the log."""
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        (answer,) = ask(request)
    (line,) = [each for each in lines if each["event"] in {"answered", "refused"}]
    return answer, line


def test_log_answer_and_span_have_the_trace_of_the_client(traces: Traces) -> None:
    answer, line = logged(*RESERVE, {"traceparent": PARENT})
    span = traces.one("POST /v1/sequences/{namespace}:reserve")
    assert span.context
    assert answer.headers["x-trace-id"] == line["trace_id"] == trace_of(span) == TRACE
    assert line["span_id"] == f"{span.context.span_id:016x}"


def test_log_and_answer_have_the_trace_of_the_span_without_a_client(traces: Traces) -> None:
    answer, line = logged("GET", "/nowhere")
    assert answer.headers["x-trace-id"] == answer.json()["trace_id"] == line["trace_id"] == trace_of(traces.one())


def test_trace_of_a_client_is_logged_without_opentelemetry() -> None:
    answer, line = logged("GET", "/nowhere", {"traceparent": PARENT})
    assert answer.headers["x-trace-id"] == answer.json()["trace_id"] == line["trace_id"] == TRACE
    assert "span_id" not in line


def test_own_trace_id_of_a_client_is_answered_and_logged_beside_its_trace() -> None:
    answer, line = logged("GET", "/nowhere", {"traceparent": PARENT, "X-Trace-Id": "order-4711"})
    assert answer.headers["x-trace-id"] == answer.json()["trace_id"] == "order-4711"
    assert (line["trace_id"], line["request_id"]) == (TRACE, "order-4711")


def test_own_trace_id_alone_is_the_trace_id() -> None:
    answer, line = logged("GET", "/nowhere", {"X-Trace-Id": "order-4711"})
    assert answer.headers["x-trace-id"] == line["trace_id"] == "order-4711"
    assert "request_id" not in line


@pytest.mark.parametrize(
    "given",
    [
        "",
        "x",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01, 00-{TRACE}-{SPAN}-01",
        "00-" + "a" * 30_000,
        "\u00e9" * 55,
    ],
)
@pytest.mark.parametrize("is_traced", [True, False])
def test_malformed_traceparent_is_ignored(given: str, is_traced: bool) -> None:
    headers = [(b"traceparent", given.encode("latin-1"))]
    if is_traced:
        with traced() as traces:
            answer, _ = logged("GET", "/nowhere", headers)
        assert traces.one().parent is None
    else:
        answer, _ = logged("GET", "/nowhere", headers)
    assert answer.status_code == 404
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-trace-id"])
    assert answer.headers["x-trace-id"] != TRACE


def test_trace_that_is_not_sampled_is_logged_all_the_same(traces: Traces) -> None:
    answer, line = logged("GET", "/nowhere", {"traceparent": f"00-{TRACE}-{SPAN}-00"})
    assert traces.spans() == []
    assert answer.headers["x-trace-id"] == line["trace_id"] == TRACE
    assert "span_id" not in line


def test_traceparent_that_is_given_twice_is_ignored(traces: Traces) -> None:
    answer, _ = logged("GET", "/nowhere", [("traceparent", PARENT), ("traceparent", PARENT)])
    assert traces.one().parent is None
    assert answer.headers["x-trace-id"] != TRACE


def test_traceparent_of_a_later_version_is_taken(traces: Traces) -> None:
    answer, _ = logged("GET", "/nowhere", {"traceparent": f"01-{TRACE}-{SPAN}-01-more"})
    assert answer.headers["x-trace-id"] == trace_of(traces.one()) == TRACE


@pytest.mark.parametrize("state", ["a=1", "=" * 300, "a=1,a=2", "\u00e9", "k=v," * 9000, "a" * 600 + "=1"])
def test_tracestate_of_any_form_does_no_harm(traces: Traces, state: str) -> None:
    headers = [(b"traceparent", PARENT.encode()), (b"tracestate", state.encode("latin-1"))]
    answer, _ = logged("GET", "/nowhere", headers)
    assert (answer.status_code, trace_of(traces.one())) == (404, TRACE)


def test_tracestate_in_several_headers_is_one_list(traces: Traces) -> None:
    logged("GET", "/nowhere", [("traceparent", PARENT), ("tracestate", "a=1,b=2"), ("tracestate", "c=3")])
    context = traces.one().get_span_context()
    assert context
    assert dict(context.trace_state) == {"a": "1", "b": "2", "c": "3"}


@pytest.mark.parametrize("more", ["", "z", "=", "\t" * 60_000])
def test_long_tracestate_loses_its_last_entries(traces: Traces, more: str) -> None:
    entries = [f"v{at}={'x' * 60}" for at in range(8)]  # 511 characters
    state = ",".join([*entries, f"last=1{more}"])
    logged("GET", "/nowhere", [("traceparent", PARENT), ("tracestate", state)])
    context = traces.one().get_span_context()
    assert context
    assert [*context.trace_state] == [f"v{at}" for at in range(8)]
