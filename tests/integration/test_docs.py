"""Tests of the documentation: every snippet of README.md, docs/ and the docstrings runs here.

- ``python`` blocks run from top to bottom of a page, in one namespace; blocks of ``>>>`` are doctests.
- ``console`` blocks run if every command in them is ``mintage``; IDs and times may differ, the shape may not. A
  command without shown output only has to succeed.
- A block below ``% skip: next`` is not run; below ``% skip: next if(not installed("numpy"))`` it needs numpy.
"""

from __future__ import annotations

import doctest
import gc
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest import SkipTest

import pytest
from sybil import Example, Sybil
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser, SkipParser

import mintage
from benchmarks import format_table
from mintage.formats.catalogue import FORMATS
from mintage.lease import request
from mintage.store import open_store
from tests.helpers.optional import is_missing, module_or_skip
from tests.helpers.output import first_snippet, shape

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "_build" not in page.parts]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(mintage.__path__, "mintage.")
    if module.name != "mintage.__main__"  # to import it is to run the command
)

OPTIONS = doctest.ELLIPSIS

# Since Python 3.13, which says so when the collector comes to them: snippets leave databases open, as scripts do.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")

BASH = shutil.which("bash")


@pytest.fixture(scope="module", autouse=True)
def snippets_leave_nothing_to_collect() -> Iterator[None]:
    yield
    gc.collect()


def run_console(example: Example) -> str | None:
    sessions = re.split(r"(?m)^\$ ", example.parsed)[1:]
    commands = [session.partition("\n")[0] for session in sessions]
    if BASH is None or not all(command.startswith("mintage ") for command in commands):
        return None
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80", "PYTHON": sys.executable}
    for command, session in zip(commands, sessions, strict=True):
        script = f'mintage() {{ "$PYTHON" -m mintage "$@"; }}; {command}'
        done = subprocess.run(
            [BASH, "-c", script], check=False, capture_output=True, text=True, env=environment, timeout=60
        )
        expected, actual = shape(session.partition("\n")[2]), shape(done.stdout + done.stderr)
        if not expected and done.returncode == 0:
            continue
        if not doctest.OutputChecker().check_output(expected, actual, OPTIONS):
            return f"$ {command}\nexpected:\n{expected}\ngot:\n{actual}"
    return None


DOCUMENTS = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=OPTIONS),
        CodeBlockParser(language="console", evaluator=run_console),
        SkipParser(),
    ],
    path=str(ROOT),
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Read without a fall-back, as it should be.
    monkeypatch.setenv("DATABASE_URL", "sqlite:///database.db")
    monkeypatch.setattr(request, "_open", cache(open_store))  # a relative path is of the page's own directory
    if find_spec("sqlalchemy"):  # a page's columns are all that its program has
        monkeypatch.setattr("mintage.ext.sqlalchemy._stored", set())
    # Where snippets say that they are; some frameworks look there.
    monkeypatch.setitem(sys.modules, "__test__", ModuleType("__test__"))
    document = DOCUMENTS.parse(page)
    document.namespace["installed"] = lambda name: find_spec(name) is not None
    store = os.environ.get("MINTAGE_STORE")
    for example in document.examples():
        with suppress(SkipTest):  # only of the example: a page without its numpy is a page nevertheless
            example.evaluate()
    # A store that a page chose would be that of all later tests.
    assert os.environ.get("MINTAGE_STORE") == store


