"""nanoids: text of random characters, 21 of ``A-Za-z0-9_-`` unless said otherwise.

They are ``str``, and have no fields: ``mintage.inspect`` can but guess what they are. Each character is as likely
as any other, whatever the alphabet.

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

# Not a Python function around the method: the call is the hot path.
new = as_function(Generator().new, __name__)
