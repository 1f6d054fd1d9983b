"""KSUIDs of svix's kind: 20 bytes and 27 characters, which sort by 4 milliseconds.

>>> from mintage import ksuid_ms
>>> ksuid_ms.ID.parse("0ujtsU1u9Ae0uKlDsA7IeGETNgN").time.isoformat()
'2017-10-10T04:00:47.120000+00:00'
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.ksuid_ms import ID, Array, Generator, max_at, min_at

__all__ = ["ID", "Array", "Generator", "max_at", "min_at", "new"]

# Not a Python function around the method: the call is the hot path.
new = as_function(Generator().new, __name__)
