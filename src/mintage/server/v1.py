"""mintage's own HTTP interface. Integers of 64 bits are strings in JSON, as in the JSON of protobuf."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Match
from typing_extensions import TypedDict

from mintage import anatomy
from mintage.errors import FieldError
from mintage.lease import (
    MAX_COUNT,
    MAX_INTEGER,
    MAX_NODES,
    MAX_SPAN_MS,
    MAX_STRIDE,
    MIN_SPAN_MS,
    SPAN_MS,
    Lease,
    Segment,
    check_name,
    check_nodes,
    check_span,
)
from mintage.server.operation import Ask, Body, Header, Limit, Operation, exchange_of, operation, token_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from mintage.lease import NamespaceRecord, NodeRecord, PoolRecord
    from mintage.server.service import Service

__all__ = ["OPERATIONS", "Operations"]


# --- forms: what is taken -----------------------------------------------------------------------------------------


def _whole(value: object) -> int:
    """Python's own reading of numbers takes more than JSON and decimal digits: ``1_000``, ``5.0``, ``True``."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value):
        return int(value)
    if type(value) is not int:
        raise ValueError("is not a whole number")
    return value


def _named(what: str) -> AfterValidator:
    def check(name: str) -> str:
        check_name(name, what)
        return name

    return AfterValidator(check)


def _span(span_ms: int) -> int:
    check_span(span_ms)
    return span_ms


_NAME: Final = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"}
_LATEST_MS: Final = 2**53 - 1

Namespace = Annotated[
    str, _named("namespace"), WithJsonSchema({**_NAME, "description": "The namespace.", "examples": ["orders"]})
]
Pool = Annotated[str, _named("pool"), WithJsonSchema({**_NAME, "description": "The pool.", "examples": ["sno"]})]
Scheme = Annotated[Literal["sno", "snowflake", "locality"], Field(description="The scheme.", examples=["snowflake"])]
Count = Annotated[
    int,
    Field(ge=1, le=MAX_COUNT, description="How many, at most the service's `max_count`.", examples=[3]),
    BeforeValidator(_whole),
    Limit("max_count"),
]
Reserve = Annotated[
    int,
    Field(ge=1, le=MAX_COUNT, description="How many, at most the service's `max_reserve`.", examples=[1000]),
    BeforeValidator(_whole),
    Limit("max_reserve"),
]
Meta = Annotated[
    int, Field(ge=0, le=255, description="sno's metabyte; 0 for others.", examples=[0]), BeforeValidator(_whole)
]
Integer = Annotated[
    int,
    Field(ge=0, le=MAX_INTEGER),
    BeforeValidator(_whole),
    WithJsonSchema({"type": ["string", "integer"], "pattern": "^[0-9]{1,19}$", "minimum": 0, "maximum": MAX_INTEGER}),
]
Stride = Annotated[int, Field(ge=1, le=MAX_STRIDE, description="The distance of two integers.", examples=[1])]
Ms = Annotated[
    int, Field(ge=0, le=_LATEST_MS, description="Milliseconds since the Unix epoch.", examples=[1763719200000])
]
Span = Annotated[
    int,
    AfterValidator(_span),
    WithJsonSchema(
        {
            "type": "integer",
            "minimum": MIN_SPAN_MS,
            "maximum": MAX_SPAN_MS,
            "description": "How long a window is, in milliseconds.",
            "examples": [SPAN_MS],
        }
    ),
]
Layout = Annotated[
    str,
    Field(pattern="^[ -~]{1,500}$", description="What the pool's node numbers mean.", examples=["sno/1"]),
]
Holder = Annotated[
    str,
    Field(max_length=200, pattern=r"^[^\x00]*$", description="Who holds it, for people.", examples=["web-1:4242"]),
]
_NODE: Final = {"type": "integer", "minimum": 0, "maximum": MAX_NODES - 1, "examples": [0]}
# The rules have words of their own for node numbers that no pool has.
Number = Annotated[int, WithJsonSchema(_NODE)]
Node = Annotated[
    int,
    Field(ge=-MAX_INTEGER, le=MAX_INTEGER),
    BeforeValidator(_whole),
    WithJsonSchema({**_NODE, "description": "The node number."}),
]
UsedUntil = Annotated[
    int,
    Field(
        ge=0,
        le=_LATEST_MS,
        description="The first time that was not minted in, in milliseconds since the Unix epoch.",
        examples=[1763719200000],
    ),
    BeforeValidator(_whole),
]
Token = Annotated[
    str,
    Header("Lease-Token"),
    Field(pattern="^[A-Za-z0-9._-]{1,64}$", description="The token of the lease.", examples=["0f" * 16]),
]
ID = Annotated[
    str,
    Field(min_length=1, max_length=4096, description="An ID of any scheme.", examples=["01ARZ3NDEKTSV4RRFFQ69G5FAV"]),
]


