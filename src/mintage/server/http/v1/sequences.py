"""``/v1/sequences``: namespaces and their integers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, TypedDict, cast
from urllib.parse import unquote

from msgspec import UNSET, Meta, UnsetType

from mintage.errors import ConfigError, FieldError, RequestError
from mintage.protocol.records import to_json
from mintage.rules import LATEST_MS, MAX_COUNT, MAX_INTEGER, MAX_STRIDE, NamespaceRecord, RunRecord, Segment
from mintage.server.http.v1.operation import Ask, Body, operation, shown
from mintage.server.http.v1.schemas import NAME, Count, PageLimit, page
from mintage.server.loop.budget import INTEGER

# --- parameters and bodies ------------------------------------------------------------------------------------------

Namespace = Annotated[
    str,
    Meta(description="The namespace.", examples=["orders"], extra_json_schema=NAME, extra={"named": "namespace"}),
]
Reserve = Annotated[
    int,
    Meta(ge=1, le=MAX_COUNT, description="How many, at most the service's `max_reserve`.", examples=[1000]),
    Meta(extra={"limit": "max_reserve"}),
]
After = Annotated[Namespace, Meta(description="List only namespaces that sort after this name.")]
# Requests have 64 bits as text or as a number, and :func:`_convert` makes both an int.
if TYPE_CHECKING:
    Integer = int
else:
    Integer = Annotated[
        int | str,
        Meta(
            extra_json_schema={
                "pattern": "^[0-9]{1,19}$",
                "minimum": 0,
                "maximum": MAX_INTEGER,
            }
        ),
    ]
Holder = Annotated[
    str,
    Meta(
        max_length=2_400,
        description="Who reserves, for people: at most 200 characters, percent-encoded.",
        examples=["web-1:4242"],
        extra={"header": "Holder"},
    ),
]
Before = Annotated[
    int,
    Meta(ge=0, le=MAX_INTEGER, description="List only runs that begin at this integer or below.", examples=[5000]),
]
Serial = Annotated[int, Meta(ge=0, le=LATEST_MS)]
Stride = Annotated[int, Meta(ge=1, le=MAX_STRIDE, description="The distance of two integers.", examples=[1])]


def _convert(body: Body, *names: str) -> None:
    """Replace text by integers in members of a body that are :data:`Integer`.

    :raises RequestError: ``request.malformed``.
    :raises FieldError: ``field.range``.
    """
    for name in names:
        value = getattr(body, name)
        if isinstance(value, str):
            if not re.fullmatch("-?[0-9]{1,20}", value):
                raise RequestError(f"{name} {shown(value)} is not a whole number", code="request.malformed")
            setattr(body, name, value := int(value))
        if value is not UNSET and not 0 <= value <= MAX_INTEGER:
            limit = "greater than or equal to 0" if value < 0 else f"less than or equal to {MAX_INTEGER}"
            raise FieldError(f"{name} {value} should be {limit}", code="field.range")


class Tail(Body, kw_only=True):
    """A segment as it was reserved, and the first of its unused integers."""

    first: Annotated[Integer, Meta(examples=["1"])]
    last: Annotated[Integer, Meta(examples=["1000"])]
    stride: Stride = 1
    first_unused: Annotated[Integer, Meta(examples=["900"])]
    serial: Annotated[Serial, Meta(description="That of the segment.", examples=[7])]

    def __post_init__(self) -> None:
        """Refuse an integer outside the segment: it would move the namespace to integers that it does not have."""
        _convert(self, "first", "last", "first_unused")
        segment = range(self.first, self.last + 1, self.stride)
        if not segment or segment[-1] != self.last or self.first_unused not in segment:
            raise FieldError(
                f"first_unused {self.first_unused} is none of the integers from {self.first} to {self.last} with "
                f"stride {self.stride}",
                code="field.range",
            )


class NewNamespace(Body):
    """A namespace to create; or, with ``floor`` alone, the floor to raise."""

    start: Annotated[
        Integer | UnsetType,
        Meta(description="No integer is below.", examples=["1"], extra_json_schema={"default": 1}),
    ] = UNSET
    maximum: Annotated[
        Integer | UnsetType,
        Meta(
            description="No integer is above.",
            examples=[str(MAX_INTEGER)],
            extra_json_schema={"default": MAX_INTEGER},
        ),
    ] = UNSET
    stride: Annotated[Stride | UnsetType, Meta(extra_json_schema={"default": 1})] = UNSET
    offset: Annotated[
        Annotated[int, Meta(ge=0, lt=MAX_STRIDE)] | UnsetType,
        Meta(description="What integers are modulo the stride.", examples=[0], extra_json_schema={"default": 0}),
    ] = UNSET
    floor: Annotated[
        Integer | UnsetType, Meta(description="No integer below is handed out any more.", examples=["5000"])
    ] = UNSET

    def __post_init__(self) -> None:
        """Refuse a floor beside other members."""
        _convert(self, "start", "maximum", "floor")
        if self.floor is not UNSET and len(self.given()) > 1:
            raise ValueError("has floor and other members: a floor is raised alone")


_ORDINARY: Final = NewNamespace()
_VERBS: Final = (":next", ":reserve", ":give-back")


# --- answers --------------------------------------------------------------------------------------------------------

Text64 = Annotated[str, Meta(pattern="^-?[0-9]{1,19}$", examples=["1"])]


class Integers(TypedDict):
    """Integers, in the order in which they were taken; usually in a row, but not always."""

    namespace: Annotated[str, Meta(examples=["orders"])]
    ids: Annotated[list[Text64], Meta(examples=[["1", "2", "3"]])]


class Reserved(TypedDict):
    """A segment: the integers ``first``, ``first + stride``, … ``last``."""

    namespace: Annotated[str, Meta(examples=["orders"])]
    first: Text64
    last: Annotated[Text64, Meta(examples=["1000"])]
    stride: Annotated[int, Meta(examples=[1])]
    count: Annotated[int, Meta(description="Fewer than asked for where fewer are left.", examples=[1000])]
    floor: Annotated[
        Text64,
        Meta(description="Hand out nothing below it any more, of earlier segments either; 0 is none.", examples=["0"]),
    ]
    serial: Annotated[
        int, Meta(description="Needed to give the tail back: no two segments have the same.", examples=[7])
    ]


class GivenBack(TypedDict):
    """True in ``taken_back`` if the tail was the last that was reserved, so that the next request reserves it anew."""

    taken_back: bool


class NamespaceFacts(TypedDict):
    """The store's record of a namespace."""

    namespace: Annotated[str, Meta(examples=["orders"])]
    high_water: Annotated[
        Text64, Meta(description="The last integer reserved; a stride before the first if there is none yet.")
    ]
    maximum: Annotated[Text64, Meta(examples=[str(MAX_INTEGER)])]
    stride: Annotated[int, Meta(examples=[1])]
    largest: Annotated[int, Meta(description="The largest count that was ever reserved at once.", examples=[1000])]
    identity: Annotated[str, Meta(description="The server that it was last written on.")]
    floor: Annotated[Text64, Meta(description="No integer below is reserved any more; 0 is none.", examples=["0"])]
    serial: Annotated[int, Meta(description="It goes up when integers are reserved or taken back.", examples=[7])]
    serial_before: Annotated[
        int, Meta(description="What the serial was when integers were last reserved.", examples=[6])
    ]
    retired: Annotated[bool, Meta(description="Whether it has ended for good.", examples=[False])]
    start: Annotated[Text64, Meta(description="Its first integer; 0 also if an older version created it.")]
    run_holder: Annotated[str, Meta(description="Who reserved last; empty if the client told no name.")]
    run_first: Annotated[Text64, Meta(description="The first of what it reserved with no other holder between.")]
    run_last: Annotated[Text64, Meta(description="The last of it; lower than the first if all was taken back.")]
    run_since_ms: Annotated[int, Meta(description="The store's clock when it reserved the first; 0 if none did yet.")]
    run_until_ms: Annotated[int, Meta(description="The store's clock when it reserved the last.")]


