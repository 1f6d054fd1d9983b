"""Write orders of two shops, some of them twice: ``python make_orders.py FILE``."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

START = datetime(2026, 11, 22, 10, 30, tzinfo=UTC)


def main(path: str) -> None:
    """Write 50 orders of each shop, and the first ten once more."""
    orders = [
        {"shop": shop, "number": number, "at": START + timedelta(minutes=number)}
        for shop in ("eu", "us")
        for number in range(50)
    ]
    rows = orders + orders[:10]
    pq.write_table(pa.Table.from_pylist(rows), path)
    print(f"{len(rows)} rows")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
