"""Mint from a store by the version that this interpreter has, and print all that was minted, a line of JSON each round.

It uses the public API of 0.1.0 alone, as each later version must still run it. It mints until its standard input ends.
"""

from __future__ import annotations

import json
import sys
import threading

import mintage
from mintage import Sequence, sno, snowflake


def main(store: str, namespace: str) -> None:
    """Mint in rounds, each by generators and a sequence of its own, so that numbers change hands."""
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    rounds = 0
    while rounds < 2 or not ended.is_set():
        with (
            sno.Generator(store=store, max_wait_ms=30_000) as one,
            snowflake.Generator(store=store, max_wait_ms=30_000) as other,
            Sequence(namespace, store=store, step=100, max_wait_ms=30_000) as sequence,
        ):
            minted = {
                "file": mintage.__file__,
                "sno": [str(one.new()) for _ in range(50)],
                "snowflake": [other.new() for _ in range(50)],
                "integer": [sequence.next() for _ in range(150)],
            }
        print(json.dumps(minted), flush=True)
        rounds += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
