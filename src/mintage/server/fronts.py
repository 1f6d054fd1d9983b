"""Imports of packages without the parts that a process of the service never uses.

The service is a process of its own, so no other code in it needs those parts. They would take a third of its start.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def without_front(package: str, **names: object) -> Iterator[None]:
    """Import modules of a package in this block without its front, the ``__init__`` that imports all of its modules.

    A later import runs the front as usual.

    :param names: the names that these modules import from the front.
    :raises ModuleNotFoundError: the package is not installed.
    """
    if package in sys.modules:
        yield
        return
    spec = find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    front = module_from_spec(spec)
    vars(front).update(names)
    with _standing_in({package: front}):
        yield


@contextmanager
def without(*packages: str) -> Iterator[None]:
    """Import modules in this block as if these packages, which they use where they are installed, were not."""
    with _standing_in({name: None for name in packages if name not in sys.modules}):
        yield


@contextmanager
def _standing_in(modules: dict[str, Any]) -> Iterator[None]:
    sys.modules.update(modules)  # None stands for a package that is not installed
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]


@contextmanager
def late(*modules: str) -> Iterator[None]:
    """Import modules in this block that write ``import`` and one of these: it is imported at its first use.

    A later import runs as usual.
    """
    stand_ins: dict[str, Any] = {name: _Late(name) for name in modules if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for stand_in in stand_ins.values():
            stand_in.step_aside()


class _Late:
    """A module that is imported when a name in it is looked up."""

    def __init__(self, name: str) -> None:
        self._name = name

    def step_aside(self) -> None:
        """Leave the module's place to the module itself."""
        if id(sys.modules.get(self._name)) == id(self):  # mypy takes all that is in there for modules
            del sys.modules[self._name]

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # importlib looks for some of them
            raise AttributeError(name)
        self.step_aside()
        return getattr(import_module(self._name), name)
