"""The console: pages for the people who run the service, at ``/console/``.

This module is all that a service imports of it before a request for the console.

To add a page, write ``pages/NAME.py`` with ``TITLE`` and ``PATH``, its entry in the navigation, and ``ROUTES``, whose
paths begin below ``/console``, and list the module in ``PAGES`` of ``app.py``. Its template extends ``base.html`` and
fills the block ``main``; ``{{ draw(table) }}`` draws a table. A handler reads with :func:`frame.read`, its parameters
with :class:`query.Query`, and answers with :func:`frame.page`; ``pages/events.py`` is an example.

A form posts ``<input type="hidden" name="token" value="{{ token() }}">``; its handler calls :func:`frame.posted`, which
checks the token. Errors of :mod:`mintage.errors` that a handler raises become a page with their code and remedy.
Jinja2 escapes all values, and shows control characters and marks of direction as escapes. The content security policy
allows neither inline scripts nor ``style`` attributes: use classes of ``console.css``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from mintage.server.config.values import OFF

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from mintage.server.core.service import Service


def routes(service: Service) -> list[Route | Mount]:
    """Return the routes of the console; none if a setting turns it off."""
    if service.settings.console == OFF:
        return []
    return [Route("/console", _slash, methods=["GET"]), Mount("/console", _Console(service))]


async def _slash(_: Request) -> Response:
    """Lead to the first page, as its links are relative to no path."""
    return RedirectResponse("/console/", 308)


class _Console:
    """The application of the console, which a thread imports at the first request."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._app: ASGIApp | None = None
        self._importing = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        async with self._importing:
            if self._app is None:
                self._app = await asyncio.to_thread(_import, self._service)
        await self._app(scope, receive, send)


def _import(service: Service) -> ASGIApp:
    from mintage.server.console.app import create_app

    return create_app(service)
