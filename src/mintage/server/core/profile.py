"""Take CPU profiles of the running service.

pyinstrument samples the thread of the event loop, which goes on serving meanwhile. With several workers, the profile is
of the worker that gets the request.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from mintage.errors import RequestError

if TYPE_CHECKING:
    from pyinstrument.renderers import Renderer
    from pyinstrument.session import Session

LONGEST_S: Final = 60
MOST_SAMPLES: Final = 10_000
"""A longer profile has coarser samples, so that its memory is bounded."""
TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "text": "text/plain; charset=utf-8",
    "speedscope": "application/json",
}
"""The media type of each format."""


def read(seconds: str, form: str) -> tuple[int, str]:
    """Parse the length of a profile, 1 to 60 seconds, and check its format, one of ``TYPES``.

    :raises RequestError: ``request.malformed``.
    """
    if not re.fullmatch(r"[0-9]{1,3}", seconds) or not 1 <= int(seconds) <= LONGEST_S:
        message = f"seconds {seconds[:40]!r} is not a whole number in 1..{LONGEST_S}"
        raise RequestError(message, code="request.malformed")
    if form not in TYPES:
        raise RequestError(f"format {form[:40]!r} is not one of {', '.join(TYPES)}", code="request.malformed")
    return int(seconds), form


async def take(seconds: int, is_over: Callable[[], bool]) -> Session:
    """Sample the running event loop for ``seconds``, or until ``is_over`` returns True."""
    from pyinstrument import Profiler

    # Disabled, so that it samples the whole loop, not this request alone.
    profiler = Profiler(interval=max(0.001, seconds / MOST_SAMPLES), async_mode="disabled")
    profiler.start(target_description=f"mintage serve, {seconds} s")
    try:
        until = time.monotonic() + seconds
        # A service that stops does not wait for a profile.
        while not is_over() and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.2))
    finally:
        session = profiler.stop()
    return session


def draw(session: Session, form: str) -> str:
    """Render a profile in one of the formats of ``TYPES``."""
    from pyinstrument.renderers import ConsoleRenderer, HTMLRenderer, SpeedscopeRenderer

    renderers: dict[str, Callable[[], Renderer]] = {
        "html": HTMLRenderer,
        "text": partial(ConsoleRenderer, unicode=True, color=False, show_all=True),
        "speedscope": partial(SpeedscopeRenderer, show_all=True),
    }
    return renderers[form]().render(session)
