"""A Celery application with one task, which mints; ``python -m tests.runtimes.tasks 20`` sends 20 tasks."""

from __future__ import annotations

import os
import sys

from celery import Celery

from tests.runtimes import minting

app = Celery("runtimes", broker=os.environ["RUNTIMES_BROKER"])
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


@app.task  # type: ignore[untyped-decorator]
def mint() -> None:
    minting.mint()


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        app.send_task("tests.runtimes.tasks.mint")
