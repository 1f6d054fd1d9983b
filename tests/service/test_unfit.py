"""A store that answers, and refuses whatever writes: whoever would serve from it says so before it is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mintage.store import open_store
from tests.service.running import Running, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.mariadb import MariaDB
    from tests.servers.redis import RedisWithoutAOF


def next_of(service: Running) -> tuple[int, Any]:
    """The answer to a request for an integer: its status and its code."""
    with service.serving.http() as line:
        answer = line.http("/v1/sequences/orders:next", method="POST")
        return answer.status, json.loads(answer.body).get("code")


def is_unfit(service: Running, status: int, code: str) -> None:
    assert service.serving.get("/readyz").status == 503
    assert service.serving.metric("mintage_store_up") == 0
    assert [event["code"] for event in service.events() if event["event"] == "store away"] == [code]
    assert next_of(service) == (status, code)


def test_a_redis_that_forgets_makes_nobody_ready(tmp_path: Path, redis_without_aof: RedisWithoutAOF) -> None:
    with running(tmp_path, store=redis_without_aof.url) as service:
        is_unfit(service, 500, "config.volatile")


def test_an_account_that_may_only_read_makes_nobody_ready(tmp_path: Path, mariadb: MariaDB) -> None:
    with open_store(mariadb.url) as store:
        store.reserve("orders", 1)
    mariadb.sql("CREATE USER reader IDENTIFIED BY 'x'; GRANT SELECT ON mintage.* TO reader")
    try:
        with running(tmp_path, store=f"mariadb://reader:x@{mariadb.url.rpartition('@')[2]}") as service:
            is_unfit(service, 500, "store.refused")
    finally:
        mariadb.sql("DROP USER reader")
