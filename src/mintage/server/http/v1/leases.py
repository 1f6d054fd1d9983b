"""``/v1/pools`` and ``/v1/leases``: node numbers and their holders."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, TypedDict, cast

from msgspec import UNSET, Meta, UnsetType

from mintage import rules
from mintage.formats.catalogue import check_share
from mintage.protocol.records import to_json
from mintage.rules import Lease, NodeRecord
from mintage.server.http.v1.operation import Ask, Body, operation
from mintage.server.http.v1.schemas import NAME, Ms, PageLimit, matching, members_of, page

# --- parameters and bodies ------------------------------------------------------------------------------------------


Pool = Annotated[str, Meta(description="The pool.", examples=["sno"], extra_json_schema=NAME, extra={"named": "pool"})]
AfterPool = Annotated[Pool, Meta(description="List only pools that sort after this name.")]
# The rules check the range of spans and node numbers, with their own errors.
Span = Annotated[
    int,
    Meta(
        description="How long a window is, in milliseconds.",
        examples=[rules.SPAN_MS],
        extra_json_schema={"minimum": rules.MIN_SPAN_MS, "maximum": rules.MAX_SPAN_MS},
    ),
]
Layout = Annotated[
    str, matching("^[ -~]{1,500}$", description="What the pool's node numbers mean.", examples=["sno/1"])
]
Holder = Annotated[
    str,
    matching(r"^[^\x00]*$", max_length=200, description="Who holds it, for people.", examples=["web-1:4242"]),
]
_TOKEN: Final = "^[A-Za-z0-9._-]{1,64}$"  # noqa: S105 - the form of one
_NODE: Final = {"minimum": 0, "maximum": rules.MAX_NODES - 1}
Node = Annotated[
    int,
    Meta(
        ge=-rules.MAX_INTEGER,
        le=rules.MAX_INTEGER,
        description="The node number.",
        examples=[0],
        extra_json_schema=_NODE,
    ),
]
PastNode = Annotated[int, Meta(ge=0, le=rules.MAX_NODES - 1, description="The node number.", examples=[0])]
AfterNode = Annotated[PastNode, Meta(description="List only node numbers of `pool` above this one.")]
BeforeMs = Annotated[
    Ms,
    Meta(description="List only windows that began at this time or before, in milliseconds since the Unix epoch."),
]
UsedUntil = Annotated[
    Ms, Meta(description="The first time that was not minted in, in milliseconds since the Unix epoch.")
]
Token = Annotated[
    str,
    matching(_TOKEN, description="The token of the lease.", examples=["0f" * 16]),
    Meta(extra={"header": "Lease-Token"}),
]


class Nodes(Body):
    """Node numbers from ``first`` to ``last``, both included."""

    first: Annotated[int, Meta(examples=[0], extra_json_schema=_NODE)]
    last: Annotated[int, Meta(examples=[65535], extra_json_schema=_NODE)]

    def __post_init__(self) -> None:
        """Check the range."""
        rules.check_nodes(self.as_range())

    def as_range(self) -> range:
        """Return the node numbers as a range."""
        return range(self.first, self.last + 1)


class NewPool(Body):
    """A pool to create."""

    layout: Layout
    span_ms: Span = rules.SPAN_MS
    never_used: Annotated[
        bool,
        Meta(description="States that no ID was ever minted with its node numbers, which ends its quarantine."),
    ] = False
    history_ms: Annotated[
        Annotated[int, Meta(ge=0, le=rules.MAX_HISTORY_MS)] | UnsetType,
        Meta(
            description="How long past grants are kept, in milliseconds; 0 removes them. It changes an existing pool.",
            examples=[rules.HISTORY_MS],
            extra_json_schema={"default": rules.HISTORY_MS},
        ),
    ] = UNSET
    nodes: Annotated[
        Nodes | UnsetType,
        Meta(description="The only numbers that it grants; all without it. It narrows an existing pool."),
    ] = UNSET
    wider_from_ms: Annotated[
        Ms | UnsetType,
        Meta(
            description="States that nobody else mints under `nodes` from this time on, in milliseconds since the Unix "
            "epoch, so that an existing pool may have more. It must have come.",
        ),
    ] = UNSET

    def __post_init__(self) -> None:
        """Check the span, and that the share is in the layout."""
        rules.check_span(self.span_ms)
        if self.nodes is not UNSET:
            check_share(self.layout, self.nodes.as_range())


class NewLease(Body, kw_only=True):
    """A request for a lease."""

    nodes: Annotated[Nodes, Meta(description="To choose from, both ends included.")]
    layout: Layout
    holder: Holder = ""
    now_ms: Annotated[Ms, Meta(description="The holder's clock: milliseconds since the Unix epoch.")]
    span_ms: Span = rules.SPAN_MS
    never_used: Annotated[bool, Meta(description="Whether the node number must never have been granted.")] = False

    def __post_init__(self) -> None:
        """Check the span."""
        rules.check_span(self.span_ms)


class HeldLease(Body):
    """A lease to extend, as its holder knows it."""

    floor_ms: Ms
    until_ms: Ms
    now_ms: Annotated[Ms, Meta(description="The holder's clock: milliseconds since the Unix epoch.")]
    next_token: Annotated[
        str,
        matching(
            _TOKEN,
            description="The token from now on, drawn at random; the same one again if no answer came.",
            examples=["f0" * 16],
        ),
    ]
    previous_token: Annotated[
        str,
        matching(
            "^[A-Za-z0-9._-]{0,64}$",
            description="The token before, if there was one: all that a replica may know that took over.",
            examples=["1e" * 16],
        ),
    ] = ""


# --- answers --------------------------------------------------------------------------------------------------------


class PoolFacts(TypedDict):
    """The store's record of a pool."""

    name: Annotated[str, Meta(examples=["sno"])]
    layout: Annotated[str, Meta(examples=["sno/1"])]
    identity: Annotated[str, Meta(description="The server that it was last written on.")]
    span_ms: Annotated[int, Meta(description="The longest span that it grants.", examples=[rules.SPAN_MS])]
    floor_ms: Annotated[int, Meta(description="No window begins before.")]
    quarantine_until_ms: Annotated[int, Meta(description="Until then, nothing is granted.")]
    history_lost: bool
    changes: Annotated[int, Meta(description="How often it was found on another server.", examples=[0])]
    history_ms: Annotated[int, Meta(description="How long it keeps past grants; 0 if it keeps none.")]
    history_from_ms: Annotated[int, Meta(description="When the history began; 0 if it has not begun.")]
    first_node: Annotated[int, Meta(description="The first number of its share.", examples=[0])]
    last_node: Annotated[int, Meta(description="The last number of its share.", examples=[511])]


