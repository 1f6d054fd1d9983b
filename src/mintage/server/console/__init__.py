"""The console: pages for the people who run the service, at ``/console/``.

This module is all that a service imports of it before a request for the console.

To add a page, write its handler in ``pages/NAME.py``, and a row in ``PAGES`` of ``app.py``. Its template extends
``base.html`` and fills the block ``main``; ``{{ draw(table) }}`` draws a table. The handler gets a
:class:`frame.PageRequest`, which has its caller and its parameters, reads the store, and makes the answer;
``pages/events.py`` is an example.

A form posts ``<input type="hidden" name="token" value="{{ request.token() }}">``; its handler calls
:meth:`frame.PageRequest.posted`, which checks the token. Errors of :mod:`mintage.errors` that a handler raises become a
page with their code and remedy.
Jinja2 escapes all values, and shows control characters and marks of direction as escapes. The content security policy
allows neither inline scripts nor ``style`` attributes: use classes of ``console.css``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route

from mintage.server.config.values import OFF

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from mintage.server.core.service import Service


def routes(service: Service) -> list[Route | Mount]:
    """Return the routes of the console; none if a setting turns it off."""
    if service.settings.console == OFF:
        return []
    app: ASGIApp | None = None
    importing = asyncio.Lock()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal app
        async with importing:
            if app is None:
                app = await asyncio.to_thread(_import, service)
        await app(scope, receive, send)

    # The links of the first page are relative to no path.
    return [Route("/console", RedirectResponse("/console/", 308), methods=["GET"]), Mount("/console", answer)]


def _import(service: Service) -> ASGIApp:
    from mintage.server.console.app import create_app

    return create_app(service)
