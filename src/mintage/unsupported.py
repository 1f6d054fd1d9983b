"""Where the extension cannot be loaded: the reason and the remedy, in one sentence."""

from __future__ import annotations

__all__ = ["explain"]

_CORE = "mintage._core"


def explain(error: ImportError) -> None:
    """Raise an error that says more than one that the import of the extension raised; return where that says enough.

    :raises ImportError: this is a sub-interpreter.
    """
    if "subinterpreters" in str(error):
        raise ImportError(
            "mintage runs in the main interpreter of a process, and this is a sub-interpreter: "
            "for mod_wsgi set 'WSGIApplicationGroup %{GLOBAL}', for uWSGI 'single-interpreter = true'; "
            "elsewhere use threads or processes in place of sub-interpreters",
            name=_CORE,
        ) from error
