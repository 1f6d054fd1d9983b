"""Tests of Spark: rows keep their IDs in every recomputation. A real JVM: tasks fail, shuffles are lost."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import os
import pickle
import subprocess
import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mintage import Sequence
from mintage.errors import ArgumentError, ConfigError, FieldError, GenerationError
from mintage.store import Forwarding
from mintage.store.memory import MemoryStore
from tests.ext import spark_shapes

pytestmark = [
    # pyspark 4.2 says so of pandas 3, which nothing here uses.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SHAPES, SHAPES_REFUSED = {**spark_shapes.ORDERLY, **spark_shapes.ORDERED}, spark_shapes.REFUSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mintage.store import Store

UTC = datetime.UTC
T0 = datetime.datetime(2026, 11, 22, 10, 30, tzinfo=UTC)
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a short-lived JVM, for which optimised code is not worth its compilation."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a session in a JVM of its own: two tasks at a time, each tried four times."""
    import warnings

    home = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("JDK_JAVA_OPTIONS", BRIEF)
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2,4]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "1g")
            .config("spark.driver.extraJavaOptions", f"-Dderby.stream.error.file={home}/derby.log")
            .config("spark.local.dir", str(home / "local"))
            .config("spark.sql.warehouse.dir", str(home / "warehouse"))
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.log.level", "OFF")
            .getOrCreate()
        )
        session.sparkContext.setCheckpointDir(str(home / "checkpoints"))
        session.conf.set("spark.sql.session.timeZone", "America/New_York")
        yield session
        session.stop()


@pytest.fixture
def adaptive(spark: Any) -> Iterator[Callable[[bool], None]]:
    """Return a function that switches adaptive execution until the end of the test."""
    yield lambda on: spark.conf.set("spark.sql.adaptive.enabled", str(on).lower())
    spark.conf.unset("spark.sql.adaptive.enabled")