class Pools(TypedDict):
    """A page of pools, by name."""

    pools: list[PoolFacts]


class NodeFacts(TypedDict):
    """The store's record of a node number that was granted at least once."""

    pool: Annotated[str, Meta(examples=["sno"])]
    node: int
    floor_ms: int
    until_ms: Annotated[int, Meta(description="The end of its last window.")]
    span_ms: Annotated[int, Meta(examples=[rules.SPAN_MS])]
    identity: Annotated[str, Meta(description="The server that it was last written on.")]
    held: Annotated[bool, Meta(description="Whether it was neither released nor revoked.")]
    holder: str | None
    cloned_ms: Annotated[
        int,
        Meta(description="When a copy of the holder last came with a token of before; 0 if none did.", examples=[0]),
    ]
    changes: Annotated[int, Meta(description="The pool's, when it was last written.", examples=[0])]
    since_ms: Annotated[int, Meta(description="The holder's clock at the grant; 0 if it is unknown.")]


class Leases(TypedDict):
    """A page of the node numbers that were granted at least once, by pool and number."""

    leases: list[NodeFacts]


class GrantFacts(TypedDict):
    """A past grant of a node number."""

    pool: Annotated[str, Meta(examples=["sno"])]
    node: int
    floor_ms: Annotated[int, Meta(description="The start of the window that the holder had.")]
    until_ms: Annotated[int, Meta(description="The end of that window.")]
    since_ms: Annotated[int, Meta(description="The holder's clock at the grant; 0 if it is unknown.")]
    holder: str


class Grants(TypedDict):
    """Past grants of a node number, the latest first."""

    grants: list[GrantFacts]


class LeaseFacts(TypedDict):
    """A lease: the right to mint IDs of a node number whose times lie in ``[floor_ms, until_ms)``."""

    pool: Annotated[str, Meta(examples=["sno"])]
    node: int
    floor_ms: int
    until_ms: int
    token: Annotated[str, Meta(description="Proves the right to extend it: keep it secret.", examples=["0f" * 16])]


_pool = partial(members_of, PoolFacts)
_grant = partial(members_of, GrantFacts)
_lease = partial(members_of, LeaseFacts)


def _node(record: NodeRecord) -> NodeFacts:
    values = to_json(record)
    # The token is left out: it proves the right to extend the lease.
    values["held"] = values.pop("token") is not None
    return cast("NodeFacts", values)


def _given(body: Body) -> dict[str, Any]:
    """Return the members of a body as arguments of the store's verb."""
    return {name: each.as_range() if isinstance(each, Nodes) else each for name, each in body.given().items()}


# --- operations -----------------------------------------------------------------------------------------------------


