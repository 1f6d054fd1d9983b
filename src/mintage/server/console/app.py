"""The application of the console: its routes, its static files, its errors as pages, and its security headers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import structlog
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from mintage._core.lane import Bucket
from mintage.errors import CATALOGUE, MintError, RequestError
from mintage.server.config.values import shown
from mintage.server.console.frame import STATIC, TEMPLATES, page, posted, service_of, url_of
from mintage.server.console.pages import actions, advisor, ends, events, health, pools, use, who
from mintage.server.console.query import Query
from mintage.server.console.session import Sessions
from mintage.server.console.shared import Reads
from mintage.server.core.events import Kept

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mintage.server.core.service import Service

log: Any = structlog.get_logger("mintage.server")

PAGES: Final = (health, ends, pools, who, use, events, advisor)
"""The modules of pages, in the order of the navigation."""
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer, with which a browser would send the forms of a page with the origin null.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""The headers of all answers."""
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_WRONG_KEYS_A_SECOND: Final = 5


def create_app(service: Service) -> ASGIApp:
    """Return the application of a service's console."""
    TEMPLATES.globals["navigation"] = [(each.TITLE, f"/console{each.PATH}") for each in PAGES]
    routes = [route for each in (*PAGES, actions) for route in each.ROUTES]
    app = Starlette(
        routes=[*routes, *_ROUTES],
        middleware=[Middleware(_HeadersMiddleware)],
        exception_handlers={MintError: _refuse, HTTPException: _refuse_path, Exception: _fail},
    )
    app.router.redirect_slashes = False
    app.state.service = service
    app.state.sessions = Sessions()
    app.state.reads = Reads(service)
    app.state.events = Kept()
    app.state.wrong_keys = Bucket(_WRONG_KEYS_A_SECOND, 4 * _WRONG_KEYS_A_SECOND)
    return app


