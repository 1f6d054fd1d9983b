"""Tests of the OpenAPI document: valid, complete, and equal to the reference."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mintage.errors import CATALOGUE
from mintage.server.config.settings import Settings
from mintage.server.http.app import ROUTES
from mintage.server.http.openapi import COMMON, codes_of, document
from mintage.server.http.v1 import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mintage.server.http.v1.operation import Operation

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/http.md").read_text(encoding="utf-8")


def described(*options: str) -> dict[str, Any]:
    return document(Settings.load(options))


def each(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every operation of it, by method and path."""
    for path, item in spec["paths"].items():
        for method, facts in item.items():
            yield f"{method.upper()} {path}", facts


# --- the document -------------------------------------------------------------------------------------------------


def test_document_is_valid_openapi() -> None:
    schemathesis = pytest.importorskip("schemathesis")
    # It raises.
    schemathesis.openapi.from_dict(described()).validate()


def test_document_has_no_dangling_references() -> None:
    text = json.dumps(described(), allow_nan=False)
    spec = json.loads(text)
    for reference in set(re.findall(r'"\$ref": "([^"]+)"', text)):
        found = spec
        for name in reference.removeprefix("#/").split("/"):
            found = found[name]
        assert found


def test_every_route_is_described_and_every_description_routed() -> None:
    # HEAD is GET without a body, and balancers ask the probes by OPTIONS.
    routed = {f"{method} {route.path}" for route in ROUTES for method in (route.methods or set()) - {"HEAD", "OPTIONS"}}
    assert {name for name, _ in each(described())} == routed


def test_every_operation_has_a_unique_name_and_a_description() -> None:
    names = [facts["operationId"] for _, facts in each(described())]
    assert len(set(names)) == len(names)
    tags = {tag["name"] for tag in described()["tags"]}
    for name, facts in each(described()):
        assert facts["summary"], name
        assert set(facts["tags"]) <= tags, name
        assert all(answer["description"] for answer in facts["responses"].values()), name


def test_limits_equal_those_of_the_settings() -> None:
    spec = described("--max-count", "7", "--max-reserve", "9")
    paths = spec["paths"]
    assert maximum(paths["/v1/sequences/{namespace}:next"]["post"]) == 7
    assert maximum(paths["/v1/ids/{scheme}"]["post"]) == 7
    assert maximum(paths["/v1/sequences/{namespace}:reserve"]["post"]) == 9


def maximum(facts: dict[str, Any]) -> int:
    return next(each["schema"]["maximum"] for each in facts["parameters"] if each["name"] == "count")  # type: ignore[no-any-return]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_every_error_of_an_operation_is_in_the_catalogue(operation: Operation) -> None:
    facts = dict(each(described()))[f"{operation.method} {operation.path}"]
    for code in codes_of(operation):
        answer = facts["responses"][str(CATALOGUE[code].http)]
        assert f"`{code}`" in answer["description"]
        assert code in answer["content"]["application/problem+json"]["examples"]


# --- the reference ------------------------------------------------------------------------------------------------

SECTIONS = dict(re.findall(r"^### `([A-Z]+ \S+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_reference_has_exactly_the_operations() -> None:
    assert list(SECTIONS) == [name for name, _ in each(described())]


@pytest.mark.parametrize(("name", "facts"), list(each(described())), ids=[name for name, _ in each(described())])
def test_reference_has_every_parameter_right_and_error(name: str, facts: dict[str, Any]) -> None:
    section = SECTIONS[name]
    found = [
        (parameter, place)
        for names, place in re.findall(r"^\| (`.+?`) \| (path|query|header|body) \|", section, re.MULTILINE)
        for parameter in re.findall(r"`([^`]+)`", names)
    ]
    expected = [(parameter["name"], parameter["in"]) for parameter in facts.get("parameters", [])]
    if "requestBody" in facts:
        schema = facts["requestBody"]["content"]["application/json"]["schema"]
        body = described()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        expected += [(member, "body") for member in body["properties"]]
    assert sorted(found) == sorted(expected)
    right = re.search(r"Right: `(\w+)`", facts.get("description", ""))
    said = re.search(r"^Right: `(\w+)`", section, re.MULTILINE)
    assert (said and said[1]) == (right and right[1])
    own = next((each.codes for each in OPERATIONS if f"{each.method} {each.path}" == name), ())
    errors = re.search(r"Errors: (.*?)\.$", section, re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r"`([^`]+)`", errors[1]) if errors else []) == sorted(own)


def test_reference_has_the_errors_of_all_operations() -> None:
    rows = re.findall(r"^\| `([a-z.]+)` \| (\d+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(code, str(row.http), row.meaning) for code, row in CATALOGUE.items() if code in COMMON]


def test_reference_has_every_code_of_the_envelope() -> None:
    codes = described()["components"]["schemas"]["Envelope"]["properties"]["code"]["enum"]
    table = SECTIONS["POST /alloc"].partition("| `code` |")[2]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == codes
