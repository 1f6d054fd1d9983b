"""The process that is cloned: it mints like a worker, and reports every change of its generation.

Each clone has its own directory, the second argument. A file there called ``stop`` ends it; with ``warned`` in its
orders it waits at ``snapshot`` until there is ``go``, and runs the hooks before and after that.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import mintage
from mintage._core import generation
from mintage.errors import MintError
from mintage.prove.worker import Clock, Minter, tell


def hold(directory: Path) -> None:
    """Wait to be cloned, and call the hooks of mintage."""
    mintage.before_snapshot()
    tell(event="ready")
    while not (directory / "go").exists():
        time.sleep(0.01)
    mintage.after_restore()


def main() -> None:
    orders: dict[str, Any] = json.loads(sys.argv[1])
    directory = Path(sys.argv[2])
    os.setsid()
    minters = [Minter(scheme, orders, Clock()) for scheme in orders["schemes"]]
    known = generation()
    while not (directory / "stop").exists():
        if orders["warned"] and (directory / "snapshot").exists():
            orders["warned"] = False
            hold(directory)
        for minter in minters:
            minter.turn()
        if generation() != known:
            known = generation()
            tell(event="noticed", ids={minter._scheme: minter.ids for minter in minters})
        time.sleep(orders["pause_s"])
    for minter in minters:
        try:
            minter.generator.close()
        except MintError as error:
            tell(event="closed", code=error.code)
    refused = {code: count for minter in minters for code, count in minter.refusals.items()}
    tell(event="done", refusals=refused, slowest_ms=round(max(minter.slowest_ms for minter in minters)))


if __name__ == "__main__":
    main()
