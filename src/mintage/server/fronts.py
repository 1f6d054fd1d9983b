"""Imports of packages without the parts that a process of the service never uses.

The service is a process of its own, so no other code in it needs those parts. They would take a third of its start.
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
        for name in modules:
            del sys.modules[name]


@contextmanager
def late(*modules: str) -> Iterator[None]:
    """Import modules in this block that write ``import`` and one of these: it is imported at its first use.

    A later import runs as usual.
    """
    with _late(modules, _LateModule):
        yield


@contextmanager
def late_names(*modules: str) -> Iterator[None]:
    """Import modules in this block that import names from one of these: it is imported when one of them is used.

    They may annotate with such a name, and call it, as for a default: the call takes place when its result is used. A
    later import runs as usual.
    """
    with _late(modules, _LateNames):
        yield


@contextmanager
def _late(modules: tuple[str, ...], kind: type[_LateModule]) -> Iterator[None]:
    stand_ins: dict[str, Any] = {name: kind(name) for name in modules if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for stand_in in stand_ins.values():
            stand_in.step_aside()


class _LateModule:
    """A module that is imported when a name in it is looked up."""

    def __init__(self, name: str) -> None:
        self._name = name

    def step_aside(self) -> None:
        """Leave the module's place to the module itself."""
        if id(sys.modules.get(self._name)) == id(self):  # mypy takes all that is in there for modules
            del sys.modules[self._name]

    def load(self) -> Any:
        """Return the module itself."""
        self.step_aside()
        return import_module(self._name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # importlib looks for some of them
            raise AttributeError(name)
        return getattr(self.load(), name)


class _LateNames(_LateModule):
    """A module that is imported when one of the names is used that were imported from it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.is_open = True
        """True while modules import names from it."""

    def step_aside(self) -> None:
        """Leave the module's place to the module itself, and give out no more late names."""
        super().step_aside()
        self.is_open = False

    def __getattr__(self, name: str) -> Any:
        if self.is_open and not name.startswith("__"):
            return _LateObject(self, lambda: getattr(self.load(), name))
        return super().__getattr__(name)


class _LateObject:
    """An object of a late module, or the result of a call of one."""

    def __init__(self, module: _LateNames, load: Callable[[], Any]) -> None:
        self._module = module
        self._load = cache(load)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._module.is_open:
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
