"""The version, and messages about the installation: the command that adds an extra, and why no extension is loaded."""

from __future__ import annotations

VERSION = "0.1.0"
_CORE = "mintage._core"


def install_line(extra: str) -> str:
    """Return the command that installs the packages of an extra, as mintage itself was installed.

    pip records the directory from which it installed a package (PEP 610). An index may not have the package, so the
    command names that directory. A source tree that was never installed has no record.

    >>> install_line("redis")
    "pip install '...[redis]'..."
    """
    from importlib import metadata
    from shlex import quote

    try:
        found = metadata.distribution("mintage")
    except metadata.PackageNotFoundError:
        return f"pip install '.[{extra}]' in the source tree"
    name = _source_tree(found.read_text("direct_url.json")) or found.metadata["Name"]
    return f"pip install {quote(f'{name}[{extra}]')}"


def missing_module(name: str | None, extra: str) -> str:
    """Return what a missing module is, and the remedy.

    >>> missing_module("redis", "redis")
    "the package redis: pip install '...[redis]'..."
    >>> missing_module("_ssl", "client")
    'the module _ssl, without which this Python was built: use another build of Python'
    """
    import sys

    if name in sys.stdlib_module_names:
        return f"the module {name}, without which this Python was built: use another build of Python"
    return f"the package {name}: {install_line(extra)}"


def _source_tree(record: str | None) -> str | None:
    """Return the directory that a record of PEP 610 names; ``None`` if it is gone."""
    import json
    import os
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    found = json.loads(record or "{}")
    path = url2pathname(urlsplit(found.get("url", "")).path)
    return path if "dir_info" in found and os.path.isfile(os.path.join(path, "pyproject.toml")) else None


def missing(error: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """Return the error for a missing framework of an adapter, with the command that installs it.

    >>> try:
    ...     import not_installed
    ... except ModuleNotFoundError as error:
    ...     print(missing(error, "sqlalchemy"))
    this needs the package not_installed: pip install '...[sqlalchemy]'
    """
    if (error.name or "").startswith("mintage"):
        return error
    return ModuleNotFoundError(f"this needs {missing_module(error.name, extra)}", name=error.name)


def explain(error: ImportError) -> None:
    """Raise a clearer error than ``error`` for a failed import of the extension; return if ``error`` is clear enough.

    :raises ImportError: this is a sub-interpreter; or the extension is in a zip archive, or for another interpreter.
    """
    if "subinterpreters" in str(error):
        raise ImportError(
            "mintage runs in the main interpreter of a process, and this is a sub-interpreter: "
            "for mod_wsgi set 'WSGIApplicationGroup %{GLOBAL}', for uWSGI 'single-interpreter = true'; "
            "elsewhere use threads or processes in place of sub-interpreters",
            name=_CORE,
        ) from error
    if error.path or not (error.name or "").startswith(_CORE):
        return  # an error of the loader about a file that it found, or of another module

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