class Tail(Body):
    """A segment as it was reserved, and the first of its integers that was not used."""

    first: Annotated[Integer, Field(examples=["1"])]
    last: Annotated[Integer, Field(examples=["1000"])]
    stride: Stride = 1
    first_unused: Annotated[Integer, Field(examples=["900"])]

    @model_validator(mode="after")
    def _fits(self) -> Tail:
        """Whatever else came in would move the namespace to integers that it does not have."""
        segment = range(self.first, self.last + 1, self.stride)
        if not segment or segment[-1] != self.last or self.first_unused not in segment:
            raise FieldError(
                f"first_unused {self.first_unused} is none of the integers from {self.first} to {self.last} with "
                f"stride {self.stride}",
                code="field.range",
            )
        return self


class NewNamespace(Body):
    """A namespace to be made; or, with ``floor`` alone, the floor of one to be raised."""

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
        """Whether a floor is to be raised."""
        return "floor" in self.model_fields_set


_ORDINARY: Final = NewNamespace()


class NewPool(Body):
    """A pool to be made, or freed from its quarantine."""

    layout: Layout
    span_ms: Span = SPAN_MS


class Nodes(Body):
    """Node numbers from ``first`` to ``last``, both included."""

    first: Number
    last: Annotated[int, WithJsonSchema({**_NODE, "examples": [65535]})]

    @model_validator(mode="after")
    def _fit(self) -> Nodes:
        check_nodes(self.as_range())
        return self

    def as_range(self) -> range:
        """The same as a range."""
        return range(self.first, self.last + 1)


class NewLease(Body):
    """A lease that is wanted."""

    nodes: Annotated[Nodes, Field(description="To choose from, both ends included.")]
    layout: Layout
    holder: Holder = ""
    now_ms: Annotated[Ms, Field(description="The holder's clock: milliseconds since the Unix epoch.")]
    span_ms: Span = SPAN_MS
    never_used: Annotated[bool, Field(description="Whether the node number must never have been granted.")] = False


class HeldLease(Body):
    """A lease as it is held, to be extended."""

    floor_ms: Ms
    until_ms: Ms
    now_ms: Annotated[Ms, Field(description="The holder's clock: milliseconds since the Unix epoch.")]


# --- answers ------------------------------------------------------------------------------------------------------

Text64 = Annotated[str, Field(pattern="^-?[0-9]{1,19}$", examples=["1"])]


class Integers(TypedDict):
    """Integers, in the order in which they were taken; in a row as a rule, not always."""

    namespace: Annotated[str, Field(examples=["orders"])]
    ids: Annotated[list[Text64], Field(examples=[["1", "2", "3"]])]


class Reserved(TypedDict):
    """A segment: the integers ``first``, ``first + stride``, … ``last``."""

    namespace: Annotated[str, Field(examples=["orders"])]
    first: Text64
    last: Annotated[Text64, Field(examples=["1000"])]
    stride: Annotated[int, Field(examples=[1])]
    count: Annotated[int, Field(description="Fewer than asked for where fewer are left.", examples=[1000])]


class GivenBack(TypedDict):
    """Whether the tail was the last that was reserved, and so is reserved anew by whoever comes next."""

    taken_back: bool


