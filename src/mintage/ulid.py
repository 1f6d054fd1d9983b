"""ULIDs: 16 bytes and 26 characters, which sort by time.

>>> from mintage import ulid
>>> ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV").time.isoformat()
'2016-07-30T23:54:10.259000+00:00'

:func:`min_at` and :func:`max_at` return the first and the last ID of an instant, for a range of IDs:

>>> from datetime import datetime, timezone
>>> when = datetime(2031, 5, 8, 23, 3, 34, 976000, tzinfo=timezone.utc)
>>> ulid.min_at(when)
ulid.ID.parse('01RB2Q2EA00000000000000000')
>>> ulid.max_at(when)
ulid.ID.parse('01RB2Q2EA0ZZZZZZZZZZZZZZZZ')

:func:`new` mints one ID; a :class:`Generator` mints many at once, as an :class:`Array`:

>>> ids = ulid.Generator().batch(3)
>>> isinstance(ids, ulid.Array), sorted(ids) == list(ids), ulid.new() in ids
(True, True, False)
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.ulid import ID, Array, Generator, max_at, min_at

__all__ = ["ID", "Array", "Generator", "max_at", "min_at", "new"]

# No Python function around the method: this call is the hot path.
new = as_function(Generator().new, __name__)
