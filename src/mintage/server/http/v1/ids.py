"""``/v1/ids`` and ``/v1/inspect``: IDs of all schemes."""

from __future__ import annotations

from typing import Annotated, TypedDict

from msgspec import Meta

from mintage.formats import anatomy
from mintage.formats.kinds import NAMES
from mintage.server.http.v1.operation import Ask, operation
from mintage.server.http.v1.schemas import Count

# --- parameters and bodies ------------------------------------------------------------------------------------------

Scheme = Annotated[
    str,
    Meta(description="The scheme.", examples=["snowflake"], extra_json_schema={"enum": list(NAMES)}),
    Meta(extra={"words": NAMES}),
]
Metabyte = Annotated[int, Meta(ge=0, le=255, description="sno's metabyte; 0 for others.", examples=[0])]
ID = Annotated[
    str,
    Meta(min_length=1, max_length=4096, description="An ID of any scheme.", examples=["01ARZ3NDEKTSV4RRFFQ69G5FAV"]),
]


# --- answers --------------------------------------------------------------------------------------------------------


class Minted(TypedDict):
    """The text of each ID; a snowflake's is decimal."""

    scheme: Annotated[str, Meta(examples=["snowflake"])]
    ids: Annotated[list[str], Meta(examples=[["175928847299117063"]])]


class FieldFacts(TypedDict):
    """A field of an ID."""

    name: str
    role: str
    bits: Annotated[list[int], Meta(description="Its highest and its lowest bit.", examples=[[63, 22]])]
    value: Annotated[int | str, Meta(description="A string where it may exceed 32 bits.")]
    meaning: str


class AnatomyFacts(TypedDict):
    """One reading of an ID."""

    scheme: Annotated[str, Meta(examples=["ulid"])]
    layout: str | None
    text: str
    bytes: Annotated[str, Meta(description="In hexadecimal.")]
    int: str
    time: Annotated[str | None, Meta(description="RFC 3339, in UTC.", examples=["2016-07-30T23:54:10.259Z"])]
    likelihood: float
    why: str
    fields: list[FieldFacts]


class Anatomies(TypedDict):
    """Every scheme that the ID can be of, likeliest first."""

    input: str
    anatomies: list[AnatomyFacts]


# --- operations -----------------------------------------------------------------------------------------------------


@operation(
    "POST",
    "/v1/ids/{scheme}",
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
async def _mint(ask: Ask, scheme: Scheme, count: Count = 1, meta: Metabyte = 0) -> Minted:
    """Mint IDs of a scheme, with a node number that the service leases."""
    ids = await ask.service.mint(ask.caller, scheme, count, meta)
    return {"scheme": scheme, "ids": ids}


@operation("GET", "/v1/inspect/{id}", name="inspect", codes=("parse.unknown",))
async def _inspect(ask: Ask, id: ID) -> Anatomies:
    """Take an ID apart, for every scheme that it can be of, likeliest first."""
    ask.service.pace(ask.caller)
    found: list[AnatomyFacts] = [each.as_dict() for each in anatomy.inspect(id)]  # type: ignore[misc]
    return {"input": id, "anatomies": found}
