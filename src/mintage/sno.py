"""sno: 10-byte IDs that sort by time, with 16 characters of text and a metabyte of your own.

>>> from mintage import sno
>>> order = sno.new(meta=7)
>>> order.meta
7
>>> sno.ID.parse(str(order)) == order
True
"""

from __future__ import annotations

from mintage._core.sno import (
    ID,
    Array,
    Generator,
    Overflow,
    Snapshot,
    encode_into,
    max_at,
    min_at,
    parse_into,
)

__all__ = [
    "ID",
    "Array",
    "Generator",
    "Overflow",
    "Snapshot",
    "encode_into",
    "max_at",
    "min_at",
    "new",
    "new_at",
    "parse_into",
]

# Bound methods, not functions around them: the call is the hot path.
_default = Generator()
new = _default.new
new_at = _default.new_at
