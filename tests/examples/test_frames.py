"""The example of frames runs as it stands, and every order has an ID of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl

EXAMPLE = Path(__file__).parents[2] / "examples" / "frames" / "orders.py"


def test_orders_are_stored_and_found_by_time(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), str(tmp_path)], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "24 orders since " in done.stdout
    assert "0 on the day before" in done.stdout
    files = sorted(tmp_path.glob("*.parquet"))
    assert [each.stem for each in files] == ["DuckDB", "Polars", "pandas"]
    ids = pl.concat([pl.read_parquet(each)["id"] for each in files])
    assert ids.dtype == pl.Binary
    assert ids.n_unique() == 24
