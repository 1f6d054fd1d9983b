"""The page of events: all that happened, in all workers."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from markupsafe import Markup
from starlette.routing import Route

from mintage.errors import CATALOGUE
from mintage.server.console.frame import caller, page, read, service_of
from mintage.server.console.query import Query
from mintage.server.console.table import Column, Table
from mintage.server.core.events import Event, events

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mintage.server.core.service import Service

TITLE, PATH = "Events", "/events"

COLUMNS: Final = (
    Column("at", "Time", lambda each: each.at, "time"),
    Column("level", "Level", lambda each: each.level, show=lambda each: _badge(each.level)),
    Column("kind", "What happened", lambda each: each.kind),
    Column("text", "Facts", lambda each: each.text),
    Column("actor", "Key", lambda each: each.actor or None),
    Column(
        "trace_id",
        "Trace id",
        lambda each: each.trace_id or None,
        "code",
        link=lambda each: f"/console/events?trace={quote(each.trace_id)}" if each.trace_id else None,
    ),
    Column("pids", "Processes", lambda each: " ".join(map(str, each.pids)), "code"),
)


REFUSALS: Final = (
    Column("code", "Code", lambda each: each[0], "code"),
    Column("count", "Refusals", lambda each: each[1], "number"),
    Column("meaning", "What it means", lambda each: CATALOGUE[each[0]].meaning),
)


_SIGN_INS: Final = frozenset({"signed in", "signed out"})
_CLIENT: Final = re.compile(r"(?:^|(?<=, ))client: [^,]*(?:, |$)")


def refusals(service: Service) -> list[tuple[str, int]]:
    """Return how often all workers have refused a request since the start, by code. Call it in a thread."""
    (found,) = service.metrics.sums("code", "mintage_requests_total")
    return [(code, round(count)) for code, count in found.items() if code != "ok" and count]


def _badge(level: str) -> Markup:
    style = {"warning": "warn", "error": "bad", "critical": "bad"}.get(level)
    return Markup('<span class="badge {}">{}</span>').format(style, level) if style else Markup("{}").format(level)


def _without_key(event: Event) -> Event:
    """Return the event without the key and the client that caused it."""
    return replace(event, actor="", text=_CLIENT.sub("", event.text))


async def show_events(request: Request) -> Response:
    """Show the events, of one kind, actor, trace id or time if the URL has them.

    Without the right ``metrics``, no event says which key or client caused it.
    """
    caller(request).check("describe", "")
    may_see_keys = caller(request).may("metrics", "")
    query = Query.of(request)
    found = await asyncio.to_thread(events, request.app.state.events)
    if not may_see_keys:
        found = [_without_key(each) for each in found if each.kind not in _SIGN_INS]
    kinds = sorted({each.kind for each in found})
    kind, actor, trace = query.text("kind"), query.text("actor"), query.text("trace")
    since, until = query.time("since", None), query.time("until", None)

    def is_wanted(each: Event) -> bool:
        return (
            kind in {"", each.kind}
            and actor in {"", each.actor}
            and trace in {"", each.trace_id}
            and (since is None or each.at >= since)
            and (until is None or each.at < until)
        )

    is_filtered = any((kind, actor, trace, since, until))
    empty = "Nothing happened that these filters let through." if is_filtered else "Nothing happened yet."
    note = "The service keeps the last thousand or so, until it ends."
    tables = [Table(query, "Events", COLUMNS, [*filter(is_wanted, found)], sort="-at", empty=empty, note=note)]
    if may_see_keys:
        counts = await read(request, "describe", "", refusals, service_of(request))
        title, empty = "Refusals since the start, by code", "No request was refused."
        tables.append(Table(query, title, REFUSALS, counts, sort="-count", name="refusals", empty=empty))
    return await page(request, "events.html", title=TITLE, tables=tables, live=True, kinds=kinds)


ROUTES: Final = (Route(PATH, show_events, methods=["GET"]),)
