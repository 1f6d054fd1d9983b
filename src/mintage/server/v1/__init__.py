"""mintage's own HTTP interface. Each resource has a module with its parameters, answers and operations.

Integers of 64 bits are strings in JSON, as in the JSON of protobuf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Match

from mintage.errors import RequestError
from mintage.server.exchange import exchange_of
from mintage.server.keys import token_of
from mintage.server.v1 import ids, leases, sequences, store

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from mintage.server.operation import Operation
    from mintage.server.service import Service

OPERATIONS: Final[tuple[Operation, ...]] = (
    *sequences.OPERATIONS,
    *ids.OPERATIONS,
    *leases.OPERATIONS,
    *store.OPERATIONS,
)


class Operations(BaseRoute):
    """All operations as one route. As a name may hold a colon, a path may match several operations."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return the operations that match the path, by method."""
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
        """Answer a request."""
        found: dict[str, Operation] = scope["mintage.operations"]
        exchange = exchange_of(scope)
        chosen = found.get(scope["method"])
        if chosen is None:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(found))})
        exchange.operation = chosen.name
        caller = self._service.caller(token_of(Request(scope)))
        exchange.caller = caller.name
        try:
            response = await chosen.answer_to(scope, receive, self._service, caller)
        except RequestError as error:
            # A name may end like the verb of another operation. If no namespace has it, the client meant the verb.
            verbs = {each.method for each in found.values() if ":" in each.path}
            if error.code == "request.namespace" and verbs and chosen.method not in verbs:
                raise HTTPException(405, headers={"Allow": ", ".join(sorted(verbs))}) from error
            raise
        if chosen.method == "GET":
            response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)


def routes(service: Service) -> list[BaseRoute]:
    """Return the one route of all operations."""
    return [Operations(service)]
