"""The frame of a page: its request, with the caller, the parameters and what it reads, and the answer."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import escape
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from mintage import __version__
from mintage.errors import RequestError
from mintage.server.config.keys import Caller, token_of
from mintage.server.config.values import is_loopback, shown
from mintage.server.console import text
from mintage.server.console.query import Query, fields_of, malformed
from mintage.server.console.session import Session, Sessions
from mintage.server.console.shared import FRESH_S
from mintage.server.console.table import Table
from mintage.server.core.origin import foreign
from mintage.server.core.service import Service

T = TypeVar("T")
_HERE: Final = Path(__file__).parent
TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATIC: Final = {path.name: path.read_bytes() for path in (_HERE / "static").iterdir() if path.suffix in TYPES}
"""The files that browsers load, by name."""
URLS: Final = {
    name: f"/console/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}" for name, content in STATIC.items()
}
"""The URL of each, which changes with it."""
NOTICES: Final[dict[str, str]] = {}
"""The notices of the pages after an action, by the parameter ``done``."""
_JUST_CHANGED_S: Final = 1.0
_PROXIED: Final = frozenset({b"forwarded", b"via", b"x-real-ip"})
"""Headers that only a proxy adds, beside those that begin with ``X-Forwarded-``."""

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
    each.__name__: each for each in (text.moment, text.number, text.counted, text.duration, text.setting, text.prose)
}
TEMPLATES.filters["exact"] = escape
TEMPLATES.globals |= {"version": __version__, "static": URLS}


class PageRequest(Request):
    """A request for a page."""

    caller: Caller
    """The key that signed in, or the one in the header ``Authorization``; anybody if no keys are configured."""

    def __init__(self, request: Request) -> None:
        super().__init__(request.scope, request.receive)
        self.service: Service = self.app.state.service
        self.store = self.service.store
        """The service's store. Call its verbs by :meth:`read`, as they block."""
        self.sessions: Sessions = self.app.state.sessions
        self.client_host = self.client.host if self.client else ""
        self.is_from_elsewhere = self.headers.get("sec-fetch-site") == "cross-site"
        """True if a link of another site led here."""
        self.stale_s: float | None = None
        """The age of what was read, in seconds, if the store is away."""
        self._has_form = False

    @cached_property
    def query(self) -> Query:
        """The parameters of the URL."""
        return Query(self.scope["path"], self.scope["query_string"])

    @cached_property
    def console_session(self) -> Session:
        """The session of the browser; a new one of anybody if it has none that is valid."""
        return self.sessions.find(self, "console") or self.sessions.find(self, "form") or self.sessions.begin()

    @property
    def address(self) -> str:
        """The path and the query, as they were sent."""
        path, query = quote(self.scope["path"]), self.scope["query_string"].decode("latin-1")
        return f"{path}?{query}" if query else path

    def find_caller(self) -> None:
        """Set the caller, whose rate the request counts against, whatever it asks the service for.

        Without keys it is anybody on this machine, with every right but ``admin``; no page of another site.

        :raises RequestError: ``request.key``: nobody has signed in; ``request.rights``; ``request.rate``.
        """
        keys, key = self.service.keys, token_of(self.scope["headers"])
        has_keys = self.service.settings.has_keys
        if not has_keys:
            self._check_near()
        found = keys.named(self.console_session.key) if has_keys and key is None else keys.find(key)
        self.state.facts.caller = found.name
        self.state.may_navigate = True
        self.service.pace(found)
        self.caller = replace(found, bucket=None)

    def _check_near(self) -> None:
        """Refuse a request to a service without keys from another machine, or from a page of another site."""
        headers = self.scope["headers"]
        if (refusal := foreign(self.method, headers)) is not None:
            raise refusal
        asked = self.headers
        is_of_page = asked.get("sec-fetch-mode") != "navigate" or asked.get("sec-fetch-dest", "document") != "document"
        if asked.get("sec-fetch-site") in {"cross-site", "same-site"} and is_of_page:
            raise RequestError("a page of another site may link to this page, but not load it", code="request.rights")
        is_proxied = any(name in _PROXIED or name.startswith(b"x-forwarded-") for name, _ in headers)
        if is_proxied or not is_loopback(self.client_host.removeprefix("::ffff:")):
            raise RequestError(
                "without keys, the console answers only on the machine of the service: configure keys, see "
                "'mintage keys new'",
                code="request.rights",
            )

    async def read(self, name: str, verb: Callable[..., T], *args: Any, fresh_s: float = FRESH_S) -> T:
        """Return the answer of a verb of the store, if the caller may describe the name; ``""`` for all names.

        All viewers share an answer for five seconds, and for one second on the page after an action. If the store is
        away, the last answer is returned, and the page says how old it is.

        :param verb: a verb of the store, or a named function. It runs in a thread; its arguments must be hashable.
        :raises RequestError: ``request.rights``.
        :raises StoreError: ``store.unavailable``: the store is away, and has not answered before.
        """
        self.caller.check("describe", name)
        value: T
        if self.query.values.get("done") in NOTICES:
            fresh_s = _JUST_CHANGED_S
        value, age_s = await self.app.state.reads.read(verb, *args, fresh_s=fresh_s)
        if age_s is not None:
            self.stale_s = max(age_s, self.stale_s or 0.0)
        return value

    async def posted(self, *names: str) -> dict[str, str]:
        """Return the fields of a form that a page of this session sent, each of them once.

        :raises RequestError: ``request.rights``: it is from elsewhere; ``request.malformed``, also when the client went
            away; ``request.size``.
        """
        if self.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise RequestError("a page of another site may not send this form", code="request.rights")
        limit = self.service.settings.max_request_bytes
        body = bytearray()
        try:
            async for chunk in self.stream():
                body += chunk
                if len(body) > limit:
                    raise RequestError(
                        f"the form is longer than the {limit} bytes of max_request_bytes", code="request.size"
                    )
        except ClientDisconnect as error:
            raise malformed("the client went away before the end of its form") from error
        values = fields_of(bytes(body), "form")
        self.sessions.check(self.console_session, values.pop("token", ""))
        if missing := sorted(set(names) - values.keys()):
            raise malformed(f"the form needs the field {missing[0]!r}")
        if unknown := sorted(values.keys() - set(names)):
            raise malformed(f"the form has no field {shown(unknown[0], 60)}")
        return values

    async def page(
        self,
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
        :param tables: the tables of the page; the template has the first one as ``table``. With several,
            ``?table=NAME`` says which one is the file.
        :param live: whether the browser fetches it again every five seconds; or the seconds, if a page costs more.
        :param public: whether it is shown to those who have not signed in.
        :param values: the variables of the template.
        :raises RequestError: ``request.malformed``: the URL has a parameter that the page does not know, or asks for a
            file of a page without a table.
        """
        query = self.query
        form = query.one_of("format", ("html", "csv", "json"), "html")
        by_name = {each.name: each for each in tables}
        chosen = query.one_of("table", list(by_name), next(iter(by_name), ""))
        if status < 400:
            query.check()
            if form != "html" and not tables:
                raise malformed(f"this page has no table that {form} could be: leave format out")
        if form != "html" and tables:
            return await asyncio.to_thread(by_name[chosen].file, form)
        # A link elsewhere may not claim the notice of an action, which is for its redirect.
        is_from_here = self.headers.get("sec-fetch-site", "same-origin") == "same-origin"
        known: dict[str, Any] = {
            "request": self,
            "query": query,
            "title": title,
            "tables": tables,
            "table": tables[0] if tables else None,
            "live": live,
            "public": public,
            "url": query.link() if "done" in query.values else self.address,
            "notice": NOTICES.get(query.values.get("done", "")) if is_from_here else None,
            "facts": self.state.facts,
            "now": datetime.now(UTC),
            "pid": os.getpid(),
        }
        body = await asyncio.to_thread(TEMPLATES.get_template(template).render, known | values)
        response = HTMLResponse(body, status)
        # Only a page with a form begins a session: a link from another site comes without the cookie of an earlier one.
        if self._has_form:
            self.sessions.write(self.console_session, self, response)
        return response

    def token(self) -> str:
        """Return the token for a form of the page, which begins a session if there is none."""
        self._has_form = True
        return self.sessions.token(self.console_session)


def route(
    path: str, handler: Callable[[PageRequest], Awaitable[Response]], *methods: str, public: bool = False
) -> Route:
    """Return the route of a page.

    :param handler: returns the answer; the caller is known, unless the page is public.
    """

    async def answer(request: Request) -> Response:
        asked = PageRequest(request)
        if not public:
            asked.find_caller()
        return await handler(asked)

    return Route(path, answer, methods=[*methods])
