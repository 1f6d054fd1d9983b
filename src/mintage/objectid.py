"""MongoDB's ObjectIds: 12 bytes and 24 characters, which sort by second.

>>> from mintage import objectid
>>> objectid.ID.parse("507f1f77bcf86cd799439011").time.isoformat()
'2012-10-17T21:13:27+00:00'
>>> objectid.new() < objectid.new()
True

:func:`new` mints one ID; a :class:`Generator` mints many at once, as an :class:`Array`. :func:`min_at` and
:func:`max_at` return the first and the last ID of an instant, for a range of IDs.
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.objectid import ID, Array, Generator, max_at, min_at

__all__ = ["ID", "Array", "Generator", "max_at", "min_at", "new"]

new = as_function(Generator().new, __name__)
