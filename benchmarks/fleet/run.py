"""A day of a fleet on one store: a start of all, steady extensions, an outage, a rolling restart, and a stop of all."""

import os
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.fleet.crew import LAYOUT, POOL, Crew, Told, Verb
from benchmarks.fleet.record import Fleet, Steady
from mintage.store import open_store

SPAN_MS = 600_000
"""The longest span of the pools, as those of large fleets should have it."""
SHORT_MS = 6_000
"""The span of the processes that live through an outage, so that all of their windows end in it."""


def cpu_s(pids: Iterable[int]) -> float:
    """Return the processor time of processes, and of the children that they waited for."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def held(port: int) -> int:
    """Return the number of connections that clients have to a port of this machine."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(row[3] == "01" and int(row[2].rpartition(":")[2], 16) == port for row in rows)


def _verbs(told: Iterable[Told], name: str) -> list[Verb]:
    return [verb for each in told for verb in each.log if verb.name == name]


def _errors(told: Iterable[Told]) -> int:
    return sum(len(each.errors) for each in told)


def steady(url: str, server: Any, *, processes: int, leases: int, seconds: float) -> Steady:
    """Hold many leases by the keepers of a few processes."""
    with open_store(url) as store:
        store.create_pool(POOL, layout=LAYOUT, span_ms=SPAN_MS, never_used=True)
    crew = Crew(url, processes, leases=leases // processes)
    began = time.time()
    started = crew.start(0.0)
    start_s = time.time() - began
    before, began = cpu_s(server.family()), time.time()
    crew.begin(seconds)
    time.sleep(seconds / 2)
    connections = held(server.port)
    told = crew.answers()
    share = 100 * (cpu_s(server.family()) - before) / (time.time() - began)
    crew.stop()
    extends = _verbs(told, "extend")
    times = sorted(verb.ms for verb in extends if verb.is_ok)
    cuts = quantiles(times, n=100) if len(times) > 1 else [0.0] * 99
    return Steady(
        leases=leases,
        processes=processes,
        start_s=start_s,
        writes=len(extends) / seconds,
        share=share,
        keepers=100 * sum(each.cpu for each in told) / seconds,
        p50_ms=cuts[49],
        p99_ms=cuts[98],
        connections=connections,
        failed=_errors(started) + _errors(told) + len(extends) - len(times),
    )


def day(
    url: str,
    server: Any,
    *,
    processes: int,
    away_s: float,
    is_frozen: bool = False,
    spread_s: float = 0,
    seconds: float = 5,
    span_ms: int,
) -> Fleet:
    """Start processes with a generator each, take the store away, restart them one after the other, and stop them.

    ``is_frozen``: it freezes instead of ending, as a Redis that ends is another server to mintage. ``spread_s``:
    they do not start at once, but one after the other in so many seconds.
    """
    with open_store(url) as store:
        store.create_pool("sno", layout="sno/1", span_ms=SPAN_MS, never_used=True)
    crew = Crew(url, processes, span_ms=span_ms)
    started = crew.start(spread_s=spread_s)
    told = crew.watch(seconds)
    connections = held(server.port)
    numbers = sorted(number for each in started for number in each.numbers)
    attempts, back_s, return_errors, same = [0], 0.0, 0, len(numbers)
    if away_s:
        crew.begin(away_s + 12)
        time.sleep(1)
        (server.pause if is_frozen else server.kill)()
        gone = time.time()
        time.sleep(away_s)
        (server.resume if is_frozen else server.start)()
        returned = time.time()
        after = crew.answers()
        calls = [verb for each in after for verb in each.log]
        each_s = Counter(int(verb.at) for verb in calls if gone + 1 <= verb.at < returned + 5)
        attempts = list(each_s.values()) or [0]
        ends = ([v.at + v.ms / 1e3 for v in each.log if v.is_ok and v.at + v.ms / 1e3 > gone] for each in after)
        back_s = max(0.0, max(min(each, default=returned) for each in ends) - returned)
        return_errors = _errors(after)
        same = len({*numbers} & {number for each in after for number in each.numbers})
    renewed, began = [], time.time()
    for _ in range(processes if away_s else 0):
        renewed += crew.renew()
    restart_s = time.time() - began
    stopped = crew.stop()
    released = _verbs(stopped, "release")
    return Fleet(
        processes=processes,
        start_s=max(each.took for each in started),
        start_p50_s=median(each.took for each in started),
        start_errors=_errors(started) + _errors(told),
        numbers=len({*numbers}),
        connections=connections,
        away_s=away_s,
        attempts=max(attempts),
        back_s=back_s,
        return_errors=return_errors,
        kept=same,
        restart_s=restart_s,
        restart_errors=_errors(renewed),
        released=sum(verb.is_ok for verb in released),
        stop_errors=_errors(stopped),
    )