class Counting(Forwarding):
    """A store that counts its calls."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.calls: list[str] = []

    def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        self.calls.append(verb)
        return super().forward(verb, *args, **kwargs)


@pytest.fixture
def store() -> Counting:
    return Counting(MemoryStore())


def rows_of(frame: Any, *columns: str) -> list[Any]:
    """Return the rows in a canonical order."""
    return sorted(tuple(row) for row in frame.select(*columns).collect())


def numbers(spark: Any, count: int = 1000, parts: int = 4) -> Any:
    return spark.range(0, count, 1, parts).withColumnRenamed("id", "v")


def grouped(spark: Any) -> Any:
    """Return the same rows after a shuffle whose partitions depend on the plan; a range itself needs no shuffle."""
    return numbers(spark).selectExpr("999 - v as v").groupBy("v").count()


def test_rows_get_the_integers_of_one_reservation(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    store.create_namespace("orders", start=500, stride=5)
    numbered = with_ids(numbers(spark), sequence="orders", store=store)
    assert numbered.ids == (range(500, 5500, 5),)
    assert [each for _, each in rows_of(numbered.frame, "v", "id")] == list(numbered.ids[0])
    assert numbered.frame.schema["id"].dataType.simpleString() == "bigint"
    assert store.calls == ["create_namespace", "reserve"]  # reading asks no store, and nothing is given back


def test_sequence_may_be_passed(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    with Sequence("orders", store) as sequence:
        assert sequence.next() == 1
        (ids,) = with_ids(numbers(spark, 10), sequence=sequence, name="number").ids
        later = sequence.next()
    assert later not in ids
    assert 1 not in ids


def test_no_rows_reserve_nothing(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    numbered = with_ids(numbers(spark).filter("v < 0"), sequence="orders", store=store)
    assert numbered.ids == ()
    assert numbered.frame.collect() == []
    assert numbered.frame.columns == ["v", "id"]
    assert "reserve" not in store.calls


def test_column_may_have_any_name(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    frame = numbers(spark, 10).selectExpr("v as __mintage_place", "v as __Mintage_Place_", "v as key")
    numbered = with_ids(frame, sequence="orders", store=store, name="__mintage_place__", order="__mintage_place").frame
    assert numbered.columns == ["__mintage_place", "__Mintage_Place_", "key", "__mintage_place__"]
    assert rows_of(numbered, "*") == [(each, each, each, each + 1) for each in range(10)]


def test_empty_partitions_take_no_ids(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    numbered = with_ids(numbers(spark, 100).filter("v > 30 and v < 60"), sequence="orders", store=store)
    assert [each for _, each in rows_of(numbered.frame, "v", "id")] == list(range(1, 30))


def test_service_with_small_answers_is_asked_more_often(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    class Small(Forwarding):
        def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
            if verb == "reserve":
                if args[1] > 300:
                    raise FieldError("count is at most 300", code="field.range")
                super().forward(verb, args[0], 7)  # somebody else's
            return super().forward(verb, *args, **kwargs)

    numbered = with_ids(numbers(spark), sequence="orders", store=Small(store))
    assert [len(each) for each in numbered.ids] == [250, 250, 250, 250]
    assert [each for _, each in rows_of(numbered.frame, "v", "id")] == [each for part in numbered.ids for each in part]


def test_refusal_for_lack_of_integers_reserves_none(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    class Small(Forwarding):
        def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
            if verb == "reserve" and args[1] > 300:
                raise FieldError("count is at most 300", code="field.range")
            return super().forward(verb, *args, **kwargs)

    store.create_namespace("small", maximum=990)
    with pytest.raises(GenerationError, match="small"):
        with_ids(numbers(spark), sequence="small", store=Small(store))
    assert store.reserve("small", 990).as_range() == range(1, 991)


def test_exhausted_namespace_is_reported(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    store.create_namespace("small", maximum=10)
    with pytest.raises(GenerationError, match="small") as caught:
        with_ids(numbers(spark, 11), sequence="small", store=store)
    assert caught.value.code == "namespace.exhausted"


# --- the same values twice -------------------------------------------------------------------------------------------


def recording(to: Path, fails: bool) -> Any:
    """Record the rows of each attempt in a file of its own; the first attempts then fail."""
    directory = str(to)

    def record(batches: Any) -> Any:
        import json
        from pathlib import Path

        from pyspark import TaskContext

        task: Any = TaskContext.get()
        note = Path(directory) / f"{task.taskAttemptId()}.json"
        began: dict[str, Any] = {"part": task.partitionId(), "attempt": task.attemptNumber(), "rows": []}
        note.write_text(json.dumps(began))
        seen = list(batches)
        began["rows"] = [[row["v"], row["id"]] for batch in seen for row in batch.to_pylist()]
        note.write_text(json.dumps(began))
        if fails and task.attemptNumber() == 0:
            raise RuntimeError("the first attempt fails")
        yield from seen

    return record


def attempts(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(each.read_text()) for each in directory.glob("*.json")]


@pytest.mark.parametrize("on", [True, False], ids=["adaptive", "not adaptive"])
def test_retried_task_has_the_same_ids(
    spark: Any, store: Counting, tmp_path: Path, adaptive: Callable[[bool], None], on: bool
) -> None:
    from mintage.ext.spark import with_ids

    adaptive(on)
    backwards = numbers(spark).selectExpr("999 - v as v").repartition(3, "v")
    frame = with_ids(backwards, sequence="orders", store=store, order="v").frame
    tried = rows_of(frame.mapInArrow(recording(tmp_path, True), frame.schema), "v", "id")
    noted = attempts(tmp_path)
    parts = {each["part"] for each in noted}
    assert len(noted) == 2 * len(parts)
    for part in parts:
        first, second = (each["rows"] for each in noted if each["part"] == part)
        assert first == second == sorted(first) != []
    assert tried == rows_of(frame, "v", "id")
    assert sorted(each for _, each in tried) == list(range(1, 1001))


def test_spark_24552_repeated_stage_has_the_same_ids(spark: Any, store: Counting, tmp_path: Path) -> None:
    from mintage.ext.spark import with_ids

    frame = with_ids(numbers(spark).repartition(4, "v"), sequence="orders", store=store, order="v").frame
    before = rows_of(frame, "v", "id")
    local = Path(spark.sparkContext.getConf().get("spark.local.dir"))
    lost = [*local.rglob("shuffle_*.data"), *local.rglob("shuffle_*.index")]
    assert lost
    for each in lost:
        each.unlink()
    assert rows_of(frame.mapInArrow(recording(tmp_path, False), frame.schema), "v", "id") == before
    tried = [(each["part"], each["attempt"]) for each in attempts(tmp_path)]
    assert len(set(tried)) < len(tried)  # so these tell no two attempts apart


def test_cached_frame_has_the_same_ids(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    frame = with_ids(numbers(spark), sequence="orders", store=store).frame
    before = rows_of(frame, "v", "id")
    cached = frame.cache()
    assert rows_of(cached, "v", "id") == rows_of(cached, "v", "id") == before
    cached.unpersist(blocking=True)
    assert rows_of(frame, "v", "id") == before


def test_hudi_7829_ids_stay_when_partitions_are_joined_or_moved(
    spark: Any, store: Counting, adaptive: Callable[[bool], None]
) -> None:
    from mintage.ext.spark import with_ids

    adaptive(False)
    frame = with_ids(grouped(spark), sequence="orders", store=store, order="v").frame
    assert frame._jdf.queryExecution().toRdd().getNumPartitions() == 4
    before = rows_of(frame, "v", "id")
    adaptive(True)  # by which so few rows are one partition
    assert rows_of(frame, "v", "id") == before
    assert rows_of(frame.coalesce(1), "v", "id") == before
    assert rows_of(frame.repartition(3), "v", "id") == before
    assert rows_of(frame.union(frame.limit(0)), "v", "id") == before
    assert frame.filter("id = 500").count() == 1


def test_delta_242_later_partition_setting_moves_no_id(
    spark: Any, store: Counting, adaptive: Callable[[bool], None]
) -> None:
    from mintage.ext.spark import with_ids

    adaptive(False)  # or so few rows are one partition, whatever is set
    frame = with_ids(grouped(spark), sequence="orders", store=store, order="v").frame
    before = rows_of(frame, "v", "id")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    try:
        assert rows_of(frame, "v", "id") == before
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "4")
    assert sorted(each for _, each in before) == list(range(1, 1001))  # contiguous


@pytest.mark.parametrize("broadcast", ["-1", "10m"])
def test_splink_227_both_sides_of_a_join_have_the_same_ids(
    spark: Any, store: Counting, adaptive: Callable[[bool], None], broadcast: str
) -> None:
    from mintage.ext.spark import with_ids

    adaptive(False)
    frame = with_ids(grouped(spark), sequence="orders", store=store, order="v").frame
    before = rows_of(frame, "v", "id")
    adaptive(True)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", broadcast)
    try:
        joined = rows_of(frame.join(frame.selectExpr("v", "id as other"), "v"), "v", "id", "other")
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert joined == [(v, each, each) for v, each in before]


def test_split_skewed_join_has_the_same_ids(spark: Any, store: Counting, adaptive: Callable[[bool], None]) -> None:
    from mintage.ext.spark import with_ids

    settings = {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1k",
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.1",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4k",
    }
    adaptive(True)
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        left = spark.range(0, 20000, 1, 4).selectExpr("id as v", "if(id < 19000, 0, id) as k")
        joined = left.join(spark.range(0, 20000, 1, 4).withColumnRenamed("id", "k"), "k")
        frame = with_ids(joined, sequence="orders", store=store, order="v").frame
        assert frame._jdf.queryExecution().toRdd().getNumPartitions() > 4  # of which the shuffle knows nothing
        before = rows_of(frame, "v", "id")
    finally:
        for name in settings:
            spark.conf.unset(name)
    adaptive(False)
    assert rows_of(frame, "v", "id") == before
    assert sorted(each for _, each in before) == list(range(1, 20001))


def test_ray_63974_two_columns_of_ids_are_two_reservations(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    once = with_ids(numbers(spark), sequence="orders", store=store)
    twice = with_ids(once.frame, sequence="orders", store=store, name="other")
    found = rows_of(twice.frame, "v", "id", "other")
    assert len({each for row in found for each in row[1:]}) == 2000
    assert [row[:2] for row in found] == rows_of(once.frame, "v", "id")


def test_checkpoint_makes_random_input_repeatable(spark: Any, store: Counting) -> None:
    from pyspark.sql import functions as sql

    from mintage.ext.spark import with_ids

    other_each_time = sql.udf(lambda: uuid.uuid4().hex).asNondeterministic()
    loose = numbers(spark).repartition(3).withColumn("r", other_each_time()).sample(0.5)
    numbered = with_ids(loose, sequence="orders", store=store, checkpoint=True)
    found = rows_of(numbered.frame, "v", "r", "id")
    assert found == rows_of(numbered.frame, "v", "r", "id")
    assert sorted(row[2] for row in found) == list(numbered.ids[0])


def test_uncounted_extra_rows_are_an_error_and_no_duplicate(spark: Any, store: Counting, tmp_path: Path) -> None:
    from mintage.ext.spark import with_ids

    flag = str(tmp_path / "more")

    def growing(batches: Any) -> Any:
        from pathlib import Path

        for batch in batches:
            yield batch
            if Path(flag).exists():
                yield batch

    frame = with_ids(numbers(spark).mapInArrow(growing, "v bigint"), sequence="orders", store=store).frame
    before = rows_of(frame, "v", "id")
    assert len(before) == 1000
    Path(flag).touch()
    with pytest.raises(Exception, match="more rows than were counted"):
        frame.collect()


def test_rows_after_a_count_of_zero_are_an_error(spark: Any, store: Counting, tmp_path: Path) -> None:
    from mintage.ext.spark import with_ids

    flag = str(tmp_path / "some")

    def late(batches: Any) -> Any:
        from pathlib import Path

        for batch in batches:
            if Path(flag).exists():
                yield batch

    numbered = with_ids(numbers(spark).mapInArrow(late, "v bigint"), sequence="orders", store=store)
    assert numbered.ids == ()
    assert numbered.frame.collect() == []
    Path(flag).touch()
    with pytest.raises(Exception, match="more rows than were counted"):
        numbered.frame.collect()


# --- the same values where executors are lost ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the output of spark_cluster.py."""
    # make deep has more of both.
    rows = os.environ.get("MINTAGE_SPARK_ROWS", "")
    names = list(SHAPES) if rows else spark_shapes.BRIEF
    directory = str(tmp_path_factory.mktemp("cluster"))
    run = [sys.executable, "-m", "tests.ext.spark_cluster", directory, rows or "2000", *names]
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": BRIEF,
    }
    seconds, root = 1800 if rows else 280, Path(__file__).parents[2]
    done = subprocess.run(run, stdout=subprocess.PIPE, check=True, timeout=seconds, env=environment, cwd=root)
    return json.loads(done.stdout.splitlines()[-1])


