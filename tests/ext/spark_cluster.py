"""A Spark cluster in a process of its own, run by test_spark.py, in which attempts race and executors are killed.

Prints as JSON what every attempt saw, the rows read before and after, and the events of Spark. For each accepted plan,
it prints how many rows had another ID in later reads, with little memory and after executors were killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext, TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from mintage.ext.spark import with_ids, with_keyed_ids
from tests.ext import spark_shapes


def parent_of(pid: int | str) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_executor(pid: int | str) -> bool:
    return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()


def started(directory: str) -> str:
    """Start a master and two workers in the JVM of this process; return the URL of the master.

    This is like ``local-cluster``, but with the workers on two hosts: Spark races no attempt on the host of the first.
    """
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    gateway: Any = SparkContext._gateway
    deploy, conf = jvm.org.apache.spark.deploy, jvm.org.apache.spark.SparkConf()
    master = deploy.master.Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, conf)
    url = f"spark://127.0.0.1:{master._1().address().port()}"
    urls = gateway.new_array(jvm.java.lang.String, 1)
    urls[0] = url
    for number in (1, 2):
        deploy.worker.Worker.startRpcEnvAndEndpoint(
            f"127.0.0.{number}",
            0,
            0,
            1,
            1024,
            urls,
            f"{directory}/work",
            jvm.scala.Some(number),
            conf,
            jvm.scala.Option.empty(),
        )
    return url


def noted(directory: Path, fault: str) -> Any:
    """Record the rows of each attempt. The first of partition 0 then waits for another, or kills its executor."""
    directory.mkdir()

    def record(batches: Any) -> Any:
        task: Any = TaskContext.get()
        seen = list(batches)
        note = {
            "task": task.taskAttemptId(),
            "part": task.partitionId(),
            "rows": [list(row.values()) for batch in seen for row in batch.to_pylist()],
        }
        (directory / f"{task.taskAttemptId()}.json").write_text(json.dumps(note))
        if task.partitionId() == 0:
            second = directory / "second"
            try:
                with (directory / "first").open("x") as first:
                    first.write(str(task.taskAttemptId()))
            except FileExistsError:
                second.touch()
            else:
                if fault == "killed":
                    # A worker of Python is a child of the daemon, and that of the executor.
                    executor = parent_of(os.getppid())
                    assert is_executor(executor)
                    os.kill(executor, signal.SIGKILL)
                end = time.monotonic() + 120
                while not second.exists():
                    assert time.monotonic() < end, "there was no second attempt"
                    time.sleep(0.05)
        yield from seen

    return record


def kill_executors() -> None:
    """Kill all executors: children of the JVM of this process."""
    gateway: Any = SparkContext._gateway
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended
            if parent_of(process.name) == gateway.proc.pid and is_executor(process.name):
                os.kill(int(process.name), signal.SIGKILL)


def read(frame: Any) -> list[list[Any]]:
    return sorted(map(list, frame.collect()))


def read_thrice(spark: Any, store: str, names: list[str], count: int) -> dict[str, list[int]]:
    """Return for each plan its number of rows, and how many changed in a second and a third read."""
    frames, shapes = {}, {**spark_shapes.ORDERLY, **spark_shapes.ORDERED}
    for name in names:
        made = shapes[name].make(spark, count)
        frames[name] = with_ids(made, sequence="shapes", store=store, order=shapes[name].order).frame
    first = {name: set(map(repr, frame.collect())) for name, frame in frames.items()}
    found = {name: [len(rows)] for name, rows in first.items()}
    for _ in range(2):
        kill_executors()
        for name, frame in frames.items():
            found[name].append(len(first[name] - set(map(repr, frame.collect()))))
    return found


# More than 60 lines: a program, one step after the other.
def main(directory: Path, count: int, names: list[str]) -> None:
    (directory / "events").mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(directory),
        "spark.sql.shuffle.partitions": "3",
        "spark.executor.memory": "512m",
        # So that what sorts or merges spills, again and again.
        "spark.memory.fraction": "0.1",
        "spark.shuffle.spill.numElementsForceSpillThreshold": "500",
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "10",
        "spark.log.level": "OFF",
        "spark.locality.wait": "0",
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(directory / "events"),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    builder: Any = SparkSession.builder.master(started(str(directory)))
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setCheckpointDir(str(directory / "checkpoints"))
    store = f"sqlite:///{directory}/ids.db"

    def numbered(frame: Any, **how: Any) -> Any:
        """Return the frame with IDs of both levels."""
        placed = with_ids(frame, sequence="orders", store=store, **how).frame
        return with_keyed_ids(placed, key="v", time="v", name="keyed", form="text")

    rows = spark.range(0, 300, 1, 3).withColumnRenamed("id", "v")
    other_each_time = sql.udf(lambda: uuid.uuid4().hex).asNondeterministic()
    random = rows.withColumn("r", other_each_time())
    frames = {
        "shuffled": numbered(rows.repartition(3, "v"), order="v"),
        "checkpoint": numbered(random, checkpoint=True),
        "local": numbered(random.localCheckpoint()),
    }
    found: dict[str, Any] = {"before": {name: read(frame) for name, frame in frames.items()}}
    shuffled = frames["shuffled"]
    for fault in ("raced", "killed"):
        to = directory / fault
        after = read(shuffled.mapInArrow(noted(to, fault), shuffled.schema))
        attempts = [json.loads(each.read_text()) for each in to.glob("*.json")]
        found[fault] = {"after": after, "first": int((to / "first").read_text()), "attempts": attempts}
    kill_executors()
    found["after"] = {name: read(frames[name]) for name in ("shuffled", "checkpoint")}
    try:
        found["after"]["local"] = read(frames["local"])
    except Py4JJavaError as error:
        found["lost"] = str(error)
    found["shapes"] = read_thrice(spark, store, names, count)
    spark.stop()
    (log,) = (directory / "events").iterdir()
    found["events"] = [json.loads(line) for line in log.read_text().splitlines()]
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
