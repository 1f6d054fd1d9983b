"""The application of ASGI: the HTTP requests that the lane, the fast path in Rust, leaves to Python.

Every request gets one answer, in the form of its interface and with a trace id, and the metrics count it.
"""

from __future__ import annotations

import ipaddress
import os
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog

from mintage._core.lane import is_trace
from mintage.errors import MintError, RequestError
from mintage.server.config.values import is_loopback
from mintage.server.http import openapi, v1
from mintage.server.http.alloc import Alloc
from mintage.server.http.answers import Answer, Exchange, allow, wrong_method
from mintage.server.http.pages import pages

if TYPE_CHECKING:
    from mintage.server.core.service import Service
    from mintage.server.http.answers import Endpoints, Receive, Scope, Send

log: Any = structlog.get_logger("mintage.server")


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


class App:
    """The application: it finds the endpoint of a request, and logs, counts and sends the answer."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._trace_header = service.settings.trace_header.lower().encode()
        self.pages: dict[str, Endpoints] = {
            "/alloc": {"POST": Alloc(service)},
            **pages(service),
            **openapi.pages(service),
        }
        """The endpoints of single paths."""
        self._finders = {"/v1/": v1.finder(service)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        exchange = Exchange(self._trace_id(scope))
        began = time.perf_counter()
        with structlog.contextvars.bound_contextvars(trace_id=exchange.trace_id):
            self._service.fallback.set(False)
            status = 0
            try:
                answer = await self._answer(exchange, scope, receive)
                answer.headers |= {self._service.settings.trace_header: exchange.trace_id, **exchange.headers}
                if self._service.fallback.get():
                    answer.headers["X-Mintage-Fallback"] = "random"
                status = answer.status
                await answer.send(send)
            finally:
                seconds = time.perf_counter() - began
                self._service.metrics.request("http", exchange.operation, exchange.code, seconds, key=exchange.caller)
                self._note(scope, exchange, status, seconds)

    async def _answer(self, exchange: Exchange, scope: Scope, receive: Receive) -> Answer:
        """Return the answer to a request, also if it is refused or fails."""
        try:
            if (refusal := self._refusal(scope)) is not None:
                return exchange.refused(refusal)
            method = scope["method"]
            found = self._find(scope["path"])
            if method == "OPTIONS" and (found or scope["path"] == "*"):
                # A balancer's check may ask so. The pages of health answer it as GET.
                exchange.headers["Allow"] = allow(found or ())
                if "OPTIONS" not in (found or ()):
                    return Answer(status=204)
            if not found:
                shown = ascii(scope["path"][:100])
                raise RequestError(f"the path {shown} does not exist: see /openapi.json", code="request.path")
            endpoint = found.get("GET" if method == "HEAD" else method)
            if endpoint is None:
                raise wrong_method(exchange, method, found)
            return await endpoint(exchange, scope, receive)
        except MintError as error:
            return exchange.refused(error)
        except Exception:
            log.exception("failed", interface="http", method=scope["method"], path=scope["path"][:200])
            fault = RequestError("the service has a fault: its log has more at the trace id", code="service.failed")
            return exchange.refused(fault)

    def _find(self, path: str) -> Endpoints | None:
        """Return the endpoints of a path."""
        for start, find in self._finders.items():
            if path.startswith(start):
                return find(path)
        return self.pages.get(path)

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
                    "configure keys, or pass --insecure",
                    code="request.rights",
                )
        return None

    def _trace_id(self, scope: Scope) -> str:
        """Return the client's trace id if it is well-formed, a new one otherwise."""
        found = [value for name, value in scope["headers"] if name == self._trace_header]
        return found[0].decode() if len(found) == 1 and is_trace(found[0]) else os.urandom(16).hex()

    def _note(self, scope: Scope, exchange: Exchange, status: int, seconds: float) -> None:
        wanted = self._service.settings.access_log
        if wanted == "all" or (wanted == "errors" and exchange.code != "ok"):
            facts: dict[str, object] = {"key": exchange.caller, "code": exchange.code, "reason": exchange.reason}
            if wanted == "errors" and not exchange.caller and self._service.settings.has_keys:
                # The metrics count every refusal.
                if (left_out := self._service.refusal_log_limit.allow()) is None:
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
