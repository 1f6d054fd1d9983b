"""IDs in Pydantic 2, and so in FastAPI, SQLModel and Litestar.

The classes of IDs need no import of this: ``id: sno.ID`` in a model is enough. In Python a field takes an ID, its text,
its bytes, or its ``uuid.UUID`` where it has that form, and is an object; in JSON it takes text and is text. Of 128 bits
it takes a TypeID over it too, and ``Annotated[typeid.ID, TypeID("user")]`` takes what is below the prefix. Here are the
types of IDs that have no class of their own.

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

An error's ``type`` is mintage's own code, such as ``parse.length``, and its message names the value and the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mintage.errors import MintError
from mintage.formats.kinds import TextID, TypeID, kind_of, read_text
from mintage.installation import missing
from mintage.snowflake import Str

try:
    from pydantic_core import PydanticCustomError, core_schema
except ModuleNotFoundError as error:
    raise missing(error, "pydantic") from None

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CUID", "CUID2", "NanoID", "Snowflake", "Str", "TextID", "TypeID"]


def core_schema_of(of: object, *_: object) -> core_schema.CoreSchema:
    """Return what a class of IDs, or an annotation, tells Pydantic; for its hook ``__get_pydantic_core_schema__``."""
    kind = kind_of(of)
    python: core_schema.CoreSchema = core_schema.no_info_plain_validator_function(_reader(kind.read))
    if kind.python not in (int, str):
        # As Pydantic does it with UUIDs: strictly, only an object is one. It is read too, as a prefix may be another.
        strict = core_schema.chain_schema([core_schema.is_instance_schema(kind.python), python])
        python = core_schema.lax_or_strict_schema(python, strict)
    return core_schema.json_or_python_schema(
        core_schema.no_info_plain_validator_function(_reader(lambda value: read_text(kind, value))),
        python,
        serialization=core_schema.to_string_ser_schema(when_used="json"),
    )


def json_schema_of(of: object, *_: object) -> dict[str, Any]:
    """Return the JSON Schema of a class of IDs, or of an annotation; for its hook ``__get_pydantic_json_schema__``."""
    return kind_of(of).json_schema


def _reader(read: Callable[[object], Any]) -> Callable[[object], Any]:
    """Return the same function, whose errors are Pydantic's."""

    def read_or_refuse(value: object) -> Any:
        try:
            return read(value)
        except MintError as error:
            # Without a context it is no template, as it may hold braces of the user's.
            raise PydanticCustomError(error.code, str(error)) from None

    return read_or_refuse


Snowflake = Annotated[int, Str()]
"""An int of the default layout, text in JSON; :class:`mintage.snowflake.Str` takes another layout."""
NanoID = Annotated[str, TextID("nanoid")]
"""A nanoid of the usual alphabet and 21 characters."""
CUID = Annotated[str, TextID("cuid")]
"""A cuid."""
CUID2 = Annotated[str, TextID("cuid2")]
"""A cuid2 of the usual 24 characters."""
