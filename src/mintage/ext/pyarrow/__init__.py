"""Columns of IDs in Arrow: filled with one ``batch``, and decoded without a loop over rows.

The modules of other engines use this one.

>>> import pyarrow as pa
>>> from mintage import snowflake
>>> from mintage.ext.pyarrow import node_of, with_id
>>> orders = with_id(pa.table({"item": ["pen", "ink"]}), snowflake.Generator(node=786))
>>> orders.schema.names, node_of(orders["id"], "snowflake").to_pylist()
(['id', 'item'], [786, 786])

The functions read each ID of a column. The expressions are Arrow's own, for the scanner of a dataset or ``filter``:

>>> from datetime import datetime, timezone
>>> from mintage.ext.pyarrow import minted_between, node_expr, parse, text, time_expr, time_of
>>> ids = parse(pa.array(["175928847299117063"]), "discord")
>>> text(ids, "discord")[0].as_py(), time_of(ids, "discord")[0].as_py().isoformat()
('175928847299117063', '2016-04-30T11:18:25.796000+00:00')
>>> may, june = datetime(2016, 5, 1, tzinfo=timezone.utc), datetime(2016, 6, 1, tzinfo=timezone.utc)
>>> pa.table({"id": ids}).filter(minted_between("discord", "id", may, june)).num_rows
0
>>> columns = {"time": time_expr("discord"), "node": node_expr("discord")}  # for dataset.scanner(columns=…)
"""

from __future__ import annotations

from mintage.installation import missing

try:
    from mintage.ext.pyarrow._decoding import field_of, node_of, parse, text, time_of
    from mintage.ext.pyarrow._expressions import minted_between, node_expr, time_expr
    from mintage.ext.pyarrow._filling import new_ids_column, with_id
except ModuleNotFoundError as error:
    raise missing(error, "arrow") from None

__all__ = [
    "field_of",
    "minted_between",
    "new_ids_column",
    "node_expr",
    "node_of",
    "parse",
    "text",
    "time_expr",
    "time_of",
    "with_id",
]
