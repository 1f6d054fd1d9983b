"""nanoids: text of random characters, by default 21 of ``A-Za-z0-9_-``.

They are ``str`` and have no fields, so ``mintage.inspect`` can only guess that a text is one. Each character of the
alphabet is equally likely.

>>> from mintage import nanoid
>>> len(nanoid.new())
21
>>> pin = nanoid.Generator(size=6, alphabet="0123456789")
>>> len(pin.new()), pin.new().isdigit()
(6, True)
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.nanoid import Generator

__all__ = ["Generator", "new"]

new = as_function(Generator().new, __name__)