def test_readme_shows_the_output_of_its_first_snippet(tmp_path: Path) -> None:
    snippet, output = first_snippet()
    done = subprocess.run(
        [sys.executable, "-c", snippet], check=False, capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert shape(done.stdout) == shape(output)


class DocstringRunner(doctest.DocTestRunner):
    """Skips the rest of a docstring whose example needs a package that is not installed."""

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        """Report an error of an example, unless it is that a package is missing."""
        error = exc_info[1]
        if is_missing(error) or getattr(error, "code", "") == "config.driver":
            raise SkipTest(str(error))
        super().report_unexpected_exception(out, test, example, exc_info)


IN_A_PROJECT = """
import doctest, importlib, sys

import django
from django.apps import apps
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=[
        "django.contrib.contenttypes", "django.contrib.auth", "rest_framework", "mintage.ext.django", "shop"
    ],
    USE_TZ=True,
)
django.setup()
module = importlib.import_module(sys.argv[1])
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
for snippet in doctest.DocTestFinder().find(module, module.__name__, extraglobs={"__name__": "shop.models"}):
    runner.run(snippet)
    apps.all_models["shop"].clear()  # the next one declares its own
    apps.clear_cache()
sys.exit(bool(runner.summarize().failed))
"""
SHOP = """
from django.apps import AppConfig


class ShopConfig(AppConfig):
    default_auto_field = "django.db.models.BigAutoField"
    name = "shop"
"""


def in_a_project(name: str, directory: Path) -> None:
    """Run the snippets of a module in a process of its own: Django is configured once a process.

    The project has the app ``shop``, as ``startapp`` writes it, and the snippets are in its ``models.py``.
    """
    (directory / "shop").mkdir()
    (directory / "shop" / "__init__.py").touch()
    (directory / "shop" / "apps.py").write_text(SHOP, encoding="utf-8")
    path = os.pathsep.join([str(directory), str(Path(mintage.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", IN_A_PROJECT, name],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.parametrize("name", ["mintage", *MODULES])
def test_snippets_of_a_docstring_run(name: str, tmp_path: Path) -> None:
    module = module_or_skip(name)
    if name.startswith("mintage.ext.django"):
        pytest.importorskip("rest_framework")
        in_a_project(name, tmp_path)
        return
    runner = DocstringRunner(optionflags=OPTIONS)
    for docstring in doctest.DocTestFinder().find(module):
        with suppress(SkipTest):
            runner.run(docstring)
    assert runner.summarize(verbose=False).failed == 0


EXAMPLES = [
    file
    for folder in ("docs/how-to", "docs/tutorial.md", "docs/index.md", "README.md", "examples", "deploy")
    for file in ([ROOT / folder] if folder.endswith(".md") else sorted((ROOT / folder).rglob("*")))
    if file.is_file() and file.suffix in {".md", ".py", ".sh", ".yaml", ".toml", ".ini", ".service", ""}
]
FALL_BACK = re.compile(
    r"""environ\.get\(|getenv\(|environ\.setdefault\((?!"DJANGO_SETTINGS_MODULE")|\$\{\w+:?[-=]|"memory:[^"`]*"|=memory:"""
)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.relative_to(ROOT)))
def test_examples_do_not_fall_back_when_a_setting_is_missing(file: Path) -> None:
    # A worker with a store of its own mints the IDs of its siblings.
    assert FALL_BACK.findall(file.read_text(encoding="utf-8")) == []


def test_pages_have_runnable_snippets() -> None:
    found = {page: len(list(DOCUMENTS.parse(page).examples())) for page in PAGES}
    assert found[ROOT / "docs" / "tutorial.md"] > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_rows_of_a_table_have_as_many_cells_as_its_head(page: Path) -> None:
    # A blank line ends a table, and what follows it is shown as it was typed.
    text = re.sub(r"(?ms)^ *(`{3,}|:{3,}).*?^ *\1$", "", page.read_text(encoding="utf-8"))
    for block in re.findall(r"(?m)(?:^ *\|.*\n?)+", text):
        rows: list[str] = block.splitlines()
        assert re.fullmatch(r" *\|( *:?-+:? *\|)+ *", rows[min(1, len(rows) - 1)]), block
        # A bar within code or behind a backslash parts no cells.
        widths = {len(re.sub(r"`[^`]*`|\\\|", "", row).strip().strip("|").split("|")) for row in rows}
        assert len(widths) == 1, rows[0]


def test_page_of_stores_names_each_table_of_mysql_for_its_rights() -> None:
    statements = (ROOT / "src/mintage/store/sql/dialects/mysql").glob("*.sql")
    made = {
        name for each in statements for name in re.findall(r"CREATE TABLE.* (mintage_\w+) ", each.read_text("utf-8"))
    }
    text = (ROOT / "docs/how-to/stores.md").read_text("utf-8")
    listed = text.partition("grant the rights table by table")[2].partition(" the view")[0]
    assert set(re.findall(r"`(mintage_\w+)`", listed)) == made


@pytest.mark.parametrize("page", ["explanation/traps.md", "how-to/frames.md"])
def test_each_cited_issue_is_in_the_name_of_a_test(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py")]
    names = " ".join(name for source in sources for name in re.findall(r"(?m)^def (test_\w+)", source))
    reported = re.findall(r"\[([\w/-]+)#(\d+)\]\(https://github\.com/", text)
    assert reported
    for project, number in reported:
        name = re.sub(r"\W", "_", project.lower())
        assert re.search(rf"_{name}(_and|_\d+)*_{number}_", names), f"{project}#{number}"


@pytest.mark.parametrize("scheme", dict.fromkeys(each.scheme for each in format_table.formats()))
def test_generators_that_lease_by_default_need_a_store(scheme: str, tmp_path: Path) -> None:
    module = importlib.import_module(f"mintage.{scheme}")
    code = f"import mintage.{scheme}; mintage.{scheme}.{'Generator().new' if hasattr(module, 'Generator') else 'new'}()"
    environment = {**os.environ, "MINTAGE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)
    assert bool(list(tmp_path.iterdir())) == (scheme in format_table.LEASING)


def test_ids_with_a_leading_ordered_time_sort_by_time() -> None:
    sorting = {each.name: format_table.sorts_by_time(each) for each in FORMATS}
    assert [name for name, sorts in sorting.items() if not sorts] == [
        "locality", "uuid v1", "uuid v2", "uuid v3", "uuid v4", "uuid v5", "uuid v8", "uuid nil", "uuid max",
        "randflake",
    ]  # fmt: skip
