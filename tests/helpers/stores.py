"""Calls of stores with the arguments that most tests use."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from mintage.errors import LeaseError
from mintage.rules import SPAN_MS, Lease
from mintage.store import new_token
from mintage.store.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from mintage.store import Store

T = TypeVar("T")

STALLS = 5
"""The stalls of the machine, one in each call, after which a clock counts as wrong."""

RUN_COLUMNS = ("start", "run_holder", "run_first", "run_last", "run_since_ms", "run_until_ms")
"""The columns of a namespace that the schema got with its past runs."""
PATIENCE_MS = 60_000
"""The longest timeout that a store may have."""
LONG_MS = 600_000
"""A span that outlasts restarts and failovers, also on a slow machine."""
LIMIT_MS = 60_000
"""The largest difference of clocks that a store accepts in tests that use one time for several verbs."""


def patient(url: str) -> str:
    """Return the URL of a store whose verbs do not fail where the machine or its server stalls for seconds."""
    return f"{url}{'&' if '?' in url else '?'}timeout_ms={PATIENCE_MS}"


def prepare(store: Store) -> None:
    """Create the tables or the file of a store."""
    assert isinstance(store, Ledger)
    store.prepare()


def on_time(verb: Callable[[], T]) -> T:
    """Return the result of a verb with the current time; ask again if the machine stalled before the store had it."""
    for _ in range(STALLS):
        try:
            return verb()
        except LeaseError as error:
            if error.code != "lease.clock":
                raise
    return verb()


def acquire(
    store: Store,
    pool: str = "p",
    *,
    nodes: range = range(4),
    now_ms: int | None = None,
    span_ms: int = SPAN_MS,
    holder: str = "me",
    never_used: bool = False,
) -> Lease:
    """Lease a node number of a pool, by default with the clock of the store."""
    return on_time(
        lambda: store.acquire(
            pool,
            nodes=nodes,
            layout="test",
            holder=holder,
            now_ms=store.now_ms() if now_ms is None else now_ms,
            span_ms=span_ms,
            never_used=never_used,
        )
    )


def extend(store: Store, lease: Lease, ahead_ms: int = 0) -> Lease:
    """Extend a lease with the clock of the store, or one that is ahead of it."""
    token = new_token()
    return on_time(lambda: store.extend(lease, now_ms=store.now_ms() + ahead_ms, next_token=token))
