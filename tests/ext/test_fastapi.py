"""Tests of FastAPI and SQLModel: IDs in requests, responses, the OpenAPI document and tables."""

from __future__ import annotations

import asyncio
import threading
import warnings
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from fastapi import Body, FastAPI, Header, Query
from pydantic import BaseModel, create_model
from sqlalchemy import StaticPool, create_engine, inspect
from sqlmodel import Field, Session, SQLModel, select

from mintage import Sequence, sno, snowflake, typeid
from mintage.errors import MintError
from mintage.ext.sqlalchemy import SnoType, SnowflakeType
from mintage.formats.annotations import TextID, TypeID, TypeIDs
from mintage.store import Forwarding
from mintage.store.memory import MemoryStore
from tests.ext import samples
from tests.ext.samples import each, minted

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would like a client that is not there yet
    from fastapi.testclient import TestClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WRONG = ["no-id", "9" * 5000, "ü" * 16, "1.5", "-1", "true"]


def annotation(form: samples.Form) -> Any:
    if isinstance(form, TypeIDs):
        return typeid.ID if form.prefix is None else Annotated[typeid.ID, TypeID(form.prefix)]
    if form.layout is not None:
        return Annotated[int, snowflake.Str(form.layout)]
    return Annotated[str, TextID(form.name)] if form.is_text else form.python


def application(form: samples.Form) -> tuple[FastAPI, list[Any]]:
    """Return an application with an ID in each part of a request, and the values that its functions got."""
    of, app = annotation(form), FastAPI()
    got: list[Any] = []
    fields: dict[str, Any] = {"id": (of, ...), "by": (dict.__class_getitem__((of, int)), {})}
    order = create_model("Order", **fields)

    def take(id: Any) -> Any:
        got.append(id)
        return id

    def path(id: Any) -> Any:
        return {"id": take(id), "by": {id: 1}}

    def body(order: Any) -> Any:
        take(order.id)
        return order

    path.__annotations__ = {"id": of}
    app.get("/path/{id}", response_model=order)(path)
    for name, where in (("query", Query()), ("header", Header()), ("embedded", Body(embed=True))):

        def function(id: Any) -> Any:
            return take(id)

        function.__annotations__ = {"id": Annotated[of, where], "return": of}
        (app.post if name == "embedded" else app.get)(f"/{name}")(function)
    body.__annotations__ = {"order": order}
    app.post("/body", response_model=order)(body)
    return app, got


@pytest.fixture(scope="module")
def applications() -> dict[samples.Form, tuple[FastAPI, list[Any], TestClient]]:
    made = {}
    for form in samples.FORMS.values():
        app, got = application(form)
        made[form] = app, got, TestClient(app)
    return made


def calls(client: TestClient, text: str) -> Any:
    """Return requests with a value in every part except the path, which cannot contain every text."""
    yield client.get("/query", params={"id": text})
    if text.isascii():
        yield client.get("/header", headers={"id": text})
    yield client.post("/embedded", json={"id": text})


@each
def test_id_is_read_from_every_part_of_a_request(form: samples.Form, applications: Any) -> None:
    _, got, client = applications[form]
    one = minted(form)
    text = str(one)
    got.clear()
    for answer in calls(client, text):
        assert answer.json() == text
    assert client.get(f"/path/{text}").json() == {"id": text, "by": {text: 1}}
    sent = {"id": text, "by": {text: 7}}
    assert client.post("/body", json=sent).json() == sent
    assert got == [one] * 5
    assert {type(each) for each in got} == {form.python}


@each
def test_invalid_id_is_422_with_the_code_of_mintage(form: samples.Form, applications: Any) -> None:
    _, got, client = applications[form]
    got.clear()
    for wrong in WRONG:
        with pytest.raises(MintError) as own:
            form.read(wrong)
        for answer in calls(client, wrong):
            assert answer.status_code == 422
            (error,) = answer.json()["detail"]
            assert (error["type"], error["msg"]) == (own.value.code, str(own.value))
            assert error["loc"][-1] == "id"
        key = client.post("/body", json={"id": form.example, "by": {wrong: 1}})
        assert key.status_code == 422
        assert key.json()["detail"][0]["type"] == own.value.code
    odds: list[Any] = [None, True, 1.5, [], {}, -1, 1 << 70]
    for odd in odds:
        assert client.post("/body", json={"id": odd}).status_code == 422
    assert got == []


