"""The base of the markers in ``Annotated``, through which Pydantic reads and writes types that are not ID classes."""

from __future__ import annotations

# Type checkers treat this name as true; the import of typing would cost more than the rest of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def pydantic() -> ModuleType:
    """Return :mod:`mintage.ext.pydantic`, imported by name, as it lies in a higher layer.

    :raises ModuleNotFoundError: pydantic is not installed.
    """
    from importlib import import_module

    return import_module("mintage.ext.pydantic")


class Annotation:
    """A marker in ``Annotated`` that makes Pydantic read and write another type as IDs."""

    __slots__ = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: Any, /) -> Any:
        """Return the core schema of such IDs: see :mod:`mintage.ext.pydantic`.

        :raises ModuleNotFoundError: pydantic is not installed.
        """
        return pydantic().core_schema_of(self)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any, /) -> dict[str, Any]:
        """Return the JSON schema of the text of such IDs.

        :raises ModuleNotFoundError: pydantic is not installed.
        """
        return pydantic().json_schema_of(self)  # type: ignore[no-any-return]
