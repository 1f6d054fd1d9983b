"""TypeIDs: a prefix that names a type, before any ID of 128 bits. Version 0.3 of the specification.

A TypeID is a view and no format: its bits are a UUID, a ULID, a locality ID or a Sandflake.

>>> from mintage import typeid, ulid
>>> one = typeid.ID("user", ulid.ID.parse("01ARZ3NDEKTSV4RRFFQ69G5FAV"))
>>> str(one)
'user_01arz3ndektsv4rrffq69g5fav'
>>> typeid.ID.parse(str(one), "user").as_uuid()
UUID('01563e3a-b5d3-d676-4c61-efb99302bd5b')
>>> typeid.Generator("user").new().prefix
'user'
"""

from __future__ import annotations

from mintage import uuid
from mintage._core.typeid import ID, Generator

__all__ = ["ID", "Generator", "new"]


def new(prefix: str) -> ID:
    """Mint a TypeID over a UUID of version 7.

    >>> from mintage import typeid
    >>> typeid.new("user").prefix
    'user'

    :param prefix: up to 63 characters of ``a-z``, with ``_`` inside; it may be empty.
    :raises ArgumentError: ``prefix`` is not str.
    :raises FieldError: ``field.format``: it is no prefix.
    :raises GenerationError: as the ``new`` of :mod:`mintage.uuid`.
    """
    return ID(prefix, uuid.new())
