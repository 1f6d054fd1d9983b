"""The first page: the health of the service. Faults come first, with their remedies."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.responses import Response

from mintage.errors import CATALOGUE, MintError
from mintage.server.console.frame import PageRequest
from mintage.server.console.pages.ends import read_pools
from mintage.server.console.table import Column, Table
from mintage.server.core.events import last
from mintage.server.core.findings import Finding, clock_of, promise_of, warnings_of
from mintage.server.core.service import Service
from mintage.server.core.usage import MINUTES_5_S

_MOST_NAMED: Final = 5
"""The most pools in quarantine, and the most namespaces whose buffers are empty first, that the page names."""
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


def empty_first(service: Service, started: datetime) -> list[tuple[datetime, str]]:
    """Return when the buffers of namespaces are empty, at their rates of the last five to ten minutes; the first ones.

    A namespace that was used up in these minutes is empty now, like one that the store would still have integers of. It
    reads the counts of all workers, so call it in a thread.
    """
    now = datetime.now(UTC)
    buffered = service.metrics.sums("mintage_buffered_integers", "namespace")
    taken = Counter[str]()
    for (name, _), used in service.metrics.usage.read("integers").items():
        taken[name] += sum(used.hour[-2:])
    seconds = min(MINUTES_5_S + now.timestamp() % MINUTES_5_S, (now - started).total_seconds())
    found = [(level * seconds / taken[name], name) for name, level in buffered.items() if taken[name]]
    return [(now + timedelta(seconds=min(left_s, 1e9)), name) for left_s, name in sorted(found)[:_MOST_NAMED]]


def findings(service: Service, waiting: Sequence[str]) -> list[Finding]:
    """Return what needs attention, the worst first; ``waiting`` are the pools in quarantine."""
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
    if waiting:
        names = ", ".join(waiting[:_MOST_NAMED]) + (" and others" if len(waiting) > _MOST_NAMED else "")
        text = f"these pools are in quarantine, and grant no node number before its end: {names}"
        todo = (
            "Wait; the page Pools has the ends. `mintage pools create NAME --never-used` ends it if no ID was minted."
        )
        found.append(Finding("pools", "quarantine", text, "attention", todo))
    return [each for each in found if each.level != "ok" or each.about == "draining"]


async def health(request: PageRequest) -> Response:
    """Show whether the service is well."""
    request.caller.check("describe", "")
    service = request.service
    probe, living = service.probe, workers(service)
    started = living[0][1]
    empty: list[tuple[datetime, str]] = []
    waiting: list[str] = []
    if probe.failure is not None:
        # Only now: it reads the counts of all workers.
        empty = await request.read("", empty_first, service, started)
    else:
        with suppress(MintError):  # the probe soon says why the store does not answer
            pools, now_ms = await request.read("", read_pools, service.store)
            waiting = [each.name for each in pools if each.quarantine_until_ms > now_ms]
    return await request.page(
        "health.html",
        title="Health",
        tables=[Table(request.query, "Processes", WORKERS, living, name="workers")],
        live=True,
        probe=probe,
        findings=findings(service, waiting),
        started=started,
        empty=empty,
        takeover=await asyncio.to_thread(last, request.app.state.events, "store taken over"),
        buffered=sum(sequence.buffered for sequence in service.sequences().values()),
    )
