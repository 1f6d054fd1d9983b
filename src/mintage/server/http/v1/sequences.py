"""``/v1/sequences``: namespaces and their integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, cast

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from typing_extensions import TypedDict

from mintage.errors import ConfigError, FieldError
from mintage.protocol.records import to_json
from mintage.rules import LATEST_MS, MAX_COUNT, MAX_INTEGER, MAX_STRIDE, Segment
from mintage.server.http.v1.operation import Ask, Body, Limit, operation
from mintage.server.http.v1.schemas import NAME, NAMED, Count, PageLimit, check_int, named, page
from mintage.server.loop.budget import INTEGER

if TYPE_CHECKING:
    from mintage.rules import NamespaceRecord


# --- parameters and bodies ------------------------------------------------------------------------------------------

Namespace = Annotated[
    str, named("namespace"), WithJsonSchema({**NAME, "description": "The namespace.", "examples": ["orders"]})
]
Reserve = Annotated[
    int,
    Field(ge=1, le=MAX_COUNT, description="How many, at most the service's `max_reserve`.", examples=[1000]),
    BeforeValidator(check_int),
    Limit("max_reserve"),
]
After = Annotated[
    str,
    named("namespace"),
    WithJsonSchema({**NAME, "description": "List only namespaces that sort after this name.", "examples": ["orders"]}),
]
Integer = Annotated[
    int,
    Field(ge=0, le=MAX_INTEGER),
    BeforeValidator(check_int),
    WithJsonSchema({"type": ["string", "integer"], "pattern": "^[0-9]{1,19}$", "minimum": 0, "maximum": MAX_INTEGER}),
]
Serial = Annotated[int, Field(ge=0, le=LATEST_MS)]
Stride = Annotated[int, Field(ge=1, le=MAX_STRIDE, description="The distance of two integers.", examples=[1])]


class Tail(Body):
    """A segment as it was reserved, and the first of its unused integers."""

    first: Annotated[Integer, Field(examples=["1"])]
    last: Annotated[Integer, Field(examples=["1000"])]
    stride: Stride = 1
    first_unused: Annotated[Integer, Field(examples=["900"])]
    serial: Annotated[Serial, Field(description="That of the segment.", examples=[7])]

    @model_validator(mode="after")
    def _fits(self) -> Tail:
        """Refuse an integer outside the segment: it would move the namespace to integers that it does not have."""
        segment = range(self.first, self.last + 1, self.stride)
        if not segment or segment[-1] != self.last or self.first_unused not in segment:
            raise FieldError(
                f"first_unused {self.first_unused} is none of the integers from {self.first} to {self.last} with "
                f"stride {self.stride}",
                code="field.range",
            )
        return self


class NewNamespace(Body):
    """A namespace to create; or, with ``floor`` alone, the floor to raise."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"start": "1"}]})

    start: Annotated[Integer, Field(description="No integer is below.", examples=["1"])] = 1
    maximum: Annotated[Integer, Field(description="No integer is above.", examples=[str(MAX_INTEGER)])] = MAX_INTEGER
    stride: Stride = 1
    offset: Annotated[
        int, Field(ge=0, lt=MAX_STRIDE, description="What integers are modulo the stride.", examples=[0])
    ] = 0
    floor: Integer = Field(
        default_factory=int, description="No integer below is handed out any more.", examples=["5000"]
    )

    @model_validator(mode="after")
    def _is_one_of_two(self) -> NewNamespace:
        if self.is_floor and len(self.model_fields_set) > 1:
            raise ValueError("has floor and other members: a floor is raised alone")
        return self

    @property
    def is_floor(self) -> bool:
        """True if the request raises a floor."""
        return "floor" in self.model_fields_set


_ORDINARY: Final = NewNamespace()
_VERBS: Final = (":next", ":reserve", ":give-back")


# --- answers --------------------------------------------------------------------------------------------------------

Text64 = Annotated[str, Field(pattern="^-?[0-9]{1,19}$", examples=["1"])]


class Integers(TypedDict):
    """Integers, in the order in which they were taken; usually in a row, but not always."""

    namespace: Annotated[str, Field(examples=["orders"])]
    ids: Annotated[list[Text64], Field(examples=[["1", "2", "3"]])]


