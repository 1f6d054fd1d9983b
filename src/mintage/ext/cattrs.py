"""IDs in cattrs: objects in your classes, text in unstructured data."""

from __future__ import annotations

from typing import TypeVar

from mintage.formats.annotations import find_kind, kind_of, read_object
from mintage.installation import missing

try:
    from cattrs import BaseConverter
except ModuleNotFoundError as error:
    raise missing(error, "cattrs") from None

__all__ = ["register"]

C = TypeVar("C", bound=BaseConverter)


def _is_known(of: object) -> bool:
    return find_kind(of) is not None


def register(converter: C) -> C:
    """Add hooks for all types of IDs to a converter.

    These are the classes of IDs, and ``Annotated`` types with :class:`mintage.snowflake.Str`,
    :class:`~mintage.ext.kinds.TextID` or :class:`~mintage.ext.kinds.TypeID`. For a text that is no ID, the converter
    raises its own error, which contains a ``MintError``.

    >>> from cattrs.preconf.json import make_converter
    >>> from mintage import sno
    >>> from mintage.ext.cattrs import register
    >>> converter = register(make_converter())
    >>> converter.loads('["brpk4q72xwf2m63l"]', list[sno.ID])
    [sno.ID.parse('brpk4q72xwf2m63l')]
    >>> converter.unstructure(_)
    ['brpk4q72xwf2m63l']

    :param converter: one of cattrs, preconfigured or not.
    :returns: the same converter.
    """
    converter.register_structure_hook_func(_is_known, lambda value, of: read_object(kind_of(of), value))
    converter.register_unstructure_hook_func(_is_known, str)
    return converter
