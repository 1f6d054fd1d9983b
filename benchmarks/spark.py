"""Cost of IDs for rows of Spark frames: ``python -m benchmarks.spark [ROWS]``, 10^7 by default.

The frame of each call is read once, into the null sink of Spark, and beside it the frame without IDs. The best of
several turns counts. From its rate, the program extrapolates the time for 10^9 rows on this machine.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from typing import TYPE_CHECKING, Any

from mintage import open_store
from mintage.store import Forwarding

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 3


class Counting(Forwarding):
    """A store that counts its calls."""

    calls = 0

    def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return super().forward(verb, *args, **kwargs)


def main(rows: int) -> None:
    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sql

    from mintage.ext.spark import with_ids, with_keyed_ids

    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as home:
        store = Counting(open_store(f"sqlite:///{home}/ids.db"))
        at = sql.timestamp_millis(sql.col("v") + 1_700_000_000_000)
        plain = spark.range(0, rows, 1, 8).withColumnRenamed("id", "v").withColumn("at", at)
        shuffled = plain.repartition(8, "v")
        calls: dict[str, Callable[[], Any]] = {
            "no IDs": lambda: plain,
            "with_ids": lambda: with_ids(plain, sequence="orders", store=store).frame,
            "no IDs, shuffled": lambda: shuffled,
            "with_ids, order": lambda: with_ids(shuffled, sequence="orders", store=store, order="v").frame,
            "with_keyed_ids": lambda: with_keyed_ids(plain, key="v", time="at"),
            "with_keyed_ids, secret": lambda: with_keyed_ids(plain, key="v", time="at", secret="a secret of ours"),
        }
        best: dict[str, tuple[float, int]] = {}
        for _ in range(TURNS):
            for name, make in calls.items():
                store.calls, began = 0, time.perf_counter()
                make().write.format("noop").mode("overwrite").save()
                best[name] = min(best.get(name, (1e9, 0)), (time.perf_counter() - began, store.calls))
        store.close()
    print(f"{rows:,} rows, Spark {spark.version}, {os.cpu_count()} cores, best of {TURNS}")
    print(f"{'':24}{'seconds':>9}{'rows/s':>13}{'store calls':>13}{'10^9 rows':>12}")
    for name, (seconds, asked) in best.items():
        print(f"{name:24}{seconds:9.2f}{rows / seconds:13,.0f}{asked:13}{1e9 / rows * seconds / 60:8.0f} min")
    spark.stop()


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7)
