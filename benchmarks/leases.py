"""The row of the keeper: the processor time of a process that extends many leases, beside a tenth of them."""

import subprocess
import sys

from benchmarks.row import Row, at_most
from benchmarks.timing import Rounds

MANY, FEW = 1_000, 100
SPAN_MS = 6_000
"""A fifth of the default, so that each lease is extended several times in a round."""
ROUND_S = 6

_PROGRAM = """
import sys, time
from mintage import open_store, snowflake
leases, span_ms, seconds = map(int, sys.argv[1:])
store = open_store("memory:")
layout = snowflake.Layout("time:41 node:12 sequence:10", epoch_ms=snowflake.DEFAULT.epoch_ms)
generators = [snowflake.Generator(store=store, layout=layout, span_ms=span_ms) for _ in range(leases)]
for generator in generators:
    generator.new()
time.sleep(span_ms / 1000)
cpu_s, began_s = time.process_time(), time.monotonic()
time.sleep(seconds)
print(100 * (time.process_time() - cpu_s) / (time.monotonic() - began_s))
assert len({generator.node for generator in generators}) == leases
"""


def _share(leases: int) -> float:
    """Return the percentage of a processor that the keeper of a fresh process uses for a number of leases."""
    command = [sys.executable, "-c", _PROGRAM, *map(str, (leases, SPAN_MS, ROUND_S))]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _keeping(rounds: int) -> Rounds:
    result = Rounds()
    for _ in range(rounds):
        result.add(_share(MANY), _share(FEW))
    return result


LEASES: tuple[Row, ...] = (
    Row(
        f"keeping {MANY:,} leases",
        f"keeping {FEW}",
        _keeping,
        at_most(12),
        unit="%",
        note=f"Of a processor; windows of {SPAN_MS // 1000} s on `memory:`, where 30 s are the default.",
        pinned=False,
        processes=1,
    ),
)
