"""mintage's own HTTP interface. Each resource has a module with its parameters, answers and operations.

Integers of 64 bits are strings in JSON, as in the JSON of protobuf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from mintage.server.http.v1 import ids, leases, sequences, store, who

if TYPE_CHECKING:
    from mintage.server.http.v1.operation import Operation

OPERATIONS: Final[tuple[Operation, ...]] = (
    *sequences.OPERATIONS,
    *ids.OPERATIONS,
    *leases.OPERATIONS,
    *who.OPERATIONS,
    *store.OPERATIONS,
)
ROUTES: Final = tuple(Route(each.path, each.endpoint, methods=[each.method]) for each in OPERATIONS)
