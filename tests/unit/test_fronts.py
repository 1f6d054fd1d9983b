"""Tests of imports that leave out or put off parts of packages."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from mintage.server.fronts import late, late_names, without, without_front

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


def import_names(tmp_path: Path, *lines: str) -> Any:
    """Return a module with these lines, which was imported while the names of `seldom` were late."""
    (tmp_path / "user.py").write_text("\n".join(lines), encoding="utf-8")
    with late_names("seldom"):
        return import_module("user")


def test_late_name_imports_its_module_when_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "seldom.py").write_text(
        "class Seldom:\n    kind = 3\n    def __init__(self, x):\n        self.x = x\n", "utf-8"
    )
    user = import_names(
        tmp_path,
        "from seldom import Seldom",
        "def used(x: Seldom | None = None): return Seldom(x).x",
        "def kind(): return Seldom.kind",
        "def is_seldom(x): return isinstance(x, Seldom)",
    )
    assert "seldom" not in sys.modules
    assert (user.used(7), user.kind()) == (7, 3)
    from seldom import Seldom

    assert (user.is_seldom(Seldom(1)), user.is_seldom(1)) == (True, False)
    assert user.Seldom(2).x == 2


def test_call_of_a_late_name_while_it_is_late_takes_place_at_the_use(tmp_path: Path) -> None:
    (tmp_path / "seldom.py").write_text("def made(x):\n    return [x].__len__\n", "utf-8")
    user = import_names(tmp_path, "from seldom import made", "size = made(3)")
    assert "seldom" not in sys.modules
    assert user.size() == 1
    assert "seldom" in sys.modules


def test_module_with_late_names_has_its_own_names_afterwards(tmp_path: Path) -> None:
    user = import_names(tmp_path, "import seldom")
    assert "seldom" not in sys.modules
    assert user.seldom.answer == 42


def test_late_names_of_a_module_that_was_imported_are_its_own(tmp_path: Path) -> None:
    import_module("seldom")
    assert import_names(tmp_path, "from seldom import answer").answer == 42
