"""Run processes that mint all leasable formats, are killed and restarted, and write down each of their IDs.

``python -m tests.integration.minters URL DIRECTORY IDS`` ends when they have minted that many. Each process has a file:
its holder text in the first line, then a pool and an ID a line.
"""

from __future__ import annotations

import os
import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

from mintage import locality, sno, snowflake, uuid
from mintage.errors import LeaseError, MintError
from mintage.formats.catalogue import LAYOUTS, read_pool_layout, write_layout
from mintage.formats.kinds import KINDS
from mintage.process.holder import holder
from mintage.store import open_store
from tests.integration.killed import run_and_kill

PROCESSES: Final = 50
SPAN_MS: Final = 2_000
NODES: Final = range(3)
ODD: Final = snowflake.Layout("node:5 time:42 sequence:7", epoch_ms=1_600_000_000_001, unit_ms=3)
POOLS: Final[dict[str, tuple[str, Any, dict[str, Any]]]] = {
    **{name: (name, KINDS[name].module, {}) for name in KINDS if not KINDS[name].is_text and name != "uuid"},
    **{f"uuid.v{version}": (f"uuid.v{version}", uuid, {"version": version}) for version in (1, 6, 7)},
    **{
        name: (f"snowflake {write_layout(layout)}", snowflake, {"layout": layout})
        for name, layout in {**LAYOUTS, "odd": ODD}.items()
    },
    "sno.shards": ("sno/4", sno, {"shards": 4}),
    "locality.sequential": ("locality", locality, {"mode": "sequential"}),
}
"""The layout of each pool, and the module and the arguments of its generators."""


def make_pools(url: str) -> None:
    """Create the pools, which grant at once."""
    with open_store(url) as store:
        for pool, (layout, _, _) in POOLS.items():
            known = read_pool_layout(layout)
            assert known is not None
            store.create_pool(pool, layout=known[0], never_used=True)


def mint(url: str, path: Path) -> None:
    """Mint with one pool after the other until the process is killed; each generator is closed, or left behind."""
    chance = random.Random(os.getpid())
    store = open_store(url)
    with path.open("w", buffering=1) as file:
        file.write(f"{holder()}\n")
        while True:
            pool = chance.choice(list(POOLS))
            _, module, options = POOLS[pool]
            generator = module.Generator(
                pool=pool, nodes=NODES, store=store, span_ms=SPAN_MS, max_wait_ms=2_000, **options
            )
            try:
                for _ in range(chance.randrange(1, 5)):
                    file.write("".join(f"{pool} {generator.new()}\n" for _ in range(12)))
                    time.sleep(chance.random() * 0.3)
                if chance.random() < 0.7:
                    generator.close()
            except (LeaseError, MintError) as error:
                if error.code not in {"lease.none_free", "lease.lost", "store.unavailable", "sequence.exhausted"}:
                    raise


def main(url: str, directory: Path, wanted: int) -> None:
    """Keep the processes running, and kill one at random time after time."""

    def is_enough() -> bool:
        return sum(path.stat().st_size for path in directory.iterdir()) >= 30 * wanted

    make_pools(url)
    run_and_kill(partial(mint, url), directory, processes=PROCESSES, pause_s=0.1, is_enough=is_enough)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