class NamespaceFacts(TypedDict):
    """What the store keeps of a namespace."""

    namespace: Annotated[str, Field(examples=["orders"])]
    high_water: Annotated[
        Text64, Field(description="The last integer reserved; a stride before the first if there is none yet.")
    ]
    maximum: Annotated[Text64, Field(examples=[str(MAX_INTEGER)])]
    stride: Annotated[int, Field(examples=[1])]
    largest: Annotated[int, Field(description="The largest count that was ever reserved at once.", examples=[1000])]
    identity: Annotated[str, Field(description="The server that it was last written on.")]


class Namespaces(TypedDict):
    """All namespaces, by name."""

    sequences: list[NamespaceFacts]


class Minted(TypedDict):
    """The text of each ID; a snowflake's is decimal."""

    scheme: Annotated[str, Field(examples=["snowflake"])]
    ids: Annotated[list[str], Field(examples=[["175928847299117063"]])]


class FieldFacts(TypedDict):
    """A field of an ID."""

    name: str
    role: str
    bits: Annotated[list[int], Field(description="Its highest and its lowest bit.", examples=[[63, 22]])]
    value: Annotated[int | str, Field(description="A string where it may exceed 32 bits.")]
    meaning: str


class AnatomyFacts(TypedDict):
    """One reading of an ID."""

    scheme: Annotated[str, Field(examples=["ulid"])]
    layout: str | None
    text: str
    bytes: Annotated[str, Field(description="In hexadecimal.")]
    int: str
    time: Annotated[str | None, Field(description="RFC 3339, in UTC.", examples=["2016-07-30T23:54:10.259Z"])]
    likelihood: float
    why: str
    fields: list[FieldFacts]


class Anatomies(TypedDict):
    """Every scheme that the ID can be of, likeliest first."""

    input: str
    anatomies: list[AnatomyFacts]


class PoolFacts(TypedDict):
    """What the store keeps of a pool."""

    name: Annotated[str, Field(examples=["sno"])]
    layout: Annotated[str, Field(examples=["sno/1"])]
    identity: Annotated[str, Field(description="The server that it was last written on.")]
    span_ms: Annotated[int, Field(description="The longest span that it grants.", examples=[SPAN_MS])]
    floor_ms: Annotated[int, Field(description="No window begins before.")]
    quarantine_until_ms: Annotated[int, Field(description="Until then, nothing is granted.")]
    history_lost: bool


class Pools(TypedDict):
    """All pools, by name."""

    pools: list[PoolFacts]


class NodeFacts(TypedDict):
    """What the store keeps of a node number that was granted at least once."""

    pool: Annotated[str, Field(examples=["sno"])]
    node: int
    floor_ms: int
    until_ms: Annotated[int, Field(description="The end of its last window.")]
    span_ms: Annotated[int, Field(examples=[SPAN_MS])]
    identity: Annotated[str, Field(description="The server that it was last written on.")]
    held: Annotated[bool, Field(description="Whether it was neither released nor revoked.")]
    holder: str | None


class Leases(TypedDict):
    """All node numbers that were granted at least once, by pool and number."""

    leases: list[NodeFacts]


class LeaseFacts(TypedDict):
    """A lease: the right to mint IDs of a node number whose times lie in ``[floor_ms, until_ms)``."""

    pool: Annotated[str, Field(examples=["sno"])]
    node: int
    floor_ms: int
    until_ms: int
    token: Annotated[str, Field(description="Proves the right to extend it: keep it secret.", examples=["0f" * 16])]


class StoreFacts(TypedDict):
    """What the service's store says of itself."""

    url: Annotated[str, Field(description="Without the password.", examples=["sqlite:////var/lib/mintage/ids.db"])]
    promise: Annotated[str, Field(description="How far uniqueness reaches: process, host or shared.")]
    server: str
    identity: str
    now_ms: Annotated[int, Field(description="The store's clock: milliseconds since the Unix epoch.")]
    warnings: list[str]


