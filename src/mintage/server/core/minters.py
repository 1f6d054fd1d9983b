"""Mint IDs of all schemes: one generator for each, created for its first ID, with a node number that it leases."""

from __future__ import annotations

import asyncio
import errno
import time
from collections import Counter, defaultdict
from datetime import datetime
from functools import partial
from typing import Final

from mintage.errors import FieldError, RequestError, StoreError
from mintage.formats import catalogue
from mintage.formats.kinds import KINDS, Generator
from mintage.rules import MAX_INTEGER, check_int
from mintage.server.config.settings import Settings
from mintage.server.core.metrics import Metrics
from mintage.server.core.threads import Shared, Threads, within
from mintage.store import Store

SLICE: Final = 256
"""The most IDs that are minted at once: about half a millisecond of work, in which the event loop may have to wait."""
_NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})


class Minters:
    """The generators of a service."""

    def __init__(self, settings: Settings, store: Store, metrics: Metrics) -> None:
        self._settings = settings
        self._store = store
        self._metrics = metrics
        # Apart from the threads of the store: minting in a layout with few IDs blocks a thread, of which each scheme
        # needs one at most.
        self._threads = Threads(len(KINDS), "mintage-mint")
        self.generators: dict[str, Generator] = {}
        """The generators that have minted so far, by scheme."""
        self._opening: Shared[None] = Shared()
        self._minting: Counter[str] = Counter()
        """By scheme, the number of IDs that are being minted."""
        # By scheme, one slice is minted at a time. Of the requests for more than a slice one goes on at a time, so that
        # at most one list grows, and a request for few IDs waits for a slice, not for a list.
        self._slices: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._lists: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._failed: dict[str, tuple[float, StoreError]] = {}
        """By scheme, the time at which the last slice failed, on a monotonic clock in seconds, and the reason."""
        # At most the IDs of one second, as a request that waits for more blocks a thread.
        a_second = max(1, settings.layout.ids_per_second)
        self._most = {each.name: a_second for each in KINDS.values() if each.layout}
        """By scheme, the most IDs that may be minted at a time; schemes without a layout have no such limit."""

    def ends(self) -> dict[str, datetime | None]:
        """Return, by scheme, the last time that its layout can hold; ``None`` if it has no such limit."""
        chosen = catalogue.of_layout(self._settings.layout)
        return {each.name: (chosen if each.layout else each.format).ends for each in KINDS.values()}

    async def mint(self, scheme: str, count: int, meta: int, key: str) -> list[str]:
        """Mint ``count`` IDs of a scheme that exists, for the key with that name.

        :raises MintError: as :meth:`Service.mint`.
        """
        most = self._most.get(scheme, MAX_INTEGER)
        check_int(count, "count", 1, min(self._settings.max_count, most))
        if self._minting[scheme] and self._minting[scheme] + count > most:
            raise RequestError(
                f"{self._minting[scheme]} IDs of {scheme} are being minted already; its layout has {most} a second: "
                f"try again in a second, or ask for fewer than {count}",
                code="request.busy",
                retry_after_ms=1000,
            )
        max_meta = KINDS[scheme].max_meta
        if not 0 <= meta <= max_meta:
            bounds = f"outside 0..{max_meta}" if max_meta else f"not 0: {scheme} has no metabyte"
            raise FieldError(f"meta {meta} is {bounds}", code="field.range")
        self._minting[scheme] += count
        came_s = time.monotonic()
        try:
            if scheme not in self.generators:
                deadline = asyncio.get_running_loop().time() + self._settings.max_wait_ms / 1000
                async with within(deadline):
                    await self._opening.run(scheme, partial(self._threads.run, self._make, scheme))
            if count <= SLICE:
                return await self._mint_slice(scheme, count, meta, came_s, key)
            ids: list[str] = []
            async with self._lists[scheme]:
                while len(ids) < count:
                    ids += await self._mint_slice(scheme, min(SLICE, count - len(ids)), meta, came_s, key)
            return ids
        finally:
            self._minting[scheme] -= count

    async def _mint_slice(self, scheme: str, count: int, meta: int, came_s: float, key: str) -> list[str]:
        async with self._slices[scheme]:
            failed_s, failure = self._failed.get(scheme, (0.0, None))
            if failure is not None and failed_s >= came_s:
                # The store kept an earlier request waiting for as long as any may wait: this one does not begin anew.
                raise failure
            try:
                ids = await self._threads.run(self._mint, scheme, count, meta)
            except StoreError as error:
                self._failed[scheme] = time.monotonic(), error
                raise
            self._failed.pop(scheme, None)
        self._metrics.ids(scheme, count, key)
        return ids

    def _mint(self, scheme: str, count: int, meta: int) -> list[str]:
        return list(map(str, KINDS[scheme].mint(self.generators[scheme], count, meta)))

    def _make(self, scheme: str) -> None:
        """Make the generator of a scheme, and lease its node number."""
        minted, settings = KINDS[scheme], self._settings
        lease = {
            "store": self._store,
            "span_ms": settings.span_ms,
            "on_lease_lost": "move",
            "max_wait_ms": settings.max_wait_ms,
        }
        chosen = {"layout": settings.layout, "nodes": settings.nodes} if minted.layout else {}
        try:
            generator = minted.generator(lease, **chosen)
        except OSError as error:
            # The scheme's module is imported now, and connections may have used up the files of this process.
            if error.errno not in _NO_FILES:
                raise
            raise RequestError(
                f"the service cannot open a file for its first ID of {scheme}: {error.strerror}: try again in a "
                "second, or raise the limit of open files",
                code="request.busy",
                retry_after_ms=1000,
            ) from error
        try:
            # It leases its node number for the first ID, which nobody gets.
            minted.mint(generator, 1)
        except BaseException:
            generator.close()
            raise
        self.generators[scheme] = generator

    def close(self) -> None:
        """Mint no more; the caller closes the generators."""
        self._threads.close()
