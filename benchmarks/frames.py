"""The rows of frames.

One compares the column of times of an engine with a hand-written expression, the other a column filled by `with_id`
with a batch that is made a series.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.row import Row, at_most
from benchmarks.timing import Loop, Side, side_by_side

DECODED = 10_000_000
"""Rows of a column of which the times are computed."""
FILLED = 10_000_000
"""Rows of a frame that gets IDs."""
EPOCH_MS = 1_420_070_400_000


def _times(f: Callable[[], object], n: int) -> None:
    for _ in range(n):
        f()


def _side(prepare: Callable[[], Callable[[], object]], rows: int) -> Side:
    def made() -> Loop:
        return partial(_times, prepare())

    return Side(made, 1, rows)


def _integers() -> Any:
    import numpy as np

    return np.arange(DECODED, dtype=np.int64) * 1_000_003 + (1 << 60)


def _polars(expression: Callable[[Any], Any]) -> Side:
    def prepare() -> Callable[[], object]:
        import polars as pl

        frame, made = pl.DataFrame({"id": _integers()}), expression(pl)
        return lambda: frame.select(made)

    return _side(prepare, DECODED)


def _ours(module: str) -> Callable[[Any], Any]:
    from pkgutil import resolve_name

    return lambda _: resolve_name(f"mintage.ext.{module}:time_expr")("snowflake", "id")


def _duckdb(sql: Callable[[], str]) -> Side:
    def prepare() -> Callable[[], object]:
        import duckdb
        import pyarrow as pa

        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        connection.register("rows", pa.table({"id": _integers()}))
        connection.execute("CREATE TABLE ids AS FROM rows")
        query = f"SELECT max({sql()}) FROM ids"
        return lambda: connection.execute(query).fetchall()

    return _side(prepare, DECODED)


def _sql_time() -> str:
    from mintage.formats.sql import sql_time

    return sql_time("snowflake", "id", "duckdb")


def _pandas(expression: Callable[[Any], Callable[[Any], object]]) -> Side:
    def prepare() -> Callable[[], object]:
        import pandas as pd

        frame, made = pd.DataFrame({"id": _integers()}), expression(pd)
        return lambda: made(frame)

    return _side(prepare, DECODED)


def _pandas_ours(_: Any) -> Callable[[Any], object]:
    from mintage.ext.pandas import time_expr

    made = time_expr("snowflake", "id")
    return lambda frame: frame.assign(time=made)


def _pandas_by_hand(_: Any) -> Callable[[Any], object]:
    return lambda frame: frame.assign(time=(frame["id"] // (1 << 22) + EPOCH_MS).astype("datetime64[ms, UTC]"))


def _arrow_ours() -> Callable[[], object]:
    import pyarrow as pa

    from mintage.ext.pyarrow import time_of

    column = pa.array(_integers())
    return lambda: time_of(column, "snowflake")


def _arrow_by_hand() -> Callable[[], object]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pa.array(_integers())
    return lambda: pc.add(pc.shift_right(column, 22), EPOCH_MS).cast(pa.timestamp("ms", "UTC"))


def _with_id() -> Callable[[], object]:
    import polars as pl

    from mintage import sno
    from mintage.ext.polars import with_id

    frame, generator = pl.DataFrame({"row": range(FILLED)}), sno.Generator(partition=1)
    return lambda: with_id(frame, generator)


def _batch_and_series() -> Callable[[], object]:
    import polars as pl

    from mintage import sno

    frame, generator = pl.DataFrame({"row": range(FILLED)}), sno.Generator(partition=1)
    return lambda: frame.with_columns(pl.Series("id", generator.batch(FILLED)))


FRAMES: tuple[Row, ...] = (
    Row(
        "polars time_expr(snowflake)",
        "(id // 2**22 + epoch).cast(Datetime), by hand",
        side_by_side(
            _polars(_ours("polars")),
            _polars(lambda pl: (pl.col("id") // (1 << 22) + EPOCH_MS).cast(pl.Datetime("ms", "UTC"))),
        ),
        at_most(1.1),
    ),
    Row(
        "duckdb sql_time(snowflake)",
        "epoch_ms((id >> 22) + epoch) AT TIME ZONE 'UTC', by hand",
        side_by_side(_duckdb(_sql_time), _duckdb(lambda: f"epoch_ms((id >> 22) + {EPOCH_MS}) AT TIME ZONE 'UTC'")),
        at_most(1.1),
    ),
    Row(
        "pandas time_expr(snowflake)",
        "(id // 2**22 + epoch).astype(datetime64), by hand",
        side_by_side(_pandas(_pandas_ours), _pandas(_pandas_by_hand)),
        at_most(1.1),
    ),
    Row(
        "pyarrow time_of(snowflake)",
        "pc.add(pc.shift_right(id, 22), epoch), by hand",
        side_by_side(_side(_arrow_ours, DECODED), _side(_arrow_by_hand, DECODED)),
        at_most(2),
        note="ours looks whether each is of the layout",
    ),
    Row(
        "polars with_id(sno)",
        "with_columns(Series(batch))",
        side_by_side(_side(_with_id, FILLED), _side(_batch_and_series, FILLED)),
        at_most(1.1),
        note="10 M rows; a generator's own ceiling is 61 ns an ID",
    ),
)
"""Ratios of alternating runs; the figures are nanoseconds a row."""
