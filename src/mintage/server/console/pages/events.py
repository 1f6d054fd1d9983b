"""The page of events: all that happened, in all workers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.routing import Route

from mintage.errors import RequestError
from mintage.server.config.values import shown
from mintage.server.console.frame import caller, page
from mintage.server.console.query import Query
from mintage.server.console.table import Column, Table
from mintage.server.core.events import Event, events

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

TITLE, PATH = "Events", "/events"

COLUMNS: Final = (
    Column("at", "Time", lambda each: each.at, "time"),
    Column("level", "Level", lambda each: each.level),
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


def _time(query: Query, name: str) -> datetime | None:
    """Return a parameter that is a time in UTC: RFC 3339, or as a field of a form writes it.

    :raises RequestError: ``request.malformed``.
    """
    given = query.text(name)
    if not given:
        return None
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise RequestError(
            f"{name} {shown(given, 60)} is no time: write 2026-11-27T18:00Z", code="request.malformed"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


async def show_events(request: Request) -> Response:
    """Show the events, of one kind, actor, trace id or time if the URL has them."""
    caller(request).check("describe", "")
    query = Query.of(request)
    found = await asyncio.to_thread(events)
    kinds = sorted({each.kind for each in found})
    kind, actor, trace = query.text("kind"), query.text("actor"), query.text("trace")
    since, until = _time(query, "since"), _time(query, "until")

    def is_wanted(each: Event) -> bool:
        return (
            kind in {"", each.kind}
            and actor in {"", each.actor}
            and trace in {"", each.trace_id}
            and (since is None or each.at >= since)
            and (until is None or each.at < until)
        )

    table = Table(
        query,
        "Events",
        COLUMNS,
        list(filter(is_wanted, found)),
        sort="-at",
        empty="Nothing happened that these filters let through."
        if any((kind, actor, trace, since, until))
        else "Nothing happened yet.",
        note="The service keeps the last thousand or so, until it ends.",
    )
    return await page(request, "events.html", title=TITLE, tables=[table], live=True, kinds=kinds)


ROUTES: Final = (Route(PATH, show_events, methods=["GET"]),)
