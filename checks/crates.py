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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]

_NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(?P<hashes>#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'',
    re.DOTALL,
)
_TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*mod\s+\w+\s*\{")
_TOKEN = re.compile(
    r"(?P<use>(?P<exported>pub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);)"
    r"|\bmod\s+(?P<inline>\w+)\s*\{"
    r"|\bmod\s+(?P<child>\w+)\s*;"
    r"|\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+(?P<item>\w+)"
    r"|(?<![\w:])(?P<path>\$?\w+(?:\s*::\s*\w+)+)"
    r"|(?P<brace>[{}])"
)

Path_ = tuple[str, ...]


@dataclass(frozen=True)
class Use:
    """A path as it is written, and the module that it is written in."""

    within: Path_
    path: Path_
    line: int
    is_export: bool


@dataclass
class Module:
    """A module of a crate, in a file of its own or inline."""

    file: Path
    children: set[str] = field(default_factory=set)
    items: set[str] = field(default_factory=set)
    imports: dict[str, Path_] = field(default_factory=dict)
    globs: list[Path_] = field(default_factory=list)


@dataclass
class Crate:
    """The modules of a crate, and every path that they name."""

    name: str
    modules: dict[Path_, Module] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)

    def absolute(self, within: Path_, path: Path_) -> Path_ | None:
        """Return a path from the root of the crate, or None if it leads out of it."""
        head, rest = path[0], path[1:]
        if head in ("crate", "$crate"):
            return rest
        if head == "self":
            return within + rest
        if head == "super":
            up = within[:-1]
            while rest and rest[0] == "super":
                up, rest = up[:-1], rest[1:]
            return up + rest
        if head in self.modules[within].children:
            return within + path
        return None

    def owner(self, path: Path_, seen: frozenset[Path_] = frozenset()) -> Path_:
        """Return the module that defines what an absolute path names, following re-exports."""
        module: Path_ = ()
        for at, name in enumerate(path):
            here = self.modules[module]
            if name in here.children and (*module, name) in self.modules:
                module = (*module, name)
                continue
            if name in here.items or path in seen:
                return module
            target = here.imports.get(name)
            if target is not None:
                return self.owner(target + path[at + 1 :], seen | {path})
            for glob in here.globs:
                found = self.owner((*glob, name), seen | {path})
                if name in self.modules[found].items:
                    return found
            return module
        return module

    def edges(self) -> Iterator[tuple[Path_, Path_, Use]]:
        """Yield each dependency of a module on another, with the path that makes it."""
        for use in self.uses:
            target = self.absolute(use.within, use.path)
            if target is None or (use.is_export and self._is_below(use.within, self.owner(target))):
                continue
            yield use.within, self.owner(target), use

    @staticmethod
    def _is_below(parent: Path_, child: Path_) -> bool:
        return child[: len(parent)] == parent


def read_crate(folder: Path) -> Crate:
    """Parse every file of a crate's ``src``."""
    crate = Crate(folder.name)
    source = folder / "src"
    files = {module_path(file.relative_to(source)): file for file in sorted(source.rglob("*.rs"))}
    texts = {path: strip(file.read_text("utf-8")) for path, file in files.items()}
    for path in sorted(texts, key=len):
        crate.modules.setdefault(path, Module(files[path])).file = files[path]
        _read_file(crate, path, texts[path])
    return crate


def module_path(file: Path) -> Path_:
    """Return the path of the module that a file holds: ``schemes/mod.rs`` is ``("schemes",)``."""
    parts = file.with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def strip(text: str) -> str:
    """Blank out comments, literals and test modules, keeping every line where it is."""
    text = _NOISE.sub(lambda found: "".join(c if c == "\n" else " " for c in found[0]), text)
    while found := _TEST_MODULE.search(text):
        end = _closing(text, found.end())
        text = text[: found.start()] + "\n" * text.count("\n", found.start(), end) + text[end:]
    return text


