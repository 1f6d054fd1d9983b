"""The packages that only some need, and how to install them."""

from __future__ import annotations

# Type checkers take this for true; importing the real one from typing would cost more than all of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

__all__ = ["Annotation", "install_line", "missing", "pydantic"]


def install_line(extra: str) -> str:
    """Return the command that installs the packages of an extra, for the way in which mintage was installed.

    A package that pip installed from a directory records it (PEP 610), and no index may have the package: the command
    names the directory then. One that runs from its sources, without being installed, has no record of any kind.
    """
    from importlib import metadata

    try:
        found = metadata.distribution("mintage")
    except metadata.PackageNotFoundError:
        return f"pip install '.[{extra}]' in the source tree"
    name = _source_tree(found.read_text("direct_url.json")) or found.metadata["Name"]
    return f"pip install '{name}[{extra}]'"


def _source_tree(record: str | None) -> str | None:
    """Return the directory that a record of PEP 610 names, if it is still there."""
    import json
    import os
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    found = json.loads(record or "{}")
    path = url2pathname(urlsplit(found.get("url", "")).path)
    return path if "dir_info" in found and os.path.isfile(os.path.join(path, "pyproject.toml")) else None


def missing(error: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """What an adapter raises where its framework is not installed: the same error, and the line that installs it.

    >>> try:
    ...     import not_installed
    ... except ModuleNotFoundError as error:
    ...     print(missing(error, "sqlalchemy"))
    this needs the package not_installed: pip install '...[sqlalchemy]'
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
        """Return how Pydantic reads and writes such IDs: see :mod:`mintage.ext.pydantic`.

        :raises ModuleNotFoundError: pydantic is not installed.
        """
        return pydantic().core_schema_of(self)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any, /) -> dict[str, Any]:
        """Return the JSON schema of their text.

        :raises ModuleNotFoundError: pydantic is not installed.
        """
        return pydantic().json_schema_of(self)  # type: ignore[no-any-return]
