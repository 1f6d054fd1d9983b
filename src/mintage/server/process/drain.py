"""Stop serving: no new connection, an answer to each request that was sent, and then the end of the process."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from mintage.server.core.service import Service
    from mintage.server.loop.accept import Server

FLUSH_TIMEOUT_S: Final = 1.0
"""The time limit for sending written data at the end of the grace period,"""
SHUTDOWN_TIMEOUT_S: Final = 2.0
"""and then for releasing leases and giving tails back."""

_log = structlog.get_logger("mintage.server")


async def drain(service: Service, servers: Sequence[Server], hurry: asyncio.Event) -> None:
    """Accept no connections, answer all requests that were sent, and close connections once they are silent."""
    _log.info("stopping", pid=os.getpid(), connections={name: len(each) for name, each in service.connections.items()})
    service.draining = True
    service.lane.drain()
    for server in servers:
        server.close()
    grace_s = service.settings.grace_ms / 1000
    deadline = time.monotonic() + grace_s
    while (left := service.open_connections()) and time.monotonic() < deadline and not hurry.is_set():
        for each in left:
            each.finish()
        with suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), min(0.5, grace_s / 4))
    for each in left:
        each.close()
    # Clients that read get all answers that are written.
    deadline = time.monotonic() + FLUSH_TIMEOUT_S
    while service.open_connections() and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    for each in service.open_connections():
        each.abort()
    if left:
        _log.warning("connections closed at the end of the grace period", connections=len(left))


async def give_all_back(service: Service) -> None:
    """Release leases and give tails back, as far as the store answers in time."""
    try:
        await asyncio.wait_for(service.close(), SHUTDOWN_TIMEOUT_S)
    except TimeoutError:
        _log.warning("not everything was given back", store=str(service.store.url))


def drop_unwritten_output() -> None:
    """Drop output that cannot be written, as to a full disk: it must not make the exit code that of a failure."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def force_exit() -> None:
    """End the process now if a thread still waits for a store that is away: a normal exit would wait for the thread."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        logging.shutdown()
        os._exit(0)
