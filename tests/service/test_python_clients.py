"""Tests of `Client` and `AsyncClient` with many concurrent callers on a real service."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from mintage import AsyncClient, Client, open_store
from tests.service.running import Running, running

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY = 10_000
PATIENT = "?timeout_ms=60000"
"""A timeout that a slow machine does not reach."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service")) as service:
        yield service


def test_ten_thousand_gathered_callers_get_an_integer_each(service: Running) -> None:
    async def ask() -> list[int]:
        async with AsyncClient(service.url + PATIENT) as client:
            return await asyncio.gather(*(client.next("gathered") for _ in range(MANY)))

    integers = asyncio.run(ask())
    assert integers == sorted(set(integers))
    assert len(integers) == MANY
    # Not each of them is a request.
    assert service.serving.metric("mintage_requests_total", operation="next") < MANY / 10


def test_gathered_calls_to_different_namespaces_all_succeed(service: Running) -> None:
    async def ask() -> list[range]:
        async with AsyncClient(service.url + PATIENT) as client:
            names = [f"apart{at % 50}" for at in range(300)]
            await asyncio.gather(*(client.next(name) for name in names))
            return await asyncio.gather(*(client.reserve("rows", 3) for _ in range(300)))

    rows = asyncio.run(ask())
    assert len({integer for row in rows for integer in row}) == 900


def test_three_hundred_threads_share_a_client(service: Running) -> None:
    found: list[list[int]] = []
    begin = threading.Barrier(300)

    def ask() -> None:
        begin.wait()
        found.append([client.next("threads") for _ in range(5)])

    with Client(service.url + PATIENT) as client:
        threads = [threading.Thread(target=ask) for _ in range(300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 300
    assert len({integer for each in found for integer in each}) == 1500


def test_last_integers_go_to_the_last_caller(service: Running) -> None:
    async def ask() -> list[object]:
        async with AsyncClient(service.url + PATIENT) as client:
            return await asyncio.gather(*(client.next("few") for _ in range(300)), return_exceptions=True)

    with open_store(service.url + PATIENT) as store:
        store.create_namespace("few", maximum=100)
    found = asyncio.run(ask())
    assert found[:100] == list(range(1, 101))
    assert {getattr(each, "code", each) for each in found[100:]} == {"namespace.exhausted"}
