"""A job of Spark that gives old orders their IDs: ``python number_orders.py IN OUT STORE``.

IN has Parquet files with the columns ``shop``, ``number`` and ``at``. In OUT, each row has ``id``, an integer of the
sequence ``orders``, and ``ref``, 16 bytes that the same order has in every job of one ``ORDERS_SECRET``: run it again
with another OUT, and the integers are others, and ``ref`` is not. STORE is a URL, such as ``postgresql://ids@db/ids``;
only this process asks it.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from mintage.ext.spark import with_ids, with_keyed_ids


def main(source: str, target: str, store: str) -> None:
    spark = SparkSession.builder.appName("number orders").getOrCreate()
    orders = spark.read.parquet(source).distinct()
    # The rows come out of a shuffle, so with_ids needs an order: two columns that tell rows apart.
    numbered, ids = with_ids(orders, sequence="orders", store=store, order=["shop", "number"])
    secret = os.environ["ORDERS_SECRET"]
    done = with_keyed_ids(numbered, key=["shop", "number"], time="at", name="ref", secret=secret)
    done.write.parquet(target)
    print(
        f"{sum(map(len, ids)):,} orders have IDs in {', '.join(f'{each.start}..{each[-1]}' for each in ids) or 'none'}"
    )
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