@each
def test_openapi_document_matches_the_parser_everywhere(form: samples.Form, applications: Any) -> None:
    *_, client = applications[form]
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    places = [
        document["paths"]["/path/{id}"]["get"]["parameters"][0]["schema"],
        document["paths"]["/query"]["get"]["parameters"][0]["schema"],
        document["paths"]["/header"]["get"]["parameters"][0]["schema"],
        document["paths"]["/query"]["get"]["responses"]["200"]["content"]["application/json"]["schema"],
        document["components"]["schemas"]["Order"]["properties"]["id"],
    ]
    for place in places:
        assert {name: said for name, said in place.items() if name != "title"} == form.json_schema
    # One model both ways: nothing is split into Order-Input and Order-Output.
    assert "Order-Input" not in document["components"]["schemas"]
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert name
    order = {**document["components"]["schemas"]["Order"], "components": document["components"]}
    jsonschema.validate({"id": str(minted(form)), "by": {}}, order)


def test_fba_1014_response_model_writes_orm_integers_as_text() -> None:
    class Order(BaseModel):
        id: Annotated[int, snowflake.Str()]

    class Row:
        """A row as an ORM returns it: attributes, and an int."""

        id = 454947766275222906

    app = FastAPI()
    stored = []

    def read() -> Any:
        return Order.model_validate(Row(), from_attributes=True)

    def write(order: Any) -> Any:
        stored.append(order.model_dump()["id"])
        return order

    write.__annotations__ = {"order": Order}
    app.get("/", response_model=Order)(read)
    app.post("/", response_model=Order)(write)
    client = TestClient(app)
    assert client.get("/").text == '{"id":"454947766275222906"}'
    for sent in ("454947766275222906", 454947766275222906):
        assert client.post("/", json={"id": sent}).text == '{"id":"454947766275222906"}'
    assert stored == [454947766275222906] * 2
    assert {type(each) for each in stored} == {int}


class Hanging(Forwarding):
    """A store that stops answering, and records which threads called it."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.threads: set[int] = set()
        self.is_hanging, self.is_asked, self.goes_on = threading.Event(), threading.Event(), threading.Event()

    def forward(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        self.threads.add(threading.get_ident())
        if self.is_hanging.is_set():
            self.is_asked.set()
            self.goes_on.wait(60)
        return super().forward(verb, *args, **kwargs)


def test_fba_1256_no_request_waits_for_the_lease_store() -> None:
    store = Hanging()
    orders, numbers = sno.Generator(store=store), Sequence("orders", store=store)
    loops: set[int] = set()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loops.add(threading.get_ident())
        await asyncio.gather(asyncio.to_thread(orders.new), asyncio.to_thread(numbers.next))
        yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders")
    async def create() -> dict[str, str | int]:
        loops.add(threading.get_ident())
        return {"id": str(orders.new()), "number": numbers.next()}

    with TestClient(app) as client:
        store.is_hanging.set()
        answers = []
        while not store.is_asked.is_set():
            answers.append(client.post("/orders").json()["number"])
        # The store hangs at the request for the next segment; the current one answers requests.
        answers += [client.post("/orders").json()["number"] for _ in range(3)]
        assert answers == list(range(2, 2 + len(answers)))
        store.goes_on.set()
    assert len(loops) == 1
    assert loops.isdisjoint(store.threads)
    orders.close()
    numbers.close()


class Sale(SQLModel, table=True):
    """A class that is a table and a model."""

    id: sno.ID = Field(default_factory=sno.new, sa_type=SnoType, primary_key=True)
    customer: Annotated[int, snowflake.Str()] = Field(sa_type=SnowflakeType)


def test_sqlmodel_stores_objects_and_writes_text() -> None:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    SQLModel.metadata.create_all(engine, tables=[SQLModel.metadata.tables["sale"]])
    assert isinstance(inspect(Sale).columns["id"].type, SnoType)
    customer = snowflake.new()
    with Session(engine) as session:
        session.add(Sale(customer=customer))
        session.commit()
        found = session.exec(select(Sale)).one()
        assert type(found.id) is sno.ID
        assert (found.customer, type(found.customer)) == (customer, int)
        assert found.model_dump(mode="json") == {"id": str(found.id), "customer": str(customer)}
        assert found.model_dump() == {"id": found.id, "customer": customer}
        assert Sale.model_validate(found.model_dump(mode="json")) == found
        assert session.exec(select(Sale).where(Sale.id == found.id)).one() is found
    engine.dispose()
