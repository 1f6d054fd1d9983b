"""Columns of IDs in Arrow: filled with one ``batch``, and decoded without a loop over rows.

The modules of other engines use this one.

>>> import pyarrow as pa
>>> from mintage import snowflake
>>> from mintage.ext.pyarrow import node_of, with_id
>>> orders = with_id(pa.table({"item": ["pen", "ink"]}), snowflake.Generator(node=786))
>>> orders.schema.names, node_of(orders["id"], "snowflake").to_pylist()
(['id', 'item'], [786, 786])

The functions read each ID of a column. The expressions are Arrow's own, for the scanner of a dataset or ``filter``.
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