class _HeadersMiddleware:
    """The middleware that adds the headers of all answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope["state"]["facts"].operation = "console"

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, answer)


# --- static files ---------------------------------------------------------------------------------------------------


async def _static(request: Request) -> Response:
    """Return a file that browsers may keep, as its URL changes with it."""
    path = STATIC.get(request.path_params["name"])
    if path is None:
        raise HTTPException(404)
    content = await asyncio.to_thread(path.read_bytes)
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, headers=headers, media_type=_TYPES[path.suffix])


# --- sign-in --------------------------------------------------------------------------------------------------------


def _goal(text: str) -> str:
    """Return the page of the console to go to after the sign-in: the first one, unless the text is the URL of one."""
    is_page = text.startswith("/console/") and text.isascii() and text.isprintable() and "\\" not in text
    return text if is_page else "/console/"


async def _sign_in(request: Request) -> Response:
    """Return the form that takes a key."""
    goal = _goal(Query.of(request).text("next", "/console/"))
    if _is_from_elsewhere(request):
        return await _ask_again(request)
    if not service_of(request).settings.has_keys:
        return RedirectResponse(goal, 303)
    return await page(request, "sign-in.html", title="Sign in", goal=goal, wrong="", public=True)


async def _take_key(request: Request) -> Response:
    """Begin the session of a key, and end the one before it."""
    service = service_of(request)
    if not service.settings.has_keys:
        raise RequestError("without keys, nobody signs in: configure keys", code="request.rights")
    fields = await posted(request, "key", "next")
    goal = _goal(fields["next"])
    try:
        caller = service.keys.find(fields["key"].strip())
    except RequestError as error:
        # A key that is right does not wait for wrong ones, so nobody can lock others out.
        if wait_ms := request.app.state.wrong_keys.take():
            raise RequestError(
                f"too many wrong keys: try again in {wait_ms} ms", code="request.rate", retry_after_ms=wait_ms
            ) from None
        request.state.facts.note(error)
        wrong = "This key is not known to the service."
        return await page(request, "sign-in.html", title="Sign in", status=401, goal=goal, wrong=wrong, public=True)
    request.state.facts.caller = caller.name
    service.pace(caller)
    sessions: Sessions = request.app.state.sessions
    sessions.end(sessions.of(request))
    log.info("signed in", key=caller.name, client=request.client.host if request.client else "")
    sessions.begin(request, caller.name)
    response = RedirectResponse(goal, 303)
    sessions.write(request, response)
    return response


async def _sign_out(request: Request) -> Response:
    """End a session."""
    await posted(request)
    sessions: Sessions = request.app.state.sessions
    session = sessions.of(request)
    sessions.end(session)
    log.info("signed out", key=session.key, client=request.client.host if request.client else "")
    return RedirectResponse("/console/sign-in", 303)


# --- errors ---------------------------------------------------------------------------------------------------------


async def _refuse(request: Request, error: Exception) -> Response:
    """Return the page of an error: what is wrong, the remedy, its code and the trace id."""
    assert isinstance(error, MintError)  # noqa: S101 - the handlers say so
    facts, entry = request.state.facts, CATALOGUE[error.code]
    headers: dict[str, str] = facts.note(error)
    is_file = b"format=" in request.scope["query_string"]
    is_read = request.method == "GET"
    if error.code == "request.key" and is_read and not is_file and not request.headers.get("authorization"):
        return await _lead_to_sign_in(request)
    if is_file:
        body = {"code": error.code, "detail": str(error), "trace_id": facts.trace_id}
        return JSONResponse(body, entry.http, headers)
    # The page of an error has no parameters: they may be what is wrong.
    request.state.query = Query(request.scope["path"])
    # A page of a store that is away comes back by itself.
    is_live = is_read and entry.http == 503
    response = await page(
        request,
        "error.html",
        title=_TITLES.get(entry.http, "The request is refused"),
        status=entry.http,
        error=error,
        entry=entry,
        live=is_live,
        public=True,
    )
    response.headers.update(headers)
    return response


_TITLES: Final = {
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    405: "Not allowed",
    429: "Too many requests",
    500: "The service has a fault",
    503: "Not available now",
}


async def _lead_to_sign_in(request: Request) -> Response:
    """Lead a browser to the sign-in, and back afterwards."""
    if _is_from_elsewhere(request):
        return await _ask_again(request)
    return RedirectResponse(f"/console/sign-in?{urlencode({'next': url_of(request)})}", 303)


def _is_from_elsewhere(request: Request) -> bool:
    """Return True if a link of another site led here."""
    return request.headers.get("sec-fetch-site") == "cross-site"


async def _ask_again(request: Request) -> Response:
    """Return a page that leads to itself.

    The browser keeps the cookie back from a request that a link elsewhere caused, and sends it with one that this page
    causes. So a link from a chat works for those who have signed in.
    """
    request.state.query = Query(request.scope["path"])
    return await page(request, "again.html", title="One moment", goal=url_of(request), public=True)


async def _refuse_path(request: Request, error: Exception) -> Response:
    """Return the page for a path or a method that does not exist."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        path = request.scope["path"].removeprefix(request.scope["root_path"])
        routes = [each for each in request.app.routes if each.path_regex.match(path)]
        known = ", ".join(sorted({method for each in routes for method in each.methods}))
        message = f"this page does not allow {request.method[:20]}: use {known}"
        response = await _refuse(request, RequestError(message, code="request.method"))
        response.headers["Allow"] = known
        return response
    message = f"the console has no page {shown(request.scope['path'], 100)}"
    return await _refuse(request, RequestError(message, code="request.path"))


async def _fail(request: Request, _: Exception) -> Response:
    """Return the page for a fault. Starlette raises it again, and the service logs it."""
    message = "the service has a fault: its log has more at the trace id"
    return await _refuse(request, RequestError(message, code="service.failed"))


_ROUTES: Final[tuple[Any, ...]] = (
    Route("/static/{name}", _static, methods=["GET"]),
    Route("/sign-in", _sign_in, methods=["GET"]),
    Route("/sign-in", _take_key, methods=["POST"]),
    Route("/sign-out", _sign_out, methods=["POST"]),
)
