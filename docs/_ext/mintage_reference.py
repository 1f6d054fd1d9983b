"""Generate parts of the reference from the code, so that nobody copies a table by hand.

Directives of reStructuredText: ``error-catalogue``, ``command-line``, ``layouts``; of Markdown: ``layout``,
``scheme-reference`` and ``store-options``. Autodoc takes the signatures of the extension's classes from their stubs,
and links the errors in ``:raises:``.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import copy
import inspect
import re
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from mintage import errors, snowflake, ulid
from mintage.formats import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from docutils import nodes
    from sphinx.application import Sphinx

STUBS = Path(__file__).parents[2] / "src" / "mintage" / "_core"


class Generated(SphinxDirective):
    """A directive that generates its content from the code, in the markup of the page."""

    def lines(self) -> Iterator[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes("\n".join(self.lines()), allow_section_headings=True)


def _table(widths: str, *rows: tuple[str, ...]) -> Iterator[str]:
    yield from ("", ".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", "   :width: 100%", "")
    for row in rows:
        for at, cell in enumerate(row):
            yield f"   {'*' if at == 0 else ' '} - {cell}"
    yield ""


class ErrorCatalogue(Generated):
    """A table of every error code: its class, meaning, remedy, HTTP status, RESP prefix and exit code."""

    def lines(self) -> Iterator[str]:
        rows = [
            (
                f"``{code}``",
                f":exc:`~mintage.errors.{entry.error.__name__}`",
                f"{_rst(entry.meaning)} *{_rst(entry.remedy)}*",
                str(entry.http),
                f"``{entry.resp}``",
                str(entry.exit),
            )
            for code, entry in errors.CATALOGUE.items()
        ]
        yield from _table("20 18 38 7 10 7", ("code", "class", "meaning and *remedy*", "HTTP", "RESP", "exit"), *rows)


def _rst(text: str) -> str:
    return re.sub(r"(?<!`)`([^`]+)`(?!`)", r"\1", text).replace("*", r"\*")


class Layouts(Generated):
    """A table of the named layouts of snowflake."""

    def lines(self) -> Iterator[str]:
        rows = []
        named = {name: getattr(snowflake, name) for name in snowflake.__all__}
        for name, layout in named.items():
            if not isinstance(layout, snowflake.Layout):
                continue
            fields = " ".join(f"{field}:{bits}" for field, bits, _ in layout.fields)
            rows.append(
                (
                    f"| :py:data:`~mintage.snowflake.{name}`, {layout.bits} bits\n       | ``{fields}``",
                    f"| {layout.epoch_ms}\n       | {layout.unit_ms} ms",
                    f"{layout.nodes:,}",
                    f"{layout.ids_per_second:,}",
                    f"{layout.expires:%Y-%m-%d}",
                )
            )
        yield from _table(
            "42 18 10 14 16",
            ("name and fields, from high to low", "epoch_ms and tick", "nodes", "IDs/s a node", "expires"),
            *rows,
        )


class Layout(Generated):
    """A diagram of the bits of a format and a table of its fields: ``{layout} sno``, ``{layout} uuid v7``."""

    required_arguments = 1
    final_argument_whitespace = True

    def lines(self) -> Iterator[str]:
        [shown] = [each for each in catalogue.FORMATS if each.name == self.arguments[0]]
        yield from ("```text", shown.diagram().rstrip("\n"), "```", "")
        size = f"{shown.bits} bits" + (f" in {shown.bits // 8} bytes, big-endian" if shown.raw else "")
        expires = f" Its last time is in {shown.expires:%Y}." if shown.expires else ""
        yield from (f"{size}.{expires}", "", "| field | bits | meaning |", "| --- | --- | --- |")
        low = shown.bits
        for part in shown.parts:
            high, low = low - 1, low - part.bits
            places = f"{high}–{low}" if high > low else str(low)
            says = part.says or self.doc(shown.scheme, part.name)
            yield f"| `{part.name}` | {places} | {says} |"
        yield ""

    def doc(self, scheme: str, name: str) -> str:
        """Return the first line of the docstring of a field that the declaration does not describe."""
        first, *_ = getattr(import_module(f"mintage.{scheme}").ID, name).__doc__.splitlines()
        return str(first[:1].lower() + first[1:].rstrip("."))


class StoreOptions(Generated):
    """A table of the options of a kind of store: ``{store-options} mintage.store.redis.RedisOptions``."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        module, _, name = self.arguments[0].rpartition(".")
        yield from ("| option | values | default | meaning |", "| --- | --- | --- | --- |")
        for each in fields(getattr(import_module(module), name)):
            about, least, most, schemes = (each.metadata[key] for key in ("about", "least", "most", "schemes"))
            values, default = "text", f"`{each.default}`"
            if most:
                values, default = f"{least:,} to {most:,}", f"{each.default or least:,}"
            elif isinstance(each.default, bool):
                values, default = "0 or 1", str(int(each.default))
            only = f" ({', '.join(f'`{scheme}:`' for scheme in schemes)})" if schemes else ""
            yield f"| `{each.name}`{only} | {values} | {'–' if each.default is None else default} | {about} |"
        yield ""


