"""sno: 10-byte IDs that sort by time, with 16 characters of text and a metabyte of your own.

>>> from mintage import sno
>>> order = sno.new(meta=7)
>>> order.meta
7
>>> sno.ID.parse(str(order)) == order
True

A :class:`Generator` of your own mints many IDs at once, as an :class:`Array`. :func:`encode_into` and
:func:`parse_into` convert packed IDs in buffers of yours. :func:`min_at` and :func:`max_at` return the first and the
last ID of an instant, which are the bounds of a range of IDs.

A :class:`Snapshot` is the state of a generator. Another process restores it, and mints after it. A generator calls
``on_overflow`` with an :class:`Overflow` when it has used up the sequence numbers of a tick, and waits.
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

# Type checkers read this as true. To import the one of typing would take longer than to import all of mintage.
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

_default = Generator()
new = as_function(_default.new, __name__)


def new_at(time: datetime | int, meta: int = 0) -> ID:
    """Mint an ID of a given time with the generator of :func:`new`, as :meth:`Generator.new_at` does.

    >>> from mintage import sno
    >>> sno.new_at(1_800_000_000_000_000_000).time.isoformat()
    '2027-01-15T08:00:00+00:00'

    :param time: an aware datetime, or nanoseconds since 1970.
    :param meta: the metabyte, 0 to 255.
    :raises ArgumentError: an argument of the wrong type.
    :raises FieldError: ``time.naive``, ``time.range``, ``field.range``.
    :raises LeaseError: ``lease.history``, where ``MINTAGE_STORE`` names a store.
    """
    return _default.new_at(time, meta)
