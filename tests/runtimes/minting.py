"""Mint in a worker of any runtime, and write the IDs to the one file that the harness reads.

Two environment variables are needed: ``RUNTIMES_FILE`` and ``RUNTIMES_STORE``. With ``RUNTIMES_EARLY`` the module
mints when it is imported, which happens in the parent if a server loads the application before it forks.
"""

from __future__ import annotations

import os
from typing import Final

from mintage import Sequence, sno, snowflake

EACH: Final = 50
"""The number of IDs of a kind that one call mints."""
KINDS: Final = 3
NODES: Final = range(64)
"""Few, so that workers that end without a release do not exhaust the pool."""
MAX_WAIT_MS: Final = 30_000

FILE: Final = os.environ["RUNTIMES_FILE"]
STORE: Final = os.environ["RUNTIMES_STORE"]
LEASED: Final = snowflake.Generator(nodes=NODES, store=STORE, max_wait_ms=MAX_WAIT_MS)
NUMBERS: Final = Sequence("numbers", STORE, max_wait_ms=MAX_WAIT_MS)


def write(**lines: object) -> None:
    """Append lines to the file in one write, so that processes do not interleave theirs."""
    with open(FILE, "ab", buffering=0) as file:
        file.write("".join(f"{os.getpid()} {kind} {values}\n" for kind, values in lines.items()).encode())


def mint() -> None:
    """Mint :data:`EACH` IDs of the default generator, of a leased one and of a sequence; write them, or the error."""
    try:
        made = {
            "sno": [int(sno.new()) for _ in range(EACH)],
            "snowflake": [LEASED.new() for _ in range(EACH)],
            "sequence": [NUMBERS.next() for _ in range(EACH)],
        }
    except BaseException as error:
        write(failed=f"{type(error).__name__}: {error}")
        raise
    write(**{kind: " ".join(map(str, ids)) for kind, ids in made.items()})


if os.environ.get("RUNTIMES_EARLY"):
    mint()
