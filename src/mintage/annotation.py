"""The base of what stands in ``Annotated`` beside a type that is no class of IDs."""

from __future__ import annotations

# Type checkers take this for true; importing the real one from typing would cost more than all of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

__all__ = ["Annotation", "pydantic"]


def pydantic() -> ModuleType:
    """:mod:`mintage.ext.pydantic`, imported by name and when it is asked for: what asks lies below it.

    :raises ModuleNotFoundError: pydantic is not installed.
    """
    from importlib import import_module

    return import_module("mintage.ext.pydantic")


class Annotation:
    """What stands in ``Annotated`` beside a type that is no class of IDs, and tells Pydantic how these are written."""

    __slots__ = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: Any, /) -> Any:
        """Return how Pydantic reads and writes such IDs: see :mod:`mintage.ext.pydantic`.

        :raises ModuleNotFoundError: pydantic is not installed.
        """
        return pydantic().core_schema_of(self)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any, /) -> dict[str, Any]:
        """Return the JSON schema of their text.

        :raises ModuleNotFoundError: pydantic is not installed.
        """
        return pydantic().json_schema_of(self)  # type: ignore[no-any-return]