class Namespaces(TypedDict):
    """A page of namespaces, by name."""

    sequences: list[NamespaceFacts]


class RunFacts(TypedDict):
    """A past run: what one holder reserved with no other holder between."""

    namespace: Annotated[str, Meta(examples=["orders"])]
    first: Text64
    last: Annotated[Text64, Meta(description="Lower than the first if all was taken back.", examples=["1000"])]
    holder: Annotated[str, Meta(description="Empty if the client told no name.", examples=["web-1:4242"])]
    since_ms: Annotated[int, Meta(description="The store's clock when it reserved the first.")]
    until_ms: Annotated[int, Meta(description="The store's clock when it reserved the last.")]


class Runs(TypedDict):
    """Past runs of a namespace, the highest first."""

    runs: list[RunFacts]


class Counted(TypedDict):
    """The number of namespaces."""

    count: Annotated[int, Meta(examples=[12])]


def _namespace(record: NamespaceRecord) -> NamespaceFacts:
    values = to_json(record)
    values["namespace"] = values.pop("name")
    return cast("NamespaceFacts", values)


def _run(record: RunRecord) -> RunFacts:
    return cast("RunFacts", to_json(record))


# --- operations -----------------------------------------------------------------------------------------------------

_COUNTED: Final = (
    "field.range",
    "request.namespace",
    "request.namespaces",
    "namespace.exhausted",
    "namespace.retired",
)


@operation("POST", "/v1/sequences/{namespace}:next", right="next", codes=_COUNTED)
async def _next(ask: Ask, namespace: Namespace, count: Count = 1) -> Integers:
    """Take the next integers of a namespace.

    The service takes them from its buffer. In the service's last resort (`fallback = "random"`), the answer has the
    header `X-Mintage-Fallback: random`, and nothing guarantees that its integers are unique.
    """
    ids = await ask.service.next(ask.caller, namespace, count)
    return {"namespace": namespace, "ids": await ask.each(ids, str, INTEGER)}


