"""cuid2s: a random letter and 23 characters of ``0-9a-z``, of a hash; 2 to 32 in all.

They are ``str``, tell nothing and sort by nothing. So there is nothing to parse.

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

# Not a Python function around the method: the call is the hot path.
new = as_function(Generator().new, __name__)
