"""Refuse import cycles between the modules of a Rust crate: ``python -m checks.crates [CRATE ...]``.

Cargo forbids cycles between crates; nothing forbids them within one. This check reads the paths of every file in a
crate's ``src``: ``use`` trees, ``crate::``, ``self::`` and ``super::`` paths, paths that begin with a child module, and
the ``$crate::`` paths of a macro, which count for the file that defines it. It fails if the modules at the top of the
crate, or the files within one of them, need each other in a circle.

A path leads to the file that defines the item. Re-exports are followed, so a parent that only lists and re-exports its
children depends on none of them. Modules under ``#[cfg(test)]`` are left out.
"""

from __future__ import annotations

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[1]

_NOISE: Final = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(?P<hashes>#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'',
    re.DOTALL,
)
_TESTS: Final = re.compile(r"^( *)#\[cfg\(test\)\]\s*mod\s+\w+\s*\{.*?^\1\}", re.DOTALL | re.MULTILINE)
_INLINE: Final = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?mod \w+ \{.*?^\1\}", re.DOTALL | re.MULTILINE)
_USE: Final = re.compile(r"(?P<exported>\bpub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
_PATH: Final = re.compile(r"(?<![\w:])\$?\w+(?:\s*::\s*\w+)+")
_ITEM: Final = re.compile(r"\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+(\w+)")

Names = tuple[str, ...]


class Crate:
    """The files of a crate by the path of their module: ``schemes/mod.rs`` is ``("schemes",)``."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[Names, Path] = {}
        for file in sorted((folder / "src").rglob("*.rs")):
            names = file.relative_to(folder / "src").with_suffix("").parts
            self.files[names[:-1] if names[-1] in ("mod", "lib", "main") else names] = file
        texts = {module: _code(file.read_text("utf-8")) for module, file in self.files.items()}
        self.items = {module: set(_ITEM.findall(text)) for module, text in texts.items()}
        self.imports: dict[Names, list[tuple[Names, str]]] = {module: [] for module in texts}
        """The absolute path of each import with its name, or ``*``."""
        self.paths: list[tuple[Names, Names, bool]] = []
        """The paths that a module names, absolute, and True for those that it exports."""
        for module, text in texts.items():
            for use in _USE.finditer(text):
                for names, alias in use_tree(use["tree"]):
                    path = self._absolute(module, names[:-1] if names[-1] in ("*", "self") else names)
                    if path is not None:
                        self.imports[module].append((path, alias or names[-1]))
                        self.paths.append((module, path, use["exported"] is not None))
            for found in _PATH.findall(_USE.sub("", text)):
                path = self._absolute(module, tuple(name.strip() for name in found.split("::")))
                if path is not None:
                    self.paths.append((module, path, False))

    def _absolute(self, module: Names, path: Names) -> Names | None:
        """Return a path from the root of the crate, or None if it leads out of it."""
        if path[0] in ("crate", "$crate"):
            return path[1:]
        if path[0] == "self":
            return module + path[1:]
        if path[0] == "super":
            return self._absolute(module[:-1], ("self", *path[1:]) if path[1:2] != ("super",) else path[1:])
        return module + path if (*module, path[0]) in self.files else None

    def owner(self, path: Names, seen: frozenset[Names] = frozenset()) -> Names:
        """Return the module whose file defines what an absolute path names, following re-exports."""
        module: Names = ()
        for at, name in enumerate(path):
            if (*module, name) in self.files:
                module = (*module, name)
                continue
            if name not in self.items[module] and path not in seen:
                for target, imported in self.imports[module]:
                    if imported in (name, "*"):
                        names = target if imported == name else (*target, name)
                        found = self.owner(names + path[at + 1 :], seen | {path})
                        if imported == name or name in self.items[found]:
                            return found
            break
        return module

    def graphs(self) -> dict[str, dict[str, set[str]]]:
        """Return the graph of the modules at the top, and that of the files within each of them."""
        graphs: dict[str, dict[str, set[str]]] = {}
        for module, path, is_export in self.paths:
            target = self.owner(path)
            # lib.rs lists the modules, so it is in no graph; nor is what a parent exports of its children.
            if module and target and module != target and not (is_export and target[: len(module)] == module):
                if module[0] != target[0]:
                    graphs.setdefault("", {}).setdefault(module[0], set()).add(target[0])
                else:
                    graphs.setdefault(module[0], {}).setdefault("::".join(module), set()).add("::".join(target))
        return graphs


def _code(text: str) -> str:
    """Return the text without comments, literals and test modules. An inline module's parent is the file itself."""
    text = _TESTS.sub("", _NOISE.sub(" ", text))
    return _INLINE.sub(
        lambda inline: re.sub(r"\bsuper::(super::)?", lambda found: found[1] or "self::", inline[0]), text
    )


def use_tree(tree: str) -> Iterator[tuple[Names, str | None]]:
    """Yield the paths of a ``use`` tree, each with its alias: ``a::{b, c as d}`` is ``a::b`` and ``a::c``."""
    head, brace, inner = tree.strip().partition("{")
    prefix: Names = tuple(part for part in re.split(r"\s*::\s*", head.strip()) if part)
    if not brace:
        written, _, alias = head.partition(" as ")
        yield tuple(part.strip() for part in written.split("::")), alias.strip() or None
        return
    for branch in re.findall(r"[^,{}]+(?:\{(?:[^{}]|\{[^{}]*\})*\})?", inner[: inner.rindex("}")]):
        if branch.strip():
            yield from ((prefix + names, alias) for names, alias in use_tree(branch))


def main(arguments: list[str]) -> int:
    """Print a cycle of each graph of the crates, all of them by default. Return 1 if there is one, else 0."""
    failed = False
    for folder in [ROOT / "crates" / name for name in arguments] or sorted((ROOT / "crates").iterdir()):
        for name, graph in Crate(folder).graphs().items():
            try:
                TopologicalSorter(graph).prepare()
            except CycleError as error:
                failed = True
                print(f"{folder.name}/{name}: {' -> '.join(reversed(error.args[1]))}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
