"""Tests of crashes: no integer repeats when the service or its store dies at any moment."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.service.load import INCR, repeated
from tests.service.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import MariaDB, RedisWithoutAOF

ROUNDS = 3


def serve(directory: Path, store: str) -> Iterator[Serving]:
    # Small segments, so that there are many of them in a few seconds.
    service = Serving(directory / "service", store, min_step=200, max_step=5000, target_ms=200)
    service.start()
    yield service
    service.kill()


@pytest.fixture(params=["sqlite", "mariadb", "mariadb and redis"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Serving]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/ids.db"
    else:
        url = request.getfixturevalue("mariadb").url
        if request.param != "mariadb":
            url += f"?cache={request.getfixturevalue('redis').url}"
    yield from serve(tmp_path, url)


@pytest.fixture
def cached(mariadb: MariaDB, redis_without_aof: RedisWithoutAOF, tmp_path: Path) -> Iterator[Serving]:
    """Return a service on the pair of a database and a cache without persistence."""
    yield from serve(tmp_path, f"{mariadb.url}?cache={redis_without_aof.url}")


@pytest.fixture
def chance() -> random.Random:
    return random.Random()


def test_no_integer_repeats_while_the_service_is_killed_repeatedly(service: Serving, chance: random.Random) -> None:
    with service.load() as load:
        for _ in range(ROUNDS):
            load.wait_for_more(chance.randint(1, 20_000))
            service.kill()
            service.start()
        load.wait_for_more(5000)
    assert repeated(load.integers()) == []
    assert any(end.unanswered for end in load.ends())


def test_no_integer_repeats_while_the_cache_is_flushed_repeatedly(
    cached: Serving, redis_without_aof: RedisWithoutAOF, chance: random.Random
) -> None:
    with cached.load() as load:
        for turn in range(3 * ROUNDS):
            load.wait_for_more(chance.randint(1, 5000))
            redis_without_aof.ask("FLUSHALL")
            if turn % 4 == 0:
                cached.kill()
                cached.start()
        load.wait_for_more(5000)
    assert repeated(load.integers()) == []


def test_no_integer_repeats_after_the_cache_returns_with_old_data(
    cached: Serving, redis_without_aof: RedisWithoutAOF, chance: random.Random
) -> None:
    with cached.load() as load:
        for turn in range(ROUNDS):
            load.wait_for_more(chance.randint(1, 5000))
            # A server without an append-only file starts from this file.
            redis_without_aof.ask("SAVE")
            load.wait_for_more(5000)
            redis_without_aof.kill()
            if turn % 2:
                cached.kill()
            redis_without_aof.start()
            assert redis_without_aof.ask("KEYS", "mintage:*")
            cached.start()
        load.wait_for_more(5000)
    assert repeated(load.integers()) == []


def test_no_integer_repeats_while_the_database_is_killed_too(
    cached: Serving, mariadb: MariaDB, chance: random.Random
) -> None:
    with cached.load() as load:
        for _ in range(2):
            load.wait_for_more(chance.randint(1, 5000))
            mariadb.kill()
            cached.kill()
            mariadb.start()
            cached.start()
        load.wait_for_more(5000)
    assert repeated(load.integers()) == []


# --- sensitivity of these tests -----------------------------------------------------------------------------------


def test_repeated_integer_is_found() -> None:
    integers = np.arange(1, 300_000, dtype=np.uint64)
    assert repeated(integers) == []
    integers[7] = 250_000
    assert repeated(integers) == [250_000]


def test_forgetting_store_is_detected(redis_without_aof: RedisWithoutAOF, tmp_path: Path) -> None:
    service = Serving(tmp_path / "service", f"{redis_without_aof.url}?volatile=1", min_step=200)
    service.start()
    try:
        with service.load(kinds=[INCR, INCR]) as load:
            load.wait_for_more(1000)
            service.kill()
            redis_without_aof.kill()
            redis_without_aof.start()
            service.start()
            load.wait_for_more(1000)
        assert repeated(load.integers())[0] == 1
    finally:
        service.kill()
