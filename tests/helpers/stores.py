"""Calls of stores with the arguments that most tests use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mintage.rules import SPAN_MS, Lease
from mintage.store.ledger import Ledger

if TYPE_CHECKING:
    from mintage.store import Store


RUN_COLUMNS = ("start", "run_holder", "run_first", "run_last", "run_since_ms", "run_until_ms")
"""The columns of a namespace that the schema got with its past runs."""


def prepare(store: Store) -> None:
    """Create the tables or the file of a store."""
    assert isinstance(store, Ledger)
    store.prepare()


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
    return store.acquire(
        pool,
        nodes=nodes,
        layout="test",
        holder=holder,
        now_ms=store.now_ms() if now_ms is None else now_ms,
        span_ms=span_ms,
        never_used=never_used,
    )
