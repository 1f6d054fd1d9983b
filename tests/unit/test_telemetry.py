"""Tests of OpenTelemetry in the library: the spans of the store's verbs, their context, and what it costs without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from mintage import Sequence, sno, telemetry
from mintage.errors import ArgumentError, GenerationError
from mintage.protocol.calls import ServiceProtocol, reserve
from mintage.protocol.url import StoreUrl
from mintage.store import Forwarding, new_token, open_store
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock
from tests.helpers.markdown import blocks
from tests.helpers.outcomes import refused
from tests.helpers.stores import acquire
from tests.helpers.traces import Processor, Traces, facts, is_child, traced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mintage.lease.keeper import Keeper
    from mintage.rules import Segment

OBSERVE = Path(__file__).parents[2] / "docs/how-to/observe.md"


@pytest.fixture
def traces() -> Iterator[Traces]:
    with traced() as traces:
        yield traces


# --- spans --------------------------------------------------------------------------------------------------------


def test_verb_of_a_store_is_a_span_of_a_client(traces: Traces, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/ids.db") as store:
        store.reserve("orders", 10)
    span = traces.one()
    assert (span.name, span.kind, span.status.status_code) == ("reserve", SpanKind.CLIENT, StatusCode.UNSET)
    assert facts(span) == {
        "db.system.name": "sqlite",
        "db.operation.name": "reserve",
        "mintage.namespace": "orders",
    }
    assert span.instrumentation_scope is not None


def test_verb_in_memory_is_an_internal_span(traces: Traces) -> None:
    MemoryStore().now_ms()
    assert (traces.one().name, traces.one().kind) == ("now_ms", SpanKind.INTERNAL)


def test_every_verb_is_a_span(traces: Traces) -> None:
    store = MemoryStore()
    lease = acquire(store)
    lease = store.extend(lease, now_ms=store.now_ms(), next_token=new_token())
    store.release(lease, used_until_ms=lease.until_ms)
    segment = store.reserve("orders", 10)
    store.give_back(segment, 5)
    store.raise_floor(namespace="orders", value=100)
    store.retire("orders")
    named = {each.name: facts(each) for each in traces.spans()}
    assert named.keys() == {
        "acquire", "now_ms", "extend", "release", "reserve", "give_back", "raise_floor", "retire",
    }  # fmt: skip
    assert {named[verb]["mintage.pool"] for verb in ("acquire", "extend", "release")} == {lease.pool}
    subjects = {named[verb]["mintage.namespace"] for verb in ("reserve", "give_back", "raise_floor", "retire")}
    assert subjects == {"orders"}


def test_spans_of_verbs_have_no_token_and_no_holder(traces: Traces) -> None:
    store = MemoryStore()
    lease = acquire(store)
    store.extend(lease, now_ms=store.now_ms(), next_token="secret-token")
    shown = "".join(each.to_json() for each in traces.spans())
    assert lease.token not in shown
    assert "secret-token" not in shown


def test_refused_verb_has_the_code_of_its_error(traces: Traces) -> None:
    store = MemoryStore()
    store.create_namespace("codes", maximum=1)
    store.reserve("codes", 1)
    traces.clear()
    with refused("namespace.exhausted", GenerationError):
        store.reserve("codes", 1)
    span = traces.one()
    assert facts(span)["error.type"] == "namespace.exhausted"
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())


def test_fault_of_a_store_has_the_name_of_its_type(traces: Traces) -> None:
    class Broken(MemoryStore):
        def count_namespaces(self) -> int:
            raise ZeroDivisionError("secret")

    with pytest.raises(ZeroDivisionError):
        Broken().count_namespaces()
    assert facts(traces.one())["error.type"] == "ZeroDivisionError"
    assert "secret" not in traces.one().to_json()


def test_argument_that_is_refused_before_the_store_is_no_span(traces: Traces) -> None:
    store: Any = MemoryStore()
    with refused("argument.type", ArgumentError):
        store.reserve("orders", "10")
    assert traces.spans() == []


def test_wrapper_of_a_store_adds_no_span(traces: Traces) -> None:
    class Own(Forwarding):
        def reserve(self, namespace: str, count: int, *, holder: str | None = None) -> Segment:
            segment: Segment = super().reserve(namespace, count, holder=holder)
            return segment

    Own(MemoryStore()).reserve("orders", 10)
    assert traces.one().name == "reserve"


def test_store_without_a_url_is_traced(traces: Traces) -> None:
    store: Any = MemoryStore()
    del store.url
    store.now_ms()
    assert facts(traces.one()) == {"db.system.name": "other", "db.operation.name": "now_ms"}


def test_span_that_is_not_sampled_changes_nothing() -> None:
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    with traced(ALWAYS_OFF) as traces:
        assert MemoryStore().reserve("orders", 3).as_range() == range(1, 4)
    assert traces.spans() == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgresql://user:secret@db:5433/ids?sslpassword=secret",
            {"db.system.name": "postgresql", "db.namespace": "ids", "server.address": "db", "server.port": 5433},
        ),
        ("mariadb://db/ids", {"db.system.name": "mariadb", "db.namespace": "ids", "server.address": "db"}),
        ("mysql://db1,db2/ids", {"db.system.name": "mysql", "db.namespace": "ids"}),
        (
            "postgresql:///ids?host=/run/pg",
            {"db.system.name": "postgresql", "db.namespace": "ids", "server.address": "/run/pg"},
        ),
        ("rediss://:secret@cache", {"db.system.name": "redis", "server.address": "cache"}),
        ("valkey://cache/3", {"db.system.name": "redis", "db.namespace": "3", "server.address": "cache"}),
        ("unix:///run/redis.sock", {"db.system.name": "redis", "server.address": "/run/redis.sock"}),
        ("etcds://a:1,b:2", {"db.system.name": "etcd"}),
        ("https://:secret@ids", {"db.system.name": "mintage", "server.address": "ids"}),
        ("sqlite:////var/ids.db", {"db.system.name": "sqlite"}),
        ("memory:x", {"db.system.name": "memory"}),
        (
            "mysql://user:secret@db/ids?cache=redis://:secret@cache:6380",
            {"db.system.name": "redis", "server.address": "cache", "server.port": 6380},
        ),
    ],
)
def test_attributes_of_a_store_name_its_server_and_no_secret(url: str, expected: dict[str, object]) -> None:
    class Named:
        def __init__(self, url: StoreUrl) -> None:
            self.url = url

    assert telemetry.describe_store(Named(StoreUrl.parse(url))) == expected


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://db:5433/ids", "now_ms ids"),
        ("postgresql:///ids?host=/run/pg", "now_ms ids"),
        ("redis://cache:6380/3", "now_ms cache:6380"),
        ("etcd://store", "now_ms store"),
        ("sqlite:////var/ids.db", "now_ms"),
    ],
)
def test_span_of_a_verb_is_named_as_the_conventions_say(traces: Traces, url: str, name: str) -> None:
    store = MemoryStore()
    store.url = StoreUrl.parse(url)
    store.now_ms()
    assert traces.one().name == name


def test_no_id_is_a_span(traces: Traces, inline: Keeper) -> None:
    store = MemoryStore()
    with sno.Generator(store=store) as generator, Sequence("orders", store, min_step=1000) as orders:
        generator.new()
        orders.next()
        asked = len(traces.spans())
        assert {each.name for each in traces.spans()} <= {"acquire", "reserve", "now_ms", "extend"}
        for _ in range(500):
            generator.new()
            orders.next()
        assert len(traces.spans()) == asked


def test_program_of_the_documentation_sees_its_spans(tmp_path: Path) -> None:
    (program,) = (each for each in blocks(OBSERVE, "python") if "TracerProvider" in each)
    run("import os", f"os.chdir({str(tmp_path)!r})", program)


@pytest.mark.parametrize("fault", ["on_start", "on_end"])
def test_faulty_processor_changes_no_outcome(traces: Traces, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("of a component of the program")

    monkeypatch.setattr(Processor, fault, fail)
    store = MemoryStore()
    assert (store.reserve("orders", 10).first, store.reserve("orders", 10).first) == (1, 11)
    with refused("field.range"):
        store.reserve("orders", 0)


# --- context ------------------------------------------------------------------------------------------------------


def test_verb_is_a_child_of_the_current_span(traces: Traces) -> None:
    with traces.tracer.start_as_current_span("work"):
        MemoryStore().reserve("orders", 10)
    assert is_child(traces.one("reserve"), traces.one("work"))


def test_verb_in_the_keeper_is_a_child_of_the_callers_span(traces: Traces) -> None:
    with traces.tracer.start_as_current_span("work"), Sequence("orders", MemoryStore()) as orders:
        orders.next()
    assert is_child(traces.spans("reserve")[0], traces.one("work"))


def test_work_of_the_keeper_that_nobody_waits_for_has_no_parent(traces: Traces, inline: Keeper) -> None:
    clock = ManualClock(1_700_000_000_000_000_000)
    store = MemoryStore(clock=lambda: clock.now_ns // 10**6)
    with sno.Generator(store=store, clock=clock) as generator:
        with traces.tracer.start_as_current_span("work"):
            generator.new()
        clock.advance(15 * 10**9)
        with traces.tracer.start_as_current_span("other"):
            assert inline.step() == 0
    assert is_child(traces.one("acquire"), traces.one("work"))
    assert traces.one("extend").parent is None


def test_untraced_call_makes_no_span(traces: Traces) -> None:
    store = MemoryStore()
    telemetry.untraced(store.count_namespaces)
    assert traces.spans() == []
    store.count_namespaces()
    assert traces.one().name == "count_namespaces"


def test_request_to_a_service_has_the_context_of_the_span(traces: Traces) -> None:
    protocol = ServiceProtocol(StoreUrl.parse("http://ids:8080"))
    with traces.tracer.start_as_current_span("work") as span:
        sent = next(protocol.steps(reserve("orders", 10)))
    context = span.get_span_context()
    assert sent.headers["traceparent"].startswith(f"00-{context.trace_id:032x}-{context.span_id:016x}-")


def test_request_without_a_span_has_no_context(traces: Traces) -> None:
    sent = next(ServiceProtocol(StoreUrl.parse("http://ids:8080")).steps(reserve("orders", 10)))
    assert "traceparent" not in sent.headers


# --- programs without it ------------------------------------------------------------------------------------------

VERBS = "from mintage import open_store, Sequence; store = open_store('memory:'); Sequence('orders', store).next()"


def run(*lines: str) -> str:
    return subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, capture_output=True, text=True).stdout


def test_program_without_opentelemetry_imports_nothing_of_it() -> None:
    found = run(VERBS, "import sys", "print([name for name in sys.modules if name.startswith('opentelemetry')])")
    assert found == "[]\n"


def test_import_of_mintage_does_not_import_telemetry() -> None:
    assert run("import mintage, sys; mintage.sno.new", "print('mintage.telemetry' in sys.modules)") == "False\n"


def test_program_with_the_api_alone_has_no_spans() -> None:
    found = run("import opentelemetry.trace", VERBS, "from mintage import telemetry", "print(telemetry.find())")
    assert found == "None\n"


def test_module_that_was_made_unimportable_does_no_harm() -> None:
    assert run("import sys; sys.modules['opentelemetry.trace'] = None", VERBS, "print(1)") == "1\n"


def test_provider_that_is_set_after_the_first_verb_is_found() -> None:
    found = run(
        VERBS,
        "from opentelemetry import trace",
        "from opentelemetry.sdk.trace import TracerProvider",
        "from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor",
        "store.count_namespaces()",
        "provider = TracerProvider()",
        "provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda span: span.name + ' ')))",
        "trace.set_tracer_provider(provider)",
        "store.count_namespaces()",
    )
    assert found == "count_namespaces "


@pytest.mark.parametrize(
    "cause",
    [
        "import os; os.environ['OTEL_PYTHON_TRACER_PROVIDER'] = 'missing'",
        "trace.set_tracer_provider(type('Old', (trace.TracerProvider,), {'get_tracer': lambda self, name: None})())",
    ],
)
def test_provider_that_cannot_be_had_fails_no_verb(cause: str) -> None:
    lines = ("from opentelemetry import trace", cause, "from mintage import Sequence", "ids = Sequence('a', 'memory:')")
    assert run(*lines, "print(ids.next(), ids.next())") == "1 2\n"
