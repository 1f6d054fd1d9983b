"""The Starlette application: the HTTP requests that the lane, the fast path in Rust, leaves to Python.

Every request gets one answer, in the form of its interface and with a trace id, and the metrics count it.

``/v1``, identity columns and the OpenAPI document are declared with pydantic, which takes 10 MB and a tenth of a second
to import. The first request to one of them imports it, in a thread. Many services answer none.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import secrets
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import structlog
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Match, Route, Router

from mintage._core.lane import is_trace
from mintage.errors import MintError, RequestError
from mintage.server.alloc import Alloc
from mintage.server.exchange import Exchange, exchange_of
from mintage.server.pages import routes as page_routes
from mintage.server.values import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mintage.server.service import Service

log: Any = structlog.get_logger("mintage.server")


def create_app(service: Service) -> Starlette:
    """Return the application of a service."""
    app = Starlette(
        routes=[
            Route("/alloc", Alloc(service), methods=["POST"]),
            *(Late(service, pattern, load) for pattern, load in LATE.items()),
            *page_routes(service),
        ],
        middleware=[Middleware(Front, service=service)],
        exception_handlers={MintError: _refused, HTTPException: _not_found},
    )
    # Each resource has one path: no redirect from a path with a slash at its end.
    app.router.redirect_slashes = False
    return app


def _v1(service: Service) -> list[BaseRoute]:
    from mintage.server.v1 import routes

    return routes(service)


def _identities(service: Service) -> list[BaseRoute]:
    from mintage.server.delta import routes

    return routes(service)


def _openapi(service: Service) -> list[BaseRoute]:
    from mintage.server.openapi import routes

    return routes(service)


LATE: Final = {"/v1/.*": _v1, "/delta/.*": _identities, r"/(openapi\.json)?": _openapi}
"""The functions that import the routes of a module, by the pattern of their paths."""


class Late(BaseRoute):
    """The routes of a module that the first request to one of their paths imports."""

    def __init__(self, service: Service, pattern: str, load: Callable[[Service], list[BaseRoute]]) -> None:
        self._service = service
        self._pattern = re.compile(pattern, re.DOTALL)
        self._load = load
        self._router: Router | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return a match of every path below the pattern."""
        is_ours = scope["type"] == "http" and self._pattern.fullmatch(scope["path"])
        return (Match.FULL if is_ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._router is None:
            routes = await asyncio.to_thread(self._load, self._service)
            # Of two first requests at once, either's routes will do.
            self._router = self._router or Router(routes, redirect_slashes=False)
        await self._router(scope, receive, send)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, MintError)  # noqa: S101 - what the handler is registered for
    return exchange_of(request.scope).refused(error)


async def _not_found(request: Request, error: Exception) -> Response:
    """Return the answer to an unknown path, or to a method that the path does not have."""
    assert isinstance(error, HTTPException)  # noqa: S101 - what the handler is registered for
    exchange = exchange_of(request.scope)
    if error.status_code == 405:
        allowed = exchange.headers["Allow"] = ", ".join(sorted((error.headers or {})["Allow"].split(", ")))
        return exchange.refused(
            RequestError(f"the path does not allow {request.method:.20}: use {allowed}", code="request.method")
        )
    shown = ascii(request.scope["path"][:100])
    return exchange.refused(RequestError(f"the path {shown} does not exist: see /openapi.json", code="request.path"))


def _is_near(origin: str) -> bool:
    """Return True if the page with this origin comes from this machine."""
    try:
        return is_loopback(urlsplit(origin).hostname or "")
    except ValueError:
        return False


def _is_name(host: str) -> bool:
    """Return True for a DNS name, which an attacker can point to this machine; False for localhost and addresses."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name != "localhost":
            ipaddress.ip_address(name)
    except ValueError:
        return True
    return False


class Front:
    """The middleware around each request: trace id, log, metrics, and the answer to an unexpected exception."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._trace_header = service.settings.trace_header.lower().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = scope["mintage.exchange"] = Exchange(self._trace_id(scope))
        began = time.perf_counter()
        status = 0

        async def say(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[self._service.settings.trace_header] = exchange.trace_id
                headers.update(exchange.headers)
                if self._service.fallback.get():
                    headers["X-Mintage-Fallback"] = "random"
            await send(message)

        with structlog.contextvars.bound_contextvars(trace_id=exchange.trace_id):
            self._service.fallback.set(False)
            try:
                if (refusal := self._refusal(scope)) is None:
                    await self._app(scope, receive, say)
                else:
                    await exchange.refused(refusal)(scope, receive, say)
            except Exception:
                log.exception("failed", interface="http", method=scope["method"], path=scope["path"][:200])
                error = RequestError("the service has a fault: its log has more at the trace id", code="service.failed")
                answer = exchange.refused(error)
                # The status was sent already: the server then closes the connection.
                if status:
                    raise
                await answer(scope, receive, say)
            finally:
                seconds = time.perf_counter() - began
                self._service.metrics.request("http", exchange.operation, exchange.code, seconds)
                self._note(scope, exchange, status, seconds)

    def _refusal(self, scope: Scope) -> MintError | None:
        """Return the reason to refuse a request to a service without keys; ``None`` if it may pass.

        Any program on this machine may send requests, but a foreign page in a browser on this machine may not.
        """
        settings = self._service.settings
        if settings.has_keys or settings.insecure:
            return None
        reads = scope["method"] in {"GET", "HEAD"}
        for name, value in scope["headers"]:
            if name == b"origin" and not _is_near(origin := value.decode("latin-1")):
                return RequestError(
                    f"a page of {origin[:100]!a} may not send requests to a service without keys: configure keys",
                    code="request.rights",
                )
            # If a page's own name points to this machine (DNS rebinding), the browser takes the request for one of
            # the same origin. It then sends no Origin with GET and HEAD, but does with every other method.
            if reads and name == b"host" and _is_name(host := value.decode("latin-1")):
                return RequestError(
                    f"a service without keys is read as localhost or by its address, not as {host[:100]!a}: "
                    "configure keys, or say --insecure",
                    code="request.rights",
                )
        return None

    def _trace_id(self, scope: Scope) -> str:
        """Return the client's trace id if it is well-formed, a new one otherwise."""
        found = [value for name, value in scope["headers"] if name == self._trace_header]
        return found[0].decode() if len(found) == 1 and is_trace(found[0]) else secrets.token_hex(16)

    def _note(self, scope: Scope, exchange: Exchange, status: int, seconds: float) -> None:
        wanted = self._service.settings.access_log
        if wanted == "all" or (wanted == "errors" and exchange.code != "ok"):
            facts: dict[str, object] = {"key": exchange.caller, "code": exchange.code, "reason": exchange.reason}
            if wanted == "errors" and not exchange.caller and self._service.settings.has_keys:
                # The metrics count every refusal.
                if (left_out := self._service.strangers.passes()) is None:
                    return
                facts |= left_out
            log.info(
                "answered" if exchange.code == "ok" else "refused",
                interface="http",
                method=scope["method"][:20],
                path=scope["path"][:200],
                status=status,
                ms=round(seconds * 1000, 3),
                **{name: value for name, value in facts.items() if value},
            )
