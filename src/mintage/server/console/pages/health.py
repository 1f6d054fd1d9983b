"""The first page: the health of the service. Faults come first, with their remedies."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from starlette.responses import Response

from mintage.errors import CATALOGUE
from mintage.server.console.frame import PageRequest
from mintage.server.console.table import Column, Table
from mintage.server.core.events import last
from mintage.server.core.findings import Finding, clock_of, promise_of, warnings_of
from mintage.server.core.service import Service


class Levels(NamedTuple):
    """The integers of each namespace, over all workers, at a moment."""

    at: datetime
    buffered: Mapping[str, float]
    """Those that are reserved and not handed out."""
    taken: Mapping[str, float]
    """Those that were handed out since the start."""


WORKERS: Final = (
    Column("pid", "Process", lambda each: str(each[0]), "code"),
    Column("started", "Started", lambda each: each[1], "time"),
)


def workers(service: Service) -> list[tuple[int, datetime]]:
    """Return the process of each worker that lives, and its start; the oldest first."""
    found = {each["pid"]: datetime.fromtimestamp(each["at"], UTC) for each in service.workers.read()}
    found.setdefault(os.getpid(), datetime.now(UTC))
    return sorted(((pid, at) for pid, at in found.items() if _is_alive(pid)), key=lambda each: each[1])


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def levels(service: Service) -> Levels:
    """Return the integers of each namespace now. It reads the metrics of all workers, so call it in a thread."""
    names = ("mintage_buffered_integers", "mintage_integers_total")
    return Levels(datetime.now(UTC), *service.metrics.sums("namespace", *names))


def empty_at(before: Levels, now: Levels) -> tuple[str, datetime] | None:
    """Return the namespace whose buffers are empty first, and when, at its rate since ``before``.

    :returns: ``None`` if nobody takes integers.
    """
    seconds = (now.at - before.at).total_seconds()
    taken = {name: now.taken.get(name, 0.0) - before.taken.get(name, 0.0) for name in now.buffered}
    found = [(level * seconds / taken[name], name) for name, level in now.buffered.items() if taken[name] > 0]
    if not found:
        return None
    left_s, name = min(found)
    return name, now.at + timedelta(seconds=min(left_s, 1e9))


def findings(service: Service) -> list[Finding]:
    """Return what needs attention, the worst first."""
    probe = service.probe
    found: list[Finding] = []
    if (failure := probe.failure) is not None:
        found.append(Finding("store", "url", str(failure), "unusable", CATALOGUE[failure.code].remedy))
    if service.draining:
        found.append(Finding("service", "draining", "this process stops: it answers what was sent, and no more"))
    if probe.description is not None:
        offset_ms = round(probe.offset_s * 1000)
        found += [
            clock_of(service.store, offset_ms, 1),
            promise_of(probe.description, is_registry=service.settings.store is None),
            *warnings_of(probe.description),
        ]
    return [each for each in found if each.level != "ok" or each.about == "draining"]


async def health(request: PageRequest) -> Response:
    """Show whether the service is well."""
    request.caller.check("describe", "")
    service = request.service
    probe, living = service.probe, workers(service)
    started = living[0][1]
    empty = None
    if probe.failure is not None:
        # Only now: it reads the metrics of all workers.
        now = await request.read("", levels, service)
        known = request.app.state.levels or [Levels(started, {}, {})]
        # The first is over a minute old: viewers who share a read would find no difference to the last.
        empty = empty_at(known[0], now)
        if (now.at - known[-1].at).total_seconds() > 60:
            request.app.state.levels = [known[-1], now]
    return await request.page(
        "health.html",
        title="Health",
        tables=[Table(request.query, "Processes", WORKERS, living, name="workers")],
        live=True,
        probe=probe,
        findings=findings(service),
        started=started,
        empty=empty,
        takeover=await asyncio.to_thread(last, request.app.state.events, "store taken over"),
        buffered=sum(sequence.buffered for sequence in service.sequences().values()),
    )
