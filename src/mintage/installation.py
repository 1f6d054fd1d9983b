"""How mintage is installed: the command that adds an extra, and why the extension cannot be loaded."""

from __future__ import annotations

__all__ = ["explain", "install_line", "missing"]

_CORE = "mintage._core"


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


def explain(error: ImportError) -> None:
    """Raise an error that says more than one that the import of the extension raised; return where that says enough.

    :raises ImportError: this is a sub-interpreter; the extension lies in a zip archive, or is another interpreter's.
    """
    if "subinterpreters" in str(error):
        raise ImportError(
            "mintage runs in the main interpreter of a process, and this is a sub-interpreter: "
            "for mod_wsgi set 'WSGIApplicationGroup %{GLOBAL}', for uWSGI 'single-interpreter = true'; "
            "elsewhere use threads or processes in place of sub-interpreters",
            name=_CORE,
        ) from error
    if error.path or not (error.name or "").startswith(_CORE):
        return  # what the loader says of a file that it found, or an error of another module

    import sys
    import sysconfig

    package = sys.modules[__package__]
    (folder,) = package.__path__
    if type(package.__loader__).__module__ == "zipimport":
        raise ImportError(
            f"mintage has an extension, which cannot be loaded from within a zip archive ({folder}): "
            "install mintage where the archive runs, or build it with a tool that unpacks it first, as shiv and pex do",
            name=_CORE,
        ) from error
    raise ImportError(
        f"mintage in {folder} was not built for this interpreter, {sys.implementation.cache_tag} "
        f"(needs _core{sysconfig.get_config_var('EXT_SUFFIX')}): install it with the pip of {sys.executable}",
        name=_CORE,
    ) from error