def _namespace(record: NamespaceRecord) -> NamespaceFacts:
    return {
        "namespace": record.name,
        "high_water": str(record.high_water),
        "maximum": str(record.maximum),
        "stride": record.stride,
        "largest": record.largest,
        "identity": record.identity,
    }


def _pool(record: PoolRecord) -> PoolFacts:
    return {
        "name": record.name,
        "layout": record.layout,
        "identity": record.identity,
        "span_ms": record.span_ms,
        "floor_ms": record.floor_ms,
        "quarantine_until_ms": record.quarantine_until_ms,
        "history_lost": record.history_lost,
    }


def _node(record: NodeRecord) -> NodeFacts:
    return {
        "pool": record.pool,
        "node": record.node,
        "floor_ms": record.floor_ms,
        "until_ms": record.until_ms,
        "span_ms": record.span_ms,
        "identity": record.identity,
        "held": record.token is not None,
        "holder": record.holder,
    }


def _lease(lease: Lease) -> LeaseFacts:
    return {
        "pool": lease.pool,
        "node": lease.node,
        "floor_ms": lease.floor_ms,
        "until_ms": lease.until_ms,
        "token": lease.token,
    }


# --- sequences ----------------------------------------------------------------------------------------------------

_NAMED: Final = ("config.name",)
_COUNTED: Final = (*_NAMED, "field.range", "request.namespace", "request.namespaces", "sequence.exhausted")


@operation("POST", "/v1/sequences/{namespace}:next", name="next", right="next", codes=_COUNTED)
async def _next(ask: Ask, namespace: Namespace, count: Count = 1) -> Integers:
    """Take the next integers of a namespace.

    They are handed out of what the service holds. In the service's last resort (`fallback = "random"`), the answer has
    the header `X-Mintage-Fallback: random`, and its integers are not known to be unique.
    """
    ids = await ask.service.next(ask.caller, namespace, count)
    return {"namespace": namespace, "ids": [str(each) for each in ids]}


@operation("POST", "/v1/sequences/{namespace}:reserve", name="reserve", right="reserve", codes=_COUNTED)
async def _reserve(ask: Ask, namespace: Namespace, count: Reserve = 1000) -> Reserved:
    """Reserve a segment in the store, to be handed out by the client.

    Each call is a durable write of the store's. What the client does not hand out is skipped, unless it is given back.
    """
    segment = await ask.service.segment(ask.caller, namespace, count)
    return {
        "namespace": namespace,
        "first": str(segment.first),
        "last": str(segment.last),
        "stride": segment.stride,
        "count": len(segment),
    }


@operation(
    "POST",
    "/v1/sequences/{namespace}:give-back",
    name="give_back",
    right="reserve",
    codes=(*_NAMED, "field.range"),
)
async def _give_back(ask: Ask, namespace: Namespace, body: Tail) -> GivenBack:
    """Give back the unused tail of a segment.

    It is taken back if it is still the last that was reserved, and if the same worker gave it to the same key. Ask once
    only, even if no answer comes: by then its integers may belong to somebody else.
    """
    segment = Segment(namespace, body.first, body.last, body.stride)
    return {"taken_back": await ask.service.give_back(ask.caller, segment, body.first_unused)}


@operation("GET", "/v1/sequences", name="describe", right="describe")
async def _list_namespaces(ask: Ask) -> Namespaces:
    """List all namespaces.

    This needs the right `describe` for all names, `*`.
    """
    records = await ask.service.ask(ask.caller, "describe", "", ask.service.store.list_namespaces)
    return {"sequences": [_namespace(each) for each in records]}


@operation("GET", "/v1/sequences/{namespace}", name="describe", right="describe", codes=(*_NAMED, "request.namespace"))
async def _find_namespace(ask: Ask, namespace: Namespace) -> NamespaceFacts:
    """Describe a namespace."""
    return _namespace(await ask.service.find_namespace(ask.caller, namespace))


