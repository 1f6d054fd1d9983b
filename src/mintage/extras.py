"""The packages that only some need, and how to install them."""

from __future__ import annotations

# Type checkers take this for true; importing the real one from typing would cost more than all of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

__all__ = ["Annotation", "install_line", "missing", "pydantic"]


def install_line(extra: str) -> str:
    """The line that installs the packages of an extra, for the distribution that this is.

    pip knows an installed distribution by its name, and asks no index for it. Where none is installed it would ask, and
    another's may have the name there: so that line is for the source tree.
    """
    from importlib import metadata

    try:
        name = metadata.metadata("mintage")["Name"]
    except metadata.PackageNotFoundError:
        name = "."
    return f"pip install '{name}[{extra}]'" + (" in the source tree" if name == "." else "")


def missing(error: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """What an adapter raises where its framework is not installed: the same error, and the line that installs it.

    >>> try:
    ...     import not_installed
    ... except ModuleNotFoundError as error:
    ...     print(missing(error, "sqlalchemy"))
    this needs the package not_installed: pip install 'mintage[sqlalchemy]'
    """
    if (error.name or "").startswith("mintage"):
        return error
    return ModuleNotFoundError(f"this needs the package {error.name}: {install_line(extra)}", name=error.name)


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
        """How Pydantic reads and writes such IDs: see :mod:`mintage.ext.pydantic`.

        :raises ModuleNotFoundError: pydantic is not installed.
        """
        return pydantic().core_schema_of(self)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any, /) -> dict[str, Any]:
        """The JSON schema of their text.

        :raises ModuleNotFoundError: pydantic is not installed.
        """
        return pydantic().json_schema_of(self)  # type: ignore[no-any-return]
