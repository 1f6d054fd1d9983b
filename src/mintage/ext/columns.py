"""SQL expressions that read the time, the node number and other fields of IDs, and ranges of IDs by time.

>>> from mintage.ext.columns import DIALECTS, Scheme, sql_time
>>> def times(scheme: Scheme) -> dict[str, str]:
...     return {dialect: sql_time(scheme, "id", dialect) for dialect in DIALECTS}
>>> times("snowflake")["postgresql"]
'to_timestamp((("id" >> 22) + 1420070400000) / 1000.0)'
"""

from mintage.formats.bits import Scheme, bounds
from mintage.formats.sql import DIALECTS, sql_field, sql_minted_between, sql_node, sql_time

__all__ = ["DIALECTS", "Scheme", "bounds", "sql_field", "sql_minted_between", "sql_node", "sql_time"]