@operation(
    "PUT",
    "/v1/sequences/{namespace}",
    name="create",
    right="create",
    codes=(*_NAMED, "field.range", "config.namespace"),
    statuses=(201, 200),
)
async def _put_namespace(ask: Ask, namespace: Namespace, body: NewNamespace = _ORDINARY) -> NamespaceFacts:
    """Make a namespace, or raise the floor of one.

    A namespace has the integers from `start` to `maximum` that are `offset` modulo `stride`; without a body, all of
    them from 1 on. With `floor` alone, the floor is raised, and the answer is 200: a floor never moves back, and makes
    a namespace that does not exist. What was reserved before is still handed out, also after it was given back.
    """
    store = ask.service.store
    if body.is_floor:
        ask.status = 200
        record = await ask.service.ask(ask.caller, "create", namespace, store.raise_floor, namespace, body.floor)
        ask.service.made(namespace)
        return _namespace(record)
    record = await ask.service.ask(
        ask.caller,
        "create",
        namespace,
        store.create_namespace,
        namespace,
        start=body.start,
        maximum=body.maximum,
        stride=body.stride,
        offset=body.offset,
    )
    ask.service.made(namespace)
    return _namespace(record)


# --- IDs ----------------------------------------------------------------------------------------------------------


@operation(
    "POST",
    "/v1/ids/{scheme}",
    name="mint",
    right="mint",
    codes=(
        "field.range",
        "config.pool",
        "config.span",
        "clock.rollback",
        "clock.range",
        "sequence.exhausted",
        "lease.none_free",
        "lease.clock",
        "lease.lost",
    ),
)
async def _mint(ask: Ask, scheme: Scheme, count: Count = 1, meta: Meta = 0) -> Minted:
    """Mint IDs of a scheme, with a node number that the service leases."""
    return {"scheme": scheme, "ids": await ask.service.mint(ask.caller, scheme, count, meta)}


@operation("GET", "/v1/inspect/{id}", name="inspect", codes=("parse.unknown",))
async def _inspect(_ask: Ask, id: ID) -> Anatomies:
    """Take an ID apart: every scheme that it can be, likeliest first."""
    found: list[AnatomyFacts] = [each.as_dict() for each in anatomy.inspect(id)]  # type: ignore[misc]
    return {"input": id, "anatomies": found}


# --- leases -------------------------------------------------------------------------------------------------------


@operation("GET", "/v1/pools", name="describe", right="describe")
async def _list_pools(ask: Ask) -> Pools:
    """List all pools of node numbers.

    This needs the right `describe` for all names, `*`.
    """
    records = await ask.service.ask(ask.caller, "describe", "", ask.service.store.list_pools)
    return {"pools": [_pool(each) for each in records]}


@operation("PUT", "/v1/pools/{pool}", name="create", right="create", codes=(*_NAMED, "config.span", "config.pool"))
async def _put_pool(ask: Ask, pool: Pool, body: NewPool) -> PoolFacts:
    """Make a pool of node numbers, or end the quarantine of one.

    Of a pool that exists, nothing but the quarantine changes: end it only if nothing that minted from the pool still
    runs.
    """
    make = ask.service.store.create_pool
    record = await ask.service.ask(ask.caller, "create", pool, make, pool, layout=body.layout, span_ms=body.span_ms)
    return _pool(record)


@operation("GET", "/v1/leases", name="describe", right="describe", codes=_NAMED)
async def _list_leases(ask: Ask, pool: Pool = "") -> Leases:
    """List who holds which node number, of one pool or of all.

    Without `pool`, this needs the right `describe` for all names, `*`. Tokens are not shown.
    """
    records = await ask.service.ask(ask.caller, "describe", pool, ask.service.store.list_leases, pool or None)
    return {"leases": [_node(each) for each in records]}


@operation(
    "POST",
    "/v1/leases/{pool}",
    name="lease",
    right="lease",
    codes=(*_NAMED, "field.range", "config.node", "config.span", "config.pool", "lease.none_free", "lease.clock"),
    statuses=(201,),
)
async def _acquire(ask: Ask, pool: Pool, body: NewLease) -> LeaseFacts:
    """Lease a node number that nobody can still be using.

    The holder may mint IDs of `node` whose times lie in `[floor_ms, until_ms)`, and no others. The first lease makes
    the pool.
    """
    lease = await ask.service.ask(
        ask.caller,
        "lease",
        pool,
        ask.service.store.acquire,
        pool,
        nodes=body.nodes.as_range(),
        layout=body.layout,
        holder=body.holder,
        now_ms=body.now_ms,
        span_ms=body.span_ms,
        never_used=body.never_used,
    )
    return _lease(lease)


