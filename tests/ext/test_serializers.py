"""Tests of serializers other than Pydantic (json, orjson, msgspec, cattrs) and of Click and Typer."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, NewType
from uuid import UUID

import attrs
import bson
import cattrs
import click
import jsonschema  # type: ignore[import-untyped]
import msgspec
import numpy as np
import orjson
import pytest
import strawberry
import typer
from bson import ObjectId
from bson.codec_options import CodecOptions
from click.testing import CliRunner
from fastapi.encoders import jsonable_encoder
from kombu.utils import json as kombu_json
from pydantic import BaseModel, TypeAdapter, ValidationError
from sqlalchemy.dialects import sqlite
from strawberry.schema.config import StrawberryConfig
from typer.testing import CliRunner as TyperRunner

from mintage import derive, inspect, ksuid, objectid, sno, snowflake, typeid, ulid
from mintage.errors import ArgumentError, MintError, ParseError
from mintage.ext import msgspec as wire
from mintage.ext.cattrs import register
from mintage.ext.click import IDType
from mintage.ext.fastapi import register as register_with_fastapi
from mintage.ext.json import default
from mintage.ext.kinds import json_reader
from mintage.ext.kombu import register as register_with_kombu
from mintage.ext.pymongo import type_registry
from mintage.ext.sqlalchemy import SnowflakeType
from mintage.formats.annotations import TextID, TypeID, TypeIDs, find_kind
from mintage.formats.cast import cast
from mintage.formats.kinds import KINDS, Kind
from mintage.formats.storage import WRITERS as WRITERS_OF_STORAGE
from mintage.formats.storage import storage_forms
from mintage.opaque import Opaque
from mintage.text import decode, encode
from tests.ext.samples import FORMS, Form, each, minted

CLASSES = {
    name: form
    for name, form in FORMS.items()
    if form.python not in (int, str) and getattr(form, "prefix", None) is None
}
each_class = pytest.mark.parametrize("form", CLASSES.values(), ids=list(CLASSES))
WRITERS: list[Any] = [json.dumps, orjson.dumps]
WRONG = ["", "no id", "\0" * 16, "ü" * 16, "9" * 5000]


class Odd:
    """A type that no hook of ours knows."""


def annotation(form: Form) -> Any:
    if isinstance(form, TypeIDs):
        return typeid.ID if form.prefix is None else Annotated[typeid.ID, TypeID(form.prefix)]
    if form.layout is not None:
        return Annotated[int, snowflake.Str(form.layout)]
    return Annotated[str, TextID(form.name)] if form.is_text else form.python


@each
def test_decoder_is_found_by_common_annotations(form: Form) -> None:
    assert find_kind(annotation(form)) == form
    assert find_kind(object) is find_kind(None) is find_kind("sno") is find_kind(Annotated[int, "x"]) is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.size == 16], ids=lambda kind: kind.name)
def test_converter_accepts_a_typeid_for_its_suffix(kind: Kind) -> None:
    one: Any = kind.new()
    user = typeid.ID("user", one)
    converter = register(cattrs.Converter())
    of: Any = Annotated[typeid.ID, TypeID("user")]
    assert converter.structure(one, of) == converter.structure(str(user), of) == converter.structure(user, of) == user
    assert converter.structure(user, kind.python) == one
    assert msgspec.convert({"id": user}, struct_of(kind.python), dec_hook=wire.dec_hook).id == one
    for wrong, given in ((of, typeid.new("order")), (of, sno.new()), (of, 5), (of, bytes(one)), (sno.ID, user)):
        with pytest.raises(MintError):
            converter.structure(given, wrong)


def test_msgspec_does_not_pass_the_prefix_to_hooks() -> None:
    """It strips unknown parts of an ``Annotated``, so the prefix must be checked in ``__post_init__``."""
    of = struct_of(Annotated[typeid.ID, TypeID("user")])
    other = typeid.new("order")
    assert msgspec.convert({"id": str(other)}, of, dec_hook=wire.dec_hook).id == other
    with pytest.raises(msgspec.ValidationError, match=r"typeid must be typeid.ID or text, not uuid.ID"):
        msgspec.convert({"id": KINDS["uuid"].new()}, of, dec_hook=wire.dec_hook)


def struct_of(of: Any) -> Any:
    return msgspec.defstruct("Row", [("id", of)])


# json and orjson.


@each_class
def test_json_writes_an_id_as_its_text(form: Form) -> None:
    one = minted(form)
    expected = {"id": str(one), "several": [str(one)]}
    for write in WRITERS:
        assert json.loads(write({"id": one, "several": [one]}, default=default)) == expected


def test_json_uses_the_default_of_the_user_for_other_types() -> None:
    both = partial(default, otherwise=lambda value: type(value).__name__)
    assert json.loads(json.dumps([sno.ID.ZERO, Odd()], default=both)) == ["2222222222222222", "Odd"]
    for write in WRITERS:
        with pytest.raises(TypeError):
            write([Odd()], default=default)


def test_orjson_refuses_unsafe_integers_on_request() -> None:
    number = 454947766275222906
    assert orjson.dumps([number]) == b"[454947766275222906]"
    with pytest.raises(TypeError, match="53-bit"):
        orjson.dumps([number], option=orjson.OPT_STRICT_INTEGER)
    assert orjson.dumps([2**53 - 1], option=orjson.OPT_STRICT_INTEGER) == b"[9007199254740991]"


# msgspec.


def struct(of: Any) -> Any:
    return msgspec.defstruct("Order", [("id", of), ("several", list[of]), ("by", dict[of, int])])


@each_class
@pytest.mark.parametrize("codec", [msgspec.json, msgspec.msgpack], ids=["json", "msgpack"])
def test_msgspec_528_hooks_convert_objects_and_text(form: Form, codec: Any) -> None:
    one = minted(form)
    order = struct(form.python)(one, [one], {one: 1})
    written = codec.encode(order, enc_hook=wire.enc_hook)
    assert codec.decode(written) == {"id": str(one), "several": [str(one)], "by": {str(one): 1}}
    assert codec.decode(written, type=type(order), dec_hook=wire.dec_hook) == order
    assert msgspec.convert({"id": one, "several": [], "by": {}}, type(order), dec_hook=wire.dec_hook).id is one
    # Without them, which is the trap: msgspec knows none of our classes.
    with pytest.raises(TypeError):
        codec.encode(order)


@each_class
@pytest.mark.parametrize("wrong", [*WRONG, 1, True, None, [], {}], ids=lambda wrong: repr(wrong)[:12])
def test_msgspec_reports_where_and_why_a_text_is_invalid(form: Form, wrong: Any) -> None:
    of = msgspec.defstruct("Order", [("id", form.python)])
    with pytest.raises(msgspec.ValidationError, match=r"\$\.id") as caught:
        msgspec.json.decode(json.dumps({"id": wrong}), type=of, dec_hook=wire.dec_hook)
    assert isinstance(caught.value.__cause__, MintError)


class Safe(wire.Snowflake):
    """A snowflake that JavaScript represents exactly."""

    layout = snowflake.JS_SAFE


@pytest.mark.parametrize("of", [wire.Snowflake, Safe])
def test_snowflake_is_an_int_in_python_and_text_in_json_of_msgspec(of: type[wire.Snowflake]) -> None:
    number = (1 << of.layout.bits) - 1
    order = struct(of)(of(number), [of(number)], {of(number): 1})
    written = msgspec.json.encode(order, enc_hook=wire.enc_hook)
    assert json.loads(written) == {"id": str(number), "several": [str(number)], "by": {str(number): 1}}
    read: Any = msgspec.json.decode(written, type=type(order), dec_hook=wire.dec_hook)
    assert read == order
    assert type(read.id) is of
    assert read.id + 0 == number
    exact = min(number, 2**53 - 1)
    assert msgspec.json.decode(str(exact), type=of, dec_hook=wire.dec_hook) == exact
    for wrong in (str(number + 1), f'"{number + 1}"', "true", "1.0", "null", '"1.0"', "-1"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(wrong, type=of, dec_hook=wire.dec_hook)


@pytest.mark.parametrize("name", ["nanoid", "cuid", "cuid2"])
def test_msgspec_checks_text_ids_by_itself(name: str) -> None:
    of = {"nanoid": wire.NanoID, "cuid": wire.CUID, "cuid2": wire.CUID2}[name]
    one = FORMS[name].example
    assert msgspec.json.decode(f'"{one}"', type=of) == one
    for wrong in (*WRONG, one + "\n", one[:-1], one[:-1] + "\n", one + "aaa", "!" + one[1:]):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(json.dumps(wrong), type=of)
    form = FORMS[name]
    assert msgspec.json.schema(of) == {**form.json_schema, "pattern": form.pattern + r"(?!\n)"}


@each_class
def test_msgspec_schema_matches_the_parser(form: Form) -> None:
    one, of = minted(form), struct(form.python)
    schema = msgspec.json.schema(of, schema_hook=wire.schema_hook)
    assert schema["$defs"]["Order"]["properties"]["id"] == form.json_schema
    jsonschema.validate({"id": str(one), "several": [], "by": {}}, schema)
    assert wire.schema_hook(Safe) == FORMS["js_safe"].json_schema


def test_msgspec_707_hooks_call_the_hooks_of_the_user() -> None:
    def read(of: type, value: Any) -> Any:
        return of()

    assert msgspec.json.encode([Odd()], enc_hook=partial(wire.enc_hook, otherwise=lambda value: "odd")) == b'["odd"]'
    assert isinstance(msgspec.json.decode("1", type=Odd, dec_hook=partial(wire.dec_hook, otherwise=read)), Odd)
    assert wire.schema_hook(Odd, otherwise=lambda of: {"type": "null"}) == {"type": "null"}
    with pytest.raises(NotImplementedError):
        msgspec.json.encode(Odd(), enc_hook=wire.enc_hook)
    with pytest.raises(NotImplementedError):
        wire.dec_hook(Odd, 1)
    with pytest.raises(NotImplementedError):
        wire.schema_hook(Odd)


# cattrs.


@each
def test_cattrs_converts_objects_and_text(form: Form) -> None:
    from cattrs.preconf.json import make_converter

    one, of = minted(form), annotation(form)
    several: Any = list.__class_getitem__(of)
    order: Any = attrs.make_class("Order", {"id": attrs.field(type=of), "several": attrs.field(type=several)})
    for converter in (register(cattrs.Converter()), register(make_converter())):
        written = converter.unstructure(order(one, [one]))
        assert written == {"id": str(one), "several": [str(one)]}
        read: Any = converter.structure(written, order)
        assert read == order(one, [one])
        assert type(read.id) is form.python
        odd: list[Any] = [*WRONG, None, True, 1.5, []]
        for wrong in odd:
            with pytest.raises(cattrs.ClassValidationError) as caught:
                converter.structure({"id": wrong, "several": []}, order)
            assert isinstance(caught.value.exceptions[0], MintError)


# Click and Typer.


@each
def test_click_accepts_an_id_or_gives_the_reason(form: Form) -> None:
    one = minted(form)
    got: list[Any] = []

    @click.command()
    @click.argument("id", type=IDType(annotation(form)))
    def show(id: Any) -> None:
        got.append(id)

    assert CliRunner().invoke(show, ["--", str(one)]).exit_code == 0
    assert got == [one]
    assert type(got[0]) is form.python
    for wrong in WRONG:
        done = CliRunner().invoke(show, ["--", wrong])
        assert done.exit_code == 2
        assert "Invalid value" in done.output
        assert len(done.output) < 600
        with pytest.raises(MintError) as own:
            form.read(wrong)
        assert str(own.value)[:20] in done.output


def asked(of: Any) -> tuple[typer.Typer, list[Any]]:
    """Return a command line of Typer with one argument, and the values that it received."""
    app = typer.Typer()
    got: list[Any] = []

    def command(id: Any) -> None:
        got.append(id)

    command.__annotations__["id"] = of
    app.command()(command)
    return app, got


@each
def test_typer_accepts_an_id(form: Form) -> None:
    one, of = minted(form), IDType(annotation(form))
    ways: list[Any] = [Annotated[form.python, typer.Argument(parser=of.read)]]
    if form.python not in (int, str):
        ways.append(Annotated[form.python, typer.Argument(parser=form.python.parse)])
        # It reads arguments with Pydantic.
        ways.append(form.python)
    for way in ways:
        app, got = asked(way)
        assert TyperRunner().invoke(app, ["--", str(one)]).exit_code == 0
        assert got == [one]
        assert type(got[0]) is form.python
        for wrong in WRONG:
            done = TyperRunner().invoke(app, ["--", wrong])
            assert done.exit_code == 2
            assert "Invalid value" in done.output


def test_parameter_type_has_the_name_of_its_scheme() -> None:
    assert repr(IDType(sno.ID)) == "IDType('sno')" == repr(IDType("sno"))
    assert IDType(snowflake.Str()).name == "snowflake"
    assert isinstance(IDType("nanoid").kind, Kind)
    wrongs: list[Any] = ["nothing", int, None]
    for wrong in wrongs:
        with pytest.raises(ArgumentError):
            IDType(wrong)


# GraphQL.

RowID = NewType("RowID", int)


@strawberry.type
class Query:
    @strawberry.field
    def minted(self, id: RowID) -> RowID:
        return id


@pytest.mark.parametrize("given", ["454947766275222906", 7, 4.549477662752229e17, True, "-5", "9" * 24, "\u0664", []])
def test_graphql_scalar_reads_exact_snowflakes_only(given: Any) -> None:
    scalar = strawberry.scalar(name="Snowflake", serialize=str, parse_value=json_reader(snowflake.Str()))
    schema = strawberry.Schema(Query, config=StrawberryConfig(scalar_map={RowID: scalar}))
    answer = schema.execute_sync("query($id: Snowflake!) { minted(id: $id) }", variable_values={"id": given})
    if given in ("454947766275222906", 7) and given is not True:
        assert answer.data == {"minted": str(given)}
    else:
        assert answer.data is None
        assert answer.errors


# --- values without a type ---------------------------------------------------------------------------------------


@each_class
def test_pydantic_writes_ids_that_no_type_describes(form: Form) -> None:
    class Anything(BaseModel):
        value: Any

    one = minted(form)
    assert json.loads(Anything(value=[{"id": one}]).model_dump_json()) == {"value": [{"id": str(one)}]}
    assert TypeAdapter(dict[str, Any]).dump_python({"id": one}, mode="json") == {"id": str(one)}
    assert Anything(value=one).model_dump() == {"value": one}


@each_class
def test_fastapi_writes_ids_that_no_type_describes(form: Form) -> None:
    register_with_fastapi()
    one = minted(form)
    assert jsonable_encoder({"id": one, "all": [one]}) == {"id": str(one), "all": [str(one)]}


@each_class
def test_kombu_carries_ids(form: Form) -> None:
    register_with_kombu()
    one = minted(form)
    carried: Any = kombu_json
    assert carried.loads(carried.dumps({"args": [one]})) == {"args": [one]}


@each_class
def test_bson_holds_ids_in_their_storage_form(form: Form) -> None:
    one = minted(form)
    for storage in storage_forms(form):
        options: Any = CodecOptions(type_registry=type_registry(forms={form.python: storage}))
        [held] = bson.decode(bson.encode({"_id": one}, codec_options=options)).values()
        found: Any = objectid.ID.from_bytes(held.binary) if isinstance(held, ObjectId) else None
        if found is None and storage == "uuid":
            found = cast(held.as_uuid(), form.python) if not isinstance(one, typeid.ID) else None
            assert bytes(held) == WRITERS_OF_STORAGE["uuid"](one).bytes
        assert found in (None, one)


def test_pydantic_reads_the_objectid_of_bson() -> None:
    given = ObjectId()
    assert TypeAdapter(objectid.ID).validate_python(given) == objectid.ID.from_bytes(given.binary)
    with pytest.raises(ValidationError):
        TypeAdapter(sno.ID).validate_python(given)


# --- one rule for integers ---------------------------------------------------------------------------------------

INTEGER = 454947766275222906


def readers_of_integers() -> dict[str, Any]:
    """Return each door through which an integer comes from Python."""
    view = Opaque(bytes(16))
    return {
        "parse": lambda value: snowflake.DEFAULT.parse(value) and int(value),
        "kind": KINDS["snowflake"].read,
        "pydantic": TypeAdapter(Annotated[int, snowflake.Str()]).validate_python,
        "sqlalchemy": SnowflakeType().bind_processor(sqlite.dialect()),
        "from_int of 16 bytes": lambda value: int(ulid.ID.from_int(value)),
        "from_int of 20 bytes": lambda value: int(ksuid.ID.from_int(value)),
        "cast": lambda value: cast(value, int),
        "cast to an ID": lambda value: int(cast(value, ulid.ID)),
        "derive": lambda value: int(value) if derive(value, "key") == derive(INTEGER, "key") else None,
        "hide": lambda value: view.reveal(view.hide(value), int),
        "encode": lambda value: decode(encode(value)),
        "inspect": lambda value: inspect(value)[0].int,
    }


@pytest.mark.parametrize("door", readers_of_integers())
def test_exact_integers_are_ids(door: str) -> None:
    for value in (INTEGER, Decimal(INTEGER), np.int64(INTEGER), np.uint64(INTEGER)):
        read = readers_of_integers()[door](value)
        assert (read, type(read)) == (INTEGER, int)


@pytest.mark.parametrize("door", readers_of_integers())
@pytest.mark.parametrize(
    "value",
    [
        *(True, 1.0, float(INTEGER), np.float64(5), np.array([5]), None, b"1"),
        *(Decimal("1.5"), Decimal("NaN"), Decimal("1E9999999999")),  # an int of the last would need 4 GB
    ],
)
def test_rounded_or_other_values_are_no_ids(door: str, value: object) -> None:
    if value is None and door == "sqlalchemy":
        return  # it is NULL
    if value == b"1" and door in ("cast", "derive", "encode", "inspect"):
        return  # these take bytes too
    with pytest.raises((MintError, ValidationError)):
        readers_of_integers()[door](value)


def test_json_number_that_a_browser_may_have_rounded_is_refused() -> None:
    structure: Any = register(cattrs.Converter()).structure
    readers: list[Any] = [
        lambda text: TypeAdapter(Annotated[int, snowflake.Str()]).validate_json(text),
        lambda text: msgspec.json.decode(text, type=wire.Snowflake, dec_hook=wire.dec_hook),
        lambda text: structure(json.loads(text), Annotated[int, snowflake.Str()]),
    ]
    for read in readers:
        assert read(b'"454947766275222906"') == INTEGER
        assert read(b"9007199254740991") == 2**53 - 1
        with pytest.raises((ValueError, ArgumentError, cattrs.BaseValidationError)):
            read(b"454947766275222900")


# --- the constructor, pickles and copies -------------------------------------------------------------------------


@each_class
def test_constructor_reads_the_text_as_parse_does(form: Form) -> None:
    one = minted(form)
    assert form.python(str(one)) == one
    with pytest.raises(ParseError):
        form.python("no id")
    if form.python is typeid.ID:
        return  # its other constructor takes prefix and ID
    with pytest.raises(ParseError):
        form.python.from_bytes(b"no id")
    with pytest.raises(ArgumentError):
        form.python.from_bytes(str(one))


def test_parts_of_a_snowflake_pickle_and_copy() -> None:
    parts = snowflake.SONYFLAKE.parse(INTEGER)
    for again in (pickle.loads(pickle.dumps(parts)), copy.copy(parts), copy.deepcopy(parts)):
        assert (again, again.fields, again.time) == (parts, parts.fields, parts.time)


@each_class
def test_uuid_of_an_id_names_the_cast(form: Form) -> None:
    one = minted(form)
    if hasattr(one, "replace"):
        with pytest.raises(TypeError, match=r"mintage\.cast\(id, uuid\.UUID\)"):
            UUID(one)
