"""The text that names this process in a store: the holder of a lease, or of the integers that it reserved."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Final

from mintage._core import generation
from mintage.installation import VERSION
from mintage.platform.machine import host_name, started_s

#: Longer names are cut, so that services accept them.
LONGEST_HOST: Final = 128
_LONGEST_VERSION: Final = 24


def holder() -> str:
    """Return the text of this process as a holder: host, process id, start in Unix seconds, generation, version."""
    return _text(generation())


# Once a generation: the start is that of the wall clock, so a later result may differ by a second.
@lru_cache(maxsize=1)
def _text(number: int) -> str:
    # A name in another encoding must not make a store refuse the text.
    host = host_name()[:LONGEST_HOST].encode(errors="replace").decode()
    version = VERSION[:_LONGEST_VERSION]
    return f"{host}:{os.getpid()}:{started_s()}:{number}:{version}"
