"""Docstrings: each public name has an example, and so has each method of the extension, whose examples run here."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mintage
from mintage import _core
from mintage.formats.kinds import NAMES
from tests.helpers.cases import each_case
from tests.helpers.optional import module_or_skip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


def public_modules() -> Iterator[str]:
    """Yield the names of the modules that users import from: those that define ``__all__``."""
    package = Path(mintage.__file__).parent
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        is_private = any(part.startswith("_") and part != "__init__" for part in parts)
        if not is_private and re.search(r"(?m)^__all__\b", file.read_text("utf-8")):
            yield ".".join(part for part in parts if part != "__init__")


PUBLIC = list(public_modules())
#: The standard module has it since Python 3.12: its command line.
NO_EXAMPLE = {"mintage.uuid.main"}


def has_example(module: ModuleType, name: str) -> bool:
    """Return True if a class or function has an example of its own, or an example of the module uses the name."""
    value = getattr(module, name)
    # An int has the docstring of its class, which has examples.
    is_ours = callable(value) and (getattr(value, "__module__", None) or "").partition(".")[0] == "mintage"
    if is_ours and ">>>" in (inspect.getdoc(value) or ""):
        return True
    code = [line for line in (module.__doc__ or "").splitlines() if line.lstrip().startswith((">>>", "..."))]
    return any(re.search(rf"\b{name}\b", line) for line in code)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name: str) -> None:
    module = module_or_skip(name)
    public = [each for each in module.__all__ if f"{name}.{each}" not in NO_EXAMPLE]
    assert [each for each in public if not has_example(module, each)] == []


def members() -> Iterator[tuple[str, Any]]:
    """Every public class, method and function of the extension, by its name."""
    found: dict[str, Any] = {"mintage.Sequence": mintage.Sequence}
    for clock in ("ManualClock", "FollowingClock"):
        found[f"mintage.testing.{clock}"] = getattr(_core, clock)
    for name in (*NAMES, "typeid"):
        for public, value in vars(importlib.import_module(f"mintage._core.{name}")).items():
            if not public.startswith("_") and callable(value):
                found[f"mintage.{name}.{public}"] = value
    for name, value in found.items():
        if name not in {"mintage.typeid.check_prefix", "mintage.typeid.pattern"}:
            yield name, value
        if inspect.isclass(value):
            for public, member in vars(value).items():
                if not public.startswith("_") and callable(getattr(value, public)) and not inspect.isclass(member):
                    yield f"{name}.{public}", getattr(value, public)


MEMBERS = dict(members())


@each_case("name", MEMBERS)
def test_an_example_of_the_extension_runs(name: str) -> None:
    text = inspect.getdoc(MEMBERS[name]) or ""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert test.examples, "it has no example"
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


@each_case("name", MEMBERS)
def test_a_docstring_of_the_extension_begins_with_a_verb_or_a_noun(name: str) -> None:
    first = (inspect.getdoc(MEMBERS[name]) or "").split()[0]
    assert first not in {"What", "Whether", "How", "Who", "Has"}
