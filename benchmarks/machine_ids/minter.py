"""Mint with a snowflake generator of mintage: `minter leased` or `minter number`. It obeys lines of its input.

- `mint START SECONDS` mints from a Unix time on, for so many seconds, in bursts of 100 IDs with a pause of a
  millisecond after each. The answer has the Unix times of the begin and the end, and the IDs.
- `rate SECONDS` answers with IDs a second of a loop.

The programs of other libraries, in benchmarks/peers, obey the same lines. Each answers `ready` first, and makes its
generator at the first order. An error of the library ends the process; its answer is `error` and the text.
"""

import os
import select
import sys
import time
from collections.abc import Callable
from functools import cache
from itertools import repeat
from typing import Final

from mintage import snowflake

BURST: Final = 100


@cache
def generator(kind: str) -> snowflake.Generator:
    """Return the generator of this process, which lives until its end."""
    if kind == "number":
        return snowflake.Generator(1)
    # A busy machine is no reason to refuse.
    return snowflake.Generator(store=f"sqlite:///{os.environ['MINTAGE_HOME']}/store.db", max_wait_ms=60_000)


def pause(seconds: float) -> None:
    """Sleep by a call that libfaketime leaves alone, as it does not `time.sleep`."""
    if seconds > 0:
        select.select((), (), (), seconds)


def mint(new: Callable[[], int], start: float, seconds: float) -> str:
    """Return the begin, the end and the IDs of an interval."""
    pause(start - time.time())
    began, end, ids = time.time(), time.monotonic() + seconds, []
    while time.monotonic() < end:
        ids += [new() for _ in repeat(None, BURST)]
        pause(0.001)
    return " ".join(map(str, (began, time.time(), *ids)))


def rate(new: Callable[[], int], seconds: float) -> str:
    """Return the IDs a second of a loop that takes so long."""
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in repeat(None, BURST):
            new()
        count += BURST
    return str(count / (time.perf_counter() - began))


def main(kind: str) -> None:
    """Obey until the input ends."""
    print("ready", flush=True)
    try:
        for line in sys.stdin:
            verb, *numbers = line.split()
            order = mint if verb == "mint" else rate
            print(order(generator(kind).new, *map(float, numbers)), flush=True)
    except Exception as error:  # noqa: BLE001 - the harness shows it
        print("error", " ".join(str(error).split()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
