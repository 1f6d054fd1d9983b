"""Annotations that say which IDs a ``str`` or a ``typeid.ID`` is: ``Annotated[str, TextID("nanoid")]``.

>>> from mintage.ext.kinds import TextID
>>> TextID("nanoid")
TextID('nanoid')
"""

from mintage.formats.kinds import TextID, TypeID

__all__ = ["TextID", "TypeID"]
