"""Tests of imports that leave out or put off parts of packages."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from mintage.server.fronts import late, without, without_front

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("seldom", "package", "package.part", "package.other", "user")


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package").mkdir()
    for name, text in (
        ("seldom.py", "answer = 42\n"),
        ("package/__init__.py", "from package import other\nfront = True\n"),
        ("package/part.py", "part = True\n"),
        ("package/other.py", ""),
        ("user.py", "import seldom\ndef answer():\n    return seldom.answer\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_late_module_is_imported_when_a_name_in_it_is_looked_up() -> None:
    with late("seldom"):
        user = import_module("user")
    assert "seldom" not in sys.modules
    assert user.answer() == 42
    assert sys.modules["seldom"].answer == 42


def test_late_module_can_be_looked_up_while_others_are_imported() -> None:
    with late("seldom"):
        user = import_module("user")
        assert user.answer() == 42
        from seldom import answer  # type: ignore[import-not-found]
    assert (answer, sys.modules["seldom"].answer) == (42, 42)


def test_late_module_that_was_imported_before_stays_as_it_is() -> None:
    seldom = import_module("seldom")
    with late("seldom"):
        assert import_module("user").seldom is seldom
    assert sys.modules["seldom"] is seldom


def test_late_module_that_fails_to_import_raises_at_its_use(tmp_path: Path) -> None:
    with late("seldom"):
        user = import_module("user")
    (tmp_path / "seldom.py").unlink()
    with pytest.raises(ModuleNotFoundError, match="seldom"):
        user.answer()


def test_module_of_a_package_is_imported_without_the_front() -> None:
    with without_front("package"):
        assert import_module("package.part").part
    assert "package.other" not in sys.modules
    assert import_module("package").front
    assert "package.other" in sys.modules


def test_package_that_is_left_out_can_be_imported_later() -> None:
    with without("seldom"), pytest.raises(ModuleNotFoundError):
        import_module("seldom")
    assert import_module("seldom").answer == 42
