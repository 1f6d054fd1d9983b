"""``/v1/store``: the service's store."""

from __future__ import annotations

from typing import Annotated, Final, TypedDict

from msgspec import Meta

from mintage.server.http.v1.operation import Ask, operation


class StoreFacts(TypedDict):
    """The description of the service's store."""

    url: Annotated[str, Meta(description="Without the password.", examples=["sqlite:////var/lib/mintage/ids.db"])]
    promise: Annotated[str, Meta(description="How far uniqueness reaches: process, host or shared.")]
    server: str
    identity: str
    now_ms: Annotated[int, Meta(description="The store's clock: milliseconds since the Unix epoch.")]
    warnings: list[str]


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


OPERATIONS: Final = (_describe,)
