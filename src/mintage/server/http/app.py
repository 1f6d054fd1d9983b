"""The application of Starlette: the HTTP requests that the lane, the fast path in Rust, leaves to Python.

Every request gets one answer, in the form of its interface and with a trace id, and the metrics count it.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any

import structlog
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mintage._core.lane import is_trace
from mintage.errors import MintError, RequestError
from mintage.server import console
from mintage.server.core.origin import foreign
from mintage.server.core.service import Service
from mintage.server.http import alloc, openapi, pages, v1
from mintage.server.http.answers import Facts, MethodError, allow, methods_of
from mintage.server.http.spans import note_answer, one_header, request_span, span_id_of, trace_id_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span

log: Any = structlog.get_logger("mintage.server")


def _exact(route: Route) -> Route:
    """Let a route match whole paths only: Starlette's ``$`` also matches before a line feed at the end."""
    route.path_regex = re.compile(route.path_regex.pattern.removesuffix("$") + r"\Z")
    return route


ROUTES = tuple(map(_exact, (*alloc.ROUTES, *v1.ROUTES, *pages.ROUTES, *openapi.ROUTES)))
_TEMPLATES: dict[Any, str] = {route.endpoint: route.path for route in ROUTES}
"""The path of a route, by its endpoint."""


def create_app(service: Service) -> Starlette:
    """Return the application of a service."""
    app = Starlette(
        routes=[*ROUTES, *console.routes(service)],
        middleware=[Middleware(AccountingMiddleware, service=service)],
        exception_handlers={MintError: _refuse, HTTPException: _refuse_path},
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    """Return the answer to a request that is refused."""
    assert isinstance(error, MintError)  # noqa: S101 - the handlers say so
    facts: Facts = request.state.facts
    return facts.refuse(error)


async def _refuse_path(request: Request, _: Exception) -> Response:
    """Return the answer to a request of which no route has the path and the method."""
    path, method = request.scope["path"], request.method
    known = methods_of((each for each in request.app.routes if isinstance(each, Route)), path)
    if method == "OPTIONS" and (known or path == "*"):
        return Response(status_code=204, headers={"Allow": allow(known)})
    if known:
        return await _refuse(request, MethodError(method, known))
    message = f"the path {path[:100]!a} does not exist: see /openapi.json"
    return await _refuse(request, RequestError(message, code="request.path"))


class AccountingMiddleware:
    """The middleware that gives each request a trace id, answers it even after a fault, logs it and counts it."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._trace_header = service.settings.trace_header
        self._trace_name = self._trace_header.lower().encode()
        self._is_open = not (service.settings.has_keys or service.settings.insecure)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        with request_span(scope) as span:
            await self._answer(scope, receive, send, span)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, span: Span | None) -> None:
        trace_id = trace_id_of(scope, span)
        own = one_header(scope, self._trace_name)
        facts = Facts(own.decode() if is_trace(own) else trace_id or os.urandom(16).hex())
        scope.setdefault("state", {})["facts"] = facts
        logged = {"trace_id": trace_id or facts.trace_id, **span_id_of(span)}
        if logged["trace_id"] != facts.trace_id:
            logged["request_id"] = facts.trace_id
        began, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[self._trace_header] = facts.trace_id
                if self._service.fallback.get():
                    headers["X-Mintage-Fallback"] = "random"
            await send(message)

        with structlog.contextvars.bound_contextvars(**logged):
            self._service.fallback.set(False)
            try:
                refusal = foreign(scope["method"], scope["headers"]) if self._is_open else None
                await (facts.refuse(refusal) if refusal else self._app)(scope, receive, answer)
            except Exception:
                log.exception("failed", interface="http", method=scope["method"], path=scope["path"][:200])
                fault = RequestError("the service has a fault: its log has more at the trace id", code="service.failed")
                refused = facts.refuse(fault)
                if not status:
                    await refused(scope, receive, answer)
            finally:
                seconds = time.perf_counter() - began
                self._service.metrics.request("http", facts.operation, facts.code, seconds, key=facts.caller)
                route = _TEMPLATES.get(scope.get("endpoint")) or scope["root_path"]
                self._service.metrics.answer(seconds, note_answer(span, scope, route, status, facts))
                self._note(scope, facts, status, seconds)

    def _note(self, scope: Scope, facts: Facts, status: int, seconds: float) -> None:
        wanted = self._service.settings.access_log
        if wanted == "all" or (wanted == "errors" and facts.code != "ok"):
            more: dict[str, object] = {"key": facts.caller, "code": facts.code, "reason": facts.reason}
            if wanted == "errors" and not facts.caller and self._service.settings.has_keys:
                # The metrics count every refusal.
                if (left_out := self._service.refusal_log_limit.allow()) is None:
                    return
                more |= left_out
            log.info(
                "answered" if facts.code == "ok" else "refused",
                interface="http",
                method=scope["method"][:20],
                path=scope["path"][:200],
                status=status,
                ms=round(seconds * 1000, 3),
                **{name: value for name, value in more.items() if value},
            )
