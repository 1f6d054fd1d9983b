"""Converters of URL paths: ``path("orders/<sno:pk>/", …)``."""

from __future__ import annotations

from typing import Any

from django.urls import converters

from mintage.errors import ArgumentError
from mintage.formats.annotations import NAMED
from mintage.formats.kinds import Kind

__all__ = ["register_converters"]


class Converter:
    """A converter between the text in a path and an ID. A text that is no ID does not match the path."""

    kind: Kind
    # Any text that an ID can have. The parser, which is stricter than a pattern, decides.
    regex = "[0-9A-Za-z_-]+"

    def to_python(self, value: str) -> Any:
        """Return the ID, an int for snowflake.

        :raises ValueError: it is the text of no ID.
        """
        return self.kind.read(value)

    def to_url(self, value: object) -> str:
        """Return the text of an ID, or of a value that can be read as one.

        :raises ValueError: it is no ID.
        """
        try:
            return str(self.kind.read(value))
        except ArgumentError as error:
            raise ValueError(str(error)) from error


def register_converters() -> None:
    """Register a converter of URL paths for each format.

    Its name is that of the module: ``sno``, ``snowflake``, ``ulid`` …; or ``typeid`` for TypeIDs of any prefix. A name
    that is taken does not change: Django's own ``uuid``, whose values a :class:`~mintage.ext.django.UUIDField` accepts
    too. A second call changes nothing. :class:`~mintage.ext.django.apps.MintageConfig` calls it.

    >>> from django.urls import path
    >>> from mintage.ext.django import register_converters
    >>> register_converters()
    >>> orders = path("orders/<ulid:pk>/", lambda request, pk: ...)
    >>> orders.resolve("orders/01ARZ3NDEKTSV4RRFFQ69G5FAV/").kwargs
    {'pk': ulid.ID.parse('01ARZ3NDEKTSV4RRFFQ69G5FAV')}
    >>> orders.resolve("orders/latest/") is None
    True
    """
    for name, kind in NAMED.items():
        if name not in converters.get_converters():
            converters.register_converter(type(f"{kind.title}Converter", (Converter,), {"kind": kind}), name)
