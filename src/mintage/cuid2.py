"""cuid2s: a random letter and the characters ``0-9a-z`` of a hash, 24 in all by default and 2 to 32 on request.

They are ``str``. Nobody can read a time or a host from one, and they do not sort by time, so there is no ``parse``.

>>> from mintage import cuid2
>>> len(cuid2.new())
24
>>> len(cuid2.Generator(length=10).new())
10
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.cuid2 import Generator

__all__ = ["Generator", "new"]

new = as_function(Generator().new, __name__)
