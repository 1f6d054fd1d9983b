"""mintage's own HTTP interface. Each resource has a module with its parameters, answers and operations.

Integers of 64 bits are strings in JSON, as in the JSON of protobuf.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from mintage.errors import RequestError
from mintage.server.config.keys import token_of
from mintage.server.http.answers import Answer, Exchange, wrong_method
from mintage.server.http.v1 import ids, leases, sequences, store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mintage.server.core.service import Service
    from mintage.server.http.answers import Endpoints, Receive, Scope
    from mintage.server.http.v1.operation import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    *sequences.OPERATIONS,
    *ids.OPERATIONS,
    *leases.OPERATIONS,
    *store.OPERATIONS,
)


def finder(service: Service) -> Callable[[str], Endpoints]:
    """Return the function that finds the operations of a path. As a name may hold a colon, there may be several."""

    def find(path: str) -> Endpoints:
        found: dict[str, Operation] = {}
        for each in OPERATIONS:
            if each.pattern.fullmatch(path):
                found.setdefault(each.method, each)
        return {method: partial(_answer, service, each, found.values()) for method, each in found.items()}

    return find


async def _answer(
    service: Service,
    chosen: Operation,
    found: Collection[Operation],
    exchange: Exchange,
    scope: Scope,
    receive: Receive,
) -> Answer:
    exchange.operation = chosen.name
    caller = service.caller(token_of(scope["headers"]))
    exchange.caller = caller.name
    try:
        answer = await chosen.answer_to(scope, receive, service, caller)
    except RequestError as error:
        # A name may end like the verb of another operation. If no namespace has it, the client meant the verb.
        verbs = {each.method for each in found if ":" in each.path}
        if error.code == "request.namespace" and verbs and chosen.method not in verbs:
            raise wrong_method(exchange, scope["method"], verbs) from error
        raise
    if chosen.method == "GET":
        answer.headers["Cache-Control"] = "no-store"
    return answer
