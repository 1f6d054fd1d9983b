"""Run processes that reserve integers in turns, are killed and restarted, and write down each integer that they got.

``python -m tests.integration.reservers URL DIRECTORY INTEGERS`` ends when they have written that many. Each process has
a file: its holder text in the first line, then a namespace and an integer a line.
"""

from __future__ import annotations

import os
import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

from mintage import Sequence
from mintage.errors import StoreError
from mintage.process.holder import holder
from mintage.store import open_store
from tests.integration.killed import run_and_kill

PROCESSES: Final = 20
NAMESPACES: Final = ("orders", "invoices")


def take(url: str, path: Path) -> None:
    """Take integers until the process is killed; each sequence is closed, or left behind with its segments."""
    chance = random.Random(os.getpid())
    store = open_store(url)
    with path.open("w", buffering=1) as file:
        file.write(f"{holder()}\n")
        while True:
            name = chance.choice(NAMESPACES)
            try:
                numbers = Sequence(name, store, step=chance.randrange(1, 30), max_wait_ms=5_000)
                for _ in range(chance.randrange(1, 40)):
                    file.write(f"{name} {numbers.next()}\n")
                time.sleep(chance.random() * 0.1)
                if chance.random() < 0.6:
                    numbers.close()
                if chance.random() < 0.05:
                    record = store.get_namespace(name)
                    store.raise_floor(name, record.high_water + chance.randrange(50) if record else 1)
            except StoreError as error:
                if error.code != "store.unavailable":
                    raise


def main(url: str, directory: Path, wanted: int) -> None:
    """Keep the processes running, and kill one at random time after time."""

    def is_enough() -> bool:
        return sum(path.read_bytes().count(b"\n") for path in directory.iterdir()) >= wanted

    run_and_kill(partial(take, url), directory, processes=PROCESSES, pause_s=0.2, is_enough=is_enough)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
