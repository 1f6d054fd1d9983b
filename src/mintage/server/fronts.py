"""Imports of packages without the parts that a process of the service seldom or never uses.

The service is a process of its own, so no other code in it needs those parts. They would take a third of its start.

Modules stand in for all threads while a block runs. Use `late` and `late_names` before the process starts a thread, so
that no thread imports a stand-in by accident.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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
        for name, stand_in in modules.items():
            if _stands_in(name, stand_in):
                del sys.modules[name]


def _stands_in(name: str, stand_in: object) -> bool:
    return name in sys.modules and id(sys.modules[name]) == id(stand_in)  # mypy takes all that is in there for modules


@contextmanager
def late(*modules: str) -> Iterator[None]:
    """Import modules in this block that write ``import`` and one of these: it is imported at its first use.

    A later import runs as usual.
    """
    with _standing_in({name: _LateModule(name) for name in modules if name not in sys.modules}):
        yield


@contextmanager
def late_names(*modules: str) -> Iterator[None]:
    """Import modules in this block that import names from one of these: it is imported when one of them is used.

    They may annotate with such a name, and call it, as for a default: the call takes place when its result is used. A
    later import runs as usual.
    """
    with _standing_in({name: _LateNames(name) for name in modules if name not in sys.modules}):
        yield


class _LateModule:
    """A module that is imported when a name in it is looked up."""

    def __init__(self, name: str) -> None:
        self._name = name

    def stands_in(self) -> bool:
        """Return True while others import this in place of the module."""
        return _stands_in(self._name, self)

    def load(self) -> Any:
        """Return the module itself."""
        if self.stands_in():
            del sys.modules[self._name]
        return import_module(self._name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # importlib looks for some of them
            raise AttributeError(name)
        return getattr(self.load(), name)


class _LateNames(_LateModule):
    """A module that is imported when one of the names is used that were imported from it."""

    def __getattr__(self, name: str) -> Any:
        if self.stands_in() and not name.startswith("__"):
            return _LateObject(self, lambda: getattr(self.load(), name))
        return super().__getattr__(name)


class _LateObject:
    """An object of a late module, or the result of a call of one."""

    def __init__(self, module: _LateNames, load: Callable[[], Any]) -> None:
        self._module = module
        self._load = cache(load)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._module.stands_in():
            return _LateObject(self._module, lambda: self._load()(*args, **kwargs))
        return self._load()(*args, **kwargs)

    def __or__(self, _other: object) -> _LateObject:  # in an annotation, which nothing here reads
        return self

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._load())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._load(), name)