def _closing(text: str, at: int) -> int:
    depth = 1
    while depth and at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def _read_file(crate: Crate, path: Path_, text: str) -> None:
    # Each entry is a module and the depth of braces at which it ends.
    open_modules, depth = [(path, -1)], 0
    file = crate.modules[path].file
    for token in _TOKEN.finditer(text):
        within = open_modules[-1][0]
        module, line = crate.modules[within], text.count("\n", 0, token.start()) + 1
        if token["brace"] == "{":
            depth += 1
        elif token["brace"] == "}":
            depth -= 1
            if depth == open_modules[-1][1]:
                open_modules.pop()
        elif token["inline"]:
            module.children.add(token["inline"])
            crate.modules[(*within, token["inline"])] = Module(file)
            open_modules.append(((*within, token["inline"]), depth))
            depth += 1
        elif token["child"]:
            module.children.add(token["child"])
        elif token["item"]:
            module.items.add(token["item"])
        elif token["path"]:
            names = tuple(name.strip() for name in token["path"].split("::"))
            crate.uses.append(Use(within, names, line, is_export=False))
        elif token["use"]:
            _read_use(crate, within, token, line)


def _read_use(crate: Crate, within: Path_, token: re.Match[str], line: int) -> None:
    for path, alias in use_tree(token["tree"]):
        is_glob = path[-1] == "*"
        names = path[:-1] if is_glob or path[-1] == "self" else path
        crate.uses.append(Use(within, names, line, token["exported"] is not None))
        # Children are declared before they are used, as rustfmt has it; of other crates nothing is known.
        target = crate.absolute(within, names)
        if target is None:
            continue
        if is_glob:
            crate.modules[within].globs.append(target)
        else:
            crate.modules[within].imports[alias or names[-1]] = target


def use_tree(tree: str) -> Iterator[tuple[Path_, str | None]]:
    """Yield the paths of a ``use`` tree, each with its alias: ``a::{b, c as d}`` is ``a::b`` and ``a::c``."""
    tree = tree.strip()
    head, brace, inner = tree.partition("{")
    if not brace:
        written, _, name = tree.partition(" as ")
        yield tuple(part.strip() for part in written.split("::")), name.strip() or None
        return
    prefix = tuple(part for part in re.split(r"\s*::\s*", head.strip()) if part)
    for branch in _branches(inner[: inner.rindex("}")]):
        for path, alias in use_tree(branch):
            yield prefix + path, alias


def _branches(inner: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, character in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield inner[start:at]
            start = at + 1
    if inner[start:].strip():
        yield inner[start:]


Graph = dict[str, dict[str, str]]


def graphs(crate: Crate) -> dict[str, Graph]:
    """Return the graph of the modules at the top of a crate, and that of the files within each of them.

    An edge has the path that makes it, with its file and line. lib.rs, which lists the modules, is in none of them.
    """
    found: dict[str, Graph] = {crate.name: {}}
    for source, target, use in crate.edges():
        if not source or not target:
            continue
        module = crate.modules[source]
        where = f"{module.file.relative_to(ROOT)}:{use.line} names {'::'.join(use.path)}"
        if source[0] != target[0]:
            found[crate.name].setdefault(source[0], {}).setdefault(target[0], where)
        elif module.file != crate.modules[target].file:
            files = [_file_name(each.file) for each in (module, crate.modules[target])]
            within = found.setdefault(f"{crate.name}/{source[0]}", {})
            within.setdefault(files[0], {}).setdefault(files[1], where)
    return found


def _file_name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix().partition("/src/")[2]


def cycles(graph: Graph) -> list[list[str]]:
    """Return a shortest cycle through each node that lies on one, without repeating a set of nodes."""
    found: dict[frozenset[str], list[str]] = {}
    for start in sorted(graph):
        ways: list[list[str]] = [[start]]
        seen = {start}
        cycle: list[str] | None = None
        while ways and cycle is None:
            way = ways.pop(0)
            for name in sorted(graph.get(way[-1], {})):
                if name == start:
                    cycle = way
                    break
                if name not in seen:
                    seen.add(name)
                    ways.append([*way, name])
        if cycle:
            found.setdefault(frozenset(cycle), cycle)
    return list(found.values())


def main(arguments: list[str]) -> int:
    """Print every cycle of the crates, all of them by default, and return 1 if there is one."""
    folders = [ROOT / "crates" / name for name in arguments] or sorted((ROOT / "crates").iterdir())
    failed = False
    for folder in folders:
        for name, graph in graphs(read_crate(folder)).items():
            for cycle in cycles(graph):
                failed = True
                print(f"{name}: {' -> '.join([*cycle, cycle[0]])}", file=sys.stderr)
                for source, target in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
                    print(f"  {graph[source][target]}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