class SchemeReference(Generated):
    """The complete reference page of a scheme's module: ``{scheme-reference} sno``."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        scheme = self.arguments[0]
        module = import_module(f"mintage.{scheme}")
        left = list(module.__all__)

        def taken(*names: str) -> list[str]:
            here = [name for name in names if name in left]
            left[:] = [name for name in left if name not in here]
            return here

        made = taken(*(name for name in left if name.startswith("new")))
        sections = {
            "Minting": [*made, *taken("Generator", "Overflow")],
            "IDs": taken("ID"),
            "Range queries": taken("min_at", "max_at"),
            "Arrays": taken("Array", "encode_into", "parse_into", "to_lines"),
        }
        standard = taken(*(name for name in left if _is_standard(getattr(module, name))))
        constants = taken(*(name for name in left if name.isupper()))
        sections["Other names"] = left
        size = module.Array.SIZE if hasattr(module, "Array") else None
        after = {
            "Minting": f"The default generator of the module provides {' and '.join(f'`{name}`' for name in made)}. A "
            "generator is an iterator of IDs, and a context manager that closes it on exit."
            if made and hasattr(module, "Generator")
            else "",
            "IDs": f"`str(id)` returns the text, `bytes(id)` the {size} bytes, and `int(id)` their big-endian integer."
            if size
            else "",
            "Arrays": f"`Array.SIZE`, the number of bytes of an ID, is {size}." if size else "",
        }
        yield f"# {module.__name__}"
        yield from _rst_in_markdown(f".. automodule:: {module.__name__}", "   :no-members:")
        yield f"[The page of {scheme}](../schemes/{scheme}.md) explains its bits and its behaviour."
        for title, names in sections.items():
            if names:
                yield from ("", f"## {title}", "")
                yield from _rst_in_markdown(*(line for name in names for line in self.entry(module, name)))
                yield after.get(title, "")
        if standard:
            yield from ("", f"From the standard library: {', '.join(f'`{name}`' for name in standard)}.", "")
        if constants:
            kinds = [(name, type(getattr(module, name)).__name__) for name in constants]
            yield from ("", "## Constants", "")
            yield from _rst_in_markdown(
                *(line for name, kind in kinds for line in (f".. py:data:: {name}", f"   :type: {kind}"))
            )

    def entry(self, module: ModuleType, name: str) -> Iterator[str]:
        """Yield the lines of autodoc for one name."""
        is_class = isinstance(getattr(module, name), type)
        yield from ("", f".. auto{'class' if is_class else 'function'}:: {module.__name__}.{name}")
        if is_class:
            yield from ("   :members:", "   :exclude-members: MAX, NIL, SIZE, ZERO")


def _is_standard(named: Any) -> bool:
    """Return True if a module of the standard library defines it."""
    home = getattr(named, "__module__", None)
    return (
        home in sys.stdlib_module_names and getattr(import_module(home), getattr(named, "__name__", ""), None) is named
    )


def _rst_in_markdown(*lines: str) -> Iterator[str]:
    yield from ("```{eval-rst}", *lines, "```", "")


class CommandLine(Generated):
    """The commands, generated from the parser that runs them."""

    def lines(self) -> Iterator[str]:
        from mintage import cli

        yield from self.commands(cli._parser(map(cli.load, cli.COMMANDS)))

    def commands(self, parser: argparse.ArgumentParser) -> Iterator[str]:
        """Yield the lines of a command and of its subcommands."""
        yield from self.command(parser)
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for each in action.choices.values():
                    yield from ("", each.prog, "-" * len(each.prog), "")
                    yield from self.commands(each)

    def command(self, parser: argparse.ArgumentParser) -> Iterator[str]:
        formatter = argparse.HelpFormatter(parser.prog, width=88)
        formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
        yield from ("", _rst(parser.description or ""), "", ".. code-block:: text", "")
        yield from (f"   {line}" for line in formatter.format_help().splitlines())
        yield ""
        for group in parser._action_groups:
            shown = [a for a in group._group_actions if a.help is not argparse.SUPPRESS]
            if not shown:
                continue
            yield from ("", f"**{group.title}**", "")
            for action in shown:
                if isinstance(action, argparse._SubParsersAction):
                    for choice in action._choices_actions:
                        yield from (f"``{choice.dest}``", f"   {_rst(choice.help or '')}", "")
                    continue
                names = action.option_strings or [str(action.metavar or action.dest)]
                value = "" if action.nargs == 0 else f" {self.value(action)}" if action.option_strings else ""
                yield from (", ".join(f"``{name}{value}``" for name in names), f"   {_rst(action.help or '')}", "")
        if parser.epilog:
            yield from ("", "**examples**", "", ".. code-block:: text", "")
            examples = parser.epilog.partition(":")[2].strip("\n").splitlines()
            yield from (f"   {line.strip()}" for line in examples)
            yield ""

    def value(self, action: argparse.Action) -> str:
        if action.choices is not None and action.metavar is None:
            return "{" + ",".join(map(str, action.choices)) + "}"
        return str(action.metavar or action.dest.upper())


# --- autodoc ------------------------------------------------------------------------------------------------------


# More than 60 lines: one branch a kind of definition in a stub.
def _stubs() -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Return the signatures of all functions and the types of all properties, by the name that users import."""
    found: dict[str, tuple[str, str]] = {}
    types: dict[str, str] = {}
    trees = {stub.stem: ast.parse(stub.read_text(encoding="utf-8")) for stub in sorted(STUBS.glob("*.pyi"))}
    aliases = {
        node.target.id: node.value
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and "TypeAlias" in ast.unparse(node)
    }
    bases = {node.name: node for node in trees["__init__"].body if isinstance(node, ast.ClassDef)}

    class Spelled(ast.NodeTransformer):
        """Replaces the stubs' private aliases, type variables and ``Self`` in annotations."""

        def __init__(self, **known: ast.expr) -> None:
            private = {name: value for name, value in aliases.items() if value and name.startswith("_")}
            self.known = private | known

        def visit_Name(self, node: ast.Name) -> ast.expr:
            known = self.known.get(node.id)
            return node if known is None else self.visit(copy.deepcopy(known))

        def visit_arguments(self, node: ast.arguments) -> ast.AST:
            match node.kwarg:
                case ast.arg(annotation=ast.Subscript(value=ast.Name(id="Unpack"), slice=ast.Name(id=name))):
                    defaults = inspect.signature(ulid.Generator).parameters  # the same for every generator
                    node.kwarg = None
                    for each in options(name):
                        key = ast.unparse(each.target)
                        node.kwonlyargs.append(ast.arg(key, each.annotation))
                        node.kw_defaults.append(ast.Constant(defaults[key].default if key in defaults else ...))
            return self.generic_visit(node)

    def options(name: str) -> Iterator[ast.AnnAssign]:
        """Yield the members of a typed dictionary of the stubs, those of its bases first."""
        node = bases.get(name) or local[name]
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in bases:
                yield from options(base.id)
        yield from (each for each in copy.deepcopy(node.body) if isinstance(each, ast.AnnAssign))

    def variables(node: ast.ClassDef) -> list[str]:
        """The type variables of a class in the stubs, in the order of its parameters."""
        slices = {ast.unparse(base.value): base.slice for base in node.bases if isinstance(base, ast.Subscript)}
        first = slices.get("Generic", next(iter(slices.values()), None))
        return [each.id for each in ast.walk(first) if isinstance(each, ast.Name)] if first else []

    def members(node: ast.ClassDef, own: str) -> Iterator[ast.stmt]:
        """Yield the members of a class and then those of its bases in the stubs, with ``Self`` replaced by its name."""
        yield from node.body
        for base in node.bases:
            name, item = (base.value, base.slice) if isinstance(base, ast.Subscript) else (base, None)
            if isinstance(name, ast.Name) and name.id in bases:
                items = item.elts if isinstance(item, ast.Tuple) else [item] if item else []
                bound = zip(variables(bases[name.id]), items, strict=False)
                known = {variable: each for variable, each in bound if ast.unparse(each) != variable}
                spelled = Spelled(Self=ast.Name(own), **known)
                for each in members(copy.deepcopy(bases[name.id]), own):
                    yield spelled.visit(each)

    def visit(body: Iterable[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(members(node, node.name), f"{prefix}.{node.name}")
            elif isinstance(node, ast.FunctionDef):
                arguments = node.args
                marks = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
                if "property" in marks:
                    types.setdefault(f"{prefix}.{node.name}", ast.unparse(node.returns) if node.returns else "")
                    continue
                static = "staticmethod" in marks
                if prefix.count(".") > 1 and not static:
                    (arguments.posonlyargs or arguments.args).pop(0)
                returns = ast.unparse(node.returns) if node.returns else ""
                name = prefix if node.name == "__new__" else f"{prefix}.{node.name}"
                written = ast.unparse(arguments).replace("Layout=...", "Layout=DEFAULT")
                found.setdefault(name, (f"({written})", "" if node.name == "__new__" else returns))

    for stem, tree in trees.items():
        local = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        spelled = Spelled().visit(copy.deepcopy(tree))
        visit(spelled.body, "mintage.testing" if stem == "__init__" else f"mintage.{stem}")
    # The default generators' bound methods.
    for stem in trees:
        for method in ("new", "new_at"):
            if method_signature := found.get(f"mintage.{stem}.Generator.{method}"):
                found[f"mintage.{stem}.{method}"] = method_signature
    return found, types


SIGNATURES, TYPES = _stubs()
# `inspect.signature` cannot read the default `layout=DEFAULT`; without a signature, Sphinx ignores that of the stub.
snowflake.Generator.__signature__ = inspect.Signature()


def signature(_app: Sphinx, _what: str, name: str, *_: object) -> tuple[str, str] | None:
    return SIGNATURES.get(name)


def docstring(_app: Sphinx, what: str, name: str, *rest: Any) -> None:
    lines: list[str] = rest[-1]
    text = "\n".join(lines)
    if what == "class":
        # The extension's classes repeat their signature below the first line, for `help()`.
        text = re.sub(rf"\n\n{re.escape(name.rpartition('.')[2])}\((.|\n)*?\)\n\n", "\n\n", text, count=1)
    if name in TYPES:
        text = f"``{TYPES[name]}``: {text[:1].lower()}{text[1:]}"
    ours = "|".join(errors.__all__)
    text = re.sub(rf"(?m)^( *):raises ({ours}):", r"\1:raises ~mintage.errors.\2:", text)
    lines[:] = text.split("\n")


def unlink_builtins(_app: Sphinx, doctree: nodes.document) -> None:
    """Remove the links of builtins: `int` in a signature is not the field `int` of an Anatomy."""
    for reference in list(doctree.findall(addnodes.pending_xref)):
        if reference.get("reftype") == "class" and hasattr(builtins, reference.get("reftarget", "")):
            reference.replace_self(reference.children)


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("error-catalogue", ErrorCatalogue)
    app.add_directive("layouts", Layouts)
    app.add_directive("layout", Layout)
    app.add_directive("store-options", StoreOptions)
    app.add_directive("scheme-reference", SchemeReference)
    app.add_directive("command-line", CommandLine)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-process-docstring", docstring)
    app.connect("doctree-read", unlink_builtins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
