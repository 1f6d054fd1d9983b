"""Plans of Spark that ``with_ids`` accepts or refuses, each built from a session and a number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as sql
from pyspark.sql.window import Window

if TYPE_CHECKING:
    from collections.abc import Callable


class Shape(NamedTuple):
    """A plan, its order, and for a refused one the reason."""

    make: Callable[[Any, int], Any]
    order: tuple[str, ...] = ()
    why: str = ""


def rows(spark: Any, count: int) -> Any:
    """Return four partitions with a unique number in ``v``, few values in ``k`` and few texts in ``c``."""
    made = spark.range(0, count, 1, 4).selectExpr("id as v", "id % 13 as k", "double(id) / 7 as d")
    return made.withColumn("c", sql.expr("collate(if(v % 2 = 0, 'a', 'A') || (v div 2), 'UTF8_LCASE')"))


def one(spark: Any, count: int) -> Any:
    """Return the same rows in one partition, which Spark needs no shuffle to sort or group."""
    return rows(spark, count).coalesce(1)


def shuffled(spark: Any, count: int) -> Any:
    """Return the same rows in an undefined order."""
    return rows(spark, count).repartition(3, "k")


def viewed(frame: Any, query: str) -> Any:
    """Return the result of a query on the frame, named ``t``."""
    frame.createOrReplaceTempView("t")
    return frame.sparkSession.sql(query)


def numbered() -> Any:
    """Return the number of a row among those of its ``k``, by a column with many equal values."""
    return sql.row_number().over(Window.partitionBy("k").orderBy(sql.expr("v % 5")))


ORDERLY: dict[str, Shape] = {
    "select": Shape(lambda s, n: rows(s, n).select("v").filter("v % 3 > 0")),
    "union": Shape(lambda s, n: rows(s, n).union(one(s, n).selectExpr("v + 1000000", "k", "d", "c"))),
    "explode": Shape(lambda s, n: rows(s, n).selectExpr("v", "explode(sequence(0, k)) e")),
    "coalesce": Shape(lambda s, n: rows(s, n).coalesce(2)),
    "unpivot": Shape(lambda s, n: rows(s, n).selectExpr("v", "k").unpivot("v", ["k"], "n", "value")),
    "query": Shape(lambda s, n: viewed(rows(s, n), "with u as (select v, k from t) select v from u where k > 3")),
    "values": Shape(lambda s, n: s.sql("select * from values (1L), (2L) as t(v)")),
    "passed": Shape(lambda s, n: s.createDataFrame([(each, str(each)) for each in range(100)], "v bigint, s string")),
    "collection": Shape(lambda s, n: s.createDataFrame(s.sparkContext.parallelize([(1,), (2,)]), "v bigint")),
    "udf": Shape(lambda s, n: rows(s, n).withColumn("u", sql.udf(lambda v: v + 1, "bigint")("v"))),
    "map": Shape(lambda s, n: rows(s, n).select("v").mapInArrow(lambda batches: batches, "v bigint")),
    "hint": Shape(lambda s, n: rows(s, n).hint("broadcast")),
    "cached": Shape(lambda s, n: rows(s, n).filter("v > 5").cache()),
    "checkpoint": Shape(lambda s, n: shuffled(s, n).sort("k").checkpoint()),
}
"""Accepted without an order."""

ORDERED: dict[str, Shape] = {
    "hash": Shape(shuffled, ("v",)),
    "round robin": Shape(lambda s, n: shuffled(s, n).repartition(5), ("v",)),
    "range": Shape(lambda s, n: rows(s, n).repartitionByRange(3, "k"), ("v",)),
    "rebalanced": Shape(lambda s, n: rows(s, n).hint("rebalance"), ("v",)),
    "sort": Shape(lambda s, n: rows(s, n).sort("k"), ("v",)),
    "sort by collation": Shape(lambda s, n: rows(s, n).sort("c"), ("c",)),
    "join": Shape(
        lambda s, n: rows(s, n).join(shuffled(s, n).selectExpr("v w", "k"), "k").filter("w < 20"), ("v", "w")
    ),
    "collated": Shape(lambda s, n: shuffled(s, n).select("c", "v"), ("c",)),
    "count": Shape(lambda s, n: shuffled(s, n).groupBy("v").agg(sql.count("*"), sql.sum("k"), sql.max("v")), ("v",)),
    "latest": Shape(lambda s, n: rows(s, n).groupBy("k").agg(sql.max(sql.struct("v", "k")).alias("last")), ("k",)),
    "distinct": Shape(lambda s, n: shuffled(s, n).select("v", "d").distinct(), ("v",)),
    "distinct rows": Shape(lambda s, n: shuffled(s, n).select("v", "k").dropDuplicates(), ("v",)),
    "intersect": Shape(lambda s, n: rows(s, n).select("v").intersect(shuffled(s, n).select("v")), ("v",)),
    "subtract": Shape(lambda s, n: rows(s, n).select("v").subtract(shuffled(s, n).select("k")), ("v",)),
    "in": Shape(
        lambda s, n: viewed(shuffled(s, n), "select * from t where v in (select v from t where k < 5)"), ("v",)
    ),
    "scalar": Shape(
        lambda s, n: viewed(shuffled(s, n), "select * from t where v < (select max(v) - 9 from t)"), ("v",)
    ),
}
"""Accepted with one."""

TAKES = "takes other rows when they come in another order"
UNLIKE = "gives another value when rows come in another order"
MIXED = "may come in another order"

REFUSED: dict[str, Shape] = {
    "sort of one partition": Shape(lambda s, n: one(s, n).sort("k"), (), f"out of Sort {MIXED}"),
    "sort within": Shape(lambda s, n: rows(s, n).sortWithinPartitions("k"), (), f"out of Sort {MIXED}"),
    "group of one partition": Shape(lambda s, n: one(s, n).groupBy("v").count(), (), f"out of Aggregate {MIXED}"),
    "distinct of one": Shape(lambda s, n: one(s, n).select("v").distinct(), (), f"out of Deduplicate {MIXED}"),
    "union of one": Shape(
        lambda s, n: viewed(one(s, n), "select v from t union select k from t"), (), f"out of Distinct {MIXED}"
    ),
    "broadcast": Shape(lambda s, n: rows(s, n).join(sql.broadcast(one(s, n)), "v"), (), f"out of Join {MIXED}"),
    "in": Shape(
        lambda s, n: viewed(one(s, n), "select * from t where v in (select v from t)"),
        (),
        "out of a subquery in Filter",
    ),
    "scalar": Shape(
        lambda s, n: viewed(one(s, n), "select v, (select max(v) from t) m from t"), (), "out of a subquery in Project"
    ),
    "cached": Shape(lambda s, n: one(s, n).sort("k").cache(), (), f"out of Sort {MIXED}"),
    "local": Shape(lambda s, n: shuffled(s, n).localCheckpoint(), (), f"out of LogicalRDD {MIXED}"),
    "rows": Shape(lambda s, n: s.createDataFrame(one(s, n).sort("k").rdd), (), "LogicalRDD has the rows of another"),
    "ordered rows": Shape(
        lambda s, n: s.createDataFrame(one(s, n).dropDuplicates(["k"]).rdd),
        ("v",),
        "LogicalRDD has the rows of another",
    ),
    "later": Shape(lambda s, n: one(s, n).sort("k").checkpoint(eager=False), (), "LogicalRDD has the rows of another"),
    "limit": Shape(lambda s, n: rows(s, n).limit(50), ("v",), f"GlobalLimit {TAKES}"),
    "offset": Shape(lambda s, n: rows(s, n).offset(50), ("v",), f"Offset {TAKES}"),
    "sample": Shape(lambda s, n: shuffled(s, n).sample(0.5, 1), ("v",), f"Sample {TAKES}"),
    "limit in a subquery": Shape(
        lambda s, n: viewed(shuffled(s, n), "select * from t where v in (select v from t limit 100)"),
        ("v",),
        f"GlobalLimit {TAKES}",
    ),
    "limit in a view": Shape(
        lambda s, n: viewed(viewed(shuffled(s, n), "select * from t limit 9"), "select v from t"), ("v",), TAKES
    ),
    "limit in exists": Shape(
        lambda s, n: viewed(
            shuffled(s, n), "with u as (select v from t limit 9) select * from t where exists (select 1 from u)"
        ),
        ("v",),
        TAKES,
    ),
    "row number": Shape(
        lambda s, n: shuffled(s, n).withColumn("n", numbered()).filter("n <= 3"),
        ("v",),
        "Window gives rows other values",
    ),
    "duplicates": Shape(lambda s, n: shuffled(s, n).dropDuplicates(["k"]), ("v",), f"Deduplicate {TAKES}"),
    "first": Shape(lambda s, n: shuffled(s, n).groupBy("k").agg(sql.first("v").alias("v")), ("v",), r"first\(\) in"),
    "list": Shape(
        lambda s, n: shuffled(s, n).groupBy("k").agg(sql.collect_list("v")[0].alias("v")),
        ("v",),
        r"collect_list\(\) in",
    ),
    "floats": Shape(
        lambda s, n: shuffled(s, n).groupBy("k").agg(sql.sum("d")), ("k",), rf"sum\(\) in Aggregate {UNLIKE}"
    ),
    "average": Shape(lambda s, n: shuffled(s, n).groupBy("k").avg("v"), ("k",), rf"avg\(\) in Aggregate {UNLIKE}"),
    "largest text": Shape(
        lambda s, n: shuffled(s, n).groupBy("k").agg(sql.max("c")), ("k",), rf"max\(\) in Aggregate {UNLIKE}"
    ),
    "largest by": Shape(
        lambda s, n: shuffled(s, n).groupBy("k").agg(sql.max_by("v", "k").alias("v")),
        ("v",),
        r"max_by\(\) in Aggregate",
    ),
    "group by text": Shape(
        lambda s, n: shuffled(s, n).groupBy("c").count(),
        ("c",),
        "Aggregate takes one of several string collate UTF8_LCASE",
    ),
    "distinct text": Shape(
        lambda s, n: shuffled(s, n).select(sql.struct("c").alias("c"), "k").distinct(),
        ("k",),
        "Deduplicate takes one of",
    ),
    "except text": Shape(lambda s, n: shuffled(s, n).exceptAll(rows(s, 5)), ("v",), "Except takes one of several"),
    "groups": Shape(
        lambda s, n: (
            shuffled(s, n).groupBy("k").applyInArrow(lambda table: table, "v bigint, k bigint, d double, c string")
        ),
        ("v",),
        "FlatMapGroupsInArrow is not known to give the same rows",
    ),
    "map": Shape(
        lambda s, n: shuffled(s, n).select("v").mapInArrow(lambda batches: batches, "v bigint"),
        ("v",),
        "MapInArrow gives other rows when it gets them in another order",
    ),
    "map of a collection": Shape(
        lambda s, n: s.createDataFrame(
            s.sparkContext.parallelize([(each,) for each in range(n)]).repartition(3), "v bigint"
        ).mapInArrow(lambda batches: batches, "v bigint"),
        ("v",),
        "MapInArrow gives other rows when it gets them in another order",
    ),
    "random": Shape(
        lambda s, n: viewed(one(s, n), "select * from t where v > (select rand())"), ("v",), r"scalarsubquery\(\) in"
    ),
}
"""Refused, with the reason."""

BRIEF = ("collated", "distinct", "in", "round robin", "union")
"""The accepted plans that a short run reads again after executors were killed."""