@operation(
    "PATCH",
    "/v1/leases/{pool}/{node}",
    name="lease",
    right="lease",
    codes=(*_NAMED, "field.range", "lease.lost", "lease.clock"),
)
async def _extend(ask: Ask, pool: Pool, node: Node, lease_token: Token, body: HeldLease) -> LeaseFacts:
    """Extend a lease: its window ends a span from now, or later; it never gets shorter."""
    held = Lease(pool, node, body.floor_ms, body.until_ms, lease_token)
    extend = ask.service.store.extend
    return _lease(await ask.service.ask(ask.caller, "lease", pool, extend, held, now_ms=body.now_ms))


@operation(
    "DELETE",
    "/v1/leases/{pool}/{node}",
    name="lease",
    right="lease",
    codes=(*_NAMED, "field.range", "lease.lost"),
    statuses=(204,),
)
async def _release(ask: Ask, pool: Pool, node: Node, lease_token: Token, used_until_ms: UsedUntil) -> None:
    """Release a lease; the next holder may start at `used_until_ms`."""
    held = Lease(pool, node, 0, 0, lease_token)
    release = ask.service.store.release
    await ask.service.ask(ask.caller, "lease", pool, release, held, used_until_ms=used_until_ms)


@operation(
    "POST",
    "/v1/leases/{pool}/{node}:revoke",
    name="lease",
    right="admin",
    codes=(*_NAMED, "field.range", "lease.unknown"),
)
async def _revoke(ask: Ask, pool: Pool, node: Node) -> NodeFacts:
    """Take a node number from its holder, at the end of the holder's window.

    The holder mints to the end of its window and cannot extend it; nobody else gets the node number before that.
    """
    return _node(await ask.service.ask(ask.caller, "admin", pool, ask.service.store.revoke, pool, node))


@operation("GET", "/v1/store", name="describe", right="describe")
async def _describe(ask: Ask) -> StoreFacts:
    """Describe the service's store.

    This needs the right `describe` for all names, `*`.
    """
    found = await ask.service.ask(ask.caller, "describe", "", ask.service.store.describe)
    return {
        "url": found.url,
        "promise": found.promise,
        "server": found.server,
        "identity": found.identity,
        "now_ms": found.now_ms,
        "warnings": list(found.warnings),
    }


OPERATIONS: Final[tuple[Operation, ...]] = (
    _next,
    _reserve,
    _give_back,
    _list_namespaces,
    _find_namespace,
    _put_namespace,
    _mint,
    _inspect,
    _list_pools,
    _put_pool,
    _list_leases,
    _acquire,
    _extend,
    _release,
    _revoke,
    _describe,
)


# --- routing ------------------------------------------------------------------------------------------------------


class Operations(BaseRoute):
    """All operations as one route. A name may hold a colon, so a path may be of several."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Which operations the path is of, by method."""
        if scope["type"] != "http":
            return Match.NONE, {}
        path = scope["path"]
        found: dict[str, Operation] = {}
        for each in OPERATIONS:
            if each.pattern.fullmatch(path):
                found.setdefault(each.method, each)
        if "GET" in found:
            found["HEAD"] = found["GET"]
        return (Match.FULL, {"mintage.operations": found}) if found else (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers."""
        found: dict[str, Operation] = scope["mintage.operations"]
        exchange = exchange_of(scope)
        chosen = found.get(scope["method"])
        if chosen is None:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(found))})
        exchange.operation = chosen.name
        caller = self._service.caller(token_of(Request(scope)))
        exchange.caller = caller.name
        response = await chosen.answer_to(scope, receive, self._service, caller)
        if chosen.method == "GET":
            response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)