@operation("POST", "/v1/sequences/{namespace}:reserve", right="reserve", codes=_COUNTED)
async def _reserve(ask: Ask, namespace: Namespace, count: Reserve = 1000, holder: Holder = "") -> Reserved:
    """Reserve a segment in the store, for the client to hand out.

    Each call is a durable write in the store. Integers that the client does not hand out are skipped, unless it gives
    them back. `GET /v1/who/{namespace}/{integer}` shows the holder.
    """
    segment = await ask.service.segment(ask.caller, namespace, count, unquote(holder))
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
    codes=("field.range", "namespace.retired"),
)
async def _give_back(ask: Ask, namespace: Namespace, body: Tail) -> GivenBack:
    """Give back the unused tail of a segment.

    The store takes the tail back if its segment is still the last one reserved, and if the same worker gave the segment
    to the same key. It takes back one tail of each segment, even if the request is repeated.
    """
    segment = Segment(namespace, body.first, body.last, body.stride, serial=body.serial)
    return {"taken_back": await ask.service.give_back(ask.caller, segment, body.first_unused)}


@operation("GET", "/v1/sequences", right="describe", codes=("field.range",))
async def _list_namespaces(ask: Ask, after: After = "", limit: PageLimit = 0) -> Namespaces:
    """List namespaces, by name.

    The answer has the first `limit` of those that sort after `after`. For the next page, send the last name of this one
    as `after`; an empty page is the end. Without `limit`, the answer has all namespaces that sort after `after`; if
    there are more than 10,000, the request is refused (`field.range`). This needs the right `describe` for all names,
    `*`.
    """
    return {"sequences": await page(ask, "", limit, _namespace, ask.service.store.list_namespaces, after)}


@operation("GET", "/v1/sequences:count", right="describe")
async def _count_namespaces(ask: Ask) -> Counted:
    """Count the namespaces, retired ones included.

    This needs the right `describe` for all names, `*`.
    """
    return {"count": await ask.call("", ask.service.store.count_namespaces)}


@operation("GET", "/v1/sequences/{namespace}", right="describe", codes=("request.namespace",))
async def _find_namespace(ask: Ask, namespace: Namespace) -> NamespaceFacts:
    """Describe a namespace."""
    return _namespace(await ask.service.find_namespace(ask.caller, namespace))


@operation(
    "PUT",
    "/v1/sequences/{namespace}",
    right="create",
    codes=("field.range", "config.namespace", "request.namespaces", "namespace.retired"),
    statuses=(201, 200),
)
async def _put_namespace(
    ask: Ask, namespace: Namespace, body: Annotated[NewNamespace, Meta(examples=[{"start": "1"}])] = _ORDINARY
) -> NamespaceFacts:
    """Create a namespace, or raise the floor of one.

    A namespace has the integers from `start` to `maximum` that are `offset` modulo `stride`; without a body, all of
    them from 1 on. A store that has lost namespaces refuses a namespace without a `start`.

    With `floor` alone, the request raises the floor, and the answer is 200. A floor never moves back; raising it
    creates a namespace that does not exist. The store no longer reserves or takes back integers below it. A client with
    an earlier segment learns of the floor with its next segment.
    """
    store = ask.service.store
    if body.floor is UNSET and namespace.endswith(_VERBS):
        raise ConfigError(
            f"namespace {namespace!r} is not made by PUT: its name ends like the path of POST "
            f"/v1/sequences/{namespace}, which may be meant; make it with mintage namespaces create",
            code="config.name",
        )
    if body.floor is not UNSET:
        ask.status = 200
        return _namespace(await ask.service.make(ask.caller, namespace, store.raise_floor, namespace, body.floor))
    create = store.create_namespace
    return _namespace(await ask.service.make(ask.caller, namespace, create, namespace, **body.given()))


@operation("DELETE", "/v1/sequences/{namespace}", right="create", codes=("request.namespaces",))
async def _retire(ask: Ask, namespace: Namespace) -> NamespaceFacts:
    """Retire a namespace for good.

    From then on the store refuses every reservation from it (`namespace.retired`), and its name never starts again,
    whether or not it was in use. **Nothing undoes this.** Services and clients still hand out the integers that they
    have reserved. A repeated request gets the same answer.
    """
    return _namespace(await ask.service.make(ask.caller, namespace, ask.service.store.retire, namespace))


@operation("GET", "/v1/sequences/{namespace}/runs", right="describe", codes=("field.range",))
async def _list_runs(ask: Ask, namespace: Namespace, before: Before = MAX_INTEGER, limit: PageLimit = 0) -> Runs:
    """List the past runs of a namespace, the highest first: who reserved which integers.

    The answer has the first `limit` that begin at `before` or below. The current run is not among them:
    `GET /v1/sequences/{namespace}` has it. A namespace keeps past runs for 7 days, some stores fewer.
    """
    return {"runs": await page(ask, namespace, limit, _run, ask.service.store.list_runs, namespace, before)}
