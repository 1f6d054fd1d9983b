"""The frame of a page: its caller, what it reads, its parameters, and the answer."""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import escape
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from mintage import __version__
from mintage.errors import RequestError
from mintage.server.config.keys import Caller, token_of
from mintage.server.config.values import is_loopback, shown
from mintage.server.console import text
from mintage.server.console.query import Query, fields_of, malformed
from mintage.server.console.shared import FRESH_S
from mintage.server.core.origin import foreign

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mintage.server.console.session import Sessions
    from mintage.server.console.table import Table
    from mintage.server.core.service import Service
    from mintage.store import Store

T = TypeVar("T")
_HERE: Final = Path(__file__).parent
STATIC: Final = {
    path.name: path for path in sorted((_HERE / "static").iterdir()) if path.suffix in {".css", ".js", ".svg"}
}
"""The files that browsers load, by name."""
NOTICES: Final[dict[str, str]] = {}
"""The notices of the pages after an action, by the parameter ``done``."""
_JUST_CHANGED_S: Final = 1.0
_PROXIED: Final = frozenset({b"forwarded", b"via", b"x-real-ip"})
"""Headers that only a proxy adds, beside those that begin with ``X-Forwarded-``."""


def service_of(request: Request) -> Service:
    """Return the service."""
    found: Service = request.app.state.service
    return found


def store_of(request: Request) -> Store:
    """Return the service's store. Call its verbs by :func:`read`, as they block."""
    return service_of(request).store


# --- callers --------------------------------------------------------------------------------------------------------


def caller(request: Request) -> Caller:
    """Return the caller of a request: the key that signed in, or the one in the header ``Authorization``.

    Without keys it is anybody on this machine, with every right but ``admin``; no page of another site. A request
    counts once against the rate of its key, whatever it asks the service for.

    :raises RequestError: ``request.key``: nobody has signed in; ``request.rights``; ``request.rate``.
    """
    service, facts = service_of(request), request.state.facts
    if not service.settings.has_keys:
        _check_near(request)
        return service.keys.find(None)
    key = token_of(request.scope["headers"])
    if key is not None:
        found = service.keys.find(key)
    else:
        sessions: Sessions = request.app.state.sessions
        found = service.keys.named(sessions.of(request).key)
    facts.caller = found.name
    if not getattr(request.state, "is_paced", False):
        request.state.is_paced = True
        service.pace(found)
    return replace(found, bucket=None)


def _check_near(request: Request) -> None:
    """Refuse a request to a service without keys from another machine, or from a page of another site.

    :raises RequestError: ``request.rights``.
    """
    if (refusal := foreign(request.method, request.scope["headers"])) is not None:
        raise refusal
    asked = request.headers
    is_of_a_page = asked.get("sec-fetch-mode") != "navigate" or asked.get("sec-fetch-dest", "document") != "document"
    if asked.get("sec-fetch-site") in {"cross-site", "same-site"} and is_of_a_page:
        raise RequestError("a page of another site may link to this page, but not load it", code="request.rights")
    host = request.client.host.removeprefix("::ffff:") if request.client else ""
    if not is_loopback(host) or any(
        name in _PROXIED or name.startswith(b"x-forwarded-") for name, _ in request.scope["headers"]
    ):
        raise RequestError(
            "without keys, the console answers only on the machine of the service: configure keys, see "
            "'mintage keys new'",
            code="request.rights",
        )


async def read(
    request: Request, right: str, name: str, verb: Callable[..., T], *args: Any, fresh_s: float = FRESH_S
) -> T:
    """Return the answer of a verb of the store, if the caller has the right for the name; ``""`` for all names.

    All viewers share an answer for five seconds, and for one second on the page after an action. If the store is away,
    the last answer is returned, and the page says how old it is.

    :param verb: a verb of the store, or a named function. It runs in a thread; its arguments must be hashable.
    :raises RequestError: ``request.key``, ``request.rights``, ``request.rate``.
    :raises StoreError: ``store.unavailable``: the store is away, and has not answered before.
    """
    caller(request).check(right, name)
    value: T
    if Query.of(request).values.get("done") in NOTICES:
        fresh_s = _JUST_CHANGED_S
    value, age_s = await request.app.state.reads.read(verb, *args, fresh_s=fresh_s)
    if age_s is not None:
        request.state.stale_s = max(age_s, getattr(request.state, "stale_s", 0.0))
    return value


