"""Test of the section on RQ in docs/how-to/processes.md: jobs that fork release their leases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import redis
import rq

from mintage import open_store, sno
from tests.servers import Redis

if TYPE_CHECKING:
    from tests.servers.fixtures import Servers

PAGE = Path(__file__).parents[2] / "docs/how-to/processes.md"
JOBS = """
import os
from mintage import sno, snowflake
generator = snowflake.Generator(store=os.environ["JOBS_STORE"], max_wait_ms=60_000)

def pack(order):
    assert isinstance(order, sno.ID)
    return generator.new()
"""


def test_jobs_of_the_worker_of_the_page_release_their_leases(servers: Servers, tmp_path: Path) -> None:
    url, store = servers.get(Redis).url, f"sqlite:///{tmp_path}/ids.db"
    [snippet] = re.findall(r"(?s)### RQ\n.*?```python\n(.*?)```", PAGE.read_text(encoding="utf-8"))
    (tmp_path / "worker.py").write_text(snippet, encoding="utf-8")
    (tmp_path / "jobs.py").write_text(JOBS, encoding="utf-8")
    queue = rq.Queue("packing", connection=redis.Redis.from_url(url))
    jobs = [queue.enqueue("jobs.pack", sno.new()) for _ in range(5)]
    words = ["rq.cli", "worker", "--burst", "--url", url, "--worker-class", "worker.Worker", "packing"]
    environment = {**os.environ, "JOBS_STORE": store, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-m", *words], check=True, cwd=tmp_path, env=environment, timeout=250)
    assert len({job.return_value(refresh=True) for job in jobs} - {None}) == 5
    with open_store(store) as held:
        assert {record.token for record in held.list_leases()} == {None}
