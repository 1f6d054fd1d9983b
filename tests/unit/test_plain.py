"""The checks of the project's prose: each rule finds its fault and passes a good example. Covers ``checks``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checks import map as test_map
from checks import plain
from checks.plain import File

if TYPE_CHECKING:
    from pathlib import Path


def messages(rule: object, path: str, text: str) -> list[str]:
    assert callable(rule)
    return [str(fault) for fault in rule(File(path, text))]


@pytest.mark.parametrize("word", ["What", "Whether", "How", "Who", "Who" + "ever"])
def test_docstring_that_begins_with_a_question_word_is_refused(word: str) -> None:
    text = f'def f():\n    """{word} is said."""\n'
    [fault] = messages(plain.docstrings, "src/mintage/a.py", text)
    assert fault.startswith(f'src/mintage/a.py:2: the docstring begins with "{word}"')


@pytest.mark.parametrize(
    "text",
    ['"""What a module has."""', 'class A:\n    """How many."""', 'a = 1\n"""Whether it is."""', '"""\nWho asks.\n"""'],
)
def test_docstrings_of_modules_classes_and_attributes_are_read(text: str) -> None:
    assert len(messages(plain.docstrings, "src/a.pyi", text)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/a.py", '"""Return the whole."""\na = "What is a value?"\n'),
        ("src/a.py", '"""Whole numbers of a column."""\n'),
        ("examples/a.py", '"""What an example has."""\n'),
        ("src/a.txt", '"""What a text has."""\n'),
    ],
)
def test_docstring_that_begins_otherwise_passes(path: str, text: str) -> None:
    assert messages(plain.docstrings, path, text) == []


@pytest.mark.parametrize("marker", ["///", "//!"])
def test_rust_doc_comment_that_begins_with_a_question_is_refused(marker: str) -> None:
    text = f"\n    {marker} Whether it is.\n    {marker} What follows is no first line.\n"
    [fault] = messages(plain.rust_docs, "crates/core/src/a.rs", text)
    assert fault.startswith('crates/core/src/a.rs:2: the docstring begins with "Whether"')


def test_rust_doc_comment_that_begins_with_a_verb_passes() -> None:
    text = "//! Reads IDs.\n//! What they are is in `id`.\n\n/// Returns the ID.\n// What this is not: a doc comment.\n"
    assert messages(plain.rust_docs, "crates/core/src/a.rs", text) == []


def test_sentence_without_an_actor_is_refused() -> None:
    word = "Who" + "ever"
    [fault] = messages(plain.actors, "docs/a.md", f"# A\n\n{word} asks first is served first.\n")
    assert fault.startswith(f'docs/a.md:3: "{word}" names nobody')


def test_sentence_with_an_actor_passes() -> None:
    assert messages(plain.actors, "docs/a.md", "The client that asks first is served first.\n") == []


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_name_of_a_test_has_at_most_70_characters(keyword: str) -> None:
    longest = "test_" + "a" * 65
    assert messages(plain.test_names, "tests/a.py", f"{keyword} {longest}(): ...") == []
    [fault] = messages(plain.test_names, "tests/a.py", f"\n{keyword} {longest}a(): ...")
    assert fault.startswith(f"tests/a.py:2: {longest}a has 71 characters; at most 70 are allowed")


@pytest.mark.parametrize("heading", ["# What is this?", "## It is done.", "### " + "a" * 71])
def test_heading_that_is_a_sentence_or_too_long_is_refused(heading: str) -> None:
    [fault] = messages(plain.headings, "docs/a.md", f"text\n\n{heading}\n")
    assert fault.startswith("docs/a.md:3: the heading ")


@pytest.mark.parametrize(
    "text",
    [
        "# Configure TLS\n",
        "## " + "a" * 70 + "\n",
        "# [Configure](https://example.com/" + "a" * 70 + ")\n",
        "```console\n# groupadd mintage.\n```\n# A\n",
        "````\n```\n# Is this code?\n```\n````\n",
        "# Schemes ##\n",
        "no # heading.\n",
    ],
)
def test_heading_that_is_a_noun_phrase_or_a_task_passes(text: str) -> None:
    assert messages(plain.headings, "docs/a.md", text) == []


def test_test_file_without_a_docstring_is_refused() -> None:
    assert len(messages(plain.summaries, "tests/unit/test_a.py", "import os\n")) == 1
    assert messages(plain.summaries, "tests/unit/test_a.py", '"""The clock."""\n') == []
    assert messages(plain.summaries, "tests/unit/a.py", "import os\n") == []


def test_faults_of_all_rules_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [File("docs/a.md", "# Why?\n"), File("src/a.py", '"""How it works."""\n')]
    monkeypatch.setattr(plain, "tracked", lambda: files)
    assert plain.main() == 1
    assert [line.rpartition(": ")[0] for line in capsys.readouterr().out.splitlines()] == ["docs/a.md:1", "src/a.py:1"]
    monkeypatch.setattr(plain, "tracked", lambda: [File("docs/a.md", "# A reason\n")])
    assert plain.main() == 0


def test_map_has_a_line_for_each_test_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert test_map.main(["test_plain"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.split(maxsplit=1) == [
        "tests/unit/test_plain.py",
        "The checks of the project's prose: each rule finds its fault and passes a good example. Covers ``checks``.",
    ]
    assert test_map.main(["no such test"]) == 1


def test_map_reads_the_tests_of_crates_too() -> None:
    assert any(line.startswith("crates/core/tests/loom.rs ") for line in test_map.lines("loom"))
