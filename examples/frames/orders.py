"""Orders from a CSV file get IDs, are stored as Parquet, and are found again by the time that their IDs tell.

    python orders.py [directory]

Each of pandas, Polars and DuckDB does it with a generator of its own node number, so all of them may run at once.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pandas as pd
import polars as pl

from mintage import sno
from mintage.ext import duckdb as in_duckdb
from mintage.ext import pandas as in_pandas
from mintage.ext import polars as in_polars

if TYPE_CHECKING:
    from collections.abc import Callable

CSV = Path(__file__).parent / "orders.csv"


def by_pandas(generator: sno.Generator, path: Path) -> None:
    """Writes the orders with IDs, by pandas."""
    in_pandas.with_id(pd.read_csv(CSV), generator).to_parquet(path, index=False)


def by_polars(generator: sno.Generator, path: Path) -> None:
    """The same by Polars: a lazy plan is run first, since a plan may run twice."""
    in_polars.with_id(pl.scan_csv(CSV).collect(), generator).write_parquet(path)


def by_duckdb(generator: sno.Generator, path: Path) -> None:
    """The same by DuckDB."""
    with duckdb.connect() as connection:
        in_duckdb.with_id(connection.read_csv(str(CSV)), generator).write_parquet(str(path))


ENGINES: dict[str, Callable[[sno.Generator, Path], None]] = {
    "pandas": by_pandas,
    "Polars": by_polars,
    "DuckDB": by_duckdb,
}


def orders_between(directory: Path, start: datetime, end: datetime) -> pl.DataFrame:
    """The orders of all files that were given their IDs from ``start`` on and before ``end``, in that order."""
    found = pl.scan_parquet(directory / "*.parquet").filter(in_polars.minted_between("sno", "id", start, end)).collect()
    return found.with_columns(
        in_polars.time_of(found["id"], "sno").alias("time"),
        in_polars.node_of(found["id"], "sno").alias("node"),
        in_polars.text(found["id"], "sno"),
    ).sort("id")


def main(directory: Path) -> None:
    """Writes a file an engine, and shows what is in them."""
    start = datetime.now(UTC)
    for name, write in ENGINES.items():
        with sno.Generator() as generator:  # it leases a node number, so this program may run twice at once
            write(generator, directory / f"{name}.parquet")
    orders = orders_between(directory, start, datetime.now(UTC) + timedelta(seconds=1))
    earlier = orders_between(directory, start - timedelta(days=1), start - timedelta(seconds=1))
    print(orders)
    print(f"{orders.height} orders since {start:%H:%M:%S}, {earlier.height} on the day before")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
