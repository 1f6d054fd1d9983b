"""The row of the asyncio client: many gathered callers beside a plain HTTP client of the same service."""

import asyncio
import time
from collections.abc import Callable, Coroutine

from benchmarks.row import Row, at_least
from benchmarks.servers import MintageOnSQLite, bench
from benchmarks.timing import Rounds

MANY = 10_000
FEW = 1_000
"""Calls of the plain client: its rate does not depend on how many wait."""
AT_ONCE = 100
"""Requests of the plain client under way at a time. Without a bound, nearly all would fail."""

Ask = Callable[[str], Coroutine[None, None, list[int]]]
"""Requests many integers from the service at a URL, each by a call of its own."""


async def _gathered(url: str) -> list[int]:
    from mintage import AsyncClient

    async with AsyncClient(url) as client:
        return await asyncio.gather(*(client.next("gathered") for _ in range(MANY)))


async def _plain(url: str) -> list[int]:
    import httpx

    room = asyncio.Semaphore(AT_ONCE)
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:

        async def ask() -> int:
            async with room:
                answer = await client.post("/v1/sequences/plain:next")
            answer.raise_for_status()
            return int(answer.json()["ids"][0])

        return await asyncio.gather(*(ask() for _ in range(FEW)))


def _thousands_a_second(ask: Ask, url: str) -> float:
    start = time.perf_counter()
    integers = asyncio.run(ask(url))
    seconds = time.perf_counter() - start
    if len(set(integers)) < len(integers):
        raise RuntimeError(f"{len(integers) - len(set(integers))} of {len(integers)} integers were given twice")
    return len(integers) / seconds / 1e3


def _asking(rounds: int) -> Rounds:
    result = Rounds()
    with bench() as servers:
        url = servers.start(MintageOnSQLite).url
        _thousands_a_second(_gathered, url)  # warms up and lets segments grow
        for _ in range(rounds):
            result.add(_thousands_a_second(_gathered, url), _thousands_a_second(_plain, url))
    return result


ASYNC_CLIENT: tuple[Row, ...] = (
    Row(
        f"{MANY:,} gathered AsyncClient.next()",
        f"httpx.AsyncClient, {AT_ONCE} at a time",
        _asking,
        at_least(10),
        unit="k/s",
        note=f"`mintage serve` on SQLite on one processor, the client on another, with its connections opened in the "
        f"time. Of httpx, {FEW:,} calls.",
        pinned=False,
        processes=1,
    ),
)
