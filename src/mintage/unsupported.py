"""Where the extension cannot be loaded: the reason and the remedy, in one sentence."""

from __future__ import annotations

__all__ = ["explain"]

_CORE = "mintage._core"


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

    import mintage

    (folder,) = mintage.__path__
    if type(mintage.__loader__).__module__ == "zipimport":
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
