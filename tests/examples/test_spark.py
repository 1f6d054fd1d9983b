"""examples/spark does what it says, twice."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

JOB = Path(__file__).parents[2] / "examples" / "spark" / "number_orders.py"


def run(*arguments: str) -> str:
    settings = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "ORDERS_SECRET": "a secret of ours",
        "PYSPARK_SUBMIT_ARGS": "--master local[2] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=3"
        " --conf spark.log.level=OFF pyspark-shell",
    }
    done = subprocess.run(
        [sys.executable, str(JOB), *arguments],
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=250,
    )
    return done.stdout.splitlines()[-1]


def test_a_second_run_gives_other_integers_and_the_same_references(tmp_path: Path) -> None:
    at = datetime(2026, 11, 22, 10, 30, tzinfo=UTC)
    rows = [{"shop": shop, "number": number, "at": at} for shop in ("eu", "us") for number in range(50)]
    source = str(tmp_path / "orders.parquet")
    pq.write_table(pa.Table.from_pylist(rows + rows[:10]), source)
    store = f"sqlite:///{tmp_path}/ids.db"
    found: list[dict[tuple[Any, ...], tuple[Any, ...]]] = []
    for turn in ("first", "second"):
        said = run(source, str(tmp_path / turn), store)
        assert said.startswith("100 orders have IDs in ")
        table = pq.read_table(tmp_path / turn).to_pylist()
        found.append({(row["shop"], row["number"]): (row["id"], row["ref"]) for row in table})
    first, second = found
    assert first.keys() == second.keys()
    assert sorted(each for each, _ in first.values()) == list(range(1, 101))
    assert sorted(each for each, _ in second.values()) == list(range(101, 201))
    assert {key: ref for key, (_, ref) in first.items()} == {key: ref for key, (_, ref) in second.items()}
    assert len({ref for _, ref in first.values()}) == 100
