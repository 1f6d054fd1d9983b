"""Spans of the store's verbs, and the context of traces, in programs that use OpenTelemetry.

Such a program imports OpenTelemetry's API and sets a provider of tracers. This module looks for that provider, and
imports nothing before the program has imported the API. Otherwise a verb costs a look at ``sys.modules`` more. No ID
has a span: a process asks its store once in thousands of IDs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from mintage.errors import MintError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanKind, Tracer

    T = TypeVar("T")

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.33.0"
"""The version of the semantic conventions that names and attributes follow."""

_SYSTEMS: Final = {
    **dict.fromkeys(("rediss", "redis+sentinel", "redis+cluster", "valkey", "unix"), "redis"),
    **dict.fromkeys(("http", "https"), "mintage"),
    "etcds": "etcd",
}
"""The conventions' name of a system, for each scheme of a URL that is not that name itself."""
_SUBJECTS: Final = {"pool": "pool", "lease": "pool", "namespace": "namespace", "segment": "namespace"}
"""The subject of a verb, by the name of its first parameter."""

_is_untraced: Final[ContextVar[bool]] = ContextVar("mintage_untraced", default=False)


class Telemetry(NamedTuple):
    """OpenTelemetry's API in a program that has set a provider of tracers."""

    trace: Any
    context: Any
    tracer: Tracer

    @contextmanager
    def span(
        self, name: str, kind: SpanKind, attributes: Mapping[str, str | int], parent: Context | None = None
    ) -> Iterator[Span]:
        """Let the block be a span. An exception sets its status and ``error.type``, and nothing else.

        A component of OpenTelemetry that raises changes nothing: a verb that has taken effect must not fail.

        :param parent: the context of its parent; ``None``: the current one.
        """
        span, token = self.trace.INVALID_SPAN, None
        with suppress(Exception):
            span = self.tracer.start_span(name, parent, kind, attributes, record_exception=False)
            token = self.context.attach(self.trace.set_span_in_context(span))
        try:
            yield span
        except BaseException as error:
            code = error.code if isinstance(error, MintError) else type(error).__qualname__
            with suppress(Exception):
                span.set_attribute("error.type", code)
                span.set_status(self.trace.StatusCode.ERROR)
            raise
        finally:
            with suppress(Exception):
                if token is not None:
                    self.context.detach(token)
                span.end()


_found: Final[list[Telemetry | None]] = []


def find() -> Telemetry | None:
    """Return OpenTelemetry's API; ``None`` while the program has not set a provider of tracers, or if that raises."""
    if not _found and sys.modules.get("opentelemetry.trace") is not None:
        try:
            # Both are imported by now, or another thread is at it: this waits for that thread.
            from opentelemetry import context, trace

            version: str = sys.modules["mintage"].__version__
            tracer = trace.get_tracer("mintage", version, schema_url=SCHEMA_URL)
            if isinstance(tracer, (trace.ProxyTracer, trace.NoOpTracer)):
                return None
            _found.append(Telemetry(trace, context, tracer))
        except Exception:  # noqa: BLE001 - of any component of OpenTelemetry
            _found.append(None)  # It would raise at each verb, and log that.
    return _found[0] if _found else None


# --- verbs of stores ----------------------------------------------------------------------------------------------


def trace_verbs(store: type[Any], verbs: Iterable[str]) -> None:
    """Wrap those of the verbs that a class of stores defines, so that each call is a span."""
    for name in verbs:
        if name in vars(store):
            setattr(store, name, _traced(name, vars(store)[name]))


def _traced(name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
    code = getattr(verb, "__code__", None)
    first = code.co_varnames[1] if code is not None and code.co_argcount > 1 else ""

    @wraps(verb)
    def traced(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = find()
        if found is None or _is_untraced.get():
            return verb(self, *args, **kwargs)
        attributes = {"db.operation.name": name} | describe_store(self)
        if (what := _SUBJECTS.get(first)) is not None:
            subject = args[0] if args else kwargs.get(first)
            if isinstance(subject := getattr(subject, what, subject), str):
                attributes[f"mintage.{what}"] = subject
        # The conventions leave the number of a database of Redis out of the name.
        namespace = attributes.get("db.namespace") if attributes["db.system.name"] != "redis" else None
        server = (str(attributes[each]) for each in ("server.address", "server.port") if each in attributes)
        target = namespace or ":".join(server)
        is_internal = attributes["db.system.name"] == "memory"
        kind = found.trace.SpanKind.INTERNAL if is_internal else found.trace.SpanKind.CLIENT
        with found.span(f"{name} {target}".rstrip(), kind, attributes):
            return verb(self, *args, **kwargs)

    return traced


def describe_store(store: Any) -> dict[str, str | int]:
    """Return the attributes of a store: never its user, its password or its options."""
    url: Any = getattr(store, "url", None)
    # The verbs of a pair ask the cache. If they ask the database as well, that is a span of its own.
    url = getattr(url, "cache", None) or url
    scheme = getattr(url, "scheme", "") or "other"
    found: dict[str, str | int] = {"db.system.name": _SYSTEMS.get(scheme, scheme)}
    hosts: tuple[tuple[str, int | None], ...] = getattr(url, "hosts", ())
    if (hosts or scheme in {"mysql", "mariadb", "postgresql"}) and url.path:
        found["db.namespace"] = url.path
    if len(hosts) == 1:
        host, port = hosts[0]
        found["server.address"] = host
        if port is not None:
            found["server.port"] = port
    elif not hosts and (socket := getattr(url, "socket", None)):
        found["server.address"] = socket
    return found


def untraced(call: Callable[[], T]) -> T:
    """Make a call whose verbs are no spans, such as a probe that comes every two seconds."""
    token = _is_untraced.set(True)
    try:
        return call()
    finally:
        _is_untraced.reset(token)


# --- the context of a trace ---------------------------------------------------------------------------------------


def current_context() -> Context | None:
    """Return the context of the current span; ``None`` if there is none."""
    found = find()
    if found is None or not found.trace.get_current_span().get_span_context().is_valid:
        return None
    context: Context = found.context.get_current()
    return context


def call_within(context: Context | None, call: Callable[[], T]) -> T:
    """Make a call within the context of another thread's span; ``None``: within no span."""
    found = find()
    if found is None:
        return call()
    token = found.context.attach(found.context.Context() if context is None else context)
    try:
        return call()
    finally:
        found.context.detach(token)


def inject(headers: dict[str, str]) -> None:
    """Add the context of the current span, such as ``traceparent``, to the headers of a request."""
    if current_context() is not None:
        # Without the propagators that OTEL_PROPAGATORS names, requests go without.
        with suppress(Exception):
            from opentelemetry import propagate

            propagate.inject(headers)
