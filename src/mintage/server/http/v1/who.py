"""``/v1/who``: which process minted an ID, or reserved an integer."""

from __future__ import annotations

from typing import Annotated, TypedDict, cast

from msgspec import Meta

from mintage.rules import MAX_INTEGER
from mintage.server.http.v1.ids import ID
from mintage.server.http.v1.operation import Ask, operation
from mintage.server.http.v1.sequences import Namespace, Text64
from mintage.who import who, who_reserved

# --- parameters -----------------------------------------------------------------------------------------------------

Integer = Annotated[int, Meta(ge=0, le=MAX_INTEGER, description="An integer of the namespace.", examples=[70123])]


# --- answers --------------------------------------------------------------------------------------------------------


class HolderFacts(TypedDict):
    """A process that has, or had, a lease."""

    text: Annotated[str, Meta(description="As the store has it.", examples=["web-1:4711:1732240000:1:0.1.0"])]
    host: str
    pid: int | None
    started: Annotated[str | None, Meta(description="RFC 3339, in UTC.")]
    generation: int | None
    version: Annotated[str | None, Meta(description="Of mintage, in that process.")]


class FindingFacts(TypedDict):
    """One answer to the question which process it was."""

    format: Annotated[str, Meta(examples=["sno"])]
    text: str
    time: Annotated[str | None, Meta(description="RFC 3339, in UTC.")]
    state: Annotated[
        str,
        Meta(
            description="held: a holder is known; forgotten: the history does not reach back; late: the holder got it "
            "only after the time of the ID; free: nobody had it.",
            examples=["held"],
        ),
    ]
    sentence: Annotated[str, Meta(description="The answer for people.")]
    why: Annotated[str, Meta(description="The reasons for and against this reading.")]
    pool: str | None
    node: int | None
    holder: HolderFacts | None
    since_ms: Annotated[int | None, Meta(description="When it was granted, by the clock of the holder.")]
    floor_ms: int | None
    until_ms: Annotated[int | None, Meta(description="The end of the holder's window.")]
    is_current: Annotated[bool, Meta(description="Whether the holder has the node number still.")]


class Findings(TypedDict):
    """An answer for each possible reading and pool, the best first."""

    input: str
    findings: list[FindingFacts]


class IntegerFacts(TypedDict):
    """Which process reserved an integer of a namespace, and when."""

    namespace: Annotated[str, Meta(examples=["orders"])]
    integer: Annotated[Text64, Meta(examples=["70123"])]
    state: Annotated[
        str,
        Meta(
            description="held: a holder is known; unknown: the client told no name; forgotten: the history does not "
            "reach back; free: nobody is known to have reserved it; unknown namespace.",
            examples=["held"],
        ),
    ]
    sentence: Annotated[str, Meta(description="The answer for people.")]
    holder: HolderFacts | None
    first: Annotated[
        Text64 | None, Meta(description="The first integer that it reserved with no other holder between.")
    ]
    last: Annotated[Text64 | None, Meta(description="The last of them.")]
    since_ms: Annotated[int | None, Meta(description="The store's clock when it reserved the first.")]
    until_ms: Annotated[int | None, Meta(description="The store's clock when it reserved the last.")]


# --- operations -----------------------------------------------------------------------------------------------------


@operation("GET", "/v1/who/{id}", right="describe", codes=("parse.unknown",))
async def _who(ask: Ask, id: ID) -> Findings:
    """Find which process minted an ID, from the leases that the store knows.

    This needs the right `describe` for all names, `*`.
    """
    found = await ask.call("", who, id, ask.service.store)
    return {"input": id, "findings": [cast("FindingFacts", each.as_dict()) for each in found]}


@operation("GET", "/v1/who/{namespace}/{integer}", right="describe", codes=("field.range",))
async def _who_reserved(ask: Ask, namespace: Namespace, integer: Integer) -> IntegerFacts:
    """Find which process reserved an integer of a namespace.

    The process of a service reserves for its clients.
    """
    found = await ask.call(namespace, who_reserved, namespace, integer, ask.service.store)
    return cast("IntegerFacts", found.as_dict())
