"""IDs in what FastAPI returns without a type: a dict, or an ID alone.

FastAPI reads and writes IDs that a type describes without this module. It encodes any other value by the class, from a
table of its own, to which :func:`register` adds the classes of IDs:

>>> from fastapi.encoders import jsonable_encoder
>>> from mintage import sno
>>> from mintage.ext.fastapi import register
>>> register()
>>> jsonable_encoder({"id": sno.ID.parse("brpk4q72xwf2m63l")})
{'id': 'brpk4q72xwf2m63l'}
"""

from __future__ import annotations

from mintage.formats.storage import CLASSES
from mintage.installation import missing

try:
    from fastapi.encoders import ENCODERS_BY_TYPE
except ModuleNotFoundError as error:
    raise missing(error, "fastapi") from None

__all__ = ["register"]


def register() -> None:
    """Make ``jsonable_encoder`` write IDs as text, for the whole process. A snowflake is an ``int``, and stays one."""
    ENCODERS_BY_TYPE.update(dict.fromkeys(CLASSES, str))
