"""Tests of the package: imports, exports, metadata and docstrings."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import os
import pickle
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import mintage
from mintage import _core, errors, locality, sno, snowflake, testing
from mintage.formats import anatomy
from mintage.formats.kinds import NAMES
from mintage.installation import install_line
from tests.helpers.cases import each_case

MODULES = [mintage, anatomy, errors, locality, sno, snowflake, testing]
each_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)

PROMISED = {
    mintage: "Anatomy errors inspect locality sno snowflake",
    sno: "ID Generator Overflow Snapshot max_at min_at new new_at",
    sno.ID: "ZERO MAX parse from_bytes from_int from_uuid from_parts time timestamp_ns tick meta partition sequence"
    " is_zero as_uuid replace",
    sno.Generator: "new new_at nth_at batch fill snapshot close restore partition sequence sequence_min sequence_max"
    " used capacity drifts __iter__ __next__ __enter__ __exit__",
    sno.Snapshot: "partition sequence_min sequence_max sequence now wall_hi wall_safe drifts leased pool shards"
    " to_json from_json",
    sno.Overflow: "now count ticks",
    snowflake: "DEFAULT TWITTER DISCORD INSTAGRAM SONYFLAKE Generator Layout Parts new node_from_macs",
    snowflake.Layout: "compose parse min_at max_at expires ids_per_second nodes fields epoch_ms unit_ms",
    snowflake.Parts: "timestamp_ms time node sequence fields",
    snowflake.Generator: "new new_at nth_at batch fill close node layout __iter__ __next__ __enter__ __exit__",
    locality: "ID Generator new use_sequential_ids use_variable_ids",
    locality.ID: "parse from_bytes from_uuid from_parts version counter pid mac timestamp_ms time as_uuid",
    locality.Generator: "new new_at nth_at batch fill close mode pid mac __iter__ __next__ __enter__ __exit__",
    errors: "MintError ParseError FieldError ConfigError GenerationError LeaseError StoreError ArgumentError CATALOGUE",
    testing: "ManualClock",
    testing.ManualClock: "set advance now_ns",
}


@each_case(
    "owner, name",
    [(owner, name) for owner, names in PROMISED.items() for name in names.split()],
    ids=lambda value: getattr(value, "__qualname__", getattr(value, "__name__", value)),
)
def test_promised_names_exist(owner: object, name: str) -> None:
    assert hasattr(owner, name)


# ----------------------------------------------------------------------------------------------------------- installing


@pytest.mark.parametrize("name", ["mintage", "mintage-of-our-own"])
def test_install_command_of_an_extra_names_the_distribution(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(name, None))
    assert install_line("redis") == f"pip install '{name}[redis]'"


class Installed(NamedTuple):
    """A distribution, as :mod:`importlib.metadata` shows it."""

    name: str
    record: str | None

    @property
    def metadata(self) -> dict[str, str]:
        return {"Name": self.name}

    def read_text(self, name: str) -> str | None:
        return self.record if name == "direct_url.json" else None


@pytest.mark.parametrize(
    ("info", "is_named"),
    [({"dir_info": {}}, True), ({"dir_info": {"editable": True}}, True), ({"archive_info": {}}, False)],
)
def test_extra_of_a_source_tree_is_installed_from_its_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, info: dict[str, Any], is_named: bool
) -> None:
    tree = tmp_path / "a user's tree"
    record = json.dumps({"url": tree.as_uri(), **info})
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed("mintage", record))
    # A tree that is gone cannot be installed from.
    assert install_line("redis") == "pip install 'mintage[redis]'"
    tree.mkdir()
    (tree / "pyproject.toml").touch()
    assert shlex.split(install_line("redis"))[2:] == [f"{tree if is_named else 'mintage'}[redis]"]


def test_build_without_rust_says_what_is_missing(tmp_path: Path) -> None:
    backend = Path(__file__).parents[2] / "crates/py"
    command = [sys.executable, "-c", "import backend"]
    environment = {"PATH": str(tmp_path)}
    done = subprocess.run(command, check=False, cwd=backend, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mintage is compiled by Rust, and no cargo was found on the PATH: install Rust")
    assert done.stderr.count("\n") == 1


def test_no_index_is_asked_for_an_uninstalled_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "distribution", missing)
    assert install_line("redis") == "pip install '.[redis]' in the source tree"


def test_extras_are_installed_by_one_line() -> None:
    sources = Path(mintage.__file__).parent.rglob("*.py")
    assert [source.name for source in sources if "pip install" in source.read_text("utf-8")] == ["installation.py"]


def test_extension_contains_no_path_of_its_build() -> None:
    content = Path(_core.__file__).read_bytes()
    for directory in (os.environ.get("CARGO_HOME") or Path.home() / ".cargo", Path(__file__).parents[2]):
        assert os.fsencode(directory) + b"/" not in content, directory


MINTERS = {
    "mintage.sno": ["new", "new_at"],
    "mintage.snowflake": ["new"],
    "mintage.locality": ["new", "use_sequential_ids", "use_variable_ids"],
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in MINTERS.items() for name in names])
def test_module_functions_can_be_named_pickled_and_migrated(module: str, name: str) -> None:
    function = getattr(sys.modules[module], name)
    # As django.db.migrations.serializer.FunctionTypeSerializer writes a default.
    assert (function.__module__, function.__qualname__) == (module, name)
    assert not isinstance(getattr(function, "__self__", None), type)
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function


def test_module_functions_take_the_arguments_of_methods() -> None:
    assert str(inspect.signature(sno.new)) == "(meta=0)"
    assert str(inspect.signature(snowflake.new)) == str(inspect.signature(locality.new)) == "()"
    assert (sno.new(7).meta, sno.new(meta=8).meta) == (7, 8)
    for call in (lambda: snowflake.new(1), lambda: locality.new(meta=1), lambda: sno.new(1, 2)):  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError):
        _core.as_function(len, "builtins")


# ------------------------------------------------------------------------------------------------------------ importing

HEAVY = {
    "argparse",
    "asyncio",
    "dataclasses",
    "decimal",
    "email",
    "importlib.metadata",
    "inspect",
    "json",
    "logging",
    "pathlib",
    "re",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "typing",
    "uuid",
}


FORMAT_MODULES = [f"mintage.{name}" for name in NAMES]


def imported_by(statement: str) -> set[str]:
    """Return the modules that a statement imports, with only the standard library and mintage installed."""
    with TemporaryDirectory() as source:
        # Beside an installed package there are others.
        Path(source, "mintage").symlink_to(Path(mintage.__file__).parent)
        script = f"""if True:
            import sys
            sys.path.append({source!r})
            before = set(sys.modules)
            {statement}
            print(*set(sys.modules) - before)
        """
        command = [sys.executable, "-I", "-S", "-W", "error", "-c", script]
        return set(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split())


def test_mintage_imports_only_the_standard_library() -> None:
    roots = {name.partition(".")[0] for name in imported_by("import mintage")}
    assert "mintage" in roots
    assert roots - {"mintage"} <= sys.stdlib_module_names


def test_mintage_imports_no_heavy_module() -> None:
    imported = imported_by("import mintage; mintage.sno.Generator(1).new(); mintage.snowflake.Generator(1).new()")
    assert imported & HEAVY == set()
    assert not any(name.startswith(("mintage.formats.anatomy", "mintage.formats", "mintage.cli")) for name in imported)


def test_no_module_of_the_package_stands_in_for_another() -> None:
    for path in Path(mintage.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Subscript(value=ast.Attribute(attr="modules"), ctx=ast.Store() | ast.Del()):
                    pytest.fail(f"{path}:{node.lineno} writes to sys.modules")
                case ast.Attribute(value=ast.Attribute(attr="modules"), attr="update" | "pop" | "setdefault" | "clear"):
                    pytest.fail(f"{path}:{node.lineno} writes to sys.modules")


def test_a_process_imports_only_the_formats_that_it_uses() -> None:
    assert imported_by("import mintage") & set(FORMAT_MODULES) == set()
    assert imported_by("import mintage; mintage.sno") & set(FORMAT_MODULES) == {"mintage.sno"}


@pytest.mark.parametrize("statement", ["from mintage import ulid", "from mintage import sno; sno.new()"])
def test_format_is_imported_without_the_table_of_all(statement: str) -> None:
    assert not [name for name in imported_by(statement) if name.startswith("mintage.formats")]


def test_package_that_is_imported_again_has_its_formats() -> None:
    again = "import sys, mintage; del sys.modules['mintage']; import mintage; mintage.ulid"
    assert "mintage.ulid" in imported_by(again)


def test_inspect_imports_only_the_standard_library() -> None:
    roots = {name.partition(".")[0] for name in imported_by("import mintage; mintage.inspect(mintage.sno.new())")}
    assert roots - {"mintage"} <= sys.stdlib_module_names


def test_every_module_can_be_imported_first() -> None:
    for name in [module.__name__ for module in MODULES] + ["mintage._core", "mintage._core.sno"]:
        assert name in imported_by(f"import {name}")


# --------------------------------------------------------------------------------------------------------- distribution


def test_distribution_requires_nothing() -> None:
    required = [line for line in metadata.requires("mintage") or [] if "extra ==" not in line]
    assert required == []


def test_distribution_has_the_version_of_the_package() -> None:
    assert metadata.version("mintage") == mintage.__version__


def test_package_says_that_it_is_typed() -> None:
    package = Path(mintage.__file__).parent
    assert (package / "py.typed").is_file()
    submodules = {name for name, value in vars(_core).items() if isinstance(value, ModuleType)}
    assert {path.stem for path in (package / "_core").glob("*.pyi")} == {"__init__", *submodules}


@pytest.mark.skipif("MINTAGE_DEBUG_BUILD" in os.environ, reason="a debug build is wanted")
def test_tests_run_the_release_build() -> None:
    assert _core.build_profile == "release"


# -------------------------------------------------------------------------------------------------------------- exports


@each_module
def test_all_lists_each_public_object_once(module: ModuleType) -> None:
    names: list[str] = module.__all__
    assert len(set(names)) == len(names)
    assert all(hasattr(module, name) for name in names)
    assert set(names) <= set(dir(module))
    namespace: dict[str, object] = {}
    exec(f"from {module.__name__} import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(names)


@each_module
def test_all_omits_nothing_that_its_module_defines(module: ModuleType) -> None:
    def belongs(value: object) -> bool:
        home = getattr(value, "__module__", None)
        return home == module.__name__ and not isinstance(value, ModuleType)

    defined = {name for name, value in vars(module).items() if not name.startswith("_") and belongs(value)}
    assert defined <= set(module.__all__)


@pytest.mark.parametrize("module", [sno, snowflake, locality], ids=lambda module: module.__name__)
def test_public_classes_have_their_public_names(module: ModuleType) -> None:
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            assert (value.__module__, value.__qualname__) == (module.__name__, name)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = mintage.no_such_name


# -------------------------------------------------------------------------------------------------------- documentation


def public_objects() -> dict[str, Any]:
    """Return every public module, class, function, method and property by its full name."""
    found: dict[str, Any] = {}
    for module in MODULES:
        found[module.__name__] = module
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value) or not callable(value):
                continue
            found[f"{module.__name__}.{name}"] = value
            if inspect.isclass(value):
                for member, attribute in vars(value).items():
                    if not member.startswith("_") and (callable(attribute) or inspect.isgetsetdescriptor(attribute)):
                        found[f"{module.__name__}.{name}.{member}"] = getattr(value, member)
    return found


OBJECTS = public_objects()

MINTS = re.compile(r"mintage\.(sno|snowflake|locality)\.(Generator\.)?(new|new_at|nth_at|batch|fill|snapshot|use_mode)")
READS = re.compile(r"mintage\.(sno|snowflake|locality)\..*(parse|from_\w+|min_at|max_at|compose|replace|_into)")
MAKES = re.compile(r"mintage\.(sno|snowflake|locality|testing)\.(ID|Array|Generator|Snapshot|Layout|ManualClock)")
CODE = re.compile(rf"``((?:{'|'.join({code.partition('.')[0] for code in errors.CATALOGUE})})\.\w+)``")


@each_case("name", sorted(OBJECTS))
def test_every_public_object_has_a_docstring(name: str) -> None:
    doc = inspect.getdoc(OBJECTS[name])
    assert doc
    assert doc.strip()


@each_case("name", [name for name in OBJECTS if any(kind.fullmatch(name) for kind in (MINTS, READS, MAKES))])
def test_docstrings_list_the_errors_raised(name: str) -> None:
    assert ":raises " in (inspect.getdoc(OBJECTS[name]) or "")


def test_docstrings_name_only_errors_that_exist() -> None:
    unknown = {}
    for name, value in OBJECTS.items():
        doc = inspect.getdoc(value) or ""
        raised = set(re.findall(r":raises (\w+):", doc)) - set(errors.__all__)
        codes = set(CODE.findall(doc)) - set(errors.CATALOGUE)
        if raised | codes:
            unknown[name] = raised | codes
    assert unknown == {}


@each_case("name", sorted(name for name, value in OBJECTS.items() if inspect.isroutine(value)))
def test_every_function_and_method_has_a_signature(name: str) -> None:
    inspect.signature(OBJECTS[name])


def test_catalogue_is_complete_and_listable() -> None:
    for code, entry in errors.CATALOGUE.items():
        assert re.fullmatch(r"[a-z]+\.[a-z_]+", code)
        assert issubclass(entry.error, errors.MintError)
        assert 400 <= entry.http < 600
        assert entry.exit > 0
        assert entry.resp.isupper()
        assert entry.meaning.endswith(".")
        assert entry.remedy.endswith(".")


def test_every_code_is_raised_and_no_other() -> None:
    root = Path(__file__).parents[2]
    sources = [*(root / "crates").rglob("src/**/*.rs"), *(root / "src").rglob("*.py")]
    if not (root / "crates").is_dir():
        pytest.skip("needs the source tree")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources if path.name != "errors.py")
    families = {code.partition(".")[0] for code in errors.CATALOGUE}
    raised = set(re.findall(rf'"((?:{"|".join(families)})\.[a-z_]+)"', text))
    assert raised == set(errors.CATALOGUE)


def test_dead_ids_are_not_returned_by_gc_get_objects() -> None:
    # In a process of its own, as one that died twice ends in a crash of the interpreter.
    code = (
        "import gc\n"
        "from mintage import locality, sno\n"
        "for scheme in (sno, locality):\n"
        "    texts = [str(scheme.new()) for _ in range(1000)]\n"
        "    for _ in range(5):\n"
        "        sum(isinstance(each, scheme.ID) for each in gc.get_objects())\n"
        "        ids = [scheme.ID.parse(text) for text in texts]\n"
        "        assert [str(each) for each in ids] == texts\n"
        "        assert len({id(each) for each in ids}) == 1000\n"
        "        del ids\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
