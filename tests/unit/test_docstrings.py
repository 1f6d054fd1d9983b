"""Docstrings of the extension: each public class and method has an example, and the examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
from typing import TYPE_CHECKING, Any

import pytest

import mintage
from mintage import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Those that users import; the others are the package's own.
SCHEMES = ["sno", "snowflake", "locality", "uuid", "ulid", "ksuid", "ksuid_ms", "xid", "objectid", "sandflake"]
MODULES = [*SCHEMES, "nanoid", "cuid", "cuid2", "typeid"]
#: Their purpose is elsewhere: an iterator comes of an Array, and Column has its example in mintage.columns.
WITHOUT = {"ArrayIterator"}


def members() -> Iterator[tuple[str, Any]]:
    """Every public class, method and function of the extension, by its name."""
    found: dict[str, Any] = {"mintage.Sequence": mintage.Sequence}
    for clock in ("ManualClock", "FollowingClock"):
        found[f"mintage.testing.{clock}"] = getattr(_core, clock)
    for name in MODULES:
        for public, value in vars(importlib.import_module(f"mintage._core.{name}")).items():
            if not public.startswith("_") and callable(value) and public not in WITHOUT:
                found[f"mintage.{name}.{public}"] = value
    for name, value in found.items():
        if name not in {"mintage.typeid.check_prefix", "mintage.typeid.pattern"}:
            yield name, value
        if inspect.isclass(value):
            for public, member in vars(value).items():
                if not public.startswith("_") and callable(getattr(value, public)) and not inspect.isclass(member):
                    yield f"{name}.{public}", getattr(value, public)


MEMBERS = dict(members())


@pytest.mark.parametrize("name", MEMBERS)
def test_an_example_of_the_extension_runs(name: str) -> None:
    text = inspect.getdoc(MEMBERS[name]) or ""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert test.examples, "it has no example"
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


@pytest.mark.parametrize("name", MEMBERS)
def test_a_docstring_of_the_extension_begins_with_a_verb_or_a_noun(name: str) -> None:
    first = (inspect.getdoc(MEMBERS[name]) or "").split()[0]
    assert first not in {"What", "Whether", "How", "Who", "Has"}
