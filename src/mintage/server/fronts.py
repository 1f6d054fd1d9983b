"""Imports from packages whose front, their ``__init__``, imports much more than the service uses."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def without_front(package: str, **names: object) -> Iterator[None]:
    """Import modules of a package in this block without its front. A later import runs the front as usual.

    :param names: the names that these modules import from the front.
    :raises ModuleNotFoundError: the package is not installed.
    """
    if package in sys.modules:
        yield
        return
    spec = find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    sys.modules[package] = front = module_from_spec(spec)
    vars(front).update(names)
    try:
        yield
    finally:
        del sys.modules[package]
