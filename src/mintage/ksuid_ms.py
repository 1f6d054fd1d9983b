"""KSUIDs as svix writes them: 20 bytes and 27 characters, which sort by 4 milliseconds.

>>> from mintage import ksuid_ms
>>> ksuid_ms.ID.parse("0ujtsU1u9Ae0uKlDsA7IeGETNgN").time.isoformat()
'2017-10-10T04:00:47.120000+00:00'
>>> ksuid_ms.new() < ksuid_ms.new()
True

:func:`new` mints one ID; a :class:`Generator` mints many at once, as an :class:`Array`. :func:`min_at` and
:func:`max_at` return the first and the last ID of an instant, for a range of IDs.
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.ksuid_ms import ID, Array, Generator, max_at, min_at

__all__ = ["ID", "Array", "Generator", "max_at", "min_at", "new"]

new = as_function(Generator().new, __name__)
