"""Converters of URL paths: ``path("orders/<sno:pk>/", …)``."""

from __future__ import annotations

from typing import Any

from django.urls import converters

from mintage.errors import ArgumentError
from mintage.formats.kinds import NAMED, Kind, TypeIDs

__all__ = ["register_converters"]


class Converter:
    """Text of a path to an ID and back. What is the text of none does not match: the path is not found."""

    kind: Kind | TypeIDs
    # As wide as any of their texts: what they are is up to the parser, which is stricter than any pattern.
    regex = "[0-9A-Za-z_-]+"

    def to_python(self, value: str) -> Any:
        """Return the ID, an int for snowflake.

        :raises ValueError: it is the text of none.
        """
        return self.kind.read(value)

    def to_url(self, value: object) -> str:
        """Return the text of an ID, or of what may stand for one.

        :raises ValueError: it is none.
        """
        try:
            return self.kind.write(self.kind.read(value))
        except ArgumentError as error:
            raise ValueError(str(error)) from error


def register_converters() -> None:
    """Give URL paths a converter for each format, by the name of its module: ``sno``, ``snowflake``, ``ulid`` …, and
    ``typeid`` for TypeIDs of any prefix.

    Names that are taken stay as they are: Django's own ``uuid``, whose value a :class:`~mintage.ext.django.UUIDField`
    takes as well. Calling it again changes nothing. :class:`~mintage.ext.django.apps.MintageConfig` calls it.
    """
    for name, kind in NAMED.items():
        if name not in converters.get_converters():
            converters.register_converter(type(f"{kind.title}Converter", (Converter,), {"kind": kind}), name)