# --- forms --------------------------------------------------------------------------------------------------------


async def posted(request: Request, *names: str) -> dict[str, str]:
    """Return the fields of a form that a page of this session sent, each of them once.

    :raises RequestError: ``request.rights``: it is from elsewhere; ``request.malformed``, also when the client went
        away; ``request.size``.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise RequestError("a page of another site may not send this form", code="request.rights")
    limit = service_of(request).settings.max_request_bytes
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise RequestError(
                    f"the form is longer than the {limit} bytes of max_request_bytes", code="request.size"
                )
    except ClientDisconnect as error:
        raise malformed("the client went away before the end of its form") from error
    values = fields_of(bytes(body), "form")
    sessions: Sessions = request.app.state.sessions
    sessions.check(sessions.of(request), values.pop("token", ""))
    if missing := sorted(set(names) - values.keys()):
        raise malformed(f"the form needs the field {missing[0]!r}")
    if unknown := sorted(values.keys() - set(names)):
        raise malformed(f"the form has no field {shown(unknown[0], 60)}")
    return values


# --- answers --------------------------------------------------------------------------------------------------------


def static_url(name: str) -> str:
    """Return the URL of a file of ``static/``, which changes with the file."""
    digest = hashlib.sha256(STATIC[name].read_bytes()).hexdigest()[:12]
    return f"/console/static/{name}?v={digest}"


TEMPLATES: Final = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
    finalize=text.finalize,
)
TEMPLATES.filters |= {
    "moment": text.moment,
    "number": text.number,
    "duration": text.duration,
    "exact": escape,
}
TEMPLATES.globals |= {
    "version": __version__,
    "notices": NOTICES,
    "static": {name: static_url(name) for name in STATIC},
}


async def page(
    request: Request,
    template: str,
    *,
    title: str,
    status: int = 200,
    tables: Sequence[Table] = (),
    live: bool | int = False,
    public: bool = False,
    **values: Any,
) -> Response:
    """Return a page, or the rows of a table as a file with ``?format=csv`` or ``?format=json``.

    A thread renders it, as a page of a thousand rows takes milliseconds.

    :param template: a file of ``templates/``.
    :param tables: the tables of the page; the template has the first one as ``table``. With several, ``?table=NAME``
        says which one is the file.
    :param live: whether the browser fetches it again every five seconds; or the seconds, if a page costs more.
    :param public: whether it is shown to those who have not signed in.
    :param values: the variables of the template.
    :raises RequestError: as :func:`caller`; ``request.malformed``: the URL has a parameter that the page does not know.
    """
    if not public:
        caller(request)
    query = Query.of(request)
    form = query.one_of("format", ("html", "csv", "json"), "html")
    by_name = {each.name: each for each in tables}
    chosen = query.one_of("table", list(by_name), next(iter(by_name), ""))
    if status < 400:
        query.check()
    if form != "html" and tables:
        return await asyncio.to_thread(by_name[chosen].file, form)
    known: dict[str, Any] = {
        "title": title,
        "tables": tables,
        "table": tables[0] if tables else None,
        "live": live,
        "query": query,
        "url": query.link() if "done" in query.values else url_of(request),
        # The notice of an action is for its redirect: a link elsewhere may not claim one.
        "is_from_here": request.headers.get("sec-fetch-site", "same-origin") == "same-origin",
        "facts": request.state.facts,
        "service": service_of(request),
        "now": datetime.now(UTC),
        "pid": os.getpid(),
        "stale_s": getattr(request.state, "stale_s", None),
        "key": request.state.facts.caller,
        "public": public,
        "token": lambda: _token(request),
    }
    body = await asyncio.to_thread(TEMPLATES.get_template(template).render, known | values)
    response = HTMLResponse(body, status)
    # Only a page with a form begins a session: a link from another site comes without the cookie of an earlier one.
    if getattr(request.state, "has_form", False):
        request.app.state.sessions.write(request, response)
    return response


def url_of(request: Request) -> str:
    """Return the path and the query of a request, as they were sent."""
    path, query = quote(request.scope["path"]), request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _token(request: Request) -> str:
    """Return the token for a form of the page, which begins a session if there is none."""
    sessions: Sessions = request.app.state.sessions
    request.state.has_form = True
    return sessions.token(sessions.of(request))
