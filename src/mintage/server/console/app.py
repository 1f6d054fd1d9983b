"""The application of the console: its routes, its static files, its errors as pages, and its security headers."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlencode

import structlog
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mintage._core.lane import Bucket
from mintage.errors import CATALOGUE, MintError, RequestError
from mintage.server.config.values import shown
from mintage.server.console.frame import STATIC, TEMPLATES, TYPES, URLS, PageRequest, route
from mintage.server.console.pages import actions, advisor, ends, events, health, pools, use, who
from mintage.server.console.query import Query
from mintage.server.console.session import Sessions, cookie_name
from mintage.server.console.shared import Reads
from mintage.server.core.events import Kept
from mintage.server.core.service import Service

log: Any = structlog.get_logger("mintage.server")

PAGES: Final = (
    ("/", health.health, "Health"),
    ("/ends", ends.ends, "Ends"),
    ("/pools", pools.pools, "Pools"),
    ("/pools/{pool}", pools.pool, ""),
    ("/pools/{pool}/{node}", pools.node, ""),
    ("/who", who.show, "Who"),
    ("/use", use.use, "Use"),
    ("/namespaces/{name}", use.namespace, ""),
    ("/events", events.show, "Events"),
    ("/choose", advisor.choose, "Choose"),
)
"""Each page: its path below ``/console``, its handler, and its title in the navigation if it is there."""
TEMPLATES.globals["navigation"] = [(title, f"/console{path}") for path, _, title in PAGES if title]
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
_WRONG_KEYS_A_SECOND: Final = 5


def create_app(service: Service) -> ASGIApp:
    """Return the application of a service's console."""
    app = Starlette(
        routes=[
            *(route(path, handler, "GET") for path, handler, _ in PAGES),
            *(route(action.path, partial(actions.act, action), "GET", "POST") for action in actions.ACTIONS),
            route("/sign-in", _sign_in, "GET", "POST", public=True),
            route("/sign-out", _sign_out, "POST", public=True),
            Route("/static/{name}", _static, methods=["GET"]),
        ],
        exception_handlers={MintError: _refuse, HTTPException: _refuse_path, Exception: _fail},
    )
    app.router.redirect_slashes = False
    app.state.service = service
    app.state.sessions = Sessions()
    app.state.reads = Reads(service)
    app.state.events = Kept()
    app.state.wrong_keys = Bucket(_WRONG_KEYS_A_SECOND, 4 * _WRONG_KEYS_A_SECOND)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["facts"].operation = "console"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await app(scope, receive, send_with_headers)

    return answer


async def _static(request: Request) -> Response:
    """Return a file. Browsers may keep it under its own URL, but not under that of another version of mintage."""
    name, query = request.path_params["name"], request.url.query
    if name not in STATIC:
        raise HTTPException(404)
    is_own = URLS[name].endswith(f"?{query}")
    headers = {"Cache-Control": "public, max-age=31536000, immutable" if is_own else "no-store"}
    return Response(STATIC[name], headers=headers, media_type=TYPES[PurePath(name).suffix])


# --- sign-in --------------------------------------------------------------------------------------------------------


def _goal(text: str) -> str:
    """Return the page of the console to go to after the sign-in: the first one, unless the text is the URL of one."""
    is_page = text.startswith("/console/") and text.isascii() and text.isprintable() and "\\" not in text
    return text if is_page else "/console/"


async def _sign_in(request: PageRequest) -> Response:
    """Return the form that takes a key. A key that it sends begins a session, and ends the one before it."""
    request.console_session = request.sessions.find(request, "form") or request.sessions.begin()
    if request.method == "POST":
        return await _take_key(request)
    goal = _goal(request.query.text("next"))
    if request.is_from_elsewhere:
        return await _ask_again(request)
    if not request.service.settings.has_keys:
        return RedirectResponse(goal, 303)
    return await request.page("sign-in.html", title="Sign in", goal=goal, wrong="", public=True)


async def _take_key(request: PageRequest) -> Response:
    service, sessions = request.service, request.sessions
    if not service.settings.has_keys:
        raise RequestError("without keys, nobody signs in: configure keys", code="request.rights")
    fields = await request.posted("key", "next")
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
        return await request.page("sign-in.html", title="Sign in", status=401, goal=goal, wrong=wrong, public=True)
    request.state.facts.caller = caller.name
    service.pace(caller)
    sessions.end(sessions.find(request, "console") or request.console_session)
    log.info("signed in", key=caller.name, client=request.client_host)
    response = RedirectResponse(goal, 303)
    sessions.write(sessions.begin(caller.name), request, response)
    return response


async def _sign_out(request: PageRequest) -> Response:
    """End a session."""
    await request.posted()
    session = request.console_session
    request.sessions.end(session)
    log.info("signed out", key=session.key, client=request.client_host)
    response = RedirectResponse("/console/sign-in", 303)
    # A browser that kept a page for its back button forgets it as the cookie changes.
    response.delete_cookie(cookie_name(request, "console"), "/console", httponly=True, samesite="strict")
    return response


# --- errors ---------------------------------------------------------------------------------------------------------


async def _refuse(request: Request, error: Exception) -> Response:
    """Return the page of an error: what is wrong, the remedy, its code and the trace id."""
    assert isinstance(error, MintError)  # noqa: S101 - the handlers say so
    facts, entry, refused = request.state.facts, CATALOGUE[error.code], PageRequest(request)
    headers: dict[str, str] = facts.note(error)
    is_file = any(each in request.scope["query_string"] for each in (b"format=csv", b"format=json"))
    is_read = request.method in {"GET", "HEAD"}
    if error.code == "request.key" and is_read and not is_file and not request.headers.get("authorization"):
        if refused.is_from_elsewhere:
            return await _ask_again(refused)
        return RedirectResponse(f"/console/sign-in?{urlencode({'next': refused.address})}", 303)
    if is_file:
        body = {"code": error.code, "detail": str(error), "trace_id": facts.trace_id}
        return JSONResponse(body, entry.http, headers)
    # The page of an error has no parameters: they may be what is wrong.
    refused.query = Query(request.scope["path"])
    response = await refused.page(
        "error.html",
        title=_TITLES.get(entry.http, "The request is refused"),
        status=entry.http,
        error=error,
        entry=entry,
        # A page comes back by itself after its store was away, or its key had too many requests.
        live=is_read and entry.http in {429, 503},
        public=not getattr(request.state, "may_navigate", False),
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


async def _ask_again(request: PageRequest) -> Response:
    """Return a page that leads to itself.

    The browser keeps the cookie back from a request that a link elsewhere caused, and sends it with one that this page
    causes. So a link from a chat works for those who have signed in.
    """
    request.query = Query(request.scope["path"])  # the page that it leads to reads the parameters
    return await request.page("again.html", title="One moment", goal=request.address, public=True)


async def _refuse_path(request: Request, error: Exception) -> Response:
    """Return the page for a path or a method that does not exist."""
    if isinstance(error, HTTPException) and error.headers:
        known = ", ".join(sorted(error.headers["Allow"].split(", ")))
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
