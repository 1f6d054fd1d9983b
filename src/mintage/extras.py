"""The packages that only some need, and how to install them."""

from __future__ import annotations

__all__ = ["install_line"]


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
