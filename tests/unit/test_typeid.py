"""Tests of TypeIDs: the cases of their specification, and any ID of 128 bits under a prefix."""

from __future__ import annotations

import copy
import gc
import pickle
import signal
import sys
import uuid
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mintage import cast, locality, sandflake, sno, typeid, ulid
from mintage import uuid as mintage_uuid
from mintage.errors import FieldError, GenerationError, ParseError
from tests.helpers.cases import each_case
from tests.helpers.outcomes import refusal
from tests.helpers.vectors import vectors

VECTORS = vectors("typeid")
PREFIXES = st.from_regex(r"([a-z]([a-z_]{0,61}[a-z])?)?", fullmatch=True)
TYPE_IDS = st.builds(typeid.ID, PREFIXES, st.binary(min_size=16, max_size=16))


@pytest.mark.parametrize("case", VECTORS["valid"], ids=lambda case: case["name"])
def test_valid_cases_of_the_specification_are_read_and_written(case: dict[str, str]) -> None:
    read = typeid.ID.parse(case["typeid"])
    assert (read.prefix, read.as_uuid()) == (case["prefix"], uuid.UUID(case["uuid"]))
    written = typeid.ID(case["prefix"], uuid.UUID(case["uuid"]))
    assert (str(written), written) == (case["typeid"], read)


@each_case("case", VECTORS["invalid"], ids=lambda case: case["name"])
def test_invalid_cases_of_the_specification_are_refused(case: dict[str, str]) -> None:
    error = refusal(typeid.ID.parse, case["typeid"])
    assert isinstance(error, ParseError)
    assert error.code in {"parse.length", "parse.character"}
    assert error.code == "parse.length" or 0 <= (error.position or 0) < len(case["typeid"])


def test_every_case_of_the_specification_is_tested() -> None:
    assert (len(VECTORS["valid"]), len(VECTORS["invalid"])) == (9, 21)


@pytest.mark.parametrize("prefix", ["User", "user1", "user-x", "_user", "user_", "_", "a" * 64, "é", "us er"])
def test_invalid_prefix_is_refused(prefix: str) -> None:
    for call in (lambda: typeid.ID(prefix, bytes(16)), lambda: typeid.Generator(prefix, ulid.Generator())):
        error = refusal(call)
        assert (type(error), error.code) == (FieldError, "field.format")


@pytest.mark.parametrize("scheme", [ulid, locality, sandflake, mintage_uuid], ids=lambda scheme: scheme.__name__)
def test_any_id_of_128_bits_is_read_back(scheme: Any) -> None:
    one = scheme.new()
    shown = str(typeid.ID("a_b", one))
    assert cast(typeid.ID.parse(shown, "a_b"), scheme.ID) == one


def test_id_of_another_size_is_refused() -> None:
    assert refusal(typeid.ID, "a", sno.new()).code == "parse.length"
    assert refusal(typeid.Generator("a", sno.Generator(1)).new).code == "parse.length"
    for wrong in (5, "text", None):
        assert refusal(typeid.ID, "a", wrong).code == "argument.type"
    assert refusal(typeid.ID, 5, bytes(16)).code == "argument.type"
    assert refusal(typeid.ID.parse, 5).code == "argument.type"
    assert refusal(typeid.Generator, "a", 5).code == "argument.type"


def test_requested_prefix_is_the_only_one_accepted() -> None:
    text = str(typeid.ID("user", bytes(16)))
    assert typeid.ID.parse(text, "user").prefix == "user"
    for other in ("order", "", "\ud800"):
        assert refusal(typeid.ID.parse, text, other).code == "parse.unknown"
    assert refusal(typeid.ID.parse, text, 5).code == "argument.type"


@given(st.lists(TYPE_IDS, min_size=2, max_size=6))
def test_typeids_sort_as_their_text_does(ids: list[typeid.ID]) -> None:
    assert [str(one) for one in sorted(ids)] == sorted(map(str, ids))


@given(TYPE_IDS)
def test_typeid_is_immutable_and_hashable(one: typeid.ID) -> None:
    for again in (typeid.ID.parse(str(one)), pickle.loads(pickle.dumps(one)), copy.deepcopy(one), eval(repr(one))):
        assert again == one
        assert hash(again) == hash(one)
    assert int(one) == int.from_bytes(bytes(one), "big") == one.as_uuid().int
    other: object = bytes(one)
    assert one != other
    assert one != typeid.ID("x" + one.prefix[:62], bytes(one)) or one.prefix == "x" + one.prefix[:62]
    with pytest.raises(AttributeError):
        one.prefix = "other"  # type: ignore[misc]


def test_default_suffix_is_a_uuid_of_version_7() -> None:
    one, other = typeid.new("user"), typeid.Generator("user").new()
    assert {one.as_uuid().version, other.as_uuid().version} == {7}
    assert one != other
    assert cast(one, mintage_uuid.ID).version == 7
    assert refusal(typeid.new, "User").code == "field.format"


def test_generator_adds_its_prefix_and_closes_the_inner_one() -> None:
    with typeid.Generator("user", ulid.Generator()) as generator:
        ids = [generator.new(), next(generator), *generator.batch(5)]
        assert sorted(set(ids)) == ids
        assert {one.prefix for one in ids} == {generator.prefix} == {"user"}
        assert refusal(generator.batch, -1).code == "field.range"
    assert isinstance(refusal(generator.new), GenerationError)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_signal_ends_a_huge_batch() -> None:
    blocks: list[int] = []

    def interrupt(*_: object) -> NoReturn:
        blocks.append(sys.getallocatedblocks())
        raise KeyboardInterrupt

    generator, usual = typeid.Generator("user"), signal.signal(signal.SIGPROF, interrupt)
    before = sys.getallocatedblocks()
    gc.disable()  # Hypothesis has a callback in Python there, which would get the exception
    try:
        signal.setitimer(signal.ITIMER_PROF, 0.01)
        with pytest.raises(KeyboardInterrupt):
            generator.batch(2_000_000)
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, usual)
    assert blocks[0] - before < 1_000_000
