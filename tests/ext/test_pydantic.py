"""Tests of Pydantic models: any form in, objects in Python, text in JSON, and a schema that equals the parser."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Annotated, Any
from uuid import UUID

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from mintage import sno, snowflake, typeid, ulid
from mintage.errors import ArgumentError, ConfigError, FieldError, MintError
from mintage.ext.pydantic import CUID, CUID2, NanoID, NullForZero, Snowflake, Str, TextID, TypeID
from mintage.formats.annotations import TypeIDs
from mintage.formats.kinds import KINDS, Kind, snowflakes
from tests.ext.samples import FORMS, Form, each, minted

NAMED = {"nanoid": NanoID, "cuid": CUID, "cuid2": CUID2, "snowflake": Snowflake}


def annotation(form: Form) -> Any:
    """Return the annotation of a field."""
    if isinstance(form, TypeIDs):
        return typeid.ID if form.prefix is None else Annotated[typeid.ID, TypeID(form.prefix)]
    if form.layout is not None:
        return Annotated[int, Str(form.layout)]
    return NAMED.get(form.name, form.python)


def model(form: Form) -> type[BaseModel]:
    """Return a model with an ID, an optional one, a list, and a dict with IDs as keys."""
    of = annotation(form)
    return create_model(
        "Order",
        id=(of, ...),
        other=(of | None, None),
        several=(list[of], []),  # type: ignore[valid-type]
        by=(dict[of, int], {}),  # type: ignore[valid-type]
    )


@each
def test_id_is_an_object_in_python_and_text_in_json(form: Form) -> None:
    one, other = minted(form), minted(form)
    order: Any = model(form)(id=one, other=None, several=[one, other], by={other: 1})
    assert order.id is one or order.id == one
    assert isinstance(order.id, form.python)
    assert order.model_dump() == {"id": one, "other": None, "several": [one, other], "by": {other: 1}}
    text, another = str(one), str(other)
    written = {"id": text, "other": None, "several": [text, another], "by": {another: 1}}
    assert order.model_dump(mode="json") == written
    assert json.loads(order.model_dump_json()) == written
    assert model(form).model_validate_json(order.model_dump_json()).model_dump() == order.model_dump()
    assert pickle.loads(pickle.dumps(order.id)) == one


@each
def test_python_accepts_every_form_of_the_id(form: Form) -> None:
    one, adapter = minted(form), TypeAdapter(annotation(form))
    given: list[Any] = [one, str(one)]
    if not isinstance(form, TypeIDs) and form.size and form.layout is None:
        given += [bytes(one), bytearray(bytes(one))]
        if hasattr(one, "as_uuid"):
            given.append(one.as_uuid())
    if isinstance(form, TypeIDs) and form.prefix is not None:
        given += [bytes(one), one.as_uuid()]
    for value in given:
        assert adapter.validate_python(value) == one
        assert type(adapter.validate_python(value)) is form.python


@each
def test_json_accepts_only_text_and_integers_of_layouts(form: Form) -> None:
    one, adapter = minted(form), TypeAdapter(annotation(form))
    assert adapter.validate_json(json.dumps(str(one))) == one
    for wrong in ("true", "1.0", "null", "[]", "{}", "-1", str(1 << 200)):
        with pytest.raises(ValidationError):
            adapter.validate_json(wrong)
    if form.python is int:
        exact = min(one, 2**53 - 1)
        assert adapter.validate_json(str(exact)) == exact
    else:
        with pytest.raises(ValidationError) as caught:
            adapter.validate_json("1")
        assert caught.value.errors()[0]["type"] == "argument.type"


WRONG = [
    None,
    True,
    False,
    1.5,
    float("nan"),
    "",
    "no id",
    "\0" * 16,
    "ü" * 16,
    b"",
    object(),
    [],
    {},
    "9" * 5000,
    -1,
    1 << 200,
]


@each
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:12])
def test_error_has_the_code_and_message_of_mintage(form: Form, wrong: object) -> None:
    with pytest.raises(MintError) as own:
        form.read(wrong)
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(annotation(form)).validate_python(wrong)
    (error,) = caught.value.errors()
    assert error["type"] == own.value.code
    assert error["msg"] == str(own.value)


def test_braces_in_input_are_not_a_template() -> None:
    for text in ("{reason}", "{code}{0}", "{{", "%s"):
        with pytest.raises(ValidationError) as caught:
            TypeAdapter(CUID).validate_python(text)
        assert caught.value.errors()[0]["msg"] == f"{text!r} is no cuid"


@each
def test_strict_model_accepts_objects_and_json_text(form: Form) -> None:
    strict = create_model("Strict", __config__=ConfigDict(strict=True), id=(annotation(form), ...))
    one = minted(form)
    assert strict(id=one).model_dump() == {"id": one}
    assert strict.model_validate_json(json.dumps({"id": str(one)})).model_dump() == {"id": one}
    if form.python not in (int, str):
        with pytest.raises(ValidationError):
            strict(id=str(one))


SIXTEEN = [kind for kind in KINDS.values() if kind.size == 16]


@pytest.mark.parametrize("kind", SIXTEEN, ids=lambda kind: kind.name)
def test_typeid_is_read_from_an_object_of_its_suffix(kind: Kind) -> None:
    """FastAPI reads a row of the ORM in this way, with a column of another class."""

    class User(BaseModel):
        model_config = ConfigDict(from_attributes=True)
        id: Annotated[typeid.ID, TypeID("user")]

    one: Any = kind.new()
    user = User.model_validate(SimpleNamespace(id=one))
    assert user.id == typeid.ID("user", one)
    assert json.loads(user.model_dump_json()) == {"id": str(user.id)}
    assert TypeAdapter(kind.python).validate_python(user.id) == one
    with pytest.raises(ValidationError):
        TypeAdapter(typeid.ID).validate_python(one)


@pytest.mark.parametrize("strict", [False, True])
def test_typeid_of_another_prefix_is_refused(strict: bool) -> None:
    adapter = TypeAdapter(Annotated[typeid.ID, TypeID("user")])
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python(typeid.new("order"), strict=strict)
    assert caught.value.errors()[0]["type"] == "parse.unknown"
    with pytest.raises(ValidationError):
        adapter.validate_python(sno.new())


def test_union_selects_the_matching_id() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(sno.ID | ulid.ID | str)
    for one in (sno.new(), ulid.new()):
        assert adapter.validate_python(one) is one
        assert adapter.validate_python(str(one)) == str(one)
    ids: TypeAdapter[Any] = TypeAdapter(sno.ID | ulid.ID)
    one = ulid.new()
    assert ids.validate_json(ids.dump_json(one)) == one


def test_ids_work_in_dataclasses() -> None:
    @dataclass
    class Order:
        id: sno.ID

    one = sno.new()
    assert TypeAdapter(Order).validate_python({"id": str(one)}) == Order(one)


# The schema.


@each
def test_schema_is_the_same_for_input_and_output(form: Form) -> None:
    adapter = TypeAdapter(annotation(form))
    schema = adapter.json_schema()
    assert schema == adapter.json_schema(mode="serialization") == form.json_schema
    jsonschema.Draft202012Validator.check_schema(schema)
    for one in (minted(form), form.read(form.example)):
        jsonschema.validate(str(one), schema)
    assert str(form.read(form.example)) == form.example
    assert schema["format"] == ("int64" if form.python is int else form.name)


@each
def test_schema_is_part_of_the_schema_of_a_model(form: Form) -> None:
    one = minted(form)
    schema = model(form).model_json_schema()
    assert schema["properties"]["id"] == {"title": "Id", **form.json_schema}
    jsonschema.validate({"id": str(one), "by": {str(one): 1}}, schema)


def test_pattern_of_sno_is_the_obvious_one() -> None:
    assert KINDS["sno"].pattern == "^[2-9a-x]{16}$"
    assert KINDS["xid"].pattern == "^[0-9a-v]{19}[0g]$"
    assert KINDS["nanoid"].pattern == "^[-0-9A-Z_a-z]{21}$"


def takes(form: Form, text: str) -> bool:
    try:
        form.read(text)
    except MintError:
        return False
    return True


@cache
def expression(form: Form) -> re.Pattern[str]:
    """Return a pattern as JSON Schema reads it: ``$`` is the end, which in Python is ``\\Z``."""
    return re.compile(form.pattern.removesuffix("$") + r"\Z")


lengths = cache(lambda form: form.lengths)


def matches(form: Form, text: str) -> bool:
    least, most = lengths(form)
    return least <= len(text) <= most and expression(form).search(text) is not None


@each
@given(data=st.data())
def test_parser_accepts_what_the_pattern_accepts(form: Form, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(expression(form)))
    assert matches(form, text)
    assert takes(form, text)


@each
@given(data=st.data())
def test_pattern_refuses_what_the_parser_refuses(form: Form, data: st.DataObject) -> None:
    # Near misses: an ID with a character or two changed, put in or left out, or in the other case.
    text = list(data.draw(st.just(form.example) | st.from_regex(expression(form))))
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(text)))
        put = data.draw(st.sampled_from(["", *"0123456789aAcCgGiIlLoOuUvVwWxXzZ-_{}\n ", "é", "ß", "\u0661", "\0"]))
        text[at : at + data.draw(st.integers(0, 1))] = put
    changed = "".join(text)
    changed = data.draw(st.sampled_from([changed, changed.upper(), changed.lower(), changed.swapcase()]))
    assert matches(form, changed) == takes(form, changed)


@each
def test_pattern_and_parser_agree_about_every_character(form: Form) -> None:
    largest = [str(form.max)] if form.layout else []
    for text in (form.example, *largest, "z" * form.lengths[1], "7" + "Z" * 25):
        for at in {0, 1, 8, 14, 19, len(text) - 1} & set(range(len(text))):
            for code in range(128):
                changed = text[:at] + chr(code) + text[at + 1 :]
                assert matches(form, changed) == takes(form, changed), changed


def test_pattern_includes_the_limit_of_odd_bases() -> None:
    largest = "aWgEPTl1tmebfsQzFP4bxwgy80V"
    ksuid = KINDS["ksuid"]
    assert matches(ksuid, largest)
    for at in range(27):
        above = largest[:at] + chr(ord(largest[at]) + 1) + largest[at + 1 :]
        assert not matches(ksuid, above)
        assert not takes(ksuid, above)


def test_pattern_includes_the_limit_of_a_layout() -> None:
    for layout in (snowflake.DEFAULT, snowflake.JS_SAFE, snowflake.SONYFLAKE, snowflake.Layout("time:1", epoch_ms=0)):
        kind = snowflakes(layout)
        for number in (0, kind.max - 1, kind.max, kind.max + 1, 10 ** len(str(kind.max)) - 1):
            assert matches(kind, str(number)) == takes(kind, str(number)) == (number <= kind.max)


# Snowflakes: an int in Python, text in JSON.


def test_fba_1014_orm_gets_an_int_and_javascript_text() -> None:
    class Order(BaseModel):
        id: Snowflake

    for sent in (454947766275222906, "454947766275222906"):
        order = Order.model_validate({"id": sent})
        assert type(order.id) is int
        assert type(order.model_dump()["id"]) is int
        assert order.model_dump_json() == '{"id":"454947766275222906"}'


def test_fba_1024_text_input_is_stored_as_an_integer() -> None:
    import sqlite3

    class Order(BaseModel):
        id: Snowflake

    order = Order.model_validate_json('{"id": "454947766275222906"}')
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    database.execute("INSERT INTO orders VALUES (:id)", order.model_dump())
    assert database.execute("SELECT id, typeof(id) FROM orders").fetchall() == [(454947766275222906, "integer")]
    # Its custom serializer did this: a driver refuses a str for a bigint.
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        range(order.model_dump(mode="json")["id"])
    range(order.model_dump()["id"])
    database.close()


def test_powercontext_91_and_piccolo_admin_55_large_integers_are_text() -> None:
    class Order(BaseModel):
        id: Snowflake

    for number in (2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1):
        written = json.loads(Order(id=number).model_dump_json(), parse_int=lambda digits: int(float(digits)))
        assert int(written["id"]) == number


@pytest.mark.parametrize("wrong", [True, False, 1.0, 454947766275222906.0, "1.0", " 1", "+1", "1_0", "١", "0x1", -1])
def test_snowflake_is_no_bool_and_no_float(wrong: object) -> None:
    for adapter in (TypeAdapter(Snowflake), TypeAdapter(Annotated[int, Str(snowflake.JS_SAFE)])):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)
        with pytest.raises(ValidationError):
            adapter.validate_json(json.dumps(wrong))


def test_layout_is_checked() -> None:
    adapter = TypeAdapter(Annotated[int, snowflake.Str(snowflake.JS_SAFE)])
    assert adapter.validate_python(2**53 - 1) == 2**53 - 1
    for wrong in (2**53, str(2**53)):
        with pytest.raises(ValidationError) as caught:
            adapter.validate_python(wrong)
        assert caught.value.errors()[0]["type"] == "field.range"


def test_str_annotation_accepts_a_value() -> None:
    assert Str() == Str(snowflake.DEFAULT) != Str(snowflake.JS_SAFE)
    assert hash(Str()) == hash(Str(snowflake.DEFAULT))
    assert pickle.loads(pickle.dumps(Str(snowflake.JS_SAFE))) == Str(snowflake.JS_SAFE)
    assert Str() != 1
    with pytest.raises(ArgumentError):
        Str("default")  # type: ignore[arg-type]


# What has no class of its own.


def test_another_prefix_is_refused() -> None:
    users = TypeAdapter(Annotated[typeid.ID, TypeID("user")])
    order = typeid.new("order")
    for wrong in (order, str(order)):
        with pytest.raises(ValidationError) as caught:
            users.validate_python(wrong)
        assert caught.value.errors()[0]["type"] == "parse.unknown"
    assert TypeAdapter(typeid.ID).validate_python(str(order)) == order


def test_annotation_tells_its_inner_type() -> None:
    assert repr(TypeID("user")) == "TypeID('user')"
    assert repr(TextID("cuid2")) == "TextID('cuid2')"
    with pytest.raises(ConfigError, match="nanoid, cuid or cuid2"):
        TextID("sno")
    with pytest.raises(FieldError):
        TypeID("User")


def test_mintage_imports_pydantic_only_on_request() -> None:
    code = (
        "import sys, mintage; from mintage import sno, snowflake, typeid; sno.ID.ZERO; snowflake.Str()\n"
        "assert 'pydantic' not in sys.modules and 'pydantic_core' not in sys.modules\n"
        "import pydantic; pydantic.TypeAdapter(sno.ID)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_hooks_without_pydantic_say_what_installs_it() -> None:
    code = (
        "import sys; sys.modules['pydantic_core'] = None\n"
        "from mintage import sno\n"
        "try: sno.ID.__get_pydantic_core_schema__(sno.ID, None)\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    assert "pydantic]'" in done.stdout


def test_python_ulid_42_pattern_is_as_strict_as_the_parser() -> None:
    # Its schema has [A-Z0-9]{26}; its parser, and ours, refuse U, and what is above 7 in front.
    form = FORMS["ulid"]
    for text in ("81ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAU", "ZZZZZZZZZZZZZZZZZZZZZZZZZZ"):
        assert not matches(form, text)
        assert not takes(form, text)
        assert re.search("[A-Z0-9]{26}", text)


def test_uuid_of_another_version_is_refused_with_its_own_code() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(sno.ID).validate_python(UUID(int=0))
    assert caught.value.errors()[0]["type"].startswith("parse.")


def test_a_zero_sno_id_can_be_null_in_json() -> None:
    adapter = TypeAdapter(Annotated[sno.ID, NullForZero()])
    one = sno.new()
    for value, text in ((sno.ID.ZERO, b"null"), (one, f'"{one}"'.encode())):
        assert adapter.dump_json(value) == text
        assert adapter.validate_json(text) == value
        assert adapter.validate_json(text, strict=True) == value
        assert adapter.validate_python(value, strict=True) == value
        assert adapter.dump_python(value) is value
    assert adapter.validate_python(None).is_zero
    for mode in ("validation", "serialization"):
        text_schema, null = adapter.json_schema(mode=mode)["anyOf"]
        assert (text_schema["format"], null) == ("sno", {"type": "null"})
    with pytest.raises(ValidationError):
        adapter.validate_json("7")


def test_a_zero_sno_id_is_text_without_the_annotation() -> None:
    adapter = TypeAdapter(sno.ID)
    assert adapter.dump_json(sno.ID.ZERO) == b'"2222222222222222"'
    with pytest.raises(ValidationError):
        adapter.validate_json("null")


@pytest.mark.parametrize(
    "of", [sno.ID, Snowflake, NanoID, Annotated[typeid.ID, TypeID("user")], Annotated[sno.ID, NullForZero()]]
)
def test_missing_id_is_null_in_json(of: Any) -> None:
    unset = create_model("Order", parent=(of, None))()
    assert unset.model_dump_json() == '{"parent":null}'
    assert unset.model_dump(mode="json") == {"parent": None}


def test_interrupt_of_a_serializer_is_no_missing_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mintage.ext.pydantic.serializer_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _ = sno.new().__pydantic_serializer__
    monkeypatch.setitem(sys.modules, "mintage.ext.pydantic", None)
    assert not hasattr(sno.new(), "__pydantic_serializer__")
