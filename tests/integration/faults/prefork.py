"""The application of gunicorn: IDs of generators that were created and used before it forked its workers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from mintage import Sequence, locality, sno, snowflake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

COUNT = 200
STORE = os.environ["STORE"]
MAX_WAIT_MS = 60_000  # a slow machine is no reason to fail
LEASED: list[Any] = [
    sno.Generator(store=STORE, span_ms=2000, max_wait_ms=MAX_WAIT_MS),
    snowflake.Generator(store=STORE, span_ms=2000, max_wait_ms=MAX_WAIT_MS),
    locality.Generator(store=STORE, span_ms=2000, max_wait_ms=MAX_WAIT_MS, counter=0),
]
INTEGERS = Sequence("orders", STORE, step=100, max_wait_ms=MAX_WAIT_MS)


def mint() -> dict[str, list[int]]:
    """Return IDs of the default generators and of leased ones, as integers."""
    made: dict[str, list[int]] = {"default sno": [int(sno.new()) for _ in range(COUNT)]}
    made["default snowflake"] = [snowflake.new() for _ in range(COUNT)]
    made["default locality"] = [int(locality.new()) for _ in range(COUNT)]
    for generator in LEASED:
        made[type(generator).__module__] = [int(minted) for minted in generator.batch(COUNT)]
    made["sequence"] = [integer for part in INTEGERS.batch(COUNT) for integer in part]
    return made


OF_THE_PARENT = mint()


def app(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Answer with the IDs that the parent minted, or with new ones."""
    ids = OF_THE_PARENT if environ["PATH_INFO"] == "/parent" else mint()
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"pid": os.getpid(), "ids": ids}).encode()]
