"""Annotations that name the kind of IDs of a ``str`` or a ``typeid.ID``, for Pydantic, msgspec, cattrs and Click.

>>> from typing import Annotated
>>> from mintage import typeid
>>> from mintage.ext.kinds import TextID, TypeID
>>> ShortID = Annotated[str, TextID("nanoid")]
>>> UserID = Annotated[typeid.ID, TypeID("user")]
"""

from mintage.formats.kinds import TextID, TypeID

__all__ = ["TextID", "TypeID"]
