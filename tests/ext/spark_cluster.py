"""Run by test_spark.py in a process of its own: executors that are processes, of which one is killed. Prints what every
attempt saw, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from mintage.ext.spark import with_ids


def noted(directory: str) -> Any:
    """Notes what each attempt sees. Of partition 0, the first attempt then kills its executor."""

    def record(batches: Any) -> Any:
        import json
        import os
        import signal
        import time
        from pathlib import Path

        from pyspark import TaskContext

        task: Any = TaskContext.get()
        seen = list(batches)
        rows = [[row["v"], row["id"]] for batch in seen for row in batch.to_pylist()]
        note = {"part": task.partitionId(), "rows": rows}
        (Path(directory) / f"{task.taskAttemptId()}.json").write_text(json.dumps(note))
        if task.partitionId() == 0:
            try:
                os.close(os.open(Path(directory) / "first", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                # A worker of Python is a child of the daemon, and that of the executor.
                stat = Path(f"/proc/{os.getppid()}/stat").read_text()
                executor = int(stat.rpartition(")")[2].split()[1])
                assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
                os.kill(executor, signal.SIGKILL)
                time.sleep(60)  # until it is noticed
        yield from seen

    return record


def main(directory: str) -> None:
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", directory)
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.executor.memory", "512m")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    rows = spark.range(0, 300, 1, 3).withColumnRenamed("id", "v").repartition(3, "v")
    frame = with_ids(rows, sequence="orders", store=f"sqlite:///{directory}/ids.db", order="v").frame
    found: dict[str, Any] = {"before": sorted(map(list, frame.collect()))}
    tried = frame.mapInArrow(noted(directory), frame.schema)
    found["after"] = sorted(map(list, tried.collect()))
    found["attempts"] = [json.loads(each.read_text()) for each in Path(directory).glob("*.json")]
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    main(sys.argv[1])
