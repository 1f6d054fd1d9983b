"""Sandflakes: 16 bytes and 26 characters, which sort by time.

>>> from mintage import sandflake
>>> sandflake.ID.parse("05E4ECYW2G0G40R40000A1G710").time.isoformat()
'2017-05-27T00:00:00.020000+00:00'
>>> sandflake.new() < sandflake.new()
True

:func:`new` mints one ID; a :class:`Generator` mints many at once, as an :class:`Array`. :func:`min_at` and
:func:`max_at` return the first and the last ID of an instant, for a range of IDs.
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.sandflake import ID, Array, Generator, max_at, min_at

__all__ = ["ID", "Array", "Generator", "max_at", "min_at", "new"]

new = as_function(Generator().new, __name__)
