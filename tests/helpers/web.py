"""Single requests over HTTP that wait long for their answer, as a busy machine is no reason to fail."""

from __future__ import annotations

from functools import partial
from typing import Final

import httpx

PATIENCE_S: Final = 60
"""The timeout of each, instead of the 5 seconds of httpx."""

request: Final = partial(httpx.request, timeout=PATIENCE_S)
get: Final = partial(httpx.get, timeout=PATIENCE_S)
put: Final = partial(httpx.put, timeout=PATIENCE_S)
post: Final = partial(httpx.post, timeout=PATIENCE_S)
delete: Final = partial(httpx.delete, timeout=PATIENCE_S)
