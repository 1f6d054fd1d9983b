"""The page of events: all that happened, in all workers."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import datetime
from typing import Final
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from mintage.errors import CATALOGUE
from mintage.server.console.frame import PageRequest
from mintage.server.console.table import Column, Table
from mintage.server.core.events import Event, events
from mintage.server.core.service import Service

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
    found = service.metrics.sums("mintage_requests_total", "code")
    return [(code, round(count)) for code, count in found.items() if code != "ok" and count]


def _badge(level: str) -> Markup:
    style = {"warning": "warn", "error": "bad", "critical": "bad"}.get(level)
    return Markup('<span class="badge {}">{}</span>').format(style, level) if style else Markup("{}").format(level)


def _local(at: datetime | None) -> str:
    """Return a time as a browser's field for one has it: it drops all other forms, and the filter with them."""
    return at.replace(tzinfo=None).isoformat(timespec="seconds").removesuffix(":00") if at else ""


def _without_key(event: Event) -> Event:
    """Return the event without the key and the client that caused it."""
    return replace(event, actor="", text=_CLIENT.sub("", event.text))


async def show(request: PageRequest) -> Response:
    """Show the events, of one kind, actor, trace id or time if the URL has them.

    Without the right ``metrics``, no event says which key or client caused it.
    """
    request.caller.check("describe", "")
    may_see_keys = request.caller.may("metrics", "")
    query = request.query
    found = await asyncio.to_thread(events, request.app.state.events)
    if not may_see_keys:
        found = [_without_key(each) for each in found if each.kind not in _SIGN_INS]
    kinds = sorted({each.kind for each in found})
    texts = {"kind": query.text("kind"), "actor": query.text("actor"), "trace_id": query.text("trace")}
    since, until = query.time("since", None), query.time("until", None)
    found = [
        each
        for each in found
        if all(text in {"", getattr(each, name)} for name, text in texts.items())
        and (since is None or each.at >= since)
        and (until is None or each.at < until)
    ]
    is_filtered = any((*texts.values(), since, until))
    empty = "Nothing happened that these filters let through." if is_filtered else "Nothing happened yet."
    note = "The service keeps the last thousand or so, until it ends."
    tables = [Table(query, "Events", COLUMNS, found, sort="-at", empty=empty, note=note)]
    if may_see_keys:
        counts = await request.read("", refusals, request.service)
        title, empty = "Refusals since the start, by code", "No request was refused."
        tables.append(Table(query, title, REFUSALS, counts, sort="-count", name="refusals", empty=empty))
    period = {"since": _local(since), "until": _local(until)}
    return await request.page("events.html", title="Events", tables=tables, live=True, kinds=kinds, period=period)
