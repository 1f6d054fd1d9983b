"""Tables of IDs: verify a column, and fill one. The commands ``mintage verify`` and ``mintage backfill`` call these.

- :mod:`mintage.tables.verify` finds duplicates, values that are no IDs, and IDs outside a window or out of order.
- :mod:`mintage.tables.backfill` gives existing rows of a database IDs of their own time, or integers.
- :mod:`mintage.tables.sources` reads a column of text, CSV, Parquet or a database in batches.
- :mod:`mintage.tables.duplicates` finds duplicates exactly, in bounded memory.
- :mod:`mintage.tables.keys` turns values into bytes that compare as the IDs do.
"""

from __future__ import annotations

__all__ = ["InputError"]


class InputError(ValueError):
    """An argument names something that is not there or does not fit, such as a table without the column.

    The message is one sentence with the value, the limit and the remedy. The command line ends with exit code 2.

    >>> from mintage import snowflake
    >>> from mintage.tables.verify import verify
    >>> try:
    ...     verify([["brpk4q72xwf2m63l"]], "sno", layout=snowflake.DISCORD)
    ... except InputError as error:
    ...     print(error)
    a layout belongs to snowflake, not to sno
    """
