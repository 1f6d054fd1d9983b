"""ObjectIds of MongoDB's: 12 bytes and 24 characters, which sort by second.

>>> from mintage import objectid
>>> objectid.ID.parse("507f1f77bcf86cd799439011").time.isoformat()
'2012-10-17T21:13:27+00:00'
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.objectid import ID, Array, Generator, max_at, min_at

__all__ = ["ID", "Array", "Generator", "max_at", "min_at", "new"]

# Not a Python function around the method: the call is the hot path.
new = as_function(Generator().new, __name__)
