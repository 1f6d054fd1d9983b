"""Reports on the orders that orders.py wrote, by pandas, and files for other programs.

python reports.py [directory]
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import polars as pl

from mintage import Sequence
from mintage.ext import pandas as in_pandas
from mintage.ext import polars as in_polars


def read_orders(directory: Path) -> pd.DataFrame:
    """Read the orders of all files, in the order of their IDs, whichever engine wrote them."""
    files = [pd.read_parquet(path).astype({"id": "binary[pyarrow]"}) for path in sorted(directory.glob("*.parquet"))]
    return pd.concat(files).sort_values("id", ignore_index=True)


def with_invoices(orders: pd.DataFrame) -> pd.DataFrame:
    """Give each order of 3.00 or more an invoice number; the others have none."""
    with Sequence("invoices") as numbers:
        invoiced = in_pandas.with_id(orders.loc[orders["price"] >= 3, ["id"]], numbers, "invoice")
    return orders.merge(invoiced.astype({"invoice": "Int64"}), on="id", how="left")


def write_csv(orders: pd.DataFrame, path: Path) -> None:
    """Write the IDs as text: of bytes, pandas would write what Python shows."""
    orders.assign(id=in_pandas.text(orders["id"], "sno")).to_csv(path, index=False)


def read_csv(path: Path) -> pl.DataFrame:
    """Read a file of write_csv by Polars, with IDs as bytes again."""
    orders = pl.read_csv(path, schema_overrides={"id": pl.String})
    return orders.with_columns(in_polars.parse(orders["id"], "sno"))


def main(directory: Path) -> None:
    """Write the reports."""
    orders = with_invoices(read_orders(directory))
    orders.to_feather(directory / "numbered.feather")
    write_csv(orders, directory / "numbered.csv")
    print(f"{len(orders)} orders, {orders['invoice'].count()} of them with an invoice")
    for hour, count in orders.groupby(in_pandas.time_of(orders["id"], "sno").dt.floor("h")).size().items():
        print(f"{hour:%Y-%m-%d %H:%M}: {count} orders")
    if read_csv(directory / "numbered.csv")["id"].to_list() == orders["id"].to_list():
        print("numbered.csv has the same IDs")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
