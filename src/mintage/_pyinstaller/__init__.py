"""Modules and files of mintage that a bundle needs and that PyInstaller's analysis does not find.

The extension, lazy imports and the URLs of stores import modules by name. The packages that these modules need are in
the bundle if they are installed where it is built.
"""

from __future__ import annotations

from pathlib import Path

STANDARD = ("array", "collections.abc", "datetime", "operator", "socket", "time", "types", "uuid")
"""The modules of the standard library that the extension imports by name."""

_PACKAGE = Path(__file__).parents[1]
_OPTIONAL = {"_pyinstaller", "cli", "ext", "prove", "server", "tables", "__main__"}
"""Packages that an application imports itself if it uses them, so the analysis finds them."""
_BY_NAME = "mintage.ext.pydantic"
"""The only module of these that the extension imports: Pydantic asks a class of IDs for its schema."""


def hook_directories() -> list[str]:
    """Return the directory of the hooks, for the entry point ``hook-dirs`` of ``pyinstaller40``."""
    return [str(Path(__file__).parent)]


def hidden_imports() -> list[str]:
    """Return the names of the modules that every bundle needs."""
    found = [_BY_NAME, *STANDARD]
    for path in _PACKAGE.rglob("*.py"):
        parts = path.relative_to(_PACKAGE).with_suffix("").parts
        if parts[0] not in _OPTIONAL:
            found.append(".".join(["mintage", *(part for part in parts if part != "__init__")]))
    return sorted(found)


def command_modules() -> list[str]:
    """Return the names of the modules that the command line imports by name."""
    return sorted(f"mintage.cli.{path.stem}" for path in (_PACKAGE / "cli").glob("*.py") if path.stem != "__init__")


def data_files() -> list[tuple[str, str]]:
    """Return the path of each file that is read at run time, with its folder in the bundle."""
    paths = [path for kind in ("*.sql", "*.lua", "*.html", "*.css", "*.js", "*.svg") for path in _PACKAGE.rglob(kind)]
    return [(str(path), str(path.parent.relative_to(_PACKAGE.parent))) for path in sorted(paths)]
