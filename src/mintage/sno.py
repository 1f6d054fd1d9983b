"""sno: 10-byte IDs that sort by time, with 16 characters of text and a metabyte of your own.

>>> from mintage import sno
>>> order = sno.new(meta=7)
>>> order.meta
7
>>> sno.ID.parse(str(order)) == order
True
"""

from __future__ import annotations

from mintage._core import as_function
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

# Type checkers take this for true; importing the real one from typing would cost more than all of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

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

# Not a Python function around the method: the call is the hot path.
_default = Generator()
new = as_function(_default.new, __name__)


def new_at(time: datetime | int, meta: int = 0) -> ID:
    """Mint the ID of a given time with the generator of :func:`new`: see :meth:`Generator.new_at`.

    :raises ArgumentError: an argument of the wrong type.
    :raises FieldError: ``time.naive``, ``time.range``, ``field.range``.
    :raises LeaseError: ``lease.history``, where ``MINTAGE_STORE`` names a store.
    """
    return _default.new_at(time, meta)