class Reserved(TypedDict):
    """A segment: the integers ``first``, ``first + stride``, … ``last``."""

    namespace: Annotated[str, Field(examples=["orders"])]
    first: Text64
    last: Annotated[Text64, Field(examples=["1000"])]
    stride: Annotated[int, Field(examples=[1])]
    count: Annotated[int, Field(description="Fewer than asked for where fewer are left.", examples=[1000])]
    floor: Annotated[
        Text64,
        Field(description="Hand out nothing below it any more, of earlier segments either; 0 is none.", examples=["0"]),
    ]
    serial: Annotated[
        int, Field(description="Needed to give the tail back: no two segments have the same.", examples=[7])
    ]


class GivenBack(TypedDict):
    """True in ``taken_back`` if the tail was the last that was reserved, so that the next request reserves it anew."""

    taken_back: bool


class NamespaceFacts(TypedDict):
    """The store's record of a namespace."""

    namespace: Annotated[str, Field(examples=["orders"])]
    high_water: Annotated[
        Text64, Field(description="The last integer reserved; a stride before the first if there is none yet.")
    ]
    maximum: Annotated[Text64, Field(examples=[str(MAX_INTEGER)])]
    stride: Annotated[int, Field(examples=[1])]
    largest: Annotated[int, Field(description="The largest count that was ever reserved at once.", examples=[1000])]
    identity: Annotated[str, Field(description="The server that it was last written on.")]
    floor: Annotated[Text64, Field(description="No integer below is reserved any more; 0 is none.", examples=["0"])]
    serial: Annotated[int, Field(description="It goes up when integers are reserved or taken back.", examples=[7])]
    serial_before: Annotated[
        int, Field(description="What the serial was when integers were last reserved.", examples=[6])
    ]
    retired: Annotated[bool, Field(description="Whether it has ended for good.", examples=[False])]


class Namespaces(TypedDict):
    """A page of namespaces, by name."""

    sequences: list[NamespaceFacts]


class Counted(TypedDict):
    """The number of namespaces."""

    count: Annotated[int, Field(examples=[12])]


def _namespace(record: NamespaceRecord) -> NamespaceFacts:
    values = to_json(record)
    values["namespace"] = values.pop("name")
    return cast("NamespaceFacts", values)


# --- operations -----------------------------------------------------------------------------------------------------

_COUNTED: Final = (
    *NAMED,
    "field.range",
    "request.namespace",
    "request.namespaces",
    "namespace.exhausted",
    "namespace.retired",
)


@operation("POST", "/v1/sequences/{namespace}:next", name="next", right="next", codes=_COUNTED)
async def _next(ask: Ask, namespace: Namespace, count: Count = 1) -> Integers:
    """Take the next integers of a namespace.

    The service takes them from its buffer. In the service's last resort (`fallback = "random"`), the answer has the
    header `X-Mintage-Fallback: random`, and nothing guarantees that its integers are unique.
    """
    ids = await ask.service.next(ask.caller, namespace, count)
    return {"namespace": namespace, "ids": await ask.each(ids, str, INTEGER)}


@operation("POST", "/v1/sequences/{namespace}:reserve", name="reserve", right="reserve", codes=_COUNTED)
async def _reserve(ask: Ask, namespace: Namespace, count: Reserve = 1000) -> Reserved:
    """Reserve a segment in the store, for the client to hand out.

    Each call is a durable write in the store. Integers that the client does not hand out are skipped, unless it gives
    them back.
    """
    segment = await ask.service.segment(ask.caller, namespace, count)
    return {
        "namespace": namespace,
        "first": str(segment.first),
        "last": str(segment.last),
        "stride": segment.stride,
        "count": len(segment),
        "floor": str(segment.floor),
        "serial": segment.serial,
    }