@operation("GET", "/v1/pools", right="describe", codes=("field.range",))
async def _list_pools(ask: Ask, after: AfterPool = "", limit: PageLimit = 0) -> Pools:
    """List pools of node numbers, by name.

    The pages are as those of `GET /v1/sequences`. This needs the right `describe` for all names, `*`.
    """
    return {"pools": await page(ask, "", limit, _pool, ask.service.store.list_pools, after)}


@operation("PUT", "/v1/pools/{pool}", right="create", codes=("config.span", "config.node", "config.pool"))
async def _put_pool(ask: Ask, pool: Pool, body: NewPool) -> PoolFacts:
    """Create a pool of node numbers if it does not exist.

    If the store cannot tell a new pool from a lost one, the pool begins in quarantine. `never_used` ends the
    quarantine: if an ID was minted with one of its node numbers, IDs repeat. A pool that has granted node numbers, and
    may have lost others, refuses it.

    `history_ms` is the time for which the pool keeps the past grants of its node numbers.

    `nodes` is the pool's share, for stores that know nothing of each other. An existing share is narrowed at once: the
    window of a holder outside of it runs to its end. It is widened only with `wider_from_ms`: if processes of another
    store mint under those numbers at that time or later, IDs repeat.
    """
    return _pool(await ask.call(pool, ask.service.store.create_pool, pool, **_given(body)))


@operation("GET", "/v1/pools/{pool}/leases/{node}/grants", right="describe", codes=("field.range",))
async def _list_grants(
    ask: Ask, pool: Pool, node: PastNode, before_ms: BeforeMs = rules.LATEST_MS, limit: PageLimit = 0
) -> Grants:
    """List the past grants of a node number, the latest first.

    The answer has the first `limit` whose windows began at `before_ms` or before. The current or last grant is not
    among them: `GET /v1/leases` has it. A pool keeps past grants for its `history_ms`.
    """
    return {"grants": await page(ask, pool, limit, _grant, ask.service.store.list_grants, pool, node, before_ms)}


@operation("GET", "/v1/leases", right="describe", codes=("field.range",))
async def _list_leases(ask: Ask, pool: Pool = "", after: AfterNode = -1, limit: PageLimit = 0) -> Leases:
    """List the node numbers of one pool or of all, with their holders.

    The pages are those of one pool, and otherwise as those of `GET /v1/sequences`: the answer has the first `limit`
    numbers of `pool` above `after`. Without `pool`, this needs the right `describe` for all names, `*`. Tokens are not
    shown.
    """
    return {"leases": await page(ask, pool, limit, _node, ask.service.store.list_leases, pool or None, after)}


@operation(
    "POST",
    "/v1/leases/{pool}",
    right="lease",
    codes=("field.range", "config.node", "config.span", "config.pool", "lease.none_free", "lease.clock"),
    statuses=(201,),
)
async def _acquire(ask: Ask, pool: Pool, body: NewLease) -> LeaseFacts:
    """Lease a node number that no earlier holder can still be using.

    The holder may mint IDs of `node` whose times lie in `[floor_ms, until_ms)`, and no others. The first lease creates
    the pool.
    """
    return _lease(await ask.call(pool, ask.service.store.acquire, pool, **_given(body)))


@operation("PATCH", "/v1/leases/{pool}/{node}", right="lease", codes=("field.range", "lease.lost", "lease.clock"))
async def _extend(ask: Ask, pool: Pool, node: Node, lease_token: Token, body: HeldLease) -> LeaseFacts:
    """Extend a lease: its window ends a span from now, or later, but never earlier. Its token changes.

    A holder with an old token, such as a copy of the holder, has lost the lease.
    """
    held = Lease(pool, node, body.floor_ms, body.until_ms, lease_token, body.previous_token)
    extend = ask.service.store.extend
    return _lease(await ask.call(pool, extend, held, now_ms=body.now_ms, next_token=body.next_token))


@operation("DELETE", "/v1/leases/{pool}/{node}", right="lease", codes=("field.range", "lease.lost"), statuses=(204,))
async def _release(ask: Ask, pool: Pool, node: Node, lease_token: Token, used_until_ms: UsedUntil) -> None:
    """Release a lease; the next holder may start at `used_until_ms`."""
    held = Lease(pool, node, 0, 0, lease_token)
    await ask.call(pool, ask.service.store.release, held, used_until_ms=used_until_ms)


@operation(
    "POST",
    "/v1/leases/{pool}/{node}:revoke",
    name="lease",
    right="admin",
    codes=("field.range", "lease.unknown"),
)
async def _revoke(ask: Ask, pool: Pool, node: Node) -> NodeFacts:
    """Revoke the lease of a node number, at the end of the holder's window.

    The holder mints to the end of its window and cannot extend it. No other holder gets the node number before that.
    """
    return _node(await ask.call(pool, ask.service.store.revoke, pool, node))
