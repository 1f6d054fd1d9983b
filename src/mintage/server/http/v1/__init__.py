"""mintage's own HTTP interface. Each resource has a module with its parameters, answers and operations.

Integers of 64 bits are strings in JSON, as in the JSON of protobuf.
"""

from __future__ import annotations

from typing import Final

from starlette.routing import Route

from mintage.server.http.v1 import ids, leases, sequences, store, who
from mintage.server.http.v1.operation import Operation

OPERATIONS: Final = [
    each
    for module in (sequences, ids, leases, who, store)
    for each in vars(module).values()
    if isinstance(each, Operation)
]
ROUTES: Final = tuple(Route(each.path, each.endpoint, methods=[each.method]) for each in OPERATIONS)
