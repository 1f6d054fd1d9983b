"""IDs in msgspec, for JSON, MessagePack, YAML and TOML: objects in Python, text on the wire.

msgspec calls hooks for types that it does not know. Here are the hooks, and types for IDs that have no class.

>>> import msgspec
>>> from mintage import sno
>>> from mintage.ext.msgspec import Snowflake, dec_hook, enc_hook
>>> Order = msgspec.defstruct("Order", [("id", sno.ID), ("customer", Snowflake)])
>>> order = Order(sno.ID.parse("brpk4q72xwf2m63l"), Snowflake(454947766275222906))
>>> msgspec.json.encode(order, enc_hook=enc_hook)
b'{"id":"brpk4q72xwf2m63l","customer":"454947766275222906"}'
>>> msgspec.json.decode(_, type=Order, dec_hook=dec_hook) == order
True

The JSON Schema of IDs, and IDs that are text:

>>> from mintage.ext.msgspec import CUID, CUID2, NanoID, schema_hook
>>> msgspec.json.schema(sno.ID, schema_hook=schema_hook)["format"]
'sno'
>>> Links = msgspec.defstruct("Links", [("short", NanoID), ("old", CUID), ("new", CUID2)])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from mintage import snowflake
from mintage.formats.annotations import find_kind, read_object
from mintage.formats.kinds import KINDS, Kind, snowflakes
from mintage.installation import missing

try:
    from msgspec import Meta
except ModuleNotFoundError as error:
    raise missing(error, "msgspec") from None

__all__ = ["CUID", "CUID2", "NanoID", "Snowflake", "dec_hook", "enc_hook", "schema_hook"]


class Snowflake(int):
    """An ``int`` that is text on the wire. msgspec writes a plain ``int`` as a number, which JavaScript rounds.

    A subclass can have another layout: ``class CustomerID(Snowflake): layout = snowflake.JS_SAFE``.

    >>> import msgspec
    >>> from mintage.ext.msgspec import Snowflake, dec_hook
    >>> class CustomerID(Snowflake):
    ...     layout = snowflake.JS_SAFE
    >>> msgspec.json.decode(b'["1234567890123"]', type=list[CustomerID], dec_hook=dec_hook)
    [1234567890123]
    """

    layout: ClassVar[snowflake.Layout] = snowflake.DEFAULT
    """The layout of the integers that it reads."""


def _text(scheme: str) -> Meta:
    kind = KINDS[scheme]
    least, most = kind.lengths
    # msgspec searches with Python's `re`, where `$` matches before a last newline too.
    pattern = kind.pattern + r"(?!\n)"
    return Meta(pattern=pattern, min_length=least, max_length=most, extra_json_schema=kind.json_schema)


NanoID = Annotated[str, _text("nanoid")]
"""A nanoid of the default alphabet and 21 characters, which msgspec checks without a hook."""
CUID = Annotated[str, _text("cuid")]
"""A cuid, which msgspec checks without a hook."""
CUID2 = Annotated[str, _text("cuid2")]
"""A cuid2 of 24 characters, which msgspec checks without a hook."""


def _find(of: object) -> Kind | None:
    if isinstance(of, type) and issubclass(of, Snowflake):
        return snowflakes(of.layout)
    return find_kind(of)


def enc_hook(value: object, *, otherwise: Callable[[Any], Any] | None = None) -> Any:
    """Return the text of an ID, for ``msgspec``'s ``enc_hook``.

    >>> import msgspec
    >>> from mintage import sno
    >>> from mintage.ext.msgspec import Snowflake, enc_hook
    >>> msgspec.json.encode([sno.ID.parse("brpk4q72xwf2m63l"), Snowflake(454947766275222906)], enc_hook=enc_hook)
    b'["brpk4q72xwf2m63l","454947766275222906"]'

    :param value: a value that msgspec cannot write.
    :param otherwise: an ``enc_hook`` of your own, for any other value; pass it with ``functools.partial``.
    :raises NotImplementedError: the value is no ID, and there is no ``otherwise``.
    """
    if _find(type(value)) is not None:
        return str(int(value)) if isinstance(value, Snowflake) else str(value)
    if otherwise is not None:
        return otherwise(value)
    raise NotImplementedError(f"Objects of type {type(value).__name__} are not supported")


def dec_hook(type: type, value: Any, *, otherwise: Callable[[type, Any], Any] | None = None) -> Any:
    """Return the ID of a text, for ``msgspec``'s ``dec_hook``; a :class:`Snowflake` also of an integer.

    >>> import msgspec
    >>> from mintage import sno
    >>> from mintage.ext.msgspec import dec_hook
    >>> msgspec.json.decode(b'["brpk4q72xwf2m63l"]', type=list[sno.ID], dec_hook=dec_hook)
    [sno.ID.parse('brpk4q72xwf2m63l')]

    :param type: the class of IDs.
    :param value: the value that msgspec has read.
    :param otherwise: a ``dec_hook`` of your own, for any other class.
    :raises ValueError: the value is no ID. msgspec converts this to a ``ValidationError`` with the path of the value.
    :raises NotImplementedError: the type is no class of IDs, and there is no ``otherwise``.
    """
    if (kind := _find(type)) is not None:
        read = read_object(kind, value)
        return type(read) if kind.python is int else read
    if otherwise is not None:
        return otherwise(type, value)
    raise NotImplementedError(f"Objects of type {type.__name__} are not supported")


def schema_hook(type: type, *, otherwise: Callable[[type], Any] | None = None) -> Any:
    """Return the JSON Schema of a class of IDs, for ``msgspec``'s ``schema_hook``.

    >>> import msgspec
    >>> from mintage import ulid
    >>> from mintage.ext.msgspec import schema_hook
    >>> msgspec.json.schema(list[ulid.ID], schema_hook=schema_hook)["items"]["format"]
    'ulid'

    :param type: the class.
    :param otherwise: a ``schema_hook`` of your own, for any other class.
    :raises NotImplementedError: the type is no class of IDs, and there is no ``otherwise``.
    """
    if (kind := _find(type)) is not None:
        return kind.json_schema
    if otherwise is not None:
        return otherwise(type)
    raise NotImplementedError(f"Objects of type {type.__name__} are not supported")