@operation(
    "POST",
    "/v1/sequences/{namespace}:give-back",
    name="give_back",
    right="reserve",
    codes=(*NAMED, "field.range", "namespace.retired"),
)
async def _give_back(ask: Ask, namespace: Namespace, body: Tail) -> GivenBack:
    """Give back the unused tail of a segment.

    The store takes the tail back if its segment is still the last one reserved, and if the same worker gave the segment
    to the same key. It takes back one tail of each segment, even if the request is repeated.
    """
    segment = Segment(namespace, body.first, body.last, body.stride, serial=body.serial)
    return {"taken_back": await ask.service.give_back(ask.caller, segment, body.first_unused)}


@operation("GET", "/v1/sequences", name="describe", right="describe", codes=(*NAMED, "field.range"), is_list=True)
async def _list_namespaces(ask: Ask, after: After = "", limit: PageLimit = 0) -> Namespaces:
    """List namespaces, by name.

    The answer has the first `limit` of those that sort after `after`. For the next page, send the last name of this one
    as `after`; an empty page is the end. Without `limit`, the answer has all namespaces that sort after `after`; if
    there are more than 10,000, the request is refused (`field.range`). This needs the right `describe` for all names,
    `*`.
    """
    return {"sequences": await page(ask, "", limit, _namespace, ask.service.store.list_namespaces, after)}


@operation("GET", "/v1/sequences:count", name="describe", right="describe")
async def _count_namespaces(ask: Ask) -> Counted:
    """Count the namespaces, retired ones included.

    This needs the right `describe` for all names, `*`.
    """
    return {"count": await ask.service.ask(ask.caller, "describe", "", ask.service.store.count_namespaces)}


@operation("GET", "/v1/sequences/{namespace}", name="describe", right="describe", codes=(*NAMED, "request.namespace"))
async def _find_namespace(ask: Ask, namespace: Namespace) -> NamespaceFacts:
    """Describe a namespace."""
    return _namespace(await ask.service.find_namespace(ask.caller, namespace))


@operation(
    "PUT",
    "/v1/sequences/{namespace}",
    name="create",
    right="create",
    codes=(*NAMED, "field.range", "config.namespace", "request.namespaces", "namespace.retired"),
    statuses=(201, 200),
)
async def _put_namespace(ask: Ask, namespace: Namespace, body: NewNamespace = _ORDINARY) -> NamespaceFacts:
    """Create a namespace, or raise the floor of one.

    A namespace has the integers from `start` to `maximum` that are `offset` modulo `stride`; without a body, all of
    them from 1 on. A store that has lost namespaces refuses a namespace without a `start`.

    With `floor` alone, the request raises the floor, and the answer is 200. A floor never moves back; raising it
    creates a namespace that does not exist. The store no longer reserves or takes back integers below it. A client with
    an earlier segment learns of the floor with its next segment.
    """
    store = ask.service.store
    if not body.is_floor and namespace.endswith(_VERBS):
        raise ConfigError(
            f"namespace {namespace!r} is not made by PUT: its name ends like the path of POST "
            f"/v1/sequences/{namespace}, which may be meant; make it with mintage namespaces create",
            code="config.name",
        )
    if body.is_floor:
        ask.status = 200
        record = await ask.service.make(ask.caller, (namespace,), store.raise_floor, namespace, body.floor)
        return _namespace(record)
    record = await ask.service.make(
        ask.caller,
        (namespace,),
        store.create_namespace,
        namespace,
        start=body.start if "start" in body.model_fields_set else None,
        maximum=body.maximum,
        stride=body.stride,
        offset=body.offset,
    )
    return _namespace(record)


@operation(
    "DELETE",
    "/v1/sequences/{namespace}",
    name="create",
    right="create",
    codes=(*NAMED, "request.namespaces"),
)
async def _retire(ask: Ask, namespace: Namespace) -> NamespaceFacts:
    """Retire a namespace for good.

    From then on the store refuses every reservation from it (`namespace.retired`), and its name never starts again,
    whether or not it was in use. **Nothing undoes this.** Services and clients still hand out the integers that they
    have reserved. A repeated request gets the same answer.
    """
    record = await ask.service.make(ask.caller, (namespace,), ask.service.store.retire, namespace)
    return _namespace(record)


OPERATIONS: Final = (
    _next,
    _reserve,
    _give_back,
    _list_namespaces,
    _count_namespaces,
    _find_namespace,
    _put_namespace,
    _retire,
)
