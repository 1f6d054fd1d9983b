"""The stores of the contract, and calls of them with the arguments that most tests use."""

from __future__ import annotations

import multiprocessing
import os
import uuid
import warnings
from typing import TYPE_CHECKING, Any

from mintage.errors import MintError
from mintage.store import Store, new_token
from tests.helpers.stores import LIMIT_MS, patient

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from mintage.rules import Lease
    from tests.servers import Server

BOUND_S = 60
"""Seconds after which a child counts as stuck; never waited for otherwise."""

SERVERS = ["mariadb", "mysql", "postgresql", "redis", "redis_sentinel", "redis_cluster", "valkey", "etcd"]
SERVERS += ["kubernetes", "http"]
SERVERS += [name for name in os.environ.get("MINTAGE_MORE_STORES", "").split(",") if name]
PAIRS = ["mariadb+redis", "sqlite+redis"]
STORES = ["memory", "sqlite", *SERVERS, *PAIRS]

LAYOUT = "test"
SPAN_MS = 30_000
"""The longest that a pool grants if it was not made for more."""
PAST_MS = 1_500
"""The offset of callers' clocks here: well within the limit, even on a slow machine."""
FAR_MS = LIMIT_MS + 3_000


def server(request: pytest.FixtureRequest, name: str) -> Server:
    found: Server = request.getfixturevalue(name)
    return found


def url_of(request: pytest.FixtureRequest, tmp_path: Path, name: str) -> str:
    if "+" in name:
        front, _, cache = name.partition("+")
        return f"{url_of(request, tmp_path, front)}?cache={url_of(request, tmp_path, cache)}"
    match name:
        case "memory":
            return f"memory:{uuid.uuid4()}"
        case "sqlite":
            return f"sqlite:///{tmp_path}/ids.db"
        case _:
            return patient(server(request, name).url)


def extend(store: Store, lease: Lease, *, now_ms: int) -> Lease:
    return store.extend(lease, now_ms=now_ms, next_token=new_token())


def new_pool(store: Store, pool: str = "p", *, layout: str = LAYOUT) -> None:
    """Create a pool that grants at once, also in a store that does not know which pools it had."""
    store.create_pool(pool, layout=layout, never_used=True)


def acquire(
    store: Store,
    now_ms: int,
    pool: str = "p",
    *,
    nodes: range = range(1),
    span_ms: int = SPAN_MS,
    holder: str = "me",
    **options: bool,
) -> Lease:
    return store.acquire(pool, nodes=nodes, layout=LAYOUT, holder=holder, now_ms=now_ms, span_ms=span_ms, **options)


def shown(store: Store, lease: Lease) -> str:
    """Return the token as lists show it; a service keeps it to itself."""
    return "" if store.url.scheme == "http" else lease.token


def forked(run: Callable[[], Any]) -> Any:
    """Return the result of a function in a forked child, or the code of its error."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)

    def child() -> None:
        try:
            sending.send(run())
        except MintError as error:
            sending.send(error.code)

    with warnings.catch_warnings():
        # Python 3.12 warns of forks beside threads, which are the subject of this test.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = context.Process(target=child)
        process.start()
    sending.close()
    try:
        assert receiving.poll(BOUND_S), "the child is stuck"
        return receiving.recv()
    finally:
        process.kill()
        process.join()
        process.close()
        receiving.close()
