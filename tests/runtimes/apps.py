"""Applications for the web servers of the suite: each request mints."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from mintage import before_snapshot
from tests.runtimes.minting import mint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable


def wsgi(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Mint, and answer with the process id."""
    mint()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d" % os.getpid()]


async def asgi(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Mint in the event loop, and answer with the process id; at the end of the lifespan release."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    mint()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"%d" % os.getpid()})


async def lifespan(
    receive: Callable[[], Awaitable[dict[str, Any]]], send: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
    """Release when the server stops: uvicorn ends itself by the signal it received, without the exit of Python."""
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await asyncio.to_thread(before_snapshot)
    await send({"type": "lifespan.shutdown.complete"})


application = wsgi
