"""IDs in Pydantic 2, and so in FastAPI, SQLModel and Litestar.

The classes of IDs do not need this module: ``id: sno.ID`` in a model is enough. In Python, such a field accepts an ID,
its text, its bytes or its ``uuid.UUID`` if there is one, and its value is the ID. In JSON it reads and writes text. A
field for IDs of 128 bits also accepts a TypeID over one, and ``Annotated[typeid.ID, TypeID("user")]`` accepts the ID
below the prefix. This module has the types for IDs that have no class.

>>> from pydantic import BaseModel
>>> from mintage import sno, snowflake
>>> from mintage.ext.pydantic import Snowflake
>>> class Order(BaseModel):
...     id: sno.ID
...     customer: Snowflake
>>> order = Order.model_validate_json('{"id": "brpk4q72xwf2m63l", "customer": "454947766275222906"}')
>>> order.customer
454947766275222906
>>> order.model_dump_json()
'{"id":"brpk4q72xwf2m63l","customer":"454947766275222906"}'

The other types are ``Annotated`` too, and for a layout or a prefix of your own there are ``Str``,
``TextID`` and ``TypeID``:

>>> from typing import Annotated
>>> from mintage import typeid
>>> from mintage.ext.pydantic import CUID, CUID2, NanoID, Str, TextID, TypeID
>>> class Link(BaseModel):
...     old: CUID
...     new: CUID2
...     short: NanoID
...     alias: Annotated[str, TextID("nanoid")]
...     user: Annotated[typeid.ID, TypeID("user")]
...     message: Annotated[int, Str(snowflake.DISCORD)]

The ``type`` of an error is mintage's code, such as ``parse.length``, and its message names the value and the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

from mintage import sno
from mintage.errors import MintError
from mintage.formats.annotations import TextID, TypeID, kind_of, read_text
from mintage.installation import missing
from mintage.snowflake import Str

try:
    from pydantic_core import PydanticCustomError, SchemaSerializer, core_schema
except ModuleNotFoundError as error:
    raise missing(error, "pydantic") from None

__all__ = ["CUID", "CUID2", "NanoID", "NullForZero", "Snowflake", "Str", "TextID", "TypeID"]


def core_schema_of(of: object, *_: object) -> core_schema.CoreSchema:
    """Return Pydantic's schema of a class of IDs or an annotation, for the hook ``__get_pydantic_core_schema__``."""
    kind = kind_of(of)
    python: core_schema.CoreSchema = core_schema.no_info_plain_validator_function(_reader(kind.read))
    if kind.python not in (int, str):
        # Strict mode accepts only an object, as Pydantic does for UUIDs. It is read too, as a prefix must be checked.
        strict = core_schema.chain_schema([core_schema.is_instance_schema(kind.python), python])
        python = core_schema.lax_or_strict_schema(python, strict)
    return core_schema.json_or_python_schema(
        core_schema.no_info_plain_validator_function(_reader(lambda value: read_text(kind, value))),
        python,
        serialization=core_schema.to_string_ser_schema(when_used="json-unless-none"),
    )


def serializer_of(id: object) -> SchemaSerializer:
    """Return the serializer by which Pydantic writes an ID without a declared type; ``__pydantic_serializer__``."""
    python: Any = type(id)
    return _serializer(python)


@cache
def _serializer(of: Any) -> SchemaSerializer:
    return SchemaSerializer(core_schema_of(of))


def json_schema_of(of: object, *_: object) -> dict[str, Any]:
    """Return the JSON Schema of a class of IDs, or of an annotation; for its hook ``__get_pydantic_json_schema__``."""
    return kind_of(of).json_schema


def _reader(read: Callable[[object], Any]) -> Callable[[object], Any]:
    """Return a function that raises Pydantic's errors in place of mintage's."""

    def read_or_refuse(value: object) -> Any:
        try:
            return read(value)
        except MintError as error:
            # Without a context the message is no template: it may contain braces of the user's text.
            raise PydanticCustomError(error.code, str(error)) from None

    return read_or_refuse


class NullForZero:
    """An annotation: the zero ``sno.ID`` is ``null`` in JSON, and ``null`` is read as the zero ID.

    sno's Go library writes it so. Without this annotation, the zero ID is text like any other, and ``null`` is refused.

    >>> from pydantic import BaseModel
    >>> from mintage import sno
    >>> from mintage.ext.pydantic import NullForZero
    >>> class Reply(BaseModel):
    ...     parent: Annotated[sno.ID, NullForZero()] = sno.ID.ZERO
    >>> Reply().model_dump_json()
    '{"parent":null}'
    >>> Reply.model_validate_json('{"parent": null}').parent.is_zero
    True
    """

    __slots__ = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: Any, /) -> core_schema.CoreSchema:
        """Return Pydantic's schema of a ``sno.ID`` that can be null."""
        found = handler(source)
        return core_schema.json_or_python_schema(
            core_schema.no_info_before_validator_function(
                lambda value: str(sno.ID.ZERO) if value is None else value, found
            ),
            core_schema.no_info_before_validator_function(lambda value: sno.ID.ZERO if value is None else value, found),
            serialization=core_schema.plain_serializer_function_ser_schema(
                sno.ID.as_json, when_used="json-unless-none"
            ),
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any, /) -> dict[str, Any]:
        """Return the JSON Schema: that of the text, or null."""
        return {"anyOf": [json_schema_of(sno.ID), {"type": "null"}]}

    def __repr__(self) -> str:
        return "NullForZero()"


Snowflake = Annotated[int, Str()]
"""An int of the default layout, text in JSON; use :class:`mintage.snowflake.Str` for another layout."""
NanoID = Annotated[str, TextID("nanoid")]
"""A nanoid of the default alphabet and 21 characters."""
CUID = Annotated[str, TextID("cuid")]
"""A cuid."""
CUID2 = Annotated[str, TextID("cuid2")]
"""A cuid2 of 24 characters."""