def attempts_at(fault: str, cluster: Any) -> tuple[Any, list[Any]]:
    """Return what the events of Spark report of the attempt at the fault, and of the others at its partition.

    All of them saw the same rows, and so does a reader of the frame.
    """
    found = cluster[fault]
    seen = {note["task"]: note["rows"] for note in found["attempts"] if note["part"] == 0}
    assert all(rows == seen[found["first"]] != [] for rows in seen.values())
    assert found["after"] == cluster["before"]["shuffled"]
    started = [event["Task Info"] for event in cluster["events"] if event["Event"] == "SparkListenerTaskStart"]
    of = {task["Task ID"]: task for task in started if task["Task ID"] in seen}
    return of.pop(found["first"]), list(of.values())


def test_rows_of_a_cluster_have_unique_ids_at_each_level(cluster: Any) -> None:
    for rows in cluster["before"].values():
        *_, ids, keyed = zip(*rows, strict=True)
        assert len(set(keyed)) == len(set(ids)) == 300
        assert max(ids) - min(ids) == 299


def test_racing_attempts_have_the_same_ids_at_both_levels(cluster: Any) -> None:
    first, (other,) = attempts_at("raced", cluster)
    assert {first["Speculative"], other["Speculative"]} == {False, True}
    assert first["Host"] != other["Host"]


