"""Annotations that name the kind of IDs of a ``str`` or a ``typeid.ID``, for Pydantic, msgspec, cattrs and Click."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mintage.formats.annotations import TextID, TypeID, kind_of, read_text

__all__ = ["TextID", "TypeID", "json_reader", "reader"]


def json_reader(of: Any) -> Callable[[object], Any]:
    """Return the function that reads an ID from a value of JSON, for GraphQL scalars and other libraries with a hook.

    It reads a text, and for a snowflake also an integer. It refuses any other value, such as a float or a bool, with a
    ``MintError``.

    >>> from mintage import snowflake
    >>> from mintage.ext.kinds import json_reader
    >>> json_reader(snowflake.Str())("454947766275222906")
    454947766275222906

    :param of: a class of IDs, :class:`mintage.snowflake.Str`, :class:`TextID` or :class:`TypeID`.
    :raises ArgumentError: ``argument.type``: it is none of these.
    """
    return partial(read_text, kind_of(of))


def reader(of: Any) -> Callable[[object], Any]:
    """Return the function that reads an ID from a value of Python, for the columns of an ORM and other hooks.

    It reads an ID, its text, its bytes, and its ``uuid.UUID`` if it has one; a snowflake from an exact integer or its
    digits. It refuses any other value with a ``MintError``.

    >>> from mintage import sno
    >>> from mintage.ext.kinds import reader
    >>> read, order = reader(sno.ID), sno.ID.parse("brpk4q72xwf2m63l")
    >>> read(bytes(order)) == read(str(order)) == read(order) == order
    True

    :param of: as for :func:`json_reader`.
    :raises ArgumentError: ``argument.type``: it is none of these.
    """
    return kind_of(of).read
