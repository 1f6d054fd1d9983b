"""Tests of the reads of the store that all viewers of the console share."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from mintage.server.console.shared import MOST_READINGS, Reads


def test_worker_keeps_a_limited_number_of_answers() -> None:
    calls: list[int] = []

    async def ask(caller: Any, right: str, name: str, verb: Any) -> Any:
        return verb()

    def verb(number: int) -> int:
        calls.append(number)
        return number

    async def main() -> None:
        reads = Reads(SimpleNamespace(ask=ask))  # type: ignore[arg-type]
        await reads.read(verb, 0)
        for number in range(1, MOST_READINGS):
            await reads.read(verb, number)
            assert await reads.read(verb, 0) == (0, None)
        assert calls.count(0) == 1
        await reads.read(verb, MOST_READINGS)  # which takes the place of the one that was used longest ago
        await reads.read(verb, 1)
        assert (calls.count(0), calls.count(1)) == (1, 2)

    asyncio.run(main())
