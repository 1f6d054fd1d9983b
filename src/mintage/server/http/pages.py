"""The pages for operators of the service: ``/healthz``, ``/readyz``, ``/metrics``, ``/debug/profile`` and ``/``."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from mintage.errors import RequestError
from mintage.server.config.keys import token_of
from mintage.server.config.values import OFF
from mintage.server.core import profile
from mintage.server.core.health import is_ready
from mintage.server.core.service import Service
from mintage.server.http.answers import Json, allow

_METHODS: Final = ("GET", "OPTIONS")
"""The methods of the probes: a balancer's check may ask by OPTIONS."""
_PROFILING: Final = asyncio.Lock()
_LINKS: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>mintage</title>
<h1>mintage</h1>
<ul>
<li><a href="/openapi.json">All operations</a>: the OpenAPI document</li>
<li><a href="/v1/store">The store</a>, <a href="/v1/sequences">namespaces</a>, <a href="/v1/pools">pools</a> and
<a href="/v1/leases">leases</a></li>
<li><a href="/readyz">Readiness</a> and <a href="/metrics">metrics</a></li>
</ul>
</html>
"""


def _fresh(request: Request) -> dict[str, str]:
    """Return the headers of an answer that nobody may keep."""
    allowed = {"Allow": allow(_METHODS)} if request.method == "OPTIONS" else {}
    return {"Cache-Control": "no-store", **allowed}


async def _healthz(request: Request) -> Response:
    """Answer any caller, as long as the event loop turns."""
    return Json({"status": "ok"}, headers=_fresh(request))


async def _readyz(request: Request) -> Response:
    """Answer 200 while requests can be served. With keys, the answer names no namespaces."""
    service: Service = request.app.state.service
    watch = service.probe
    held = {namespace: sequence.buffered for namespace, sequence in service.sequences().items()}
    last_resort = service.settings.fallback == "random" and watch.is_away
    ended = service.ended()
    ready = is_ready(
        draining=service.draining,
        store_up=bool(watch.store_up),
        held={namespace: level for namespace, level in held.items() if level or namespace not in ended},
        last_resort=last_resort,
    )
    body: dict[str, object] = {
        "ready": ready,
        "degraded": ready and not watch.store_up,
        "draining": service.draining,
        "store": "up" if watch.store_up else "down",
        "since": watch.since.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    if not service.settings.has_keys:
        body["sequences"] = {namespace: {"held": level} for namespace, level in sorted(held.items())}
    return Json(body, 200 if ready else 503, headers=_fresh(request))


async def _metrics(request: Request) -> Response:
    """Return the metrics, which need the right ``metrics``."""
    service: Service = request.app.state.service
    service.keys.find(token_of(request.scope["headers"])).check("metrics", "")
    service.gather()
    # In a thread, as the text of a thousand namespaces would delay other requests.
    text, content_type = await asyncio.to_thread(service.metrics.render)
    return Response(text, media_type=content_type, headers=_fresh(request))


async def _profile(request: Request) -> Response:
    """Return a CPU profile, ``?seconds=5&format=html|text|speedscope``, which needs the right ``admin``.

    Without keys nobody has that right, as a profile shows paths of the machine.
    """
    service: Service = request.app.state.service
    caller = service.keys.find(token_of(request.scope["headers"]))
    if not service.settings.has_keys:
        raise RequestError(
            "a profile needs a key with the right admin, and this service has no keys: configure one, see "
            "'mintage keys new'",
            code="request.rights",
        )
    caller.check("admin", "")
    query = request.query_params
    seconds, form = profile.read(query.get("seconds", "5"), query.get("format", "html"))
    if _PROFILING.locked():
        raise RequestError(
            "a profile is being taken: one at a time", code="request.busy", retry_after_ms=1000 * profile.LONGEST_S
        )
    async with _PROFILING:
        session = await profile.take(seconds, lambda: service.draining)
        # In a thread, as drawing thousands of samples takes a while.
        text = await asyncio.to_thread(profile.draw, session, form)
    return Response(text, media_type=profile.TYPES[form], headers=_fresh(request))


async def _links(request: Request) -> Response:
    """Return the first page; lead a browser to the console."""
    service: Service = request.app.state.service
    if service.settings.console != OFF and "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/console/", 303, {"Vary": "Accept", "Cache-Control": "no-store"})
    headers = {
        "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    return HTMLResponse(_LINKS, headers=headers)


ROUTES: Final = (
    Route("/healthz", _healthz, methods=_METHODS),
    Route("/readyz", _readyz, methods=_METHODS),
    Route("/metrics", _metrics, methods=["GET"]),
    Route("/debug/profile", _profile, methods=["GET"]),
    Route("/", _links, methods=["GET"]),
)
