"""Reads of the store that all viewers of a worker share.

A page that is open costs the store one read of each of its lists in five seconds, whatever the number of viewers.
Nothing is read while no page is open. If the store is away, a page shows what was read before, marked with its age.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mintage.errors import MintError
from mintage.server.config.keys import Caller
from mintage.server.core.health import PATIENCE_S
from mintage.server.core.service import Service
from mintage.server.core.threads import Shared

FRESH_S: Final = 5.0
"""The time for which all viewers get the same answer, in seconds."""
STALE_S: Final = 600.0
"""The time for which an answer is shown while the store is away, in seconds."""
LONG_PATIENCE_S: Final = 15.0
"""The longest wait for a function that reads several pages. Each of its verbs has the store's own timeout."""
_UNUSED_S: Final = 60.0
MOST_READINGS: Final = 256
"""The most answers that are kept."""
MOST_RECORDS: Final = 131_072
"""The most records of all answers that are kept, of about half a kilobyte each. One answer may have more."""


@dataclass(slots=True)
class _Reading:
    """The last answer of the store to a read, and its last failure."""

    value: Any = None
    read_s: float = -STALE_S
    error: MintError | None = None
    tried_s: float = -STALE_S
    forgetting: asyncio.TimerHandle | None = None
    """The call that forgets it, after no page has read it for a while."""


class Reads:
    """The reads of a worker's console."""

    def __init__(self, service: Service, clock: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._clock = clock
        self._readings: dict[object, _Reading] = {}
        self._reading: Shared[_Reading] = Shared()

    async def read(self, verb: Callable[..., Any], *args: Any, fresh_s: float = FRESH_S) -> tuple[Any, float | None]:
        """Return the answer of a verb, and its age in seconds if the store is away; ``None`` if it is fresh.

        :param verb: a verb of the store, or a named function; it runs in a thread. Its arguments identify the answer,
            so the page has bounded their length.
        :param fresh_s: the time for which all viewers get the same answer, in seconds.
        :raises MintError: as the verb, if it has not answered before.
        """
        key = (verb.__module__, verb.__name__, args)
        reading = self._readings.pop(key, None) or _Reading()
        self._readings[key] = reading
        if reading.forgetting is not None:
            reading.forgetting.cancel()
        reading.forgetting = asyncio.get_running_loop().call_later(_UNUSED_S, self._readings.pop, key, None)
        self._evict()
        is_away = reading.error is not None and reading.error.code == "store.unavailable"
        if self._clock() - reading.tried_s >= (FRESH_S if is_away else fresh_s):
            patience_s = PATIENCE_S if hasattr(verb, "__self__") else LONG_PATIENCE_S
            ask = partial(self._ask, reading, partial(verb, *args), patience_s)
            # Another one, if somebody asks already and it was forgotten meanwhile.
            reading = await self._reading.run(repr(key), ask)
            self._evict()
        age_s = self._clock() - reading.read_s
        if reading.error is None:
            return reading.value, None
        if reading.error.code == "store.unavailable" and age_s < STALE_S:
            return reading.value, age_s
        # Without its traceback, which would grow each time, and keep the frames of others in memory.
        raise reading.error.with_traceback(None)

    def expire(self) -> None:
        """Read all anew, as something has changed. Other workers may show what they read in the last second."""
        for each in self._readings.values():
            each.tried_s = -STALE_S

    async def _ask(self, reading: _Reading, verb: Callable[[], Any], patience_s: float) -> _Reading:
        # Everybody may read here: the page has checked the rights of its own caller.
        deadline = asyncio.get_running_loop().time() + patience_s
        try:
            value = await self._service.ask_until(deadline, Caller.anybody(), "describe", "", verb)
        except MintError as error:
            reading.error = error
        else:
            reading.value, reading.error, reading.read_s = value, None, self._clock()
        reading.tried_s = self._clock()
        return reading

    def _evict(self) -> None:
        """Forget what was not used for longest, while there is too much; never the one used last."""
        records = sum(_records(each.value) for each in self._readings.values())
        for key in list(self._readings)[:-1]:
            if len(self._readings) <= MOST_READINGS and records <= MOST_RECORDS:
                break
            reading = self._readings.pop(key)
            records -= _records(reading.value)
            if reading.forgetting is not None:
                reading.forgetting.cancel()


def _records(value: Any) -> int:
    """Return the number of records of an answer, which may be a tuple of lists."""
    parts = value if isinstance(value, tuple) else (value,)
    return sum(len(each) if isinstance(each, (list, dict)) else 1 for each in parts)
