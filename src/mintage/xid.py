"""xids: 12 bytes and 20 characters, which sort by second.

>>> from mintage import xid
>>> xid.ID.parse("9m4e2mr0ui3e8a215n4g").time.isoformat()
'2011-03-22T17:50:19+00:00'
>>> xid.new() < xid.new()
True

:func:`new` mints one ID; a :class:`Generator` mints many at once, as an :class:`Array`. :func:`min_at` and
:func:`max_at` return the first and the last ID of an instant, for a range of IDs.
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.xid import ID, Array, Generator, max_at, min_at

__all__ = ["ID", "Array", "Generator", "max_at", "min_at", "new"]

new = as_function(Generator().new, __name__)
