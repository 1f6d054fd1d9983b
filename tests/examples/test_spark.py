"""Tests of the example of Spark by its README, run twice, and of the steps that its job must not omit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.examples.readme import Example

if TYPE_CHECKING:
    from pathlib import Path

ORDER = 'order=["shop", "number"]'


@pytest.fixture
def example(tmp_path: Path) -> Example:
    settings = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "ORDERS_SECRET": "a secret of ours",
        "PYSPARK_SUBMIT_ARGS": "--master local[2] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=3"
        " --conf spark.log.level=OFF pyspark-shell",
    }
    return Example("spark", tmp_path, settings)


def rows(example: Example, name: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return the IDs and references in the output of a job, by order."""
    table = pq.read_table(example.folder / name).to_pylist()
    assert len(table) == 100
    return {(row["shop"], row["number"]): (row["id"], row["ref"]) for row in table}


def test_second_run_gives_other_integers_and_the_same_references(example: Example) -> None:
    example.check_installs()
    said = [example.run(line).splitlines()[-1] for line in example.lines]
    assert said == ["110 rows", "100 orders have IDs in 1..100", "100 orders have IDs in 101..200"]
    first, second = rows(example, "first"), rows(example, "second")
    assert first.keys() == second.keys()
    assert sorted(each for each, _ in first.values()) == list(range(1, 101))
    assert sorted(each for each, _ in second.values()) == list(range(101, 201))
    assert {key: ref for key, (_, ref) in first.items()} == {key: ref for key, (_, ref) in second.items()}
    assert len({ref for _, ref in first.values()}) == 100


@pytest.mark.parametrize(
    ("order", "refusal"),
    [
        ("", "may come in another order when a task is retried: name columns in order that tell them apart"),
        ('order=["shop"]', "order does not tell the rows apart"),
    ],
    ids=["without an order", "with an order that has ties"],
)
def test_rows_after_a_shuffle_are_refused(example: Example, order: str, refusal: str) -> None:
    job = example.folder / "number_orders.py"
    text = job.read_text(encoding="utf-8")
    assert ORDER in text
    job.write_text(text.replace(ORDER, order), encoding="utf-8")
    made, first, _ = example.lines
    example.run(made)
    assert refusal in example.run(first, check=False)
    assert not (example.folder / "first").exists()
