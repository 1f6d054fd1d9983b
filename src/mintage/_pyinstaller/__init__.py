"""PyInstaller's hook for mintage: what a bundle needs and its analysis cannot see.

The extension imports modules by name, and so do lazy imports and the URLs of stores. Packages that these need are in
the bundle if they are installed where it is built.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["STANDARD", "data_files", "hidden_imports", "hook_directories"]

STANDARD = ("array", "collections.abc", "datetime", "operator", "socket", "time", "types", "uuid")
"""The modules of the standard library that the extension imports by name."""

_PACKAGE = Path(__file__).parents[1]
_SHELLS = {"_pyinstaller", "cli", "ext", "server", "__main__"}
"""What an application imports by itself, if it uses it."""
_BY_NAME = "mintage.ext.pydantic"
"""The one of these that the core imports, when Pydantic asks a class of IDs for its schema."""


def hook_directories() -> list[str]:
    """Return where the hooks are, for the entry point ``hook-dirs`` of ``pyinstaller40``."""
    return [str(Path(__file__).parent)]


def hidden_imports() -> list[str]:
    """Return the names of the modules to be in every bundle."""
    found = [_BY_NAME, *STANDARD]
    for path in _PACKAGE.rglob("*.py"):
        parts = path.relative_to(_PACKAGE).with_suffix("").parts
        if parts[0] not in _SHELLS:
            found.append(".".join(["mintage", *(part for part in parts if part != "__init__")]))
    return sorted(found)


def data_files() -> list[tuple[str, str]]:
    """Return the files that are read at run time, and the folder of each in the bundle."""
    paths = [path for kind in ("*.sql", "*.lua", "*.html") for path in _PACKAGE.rglob(kind)]
    return [(str(path), str(path.parent.relative_to(_PACKAGE.parent))) for path in sorted(paths)]