def test_killed_executor_changes_no_id_at_either_level(cluster: Any) -> None:
    first, others = attempts_at("killed", cluster)
    assert first["Executor ID"] not in [each["Executor ID"] for each in others] != []
    removed = [event for event in cluster["events"] if event["Event"] == "SparkListenerExecutorRemoved"]
    assert first["Executor ID"] in [event["Executor ID"] for event in removed]


def test_ids_survive_the_loss_of_all_executors(cluster: Any) -> None:
    for name in ("shuffled", "checkpoint"):
        assert cluster["after"][name] == cluster["before"][name]


def test_accepted_plan_has_the_same_ids_in_three_reads(cluster: Any) -> None:
    # Little memory, and all executors killed before each reading.
    assert {name: others for name, (_, *others) in cluster["shapes"].items() if any(others)} == {}
    assert all(rows for rows, *_ in cluster["shapes"].values())


def test_lost_local_checkpoint_is_an_error_without_other_ids(cluster: Any) -> None:
    assert "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND" in cluster["lost"]
    assert "local" not in cluster["after"]


# --- refused input ---------------------------------------------------------------------------------------------------


def loose_udf(frame: Any) -> Any:
    from pyspark.sql import functions as sql

    return frame.withColumn("x", sql.udf(lambda v: v, "bigint").asNondeterministic()("v"))


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "rand": (lambda frame: frame.selectExpr("v", "rand()"), r"rand\(\) in Project"),
    "rand_filter": (lambda frame: frame.filter("rand() > 0.5"), r"rand\(\) in Filter"),
    "spark_20861_uuid": (lambda frame: frame.selectExpr("v", "uuid()"), r"uuid\(\) in Project"),
    "place": (lambda frame: frame.selectExpr("v", "monotonically_increasing_id()"), "monotonically_increasing_id"),
    "udf": (loose_udf, r"<lambda>\(\) in Project"),
    "cached_rand": (lambda frame: frame.selectExpr("v", "rand() r").cache(), r"rand\(\)"),
    "spark_51016_random_join_key": (
        lambda frame: frame.selectExpr("if(v < 5, rand(), v) k").join(frame.selectExpr("double(v) k"), "k", "left"),
        r"rand\(\)",
    ),
    "round_robin": (lambda frame: frame.repartition(3), "come out of Repartition .* another order"),
    "by_key": (lambda frame: frame.repartition(3, "v"), "come out of RepartitionByExpression"),
    "aggregate": (lambda frame: frame.groupBy("v").count().repartition(3), "come out of Repartition"),
    "sort": (lambda frame: frame.sort("v", ascending=False), "come out of Sort"),
    "cached": (lambda frame: frame.repartition(3).cache(), "come out of Repartition"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_nondeterministic_plan_is_refused(spark: Any, store: Counting, what: str) -> None:
    from mintage.ext.spark import with_ids

    make, message = REFUSED[what]
    with pytest.raises(ConfigError, match=message) as caught:
        with_ids(make(numbers(spark, 100)), sequence="orders", store=store)
    assert caught.value.code == "config.plan"
    assert store.calls == []


@pytest.mark.parametrize("what", SHAPES_REFUSED)
def test_plan_that_shuffles_or_samples_rows_is_refused(spark: Any, store: Counting, what: str) -> None:
    from mintage.ext.spark import with_ids

    make, order, why = SHAPES_REFUSED[what]
    with pytest.raises(ConfigError, match=why) as caught:
        with_ids(make(spark, 200), sequence="orders", store=store, order=order)
    assert caught.value.code == "config.plan"
    assert "checkpoint=True" in str(caught.value)
    assert store.calls == []


@pytest.mark.parametrize("what", SHAPES)
def test_plan_that_keeps_its_rows_is_accepted(spark: Any, store: Counting, what: str) -> None:
    from mintage.ext.spark import with_ids

    make, order, _ = SHAPES[what]
    frame = make(spark, 200)
    numbered = with_ids(frame, sequence="orders", store=store, order=order)
    found = [row[-1] for row in numbered.frame.collect()]
    assert sorted(found) == [each for part in numbered.ids for each in part] != []


def test_unsorted_round_robin_is_refused(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    spark.conf.set("spark.sql.execution.sortBeforeRepartition", "false")
    try:
        with pytest.raises(ConfigError, match="Repartition gives other rows when it gets them in another order"):
            with_ids(numbers(spark, 9).sort("v").repartition(3), sequence="orders", store=store, order="v")
    finally:
        spark.conf.unset("spark.sql.execution.sortBeforeRepartition")


def test_texts_equal_in_their_collation_differ_by_bytes(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    texts = spark.createDataFrame([("a",), ("B",), ("A",), ("b",)], "c string").coalesce(1)
    frame = texts.selectExpr("collate(c, 'UTF8_LCASE') c").repartition(1)
    ids: dict[str, int] = dict(with_ids(frame, sequence="orders", store=store, order="c").frame.collect())
    assert ids == {"A": 1, "B": 2, "a": 3, "b": 4}
    twice = frame.union(frame).repartition(1)
    with pytest.raises(ConfigError, match="4 of partition 0 are equal to another in c"):
        with_ids(twice, sequence="orders", store=store, order="c")


def test_order_with_ties_is_refused(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    rows = numbers(spark).selectExpr("v", "v % 900 as k", "if(v = 3, null, v) as n").repartition(2, "k")
    with pytest.raises(ConfigError, match=r"order does not tell the rows apart: \d+ of partition \d are equal"):
        with_ids(rows, sequence="orders", store=store, order="k")
    assert store.calls == []
    (ids,) = with_ids(rows, sequence="orders", store=store, order=["k", "n"]).ids
    assert len(ids) == 1000


def test_jdbc_source_is_refused(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    url = "jdbc:derby:memory:mintage;create=true"
    numbers(spark, 10, 1).write.jdbc(url, "t", "overwrite")
    read = spark.read.jdbc(url, "t")
    with pytest.raises(ConfigError, match="asks a database"):
        with_ids(read, sequence="orders", store=store)
    assert len(with_ids(read, sequence="orders", store=store, checkpoint=True).ids[0]) == 10


def test_batch_of_a_stream_needs_a_checkpoint(spark: Any, store: Counting, tmp_path: Path) -> None:
    from mintage.ext.spark import with_ids

    numbers(spark, 10, 1).write.parquet(str(tmp_path / "in"))
    found: list[Any] = []

    def number(frame: Any, _: int) -> None:
        with pytest.raises(ConfigError, match="LogicalRDD has the rows of another frame"):
            with_ids(frame, sequence="orders", store=store)
        found.extend(rows_of(with_ids(frame, sequence="orders", store=store, checkpoint=True).frame, "*"))

    stream = spark.readStream.schema("v bigint").parquet(str(tmp_path / "in")).writeStream
    stream.option("checkpointLocation", str(tmp_path / "at")).trigger(availableNow=True).foreachBatch(
        number
    ).start().awaitTermination()
    assert found == [(each, each + 1) for each in range(10)]


def test_files_and_tables_are_accepted(spark: Any, store: Counting, tmp_path: Path) -> None:
    from mintage.ext.spark import with_ids

    frame = numbers(spark, 100)
    frame.write.bucketBy(2, "v").sortBy("v").saveAsTable("bucketed")
    read = [spark.table("bucketed")]
    for kind in ("parquet", "orc", "json", "csv"):
        path = str(tmp_path / kind)
        frame.write.option("header", "true").format(kind).save(path)
        read.append(spark.read.option("header", "true").format(kind).load(path))
    for each in read:
        assert len(with_ids(each, sequence="orders", store=store).frame.collect()) == 100
    spark.sql("drop table bucketed")


def test_stream_is_not_counted(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids

    with pytest.raises(ConfigError, match="foreachBatch"):
        with_ids(spark.readStream.format("rate").load(), sequence="orders", store=store)


def test_wrong_arguments_are_reported(spark: Any, store: Counting) -> None:
    from mintage.ext.spark import with_ids, with_keyed_ids

    frame = numbers(spark).selectExpr("v", "double(v) f", "timestamp_millis(v) t", "map(v, v) m")
    wrong: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (ArgumentError, "frame must be a DataFrame", lambda: with_ids([1], sequence="s", store=store)),  # type: ignore[arg-type]
        (FieldError, "name cannot be 'V'", lambda: with_ids(frame, sequence="s", store=store, name="V")),
        (FieldError, "name cannot be ''", lambda: with_ids(frame, sequence="s", store=store, name="")),
        (FieldError, "no column of that name", lambda: with_ids(frame, sequence="s", store=store, order="w")),
        (ArgumentError, "type double", lambda: with_ids(frame, sequence="s", store=store, order="f")),
        (ArgumentError, "it has its own", lambda: with_ids(frame, sequence=Sequence("s", store), store=store)),
        (ConfigError, "name", lambda: with_ids(frame, sequence="s p", store=store)),
        (FieldError, "key names no column", lambda: with_keyed_ids(frame, key=[], time="t")),
        (ArgumentError, "type double", lambda: with_keyed_ids(frame, key="f", time="t")),
        (ArgumentError, "type map", lambda: with_keyed_ids(frame, key="m", time="t")),
        (ArgumentError, "time must be", lambda: with_keyed_ids(frame, key="v", time=3)),  # type: ignore[arg-type]
        (FieldError, "secret is empty", lambda: with_keyed_ids(frame, key="v", time="t", secret="")),
        (ArgumentError, "secret must be", lambda: with_keyed_ids(frame, key="v", time="t", secret=3)),  # type: ignore[arg-type]
        (FieldError, "form must be", lambda: with_keyed_ids(frame, key="v", time="t", form="hex")),  # type: ignore[arg-type]
    ]
    for kind, message, call in wrong:
        with pytest.raises(kind, match=message):
            call()


# --- keyed -----------------------------------------------------------------------------------------------------------


def keyed(millis: int, message: bytes, secret: bytes | None = None) -> str:
    """Return the ID, computed as the documentation describes."""
    hashed = b"mintage.keyed\0" + message
    made = hashlib.sha256(hashed).digest() if secret is None else hmac.digest(secret, hashed, "sha256")
    number = int.from_bytes(made[:16], "big") & ~(0xF << 76 | 0x3 << 62) | 0x8 << 76 | 0x2 << 62
    return str(uuid.UUID(int=number & (1 << 80) - 1 | millis << 80))


VECTORS: dict[str, tuple[str, object, bytes]] = {
    "int": ("int", 42, b"n2:42"),
    "bigint": ("bigint", -42, b"n3:-42"),
    "decimal": ("decimal(10,2)", Decimal("42.00"), b"n2:42"),
    "fraction": ("decimal(38,18)", Decimal("-0.000000000000000010"), b"n20:-0.00000000000000001"),
    "large": ("decimal(38,0)", Decimal(10**37), b"n38:1" + b"0" * 37),
    "zero": ("decimal(10,4)", Decimal(0), b"n1:0"),
    "text": ("string", "Zoë", b"s4:Zo\xc3\xab"),
    "empty": ("string", "", b"s0:"),
    "binary": ("binary", bytearray(b"\0\xff"), b"x2:\0\xff"),
    "true": ("boolean", True, b"b1:1"),
    "date": ("date", datetime.date(2026, 11, 22), b"d5:20779"),
    "timestamp": ("timestamp", T0, b"t16:1795343400000000"),
    "local": ("timestamp_ntz", T0.replace(tzinfo=None, microsecond=500000), b"l21:2026-11-22 10:30:00.5"),
    "null": ("string", None, b"-"),
}
MILLIS = 1795343400000


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("secret", [None, b"a secret of ours"], ids=["public", "secret"])
def test_keyed_id_is_the_documented_hash(spark: Any, secret: bytes | None, ansi: str) -> None:
    from mintage.ext.spark import with_keyed_ids

    schema = ", ".join(f"`{name}` {kind}" for name, (kind, _, _) in VECTORS.items()) + ", t timestamp"
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        frame = spark.createDataFrame([(*(value for _, value, _ in VECTORS.values()), T0)], schema)
        for name in VECTORS:
            frame = with_keyed_ids(frame, key=name, time="t", name=f"id of {name}", secret=secret, form="text")
        frame = with_keyed_ids(frame, key=list(VECTORS), time="t", name="all", secret=secret)
        (row,) = frame.collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert {name: row[f"id of {name}"] for name in VECTORS} == {
        name: keyed(MILLIS, message, secret) for name, (_, _, message) in VECTORS.items()
    }
    everything = b"".join(message for _, _, message in VECTORS.values())
    assert str(uuid.UUID(bytes=bytes(row["all"]))) == keyed(MILLIS, everything, secret)


def test_example_of_the_page_is_correct(spark: Any) -> None:
    from mintage.ext.spark import with_keyed_ids

    frame = spark.createDataFrame([(42, "eu", None, T0)], "a int, b string, c binary, t timestamp")
    (row,) = with_keyed_ids(frame, key=["a", "b", "c"], time="t", form="text").collect()
    assert row["id"] == "01a202ce-3c40-8b7b-86fd-e2cbbd6b7bbe"
    assert row["id"] == keyed(MILLIS, b"n2:42s2:eu-")
    assert row["id"] in (with_keyed_ids.__doc__ or "")


def test_keyed_ids_sort_by_time_of_any_type(spark: Any) -> None:
    from mintage.ext.spark import with_keyed_ids

    day = MILLIS // 86_400_000 * 86_400_000
    times = {"timestamp": T0, "timestamp_ntz": T0.replace(tzinfo=None), "bigint": MILLIS, "date": T0.date()}
    for kind, value in times.items():
        frame = spark.createDataFrame([(1, value)], f"v int, t {kind}")
        (row,) = with_keyed_ids(frame, key="v", time="t").collect()
        assert int.from_bytes(row["id"][:6], "big") == (day if kind == "date" else MILLIS)
        assert uuid.UUID(bytes=bytes(row["id"])).version == 8


@pytest.mark.parametrize("value", [None, -1, 2**48])
def test_row_without_a_valid_time_is_an_error(spark: Any, value: int | None) -> None:
    from mintage.ext.spark import with_keyed_ids

    frame = spark.createDataFrame([(1, value)], "v int, t bigint")
    with pytest.raises(Exception, match=r"mintage: t is .*: no time of an ID"):
        with_keyed_ids(frame, key="v", time="t").collect()


def test_chronon_1111_keyed_ids_survive_retries_and_repartitioning(spark: Any, tmp_path: Path) -> None:
    from mintage.ext.spark import with_keyed_ids

    frame = numbers(spark).selectExpr("v", "timestamp_millis(v) t")

    def ids(of: Any) -> Any:
        return with_keyed_ids(of, key="v", time="t", secret="s", form="text")

    before = rows_of(ids(frame), "v", "id")
    tried = ids(frame.repartition(7)).mapInArrow(recording(tmp_path, True), "v bigint, t timestamp, id string")
    assert rows_of(tried, "v", "id") == before
    assert len({each for _, each in before}) == 1000
    noted = [each["rows"] for each in attempts(tmp_path)]
    assert sorted(map(sorted, noted[::2])) != []
    assert {tuple(row) for rows in noted for row in rows} == set(before)


def test_secret_is_in_no_plan(spark: Any) -> None:
    from mintage.ext.spark import with_keyed_ids

    frame = numbers(spark).selectExpr("v", "timestamp_millis(v) t")
    plan = with_keyed_ids(frame, key="v", time="t", secret="hush-hush")._jdf.queryExecution().toString()
    assert "hush" not in plan
    assert b"hush".hex() not in plan.lower()


def test_executors_need_no_mintage() -> None:
    import pyspark.cloudpickle

    from mintage.ext import spark as module

    dumps: Any = pyspark.cloudpickle.dumps
    sent = dumps((module._counter(), module._hmac("s").func))
    code = (
        "import sys, pickle; sys.modules['mintage'] = None\n"
        "import pyarrow as pa\n"
        "count, keyed = pickle.loads(sys.stdin.buffer.read())\n"
        "batch = pa.RecordBatch.from_pydict({'place': [1 << 33, (1 << 33) + 1], 'key': [5, 5]})\n"
        "assert next(count(iter([batch, batch]))).to_pydict() == {'part': [1], 'rows': [4], 'equal': [3]}\n"
        "print(keyed(pa.array([b'n1:1']))[0].as_py().hex())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True, cwd="/")
    assert done.stdout.decode().strip() == hmac.digest(b"s", b"n1:1", "sha256")[:16].hex()
    assert pickle.loads(sent)


@pytest.mark.parametrize("module", ["pyspark", "pyarrow"])
def test_import_without_spark_says_what_installs_it(module: str) -> None:
    code = f"import sys; sys.modules[{module!r}] = None\nimport mintage.ext.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert f"this needs the package {module}" in done.stderr
    assert "[spark]" in done.stderr
