"""``/v1/store``: the service's store."""

from __future__ import annotations

from typing import Annotated, TypedDict

from msgspec import Meta

from mintage.server.http.v1.operation import Ask, operation
from mintage.server.http.v1.schemas import members_of


class StoreFacts(TypedDict):
    """The description of the service's store."""

    url: Annotated[str, Meta(description="Without the password.", examples=["sqlite:////var/lib/mintage/ids.db"])]
    promise: Annotated[str, Meta(description="How far uniqueness reaches: process, host or shared.")]
    server: str
    identity: str
    now_ms: Annotated[int, Meta(description="The store's clock: milliseconds since the Unix epoch.")]
    warnings: list[str]


@operation("GET", "/v1/store", right="describe")
async def _describe(ask: Ask) -> StoreFacts:
    """Describe the service's store.

    This needs the right `describe` for all names, `*`.
    """
    return members_of(StoreFacts, await ask.call("", ask.service.store.describe))
