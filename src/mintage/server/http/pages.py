"""The pages for operators of the service: ``/healthz``, ``/readyz``, ``/metrics`` and ``/debug/profile``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from mintage.errors import RequestError
from mintage.server.config.keys import token_of
from mintage.server.core.health import is_ready
from mintage.server.http.answers import Answer, answered

if TYPE_CHECKING:
    from mintage.server.core.service import Service
    from mintage.server.http.answers import Endpoint, Endpoints, Exchange, Receive, Scope

_FRESH = {"Cache-Control": "no-store"}


def pages(service: Service) -> dict[str, Endpoints]:
    """Return all pages."""
    readyz = _readyz(service)
    return {
        "/healthz": {"GET": _healthz, "OPTIONS": _healthz},
        "/readyz": {"GET": readyz, "OPTIONS": readyz},
        "/metrics": {"GET": _metrics(service)},
        "/debug/profile": {"GET": _profile(service)},
    }


async def _healthz(_: Exchange, _scope: Scope, _receive: Receive) -> Answer:
    """Answer any caller, as long as the event loop turns."""
    return answered({"status": "ok"}, headers=_FRESH)


def _readyz(service: Service) -> Endpoint:
    """Return the page of readiness: 200 while requests can be served. With keys, it names no namespaces."""

    async def readyz(_: Exchange, _scope: Scope, _receive: Receive) -> Answer:
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
        return answered(body, 200 if ready else 503, headers=_FRESH)

    return readyz


def _metrics(service: Service) -> Endpoint:
    """Return the page of the metrics, which needs the right ``metrics``."""

    async def metrics(_: Exchange, scope: Scope, _receive: Receive) -> Answer:
        service.caller(token_of(scope["headers"])).check("metrics", "")
        service.metrics.gather(service)
        # In a thread, as the text of a thousand namespaces would delay other requests.
        text, content_type = await asyncio.to_thread(service.metrics.render)
        return Answer(text, media_type=content_type, headers=_FRESH)

    return metrics


def _profile(service: Service) -> Endpoint:
    """Return the page of the profile, ``?seconds=5&format=html|text|speedscope``, which needs the right ``admin``.

    Without keys nobody has that right, as a profile shows paths of the machine.
    """
    running = False

    async def take(_: Exchange, scope: Scope, _receive: Receive) -> Answer:
        nonlocal running
        from mintage.server.core import profile  # seldom needed

        caller = service.caller(token_of(scope["headers"]))
        if not service.settings.has_keys:
            raise RequestError(
                "a profile needs a key with the right admin, and this service has no keys: configure one, see "
                "'mintage keys new'",
                code="request.rights",
            )
        caller.check("admin", "")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        seconds = profile.read_seconds(query.get("seconds", "5"))
        form = profile.read_form(query.get("format", "html"))
        if running:
            raise RequestError(
                "a profile is being taken: one at a time", code="request.busy", retry_after_ms=1000 * profile.LONGEST_S
            )
        running = True
        try:
            session = await profile.take(seconds, lambda: service.draining)
            # In a thread, as drawing thousands of samples takes a while.
            text = await asyncio.to_thread(profile.draw, session, form)
        finally:
            running = False
        return Answer(text, media_type=profile.TYPES[form], headers=_FRESH)

    return take
