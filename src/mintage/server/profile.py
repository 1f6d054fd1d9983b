"""``GET /debug/profile``: where the time of the running service goes.

pyinstrument samples the thread of the event loop, which goes on serving meanwhile. With several workers, it is the
profile of whichever was asked.
"""

from __future__ import annotations

import asyncio
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.routing import Route

from mintage.errors import RequestError
from mintage.server.operation import token_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyinstrument.renderers import Renderer
    from pyinstrument.session import Session
    from starlette.requests import Request

    from mintage.server.service import Service

__all__ = ["routes"]

LONGEST_S: Final = 60
MOST_SAMPLES: Final = 10_000
"""A longer profile has coarser samples, so that its memory is bounded."""
TYPES: Final = {"html": "text/html", "text": "text/plain", "speedscope": "application/json"}


def routes(service: Service) -> list[Route]:
    """``GET /debug/profile?seconds=5&format=html|text|speedscope``, for whoever has the right ``admin``.

    Without keys there is no such caller: a profile shows paths of the machine.
    """
    running = False

    async def profile(request: Request) -> Response:
        nonlocal running
        caller = service.caller(token_of(request))
        if not service.settings.has_keys:
            raise RequestError(
                "a profile needs a key with the right admin, and this service has no keys: configure one, see "
                "'mintage keys new'",
                code="request.rights",
            )
        caller.check("admin", "")
        seconds = _seconds(request.query_params.get("seconds", "5"))
        form = request.query_params.get("format", "html")
        if form not in TYPES:
            raise RequestError(f"format {form[:40]!r} is not one of {', '.join(TYPES)}", code="request.malformed")
        if running:
            raise RequestError(
                "a profile is being taken: one at a time", code="request.busy", retry_after_ms=1000 * LONGEST_S
            )
        running = True
        try:
            session = await _taken(service, seconds)
            # In a thread: drawing thousands of samples takes a while.
            text = await asyncio.to_thread(_drawn, session, form)
        finally:
            running = False
        return Response(text, media_type=TYPES[form], headers={"Cache-Control": "no-store"})

    return [Route("/debug/profile", profile)]


def _seconds(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= LONGEST_S:
        raise RequestError(f"seconds {text[:40]!r} is not a whole number in 1..{LONGEST_S}", code="request.malformed")
    return int(text)


async def _taken(service: Service, seconds: int) -> Session:
    from pyinstrument import Profiler

    # Not of this one request, but of all that the loop does.
    profiler = Profiler(interval=max(0.001, seconds / MOST_SAMPLES), async_mode="disabled")
    profiler.start(target_description=f"mintage serve, {seconds} s")
    try:
        until = time.monotonic() + seconds
        # A service that stops waits for nobody's profile.
        while not service.draining and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.2))
    finally:
        session = profiler.stop()
    return session


def _drawn(session: Session, form: str) -> str:
    from pyinstrument.renderers import ConsoleRenderer, HTMLRenderer, SpeedscopeRenderer

    renderers: dict[str, Callable[[], Renderer]] = {
        "html": HTMLRenderer,
        "text": partial(ConsoleRenderer, unicode=True, color=False, show_all=True),
        "speedscope": partial(SpeedscopeRenderer, show_all=True),
    }
    return renderers[form]().render(session)
