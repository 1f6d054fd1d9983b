"""ULIDs: 16 bytes and 26 characters, which sort by time.

>>> from mintage import ulid
>>> ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV").time.isoformat()
'2016-07-30T23:54:10.259000+00:00'
>>> ulid.new() < ulid.new()
True

:func:`new` mints one ID; a :class:`Generator` mints many at once, as an :class:`Array`. :func:`min_at` and
:func:`max_at` return the first and the last ID of an instant, for a range of IDs.
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.ulid import ID, Array, Generator, max_at, min_at

__all__ = ["ID", "Array", "Generator", "max_at", "min_at", "new"]

new = as_function(Generator().new, __name__)
